"""Many chains: seeds, executor, stopping, interrupt, checkpoint; :func:`run` is the door to all that.

The work is divided: ``workers`` computes slices of iterations, ``conductor`` hands them out, ``stopping``
judges the draws, ``saver`` and ``checkpoint`` save, ``progress`` shows.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.blanks import check_blanks
from edgewise.engines.choose import choose, load_engine, resolve
from edgewise.engines.protocol import Problem
from edgewise.engines.states import check_state, new_chain
from edgewise.errors import ClusterError, FileError
from edgewise.run.checkpoint import Checkpoint
from edgewise.run.cluster import as_executor
from edgewise.run.conductor import HANDED_OVER, Conductor, Earlier
from edgewise.run.estimate import check_memory
from edgewise.run.interrupt import Interrupt
from edgewise.run.options import RunOptions
from edgewise.run.plans import Plan
from edgewise.run.progress import open_display, seconds
from edgewise.run.saver import Saver
from edgewise.run.stopping import Look, goal, quantity, wanting
from edgewise.run.versions import versions
from edgewise.run.workers import RunningChain, worker_count


class RunInfo(TypedDict):
    """How a run was made and why it stopped, as plain values.

    `warm_up_unfinished` says that the run ended inside warm-up, of which the chain furthest behind had made
    `warm_up_done` iterations: the draws then only show where the chains were.
    """

    engine: str
    engine_reason: str
    settings: dict[str, Any]
    seed: Any
    start: list[str]
    thin: int | None
    warm_up: int
    stop_reason: str
    stop_message: str
    interrupted: bool
    warm_up_unfinished: bool
    warm_up_done: int
    resumed_from_iteration: int
    versions: dict[str, str]
    created: str
    seconds: float
    compile_seconds: float
    checkpoint_seconds: float
    progress_seconds: float


@dataclass(eq=False)
class RunResult:
    """What a run leaves behind.

    Attributes
    ----------
    draws : list of Draws
        The kept draws of each chain, equally many. Of a run that ended before there were any, a few
        iterations from where the chains were (``info["warm_up_unfinished"]``).
    edge_sums, counters : list of mappings
        The engines' totals at the end of each chain.
    states : list of mappings
        The state of each chain, to go on from.
    all_draws : list of Draws
        The draws up to those states: a chain that was ahead of the others when the run was cut short has
        more of them than it shows in `draws`.
    last_look : Look or None
        ESS and R-hat when the chains last met.
    info : RunInfo
        How the run was made and why it stopped.
    knowledge : mapping of arrays or None
        What the chains learned together in warm-up.
    """

    draws: list[Draws]
    edge_sums: list[Mapping[str, np.ndarray]]
    counters: list[Mapping[str, float]]
    states: list[Mapping[str, np.ndarray]]
    all_draws: list[Draws]
    last_look: Look | None
    info: RunInfo
    knowledge: Mapping[str, np.ndarray] | None = None


def run(
    problem: Problem,
    options: RunOptions,
    *,
    identity: Mapping[str, Any] | None = None,
    previous: RunResult | None = None,
) -> RunResult:
    """Run chains until the draws suffice or the budget ends.

    Parameters
    ----------
    problem : Problem
        Candidates, statistics and prior.
    options : RunOptions
        How to run.
    identity : mapping, optional
        What else makes two runs the same (the digest of the data, the prior in words).
    previous : RunResult, optional
        A run to go on from.
    """
    started = time.monotonic()
    made_with = versions()
    chains, starts, seed = options.chains, options.starts, options.seed
    workers = worker_count(options.n_jobs, chains)
    engine_name = options.engine
    reason = "You chose it."
    chosen = engine_name == "auto"
    if chosen:
        engine_name, reason = choose(problem, options.settings)
    check_blanks(load_engine(resolve(engine_name, problem, options.settings)), problem)
    check_memory(problem, chains)
    settings = dict(options.settings or {})
    open_seed = seed is None and previous is None
    if previous is not None:
        seed = previous.info["seed"]
    elif seed is None:
        seed = np.random.SeedSequence().entropy
    store = None
    opening = time.monotonic()
    if options.checkpoint is not None:
        full_identity = {
            "engine": engine_name,
            "settings": settings,
            "chains": int(chains),
            "thin": options.thin if isinstance(options.thin, str) else int(options.thin),
            "start": starts,
            "seed": seed,
            "problem": problem_digest(problem),
            "versions": made_with,
            **(identity or {}),
        }
        store = Checkpoint.open(
            options.checkpoint,
            full_identity,
            ["seed"] if open_seed else [],
            (problem.n_biases, problem.features.n_cliques, problem.dimension),
        )
        seed = store.identity["seed"]
    saver = Saver(store, options.checkpoint_every)
    saver.seconds += time.monotonic() - opening
    own = ThreadPoolExecutor(workers, "edgewise") if options.executor is None else None
    pool = own or as_executor(options.executor)
    display = open_display(options.progress, options.callback)
    if chosen:
        display.message(f"Engine: {engine_name}. {reason}")
    try:
        with Interrupt() as interrupt:
            conductor = Conductor(
                plan=Plan(problem, engine_name, settings),
                options=options,
                pool=pool,
                lanes=chains if options.executor is not None and options.n_jobs is None else workers,
                display=display,
                interrupt=interrupt,
                saver=saver,
                started=started,
                may_hand_over=chosen or previous is not None,
            )
            conductor.compile()
            try:
                conductor.gather(seed, starts, _earlier(previous, store, chains, conductor.plan))
                conductor.conduct()
                count = conductor.finish()
            except (BrokenExecutor, ClusterError) as error:
                conductor.rescue()
                if isinstance(error, BrokenExecutor):
                    raise
                raise ClusterError(f"{error} {_rescued(store)}") from error
    finally:
        # When something failed, a slice may still be running; it holds nothing but its own chain.
        if pool is not options.executor:
            pool.shutdown(wait=False, cancel_futures=True)
        saver.close()
        display.close()
    message = _explain(conductor, count)
    if conductor.plan.engine != engine_name:
        reason = f"{reason} {HANDED_OVER}"
    info: RunInfo = {
        "engine": conductor.plan.engine,
        "engine_reason": reason,
        "settings": settings,
        "seed": seed,
        "start": starts,
        "thin": conductor.thin,
        "warm_up": max(chain.warm_up for chain in conductor.chains),
        "stop_reason": conductor.halted or ("target_ess" if conductor.enough else "max_draws"),
        "stop_message": message,
        "interrupted": conductor.halted == "interrupted",
        "warm_up_unfinished": _unfinished(conductor) is not None,
        "warm_up_done": min(min(chain.iteration, chain.warm_up) for chain in conductor.chains),
        "resumed_from_iteration": conductor.resumed_iteration,
        "versions": made_with,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": conductor.earlier_seconds + conductor.elapsed(),
        "compile_seconds": conductor.uncounted,
        "checkpoint_seconds": saver.seconds,
        "progress_seconds": display.seconds,
    }
    display.message(message)
    shown = conductor.glimpses
    return RunResult(
        [part.draws for part in shown] or [chain.draws()[:count] for chain in conductor.chains],
        [part.edge_sums for part in shown] or [chain.edge_sums() for chain in conductor.chains],
        [chain.facts().counters for chain in conductor.chains],
        [chain.state() for chain in conductor.chains],
        [chain.draws() for chain in conductor.chains],
        conductor.last_look,
        info,
        conductor.plan.knowledge,
    )


def _rescued(store: Checkpoint | None) -> str:
    """What is left when the workers are gone, in words."""
    if store is None:
        return "Nothing was saved, for the fit had no checkpoint; give it one and begin anew."
    return (
        f"What was drawn before is saved in {str(store.path)!r}. Run the same fit again to go on from the "
        "checkpoint."
    )


def _earlier(previous: RunResult | None, store: Checkpoint | None, chains: int, plan: Plan) -> Earlier | None:
    """Where to go on: the checkpoint, or the run in memory where that is further on."""
    stored = store.chains if store is not None else []
    if store is not None and stored:
        _check_states(store, chains, plan)
    saved = [len(chain.draws) for chain in stored] or [0] * chains
    if previous is not None and (not stored or sum(map(len, previous.all_draws)) > sum(saved)):
        info = previous.info
        return Earlier(
            previous.states, previous.all_draws, saved, info["thin"], info["seconds"], previous.knowledge
        )
    if store is not None and stored:
        states, draws = [chain.state for chain in stored], [chain.draws for chain in stored]
        return Earlier(states, draws, saved, store.notes["thin"], store.notes["seconds"], store.knowledge)
    return None


def _unfinished(conductor: Conductor) -> RunningChain | None:
    """The chain furthest behind, if it is in its warm-up."""
    behind = min(conductor.chains, key=lambda chain: chain.iteration - chain.warm_up)
    return behind if behind.iteration < behind.warm_up else None


def _check_states(store: Checkpoint, chains: int, plan: Plan) -> None:
    """Hand no state to an engine that is not one of its own."""
    where = "its newest generation"
    try:
        if len(store.chains) != chains:
            raise ValueError(f"it has {len(store.chains)} chains instead of {chains}")
        new = new_chain(plan.kind(), plan.problem, plan.settings)
        if store.knowledge is not None:
            where = "what its chains share"
            plan.kind().check_knowledge(plan.problem, store.knowledge)  # type: ignore[attr-defined]
            met = {**new.state(), "iteration": store.knowledge["end"].reshape(())}
            new = replace(plan, knowledge=store.knowledge).restore(met)
        for number, stored in enumerate(store.chains):
            where = f"chain {number}"
            if stored.state is not None:
                check_state(new, plan.problem, stored.state, len(stored.draws), store.notes["thin"])
            elif len(stored.draws):
                raise ValueError("it has draws and no state")
    except (ValueError, TypeError, IndexError, KeyError, OverflowError) as error:
        raise FileError(
            f"The checkpoint {str(store.path)!r} is damaged: nothing can go on from {where} ({error}); "
            "delete the directory to start anew."
        ) from error


def _explain(conductor: Conductor, count: int) -> str:
    behind = _unfinished(conductor)
    limit = seconds(conductor.options.max_time or 0.0)
    ended = "Interrupted" if conductor.halted == "interrupted" else f"The time is over (max_time={limit})"
    if behind is not None:
        return (
            f"{ended} in warm-up, at iteration {behind.iteration:,} of {behind.warm_up:,}: the result shows "
            "where the chains were and not the posterior."
        )
    chains = len(conductor.chains)
    amount = f"{count:,} draws from {'one chain' if chains == 1 else f'each of {chains} chains'}"
    if conductor.glimpses:
        return f"{ended} as soon as warm-up was: the result has {amount}."
    if conductor.halted == "interrupted":
        return f"{ended}: the result has the {amount} made so far."
    if conductor.halted == "max_time":
        return f"{ended}: the result has {amount}{_asked(conductor)}."
    if conductor.enough:
        return f"Enough: {amount}{_asked(conductor)}."
    return f"All draws allowed are made: {amount}{_asked(conductor)}."


def _asked(conductor: Conductor) -> str:
    """The precision of the last look, in brackets, with what is wanting where something is."""
    seen, wanted = conductor.last_look, goal(conductor.options)
    if seen is None or wanted is None:
        return ""
    problem = conductor.plan.problem
    names = None if problem.rows is None else problem.rows.names
    parts = [] if wanted.error == math.inf else [f"largest error {seen.error:.3f}"]
    parts += [f"ESS {seen.ess:.0f}", f"R-hat {seen.r_hat:.3f}"]
    lacking = wanting(wanted, seen, lambda k: quantity(problem.features, names, k))
    return f" ({', '.join(parts)})" + "".join(f"; {words}" for words in lacking)


def problem_digest(problem: Problem) -> str:
    """SHA-256 of everything the engine is told."""
    prior, statistics, features = problem.prior, problem.statistics, problem.features
    numbers = [prior.beta_a, prior.beta_b, prior.p0, prior.gamma_shape, prior.gamma_rate]
    numbers += [prior.sigma0, prior.bias_sd, statistics.n_rows, features.n_variables]
    arrays = [np.array(numbers), prior.status, prior.log_odds, statistics.singles, statistics.cliques]
    if not prior.plain:
        arrays += [np.array([prior.freedom]), *(x for x in (prior.own_mean, prior.own_sd) if x is not None)]
        arrays += [] if prior.model is None else [prior.model.numbers()]
    if features.table is not None:
        arrays.append(features.table)
    digest = hashlib.sha256()
    if not problem.all_binary:
        digest.update(repr(problem.scales).encode())
    if problem.rows is not None:
        digest.update(problem.rows.digest().encode())
    if problem.strata:
        arrays.append(np.array(problem.group_of))
        arrays += [part.singles for part in problem.strata] + [part.cliques for part in problem.strata]
        difference = prior.difference
        arrays.append(np.array(list(vars(difference).values())))
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
