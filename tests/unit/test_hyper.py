"""Conjugate draws of p0 and sigma0 (eq. 14) against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from edgewise.kernels import hyper
from edgewise.kernels.compiling import entry
from edgewise.kernels.random import scalar_stream

DRAWS = 20_000


def stream(seed: int) -> np.ndarray:
    return scalar_stream(np.random.SeedSequence(seed))


@entry(arrays=True)
def many_gammas(shape, count, state):
    values = np.empty(count)
    for k in range(count):
        values[k] = hyper.draw_log_gamma(shape, state)
    return values


@entry(arrays=True)
def many_rates(beta_a, beta_b, active, candidates, count, state):
    values = np.empty(count)
    for k in range(count):
        values[k] = hyper.draw_inclusion_rate(beta_a, beta_b, active, candidates, state)
    return values


@entry(arrays=True)
def many_scales(shape, rate, active, squares, count, state):
    values = np.empty(count)
    for k in range(count):
        values[k] = hyper.draw_slab_scale(shape, rate, active, squares, state)
    return values


@pytest.mark.parametrize("shape", [0.01, 0.4, 1.0, 5.0, 5.5, 300.0])
def test_gamma_against_scipy(shape):
    values = many_gammas(shape, DRAWS, stream(1))
    reference = stats.loggamma(shape)
    assert stats.kstest(values, reference.cdf).pvalue > 1e-4
    assert stats.kstest(values, stats.loggamma(shape * 1.1).cdf).pvalue < 1e-4


@pytest.mark.parametrize(("a", "b", "active", "candidates"), [(5, 5, 20, 66), (5, 5, 0, 0), (0.5, 2, 3, 3)])
def test_inclusion_rate_against_scipy(a, b, active, candidates):
    values = many_rates(float(a), float(b), active, candidates, DRAWS, stream(2))
    assert stats.kstest(values, stats.beta(a + active, b + candidates - active).cdf).pvalue > 1e-4
    swapped = stats.beta(b + candidates - active, a + active)
    if a + active != b + candidates - active:
        assert stats.kstest(values, swapped.cdf).pvalue < 1e-4


@pytest.mark.parametrize(("active", "squares"), [(0, 0.0), (1, 0.04), (24, 57.0)])
def test_slab_scale_against_scipy(active, squares):
    values = many_scales(5.0, 4.0, active, squares, DRAWS, stream(3))
    precision = stats.gamma(5 + 0.5 * active, scale=1 / (4 + 0.5 * squares))
    assert stats.kstest(values**-2.0, precision.cdf).pvalue > 1e-4
    inverted = stats.gamma(5 + 0.5 * active, scale=4 + 0.5 * squares)
    assert stats.kstest(values**-2.0, inverted.cdf).pvalue < 1e-4
    if active:
        halved = stats.gamma(5 + active, scale=1 / (4 + squares))
        assert stats.kstest(values**-2.0, halved.cdf).pvalue < 1e-4


def test_inclusion_rate_stays_inside():
    values = many_rates(0.02, 5.0, 0, 4000, 2000, stream(4))
    assert values.min() > 0
    assert np.isfinite(np.log(values) - np.log1p(-values)).all()
