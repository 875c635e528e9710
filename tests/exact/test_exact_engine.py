"""The exact engine against complete enumeration of all graphs, in units of Monte Carlo error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import problem_of, run, z_scores
from truth import enumerate_posterior

from edgewise.data import read_data
from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.features import Features, Statistics, sufficient_statistics
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

# The largest of thirty or so z-scores a case.
LIMIT = 4.5
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
    "p3 fixed": (3, FIXED, 2, False),
    "p3 triple": (3, FREE, 3, False),
    "p4 free": (4, FREE, 2, False),
    "p4 fixed and weighted": (4, FIXED, 2, True),
    "p4 separate": (4, SEPARATE, 2, False),
}


@pytest.mark.parametrize("name", CASES)
def test_against_enumeration(name):
    p, prior, order, weights = CASES[name]
    problem = problem_of(p, prior, order, weights=weights)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    draws = run(problem, "exact", 30_000)
    found = z_scores(draws, truth)
    assert max(found.values()) < LIMIT, found


def test_one_more_row_is_noticed():
    """Negative control: the truth of slightly different data, and of prior odds wrong by a factor of two."""
    problem = problem_of(4, FREE)
    draws = run(problem, "exact", 30_000)
    statistics = problem.statistics
    sums = statistics.cliques.copy()
    sums[0] += 1
    other = Statistics(statistics.n_rows, statistics.singles, sums)
    truth = enumerate_posterior(problem.features, other, problem.prior)
    assert max(z_scores(draws, truth).values()) > 2 * LIMIT
    odds = replace(problem.prior, beta_a=10.0)
    truth = enumerate_posterior(problem.features, statistics, odds)
    assert z_scores(draws, truth)["inclusion"] > 2 * LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("prior", [FREE, FIXED], ids=["free", "fixed"])
def test_five_variables_against_all_1024_graphs(prior):
    # Every graph to 0.002 and none by Laplace's approximation alone: with less, the truth's own error, which
    # the z-scores leave out, shows in the moments of the biases. Fewer rows take far longer to converge.
    problem = problem_of(5, prior, rows=200)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior, target_error=0.002)
    assert len(truth.graphs) == 1024
    draws = run(problem, "exact", 60_000)
    found = z_scores(draws, truth)
    assert max(found.values()) < LIMIT, found
    # Whole graphs too: the most probable ones are visited as often as they should.
    codes = np.zeros(60_000, np.int64)
    np.add.at(codes, np.repeat(np.arange(60_000), draws[0].n_edges), 1 << draws[0].indices.astype(np.int64))
    for graph in np.argsort(truth.probability)[-8:]:
        code = int((truth.graphs[graph] * (1 << np.arange(10))).sum())
        share = np.mean(codes == code)
        probability = truth.probability[graph]
        assert abs(share - probability) < 6 * np.sqrt(probability / 60_000) + 0.002


def test_starts_agree():
    problem = problem_of(4, FREE)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    for start in ("empty", "random", "full"):
        engine = ExactEngine(problem, None, np.random.SeedSequence(3), start)
        engine.advance(engine.warm_up)
        found = z_scores([engine.advance(8000)], truth)
        assert max(found.values()) < LIMIT, (start, found)


def test_running_sums_and_counters():
    problem = problem_of(4, FREE)
    engine = ExactEngine(problem, None, np.random.SeedSequence(3))
    engine.advance(engine.warm_up)
    draws = engine.advance(20_000)
    sums = engine.edge_sums()
    active = np.array([np.mean(draws.column(clique) != 0) for clique in range(6)])
    np.testing.assert_allclose(sums["inclusion"] / sums["tries"], active, atol=0.02)
    assert (abs(sums["births"] - sums["deaths"]) <= 20_000 * 0.2).all()
    counters = engine.counters()
    assert counters["iterations"] == 20_000
    assert counters["birth_accepts"] == sums["births"].sum()
    assert 0 < counters["swap_accepts"] < counters["swap_tries"]
    assert engine.active() == draws.n_edges[-1]


def test_refusals():
    features = Features.pairs(21)
    large = Problem(features, Statistics.none(features), Prior().resolve(features))
    with pytest.raises(DataError, match="limited to 20 variables"):
        ExactEngine(large)
    features = Features.pairs(17)
    wide = Problem(features, Statistics.none(features), Prior().resolve(features))
    with pytest.warns(EdgewiseWarning, match="131,072 states"):
        ExactEngine(wide, {"warm_up": 0})
    small = problem_of(3, FREE)
    with pytest.raises(DataError, match="no setting 'particles'; its settings are"):
        ExactEngine(small, {"particles": 3})
    with pytest.raises(DataError, match="cannot start from 'nowhere'"):
        ExactEngine(small, None, None, "nowhere")


def test_constant_columns_leave_the_table_of_states_normalised():
    """Biases of constant columns wander as far as their prior allows; the table must follow them."""
    rng = np.random.default_rng(0)
    rows = np.zeros((300, 6), int)
    rows[:, :2] = 1
    rows[:, 3] = rng.random(300) < 0.36
    rows[:, 5] = rng.random(300) < 0.03
    features = Features.pairs(6)
    statistics = sufficient_statistics(read_data(rows, constant="keep"), features)
    problem = Problem(features, statistics, Prior().resolve(features))
    engine = ExactEngine(problem, {"warm_up": 300}, np.random.SeedSequence(2))
    engine.advance(300)
    for _ in range(10):
        engine.advance(100)
        assert abs(engine._arrays["table"].sum() - 1) < 1e-6
