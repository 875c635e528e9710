"""The table of all 2^p state probabilities: marginals of a few variables and changes of one parameter.

Variable i is bit i of a state's index. ``table`` is kept normalised; a change by t along a direction
multiplies it cell by cell, with no expansion (docs/method.md, 4).
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel


@kernel
def build_table(bias, theta, listed, count, members, table):
    """Fill the table from the parameters and normalise it."""
    table[0] = 0.0
    for i in range(bias.shape[0]):
        half = 1 << i
        for k in range(half):
            table[half + k] = table[k] + bias[i]
    for position in range(count):
        a = listed[position]
        mask = 0
        for k in range(members.shape[1]):
            if members[a, k] >= 0:
                mask |= 1 << members[a, k]
        for k in range(table.shape[0]):
            if k & mask == mask:
                table[k] += theta[a]
    top = table[0]
    for k in range(table.shape[0]):
        top = table[k] if table[k] > top else top
    total = 0.0
    for k in range(table.shape[0]):
        table[k] = math.exp(table[k] - top)
        total += table[k]
    for k in range(table.shape[0]):
        table[k] /= total


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
    if cells[0] < 0.0:
        cells[0] = 0.0


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


@kernel
def move_factors(cells, values, t, factors):
    """Factors of the cells for a move by `t`, normalising included."""
    growth = 0.0
    for c in range(cells.shape[0]):
        growth += cells[c] * math.expm1(t * values[c])
    normaliser = math.log1p(growth)
    for c in range(cells.shape[0]):
        factors[c] = math.exp(t * values[c] - normaliser)
