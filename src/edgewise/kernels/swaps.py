"""Swaps: a pair takes the place of a competing one in a single move (docs/method.md, 5).

A swap deletes an active pair (i, j) and adds (i, k) in one proposal: edges that explain the same correlation
compete, and a chain of single births and deaths would have to pass through the unlikely graph with neither.
Both lines begin at the graph with neither edge. The two are any that fit, or rivals that warm-up has found.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.codes import COMMON, SWAP_ACCEPTS, SWAP_TRIES
from edgewise.kernels.compiling import kernel, long
from edgewise.kernels.directions import pair_line, shift_biases
from edgewise.kernels.graph import activate, deactivate, is_pair, pair_of
from edgewise.kernels.hyper import is_free, log_prior_odds
from edgewise.kernels.lines import (
    acceptance,
    draw_proposal,
    line_mode,
    log_proposal,
    metropolis,
    move_cells,
    penalised,
)
from edgewise.kernels.moves import go
from edgewise.kernels.pairs import candidate_of, known_pair
from edgewise.kernels.random import below, uniform
from edgewise.kernels.slabs import log_slab_ratio, within
from edgewise.kernels.sources import swap_cells, swap_growth
from edgewise.kernels.state import planes


@kernel
def choose_swap(rules, sums, chain):
    """Pick an active pair (i, j) and a pair (i, k) to take its place.

    Returns (leaving, arriving, i, j, k, log proposal ratio); `leaving` is -1 when there is nothing to swap.
    Half the time k is any other variable, half the time a neighbour of j, where the two edges compete.
    """
    nothing = (np.int64(-1), np.int64(-1), np.int64(0), np.int64(0), np.int64(0), 0.0)
    graph = chain.graph
    if graph.counts[0] == 0:
        return nothing
    leaving = graph.listed[below(chain.stream, graph.counts[0])]
    by_neighbour = uniform(chain.stream) < 0.5
    turn = uniform(chain.stream) < 0.5
    if not is_pair(graph, leaving) or not is_free(graph.status[leaving]):
        return nothing
    i = np.int64(graph.members[leaving, 0])
    j = np.int64(graph.members[leaving, 1])
    if turn:
        i, j = j, i
    log_choice = 0.0
    if by_neighbour:
        through = np.int64(graph.adjacent[graph.start[j] + below(chain.stream, graph.degree[j])])
        if not is_pair(graph, through):
            return nothing
        k = graph.members[through, 0] + graph.members[through, 1] - j
        log_choice = math.log(graph.degree[j]) - math.log(graph.degree[k] + 1)
    else:
        k = below(chain.stream, graph.degree.shape[0])
    # There is no pair (i, i), and (i, j) is active.
    arriving = candidate_of(rules.pair_index, i, np.int64(k), sums, chain)
    if arriving < 0 or graph.place[arriving] >= 0 or not is_free(graph.status[arriving]):
        return nothing
    return leaving, arriving, i, j, k, log_choice


@kernel
def margin(joint, i_levels, j_levels, k_levels, i_first, last, cells):
    """Cells of the pair of i and j (`last` 0) or i and k (1) from the joint ones of (i, j, k).

    Joint cells count i fastest, then j, then k; pair cells count the smaller variable fastest.
    """
    for g in range(joint.shape[0]):
        for c in range(cells.shape[1]):
            cells[g, c] = 0.0
        for c in range(joint.shape[1]):
            cells[g, pair_cell(c, i_levels, j_levels, k_levels, i_first, last)] += joint[g, c]


@kernel
def pair_cell(c, i_levels, j_levels, k_levels, i_first, last):
    """Cell of the pair (i, j) or, with `last` 1, (i, k) that the joint cell `c` of (i, j, k) lies in."""
    own = c % i_levels
    rest = c // i_levels
    other = rest // j_levels if last else rest % j_levels
    other_levels = k_levels if last else j_levels
    return own + i_levels * other if i_first else other + other_levels * own


@kernel
def visit_swap(rules, sums, chain, source, work):
    """Try to replace an active pair, any of them, by a competing one; did it happen?"""
    leaving, arriving, i, j, k, log_choice = choose_swap(rules, sums, chain)
    if leaving < 0:
        return False
    return exchange(leaving, arriving, i, j, k, log_choice, rules, sums, chain, source, work)[0]


@kernel
def visit_rivals(number, rivals, rules, sums, chain, source, work):
    """Where one of two known rivals is active, try to put the other in its place; did it happen?

    Which two does not depend on the state, so that a swap and its reverse are chosen equally often.
    """
    graph = chain.graph
    leaving, arriving = rivals.pairs[number, 0], rivals.pairs[number, 1]
    if graph.place[leaving] < 0:
        leaving, arriving = arriving, leaving
    if graph.place[leaving] < 0 or graph.place[arriving] >= 0:
        return False
    i, j = pair_of(leaving, graph)
    if graph.members[arriving, 0] == j or graph.members[arriving, 1] == j:
        i, j = j, i
    k = np.int64(graph.members[arriving, 0] + graph.members[arriving, 1] - i)
    moved, probability = exchange(leaving, arriving, i, j, k, 0.0, rules, sums, chain, source, work)
    rivals.tallies[0, number] += 1.0
    rivals.tallies[1, number] += probability
    return moved


@long
def exchange(leaving, arriving, i, j, k, log_choice, rules, sums, chain, source, work):
    """Try to put the pair (i, k) in the place of (i, j); did it happen, and how likely was it?

    `log_choice` is the log of how much more often the reverse is chosen.
    """
    chain.counters[SWAP_TRIES] += 1.0
    graph = chain.graph
    value = chain.theta[leaving]
    between = known_pair(rules.pair_index, j, k, graph)
    theta_jk = chain.theta[between] if between >= 0 else 0.0
    i_levels, j_levels, k_levels = rules.levels[i], rules.levels[j], rules.levels[k]
    n_out, n_in, n_joint = i_levels * j_levels, i_levels * k_levels, i_levels * j_levels * k_levels
    cells_out, values_out, _ = planes(work.lines[0], n_out)
    cells_in, values_in, _ = planes(work.lines[1], n_in)
    base, shifts, present = planes(work.joint, n_joint)
    S_out, S_in = work.sums[0], work.sums[1]
    swap_cells(source, i, j, k, value, theta_jk, present)
    precision_out, tilt_out = pair_line(leaving, value, rules, sums, chain, values_out, S_out)
    shift_biases(graph, leaving, -value, rules, chain)
    precision_in, tilt_in = pair_line(arriving, 0.0, rules, sums, chain, values_in, S_in)
    shift_biases(graph, leaving, value, rules, chain)
    for g in range(shifts.shape[0]):
        for c in range(n_joint):
            shifts[g, c] = values_out[g, pair_cell(c, i_levels, j_levels, k_levels, i < j, np.int64(0))]
    move_cells(present, shifts, -value, base)
    margin(base, i_levels, j_levels, k_levels, i < j, np.int64(0), cells_out)
    margin(base, i_levels, j_levels, k_levels, i < k, np.int64(1), cells_in)
    mode_out, sd_out = line_mode(cells_out, values_out, S_out, sums.rows, precision_out, tilt_out)
    mode_in, sd_in = line_mode(cells_in, values_in, S_in, sums.rows, precision_in, tilt_in)
    t = draw_proposal(chain.stream, mode_in, sd_in)
    if not within(rules.prior.slab, t):
        return False, 0.0
    others = graph.counts[1] - (1 if graph.status[leaving] == COMMON else 0)
    log_ratio = (
        log_choice
        + log_prior_odds(arriving, others, graph.status, chain.hyper, rules.prior)
        - log_prior_odds(leaving, others, graph.status, chain.hyper, rules.prior)
        + log_slab_ratio(rules.prior.slab, arriving, leaving, chain.hyper)
        + log_proposal(value, mode_out, sd_out)
        - log_proposal(t, mode_in, sd_in)
        + t * tilt_in
        - 0.5 * precision_in * t * t
        - value * tilt_out
        + 0.5 * precision_out * value * value
    )
    for g in range(shifts.shape[0]):
        log_ratio += t * S_in[g] - value * S_out[g]
        for c in range(n_joint):
            arrives = values_in[g, pair_cell(c, i_levels, j_levels, k_levels, i < k, np.int64(1))]
            shifts[g, c] = t * arrives - value * shifts[g, c]
    log_ratio -= swap_growth(source, i, j, k, value, theta_jk, present, shifts, sums.rows, work.noise)
    log_ratio = penalised(log_ratio, work.noise, chain.stream)
    if not metropolis(chain.stream, log_ratio):
        return False, acceptance(log_ratio)
    chain.counters[SWAP_ACCEPTS] += 1.0
    go(leaving, value, 0.0, cells_out, values_out, rules, chain, source)
    deactivate(leaving, graph)
    go(arriving, 0.0, t, cells_in, values_in, rules, chain, source)
    activate(arriving, graph)
    return True, acceptance(log_ratio)
