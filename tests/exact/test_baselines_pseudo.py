"""The pseudo-likelihood lasso against its optimality conditions and a brute-force optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from edgewise import PseudoLikelihoodLasso, exact
from edgewise.datasets import lattice_model


@pytest.fixture(scope="module")
def table():
    return exact.sample(lattice_model(3, rows=2, columns=3), 200, np.random.default_rng(0)).astype(float)


@pytest.fixture(scope="module")
def fitted(table):
    return PseudoLikelihoodLasso(n_lambdas=30).fit(table)


def loss_and_gradient(table, bias, coupling):
    """Mean negative log pseudo-likelihood, its gradient in the biases and (once per pair) the couplings."""
    eta = bias + table @ coupling
    loss = (np.logaddexp(0, eta) - table * eta).sum(axis=1).mean()
    residual = (1 / (1 + np.exp(-eta)) - table) / len(table)
    gradient = residual.T @ table
    return loss, residual.sum(axis=0), gradient + gradient.T


def test_optimality_conditions_along_the_path(table, fitted):
    path = fitted.path_
    for lam, bias, coupling in zip(path.lambdas, path.biases, path.couplings):
        _, bias_gradient, gradient = loss_and_gradient(table, bias, coupling)
        np.fill_diagonal(gradient, 0.0)
        active = coupling != 0
        assert np.abs(bias_gradient).max() < 1e-6
        assert np.abs(gradient + lam * np.sign(coupling))[active].max(initial=0.0) < 1e-6
        assert np.abs(gradient[~active]).max() < lam + 1e-6


@pytest.mark.parametrize("position", [0, 8, 16, 24, 29])
def test_equals_brute_force(table, fitted, position):
    """L-BFGS-B on the positive and negative parts of the 15 couplings and the 6 biases."""
    lam = fitted.path_.lambdas[position]
    upper = np.triu_indices(6, 1)

    def unpack(values):
        coupling = np.zeros((6, 6))
        coupling[upper] = values[6:21] - values[21:]
        return values[:6], coupling + coupling.T

    def objective(values):
        bias, coupling = unpack(values)
        loss, bias_gradient, gradient = loss_and_gradient(table, bias, coupling)
        pairs = gradient[upper]
        total = loss + lam * values[6:].sum()
        return total, np.concatenate([bias_gradient, pairs + lam, -pairs + lam])

    found = minimize(
        objective,
        np.zeros(36),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * 6 + [(0, None)] * 30,
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-10},
    )
    bias, coupling = unpack(found.x)
    np.testing.assert_allclose(fitted.path_.couplings[position], coupling, atol=1e-4)
    np.testing.assert_allclose(fitted.path_.biases[position], bias, atol=1e-4)
    ours = loss_and_gradient(table, fitted.path_.biases[position], fitted.path_.couplings[position])[0]
    ours += lam * np.abs(fitted.path_.couplings[position][upper]).sum()
    assert ours <= found.fun + 1e-10


def test_penalty_counts_each_pair_once(table, fitted):
    """Negative control: counting pairs twice (lambda halved) is another solution."""
    path = fitted.path_
    twice = path.at(2 * path.lambdas[15])
    assert np.abs(twice.coupling - path.couplings[15]).max() > 1e-2


def test_between_grid_points_is_solved_not_interpolated(table, fitted):
    path = fitted.path_
    lam = float(np.sqrt(path.lambdas[12] * path.lambdas[13]))
    model = path.at(lam)
    _, bias_gradient, gradient = loss_and_gradient(table, model.biases, model.coupling)
    np.fill_diagonal(gradient, 0.0)
    active = model.coupling != 0
    assert np.abs(bias_gradient).max() < 1e-6
    assert np.abs(gradient + lam * np.sign(model.coupling))[active].max() < 1e-6
    direct = PseudoLikelihoodLasso(lam).fit(table)
    np.testing.assert_allclose(direct.coupling_, model.coupling, atol=1e-5)


def test_no_penalty_is_maximum_pseudo_likelihood(table):
    fitted = PseudoLikelihoodLasso(0.0).fit(table)
    _, bias_gradient, gradient = loss_and_gradient(table, fitted.bias_, fitted.coupling_)
    np.fill_diagonal(gradient, 0.0)
    assert np.abs(bias_gradient).max() < 1e-6
    assert np.abs(gradient).max() < 1e-6
    assert fitted.lam_ == 0.0
