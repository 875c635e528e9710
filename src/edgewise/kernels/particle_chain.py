"""The particle chain: moves along lines, decided by weighted particles (docs/method.md, 7).

Every decision is one Metropolis step. Its proposal comes from the first group of particles and its log
ratio from the second, whose noise has a known variance v; the step is made with ``log ratio - v / 2``
(Ceperley & Dewing 1999), which restores detailed balance exactly for Gaussian noise that is as large in
both directions and independent of the proposal. The first holds because the reverse variance is computed
from the same particles and noise is added to the quieter direction, the second because the groups never
mix. A hopeless birth is turned down by the first group alone, with a probability that its death corrects
for (delayed acceptance).
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

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
    shuffle_active,
    tally,
    watch,
)
from edgewise.kernels.compiling import kernel, small
from edgewise.kernels.gibbs import compute_fields, copy_to, redraw_variable, spread_change
from edgewise.kernels.lines import (
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    metropolis,
    move_cells,
)
from edgewise.kernels.particles import (
    add_constant,
    add_to_fields,
    clique_states,
    log_growth,
    pair_cells,
    pair_follow,
    pair_growth,
    plain_cells,
    plain_follow,
    plain_growth,
    relative_ess,
    resample,
    scale,
    single_follow,
    single_growth,
    single_mean,
    spread_pair_change,
    triple_cells,
    triple_growth,
)
from edgewise.kernels.random import below, normal, uniform
from edgewise.kernels.swaps import choose_swap, log_prior_change, oriented, swap_cells

Swarm = namedtuple("Swarm", "X F w lanes cursor split sites change_i change_j product slots")
Scan = namedtuple("Scan", "hot probability is_hot cold_flips cold_moves swaps")

# Given to kernels as np.int64(...): they are compiled once more for every constant they are called with.
REDRAW, FLIP, COLD = 0, 1, 2
RESAMPLE_BELOW = 0.5
LIGHT, HEAVY = 1e-3, 1e3
HOPELESS_MARGIN = 2.5
FRESH_FIELDS_EVERY = 32

SWAP_TRIES, SWAP_ACCEPTS, RESAMPLINGS, SITE_UPDATES, ESS_SUM, ESS_COUNT = range(6)
# Sums over decisions of indicators, then over redrawn parameters; see `count_noise`.
NOISE_SUM, NOISE_COUNT, DECISIONS = 6, 8, 10
COLD_TRIES, COLD_ACCEPTS = 11, 12
# However noisy a single decision, it should not choose the number of particles alone.
NOISE_CAP = 4.0


@kernel
def penalised(log_ratio, noise, stream):
    """The log ratio with the noise of both directions made equal and its penalty taken off."""
    variance = noise[0]
    if noise[1] > variance:
        variance = noise[1]
        log_ratio += math.sqrt(variance - noise[0]) * normal(stream)
    return log_ratio - 0.5 * variance


@kernel
def count_noise(flip, noise, probability, counters):
    """Add the noise of a decision, weighted with its probability of acceptance.

    A hopeless proposal may be arbitrarily noisy; it should not decide how many particles there are.
    """
    kind = 0 if flip else 1
    counters[NOISE_SUM + kind] += probability * min(max(noise[0], noise[1]), NOISE_CAP)
    counters[NOISE_COUNT + kind] += probability
    counters[DECISIONS] += 1.0


@kernel
def exponentials(change, values, factors):
    """exp(change * values), the growth of every cell."""
    for c in range(values.shape[0]):
        factors[c] = math.exp(change * values[c])


@kernel
def follow_pair(a, change, values, given, chain, swarm):
    """Bring the particles to the new parameters after pair `a` moves by `change` (biases included)."""
    i = given.members[a, 0]
    j = given.members[a, 1]
    factors = small(4)
    exponentials(change, values, factors)
    pair_follow(
        swarm.X[i],
        swarm.X[j],
        swarm.F[i],
        swarm.F[j],
        swarm.w,
        chain.theta[a],
        change,
        factors,
        -change * given.means[j],
        -change * given.means[i],
        swarm.lanes,
        swarm.change_i,
        swarm.change_j,
    )
    graph = (chain.theta, given.members, chain.start, chain.degree, chain.adjacent)
    spread_pair_change(i, a, swarm.change_i, swarm.F, *graph)
    spread_pair_change(j, a, swarm.change_j, swarm.F, *graph)
    shift_biases(a, change, given, chain)


@kernel
def follow_plain(a, change, values, state, given, chain, swarm):
    """As :func:`follow_pair` in a model with larger cliques: weights and fields follow, states stay."""
    factors = small(4)
    exponentials(change, values, factors)
    plain_follow(state, swarm.w, factors)
    add_to_fields(a, change, swarm.X, swarm.F, given.members, swarm.product)
    if is_pair(a, given):
        shift_biases(a, change, given, chain)
        i = given.members[a, 0]
        j = given.members[a, 1]
        add_constant(swarm.F[i], np.float32(-change * given.means[j]))
        add_constant(swarm.F[j], np.float32(-change * given.means[i]))


@kernel
def visit_clique(a, kind, log_choice, given, chain, swarm, counters):
    """Redraw the parameter of clique `a` or decide its indicator; returns whether it moved.

    `log_choice` is the log of how much more often the clique is chosen for a death than for a birth. Only
    a FLIP, tried in both states alike, is tallied.
    """
    flip = kind != REDRAW
    blocked = given.members.shape[1] == 2
    n = swarm.w.shape[0]
    active = chain.place[a] >= 0
    value = chain.theta[a]
    present = small(4)
    values = small(4)
    base = small(4)
    i = given.members[a, 0]
    j = given.members[a, 1]
    if blocked:
        pair_cells(swarm.X[i], swarm.X[j], swarm.F[i], swarm.F[j], swarm.w, value, 0, swarm.split, present)
    else:
        clique_states(a, swarm.X, given.members, swarm.change_i)
        plain_cells(swarm.change_i, swarm.w, 0, swarm.split, present)
    if is_pair(a, given):
        S, precision, tilt = pair_line(a, value, given, chain, values)
    else:
        S, precision, tilt = clique_line(a, given, chain, values)
    move_cells(present, values, -value, base)
    mode, sd = line_mode(base, values, S, given.N, precision, tilt)

    target = 0.0 if flip and active else draw_proposal(chain.stream, mode, sd)
    log_ratio = 0.0
    if flip:
        point = value if active else target
        odds = base_odds(a, active, given, chain) + log_choice - log_proposal(point, mode, sd)
        expected = odds + line_value(point, base, values, S, given.N, precision, tilt)
        log_pass = min(0.0, expected + HOPELESS_MARGIN)
        if active:
            log_ratio = log_pass - odds
        else:
            if not metropolis(chain.stream, log_pass):
                if kind == FLIP:
                    tally(a, False, False, 0.0, chain)
                return False
            log_ratio = odds - log_pass
    else:
        log_ratio = log_proposal(value, mode, sd) - log_proposal(target, mode, sd)

    change = target - value
    factors = small(4)
    sums = small(5)
    noise = small(2)
    exponentials(change, values, factors)
    if blocked:
        pair_growth(
            swarm.X[i], swarm.X[j], swarm.F[i], swarm.F[j], swarm.w, value, factors, swarm.split, n, sums
        )
    else:
        plain_growth(swarm.change_i, swarm.w, factors, swarm.split, n, sums)
    log_ratio += (
        change * (S + tilt)
        - log_growth(sums, given.N, noise)
        - 0.5 * precision * (target * target - value * value)
    )
    log_ratio = penalised(log_ratio, noise, chain.stream)
    accepted = metropolis(chain.stream, log_ratio)
    count_noise(flip, noise, acceptance(log_ratio), counters)
    if kind == FLIP:
        tally(a, active, accepted, acceptance(log_ratio), chain)
    if accepted:
        if blocked:
            follow_pair(a, change, values, given, chain, swarm)
        else:
            follow_plain(a, change, values, swarm.change_i, given, chain, swarm)
        set_clique(a, active, not (flip and active), target, given, chain)
    return accepted


@kernel
def visit_bias(i, given, chain, swarm, counters):
    """Redraw bias `i`; returns whether it moved."""
    cells = small(2)
    values = small(2)
    cells[1] = single_mean(swarm.F[i], swarm.w, 0, swarm.split)
    cells[0] = 1.0 - cells[1]
    S, precision, tilt = bias_line(i, given, chain, values)
    mode, sd = line_mode(cells, values, S, given.N, precision, tilt)
    t = draw_proposal(chain.stream, mode, sd)
    outside = math.exp(t * values[0])
    inside = math.exp(t * values[1])
    sums = small(5)
    noise = small(2)
    single_growth(swarm.F[i], swarm.w, outside, inside, swarm.split, swarm.w.shape[0], sums)
    log_ratio = (
        t * (S + tilt)
        - log_growth(sums, given.N, noise)
        - 0.5 * precision * t * t
        + log_proposal(0.0, mode, sd)
        - log_proposal(t, mode, sd)
    )
    if not metropolis(chain.stream, penalised(log_ratio, noise, chain.stream)):
        return False
    chain.bias[i] += t
    single_follow(swarm.X[i], swarm.F[i], swarm.w, t, outside, inside, swarm.lanes, swarm.change_i)
    spread_change(
        i,
        swarm.change_i,
        swarm.X,
        swarm.F,
        chain.theta,
        given.members,
        chain.start,
        chain.degree,
        chain.adjacent,
        swarm.product,
        np.int64(0),
        swarm.w.shape[0],
    )
    return True


@kernel
def visit_swap(given, chain, swarm, pair_index, counters):
    """Try to replace one active pair by a competing one; returns whether it happened."""
    leaving, arriving, i, j, k, log_choice = choose_swap(given, chain, pair_index)
    if leaving < 0:
        return False
    counters[SWAP_TRIES] += 1.0
    value = chain.theta[leaving]
    between = pair_index[min(j, k), max(j, k)]
    theta_jk = chain.theta[between] if between >= 0 else 0.0
    present = small(8)
    base = small(8)
    triple_cells(i, j, k, swarm.X, swarm.F, swarm.w, value, theta_jk, 0, swarm.split, present)
    values_out = small(4)
    values_in = small(4)
    S_out, precision_out, tilt_out = pair_line(leaving, value, given, chain, values_out)
    shift_biases(leaving, -value, given, chain)
    S_in, precision_in, tilt_in = pair_line(arriving, 0.0, given, chain, values_in)
    shift_biases(leaving, value, given, chain)
    ordered_out = small(4)
    ordered_in = small(4)
    copy_to(ordered_out, values_out)
    copy_to(ordered_in, values_in)
    oriented(values_out, i, j)
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
        + log_proposal(value, mode_out, sd_out)
        - log_proposal(t, mode_in, sd_in)
        + t * (S_in + tilt_in)
        - 0.5 * precision_in * t * t
        - value * (S_out + tilt_out)
        + 0.5 * precision_out * value * value
    )
    factors = small(8)
    for c in range(8):
        x_i = c & 1
        factors[c] = math.exp(
            t * values_in[x_i + 2 * ((c >> 2) & 1)] - value * values_out[x_i + 2 * ((c >> 1) & 1)]
        )
    sums = small(5)
    noise = small(2)
    triple_growth(
        i, j, k, swarm.X, swarm.F, swarm.w, value, theta_jk, factors, swarm.split, swarm.w.shape[0], sums
    )
    log_ratio -= log_growth(sums, given.N, noise)
    if not metropolis(chain.stream, penalised(log_ratio, noise, chain.stream)):
        return False
    counters[SWAP_ACCEPTS] += 1.0
    follow_pair(leaving, -value, ordered_out, given, chain, swarm)
    deactivate(leaving, given, chain)
    follow_pair(arriving, t, ordered_in, given, chain, swarm)
    activate(arriving, t, given, chain)
    return True


@kernel
def stir(sites, begin, end, given, chain, swarm, counters):
    """Gibbs updates of the next `sites` variables in turn, in particles `begin` to `end`."""
    for _ in range(sites):
        i = swarm.cursor[0]
        swarm.cursor[0] = i + 1 if i + 1 < swarm.X.shape[0] else 0
        redraw_variable(swarm.X[i], swarm.F[i], swarm.lanes, swarm.change_i, begin, end)
        spread_change(
            i,
            swarm.change_i,
            swarm.X,
            swarm.F,
            chain.theta,
            given.members,
            chain.start,
            chain.degree,
            chain.adjacent,
            swarm.product,
            begin,
            end,
        )
    counters[SITE_UPDATES] += sites * (end - begin)


@kernel
def resample_if_needed(given, chain, swarm, counters):
    """Resample and stir the groups whose weights have become too uneven."""
    n = swarm.w.shape[0]
    for group in range(2):
        begin = 0 if group == 0 else swarm.split
        end = swarm.split if group == 0 else n
        share, mean = relative_ess(swarm.w, begin, end)
        counters[ESS_SUM] += share
        counters[ESS_COUNT] += 1.0
        if not share >= RESAMPLE_BELOW:
            resample(swarm.X, swarm.F, swarm.w, begin, end, chain.stream, *swarm.slots)
            counters[RESAMPLINGS] += 1.0
            # Copies are no use until they differ.
            stir(swarm.X.shape[0], begin, end, given, chain, swarm, counters)
        elif mean < LIGHT or mean > HEAVY:
            # Only ratios of weights matter; the common factor must not leave the range of a float32.
            scale(swarm.w[begin:end], np.float32(1.0 / mean))


@kernel
def after_visit(moved, given, chain, swarm, counters):
    """Keep the weights healthy, and stir the particles so that the next decision sees other noise."""
    if moved:
        resample_if_needed(given, chain, swarm, counters)
    stir(swarm.sites if moved else 1, np.int64(0), swarm.w.shape[0], given, chain, swarm, counters)


@kernel
def visit_cold(scan, given, chain, swarm, counters):
    """A birth of any cold clique or a death of an active one, equally often; returns whether it happened.

    Few cold cliques are active at a time. Deaths choose among the active ones, so that none stays longer
    than its probability asks for, and births make up for it in their ratio.
    """
    n_cliques = given.members.shape[0]
    birth = uniform(chain.stream) < 0.5
    if birth:
        a = below(chain.stream, n_cliques)
    elif chain.counts[0] > 0:
        a = chain.listed[below(chain.stream, chain.counts[0])]
    else:
        return False
    active = chain.place[a] >= 0
    if active == birth or scan.is_hot[a] or given.status[a] > 1:
        return False
    others = chain.counts[0] - (1 if active else 0)
    log_choice = math.log(n_cliques) - math.log(others + 1)
    counters[COLD_TRIES] += 1.0
    moved = visit_clique(a, np.int64(COLD), log_choice, given, chain, swarm, counters)
    if moved:
        counters[COLD_ACCEPTS] += 1.0
    return moved


@kernel
def fresh_fields(given, chain, swarm):
    """Fields from scratch, so that rounding cannot add up."""
    compute_fields(
        swarm.X,
        chain.bias,
        chain.theta,
        given.members,
        chain.start,
        chain.degree,
        chain.adjacent,
        swarm.F,
        swarm.product,
    )


@kernel
def run_particles(given, chain, swarm, scan, pair_index, iteration, iterations, thin, counters, recorder):
    """Run up to `iterations` iterations, stopping early when the recorder is full; returns how many ran.

    `iteration` counts from the end of warm-up and decides what is kept; a negative `thin` keeps nothing.
    """
    n_cliques = given.members.shape[0]
    flip = np.int64(FLIP)
    redraw = np.int64(REDRAW)
    for step in range(iterations):
        if thin > 0 and not room_left(chain, recorder):
            return step
        if (iteration + step) % FRESH_FIELDS_EVERY == 0:
            fresh_fields(given, chain, swarm)
        for _ in range(scan.swaps):
            moved = visit_swap(given, chain, swarm, pair_index, counters)
            after_visit(moved, given, chain, swarm, counters)
        for position in range(scan.hot.shape[0]):
            if uniform(chain.stream) < scan.probability[position]:
                moved = visit_clique(scan.hot[position], flip, 0.0, given, chain, swarm, counters)
                after_visit(moved, given, chain, swarm, counters)
        for _ in range(scan.cold_flips):
            a = below(chain.stream, n_cliques)
            if not scan.is_hot[a] and given.status[a] < 2:
                moved = visit_clique(a, flip, 0.0, given, chain, swarm, counters)
                if moved:
                    after_visit(moved, given, chain, swarm, counters)
        for _ in range(scan.cold_moves):
            moved = visit_cold(scan, given, chain, swarm, counters)
            if moved:
                after_visit(moved, given, chain, swarm, counters)
        shuffle_active(chain)
        for position in range(chain.counts[0]):
            moved = visit_clique(chain.listed[position], redraw, 0.0, given, chain, swarm, counters)
            after_visit(moved, given, chain, swarm, counters)
        for i in range(chain.bias.shape[0]):
            moved = visit_bias(i, given, chain, swarm, counters)
            after_visit(moved, given, chain, swarm, counters)
        draw_hyper(given, chain)
        if thin < 0:
            watch(chain)
        elif (iteration + step + 1) % thin == 0:
            record(chain, recorder)
    return iterations
