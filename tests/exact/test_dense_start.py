"""Dense graphs with many rows: where chains start, rows in the covariances, and short steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from edgewise import MRF, exact
from edgewise.data import read_data
from edgewise.engines.averages import _covariance_of_rows
from edgewise.engines.choose import choose
from edgewise.engines.rounds import LARGEST_STEP, shortened, step_of
from edgewise.engines.start import dense_fit, has_many_rows, rough_fit
from edgewise.engines.surrogate import SurrogateEngine
from edgewise.fitting import pose
from edgewise.priors import FixedSlab, Prior

P = 8


def dense_model(p: int = P, size: float = 0.7) -> MRF:
    """Every two variables depend on each other."""
    rng = np.random.default_rng(1)
    pairs = list(combinations(range(p), 2))
    coupling = rng.normal(0.2, size, len(pairs))
    bias = rng.normal(0, 0.3, p)
    for (i, j), value in zip(pairs, coupling):
        bias[i] -= value / 2
        bias[j] -= value / 2
    return MRF(bias, pairs, coupling)


def problem_of(rows: np.ndarray, prior: Prior | None = None, **options):
    return pose(read_data(rows, constant="keep", **options), prior or Prior()).problem


@pytest.fixture(scope="module")
def rows():
    return exact.sample(dense_model(), 6000, np.random.default_rng(2))


def mismatch(problem, coupling, bias) -> float:
    """Root mean square difference of the means of all features, in standard errors of the data."""
    pairs = problem.features.members
    model = MRF(bias, pairs, coupling[pairs[:, 0], pairs[:, 1]])
    state = exact.states(len(bias)).astype(float)
    weight = np.exp(model.log_potential(exact.states(len(bias))) - exact.log_partition(model))
    features = np.concatenate([state, state[:, pairs[:, 0]] * state[:, pairs[:, 1]]], axis=1)
    statistics = problem.statistics
    n = statistics.n_rows
    share = np.concatenate([statistics.singles, statistics.cliques]) / n
    error = (weight @ features - share) / np.sqrt(share * (1 - share) / n)
    return float(np.sqrt(np.mean(error**2)))


def test_a_dense_fit_has_the_moments_of_the_data(rows):
    problem = problem_of(rows)
    assert has_many_rows(problem)
    coupling, bias, states = dense_fit(problem, 2048, np.random.default_rng(3))
    assert mismatch(problem, coupling, bias) < 0.7
    # Control: the sparse fit leaves out and shrinks, and is farther off.
    sparse, its_bias, _ = rough_fit(problem, 3.0, 2048, np.random.default_rng(3))
    assert mismatch(problem, sparse, its_bias) > 1.3
    assert states.shape == (P, 2048)
    again = dense_fit(problem, 2048, np.random.default_rng(3))
    for one, other in zip((coupling, bias, states), again):
        np.testing.assert_array_equal(one, other)


def test_a_dense_fit_obeys_prior_and_weights(rows):
    forbidden = [(0, 1), (2, 5)]
    coupling, _, _ = dense_fit(problem_of(rows, Prior(forbidden=forbidden)), 512, np.random.default_rng(3))
    assert coupling[0, 1] == coupling[2, 5] == 0
    narrow, _, _ = dense_fit(problem_of(rows, Prior(slab=FixedSlab(0.01))), 512, np.random.default_rng(3))
    assert np.abs(narrow).max() < 0.1
    # Rows counted twice are as good as rows that stand twice.
    weights = np.where(np.arange(len(rows)) < 3000, 2.0, 0.0)
    kept = weights > 0
    weighted = problem_of(rows[kept], sample_weight=weights[kept])
    coupling, bias, _ = dense_fit(weighted, 2048, np.random.default_rng(3))
    assert mismatch(weighted, coupling, bias) < 1.5


def test_without_rows_there_is_no_dense_fit(rows):
    problem = problem_of(rows)
    assert dense_fit(replace(problem, rows=None), 64, np.random.default_rng(0)) is None
    assert not has_many_rows(problem_of(rows[:1900]))


def test_covariances_over_rows(rows):
    problem = problem_of(rows)
    chosen = np.array([0, 3, 7])
    n, found = _covariance_of_rows(problem, chosen)
    assert n == len(rows) // 64 * 64
    members = problem.features.members[chosen]
    x = rows.astype(float)
    features = np.concatenate([x, x[:, members[:, 0]] * x[:, members[:, 1]]], axis=1)
    # All rows but a few, which were left out at random.
    np.testing.assert_allclose(found, np.cov(features.T), atol=4e-3)
    assert _covariance_of_rows(replace(problem, rows=None), chosen) is None


def surrogates(problem):
    """Two surrogates of rounds that followed each other."""
    settings, knowledge, found = {"warm_up": 20, "particles": 64}, None, []
    engine = SurrogateEngine(problem, settings, np.random.SeedSequence(1))
    for _ in range(2):
        engine.advance(engine.warm_up - engine.iteration)
        knowledge = SurrogateEngine.pool(problem, settings, [engine.state()], knowledge)
        found.append(knowledge)
        if not knowledge["last"][0]:
            engine = SurrogateEngine.restore(problem, settings, engine.state(), knowledge)
    return found


def test_a_step_that_is_too_long_is_shortened(rows):
    before, made = surrogates(problem_of(rows))
    far = {**made, "pull": made["pull"] + 5.0 * np.sqrt(np.diag(made["precision"]))}
    step = step_of(far, before)
    assert step > 3 * LARGEST_STEP
    short = shortened(far, before, step)
    unit = {**short, "precision": far["precision"]}
    theta = far["phi"][P:]
    # The slopes go the share of the way, in units of the surrogate that was made.
    asked = far["occupied"] > 0.05

    def slopes(part):
        return (part["pull"] - part["precision"].astype(float) @ theta)[asked]

    gone = (slopes(short) - slopes(before)) / np.sqrt(np.diag(unit["precision"])[asked])
    assert np.sqrt(np.mean(gone**2)) == pytest.approx(LARGEST_STEP, rel=1e-3)
    inverse = np.linalg.inv(short["bias_precision"])
    np.testing.assert_allclose(short["bias_root"] @ short["bias_root"].T, inverse, rtol=1e-8, atol=1e-10)
    near = shortened(made, before, 0.5)
    assert near["pull"] is made["pull"]


def test_auto_takes_the_surrogate_for_dense_graphs_with_many_rows():
    rng = np.random.default_rng(5)
    common = rng.normal(size=(4000, 1))
    rows = (rng.normal(size=(4000, 30)) < 0.8 * common).astype(np.uint8)
    name, reason = choose(problem_of(rows))
    assert name == "surrogate"
    assert "second order" in reason
    assert choose(problem_of(rows[:1500]))[0] == "particle"
    assert choose(problem_of(rows), {"sweeps": 2, "swaps": 3})[0] == "particle"
