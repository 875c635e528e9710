"""The exact engine: reversible jump with the likelihood of all 2^p states ("Bayes Exact"; docs/method.md, 5).

The reference for everything else. Comfortable up to 16 variables; 20 are allowed, with a warning of the cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine, is_free
from edgewise.engines.levels import LevelEngine
from edgewise.engines.protocol import Problem
from edgewise.engines.settings import ExactSettings
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.kernels.codes import FORBIDDEN

COMFORTABLE = 16
LARGEST = 20
# Entries of the tables of all strata.
MOST_CELLS = 1 << 23


class ExactEngine(LineEngine):
    """One exact chain; see ``engines/protocol.py``."""

    name: ClassVar[str] = "exact"
    Settings: ClassVar[type] = ExactSettings
    takes_strata: ClassVar[bool] = True
    takes_blanks: ClassVar[bool] = True

    def __new__(cls, problem: Problem | None = None, *arguments: Any, **named: Any) -> Any:
        """A chain on the table of 2^p states, or on that of any levels where variables have more."""
        if problem is not None and not problem.all_binary:
            return LevelEngine(problem, *arguments, **named)
        return super().__new__(cls)

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> Any:
        """Rebuild a chain from its state."""
        if not problem.all_binary:
            return LevelEngine.restore(problem, settings, state)
        return super().restore(problem, settings, state)

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        p = self.problem.features.n_variables
        cells = len(self.problem.parts) * 2.0**p
        if self.problem.strata and cells > MOST_CELLS:
            raise DataError(
                f"The exact engine keeps a table of all 2^{p} states for each of "
                f"{len(self.problem.strata)} strata, and they are limited to {MOST_CELLS:,} entries in all. "
                "Choose variables with columns, or adjust for less."
            )
        if p > LARGEST and self.problem.strata:
            raise DataError(
                "Comparing groups and adjusting sum over all 2^p states and are limited to "
                f"{LARGEST} variables; these data have {p}. Choose variables with columns."
            )
        if p > LARGEST:
            raise DataError(
                f"The exact engine sums over all 2^p states and is limited to {LARGEST} variables; these "
                f"data have {p}. Use engine='particle' (or 'auto', which chooses it)."
            )
        if p > COMFORTABLE:
            warnings.warn(
                f"The exact engine with {p} variables sums over {2**p:,} states for every move, "
                f"{2 ** (p - COMFORTABLE)} times as many as with {COMFORTABLE}"
                + (", in every stratum." if self.problem.strata else "; engine='particle' is faster."),
                EdgewiseWarning,
                stacklevel=4,
            )

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        self._arrays["scan"] = np.ones(self.problem.features.n_cliques)
        p = self.problem.features.n_variables
        self._arrays["table"] = np.zeros((len(self.problem.parts), 2**p))

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
        self._arrays["scan"][:] = self._interest(self.settings.scan_floor)
        self._end_warm_up()
        self._derive()

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        return self._flip_counters()
