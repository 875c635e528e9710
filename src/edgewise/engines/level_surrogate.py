"""The surrogate for variables with any levels, where their joint states are too many to list (11).

Warm-up learns it in rounds, as ``stretch.py`` does for two levels: every chain walks on the present
surrogate, particles follow it by Gibbs sweeps over levels, and at the end of the round the chains meet and
pool what they have seen. The features are products of scores, the parameters of a pair a block. Afterwards
the averages are frozen and the surrogate is taken at its word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from edgewise.draws.draws import Draws
from edgewise.engines.blanks import as_made, lean_blanks, typical_sums, wanted_sums
from edgewise.engines.common import read_settings
from edgewise.engines.lessons import RoundsEngine
from edgewise.engines.level_features import (
    answers_of,
    data_sums,
    in_play,
    independent_answers,
    mismatch,
    particle_features,
    scores_of,
)
from edgewise.engines.level_regression import first_surrogate, regression
from edgewise.engines.level_start import FITTED_WITH, REACH, SWARM, FittedLevelEngine
from edgewise.engines.meter import (
    MOST_NEAR,
    POINTS,
    Meter,
    nearest,
    sparse_centre,
    sums_of,
    whose_terms,
)
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError

ROUNDS = (10, 20, 20, 40, 80, 80, 80)
# Averages are off by the root of rows over particles, in units of what the data say.
PARTICLES_PER_ROW, FEWEST_PARTICLES, MOST_PARTICLES = 3.0, 1024, 4096
# Sweeps after a draw of the surrogate before particles are looked at, and sweeps after which they are;
# products are summed at so many draws of a round, evenly.
FOLLOW, COUNTS, PRODUCTS = 3, 4, 8
# The same at each point of the way to a draw, where the error is measured.
PROBE_FOLLOWS, PROBE_COUNTS = 3, 6
CAUTION = (0.5, 0.7, 0.9)
LARGEST_MATRIX = 4000


@dataclass(frozen=True)
class LevelSurrogateSettings:
    """Settings of the surrogate for any levels; nobody needs to touch them.

    Attributes
    ----------
    particles : int
        Particles of each chain that the averages are learned from; 0 chooses them by the rows.
    warm_up : int
        Most draws of each chain in a round of warm-up.
    thin : int
        Iterations between kept draws.
    sweeps : int
        Sweeps over the candidates in an iteration.
    probes : int
        Iterations between measurements of how far the surrogate is off; 0 for none.
    """

    particles: int = 0
    warm_up: int = 160
    thin: int = 1
    sweeps: int = 8
    probes: int = 4


class LevelSurrogateEngine(RoundsEngine, FittedLevelEngine):
    """One chain on the surrogate; see ``engines/protocol.py``. Every chain starts at a rough fit."""

    name: ClassVar[str] = "surrogate"
    Settings: ClassVar[type] = LevelSurrogateSettings
    lesson: ClassVar[str] = "lesson."
    of_particles: ClassVar[tuple[str, ...]] = SWARM
    takes_levels: ClassVar[bool] = True
    takes_blanks: ClassVar[bool] = True

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        small = [name for name in ("warm_up", "sweeps") if getattr(self.settings, name) < 1]
        if small or self.settings.particles == 1:
            raise DataError(f"{(*small, 'particles')[0]} is too small for the surrogate engine.")
        features = int(self._offset[-1]) + self.scales.n_biases
        if features > LARGEST_MATRIX:
            raise DataError(
                f"The surrogate of these variables would have {features:,} parameters; at most "
                f"{LARGEST_MATRIX:,} are possible. Choose fewer variables, call nominal ones ordinal, merge "
                "levels, or use engine='particle'."
            )

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        rng = np.random.default_rng(seed)
        wanted = PARTICLES_PER_ROW * float(self.problem.statistics.n_rows)
        n = int(
            self.settings.particles or 64 * np.ceil(np.clip(wanted, FEWEST_PARTICLES, MOST_PARTICLES) / 64)
        )
        self._arrays["round"] = np.zeros(1, np.int64)
        self._derive()
        answers = independent_answers(self.scales, self._chain.bias, min(n, FITTED_WITH), rng)
        self._start_at_rough_fit(answers, rng.uniform(*REACH))
        self._put_particles(scores_of(self.scales, answers[:, np.arange(n) % answers.shape[1]]), seed)
        self._learn_anew()

    def _learn_anew(self) -> None:
        """Empty sums for the next round."""
        features = self.scales.n_biases + int(self._offset[-1])
        length = rounds_of(self.settings.warm_up)[int(self._arrays["round"][0])]
        self._arrays |= {
            "lesson.phi": np.zeros((length, features)),
            "lesson.means": np.zeros((length, features)),
            "lesson.occupied": np.zeros(len(self._candidates)),
            "lesson.covariance": np.zeros((features, features)),
            "lesson.products": np.zeros(1),
            "lesson.filled": np.zeros(1, np.int64),
        }

    def _derive(self) -> None:
        from edgewise.kernels.level_walk import LevelSurrogate, Walk

        knowledge, total = self._knowledge, int(self._offset[-1])
        lengths = rounds_of(self.settings.warm_up)
        self.warm_up = sum(lengths[: int(self._arrays["round"][0]) + 1])
        if knowledge is not None and knowledge["last"][0]:
            self.warm_up = int(knowledge["end"][0])
        own = first_surrogate(self._candidates, self._offset, self.scales.n_biases)
        own = own if knowledge is None else dict(knowledge)
        surrogate = LevelSurrogate(*(own[name] for name in LevelSurrogate._fields))
        places = self._places_of_sums()
        self._blanks, self._surrogate = lean_blanks(self._blanks, self.problem, surrogate, own, places)
        largest = int(np.diff(self._offset).max(initial=1))
        self._walk = Walk(
            np.zeros(total),
            np.zeros(total),
            np.zeros((largest, largest)),
            np.zeros(largest),
            np.zeros(largest),
        )
        self._meter = None
        if "probed" in self._arrays:
            self._prepare_meter(own)

    def _prepare_meter(self, known: Mapping[str, np.ndarray]) -> None:
        """Make ready to measure w of the draws (``meter.py``)."""
        from edgewise.kernels.level_lines import LevelChain

        problem, scales, nb = self.problem, self.scales, self.scales.n_biases
        theta = sparse_centre(known["phi"][nb:], known["occupied"], np.diff(self._offset))
        members = problem.features.members[self._candidates]
        self._meter = Meter(
            first=np.concatenate([known["bias_mean"] - theta @ known["bias_slope"], theta]),
            rows=float(problem.statistics.n_rows),
            sums=data_sums(as_made(problem, known), self._candidates),
            flat=1.0 / problem.prior.bias_sd**2,
            tilt=None,
            shift=sparse.csr_array(self._shifts()),
            offset=self._offset,
            near=whose_terms(known["near"], members, scales.bias_start),
            **{
                name: known[name]
                for name in ("precision", "pull", "bias_mean", "bias_slope", "bias_precision")
            },
        )
        moving = {name: np.zeros_like(self._arrays[name]) for name in ("theta", "bias", "blocks", "counters")}
        own = {name: self._arrays[name] for name in ("hyper", "stream", "tallies")}
        self._way = LevelChain(graph=self._empty_graph(), **moving, **own)
        self._particles = self._level_swarm()

    def _probe(self) -> None:
        """Measure w of the present state at two points of the way to it, forth and back in turns."""
        from edgewise.kernels.level_swarm import become

        assert self._meter is not None
        totals, nb = self._arrays["probed"], self.scales.n_biases
        phi = np.concatenate([self._chain.bias, self._parameters()])
        first = self._meter.first
        here = np.add.reduceat((phi != 0) | (first != 0), self._offset[:-1] + nb) > 0
        active = np.flatnonzero(here)
        means = np.zeros(len(phi))
        for t in POINTS[:: -1 if totals[0, 0] % 2 else 1]:
            between = first + t * (phi - first)
            become(active, between[nb:], self._candidates, self._offset, self._rules.block_start, self._way)
            self._way.bias[:] = between[:nb]
            means += self._means(self._particles, self._way, PROBE_FOLLOWS, PROBE_COUNTS) / len(POINTS)
        self._meter.add(totals, phi, means)

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up, and those of the measured error."""
        sums = super().edge_sums()
        if "probed" in self._arrays:
            sums |= sums_of(self._arrays["probed"], self._candidates, self.problem.features.n_cliques)
        return sums

    def _places_of_sums(self) -> np.ndarray:
        """Where the sums of the parameters in play lie among those of all candidates."""
        start = self._rules.weight_start
        parts = [np.arange(start[a], start[a + 1]) for a in self._candidates]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _renew(self) -> None:
        pass

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Learn in warm-up, walk after it."""
        if self.iteration >= self.warm_up:
            return super().advance(iterations, thin)
        if self.iteration + iterations > self.warm_up:
            raise ValueError("a block of iterations must not cross a meeting")
        swarm = self._level_swarm()
        for _ in range(iterations):
            if self._knowledge is not None:
                self._walk_on(0, 1, -1, self._recorder(0, 0))
            self._add_up(swarm)
        self.iteration += iterations
        return Draws.empty(len(self._arrays["bias"]))

    def _add_up(self, swarm: Any) -> None:
        from threadpoolctl import threadpool_limits

        arrays = self._arrays
        draw = int(arrays["lesson.filled"][0])
        arrays["lesson.means"][draw] = self._means(swarm, self._chain, FOLLOW, COUNTS)
        if draw % max(1, len(arrays["lesson.means"]) // PRODUCTS) == 0:
            features = particle_features(
                self.problem, self._candidates, answers_of(self.scales, swarm.X), np.float32
            )
            # On one thread the sums have one order, whatever the machine has to offer.
            with threadpool_limits(1):
                features -= features.mean(axis=1, keepdims=True)
                arrays["lesson.covariance"] += (features @ features.T) / (features.shape[1] - 1)
            arrays["lesson.products"] += 1.0
        arrays["lesson.phi"][draw] = np.concatenate([self._chain.bias, self._parameters()])
        arrays["lesson.occupied"] += self._chain.graph.place[self._candidates] >= 0
        arrays["lesson.filled"][0] = draw + 1

    def _parameters(self) -> np.ndarray:
        """Parameters of all candidates in play, one after the other."""
        size, a = np.diff(self._offset), self._candidates
        result = np.repeat(self._chain.theta[a], size)
        for k in np.flatnonzero(size > 1):
            begin = int(self._rules.block_start[a[k]])
            own = self._chain.blocks[begin : begin + size[k]]
            result[self._offset[k] : self._offset[k + 1]] = own if self._chain.graph.place[a[k]] >= 0 else 0.0
        return result

    def _walk_on(self, first: int, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.level_walk import walk_levels

        return walk_levels(
            int(self.settings.sweeps), self._rules, self._chain, self._surrogate, self._walk,
            self._blanks, first, iterations, thin, recorder,
        )  # fmt: skip

    def _measures(self) -> bool:
        return self.settings.probes > 0 and len(self._candidates) > 0

    @classmethod
    def pool(
        cls,
        problem: Problem,
        settings: Mapping[str, Any] | None,
        states: Sequence[Mapping[str, np.ndarray]],
        before: Mapping[str, np.ndarray] | None,
    ) -> dict[str, np.ndarray]:
        """What the chains, met in these states, know together, and whether they go on learning."""
        chosen = read_settings(cls.Settings, cls.name, settings)
        rounds = 1 if before is None else int(before["round"][0]) + 1
        problem, sums = typical_sums(problem, states, "feature_singles", "feature_sums")
        candidates, offset = in_play(problem)
        draws = sum(int(state["lesson.filled"][0]) for state in states)
        phi = np.sum([state["lesson.phi"].sum(axis=0) for state in states], axis=0) / draws
        mean = np.sum([state["lesson.means"].sum(axis=0) for state in states], axis=0) / draws
        products = sum(float(state["lesson.products"][0]) for state in states)
        covariance = np.sum([state["lesson.covariance"] for state in states], axis=0) / products
        if before is not None and rounds <= len(CAUTION):
            # Early averages come from draws far off; half of what was known before keeps steps short.
            phi, mean = (phi + before["phi"]) / 2, (mean + before["mean"]) / 2
            covariance = (covariance + before["covariance"]) / 2
        caution = CAUTION[rounds - 1] if rounds <= len(CAUTION) else 1.0
        made = regression(problem, candidates, offset, phi, mean, covariance, caution)
        last = rounds >= len(rounds_of(chosen.warm_up))
        occupied = np.sum([state["lesson.occupied"] for state in states], axis=0) / draws
        return made | {
            **sums,
            "near": nearest(made["precision"], offset, last and chosen.probes > 0),
            "occupied": occupied,
            "phi": phi,
            "mean": mean,
            "covariance": covariance,
            "mismatch": np.array([mismatch(problem, candidates, offset, mean)]),
            "round": np.array([rounds]),
            "last": np.array([last]),
            "end": np.array([int(states[0]["iteration"])]),
        }

    @classmethod
    def check_knowledge(cls, problem: Problem, knowledge: Mapping[str, np.ndarray]) -> None:
        """Whether arrays from a file are what chains can know together.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        assert problem.scales is not None
        candidates, offset = in_play(problem)
        nb, total = problem.scales.n_biases, int(offset[-1])
        wanted = first_surrogate(candidates, offset, nb) | {
            "phi": np.zeros(nb + total),
            "mean": np.zeros(nb + total),
            "covariance": np.zeros((nb + total, nb + total)),
            "mismatch": np.zeros(1),
            "occupied": np.zeros(len(candidates)),
            "near": np.zeros((len(candidates), 0), np.int32),
            "round": np.zeros(1, np.int64),
            "end": np.zeros(1, np.int64),
            "last": np.zeros(1, bool),
            **wanted_sums(problem),
        }
        for name, like in wanted.items():
            shape = like.shape
            if name == "near" and knowledge[name].ndim == 2:
                shape = (len(candidates), min(knowledge[name].shape[1], MOST_NEAR))
            if knowledge[name].dtype != like.dtype or knowledge[name].shape != shape:
                raise ValueError(f"{name!r} is {knowledge[name].dtype} {knowledge[name].shape}")
            if not np.isfinite(knowledge[name]).all():
                raise ValueError(f"{name!r} holds what is no finite number")
        near = knowledge["near"]
        if near.size and not (near.min() >= -1 and near.max() < len(candidates)):
            raise ValueError("'near' names candidates that do not exist")
        same = np.array_equal(knowledge["candidates"], candidates)
        if not same or not np.array_equal(knowledge["offset"], offset):
            raise ValueError("its candidates are others")
        if not 1 <= int(knowledge["round"][0]) <= len(ROUNDS) or not 0 <= int(knowledge["end"][0]) < 1 << 40:
            raise ValueError("its rounds are out of their range")

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        known = self._knowledge
        return {
            "iterations": float(max(0, self._after_warm_up())),
            "mismatch": 0.0 if known is None else float(known["mismatch"][0]),
        }


def rounds_of(longest: int) -> list[int]:
    """Draws of a chain in each round of warm-up.

    >>> rounds_of(30)
    [10, 20, 20, 30, 30, 30, 30]
    """
    return [min(longest, length) for length in ROUNDS]
