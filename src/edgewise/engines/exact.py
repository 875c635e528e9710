"""The exact engine: reversible jump with the likelihood of all 2^p states ("Bayes Exact"; docs/method.md, 5).

The reference for everything else. Comfortable up to 16 variables; 20 are allowed, with a warning of the cost.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine
from edgewise.errors import DataError, EdgewiseWarning

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

    def _warm_up_length(self) -> int:
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
        swaps = self.settings.swaps
        self._swaps = swaps if swaps >= 0 else max(1, p // 4)
        return int(self.settings.warm_up)

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        self._arrays["scan"] = np.ones(self.problem.features.n_cliques)
        self._arrays["table"] = np.zeros(2**self.problem.features.n_variables)
        from edgewise.kernels.table import build_table

        chain = self._chain
        build_table(
            chain.bias, chain.theta, chain.listed, chain.counts[0], self._given.members, self._arrays["table"]
        )

    def _adapt(self) -> None:
        if self.iteration < self.warm_up:
            return
        tries, inclusion = self._arrays["tallies"][:2]
        share = np.divide(inclusion, tries, out=np.full(len(tries), 0.5), where=tries > 0)
        interest = np.sqrt(4 * share * (1 - share))
        self._arrays["scan"][:] = np.clip(2 * interest, self.settings.scan_floor, 1.0)
        self._end_warm_up()

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.exact_chain import run_exact

        return run_exact(
            self._given,
            self._chain,
            self._arrays["table"],
            self._pair_index,
            self._arrays["scan"],
            self._swaps,
            self._after_warm_up(),
            iterations,
            thin,
            self._arrays["counters"],
            recorder,
        )

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        return self._flip_counters()
