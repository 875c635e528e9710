"""What may be said of a posterior at one glance: how much the data decide, and how loudly.

The light judges the computation, `learned` what the data could decide; both stand beside each other wherever
a posterior is shown. Counts are withheld while the light is red, and provisional while it is amber.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgewise.posterior.absence import Absence, absence
from edgewise.posterior.diagnostics import Diagnostics, diagnose
from edgewise.posterior.summaries import EVIDENCE

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

SET_BY_PRIOR = "set by the prior"
UNDECIDED = "inconclusive"
# From the strongest evidence for an edge to the strongest against it.
WORDS = (*reversed(EVIDENCE), SET_BY_PRIOR)


def categories(posterior: Posterior, thresholds: tuple[float, float] = (3, 10)) -> np.ndarray:
    """Evidence category of every candidate, ``"set by the prior"`` where data cannot change it."""
    words = posterior.edge_values("evidence", thresholds=thresholds)
    words[posterior.edge_values("bf_bound") == "prior"] = SET_BY_PRIOR
    return words


def present(words: np.ndarray, inclusion: np.ndarray) -> np.ndarray:
    """Which candidates a picture draws: those with evidence for them, and those that the prior includes."""
    known = np.isin(words, ("presence", "strong presence"))
    result: np.ndarray = known | ((words == SET_BY_PRIOR) & (inclusion >= 0.5))
    return result


@dataclass(frozen=True, eq=False)
class Verdict:
    """The headline of a posterior.

    Attributes
    ----------
    found : Diagnostics
        The light and its reasons.
    counts : dict of str to int
        Number of candidates by evidence category, in the order of ``WORDS``.
    pairs_only : bool
        Whether all candidates are pairs.
    reach : Absence, optional
        How far evidence for absence could go.
    """

    found: Diagnostics
    counts: dict[str, int]
    pairs_only: bool = True
    reach: Absence | None = None

    @property
    def withheld(self) -> bool:
        """Whether the counts say nothing yet."""
        return self.found.light == "red"

    @property
    def decided(self) -> int:
        """Number of candidates about which the data have spoken, for or against."""
        return sum(self.counts.values()) - self.counts[UNDECIDED] - self.counts[SET_BY_PRIOR]

    @property
    def learned(self) -> str:
        """How much of what was asked the data decide, in one sentence."""
        noun = "pairs" if self.pairs_only else "cliques"
        if self.withheld:
            return f"How many {noun} the data decide is not known before the light changes."
        return f"The data decide {self.decided:,} of {sum(self.counts.values()):,} {noun}."

    @property
    def nothing_excluded(self) -> str:
        """Why nothing is excluded and what would change it; empty where something is, or while withheld."""
        return "" if self.withheld or self.reach is None else self.reach.words

    @property
    def answer(self) -> str:
        """How many edges, with which evidence, in one sentence; withheld while the light is red."""
        noun = "edge" if self.pairs_only else "clique"
        if self.withheld:
            return f"Which {noun}s are included and which excluded is not counted while the light is red."
        count = self.counts
        strong = count["strong presence"]
        text = (
            f"{strong:,} {noun}{'s' * (strong != 1)} included with strong evidence, {count['presence']:,} "
            f"with some; {count[UNDECIDED]:,} undecided; {count['absence']:,} excluded with some evidence, "
            f"{count['strong absence']:,} with strong."
        )
        if count[SET_BY_PRIOR]:
            text += f" {count[SET_BY_PRIOR]:,} set by the prior."
        return f"Provisionally: {text}" if self.found.light == "amber" else text


def judge(
    posterior: Posterior, found: Diagnostics | None = None, thresholds: tuple[float, float] = (3, 10)
) -> Verdict:
    """The headline of a posterior; `found` is the diagnosis where it is known."""
    words = categories(posterior, thresholds)
    counts = {word: int((words == word).sum()) for word in WORDS}
    found = found or diagnose(posterior)
    return Verdict(found, counts, posterior.features.pairs_only, absence(posterior, thresholds))


def as_html(posterior: Posterior) -> str:
    """What a notebook shows of a posterior: the light, what was learned, and the ten most probable edges."""
    from html import escape

    verdict = judge(posterior)
    head = verdict.found.banner or f"Green: {verdict.found.meaning}."
    table = posterior.summary().sort_values("inclusion", ascending=False, kind="stable").head(10)
    measure = [] if posterior.scales.all_binary else ["measure"]
    shown = table[["edge", "inclusion", "log10_bf", "evidence", *measure, "mean", "hdi_low", "hdi_high"]]
    rows = shown.to_html(index=False, escape=True, float_format=lambda value: f"{value:.3f}")
    return (
        f"<p><strong>{escape(head)}</strong></p><p>{escape(verdict.answer)} {escape(verdict.learned)}</p>"
        f"<p>{escape(verdict.nothing_excluded)}</p><p>{escape(repr(posterior))}</p>{rows}"
    )
