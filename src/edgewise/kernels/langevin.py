"""Langevin steps of biases and active cliques (Chen & Welling 2012, section 3, eqs. 4-7).

One coordinate at a time, because the preconditioner is diagonal and every gradient comes from the same
particles. Three places of the paper are read differently from the print:

* Eq. 6 prints H = Cov f + sigma0^-2 and C C^T = H. The Hessian of minus the log posterior is
  N Cov f + sigma0^-2 (sigma_b^-2 for biases), and the preconditioner has to undo it: C C^T = H^-1, here
  diagonally C = (N v + sigma0^-2)^(-1/2). The target is the same for any C; this is about speed.
* Eq. 4 wants the gradient twice per step. The same particles serve the second half-kick of a step and the
  first half-kick of the next, in the order second half-kick, refreshment, first half-kick, drift; the rest
  of an iteration happens between drift and second half-kick. To be right to first order in eps the second
  half-kick uses the sigma0 of its own step, and the momentum N(0, 1) of a newborn clique is the one *after*
  its second half-kick (`unfinished_momentum`).
* Section 3.3's step size eta is eps.

Symbols: ``particles`` float32 (p, n) the state samples x, ``mean`` f_bar, ``variance`` S^2, ``rows`` N,
``totals`` s, ``gradient`` g, ``scale`` C, ``step_size`` eps, ``retained`` alpha, ``momentum`` p.
``stream`` is a scalar random state.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import normal

# Sums of zeros and ones are exact in any order, so they may be reassociated and vectorised.
_COUNTING = {"fastmath": {"reassoc"}}


@kernel(**_COUNTING)
def count_single(row):
    """Number of particles with the variable at one."""
    total = np.float32(0.0)
    for s in range(row.shape[0]):
        total += row[s]
    return total


@kernel(**_COUNTING)
def count_pair(first, second):
    """Number of particles with both variables at one."""
    total = np.float32(0.0)
    for s in range(first.shape[0]):
        total += first[s] * second[s]
    return total


@kernel
def count_clique(particles, clique):
    """Number of particles with all variables of a clique (padded with -1) at one."""
    size = 2
    while size < clique.shape[0] and clique[size] >= 0:
        size += 1
    if size == 2:
        return count_pair(particles[clique[0]], particles[clique[1]])
    total = np.float32(0.0)
    for s in range(particles.shape[1]):
        product = np.float32(1.0)
        for k in range(size):
            product *= particles[clique[k], s]
        total += product
    return total


@kernel
def feature_moments(particles, clique):
    """Sample mean f_bar and sample variance S^2 (divisor n - 1) of a clique's feature."""
    n = particles.shape[1]
    mean = count_clique(particles, clique) / n
    return mean, mean * (1.0 - mean) * n / (n - 1)


@kernel
def langevin_step(value, momentum, old_gradient, gradient, scale, step_size, retained, stream):
    """Finish the last leapfrog step, refresh the momentum (eq. 7) and begin the next (eq. 4): (6.1)."""
    momentum += 0.5 * step_size * scale * old_gradient
    momentum = retained * momentum + math.sqrt(1.0 - retained * retained) * normal(stream)
    momentum += 0.5 * step_size * scale * gradient
    return value + step_size * scale * momentum, momentum


@kernel
def unfinished_momentum(gradient, scale, step_size, stream):
    """Momentum of a newborn clique: a fresh N(0, 1) that still waits for its second half-kick."""
    return normal(stream) - 0.5 * step_size * scale * gradient


@kernel
def move_parameters(
    particles,
    members,
    rows,
    single_totals,
    totals,
    biases,
    bias_momentum,
    values,
    momentum,
    active,
    bias_precision,
    old_slab_precision,
    slab_precision,
    bias_scale,
    scale,
    step_size,
    retained,
    stream,
):
    """One Langevin step of all biases and of the cliques listed in `active`, with the gradient of eq. 5."""
    n = particles.shape[1]
    for i in range(biases.shape[0]):
        mean = count_single(particles[i]) / n
        gradient = single_totals[i] - rows * mean - bias_precision * biases[i]
        biases[i], bias_momentum[i] = langevin_step(
            biases[i], bias_momentum[i], gradient, gradient, bias_scale[i], step_size, retained, stream
        )
    for c in active:
        surplus = totals[c] - rows * (count_clique(particles, members[c]) / n)
        values[c], momentum[c] = langevin_step(
            values[c],
            momentum[c],
            surplus - old_slab_precision * values[c],
            surplus - slab_precision * values[c],
            scale[c],
            step_size,
            retained,
            stream,
        )


@kernel
def add_variances(particles, members, single_variances, variances):
    """Add the variance of every feature over the particles to running sums (section 3.2)."""
    n = particles.shape[1]
    for i in range(single_variances.shape[0]):
        mean = count_single(particles[i]) / n
        single_variances[i] += mean * (1.0 - mean) * n / (n - 1)
    for c in range(variances.shape[0]):
        variances[c] += feature_moments(particles, members[c])[1]
