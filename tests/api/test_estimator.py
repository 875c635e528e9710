"""The estimator: what users touch."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer

from edgewise import SpikeSlabMRF
from edgewise.data import read_data
from edgewise.errors import DataError, EdgewiseWarning, FileError
from edgewise.model import MRF
from edgewise.predict import conditional_probability, log_likelihood, pseudo_log_likelihood
from edgewise.priors import BetaInclusion, FixedInclusion, Prior
from toy_engine import TOY, fingerprint, toy_rows

NAMES = ["sleep", "mood", "energy", "dice"]


def make(**options):
    defaults = {
        "engine": TOY, "chains": 2, "min_draws": 100, "max_draws": 100, "target_ess": None,
        "random_state": 3, "progress": False,
    }  # fmt: skip
    return SpikeSlabMRF(**{**defaults, **options})


@pytest.fixture(scope="module")
def rows():
    return toy_rows()


@pytest.fixture(scope="module")
def frame(rows):
    return pandas.DataFrame(rows, columns=NAMES)


@pytest.fixture(scope="module")
def fitted(frame):
    return make().fit(frame)


def test_the_attributes(fitted):
    assert fitted.n_features_in_ == 4
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.inclusion_.shape == fitted.coupling_.shape == (4, 4)
    assert np.array_equal(fitted.inclusion_, fitted.inclusion_.T)
    assert fitted.inclusion_[0, 1] > 0.9
    assert fitted.bias_.shape == (4,)
    assert isinstance(fitted.median_model_, MRF)
    assert fitted.median_model_.names == tuple(NAMES)
    assert fitted.prior_.beta_a == 5
    assert fitted.engine_ == TOY
    assert fitted.stop_reason_ == "max_draws"
    assert fitted.posterior_.info["n_rows"] == 60
    assert fitted.posterior_.info["data_digest"] == read_data(toy_rows(), names=NAMES).digest()


def test_fit_returns_itself_and_leaves_the_parameters_alone(rows):
    estimator = make(prior=Prior(BetaInclusion(1, 3)))
    before = estimator.get_params()
    assert estimator.fit(rows) is estimator
    assert estimator.get_params() == before
    assert estimator.prior_.beta_b == 3


def test_names_matter_for_labels_only(fitted, rows):
    plain = make().fit(rows)
    assert not hasattr(plain, "feature_names_in_")
    assert plain.posterior_.names == ("x0", "x1", "x2", "x3")
    assert fingerprint(plain.posterior_.draws) == fingerprint(fitted.posterior_.draws)


def test_row_weights_are_repeated_rows(rows):
    weights = np.arange(60) % 3
    weighted = make().fit(rows, sample_weight=weights)
    repeated = make().fit(np.repeat(rows, weights, axis=0))
    assert fingerprint(weighted.posterior_.draws) == fingerprint(repeated.posterior_.draws)


def test_summary_is_that_of_the_posterior(fitted):
    table = fitted.summary(coding="ising")
    assert table["edge"].tolist()[0] == "sleep -- mood"
    assert np.allclose(table["mean"], fitted.summary()["mean"] / 4)


def test_words_are_kept_from_fit_to_sample(rows):
    words = pandas.DataFrame(np.where(rows == 1, "yes", "no"), columns=NAMES)
    estimator = make().fit(words)
    sample = estimator.sample(50, random_state=0)
    assert list(sample.columns) == NAMES
    assert set(np.unique(sample)) == {"no", "yes"}
    assert estimator.score(words) == pytest.approx(make().fit(rows).score(rows))


def test_scores_are_those_of_the_mixture(rows):
    fitted = make().fit(rows)
    models = fitted.posterior_.mixture(20)
    assert fitted.score(rows, mixture=20) == pytest.approx(pseudo_log_likelihood(models, rows).mean())
    assert fitted.score(rows, kind="likelihood", mixture=20) == pytest.approx(
        log_likelihood(models, rows).mean
    )
    everything = fitted.score(rows, kind="conditional", mixture=20)
    assert everything == pytest.approx(fitted.score(rows, kind="likelihood", mixture=20))
    assert fitted.score(rows) > fitted.score(1 - rows[:, ::-1])
    with pytest.raises(
        DataError, match="kind must be 'pseudo', 'likelihood' or 'conditional', not 'accuracy'"
    ):
        fitted.score(rows, kind="accuracy")


def test_predictions_look_at_the_other_cells_only(fitted, frame):
    every = fitted.predict_proba(frame)
    assert every.shape == frame.shape
    one = fitted.predict_proba(frame, "mood")
    assert one.shape == (60, 1)
    assert np.allclose(one[:, 0], every[:, 1])
    assert np.array_equal(fitted.predict_proba(frame.assign(mood=1 - frame["mood"]), "mood"), one)
    sleeping = frame["sleep"] == 1
    assert one[sleeping].mean() > 0.7 > 0.3 > one[~sleeping].mean()
    # Several columns are hidden at once; the dice know nothing of the mood.
    two = fitted.predict_proba(frame, [1, "dice"])
    hidden = frame.to_numpy().copy()
    hidden[:, [1, 3]] = -1
    assert np.allclose(two, conditional_probability(fitted.posterior_.mixture(100), hidden, [1, 3]))
    assert np.allclose(two[:, 1], every[:, 3], atol=0.005)


def test_predictions_in_your_labels(rows):
    words = pandas.DataFrame(np.where(rows == 1, "yes", "no"), columns=NAMES)
    fitted = make().fit(words)
    probability = fitted.predict_proba(words, "mood")
    one = fitted.predict(words, "mood")
    assert one.shape == (len(rows),)
    assert np.array_equal(one == "yes", probability[:, 0] >= 0.5)
    assert np.array_equal(fitted.predict(words, 1), one)
    every = fitted.predict(words)
    assert list(every.columns) == NAMES
    assert np.array_equal(every["mood"], one)
    assert list(fitted.predict(words, ["dice", "mood"]).columns) == ["dice", "mood"]
    numbers = make().fit(rows)
    assert numbers.predict(rows).shape == rows.shape
    assert set(np.unique(numbers.predict(rows))) <= {0, 1}


def test_scores_of_rows_average_to_the_score(rows):
    fitted = make().fit(rows)
    for kind in ("pseudo", "likelihood", "conditional"):
        every = fitted.score_samples(rows, kind=kind, mixture=20)
        assert every.shape == (len(rows),)
        assert fitted.score(rows, kind=kind, mixture=20) == pytest.approx(every.mean())
    assert fitted.score_samples(rows[:3]) == pytest.approx(fitted.score_samples(rows)[:3])


def test_the_last_step_of_a_pipeline(rows):
    # Measurements are cut at their medians, then fitted, then predicted: no step needs a transform after.
    rng = np.random.default_rng(0)
    measured = np.where(rows == 1, 1.0, -1.0) * rng.uniform(0.5, 2, rows.shape)
    pipeline = Pipeline([("cut", Binarizer()), ("graph", make())]).fit(measured)
    assert np.array_equal(pipeline.predict_proba(measured, target=1), make().fit(rows).predict_proba(rows, 1))
    assert pipeline.score_samples(measured) == pytest.approx(make().fit(rows).score_samples(rows))
    assert pipeline.predict(measured, target=1).shape == (len(rows),)
    assert pipeline["graph"].summary().shape[0] == 6


def test_blank_cells_are_summed_over(fitted, frame):
    blank = frame.astype(float)
    blank.loc[0, "sleep"] = np.nan
    both = fitted.predict_proba(blank, "mood")
    models = fitted.posterior_.mixture(100)
    row = frame.to_numpy()[:1].copy()
    row[0, 0] = -1
    assert both[0, 0] == pytest.approx(conditional_probability(models, row, [1])[0, 0])
    every = fitted.predict_proba(blank)
    assert every[0, 1] == pytest.approx(both[0, 0])
    assert every[0, 0] == pytest.approx(fitted.predict_proba(frame)[0, 0])


def test_unknown_targets_are_refused(fitted, frame):
    with pytest.raises(DataError, match="no variable 'weight'; the variables are: sleep, mood"):
        fitted.predict_proba(frame, "weight")
    with pytest.raises(DataError, match="no variable 4"):
        fitted.predict_proba(frame, [0, 4])


def test_samples_have_the_dependence_of_the_data(fitted, rows):
    sample = fitted.sample(4000, random_state=1)
    agree = (sample["sleep"] == sample["mood"]).mean()
    independent = (sample["sleep"] == sample["dice"]).mean()
    assert agree > independent + 0.15
    assert sample.equals(fitted.sample(4000, random_state=1))
    assert not sample.equals(fitted.sample(4000, random_state=2))


def test_extending_is_a_longer_fit(rows, tmp_path):
    whole = make(min_draws=160, max_draws=160).fit(rows)
    for checkpoint in (None, tmp_path / "c"):
        estimator = make(checkpoint=checkpoint).fit(rows)
        assert estimator.extend(draws=60) is estimator
        assert fingerprint(estimator.posterior_.draws) == fingerprint(whole.posterior_.draws)
    again = pickle.loads(pickle.dumps(make().fit(rows))).extend(60)
    assert fingerprint(again.posterior_.draws) == fingerprint(whole.posterior_.draws)
    with pytest.raises(DataError, match="draws must be a whole number"):
        whole.extend(draws=0)


def test_a_fit_finds_its_checkpoint_and_refuses_another(rows, tmp_path):
    first = make(checkpoint=tmp_path / "c").fit(rows)
    again = make(checkpoint=tmp_path / "c").fit(rows)
    assert again.posterior_.info["resumed_from_iteration"] > 0
    assert fingerprint(first.posterior_.draws) == fingerprint(again.posterior_.draws)
    with pytest.raises(FileError, match=r"prior.inclusion.p0: nothing in the checkpoint, 0.2 now"):
        make(checkpoint=tmp_path / "c", prior=Prior(FixedInclusion(0.2))).fit(rows)
    with pytest.raises(FileError, match=r"data: "):
        make(checkpoint=tmp_path / "c").fit(1 - rows)


def test_seeds_of_every_kind(rows):
    a = make(random_state=np.random.default_rng(5)).fit(rows)
    b = make(random_state=np.random.default_rng(5)).fit(rows)
    c = make(random_state=np.random.RandomState(5)).fit(rows)
    d = make(random_state=a.posterior_.info["seed"]).fit(rows)
    assert fingerprint(a.posterior_.draws) == fingerprint(b.posterior_.draws)
    assert fingerprint(a.posterior_.draws) == fingerprint(d.posterior_.draws)
    assert fingerprint(a.posterior_.draws) != fingerprint(c.posterior_.draws)
    assert make(random_state=None, max_draws=10, min_draws=10).fit(rows).posterior_.n_draws == 10
    with pytest.raises(DataError, match="random_state must be None, a whole number"):
        make(random_state="lucky").fit(rows)


def test_a_rough_fit_warns_with_numbers_and_remedy(rows):
    with pytest.warns(
        EdgewiseWarning,
        match=r"edge \w+ -- \w+ has \d+ effective draws \(asked: 400\).* Go on with extend\(draws=[\d,]+\)",
    ) as caught:
        make(target_ess=400).fit(rows)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the line of the user


def test_constant_columns_and_blanks_follow_the_arguments(rows):
    table = np.column_stack([rows, np.ones(60)]).astype(float)
    with pytest.raises(DataError, match="x4"):
        make().fit(table)
    assert make(constant="drop").fit(table).posterior_.n_variables == 4
    table[0, 0] = np.nan
    dropped = make(constant="drop", missing="drop").fit(table)
    assert dropped.posterior_.info["n_rows"] == 59
    assert dropped.n_features_in_ == 5
    assert dropped.posterior_.info["notes"]
    assert dropped.score(table[1:]) < 0


def test_larger_cliques_and_single_edges(rows):
    triples = make(features=3).fit(rows)
    assert triples.posterior_.n_cliques == 10
    assert triples.inclusion_.shape == (4, 4)
    listed = make(features=[("mood", "sleep"), ("dice", "mood")]).fit(pandas.DataFrame(rows, columns=NAMES))
    assert listed.summary()["edge"].tolist() == ["sleep -- mood", "mood -- dice"]


def test_wrong_arguments_are_refused(rows):
    with pytest.raises(DataError, match=r"prior must be an edgewise\.priors\.Prior"):
        make(prior=0.5).fit(rows)
    with pytest.raises(DataError, match="There is no engine 'fast'"):
        make(engine="fast").fit(rows)
    with pytest.raises(NotFittedError):
        make().summary()
    with pytest.raises(NotFittedError):
        make().extend()


def test_a_wrong_number_of_columns_is_refused(rows):
    with pytest.raises(ValueError, match="X has 3 features, but SpikeSlabMRF is expecting 4 features"):
        make().fit(rows).score(rows[:, :3])


# In company.


def test_grid_search_clone_and_pipeline(rows):
    candidates = [Prior(FixedInclusion(p0)) for p0 in (0.01, 0.5)]
    estimator = make(min_draws=40, max_draws=40, chains=1)
    search = GridSearchCV(estimator, {"prior": candidates}, cv=2).fit(rows)
    assert search.best_params_["prior"] in candidates
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.posterior_.n_draws == 40
    pipeline = Pipeline([("cut", Binarizer(threshold=0.5)), ("graph", estimator)]).fit(rows * 0.8)
    assert pipeline.score(rows * 0.8) == pytest.approx(estimator.fit(rows.astype(float)).score(rows))


def test_clones_share_the_executor_and_pickles_leave_it(rows):
    with ThreadPoolExecutor(1) as pool:
        estimator = make(executor=pool, callback=print).fit(rows)
        copy = clone(estimator)
        assert copy.executor is pool
        assert not hasattr(copy, "posterior_")
        copy.fit(rows)
        assert fingerprint(copy.posterior_.draws) == fingerprint(estimator.posterior_.draws)
        travelled = pickle.loads(pickle.dumps(estimator))
    assert travelled.executor is None
    assert travelled.callback is None
    assert np.array_equal(travelled.inclusion_, estimator.inclusion_)


def test_the_page_in_a_notebook_escapes_names(rows):
    estimator = make()
    assert "SpikeSlabMRF" in estimator._repr_html_()
    hostile = pandas.DataFrame(rows, columns=["<script>alert(1)</script>", "b", "c", "d"])
    page = estimator.fit(hostile)._repr_html_()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; -- b" in page
    assert "text/html" in estimator._repr_mimebundle_()
