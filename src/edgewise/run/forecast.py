"""How long a run will still take, from how its looks have grown.

Effective draws grow with the number of draws, the square of an error falls with it, and so does what the
square of R-hat is above one: the variance between chains over the variance within. Each look therefore names
a number of draws at which every criterion would be met; the largest one counts, and the looks so far are
averaged on a logarithmic scale, later ones more.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.run.options import RunOptions
from edgewise.run.stopping import Goal, Look, goal, ladder

MEMORY = 0.5  # weight of a look relative to the next one
PACE_SECONDS = 1.0


@dataclass(frozen=True)
class Pace:
    """The beginning of a phase of a run: the moment, the iterations that all chains had made, and thin."""

    since: float
    iterations: int
    thin: int | None

    def rate(self, now: float, iterations: int) -> float | None:
        """Iterations of all chains a second since then; None before that is known."""
        if now - self.since < PACE_SECONDS or iterations <= self.iterations:
            return None
        return (iterations - self.iterations) / (now - self.since)


def draws_wanted(wanted: Goal, seen: Look) -> float:
    """Draws per chain at which a run that goes on as up to this look would meet all criteria."""
    needs = [wanted.ess / seen.ess if seen.ess > 0 else math.inf]
    if math.isfinite(wanted.error):
        needs.append((seen.error / wanted.error) ** 2)
    needs.append(until_agreement(seen.r_hat, wanted.r_hat))
    return seen.draws * max(needs)


def until_agreement(r_hat: float, limit: float) -> float:
    """How many times the draws so far it takes until R-hat is at its limit.

    >>> round(until_agreement(1.02, 1.01), 1)
    2.0
    """
    return (r_hat**2 - 1) / (limit**2 - 1)


def rounded_up(draws: float, most: float = 1e9) -> int:
    """A number of draws to give to a person: whole hundreds, at least one of them.

    >>> rounded_up(12), rounded_up(1234.5)
    (100, 1300)
    """
    return max(100, math.ceil(min(draws, most) / 100) * 100)


def expected_draws(options: RunOptions, looks: Sequence[Look], made: int = 0) -> float:
    """Draws per chain at which the run will probably stop, when it has `made` so many.

    Before anything is known, that is the earliest look that may end it.
    """
    wanted = goal(options)
    if wanted is None:
        return options.max_draws
    told = [need for need in (draws_wanted(wanted, seen) for seen in looks) if 0 < need < math.inf]
    rungs = [rung for rung in ladder(options.min_draws, options.max_draws) if rung >= options.min_draws]
    past = max(made, looks[-1].draws + 1 if looks else 0)
    rungs = [rung for rung in rungs if rung >= past] or rungs[-1:]
    if not told:
        return rungs[0]
    weights = [MEMORY ** (len(told) - 1 - k) for k in range(len(told))]
    mean = sum(weight * math.log(need) for weight, need in zip(weights, told)) / sum(weights)
    need = min(max(math.exp(mean), rungs[0]), rungs[-1])
    # The run stops at a rung: the one above, or by luck the one below. Half way is never far off.
    return math.sqrt(need * rungs[bisect.bisect_left(rungs, need)])
