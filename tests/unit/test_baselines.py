"""The lasso estimators as estimators: arguments, choice of lambda, degenerate columns, warnings."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from edgewise import NodewiseLasso, PseudoLikelihoodLasso, exact
from edgewise.baselines.selection import extended_bic
from edgewise.datasets import lattice_model
from edgewise.errors import DataError, EdgewiseWarning

BOTH = pytest.mark.parametrize("kind", [NodewiseLasso, PseudoLikelihoodLasso])


@pytest.fixture(scope="module")
def truth():
    return lattice_model(0, rows=3, columns=4)


@pytest.fixture(scope="module")
def table(truth):
    return exact.sample(truth, 400, np.random.default_rng(0))


@BOTH
def test_scikit_learn_manners(kind, table):
    estimator = kind(0.05, cv=3, tol=1e-8)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert copy.set_params(lam="cv").lam == "cv"
    assert estimator.fit(table) is estimator
    assert estimator.get_params() == kind(0.05, cv=3, tol=1e-8).get_params()
    assert estimator.n_features_in_ == 12
    assert not hasattr(clone(estimator), "coupling_")
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.path_.at(0.03).coupling, estimator.path_.at(0.03).coupling)


@BOTH
def test_results_hang_together(kind, table):
    fitted = kind(0.03).fit(table)
    np.testing.assert_array_equal(fitted.coupling_, fitted.coupling_.T)
    np.testing.assert_array_equal(fitted.model_.coupling, fitted.coupling_)
    np.testing.assert_array_equal(fitted.model_.biases, fitted.bias_)
    assert fitted.density_ == fitted.model_.density
    assert fitted.lam_ == 0.03
    assert fitted.path_.lambdas[-1] == 0.03
    assert (np.diff(fitted.path_.lambdas) < 0).all()


@BOTH
def test_names_and_codings_do_not_matter(kind, table):
    words = pd.DataFrame(np.where(table == 1, "yes", "no"), columns=[f"item {i}" for i in range(12)])
    from_words, from_signs = kind(0.03).fit(words), kind(0.03).fit(2 * table.astype(int) - 1)
    np.testing.assert_array_equal(from_words.coupling_, from_signs.coupling_)
    assert from_words.model_.names[3] == "item 3"
    assert list(from_words.feature_names_in_) == list(words.columns)
    assert from_words.score(words) == pytest.approx(from_signs.score(2 * table.astype(int) - 1))


@BOTH
def test_score_is_the_mean_pseudo_log_likelihood(kind, table):
    fitted = kind(0.03).fit(table[:300])
    probability = fitted.model_.conditional_probability(table[300:])
    expected = np.log(np.where(table[300:] == 1, probability, 1 - probability)).sum(axis=1).mean()
    assert fitted.score(table[300:]) == pytest.approx(expected, abs=1e-10)


@BOTH
def test_search_over_lambda(kind, table):
    search = GridSearchCV(kind(), {"lam": [0.3, 0.01, 1e-5]}, cv=3).fit(table)
    assert search.best_params_ == {"lam": 0.01}
    assert np.argmin(search.cv_results_["mean_test_score"]) == 0


@BOTH
@pytest.mark.parametrize("density", [0.1, 0.3, 0.6, 0.9])
def test_density(kind, table, density):
    fitted = kind(density=density).fit(table)
    assert abs(fitted.density_ - density) <= 1 / 66
    assert abs(fitted.path_.at_density(density).density - density) <= 1 / 66
    assert fitted.path_.at(fitted.lam_).density == pytest.approx(fitted.density_)


def test_density_one_and_zero(table):
    fitted = PseudoLikelihoodLasso(density=1.0).fit(table)
    assert fitted.density_ > 0.98
    assert PseudoLikelihoodLasso(density=0.0).fit(table).density_ == 0


def test_density_that_cannot_be_reached_is_refused(table):
    with_constant = np.column_stack([table, np.ones(len(table), np.uint8)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgewiseWarning)
        fitted = NodewiseLasso(0.1, constant="keep").fit(with_constant)
        with pytest.raises(DataError, match="does not reach density 1"):
            fitted.path_.at_density(1.0)


def test_cross_validation_takes_the_best_held_out_score(table):
    fitted = PseudoLikelihoodLasso("cv", cv=4, random_state=1).fit(table)
    assert fitted.cv_scores_.shape == (50, 4)
    best = fitted.cv_scores_.mean(axis=1).argmax()
    assert fitted.lam_ == fitted.path_.lambdas[best]
    assert 0 < best < 49
    assert PseudoLikelihoodLasso("cv", cv=4, random_state=1).fit(table).lam_ == fitted.lam_


def test_ebic_by_hand(table):
    fitted = NodewiseLasso(gamma=0.5).fit(table)
    node = 3
    position = 20
    coefficients = fitted.path_.coefficients[position, node]
    others = np.arange(12) != node
    eta = coefficients[node] + table[:, others] @ coefficients[others]
    log_likelihood = (table[:, node] * eta - np.logaddexp(0, eta)).sum()
    count = (coefficients[others] != 0).sum()
    expected = -2 * log_likelihood + count * np.log(400) + 2 * 0.5 * count * np.log(11)
    assert fitted.ebic_[position, node] == pytest.approx(expected, rel=1e-9)
    assert fitted.lam_[node] == fitted.path_.lambdas[fitted.ebic_[:, node].argmin()]
    joint = PseudoLikelihoodLasso(gamma=0.5).fit(table)
    assert joint.lam_ == joint.path_.lambdas[extended_bic(joint.path_, 0.5).argmin()]


@BOTH
@pytest.mark.parametrize("lam", ["ebic", "cv"])
def test_path_goes_on_until_the_best_lies_inside(kind, lam, table):
    short = kind(lam, n_lambdas=6, lambda_ratio=0.8, random_state=0).fit(table)
    assert len(short.path_) > 6
    assert (np.diff(np.log(short.path_.lambdas)) == pytest.approx(np.log(0.8) / 5)) is True
    criterion = short.ebic_ if lam == "ebic" else -short.cv_scores_.mean(axis=1)
    assert (criterion.argmin(axis=0) < len(short.path_) - 1).all()
    assert np.min(short.lam_) > short.path_.lambdas[-1]


def test_larger_gamma_never_adds_edges(table):
    found = [NodewiseLasso(gamma=gamma, combine="min").fit(table).density_ for gamma in (0, 0.25, 1.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_min_is_a_subgraph_of_max(table):
    smaller, larger = NodewiseLasso(0.03, "min").fit(table), NodewiseLasso(0.03, "max").fit(table)
    assert (np.abs(smaller.coupling_) <= np.abs(larger.coupling_)).all()
    assert smaller.density_ < larger.density_


def test_threads_do_not_change_the_result(table):
    one, two = NodewiseLasso(0.03).fit(table), NodewiseLasso(0.03, n_jobs=2).fit(table)
    np.testing.assert_array_equal(one.coupling_, two.coupling_)


@BOTH
def test_separation_is_reported_by_name(kind, table):
    frame = pd.DataFrame(table, columns=[f"v{i}" for i in range(12)])
    frame["copy"] = 1 - frame["v5"]
    with pytest.warns(EdgewiseWarning) as caught:
        fitted = kind(0.001).fit(frame)
    assert any("Separation" in str(w.message) and "v5" in str(w.message) for w in caught)
    assert {"v5", "copy"} <= set(fitted.separated_)
    assert np.isfinite(fitted.coupling_).all()
    assert np.abs(fitted.coupling_).max() < 50


@BOTH
def test_separation_without_penalty_stays_finite(kind, table):
    frame = pd.DataFrame(table, columns=[f"v{i}" for i in range(12)])
    frame["implied"] = frame["v0"] & frame["v1"]
    with pytest.warns(EdgewiseWarning, match="Separation.*implied"):
        fitted = kind(0.0).fit(frame)
    assert np.isfinite(fitted.coupling_).all()
    assert np.isfinite(fitted.bias_).all()


@BOTH
def test_clean_data_give_no_warning(kind, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kind(0.03).fit(table).separated_ == ()


@BOTH
def test_constant_columns(kind, table):
    frame = pd.DataFrame(table, columns=[f"v{i}" for i in range(12)])
    frame["always"] = 1
    with pytest.raises(DataError, match="always"):
        kind(0.03).fit(frame)
    with pytest.warns(EdgewiseWarning, match="Constant columns: always"):
        kept = kind(0.03, constant="keep").fit(frame)
    assert kept.bias_[-1] == pytest.approx(np.log(400.5 / 0.5))
    assert not kept.coupling_[-1].any()
    without = kind(0.03).fit(table)
    np.testing.assert_allclose(kept.coupling_[:12, :12], without.coupling_, atol=1e-6)


def test_column_constant_in_one_fold_only(table):
    rare = table.copy()
    rare[:, 0] = 0
    rare[7, 0] = 1
    fitted = PseudoLikelihoodLasso("cv", cv=4, random_state=0).fit(rare)
    assert np.isfinite(fitted.cv_scores_).all()


def test_independent_columns_give_an_empty_graph():
    states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    for kind in (NodewiseLasso, PseudoLikelihoodLasso):
        fitted = kind().fit(np.repeat(states, 3, axis=0))
        assert fitted.density_ == 0
        np.testing.assert_allclose(fitted.bias_, 0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lam": "aic"}, 'a number, "ebic" or "cv"'),
        ({"lam": -1.0}, "not negative"),
        ({"lam": float("nan")}, "not negative"),
        ({"lam": 0.1, "density": 0.2}, "Give one"),
        ({"density": 1.2}, "between 0 and 1"),
        ({"combine": "median"}, "combine must be one of"),
        ({"rule": "xor"}, "rule must be one of"),
        ({"n_lambdas": 1}, "n_lambdas"),
        ({"gamma": -0.1}, "gamma"),
        ({"lam": "cv", "cv": 1}, "folds"),
    ],
)
def test_bad_arguments_are_explained(table, arguments, words):
    with pytest.raises(DataError, match=words):
        NodewiseLasso(**arguments).fit(table)


def test_entry_orders_the_pairs(table, truth):
    path = PseudoLikelihoodLasso().fit(table).path_
    strongest = np.unravel_index(np.argmax(path.entry), path.entry.shape)
    assert truth.coupling[strongest] != 0
    assert path.entry.max() == path.lambdas[np.argmax(path.densities > 0)]
    np.testing.assert_array_equal(path.entry > 0, (path.couplings != 0).any(axis=0))
