"""Stretches on a Gaussian surrogate, decided exactly or taken at their word (docs/method.md, 10).

Warm-up learns the surrogate in rounds. In a round every chain walks on the present surrogate, and particles
follow it and add up what the next surrogate is made of; at its end the chains *meet*: their sums are pooled,
and all go on with the same averages. After warm-up the averages are frozen, and an iteration is a few
stretches.

``exact`` beyond the table of states decides every stretch with log Z by elimination; ``surrogate``
(``surrogate.py``) decides nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.averages import surrogate_arrays
from edgewise.engines.blanks import lean_blanks, typical_sums, wanted_sums
from edgewise.engines.common import read_settings
from edgewise.engines.cores import choose_core
from edgewise.engines.knowledge import check_knowledge, first_surrogate
from edgewise.engines.lessons import RoundsEngine
from edgewise.engines.meter import nearest
from edgewise.engines.protocol import Problem
from edgewise.engines.rounds import (
    FEWEST_MOVED,
    TOO_SPREAD,
    TRUSTED_ROUNDS,
    is_last,
    is_worse,
    lengths_of_rounds,
    moved_share,
    next_lenience,
    shortened,
    snapshots_of,
    step_of,
)
from edgewise.errors import DataError
from edgewise.kernels import codes
from edgewise.kernels.codes import FORBIDDEN

# Where more of the graphs than this are too wide for the oracle in the last round, it cannot decide.
MOST_TOO_WIDE = 0.02
WEIGHED = 16
SWEEPS_OF_A_LESSON = 3.0
SWEEPS_OF_A_STRETCH = 3.0
# A short one follows each: it leaves the states that long ones seldom leave.
SWEEPS_OF_A_SHORT = 0.5
KEPT = 0.7
# Where stretches are often refused and decisions cheap, both are shorter, and there are more of them.
REFUSED, CHEAP_CELLS = 1.5, 1 << 16
REPEATS, MORE_REPEATS, SHORTER = 2, 4, 0.2
# In a tour more: the biases are known there nearly as well as the rest.
KEPT_IN_TOURS = 0.85
# Particles are counted so many at a time.
LANES = 64
FOLLOW = 4
COUNTS = 8
# As often again for every so many rows, up to so many times: the number of rows multiplies the noise of their
# means.
ROWS_OF_COUNTS, MOST_COUNTS = 100_000, 8
# Sums of products are whole numbers in 32 bits, one for every two features.
LARGEST_MATRIX = 1.6e8


@dataclass(frozen=True)
class StretchSettings:
    """Settings of engines on the surrogate; nobody needs to touch them.

    Attributes
    ----------
    particles : int
        Particles of each chain that the averages are learned from, a multiple of 64.
    warm_up : int
        Most draws of each chain in a round of warm-up.
    thin : int
        Iterations between kept draws.
    sweeps : float
        Length of an iteration, in sweeps over the candidates; 0 chooses it.
    repeats : int
        Stretches, each decided, that an iteration is divided into; a short one follows each. 0 chooses it.
    walks : float
        Probability that a walk of a single parameter follows a stretch.
    cells : int
        Most cells of the tables of an elimination.
    probes : int
        Iterations between measurements of how far the surrogate is off, where nothing decides; 0 for none.
    """

    particles: int = 2048
    warm_up: int = 640
    thin: int = 1
    sweeps: float = 0.0
    repeats: int = 0
    walks: float = 0.1
    cells: int = 1 << 24
    probes: int = 1


class StretchEngine(RoundsEngine):
    """One chain of stretches; see ``engines/protocol.py``.

    Every chain starts at a rough fit, whatever `start` says: far from the posterior there is nothing that
    the averages could be learned from.
    """

    Settings: ClassVar[type] = StretchSettings
    lesson: ClassVar[str] = "moments."
    of_particles: ClassVar[tuple[str, ...]] = ("X", "lanes")
    decides: ClassVar[bool] = False

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        particles, repeats = self.settings.particles, self.settings.repeats
        if particles < LANES or particles % LANES:
            raise DataError(
                f"particles must be a multiple of {LANES} for the {self.name} engine, not {particles}."
            )
        for name, value, least in (("repeats", repeats, 0), ("warm_up", self.settings.warm_up, 1)):
            if value < least:
                raise DataError(f"{name} must be at least {least} for the {self.name} engine, not {value}.")
        self._candidates = in_play(problem)
        self._members = np.ascontiguousarray(problem.features.members[self._candidates])

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        from edgewise.kernels.random import lane_streams

        rng = np.random.default_rng(seed)
        n = self.settings.particles
        self._arrays["X"] = self._start_at_fit(n, rng, math.inf)
        self._arrays["lanes"] = lane_streams(seed, n)
        self._arrays["round"] = np.zeros(1, np.int64)
        self._arrays["point"] = np.zeros(3)
        self._learn_anew()

    def _learn_anew(self) -> None:
        """Empty sums for the next round."""
        from edgewise.kernels.learning import empty_moments

        p, n = self.problem.features.n_variables, self.settings.particles
        draws = lengths_of_rounds(self.settings.warm_up, int(self._arrays["round"][0]))[-1]
        moments = empty_moments(draws, len(self._candidates), p, n, snapshots_of(draws), WEIGHED)
        self._arrays |= {
            f"moments.{name}": value for name, value in moments._asdict().items() if name != "words"
        }

    def _derive(self) -> None:
        from edgewise.kernels.stretches import Decider
        from edgewise.kernels.surrogate import Surrogate, empty_walker

        knowledge, p = self._knowledge, self.problem.features.n_variables
        round_ = int(self._arrays["round"][0])
        self.warm_up = sum(lengths_of_rounds(self.settings.warm_up, round_))
        if knowledge is not None and knowledge["last"][0]:
            self.warm_up = int(knowledge["end"][0])
        own = first_surrogate(self._candidates, p) if knowledge is None else knowledge
        surrogate = Surrogate(*(own[name] for name in Surrogate._fields))
        self._blanks, self._surrogate = lean_blanks(
            self._blanks, self.problem, surrogate, own, self._candidates
        )
        flat = 1.0 / self.problem.prior.sigma0**2
        sweeps = self.settings.sweeps or SWEEPS_OF_A_STRETCH
        chosen = REPEATS if knowledge is None else int(knowledge["repeats"][0])
        repeats = self.settings.repeats or chosen
        lenience = math.inf if knowledge is None else float(knowledge["lenience"][0])
        short = SWEEPS_OF_A_SHORT if chosen == REPEATS else SHORTER
        inner = 0 if knowledge is None else int(knowledge["inner"][0])
        if inner:
            repeats = 1
        moving = knowledge is not None and len(self._candidates) > 0
        if knowledge is None or not knowledge["last"][0]:
            sweeps, repeats = SWEEPS_OF_A_LESSON, 1
        self._decider = Decider(
            lenience=lenience,
            steps=max(1, round(sweeps * float(own["sweep"][0]) / repeats)) if len(self._candidates) else 0,
            repeats=repeats if knowledge is not None else 0,
            short=max(1, round(short * float(own["sweep"][0]))) if moving else 0,
            keep=KEPT_IN_TOURS if inner else KEPT,
            inner=inner,
            walks=float(self.settings.walks),
            scales=2.0 / np.sqrt(np.diag(self._surrogate.precision).astype(float) + flat),
            bias_scales=2.0 / np.sqrt(np.diag(self._surrogate.bias_precision)),
            members=self._members,
            core=np.zeros(len(self._candidates), bool) if knowledge is None else knowledge["core"],
            point=self._arrays["point"],
            walker=empty_walker(len(self._candidates), p),
            room=np.zeros(p),
            core_bias=np.zeros(p),
            core_listed=np.zeros(len(self._candidates), np.int64),
            taken=np.zeros(len(self._candidates)),
        )
        self._source = self._oracle()

    def _oracle(self) -> Any:
        raise NotImplementedError

    def _renew(self) -> None:
        pass

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Learn in warm-up, walk after it."""
        if self.iteration >= self.warm_up:
            return super().advance(iterations, thin)
        if self.iteration + iterations > self.warm_up:
            raise ValueError("a block of iterations must not cross a meeting")
        self._learn(iterations)
        self.iteration += iterations
        return Draws.empty(self.problem.features.n_variables)

    def _learn(self, draws: int) -> None:
        from edgewise.kernels.bits import BITS
        from edgewise.kernels.learning import Lesson, Moments, School

        arrays, n = self._arrays, self.settings.particles
        features = self.problem.features.n_variables + len(self._candidates)
        own = {name: arrays[f"moments.{name}"] for name in Moments._fields if name != "words"}
        moments = Moments(**own, words=np.zeros((features, n // BITS), np.uint64))
        length = lengths_of_rounds(self.settings.warm_up, int(arrays["round"][0]))[-1]
        lesson = Lesson(
            moves=self._knowledge is not None,
            follow=FOLLOW,
            counts=counts_of(self.problem),
            snapshot_every=-(-length // snapshots_of(length)),
            weigh_every=max(1, length // WEIGHED),
        )
        scratch = np.zeros((2, n), np.float32)
        school = School(arrays["X"], arrays["lanes"], lesson, moments, scratch[0], scratch[1])
        self._perform(codes.LEARN, school, self._after_warm_up(), draws, -1, self._recorder(0, 0))

    def _walk_on(self, first: int, iterations: int, thin: int, recorder: Any) -> int:
        """Iterations, the first of them counted from the end of warm-up; how many there was room for."""
        return self._perform(codes.WALK, self._empty_school(), first, iterations, thin, recorder)

    def _empty_school(self) -> Any:
        """Nothing to learn from."""
        from edgewise.kernels.learning import Lesson, School, empty_moments

        nobody, nothing = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        lesson, moments = Lesson(False, 0, 0, 1, 1), empty_moments(0, 0, 0, 0, 0, 0)
        return School(nobody, np.zeros((4, 0), np.uint32), lesson, moments, nothing, nothing)

    def _perform(self, task: int, school: Any, first: int, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.tasks import perform

        return perform(
            task,
            self._rules,
            self._sums,
            self._chain,
            self._surrogate,
            self._source,
            self._decider,
            self._blanks,
            school,
            first,
            iterations,
            thin,
            recorder,
        )

    @classmethod
    def pool(
        cls,
        problem: Problem,
        settings: Mapping[str, Any] | None,
        states: Sequence[Mapping[str, np.ndarray]],
        before: Mapping[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray]:
        """What the chains, met in these states, know together, and whether they go on learning."""
        contributions = [
            {k.removeprefix(cls.lesson): v for k, v in state.items() if k.startswith(cls.lesson)}
            for state in states
        ]
        chosen = read_settings(cls.Settings, cls.name, settings)
        rounds = 1 if before is None else int(before["round"][0]) + 1
        problem, sums = typical_sums(problem, states, "singles", "sums")
        made = surrogate_arrays(
            problem,
            in_play(problem),
            contributions,
            chosen.particles,
            counts_of(problem),
            rounds >= TRUSTED_ROUNDS,
            not cls.decides,
        )
        weighed = np.concatenate([part["weights"][: int(part["filled"][2])] for part in contributions])
        known = weighed[np.isfinite(weighed)]
        # Standard deviation of w under the surrogate that the chains walked on; in the first round none did.
        spread = float(np.std(known)) if len(known) > 1 else math.nan
        history = [] if before is None else [*before["spreads"].tolist(), spread]
        undone = 0 if before is None else int(before["undone"][0])
        if problem.blanks is None and is_worse(made, before, contributions, spread):
            assert before is not None
            made = {name: before[name] for name in made}
            undone += 1
        step = math.inf
        if before is not None and not cls.decides:
            step = step_of(made, before)
            made = shortened(made, before, step)
        moved = moved_share(contributions)
        stuck = cls.decides and rounds > 1 and moved < FEWEST_MOVED
        last = is_last(history, rounds, chosen.warm_up, step, stuck)
        too_wide = float(np.isnan(weighed).mean()) if len(weighed) else 0.0
        # Averages along a chain that is right are right; the surrogate's own miss what it thinks unlikely.
        early = not last and (rounds < TRUSTED_ROUNDS or stuck or not spread < TOO_SPREAD)
        lenience = next_lenience(early, spread, stuck, before)
        if last and too_wide > MOST_TOO_WIDE:
            lenience = math.inf
        core, inner, repeats = np.ones(len(made["candidates"]), bool), 0, REPEATS
        if cls.decides:
            thetas = np.concatenate([part["phi"][: int(part["filled"][0])] for part in contributions])
            core, inner, whole = choose_core(
                problem.features,
                made["candidates"],
                made["occupied"],
                thetas[:, problem.features.n_variables :],
                (chosen.sweeps or SWEEPS_OF_A_STRETCH) * float(made["sweep"][0]),
                int(chosen.cells),
            )
            if spread > REFUSED and whole <= CHEAP_CELLS:
                repeats = MORE_REPEATS
        taken_at_its_word = last and (not cls.decides or too_wide > MOST_TOO_WIDE)
        return made | {
            **sums,
            "near": nearest(made["precision"], np.arange(len(core) + 1), taken_at_its_word),
            "core": core,
            "inner": np.array([inner]),
            "repeats": np.array([repeats]),
            "too_wide": np.array([too_wide]),
            "hand_over": np.array([last and too_wide > MOST_TOO_WIDE]),
            "lenience": np.array([lenience]),
            "round": np.array([rounds]),
            "spreads": np.array(history),
            "undone": np.array([undone]),
            "last": np.array([last]),
            "end": np.array([int(states[0]["iteration"])]),
        }

    def _go_on(self) -> None:
        if math.isfinite(self._decider.lenience):
            self._weigh()
        super()._go_on()

    def _begin_measuring(self) -> None:
        # Where the particles are.
        self._arrays["way.bias"] = self._chain.bias.copy()
        self._arrays["way.theta"] = self._chain.theta.copy()

    @classmethod
    def check_knowledge(cls, problem: Problem, knowledge: Mapping[str, np.ndarray]) -> None:
        """Whether arrays from a file are what chains can know together.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        wanted = wanted_sums(problem)
        check_knowledge(knowledge, in_play(problem), problem.features.n_variables, wanted)

    def _weigh(self) -> None:
        """Bring the weight of the present state up to date."""

    def counters(self) -> dict[str, float]:
        """Running totals and rates since warm-up."""
        counters = self._arrays["counters"]
        decided = max(counters[codes.STRETCHES], 1.0)
        return {
            "iterations": float(max(0, self._after_warm_up())),
            "stretches": float(counters[codes.STRETCHES]),
            "stretches_accepted": float(counters[codes.STRETCHES_ACCEPTED]),
            "too_wide": float(counters[codes.TOO_WIDE]),
            "spread": math.sqrt(counters[codes.WEIGHT_SQUARES] / decided / 2),
            "inner": float(counters[codes.INNER]),
            "inner_accepted": float(counters[codes.INNER_ACCEPTED]),
            "shorts": float(counters[codes.SHORTS]),
            "shorts_accepted": float(counters[codes.SHORTS_ACCEPTED]),
            "walks": float(counters[codes.WALKS]),
            "walks_accepted": float(counters[codes.WALKS_ACCEPTED]),
        }


class EliminationEngine(StretchEngine):
    """Stretches decided by log Z, eliminated along the graph."""

    name: ClassVar[str] = "exact"
    takes_blanks: ClassVar[bool] = True
    decides: ClassVar[bool] = True

    def _oracle(self) -> Any:
        from edgewise.kernels.oracles import Elimination

        p, count = self.problem.features.n_variables, len(self._candidates)
        return Elimination(room_of_this_thread(p, count, int(self.settings.cells)))

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Learn in warm-up, decide after it."""
        self._source = self._oracle()  # engines move from thread to thread, rooms do not
        return super().advance(iterations, thin)

    def _weigh(self) -> None:
        self._perform(codes.WEIGH, self._empty_school(), self._after_warm_up(), 0, -1, self._recorder(0, 0))


_rooms = threading.local()


def room_of_this_thread(p: int, candidates: int, cells: int) -> Any:
    """Scratch for eliminations: it holds nothing between calls, so that all chains of a thread share it."""
    from edgewise.kernels.elimination import elimination_room

    key = (p, candidates, cells)
    if getattr(_rooms, "key", None) != key:
        _rooms.key, _rooms.room = key, elimination_room(*key)
    return _rooms.room


def counts_of(problem: Problem) -> int:
    """Sweeps of the particles that are counted at a draw of warm-up."""
    return COUNTS * min(MOST_COUNTS, max(1, -int(-problem.statistics.n_rows // ROWS_OF_COUNTS)))


def in_play(problem: Problem) -> np.ndarray:
    """The candidates that the surrogate knows: all that may be active."""
    chosen = np.flatnonzero(problem.prior.status != FORBIDDEN)
    features = len(chosen) + problem.features.n_variables
    if not fits_in_memory(problem):
        raise DataError(
            f"The surrogate of {features:,} parameters would take {4e-9 * features**2:.1f} GB; use "
            "engine='particle'."
        )
    return chosen


def fits_in_memory(problem: Problem) -> bool:
    """Whether the matrix of the surrogate is of a reasonable size."""
    features = problem.features.n_variables + np.count_nonzero(problem.prior.status != FORBIDDEN)
    return bool(4.0 * features**2 <= LARGEST_MATRIX)
