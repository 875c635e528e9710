"""Birth and death of one clique with noisy means (Chen & Welling 2012, section 4, eqs. 8-13).

A birth draws the parameter a of an inactive clique from the truncated Gaussian q_opt on [-Delta, Delta]; a
death removes an active one with |a| <= Delta. Partition functions enter through the mean f_bar and the
sample variance S^2 of the clique's feature over n particles.

Two places of the paper are read differently from the print:

* Eq. 12 prints h(a) = exp(-a^2/2 (1/sigma0^2 + Var f) + a N g). The g of eq. 5 contains N already, and
  eq. 9 has N Var f; here h(a) = exp(a g - a^2/2 (1/sigma0^2 + N Var f)) with g = s - N f_bar at a = 0.
* P_add and P_del of eq. 8 are not given. Every candidate is proposed with a probability that does not
  depend on the state, so that they cancel; an active clique with |a| > Delta is a rejection.

Symbols: ``total`` s, ``rows`` N, ``mean`` f_bar, ``variance`` S^2, ``particles`` n, ``value`` a,
``width`` Delta, ``log_odds`` log p0/(1 - p0), ``slab_scale`` sigma0, ``gradient`` and ``precision`` the
coefficients g and 1/sigma0^2 + N S^2 of log h. ``stream`` is a scalar random state.
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import normal, uniform

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
FAR_TAIL = 12.0
FRACTION_TERMS = 30


@kernel
def mills_ratio(x):
    """(1 - Phi(x)) / phi(x) for x >= 0, to full precision however far the tail."""
    if x < FAR_TAIL:
        return ROOT_HALF_PI * math.erfc(x * ROOT_HALF) * math.exp(0.5 * x * x)
    fraction = x
    for k in range(FRACTION_TERMS, 0, -1):
        fraction = x + k / fraction
    return 1.0 / fraction


@kernel
def log_normaliser(gradient, precision, width):
    """log of the integral of h(a) = exp(a g - a^2 precision / 2) over [-width, width] (eq. 13): (6.6)."""
    slope = abs(gradient)
    root = math.sqrt(precision)
    centre = slope / root
    near = centre - width * root
    far = centre + width * root
    if near <= 0.0:
        inside = 0.5 * (math.erf(far * ROOT_HALF) - math.erf(near * ROOT_HALF))
        return 0.5 * centre * centre + HALF_LOG_TWO_PI - math.log(root) + math.log(inside)
    # The mode lies outside: scale by h at the nearer edge, where nothing cancels.
    edge = width * slope - 0.5 * precision * width * width
    tail = mills_ratio(near) - math.exp(-2.0 * width * slope) * mills_ratio(far)
    return edge - math.log(root) + math.log(tail)


@kernel
def propose_value(gradient, precision, width, stream):
    """Draw from q_opt (6.4), the Gaussian of eq. 13 truncated to [-width, width].

    Rejection with a proposal that fits the case: the Gaussian itself or the flat density around the mode,
    and an exponential one (cut at the far edge) when the mode lies outside the window.
    """
    slope = abs(gradient)
    root = math.sqrt(precision)
    sign = 1.0 if gradient >= 0.0 else -1.0
    near = slope / root - width * root
    length = 2.0 * width * root
    # In standard units, measured from the mode into the window, the window is [near, near + length].
    if near < 0.5 and length > 2.5:
        while True:
            step = normal(stream) - near
            if 0.0 <= step <= length:
                break
    elif near <= 0.0:
        while True:
            step = length * uniform(stream)
            if math.log(uniform(stream)) < -0.5 * (near + step) ** 2:
                break
    else:
        # Beyond the nearer edge the density falls as exp(-near * step - step^2 / 2).
        reach = -math.expm1(-near * length)
        while True:
            if near * length < 1e-8:
                step = length * uniform(stream)
            else:
                step = -math.log1p(-uniform(stream) * reach) / near
            if step <= length and math.log(uniform(stream)) < -0.5 * step * step:
                break
    return sign * (width - step / root)


@kernel
def log_partition_ratio(change, rows, mean, variance, particles):
    """log R of eq. 11 (6.3): N times the fall of log Z when a clique's parameter grows by `change`.

    Second-order expansion around the particles' model plus the correction
    -log(1 + N^2 a^2 S^2 / 2n) that makes R itself, not its logarithm, unbiased to second order.
    """
    spread = rows * change * change * variance
    return -rows * change * mean - 0.5 * spread - math.log1p(0.5 * rows * spread / particles)


@kernel
def log_slab_density(value, slab_scale):
    """log N(a | 0, sigma0^2)."""
    scaled = value / slab_scale
    return -0.5 * scaled * scaled - math.log(slab_scale) - HALF_LOG_TWO_PI


@kernel
def log_proposal_density(value, gradient, precision, width):
    """log q_opt(a) of eq. 13, with h of (6.4)."""
    return value * gradient - 0.5 * precision * value * value - log_normaliser(gradient, precision, width)


@kernel
def proposal_at_birth(total, rows, mean, variance, slab_scale):
    """Coefficients of log h (eq. 12) from particles of the model without the clique."""
    return total - rows * mean, 1.0 / (slab_scale * slab_scale) + rows * variance


@kernel
def proposal_at_death(value, total, rows, mean, variance, slab_scale):
    """The same from particles of the model with the clique at a: E f = f_bar - a S^2 at a = 0."""
    return proposal_at_birth(total, rows, mean - value * variance, variance, slab_scale)


@kernel
def log_ratio_birth(
    value, total, rows, mean, variance, particles, log_odds, slab_scale, gradient, precision, width
):
    """log Q*(a) of eq. 8 (6.5) with the R of eq. 11, from particles of the model without the clique."""
    return (
        value * total
        + log_partition_ratio(value, rows, mean, variance, particles)
        + log_odds
        + log_slab_density(value, slab_scale)
        - log_proposal_density(value, gradient, precision, width)
    )


@kernel
def log_ratio_death(
    value, total, rows, mean, variance, particles, log_odds, slab_scale, gradient, precision, width
):
    """log 1/Q*(a) of eq. 8 with the R of eq. 11 at -a, from particles of the model with the clique."""
    return (
        -value * total
        + log_partition_ratio(-value, rows, mean, variance, particles)
        - log_odds
        - log_slab_density(value, slab_scale)
        + log_proposal_density(value, gradient, precision, width)
    )


@kernel
def birth_bound(log_odds, slab_scale, width, largest_gradient):
    """Upper bound of any birth's acceptance probability: q_opt's ratio is free of a but for the correction.

    With q_opt, log Q* = log odds + log N(0 | 0, sigma0^2) + log normaliser - correction, and the
    normaliser is at most 2 Delta exp(Delta |g|).
    """
    log_bound = (
        log_odds + log_slab_density(0.0, slab_scale) + math.log(2.0 * width) + width * largest_gradient
    )
    return 1.0 if log_bound >= 0.0 else math.exp(log_bound)
