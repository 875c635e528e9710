"""The vectorised R-hat and ESS against arviz-stats, and the cases that it leaves open."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats

from edgewise.draws import convergence

SHAPES = [(4, 1000), (2, 7), (4, 4), (3, 5), (4, 101), (2, 250)]


def autoregressive(chains: int, draws: int, count: int = 25, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    memory = rng.uniform(-0.9, 0.98, (count, 1))
    noise = rng.standard_normal((count, chains, draws))
    values = noise.copy()
    for t in range(1, draws):
        values[:, :, t] = memory * values[:, :, t - 1] + noise[:, :, t]
    return values + 0.2 * rng.standard_normal((count, chains, 1))


def reference(function, values: np.ndarray, **options) -> np.ndarray:
    return np.array([function(one, chain_axis=0, draw_axis=1, **options) for one in values])


@pytest.mark.parametrize("shape", SHAPES)
def test_continuous_quantities_agree_with_arviz(shape):
    values = autoregressive(*shape)
    np.testing.assert_allclose(
        convergence.bulk_ess(values), reference(array_stats.ess, values, method="bulk"), rtol=1e-8
    )
    np.testing.assert_allclose(
        convergence.tail_ess(values),
        reference(array_stats.ess, values, method="tail", prob=(0.1, 0.9)),
        rtol=1e-8,
    )
    np.testing.assert_allclose(convergence.rank_r_hat(values), reference(array_stats.rhat, values), rtol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_with_ties_agree_with_arviz(shape):
    values = np.round(autoregressive(*shape, seed=1))
    np.testing.assert_allclose(
        convergence.bulk_ess(values), reference(array_stats.ess, values, method="bulk"), rtol=1e-8
    )


@pytest.mark.parametrize("shape", [(4, 1000), (4, 101), (2, 250)])
def test_indicators_need_no_ranking(shape):
    values = autoregressive(*shape, seed=2)
    level = np.quantile(values, np.random.default_rng(3).uniform(0.05, 0.95), axis=(1, 2))
    flags = (values > level[:, None, None]).astype(float)
    np.testing.assert_allclose(
        convergence.indicator_ess(flags), reference(array_stats.ess, flags, method="bulk"), rtol=1e-8
    )
    np.testing.assert_allclose(
        convergence.indicator_r_hat(flags), reference(array_stats.rhat, flags), rtol=1e-8
    )


def test_batches_do_not_change_the_numbers(monkeypatch):
    values = autoregressive(4, 60)
    whole = convergence.bulk_ess(values)
    monkeypatch.setattr(convergence, "_CELLS_AT_ONCE", 1000)
    np.testing.assert_array_equal(convergence.bulk_ess(values), whole)
    assert convergence.bulk_ess(values[:0]).shape == (0,)


def test_a_constant_has_r_hat_one_and_all_its_draws():
    constant = np.ones((1, 4, 50))
    assert convergence.indicator_r_hat(constant)[0] == 1
    assert convergence.indicator_ess(constant)[0] == 200


def test_chains_that_stand_still_apart_have_a_large_finite_r_hat():
    apart = np.zeros((1, 4, 500))
    apart[:, 2] = 1
    assert 10 < convergence.indicator_r_hat(apart)[0] < np.inf
    assert convergence.indicator_ess(apart)[0] < 10


def test_one_chain_is_compared_with_itself():
    drifting = np.linspace(0, 1, 400).reshape(1, 1, 400)
    still = np.random.default_rng(0).random((1, 1, 400))
    assert convergence.rank_r_hat(drifting)[0] > 1.5
    assert convergence.rank_r_hat(still)[0] < 1.05


@pytest.mark.parametrize("shape", [(60, 4, 500), (80, 1, 50), (80, 3, 101), (40, 2, 5), (40, 2, 4)])
def test_sparse_indicators_agree_with_dense_ones(shape):
    rng = np.random.default_rng(5)
    share, memory = rng.uniform(0, 0.15, (shape[0], 1)), rng.uniform(0, 0.9, (shape[0], 1))
    dense = np.zeros(shape)
    state = rng.random(shape[:2]) < share
    for t in range(shape[2]):
        state = np.where(rng.random(shape[:2]) < memory, state, rng.random(shape[:2]) < share)
        dense[:, :, t] = state
    dense[0] = 0
    dense[1] = 0
    dense[1, 0] = 1
    ones = np.nonzero(dense.reshape(shape[0], -1))
    np.testing.assert_allclose(
        convergence.sparse_indicator_r_hat(*ones, shape), convergence.indicator_r_hat(dense), rtol=1e-10
    )
    ess = convergence.sparse_indicator_ess(*ones, shape)
    known = ~np.isnan(ess)
    np.testing.assert_allclose(ess[known], convergence.indicator_ess(dense)[known], rtol=1e-10)
    assert known.mean() > 0.9


def test_sparse_indicators_with_long_memory_are_left_to_the_dense_way():
    dense = np.zeros((1, 2, 1000))
    dense[0, 0, 100:400] = 1
    ones = np.nonzero(dense.reshape(1, -1))
    assert np.isnan(convergence.sparse_indicator_ess(*ones, dense.shape))[0]
