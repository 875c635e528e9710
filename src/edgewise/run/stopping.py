"""When a run may stop: a fixed ladder of draw counts, and a rule that looks at the draws alone.

Because neither knows a clock, the same seed stops at the same draw on any machine. The clock can end a run
as well (`max_time`), and then the draws are the first ones of the same run without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgewise.draws import statistics
from edgewise.draws.draws import Draws
from edgewise.engines.choose import MOST_SUMMED
from edgewise.errors import printable
from edgewise.features import MOST_LISTED, Features
from edgewise.run.options import MINIMUM_DRAWS, TARGET_ESS, RunOptions

FIRST_LOOK = 100
GROWTH = 1.25
R_HAT_LIMIT = 1.01
COARSEST = 4.0  # times as far from one R-hat may be where errors may be larger than they are by default
R_HAT_APART = 1.2  # from here on chains stay in different graphs for long

QUANTITIES = {
    -1: "the number of edges",
    -2: "p0",
    -3: "sigma0",
    -4: "the model of inclusion",
    -5: "the number of differences",
    -6: "q0",
    -7: "sigma_D",
}


@dataclass(frozen=True)
class Look:
    """What the draws say at one rung of the ladder.

    Quantities are named by numbers: a candidate, one of :data:`QUANTITIES`, or from the number of candidates
    on the difference of a candidate between groups.

    Attributes
    ----------
    draws : int
        Draws of each chain.
    ess, slowest : float, int
        Effective draws of the slowest quantity, and which that is.
    r_hat, furthest : float, int
        The largest R-hat, and of which quantity.
    error, widest : float, int
        The largest Monte Carlo standard error of an inclusion probability, and of which edge.
    uncertain : int
        Edges active in 5 to 95 % of the draws.
    """

    draws: int
    ess: float
    r_hat: float
    slowest: int
    uncertain: int
    error: float = 0.0
    widest: int = -1
    furthest: int = -1


@dataclass(frozen=True)
class Goal:
    """What the draws must reach: effective draws of the slowest quantity, and the largest error."""

    ess: float
    error: float = math.inf
    r_hat: float = R_HAT_LIMIT

    def reached(self, seen: Look) -> bool:
        """Whether a look satisfies all that is asked."""
        return seen.ess >= self.ess and seen.error <= self.error and seen.r_hat < self.r_hat


def goal(options: RunOptions) -> Goal | None:
    """What a run with these options is after; None where it makes all draws whatever they say.

    Examples
    --------
    >>> goal(RunOptions())
    Goal(ess=400, error=0.02, r_hat=1.01)
    >>> round(goal(RunOptions(target_error=0.03)).r_hat, 4)
    1.0225
    >>> goal(RunOptions(target_ess=1000))
    Goal(ess=1000.0, error=inf, r_hat=1.01)
    """
    if options.target_ess is None:
        return None
    if isinstance(options.target_ess, str):
        # The light wants TARGET_ESS; whoever asks for less precision than that implies is not made to wait,
        # neither for draws nor for chains to agree more closely than such draws can show.
        error = options.target_error
        coarser = min(max(1.0, (error / RunOptions.target_error) ** 2), COARSEST)
        return Goal(min(TARGET_ESS, 0.25 / error**2), error, 1.0 + (R_HAT_LIMIT - 1.0) * coarser)
    return Goal(float(options.target_ess))


def look(draws: Sequence[Draws], n_cliques: int) -> Look:
    """Measure the edges (and their number, p0 and sigma0): the slowest, the least agreed, the least known."""
    count = min(len(part) for part in draws)
    if count < MINIMUM_DRAWS:
        return Look(count, 0.0, math.inf, -1, 0, math.inf)
    if n_cliques <= MOST_LISTED:
        return Look(count, *statistics.stopping_statistics(list(draws), n_cliques))
    # Only candidates that were ever active are looked at, under numbers of their own.
    numbers = np.unique(np.concatenate([np.unique(chain.indices) for chain in draws]))
    own = [
        replace(chain, indices=np.searchsorted(numbers, chain.indices).astype(np.int32)) for chain in draws
    ]
    found = statistics.stopping_statistics(own, max(1, len(numbers)))
    names = ("slowest_index", "widest_index", "furthest_index")
    back = {name: int(numbers[k]) for name in names if (k := getattr(found, name)) >= 0}
    return Look(count, *found._replace(**back))


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
    """Whether the draws are as precise as asked and the chains agree."""
    wanted = goal(options)
    return wanted is not None and seen.draws >= options.min_draws and wanted.reached(seen)


def quantity(features: Features, names: Sequence[str] | None, index: int) -> str:
    """Name of a quantity of a look, by its number."""
    if index >= features.n_cliques:
        return f"the difference of {quantity(features, names, index - features.n_cliques)}"
    if index >= 0:
        return f"edge {printable(features.label(index, names), keep='')}"
    return QUANTITIES[index]


def wanting(wanted: Goal, seen: Look, name: Callable[[int], str]) -> list[str]:
    """What a look lacks, each in words with its number and what was asked."""
    found = []
    if seen.error > wanted.error:
        found.append(
            f"the probability of {name(seen.widest)} has a Monte Carlo error of {seen.error:.3f} "
            f"(asked: {wanted.error:g})"
        )
    elif not seen.ess >= wanted.ess:
        found.append(f"{name(seen.slowest)} has {seen.ess:.0f} effective draws (asked: {wanted.ess:g})")
    if not seen.r_hat < wanted.r_hat:
        found.append(
            f"the chains disagree most about {name(seen.furthest)} (R-hat {seen.r_hat:.3f}; asked: below "
            f"{wanted.r_hat:g})"
        )
    return found


def stuck(engine: str, n_variables: int) -> str:
    """What helps chains that stay in different graphs, and what does not."""
    small = n_variables <= MOST_SUMMED
    words = "The chains stay in different graphs for long, and more chains would only find more of them; "
    if engine == "langevin":
        better = "exact" if small else "particle"
        return f"{words}longer chains help, and engine='{better}' moves between graphs far faster."
    if engine == "particle" and small:
        return f"{words}longer chains help, and engine='exact', whose decisions carry no noise, may."
    return f"{words}longer chains help. Until then trust what all chains share."
