"""Structure scores against hand-made answers and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from edgewise import MRF, NodewiseLasso, PseudoLikelihoodLasso, evaluate, exact
from edgewise.datasets import lattice_model
from edgewise.errors import DataError
from edgewise.predict import conditional_log_likelihood, grid_windows, random_windows


def matrix(pairs, p):
    result = np.zeros((p, p))
    result[np.triu_indices(p, 1)] = pairs
    return result + result.T


@pytest.fixture
def truth():
    return MRF([0.1, 0, 0, 0], [(0, 1), (1, 2), (2, 3)], [1.0, -2.0, 0.5])


@pytest.fixture(scope="module")
def lattice():
    model = lattice_model(0, rows=3, columns=4)
    return model, exact.sample(model, 300, np.random.default_rng(0))


class Posterior:
    """What edgewise.evaluate asks of a posterior."""

    def __init__(self, inclusion, coupling):
        self.inclusion = inclusion
        self._coupling = coupling
        self.n_edges, self.n_cliques = np.array([[3, 4, 5]]), 10
        self.median_model = MRF.from_coupling(np.zeros(len(coupling)), coupling * (inclusion >= 0.5))

    def coupling(self):
        return self._coupling

    def mixture(self, n=100, seed=0):
        return [self.median_model]


def test_all_scores_by_hand(truth):
    #                          01   02   03   12   13   23
    inclusion = matrix(np.array([0.9, 0.6, 0.0, 1.0, 0.2, 0.4]), 4)
    coupling = matrix(np.array([1.2, 0.3, 0.0, -2.0, 0.0, 0.1]), 4)
    scores = evaluate.edge_scores(truth, Posterior(inclusion, coupling))
    assert scores["selected"] == 3
    assert scores["precision"] == pytest.approx(2 / 3)
    assert scores["recall"] == pytest.approx(2 / 3)
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["hamming"] == 2
    assert scores["density"] == 0.4
    assert scores["brier"] == pytest.approx((0.01 + 0.36 + 0 + 0 + 0.04 + 0.36) / 6)
    assert scores["coupling_rmse"] == pytest.approx(np.sqrt((0.04 + 0.09 + 0.16) / 6))
    assert scores["ising_rmse"] == pytest.approx(scores["coupling_rmse"] / 4)
    assert scores["roc_auc"] == pytest.approx(8 / 9)
    assert scores["average_precision"] == pytest.approx((1 + 1 + 3 / 4) / 3)


@pytest.mark.parametrize("seed", range(5))
def test_ranking_scores_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    true = rng.random(190) < 0.2
    scores = np.round(rng.random(190) + 0.4 * true, 1)
    graph, estimate = matrix(true, 20), matrix(scores, 20)
    assert evaluate.average_precision(graph, estimate) == pytest.approx(
        metrics.average_precision_score(true, scores)
    )
    assert evaluate.roc_auc(graph, estimate) == pytest.approx(metrics.roc_auc_score(true, scores))
    precision, recall, cut = metrics.precision_recall_curve(true, scores)
    curve = evaluate.precision_recall_curve(graph, estimate)
    np.testing.assert_allclose(curve["precision"], precision[:-1][::-1])
    np.testing.assert_allclose(curve["recall"], recall[:-1][::-1])
    np.testing.assert_allclose(curve["threshold"], cut[::-1])
    probability = np.clip(scores, 0, 1)
    assert evaluate.brier_score(graph, matrix(probability, 20)) == pytest.approx(
        metrics.brier_score_loss(true, probability)
    )


def test_selected_graph_equals_scikit_learn(truth):
    estimate = MRF([0, 0, 0, 0], [(0, 1), (0, 2), (0, 3), (2, 3)], [1.0, 1.0, 0.0, -1.0])
    scores = evaluate.edge_scores(truth, estimate)
    upper = np.triu_indices(4, 1)
    true, found = truth.coupling[upper] != 0, estimate.coupling[upper] != 0
    assert scores["precision"] == metrics.precision_score(true, found)
    assert scores["recall"] == metrics.recall_score(true, found)
    assert scores["f1"] == pytest.approx(metrics.f1_score(true, found))
    assert scores["selected"] == 3
    assert np.isnan(scores["brier"])


def test_a_perfect_estimate_is_perfect(truth):
    scores = evaluate.edge_scores(truth, truth)
    for name in ("precision", "recall", "f1", "average_precision", "roc_auc"):
        assert scores[name] == 1
    assert scores["hamming"] == scores["coupling_rmse"] == 0


def test_empty_graphs(truth):
    empty = MRF([0, 0, 0, 0], [], [])
    scores = evaluate.edge_scores(truth, empty)
    assert (scores["precision"], scores["recall"], scores["f1"], scores["hamming"]) == (1, 0, 0, 3)
    scores = evaluate.edge_scores(empty, empty)
    assert (scores["precision"], scores["recall"], scores["f1"], scores["hamming"]) == (1, 1, 1, 0)
    assert np.isnan(scores["average_precision"])


def test_calibration_sees_the_difference():
    rng = np.random.default_rng(0)
    probabilities = [matrix(rng.random(190), 20) for _ in range(20)]
    honest = [matrix(rng.random(190) < p[np.triu_indices(20, 1)], 20) for p in probabilities]
    curve = evaluate.reliability_curve(honest, probabilities)
    deviation = (curve["frequency"] - curve["probability"]) / curve["standard_error"]
    assert curve["pairs"].sum() == 3800
    assert np.abs(deviation).max() < 3.5
    assert evaluate.calibration_error(honest, probabilities) < 0.03
    # Negative control: the same truths with probabilities pushed to the extremes.
    boastful = [np.clip(1.6 * (p - 0.5) + 0.5, 0, 1) for p in probabilities]
    curve = evaluate.reliability_curve(honest, boastful, bins=5)
    deviation = (curve["frequency"] - curve["probability"]) / curve["standard_error"].clip(1e-3)
    assert np.abs(deviation).max() > 5
    assert evaluate.calibration_error(honest, boastful) > 0.08


def test_one_table_for_all_methods(lattice):
    model, rows = lattice
    test = exact.sample(model, 200, np.random.default_rng(1))
    groups = random_windows(200, grid_windows(3, 4), seed=0)
    lasso, pseudo = NodewiseLasso().fit(rows), PseudoLikelihoodLasso().fit(rows)
    inclusion = np.clip(np.abs(pseudo.coupling_), 0, 1)
    methods = {
        "truth": model,
        "Wain max": lasso,
        "MLE": pseudo,
        "path": pseudo.path_,
        "posterior": Posterior(inclusion, pseudo.coupling_),
        "scores": inclusion,
    }
    table = evaluate.compare(model, methods, test, groups)
    assert list(table.index) == list(methods)
    assert table.loc["truth", "f1"] == 1
    assert table.loc["MLE", "cll"] == pytest.approx(
        conditional_log_likelihood(pseudo.model_, test, groups).mean()
    )
    assert table.loc["truth", "cll"] > table.loc["Wain max", "cll"]
    assert table.loc["path", "average_precision"] == pytest.approx(
        table.loc["MLE", "average_precision"], abs=0.1
    )
    assert np.isnan(table.loc["path", "f1"])
    assert np.isnan(table.loc["scores", "cll"])
    assert table.loc["posterior", "brier"] == table.loc["scores", "brier"]
    without_truth = evaluate.compare(None, {"MLE": pseudo}, test)
    assert list(without_truth.columns) == ["density", "pll"]


def test_curves_along_a_path(lattice):
    model, rows = lattice
    path = PseudoLikelihoodLasso(n_lambdas=10).fit(rows).path_
    curve = evaluate.path_curve(model, path)
    assert curve["recall"].is_monotonic_increasing
    np.testing.assert_array_equal(curve["density"], path.densities)
    groups = random_windows(300, grid_windows(3, 4), seed=0)
    scores = evaluate.density_curve(path, rows, groups)
    np.testing.assert_array_equal(scores["lam"], path.lambdas)
    assert scores["cll"].iloc[-1] > scores["cll"].iloc[0]
    few = evaluate.density_curve([path.model(2), [path.model(3), path.model(5)]], rows, groups)
    assert few["cll"][0] == pytest.approx(scores["cll"][2])
    assert few["density"][1] == pytest.approx((scores["density"][3] + scores["density"][5]) / 2)
    assert min(scores["cll"][[3, 5]]) < few["cll"][1] < max(scores["cll"][[3, 5]])


def test_coupling_error(truth):
    other = MRF([0, 0, 0, 0], [(0, 1), (0, 3)], [2.0, 3.0])
    assert evaluate.coupling_error(truth, other) == pytest.approx(np.sqrt((1 + 9 + 4 + 0.25) / 6))
    assert evaluate.coupling_error(truth, other, active=True, coding="ising") == pytest.approx(
        np.sqrt((1 + 4 + 0.25) / 3) / 4
    )
    assert evaluate.structural_hamming_distance(truth, other) == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: evaluate.edge_scores(t, np.zeros((3, 3))), "6 pairs of variables and the estimate 3"),
        (lambda t: evaluate.edge_scores(t, np.zeros((4, 3))), "square matrix"),
        (lambda t: evaluate.edge_scores(t, np.full((4, 4), np.nan)), "finite"),
        (lambda t: evaluate.brier_score(t, t), "no inclusion probabilities"),
        (lambda t: evaluate.coupling_error(t, np.zeros((4, 4))), "couplings"),
        (lambda t: evaluate.coupling_error(t, t, coding="spin"), "coding"),
        (lambda t: evaluate.edge_scores(np.zeros(3), t), "square 0/1 matrix"),
        (lambda t: evaluate.reliability_curve(t, np.zeros((4, 4)), bins=0), "bins"),
    ],
)
def test_bad_input_is_explained(truth, call, words):
    with pytest.raises(DataError, match=words):
        call(truth)
