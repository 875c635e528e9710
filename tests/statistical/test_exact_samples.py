"""Samples of exact inference against exact means, in units of their Monte Carlo error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from edgewise import MRF, datasets, exact
from edgewise.exact.elimination import Elimination
from edgewise.exact.enumeration import Enumeration, pack
from edgewise.exact.inference import cheapest_order

SAMPLES = 100_000


class WrongSeparatorOrder(Elimination):
    """A sampler that reads the states of a bag's other variables in the wrong order."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        tables = self.collect().tables
        states = np.zeros((self.model.n_variables, n), np.uint8)
        for k in range(self.model.n_variables - 1, -1, -1):
            variable, *others = self.order.bags[k]
            probability = (1.0 / (1.0 + np.exp(tables[k][0] - tables[k][1]))).ravel()
            number = np.zeros(n, np.intp)
            for other in reversed(others):
                number += number + states[other]
            states[variable] = rng.random(n) < probability[number]
        return states.T


def feature_errors(model: MRF, rows: np.ndarray) -> np.ndarray:
    """Differences between sample means and exact means of all features, in standard errors."""
    expected = exact.means(model)
    observed = [rows[:, i].mean() for i in range(model.n_variables)]
    observed += [rows[:, list(clique)].all(axis=1).mean() for clique in model.cliques]
    return (np.array(observed) - expected) / np.sqrt(expected * (1 - expected) / len(rows))


@pytest.fixture(scope="module")
def lattice() -> MRF:
    return datasets.lattice_model(seed=21)


@pytest.fixture(scope="module")
def rows(lattice: MRF) -> np.ndarray:
    return exact.sample(lattice, SAMPLES, np.random.default_rng(22))


def test_lattice_samples_match_the_means_of_all_features(lattice, rows):
    assert rows.shape == (SAMPLES, 100)
    assert rows.dtype == np.uint8
    errors = feature_errors(lattice, rows)
    # 280 errors: one of them passes 4.5 by chance in 2 of 1,000 runs.
    assert np.abs(errors).max() < 4.5
    # And they are neither too large nor too small on the whole: the sampler is not a stratified one.
    assert 0.7 < errors.std() < 1.3


def test_lattice_samples_match_the_means_of_all_4950_pairs(lattice, rows):
    expected = exact.pair_marginals(lattice)
    observed = rows.T.astype(np.float32) @ rows.astype(np.float32) / SAMPLES
    errors = (observed - expected) / np.sqrt(expected * (1 - expected) / SAMPLES)
    assert np.abs(errors).max() < 5.2


def test_lattice_samples_are_independent(rows):
    """Neighbouring rows are as uncorrelated as independent ones are."""
    centered = rows - rows.mean(axis=0)
    lagged = (centered[1:] * centered[:-1]).mean(axis=0) / rows.var(axis=0)
    assert np.abs(lagged).max() * np.sqrt(SAMPLES) < 4.5


def test_a_wrong_sampler_fails_the_same_test(lattice):
    wrong = WrongSeparatorOrder(lattice, cheapest_order(lattice))
    errors = feature_errors(lattice, wrong.sample(SAMPLES, np.random.default_rng(22)))
    assert np.abs(errors).max() > 4.5


def test_one_slightly_wrong_weight_fails_the_same_test(lattice):
    weights = lattice.weights.copy()
    weights[90] += 0.15
    altered = MRF(lattice.biases, lattice.cliques, weights)
    errors = feature_errors(lattice, exact.sample(altered, SAMPLES, np.random.default_rng(22)))
    assert np.abs(errors).max() > 4.5


def small_model() -> MRF:
    rng = np.random.default_rng(23)
    cliques = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3, 4), (4, 5)]
    return MRF(rng.normal(size=7), cliques, rng.normal(0, 1.5, len(cliques)))


def chi_square_probability(model: MRF, sampled: np.ndarray) -> float:
    """Chance of a chi-square this large over all states, rare ones pooled."""
    expected = exact.probabilities(model) * len(sampled)
    observed = np.bincount(pack(sampled, range(model.n_variables)), minlength=len(expected)).astype(float)
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("method", ["enumeration", "elimination"])
def test_chi_square_of_all_states(method):
    model = small_model()
    solver = Enumeration(model) if method == "enumeration" else Elimination(model, cheapest_order(model))
    assert chi_square_probability(model, solver.sample(SAMPLES, np.random.default_rng(24))) > 1e-3


def test_chi_square_of_gibbs_chains_that_have_forgotten_their_start():
    model = small_model()
    assert chi_square_probability(model, model.gibbs(20_000, 100, np.random.default_rng(25))) > 1e-3


def test_chi_square_fails_for_samplers_that_are_wrong():
    model = small_model()
    rng = np.random.default_rng(26)
    wrong = WrongSeparatorOrder(model, cheapest_order(model)).sample(SAMPLES, rng)
    assert chi_square_probability(model, wrong) < 1e-6
    assert chi_square_probability(model, model.gibbs(20_000, 1, rng)) < 1e-6


def test_the_same_seed_gives_the_same_samples(lattice):
    np.testing.assert_array_equal(exact.sample(lattice, 20, 5), exact.sample(lattice, 20, 5))
    assert not np.array_equal(exact.sample(lattice, 20, 5), exact.sample(lattice, 20, 6))
    assert exact.sample(lattice, 0, 5).shape == (0, 100)
