"""The rule of stopping, what a look lacks, and the forecast."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from edgewise.features import Features
from edgewise.posterior.diagnostics import diagnose
from edgewise.run.forecast import Pace, draws_wanted, expected_draws
from edgewise.run.options import RunOptions
from edgewise.run.stopping import Goal, Look, enough, goal, look, quantity, stuck, wanting
from helpers import fake_posterior

GOOD = Look(2000, 900.0, 1.005, 3, 10, 0.012, 4, 5)


def test_the_default_rule_asks_for_error_agreement_and_a_green_light():
    options = RunOptions()
    assert enough(options, GOOD)
    assert not enough(options, replace(GOOD, error=0.0201))
    assert not enough(options, replace(GOOD, r_hat=1.01))
    assert not enough(options, replace(GOOD, ess=399.0))
    assert not enough(options, replace(GOOD, draws=999))
    assert enough(RunOptions(target_error=0.05), replace(GOOD, error=0.04, ess=150.0))
    assert not enough(RunOptions(target_error=0.01), GOOD)


def test_a_number_of_effective_draws_takes_the_place_of_the_error():
    assert goal(RunOptions(target_ess=100, target_error=0.001)) == Goal(100.0, math.inf)
    assert enough(RunOptions(target_ess=100), replace(GOOD, error=0.3, ess=101.0))
    assert not enough(RunOptions(target_ess=1000), GOOD)
    assert goal(RunOptions(target_ess=None)) is None
    assert not enough(RunOptions(target_ess=None), GOOD)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("draws", [300, 1000, 3000])
def test_what_stops_a_run_is_green_and_what_is_not_precise_enough_goes_on(seed, draws):
    posterior = fake_posterior(6, 4, draws, seed=seed, persistence=0.5)
    seen = look(posterior.draws, posterior.n_cliques)
    stops = enough(RunOptions(min_draws=100), seen)
    found = diagnose(posterior)
    assert not stops or found.light == "green"
    if stops:
        summary = posterior.summary()
        assert summary.mcse[summary.flips > 0].max() <= 0.02
    elif seen.error <= 0.02:
        assert found.light != "green"


def test_what_is_lacking_has_names_and_numbers():
    features, names = Features.pairs(4), ["a", "b", "c", "d"]

    def name(index: int) -> str:
        return quantity(features, names, index)

    wanted = Goal(400, 0.02)
    assert wanting(wanted, GOOD, name) == []
    slow = wanting(wanted, replace(GOOD, error=0.034, widest=0, ess=200.0), name)
    assert slow == ["the probability of edge a -- b has a Monte Carlo error of 0.034 (asked: 0.02)"]
    apart = wanting(wanted, replace(GOOD, ess=200.0, slowest=-3, r_hat=1.25, furthest=5), name)
    assert apart == [
        "sigma0 has 200 effective draws (asked: 400)",
        "the chains disagree most about edge c -- d (R-hat 1.250; asked: below 1.01)",
    ]


def test_advice_to_chains_that_are_stuck_names_an_engine_that_helps():
    assert "engine='exact'" in stuck("langevin", 12)
    assert "engine='particle'" in stuck("langevin", 60)
    assert "engine='exact'" in stuck("particle", 12)
    assert "engine=" not in stuck("particle", 60)
    assert "engine=" not in stuck("exact", 12)
    assert all("more chains would only find more" in stuck(name, 9) for name in ("exact", "particle"))


def test_the_slowest_criterion_decides_how_many_draws_are_wanted():
    wanted = Goal(400, 0.02)
    seen = Look(1000, 200.0, 1.001, 0, 5, 0.01)
    assert draws_wanted(wanted, seen) == pytest.approx(2000)
    assert draws_wanted(wanted, replace(seen, error=0.04)) == pytest.approx(4000)
    assert draws_wanted(wanted, replace(seen, r_hat=1.1)) == pytest.approx(1000 * 0.21 / 0.0201)


def test_the_forecast_follows_the_looks():
    options = RunOptions()
    assert expected_draws(options, []) >= options.min_draws
    assert expected_draws(replace(options, target_ess=None), []) == options.max_draws
    fast = [Look(n, 0.9 * n, 1 + 2.0 / n, 0, 5, 0.3 / math.sqrt(n)) for n in (100, 200, 400)]
    assert expected_draws(options, fast) == options.min_draws
    slow = [Look(n, 0.05 * n, 1 + 30.0 / n, 0, 5, 2 / math.sqrt(n)) for n in (100, 200, 400, 800, 1000, 1250)]
    assert 0.6 < expected_draws(options, slow) / draws_wanted(Goal(400, 0.02), slow[-1]) < 1.5
    stuck_looks = [Look(n, 5.0, 1.5, 0, 5, 0.2) for n in (100, 1000, 4000, 10_000)]
    assert expected_draws(options, stuck_looks) == options.max_draws
    # An end that was foreseen too early moves on: the run has not stopped here.
    assert expected_draws(options, [Look(1000, 5000.0, 1.02, 0, 5, 0.001)]) > 1000


def test_the_pace_is_known_after_a_second():
    pace = Pace(10.0, 100, None)
    assert pace.rate(10.5, 200) is None
    assert pace.rate(12.0, 100) is None
    assert pace.rate(12.0, 300) == pytest.approx(100.0)


def test_too_few_draws_say_nothing():
    seen = look([part[:3] for part in fake_posterior(5, 2, 10).draws], 10)
    assert not np.isfinite(seen.error)
    assert not enough(RunOptions(min_draws=1), seen)
