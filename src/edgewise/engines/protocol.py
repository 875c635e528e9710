"""What an engine is: one Markov chain over graphs and parameters that can be run, read, saved and resumed.

An engine knows nothing of other chains, files, progress or clocks; ``run`` does all that between
blocks of iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from edgewise.blanks import Patterns, filled_statistics, patterns_of
from edgewise.data.table import Data
from edgewise.draws.draws import Draws
from edgewise.features import Features, Statistics
from edgewise.priors import ResolvedPrior
from edgewise.scales import Scales

STARTS = ("default", "empty", "random", "full")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything an engine is told.

    Attributes
    ----------
    features : Features
        The candidates.
    statistics : Statistics
        What the data say of them.
    prior : ResolvedPrior
        The prior laid out over them.
    rows : Data, optional
        The rows with their weights, not to be changed; None where nothing but the statistics is known.
    scales : Scales, optional
        The levels of the variables; None where all have two.
    strata : tuple of Statistics
        What the data say in each stratum, where there are several: biases are free in each of them.
    group_of : tuple of int
        The group that each stratum belongs to; couplings may differ between groups.
    """

    features: Features
    statistics: Statistics
    prior: ResolvedPrior
    rows: Data | None = None
    scales: Scales | None = None
    strata: tuple[Statistics, ...] = ()
    group_of: tuple[int, ...] = ()

    @property
    def parts(self) -> tuple[Statistics, ...]:
        """The statistics of every stratum: of one, the whole, where the rows are not divided."""
        return self.strata or (self.statistics,)

    @property
    def n_groups(self) -> int:
        """Number of groups whose couplings may differ."""
        return max(self.group_of, default=0) + 1

    @property
    def all_binary(self) -> bool:
        """Whether every variable has two levels."""
        return self.scales is None or self.scales.all_binary

    @property
    def scales_or_binary(self) -> Scales:
        """The levels of the variables, two each where nothing else is said."""
        return Scales.binary(self.features.n_variables) if self.scales is None else self.scales

    @cached_property
    def blanks(self) -> Patterns | None:
        """The rows with blank cells; None where the table is complete."""
        return None if self.rows is None else patterns_of(self.rows)

    @cached_property
    def known_sums(self) -> Statistics | None:
        """The sums of what contains no blank; None where the table is complete."""
        if self.rows is None or self.blanks is None:
            return None
        return filled_statistics(self.rows, self.features, mean=False)

    @property
    def n_biases(self) -> int:
        """Number of biases, or of the coordinates of all thresholds, in all strata."""
        each = self.features.n_variables if self.scales is None else self.scales.n_biases
        return len(self.parts) * each

    @property
    def dimension(self) -> np.ndarray | None:
        """Number of parameters of every candidate: int64 (M,); None where all have one."""
        if self.scales is None or self.scales.all_binary:
            return None
        return self.scales.dimensions(self.features.members)


class Engine(Protocol):
    """One chain.

    The first `warm_up` iterations adapt and are never kept; afterwards nothing adapts. `advance` must not
    be asked to cross the end of warm-up in one call. Equal problem, settings, seed and start give equal
    draws however the iterations are divided into calls, and whether or not the chain was saved and
    restored in between.
    """

    name: ClassVar[str]
    iteration: int
    warm_up: int
    thin: int

    def __init__(
        self,
        problem: Problem,
        settings: Mapping[str, Any] | None = None,
        seed: np.random.SeedSequence | None = None,
        start: str = "default",
    ) -> None: ...

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Run; return the draws kept: every `thin`-th iteration counted from the end of warm-up."""
        ...

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up, float64 (M,).

        ``tries``: times the candidate's indicator was decided; ``inclusion``: sum over the tries of the
        probability that it was active afterwards (Rao-Blackwell); ``births`` and ``deaths``: accepted ones.
        """
        ...

    def counters(self) -> dict[str, float]:
        """Running totals and rates of the chain since warm-up, for progress and diagnostics."""
        ...

    def active(self) -> int:
        """Number of active candidates now."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """The whole chain as plain arrays; :meth:`restore` continues from it bit for bit."""
        ...

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> Engine:
        """Rebuild a chain from :meth:`state`."""
        ...
