"""Gibbs sweeps between an independent model and a Markov random field, and annealed importance weights.

The intermediate model at inverse temperature beta has, up to a constant, the log-potential

    log P_beta(x) = sum_i base_i x_i + beta D(x),   D(x) = sum_i (b_i - base_i) x_i + sum_a w_a f_a(x),

so that beta = 0 is independent with biases `base` and beta = 1 is the model. A particle's log-weight grows
by (beta' - beta) D(x) at every change of temperature, before the sweep at the new one (Neal 2001). D is
kept up to date for free: the field of a site is the change of D when the site turns on.

Cliques are listed by site: the terms of site i are ``first[i]:first[i + 1]``, each with its weight and the
other variables of the clique, padded with -1. State is (p, n): one row per variable, one column per particle.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.compiling import entry, kernel


@kernel(arrays=True)
def _slope(state, site, first, others, weights, offset, field):
    """Change of D when `site` turns on, for every particle, into `field`."""
    for m in range(state.shape[1]):
        field[m] = offset[site]
    for term in range(first[site], first[site + 1]):
        weight = weights[term]
        one = state[others[term, 0]]
        if others.shape[1] == 1 or others[term, 1] < 0:
            for m in range(state.shape[1]):
                field[m] += weight * one[m]
        else:
            for m in range(state.shape[1]):
                product = weight * one[m]
                for k in range(1, others.shape[1]):
                    if others[term, k] >= 0:
                        product *= state[others[term, k], m]
                field[m] += product


@kernel(arrays=True)
def _probability(field):
    small = math.exp(-abs(field))
    return 1.0 / (1.0 + small) if field >= 0 else small / (1.0 + small)


@entry(arrays=True)
def anneal(state, first, others, weights, offset, base, betas, rng):
    """Log-weights (n,) of particles that pass through (9.2) from `state`, drawn at beta = 0; moves them."""
    n_variables, n = state.shape
    log_weights = np.zeros(n)
    field = np.empty(n)
    gap = np.zeros(n)
    # D is linear in each variable, so turning the ones on one after the other adds up to it.
    partial = np.zeros_like(state)
    for i in range(n_variables):
        _slope(partial, i, first, others, weights, offset, field)
        for m in range(n):
            gap[m] += state[i, m] * field[m]
            partial[i, m] = state[i, m]
    for step in range(1, betas.shape[0]):
        beta = betas[step]
        for m in range(n):
            log_weights[m] += (beta - betas[step - 1]) * gap[m]
        if step == betas.shape[0] - 1:
            break
        for i in range(n_variables):
            _slope(state, i, first, others, weights, offset, field)
            for m in range(n):
                value = 1.0 if rng.random() < _probability(base[i] + beta * field[m]) else 0.0
                gap[m] += (value - state[i, m]) * field[m]
                state[i, m] = value
    return log_weights


@entry(arrays=True)
def clamped_means(state, sites, first, others, weights, biases, warm_up, sweeps, rng):
    """Mean conditional probability of every site over `sweeps` Gibbs sweeps that move only `sites`.

    Returns a float64 array (sites, n), one column per chain; `state` is moved.
    """
    n = state.shape[1]
    totals = np.zeros((sites.shape[0], n))
    field = np.empty(n)
    for sweep in range(warm_up + sweeps):
        for k in range(sites.shape[0]):
            i = sites[k]
            _slope(state, i, first, others, weights, biases, field)
            for m in range(n):
                probability = _probability(field[m])
                state[i, m] = 1.0 if rng.random() < probability else 0.0
                if sweep >= warm_up:
                    totals[k, m] += probability
    return totals / sweeps
