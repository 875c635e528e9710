"""Why nothing could be excluded, and what would change it (docs/method.md, 8).

Evidence for absence has a ceiling that the prior sets. The Bayes factor of absence is the density of the
coupling at zero, given that it is there, after the data over before them; it is largest where the data show
no trace of a link, and is then the ratio of the widths of slab and posterior. A slab that expects small
couplings, or rows too few to narrow them, can never exclude anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgewise.kernels.codes import COMMON
from edgewise.posterior.levels import STRENGTH, measures
from edgewise.priors import CauchySlab, StudentSlab
from edgewise.priors.attributes import AttributeLayout
from edgewise.priors.communities import BlockLayout

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior
    from edgewise.priors.prior import Slab

# Draws with the edge in them from which its width is known well enough.
ENOUGH = 30
# Median of a squared standard normal number: how far off the estimate of an absent link typically is.
TYPICAL_SQUARE = 0.4549
LARGEST_GAIN = 1e12
# Rows that tell less than this share of what the slab does tell nothing.
SILENT = 1e-3
# From here on it is worth saying what a learned p0 does.
NOTABLE = 1.3
# Bayes factors below this are hardly any.
VISIBLE = 1.05
# Draws times candidates that the odds of a model of inclusion are averaged over.
MOST_CELLS = 2e7
# Normal slabs that one with heavier tails is made of, and likelihood widths in units of its scale.
SHARES = (np.arange(4000) + 0.5) / 4000
WIDTHS = np.logspace(-6, 6, 241)


@dataclass(frozen=True)
class Absence:
    """What the data could say against edges, whatever they showed.

    Attributes
    ----------
    excluded, undecided : int
        Candidates with evidence against them, and without evidence either way.
    within_reach : int
        Of the undecided, those that data without any trace of a link would have excluded.
    ceiling : float
        Largest Bayes factor of absence that an undecided candidate could have reached; their median.
    lean : float
        How much a learned p0, or a model of inclusion, has raised the odds of an undecided pair, because so
        many others are linked; their median.
    threshold : float
        The Bayes factor that counts as evidence.
    rows, sigma0 : float
        The number of rows, or the width of the slab, at which a typical candidate that is undecided now would
        be excluded more often than not if it is absent; infinite if no such number is known.
    present_rows, present_sigma0 : float
        The same as they are.
    slab : str
        The slab in words of its kind, ``"FixedSlab({})"``, with a place for its width.
    leaning : str
        What has raised the odds: ``"p0"``, ``"communities"`` or ``"attributes"``.
    """

    excluded: int
    undecided: int
    within_reach: int
    ceiling: float
    lean: float
    threshold: float
    rows: float
    sigma0: float
    present_rows: float
    present_sigma0: float
    slab: str = "FixedSlab({})"
    leaning: str = "p0"

    @property
    def words(self) -> str:
        """Why nothing is excluded and what would change it; empty where something is, or nothing is open."""
        if self.excluded or not self.undecided or not math.isfinite(self.ceiling):
            return ""
        if self.within_reach == 0:
            why = (
                f"Nothing is excluded, and nothing could be: with {self.present_rows:,.6g} rows and a slab "
                f"of width {self.present_sigma0:.2g}, even data without a trace of a link {self._at_best} "
                f"({self.threshold:g} against it wanted)."
            )
        else:
            why = (
                f"Nothing is excluded: {self.within_reach:,} of {self.undecided:,} undecided could have been "
                "had the data shown no trace of a link, but they show a little."
            )
        if self.lean >= NOTABLE:
            why += f" {LEANINGS[self.leaning].format(f'{self.lean:.1f}')}"
        if not (self.rows > self.present_rows and self.sigma0 > self.present_sigma0):
            return f"{why} More rows would tell more."
        if not math.isfinite(self.sigma0):
            return f"{why} More rows that differ would change that."
        return (
            f"{why} About {_rounded(self.rows):,} rows, or a slab with more mass on visible effects "
            f"({self.slab.format(_two_digits(self.sigma0))} or wider), would exclude about half of the links "
            "that do not exist. Absence always means: no link of the size that the slab expects."
        )

    @property
    def _at_best(self) -> str:
        """What data without a trace of a link say."""
        if self.ceiling >= VISIBLE:
            return f"reach a Bayes factor of about {self.ceiling:.2g} against it"
        # Such data never speak for a link: that it is more likely than before, others have done.
        return "leave it more likely than it was" if self.lean >= NOTABLE else "hardly speak against it"


LEANINGS = {
    "p0": (
        "Part of it is p0, which is learned: so many others are linked that the odds of every one have risen "
        "by {}; a fixed one (FixedInclusion(0.5)) leaves them out of it."
    ),
    "communities": (
        "Part of it are the communities: so many pairs like it are linked that the odds of a typical one "
        "have risen by {}; a fixed p0 (FixedInclusion(0.5)) leaves them out of it."
    ),
    "attributes": (
        "Part of it are the attributes: so many pairs like it are linked that the odds of a typical one "
        "have risen by {}; a fixed p0 (FixedInclusion(0.5)) leaves them out of it."
    ),
}


def absence(posterior: Posterior, thresholds: tuple[float, float] = (3, 10)) -> Absence:
    """How far evidence for absence could reach in a posterior (8.4)."""
    words = posterior.edge_values("evidence", thresholds=thresholds)
    prior = posterior._resolved_prior
    free = posterior.edge_values("bf_bound") != "prior"
    against = np.isin(words, ("absence", "strong absence")) & free
    undecided = (words == "inconclusive") & free
    width = posterior.edge_values("sd_if_included")
    known = undecided & (posterior._table.counts >= ENOUGH) & (width > 0)
    scales = posterior.slab_scale
    sigma0 = float(np.sqrt((scales**2).mean()))
    factors, narrowed = np.full(len(known), np.nan), np.zeros(len(known))
    own = np.zeros(len(known), bool) if prior.own_sd is None else prior.own_sd > 0
    if own.any() and prior.own_mean is not None and prior.own_sd is not None:
        factors[own] = _own_factors(prior.own_mean[own], prior.own_sd[own], width[own])
    if prior.freedom:
        known &= own | (measures(posterior) != STRENGTH)
        chosen = known & ~own
        errors = _likelihood_widths(posterior, prior.freedom, sigma0)[chosen]
        factors[chosen] = np.exp(
            np.interp(
                np.log(errors / sigma0), np.log(WIDTHS), np.log(traceless_factor(prior.freedom, WIDTHS))
            )
        )
        narrowed[chosen] = (sigma0 / errors) ** 2
    else:
        chosen = known & ~own
        # Of the slab at zero and of a normal posterior around zero: the root of two pi is in both densities.
        factors[chosen] = 1 / ((1 / scales).mean() * width[chosen])
        narrowed[chosen] = (sigma0 / width[chosen]) ** 2 - 1
    leans = _leans(posterior)
    # What is one at least is so but for the error of few draws.
    ceilings = np.maximum(factors[known], 1.0) / leans[known]
    lean = float(np.median(leans[known])) if known.any() else 1.0
    # How much the rows tell, in units of what the slab does.
    told = float(np.median(narrowed[chosen])) if chosen.any() else 0.0
    rows = float(posterior.statistics.n_rows)
    wider = more = math.inf
    if told > SILENT:
        wanted = gain_wanted(thresholds[0] * lean, prior.freedom)
        wider, more = sigma0 * math.sqrt(wanted / told), rows * wanted / told
    return Absence(
        excluded=int(against.sum()),
        undecided=int(undecided.sum()),
        within_reach=int((ceilings >= thresholds[0]).sum()),
        ceiling=float(np.median(ceilings)) if len(ceilings) else math.nan,
        lean=lean,
        threshold=float(thresholds[0]),
        rows=more,
        sigma0=wider,
        present_rows=rows,
        present_sigma0=sigma0,
        slab=_slab_name(posterior.prior.slab),
        leaning=_leaning(prior.model),
    )


def _slab_name(slab: Slab) -> str:
    if isinstance(slab, StudentSlab):
        return f"StudentSlab({slab.freedom:g}, {{}})"
    return "CauchySlab({})" if isinstance(slab, CauchySlab) else "FixedSlab({})"


def _leaning(model: BlockLayout | AttributeLayout | None) -> str:
    if model is None:
        return "p0"
    return "communities" if isinstance(model, BlockLayout) else "attributes"


def _own_factors(mean: np.ndarray, sd: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Bayes factor against a link with the slab N(mean, sd^2) if its estimate were zero."""
    variance = 1 / np.maximum(width**-2.0 - sd**-2.0, 1e-12 * sd**-2.0)
    found: np.ndarray = np.sqrt(1 + sd**2 / variance) * np.exp(0.5 * mean**2 / (sd**2 + variance))
    return found


def _likelihood_widths(posterior: Posterior, freedom: float, scale: float) -> np.ndarray:
    """Error of the data alone for every candidate: draws weighted by one over the slab are its likelihood."""
    table = posterior._table
    values = table.value
    weight = (1 + (values / scale) ** 2 / freedom) ** ((freedom + 1) / 2)
    total, first, second = (
        np.bincount(table.owner, weight * values**k, minlength=table.n_cliques) for k in range(3)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = first / total
        found: np.ndarray = np.sqrt(np.maximum(second / total - mean**2, 1e-300))
    return found


def _leans(posterior: Posterior) -> np.ndarray:
    """How much the odds of every candidate have been raised by what is learned of the others: (M,)."""
    prior = posterior._resolved_prior
    result = np.ones(len(prior.status))
    if not prior.fixed_p0:
        rate = float(posterior.inclusion_rate.mean())
        result[prior.status == COMMON] = rate / (1 - rate) / (prior.beta_a / prior.beta_b)
    if prior.model is not None:
        inside = prior.model.inside
        result[inside] = _model_odds(posterior)[inside] / np.exp(prior.log_odds[inside])
    return result


def _model_odds(posterior: Posterior) -> np.ndarray:
    """Odds of every candidate by what a model of inclusion knows of the others, over some draws without it.

    Where the candidate is absent its odds are, on average over what else is known, those of the model divided
    by the Bayes factor against it.
    """
    prior = posterior._resolved_prior
    model = prior.model
    assert model is not None
    fit = int(max(20, MOST_CELLS / max(len(model.inside), 1)))
    step = max(1, -(-posterior.n_chains * posterior.n_draws // fit))
    total, used = np.zeros((2, len(model.inside)))
    for chain in posterior.draws:
        if chain.model_state is None:
            continue
        for draw in range(0, len(chain), step):
            absent = np.ones(len(model.inside), bool)
            absent[chain.indices[chain.indptr[draw] : chain.indptr[draw + 1]]] = False
            state = chain.model_state[draw]
            if isinstance(model, BlockLayout):
                odds = _block_odds(model, state, ~absent)
            else:
                odds = np.exp(np.clip(model.design @ state, -500, 500))
            total[absent] += odds[absent]
            used += absent
    with np.errstate(divide="ignore", invalid="ignore"):
        found: np.ndarray = np.where(used > 0, total / used, np.exp(prior.log_odds))
    return found


def _block_odds(model: BlockLayout, state: np.ndarray, linked: np.ndarray) -> np.ndarray:
    """Odds of every candidate given the communities and which of the others are linked."""
    a, b, other_a, other_b = model.inclusion.beta
    z = state.astype(np.int64)
    ends = np.sort(z[model.members], axis=1)
    cell = ends[:, 0] * (z.max() + 1) + ends[:, 1]
    size = int(cell.max()) + 1
    links = np.bincount(cell, linked & model.inside, minlength=size)[cell] - linked
    missing = np.bincount(cell, ~linked & model.inside, minlength=size)[cell] - ~linked
    within = ends[:, 0] == ends[:, 1]
    result: np.ndarray = (np.where(within, a, other_a) + links) / (np.where(within, b, other_b) + missing)
    return result


def traceless_factor(freedom: float, width: np.ndarray | float, offset: float = 0.0) -> np.ndarray:
    """Bayes factor of absence under a Student slab of scale one, with a likelihood `width` wide.

    Its estimate lies `offset` widths from zero; at zero, the factor is the largest there is.

    >>> traceless_factor(1.0, np.array([0.01, 1.0, 100.0])).round(2)
    array([125.35,   1.91,   1.01])
    """
    from scipy import special

    width = np.atleast_1d(np.asarray(width, float))[:, None]
    # The slab is a mixture of normal ones with the variances nu / chi-squared (2.6).
    variance = freedom / (2 * special.gammaincinv(freedom / 2, SHARES))
    total = width**2 + variance
    ratio = np.sqrt(width**2 / total) * np.exp(0.5 * offset**2 * (1 - width**2 / total))
    result: np.ndarray = 1 / ratio.mean(axis=1)
    return result


def typical_factor(gain: float, freedom: float = 0.0) -> float:
    """Median Bayes factor of absence of an absent link.

    `gain` is the square of the slab's width in units of the error of the data alone; with degrees of freedom
    above zero the slab has Student's distribution.

    >>> round(typical_factor(15.0), 2), round(typical_factor(0.0), 2)
    (3.23, 1.0)
    >>> round(typical_factor(15.0, freedom=1.0), 2)
    4.19
    """
    if freedom and gain > 0:
        return float(traceless_factor(freedom, gain**-0.5, TYPICAL_SQUARE**0.5)[0])
    return math.sqrt(1 + gain) * math.exp(-0.5 * TYPICAL_SQUARE * gain / (1 + gain))


def gain_wanted(factor: float, freedom: float = 0.0) -> float:
    """The gain at which :func:`typical_factor` reaches `factor`.

    >>> round(gain_wanted(3.0), 1)
    12.7
    """
    low, high = 0.0, LARGEST_GAIN
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if typical_factor(middle, freedom) < factor else (low, middle)
    return high


def _two_digits(value: float) -> str:
    """A number rounded up to two digits.

    >>> _two_digits(2.412), _two_digits(12.1)
    ('2.5', '13')
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / step - 1e-9) * step:.3g}"


def _rounded(rows: float) -> int:
    return round(float(f"{rows:.2g}"))
