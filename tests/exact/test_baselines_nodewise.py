"""Node-wise paths against scikit-learn's solution of the same objective."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edgewise import NodewiseLasso, exact
from edgewise.baselines.solver import Rows, combine_coefficients, lambda_grid, solve_path
from edgewise.datasets import lattice_model


@pytest.fixture(scope="module")
def table():
    return exact.sample(lattice_model(1, rows=4, columns=4), 300, np.random.default_rng(0))


@pytest.fixture(scope="module")
def path(table):
    rows = Rows.collect(table)
    grid = lambda_grid("nodewise", rows, 50, 0.01)
    return solve_path("nodewise", rows, grid, tuple(f"x{i}" for i in range(16)))


@pytest.mark.parametrize("position", [4, 14, 24, 34, 49])
def test_path_equals_scikit_learn(table, path, position):
    lam = path.lambdas[position]
    for node in range(16):
        others = [j for j in range(16) if j != node]
        reference = LogisticRegression(
            l1_ratio=1, C=1 / (len(table) * lam), solver="saga", tol=1e-10, max_iter=100_000, random_state=0
        ).fit(table[:, others].astype(float), table[:, node])
        ours = path.coefficients[position, node]
        np.testing.assert_allclose(ours[others], reference.coef_[0], atol=1e-4)
        # With no coefficient in the model, saga stops before its intercept has converged.
        if reference.coef_.any():
            np.testing.assert_allclose(ours[node], reference.intercept_[0], atol=1e-4)


def test_optimality_conditions(table, path):
    for position, lam in enumerate(path.lambdas):
        coefficients = path.coefficients[position]
        bias = np.diag(coefficients)
        weights = coefficients - np.diag(bias)
        probability = 1 / (1 + np.exp(-(table @ weights.T + bias)))
        residual = (probability - table) / len(table)
        assert np.abs(residual.sum(axis=0)).max() < 1e-6
        gradient = residual.T @ table
        np.fill_diagonal(gradient, 0.0)
        active = weights != 0
        assert np.abs(gradient + lam * np.sign(weights))[active].max(initial=0.0) < 1e-6
        assert np.abs(gradient[~active]).max() < lam + 1e-6


def test_path_starts_empty_and_the_next_has_an_edge(path):
    assert path.densities[0] == 0
    assert path.densities[1] > 0


def test_wrong_penalty_is_noticed(table, path):
    """Negative control: a penalty off by 1 % violates the conditions by far more than the tolerance."""
    coefficients = path.coefficients[20, 5]
    lam = 1.01 * path.lambdas[20]
    others = np.arange(16) != 5
    eta = coefficients[5] + table[:, others] @ coefficients[others]
    gradient = table[:, others].T @ (1 / (1 + np.exp(-eta)) - table[:, 5]) / len(table)
    active = coefficients[others] != 0
    assert np.abs(gradient + lam * np.sign(coefficients[others]))[active].max() > 1e-5


def test_weights_are_repeated_rows(table):
    repeats = np.random.default_rng(1).integers(0, 4, len(table))
    weighted = NodewiseLasso(0.02).fit(table, sample_weight=repeats.astype(float))
    repeated = NodewiseLasso(0.02).fit(np.repeat(table, repeats, axis=0))
    np.testing.assert_allclose(weighted.coupling_, repeated.coupling_, atol=1e-5)
    np.testing.assert_allclose(weighted.bias_, repeated.bias_, atol=1e-5)


def test_combining_two_coefficients():
    one = np.array([[9.0, 3.0, 0.0], [-1.0, 9.0, 2.0], [0.0, 0.0, 9.0]])

    def pairs(combine, rule):
        result = combine_coefficients(one, combine, rule)
        assert (result == result.T).all()
        assert not np.diag(result).any()
        return result[0, 1], result[0, 2], result[1, 2]

    assert pairs("max", None) == (3, 0, 2)
    assert pairs("min", None) == (-1, 0, 0)
    assert pairs("mean", None) == (1, 0, 0)
    assert pairs("max", "and") == (3, 0, 0)
    assert pairs("min", "or") == (-1, 0, 2)
    assert pairs("mean", "or") == (1, 0, 1)
