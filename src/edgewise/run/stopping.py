"""When a run may stop: a fixed ladder of draw counts, and a rule that looks at the draws alone.

Because neither knows a clock, the same seed stops at the same draw on any machine. The clock can end a run
as well (`max_time`), and then the draws are the first ones of the same run without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.draws import statistics
from edgewise.draws.draws import Draws
from edgewise.run.options import MINIMUM_DRAWS, RunOptions

FIRST_LOOK = 100
GROWTH = 1.25
R_HAT_LIMIT = 1.01


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
    count = min(len(part) for part in draws)
    if count < MINIMUM_DRAWS:
        return Look(count, 0.0, float("inf"), -1, 0)
    ess, r_hat, slowest, uncertain = statistics.stopping_statistics(list(draws), n_cliques)
    return Look(count, float(ess), float(r_hat), int(slowest), int(uncertain))


def ladder(min_draws: int, max_draws: int) -> list[int]:
    """Numbers of draws at which the chains meet, ascending, ending with `max_draws`.

    Looks before `min_draws` only inform the display and are few.

    Examples
    --------
    >>> ladder(300, 700)
    [100, 200, 300, 380, 480, 600, 700]
    """
    rungs, rung = [], FIRST_LOOK
    while rung < min_draws:
        rungs.append(rung)
        rung *= 2
    rung = min_draws
    while rung < max_draws:
        rungs.append(rung)
        rung = -int(-rung * GROWTH // 10) * 10
    return [*rungs, max_draws]


def enough(options: RunOptions, seen: Look) -> bool:
    """Whether the slowest quantity has been seen often enough and the chains agree."""
    if options.target_ess is None or seen.draws < options.min_draws:
        return False
    return seen.ess >= options.target_ess and seen.r_hat < R_HAT_LIMIT


def expected_draws(options: RunOptions, seen: Look | None) -> float:
    """Draws per chain at which the run will probably stop; NaN before anything is known."""
    if options.target_ess is None:
        return options.max_draws
    if seen is None or not seen.ess > 0:
        return float("nan")
    return min(max(seen.draws * options.target_ess / seen.ess, options.min_draws), options.max_draws)
