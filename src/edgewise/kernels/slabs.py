"""The slab: how strong an active parameter is before the data (docs/method.md, 2.1 and 2.6 to 2.7).

Whatever the slab, a parameter is Gaussian given what a chain knows, N(mean, 1 / precision), so that every
move stays in closed form. Slabs are of two types, and code for the second is compiled where it is used:

``OneSlab``  N(0, sigma0^2) for all; its field has no meaning.
``OwnSlab``  ``sd[a]`` above zero: N(``mean[a]``, ``sd[a]``^2) whatever sigma0 is; else a scale mixture,
             N(0, ``factor[a]`` sigma0^2), ``freedom`` / factor ~ chi^2(freedom), which is Student's t
             with scale sigma0 (2.6). ``freedom`` zero keeps the factors at one. Factors move with the
             hyper-parameters; those of inactive candidates are draws from their prior.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.codes import SLAB_SCALE
from edgewise.kernels.compiling import answer, kernel, question
from edgewise.kernels.graph import parameters_of, slab_terms
from edgewise.kernels.lines import LOG_ROOT_TWO_PI, log_slab_constant
from edgewise.kernels.random import draw_log_gamma

OneSlab = namedtuple("OneSlab", "nothing")
OwnSlab = namedtuple("OwnSlab", "mean sd factor freedom")

# Beyond this, parameters are no log odds ratios any more but the noise of a heavy tail: it is cut there.
LARGEST_PARAMETER = 100.0
# Factors stay numbers whose inverses and roots are numbers.
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-16, 1e16


@question
def slab_precision(slab, a, hyper):
    """Precision of the parameter of candidate `a` given that it is active."""


@answer(slab_precision, OneSlab)
def _same_precision(slab, a, hyper):
    return hyper[SLAB_SCALE] ** -2


@answer(slab_precision, OwnSlab)
def _own_precision(slab, a, hyper):
    if slab.sd[a] > 0.0:
        return slab.sd[a] ** -2
    return 1.0 / (slab.factor[a] * hyper[SLAB_SCALE] * hyper[SLAB_SCALE])


@question
def slab_mean(slab, a):
    """Mean of the parameter of candidate `a` given that it is active."""


@answer(slab_mean, OneSlab)
def _no_mean(slab, a):
    return 0.0


@answer(slab_mean, OwnSlab)
def _own_mean(slab, a):
    return slab.mean[a]


@question
def log_slab(slab, a, hyper):
    """Log density of the slab of candidate `a` at zero; the rest is in precision and tilt of its line."""


@answer(log_slab, OneSlab)
def _log_same(slab, a, hyper):
    return log_slab_constant(hyper[SLAB_SCALE])


@answer(log_slab, OwnSlab)
def _log_own(slab, a, hyper):
    precision = slab_precision(slab, a, hyper)
    return 0.5 * math.log(precision) - LOG_ROOT_TWO_PI - 0.5 * precision * slab.mean[a] * slab.mean[a]


@question
def log_slab_ratio(slab, arriving, leaving, hyper):
    """:func:`log_slab` of one candidate less that of another."""


@answer(log_slab_ratio, OneSlab)
def _no_difference(slab, arriving, leaving, hyper):
    return 0.0


@answer(log_slab_ratio, OwnSlab)
def _difference(slab, arriving, leaving, hyper):
    return log_slab(slab, arriving, hyper) - log_slab(slab, leaving, hyper)


@question
def within(slab, value):
    """Whether a parameter may have this value."""


@answer(within, OneSlab)
def _anything(slab, value):
    return True


@answer(within, OwnSlab)
def _no_noise(slab, value):
    return slab.freedom == 0.0 or abs(value) <= LARGEST_PARAMETER


@question
def scale_terms(slab, graph, theta):
    """Number of active parameters that tell sigma0, and the sum of their squares, each over its factor."""


@answer(scale_terms, OneSlab)
def _all_terms(slab, graph, theta):
    return slab_terms(graph, theta)


@answer(scale_terms, OwnSlab)
def _shared_terms(slab, graph, theta):
    count = 0
    squares = 0.0
    for position in range(graph.counts[0]):
        a = graph.listed[position]
        if slab.sd[a] == 0.0:
            size = parameters_of(graph, a)
            count += size
            squares += size * theta[a] * theta[a] / slab.factor[a]
    return count, squares


@question
def draw_factors(slab, graph, theta, hyper, stream):
    """Draw the factors of a scale mixture given the parameters (2.7)."""


@answer(draw_factors, OneSlab)
def _no_factors(slab, graph, theta, hyper, stream):
    pass


@answer(draw_factors, OwnSlab)
def _factors(slab, graph, theta, hyper, stream):
    if slab.freedom > 0.0:
        flat = hyper[SLAB_SCALE] ** -2
        for a in range(slab.factor.shape[0]):
            shape, rate = 0.5 * slab.freedom, 0.5 * slab.freedom
            if graph.place[a] >= 0:
                size = parameters_of(graph, a)
                shape += 0.5 * size
                rate += 0.5 * size * theta[a] * theta[a] * flat
            slab.factor[a] = factor_of(math.log(rate) - draw_log_gamma(shape, stream))


@kernel
def factor_of(log_factor):
    """A factor from its logarithm, kept within its bounds."""
    return min(max(math.exp(min(log_factor, 700.0)), SMALLEST_FACTOR), LARGEST_FACTOR)
