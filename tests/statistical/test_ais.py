"""The error bar of annealed importance sampling: how often it covers the exact log Z."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise import MRF, exact, predict
from edgewise.datasets import block_model, lattice_model
from edgewise.errors import EdgewiseWarning
from edgewise.predict.annealing import SiteTerms, _base_biases

MODELS = {"block": lambda: block_model(0), "lattice": lambda: lattice_model(0)}


def deviations(model, seeds, **settings):
    """Errors of the estimate in units of its own error bar."""
    truth = exact.log_partition(model)
    found = [predict.ais_log_partition(model, seed=seed, **settings) for seed in seeds]
    return np.array([(estimate - truth) / error for estimate, error in found])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_coverage_over_200_seeds(name):
    covered = (np.abs(deviations(MODELS[name](), range(200))) < 1.96).mean()
    assert 0.90 <= covered <= 0.995


@pytest.mark.parametrize(
    ("model", "n"),
    [(block_model(0), 200), (lattice_model(0, rows=5, columns=5), 60)],
    ids=["block", "lattice"],
)
def test_coverage(model, n):
    found = deviations(model, range(n))
    # Too many misses or no spread at all: either end has probability below 1e-4 for an honest bar.
    assert (np.abs(found) < 1.96).mean() >= 0.95 - 3.7 * np.sqrt(0.05 * 0.95 / n)
    assert 0.5 < found.std() < 1.6
    assert abs(found.mean()) < 4 / np.sqrt(n)


def test_a_wrong_normaliser_is_noticed():
    """Negative control: log Z of a model with one coupling changed by 0.3 lies far outside the bars."""
    model = block_model(0)
    weights = model.weights.copy()
    weights[0] += 0.3
    other = MRF(model.biases, model.members, weights)
    found = [predict.ais_log_partition(model, seed=seed) for seed in range(50)]
    missed = [abs(estimate - exact.log_partition(other)) > 1.96 * error for estimate, error in found]
    assert np.mean(missed) > 0.5


def test_larger_cliques(rng):
    cliques = [(0, 1), (1, 2), (0, 1, 2), (2, 3, 4), (3, 4), (1, 3, 4, 5)]
    model = MRF(rng.normal(0, 1, 6), cliques, rng.normal(0, 1.5, 6))
    found = deviations(model, range(60), temperatures=64)
    assert abs(found.mean()) < 4 / np.sqrt(60)
    assert (np.abs(found) < 1.96).mean() >= 0.83


def test_independent_variables_are_almost_exact():
    model = MRF([-3.0, 0.0, 2.0], [], [])
    estimate, error = predict.ais_log_partition(model)
    assert abs(estimate - exact.log_partition(model)) < 4 * error + 1e-12
    assert error < 0.02


def test_same_seed_same_answer():
    model = block_model(1)
    assert predict.ais_log_partition(model, seed=5) == predict.ais_log_partition(model, seed=5)
    assert predict.ais_log_partition(model, seed=5) != predict.ais_log_partition(model, seed=6)


def test_too_few_temperatures_are_reported():
    model = lattice_model(0)
    strong = MRF(3 * model.biases, model.members, 3 * model.weights)
    with pytest.warns(EdgewiseWarning, match="temperatures"):
        predict.ais_log_partition(strong, temperatures=2)


def test_sites_list_every_clique(rng):
    model = MRF([0.0] * 4, [(0, 1), (1, 2, 3), (0, 3)], [1.0, 2.0, 0.0])
    terms = SiteTerms.of(model)
    np.testing.assert_array_equal(np.diff(terms.first), [1, 2, 1, 1])
    of_second = terms.others[terms.first[1] : terms.first[2]].tolist()
    assert sorted(of_second) == [[0, -1], [3, 2]]
    assert _base_biases(model, terms, rng).shape == (4,)


def test_log_likelihood_carries_the_error(rng):
    model = lattice_model(0, rows=4, columns=4)
    rows = exact.sample(model, 30, rng)
    true = predict.log_likelihood(model, rows)
    found = predict.log_likelihood(model, rows, method="annealing")
    assert found.method == "annealing"
    assert 0 < found.standard_error < 0.05
    assert abs(found.mean - true.mean) < 4 * found.standard_error
    mixture = predict.log_likelihood([model] * 4, rows, method="annealing")
    assert mixture.standard_error == pytest.approx(found.standard_error / 2, rel=0.3)
