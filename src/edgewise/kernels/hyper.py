"""Hyper-parameters from their conjugate posteriors (Chen & Welling 2012, eq. 14).

    p0        | Y    ~ Beta(a + E, b + M - E)
    sigma0^-2 | Y, A ~ Gamma(c + E/2, rate d + sum A^2 / 2), over the active A only

Symbols: ``beta_a, beta_b`` are a, b; ``gamma_shape, gamma_rate`` are c, d; ``active`` is E among the
``candidates`` M that share p0 and ``squares`` the sum of A^2. ``stream`` is a scalar random state.
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import gamma_above_one, uniform

# Keeps the log odds of p0 finite; the Beta priors in use put no visible mass beyond it.
SMALLEST_RATE = 1e-15


@kernel
def draw_log_gamma(shape, stream):
    """Logarithm of a Gamma(shape, rate 1) variable, which itself may be too small for a float."""
    if shape < 1.0:
        return math.log(gamma_above_one(stream, shape + 1.0)) + math.log(uniform(stream)) / shape
    return math.log(gamma_above_one(stream, shape))


@kernel
def draw_inclusion_rate(beta_a, beta_b, active, candidates, stream):
    """Draw p0 given how many of the candidates are active."""
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
    """Draw sigma0 given the active parameters."""
    log_gamma = draw_log_gamma(gamma_shape + 0.5 * active, stream)
    return math.exp(0.5 * (math.log(gamma_rate + 0.5 * squares) - log_gamma))
