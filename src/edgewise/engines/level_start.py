"""Where chains over variables with any levels start: a rough sparse fit, as ``start.py`` is for two.

Stochastic approximation with persistent particles: couplings climb the difference between the data's and the
particles' features, in units of their standard deviation, and are pulled to zero by a soft threshold of some
standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.engines.level_features import (
    data_sums,
    data_variances,
    in_play,
    particle_features,
    product_rows,
)
from edgewise.engines.levels import LevelEngine
from edgewise.engines.protocol import Problem
from edgewise.kernels.codes import SEPARATE

REACH = (2.5, 3.5)
# Particles of the fit.
FITTED_WITH = 1024
FIT_STEPS = 160
FIRST_STEP = 0.25
LARGEST_FITTED = 8.0


# Arrays of the particles.
SWARM = ("X", "F", "w", "lanes", "cursor", "split", "sites", "thresholds")


class FittedLevelEngine(LevelEngine):
    """A chain over variables with any levels that starts at a rough fit, whatever their number."""

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        self._candidates, self._offset = in_play(problem)
        self._product = product_rows(self.scales, problem.features.members[self._candidates, :2])

    def _check_size(self) -> None:
        """The states are not listed, however many there are."""

    def _level_swarm(self) -> Any:
        """The particles of the state as kernels read them (``kernels/level_swarm.py``)."""
        from edgewise.kernels.level_particles import LevelSwarm

        arrays, rules = self._arrays, self._rules
        n, d = arrays["X"].shape[1], rules.scores.shape[2]
        cells = int(np.prod(np.sort(rules.levels)[-2:]))
        return LevelSwarm(
            X=arrays["X"],
            F=arrays["F"],
            w=arrays["w"],
            lanes=arrays["lanes"],
            cursor=arrays["cursor"],
            split=int(arrays["split"][0]),
            sites=int(arrays["sites"][0]),
            change=np.zeros((2, d, n), np.float32),
            slots=tuple(np.zeros((3, n), np.int64)),
            levels=rules.levels,
            dims=rules.dims,
            first=self.scales.score_start.copy(),
            scores=rules.scores.astype(np.float32),
            thresholds=arrays["thresholds"],
            matrix=np.zeros((d, d), np.float32),
            factors=np.zeros((3, max(cells, rules.scores.shape[1])), np.float32),
            bias_start=rules.bias_start,
            basis=self._basis,
            block_start=rules.block_start,
            line_variable=rules.line_variable,
        )

    def _put_particles(self, states: np.ndarray, seed: np.random.SeedSequence) -> None:
        """Take particles, known by their scores, into the state; all of one group."""
        from edgewise.kernels.random import lane_streams

        n = states.shape[1]
        self._arrays |= {
            "X": states,
            "F": np.zeros_like(states),
            "w": np.ones(n, np.float32),
            "lanes": lane_streams(np.random.SeedSequence([*map(int, seed.generate_state(4)), n]), n),
            "cursor": np.zeros(1, np.int64),
            "split": np.ones(1, np.int64),
            "sites": np.ones(1, np.int64),
            "thresholds": np.zeros((len(self.scales), int(self.scales.levels.max()))),
        }

    def _shifts(self) -> np.ndarray:
        """How far the thresholds move along the lines of the parameters, against their change (11.5)."""
        scales, centres = self.scales, self._arrays["score_centres"]
        result = np.zeros((int(self._offset[-1]), scales.n_biases))
        for k, (i, j) in enumerate(self.problem.features.members[self._candidates, :2].tolist()):
            own = result[self._offset[k] : self._offset[k + 1]]
            for here, there, turned in ((i, j, False), (j, i, True)):
                scale, part = scales[here], slice(scales.bias_start[here], scales.bias_start[here + 1])
                m = centres[there, : scales[there].dimension]
                by_score = np.multiply.outer(scale.projection.T, m)  # (d_here, t, d_there)
                moved = by_score.transpose(2, 0, 1) if turned else by_score.transpose(0, 2, 1)
                own[:, part] += moved.reshape(len(own), -1)
        return result

    def _means(self, swarm: Any, chain: Any, follow: int, counts: int) -> np.ndarray:
        """Mean features of the particles after some sweeps at new parameters, over so many sweeps more."""
        from edgewise.kernels.level_swarm import gather

        scales, n = self.scales, swarm.X.shape[1]
        levels = np.zeros((len(scales), int(scales.levels.max())))
        scores, together = np.zeros(len(swarm.X)), np.zeros((len(swarm.X), len(swarm.X)))
        gather(follow, counts, swarm, chain, levels, scores, together)
        singles = [
            scores[scales.score_start[i] : scales.score_start[i + 1]]
            if scale.dimension > 1
            else levels[i, : scale.n_levels] @ scale.basis
            for i, scale in enumerate(scales)
        ]
        return np.concatenate([*singles, together[self._product]]) / (counts * n)

    def _follow(self, answers: np.ndarray, sweeps: int) -> None:
        """Gibbs sweeps of particles (variables, n) at the present parameters."""
        from edgewise.kernels.level_walk import follow

        weight = np.zeros((answers.shape[1], int(self.scales.levels.max())))
        follow(sweeps, self._rules, self._basis, self._chain, self._potentials, answers, weight)

    def _start_at_rough_fit(self, answers: np.ndarray, reach: float) -> None:
        """Bring the chain to the fit, and the particles along with it."""
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
            self._follow(answers, 1)
            features = particle_features(problem, self._candidates, answers)
            difference = sums - features.mean(axis=1)
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
        self._chain.blocks[:] = 0.0
        for k in active.tolist():
            a, own = int(self._candidates[k]), value[self._offset[k] : self._offset[k + 1]]
            self._chain.theta[a] = own[0] if size[k] == 1 else strength[k]
            if size[k] > 1:
                begin = int(self._rules.block_start[a])
                self._chain.blocks[begin : begin + size[k]] = own
