"""Moves of variables with any levels: lines of ordinal pairs, blocks of nominal ones, thresholds (11.5-11.7).

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
                                the values have beyond the basis

``LevelChain`` has ``blocks`` beside what a chain has. ``theta[a]`` of a block is its strength (11.3).
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.compiling import answer, kernel, long
from edgewise.kernels.directions import clique_line, shift_biases
from edgewise.kernels.graph import LevelGraph, activate, deactivate, pair_of
from edgewise.kernels.hyper import log_prior_odds, other_common
from edgewise.kernels.lines import (
    TAIL_FREEDOM,
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    log_z_change,
    metropolis,
    move_cells,
)
from edgewise.kernels.moves import FLIP, REDRAW, TALLY, tally
from edgewise.kernels.random import gamma_above_one, normal
from edgewise.kernels.slabs import log_slab, slab_mean, slab_precision
from edgewise.kernels.state import planes
from edgewise.kernels.windows import level_cells, pair_cells, scale_levels, scale_pair

LevelRules = namedtuple(
    "LevelRules",
    "levels dims scores offset projection gram centres bias_start weight_start block_start line_start "
    "line_values line_steps line_constant prior",
)
LevelChain = namedtuple("LevelChain", "theta bias hyper graph stream tallies counters blocks")
LevelWork = namedtuple("LevelWork", "lines sums noise features precision curvature vectors")

NEWTON_STEPS = 20
STEP_LIMIT = 2.0
ACCURACY = 1e-6


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


@kernel
def fill_block(a, size, rules, sums, chain, work):
    """Features of the cells, sums, precision and tilt of a block, its base being the model without it (11.6).

    Returns nothing: ``features[c, k]``, ``precision``, and of the vectors 0 the sums, 1 the tilt.
    """
    i, j = pair_of(a, chain.graph)
    d_i, d_j = rules.dims[i], rules.dims[j]
    scale = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    slab = slab_precision(rules.prior.slab, a, chain.hyper)
    S, tilt = work.vectors[0], work.vectors[1]
    begun = rules.block_start[a]
    for k in range(d_i):
        for n in range(d_j):
            q = k * d_j + n
            m_i, m_j = rules.centres[i, k], rules.centres[j, n]
            for c_j in range(rules.levels[j]):
                for c_i in range(rules.levels[i]):
                    cell = c_i + rules.levels[i] * c_j
                    work.features[cell, q] = (rules.scores[i, c_i, k] - m_i) * (rules.scores[j, c_j, n] - m_j)
            S[q] = sums.cliques[rules.weight_start[a] + q] + sums.rows[0] * m_i * m_j
            S[q] -= m_j * score_sum(i, k, rules, sums) + m_i * score_sum(j, n, rules, sums)
            tilt[q] = m_j * projected(i, k, rules, chain) + m_i * projected(j, n, rules, chain)
            tilt[q] *= scale
            for k2 in range(d_i):
                for n2 in range(d_j):
                    value = rules.gram[i, k, k2] * m_j * rules.centres[j, n2]
                    value += rules.gram[j, n, n2] * m_i * rules.centres[i, k2]
                    work.precision[q, k2 * d_j + n2] = value * scale
    for q in range(size):
        # The tilt is that of the thresholds at the base, where the block's own shift is undone.
        for r in range(size):
            tilt[q] += work.precision[q, r] * chain.blocks[begun + r]
    for q in range(size):
        work.precision[q, q] += slab


@kernel
def exponent(point, size, features, cell):
    """<T, F_c> of one cell."""
    total = 0.0
    for q in range(size):
        total += point[q] * features[cell, q]
    return total


@kernel
def block_value(point, size, cells, rows, work):
    """Log target of a block at `point` relative to its base (11.6)."""
    result = 0.0
    for q in range(size):
        result += point[q] * (work.vectors[0, q] + work.vectors[1, q])
        for r in range(size):
            result -= 0.5 * point[q] * work.precision[q, r] * point[r]
    top = -math.inf
    for c in range(cells.shape[0]):
        top = max(top, exponent(point, size, work.features, c))
    total = 0.0
    for c in range(cells.shape[0]):
        total += cells[c] * math.exp(exponent(point, size, work.features, c) - top)
    return result - rows * (top + math.log(total))


@kernel
def factorise(matrix, size):
    """Cholesky factor of a positive definite matrix, in its lower half."""
    for q in range(size):
        for r in range(q + 1):
            total = matrix[q, r]
            for s in range(r):
                total -= matrix[q, s] * matrix[r, s]
            matrix[q, r] = math.sqrt(total) if q == r else total / matrix[r, r]


@long
def block_mode(size, cells, rows, work):
    """Mode of a block (vector 2) and the Cholesky factor of its curvature there, by damped Newton steps."""
    mode, gradient, step, mean = work.vectors[2], work.vectors[3], work.vectors[4], work.vectors[5]
    matrix, features = work.curvature, work.features
    for q in range(size):
        mode[q] = 0.0
    for _ in range(NEWTON_STEPS):
        top = -math.inf
        for c in range(cells.shape[0]):
            top = max(top, exponent(mode, size, features, c))
        total = 0.0
        for q in range(size):
            mean[q] = 0.0
            for r in range(q + 1):
                matrix[q, r] = 0.0
        for c in range(cells.shape[0]):
            weight = cells[c] * math.exp(exponent(mode, size, features, c) - top)
            total += weight
            for q in range(size):
                mean[q] += weight * features[c, q]
                for r in range(q + 1):
                    matrix[q, r] += weight * features[c, q] * features[c, r]
        for q in range(size):
            mean[q] /= total
        for q in range(size):
            gradient[q] = work.vectors[0, q] + work.vectors[1, q] - rows * mean[q]
            for r in range(size):
                gradient[q] -= work.precision[q, r] * mode[r]
            for r in range(q + 1):
                matrix[q, r] = rows * (matrix[q, r] / total - mean[q] * mean[r]) + work.precision[q, r]
        factorise(matrix, size)
        for q in range(size):
            step[q] = gradient[q]
            for r in range(q):
                step[q] -= matrix[q, r] * step[r]
            step[q] /= matrix[q, q]
        squares = 0.0
        for q in range(size):
            squares += step[q] * step[q]
        solve_transposed(matrix, step, size)
        largest = 0.0
        for q in range(size):
            largest = max(largest, abs(step[q]))
        shrink = STEP_LIMIT / largest if largest > STEP_LIMIT else 1.0
        for q in range(size):
            mode[q] += shrink * step[q]
        if squares < ACCURACY:
            break


@kernel
def solve_transposed(matrix, vector, size):
    """Solve L'x = vector in place, L being the lower half of the matrix."""
    for q in range(size - 1, -1, -1):
        for r in range(q + 1, size):
            vector[q] -= matrix[r, q] * vector[r]
        vector[q] /= matrix[q, q]


@kernel
def draw_block(stream, size, work, point):
    """Multivariate Student-t around the mode, with the curvature at the mode."""
    for q in range(size):
        point[q] = normal(stream)
    radius = math.sqrt(TAIL_FREEDOM / (2.0 * gamma_above_one(stream, 0.5 * TAIL_FREEDOM)))
    solve_transposed(work.curvature, point, size)
    for q in range(size):
        point[q] = work.vectors[2, q] + radius * point[q]


@kernel
def log_block_proposal(size, work, point):
    """Log density of :func:`draw_block`."""
    squares = 0.0
    result = 0.0
    for q in range(size):
        part = 0.0
        for r in range(q, size):
            part += work.curvature[r, q] * (point[r] - work.vectors[2, r])
        squares += part * part
        result += math.log(work.curvature[q, q])
    result += math.lgamma(0.5 * (TAIL_FREEDOM + size)) - math.lgamma(0.5 * TAIL_FREEDOM)
    result -= 0.5 * size * math.log(TAIL_FREEDOM * math.pi)
    return result - 0.5 * (TAIL_FREEDOM + size) * math.log1p(squares / TAIL_FREEDOM)


@kernel
def copy(source, target, size):
    """Copy a vector."""
    for q in range(size):
        target[q] = source[q]


@kernel
def go_block(a, size, present, value, rules, chain, source, work):
    """The block of candidate `a` moves to `value`; the graph is the caller's business."""
    i, j = pair_of(a, chain.graph)
    change, begun = work.vectors[5], rules.block_start[a]
    squares = 0.0
    for q in range(size):
        change[q] = value[q] - chain.blocks[begun + q]
        chain.blocks[begun + q] = value[q]
        squares += value[q] * value[q]
    chain.theta[a] = math.sqrt(squares / size)
    total = 0.0
    for c in range(present.shape[0]):
        source.scale[c] = math.exp(exponent(change, size, work.features, c))
        total += present[c] * source.scale[c]
    for c in range(present.shape[0]):
        source.scale[c] /= total
    scale_pair(source, i, j, source.scale)
    d_i, d_j = rules.dims[i], rules.dims[j]
    for k in range(d_i):
        for n in range(d_j):
            shift_thresholds(i, k, -change[k * d_j + n] * rules.centres[j, n], rules, chain)
            shift_thresholds(j, n, -change[k * d_j + n] * rules.centres[i, k], rules, chain)


@long
def visit_block(a, what, rules, sums, chain, source, work):
    """Redraw the matrix of candidate `a` if it is active, decide its indicator, or both; did it move?"""
    size = chain.graph.dimension[a]
    i, j = pair_of(a, chain.graph)
    cells, _, present = planes(work.lines[0], rules.levels[i] * rules.levels[j])
    rows = sums.rows[0]
    active = chain.graph.place[a] >= 0
    begun = chain.blocks[rules.block_start[a] : rules.block_start[a] + size]
    value, target = work.vectors[6], work.vectors[7]
    fill_block(a, size, rules, sums, chain, work)
    pair_cells(source, i, j, present[0])
    total = 0.0
    for c in range(cells.shape[1]):
        cells[0, c] = present[0, c] * math.exp(-exponent(begun, size, work.features, c))
        total += cells[0, c]
    for c in range(cells.shape[1]):
        cells[0, c] /= total
    block_mode(size, cells[0], rows, work)
    copy(begun, value, size)
    moved = False
    if what & REDRAW and active:
        draw_block(chain.stream, size, work, target)
        log_ratio = block_value(target, size, cells[0], rows, work) - log_block_proposal(size, work, target)
        log_ratio -= block_value(value, size, cells[0], rows, work) - log_block_proposal(size, work, value)
        if metropolis(chain.stream, log_ratio):
            copy(target, value, size)
            moved = True
    if what & FLIP:
        if not active:
            draw_block(chain.stream, size, work, value)
        log_birth = log_prior_odds(
            a, other_common(a, chain.graph), chain.graph.status, chain.hyper, rules.prior
        )
        log_birth += size * log_slab(rules.prior.slab, a, chain.hyper)
        log_birth += block_value(value, size, cells[0], rows, work) - log_block_proposal(size, work, value)
        log_ratio = -log_birth if active else log_birth
        accepted = metropolis(chain.stream, log_ratio)
        if what & TALLY:
            tally(a, active, accepted, acceptance(log_ratio), chain.tallies)
        if accepted:
            moved = True
            if active:
                deactivate(a, chain.graph)
                for q in range(size):
                    value[q] = 0.0
            else:
                activate(a, chain.graph)
    if moved:
        go_block(a, size, present[0], value, rules, chain, source, work)
    return moved


@long
def visit_thresholds(i, rules, sums, chain, source, work):
    """Redraw the thresholds of variable i along its lines, all on the marginal of its levels (11.7)."""
    cells, values, moved = planes(work.lines[0], rules.levels[i])
    S, log_scale = work.sums[0], work.vectors[0]
    first = rules.bias_start[i]
    count = rules.bias_start[i + 1] - first
    scale = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    level_cells(source, i, cells[0])
    for c in range(rules.levels[i]):
        log_scale[c] = 0.0
    for n in range(rules.line_start[i], rules.line_start[i + 1]):
        S[0] = rules.line_constant[n] * sums.rows[0]
        precision = 0.0
        tilt = 0.0
        for t in range(count):
            step = rules.line_steps[n, t]
            S[0] += step * sums.singles[first + t]
            precision += step * step * scale
            tilt -= step * chain.bias[first + t] * scale
        for c in range(rules.levels[i]):
            values[0, c] = rules.line_values[n, c]
        mode, sd = line_mode(cells, values, S, sums.rows, precision, tilt)
        t_new = draw_proposal(chain.stream, mode, sd)
        log_ratio = line_value(t_new, cells, values, S, sums.rows, precision, tilt)
        log_ratio += log_proposal(0.0, mode, sd) - log_proposal(t_new, mode, sd)
        if metropolis(chain.stream, log_ratio):
            normaliser = log_z_change(t_new, cells[0], values[0])
            move_cells(cells, values, t_new, moved)
            for c in range(rules.levels[i]):
                cells[0, c] = moved[0, c]
                log_scale[c] += t_new * values[0, c] - normaliser
            for t in range(count):
                chain.bias[first + t] += t_new * rules.line_steps[n, t]
    for c in range(rules.levels[i]):
        source.scale[c] = math.exp(log_scale[c])
    scale_levels(source, i, source.scale)


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
