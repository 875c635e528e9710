"""Claims of sections 3.3, 3, 4.1 and 6.3: the sampler, and priors."""

from __future__ import annotations

import numpy as np

from edgewise.experiments.claims import (
    FAILS,
    HOLDS,
    PARTLY,
    SIMULATED,
    Tables,
    Unmeasured,
    claim,
    graded,
    graded_small,
    joined,
    part,
)
from edgewise.experiments.dynamics import ALPHAS, JUMPS, MEASURED, RATIOS, STEPS
from edgewise.experiments.fig4 import shown


@claim(
    "momentum mixes",
    "3.3",
    "fig2",
    "Keeping part of the momentum (alpha = 0.9) lowers the autocorrelation of the draws.",
    "The median effective number of draws at least doubles (partly: grows by a quarter).",
)
def momentum_mixes(tables: Tables) -> tuple[str, str]:
    """Compare effective numbers of draws at the step where both are known well."""
    table = part(tables["fig2"], step=MEASURED)
    none, much = (part(table, alpha=alpha)["ess"].median() for alpha in (0.0, 0.9))
    text = f"median effective draws at step {MEASURED:g}: {none:.0f} without, {much:.0f} with momentum"
    return text, graded(much / none, 2.0, 1.25)


@claim(
    "momentum leaves the posterior",
    "3.3",
    "fig2",
    "It does not move the posterior's means and standard deviations.",
    "Means and sds differ by at most 1.5 Monte Carlo errors (rms), or by 5 % of the sd (partly: 3 errors, or "
    "15 %).",
)
def momentum_leaves(tables: Tables) -> tuple[str, str]:
    """Differences in units of their Monte Carlo error."""
    table = part(tables["fig2"], step=MEASURED)
    none, much = (part(table, alpha=alpha).set_index("edge") for alpha in (0.0, 0.9))
    error = np.sqrt(1 / none["ess"] + 1 / much["ess"])
    verdicts, texts = [], []
    # The relative error of a standard deviation from n draws is 1 / sqrt(2 n).
    for words, gap, unit in (
        ("means", (much["mean"] - none["mean"]) / none["sd"], error),
        ("sds", np.log(much["sd"] / none["sd"]), error / np.sqrt(2)),
    ):
        size, z = (float(np.sqrt((value**2).mean())) for value in (gap, gap / unit))
        texts.append(f"{words} by {size:.1%} of the sd or {z:.1f} Monte Carlo errors")
        verdicts.append(HOLDS if z <= 1.5 or size <= 0.05 else PARTLY if z <= 3 or size <= 0.15 else FAILS)
    return f"rms over edges: {', '.join(texts)}", FAILS if FAILS in verdicts else joined(verdicts)


@claim(
    "too much momentum",
    "3.3",
    "fig2",
    "Too much momentum at a large step hurts, since no accept/reject step repairs the error.",
    "At the largest step alpha = 0.99 misses the sd by over 10 % and twice as much as alpha = 0, and at the "
    "smallest step by less than 10 % (partly: one of the two).",
)
def too_much_momentum(tables: Tables) -> tuple[str, str]:
    """Errors of the posterior sd at the corners of the grid."""
    table = tables["fig2_errors"]

    def ratio(step: float, alpha: float) -> float:
        return float(part(table, step=step, alpha=alpha)["sd_ratio"].iloc[0])

    def miss(value: float) -> float:
        return abs(float(np.log(value)))

    large, small = max(STEPS), min(STEPS)
    calm, wild, slow = ratio(large, 0.0), ratio(large, max(ALPHAS)), ratio(small, max(ALPHAS))
    text = (
        f"posterior sd over the exact one: {_factor(wild)} at step {large:g} and alpha {max(ALPHAS):g}, "
        f"{calm:.2f} there without momentum, {slow:.2f} at step {small:g}"
    )
    hurts = miss(wild) > 0.1 and miss(wild) > 2 * miss(calm)
    return text, joined([HOLDS if hurts else FAILS, HOLDS if miss(slow) < 0.1 else FAILS])


@claim(
    "eps cubed",
    "3",
    "other",
    "The rate at which an accept/reject step would refuse one leapfrog step falls as eps cubed.",
    "The slope in the logarithms is 3 within 0.4 (partly: within 1).",
)
def eps_cubed(tables: Tables) -> tuple[str, str]:
    """Slope over the steps where rejections are rare."""
    table = tables["other_leapfrog"]
    table = table[(table["rejection"] < 0.3) & (table["rejection"] > 0)]
    if len(table) < 3:
        raise Unmeasured
    slope = float(np.polyfit(np.log(table["step"]), np.log(table["rejection"]), 1)[0])
    first = table.iloc[0]
    text = f"slope {slope:.2f}; at eps = {first['step']:g} the rate is {first['rejection']:.1e}"
    return text, graded_small(abs(slope - 3), 0.4, 1.0)


@claim(
    "unbiased ratio",
    "4.1",
    "other",
    "The corrected estimate of a jump's ratio is unbiased to second order in the jump; without the "
    "correction it is not.",
    "Over jumps of 0.01 to 0.1 posterior sds the bias falls with a power of 3 within 0.3, without the "
    "correction with one of 2 (partly: it is smaller than without).",
)
def unbiased_ratio(tables: Tables) -> tuple[str, str]:
    """Powers at which the two biases fall with the jump, exact sums over the binomial."""
    table = tables["other_ratios"].iloc[: len(JUMPS)]
    plain, corrected = (
        float(np.polyfit(np.log(table["jump"]), np.log(table[name]), 1)[0]) for name in ("bias_plain", "bias")
    )
    last = table.iloc[-1]
    text = (
        f"powers {corrected:.2f} with and {plain:.2f} without the correction; at a jump of {last['jump']:g} "
        f"sds the biases are {last['bias']:.1e} and {last['bias_plain']:.1e}"
    )
    if abs(corrected - 3) <= 0.3 and abs(plain - 2) <= 0.3:
        return text, HOLDS
    return text, PARTLY if last["bias"] < last["bias_plain"] else FAILS


@claim(
    "variance of the ratio",
    "4.1",
    "other",
    "Its variance is N^2 a^2 Var(f) / n: more rows need a smaller jump, or particles that grow as their "
    "square.",
    "The formula is within 10 % at all jumps for 100 rows, and for ten times the rows a hundred times the "
    "particles give the variance back within 10 % (partly: one of the two).",
)
def variance_of_ratio(tables: Tables) -> tuple[str, str]:
    """Exact variances against the formula."""
    table = tables["other_ratios"]
    few, many, more = (part(table, rows=rows, particles=n).set_index("jump") for rows, n in RATIOS)
    formula = float((few["variance"] / few["variance_formula"] - 1).abs().max())
    growth = float((more["variance"] / few["variance"] - 1).abs().max())
    jump = min(JUMPS)
    text = (
        f"formula off by at most {formula:.1%}; at a jump of {jump:g} sds the variance is "
        f"{few['variance'][jump]:.1e} with {RATIOS[0][0]} rows and {RATIOS[0][1]} particles, "
        f"{many['variance'][jump]:.1e} with {RATIOS[1][0]} rows, and {more['variance'][jump]:.1e} with these "
        f"and {RATIOS[2][1]:,} particles"
    )
    return text, joined([HOLDS if value <= 0.1 else FAILS for value in (formula, growth)])


@claim(
    "negligible error of acceptance",
    "4.1",
    "other",
    "A small enough range of jumps keeps the error of the probability of acceptance negligible.",
    "At the published range (0.01 sds, 100 particles) it is at most 0.01 at all true odds with 100 rows "
    "(partly: 0.05).",
)
def acceptance_error(tables: Tables) -> tuple[str, str]:
    """Largest error over true odds; it comes from the min where the odds are near 1."""
    table = part(tables["other_ratios"], jump=min(JUMPS))
    values = [float(part(table, rows=rows, particles=n)["acceptance_error"].iloc[0]) for rows, n in RATIOS]
    words = [f"{value:.4f} with {rows} rows and {n:,} particles" for value, (rows, n) in zip(values, RATIOS)]
    return f"error at most {', '.join(words)}", graded_small(values[0], 0.01, 0.05)


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 100 else "over 100 (it diverged)"


def _approximate(tables: Tables, method: str) -> tuple[str, str]:
    table = part(tables["fig4"], method=method)
    rms = float(np.sqrt(((table["inclusion"] - table["exact_inclusion"]) ** 2).mean()))
    enough = shown(table, "mean")
    if len(enough) < 3:
        raise Unmeasured
    scale = enough["exact_sd"]
    mean = float(np.sqrt((((enough["mean"] - enough["exact_mean"]) / scale) ** 2).mean()))
    # A chain that never moved has no spread; it counts as a thousandth.
    ratio = float(np.exp(np.log(np.maximum(enough["sd"] / scale, 1e-3)).mean()))
    text = (
        f"over {table['p0'].nunique()} values of p0: P(edge) differs by {rms:.3f} (rms), means by {mean:.2f} "
        f"posterior sds (rms), sds by a factor {ratio:.2f}"
    )
    return text, joined([graded_small(rms, 0.04, 0.1), graded_small(mean, 0.25, 0.6)])


RULE_APPROXIMATE = "P(edge) within 0.04 and means within 0.25 posterior sds, rms (partly: 0.1 and 0.6)."


@claim(
    "particle equals exact",
    "6.3",
    "fig4",
    "Approximate inference finds the exact posterior: the particle engine.",
    RULE_APPROXIMATE,
)
def particle_equals_exact(tables: Tables) -> tuple[str, str]:
    """Figure 4 for the default engine."""
    return _approximate(tables, "Bayes p0")


@claim(
    "Algorithm 1 equals exact",
    "6.3",
    "fig4",
    "Approximate inference finds the exact posterior: the paper's own algorithm.",
    RULE_APPROXIMATE,
)
def algorithm_equals_exact(tables: Tables) -> tuple[str, str]:
    """Figure 4 for the langevin engine."""
    return _approximate(tables, "Bayes Algorithm 1 p0")


RULE_PREDICTIONS = "The scores differ by at most 0.05 nats on average over p0 (partly: 0.2)."


def _predictions(tables: Tables, method: str) -> tuple[str, str]:
    """Mean absolute difference of the score over p0."""
    table = tables["fig7"]
    exact = part(table, method="Bayes Exact p0").set_index("p0")["cll"]
    gap = float((part(table, method=method).set_index("p0")["cll"] - exact).abs().mean())
    return f"mean difference {gap:.3f} nats per case", graded_small(gap, 0.05, 0.2)


@claim(
    "equal predictions",
    "6.4",
    "fig7",
    "Approximate inference predicts as well as exact at every sparsity: the particle engine.",
    RULE_PREDICTIONS,
)
def equal_predictions(tables: Tables) -> tuple[str, str]:
    """Figure 7 for the default engine."""
    return _predictions(tables, "Bayes p0")


@claim(
    "equal predictions, Algorithm 1",
    "6.4",
    "fig7",
    "Approximate inference predicts as well as exact at every sparsity: the paper's own algorithm.",
    RULE_PREDICTIONS,
)
def algorithm_predictions(tables: Tables) -> tuple[str, str]:
    """Figure 7 for the langevin engine."""
    return _predictions(tables, "Bayes Algorithm 1 p0")


@claim(
    "Algorithm 1 on the lattice",
    "6.4",
    "fig6",
    "The published algorithm at its published length learns the lattice.",
    "Its score is within 0.05 nats of that of the particle engine on the same training set (partly: 0.2).",
)
def algorithm_lattice(tables: Tables) -> tuple[str, str]:
    """The one lattice fit of Algorithm 1 against the particle engine's."""
    table = part(tables["fig6"], kind="lattice", replicate=0)
    here, there = (part(table, method=method).iloc[0] for method in ("Bayes Algorithm 1", "Bayes"))
    text = (
        f"Algorithm 1 {here['cll']:.2f} nats, F1 {here['f1']:.2f}, density {here['density']:.3f}; particle "
        f"engine {there['cll']:.2f}, {there['f1']:.2f}, {there['density']:.3f}"
    )
    return text, graded_small(there["cll"] - here["cll"], 0.05, 0.2)


def _priors(tables: Tables, column: str) -> tuple[str, str]:
    """Largest change against the default of the same training set."""
    table = part(tables["other_priors"], method="Bayes")
    texts, verdicts = [], []
    for kind, one in table.groupby("kind"):
        default = one[one["default"]].set_index("replicate")[column]
        changed = one[~one["default"]]
        if default.empty or changed.empty:
            raise Unmeasured
        change = (changed[column] - changed["replicate"].map(default)).abs()
        worst = changed.iloc[int(change.to_numpy().argmax())]
        texts.append(f"{kind}: by at most {change.max():.3f} (at {worst['parameter']} = {worst['value']:g})")
        verdicts.append(graded_small(float(change.max()), 0.1, 0.2))
    if len(texts) < len(SIMULATED):
        raise Unmeasured
    return "; ".join(texts), joined(verdicts)


@claim(
    "priors: score",
    "6.2",
    "other",
    "Predictions are insensitive to a, b, c and d, each varied alone over 1 to 20.",
    "No value moves the score of Bayes by more than 0.1 nats per case on block and lattice (partly: 0.2).",
)
def priors_score(tables: Tables) -> tuple[str, str]:
    """Scores under other priors."""
    return _priors(tables, "cll")


@claim(
    "priors: density",
    "6.2",
    "other",
    "So is the number of edges.",
    "No value moves the density of Bayes by more than 0.1 on block and lattice (partly: 0.2).",
)
def priors_density(tables: Tables) -> tuple[str, str]:
    """Densities under other priors."""
    return _priors(tables, "density")
