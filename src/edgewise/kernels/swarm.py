"""Weighted particles as a source of means (docs/method.md, 7).

``X[i, s], F[i, s]``  states and fields (``gibbs.py``), one column per particle
``w[s]``              weights; only their ratios matter. Weighted means over the particles are means of the
                      model at the chain's present parameters: whatever moves a parameter follows at once
``lanes``             a random stream per particle
``split``             particles [0, split) *propose* (they answer for cells), [split, n) *decide* (growth).
                      The two groups never mix: a particle is only ever overwritten by one of its own group,
                      so that the noise of a decision is independent of what was proposed
``cursor``            the variable that is stirred next
``sites``             variables stirred after an accepted move; learned in warm-up, frozen when it ends
``change_i, change_j, product, slots``  scratch

Fields and weights are valid between moves. A ``Swarm`` is for graphs of pairs and uses conditional
distributions (``particles.py``); a ``PlainSwarm`` has the same fields and is for any cliques
(``plain_swarm.py``).
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels import sources
from edgewise.kernels.codes import ESS_COUNT, ESS_SUM, RESAMPLINGS, SITE_UPDATES
from edgewise.kernels.compiling import answer, kernel, question, small
from edgewise.kernels.gibbs import add_scaled, compute_fields, redraw_variable, spread_change
from edgewise.kernels.graph import pair_of
from edgewise.kernels.particles import (
    log_growth,
    pair_cells,
    pair_follow,
    pair_growth,
    relative_ess,
    resample,
    scale,
    single_follow,
    single_growth,
    single_mean,
    triple_cells,
    triple_growth,
)

FIELDS = "X F w lanes cursor split sites change_i change_j product slots"
Swarm = namedtuple("Swarm", FIELDS)
PlainSwarm = namedtuple("PlainSwarm", FIELDS)

# A group is resampled when its weights are worth half its particles; earlier costs sweeps, later noise.
RESAMPLE_BELOW = 0.5
# The mean weight of a group is brought back to one before a float32 could overflow in a few moves.
LIGHT, HEAVY = 1e-3, 1e3
# Fields follow by additions in single precision: after so many iterations they were off by 1e-5 to 2e-5.
FRESH_FIELDS_EVERY = 32
# Beyond this, one minus the mean of a variable would be the rounding of single precision. A move by -14 along
# its bias makes e^14 of what is left, so that a move and its reverse would see different proposals.
NEARLY_ALWAYS = 0.99


@kernel
def exponentials(change, values, factors):
    """exp(change * values), the growth of every cell."""
    for c in range(values.shape[0]):
        factors[c] = math.exp(change * values[c])


@question
def variables(source):
    """Number of variables of the particles."""


@question
def stir(source, sites, begin, end, chain):
    """Gibbs updates of the next `sites` variables in turn, in particles `begin` to `end`."""


@answer(variables, Swarm, PlainSwarm)
def _one_row_each(source):
    return source.X.shape[0]


@answer(stir, Swarm, PlainSwarm)
def _stir(source, sites, begin, end, chain):
    swarm = source
    for _ in range(sites):
        i = swarm.cursor[0]
        swarm.cursor[0] = i + 1 if i + 1 < swarm.X.shape[0] else 0
        redraw_variable(swarm.X[i], swarm.F[i], swarm.lanes, swarm.change_i, begin, end)
        spread_change(
            i, swarm.change_i, swarm.X, swarm.F, chain.theta, chain.graph, swarm.product, begin, end
        )
    chain.counters[SITE_UPDATES] += sites * (end - begin)


@kernel
def resample_if_needed(chain, swarm):
    """Resample and stir the groups whose weights have become too uneven."""
    n = swarm.w.shape[0]
    for group in range(2):
        begin = 0 if group == 0 else swarm.split
        end = swarm.split if group == 0 else n
        share, mean = relative_ess(swarm.w, begin, end)
        chain.counters[ESS_SUM] += share
        chain.counters[ESS_COUNT] += 1.0
        if not share >= RESAMPLE_BELOW:
            resample(swarm.X, swarm.F, swarm.w, begin, end, chain.stream, *swarm.slots)
            chain.counters[RESAMPLINGS] += 1.0
            # Copies are no use until they differ.
            stir(swarm, variables(swarm), begin, end, chain)
        elif mean < LIGHT or mean > HEAVY:
            scale(swarm.w[begin:end], np.float32(1.0 / mean))


@answer(sources.is_noisy, Swarm, PlainSwarm)
def _is_noisy(source):
    return True


@answer(sources.settle, Swarm, PlainSwarm)
def _settle(source, moved, chain):
    # Weights stay healthy, and the particles are stirred so that the next decision sees other noise.
    if moved:
        resample_if_needed(chain, source)
    stir(source, source.sites if moved else 1, np.int64(0), source.w.shape[0], chain)


@answer(sources.refresh, Swarm, PlainSwarm)
def _refresh(source, iteration, chain):
    if iteration % FRESH_FIELDS_EVERY == 0:
        compute_fields(source.X, chain.bias, chain.theta, chain.graph, source.F, source.product)


@answer(sources.clique_cells, Swarm)
def _clique_cells(source, a, value, chain, cells):
    i, j = pair_of(a, chain.graph)
    X, F = source.X, source.F
    pair_cells(X[i], X[j], F[i], F[j], source.w, value, 0, source.split, cells[0])


@answer(sources.clique_growth, Swarm)
def _clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    i, j = pair_of(a, chain.graph)
    X, F, n = source.X, source.F, source.w.shape[0]
    factors = small(4)
    sums = small(5)
    exponentials(target - value, values[0], factors)
    pair_growth(X[i], X[j], F[i], F[j], source.w, value, factors, source.split, n, sums)
    return log_growth(sums, rows[0], noise)


@answer(sources.follow_clique, Swarm)
def _follow_clique(source, a, value, target, cells, values, rules, chain):
    graph = chain.graph
    i, j = pair_of(a, graph)
    X, F = source.X, source.F
    change = target - value
    factors = small(4)
    exponentials(change, values[0], factors)
    shift_i = -change * rules.centres[0, j]
    shift_j = -change * rules.centres[0, i]
    pair_follow(
        X[i],
        X[j],
        F[i],
        F[j],
        source.w,
        value,
        change,
        factors,
        shift_i,
        shift_j,
        source.lanes,
        source.change_i,
        source.change_j,
    )
    spread_beside(i, a, source.change_i, F, chain.theta, graph)
    spread_beside(j, a, source.change_j, F, chain.theta, graph)


@kernel
def spread_beside(i, moved, change, F, theta, graph):
    """Fields of the neighbours of `i` after it changed, the pair just moved excepted."""
    for position in range(graph.start[i], graph.start[i] + graph.degree[i]):
        a = graph.adjacent[position]
        if a != moved:
            add_scaled(F[graph.members[a, 0] + graph.members[a, 1] - i], np.float32(theta[a]), change)


@answer(sources.bias_cells, Swarm, PlainSwarm)
def _bias_cells(source, g, i, cells):
    cells[0, 1] = single_mean(source.F[i], source.w, np.int64(1), 0, source.split)
    cells[0, 0] = 1.0 - cells[0, 1]
    if cells[0, 1] > NEARLY_ALWAYS:
        cells[0, 0] = single_mean(source.F[i], source.w, np.int64(-1), 0, source.split)


@answer(sources.bias_growth, Swarm, PlainSwarm)
def _bias_growth(source, g, i, t, cells, values, rows, noise):
    sums = small(5)
    factors = small(2)
    exponentials(t, values[0], factors)
    single_growth(source.F[i], source.w, factors[0], factors[1], source.split, source.w.shape[0], sums)
    return log_growth(sums, rows[0], noise)


@answer(sources.follow_bias, Swarm, PlainSwarm)
def _follow_bias(source, g, i, t, cells, values, chain):
    factors = small(2)
    exponentials(t, values[0], factors)
    X, F, n = source.X, source.F, source.w.shape[0]
    single_follow(X[i], F[i], source.w, t, factors[0], factors[1], source.lanes, source.change_i)
    spread_change(i, source.change_i, X, F, chain.theta, chain.graph, source.product, np.int64(0), n)


@answer(sources.swap_cells, Swarm)
def _swap_cells(source, i, j, k, value, theta_jk, cells):
    triple_cells(i, j, k, source.X, source.F, source.w, value, theta_jk, 0, source.split, cells[0])


@answer(sources.swap_growth, Swarm)
def _swap_growth(source, i, j, k, value, theta_jk, cells, shifts, rows, noise):
    factors = small(8)
    sums = small(5)
    exponentials(1.0, shifts[0], factors)
    X, F, w = source.X, source.F, source.w
    triple_growth(i, j, k, X, F, w, value, theta_jk, factors, source.split, w.shape[0], sums)
    return log_growth(sums, rows[0], noise)
