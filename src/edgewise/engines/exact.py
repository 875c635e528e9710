"""The exact engine: reversible jump with the likelihood of all 2^p states ("Bayes Exact"; docs/method.md, 5).

The reference for everything else. Comfortable up to 16 variables; 20 are allowed, with a warning of the cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine, is_free
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.kernels.codes import FORBIDDEN

COMFORTABLE = 16
LARGEST = 20


@dataclass(frozen=True)
class ExactSettings:
    """Settings of the exact engine; nobody needs to touch them.

    Attributes
    ----------
    warm_up : int
        Iterations before the first kept draw.
    thin : int
        Iterations between kept draws.
    swaps : int
        Swaps tried per iteration; -1 is one for every four variables.
    scan_floor : float
        Smallest share of the iterations in which the indicator of a hopeless candidate is decided.
    """

    warm_up: int = 500
    thin: int = 1
    swaps: int = -1
    scan_floor: float = 0.2


class ExactEngine(LineEngine):
    """One exact chain; see ``engines/protocol.py``."""

    name: ClassVar[str] = "exact"
    Settings: ClassVar[type] = ExactSettings

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        p = self.problem.features.n_variables
        if p > LARGEST:
            raise DataError(
                f"The exact engine sums over all 2^p states and is limited to {LARGEST} variables; these "
                f"data have {p}. Use engine='particle' (or 'auto', which chooses it)."
            )
        if p > COMFORTABLE:
            warnings.warn(
                f"The exact engine with {p} variables sums over {2**p:,} states for every move, "
                f"{2 ** (p - COMFORTABLE)} times as many as with {COMFORTABLE}; engine='particle' is faster.",
                EdgewiseWarning,
                stacklevel=4,
            )

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        self._arrays["scan"] = np.ones(self.problem.features.n_cliques)
        self._arrays["table"] = np.zeros(2**self.problem.features.n_variables)

    def _derive(self) -> None:
        from edgewise.kernels.state import FullScan
        from edgewise.kernels.table import Table

        self._source = Table(self._arrays["table"])
        status = self.problem.prior.status
        hot = np.flatnonzero(status != FORBIDDEN)
        swaps = self.settings.swaps
        self._scan = FullScan(
            hot=hot,
            probability=np.where(is_free(status), self._arrays["scan"], 0.0)[hot],
            swaps=swaps if swaps >= 0 else max(1, self.problem.features.n_variables // 4),
        )

    def _adapt(self) -> None:
        if self.iteration < self.warm_up:
            return
        tries, inclusion = self._arrays["tallies"][:2]
        share = np.divide(inclusion, tries, out=np.full(len(tries), 0.5), where=tries > 0)
        interest = np.sqrt(4 * share * (1 - share))
        self._arrays["scan"][:] = np.clip(2 * interest, self.settings.scan_floor, 1.0)
        self._end_warm_up()
        self._derive()

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        return self._flip_counters()
