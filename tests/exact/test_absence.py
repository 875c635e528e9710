"""How far evidence for absence can go: the ceiling beside enumeration, and what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import run
from truth import enumerate_posterior

from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.posterior.absence import absence, gain_wanted, typical_factor
from edgewise.posterior.posterior import Posterior
from edgewise.posterior.verdict import judge
from edgewise.priors import (
    AttributeInclusion,
    BlockInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    Prior,
    StudentSlab,
)

PAIRS = Features.pairs(3)


def independent(rows: float) -> Statistics:
    """Data without a trace of a link."""
    return Statistics(rows, np.full(3, rows / 2), np.full(3, rows / 4))


def fitted(prior: Prior, statistics: Statistics) -> Posterior:
    problem = Problem(PAIRS, statistics, prior.resolve(PAIRS))
    draws = run(problem, "exact", 6000, chains=2)
    return Posterior(draws, PAIRS, "abc", statistics=statistics, prior=prior)


@pytest.mark.parametrize("sigma0", [0.7, 2.0])
@pytest.mark.parametrize("rows", [40.0, 200.0])
def test_the_ceiling_is_what_data_without_a_trace_reach(rows, sigma0):
    prior = Prior(FixedInclusion(0.5), FixedSlab(sigma0))
    statistics = independent(rows)
    truth = enumerate_posterior(PAIRS, statistics, prior.resolve(PAIRS))
    against = ((1 - truth.inclusion) / truth.inclusion).mean()
    found = absence(fitted(prior, statistics), thresholds=(1000, 2000))
    assert found.undecided == 3
    assert found.ceiling == pytest.approx(against, rel=0.1)
    # Negative control: the ceiling of a slab half as wide is another one.
    assert abs(0.5 * found.ceiling / against - 1) > 0.3


@pytest.mark.parametrize(
    ("slab", "rows"), [(CauchySlab(0.3), 60.0), (CauchySlab(2.0), 200.0), (StudentSlab(4, 0.3), 100.0)]
)
def test_the_ceiling_of_heavier_tails(slab, rows):
    prior = Prior(FixedInclusion(0.5), slab)
    statistics = independent(rows)
    truth = enumerate_posterior(PAIRS, statistics, prior.resolve(PAIRS))
    against = ((1 - truth.inclusion) / truth.inclusion).mean()
    found = absence(fitted(prior, statistics), thresholds=(1000, 2000))
    assert found.undecided == 3
    assert found.ceiling == pytest.approx(against, rel=0.1)
    assert found.ceiling > 1


@pytest.mark.parametrize("slab", [CauchySlab(0.3), StudentSlab(4, 0.3)])
def test_words_on_heavier_tails(slab):
    prior = Prior(FixedInclusion(0.5), slab)
    found = judge(fitted(prior, independent(60.0)))
    words = found.nothing_excluded
    assert "nothing could be" in words
    assert "more likely than it was" not in words
    assert type(slab).__name__ in words
    assert "FixedSlab" not in words
    # With the slab that it names, independent data are excluded.
    parts = (4, found.reach.sigma0) if isinstance(slab, StudentSlab) else (found.reach.sigma0,)
    assert (
        judge(fitted(Prior(FixedInclusion(0.5), type(slab)(*parts)), independent(60.0))).counts["absence"]
        == 3
    )


def test_a_slab_of_its_own_has_its_own_ceiling():
    prior = Prior(
        FixedInclusion(0.5),
        FixedSlab(0.5),
        edge_slab={(0, 1): (0.6, 0.4), (0, 2): (0.6, 0.4), (1, 2): (0.6, 0.4)},
    )
    statistics = independent(60.0)
    truth = enumerate_posterior(PAIRS, statistics, prior.resolve(PAIRS))
    against = ((1 - truth.inclusion) / truth.inclusion).mean()
    found = absence(fitted(prior, statistics), thresholds=(1000, 2000))
    assert found.ceiling == pytest.approx(against, rel=0.1)


@pytest.mark.parametrize(
    "inclusion",
    [
        BlockInclusion(),
        AttributeInclusion("same(s)", {"s": dict(zip("0123", "aaab"))}, p0_sd=2.0),
    ],
    ids=["communities", "attributes"],
)
def test_a_model_of_inclusion_is_part_of_the_ceiling(inclusion):
    """A linked triple raises the odds of the other pairs through the model, as a learned p0 would."""
    features = Features.pairs(4)
    statistics = Statistics(100.0, np.full(4, 50.0), np.array([45.0, 45.0, 25.0, 45.0, 25.0, 25.0]))
    prior = Prior(inclusion, FixedSlab(1.0))
    resolved = prior.resolve(features)
    truth = enumerate_posterior(features, statistics, resolved)
    posterior = Posterior(
        run(Problem(features, statistics, resolved), "exact", 8000, chains=2),
        features, "0123", statistics=statistics, prior=prior,
    )  # fmt: skip
    found = absence(posterior)
    against = ((1 - truth.inclusion) / truth.inclusion * resolved.prior_odds())[[2, 4, 5]].mean()
    assert found.ceiling == pytest.approx(against, rel=0.15)
    assert found.leaning in ("communities", "attributes")
    assert abs(found.lean - 1) > 0.05


def test_data_never_make_an_absent_link_more_likely():
    """But for the error of few draws the ceiling is one at least where p0 is fixed."""
    for slab in (FixedSlab(0.05), CauchySlab(0.02), StudentSlab(4, 0.02)):
        words = judge(fitted(Prior(FixedInclusion(0.5), slab), independent(40.0))).nothing_excluded
        assert "more likely than it was" not in words
        assert "hardly speak against it" in words


def test_learned_rate_is_part_of_the_ceiling():
    """Three pairs of an outright linked triple raise p0, and with it the odds of the fourth variable's."""
    features = Features.pairs(4)
    rows = 100.0
    pairs = np.array([45.0, 45.0, 25.0, 45.0, 25.0, 25.0])
    statistics = Statistics(rows, np.full(4, 50.0), pairs)
    prior = Prior(slab=FixedSlab(1.0))
    truth = enumerate_posterior(features, statistics, prior.resolve(features))
    problem = Problem(features, statistics, prior.resolve(features))
    posterior = Posterior(
        run(problem, "exact", 8000, chains=2), features, "abcd", statistics=statistics, prior=prior
    )
    found = absence(posterior)
    against = ((1 - truth.inclusion) / truth.inclusion)[[2, 4, 5]].mean()
    assert found.lean > 1.05
    assert found.ceiling == pytest.approx(against, rel=0.15)


def test_words_say_why_and_what_would_change_it():
    prior = Prior(FixedInclusion(0.5), FixedSlab(0.7))
    found = judge(fitted(prior, independent(40.0)))
    words = found.nothing_excluded
    assert "nothing could be: with 40 rows and a slab of width 0.7" in words
    assert found.reach is not None
    assert f"FixedSlab({math.ceil(found.reach.sigma0 * 10) / 10:g})" in words
    # With the slab or the rows that it names, independent data are excluded.
    wider = Prior(FixedInclusion(0.5), FixedSlab(found.reach.sigma0))
    for better in (fitted(wider, independent(40.0)), fitted(prior, independent(found.reach.rows))):
        verdict = judge(better)
        assert verdict.counts["absence"] == 3
        assert verdict.nothing_excluded == ""


def test_no_rows_reach_nothing():
    found = absence(fitted(Prior(FixedInclusion(0.5), FixedSlab(1.0)), Statistics.none(PAIRS)))
    assert found.within_reach == 0
    assert found.ceiling == pytest.approx(1.0, abs=0.05)
    assert found.sigma0 == math.inf or found.sigma0 > 10


def test_typical_factor_is_the_median_over_data_of_an_absent_link():
    rng = np.random.default_rng(0)
    for gain in (0.5, 5.0, 50.0):
        squares = rng.standard_normal(200_001) ** 2
        factors = np.sqrt(1 + gain) * np.exp(-0.5 * squares * gain / (1 + gain))
        assert typical_factor(gain) == pytest.approx(np.median(factors), rel=0.01)
        assert gain_wanted(typical_factor(gain)) == pytest.approx(gain, rel=1e-6)
