"""The posterior against plain computations on dense draws."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats

from edgewise import MRF, exact
from edgewise.data import read_data
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.features import Features
from edgewise.posterior import Posterior, structure, summaries
from edgewise.priors import BetaInclusion, FixedInclusion, Prior
from helpers import fake_posterior, sparse_draws

COLUMNS = [
    *("edge", "variable_1", "variable_2", "inclusion", "mcse", "log10_bf", "bf_bound", "evidence"),
    *("mean", "sd", "median", "hdi_low", "hdi_high", "mean_if_included", "sd_if_included"),
    *("r_hat", "ess_bulk", "flips", "note"),
]


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return fake_posterior(7, 4, 301, seed=3, rao_blackwell=False)


@pytest.fixture(scope="module")
def dense(posterior) -> np.ndarray:
    """Parameters as one array (M, chains, draws), made draw by draw."""
    values = np.zeros((posterior.n_cliques, posterior.n_chains, posterior.n_draws))
    for c, chain in enumerate(posterior.draws):
        for t in range(len(chain)):
            indices, found = chain.active(t)
            values[indices, c, t] = found
    return values


def hand_made(coupling, prior=None, **other) -> Posterior:
    """A posterior over three variables from nested lists (chains, draws, 3)."""
    coupling = np.asarray(coupling, float)
    draws = [sparse_draws(chain, np.zeros((len(chain), 3))) for chain in coupling]
    return Posterior(draws, Features.pairs(3), ["a", "b", "c"], prior=prior, **other)


def test_dense_draws(posterior, dense):
    np.testing.assert_array_equal(posterior._table.dense(np.arange(posterior.n_cliques)), dense)
    np.testing.assert_array_equal(
        posterior._table.dense(np.arange(posterior.n_cliques), indicator=True), dense != 0
    )
    np.testing.assert_array_equal(posterior.draws_of(("x4", "x1")), dense[posterior.features.index((1, 4))])
    np.testing.assert_array_equal(posterior.draws_of((1, 4), coding="ising"), posterior.draws_of((4, 1)) / 4)


def test_frequency_and_transitions(posterior, dense):
    active = dense != 0
    np.testing.assert_allclose(posterior.edge_values("inclusion"), active.mean(axis=(1, 2)))
    np.testing.assert_allclose(summaries.chain_frequency(posterior._table), active.mean(axis=2).T)
    steps = np.diff(active.astype(int), axis=2)
    ups, downs = summaries.transitions(posterior._table)
    np.testing.assert_array_equal(ups, (steps == 1).sum(axis=(1, 2)))
    np.testing.assert_array_equal(downs, (steps == -1).sum(axis=(1, 2)))
    np.testing.assert_array_equal(posterior.edge_values("flips"), ups + downs)
    assert ups.sum() > 50


def test_moments_and_intervals(posterior, dense):
    flat = dense.reshape(len(dense), -1)
    np.testing.assert_allclose(posterior.edge_values("mean"), flat.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(posterior.edge_values("sd"), flat.std(axis=1, ddof=1), atol=1e-14)
    np.testing.assert_allclose(posterior.edge_values("median"), np.median(flat, axis=1), atol=1e-14)
    for probability in (0.5, 0.8, 0.95):
        low = posterior.edge_values("hdi_low", probability=probability)
        high = posterior.edge_values("hdi_high", probability=probability)
        needed = int(np.ceil(probability * flat.shape[1]))
        for row, (a, b) in zip(np.sort(flat, axis=1), zip(low, high)):
            assert ((row >= a) & (row <= b)).sum() >= needed
            assert b - a <= min(row[needed - 1 + k] - row[k] for k in range(len(row) - needed + 1)) + 1e-12


def test_given_inclusion(posterior, dense):
    statistics = ("mean", "sd", "median", "hdi_low", "hdi_high")
    found = {name: posterior.edge_values(f"{name}_if_included") for name in statistics}
    for k, values in enumerate(dense.reshape(len(dense), -1)):
        values = np.sort(values[values != 0])
        if len(values) < 2:
            assert np.isnan(found["sd"][k])
            continue
        np.testing.assert_allclose(found["mean"][k], values.mean())
        np.testing.assert_allclose(found["sd"][k], values.std(ddof=1))
        np.testing.assert_allclose(found["median"][k], np.median(values))
        assert values[0] <= found["hdi_low"][k] <= found["hdi_high"][k] <= values[-1]


def test_the_interval_is_as_long_as_that_of_arviz():
    values = np.random.default_rng(0).gamma(2, size=(20, 4000))
    low, high = summaries.shortest_interval(np.sort(values, axis=1), 0.9)
    expected = array_stats.hdi(values, prob=0.9, axis=1, method="nearest")
    # ArviZ takes one draw more into the interval, which may move it a little.
    np.testing.assert_allclose(high - low, np.diff(expected, axis=1)[:, 0], atol=0.01)


def test_summary_agrees_with_arviz(posterior, dense):
    table = posterior.summary()
    assert list(table.columns) == COLUMNS
    assert len(table) == posterior.n_cliques
    checked = 0
    for k in np.flatnonzero(posterior._quality.varies):
        active = (dense[k] != 0).astype(float)
        np.testing.assert_allclose(table.ess_bulk[k], array_stats.ess(active, method="bulk"), rtol=1e-8)
        np.testing.assert_allclose(table.r_hat[k], array_stats.rhat(active), rtol=1e-8)
        np.testing.assert_allclose(table.mcse[k], array_stats.mcse(active, method="mean"), rtol=1e-8)
        checked += 1
    assert checked > 3
    assert table.edge[0] == "x0 -- x1"
    assert (table.variable_2[0], table.variable_1[6]) == ("x1", "x1")


def test_an_indicator_that_never_flips_is_explained(posterior):
    table = posterior.summary()
    still = table[table.flips == 0]
    assert len(still) > 3
    assert still.note.str.contains("no flips").all()
    quality = ["inclusion", "mcse", "log10_bf", "r_hat", "ess_bulk"]
    assert np.isfinite(table[quality].to_numpy(float)).all()
    assert (still.mcse > 0).all()
    assert still.bf_bound.isin(["<", ">"]).all()


def test_the_bound_comes_from_the_effective_number_of_draws(posterior):
    typical = np.median(posterior._quality.ess[posterior._quality.varies])
    slowest = min(typical, posterior._seen.min_bulk_ess)
    table = posterior.summary()
    still = table[(table.flips == 0) & (table.bf_bound != "prior")]
    np.testing.assert_allclose(still.log10_bf.abs(), np.log10(slowest))
    assert (table.log10_bf.abs() <= np.log10(slowest) + 1e-9).all()


def test_chains_that_have_not_settled_give_no_overwhelming_factors():
    sums = [{"tries": np.full(3, 1e4), "inclusion": np.array([1e4 - 1e-6, 1e-6, 5e3])} for _ in range(2)]
    rng = np.random.default_rng(0)
    middle = rng.random((2, 600)) < 0.5
    coupling = np.stack([np.ones((2, 600)), np.zeros((2, 600)), middle], axis=2)
    good = hand_made(coupling, edge_sums=sums)
    assert good._settled
    assert good.edge_values("log10_bf")[0] > 9
    assert list(good.edge_values("bf_bound")) == ["", "", ""]
    slow = np.repeat(middle[:, :6], 100, axis=1)
    poor = hand_made(np.stack([coupling[..., 0], coupling[..., 1], slow], axis=2), edge_sums=sums)
    assert not poor._settled
    assert list(poor.edge_values("bf_bound"))[:2] == [">", "<"]
    assert np.abs(poor.edge_values("log10_bf")).max() < np.log10(60)
    assert "strong presence" in good.edge_values("evidence")


def test_a_bound_beyond_one_is_no_evidence_for_the_other_side():
    # One draw and a small prior: that an edge was never seen does not speak for it.
    prior = Prior(inclusion=FixedInclusion(0.01))
    posterior = hand_made(np.zeros((1, 1, 3)), prior)
    assert (posterior.edge_values("bf_bound") == "<").all()
    assert (posterior.edge_values("evidence") == "inconclusive").all()


def test_rao_blackwell_uses_the_tries_of_each_chain_and_the_draws_without_them():
    coupling = [[[1, 0, 0]] * 4, [[0, 0, 1]] * 4]
    sums = [
        {"tries": np.array([10.0, 0, 2]), "inclusion": np.array([7.0, 0, 0.5])},
        {"tries": np.array([1000.0, 0, 0]), "inclusion": np.array([200.0, 0, 0])},
    ]
    posterior = hand_made(coupling, edge_sums=sums)
    np.testing.assert_allclose(posterior.edge_values("inclusion"), [(0.7 + 0.2) / 2, 0, (0.25 + 1) / 2])
    np.testing.assert_allclose(posterior.inclusion[0, 1], 0.45)
    np.testing.assert_allclose(posterior.inclusion, posterior.inclusion.T)
    assert posterior.summary().inclusion[0] == posterior.edge_values("inclusion")[0]
    assert set(posterior.graph(0.46).edges) == {("b", "c")}


def test_a_rao_blackwellised_factor_is_no_bound():
    sums = [{"tries": np.full(3, 100.0), "inclusion": np.array([1e-4, 0, 100 - 1e-3])}]
    posterior = hand_made([[[0, 0, 1]] * 500], edge_sums=sums)
    assert list(posterior.edge_values("bf_bound")) == ["", "<", ""]
    np.testing.assert_allclose(posterior.edge_values("log10_bf")[[0, 2]], [-6, 5], atol=1e-3)


def test_bayes_factors_divide_by_the_prior_odds():
    coupling = np.zeros((1, 8, 3))
    coupling[0, :2, 0] = 1
    for prior, odds in (
        (Prior(), 1.0),
        (Prior(inclusion=BetaInclusion(1, 4)), 0.25),
        (Prior(inclusion=FixedInclusion(0.2)), 0.25),
        (Prior(edge_probability={("a", "b"): 0.75}), 3.0),
    ):
        factor = hand_made(coupling, prior).edge_values("log10_bf")[0]
        np.testing.assert_allclose(factor, np.log10((2 / 6) / odds))


def test_the_prior_decides_forced_and_forbidden_edges():
    prior = Prior(forced=[("a", "b")], forbidden=[("b", "c")])
    table = hand_made([[[1, 0, 0]] * 8], prior).summary()
    assert list(table.bf_bound) == ["prior", "<", "prior"]
    assert list(table.evidence)[::2] == ["inconclusive"] * 2
    assert list(table.log10_bf)[::2] == [0, 0]
    assert list(table.note)[::2] == ["forced by the prior", "forbidden by the prior"]


def test_evidence_categories():
    factors = np.log10([1 / 100, 1 / 10, 1 / 9, 1 / 3, 1 / 2.9, 1, 2.9, 3, 9, 10, 1000])
    short = {
        "strong absence": "A",
        "absence": "a",
        "inconclusive": "-",
        "presence": "p",
        "strong presence": "P",
    }
    words = [short[word] for word in summaries.evidence_category(factors)]
    assert "".join(words) == "AAaa---ppPP"
    other = summaries.evidence_category(factors, (2, 100))
    assert "".join(short[word] for word in other) == "Aaaaa-ppppP"


def test_thresholds_are_checked(posterior):
    with pytest.raises(DataError, match="thresholds"):
        posterior.summary(thresholds=(10, 3))


def test_ising_coding(posterior, dense):
    np.testing.assert_allclose(posterior.coupling(coding="ising"), posterior.coupling() / 4)
    table, binary = posterior.summary(coding="ising"), posterior.summary()
    for column in ("mean", "sd", "median", "hdi_low", "hdi_high", "mean_if_included", "sd_if_included"):
        np.testing.assert_allclose(table[column], binary[column] / 4)
    np.testing.assert_array_equal(table.inclusion, binary.inclusion)
    for position in (0, 777):
        chain, draw = divmod(position, posterior.n_draws)
        j, h = posterior.model(position).to_ising()
        np.testing.assert_allclose(posterior.biases("ising")[chain, draw], h)
        np.testing.assert_allclose(j[1, 4] * 4, dense[posterior.features.index((1, 4)), chain, draw])


def test_ising_coding_is_refused_for_larger_cliques():
    posterior = fake_posterior(5, 2, 20, order=3)
    with pytest.raises(DataError, match="pairs only"):
        posterior.summary(coding="ising")
    with pytest.raises(DataError, match="coding"):
        posterior.biases("spins")


def test_coupling_matrix(posterior):
    matrix = posterior.coupling("median")
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.diag(matrix).tolist() == [0] * 7
    with pytest.raises(DataError, match="no statistic"):
        posterior.coupling("mode")
    with pytest.raises(DataError, match="between 0 and 1"):
        posterior.coupling("hdi_low", probability=95)


def test_median_model(posterior):
    model = posterior.median_model
    assert model.names == posterior.names
    kept = np.flatnonzero(posterior.edge_values("inclusion") >= 0.5)
    assert model.cliques == tuple(posterior.features.clique(int(k)) for k in kept)
    np.testing.assert_allclose(model.weights, posterior.edge_values("mean_if_included")[kept], atol=1e-14)
    np.testing.assert_allclose(model.biases, posterior.biases().mean(axis=(0, 1)))


def test_mixture(posterior):
    models = posterior.mixture(20, seed=1)
    assert len(models) == 20
    assert models == posterior.mixture(20, seed=1)
    assert models != posterior.mixture(20, seed=2)
    assert len(hand_made([[[1, 0, 0]] * 3]).mixture(100)) == 3


def test_number_of_edges(posterior, dense):
    np.testing.assert_array_equal(posterior.n_edges, (dense != 0).sum(axis=0))


def test_reweighting_draws_of_the_prior_gives_the_other_prior():
    """Without data the posterior is the prior, so the answer is known: p0 itself."""
    rng = np.random.default_rng(4)
    a, b, p, count = 2.0, 3.0, 6, 20_000
    features = Features.pairs(p)
    rate = rng.beta(a, b, count)
    active = rng.random((count, features.n_cliques)) < rate[:, None]
    draws = [sparse_draws(active[:10_000] * 1.0, np.zeros((10_000, p)), rate[:10_000])]
    draws.append(sparse_draws(active[10_000:] * 1.0, np.zeros((10_000, p)), rate[10_000:]))
    names = [f"x{i}" for i in range(p)]
    posterior = Posterior(draws, features, names, prior=Prior(inclusion=BetaInclusion(a, b)))
    result = posterior.reweighted_inclusion(0.3)
    error = np.sqrt(0.3 * 0.7 / result.effective_draws)
    assert np.abs((result.edge_inclusion - 0.3) / error).max() < 4
    assert np.abs((posterior.edge_values("inclusion") - 0.3) / error).min() > 4
    assert 1000 < result.effective_draws < count
    np.testing.assert_allclose(result.inclusion[0, 1], result.edge_inclusion[0])

    fixed = Posterior(draws, features, names, prior=Prior(inclusion=FixedInclusion(0.3)))
    same = fixed.reweighted_inclusion(0.3)
    np.testing.assert_allclose(same.edge_inclusion, fixed.edge_values("frequency"))
    np.testing.assert_allclose(same.effective_draws, count)


def test_reweighting_too_far_warns(posterior):
    with pytest.warns(EdgewiseWarning, match=r"FixedInclusion\(0.99\)"):
        posterior.reweighted_inclusion(0.99)
    with pytest.raises(DataError, match="strictly between"):
        posterior.reweighted_inclusion(1)


def test_disagreeing_chains_are_named():
    table = hand_made([[[1, 0, 0]] * 50, [[0, 0, 0]] * 50]).summary()
    assert "active in 1 of 2 chains" in table.note[0]
    assert table.r_hat[0] > 5
    assert table.inclusion[0] == 0.5
    assert table.ess_bulk[0] < 5


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(("chains", "draws"), [(1, 1), (2, 1), (1, 3), (2, 5)])
def test_few_draws_work(chains, draws, order):
    posterior = fake_posterior(4, chains, draws, order=order, n_rows=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = posterior.summary()
        assert np.isfinite(table[["inclusion", "mcse", "log10_bf", "mean", "sd"]].to_numpy(float)).all()
        assert len(posterior.bias_summary()) == 4
        assert posterior.graph().number_of_nodes() == 4
        assert posterior.median_model.n_variables == 4
        assert posterior.n_edges.mean() > 0
        assert len(posterior.centrality()) == 4
        assert posterior.probability(lambda graph: True) == 1


def test_an_empty_graph_in_all_draws():
    posterior = hand_made(np.zeros((2, 10, 3)))
    table = posterior.summary()
    assert (table.inclusion == 0).all()
    assert table.note.str.startswith("never active in 20 draws").all()
    np.testing.assert_allclose(table.log10_bf, -np.log10(20))
    assert posterior.median_model.cliques == ()
    assert posterior.graph().number_of_edges() == 0
    assert posterior.centrality("eigenvector")["mean"].tolist() == [0, 0, 0]


def test_effective_draws_without_flips_come_from_what_moves():
    rng = np.random.default_rng(0)
    slow = np.cumsum(rng.standard_normal(400)) + 50
    draws = [sparse_draws(np.zeros((400, 3)), np.zeros((400, 3)), slab_scale=slow)]
    posterior = Posterior(draws, Features.pairs(3), ["a", "b", "c"])
    assert posterior._quality.typical < 50


def test_labels_of_larger_cliques():
    posterior = fake_posterior(4, 1, 5, order=3, names=["a", "b", "c", "d"])
    assert posterior.candidates.tolist() == [
        posterior.features.label(k, posterior.names) for k in range(posterior.n_cliques)
    ]
    table = posterior.summary()
    assert table.variables.iloc[-1] == ("b", "c", "d")
    assert "variable_1" not in table


def test_wrong_arguments_of_the_constructor():
    good = hand_made([[[1, 0, 0]] * 2])
    with pytest.raises(DataError, match="names"):
        Posterior(good.draws, good.features, ["a", "b"])
    with pytest.raises(DataError, match="at least one draw"):
        Posterior([good.draws[0][:0]], good.features, good.names)
    with pytest.raises(DataError, match="2, 1 draws"):
        Posterior([good.draws[0], good.draws[0][:1]], good.features, good.names)
    with pytest.raises(DataError, match="edge_sums"):
        Posterior(good.draws, good.features, good.names, edge_sums=[{}, {}])


def test_datatree(posterior):
    tree = posterior.to_datatree([("x0", "x1"), (4, 1)])
    theta = tree["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "edge")
    assert theta.coords["edge"].values.tolist() == ["x0 -- x1", "x1 -- x4"]
    np.testing.assert_array_equal(theta.sel(edge="x1 -- x4").values, posterior.draws_of((1, 4)))
    np.testing.assert_array_equal(tree["posterior"]["inclusion_rate"].values, posterior.inclusion_rate)
    assert {"slab_scale", "n_edges", "indicator"} <= set(tree["posterior"].data_vars)
    assert tree["posterior"]["bias"].dims == ("chain", "draw", "variable")
    assert posterior.to_datatree()["posterior"].sizes["edge"] == 21


def test_datatree_with_data_serves_loo_and_predictive_checks():
    from arviz_stats import loo

    rng = np.random.default_rng(0)
    truth = MRF([-0.5, 0.2, 0.3, -0.2], [(0, 1), (1, 2)], [1.5, -1.2], list("abcd"))
    rows = exact.sample(truth, 120, rng)
    posterior = fake_posterior(4, draws=500, persistence=0.0, names=list("abcd"))
    tree = posterior.to_datatree(data=rows, log_likelihood=True, posterior_predictive=True, max_draws=400)
    assert set(tree.children) == {"posterior", "observed_data", "log_likelihood", "posterior_predictive"}
    np.testing.assert_array_equal(tree["observed_data"]["x"].values, rows)
    values = tree["log_likelihood"]["x"]
    assert values.dims == ("chain", "draw", "row")
    assert values.shape == (4, 100, 120)
    # The same draws in every group, and what brute force says of them.
    kept = structure.thinned(4, 500, 400)
    for chain, draw in ((0, 0), (1, 37), (3, 99)):
        position = int(kept[chain, draw])
        model = posterior.model(position)
        states = exact.states(4)
        potential = model.log_potential(states)
        number = rows @ (1 << np.arange(4))
        expected = (potential - np.logaddexp.reduce(potential))[number]
        np.testing.assert_allclose(values.values[chain, draw], expected, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(tree["posterior"]["bias"].values[chain, draw], model.biases)
    found = loo(tree)
    # The leave-one-out score lies below the score of the same rows, by about the number of parameters.
    mixture = np.log(np.exp(values.values.reshape(-1, 120)).mean(0)).sum()
    assert found.elpd < mixture
    assert np.isfinite(found.elpd)
    assert found.n_data_points == 120
    made = tree["posterior_predictive"]["x"]
    assert made.dims == ("chain", "draw", "row", "variable")
    expected = np.mean([exact.marginals(posterior.model(int(k))) for k in kept.ravel()], axis=0)
    error = made.values.mean(axis=2).reshape(-1, 4).std(axis=0) / 20
    assert (np.abs(made.values.mean(axis=(0, 1, 2)) - expected) < 5 * error).all()


def test_datatree_with_data_lists_counted_rows_and_refuses_what_it_cannot_sum(monkeypatch):
    posterior = fake_posterior(4, draws=50)
    counted = read_data([[0, 0, 1, 1], [1, 1, 0, 0]], sample_weight=[3, 2])
    rows = posterior.to_datatree(data=counted)["observed_data"]["x"].values
    np.testing.assert_array_equal(rows.sum(axis=0), [2, 2, 3, 3])
    parts = read_data([[0, 0, 1, 1], [1, 1, 0, 0]], sample_weight=[0.5, 2])
    with pytest.raises(DataError, match="no whole numbers"):
        posterior.to_datatree(data=parts)
    with pytest.raises(DataError, match="give them with data="):
        posterior.to_datatree(log_likelihood=True)
    monkeypatch.setattr("edgewise.posterior.trees.MOST_STATES", 1)
    with pytest.raises(DataError, match="score_samples"):
        posterior.to_datatree(data=rows, log_likelihood=True)
    # A control: the data alone need no Z.
    assert "observed_data" in posterior.to_datatree(data=rows).children
    monkeypatch.setattr("edgewise.posterior.trees.CELLS", 2000)
    with pytest.raises(DataError, match="lower max_draws or give fewer rows"):
        posterior.to_datatree([(0, 1)], data=np.repeat(rows, 30, axis=0), log_likelihood=True)


def test_a_large_datatree_is_refused(posterior, monkeypatch):
    monkeypatch.setattr("edgewise.posterior.trees.CELLS", 1000)
    with pytest.raises(DataError, match="choose edges"):
        posterior.to_datatree()


def test_repr(posterior):
    assert repr(posterior).startswith("Posterior(7 variables, 21 candidates, 4 chains x 301 draws")


def test_heavy_packages_wait_until_they_are_needed():
    code = (
        "import sys, edgewise.posterior, edgewise.posterior.diagnostics, edgewise.posterior.storage\n"
        "heavy = {'numba', 'pandas', 'xarray', 'arviz_stats', 'networkx', 'scipy', 'h5netcdf'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_notebook_sees_the_light_first_and_names_as_text():
    names = ["<b>a</b>", "b", "c", "d"]
    page = fake_posterior(4, draws=60, persistence=0.99, names=names)._repr_html_()
    assert page.startswith("<p><strong>Red: ")
    assert "<b>a</b>" not in page
    assert "included with strong evidence" not in page
    green = fake_posterior(4, draws=1500, persistence=0.0)._repr_html_()
    assert green.startswith("<p><strong>Green: ")
    assert "The data decide" in green
