"""The particle engine for variables with any levels (docs/method.md, 7 and 11).

Groups, weights, penalty, budget and stirring are those of ``particle.py``; chain, start and records those of
``levels.py``. There are no swaps.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine
from edgewise.engines.level_features import data_variances, independent_answers, scores_of
from edgewise.engines.level_start import FITTED_WITH, REACH, FittedLevelEngine
from edgewise.engines.particle import MOST_AT_START, ParticleEngine, ParticleSettings

# Parameters up to which chains start at a rough fit.
MOST_FITTED = 3000


class LevelParticleEngine(ParticleEngine, FittedLevelEngine):
    """One particle chain over variables with any levels; see ``engines/protocol.py``."""

    name: ClassVar[str] = "particle"
    Settings: ClassVar[type] = ParticleSettings
    takes_levels: ClassVar[bool] = True

    def _rows_of_states(self) -> int:
        return int(self.scales.score_start[-1])

    def _first_states(self, n: int, rng: np.random.Generator, fitted: bool) -> np.ndarray:
        scales, p = self.scales, len(self.scales)
        size = FITTED_WITH if fitted else n
        answers = independent_answers(scales, self._chain.bias, size, rng)
        if fitted and int(self._offset[-1]) <= MOST_FITTED:
            before = {name: array.copy() for name, array in self._arrays.items()}
            self._start_at_rough_fit(answers, rng.uniform(*REACH))
            if self.active() > MOST_AT_START * p:
                for name, array in before.items():
                    self._arrays[name][...] = array
                answers = independent_answers(scales, self._chain.bias, n, rng)
        self._arrays["thresholds"] = np.zeros((p, int(scales.levels.max())))
        return scores_of(scales, answers[:, np.arange(n) % answers.shape[1]])

    def _swarm(self, n: int) -> Any:
        return self._level_swarm()

    def _scan_of(self, **visited: Any) -> Any:
        from edgewise.kernels.state import LineScan

        rules = self._rules
        # One line of every variable after the other: two of the same would share their noise.
        place = np.random.default_rng(self._arrays["seed"]).permutation(len(self.scales))
        rank = np.arange(len(rules.line_variable)) - rules.line_start[rules.line_variable]
        return LineScan(**visited, lines=np.lexsort((place[rules.line_variable], rank)))

    def _choose_rivals(self) -> None:
        """There are no swaps between pairs of variables with levels."""

    def _z_scores(self, rows: float) -> np.ndarray:
        problem, scales, centres = self.problem, self.scales, self._arrays["score_centres"]
        members, start = problem.features.members, scales.weight_start(problem.features.members)
        everyone, offset = np.arange(len(members)), start
        spread = data_variances(problem, everyone, offset)[scales.n_biases :]
        z = np.zeros(len(members))
        for a, (i, j) in enumerate(members[:, :2].tolist()):
            own = slice(start[a], start[a + 1])
            expected = np.outer(centres[i, : scales[i].dimension], centres[j, : scales[j].dimension]).ravel()
            apart = self._sums.cliques[own] / rows - expected
            z[a] = np.abs(apart * np.sqrt(rows / spread[own])).max()
        return z

    def _moments(self, states: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = states @ share
        return means, np.maximum(states**2 @ share - means**2, 0.0)

    def _cost_of_a_draw(self) -> float:
        return 1.5 * float(self.scales.levels.mean())

    def _swept_states(self) -> np.ndarray:
        from edgewise.kernels.level_swarm import sweep_swarm

        swarm = self._source
        moved = swarm._replace(
            X=swarm.X.copy(), F=swarm.F.copy(), lanes=swarm.lanes.copy(), cursor=np.zeros(1, np.int64)
        )
        sweep_swarm(moved, self._chain._replace(counters=np.zeros_like(self._chain.counters)))
        states: np.ndarray = moved.X
        return states

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        # Who answers for levels has to be there when the chain is compiled.
        import edgewise.kernels.blocks
        import edgewise.kernels.level_swarm  # noqa: F401

        return LineEngine._run(self, iterations, thin, recorder)
