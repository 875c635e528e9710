"""The exact chain: reversible jumps with the likelihood of the full table (docs/method.md, 5).

Per iteration: every candidate in turn (its parameter redrawn when active, its indicator decided when its
scan coin says so), every bias, swaps between competing pairs, and the hyper-parameters. All proposals are
Student-t around the mode of the line, computed from the base point of the line so that a move and its
reverse see the same proposal.
"""

from __future__ import annotations

from edgewise.kernels.chain import (
    activate,
    base_odds,
    bias_line,
    clique_line,
    deactivate,
    draw_hyper,
    is_pair,
    pair_line,
    record,
    room_left,
    set_clique,
    shift_biases,
    tally,
)
from edgewise.kernels.compiling import kernel, small
from edgewise.kernels.gibbs import fill
from edgewise.kernels.lines import (
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    metropolis,
    move_cells,
)
from edgewise.kernels.random import uniform
from edgewise.kernels.swaps import choose_swap, log_prior_change, oriented, swap_cells
from edgewise.kernels.table import (
    build_table,
    masked_mean,
    move_factors,
    pair_cells,
    scale_masked,
    scale_pair,
    triple_cells,
)

REBUILD_EVERY = 256


@kernel
def clique_mask(a, members):
    """Bit mask of a clique's variables."""
    mask = 0
    for k in range(members.shape[1]):
        if members[a, k] >= 0:
            mask |= 1 << members[a, k]
    return mask


@kernel
def visit_clique(a, may_flip, given, chain, table):
    """Redraw the parameter of clique `a` if it is active, then decide its indicator."""
    pair = is_pair(a, given)
    active = chain.place[a] >= 0
    value = chain.theta[a]
    present = small(4)
    fill(present, 0.0)
    values = small(4)
    base = small(4)
    if pair:
        pair_cells(table, given.members[a, 0], given.members[a, 1], present)
        S, precision, tilt = pair_line(a, value, given, chain, values)
    else:
        present[1] = masked_mean(table, clique_mask(a, given.members))
        present[0] = 1.0 - present[1]
        S, precision, tilt = clique_line(a, given, chain, values)
    move_cells(present, values, -value, base)
    mode, sd = line_mode(base, values, S, given.N, precision, tilt)

    new_active = active
    new_value = value
    if active:
        t = draw_proposal(chain.stream, mode, sd)
        log_ratio = (
            line_value(t, base, values, S, given.N, precision, tilt)
            - line_value(value, base, values, S, given.N, precision, tilt)
            + log_proposal(value, mode, sd)
            - log_proposal(t, mode, sd)
        )
        if metropolis(chain.stream, log_ratio):
            new_value = t
    if may_flip:
        t = new_value if active else draw_proposal(chain.stream, mode, sd)
        log_ratio = (
            base_odds(a, active, given, chain)
            + line_value(t, base, values, S, given.N, precision, tilt)
            - log_proposal(t, mode, sd)
        )
        if active:
            log_ratio = -log_ratio
        accepted = metropolis(chain.stream, log_ratio)
        tally(a, active, accepted, acceptance(log_ratio), chain)
        if accepted:
            new_active = not active
            new_value = t if new_active else 0.0

    change = new_value - value
    if change != 0.0:
        factors = small(4)
        move_factors(present, values, change, factors)
        if pair:
            scale_pair(table, given.members[a, 0], given.members[a, 1], factors)
            shift_biases(a, change, given, chain)
        else:
            scale_masked(table, clique_mask(a, given.members), factors[0], factors[1])
    set_clique(a, active, new_active, new_value, given, chain)


@kernel
def visit_bias(i, given, chain, table):
    """Redraw bias `i`."""
    cells = small(2)
    values = small(2)
    cells[1] = masked_mean(table, 1 << i)
    cells[0] = 1.0 - cells[1]
    S, precision, tilt = bias_line(i, given, chain, values)
    mode, sd = line_mode(cells, values, S, given.N, precision, tilt)
    t = draw_proposal(chain.stream, mode, sd)
    log_ratio = (
        line_value(t, cells, values, S, given.N, precision, tilt)
        + log_proposal(0.0, mode, sd)
        - log_proposal(t, mode, sd)
    )
    if metropolis(chain.stream, log_ratio):
        factors = small(2)
        move_factors(cells, values, t, factors)
        scale_masked(table, 1 << i, factors[0], factors[1])
        chain.bias[i] += t


@kernel
def visit_swap(given, chain, table, pair_index, counters):
    """Try to replace one active pair by a competing one."""
    leaving, arriving, i, j, k, log_choice = choose_swap(given, chain, pair_index)
    if leaving < 0:
        return
    counters[0] += 1.0
    value = chain.theta[leaving]
    present = small(8)
    base = small(8)
    triple_cells(table, i, j, k, present)
    values_out = small(4)
    values_in = small(4)
    S_out, precision_out, tilt_out = pair_line(leaving, value, given, chain, values_out)
    oriented(values_out, i, j)
    shift_biases(leaving, -value, given, chain)
    S_in, precision_in, tilt_in = pair_line(arriving, 0.0, given, chain, values_in)
    oriented(values_in, i, k)
    direction = small(8)
    for c in range(8):
        direction[c] = values_out[(c & 1) + 2 * ((c >> 1) & 1)]
    move_cells(present, direction, -value, base)
    cells_out = small(4)
    cells_in = small(4)
    swap_cells(base, cells_out, cells_in)
    mode_out, sd_out = line_mode(cells_out, values_out, S_out, given.N, precision_out, tilt_out)
    mode_in, sd_in = line_mode(cells_in, values_in, S_in, given.N, precision_in, tilt_in)
    t = draw_proposal(chain.stream, mode_in, sd_in)
    log_ratio = (
        log_choice
        + log_prior_change(leaving, arriving, given, chain)
        + line_value(t, cells_in, values_in, S_in, given.N, precision_in, tilt_in)
        - line_value(value, cells_out, values_out, S_out, given.N, precision_out, tilt_out)
        + log_proposal(value, mode_out, sd_out)
        - log_proposal(t, mode_in, sd_in)
    )
    if metropolis(chain.stream, log_ratio):
        counters[1] += 1.0
        deactivate(leaving, given, chain)
        activate(arriving, t, given, chain)
        shift_biases(arriving, t, given, chain)
        factors = small(4)
        present_out = small(4)
        unused = small(4)
        swap_cells(present, present_out, unused)
        move_factors(present_out, values_out, -value, factors)
        oriented(factors, i, j)
        scale_pair(table, min(i, j), max(i, j), factors)
        move_factors(cells_in, values_in, t, factors)
        oriented(factors, i, k)
        scale_pair(table, min(i, k), max(i, k), factors)
    else:
        shift_biases(leaving, value, given, chain)


@kernel
def run_exact(given, chain, table, pair_index, scan, swaps, iteration, iterations, thin, counters, recorder):
    """Run up to `iterations` iterations, stopping early when the recorder is full; returns how many ran.

    `iteration` counts from the end of warm-up and decides what is kept; a negative `thin` keeps nothing.
    """
    for step in range(iterations):
        if thin > 0 and not room_left(chain, recorder):
            return step
        if (iteration + step) % REBUILD_EVERY == 0:
            build_table(chain.bias, chain.theta, chain.listed, chain.counts[0], given.members, table)
        for a in range(given.members.shape[0]):
            coin = uniform(chain.stream) < scan[a]
            if given.status[a] != 3 and (coin or chain.place[a] >= 0):
                visit_clique(a, coin and given.status[a] < 2, given, chain, table)
        for i in range(chain.bias.shape[0]):
            visit_bias(i, given, chain, table)
        for _ in range(swaps):
            visit_swap(given, chain, table, pair_index, counters)
        draw_hyper(given, chain)
        if thin > 0 and (iteration + step + 1) % thin == 0:
            record(chain, recorder)
    return iterations
