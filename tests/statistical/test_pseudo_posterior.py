"""The pseudo-likelihood posterior of the benchmarks against quadrature: a baseline has to be right too."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import pseudo_posterior
from scipy import stats

from edgewise.draws.convergence import effective_draws
from edgewise.features import Features
from edgewise.priors import GammaSlab, NormalBias, Prior

ROWS = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [9, 4, 3, 8], axis=0)
SLAB, SD = GammaSlab(6.0, 6.0), 1.5
LIMIT = 4.5


def by_quadrature(times: int) -> tuple[float, float, float]:
    """Inclusion, E[A] and E[b1] under the product of conditionals, counted `times` times.

    With sigma0 integrated out the slab is Student's t.
    """
    bias, theta = np.linspace(-6, 6, 121), np.linspace(-8, 8, 161)
    first, second, third = np.meshgrid(bias, bias, theta, indexing="ij")

    def log_density(a):
        total = stats.norm.logpdf(first, 0, SD) + stats.norm.logpdf(second, 0, SD)
        for row in ROWS:
            for own, field in ((row[0], first + a * row[1]), (row[1], second + a * row[0])):
                total = total + times * (own * field - np.logaddexp(0, field))
        return total

    slab = stats.t.pdf(theta, 2 * SLAB.shape, scale=np.sqrt(SLAB.rate / SLAB.shape)) * (theta[1] - theta[0])
    without, within = np.exp(log_density(0.0)[:, :, 0]), np.exp(log_density(third)) * slab
    total = without.sum() + within.sum()
    mean = (without * first[:, :, 0]).sum() + (within * first).sum()
    return within.sum() / total, (within * third).sum() / total, mean / total


@pytest.fixture(scope="module")
def draws():
    features = Features.pairs(2)
    prior = Prior(slab=SLAB, bias=NormalBias(SD)).resolve(features)
    return pseudo_posterior.sample(ROWS, features.members, prior, 30_000, 2, 500, 1)


def scores(draws, expected) -> list[float]:
    found = np.stack([draws.column(0) != 0, draws.column(0), draws.biases[:, 0]]).astype(float)
    error = found.std(axis=1) / np.sqrt(effective_draws(found[:, None]))
    return list(np.abs(found.mean(axis=1) - expected) / error)


def test_draws_are_those_of_the_pseudo_likelihood(draws):
    assert max(scores(draws, by_quadrature(1))) < LIMIT


def test_a_likelihood_counted_twice_is_noticed(draws):
    """Negative control."""
    assert max(scores(draws, by_quadrature(2))) > 2 * LIMIT
