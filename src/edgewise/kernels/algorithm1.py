"""Iterations of Algorithm 1 of Chen & Welling (2012): hyper-parameters, Gibbs, Langevin, jumps.

The jumps of an iteration are decided one by one from the same particles and then applied together
(section 4.3). They see the particles from before the Langevin step, as in the print.

A birth is accepted with a probability of about Delta/sigma0, and eq. 8 with q_opt bounds it before any
particle is looked at (`birth_bound`). So rather than visiting all candidates, the candidates for a birth are
drawn with that bound by geometric skips, and a drawn one is accepted with the ratio of its acceptance
probability to the bound: the same law at a fraction of the cost.

``motion`` is what moves beside the graph: values of the cliques, their momenta, biases and theirs, and
``hyper`` = [p0, sigma0, sigma0^-2 of the unfinished Langevin step]. ``tuning`` is frozen after warm-up:
preconditioner of biases and cliques, jump widths Delta, `log_reach` (see `jump_all`). ``totals`` are the sums
over the data, ``scratch`` working space.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.codes import BIRTHS, COMMON, DEATHS, INCLUSION, SLAB_SCALE, TRIES
from edgewise.kernels.compiling import entry, kernel
from edgewise.kernels.gibbs import fresh_sweep
from edgewise.kernels.graph import activate, deactivate
from edgewise.kernels.hyper import draw_hyper, is_free, log_rate_odds
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
    move_parameters,
    unfinished_momentum,
)
from edgewise.kernels.random import below, uniform

Motion = namedtuple("Motion", "values momentum biases bias_momentum hyper")
Tuning = namedtuple("Tuning", "bias_scale scale width log_reach")
Totals = namedtuple("Totals", "rows singles cliques")
Scratch = namedtuple("Scratch", "dying born newborn field product")

# Entry of `hyper` after those of ``codes.py``, and the counts of the engine.
OLD_PRECISION = 2
BIRTH_TRIES, BIRTH_ACCEPTS, DEATH_TRIES, DEATH_ACCEPTS, SITE_UPDATES = range(5)


@kernel
def add_clique(c, value, start_momentum, motion, graph):
    """Make a clique active."""
    activate(c, graph)
    motion.values[c] = value
    motion.momentum[c] = start_momentum


@kernel
def remove_clique(c, motion, graph):
    """Make a clique inactive."""
    deactivate(c, graph)
    motion.values[c] = 0.0
    motion.momentum[c] = 0.0


@kernel
def log_odds_of(c, status, hyper, prior):
    """Prior log odds of clique c with p0 as it was drawn, because cliques are decided together."""
    return log_rate_odds(hyper) if status[c] == COMMON else prior.log_odds[c]


@kernel
def birth(c, particles, totals, motion, prior, graph, width, stream):
    """Propose the birth of clique c: its value, acceptance probability and gradient at that value."""
    total, rows, slab_scale = totals.cliques[c], totals.rows, motion.hyper[SLAB_SCALE]
    odds = log_odds_of(c, graph.status, motion.hyper, prior)
    n = particles.shape[1]
    mean, variance = feature_moments(particles, graph.members[c])
    gradient, precision = proposal_at_birth(total, rows, mean, variance, slab_scale)
    value = propose_value(gradient, precision, width, stream)
    log_ratio = log_ratio_birth(
        value, total, rows, mean, variance, n, odds, slab_scale, gradient, precision, width
    )
    # Exactly zero cannot be told from inactive; it has probability zero but for rounding.
    accept = math.exp(min(0.0, log_ratio)) if value != 0.0 else 0.0
    return value, accept, gradient - precision * value


@kernel
def death(c, particles, totals, motion, prior, graph, width):
    """Acceptance probability of the death of clique c."""
    total, rows, slab_scale = totals.cliques[c], totals.rows, motion.hyper[SLAB_SCALE]
    value = motion.values[c]
    odds = log_odds_of(c, graph.status, motion.hyper, prior)
    n = particles.shape[1]
    mean, variance = feature_moments(particles, graph.members[c])
    gradient, precision = proposal_at_death(value, total, rows, mean, variance, slab_scale)
    log_ratio = log_ratio_death(
        value, total, rows, mean, variance, n, odds, slab_scale, gradient, precision, width
    )
    return math.exp(min(0.0, log_ratio))


@kernel
def jump_all(
    particles, totals, n_free, step_size, motion, prior, graph, tuning, tallies, counts, scratch, stream
):
    """Decide births of all inactive and deaths of all small active cliques, then apply them.

    ``n_free`` counts the cliques that are decided; ``log_reach`` (2,) holds the largest
    log(2 Delta) + Delta max |g| of the COMMON cliques, and of the SEPARATE ones with their log odds included.
    """
    dying, born, newborn = scratch.dying, scratch.born, scratch.newborn
    width = tuning.width
    n_cliques = graph.place.shape[0]
    n_dying = 0
    tried = 0
    for k in range(graph.counts[0]):
        c = graph.listed[k]
        if not is_free(graph.status[c]):
            continue
        tried += 1
        tallies[INCLUSION, c] += 1.0
        if abs(motion.values[c]) > width[c]:
            continue
        accept = death(c, particles, totals, motion, prior, graph, width[c])
        counts[DEATH_TRIES] += 1
        tallies[INCLUSION, c] -= accept
        if uniform(stream) < accept:
            dying[n_dying] = c
            n_dying += 1
    reach = max(log_rate_odds(motion.hyper) + tuning.log_reach[0], tuning.log_reach[1])
    chance = math.exp(min(0.0, log_slab_density(0.0, motion.hyper[SLAB_SCALE]) + reach))
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
        if graph.place[c] >= 0 or not is_free(graph.status[c]):
            continue
        value, accept, slope = birth(c, particles, totals, motion, prior, graph, width[c], stream)
        tallies[INCLUSION, c] += accept / chance
        if uniform(stream) * chance < accept:
            born[n_born] = c
            newborn[n_born, 0] = value
            newborn[n_born, 1] = unfinished_momentum(slope, tuning.scale[c], step_size, stream)
            n_born += 1
    for k in range(n_dying):
        tallies[DEATHS, dying[k]] += 1.0
        remove_clique(dying[k], motion, graph)
    for k in range(n_born):
        tallies[BIRTHS, born[k]] += 1.0
        add_clique(born[k], newborn[k, 0], newborn[k, 1], motion, graph)
    counts[BIRTH_TRIES] += n_free - tried
    counts[BIRTH_ACCEPTS] += n_born
    counts[DEATH_ACCEPTS] += n_dying


@kernel
def jump_one(particles, totals, step_size, motion, prior, graph, tuning, tallies, counts, stream):
    """Try one clique, drawn from all candidates alike (section 4 without 4.3)."""
    c = below(stream, graph.place.shape[0])
    if not is_free(graph.status[c]):
        return
    width = tuning.width[c]
    tallies[TRIES, c] += 1.0
    if graph.place[c] < 0:
        counts[BIRTH_TRIES] += 1
        value, accept, slope = birth(c, particles, totals, motion, prior, graph, width, stream)
        tallies[INCLUSION, c] += accept
        if uniform(stream) < accept:
            tallies[BIRTHS, c] += 1.0
            counts[BIRTH_ACCEPTS] += 1
            momentum = unfinished_momentum(slope, tuning.scale[c], step_size, stream)
            add_clique(c, value, momentum, motion, graph)
        return
    tallies[INCLUSION, c] += 1.0
    if abs(motion.values[c]) > width:
        return
    counts[DEATH_TRIES] += 1
    accept = death(c, particles, totals, motion, prior, graph, width)
    tallies[INCLUSION, c] -= accept
    if uniform(stream) < accept:
        tallies[DEATHS, c] += 1.0
        counts[DEATH_ACCEPTS] += 1
        remove_clique(c, motion, graph)


@entry
def run_iterations(
    count,
    clock,
    moment_stride,
    gibbs_sweeps,
    step_size,
    retained,
    parallel,
    n_free,
    totals,
    prior,
    motion,
    graph,
    tuning,
    particles,
    lanes,
    stream,
    tallies,
    counts,
    moments,
    scratch,
):
    """Run `count` iterations of Algorithm 1 in place; `clock` (1,) counts them.

    With a positive `moment_stride` (in warm-up) every such iteration adds the features' variances to
    ``moments`` = (of biases, of cliques, [how many, sum of sigma0^-2]).
    """
    hyper = motion.hyper
    single_variances, variances, precision_sum = moments
    for _ in range(count):
        draw_hyper(hyper, motion.values, prior, graph, stream)
        slab_precision = 1.0 / (hyper[SLAB_SCALE] * hyper[SLAB_SCALE])
        for _ in range(gibbs_sweeps):
            fresh_sweep(particles, lanes, motion.biases, motion.values, graph, scratch.field, scratch.product)
        counts[SITE_UPDATES] += gibbs_sweeps * particles.size
        move_parameters(
            particles,
            graph.members,
            totals.rows,
            totals.singles,
            totals.cliques,
            motion.biases,
            motion.bias_momentum,
            motion.values,
            motion.momentum,
            graph.listed[: graph.counts[0]],
            1.0 / (prior.bias_sd * prior.bias_sd),
            hyper[OLD_PRECISION],
            slab_precision,
            tuning.bias_scale,
            tuning.scale,
            step_size,
            retained,
            stream,
        )
        hyper[OLD_PRECISION] = slab_precision
        if parallel:
            jump_all(
                particles, totals, n_free, step_size, motion, prior, graph, tuning, tallies, counts, scratch,
                stream,
            )  # fmt: skip
        else:
            jump_one(particles, totals, step_size, motion, prior, graph, tuning, tallies, counts, stream)
        clock[0] += 1
        if moment_stride > 0 and clock[0] % moment_stride == 0:
            add_variances(particles, graph.members, single_variances, variances)
            precision_sum[0] += 1.0
            precision_sum[1] += slab_precision
