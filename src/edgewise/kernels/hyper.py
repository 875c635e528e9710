"""The prior of the indicators and its hyper-parameters (docs/method.md, 2).

Symbols: ``beta_a, beta_b`` are a, b; ``gamma_shape, gamma_rate`` are c, d; ``n_common`` the M candidates
that share p0, ``squares`` the sum of A^2 over the E active ones. ``hyper`` is (p0, sigma0), in the order of
``codes.py``; ``stream`` a scalar random state.

``PriorRules`` holds the prior as the kernels read it, fixed for the whole run: ``log_odds[a]`` are the prior
log odds of a SEPARATE candidate, ``fixed_p0`` and ``fixed_sigma0`` tell that the value in ``hyper`` is given
rather than learned, ``bias_sd`` is sigma_b.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.codes import COMMON, INCLUSION_RATE, SEPARATE, SLAB_SCALE
from edgewise.kernels.compiling import kernel
from edgewise.kernels.graph import slab_terms
from edgewise.kernels.random import gamma_above_one, uniform

PriorRules = namedtuple(
    "PriorRules", "log_odds beta_a beta_b fixed_p0 n_common gamma_shape gamma_rate fixed_sigma0 bias_sd"
)

# Keeps the log odds of p0 finite; the Beta priors in use put no visible mass beyond it.
SMALLEST_RATE = 1e-15


@kernel
def is_free(status):
    """Whether the indicator of a candidate with this status is decided rather than given."""
    return status <= SEPARATE


@kernel
def log_rate_odds(hyper):
    """Log odds of p0 as it is."""
    return math.log(hyper[INCLUSION_RATE]) - math.log1p(-hyper[INCLUSION_RATE])


@kernel
def log_prior_odds(a, others, status, hyper, prior):
    """Prior log odds of candidate `a`: (2.4) when p0 is learned.

    `others` is the number of active candidates that share p0, `a` itself not counted.
    """
    if status[a] == SEPARATE:
        return prior.log_odds[a]
    if prior.fixed_p0:
        return log_rate_odds(hyper)
    return math.log(prior.beta_a + others) - math.log(prior.beta_b + prior.n_common - 1 - others)


@kernel
def other_common(a, graph):
    """Number of active candidates that share p0, `a` not counted."""
    counted = graph.place[a] >= 0 and graph.status[a] == COMMON
    return graph.counts[1] - (1 if counted else 0)


@kernel
def draw_log_gamma(shape, stream):
    """Logarithm of a Gamma(shape, rate 1) variable, which itself may be too small for a float."""
    if shape < 1.0:
        return math.log(gamma_above_one(stream, shape + 1.0)) + math.log(uniform(stream)) / shape
    return math.log(gamma_above_one(stream, shape))


@kernel
def draw_inclusion_rate(beta_a, beta_b, active, candidates, stream):
    """Draw p0 given how many of the candidates are active (2.3)."""
    log_first = draw_log_gamma(beta_a + active, stream)
    log_second = draw_log_gamma(beta_b + candidates - active, stream)
    difference = log_second - log_first
    if difference > 0.0:
        small = math.exp(-difference)
        rate = small / (1.0 + small)
    else:
        rate = 1.0 / (1.0 + math.exp(difference))
    return min(max(rate, SMALLEST_RATE), 1.0 - SMALLEST_RATE)


@kernel
def draw_slab_scale(gamma_shape, gamma_rate, active, squares, stream):
    """Draw sigma0 given the active parameters (2.3)."""
    log_gamma = draw_log_gamma(gamma_shape + 0.5 * active, stream)
    return math.exp(0.5 * (math.log(gamma_rate + 0.5 * squares) - log_gamma))


@kernel
def draw_hyper(hyper, theta, prior, graph, stream):
    """Draw p0 and sigma0 given the graph and the active parameters, where they are learned."""
    if not prior.fixed_p0:
        hyper[INCLUSION_RATE] = draw_inclusion_rate(
            prior.beta_a, prior.beta_b, graph.counts[1], prior.n_common, stream
        )
    if not prior.fixed_sigma0:
        active, squares = slab_terms(graph, theta)
        hyper[SLAB_SCALE] = draw_slab_scale(prior.gamma_shape, prior.gamma_rate, active, squares, stream)
