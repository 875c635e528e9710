"""The paper's claims in our words, each with a measured figure and a verdict that a rule decides.

A claim reads the tables of the figures and nothing else. ``holds``, ``holds partly`` and ``does not hold``
follow from thresholds that are stated with the claim; ``not measured`` means that its tables are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgewise.experiments.study import interpolated

if TYPE_CHECKING:
    import pandas

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds partly", "does not hold", "not measured"
L1 = ("Wain Max", "MLE")
SIMULATED = ("block", "lattice")

Tables = Mapping[str, "pandas.DataFrame"]


class Unmeasured(Exception):
    """The tables lack what a claim needs."""


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    name : str
        Short name.
    section : str
        Where the paper makes it.
    words : str
        What it says, in our words.
    rule : str
        When it counts as holding, and as holding partly.
    figure : str
        The figure (module) whose tables decide.
    judge : callable
        Tables -> (what was measured, verdict); raises where something is missing.
    """

    name: str
    section: str
    words: str
    rule: str
    figure: str
    judge: Callable[[Tables], tuple[str, str]]


@dataclass(frozen=True)
class Judgement:
    """A claim with what was measured and the verdict."""

    claim: Claim
    measured: str
    verdict: str


CLAIMS: list[Claim] = []


def claim(name: str, section: str, figure: str, words: str, rule: str) -> Callable[[Callable], Callable]:
    """Add a claim; the decorated function is its judge."""

    def add(judge: Callable[[Tables], tuple[str, str]]) -> Callable:
        CLAIMS.append(Claim(name, section, words, rule, figure, judge))
        return judge

    return add


def judge_all(tables: Tables) -> list[Judgement]:
    """Judge every claim from the tables that are there."""
    # The judges are registered when their modules are imported; the page has them in this order.
    for name in ("claims_inference", "claims_prediction", "claims_images"):
        import_module(f"edgewise.experiments.{name}")
    found = []
    for each in CLAIMS:
        try:
            measured, verdict = each.judge(tables)
        except (KeyError, Unmeasured):
            measured, verdict = "", UNKNOWN
        found.append(Judgement(each, measured, verdict))
    return found


def graded(value: float, holds: float, partly: float) -> str:
    """Verdict of a number that should be large."""
    if not np.isfinite(value):
        raise Unmeasured
    return HOLDS if value >= holds else PARTLY if value >= partly else FAILS


def graded_small(value: float, holds: float, partly: float) -> str:
    """Verdict of a number that should be small."""
    return graded(-value, -holds, -partly)


def joined(verdicts: list[str]) -> str:
    """One verdict from those of several cases: all, some or none."""
    if not verdicts:
        raise Unmeasured
    if all(verdict == HOLDS for verdict in verdicts):
        return HOLDS
    return FAILS if all(verdict == FAILS for verdict in verdicts) else PARTLY


def part(table: pandas.DataFrame, **wanted: object) -> pandas.DataFrame:
    """The rows with the wanted values; it is an error of the tables if there are none."""
    for name, value in wanted.items():
        table = table[table[name] == value]
    if table.empty:
        raise Unmeasured
    return table


class Wins(NamedTuple):
    """Comparisons that were won, all of them, and those past the end of a path."""

    won: int
    total: int
    past: int

    @property
    def words(self) -> str:
        """As the page has it."""
        past = f" ({self.past} of them past the end of a path)" if self.past else ""
        return f"{self.won} of {self.total}{past}"


def wins(table: pandas.DataFrame, low: float = 0.0, high: float = 1.0, method: str = "Bayes p0") -> Wins:
    """How often a Bayesian method predicts better than an L1 path at the same density, and out of how many.

    Every replicate, path and p0 whose density lies in [low, high] is one comparison. Where a path ends
    before that density its densest model stands in.
    """
    won = total = past = 0
    for _, one in table.groupby("replicate"):
        bayes = one[one["method"] == method]
        bayes = bayes[(bayes["density"] >= low) & (bayes["density"] <= high)]
        for other in L1:
            path = one[one["method"] == other]
            if path.empty or bayes.empty:
                continue
            density, end = bayes["density"].to_numpy(), path["density"].max()
            there = interpolated(path, np.minimum(density, end))
            usable = np.isfinite(there)
            won += int((bayes["cll"].to_numpy()[usable] > there[usable]).sum())
            total += int(usable.sum())
            past += int((density > end)[usable].sum())
    return Wins(won, total, past)
