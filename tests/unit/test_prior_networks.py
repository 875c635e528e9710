"""What a prior expects before any data: draws from it beside what is known of them in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, Prior, expect, networks


def test_numbers_of_the_default() -> None:
    found = expect(n_variables=15)
    binomial = stats.betabinom(105, 5, 5)
    assert found.edges.mean() == pytest.approx(52.5, abs=4 * binomial.std() / math.sqrt(4000))
    assert found.edges.std() == pytest.approx(binomial.std(), rel=0.05)
    # sigma0^-2 ~ Gamma(5, 5) makes couplings Student-t with 10 degrees of freedom and scale 1.
    assert found.odds_ratio(0.95) == pytest.approx(math.exp(stats.t(10).ppf(0.975)), rel=0.05)
    assert "15 variables, 105 pairs" in found.words[0]


def test_fixed_values_and_single_pairs() -> None:
    prior = Prior(FixedInclusion(0.2), FixedSlab(0.5), forced=[(0, 1)], edge_probability={(1, 2): 0.9})
    features = Features.pairs(4)
    resolved = prior.resolve(features)
    rng = np.random.default_rng(0)
    drawn = [resolved.draw(rng) for _ in range(4000)]
    share = np.bincount(np.concatenate([active for active, _ in drawn]), minlength=6) / 4000
    wanted = np.full(6, 0.2)
    wanted[features.index((0, 1))], wanted[features.index((1, 2))] = 1.0, 0.9
    np.testing.assert_allclose(share, wanted, atol=0.03)
    assert np.concatenate([values for _, values in drawn]).std() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("sigma0", [0.5, 1.0, 2.5])
def test_reach_is_the_ratio_of_widths(sigma0: float) -> None:
    found = expect(Prior(slab=FixedSlab(sigma0)), 10)
    assert found.reach(200) == pytest.approx(math.sqrt(1 + sigma0**2 * 200 / 16), rel=0.05)
    assert "With 200 rows" in found.words_on_absence(200)


def test_networks_repeat_and_refuse() -> None:
    prior = Prior(BetaInclusion(1, 9), GammaSlab(3, 3))
    first, again, other = (networks(prior, 12, 3, seed) for seed in (1, 1, 2))
    assert [one.cliques for one in first] == [one.cliques for one in again]
    assert [one.cliques for one in first] != [one.cliques for one in other]
    with pytest.raises(DataError, match="at least two variables, not 1"):
        networks(n_variables=1)
