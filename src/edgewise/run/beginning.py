"""Chains that begin at a posterior: at draws of another run, or at its states with what it has learned.

The posterior of another prior is not far away, so that no warm-up is needed: rules and surrogate of
the earlier run serve as well, and a few iterations let the chains forget where they began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.choose import resolve
from edgewise.engines.common import LineEngine, children, prior_state
from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED
from edgewise.run.chains import RunResult
from edgewise.run.options import RunOptions
from edgewise.run.plans import Plan

FORGETTING = 20

State = dict[str, np.ndarray]


def begun(
    problem: Problem,
    options: RunOptions,
    draws: Sequence[Draws],
    inclusion: np.ndarray,
    result: RunResult | None,
) -> RunResult | None:
    """A run that has made no draws yet, to go on from; None where chains have to warm up anew.

    Parameters
    ----------
    problem : Problem
        The same data and candidates under another prior.
    options : RunOptions
        How to run.
    draws, inclusion
        Of the posterior under the earlier prior.
    result : RunResult, optional
        The run behind it.
    """
    if options.engine not in ("exact", "particle", "surrogate") or len(draws) != options.chains:
        return None
    seeds = np.random.SeedSequence(options.seed).spawn(2 * options.chains)[options.chains :]
    if not problem.all_binary:
        return None
    if result is not None and _fits(problem, result):
        plan = Plan(problem, options.engine, dict(options.settings or {}), result.knowledge)
        states = [_told(problem, state, seed) for state, seed in zip(result.states, seeds)]
    elif resolve(options.engine, problem, options.settings) == "exact":
        # The table of states needs nothing learned.
        plan = Plan(problem, options.engine, dict(options.settings or {}))
        states = [_at_draw(problem, plan, part, inclusion, seed) for part, seed in zip(draws, seeds)]
    else:
        return None
    told: list[Mapping[str, np.ndarray]] = [_forgetful(plan, state) for state in states]
    empty = Draws.empty(problem.n_biases)
    thin = options.thin if isinstance(options.thin, int) else 1
    info: Any = {"seed": options.seed, "thin": thin, "seconds": 0.0, "engine_reason": "The posterior had it."}
    return RunResult([empty] * len(told), [], [], told, [empty] * len(told), None, info, plan.knowledge)


def _fits(problem: Problem, result: RunResult) -> bool:
    """Whether the states of a run are those of chains of this problem but for the prior."""
    status = problem.prior.status
    if result.info["warm_up_unfinished"]:
        return False
    for state in result.states:
        if "place" not in state or len(state["place"]) != len(status):
            return False
        active = state["place"] >= 0
        if (active & (status == FORBIDDEN)).any() or (~active & (status == FORCED)).any():
            return False
    return True


def _told(problem: Problem, state: Mapping[str, np.ndarray], seed: np.random.SeedSequence) -> State:
    """The state of a chain that is told of another prior."""
    prior = problem.prior
    changed = {name: np.array(array) for name, array in state.items()}
    for name in ("slab_factor", "log_odds"):
        changed.pop(name, None)
    changed |= prior_state(prior, np.random.default_rng(children(seed, 1)[0]))
    active = np.flatnonzero(changed["place"] >= 0)
    changed["counts"][1] = int((prior.status[active] == COMMON).sum())
    return changed


def _at_draw(
    problem: Problem, plan: Plan, draws: Draws, inclusion: np.ndarray, seed: np.random.SeedSequence
) -> State:
    """The state of a chain on the table of states at a draw of a posterior, scanning by its probabilities."""
    kind: Any = plan.kind()
    engine: Any = kind(problem, plan.settings, seed, "empty")
    rng = np.random.default_rng(children(seed, 1)[0])
    number = int(rng.integers(len(draws)))
    indices, values = draws.active(number)
    allowed = problem.prior.status[indices] != FORBIDDEN
    indices, values = indices[allowed], values[allowed]
    arrays = engine._arrays
    new = arrays["place"][indices] < 0
    engine._activate(indices[new], values[new])
    arrays["theta"][indices] = values
    arrays["bias"][:] = draws.biases[number]
    if isinstance(engine, ExactEngine):
        spread = 2 * np.sqrt(np.clip(4 * inclusion * (1 - inclusion), 0, 1))
        arrays["scan"][:] = np.clip(spread, engine.settings.scan_floor, 1.0)
    engine.iteration = engine.warm_up
    engine._derive()
    engine._renew()
    found: State = engine.state()
    return found


def _forgetful(plan: Plan, state: State) -> State:
    """The state some iterations later, with nothing counted yet."""
    engine: Any = plan.restore(state)
    assert isinstance(engine, LineEngine)
    engine.iteration = max(engine.iteration, engine.warm_up)
    engine.advance(FORGETTING, FORGETTING)
    engine._end_warm_up()
    engine.iteration = engine.warm_up
    found: State = engine.state()
    return found
