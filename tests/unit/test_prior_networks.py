"""What a prior expects before any data: draws from it beside what is known of them in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.priors import (
    AttributeInclusion,
    BetaInclusion,
    BlockInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
    Prior,
    StudentSlab,
    expect,
    networks,
)


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


PLACES = {"place": {"a": 1, "b": 2, "c": 4, "d": 8, "e": 16}}
SINGLE = {"edge_probability": {(0, 1): 0.9, (1, 2): 0.1}, "forced": [(0, 2)], "forbidden": [(0, 3)]}


@pytest.mark.parametrize(
    "prior",
    [
        Prior(BetaInclusion(2, 5), GammaSlab(4, 3), edge_slab={(0, 1): (2.0, 0.1)}, **SINGLE),
        Prior(FixedInclusion(0.3), StudentSlab(3, 0.5), edge_slab={(1, 4): (-3.0, 0.1)}, **SINGLE),
        Prior(BlockInclusion(2, 1, 1, 3), CauchySlab(1.0), **SINGLE),
        Prior(AttributeInclusion("place", PLACES), CauchySlab(1.0)),
    ],
    ids=["beta", "student", "communities", "attributes"],
)
def test_what_is_expected_is_what_is_drawn(prior: Prior) -> None:
    """Pairs that are alike are counted and not drawn: the same as drawing every one, as networks are."""
    features = Features.pairs(5)
    resolved = prior.resolve(features, "abcde")
    rng = np.random.default_rng(1)
    drawn = [resolved.draw(rng) for _ in range(4000)]
    edges = np.array([len(active) for active, _ in drawn])
    values = np.concatenate([value for _, value in drawn])
    found = expect(prior, 5, names="abcde")
    assert len(found.edges) == 4000
    # Counts have ties, and couplings of one draw share sigma0: bounds wider than those of independent draws.
    assert stats.ks_2samp(found.edges, edges).statistic < 0.05
    assert stats.ks_2samp(found.couplings, values).statistic < 0.05
    assert np.abs(values).max() <= 100 or not resolved.freedom


def test_thousands_of_pairs_are_counted_and_not_kept() -> None:
    few, many = expect(n_variables=15), expect(n_variables=1000)
    assert len(many.edges) == 4000
    assert len(many.couplings) < 250_000
    assert many.odds_ratio(0.95) == pytest.approx(few.odds_ratio(0.95), rel=0.05)
    assert many.edges.mean() / many.n_pairs == pytest.approx(0.5, abs=0.01)


def test_variables_are_those_that_the_prior_names() -> None:
    given = AttributeInclusion("place", PLACES)
    assert expect(Prior(given)).n_variables == 5
    assert networks(Prior(given), n=1)[0].n_variables == 5
    single = Prior(edge_slab={("mood", "sleep"): (0.8, 0.3)}, forced=[("sleep", "x3")])
    assert expect(single).n_variables == 15
    assert expect(single, names=["mood", "sleep", "x3", "other"]).n_pairs == 6
    assert expect(Prior(edge_probability=np.full((4, 4), 0.5))).n_variables == 4
    with pytest.raises(DataError, match="names 5 variables, 'a', 'b', 'c', 'd', 'e', and these are 6"):
        expect(Prior(given), 6)
    with pytest.raises(DataError, match="'a' is named twice"):
        networks(names=["a", "a"])
    with pytest.raises(DataError, match="There are 2 names for 3 variables"):
        networks(n_variables=3, names=["a", "b"])


def test_heavy_slabs_in_sensible_words() -> None:
    words = " ".join(expect(Prior(slab=CauchySlab(1.0))).words)
    assert "e+" not in words
    assert "Half of the links have an odds ratio below 2.7" in words
    assert "lie above 100, more than data usually show" in words
    words = " ".join(expect(Prior(slab=CauchySlab(20.0))).words)
    assert "More than half of the links have an odds ratio above 100" in words
    assert "95 of 100 below 9" in " ".join(expect().words)
