"""Where the chains compute: slices of iterations, handed to threads or to any other executor.

A slice is short (a fraction of a second), so that whoever conducts can react; the engines promise that the
draws do not depend on how the iterations are divided. Threads keep the engine between slices; elsewhere
the chain travels as plain arrays, and slices grow until the journey is a small part of them. What the chains
share travels once to each process (``plans``).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.protocol import Engine
from edgewise.run.options import check_jobs
from edgewise.run.plans import Plan, Ticket, Unknown

SLICE_SECONDS = 0.1
JOURNEY_SHARE = 0.05


def worker_count(n_jobs: int | None, chains: int) -> int:
    """Number of chains that compute at the same time.

    As in joblib, -1 means all cores and -2 all but one. None means all cores too (threads are cheap),
    unless joblib says otherwise: inside one of its workers or under ``joblib.parallel_config``.
    """
    check_jobs(n_jobs)
    if n_jobs is None and "joblib" in sys.modules:
        from joblib.parallel import effective_n_jobs, get_active_backend

        backend, configured = get_active_backend()
        if configured is not None or getattr(backend, "nesting_level", None):
            n_jobs = effective_n_jobs(None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        n_jobs = cores
    elif n_jobs < 0:
        n_jobs = max(1, cores + 1 + n_jobs)
    return max(1, min(int(n_jobs), chains))


@dataclass(frozen=True, eq=False)
class Facts:
    """What an engine tells about itself between slices."""

    active: int
    counters: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Delivery:
    """What comes back from a slice; `state` and `facts` where the engine does not stay in this process."""

    draws: Draws | None
    state: Mapping[str, np.ndarray] | None
    facts: Facts | None
    iteration: int
    warm_up: int
    meeting: int | None
    thin: int
    seconds: float


class RunningChain:
    """One chain as its conductor sees it: how far it is, what it has drawn, and its next slice."""

    def __init__(
        self,
        plan: Plan,
        index: int,
        seed: np.random.SeedSequence,
        start: str,
        state: Mapping[str, np.ndarray] | None = None,
        draws: Draws | None = None,
        resident: bool = True,
    ) -> None:
        self.plan, self.index, self.seed, self.start = plan, index, seed, start
        self.resident = resident
        self.iteration = 0
        self.warm_up = -1  # not known before the engine is built
        self.meeting: int | None = None
        self.thin = 1
        self.seen = (0, float("nan"))
        self.seen_at = float("-inf")
        self.pieces: list[Draws] = [draws] if draws is not None and len(draws) else []
        self.n_draws = len(draws) if draws is not None else 0
        self.unsaved: list[Draws] = []
        self.seconds_per_iteration = 0.0
        self.journey = 0.0
        self._largest = 1
        self._state = state
        self._facts: Facts | None = None
        self._engine: Engine | None = None
        self._sent: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def creation(self) -> tuple[Any, ...]:
        """Task that builds the engine, or rebuilds it from its state."""
        if self.resident:
            return _create_resident, self.plan, self.seed, self.start, self._state
        return self._send(_create_travelling, self.seed, self.start, self._state)

    def adoption(self, plan: Plan) -> tuple[Any, ...]:
        """Task that rebuilds the engine where it is, under another plan."""
        self._state, self._engine, self.plan = self.state(), None, plan
        return self.creation()

    def slice(self, iterations: int, thin: int) -> tuple[Any, ...]:
        """Task that runs `iterations` iterations."""
        if self.resident:
            return _advance_resident, self._engine, iterations, thin
        return self._send(_advance_travelling, self._state, iterations, thin)

    def _send(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        self._sent = function, arguments
        return function, self.plan.ticket(), *arguments

    def resend(self) -> tuple[Any, ...]:
        """The task last sent, with the plan, for a process that does not know it."""
        assert self._sent is not None
        function, arguments = self._sent
        return function, self.plan.ticket(whole=True), *arguments

    def slice_length(self) -> int:
        """Number of iterations that take about SLICE_SECONDS, learned from the slices so far."""
        if self.seconds_per_iteration <= 0:
            return self._largest
        seconds = max(SLICE_SECONDS, self.journey / JOURNEY_SHARE)
        return max(1, min(int(seconds / self.seconds_per_iteration), 8 * self._largest))

    def take(self, delivery: Delivery | tuple[Delivery, Engine], elapsed: float) -> None:
        """Put a finished slice behind what is there."""
        if isinstance(delivery, tuple):
            delivery, self._engine = delivery
            self._state = None
        advanced = delivery.iteration - self.iteration
        self.iteration, self.warm_up, self.thin = delivery.iteration, delivery.warm_up, delivery.thin
        self.meeting = delivery.meeting
        if delivery.state is not None:
            self._state, self._facts = delivery.state, delivery.facts
        if advanced > 0 and delivery.seconds > 0:
            self.seconds_per_iteration = delivery.seconds / advanced
            self._largest = max(self._largest, advanced)
            if not self.resident:
                self.journey = max(0.0, elapsed - delivery.seconds)
        if delivery.draws is not None and len(delivery.draws):
            self.pieces.append(delivery.draws)
            self.unsaved.append(delivery.draws)
            self.n_draws += len(delivery.draws)

    def draws(self) -> Draws:
        """All draws so far."""
        if len(self.pieces) != 1:
            empty = Draws.empty(self.plan.problem.n_biases)
            self.pieces = [Draws.concatenate(self.pieces) if self.pieces else empty]
        return self.pieces[0]

    def state(self) -> Mapping[str, np.ndarray]:
        """The chain's state as arrays of its own; only between slices."""
        if self._engine is not None:
            return {key: np.array(value) for key, value in self._engine.state().items()}
        assert self._state is not None
        return self._state

    def facts(self) -> Facts:
        """What the engine tells; only between slices."""
        if self._engine is not None:
            return _facts(self._engine)
        assert self._facts is not None
        return self._facts

    def glance(self) -> None:
        """Remember the number of edges and the acceptance rate for the display; only between slices."""
        facts = self.facts()
        self.seen = facts.active, acceptance(facts.counters)
        self.seen_at = time.monotonic()

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals of the engine; only between slices."""
        engine = self._engine
        if engine is None:
            engine = self.plan.restore(self.state())
        return {key: np.array(value) for key, value in engine.edge_sums().items()}


def is_resident(executor: Executor) -> bool:
    """Whether the executor computes in this process, so that engines can stay where they are."""
    return isinstance(executor, ThreadPoolExecutor)


def _create(
    plan: Plan, seed: np.random.SeedSequence, start: str, state: Mapping[str, np.ndarray] | None
) -> Engine:
    if state is None:
        return plan.kind()(plan.problem, plan.settings, seed, start)
    return plan.restore(state)


def _create_resident(plan: Plan, *arguments: Any) -> tuple[Delivery, Engine]:
    engine = _create(plan, *arguments)
    return _deliver(engine, None, 0.0, False), engine


def _create_travelling(ticket: Ticket, *arguments: Any) -> Delivery | Unknown:
    plan = ticket.plan()
    if plan is None:
        return Unknown(ticket.token)
    return _deliver(_create(plan, *arguments), None, 0.0, True)


def _advance_resident(engine: Engine, iterations: int, thin: int) -> Delivery:
    started = time.monotonic()
    draws = engine.advance(iterations, thin)
    return _deliver(engine, draws, time.monotonic() - started, False)


def _advance_travelling(
    ticket: Ticket, state: Mapping[str, np.ndarray], iterations: int, thin: int
) -> Delivery | Unknown:
    plan = ticket.plan()
    if plan is None:
        return Unknown(ticket.token)
    engine = plan.restore(state)
    started = time.monotonic()
    draws = engine.advance(iterations, thin)
    return _deliver(engine, draws, time.monotonic() - started, True)


def _deliver(engine: Engine, draws: Draws | None, seconds: float, travelling: bool) -> Delivery:
    state = {key: np.array(value) for key, value in engine.state().items()} if travelling else None
    facts = _facts(engine) if travelling else None
    meeting = getattr(engine, "meeting", None)
    return Delivery(draws, state, facts, engine.iteration, engine.warm_up, meeting, engine.thin, seconds)


def _facts(engine: Engine) -> Facts:
    return Facts(engine.active(), dict(engine.counters()))


def acceptance(counters: Mapping[str, float]) -> float:
    """Share of accepted births, deaths and swaps."""
    kinds = ("birth", "death", "swap")
    tries = sum(counters.get(f"{kind}_tries", 0.0) for kind in kinds)
    return sum(counters.get(f"{kind}_accepts", 0.0) for kind in kinds) / tries if tries else float("nan")
