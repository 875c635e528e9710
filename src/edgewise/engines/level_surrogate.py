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

from edgewise.draws.draws import Draws
from edgewise.engines.blanks import lean_blanks, typical_sums, wanted_sums
from edgewise.engines.common import read_settings
from edgewise.engines.levels import RECORDED_BLOCKS, LevelEngine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.kernels.codes import FORBIDDEN, SEPARATE
from edgewise.scales import BLUME_CAPEL, Scales

ROUNDS = (10, 20, 20, 40, 80, 160, 160)
FOLLOWING = 6
CAUTION = (0.5, 0.7, 0.9)
LARGEST_MATRIX = 4000
# A feature that no particle shows would have no variance: it gets this share of the data's own.
VARIANCE_FLOOR = 0.3
RIDGE = 1e-3
# The rough fit at which chains start: steps, their first size, soft threshold in standard errors.
FIT_STEPS = 160
FIRST_STEP = 0.25
REACH = (2.5, 3.5)
LARGEST_FITTED = 8.0


@dataclass(frozen=True)
class LevelSurrogateSettings:
    """Settings of the surrogate for any levels; nobody needs to touch them.

    Attributes
    ----------
    particles : int
        Particles of each chain that the averages are learned from.
    warm_up : int
        Most draws of each chain in a round of warm-up.
    thin : int
        Iterations between kept draws.
    sweeps : int
        Sweeps over the candidates in an iteration.
    """

    particles: int = 1024
    warm_up: int = 160
    thin: int = 1
    sweeps: int = 8


class LevelSurrogateEngine(LevelEngine):
    """One chain on the surrogate; see ``engines/protocol.py``. Every chain starts at a rough fit."""

    name: ClassVar[str] = "surrogate"
    Settings: ClassVar[type] = LevelSurrogateSettings
    takes_levels: ClassVar[bool] = True
    takes_blanks: ClassVar[bool] = True

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        for name in ("particles", "warm_up", "sweeps"):
            if getattr(self.settings, name) < 2 - (name != "particles"):
                raise DataError(f"{name} is too small for the surrogate engine.")
        self._candidates, self._offset = in_play(problem)
        self._knowledge: Mapping[str, np.ndarray] | None = None

    def _check_size(self) -> None:
        """The states are not listed, however many there are."""

    @property
    def meeting(self) -> int | None:
        """The iteration at which the chains meet next."""
        return self.warm_up if self._knowledge is None or not self._knowledge["last"][0] else None

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        rng = np.random.default_rng(seed)
        levels = self.scales.levels
        self._arrays["answers"] = np.empty((len(levels), self.settings.particles), np.int64)
        for i, scale in enumerate(self.scales):
            own = slice(self.scales.bias_start[i], self.scales.bias_start[i + 1])
            share = np.exp(scale.basis @ self._chain.bias[own])
            self._arrays["answers"][i] = rng.choice(
                scale.n_levels, self.settings.particles, p=share / share.sum()
            )
        self._arrays["round"] = np.zeros(1, np.int64)
        self._derive()
        self._start_at_rough_fit(rng.uniform(*REACH))
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
        self._weight = np.zeros((self.settings.particles, int(self.scales.levels.max())))

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
        for _ in range(iterations):
            if self._knowledge is not None:
                self._walk_on(1, -1, self._recorder(0, 0))
            self._follow(FOLLOWING)
            self._add_up()
        self.iteration += iterations
        return Draws.empty(len(self._arrays["bias"]))

    def _follow(self, sweeps: int) -> None:
        from edgewise.kernels.level_walk import follow

        follow(
            sweeps, self._rules, self._basis, self._chain, self._potentials, self._arrays["answers"],
            self._weight,
        )  # fmt: skip

    def _features(self) -> np.ndarray:
        """Features of all particles, those of the thresholds and then products of scores: (features, n)."""
        answers, scales = self._arrays["answers"], self.scales
        scored = [scale.scores[answers[i]].T for i, scale in enumerate(scales)]
        parts = [scale.basis[answers[i]].T for i, scale in enumerate(scales)]
        for i, j in self.problem.features.members[self._candidates, :2].tolist():
            parts.append((scored[i][:, None, :] * scored[j][None, :, :]).reshape(-1, answers.shape[1]))
        return np.concatenate(parts)

    def _add_up(self) -> None:
        from threadpoolctl import threadpool_limits

        arrays, n = self._arrays, self.settings.particles
        draw = int(arrays["lesson.filled"][0])
        features = self._features()
        mean = features.mean(axis=1)
        arrays["lesson.means"][draw] = mean
        # On one thread the sums have one order, whatever the machine has to offer.
        with threadpool_limits(1):
            deviation = (features - mean[:, None]).astype(np.float32)
            arrays["lesson.covariance"] += (deviation @ deviation.T) / (n - 1)
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

    def _start_at_rough_fit(self, reach: float) -> None:
        """A sparse fit by stochastic approximation: couplings climb the difference of data and particles."""
        problem, scales = self.problem, self.scales
        rows, nb = max(float(problem.statistics.n_rows), 1.0), scales.n_biases
        free = np.repeat(problem.prior.status[self._candidates] <= SEPARATE, np.diff(self._offset))
        sums = data_sums(problem, self._candidates) / rows
        members = problem.features.members[self._candidates, :2]
        variance = data_variances(problem, self._candidates, self._offset)
        centres = self._arrays["score_centres"]
        value, spread = np.zeros(int(self._offset[-1])), np.sqrt(variance[nb:])
        status = problem.prior.status[self._candidates]
        for step in range(FIT_STEPS if problem.statistics.n_rows > 0 else 0):
            rate = FIRST_STEP / (1 + 4 * step / FIT_STEPS)
            threshold = reach / np.sqrt(rows) * max(0.25, 1 - 1.5 * step / FIT_STEPS)
            self._follow(1)
            difference = sums - self._features().mean(axis=1)
            bias_change = rate * difference[:nb] / variance[:nb]
            # Centred products: what the margins explain is theirs.
            centred = difference[nb:] - self._by_margins(difference[:nb], members, centres)
            moved = value * spread + rate * centred / spread
            moved = np.sign(moved) * np.maximum(np.abs(moved) - rate * threshold, 0.0)
            new = np.clip(np.where(free, moved / spread, value), -LARGEST_FITTED, LARGEST_FITTED)
            self._chain.bias[:] += bias_change + self._shift(value - new, members, centres)
            value = new
            self._put(value, status)

    def _by_margins(self, singles: np.ndarray, members: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """What differences of the margins add to the means of the products, to first order."""
        start, scales = self.scales.bias_start, self.scales
        score = [singles[start[i] : start[i + 1]] @ scale.projection for i, scale in enumerate(scales)]
        parts = [np.zeros(0)]
        for i, j in members.tolist():
            m_i, m_j = centres[i, : scales[i].dimension], centres[j, : scales[j].dimension]
            parts.append((np.outer(score[i], m_j) + np.outer(m_i, score[j])).ravel())
        return np.concatenate(parts)

    def _shift(self, change: np.ndarray, members: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Thresholds that keep the margins when the parameters lose `change`."""
        result, start = np.zeros(self.scales.n_biases), self.scales.bias_start
        for k, (i, j) in enumerate(members.tolist()):
            first, second = self.scales[i], self.scales[j]
            A = change[self._offset[k] : self._offset[k + 1]].reshape(first.dimension, second.dimension)
            if A.any():
                result[start[i] : start[i + 1]] += first.projection @ (A @ centres[j, : second.dimension])
                result[start[j] : start[j + 1]] += second.projection @ (A.T @ centres[i, : first.dimension])
        return result

    def _put(self, value: np.ndarray, status: np.ndarray) -> None:
        """Make the chain have these parameters; candidates whose parameters are zero are not active."""
        from edgewise.kernels.graph import place_all

        size = np.diff(self._offset)
        for name in ("degree", "listed", "place", "counts"):
            self._arrays[name][:] = getattr(self._empty_graph(), name)
        strength = np.sqrt(np.add.reduceat(value**2, self._offset[:-1]) / size) if len(size) else np.zeros(0)
        active = np.flatnonzero((strength > 0) | (status > SEPARATE))
        place_all(np.asarray(self._candidates[active], np.int64), self._chain.graph)
        self._chain.theta[:] = 0.0
        for k in active.tolist():
            a, own = int(self._candidates[k]), value[self._offset[k] : self._offset[k + 1]]
            self._chain.theta[a] = own[0] if size[k] == 1 else strength[k]
            if size[k] > 1:
                begin = int(self._rules.block_start[a])
                self._chain.blocks[begin : begin + size[k]] = own

    def _walk_on(self, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.level_chain import BlockRecorder
        from edgewise.kernels.level_walk import walk_levels

        draws = len(recorder.biases)
        room = len(self._arrays["blocks"]) + (RECORDED_BLOCKS if draws else 0)
        self._recorded = BlockRecorder(np.zeros(draws + 1, np.int64), np.zeros(room))
        return walk_levels(
            int(self.settings.sweeps), self._rules, self._chain, self._surrogate, self._walk,
            self._blanks, self._after_warm_up(), iterations, thin, recorder, self._recorded,
        )  # fmt: skip

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        return self._walk_on(iterations, thin, recorder)

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
        covariance = np.sum([state["lesson.covariance"] for state in states], axis=0) / draws
        if before is not None and rounds <= len(CAUTION):
            # Early averages come from draws far off; half of what was known before keeps steps short.
            phi, mean = (phi + before["phi"]) / 2, (mean + before["mean"]) / 2
            covariance = (covariance + before["covariance"]) / 2
        caution = CAUTION[rounds - 1] if rounds <= len(CAUTION) else 1.0
        made = regression(problem, candidates, offset, phi, mean, covariance, caution)
        return made | {
            **sums,
            "phi": phi,
            "mean": mean,
            "covariance": covariance,
            "mismatch": np.array([mismatch(problem, candidates, offset, mean)]),
            "round": np.array([rounds]),
            "last": np.array([rounds >= len(rounds_of(chosen.warm_up))]),
            "end": np.array([int(states[0]["iteration"])]),
        }

    @classmethod
    def restore(
        cls,
        problem: Problem,
        settings: Mapping[str, Any] | None,
        state: Mapping[str, np.ndarray],
        knowledge: Mapping[str, np.ndarray] | None = None,
    ) -> Any:
        """Rebuild a chain from :meth:`state` and what the chains know together."""
        self = cls._unpacked(problem, settings, state)
        self._knowledge = knowledge
        fresh = knowledge is not None and int(knowledge["round"][0]) > int(state["round"][0])
        if fresh:
            assert knowledge is not None
            self._arrays["round"] = np.array(knowledge["round"])
        self._bind()
        self._derive()
        if fresh and self.iteration < self.warm_up:
            self._learn_anew()
        elif fresh:
            learning = [name for name in self._arrays if name.startswith("lesson.")]
            for name in ("answers", *learning):
                del self._arrays[name]
            self._end_warm_up()
        return self

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
            "round": np.zeros(1, np.int64),
            "end": np.zeros(1, np.int64),
            "last": np.zeros(1, bool),
            **wanted_sums(problem),
        }
        for name, like in wanted.items():
            if knowledge[name].dtype != like.dtype or knowledge[name].shape != like.shape:
                raise ValueError(f"{name!r} is {knowledge[name].dtype} {knowledge[name].shape}")
            if not np.isfinite(knowledge[name]).all():
                raise ValueError(f"{name!r} holds what is no finite number")
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


def in_play(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The candidates that the surrogate knows, and where their parameters begin, and the last end."""
    assert problem.scales is not None
    chosen = np.flatnonzero(problem.prior.status != FORBIDDEN)
    size = problem.scales.dimensions(problem.features.members)[chosen]
    features = int(size.sum()) + problem.scales.n_biases
    if features > LARGEST_MATRIX:
        raise DataError(
            f"The surrogate of these variables would have {features:,} parameters; at most "
            f"{LARGEST_MATRIX:,} are possible. Choose fewer variables, call nominal ones ordinal, or merge "
            "levels."
        )
    return chosen, np.concatenate([[0], np.cumsum(size)])


def first_surrogate(candidates: np.ndarray, offset: np.ndarray, n_biases: int) -> dict[str, np.ndarray]:
    """A stand-in of the right types for the first round, in which nothing moves."""
    total = int(offset[-1])
    return {
        "candidates": candidates,
        "offset": offset,
        "precision": np.zeros((total, total)),
        "pull": np.zeros(total),
        "bias_mean": np.zeros(n_biases),
        "bias_slope": np.zeros((total, n_biases)),
        "bias_root": np.eye(n_biases),
    }


def regression(
    problem: Problem,
    candidates: np.ndarray,
    offset: np.ndarray,
    phi: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    caution: float = 1.0,
) -> dict[str, np.ndarray]:
    """The averaged quadratic (10.1) as a regression with the thresholds integrated out (10.3).

    With a `caution` below one, that share of the way from what the particles show to what the data show.
    """
    from threadpoolctl import threadpool_limits

    assert problem.scales is not None
    rows, nb = float(problem.statistics.n_rows), problem.scales.n_biases
    sums = data_sums(problem, candidates)
    C = (covariance + covariance.T) / 2
    own = np.diag(C).copy()
    floor = VARIANCE_FLOOR * data_variances(problem, candidates, offset)
    np.fill_diagonal(C, own + np.maximum(0.0, floor - own) + RIDGE * own)
    with threadpool_limits(1):
        C *= rows
        pull = caution * (sums - rows * mean) + C @ phi
        bias_precision = C[:nb, :nb] + np.eye(nb) / problem.prior.bias_sd**2
        inverse = np.linalg.inv(bias_precision)
        inverse = (inverse + inverse.T) / 2
        slope = C[nb:, :nb] @ inverse
        precision = C[nb:, nb:] - slope @ C[:nb, nb:]
        least = 1e-6 * np.diag(C)[nb:] + 1e-12
        np.fill_diagonal(precision, np.maximum(np.diag(precision), least))
        return {
            "candidates": candidates,
            "offset": offset,
            "precision": np.ascontiguousarray((precision + precision.T) / 2),
            "pull": pull[nb:] - slope @ pull[:nb],
            "bias_mean": inverse @ pull[:nb],
            "bias_slope": np.ascontiguousarray(slope),
            "bias_root": np.linalg.cholesky(inverse),
        }


def data_sums(problem: Problem, candidates: np.ndarray) -> np.ndarray:
    """Sums of all features over the rows: those of the thresholds, then those of the candidates."""
    assert problem.scales is not None
    start = problem.scales.weight_start(problem.features.members)
    pairs = [problem.statistics.cliques[start[a] : start[a + 1]] for a in candidates]
    return np.concatenate([problem.statistics.singles, *pairs])


def mismatch(problem: Problem, candidates: np.ndarray, offset: np.ndarray, mean: np.ndarray) -> float:
    """Root mean square distance of the particles' means from the data's, in standard errors of these."""
    rows = float(problem.statistics.n_rows)
    if rows <= 0:
        return 0.0
    error = np.sqrt(data_variances(problem, candidates, offset) / rows)
    return float(np.sqrt(np.mean(((mean - data_sums(problem, candidates) / rows) / error) ** 2)))


def data_variances(problem: Problem, candidates: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Variance of every feature in the data, products as if their variables were independent."""
    scales: Scales | None = problem.scales
    assert scales is not None
    rows = float(problem.statistics.n_rows)
    parts, first, second = [], [], []
    for i, scale in enumerate(scales):
        own = problem.statistics.singles[scales.bias_start[i] : scales.bias_start[i + 1]]
        share = level_shares(scale, own, rows)
        parts.append(share @ scale.basis**2 - (share @ scale.basis) ** 2)
        first.append(share @ scale.scores)
        second.append(share @ scale.scores**2)
    for i, j in problem.features.members[candidates, :2].tolist():
        parts.append((np.outer(second[i], second[j]) - np.outer(first[i], first[j]) ** 2).ravel())
    return np.maximum(np.concatenate(parts), 1e-6)


def level_shares(scale: Any, sums: np.ndarray, rows: float) -> np.ndarray:
    """Shares of the levels of a variable, by the sums of its threshold features; half a row added to each."""
    n_levels = scale.n_levels
    if scale.kind == BLUME_CAPEL:
        return np.full(n_levels, 1.0 / n_levels)
    if scale.kind == "binary":
        counts = np.array([rows - sums[0], sums[0]])
    else:
        counts = rows / n_levels + 2.0 * scale.basis @ sums
    counts = np.maximum(counts, 0.0) + 0.5
    return np.asarray(counts / counts.sum())
