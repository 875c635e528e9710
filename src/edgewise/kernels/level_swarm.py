"""Weighted particles of variables with any levels as a source of means (docs/method.md, 7 and 11).

A :class:`~edgewise.kernels.level_particles.LevelSwarm` is to levels what a ``Swarm`` is to two: the groups,
the weights and the rules of resampling are those of ``swarm.py``. A line of the thresholds touches one
variable; a pair moves with all of its joint levels, whether it has one parameter or a matrix of them.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels import sources, swarm
from edgewise.kernels.block_lines import exponent
from edgewise.kernels.codes import SITE_UPDATES
from edgewise.kernels.compiling import answer, entry, kernel, loop, small
from edgewise.kernels.gibbs import add_scaled, fill
from edgewise.kernels.graph import activate, pair_of
from edgewise.kernels.level_particles import (
    LevelSwarm,
    joint_cells,
    joint_follow,
    joint_growth,
    lane_product_sum,
    level_follow,
    level_growth,
    level_shares,
    load_pair,
    redraw_level,
    spread_levels,
)
from edgewise.kernels.particles import lane_sum, log_growth
from edgewise.kernels.potentials import level_potentials
from edgewise.kernels.sources import refresh
from edgewise.kernels.swarm import FRESH_FIELDS_EVERY, stir


@answer(swarm.variables, LevelSwarm)
def _variables(source):
    return source.levels.shape[0]


@answer(stir, LevelSwarm)
def _stir(source, sites, begin, end, chain):
    for _ in range(sites):
        i = source.cursor[0]
        source.cursor[0] = i + 1 if i + 1 < source.levels.shape[0] else 0
        redraw_level(i, source, begin, end)
        spread_levels(i, np.int64(-1), source.change[0], chain, source, begin, end)
    chain.counters[SITE_UPDATES] += sites * (end - begin)


@entry
def sweep_swarm(source, chain):
    """One Gibbs sweep of all particles."""
    stir(source, source.levels.shape[0], np.int64(0), source.w.shape[0], chain)


@entry
def gather(follow, counts, source, chain, levels, scores, products):
    """Sums over the particles after some sweeps at the parameters of the chain, over so many sweeps more.

    Of ``levels[i, c]`` for the variables with one score, of all ``scores`` and of their ``products``, in the
    upper half.
    """
    refresh(source, 0, chain)
    p, n = source.levels.shape[0], source.w.shape[0]
    stir(source, follow * p, np.int64(0), n, chain)
    for _ in range(counts):
        stir(source, p, np.int64(0), n, chain)
        for i in range(p):
            if source.dims[i] == 1:
                for c in range(source.levels[i]):
                    levels[i, c] += same(source.X[source.first[i]], source.scores[i, c, 0])
        for r in range(source.X.shape[0]):
            scores[r] += lane_sum(source.X[r])
            for q in range(r, source.X.shape[0]):
                products[r, q] += lane_product_sum(source.X[r], source.X[q])


@loop
def same(x, value):
    """How many entries are this value."""
    count = np.int32(0)
    for s in range(x.shape[0]):
        count += np.int32(1) if x[s] == value else np.int32(0)
    return count


@entry
def become(active, values, candidates, offset, block_start, chain):
    """Make the candidates with these numbers the active ones of a chain, with these parameters."""
    graph = chain.graph
    for i in range(graph.degree.shape[0]):
        graph.degree[i] = 0
    for position in range(graph.counts[0]):
        a = graph.listed[position]
        graph.place[a] = -1
        chain.theta[a] = 0.0
        if graph.dimension[a] > 1:
            for q in range(graph.dimension[a]):
                chain.blocks[block_start[a] + q] = 0.0
    graph.counts[0] = 0
    graph.counts[1] = 0
    for position in range(active.shape[0]):
        k = active[position]
        a = candidates[k]
        activate(a, graph)
        size = offset[k + 1] - offset[k]
        chain.theta[a] = values[offset[k]]
        if size > 1:
            squares = 0.0
            for q in range(size):
                value = values[offset[k] + q]
                chain.blocks[block_start[a] + q] = value
                squares += value * value
            chain.theta[a] = math.sqrt(squares / size)


answer(sources.is_noisy, LevelSwarm)(swarm._is_noisy)
answer(sources.settle, LevelSwarm)(swarm._settle)


@answer(sources.refresh, LevelSwarm)
def _refresh(source, iteration, chain):
    if iteration % FRESH_FIELDS_EVERY != 0:
        return
    level_potentials(source.levels, source.basis, source.bias_start, chain.bias, source.thresholds)
    for row in range(source.F.shape[0]):
        fill(source.F[row], np.float32(0.0))
    n = source.w.shape[0]
    for i in range(source.levels.shape[0]):
        own = source.X[source.first[i] : source.first[i] + source.dims[i]]
        spread_levels(i, np.int64(-1), own, chain, source, np.int64(0), n)


@answer(sources.clique_cells, LevelSwarm)
def _clique_cells(source, a, value, chain, cells):
    i, j = pair_of(a, chain.graph)
    load_pair(a, value, chain, source)
    joint_cells(i, j, source, np.int64(0), source.split, cells[0])


@kernel
def grow_cells(cells, source):
    """``factors[1]`` of the growth that ``factors[2]`` holds."""
    for c in range(cells):
        source.factors[1, c] = source.factors[0, c] * source.factors[2, c]


@kernel
def grow_along(change, values, source):
    """Growth of the cells along a line."""
    for c in range(values.shape[0]):
        source.factors[2, c] = np.float32(math.exp(change * values[c]))
    grow_cells(values.shape[0], source)


@kernel
def grown(a, rows, chain, source, noise):
    """Growth of the pair at hand, by its factors."""
    i, j = pair_of(a, chain.graph)
    sums = small(5)
    joint_growth(i, j, source, source.split, source.w.shape[0], sums)
    return log_growth(sums, rows[0], noise)


@answer(sources.clique_growth, LevelSwarm)
def _clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    load_pair(a, value, chain, source)
    grow_along(target - value, values[0], source)
    return grown(a, rows, chain, source, noise)


@answer(sources.block_growth, LevelSwarm)
def _block_growth(source, a, value, target, cells, features, rows, chain, noise):
    load_pair(a, 0.0, chain, source)
    size = chain.graph.dimension[a]
    for c in range(cells.shape[0]):
        change = exponent(target, size, features, c) - exponent(value, size, features, c)
        source.factors[2, c] = np.float32(math.exp(change))
    grow_cells(cells.shape[0], source)
    return grown(a, rows, chain, source, noise)


@kernel
def push(i, j, turned, x, source):
    """Add to the fields of variable `i` the matrix at hand times scores `x` of the other variable `j`."""
    for k in range(source.dims[i]):
        for n in range(source.dims[j]):
            value = source.matrix[n, k] if turned else source.matrix[k, n]
            add_scaled(source.F[source.first[i] + k], value, x[n])


@kernel
def follow_pair(a, chain, source):
    """Weights, states and fields after the move of a pair whose factors and old matrix are at hand."""
    i, j = pair_of(a, chain.graph)
    n = source.w.shape[0]
    joint_follow(i, j, source)
    for end in range(2):
        v = i if end == 0 else j
        spread_levels(v, a, source.change[end], chain, source, np.int64(0), n)
    push(i, j, False, source.change[1], source)
    push(j, i, True, source.change[0], source)


@kernel
def couple(a, rules, chain, source):
    """Fields and thresholds after the parameters of a pair have changed by the matrix at hand."""
    i, j = pair_of(a, chain.graph)
    push(i, j, False, source.X[source.first[j] : source.first[j] + source.dims[j]], source)
    push(j, i, True, source.X[source.first[i] : source.first[i] + source.dims[i]], source)
    for k in range(source.dims[i]):
        for n in range(source.dims[j]):
            change = np.float64(source.matrix[k, n])
            for c in range(source.levels[i]):
                source.thresholds[i, c] -= change * rules.centres[j, n] * rules.scores[i, c, k]
            for c in range(source.levels[j]):
                source.thresholds[j, c] -= change * rules.centres[i, k] * rules.scores[j, c, n]


@answer(sources.follow_clique, LevelSwarm)
def _follow_clique(source, a, value, target, cells, values, rules, chain):
    load_pair(a, value, chain, source)
    grow_along(target - value, values[0], source)
    follow_pair(a, chain, source)
    source.matrix[0, 0] = np.float32(target) - np.float32(value)
    couple(a, rules, chain, source)


@answer(sources.follow_block, LevelSwarm)
def _follow_block(source, a, change, cells, features, rules, chain):
    i, j = pair_of(a, chain.graph)
    load_pair(a, 0.0, chain, source)
    for c in range(cells.shape[0]):
        moved = exponent(change, chain.graph.dimension[a], features, c)
        source.factors[2, c] = np.float32(math.exp(moved))
    grow_cells(cells.shape[0], source)
    follow_pair(a, chain, source)
    for k in range(source.dims[i]):
        for n in range(source.dims[j]):
            source.matrix[k, n] = np.float32(change[k * source.dims[j] + n])
    couple(a, rules, chain, source)


@answer(sources.bias_cells, LevelSwarm)
def _bias_cells(source, g, i, cells):
    level_shares(source.line_variable[i], source, np.int64(0), source.split, cells[0])


@answer(sources.bias_growth, LevelSwarm)
def _bias_growth(source, g, i, t, cells, values, rows, noise):
    grow_levels(t, values[0], source)
    sums = small(5)
    level_growth(source.line_variable[i], source, source.split, source.w.shape[0], sums)
    return log_growth(sums, rows[0], noise)


@kernel
def grow_levels(t, values, source):
    """Growth of the levels of a variable along a line of its thresholds."""
    for c in range(values.shape[0]):
        source.factors[2, c] = np.float32(math.exp(t * values[c]))


@answer(sources.follow_bias, LevelSwarm)
def _follow_bias(source, g, i, t, cells, values, chain):
    v = source.line_variable[i]
    grow_levels(t, values[0], source)
    level_follow(v, source)
    n = source.w.shape[0]
    spread_levels(v, np.int64(-1), source.change[0], chain, source, np.int64(0), n)
    for c in range(values.shape[1]):
        source.thresholds[v, c] += t * values[0, c]
