"""Iterations of Algorithm 1 of Chen & Welling (2012): hyper-parameters, Gibbs, Langevin, jumps.

The jumps of an iteration are decided one by one from the same particles and then applied together
(section 4.3). They see the particles from before the Langevin step, as in the print.

A birth is accepted with a probability of about Delta/sigma0, and eq. 8 with q_opt bounds it before any
particle is looked at (`birth_bound`). So rather than visiting all candidates, the candidates for a birth are
drawn with that bound by geometric skips, and a drawn one is accepted with the ratio of its acceptance
probability to the bound: the same law at a fraction of the cost.

Arrays travel in four bundles, so that a signature fits on a line:

``problem``  members (M, order), status (M,), own log odds (M,), bias totals (p,), totals s (M,)
``graph``    values (M,), momentum (M,), active (M,): list of the active cliques, where (M,): a clique's
             position in it or -1, size (1,): its length; start, degree, adjacent: as in ``kernels/gibbs.py``;
             dying, born (M,), newborn (M, 2): working space of `jump_all`
``tuning``   preconditioner of biases and cliques, jump widths Delta, `log_reach` (see `jump_all`)
``sums``     tries, inclusion, births, deaths (M,) and counts (5,)

A clique's status is COMMON (shares p0), SEPARATE (prior odds of its own) or anything else (fixed).
``hyper`` = [p0, sigma0, sigma0^-2 of the unfinished Langevin step].
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel
from edgewise.kernels.gibbs import connect, disconnect
from edgewise.kernels.hyper import draw_inclusion_rate, draw_slab_scale
from edgewise.kernels.jumps import (
    log_ratio_birth,
    log_ratio_death,
    log_slab_density,
    proposal_at_birth,
    proposal_at_death,
    propose_value,
)
from edgewise.kernels.langevin import (
    add_variances,
    feature_moments,
    fresh_sweep,
    move_parameters,
    unfinished_momentum,
)
from edgewise.kernels.random import below, uniform

COMMON, SEPARATE = 0, 1
BIRTH_TRIES, BIRTH_ACCEPTS, DEATH_TRIES, DEATH_ACCEPTS, SITE_UPDATES = 0, 1, 2, 3, 4


@kernel
def draw_hyperparameters(hyper, hyper_prior, n_common, status, graph, stream):
    """Eq. 14 with `hyper_prior` = [a, b, c, d]; a NaN in it marks a fixed hyper-parameter."""
    values, _, active, _, size = graph[:5]
    sharing = 0
    squares = 0.0
    for k in range(size[0]):
        squares += values[active[k]] ** 2
        if status[active[k]] == COMMON:
            sharing += 1
    if not math.isnan(hyper_prior[0]):
        hyper[0] = draw_inclusion_rate(hyper_prior[0], hyper_prior[1], sharing, n_common, stream)
    if not math.isnan(hyper_prior[2]):
        hyper[1] = draw_slab_scale(hyper_prior[2], hyper_prior[3], size[0], squares, stream)


@kernel
def add_clique(c, value, start_momentum, members, graph):
    """Make a clique active."""
    values, momentum, active, where, size, start, degree, adjacent = graph[:8]
    connect(c, members, start, degree, adjacent)
    values[c] = value
    momentum[c] = start_momentum
    where[c] = size[0]
    active[size[0]] = c
    size[0] += 1


@kernel
def remove_clique(c, members, graph):
    """Make a clique inactive; the last of the active list moves into its place."""
    values, momentum, active, where, size, start, degree, adjacent = graph[:8]
    disconnect(c, members, start, degree, adjacent)
    size[0] -= 1
    last = active[size[0]]
    active[where[c]] = last
    where[last] = where[c]
    where[c] = -1
    values[c] = 0.0
    momentum[c] = 0.0


@kernel
def birth(c, particles, rows, problem, log_odds, slab_scale, width, stream):
    """Propose the birth of clique c: its value, acceptance probability and gradient at that value."""
    members, status, own_log_odds, _, totals = problem
    odds = log_odds if status[c] == COMMON else own_log_odds[c]
    mean, variance = feature_moments(particles, members[c])
    gradient, precision = proposal_at_birth(totals[c], rows, mean, variance, slab_scale)
    value = propose_value(gradient, precision, width, stream)
    log_ratio = log_ratio_birth(
        value,
        totals[c],
        rows,
        mean,
        variance,
        particles.shape[1],
        odds,
        slab_scale,
        gradient,
        precision,
        width,
    )
    # Exactly zero cannot be told from inactive; it has probability zero but for rounding.
    accept = math.exp(min(0.0, log_ratio)) if value != 0.0 else 0.0
    return value, accept, gradient - precision * value


@kernel
def death(c, value, particles, rows, problem, log_odds, slab_scale, width):
    """Acceptance probability of the death of clique c, which has the parameter `value`."""
    members, status, own_log_odds, _, totals = problem
    odds = log_odds if status[c] == COMMON else own_log_odds[c]
    mean, variance = feature_moments(particles, members[c])
    gradient, precision = proposal_at_death(value, totals[c], rows, mean, variance, slab_scale)
    log_ratio = log_ratio_death(
        value,
        totals[c],
        rows,
        mean,
        variance,
        particles.shape[1],
        odds,
        slab_scale,
        gradient,
        precision,
        width,
    )
    return math.exp(min(0.0, log_ratio))


@kernel
def jump_all(particles, rows, problem, n_free, log_odds, slab_scale, step_size, tuning, graph, sums, stream):
    """Decide births of all inactive and deaths of all small active cliques, then apply them.

    ``n_free`` counts the COMMON and SEPARATE cliques; ``log_reach`` (2,) holds the largest
    log(2 Delta) + Delta max |g| of the COMMON cliques, and of the SEPARATE ones with their log odds included.
    """
    members, status = problem[:2]
    values, _, active, where, size = graph[:5]
    _, scale, width, log_reach = tuning
    _, inclusion, births, deaths, counts = sums
    n_cliques = members.shape[0]
    dying, born, newborn = graph[8:]
    n_dying = 0
    tried = 0
    for k in range(size[0]):
        c = active[k]
        if status[c] != COMMON and status[c] != SEPARATE:
            continue
        tried += 1
        inclusion[c] += 1.0
        if abs(values[c]) > width[c]:
            continue
        accept = death(c, values[c], particles, rows, problem, log_odds, slab_scale, width[c])
        counts[DEATH_TRIES] += 1
        inclusion[c] -= accept
        if uniform(stream) < accept:
            dying[n_dying] = c
            n_dying += 1
    log_chance = log_slab_density(0.0, slab_scale) + max(log_odds + log_reach[0], log_reach[1])
    chance = math.exp(min(0.0, log_chance))
    # No candidate left to be born: the first skip leads past the end.
    skip_scale = -math.inf
    if chance > 0.0:
        skip_scale = 1.0 / math.log1p(-chance) if chance < 1.0 else 0.0
    n_born = 0
    c = -1
    while True:
        skip = math.log(uniform(stream)) * skip_scale
        if not skip < n_cliques - 1 - c:
            break
        c += 1 + int(skip)
        if where[c] >= 0 or (status[c] != COMMON and status[c] != SEPARATE):
            continue
        value, accept, slope = birth(c, particles, rows, problem, log_odds, slab_scale, width[c], stream)
        inclusion[c] += accept / chance
        if uniform(stream) * chance < accept:
            born[n_born] = c
            newborn[n_born, 0] = value
            newborn[n_born, 1] = unfinished_momentum(slope, scale[c], step_size, stream)
            n_born += 1
    for k in range(n_dying):
        deaths[dying[k]] += 1.0
        remove_clique(dying[k], members, graph)
    for k in range(n_born):
        births[born[k]] += 1.0
        add_clique(born[k], newborn[k, 0], newborn[k, 1], members, graph)
    counts[BIRTH_TRIES] += n_free - tried
    counts[BIRTH_ACCEPTS] += n_born
    counts[DEATH_ACCEPTS] += n_dying


@kernel
def jump_one(particles, rows, problem, log_odds, slab_scale, step_size, tuning, graph, sums, stream):
    """Try one clique, drawn from all candidates alike (section 4 without 4.3)."""
    members, status = problem[:2]
    values, _, _, where, _ = graph[:5]
    _, scale, width, _ = tuning
    tries, inclusion, births, deaths, counts = sums
    c = below(stream, members.shape[0])
    if status[c] != COMMON and status[c] != SEPARATE:
        return
    tries[c] += 1.0
    if where[c] < 0:
        counts[BIRTH_TRIES] += 1
        value, accept, slope = birth(c, particles, rows, problem, log_odds, slab_scale, width[c], stream)
        inclusion[c] += accept
        if uniform(stream) < accept:
            births[c] += 1.0
            counts[BIRTH_ACCEPTS] += 1
            add_clique(c, value, unfinished_momentum(slope, scale[c], step_size, stream), members, graph)
        return
    inclusion[c] += 1.0
    if abs(values[c]) > width[c]:
        return
    counts[DEATH_TRIES] += 1
    accept = death(c, values[c], particles, rows, problem, log_odds, slab_scale, width[c])
    inclusion[c] -= accept
    if uniform(stream) < accept:
        deaths[c] += 1.0
        counts[DEATH_ACCEPTS] += 1
        remove_clique(c, members, graph)


@kernel
def run_iterations(
    count,
    clock,
    moment_stride,
    gibbs_sweeps,
    step_size,
    retained,
    parallel,
    rows,
    n_common,
    n_free,
    hyper_prior,
    bias_precision,
    hyper,
    biases,
    bias_momentum,
    particles,
    lanes,
    stream,
    problem,
    graph,
    tuning,
    sums,
    single_variances,
    variances,
    precision_sum,
    field,
    scratch,
):
    """Run `count` iterations of Algorithm 1 in place; `clock` (1,) counts them.

    With a positive `moment_stride` (in warm-up) every such iteration adds the features' variances to their
    running sums, and to ``precision_sum`` = [how many, sum of sigma0^-2].
    """
    members, status, _, single_totals, totals = problem
    values, momentum, active, _, size, start, degree, adjacent = graph[:8]
    bias_scale, scale = tuning[:2]
    for _ in range(count):
        draw_hyperparameters(hyper, hyper_prior, n_common, status, graph, stream)
        slab_precision = 1.0 / (hyper[1] * hyper[1])
        for _ in range(gibbs_sweeps):
            fresh_sweep(particles, lanes, biases, values, members, start, degree, adjacent, field, scratch)
        sums[4][SITE_UPDATES] += gibbs_sweeps * particles.size
        move_parameters(
            particles,
            members,
            rows,
            single_totals,
            totals,
            biases,
            bias_momentum,
            values,
            momentum,
            active[: size[0]],
            bias_precision,
            hyper[2],
            slab_precision,
            bias_scale,
            scale,
            step_size,
            retained,
            stream,
        )
        hyper[2] = slab_precision
        log_odds = math.log(hyper[0]) - math.log1p(-hyper[0])
        if parallel:
            jump_all(
                particles, rows, problem, n_free, log_odds, hyper[1], step_size, tuning, graph, sums, stream
            )
        else:
            jump_one(particles, rows, problem, log_odds, hyper[1], step_size, tuning, graph, sums, stream)
        clock[0] += 1
        if moment_stride > 0 and clock[0] % moment_stride == 0:
            add_variances(particles, members, single_variances, variances)
            precision_sum[0] += 1.0
            precision_sum[1] += slab_precision
