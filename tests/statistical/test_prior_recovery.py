"""Without data the exact and the particle engine must return the prior: E, p0, sigma0, A and biases.

The likelihood is then constant, so neither engine has any excuse: errors are in units of Monte Carlo error.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from edgewise.draws import Draws
from edgewise.draws.convergence import effective_draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

ENGINES = ("exact", "particle")
ITERATIONS = {"exact": 20_000, "particle": 12_000}
LIMIT = 4.5
# E sigma0 and E sigma0^2 under sigma0^-2 ~ Gamma(8, 6); eight keeps fourth moments tame.
SHAPE, RATE = 8.0, 6.0
SCALE = math.sqrt(RATE) * special.gamma(SHAPE - 0.5) / special.gamma(SHAPE)
SQUARE = RATE / (SHAPE - 1)


def run(name: str, prior: Prior, features: Features) -> Draws:
    problem = Problem(features, Statistics.none(features), prior.resolve(features))
    settings = {"warm_up": 200} | ({"particles": 32} if name == "particle" else {})
    engine = load_engine(name)(problem, settings, np.random.SeedSequence(5))
    engine.advance(engine.warm_up)
    return engine.advance(ITERATIONS[name])


def score(series: np.ndarray, expected: float) -> float:
    series = np.asarray(series, float)
    return abs(series.mean() - expected) / (series.std() / math.sqrt(effective_draws(series[None, None])[0]))


def squares(draws: Draws, clique: int, moment: float) -> np.ndarray:
    """Series whose mean is zero exactly when E[A^2 | active] equals `moment`."""
    values = draws.column(clique)
    return np.where(values != 0, values**2 - moment, 0.0)


@pytest.mark.parametrize("name", ENGINES)
def test_hierarchical_prior(name):
    prior = Prior(BetaInclusion(2.0, 4.0), GammaSlab(SHAPE, RATE), NormalBias(2.0))
    draws = run(name, prior, Features.pairs(4))
    edges = draws.n_edges.astype(float)
    assert score(edges, 2.0) < LIMIT
    assert score(draws.inclusion_rate, 1 / 3) < LIMIT
    assert score((draws.inclusion_rate - 1 / 3) ** 2, 2 * 4 / 36 / 7) < LIMIT
    assert score(draws.slab_scale, SCALE) < LIMIT
    assert score(draws.slab_scale**2, SQUARE) < LIMIT
    for clique in range(6):
        assert score(draws.column(clique), 0.0) < LIMIT
        assert score(draws.column(clique) != 0, 1 / 3) < LIMIT
        assert score(squares(draws, clique, SQUARE), 0.0) < LIMIT
    for variable in range(4):
        assert score(draws.biases[:, variable], 0.0) < LIMIT
        assert score(draws.biases[:, variable] ** 2, 4.0) < LIMIT
    # The variance of the edge count tells a learned p0 from a fixed one.
    variance = 6 * (1 / 3) * (2 / 3) + 6 * 5 * 2 * 4 / 36 / 7
    assert score((edges - 2.0) ** 2, variance) < LIMIT
    # Negative controls: p0 fixed at its mean; a factor of two in the prior odds; sigma0 from its square.
    assert score((edges - 2.0) ** 2, 6 * (1 / 3) * (2 / 3)) > 2 * LIMIT
    assert score(edges, 3.0) > 2 * LIMIT
    assert score(draws.slab_scale, math.sqrt(SQUARE)) > LIMIT


@pytest.mark.parametrize("name", ENGINES)
def test_fixed_single_forced_and_triple(name):
    features = Features.up_to(3, 3)
    prior = Prior(
        FixedInclusion(0.2),
        FixedSlab(0.8),
        NormalBias(1.5),
        edge_probability={(0, 1): 0.7},
        forced=[(0, 2)],
        forbidden=[(1, 2)],
    )
    draws = run(name, prior, features)
    included = np.stack([draws.column(clique) != 0 for clique in range(4)]).astype(float)
    assert score(included[0], 0.7) < LIMIT
    assert included[1].all()
    assert not included[2].any()
    assert score(included[3], 0.2) < LIMIT
    assert (draws.inclusion_rate == 0.2).all()
    assert (draws.slab_scale == 0.8).all()
    for clique in (0, 1, 3):
        assert score(squares(draws, clique, 0.64), 0.0) < LIMIT
    for variable in range(3):
        assert score(draws.biases[:, variable] ** 2, 2.25) < LIMIT
    # Independent indicators: no edge informs another.
    assert score((included[0] - 0.7) * (included[3] - 0.2), 0.0) < LIMIT
    assert score(squares(draws, 1, 0.8), 0.0) > LIMIT
