"""Scores and predictions against brute force over all states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgewise import MRF, NodewiseLasso, exact, predict
from edgewise.datasets import block_model, lattice_model
from edgewise.errors import DataError
from edgewise.predict.annealing import gibbs_marginals


def random_mrf(p, rng, triples=0):
    coupling = np.triu(rng.normal(0, 1, (p, p)) * (rng.random((p, p)) < 0.6), 1)
    pairs = [(i, j) for i, j in itertools.combinations(range(p), 2) if coupling[i, j]]
    larger = [tuple(sorted(rng.choice(p, 3, replace=False))) for _ in range(triples)]
    larger = sorted(set(larger))
    weights = [coupling[pair] for pair in pairs] + list(rng.normal(0, 1, len(larger)))
    return MRF(rng.normal(0, 1, p), pairs + larger, weights, names=[f"v{i}" for i in range(p)])


def brute_force(model, row, group):
    """Log P(group | rest) of one row from the potentials of all states of the group."""
    states = np.repeat(np.asarray(row)[None], 2 ** len(group), axis=0)
    states[:, group] = list(itertools.product([0, 1], repeat=len(group)))
    potential = model.log_potential(states)
    return model.log_potential(row[None])[0] - np.logaddexp.reduce(potential)


@pytest.mark.parametrize("triples", [0, 6])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_random_groups_equal_brute_force(rng, triples, size):
    model = random_mrf(9, rng, triples)
    rows = (rng.random((12, 9)) < 0.5).astype(np.uint8)
    groups = predict.random_groups(12, 9, size, seed=1)
    found = predict.conditional_log_likelihood(model, rows, groups)
    expected = [brute_force(model, row, group) for row, group in zip(rows, groups)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_windows_of_a_lattice_equal_brute_force(rng):
    model = lattice_model(0)
    rows = model.gibbs(30, 50, rng)
    groups = predict.random_windows(30, predict.grid_windows(10, 10), seed=0)
    found = predict.conditional_log_likelihood(model, rows, groups)
    expected = [brute_force(model, row, group) for row, group in zip(rows, groups)]
    np.testing.assert_allclose(found, expected, atol=1e-11)
    # Negative control: the neighbouring window is another number.
    assert np.abs(predict.conditional_log_likelihood(model, rows, groups[::-1]) - expected).max() > 0.1


def test_group_of_all_variables_is_the_log_likelihood(rng):
    model = block_model(0)
    rows = exact.sample(model, 50, rng)
    found = predict.conditional_log_likelihood(model, rows, range(12))
    states = exact.states(12)
    log_z = np.logaddexp.reduce(model.log_potential(states))
    np.testing.assert_allclose(found, model.log_potential(rows) - log_z, atol=1e-10)
    np.testing.assert_array_equal(found, predict.conditional_log_likelihood(model, rows))
    likelihood = predict.log_likelihood(model, rows)
    np.testing.assert_allclose(likelihood.values, found, atol=1e-12)
    assert likelihood.standard_error == 0
    assert likelihood.method == "exact"


def test_groups_by_name_and_one_for_all(rng):
    model = random_mrf(7, rng)
    rows = (rng.random((5, 7)) < 0.5).astype(np.uint8)
    by_name = predict.conditional_log_likelihood(model, rows, ["v4", "v1"])
    np.testing.assert_allclose(by_name, [brute_force(model, row, [4, 1]) for row in rows], atol=1e-12)
    np.testing.assert_allclose(by_name, predict.conditional_log_likelihood(model, rows, [[1, 4]] * 5))


def test_large_groups_of_a_sparse_graph(rng):
    """Groups beyond the table of 16 variables."""
    model = lattice_model(1, rows=3, columns=7)
    rows = model.gibbs(3, 50, rng)
    group = list(range(2, 19))
    found = predict.conditional_log_likelihood(model, rows, group)
    expected = [brute_force(model, row, group) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_mixture_averages_likelihoods_before_the_logarithm(rng):
    models = [random_mrf(6, rng) for _ in range(4)]
    rows = (rng.random((10, 6)) < 0.5).astype(np.uint8)
    groups = predict.random_groups(10, 6, 3)
    single = np.array([predict.conditional_log_likelihood(model, rows, groups) for model in models])
    mixture = predict.conditional_log_likelihood(models, rows, groups)
    np.testing.assert_allclose(mixture, np.log(np.exp(single).mean(axis=0)), atol=1e-12)
    assert (mixture > single.mean(axis=0)).all()
    whole = predict.log_likelihood(models, rows)
    single = np.array([predict.log_likelihood(model, rows).values for model in models])
    np.testing.assert_allclose(whole.values, np.log(np.exp(single).mean(axis=0)), atol=1e-12)
    sites = [predict.conditional_log_likelihood(models, rows, [variable]) for variable in range(6)]
    np.testing.assert_allclose(predict.pseudo_log_likelihood(models, rows), np.sum(sites, axis=0), atol=1e-12)


@pytest.mark.parametrize("triples", [0, 4])
def test_pseudo_log_likelihood(rng, triples):
    model = random_mrf(6, rng, triples)
    rows = (rng.random((10, 6)) < 0.5).astype(np.uint8)
    expected = [sum(brute_force(model, row, [i]) for i in range(6)) for row in rows]
    np.testing.assert_allclose(predict.pseudo_log_likelihood(model, rows), expected, atol=1e-12)


def test_strong_fields_keep_their_digits():
    model = MRF([-800.0, 400.0, 0.0], [(0, 1), (1, 2)], [500.0, -300.0])
    rows = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1]])
    assert np.isfinite(predict.pseudo_log_likelihood(model, rows)).all()
    found = predict.conditional_log_likelihood(model, rows, [0, 1])
    np.testing.assert_allclose(found, [brute_force(model, row, [0, 1]) for row in rows], rtol=1e-12)
    assert np.isfinite(predict.conditional_log_likelihood([model, model], rows, [0, 1])).all()


def unseen_by_brute_force(model, row, target):
    states = exact.states(model.n_variables)
    seen = [i for i in range(model.n_variables) if row[i] >= 0 and i != target]
    states = states[(states[:, seen] == np.asarray(row)[seen]).all(axis=1)]
    weight = np.exp(model.log_potential(states))
    return weight[states[:, target] == 1].sum() / weight.sum()


@pytest.mark.parametrize("triples", [0, 5])
def test_probabilities_of_unseen_variables(rng, triples):
    model = random_mrf(8, rng, triples)
    rows = rng.integers(-1, 2, (15, 8))
    found = predict.conditional_probability(model, rows, ["v2", "v5"])
    for row, probabilities in zip(rows, found):
        hidden = row.copy()
        hidden[[2, 5]] = -1
        expected = [unseen_by_brute_force(model, hidden, target) for target in (2, 5)]
        np.testing.assert_allclose(probabilities, expected, atol=1e-12)
    filled = predict.conditional_probability(model, np.where(rows < 0, np.nan, rows))
    np.testing.assert_array_equal(filled[rows >= 0], rows[rows >= 0])
    first = np.argwhere(rows < 0)[0]
    assert filled[tuple(first)] == pytest.approx(unseen_by_brute_force(model, rows[first[0]], first[1]))


def test_a_target_never_sees_itself(rng):
    model = random_mrf(5, rng)
    rows = (rng.random((6, 5)) < 0.5).astype(np.uint8)
    flipped = rows.copy()
    flipped[:, 3] = 1 - flipped[:, 3]
    np.testing.assert_array_equal(
        predict.conditional_probability(model, rows, 3), predict.conditional_probability(model, flipped, "v3")
    )
    np.testing.assert_allclose(
        predict.conditional_probability(model, rows, 3)[:, 0], model.conditional_probability(rows)[:, 3]
    )


def test_many_unseen_on_a_sparse_graph_and_by_gibbs(rng):
    model = lattice_model(2, rows=3, columns=6)
    row = model.gibbs(1, 50, rng).astype(int)
    row[:, :17] = -1
    found = predict.conditional_probability(model, row, range(17))
    expected = [unseen_by_brute_force(model, row[0], target) for target in (0, 16)]
    np.testing.assert_allclose(found[0, [0, 16]], expected, atol=1e-10)
    sampled = gibbs_marginals(model, np.maximum(row, 0), np.arange(17), 2000, 16, rng)
    # 32,000 sweeps, worth about a tenth of that: a standard error of at most 0.009.
    assert np.abs(sampled - found).max() < 0.04
    assert np.abs(sampled - 0.5).max() > 0.2


def test_mixture_probabilities_are_averaged(rng):
    models = [random_mrf(5, rng) for _ in range(3)]
    rows = rng.integers(-1, 2, (4, 5))
    single = [predict.conditional_probability(model, rows, [1]) for model in models]
    np.testing.assert_allclose(predict.conditional_probability(models, rows, [1]), np.mean(single, axis=0))


def test_estimators_and_posteriors_stand_for_their_models(rng):
    model = lattice_model(0, rows=3, columns=3)
    rows = exact.sample(model, 100, rng)
    lasso = NodewiseLasso(0.05).fit(rows)
    np.testing.assert_array_equal(
        predict.pseudo_log_likelihood(lasso, rows), predict.pseudo_log_likelihood(lasso.model_, rows)
    )


def test_nltcs_fully_connected_model(real_data):
    """The published split: maximum likelihood of all 120 pairs scores -6.029 on the test rows.

    The pseudo-likelihood optimum is close to it, and far above the Chow-Liu tree's -6.759.
    """
    with np.load(real_data / "debd" / "nltcs.npz") as file:
        train, test = file["train"], file["test"]
    from edgewise import PseudoLikelihoodLasso

    lasso = PseudoLikelihoodLasso(1e-5).fit(train)
    likelihood = predict.log_likelihood(lasso, test)
    assert likelihood.method == "exact"
    assert likelihood.mean == pytest.approx(-6.029, abs=0.02)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::edgewise.errors.EdgewiseWarning")
def test_nltcs_posterior_mixture(real_data):
    """As good as the fully connected maximum-likelihood model with fewer edges."""
    from edgewise import SpikeSlabMRF

    with np.load(real_data / "debd" / "nltcs.npz") as file:
        train, test = file["train"], file["test"]
    fitted = SpikeSlabMRF(
        engine="exact", chains=2, min_draws=100, max_draws=300, thin=1, random_state=0, progress=False
    ).fit(train)
    likelihood = predict.log_likelihood(fitted, test)
    assert likelihood.method == "exact"
    assert likelihood.mean == pytest.approx(-6.029, abs=0.005)
    assert fitted.posterior_.n_edges.mean() < 0.95 * fitted.posterior_.n_cliques


def test_windows_and_groups():
    windows = predict.grid_windows(12, 9)
    assert windows.shape == (70, 9)
    np.testing.assert_array_equal(windows[0], [0, 1, 2, 9, 10, 11, 18, 19, 20])
    np.testing.assert_array_equal(windows[-1], np.array([87, 88, 89, 96, 97, 98, 105, 106, 107]))
    groups = predict.random_groups(1000, 20, 5, seed=3)
    assert (np.diff(groups, axis=1) > 0).all()
    counts = np.bincount(groups.ravel(), minlength=20)
    assert np.abs(counts - 250).max() < 5 * np.sqrt(250 * 0.75)
    np.testing.assert_array_equal(groups, predict.random_groups(1000, 20, 5, seed=3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, x: predict.conditional_log_likelihood(m, x, [0, 0]), "twice"),
        (lambda m, x: predict.conditional_log_likelihood(m, x, [0, 9]), "There is no variable 9"),
        (lambda m, x: predict.conditional_log_likelihood(m, x, ["nobody"]), "nobody"),
        (
            lambda m, x: predict.conditional_log_likelihood(m, x, [[0, 1]] * 2),
            "one group of equal size per row",
        ),
        (lambda m, x: predict.conditional_log_likelihood(m, x, [[0, 9]] * 3), "variable 9"),
        (lambda m, x: predict.conditional_log_likelihood(m, x, "each"), "groups is"),
        (lambda m, x: predict.conditional_log_likelihood([], x, [0]), "Give a model"),
        (lambda m, x: predict.conditional_log_likelihood(m, x + 2, [0]), "0 or 1"),
        (lambda m, x: predict.conditional_probability(m, x[:, :3]), "5 columns"),
        (lambda m, x: predict.conditional_probability(m, x + 7, [0]), "unseen"),
        (lambda m, x: predict.log_likelihood(m, x, method="magic"), "magic"),
        (lambda m, x: predict.grid_windows(2, 5), "does not fit"),
        (lambda m, x: predict.random_groups(3, 5, 6), "not possible"),
        (lambda m, x: predict.ais_log_partition(m, particles=1), "particles"),
        (lambda m, x: predict.ais_log_partition(m, temperatures=0), "temperatures"),
    ],
)
def test_bad_input_is_explained(rng, call, words):
    with pytest.raises(DataError, match=words):
        call(random_mrf(5, rng), np.zeros((3, 5)))
