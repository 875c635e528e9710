"""The table of all 2^p state probabilities as a source of means: exact, and without noise.

Variable i is bit i of a state's index. ``states[g]``, the table of stratum g, is kept normalised and belongs
to the parameters of the chain at all times; a move along a line multiplies it cell by cell, with no expansion
(docs/method.md, 4). A ``Table`` has the same couplings in all strata, a ``GroupTable`` those of the group
``group_of[g]`` (``groups.py``).
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels import sources
from edgewise.kernels.compiling import answer, kernel, long, small
from edgewise.kernels.graph import is_pair, pair_of
from edgewise.kernels.lines import log_z_change
from edgewise.kernels.potentials import normalise

Table = namedtuple("Table", "states")
GroupTable = namedtuple("GroupTable", "states group_of")

# Rounding grows with the number of multiplications: on block data it was 5e-14 after so many iterations.
REBUILD_EVERY = 256
# A rest smaller than this is summed up itself: as one minus the others it would be little but rounding, and a
# move that makes it large would multiply that.
SMALL_REST = 1e-4


@kernel
def clique_mask(a, members):
    """Bit mask of a clique's variables."""
    mask = 0
    for k in range(members.shape[1]):
        if members[a, k] >= 0:
            mask |= 1 << members[a, k]
    return mask


@long
def build_table(bias, theta, listed, count, members, table):
    """Fill the table from the parameters and normalise it."""
    table[0] = 0.0
    for i in range(bias.shape[0]):
        half = 1 << i
        for k in range(half):
            table[half + k] = table[k] + bias[i]
    for position in range(count):
        a = listed[position]
        mask = clique_mask(a, members)
        for k in range(table.shape[0]):
            if k & mask == mask:
                table[k] += theta[a]
    normalise(table, table.shape[0])


@kernel
def run_sum(x):
    """Sum in four lanes: fast, and in an order fixed by the code rather than by the compiler."""
    if x.shape[0] < 4:
        total = 0.0
        for k in range(x.shape[0]):
            total += x[k]
        return total
    a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
    for k in range(0, x.shape[0], 4):
        a0 += x[k]
        a1 += x[k + 1]
        a2 += x[k + 2]
        a3 += x[k + 3]
    return (a0 + a1) + (a2 + a3)


@kernel
def pair_cells(table, i, j, cells):
    """Probabilities of (x_i, x_j) = 00, 10, 01, 11 for i < j."""
    step_i = 1 << i
    step_j = 1 << j
    c10 = 0.0
    c01 = 0.0
    c11 = 0.0
    for high in range(0, table.shape[0], 2 * step_j):
        for middle in range(high, high + step_j, 2 * step_i):
            c10 += run_sum(table[middle + step_i : middle + 2 * step_i])
            c01 += run_sum(table[middle + step_j : middle + step_j + step_i])
            c11 += run_sum(table[middle + step_j + step_i : middle + step_j + 2 * step_i])
    cells[1] = c10
    cells[2] = c01
    cells[3] = c11
    cells[0] = 1.0 - c10 - c01 - c11
    if cells[0] < SMALL_REST:
        cells[0] = 0.0
        for high in range(0, table.shape[0], 2 * step_j):
            for middle in range(high, high + step_j, 2 * step_i):
                cells[0] += run_sum(table[middle : middle + step_i])


@kernel
def scale_pair(table, i, j, factors):
    """Multiply the four cells of a pair (i < j) by the given factors."""
    step_i = 1 << i
    step_j = 1 << j
    f0 = factors[0]
    f1 = factors[1]
    f2 = factors[2]
    f3 = factors[3]
    for high in range(0, table.shape[0], 2 * step_j):
        for middle in range(high, high + step_j, 2 * step_i):
            for k in range(middle, middle + step_i):
                table[k] *= f0
                table[k + step_i] *= f1
                table[k + step_j] *= f2
                table[k + step_i + step_j] *= f3


@kernel
def masked_mean(table, mask):
    """Probability that all variables of the bit mask are one."""
    step = 1
    while mask & step == 0:
        step *= 2
    total = 0.0
    for k in range(step, table.shape[0], 2 * step):
        if k & mask == mask:
            total += run_sum(table[k : k + step])
    return total


@kernel
def complement(table, mask, inside):
    """Probability that some variable of the bit mask is zero, where all are one with probability `inside`."""
    rest = 1.0 - inside
    if rest < SMALL_REST:
        rest = 0.0
        for k in range(table.shape[0]):
            if k & mask != mask:
                rest += table[k]
    return rest


@kernel
def scale_masked(table, mask, outside, inside):
    """Multiply the states with all variables of the mask at one by `inside`, the others by `outside`."""
    for k in range(table.shape[0]):
        table[k] *= inside if k & mask == mask else outside


@kernel
def triple_cells(table, i, j, k, cells):
    """Probabilities of the eight states x_i + 2 x_j + 4 x_k."""
    for c in range(8):
        cells[c] = 0.0
    for state in range(table.shape[0]):
        cells[((state >> i) & 1) + 2 * ((state >> j) & 1) + 4 * ((state >> k) & 1)] += table[state]


@answer(sources.is_noisy, Table, GroupTable)
def _is_noisy(source):
    return False


@answer(sources.clique_cells, Table, GroupTable)
def _clique_cells(source, a, value, chain, cells):
    if is_pair(chain.graph, a):
        i, j = pair_of(a, chain.graph)
        for g in range(source.states.shape[0]):
            pair_cells(source.states[g], i, j, cells[g])
    else:
        mask = clique_mask(a, chain.graph.members)
        for g in range(source.states.shape[0]):
            cells[g, 1] = masked_mean(source.states[g], mask)
            cells[g, 0] = complement(source.states[g], mask, cells[g, 1])


@answer(sources.clique_growth, Table, GroupTable)
def _clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    total = 0.0
    for g in range(rows.shape[0]):
        change = log_z_change(target, cells[g], values[g]) - log_z_change(value, cells[g], values[g])
        total += rows[g] * change
    return total


@answer(sources.follow_clique, Table, GroupTable)
def _follow_clique(source, a, value, target, cells, values, rules, chain):
    change = target - value
    factors = small(4)
    for g in range(source.states.shape[0]):
        normaliser = log_z_change(target, cells[g], values[g]) - log_z_change(value, cells[g], values[g])
        if is_pair(chain.graph, a):
            i, j = pair_of(a, chain.graph)
            for c in range(4):
                factors[c] = math.exp(change * values[g, c] - normaliser)
            scale_pair(source.states[g], i, j, factors)
        else:
            outside = math.exp(change * values[g, 0] - normaliser)
            inside = math.exp(change * values[g, 1] - normaliser)
            scale_masked(source.states[g], clique_mask(a, chain.graph.members), outside, inside)


@answer(sources.bias_cells, Table, GroupTable)
def _bias_cells(source, g, i, cells):
    cells[0, 1] = masked_mean(source.states[g], 1 << i)
    cells[0, 0] = complement(source.states[g], 1 << i, cells[0, 1])


@answer(sources.bias_growth, Table, GroupTable)
def _bias_growth(source, g, i, t, cells, values, rows, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    return rows[0] * log_z_change(t, cells[0], values[0])


@answer(sources.follow_bias, Table, GroupTable)
def _follow_bias(source, g, i, t, cells, values, chain):
    normaliser = log_z_change(t, cells[0], values[0])
    outside = math.exp(t * values[0, 0] - normaliser)
    inside = math.exp(t * values[0, 1] - normaliser)
    scale_masked(source.states[g], 1 << i, outside, inside)


@answer(sources.swap_cells, Table, GroupTable)
def _swap_cells(source, i, j, k, value, theta_jk, cells):
    for g in range(source.states.shape[0]):
        triple_cells(source.states[g], i, j, k, cells[g])


@answer(sources.swap_growth, Table, GroupTable)
def _swap_growth(source, i, j, k, value, theta_jk, cells, shifts, rows, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    total = 0.0
    for g in range(rows.shape[0]):
        total += rows[g] * log_z_change(1.0, cells[g], shifts[g])
    return total


@answer(sources.settle, Table, GroupTable)
def _settle(source, moved, chain):
    pass


@kernel
def rebuild(g, theta, source, chain):
    """The table of stratum `g` from the parameters."""
    graph = chain.graph
    p = chain.bias.shape[0] // source.states.shape[0]
    bias = chain.bias[g * p : (g + 1) * p]
    build_table(bias, theta, graph.listed, graph.counts[0], graph.members, source.states[g])


@answer(sources.refresh, Table)
def _refresh(source, iteration, chain):
    if iteration % REBUILD_EVERY == 0:
        for g in range(source.states.shape[0]):
            rebuild(g, chain.theta, source, chain)


@answer(sources.refresh, GroupTable)
def _refresh_groups(source, iteration, chain):
    if iteration % REBUILD_EVERY == 0:
        for g in range(source.states.shape[0]):
            rebuild(g, chain.coupling[source.group_of[g]], source, chain)
