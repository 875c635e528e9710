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

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

# Draws with the edge in them from which its width is known well enough.
ENOUGH = 30
# Median of a squared standard normal number: how far off the estimate of an absent link typically is.
TYPICAL_SQUARE = 0.4549
LARGEST_GAIN = 1e12
# Rows that tell less than this share of what the slab does tell nothing.
SILENT = 1e-3
# From here on it is worth saying what a learned p0 does.
NOTABLE = 1.3


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
        How much a learned p0 has raised the odds of every pair, because so many others are linked.
    threshold : float
        The Bayes factor that counts as evidence.
    rows, sigma0 : float
        The number of rows, or the width of the slab, at which a typical candidate that is undecided now would
        be excluded more often than not if it is absent; infinite if no such number is known.
    present_rows, present_sigma0 : float
        The same as they are.
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

    @property
    def words(self) -> str:
        """Why nothing is excluded and what would change it; empty where something is, or nothing is open."""
        if self.excluded or not self.undecided or not math.isfinite(self.ceiling):
            return ""
        if self.within_reach == 0:
            why = (
                f"Nothing is excluded, and nothing could be: with {self.present_rows:,.6g} rows and a slab "
                f"of width {self.present_sigma0:.2g}, even data without a trace of a link "
                + (
                    f"reach a Bayes factor of about {self.ceiling:.2g} against it"
                    if self.ceiling > 1
                    else "leave it more likely than it was"
                )
                + f" ({self.threshold:g} against it wanted)."
            )
        else:
            why = (
                f"Nothing is excluded: {self.within_reach:,} of {self.undecided:,} undecided could have been "
                "had the data shown no trace of a link, but they show a little."
            )
        if self.lean >= NOTABLE:
            why += (
                " Part of it is p0, which is learned: so many others are linked that the odds of every one "
                f"have risen by {self.lean:.1f}; a fixed one (FixedInclusion(0.5)) leaves them out of it."
            )
        if not (self.rows > self.present_rows and self.sigma0 > self.present_sigma0):
            return f"{why} More rows would tell more."
        if not math.isfinite(self.sigma0):
            return f"{why} More rows that differ would change that."
        return (
            f"{why} About {_rounded(self.rows):,} rows, or a slab with more mass on visible effects "
            f"(FixedSlab({_two_digits(self.sigma0)}) or wider), would exclude about half of the links that "
            "do not exist. Absence always means: no link of the size that the slab expects."
        )


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
    lean = 1.0
    if not prior.fixed_p0:
        rate = float(posterior.inclusion_rate.mean())
        lean = rate / (1 - rate) / (prior.beta_a / prior.beta_b)
    # Of the slab at zero and of a normal posterior around zero: the root of two pi is in both densities.
    ceilings = 1 / ((1 / scales).mean() * width[known])
    ceilings /= np.where(prior.status[known] == COMMON, lean, 1.0)
    # A coupling is known to about `width`, to which slab and rows have contributed.
    told = float(np.median(width[known] ** -2.0)) - sigma0**-2 if known.any() else 0.0
    rows = float(posterior.statistics.n_rows)
    wider = more = math.inf
    if told * sigma0**2 > SILENT:
        wanted = gain_wanted(thresholds[0] * lean)
        wider, more = math.sqrt(wanted / told), rows * wanted / (told * sigma0**2)
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
    )


def typical_factor(gain: float) -> float:
    """Median Bayes factor of absence of an absent link, the slab's variance being `gain` times the data's.

    >>> round(typical_factor(15.0), 2), round(typical_factor(0.0), 2)
    (3.23, 1.0)
    """
    return math.sqrt(1 + gain) * math.exp(-0.5 * TYPICAL_SQUARE * gain / (1 + gain))


def gain_wanted(factor: float) -> float:
    """The gain at which :func:`typical_factor` reaches `factor`.

    >>> round(gain_wanted(3.0), 1)
    12.7
    """
    low, high = 0.0, LARGEST_GAIN
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if typical_factor(middle) < factor else (low, middle)
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
