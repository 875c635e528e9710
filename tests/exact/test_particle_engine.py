"""The particle engine against enumeration and against the exact engine, in units of Monte Carlo error.

The engine is consistent in the number of particles rather than exact, so a small bias is allowed for: 0.01 in
probability and 0.05 posterior sds in parameters.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import inclusion_and_error, problem_of, run, z_scores
from truth import enumerate_posterior

from broken import altered
from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.draws.convergence import effective_draws
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics, sufficient_statistics
from edgewise.kernels import chain
from edgewise.kernels.compiling import kernel
from edgewise.kernels.moves import visit_clique
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

LIMIT = 4.5
ALLOWANCE = 0.01
FREE = Prior()
FIXED = Prior(FixedInclusion(0.3), FixedSlab(1.5), NormalBias(3.0))
SEPARATE = Prior(
    BetaInclusion(2.0, 3.0),
    GammaSlab(4.0, 6.0),
    edge_probability={(0, 1): 0.8, (1, 2): 0.1},
    forced=[(0, 2)],
    forbidden=[(1, 3)],
)


CASES = {
    "p3 free": (3, FREE, 2, False),
    "p3 triple": (3, FREE, 3, False),
    "p4 fixed and weighted": (4, FIXED, 2, True),
    "p4 separate": (4, SEPARATE, 2, False),
}


@pytest.mark.parametrize("name", CASES)
def test_against_enumeration(name):
    p, prior, order, weights = CASES[name]
    problem = problem_of(p, prior, order, rows=60, weights=weights)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    draws = run(problem, "particle", 12_000)
    found = z_scores(draws, truth, ALLOWANCE)
    assert max(found.values()) < LIMIT, found
    # Negative control: the truth under another prior inclusion probability.
    other = Prior(FixedInclusion(0.75), prior.slab, prior.bias).resolve(problem.features)
    wrong = enumerate_posterior(problem.features, problem.statistics, other)
    assert z_scores(draws, wrong, ALLOWANCE)["inclusion"] > 2 * LIMIT


def test_against_the_exact_engine_on_block_data():
    values = exact.sample(datasets.block_model(2), 100, np.random.default_rng(2))
    data = read_data(values, constant="keep")
    features = Features.pairs(12)
    problem = Problem(features, sufficient_statistics(data, features), FREE.resolve(features))
    expected, error = inclusion_and_error(run(problem, "exact", 4000), 66)
    found, own_error = inclusion_and_error(run(problem, "particle", 4000), 66)
    variance = error**2 + own_error**2
    assert math.sqrt(max(0.0, np.mean((found - expected) ** 2 - variance))) < 0.012
    excess = np.maximum(0, abs(found - expected) - 0.01)
    assert np.max(excess / np.sqrt(np.maximum(variance, 1e-6))) < LIMIT


@kernel
def trusting(log_ratio, noise, stream):
    return log_ratio


@kernel
def alike(a, what, log_choice, rules, sums, chain, source, work):
    """A visit that takes births and deaths to be chosen equally often."""
    return visit_clique(a, what, 0.0, rules, sums, chain, source, work)


def test_forgotten_penalty_is_noticed(monkeypatch):
    """Negative control: few particles, and decisions that trust their noise."""
    problem = problem_of(3, FIXED, rows=400)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    settings = {"particles": 96, "warm_up": 50}
    kept = z_scores(run(problem, "particle", 20_000, **settings), truth, 0.03)
    assert max(kept.values()) < 2 * LIMIT, kept
    monkeypatch.setattr(chain, "run_chain", altered(chain.run_chain, penalised=trusting))
    bare = z_scores(run(problem, "particle", 20_000, **settings), truth, 0.03)
    assert max(bare.values()) > LIMIT, bare


def cold_draws(problem: Problem, iterations: int) -> list:
    """A chain all of whose candidates are cold, with nothing but births and deaths that mirror each other."""
    engine = ParticleEngine(problem, {"warm_up": 100}, np.random.SeedSequence(4))
    engine.advance(100)
    engine._arrays["scan"][:] = 0.0
    engine._arrays["cold_moves"][0] = 12
    engine._derive()
    engine._scan = engine._scan._replace(cold_flips=0, swaps=0)
    draws = engine.advance(iterations)
    counters = engine.counters()
    assert 0 < counters["cold_accepts"] < counters["cold_tries"] < 12 * iterations
    assert counters["birth_tries"] == counters["death_tries"] == 0
    return [draws]


@pytest.mark.parametrize("prior", [FREE, SEPARATE], ids=["free", "separate"])
def test_cold_candidates_against_enumeration(prior, monkeypatch):
    problem = problem_of(4, prior, rows=60)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    found = z_scores(cold_draws(problem, 15_000), truth, ALLOWANCE)
    assert max(found.values()) < LIMIT, found
    # Negative control: births that do not make up for the choice among the active ones.
    monkeypatch.setattr(chain, "run_chain", altered(chain.run_chain, visit_clique=alike))
    wrong = z_scores(cold_draws(problem, 4_000), truth, ALLOWANCE)
    assert max(wrong.values()) > 2 * LIMIT, wrong


def test_biases_of_constant_columns_are_those_of_the_line():
    # Always on and never on: the likelihood only says "beyond about 6", and the wide prior the rest. In
    # single precision one minus the mean of the first is rounding alone, which kept its bias from going far
    # out.
    rows, sd = 300.0, 10.0
    features = Features.pairs(2)
    prior = Prior(bias=NormalBias(sd), forbidden=[(0, 1)]).resolve(features)
    statistics = Statistics(rows, np.array([rows, 0.0]), np.zeros(1))
    engine = ParticleEngine(Problem(features, statistics, prior), None, np.random.SeedSequence(3))
    engine.advance(engine.warm_up)
    draws = engine.advance(40_000, 4).biases * [1.0, -1.0]
    grid = np.linspace(-10.0, 90.0, 200_001)
    log_density = rows * (grid - np.logaddexp(0.0, grid)) - 0.5 * (grid / sd) ** 2
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    error = draws.std(axis=0) / np.sqrt(effective_draws(draws.T[:, None]))
    assert np.all(np.abs(draws.mean(axis=0) - density @ grid) < LIMIT * error)
    beyond = (draws > 20.0).astype(float)
    error = beyond.std(axis=0) / np.sqrt(effective_draws(beyond.T[:, None]))
    assert np.all(np.abs(beyond.mean(axis=0) - density[grid > 20.0].sum()) < LIMIT * error)
    # Negative control: the errors are small enough to notice a prior an eighth narrower.
    narrow = np.exp(log_density - log_density.max() + 0.5 * (grid / sd) ** 2 * (1 - (8 / 7) ** 2))
    error = draws.std(axis=0) / np.sqrt(effective_draws(draws.T[:, None]))
    assert np.any(np.abs(draws.mean(axis=0) - narrow @ grid / narrow.sum()) > LIMIT * error)


def test_starts_meet():
    problem = problem_of(4, FREE, rows=60)
    shares = []
    for start in ("default", "empty", "random", "full"):
        engine = ParticleEngine(problem, None, np.random.SeedSequence(3), start)
        engine.advance(engine.warm_up)
        shares.append(inclusion_and_error([engine.advance(3000)], 6))
    for share, error in shares[1:]:
        spread = np.sqrt(error**2 + shares[0][1] ** 2)
        assert (abs(share - shares[0][0]) < LIMIT * spread + ALLOWANCE).all()


def test_counters_and_running_sums():
    problem = problem_of(4, FREE, rows=60)
    engine = ParticleEngine(problem, None, np.random.SeedSequence(3))
    engine.advance(engine.warm_up)
    draws = engine.advance(4000)
    sums = engine.edge_sums()
    active = np.array([np.mean(draws.column(clique) != 0) for clique in range(6)])
    np.testing.assert_allclose(sums["inclusion"] / sums["tries"], active, atol=0.05)
    counters = engine.counters()
    assert counters["iterations"] == 4000
    assert 0.3 < counters["weight_ess"] <= 1
    assert counters["site_updates"] > 0
    assert counters["particles"] >= 8
    assert engine.active() == draws.n_edges[-1]


def test_unknown_settings_are_refused():
    with pytest.raises(DataError, match="no setting 'burn_in'; its settings are"):
        ParticleEngine(problem_of(3, FREE), {"burn_in": 3})
