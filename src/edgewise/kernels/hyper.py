"""The prior of the indicators and its hyper-parameters (docs/method.md, 2).

Symbols: ``beta_a, beta_b`` are a, b; ``gamma_shape, gamma_rate`` are c, d; ``n_common`` the M candidates
that share p0, ``squares`` the sum of A^2 over the E active ones. ``hyper`` is (p0, sigma0), in the order of
``codes.py``; ``stream`` a scalar random state.

``PriorRules`` holds the prior as the kernels read it: ``log_odds[a]`` are the prior log odds of a SEPARATE
candidate, ``fixed_p0`` and ``fixed_sigma0`` tell that the value in ``hyper`` is given rather than learned,
``bias_sd`` is sigma_b, ``slab`` one of ``slabs.py`` and ``model`` what else is behind the log odds: nothing
(``Plain``), or by its ``kind`` nothing, communities (``communities.py``) or attributes (``attributes.py``).
A model moves between the iterations, when :func:`draw_hyper` draws its state and lays out the log odds anew;
all else is fixed. There are two types of rules, the plain ones of nearly all fits and those of all others,
so that code is compiled twice at most.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.attributes import draw_regression
from edgewise.kernels.codes import (
    ATTRIBUTES,
    COMMON,
    COMMUNITIES,
    INCLUSION_RATE,
    SEPARATE,
    SLAB_SCALE,
)
from edgewise.kernels.communities import draw_blocks
from edgewise.kernels.compiling import answer, kernel, question
from edgewise.kernels.random import draw_log_gamma
from edgewise.kernels.slabs import draw_factors, scale_terms

PriorRules = namedtuple(
    "PriorRules",
    "log_odds beta_a beta_b fixed_p0 n_common gamma_shape gamma_rate fixed_sigma0 bias_sd slab model",
)
Plain = namedtuple("Plain", "nothing")
Model = namedtuple("Model", "kind blocks regression")

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


@question
def draw_model(model, graph, hyper, log_odds, stream):
    """Draw the state of a model of inclusion given the graph, and lay out the log odds that follow."""


@answer(draw_model, Plain)
def _nothing(model, graph, hyper, log_odds, stream):
    pass


@answer(draw_model, Model)
def _by_kind(model, graph, hyper, log_odds, stream):
    if model.kind == COMMUNITIES:
        draw_blocks(model.blocks, graph, hyper, log_odds, stream)
    elif model.kind == ATTRIBUTES:
        draw_regression(model.regression, graph, hyper, log_odds, stream)


@kernel
def draw_hyper(hyper, theta, prior, graph, stream):
    """Draw all hyper-parameters given the graph and the active parameters, where they are learned."""
    if not prior.fixed_p0:
        hyper[INCLUSION_RATE] = draw_inclusion_rate(
            prior.beta_a, prior.beta_b, graph.counts[1], prior.n_common, stream
        )
    if not prior.fixed_sigma0:
        active, squares = scale_terms(prior.slab, graph, theta)
        hyper[SLAB_SCALE] = draw_slab_scale(prior.gamma_shape, prior.gamma_rate, active, squares, stream)
    draw_factors(prior.slab, graph, theta, hyper, stream)
    draw_model(prior.model, graph, hyper, prior.log_odds, stream)
