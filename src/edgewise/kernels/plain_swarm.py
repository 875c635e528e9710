"""Particles of a model with larger cliques as a source of means: their states are used as they are.

The conditional distribution of the variables of a clique given the rest is no longer a matter of two fields,
so a move changes the weights only, and the states stay. There are no swaps.

``change_i`` holds the states of the clique from the question for its cells to the end of the move: nothing
else writes to it meanwhile.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels import sources
from edgewise.kernels.compiling import answer, kernel, small
from edgewise.kernels.gibbs import add_scaled, fill, multiply, others_product
from edgewise.kernels.graph import is_pair
from edgewise.kernels.particles import add_constant, log_growth
from edgewise.kernels.swarm import PlainSwarm, exponentials


@kernel
def clique_states(a, X, graph, state):
    """State of a clique in every particle: x_i + 2 x_j for a pair, its feature for a larger clique."""
    members = graph.members
    if is_pair(graph, a):
        for s in range(state.shape[0]):
            state[s] = X[members[a, 0], s] + np.float32(2.0) * X[members[a, 1], s]
        return
    fill(state, np.float32(1.0))
    for k in range(members.shape[1]):
        if members[a, k] >= 0:
            multiply(state, X[members[a, k]])


@kernel
def plain_cells(state, w, begin, end, cells):
    """Weighted probabilities of the states of a clique."""
    fill(cells, 0.0)
    total = 0.0
    for s in range(begin, end):
        cells[int(state[s])] += w[s]
        total += w[s]
    for c in range(cells.shape[0]):
        cells[c] /= total


@kernel
def plain_growth(state, w, factors, begin, end, sums):
    """Sums of w, w^2, w h, w h^2 and w / h, with h the growth of the particle's state."""
    fill(sums, 0.0)
    for s in range(begin, end):
        h = factors[int(state[s])]
        weight = float(w[s])
        sums[0] += weight
        sums[1] += weight * weight
        sums[2] += weight * h
        sums[3] += weight * h * h
        sums[4] += weight / h


@answer(sources.clique_cells, PlainSwarm)
def _clique_cells(source, a, value, chain, cells):
    clique_states(a, source.X, chain.graph, source.change_i)
    plain_cells(source.change_i, source.w, 0, source.split, cells[0])


@answer(sources.clique_growth, PlainSwarm)
def _clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    factors = small(4)
    sums = small(5)
    exponentials(target - value, values[0], factors)
    plain_growth(source.change_i, source.w, factors, source.split, source.w.shape[0], sums)
    return log_growth(sums, rows[0], noise)


@answer(sources.follow_clique, PlainSwarm)
def _follow_clique(source, a, value, target, cells, values, rules, chain):
    change = target - value
    factors = small(4)
    exponentials(change, values[0], factors)
    for s in range(source.w.shape[0]):
        source.w[s] *= np.float32(factors[int(source.change_i[s])])
    members = chain.graph.members
    for k in range(members.shape[1]):
        i = members[a, k]
        if i >= 0:
            others_product(a, i, -1, source.X, members, source.product)
            add_scaled(source.F[i], np.float32(change), source.product)
    if is_pair(chain.graph, a):
        i = members[a, 0]
        j = members[a, 1]
        add_constant(source.F[i], np.float32(-change * rules.centres[0, j]))
        add_constant(source.F[j], np.float32(-change * rules.centres[0, i]))


@answer(sources.swap_cells, PlainSwarm)
def _swap_cells(source, i, j, k, value, theta_jk, cells):
    pass


@answer(sources.swap_growth, PlainSwarm)
def _swap_growth(source, i, j, k, value, theta_jk, cells, shifts, rows, noise):
    return np.inf
