"""The exact engine for variables with any levels: the table of all joint states in mixed radix (11).

Moves are made in windows of a few variables (``kernels/windows.py``), which takes one pass over the table to
enter and one to leave, however many moves are made inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.blanks import bind_blanks, first_fillings
from edgewise.engines.common import (
    BLANKS_KEY,
    LineEngine,
    child,
    children,
    is_free,
    prior_rules,
    prior_state,
)
from edgewise.engines.protocol import Problem
from edgewise.engines.settings import ExactSettings
from edgewise.errors import DataError
from edgewise.kernels import codes
from edgewise.kernels.codes import FORBIDDEN
from edgewise.scales import BINARY, BLUME_CAPEL, Scale, Scales, check_cliques

MOST_STATES = 1 << 20
"""Most joint states that are listed."""

WINDOW_STATES = 4096
ROUNDS = 4
RECORDED_BLOCKS = 1 << 18


def threshold_lines(scale: Scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines along which the thresholds of a variable move: values of the levels, steps, constants (11.7).

    One line per level, of two cells, where the thresholds are free, so that no level is a reference; one line
    per coordinate otherwise.
    """
    if scale.kind in (BINARY, BLUME_CAPEL):
        steps = np.eye(scale.n_thresholds)
        return steps @ scale.basis.T, steps, np.zeros(len(steps))
    values = np.eye(scale.n_levels)
    return values, 2.0 * scale.basis, np.full(len(values), 1.0 / scale.n_levels)


def _too_many_states(scales: Scales) -> str:
    """What to say of more states than can be listed, with what would fit."""
    p = len(scales)
    fit = int(np.searchsorted(np.cumprod(np.sort(scales.levels.astype(float))), MOST_STATES, side="right"))
    most, states = int(scales.levels.max()), scales.n_states
    count = f"{states:,}" if states < 10**12 else f"{float(states):.3g}"
    alike = f"{fit} of these" if scales.levels.min() == most else f"the {fit} with fewest levels"
    return (
        f"The {p} variables have {count} joint states; the exact engine sums over all of them and is limited "
        f"to {MOST_STATES:,} where there are more than two levels. Choose variables with columns "
        f"(at most {alike} fit), merge levels, or cut all levels in two with binarize='>...', for "
        "which any engine will do."
    )


class LevelEngine(LineEngine):
    """One exact chain over variables with any levels; see ``engines/protocol.py``."""

    name: ClassVar[str] = "exact"
    Settings: ClassVar[type] = ExactSettings
    takes_levels: ClassVar[bool] = True
    takes_blanks: ClassVar[bool] = True
    scales: Scales

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        assert problem.scales is not None
        self.scales = problem.scales
        names = None if problem.rows is None else problem.rows.names
        check_cliques(self.scales, problem.features.members, names)
        self._check_size()

    def _check_size(self) -> None:
        """Refuse more states than can be listed."""
        if self.scales.n_states > MOST_STATES:
            raise DataError(_too_many_states(self.scales))

    def _create(self, seeds: Sequence[np.random.SeedSequence], start: str) -> None:
        from edgewise.kernels.random import scalar_stream

        stream_seed, start_seed, own_seed = seeds
        problem, scales = self.problem, self.scales
        n_cliques = problem.features.n_cliques
        dimension = scales.dimensions(problem.features.members)
        graph = self._empty_graph()
        statistics = problem.statistics
        self.iteration = 0
        self._arrays = {
            "rows": np.array([float(statistics.n_rows)]),
            "feature_singles": np.array(statistics.singles, float),
            "feature_sums": np.array(statistics.cliques, float),
            "score_centres": self._score_centres(),
            "theta": np.zeros(n_cliques),
            "bias": np.zeros(scales.n_biases),
            "blocks": np.zeros(max(1, int(dimension[dimension > 1].sum()))),
            **prior_state(problem.prior, np.random.default_rng(children(start_seed, 1)[0])),
            "degree": graph.degree,
            "adjacent": graph.adjacent,
            "listed": graph.listed,
            "place": graph.place,
            "counts": graph.counts,
            "stream": scalar_stream(stream_seed),
            "tallies": np.zeros((codes.TALLIES, n_cliques)),
            "counters": np.zeros(codes.COUNTERS),
            **first_fillings(problem, np.random.default_rng(child(own_seed, BLANKS_KEY))),
        }
        self._bind()
        self._place_start(start, np.random.default_rng(start_seed))
        self._begin(own_seed, start)
        self._derive()
        self._renew()

    def _score_centres(self) -> np.ndarray:
        """Mean scores of the data with half a row added to each level: where lines are centred (11.5)."""
        scales, statistics = self.scales, self.problem.statistics
        result = np.zeros((len(scales), max(scale.dimension for scale in scales)))
        for i, scale in enumerate(scales):
            own = statistics.singles[scales.bias_start[i] : scales.bias_start[i + 1]]
            constant = scale.scores[0] - scale.basis[0] @ scale.projection
            sums = own @ scale.projection + constant * statistics.n_rows
            sums = sums + 0.5 * scale.scores.sum(axis=0)
            result[i, : scale.dimension] = sums / (statistics.n_rows + 0.5 * scale.n_levels)
        return result

    def _empty_graph(self) -> Any:
        from edgewise.kernels.graph import LevelGraph, empty_graph

        features = self.problem.features
        plain = empty_graph(features.members, self.problem.prior.status, features.n_variables)
        return LevelGraph(dimension=self.scales.dimensions(features.members), **plain._asdict())

    def _bind(self) -> None:
        """Hand the arrays to the kernels as named tuples (``kernels/level_lines.py``)."""
        from edgewise.kernels.level_chain import Potentials
        from edgewise.kernels.level_lines import LevelChain, LevelRules, level_work
        from edgewise.kernels.state import Sums

        scales, arrays, members = self.scales, self._arrays, self.problem.features.members
        p, most = len(scales), int(scales.levels.max())
        d = max(scale.dimension for scale in scales)
        t = max(scale.n_thresholds for scale in scales)
        scores, basis = np.zeros((p, most, d)), np.zeros((p, most, t))
        offset, projection, gram = np.zeros((p, d)), np.zeros((p, t, d)), np.zeros((p, d, d))
        lines = [threshold_lines(scale) for scale in scales]
        line_start = np.concatenate([[0], np.cumsum([len(values) for values, _, _ in lines])])
        line_values, line_steps = np.zeros((line_start[-1], most)), np.zeros((line_start[-1], t))
        for i, (scale, (values, steps, _)) in enumerate(zip(scales, lines)):
            levels, k, n = scale.n_levels, scale.dimension, scale.n_thresholds
            scores[i, :levels, :k], basis[i, :levels, :n] = scale.scores, scale.basis
            projection[i, :n, :k] = scale.projection
            offset[i, :k] = scale.scores[0] - scale.basis[0] @ scale.projection
            gram[i, :k, :k] = scale.projection.T @ scale.projection
            part = slice(line_start[i], line_start[i + 1])
            line_values[part, :levels], line_steps[part, :n] = values, steps
        dimension = scales.dimensions(members)
        self._rules = LevelRules(
            levels=scales.levels.copy(),
            dims=np.array([scale.dimension for scale in scales], np.int64),
            scores=scores,
            offset=offset,
            projection=projection,
            gram=gram,
            centres=arrays["score_centres"],
            bias_start=scales.bias_start.copy(),
            weight_start=scales.weight_start(members),
            block_start=np.concatenate([[0], np.cumsum(np.where(dimension > 1, dimension, 0))]),
            line_start=line_start,
            line_values=line_values,
            line_steps=line_steps,
            line_constant=np.concatenate([constant for _, _, constant in lines]),
            line_variable=np.repeat(np.arange(p), np.diff(line_start)),
            pair_index=np.zeros((0, 0), np.int32),
            prior=prior_rules(self.problem.prior, arrays),
        )
        self._basis = basis
        self._sums = Sums(arrays["rows"], arrays["feature_singles"], arrays["feature_sums"])
        self._blanks = bind_blanks(self.problem, arrays, arrays["feature_singles"], arrays["feature_sums"])
        moving = ("degree", "adjacent", "listed", "place", "counts")
        graph = self._empty_graph()._replace(**{name: arrays[name] for name in moving})
        own = {name: arrays[name] for name in LevelChain._fields if name != "graph"}
        self._chain = LevelChain(graph=graph, **own)
        self._work = level_work(scales.levels, int(dimension.max(initial=1)))
        cells = self._work.features.shape[0]
        count = len(members)
        self._potentials = Potentials(
            np.zeros((p, most)), np.zeros((count, cells)), np.zeros((count, 2), int)
        )

    def _place_start(self, start: str, rng: np.random.Generator) -> None:
        scales, statistics = self.scales, self.problem.statistics
        for i, scale in enumerate(scales):
            own = slice(scales.bias_start[i], scales.bias_start[i + 1])
            if scale.kind == BLUME_CAPEL:
                continue
            counts = np.full(scale.n_levels, statistics.n_rows / scale.n_levels)
            if scale.kind == BINARY:
                counts = np.array(
                    [statistics.n_rows - statistics.singles[own][0], statistics.singles[own][0]]
                )
            else:
                counts = counts + 2.0 * scale.basis @ statistics.singles[own]
            self._chain.bias[own] = scale.coordinates(np.log(np.maximum(counts, 0.0) + 0.5))
        self._start_graph(start, rng)

    def _activate(self, active: np.ndarray, values: np.ndarray) -> None:
        super()._activate(active, values)
        for a, value in zip(active, values):
            size = int(self._chain.graph.dimension[a])
            if size > 1:
                begin = self._rules.block_start[a]
                self._chain.blocks[begin : begin + size] = value
                self._chain.theta[a] = abs(value)

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        self._arrays["scan"] = np.ones(self.problem.features.n_cliques)
        self._arrays["table"] = np.zeros(self.scales.n_states)

    def _derive(self) -> None:
        from edgewise.kernels.level_chain import LevelScan
        from edgewise.kernels.windows import Window, windows_of

        levels = self.scales.levels
        place = windows_of(levels, min(WINDOW_STATES, max(64, int(self.scales.n_states**0.75))))
        sizes = np.where(place, levels, 1).prod(axis=1)
        split = int(np.searchsorted(np.cumprod(levels), self.scales.n_states**0.5)) + 1
        largest = int(sizes.max())
        self._source = Window(
            states=self._arrays["table"],
            inner=np.zeros(largest),
            factor=np.ones(largest),
            digits=np.zeros((len(levels), largest), np.uint8),
            low=np.zeros(int(levels[:split].prod()), np.int64),
            high=np.zeros(int(levels[split:].prod()), np.int64),
            place=place,
            levels=self._rules.levels,
            size=np.zeros(1, np.int64),
            scale=np.zeros(int(np.prod(np.sort(levels)[-2:]))),
        )
        status = self.problem.prior.status
        hot = np.flatnonzero(status != FORBIDDEN)
        probability = np.where(is_free(status), self._arrays["scan"], 0.0)[hot]
        self._scan = LevelScan(hot=hot, probability=probability, rounds=ROUNDS, split=split)

    def _adapt(self) -> None:
        if self.iteration >= self.warm_up:
            self._arrays["scan"][:] = self._interest(self.settings.scan_floor)
            self._end_warm_up()
            self._derive()

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        return self._flip_counters()

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.level_chain import run_levels

        return run_levels(
            self._rules,
            self._basis,
            self._sums,
            self._chain,
            self._source,
            self._scan,
            self._work,
            self._potentials,
            self._blanks,
            self._after_warm_up(),
            iterations,
            thin,
            recorder,
        )

    def _recorder(self, draws: int, entries: int) -> Any:
        from edgewise.kernels.state import BlockRecorder

        room = len(self._arrays["blocks"]) + (RECORDED_BLOCKS if draws else 0)
        matrices = (np.zeros(draws + 1, np.int64), np.zeros(room))
        places = (self._rules.block_start, self._chain.graph.dimension)
        return BlockRecorder._make((*super()._recorder(draws, entries), *matrices, *places))

    def _harvest(self, recorder: Any) -> Draws:
        """The draws of a recorder, each with its candidates in order and their matrices beside them."""
        plain = super()._harvest(recorder)
        if not (self._chain.graph.dimension > 1).any():
            return plain
        count, entries = len(plain), int(plain.indptr[-1])
        dimension = self._chain.graph.dimension
        size = np.where(dimension > 1, dimension, 0)
        drawn = recorder.indices[:entries]
        draw = np.repeat(np.arange(count), plain.n_edges)
        begin = np.cumsum(size[drawn]) - size[drawn]
        order = np.lexsort((drawn, draw))
        places = [np.arange(begin[k], begin[k] + size[drawn[k]]) for k in order]
        blocks = recorder.blocks[np.concatenate([np.zeros(0, np.int64), *places])]
        return plain.with_blocks(blocks, recorder.block_indptr[: count + 1].copy())
