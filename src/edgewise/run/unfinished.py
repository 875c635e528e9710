"""A run that ends inside warm-up: a glimpse of where its chains are, and a warning before it comes to that.

Warm-up keeps no draws. When the time is over before it is, a copy of each chain makes a few iterations as if
its warm-up had just ended, and these are what there is to show. The chains themselves stay where they are, so
that going on later leads to the very draws of a run that was never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.run.options import MINIMUM_DRAWS
from edgewise.run.plans import Plan, Ticket
from edgewise.run.workers import RunningChain

GLIMPSE_SECONDS = 0.5
GLIMPSE_DRAWS = 100
# The first iterations tell little about the pace: a forecast counts from this share of the time on.
EARLIEST_SHARE = 0.05
CLEARLY = 1.2


@dataclass(frozen=True, eq=False)
class Glimpse:
    """A few draws of a copy of a chain, and what its engine added up meanwhile."""

    draws: Draws
    edge_sums: Mapping[str, np.ndarray]


def glimpses(chains: Sequence[RunningChain], pool: Executor) -> list[Glimpse]:
    """A few draws from where each chain is, equally many of all; no chain moves."""
    slowest = max(chain.seconds_per_iteration for chain in chains)
    fitting = GLIMPSE_DRAWS if slowest <= 0 else int(GLIMPSE_SECONDS / slowest)
    most = GLIMPSE_DRAWS * max(1, max(chain.thin for chain in chains))
    iterations = max(MINIMUM_DRAWS, min(fitting, most))
    thin = -(-iterations // GLIMPSE_DRAWS)
    tasks: list[tuple[Any, ...]] = []
    for chain in chains:
        plan = chain.plan if chain.resident else chain.plan.ticket(whole=True)
        tasks.append((_glimpse, plan, chain.state(), iterations, thin))
    futures = [_started(pool, task) for task in tasks]
    found = [_finished(future, task) for future, task in zip(futures, tasks)]
    count = min(len(part.draws) for part in found)
    return [Glimpse(part.draws[:count], part.edge_sums) for part in found]


def _started(pool: Executor, task: tuple[Any, ...]) -> Future[Glimpse] | None:
    try:
        return pool.submit(*task)
    except (BrokenExecutor, RuntimeError):
        return None


def _finished(future: Future[Glimpse] | None, task: tuple[Any, ...]) -> Glimpse:
    """The result; computed here where Ctrl-C has taken the workers along."""
    if future is not None:
        try:
            return future.result()
        except BrokenExecutor:
            pass
    return _glimpse(*task[1:])


def _glimpse(plan: Plan | Ticket, state: Mapping[str, np.ndarray], iterations: int, thin: int) -> Glimpse:
    known = plan.plan() if isinstance(plan, Ticket) else plan
    assert known is not None
    engine = known.restore(state)
    engine.warm_up = min(engine.warm_up, engine.iteration)
    # Draws are kept at multiples of `thin` after warm-up, wherever the chain is by now.
    reach = iterations + (engine.warm_up - engine.iteration) % thin
    before = {name: np.array(values) for name, values in engine.edge_sums().items()}
    draws = engine.advance(reach, thin)
    after = engine.edge_sums()
    return Glimpse(draws, since(before, after))


def since(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What was added up between two moments; there may be more `candidates` than before, never fewer.

    Examples
    --------
    >>> since({"candidates": np.array([3]), "tries": np.array([5.0])},
    ...       {"candidates": np.array([2, 3]), "tries": np.array([1.0, 6.0])})
    {'candidates': array([2, 3]), 'tries': array([1., 1.])}
    """
    result = {name: np.array(values) for name, values in after.items()}
    places: Any = ...
    if "candidates" in after:
        places = np.searchsorted(after["candidates"], before["candidates"])
    for name, values in result.items():
        if name == "rest":
            values -= before[name]
        elif name != "candidates":
            values[places] -= before[name]
    return result


def will_not_fit(chains: Sequence[RunningChain], lanes: int, elapsed: float, max_time: float) -> float | None:
    """Seconds that warm-up will clearly need in all, if more than `max_time`; None where it may fit."""
    if elapsed < EARLIEST_SHARE * max_time or any(chain.seconds_per_iteration <= 0 for chain in chains):
        return None
    # One slow slice on a busy machine is no reason to warn.
    pace = min(chain.seconds_per_iteration for chain in chains)
    each = [max(0, chain.warm_up - chain.iteration) * pace for chain in chains]
    needed = elapsed + max(max(each), sum(each) / lanes)
    return needed if needed > CLEARLY * max_time else None
