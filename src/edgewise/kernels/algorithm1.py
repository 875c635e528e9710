"""Iterations of Algorithm 1 of Chen & Welling (2012): hyper-parameters, Gibbs, Langevin, jumps.

The jumps of an iteration are decided one by one from the same particles and then applied together
(section 4.3). They see the particles from before the Langevin step, as in the print.

A birth is accepted with a probability of about Delta/sigma0, and eq. 8 with q_opt bounds it before any
particle is looked at (`birth_bound`). So rather than visiting all candidates, the candidates for a birth are
drawn with that bound by geometric skips, and a drawn one is accepted with the ratio of its acceptance
probability to the bound: the same law at a fraction of the cost.

The graph: ``values`` (M,) parameters, ``where`` (M,) position of a clique in the list ``active`` or -1,
``size`` (1,) length of that list. ``status`` tells the cliques that share p0 (COMMON), have prior odds of
their own (SEPARATE) or are fixed; ``hyper`` = [p0, sigma0].
"""

from __future__ import annotations

import math

import numba
import numpy as np

from edgewise.kernels.hyper import draw_inclusion_rate, draw_slab_scale
from edgewise.kernels.jumps import (
    log_ratio_birth,
    log_ratio_death,
    log_slab_density,
    proposal_at_birth,
    proposal_at_death,
    propose_value,
)
from edgewise.kernels.langevin import feature_moments
from edgewise.kernels.random import normal, uniform

COMMON, SEPARATE = 0, 1
BIRTH_TRIES, BIRTH_ACCEPTS, DEATH_TRIES, DEATH_ACCEPTS, SITE_UPDATES = 0, 1, 2, 3, 4


@numba.njit(nogil=True, cache=True)
def draw_hyperparameters(
    hyper, values, active, status, n_common, beta_a, beta_b, gamma_shape, gamma_rate, stream
):
    """Eq. 14; a NaN in the prior marks a fixed hyper-parameter."""
    if not math.isnan(beta_a):
        sharing = 0
        for c in active:
            if status[c] == COMMON:
                sharing += 1
        hyper[0] = draw_inclusion_rate(beta_a, beta_b, sharing, n_common, stream)
    if not math.isnan(gamma_shape):
        squares = 0.0
        for c in active:
            squares += values[c] * values[c]
        hyper[1] = draw_slab_scale(gamma_shape, gamma_rate, active.shape[0], squares, stream)


@numba.njit(nogil=True, cache=True)
def add_clique(c, value, start_momentum, values, momentum, active, where, size):
    """Append a clique to the active list."""
    values[c] = value
    momentum[c] = start_momentum
    where[c] = size[0]
    active[size[0]] = c
    size[0] += 1


@numba.njit(nogil=True, cache=True)
def remove_clique(c, values, momentum, active, where, size):
    """Take a clique from the active list; the last one moves into its place."""
    size[0] -= 1
    last = active[size[0]]
    active[where[c]] = last
    where[last] = where[c]
    where[c] = -1
    values[c] = 0.0
    momentum[c] = 0.0


@numba.njit(nogil=True, cache=True)
def birth(c, particles, members, rows, totals, log_odds, slab_scale, width, stream):
    """Propose the birth of clique c: its value and acceptance probability."""
    n = particles.shape[1]
    mean, variance = feature_moments(particles, members[c])
    gradient, precision = proposal_at_birth(totals[c], rows, mean, variance, slab_scale)
    value = propose_value(gradient, precision, width[c], stream)
    log_ratio = log_ratio_birth(
        value, totals[c], rows, mean, variance, n, log_odds, slab_scale, gradient, precision, width[c]
    )
    return value, math.exp(min(0.0, log_ratio))


@numba.njit(nogil=True, cache=True)
def death(c, value, particles, members, rows, totals, log_odds, slab_scale, width):
    """Acceptance probability of the death of clique c."""
    n = particles.shape[1]
    mean, variance = feature_moments(particles, members[c])
    gradient, precision = proposal_at_death(value, totals[c], rows, mean, variance, slab_scale)
    log_ratio = log_ratio_death(
        value, totals[c], rows, mean, variance, n, log_odds, slab_scale, gradient, precision, width[c]
    )
    return math.exp(min(0.0, log_ratio))


@numba.njit(nogil=True, cache=True)
def jump_all(
    particles,
    members,
    rows,
    totals,
    status,
    own_log_odds,
    log_odds,
    slab_scale,
    width,
    log_reach,
    values,
    momentum,
    active,
    where,
    size,
    inclusion,
    births,
    deaths,
    counts,
    stream,
):
    """Decide births of all inactive and deaths of all small active cliques, then apply them.

    ``log_reach`` (2,) holds the largest log(2 Delta) + Delta max |g| of the COMMON cliques, and of the
    SEPARATE ones with their log odds included.
    """
    n_cliques = members.shape[0]
    n_active = size[0]
    dying = np.empty(n_active, np.int64)
    n_dying = 0
    tried = 0
    for k in range(n_active):
        c = active[k]
        if status[c] != COMMON and status[c] != SEPARATE:
            continue
        tried += 1
        inclusion[c] += 1.0
        if abs(values[c]) > width[c]:
            continue
        odds = log_odds if status[c] == COMMON else own_log_odds[c]
        accept = death(c, values[c], particles, members, rows, totals, odds, slab_scale, width)
        counts[DEATH_TRIES] += 1
        inclusion[c] -= accept
        if uniform(stream) < accept:
            dying[n_dying] = c
            n_dying += 1
    slab = log_slab_density(0.0, slab_scale)
    chance = math.exp(min(0.0, slab + max(log_odds + log_reach[0], log_reach[1])))
    skip_scale = 0.0 if chance >= 1.0 else 1.0 / math.log1p(-chance)
    n_born = 0
    born = np.empty(16, np.int64)
    born_values = np.empty(16)
    c = -1
    while True:
        skip = math.log(uniform(stream)) * skip_scale if chance < 1.0 else 0.0
        if not skip < n_cliques - 1 - c:
            break
        c += 1 + int(skip)
        if where[c] >= 0 or (status[c] != COMMON and status[c] != SEPARATE):
            continue
        odds = log_odds if status[c] == COMMON else own_log_odds[c]
        value, accept = birth(c, particles, members, rows, totals, odds, slab_scale, width, stream)
        inclusion[c] += accept / chance
        if uniform(stream) * chance < accept and value != 0.0:
            if n_born == born.shape[0]:
                born = np.append(born, np.empty(n_born, np.int64))
                born_values = np.append(born_values, np.empty(n_born))
            born[n_born] = c
            born_values[n_born] = value
            n_born += 1
    for k in range(n_dying):
        deaths[dying[k]] += 1.0
        remove_clique(dying[k], values, momentum, active, where, size)
    for k in range(n_born):
        births[born[k]] += 1.0
        add_clique(born[k], born_values[k], normal(stream), values, momentum, active, where, size)
    counts[DEATH_ACCEPTS] += n_dying
    counts[BIRTH_ACCEPTS] += n_born
    return tried


@numba.njit(nogil=True, cache=True)
def jump_one(
    particles,
    members,
    rows,
    totals,
    status,
    own_log_odds,
    log_odds,
    slab_scale,
    width,
    values,
    momentum,
    active,
    where,
    size,
    tries,
    inclusion,
    births,
    deaths,
    counts,
    stream,
):
    """Try one clique, drawn from all candidates alike (section 4 without 4.3)."""
    n_cliques = members.shape[0]
    c = min(int(uniform(stream) * n_cliques), n_cliques - 1)
    if status[c] != COMMON and status[c] != SEPARATE:
        return
    odds = log_odds if status[c] == COMMON else own_log_odds[c]
    tries[c] += 1.0
    if where[c] < 0:
        counts[BIRTH_TRIES] += 1
        value, accept = birth(c, particles, members, rows, totals, odds, slab_scale, width, stream)
        inclusion[c] += accept
        if uniform(stream) < accept and value != 0.0:
            births[c] += 1.0
            counts[BIRTH_ACCEPTS] += 1
            add_clique(c, value, normal(stream), values, momentum, active, where, size)
        return
    inclusion[c] += 1.0
    if abs(values[c]) > width[c]:
        return
    counts[DEATH_TRIES] += 1
    accept = death(c, values[c], particles, members, rows, totals, odds, slab_scale, width)
    inclusion[c] -= accept
    if uniform(stream) < accept:
        deaths[c] += 1.0
        counts[DEATH_ACCEPTS] += 1
        remove_clique(c, values, momentum, active, where, size)
