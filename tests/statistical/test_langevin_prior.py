"""Without data the langevin engine must return the prior: edges, p0, sigma0, A and biases.

Errors are in units of Monte Carlo error (batch means). The step is larger than the paper's, so a bias of the
order of eps^2 is allowed for.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from edgewise.draws import Draws
from edgewise.engines.langevin import LangevinEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

STEP = 0.15
# No likelihood, so no particle has to be right; two of them are the fewest that have a variance.
SETTINGS = {
    "particles": 2,
    "start_sweeps": 1,
    "step_size": STEP,
    "jump_width": 3.0,
    "warm_up": 2_000,
}


def run(prior: Prior, features: Features, iterations: int = 300_000, **settings: object) -> Draws:
    problem = Problem(features, Statistics.none(features), prior.resolve(features))
    engine = LangevinEngine(problem, SETTINGS | settings, np.random.SeedSequence(5))
    engine.advance(engine.warm_up)
    return engine.advance(iterations, thin=30)


def score(series: np.ndarray, expected: float, allowance: float = 0.0) -> float:
    """Distance of a mean from its expectation beyond the allowance, in batch-means errors."""
    batches = series[: len(series) // 40 * 40].reshape(40, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(40)
    return max(0.0, abs(series.mean() - expected) - allowance) / error


def squares(draws: Draws, clique: int, moment: float) -> np.ndarray:
    """Series whose mean is zero exactly when E[A^2 | active] equals `moment`."""
    values = draws.column(clique)
    return np.where(values != 0, values**2 - moment, 0.0)


# E sigma0 and E sigma0^2 under sigma0^-2 ~ Gamma(6, 4); six rather than five keeps fourth moments tame.
SHAPE, RATE = 6.0, 4.0
SCALE = math.sqrt(RATE) * special.gamma(SHAPE - 0.5) / special.gamma(SHAPE)
SQUARE = RATE / (SHAPE - 1)


def test_hierarchical_prior():
    prior = Prior(BetaInclusion(2.0, 4.0), GammaSlab(SHAPE, RATE), NormalBias(2.0))
    draws = run(prior, Features.pairs(4))
    edges = draws.n_edges.astype(float)
    assert score(edges, 2.0) < 4
    assert score(draws.inclusion_rate, 1 / 3) < 4
    assert score((draws.inclusion_rate - 1 / 3) ** 2, 2 * 4 / 36 / 7) < 4
    assert score(draws.slab_scale, SCALE, 0.5 * STEP**2 * SCALE) < 4
    assert score(draws.values, 0.0) < 4
    for clique in range(6):
        assert score(squares(draws, clique, SQUARE), 0.0, 0.5 * STEP**2 * SQUARE / 3) < 4
    for variable in range(4):
        assert score(draws.biases[:, variable], 0.0) < 4
        assert score(draws.biases[:, variable] ** 2, 4.0, 0.5 * STEP**2 * 4.0) < 4
    # The variance of the edge count tells a learned p0 from a fixed one.
    variance = 6 * (1 / 3) * (2 / 3) + 6 * 5 * 2 * 4 / 36 / 7
    assert score((edges - 2.0) ** 2, variance) < 4
    assert score((edges - 2.0) ** 2, 6 * (1 / 3) * (2 / 3)) > 4
    assert score(draws.slab_scale, math.sqrt(SQUARE), 0.5 * STEP**2 * SCALE) > 4


def test_fixed_single_and_forced():
    features = Features.up_to(3, 3)
    prior = Prior(
        FixedInclusion(0.2),
        FixedSlab(0.8),
        edge_probability={(0, 1): 0.7},
        forced=[(0, 2)],
        forbidden=[(1, 2)],
    )
    draws = run(prior, features)
    included = np.stack([draws.column(clique) != 0 for clique in range(4)]).astype(float)
    assert score(included[0], 0.7) < 4
    assert included[1].all()
    assert not included[2].any()
    assert score(included[3], 0.2) < 4
    assert (draws.inclusion_rate == 0.2).all()
    assert np.all(draws.slab_scale == 0.8)
    for clique in (0, 1, 3):
        assert score(squares(draws, clique, 0.64), 0.0, 0.5 * STEP**2 * 0.64) < 4


@pytest.mark.parametrize("settings", [{"parallel_proposals": False}, {"partial_refreshment": False}])
def test_switches_keep_the_prior(settings):
    prior = Prior(FixedInclusion(0.3), GammaSlab(SHAPE, RATE))
    draws = run(prior, Features.pairs(3), **settings)
    assert score(draws.n_edges.astype(float), 0.9) < 4
    assert score(draws.slab_scale, SCALE, 0.5 * STEP**2 * SCALE) < 4


def test_wrong_odds_are_caught():
    """Negative control: a factor of two in the prior odds of eq. 8."""
    odds = 0.2 / 0.8 * 2
    draws = run(Prior(FixedInclusion(odds / (1 + odds)), FixedSlab(0.8)), Features.pairs(3))
    assert score(draws.n_edges.astype(float), 0.6) > 4


def test_wrong_slab_is_caught():
    """Negative control: a factor of two in the sum of squares of eq. 14, as a doubled rate would give."""
    draws = run(Prior(FixedInclusion(0.3), GammaSlab(SHAPE, 2 * RATE)), Features.pairs(3))
    assert score(draws.slab_scale, SCALE, 0.5 * STEP**2 * SCALE) > 4
