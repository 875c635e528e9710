"""When a run may stop: a fixed ladder of draw counts, and a rule that looks at the draws alone.

Because neither knows a clock, the same seed stops at the same draw on any machine. The clock can end a run
as well (`max_time`), and then the draws are the first ones of the same run without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.errors import DataError

FIRST_LOOK = 100
GROWTH = 1.25
R_HAT_LIMIT = 1.01
MINIMUM_DRAWS = 4  # split R-hat needs two draws in each half


@dataclass(frozen=True)
class Look:
    """What the draws say at one rung of the ladder."""

    draws: int
    ess: float
    r_hat: float
    slowest: int
    uncertain: int


def look(draws: Sequence[Draws], n_cliques: int) -> Look:
    """Measure the slowest uncertain edge (or the edge count, p0 or sigma0, where slower)."""
    from edgewise.posterior.diagnostics import stopping_statistics

    count = min(len(part) for part in draws)
    if count < MINIMUM_DRAWS:
        return Look(count, 0.0, float("inf"), -1, 0)
    ess, r_hat, slowest, uncertain = stopping_statistics(list(draws), n_cliques)
    return Look(count, float(ess), float(r_hat), int(slowest), int(uncertain))


@dataclass(frozen=True)
class Budget:
    """How much to draw: see :func:`edgewise.run.chains.run` for the meaning of each number."""

    min_draws: int = 1000
    max_draws: int = 20_000
    thin: int | str = "auto"
    target_ess: float | None = 400
    max_time: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("min_draws", 1), ("max_draws", MINIMUM_DRAWS)):
            check_whole(name, getattr(self, name), least)
        if self.min_draws > self.max_draws:
            raise DataError(
                f"min_draws ({self.min_draws:,}) is larger than max_draws ({self.max_draws:,}); "
                "lower the one or raise the other."
            )
        if self.thin != "auto":
            check_whole("thin", self.thin, 1, "'auto' or ")
        for name in ("max_time", "target_ess"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float | np.number) and value > 0):
                raise DataError(f"{name} must be a positive number or None, not {value!r}.")

    def ladder(self) -> Iterator[int]:
        """Numbers of draws at which the chains meet, ascending, ending with `max_draws`.

        Looks before `min_draws` only inform the display and are few.

        Examples
        --------
        >>> list(Budget(300, 700).ladder())
        [100, 200, 300, 380, 480, 600, 700]
        """
        rungs, rung = [], FIRST_LOOK
        while rung < self.min_draws:
            rungs.append(rung)
            rung *= 2
        rung = self.min_draws
        while rung < self.max_draws:
            rungs.append(rung)
            rung = -int(-rung * GROWTH // 10) * 10
        return iter([*rungs, self.max_draws])

    def enough(self, seen: Look) -> bool:
        """Whether the slowest quantity has been seen often enough and the chains agree."""
        if self.target_ess is None or seen.draws < self.min_draws:
            return False
        return seen.ess >= self.target_ess and seen.r_hat < R_HAT_LIMIT

    def expected_draws(self, seen: Look | None) -> float:
        """Draws per chain at which the run will probably stop; NaN before anything is known."""
        if self.target_ess is None:
            return self.max_draws
        if seen is None or not seen.ess > 0:
            return float("nan")
        return min(max(seen.draws * self.target_ess / seen.ess, self.min_draws), self.max_draws)


def check_whole(name: str, value: object, least: int, also: str = "") -> None:
    """Refuse anything but a whole number of at least `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise DataError(f"{name} must be {also}a whole number of at least {least}, not {value!r}.")
