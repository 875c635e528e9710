"""The target of a matrix given all else, its mode, and a proposal from it (docs/method.md, 11.6).

What ``lines.py`` is to one parameter. ``LevelWork`` has ``features[c, q]`` of the cells, the prior's
``precision``, the ``curvature`` at the mode, and ``vectors``: the sums over the data (0), the tilt (1), the
mode (2), and what Newton's method needs (3-5).
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel, long
from edgewise.kernels.graph import pair_of
from edgewise.kernels.level_lines import projected, score_sum
from edgewise.kernels.lines import TAIL_FREEDOM
from edgewise.kernels.random import gamma_above_one, normal
from edgewise.kernels.slabs import slab_precision

NEWTON_STEPS = 20
STEP_LIMIT = 2.0
ACCURACY = 1e-6


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
def block_prior(point, size, work):
    """What sums and priors say of a block at `point`: the log target but for log Z (11.6)."""
    result = 0.0
    for q in range(size):
        result += point[q] * (work.vectors[0, q] + work.vectors[1, q])
        for r in range(size):
            result -= 0.5 * point[q] * work.precision[q, r] * point[r]
    return result


@kernel
def block_log_z(point, size, cells, features):
    """Change of log Z from the base to `point`, by the cells at the base."""
    top = -math.inf
    for c in range(cells.shape[0]):
        top = max(top, exponent(point, size, features, c))
    total = 0.0
    for c in range(cells.shape[0]):
        total += cells[c] * math.exp(exponent(point, size, features, c) - top)
    return top + math.log(total)


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
