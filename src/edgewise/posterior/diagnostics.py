"""Can the draws be trusted? The traffic light and its few warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.statistics import (
    EDGE_COUNT,
    INCLUSION_RATE,
    SLAB_SCALE,
    UNCERTAIN,
    StoppingStatistics,
    stopping_statistics,
)
from edgewise.errors import printable
from edgewise.posterior import approximation, imputed, summaries
from edgewise.posterior.engine_health import FINE, Finding, engine_health, engine_rates
from edgewise.posterior.predictive import CheckPart, PredictiveCheck, predictive_check
from edgewise.run.forecast import rounded_up, until_agreement
from edgewise.run.options import TARGET_ESS
from edgewise.run.stopping import R_HAT_APART, R_HAT_LIMIT, stuck

if TYPE_CHECKING:
    import pandas

    from edgewise.posterior.posterior import Posterior

__all__ = [
    "EDGE_COUNT",
    "INCLUSION_RATE",
    "SLAB_SCALE",
    "UNCERTAIN",
    "CheckPart",
    "Diagnostics",
    "PredictiveCheck",
    "StoppingStatistics",
    "diagnose",
    "engine_rates",
    "predictive_check",
    "stopping_statistics",
]

R_HAT_GOOD, R_HAT_POOR, R_HAT_BAD = R_HAT_LIMIT, 1.05, R_HAT_APART
ESS_POOR = 100
LIGHTS = {
    "green": "the chains agree and every uncertain edge has enough effective draws",
    "amber": "usable with care: look at the numbers below before quoting single probabilities",
    "red": "do not trust single probabilities yet: the numbers below say what to do",
}
ADVICE = {
    "green": "",
    "amber": "Look at the reasons before quoting single numbers.",
    "red": "No count, probability or Bayes factor of it can be quoted yet.",
}
UNFINISHED = "warm-up was not finished, so the draws show where the chains were and not the posterior"


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Whether the draws can be trusted, in one word, a few sentences and a table.

    Attributes
    ----------
    light : str
        "green", "amber" or "red"; :attr:`meaning` says what that stands for.
    messages : list of str
        Warnings of a few kinds, each with its number and remedy; empty when all is well.
    reasons : list of str
        The same in a few words each.
    notes : list of str
        Explanations that are not warnings, such as indicators that never flip.
    columns : dict of arrays
        What :attr:`table` holds.
    max_r_hat, min_ess : float
        Of the uncertain edges, the number of edges, p0 and sigma0.
    slowest : str
        Name of the quantity with the fewest effective draws.
    n_uncertain, n_never_flip : int
        Edges active in 5 to 95 % of the draws, and edges that never flip.
    rates : dict
        Acceptance of births, deaths and swaps, weight ESS and resamplings per iteration, where reported.
    more_draws_help : bool
        Whether going on with the run is what would turn the light to green.
    warm_up_unfinished : bool
        Whether the run ended inside warm-up; the light is then red.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import diagnose
    >>> found = diagnose(model.posterior_)
    >>> found.light, found.max_r_hat < 1.01, found.min_ess > 400
    ('green', True, True)
    """

    light: str
    messages: list[str]
    reasons: list[str]
    notes: list[str]
    columns: dict[str, np.ndarray]
    max_r_hat: float
    min_ess: float
    slowest: str
    n_uncertain: int
    n_never_flip: int
    rates: dict[str, float]
    more_draws_help: bool
    warm_up_unfinished: bool = False

    @property
    def meaning(self) -> str:
        """The light in words."""
        return UNFINISHED if self.warm_up_unfinished else LIGHTS[self.light]

    @property
    def banner(self) -> str:
        """What must stand above everything else that is said of it; empty if the light is green."""
        if self.light == "green":
            return ""
        return f"{self.light.capitalize()}: {'; '.join(self.reasons)}. {ADVICE[self.light]}"

    @cached_property
    def table(self) -> pandas.DataFrame:
        """One row per quantity: the number of edges, p0, sigma0, and every edge that flips, slowest first."""
        import pandas

        return pandas.DataFrame(self.columns)

    def __str__(self) -> str:
        return "\n".join([f"{self.light}: {self.meaning}", *self.messages, *self.notes])


@dataclass(frozen=True, eq=False)
class Examination:
    """What is found in the draws whatever the target: computed once per posterior, which keeps it."""

    seen: StoppingStatistics
    notes: list[str]
    columns: dict[str, np.ndarray]
    n_never_flip: int
    rates: dict[str, float]


def examine(posterior: Posterior) -> Examination:
    """Look at the draws of a posterior; :func:`diagnose` judges them."""
    return Examination(
        posterior._seen,
        _notes(posterior),
        _columns(posterior),
        int((~posterior._quality.varies).sum()),
        engine_rates(posterior),
    )


def diagnose(posterior: Posterior, target_ess: float = TARGET_ESS) -> Diagnostics:
    """Judge the draws of a posterior.

    The posterior keeps what this has found in its draws, so that asking again costs nothing.

    Parameters
    ----------
    posterior : Posterior
    target_ess : float
        Effective number of draws that the slowest uncertain edge should have.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import diagnose
    >>> diagnose(model.posterior_).light
    'green'
    """
    found = posterior._examination
    seen = found.seen
    slowest = _name(posterior, seen.slowest_index)
    unfinished = bool(posterior.info.get("warm_up_unfinished"))
    if unfinished:
        judged = [_unfinished(posterior)]
    elif posterior.n_draws < convergence.FEWEST_DRAWS:
        draws = _counted(posterior.n_draws, "draw")
        few = (
            f"The chains have {draws} each, too few to judge anything: "
            f"draw at least {convergence.FEWEST_DRAWS}, better 1,000, per chain."
        )
        judged = [(2, f"the chains have {draws} each", few)]
    else:
        judged = [_agreement(posterior, seen), _precision(posterior, seen, slowest, target_ess)]
    more_draws_help = any(level for level, _, _ in judged)
    if more_draws_help and posterior.info.get("stop_reason") == "max_time":
        judged.insert(0, (1, "the time allowed ran out", ""))
    broken = _not_numbers(posterior)
    if broken[0]:
        judged, more_draws_help = [broken], False
    judged += [FINE if unfinished else engine_health(posterior, found.rates)]
    judged += [_unreadable(posterior), _silent_data(posterior), imputed.judged(posterior.imputed)]
    return Diagnostics(
        ("green", "amber", "red")[max(level for level, _, _ in judged)],
        [message for _, _, message in judged if message],
        [brief for _, brief, _ in judged if brief],
        list(found.notes),
        {name: values.copy() for name, values in found.columns.items()},
        seen.max_rhat,
        seen.min_bulk_ess,
        slowest,
        seen.n_uncertain,
        found.n_never_flip,
        dict(found.rates),
        more_draws_help,
        unfinished,
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _name(posterior: Posterior, index: int) -> str:
    if index >= 0:
        return printable(posterior.features.label(index, posterior.names), keep="")
    hyper = {EDGE_COUNT: "number of edges", INCLUSION_RATE: "p0", SLAB_SCALE: "sigma0"}
    return hyper.get(index, "the model of inclusion")


def _unfinished(posterior: Posterior) -> Finding:
    info = posterior.info
    done = f" ({info['warm_up_done']:,} of {info['warm_up']:,} iterations)" if "warm_up_done" in info else ""
    message = (
        f"Warm-up was not finished{done}: these {_counted(posterior.n_draws, 'draw')} of each chain are "
        "steps on the way to the posterior. Allow more time, or go on from here with extend(draws=1000)."
    )
    return 2, "warm-up was not finished", message


def _agreement(posterior: Posterior, seen: StoppingStatistics) -> Finding:
    if not seen.max_rhat >= R_HAT_GOOD:
        return FINE
    frequency = posterior.edge_values("frequency")
    uncertain = (frequency >= UNCERTAIN[0]) & (frequency <= UNCERTAIN[1])
    r_hat = np.where(uncertain, posterior._quality.r_hat, 0.0)
    above = int((r_hat >= R_HAT_GOOD).sum())
    where = "the number of edges, p0 or sigma0"
    if above:
        worst = int(r_hat.argmax())
        where = (
            f"{above} of {seen.n_uncertain} uncertain edges, most for {_name(posterior, worst)} "
            f"({r_hat.max():.3f})"
        )
        if posterior.n_chains > 1:
            shares = summaries.chain_frequency(posterior._table)[:, worst]
            where += f", which is in {shares.min():.0%} to {shares.max():.0%} of the draws of a chain"
    more = rounded_up(posterior.n_draws * (until_agreement(seen.max_rhat, R_HAT_GOOD) - 1))
    remedy = f"Continue with extend(draws={more})."
    if seen.max_rhat >= R_HAT_BAD:
        remedy = f"{stuck(str(posterior.info.get('engine')), posterior.n_variables)} {remedy}"
    message = (
        f"The chains do not agree yet: R-hat reaches {seen.max_rhat:.3f} (below {R_HAT_GOOD} wanted), "
        f"in {where}. {remedy}"
    )
    brief = f"the chains do not agree (R-hat {seen.max_rhat:.2f})"
    return 2 if seen.max_rhat >= R_HAT_POOR else 1, brief, message


def _precision(posterior: Posterior, seen: StoppingStatistics, slowest: str, target: float) -> Finding:
    if seen.min_bulk_ess >= target:
        return FINE
    more = rounded_up(posterior.n_draws * (target / max(seen.min_bulk_ess, 1.0) - 1))
    message = (
        f"Few effective draws: {slowest} has {seen.min_bulk_ess:,.0f} of "
        f"{posterior.n_chains * posterior.n_draws:,} draws ({target:,.0f} wanted), so a probability near one "
        f"half is uncertain by about {0.5 / math.sqrt(max(seen.min_bulk_ess, 1.0)):.2f}; "
        f"continue with extend(draws={more})."
    )
    brief = f"{slowest} has {seen.min_bulk_ess:,.0f} effective draws ({target:,.0f} wanted)"
    return 2 if seen.min_bulk_ess < ESS_POOR else 1, brief, message


def _not_numbers(posterior: Posterior) -> Finding:
    """Draws that are infinite or not a number: nothing that is computed from them can be trusted."""
    parts = ("values", "blocks", "biases", "inclusion_rate", "slab_scale", "model_state")
    chains = [
        number
        for number, chain in enumerate(posterior.draws)
        if not all(np.isfinite(drawn).all() for part in parts if (drawn := getattr(chain, part)) is not None)
    ]
    if not chains:
        return FINE
    return (
        2,
        "parameters that were drawn are not finite",
        f"{_counted(len(chains), 'chain')} of {posterior.n_chains} drew parameters that are not finite "
        f"(the first is chain {chains[0]}); fit again with a narrower prior of the biases or another engine.",
    )


def _unreadable(posterior: Posterior) -> Finding:
    """Edges of which the engine could not say how probable a decision was."""
    sums = posterior._edge_sums.get("inclusion")
    if sums is None or np.isfinite(sums).all():
        return FINE
    edges = np.flatnonzero(~np.isfinite(sums).all(axis=0))
    first = _name(posterior, int(edges[0]))
    return (
        1,
        f"the probabilities of {_counted(len(edges), 'edge')} are coarse",
        f"The engine met parameters beyond its arithmetic and lost the acceptance probabilities of "
        f"{_counted(len(edges), 'edge')} ({first}{', ...' * (len(edges) > 1)}); where that happened, "
        "probabilities are the coarser shares of the draws. Data that hardly vary are the usual cause.",
    )


def _silent_data(posterior: Posterior) -> Finding:
    """Data that can say nothing about any edge, or nothing about those of some variables."""
    statistics = posterior.statistics
    rows = statistics.n_rows
    varies = posterior.scales.varying(statistics.singles, rows)
    varying = int(varies.sum())
    if rows <= 0:
        what = "There are no data"
    elif rows <= 1:
        what = "The data are worth one row at most"
    elif varying < 2:
        what = "No variable varies" if varying == 0 else "Only one variable varies"
        what += " in the data"
    elif varying < len(varies):
        still = [printable(posterior.names[i], keep="") for i in np.flatnonzero(~varies)]
        listed = ", ".join(still[:3]) + ", ..." * (len(still) > 3)
        one = len(still) == 1
        what = f"{_counted(len(still), 'variable')} {'does' if one else 'do'} not vary in the data"
        return (
            1,
            what,
            (
                f"{what} ({listed}): what is said about {'its' if one else 'their'} edges is the prior, not "
                "evidence; leave such columns out."
            ),
        )
    else:
        return FINE
    brief = what[:1].lower() + what[1:]
    return (
        1,
        brief,
        f"{what}: what is said about edges is the prior, not evidence; give more rows that differ.",
    )


def _notes(posterior: Posterior) -> list[str]:
    notes = []
    counts, total = posterior._table.counts, posterior._table.total
    absent, present = int((counts == 0).sum()), int((counts == total).sum())
    if absent or present:
        notes.append(
            f"{absent + present:,} of {posterior.n_cliques:,} edges never flip: {absent:,} are absent and "
            f"{present:,} present in all of {_counted(total, 'draw')}. R-hat does not apply to them, and "
            "without the engine's acceptance probabilities their Bayes factors are bounds."
        )
    if posterior.n_chains == 1:
        notes.append("There is one chain: R-hat compares its two halves, which cannot show a missed region.")
    if posterior.imputed is not None:
        blank = posterior.imputed
        notes.append(
            f"{_counted(blank.n_cells, 'blank cell')} in {_counted(blank.n_rows, 'row')} "
            f"{'was' if blank.n_cells == 1 else 'were'} drawn along with everything else. {blank.mixing}"
        )
    if posterior._approximation is not None:
        notes.append(approximation.sentence(posterior))
    if posterior.info.get("interrupted") and not posterior.info.get("warm_up_unfinished"):
        notes.append("The run was interrupted; the draws up to then are valid.")
    return notes


def _columns(posterior: Posterior) -> dict[str, np.ndarray]:
    quality = posterior._quality
    common = np.stack([posterior.n_edges, posterior.inclusion_rate, posterior.slab_scale]).astype(float)
    enough = posterior.n_draws >= convergence.FEWEST_DRAWS
    unknown = np.full(3, np.nan)
    ess = convergence.bulk_ess(common) if enough else unknown
    spread = common.reshape(3, -1).std(axis=1, ddof=1) if common[0].size > 1 else np.zeros(3)
    ups, downs = summaries.transitions(posterior._table)
    edges = np.flatnonzero(quality.varies)
    edges = edges[np.argsort(quality.ess[edges], kind="stable")]
    # Both outer deciles of a rarer edge fall on its zeros: its tail is its indicator.
    tail = quality.ess[edges]
    if enough:
        frequent = np.flatnonzero(posterior.edge_values("frequency")[edges] >= 0.1)
        for batch in posterior._table.batches(frequent):
            found = convergence.tail_ess(posterior._table.dense(edges[batch]))
            tail[batch] = np.where(found >= posterior._table.total, tail[batch], found)
    return {
        "quantity": np.array(["number of edges", "p0", "sigma0", *posterior.candidates[edges]], object),
        "mean": np.concatenate([common.mean(axis=(1, 2)), posterior._edge_inclusion[edges]]),
        "mcse": np.concatenate([spread / np.sqrt(ess), quality.mcse[edges]]),
        "r_hat": np.concatenate(
            [convergence.rank_r_hat(common) if enough else unknown, quality.r_hat[edges]]
        ),
        "ess_bulk": np.concatenate([ess, quality.ess[edges]]),
        "ess_tail": np.concatenate([convergence.tail_ess(common) if enough else unknown, tail]),
        "flips_up": np.concatenate([np.zeros(3, int), ups[edges]]),
        "flips_down": np.concatenate([np.zeros(3, int), downs[edges]]),
    }
