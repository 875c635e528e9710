"""Arithmetic over weighted particles of variables with any levels, vectorised (docs/method.md, 11).

As ``particles.py``: the variables that a line touches are replaced by their conditional distribution given
the particle's other variables. A particle is known by the scores of its variables.

``X[first[i] + k, s]``  score k of variable i in particle s; ``F`` alike its field, the sum over the active
                        pairs of i of their matrices times the scores of the other variable
``thresholds[i, c]``    potential of level c, up to a constant for each variable
``scores[i, c, k]``     scores of the levels, in single precision
``matrix``              parameters of the pair at hand, rows for its first variable
``factors[0, cell]``    exp(u_i' A u_j) in the joint levels of that pair, the first variable running fastest;
                        ``factors[1]`` times the growth under a move, ``factors[2]`` that growth alone

Particles are taken in chunks that fit into the first-level cache: ``e[c]`` holds the weight of level c in
each of them, relative to the likeliest level. Nothing here uses fast mathematics (``gibbs.py``).
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.compiling import kernel, lanes_of_terms, loop
from edgewise.kernels.gibbs import add_scaled, fill
from edgewise.kernels.particles import add_growth, keep_growth
from edgewise.kernels.random import fast_exp, lane_uniform

LevelSwarm = namedtuple(
    "LevelSwarm",
    "X F w lanes cursor split sites change slots levels dims first scores thresholds matrix factors "
    "bias_start basis block_start line_variable",
)

CHUNK = 256
# Room on the stack for the levels of a variable (scales.MOST_LEVELS), and for its scores.
MOST = 20
# The joint weight of a pair keeps within a float32 as long as its own potential does.
LARGEST_POTENTIAL = 28.0


@loop
def own_field(i, swarm, low, high, h):
    """Fields of variable `i` in one chunk."""
    for k in range(swarm.dims[i]):
        row, field = h[k], swarm.F[swarm.first[i] + k, low:high]
        for s in range(field.shape[0]):
            row[s] = field[s]


@loop
def leave_out(i, j, turned, swarm, low, high, h):
    """Take from the fields of variable `i` in one chunk what the other variable `j` of its pair contributes.

    `turned` tells that `j` is the first of the two.
    """
    for k in range(swarm.dims[i]):
        row = h[k]
        for n in range(swarm.dims[j]):
            value = swarm.matrix[n, k] if turned else swarm.matrix[k, n]
            x = swarm.X[swarm.first[j] + n, low:high]
            for s in range(x.shape[0]):
                row[s] -= value * x[s]


@loop
def weigh_levels(i, swarm, width, h, e, top):
    """Weights of the levels of variable `i` by the fields `h`, the largest being one."""
    for c in range(swarm.levels[i]):
        row = e[c]
        threshold = np.float32(swarm.thresholds[i, c])
        score = swarm.scores[i, c, 0]
        field = h[0]
        for s in range(width):
            row[s] = threshold + score * field[s]
        for k in range(1, swarm.dims[i]):
            score = swarm.scores[i, c, k]
            field = h[k]
            for s in range(width):
                row[s] += score * field[s]
        if c == 0:
            for s in range(width):
                top[s] = row[s]
        else:
            for s in range(width):
                top[s] = row[s] if row[s] > top[s] else top[s]
    for c in range(swarm.levels[i]):
        row = e[c]
        for s in range(width):
            row[s] = fast_exp(row[s] - top[s])


@loop
def weigh_pair(i, j, swarm, low, high, h, top, e_i, e_j):
    """Weights of the levels of either variable of a pair by all but the pair itself."""
    own_field(i, swarm, low, high, h)
    leave_out(i, j, False, swarm, low, high, h)
    weigh_levels(i, swarm, high - low, h, e_i, top)
    own_field(j, swarm, low, high, h)
    leave_out(j, i, True, swarm, low, high, h)
    weigh_levels(j, swarm, high - low, h, e_j, top)


@loop
def mix(levels, factors, e, width, row):
    """row = sum over the levels of factors times weights, four levels at a time."""
    fill(row[:width], np.float32(0.0))
    whole = levels // 4 * 4
    for c in range(0, whole, 4):
        a, b, d, f = factors[c], factors[c + 1], factors[c + 2], factors[c + 3]
        x, y, z, t = e[c], e[c + 1], e[c + 2], e[c + 3]
        for s in range(width):
            row[s] += a * x[s] + b * y[s] + (d * z[s] + f * t[s])
    for c in range(whole, levels):
        a, x = factors[c], e[c]
        for s in range(width):
            row[s] += a * x[s]


@loop
def pair_total(n_i, n_j, factors, e_i, e_j, width, row, total):
    """Sum over the joint levels of a pair."""
    fill(total[:width], np.float32(0.0))
    for d in range(n_j):
        mix(n_i, factors[n_i * d : n_i * (d + 1)], e_i, width, row)
        y = e_j[d]
        for s in range(width):
            total[s] += y[s] * row[s]


@loop
def lane_product_sum(x, y):
    """Sum of products in eight lanes, in an order fixed by the code."""
    zero = np.float32(0.0)
    a0, a1, a2, a3, a4, a5, a6, a7 = zero, zero, zero, zero, zero, zero, zero, zero
    whole = x.shape[0] // 8 * 8
    for s in range(0, whole, 8):
        a0 += x[s] * y[s]
        a1 += x[s + 1] * y[s + 1]
        a2 += x[s + 2] * y[s + 2]
        a3 += x[s + 3] * y[s + 3]
        a4 += x[s + 4] * y[s + 4]
        a5 += x[s + 5] * y[s + 5]
        a6 += x[s + 6] * y[s + 6]
        a7 += x[s + 7] * y[s + 7]
    total = np.float64(a0) + a1 + a2 + a3 + a4 + a5 + a6 + a7
    for s in range(whole, x.shape[0]):
        total += x[s] * y[s]
    return total


@loop(error_model="numpy")
def joint_cells(i, j, swarm, begin, end, cells):
    """Weighted probabilities of the joint levels of (i, j) over one group."""
    n_i, n_j = swarm.levels[i], swarm.levels[j]
    e_i, e_j, h = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(20, 256)
    scratch = lanes_of_terms(3, 256)
    row, total, weighted = scratch[0], scratch[1], scratch[2]
    fill(cells, 0.0)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        width = high - low
        weigh_pair(i, j, swarm, low, high, h, row, e_i, e_j)
        pair_total(n_i, n_j, swarm.factors[0], e_i, e_j, width, row, total)
        w = swarm.w[low:high]
        for s in range(width):
            total[s] = w[s] / total[s]
        for d in range(n_j):
            y = e_j[d]
            for s in range(width):
                weighted[s] = total[s] * y[s]
            for c in range(n_i):
                cells[c + n_i * d] += lane_product_sum(weighted[:width], e_i[c, :width])
    whole = 0.0
    for cell in range(n_i * n_j):
        cells[cell] *= swarm.factors[0, cell]
        whole += cells[cell]
    for cell in range(n_i * n_j):
        cells[cell] /= whole


@loop(error_model="numpy")
def joint_growth(i, j, swarm, begin, end, sums):
    """Sums over one group of w, w^2, w h, w h^2 and w / h, h being the growth under ``factors[1]`` (11.8)."""
    n_i, n_j = swarm.levels[i], swarm.levels[j]
    e_i, e_j, h = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(20, 256)
    scratch, terms = lanes_of_terms(3, 256), lanes_of_terms(4, 256)
    row, before, after = scratch[0], scratch[1], scratch[2]
    fill(sums, 0.0)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        weigh_pair(i, j, swarm, low, high, h, row, e_i, e_j)
        pair_total(n_i, n_j, swarm.factors[0], e_i, e_j, high - low, row, before)
        pair_total(n_i, n_j, swarm.factors[1], e_i, e_j, high - low, row, after)
        v = swarm.w[low:high]
        for s in range(high - low):
            keep_growth(v[s], before[s], after[s], terms, s)
        add_growth(v, terms, sums)


@loop(error_model="numpy")
def draw_levels(levels, e, lanes, low, width, total, drawn):
    """Draw a level in proportion to the weights `e` in each particle of a chunk; `total` is scratch."""
    fill(total[:width], np.float32(0.0))
    for c in range(levels):
        row = e[c]
        for s in range(width):
            total[s] += row[s]
    # Unsigned: an index that could be negative would keep the loop from being vectorised.
    first = np.uintp(low)
    for s in range(first, np.uintp(low + width)):
        total[s - first] *= lane_uniform(lanes, s)
    fill(drawn[:width], np.float32(0.0))
    for c in range(levels - 1):
        row = e[c]
        for s in range(width):
            total[s] -= row[s]
            drawn[s] += np.float32(1.0) if total[s] >= np.float32(0.0) else np.float32(0.0)
            # Once the level is found nothing may find a second one.
            total[s] = total[s] if total[s] >= np.float32(0.0) else np.float32(-3.0e38)


@loop
def change_scores(i, swarm, low, width, drawn, change):
    """Make the drawn levels those of variable `i` in a chunk; `change` receives new minus old scores."""
    for k in range(swarm.dims[i]):
        x, moved = swarm.X[swarm.first[i] + k, low : low + width], change[k, low : low + width]
        for s in range(width):
            new = swarm.scores[i, np.uintp(drawn[s]), k]
            moved[s] = new - x[s]
            x[s] = new


@loop(error_model="numpy")
def redraw_level(i, swarm, begin, end):
    """Draw variable `i` of particles `begin` to `end` from its conditional; ``change[0]`` new minus old."""
    e, h, scratch = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(2, 256)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        own_field(i, swarm, low, high, h)
        weigh_levels(i, swarm, high - low, h, e, scratch[0])
        draw_levels(swarm.levels[i], e, swarm.lanes, low, high - low, scratch[0], scratch[1])
        change_scores(i, swarm, low, high - low, scratch[1], swarm.change[0])


@loop(error_model="numpy")
def joint_follow(i, j, swarm):
    """Weights and states of a pair after a move whose growth is ``factors[2]``, in all particles.

    ``change`` receives new minus old scores of either variable; their fields are the caller's business.
    """
    n_i, n_j = swarm.levels[i], swarm.levels[j]
    e_i, e_j, h = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(20, 256)
    scratch = lanes_of_terms(5, 256)
    row, before, after, at_i, at_j = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    n = swarm.w.shape[0]
    for low in range(0, n, CHUNK):
        high = min(low + CHUNK, n)
        width = high - low
        weigh_pair(i, j, swarm, low, high, h, row, e_i, e_j)
        pair_total(n_i, n_j, swarm.factors[0], e_i, e_j, width, row, before)
        fill(after[:width], np.float32(0.0))
        for d in range(n_j):
            mix(n_i, swarm.factors[1, n_i * d : n_i * (d + 1)], e_i, width, row)
            y = e_j[d]
            for s in range(width):
                y[s] *= row[s]
                after[s] += y[s]
        w = swarm.w[low:high]
        for s in range(width):
            w[s] *= after[s] / before[s]
        draw_levels(n_j, e_j, swarm.lanes, low, width, row, at_j)
        for c in range(n_i):
            x = e_i[c]
            for s in range(width):
                x[s] *= swarm.factors[1, np.uintp(c) + np.uintp(n_i) * np.uintp(at_j[s])]
        draw_levels(n_i, e_i, swarm.lanes, low, width, row, at_i)
        change_scores(i, swarm, low, width, at_i, swarm.change[0])
        change_scores(j, swarm, low, width, at_j, swarm.change[1])


@loop(error_model="numpy")
def level_shares(i, swarm, begin, end, cells):
    """Weighted probabilities of the levels of variable `i` over one group."""
    e, h, scratch = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(2, 256)
    total = scratch[1]
    fill(cells, 0.0)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        width = high - low
        own_field(i, swarm, low, high, h)
        weigh_levels(i, swarm, width, h, e, scratch[0])
        level_total(swarm.levels[i], e, width, total)
        w = swarm.w[low:high]
        for s in range(width):
            total[s] = w[s] / total[s]
        for c in range(swarm.levels[i]):
            cells[c] += lane_product_sum(total[:width], e[c, :width])
    whole = 0.0
    for c in range(swarm.levels[i]):
        whole += cells[c]
    for c in range(swarm.levels[i]):
        cells[c] /= whole


@loop
def level_total(levels, e, width, total):
    """Sum of the weights of all levels."""
    fill(total[:width], np.float32(0.0))
    for c in range(levels):
        row = e[c]
        for s in range(width):
            total[s] += row[s]


@loop(error_model="numpy")
def level_growth(i, swarm, begin, end, sums):
    """As :func:`joint_growth` for one variable, the growth of its levels being ``factors[2]``."""
    e, h = lanes_of_terms(20, 256), lanes_of_terms(20, 256)
    scratch, terms = lanes_of_terms(3, 256), lanes_of_terms(4, 256)
    before, after = scratch[1], scratch[2]
    fill(sums, 0.0)
    for low in range(begin, end, CHUNK):
        high = min(low + CHUNK, end)
        own_field(i, swarm, low, high, h)
        weigh_levels(i, swarm, high - low, h, e, scratch[0])
        level_total(swarm.levels[i], e, high - low, before)
        mix(swarm.levels[i], swarm.factors[2], e, high - low, after)
        v = swarm.w[low:high]
        for s in range(high - low):
            keep_growth(v[s], before[s], after[s], terms, s)
        add_growth(v, terms, sums)


@loop(error_model="numpy")
def level_follow(i, swarm):
    """Weights and states of one variable after a move of its thresholds whose growth is ``factors[2]``."""
    e, h, scratch = lanes_of_terms(20, 256), lanes_of_terms(20, 256), lanes_of_terms(3, 256)
    before, after = scratch[1], scratch[2]
    n, levels = swarm.w.shape[0], swarm.levels[i]
    for low in range(0, n, CHUNK):
        high = min(low + CHUNK, n)
        width = high - low
        own_field(i, swarm, low, high, h)
        weigh_levels(i, swarm, width, h, e, scratch[0])
        level_total(levels, e, width, before)
        for c in range(levels):
            row, factor = e[c], np.float32(swarm.factors[2, c])
            for s in range(width):
                row[s] *= factor
        level_total(levels, e, width, after)
        w = swarm.w[low:high]
        for s in range(width):
            w[s] *= after[s] / before[s]
        draw_levels(levels, e, swarm.lanes, low, width, scratch[0], before)
        change_scores(i, swarm, low, width, before, swarm.change[0])


@kernel
def load_pair(a, value, chain, swarm):
    """The parameters of candidate `a` as the matrix at hand, `value` being the only one, and its factors."""
    graph = chain.graph
    i, j = np.int64(graph.members[a, 0]), np.int64(graph.members[a, 1])
    d_j = swarm.dims[j]
    for k in range(swarm.matrix.shape[0]):
        for n in range(swarm.matrix.shape[1]):
            swarm.matrix[k, n] = np.float32(0.0)
    if graph.dimension[a] == 1:
        swarm.matrix[0, 0] = np.float32(value)
    else:
        for k in range(swarm.dims[i]):
            for n in range(d_j):
                swarm.matrix[k, n] = np.float32(chain.blocks[swarm.block_start[a] + k * d_j + n])
    pair_factors(i, j, swarm)


@kernel
def pair_factors(i, j, swarm):
    """``factors[0]`` of the matrix at hand."""
    for d in range(swarm.levels[j]):
        for c in range(swarm.levels[i]):
            total = 0.0
            for k in range(swarm.dims[i]):
                for n in range(swarm.dims[j]):
                    total += swarm.scores[i, c, k] * swarm.matrix[k, n] * swarm.scores[j, d, n]
            total = min(max(total, -LARGEST_POTENTIAL), LARGEST_POTENTIAL)
            swarm.factors[0, c + swarm.levels[i] * d] = np.float32(math.exp(total))


@kernel
def add_couplings(a, turned, target, x, chain, swarm, begin, end):
    """Add what the scores `x` of one variable of candidate `a` contribute to the fields of the other.

    `turned` tells that `x` is of its second variable.
    """
    graph = chain.graph
    d_i, d_j = swarm.dims[graph.members[a, 0]], swarm.dims[graph.members[a, 1]]
    if graph.dimension[a] == 1:
        add_scaled(target[0, begin:end], np.float32(chain.theta[a]), x[0, begin:end])
        return
    for k in range(d_i):
        for n in range(d_j):
            value = np.float32(chain.blocks[swarm.block_start[a] + k * d_j + n])
            if turned:
                add_scaled(target[k, begin:end], value, x[n, begin:end])
            else:
                add_scaled(target[n, begin:end], value, x[k, begin:end])


@kernel
def spread_levels(i, moved, change, chain, swarm, begin, end):
    """Fields of the neighbours of `i` after its scores changed; candidate `moved` is left out."""
    graph = chain.graph
    for position in range(graph.start[i], graph.start[i] + graph.degree[i]):
        a = graph.adjacent[position]
        if a != moved:
            other = np.int64(graph.members[a, 0]) + graph.members[a, 1] - i
            begun = swarm.first[other]
            target = swarm.F[begun : begun + swarm.dims[other]]
            add_couplings(a, other < i, target, change, chain, swarm, begin, end)
