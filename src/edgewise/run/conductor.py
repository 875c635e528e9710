"""The conductor of a run: hands out slices, lets the chains meet, and decides whether to go on.

It works in the calling thread. Progress, Ctrl-C, `max_time` and checkpoints are served between slices and
never change a draw.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.errors import DataError, EdgewiseWarning, users_line
from edgewise.run.compiling import compilations, prepare
from edgewise.run.forecast import Pace, expected_draws
from edgewise.run.interrupt import Interrupt
from edgewise.run.options import MINIMUM_DRAWS, RunOptions
from edgewise.run.plans import Plan, Unknown
from edgewise.run.progress import ChainView, Display, View, duration, seconds
from edgewise.run.saver import Saver
from edgewise.run.stopping import Look, enough, goal, ladder, look
from edgewise.run.unfinished import Glimpse, glimpses, will_not_fit
from edgewise.run.workers import RunningChain, is_resident

POLL_SECONDS = 0.1
HANDED_OVER = (
    "Warm-up found graphs too wide to sum exactly, so the likelihood is approximated to second order "
    "(engine: surrogate)."
)
COMPILE_NOTICE_SECONDS = 2.5  # loading what was compiled before takes about a second


@dataclass(frozen=True, eq=False)
class Earlier:
    """Where a run goes on: each chain's state and draws, how many draws of each are on disk, and thin."""

    states: Sequence[Mapping[str, np.ndarray] | None]
    draws: Sequence[Draws]
    saved: Sequence[int]
    thin: int | None
    seconds: float
    knowledge: Mapping[str, np.ndarray] | None = None


@dataclass(eq=False)
class Conductor:
    """One run.

    Attributes
    ----------
    pool : Executor
        Where the slices are computed, `lanes` at a time.
    chains : list of RunningChain
        The chains, in order.
    thin : int or None
        Iterations per draw; None until warm-up is over and it is known.
    halted : str or None
        ``"interrupted"`` or ``"max_time"`` when the run was cut short.
    uncounted : float
        Seconds of compiling, which do not count as time of the run.
    glimpses : list of Glimpse
        What there is to show of chains that were cut short before they had draws; empty otherwise.
    """

    plan: Plan
    options: RunOptions
    pool: Executor
    lanes: int
    display: Display
    interrupt: Interrupt
    saver: Saver
    started: float
    may_hand_over: bool = False

    chains: list[RunningChain] = field(default_factory=list)
    thin: int | None = None
    halted: str | None = None
    enough: bool = False
    last_look: Look | None = None
    uncounted: float = 0.0
    earlier_seconds: float = 0.0
    resumed_iteration: int = 0
    glimpses: list[Glimpse] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._in_flight: dict[Future[Any], tuple[RunningChain, float]] = {}
        self._resumed_draws = 0
        self._pace: Pace | None = None
        self._looks: list[Look] = []
        self._warned = False
        self._journey = math.inf

    def compile(self) -> None:
        """Compile before the clock starts, and say so when it takes long and is not only loading."""
        before, compiled = time.monotonic(), compilations()
        features, levels = self.plan.problem.features, not self.plan.problem.all_binary
        task: tuple[Any, ...] = (
            prepare,
            self.plan.path,
            features.all_pairs,
            features.max_order,
            self.plan.settings,
            levels,
            self.plan.problem.blanks is not None,
        )
        everywhere = getattr(self.pool, "everywhere", None)
        futures = [self.pool.submit(*task)] if everywhere is None else everywhere(*task)
        told = False
        while wait(futures, timeout=POLL_SECONDS).not_done:
            slow = time.monotonic() - before > COMPILE_NOTICE_SECONDS
            if not told and slow and (compilations() > compiled or not is_resident(self.pool)):
                told = True
                self.display.message(
                    f"Compiling the {self.plan.engine} engine for this machine, once (half a minute) ..."
                )
            if self.interrupt.pressed:
                raise KeyboardInterrupt("Interrupted while the engine was being compiled; nothing is drawn.")
        self.uncounted = max(future.result() for future in futures)

    def gather(self, seed: Any, starts: Sequence[str], earlier: Earlier | None) -> None:
        """Create the chains, or rebuild them where they were."""
        seeds = np.random.SeedSequence(seed).spawn(len(starts))
        if earlier and earlier.knowledge is not None:
            self.plan = self._handed_over(replace(self.plan, knowledge=earlier.knowledge))
        resident = is_resident(self.pool)
        for index, start in enumerate(starts):
            state = earlier.states[index] if earlier else None
            draws = earlier.draws[index] if earlier else None
            chain = RunningChain(self.plan, index, seeds[index], start, state, draws, resident)
            if earlier and draws is not None and len(draws) > earlier.saved[index]:
                chain.unsaved.append(draws[earlier.saved[index] :])
            self.chains.append(chain)
            self._submit(chain, chain.creation())
        while self._in_flight:
            self._collect()
        if any(chain.warm_up < 0 for chain in self.chains):
            raise KeyboardInterrupt("Interrupted while the chains were being set up; nothing is drawn.")
        if earlier:
            self.thin, self.earlier_seconds = earlier.thin, earlier.seconds
            self.resumed_iteration = min(chain.iteration for chain in self.chains)
            self._resumed_draws = min(chain.n_draws for chain in self.chains)
            self.display.message(
                f"Going on from iteration {self.resumed_iteration:,}, with {self._resumed_draws:,} draws of "
                "each chain."
            )

    def conduct(self) -> None:
        """Warm up, then climb the ladder until the draws suffice."""
        if not self._warm_up():
            return
        if self.thin is None:
            # One value for all chains: the upper median is not carried away by one odd chain.
            suggested = sorted(max(1, chain.thin) for chain in self.chains)
            wanted = self.options.thin
            self.thin = suggested[len(suggested) // 2] if wanted == "auto" else int(wanted)
        thin, options = self.thin, self.options
        for rung in ladder(options.min_draws, options.max_draws):
            if rung < self._resumed_draws:
                continue
            if not self._advance(lambda chain, rung=rung: chain.warm_up + rung * thin):  # type: ignore[misc]
                return
            if self.options.target_ess is not None and (
                rung >= self.options.min_draws or self.display.watched
            ):
                drawn = [chain.draws()[:rung] for chain in self.chains]
                self.last_look = look(drawn, self.plan.problem.features.n_cliques)
                self._looks.append(self.last_look)
                if enough(options, self.last_look):
                    self.enough = True
                    return

    def _warm_up(self) -> bool:
        """Warm up; chains that learn together meet after every round of it. False when cut short."""
        while True:
            if not self._advance(lambda chain: chain.warm_up):
                return False
            if self.chains[0].meeting is None:
                return True
            self.plan = self._handed_over(self.plan.after_meeting([chain.state() for chain in self.chains]))
            self.saver.share(self.plan.knowledge)
            for chain in self.chains:
                self._submit(chain, chain.adoption(self.plan))
            while self._in_flight:
                self._collect()

    def _handed_over(self, plan: Plan) -> Plan:
        """The plan with another engine, where warm-up has found that this one cannot decide."""
        knowledge = plan.knowledge or {}
        if plan.engine != "exact" or not ("hand_over" in knowledge and knowledge["hand_over"][0]):
            return plan
        if not self.may_hand_over:
            raise DataError(
                "The graphs of the posterior are too wide to sum exactly: in the last round of warm-up "
                f"{float(knowledge['too_wide'][0]):.0%} of them were. Use engine='particle', or "
                "engine='surrogate' where the rows are many."
            )
        self.display.message(HANDED_OVER)
        return replace(plan, engine="surrogate")

    def finish(self) -> int:
        """Save the end and return the number of draws that all chains have to show."""
        self.saver.finish(self.chains, self.notes())
        count = min(min(chain.n_draws for chain in self.chains), self.options.max_draws)
        if count < MINIMUM_DRAWS:
            self.glimpses = glimpses(self.chains, self.pool)
            count = len(self.glimpses[0].draws)
        self._show("done")
        return count

    def rescue(self) -> None:
        """Save the chains as they came back last, after the workers were lost."""
        if self.chains and all(chain.warm_up >= 0 and not chain.resident for chain in self.chains):
            self.saver.finish(self.chains, self.notes())

    def elapsed(self) -> float:
        """Seconds of this run, without compiling."""
        return time.monotonic() - self.started - self.uncounted

    def notes(self) -> dict[str, Any]:
        """What is saved beside the chains."""
        return {"thin": self.thin, "seconds": self.earlier_seconds + self.elapsed()}

    def _advance(self, goal: Callable[[RunningChain], int]) -> bool:
        """Bring every chain to its goal; False when something asked to stop before."""
        while True:
            if self.interrupt.pressed:
                self.halted = "interrupted"
            elif self.options.max_time is not None and self.elapsed() >= self.options.max_time:
                self.halted = "max_time"
            if self.halted is None:
                self._hand_out(goal)
            if not self._in_flight:
                return self.halted is None
            self._collect()
            self._foresee()
            if self.display.due():
                self._show("warm-up" if self.thin is None else "sampling")
            self.saver.serve(self.chains, self._idle(), self.notes)

    def _hand_out(self, goal: Callable[[RunningChain], int]) -> None:
        """Fill the free lanes, the chain that is furthest behind first."""
        behind = [chain for chain in self._idle() if chain.iteration < goal(chain)]
        behind.sort(key=lambda chain: (chain.iteration - goal(chain), chain.index))
        for chain in behind[: self.lanes - len(self._in_flight)]:
            end = chain.warm_up if chain.iteration < chain.warm_up else goal(chain)
            iterations = min(chain.slice_length(), end - chain.iteration)
            self._submit(chain, chain.slice(iterations, self.thin or 1))

    def _idle(self) -> list[RunningChain]:
        busy = {chain.index for chain, _ in self._in_flight.values()}
        return [chain for chain in self.chains if chain.index not in busy]

    def _submit(self, chain: RunningChain, task: tuple[Any, ...]) -> None:
        self._in_flight[self.pool.submit(*task)] = (chain, time.monotonic())

    def _collect(self) -> None:
        try:
            done, _ = wait(self._in_flight, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt:
            if self.interrupt.pressed:
                raise
            self.interrupt.pressed = True
            return
        for future in done:
            chain, since = self._in_flight.pop(future)
            try:
                delivery = future.result()
            except (KeyboardInterrupt, BrokenExecutor) as error:
                # Ctrl-C reaches worker processes too. The slice is lost, the chain as it was before is not.
                if not (self.interrupt.pressed or isinstance(error, KeyboardInterrupt)):
                    raise
                self.interrupt.pressed = True
            else:
                if isinstance(delivery, Unknown):
                    self._submit(chain, chain.resend())
                    continue
                now = time.monotonic()
                chain.take(delivery, now - since)
                # Where slices wait for each other the shortest journey is the one that did not.
                if chain.journey > 0:
                    self._journey = chain.journey = min(self._journey, chain.journey)
                if self.display.watched and now - chain.seen_at >= self.display.interval:
                    chain.glance()
                    self.display.seconds += time.monotonic() - now

    def _show(self, phase: str) -> None:
        started = time.monotonic()
        views = [
            ChainView(chain.iteration, chain.warm_up, chain.n_draws, *chain.seen) for chain in self.chains
        ]
        self.display.update(
            View(
                phase=phase,
                engine=self.plan.engine,
                chains=tuple(views),
                look=self.last_look,
                elapsed=self.elapsed(),
                remaining=self._remaining(),
                goal=goal(self.options),
                expected_draws=self._expected_draws(),
            )
        )
        self.display.seconds += time.monotonic() - started

    def _expected_draws(self) -> float:
        return expected_draws(self.options, self._looks, min(chain.n_draws for chain in self.chains))

    def _remaining(self) -> float:
        """Seconds to the expected end; in warm-up, to the earliest one."""
        now, made = time.monotonic(), sum(chain.iteration for chain in self.chains)
        if self._pace is None or self._pace.thin != self.thin:
            # What warm-up costs says little about the time after it, once there are slices to go by.
            self._pace = Pace(now, made, self.thin)
        rate = self._pace.rate(now, made)
        if rate is None:
            speeds = [1 / max(chain.seconds_per_iteration, 1e-9) for chain in self.chains]
            rate = sum(speeds) * self.lanes / len(speeds) if max(speeds) < 1e9 else 0.0
        left = float("nan")
        if rate > 0:
            last = self._expected_draws()
            goals = [chain.warm_up + last * (self.thin or max(1, chain.thin)) for chain in self.chains]
            left = sum(max(0.0, goal - chain.iteration) for goal, chain in zip(goals, self.chains)) / rate
        if self.options.max_time is not None:
            left = float(np.fmin(left, max(0.0, self.options.max_time - self.elapsed())))
        return left

    def _foresee(self) -> None:
        """Warn, once, as soon as warm-up will clearly not fit into `max_time`."""
        limit = self.options.max_time
        if self._warned or self.thin is not None or limit is None:
            return
        needed = will_not_fit(self.chains, self.lanes, self.elapsed(), limit)
        if needed is not None:
            self._warned = True
            warnings.warn(
                f"Warm-up will take about {duration(needed)}, more than max_time={seconds(limit)} "
                "allows: there will be no draws of the posterior to show, only where the chains are by then. "
                "Allow more time.",
                EdgewiseWarning,
                stacklevel=users_line(),
            )
