"""Stopping statistics, the traffic light and the predictive checks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from arviz_stats.base import array_stats

from edgewise import SpikeSlabMRF, exact
from edgewise.data import read_data
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.model import MRF
from edgewise.posterior import Posterior, summaries
from edgewise.posterior.diagnostics import (
    EDGE_COUNT,
    INCLUSION_RATE,
    SLAB_SCALE,
    diagnose,
    predictive_check,
    stopping_statistics,
)
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import Prior
from helpers import fake_posterior, sparse_draws


def quantities(posterior: Posterior) -> dict[int, np.ndarray]:
    """What the stopping rule looks at, one (chains, draws) array each."""
    frequency = posterior.edge_values("frequency")
    found = {
        EDGE_COUNT: posterior.n_edges.astype(float),
        INCLUSION_RATE: posterior.inclusion_rate,
        SLAB_SCALE: posterior.slab_scale,
    }
    for k in np.flatnonzero((frequency >= 0.05) & (frequency <= 0.95)):
        found[int(k)] = (posterior.draws_of(posterior.features.clique(int(k))) != 0).astype(float)
    return found


@pytest.mark.parametrize(("seed", "order"), [(0, 2), (1, 2), (2, 3)])
def test_stopping_statistics_agree_with_arviz(seed, order):
    posterior = fake_posterior(7, 4, 250, seed=seed, order=order)
    seen = stopping_statistics(posterior.draws, posterior.n_cliques)
    ess = {k: array_stats.ess(values, method="bulk") for k, values in quantities(posterior).items()}
    r_hat = [array_stats.rhat(values) for values in quantities(posterior).values()]
    np.testing.assert_allclose(seen.min_bulk_ess, min(ess.values()), rtol=1e-8)
    np.testing.assert_allclose(seen.max_rhat, max(r_hat), rtol=1e-8)
    assert seen.slowest_index == min(ess, key=ess.__getitem__)
    assert seen.n_uncertain == len(ess) - 3 > 0
    furthest = dict(zip(quantities(posterior), r_hat))
    assert seen.furthest_index == max(furthest, key=furthest.__getitem__)


@pytest.mark.parametrize("persistence", [0.0, 0.9, 0.99])
def test_the_largest_error_is_the_largest_of_the_summary(persistence):
    posterior = fake_posterior(9, 4, 400, seed=3, persistence=persistence)
    seen = stopping_statistics(posterior.draws, posterior.n_cliques)
    errors = np.where(posterior._quality.varies, posterior._quality.mcse, 0.0)
    np.testing.assert_allclose(seen.max_error, errors.max(), rtol=1e-9)
    assert seen.widest_index == errors.argmax()


@pytest.mark.parametrize("flip", [False, True])
def test_an_edge_seen_in_one_visit_has_an_error_of_its_frequency(flip):
    active = np.zeros((4, 1000, 3), bool)
    active[1, 300:430, 0] = True  # 3 % of all draws, outside the uncertain range
    active[:, ::7, 1] = True
    active[..., 0] ^= flip
    chains = [sparse_draws(part.astype(float), np.zeros((1000, 3))) for part in active]
    seen = stopping_statistics(chains, 3)
    assert seen.widest_index == 0
    assert 0.9 < seen.max_error / 0.0325 < 1.2


def test_stopping_with_chains_of_different_length():
    posterior = fake_posterior(5, 2, 60)
    ragged = [posterior.draws[0], posterior.draws[1][:50]]
    equal = [chain[:50] for chain in posterior.draws]
    assert stopping_statistics(ragged, 10) == stopping_statistics(equal, 10)


@pytest.mark.parametrize("draws", [0, 1, 3])
def test_stopping_with_too_few_draws(draws):
    chains = [fake_posterior(5, 1, 4).draws[0][:draws]] * 2
    assert stopping_statistics(chains, 10)[:2] == (0.0, np.inf)
    assert stopping_statistics([], 10)[:2] == (0.0, np.inf)


def test_stopping_when_nothing_moves():
    chains = [sparse_draws(np.ones((10, 3)), np.zeros((10, 3)))] * 2
    assert stopping_statistics(chains, 3) == (20.0, 1.0, EDGE_COUNT, 0, 0.0, EDGE_COUNT, EDGE_COUNT)


def test_fixed_hyperparameters_do_not_count():
    posterior = fake_posterior(5, 2, 200, seed=1)
    fixed = [
        sparse_draws(posterior._table.dense(np.arange(10))[:, c].T, posterior.draws[c].biases)
        for c in range(2)
    ]
    seen = stopping_statistics(fixed, 10)
    assert np.isfinite(seen.max_rhat)
    assert seen.slowest_index >= EDGE_COUNT


def test_chains_that_disagree_stop_nothing():
    apart = np.zeros((50, 3))
    apart[:, 0] = 1
    chains = [sparse_draws(apart, np.zeros((50, 3))), sparse_draws(0 * apart, np.zeros((50, 3)))]
    seen = stopping_statistics(chains, 3)
    assert seen.max_rhat > 5
    assert seen.min_bulk_ess < 5


def test_green():
    found = diagnose(fake_posterior(5, 4, 3000, seed=0, persistence=0.0))
    assert (found.light, found.messages) == ("green", [])
    assert "enough" in found.meaning
    assert str(found).startswith("green: ")


def test_slow_chains_are_amber_or_red_with_a_remedy():
    posterior = fake_posterior(8, 4, 400, seed=0, persistence=0.98)
    found = diagnose(posterior)
    assert found.light == "red"
    assert 1 <= len(found.messages) <= 3
    assert any("R-hat reaches" in message for message in found.messages)
    effective = next(message for message in found.messages if "effective" in message)
    assert found.slowest in effective
    assert "extend(draws=" in effective
    assert f"{found.min_ess:,.0f}" in effective
    assert found.max_r_hat > 1.05
    assert found.n_uncertain > 0


def test_the_wanted_number_is_an_argument():
    posterior = fake_posterior(5, 4, 1500, seed=0, persistence=0.0)
    assert diagnose(posterior, target_ess=100).light == "green"
    found = diagnose(posterior, target_ess=100_000)
    assert found.light == "amber"
    assert "100,000 wanted" in found.messages[-1]


def test_never_flipping_edges_are_explained_not_warned_of():
    posterior = fake_posterior(5, 4, 3000, seed=0, persistence=0.0)
    found = diagnose(posterior)
    still = int((posterior.summary().flips == 0).sum())
    assert found.n_never_flip == still > 0
    assert f"{still} of 10 edges never flip" in found.notes[0]
    assert found.table.isna().to_numpy().sum() == 0


def test_lagging_particles_are_warned_of():
    posterior = fake_posterior(5, 4, 3000, seed=0, persistence=0.0)
    posterior._counters[2]["weight_ess"] = 0.1
    found = diagnose(posterior)
    assert found.light == "amber"
    assert "worth 10% " in found.messages[0]
    assert "more particles" in found.messages[0]


def test_a_chain_that_never_moves_is_red():
    counters = [{"birth_tries": 100.0, "birth_accepts": 0.0}]
    draws = [sparse_draws(np.ones((10, 3)), np.zeros((10, 3)))]
    made = {"features": Features.pairs(3), "names": ["a", "b", "c"], "counters": counters}
    found = diagnose(Posterior(draws, **made), target_ess=5)
    assert found.light == "red"
    assert "0 % of the proposals" in found.messages[0]
    forced = Prior(forced=[("a", "b"), ("a", "c"), ("b", "c")])
    seen = Statistics(9.0, np.full(3, 4.0), np.full(3, 2.0))
    assert diagnose(Posterior(draws, prior=forced, statistics=seen, **made), target_ess=5).light == "green"


def test_rates_and_notes():
    found = diagnose(fake_posterior(8, 1, 50, n_rows=0, info={"interrupted": True}))
    assert found.rates["weight_ess"] == 0.8
    assert 0 < found.rates["birth_acceptance"] < 1
    assert found.rates["resamplings_per_iteration"] == 3 / 250
    text = " ".join(found.notes)
    for words in ("one chain", "interrupted"):
        assert words in text
    assert "There are no data: what is said about edges is the prior" in " ".join(found.messages)


@pytest.mark.parametrize(
    ("rows", "singles", "words"),
    [
        (0, [0, 0, 0], "There are no data"),
        (1, [1, 0, 1], "The data are worth one row at most"),
        (50, [50, 0, 50], "No variable varies in the data"),
        (50, [50, 20, 50], "Only one variable varies in the data"),
    ],
)
def test_data_that_say_nothing_are_never_green(rows, singles, words):
    rng = np.random.default_rng(0)
    draws = [
        sparse_draws(rng.normal(size=(500, 3)) * (rng.random((500, 3)) < 0.5), np.zeros((500, 3)))
        for _ in range(4)
    ]

    def judge(*numbers):
        made = Posterior(draws, Features.pairs(3), "abc", statistics=Statistics(*numbers))
        return diagnose(made, target_ess=100)

    assert judge(50.0, np.full(3, 20.0), np.full(3, 9.0)).light == "green"
    found = judge(float(rows), np.array(singles, float), np.zeros(3))
    assert found.light == "amber"
    assert not found.more_draws_help
    assert found.messages == [
        f"{words}: what is said about edges is the prior, not evidence; give more rows that differ."
    ]


def test_acceptance_probabilities_that_are_no_numbers_give_way_to_shares_of_the_draws():
    whole = fake_posterior(4, 4, 500, seed=3)
    sums = {name: values.copy() for name, values in whole._edge_sums.items()}
    sums["inclusion"][1, 2] = np.nan
    made = (whole.draws, whole.features, whole.names)
    known = {"statistics": whole.statistics, "counters": whole._counters}
    broken = Posterior(*made, edge_sums=EdgeSums(sums, whole._edge_sums.axes), **known)
    assert not np.isnan(broken.edge_values("inclusion")).any()
    assert not np.isnan(broken.edge_values("log10_bf")).any()
    share = broken.edge_values("inclusion")[2] - whole.edge_values("inclusion")[2]
    frequency = (whole.draws_of(whole.features.clique(2))[1] != 0).mean()
    told = whole._edge_sums["inclusion"][1, 2] / whole._edge_sums["tries"][1, 2]
    np.testing.assert_allclose(4 * share, frequency - told, atol=1e-12)
    found = diagnose(broken, target_ess=10)
    assert found.light == "amber"
    assert "lost the acceptance probabilities of 1 edge (x0 -- x3)" in " ".join(found.messages)


def test_draws_that_are_no_numbers_are_red():
    draws = [sparse_draws(np.ones((50, 3)), np.zeros((50, 3))) for _ in range(2)]
    draws[1].biases[7, 0] = np.nan
    seen = Statistics(9.0, np.full(3, 4.0), np.full(3, 2.0))
    found = diagnose(Posterior(draws, Features.pairs(3), "abc", statistics=seen), target_ess=5)
    assert found.light == "red"
    assert "1 chain of 2 drew parameters that are not finite (the first is chain 1)" in found.messages[0]


def test_a_single_draw_is_red_and_says_why():
    found = diagnose(fake_posterior(5, 2, 1, rao_blackwell=False))
    assert found.light == "red"
    assert "1 draw each" in found.messages[0]


def test_table_rows():
    posterior = fake_posterior(6, 4, 200, seed=1)
    table = diagnose(posterior).table
    assert table.quantity[:3].tolist() == ["number of edges", "p0", "sigma0"]
    np.testing.assert_allclose(table.ess_bulk[1], array_stats.ess(posterior.inclusion_rate, method="bulk"))
    np.testing.assert_allclose(table.mcse[2], array_stats.mcse(posterior.slab_scale, method="mean"), rtol=0.1)
    assert len(table) == 3 + posterior._quality.varies.sum()
    ups, downs = summaries.transitions(posterior._table)
    assert table.flips_up.sum() == ups.sum()
    assert table.flips_down.sum() == downs.sum()
    assert table.ess_bulk[3:].is_monotonic_increasing


def known_model(seed: int = 0) -> MRF:
    rng = np.random.default_rng(seed)
    return MRF(rng.normal(0, 0.5, 6), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], [1.5, -1.5, 2.0, 1.0, -2.0])


def around(model: MRF, n_draws: int = 200) -> Posterior:
    """A posterior that is sure of one model."""
    features = Features.pairs(6)
    coupling = np.zeros((n_draws, features.n_cliques))
    coupling[:, [features.index(clique) for clique in model.cliques]] = model.weights
    draws = [sparse_draws(coupling, np.tile(model.biases, (n_draws, 1)))]
    return Posterior(draws, features, [f"x{i}" for i in range(6)])


def test_predictive_check_of_the_right_model():
    model = known_model()
    inside, z = [], []
    for seed in range(5):
        rows = exact.sample(model, 800, np.random.default_rng(seed))
        check = predictive_check(around(model), rows, n_models=100, seed=seed)
        for part in check.parts().values():
            inside.append(part.inside)
            z.append(np.abs(part.z).max())
    assert np.mean(inside) > 0.88
    assert max(z) < 5
    assert check.method == "exact"
    assert check.triples.members.shape == (20, 3)


def test_predictive_check_of_a_wrong_model_fails():
    model = known_model()
    rows = exact.sample(model, 800, np.random.default_rng(1))
    independent = MRF(np.log(rows.mean(axis=0) / (1 - rows.mean(axis=0))), [], [])
    check = predictive_check(around(independent), rows, n_models=100)
    assert check.means.inside > 0.8
    assert check.pairs.inside < 0.75
    label, z = check.worst("pairs")
    assert label in ("x0 -- x1", "x1 -- x2", "x2 -- x3", "x3 -- x4", "x4 -- x5")
    assert abs(z) > 5
    assert "farthest" in str(check)


def test_the_parts_of_a_check_are_frequencies_of_the_data():
    rows = np.random.default_rng(0).integers(0, 2, (50, 6))
    check = predictive_check(around(known_model()), rows, n_models=5)
    np.testing.assert_allclose(check.means.observed, rows.mean(axis=0))
    i, j = check.pairs.members[7]
    np.testing.assert_allclose(check.pairs.observed[7], (rows[:, i] * rows[:, j]).mean())
    members = check.triples.members[11]
    np.testing.assert_allclose(check.triples.observed[11], rows[:, members].all(axis=1).mean())
    np.testing.assert_allclose(check.ones.observed, np.bincount(rows.sum(axis=1), minlength=7) / 50)
    for part in check.parts().values():
        assert len(part.members) == len(part.observed) == len(part.low)
        assert (part.low <= part.mean + 1e-12).all()
    assert check.label("ones", 3) == "3 ones"


def test_weights_count_as_rows():
    rows = np.random.default_rng(0).integers(0, 2, (50, 6))
    weights = np.random.default_rng(1).integers(1, 4, 50)
    posterior = around(known_model())
    weighted = read_data(rows, sample_weight=weights)
    check = predictive_check(posterior, weighted, n_models=5)
    repeated = predictive_check(posterior, np.repeat(rows, weights, axis=0), n_models=5)
    assert check.n_rows == repeated.n_rows == weights.sum()
    for kind, part in check.parts().items():
        np.testing.assert_allclose(part.observed, repeated.parts()[kind].observed)
        np.testing.assert_array_equal(part.low, repeated.parts()[kind].low)


def test_gibbs_where_exact_sampling_is_too_wide(monkeypatch):
    model = known_model()
    rows = exact.sample(model, 400, np.random.default_rng(0))
    monkeypatch.setattr("edgewise.posterior.predictive._WIDEST_EXACT", 0)
    check = predictive_check(around(model), rows, n_models=30, sweeps=50)
    assert check.method == "gibbs"
    assert np.abs(check.pairs.z).max() < 5


def test_many_triples_are_sampled():
    posterior = fake_posterior(30, 2, 20)
    rows = np.random.default_rng(0).integers(0, 2, (40, 30))
    check = predictive_check(posterior, rows, n_models=3, n_triples=50, sweeps=5, max_rows=10)
    assert check.triples.members.shape == (50, 3)
    assert check.n_rows == 10


def test_data_that_do_not_fit_are_refused():
    posterior = around(known_model())
    rows = np.random.default_rng(0).integers(0, 2, (50, 6))
    with pytest.raises(DataError, match="not in the posterior"):
        predictive_check(posterior, read_data(rows, names=list("abcdef")))
    with pytest.raises(DataError, match="no rows"):
        predictive_check(posterior, rows[:0])
    with pytest.raises(DataError, match="between 0 and 1"):
        predictive_check(posterior, rows, probability=95)


@pytest.mark.parametrize(("engine", "better"), [("particle", "exact"), ("exact", ""), ("langevin", "exact")])
def test_chains_in_different_graphs_are_told_what_helps(engine, better):
    rng = np.random.default_rng(1)
    chains = []
    for number in range(4):
        active = rng.random((400, 3)) < np.array([0.97 if number % 2 else 0.04, 0.5, 0.5])
        chains.append(sparse_draws(active * 1.0, rng.normal(size=(400, 3))))
    rows = Statistics(10.0, np.full(3, 5.0), np.full(3, 2.0))
    made = {"features": Features.pairs(3), "names": "abc", "statistics": rows, "info": {"engine": engine}}
    found = diagnose(Posterior(chains, **made))
    message = found.messages[0]
    assert found.light == "red"
    assert "most for a -- b" in message
    assert re.search(r"which is in \d% to 9\d% of the draws of a chain", message)
    assert "start more chains" not in message
    assert "more chains would only find more of them" in message
    assert "extend(draws=" in message
    assert (f"engine='{better}'" in message) == bool(better)


def test_chains_that_nearly_agree_are_told_how_long_to_go_on():
    posterior = fake_posterior(8, 4, 400, seed=0, persistence=0.9)
    found = diagnose(posterior)
    assert 1.01 <= found.max_r_hat < 1.2
    assert "Continue with extend(draws=" in found.messages[0]
    assert "more chains" not in found.messages[0]


@pytest.mark.parametrize("engine", ["exact", "particle"])
def test_edges_that_the_data_make_certain_are_green(engine):
    """No edge is ever added or removed, and rightly so."""
    rng = np.random.default_rng(1)
    hidden = rng.random(800) < 0.5
    rows = np.stack([hidden ^ (rng.random(800) < 0.05) for _ in range(3)], axis=1)
    fit = SpikeSlabMRF(engine=engine, random_state=1, progress=False, max_draws=1000).fit(rows)
    assert diagnose(fit.posterior_).light == "green"
