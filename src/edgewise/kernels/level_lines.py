"""Variables with any levels: the rules of a chain, and the lines of pairs and thresholds (11.5, 11.7).

``LevelRules`` are the rules of a chain over such variables; arrays are padded to the largest variable.

``levels[i]``, ``dims[i]``      number of levels and of scores of variable i
``scores[i, c, k]``             its scores: ``offset[i, k]`` + basis . ``projection[i, t, k]``
``gram[i, k, l]``               products of the columns of the projection
``centres[i, k]``               m_i, the mean scores of the data
``bias_start[i]``               where its threshold coordinates lie in ``chain.bias``
``weight_start[a]``             where the sums of candidate a lie; ``block_start[a]`` where its matrix lies in
                                ``chain.blocks``, if it has more than one parameter
``line_start[i]``               its threshold lines; of each ``line_values[n, c]`` the value of its levels,
                                ``line_steps[n, t]`` the step of the coordinates, ``line_constant[n]`` what
                                the values have beyond the basis, ``line_variable[n]`` the variable
``pair_index``                  empty: all candidates are listed, nothing asks for the pair of two

``LevelChain`` has ``blocks`` beside what a chain has. ``theta[a]`` of a block is its strength (11.3); the
matrix of an inactive candidate is zero.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from edgewise.kernels.compiling import answer, kernel
from edgewise.kernels.directions import (
    bias_cells_count,
    bias_line,
    clique_line,
    move_bias,
    shift_biases,
)
from edgewise.kernels.graph import LevelGraph, pair_of
from edgewise.kernels.slabs import slab_mean, slab_precision

LevelRules = namedtuple(
    "LevelRules",
    "levels dims scores offset projection gram centres bias_start weight_start block_start line_start "
    "line_values line_steps line_constant line_variable pair_index prior",
)
LevelChain = namedtuple("LevelChain", "theta bias hyper graph stream tallies counters blocks")
LevelWork = namedtuple("LevelWork", "lines sums noise features precision curvature vectors")


@kernel
def score_sum(i, k, rules, sums):
    """Sum over the data of score k of variable i."""
    total = rules.offset[i, k] * sums.rows[0]
    for t in range(rules.bias_start[i + 1] - rules.bias_start[i]):
        total += rules.projection[i, t, k] * sums.singles[rules.bias_start[i] + t]
    return total


@kernel
def projected(i, k, rules, chain):
    """Product of the threshold coordinates of variable i with the direction of its score k."""
    total = 0.0
    for t in range(rules.bias_start[i + 1] - rules.bias_start[i]):
        total += rules.projection[i, t, k] * chain.bias[rules.bias_start[i] + t]
    return total


@kernel
def shift_thresholds(i, k, t, rules, chain):
    """Move the thresholds of variable i by `t` times its score k."""
    for n in range(rules.bias_start[i + 1] - rules.bias_start[i]):
        chain.bias[rules.bias_start[i] + n] += t * rules.projection[i, n, k]


@answer(clique_line, LevelGraph)
def _level_line(graph, a, value, rules, sums, chain, values, S):
    """The line of a pair with one parameter (11.5)."""
    i, j = pair_of(a, graph)
    m_i, m_j = rules.centres[i, 0], rules.centres[j, 0]
    for c_j in range(rules.levels[j]):
        for c_i in range(rules.levels[i]):
            cell = c_i + rules.levels[i] * c_j
            values[0, cell] = (rules.scores[i, c_i, 0] - m_i) * (rules.scores[j, c_j, 0] - m_j)
    S[0] = sums.cliques[rules.weight_start[a]] + sums.rows[0] * m_i * m_j
    S[0] -= m_j * score_sum(i, 0, rules, sums) + m_i * score_sum(j, 0, rules, sums)
    scale = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    precision = (rules.gram[i, 0, 0] * m_j * m_j + rules.gram[j, 0, 0] * m_i * m_i) * scale
    tilt = m_j * projected(i, 0, rules, chain) + m_i * projected(j, 0, rules, chain)
    slab = slab_precision(rules.prior.slab, a, chain.hyper)
    tilt = tilt * scale + precision * value
    return precision + slab, tilt + slab * slab_mean(rules.prior.slab, a)


@answer(shift_biases, LevelGraph)
def _shift_thresholds(graph, a, t, rules, chain):
    i, j = pair_of(a, graph)
    shift_thresholds(i, 0, -t * rules.centres[j, 0], rules, chain)
    shift_thresholds(j, 0, -t * rules.centres[i, 0], rules, chain)


@answer(bias_cells_count, LevelGraph)
def _levels_of(graph, n, rules):
    return rules.levels[rules.line_variable[n]]


@answer(bias_line, LevelGraph)
def _threshold_line(graph, g, n, rules, sums, chain, values, S):
    """One of the lines of the thresholds of a variable (11.7)."""
    i = rules.line_variable[n]
    first = rules.bias_start[i]
    scale = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    S[0] = rules.line_constant[n] * sums.rows[0]
    precision = 0.0
    tilt = 0.0
    for t in range(rules.bias_start[i + 1] - first):
        step = rules.line_steps[n, t]
        S[0] += step * sums.singles[first + t]
        precision += step * step * scale
        tilt -= step * chain.bias[first + t] * scale
    for c in range(rules.levels[i]):
        values[0, c] = rules.line_values[n, c]
    return precision, tilt


@answer(move_bias, LevelGraph)
def _move_thresholds(graph, g, n, t, rules, chain):
    i = rules.line_variable[n]
    first = rules.bias_start[i]
    for k in range(rules.bias_start[i + 1] - first):
        chain.bias[first + k] += t * rules.line_steps[n, k]


def level_work(levels: np.ndarray, most_parameters: int) -> LevelWork:
    """Room for the moves of variables with so many levels, and blocks of so many parameters."""
    widest = np.sort(levels)[::-1]
    cells = int(np.prod(widest[:2]))
    size = max(most_parameters, int(widest[0]))
    return LevelWork(
        lines=np.zeros((1, 3, 1, cells)),
        sums=np.zeros((1, 1)),
        noise=np.zeros(2),
        features=np.zeros((cells, size)),
        precision=np.zeros((size, size)),
        curvature=np.zeros((size, size)),
        vectors=np.zeros((8, size)),
    )
