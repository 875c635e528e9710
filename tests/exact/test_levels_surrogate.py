"""The surrogate for any levels: beside the exact table, at its limits, and as a chain that can be saved."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise import SpikeSlabMRF, exact
from edgewise.data import read_data
from edgewise.datasets import ordinal_model
from edgewise.engines.choose import LEVEL_SURROGATE, choose, resolve
from edgewise.engines.level_features import (
    answers_of,
    data_variances,
    in_play,
    mismatch,
    particle_features,
    scores_of,
)
from edgewise.engines.level_surrogate import LevelSurrogateEngine
from edgewise.engines.meter import POINTS
from edgewise.errors import DataError
from edgewise.fitting import answer, pose
from edgewise.model.mrf import MRF
from edgewise.posterior.diagnostics import diagnose
from edgewise.run.options import RunOptions
from edgewise.scales import Scale
from toy_engine import fingerprint


@pytest.fixture(scope="module")
def data():
    """Ordinal, nominal and binary variables."""
    scales = [Scale("ordinal", (0, 1, 2, 3)), Scale("nominal", ("a", "b", "c")), Scale("binary", (0, 1))]
    scales += [Scale("ordinal", (0, 1, 2)), Scale("ordinal", (0, 1, 2, 3))]
    thresholds = [[0.0] * scale.n_levels for scale in scales]
    couplings = [np.array([[0.9, -0.6]]), np.array([[0.8], [0.5]]), -1.5, 1.2]
    model = MRF.from_levels(scales, thresholds, [(0, 1), (1, 2), (2, 3), (3, 4)], couplings)
    rows = exact.sample(model, 600, 5)
    return read_data({f"v{k}": np.array(scale.labels)[rows[:, k]] for k, scale in enumerate(scales)})


def posterior_of(data, engine, **options):
    chosen = {"seed": 2, "progress": False, "target_ess": None, "min_draws": 800, "max_draws": 800} | options
    return answer(pose(data), RunOptions(engine=engine, **chosen))[0]


def test_it_is_close_to_the_exact_table(data):
    sure, guess = posterior_of(data, "exact"), posterior_of(data, "surrogate")
    apart = guess.edge_values("inclusion") - sure.edge_values("inclusion")
    assert np.abs(apart).max() < 0.05
    spread = np.maximum(sure.edge_values("sd"), 0.05)
    assert np.abs((guess.edge_values("mean") - sure.edge_values("mean")) / spread).max() < 0.35
    first, second = (post.coupling_matrix("v0", "v1").to_numpy() for post in (sure, guess))
    assert np.abs(first - second).max() < 0.15
    for name in ("v0", "v3"):
        thresholds = [post.thresholds(name).mean(axis=(0, 1)) for post in (sure, guess)]
        assert np.abs(thresholds[0] - thresholds[1]).max() < 0.15
    found = diagnose(guess)
    assert found.light == "green"
    assert guess._approximation.largest <= 0.02
    assert "approximated" in " ".join([*found.messages, *found.notes])


def test_a_wrong_surrogate_is_noticed(data, monkeypatch):
    """Sums of other data: the comparison above must fail."""
    right = LevelSurrogateEngine.pool.__func__

    def wrong(cls, problem, settings, states, before):
        made = right(cls, problem, settings, states, before)
        return made | {
            "pull": made["pull"] + 0.15 * np.sqrt(np.diag(made["precision"])) * len(made["pull"]) ** 0.5
        }

    monkeypatch.setattr(LevelSurrogateEngine, "pool", classmethod(wrong))
    sure = posterior_of(data, "exact", min_draws=300, max_draws=300)
    guess = posterior_of(data, "surrogate", min_draws=300, max_draws=300)
    apart = guess.edge_values("inclusion") - sure.edge_values("inclusion")
    assert np.abs(apart).max() > 0.05


def test_beyond_the_table_auto_chooses_it():
    rows = exact.sample(ordinal_model(10, levels=5, degree=2, seed=3), 300, 1)
    fitted = SpikeSlabMRF(
        random_state=1, progress=False, min_draws=200, max_draws=400, settings={"warm_up": 40}
    ).fit(rows)
    assert fitted.engine_ == "surrogate"
    assert "more joint states" in fitted.engine_reason_
    assert fitted.posterior_._counters[0]["mismatch"] < 0.5
    with pytest.raises(DataError, match="joint states"):
        SpikeSlabMRF(engine="exact", progress=False).fit(rows)


def test_a_saved_run_goes_on_as_if_never_stopped(data, tmp_path):
    short = {"target_ess": None, "seed": 3, "progress": False, "settings": {"warm_up": 20, "particles": 64}}
    question = pose(data)

    def run(draws, **options):
        chosen = RunOptions(engine="surrogate", min_draws=draws, max_draws=draws, **short, **options)
        return answer(question, chosen)[1]

    whole = run(60)
    assert fingerprint(run(60, n_jobs=2).draws) == fingerprint(whole.draws)
    run(30, checkpoint=tmp_path / "c", checkpoint_every=0)
    again = run(60, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert fingerprint(again.draws) == fingerprint(whole.draws)


def test_knowledge_from_a_file_is_checked(data):
    problem = pose(data).problem
    engine = LevelSurrogateEngine(problem, {"particles": 64, "warm_up": 5}, np.random.SeedSequence(1))
    engine.advance(engine.warm_up)
    known = LevelSurrogateEngine.pool(problem, {"particles": 64, "warm_up": 5}, [engine.state()], None)
    LevelSurrogateEngine.check_knowledge(problem, known)
    for name, value in (
        ("pull", known["pull"][:-1]),
        ("precision", known["precision"] * np.nan),
        ("offset", known["offset"] + 1),
        ("round", np.array([99])),
    ):
        with pytest.raises(ValueError, match=r"is float|finite|others|range|is int"):
            LevelSurrogateEngine.check_knowledge(problem, known | {name: value})


def test_features_and_their_variances(data):
    problem = pose(data).problem
    candidates, offset = in_play(problem)
    assert np.diff(offset).tolist() == problem.scales.dimensions(problem.features.members).tolist()
    states = scores_of(data.scales, data.codes)
    np.testing.assert_array_equal(answers_of(data.scales, states), data.codes)
    features = particle_features(problem, candidates, data.codes)
    expected = np.concatenate([problem.statistics.singles, problem.statistics.cliques])
    np.testing.assert_allclose(features.sum(axis=1), expected, atol=1e-8)
    assert mismatch(problem, candidates, offset, features.mean(axis=1)) == pytest.approx(0.0, abs=1e-9)
    variances = data_variances(problem, candidates, offset)
    n_biases = problem.scales.n_biases
    np.testing.assert_allclose(variances[:n_biases], features[:n_biases].var(axis=1), rtol=0.05)
    assert np.all(variances > 0)


def test_the_choice(data):
    problem = pose(data).problem
    assert choose(problem)[0] == "exact"
    assert resolve("surrogate", problem) == LEVEL_SURROGATE


def test_terms_of_the_measured_error_add_up_to_the_log_ratio(data):
    """With exact means on the way, what the meter adds up is the change of w, whatever the kind of a pair."""
    problem, settings = pose(data).problem, {"particles": 64, "warm_up": 4, "probes": 1}
    engine, known = LevelSurrogateEngine(problem, settings, np.random.SeedSequence(1)), None
    while engine.meeting is not None:
        engine.advance(engine.warm_up - engine.iteration)
        known = LevelSurrogateEngine.pool(problem, settings, [engine.state()], known)
        engine = LevelSurrogateEngine.restore(problem, settings, engine.state(), known)
    engine.advance(3)
    assert engine.edge_sums()["probes"].max() == 3
    meter, nb = engine._meter, problem.scales.n_biases
    states = np.stack(np.unravel_index(np.arange(problem.scales.n_states), problem.scales.levels))
    features = particle_features(problem, engine._candidates, states)

    def log_ratio(values):
        bias, theta = values[:nb], values[nb:]
        apart = bias - known["bias_mean"] + theta @ known["bias_slope"]
        likelihood = values @ meter.sums - meter.rows * np.logaddexp.reduce(values @ features)
        quadratic = theta @ known["pull"] - 0.5 * theta @ known["precision"] @ theta
        inside = 0.5 * apart @ known["bias_precision"] @ apart
        return likelihood - 0.5 * meter.flat * bias @ bias - quadratic + inside

    def means(values):
        share = np.exp(values @ features - np.logaddexp.reduce(values @ features))
        return features @ share

    phi = np.concatenate([engine._chain.bias, engine._parameters()])
    phi = meter.first + 0.3 * (phi - meter.first)
    way = [means(meter.first + t * (phi - meter.first)) for t in POINTS]
    found = meter.terms(phi, np.mean(way, axis=0)).sum()
    assert found == pytest.approx(log_ratio(phi) - log_ratio(meter.first), abs=0.02, rel=0.02)
