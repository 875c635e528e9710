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
from edgewise.experiments.dynamics import ALPHAS, MEASURED, STEPS
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
    "smallest step it does not (partly: one of the two).",
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
        f"posterior sd over the exact one: {wild:.2f} at step {large:g} and alpha {max(ALPHAS):g}, "
        f"{calm:.2f} there without momentum, {slow:.2f} at step {small:g}"
    )
    hurts = miss(wild) > 0.1 and miss(wild) > 2 * miss(calm)
    safe = miss(slow) < 0.5 * miss(wild)
    return text, HOLDS if hurts and safe else PARTLY if hurts else FAILS


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


@claim(
    "equal predictions",
    "6.4",
    "fig7",
    "Exact and approximate inference predict equally well at every sparsity (particle engine, Algorithm 1).",
    "The scores differ by at most 0.05 nats on average over p0 (partly: 0.2).",
)
def equal_predictions(tables: Tables) -> tuple[str, str]:
    """Mean absolute difference of the score over p0."""
    table = tables["fig7"]
    exact = part(table, method="Bayes Exact p0").set_index("p0")["cll"]
    texts, verdicts = [], []
    for method, words in (("Bayes p0", "particle"), ("Bayes Algorithm 1 p0", "Algorithm 1")):
        gap = float((part(table, method=method).set_index("p0")["cll"] - exact).abs().mean())
        texts.append(f"{words} {gap:.3f}")
        verdicts.append(graded_small(gap, 0.05, 0.2))
    return f"mean difference in nats per case: {', '.join(texts)}", joined(verdicts)


@claim(
    "priors",
    "6.2",
    "other",
    "Results are insensitive to a, b, c and d, each varied alone over 1 to 20.",
    "No value moves the score of Bayes by more than 0.1 nats per case or its density by more than 0.1, on "
    "block and lattice (partly: some of this).",
)
def priors(tables: Tables) -> tuple[str, str]:
    """Largest change of the score and of the density."""
    table = part(tables["other_priors"], method="Bayes")
    texts, verdicts = [], []
    for kind, one in table.groupby("kind"):
        default = one[one["default"]].set_index("replicate")
        changed = one[~one["default"]]
        if default.empty or changed.empty:
            raise Unmeasured
        base = changed["replicate"].map(default["cll"])
        change = (changed["cll"] - base).abs().max()
        density = (changed["density"] - changed["replicate"].map(default["density"])).abs().max()
        texts.append(f"{kind}: score by at most {change:.3f}, density by at most {density:.3f}")
        verdicts += [HOLDS if value <= 0.1 else FAILS for value in (change, density)]
    if len(texts) < len(SIMULATED):
        raise Unmeasured
    return "; ".join(texts), joined(verdicts)
