"""From a table with ordinal, nominal and binary columns to everything that is asked of its posterior."""

from __future__ import annotations

import itertools
import json
import re

import networkx
import numpy as np
import pandas as pd
import pytest

from command import edgewise
from edgewise import SpikeSlabMRF, exact, load_posterior
from edgewise.data import read_data
from edgewise.datasets import ordinal_model
from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.posterior.diagnostics import predictive_check
from edgewise.predict import ais_log_partition, level_probabilities, log_likelihood
from edgewise.predict.levels import conditioned, site_log_likelihood
from edgewise.scales import Scale

MOOD, CITY, SMOKER = ("low", "middle", "high"), ("Bonn", "Oslo", "Rome"), ("no", "yes")


@pytest.fixture(scope="module")
def truth() -> MRF:
    scales = [
        Scale("ordinal", MOOD),
        Scale("ordinal", (1, 2, 3, 4)),
        Scale("nominal", CITY),
        Scale("binary", SMOKER),
    ]
    matrix = np.array([[1.2], [-0.8]])
    return MRF.from_levels(
        scales,
        [[0.2, 0.0, -0.2], [0.0, 0.3, 0.2, -0.4], [0.1, 0.0, -0.1], [0.0, -0.3]],
        [(0, 1), (2, 3)],
        [2.5, matrix],
        ["mood", "item", "city", "smoker"],
    )


@pytest.fixture(scope="module")
def table(truth: MRF) -> pd.DataFrame:
    rows = exact.sample(truth, 400, 3)
    return pd.DataFrame(
        {
            name: np.array(scale.labels)[rows[:, k]]
            for k, (name, scale) in enumerate(zip(truth.names, truth.scales))
        }
    )


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame) -> SpikeSlabMRF:
    model = SpikeSlabMRF(random_state=1, progress=False, levels={"mood": list(MOOD)})
    return model.fit(table)


def test_the_truth_is_found(fitted: SpikeSlabMRF, truth: MRF) -> None:
    assert fitted.engine_ == "exact"
    there = fitted.inclusion_ > 0.5
    assert [tuple(pair) for pair in np.argwhere(np.triu(there)).tolist()] == [(0, 1), (2, 3)]
    assert fitted.coupling_[0, 1] == pytest.approx(2.5, abs=1.0)
    assert [len(part) for part in fitted.bias_] == [3, 4, 3, 2]
    assert fitted.posterior_.levels == (MOOD, (1, 2, 3, 4), CITY, SMOKER)
    assert list(fitted.summary()["measure"]) == [
        "coupling",
        "strength",
        "coupling",
        "strength",
        "coupling",
        "strength",
    ]


def test_predictions_are_in_labels(fitted: SpikeSlabMRF, table: pd.DataFrame) -> None:
    rows = table.head(20).copy()
    rows.loc[0, "city"] = None
    rows.loc[1, ["mood", "item"]] = None
    every = fitted.predict_proba(rows)
    assert [part.shape for part in every] == [(20, 3), (20, 4), (20, 3), (20, 2)]
    for part in every:
        np.testing.assert_allclose(part.sum(axis=1), 1.0)
    one = fitted.predict_proba(rows, "city")
    np.testing.assert_allclose(one, every[2])
    assert set(fitted.predict(rows, "city")) <= set(CITY)
    assert list(fitted.predict(rows, ["mood", "item"]).columns) == ["mood", "item"]
    filled = fitted.impute(rows)
    assert not filled.isna().any().any()
    codes = fitted._rows(rows, allow_missing=True)
    assert ((fitted._rows(filled) == codes) | (codes < 0)).all()
    drawn = fitted.sample(50, random_state=1)
    assert set(drawn["mood"]) <= set(MOOD)
    assert set(drawn["item"]) <= {1, 2, 3, 4}


def test_scores_are_those_of_the_mixture(fitted: SpikeSlabMRF, table: pd.DataFrame) -> None:
    models = fitted.posterior_.mixture(100)
    codes = fitted._rows(table)
    logs = np.array([model.log_potential(codes) - exact.log_partition(model) for model in models])
    expected = np.logaddexp.reduce(logs) - np.log(len(models))
    np.testing.assert_allclose(fitted.score_samples(table, kind="likelihood"), expected)
    assert fitted.score(table, kind="likelihood") == pytest.approx(expected.mean())
    assert fitted.score(table) > fitted.score(
        table.sample(frac=1, random_state=1).reset_index(drop=True).assign(mood=table["mood"])
    )
    both = fitted.score(table, kind="conditional", groups=["mood", "city"])
    assert np.isfinite(both)


def all_rows(model: MRF) -> np.ndarray:
    return np.array(list(itertools.product(*(range(scale.n_levels) for scale in model.scales))))


def test_conditionals_against_the_whole_table(truth: MRF) -> None:
    states = all_rows(truth)
    weight = np.exp(truth.log_potential(states) - exact.log_partition(truth))
    row = np.array([[1, -1, -1, 0]])
    consistent = (states[:, 0] == 1) & (states[:, 3] == 0)
    found = level_probabilities(truth, row)
    for variable in (1, 2):
        expected = np.bincount(states[consistent, variable], weight[consistent])
        np.testing.assert_allclose(found[variable][0], expected / expected.sum())
    np.testing.assert_allclose(found[0][0], [0, 1, 0])
    inside = conditioned(truth, np.array([1, 0, 0, 0]), np.array([2, 1]))
    np.testing.assert_allclose(exact.level_marginals(inside)[1], found[1][0])
    sites = site_log_likelihood(truth, states[:9])
    parts = truth.conditional_levels(states[:9])
    np.testing.assert_allclose(sites[:, 1], np.log(parts[1][np.arange(9), states[:9, 1]]))
    with pytest.raises(DataError, match=r"Cells are 0 to 2, or -1 where unseen, but row 0 has 3 in column 0"):
        level_probabilities(truth, [[3, 0, 0, 0]])


def test_many_unseen_variables() -> None:
    model = ordinal_model(9, levels=4, degree=2, seed=1)
    found = level_probabilities(model, [[3, *[-1] * 8]])
    expected = exact.level_marginals(conditioned(model, np.array([3] + [0] * 8), np.arange(1, 9)))
    for one, other in zip(found[1:], expected):
        np.testing.assert_allclose(one[0], other)


def test_annealing_meets_the_exact_normaliser(truth: MRF) -> None:
    estimate, error = ais_log_partition(truth, seed=1)
    assert abs(estimate - exact.log_partition(truth)) < 4 * error
    assert error < 0.05
    annealed = log_likelihood(truth, all_rows(truth)[:5], method="annealing")
    np.testing.assert_allclose(annealed.values, log_likelihood(truth, all_rows(truth)[:5]).values, atol=0.1)


def test_the_check_finds_a_table_that_does_not_fit(fitted: SpikeSlabMRF, table: pd.DataFrame) -> None:
    data = read_data(table, levels={"mood": list(MOOD)})
    check = predictive_check(fitted.posterior_, data)
    assert len(check.means.observed) == 12
    assert len(check.pairs.observed) == 12 + 9 + 6 + 12 + 8 + 6
    assert check.means.inside > 0.9
    assert check.pairs.inside > 0.85
    assert np.sum(check.ones.observed) == pytest.approx(1)
    broken = table.assign(smoker=np.where(table["mood"] == "high", "yes", table["smoker"]))
    worse = predictive_check(fitted.posterior_, broken)
    assert worse.pairs.inside < check.pairs.inside - 0.1
    assert "mood = high" in worse.worst("pairs")[0]


def test_the_command_from_table_to_report(table: pd.DataFrame, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table.assign(age=np.random.default_rng(0).uniform(18, 90, len(table))).to_csv("t.csv", index=False)
    options = ["--levels", "mood=low,middle,high", "--cut", "age>=30,60", "--nominal", "city", "--seed", "1"]
    done = edgewise("fit", "t.csv", *options, "--max-draws", "500", "-o", "out")
    assert "3 columns are ordinal" in done.stderr or "ordinal with 3 levels" in done.stderr
    assert "strength" in done.stdout
    posterior = load_posterior("out/posterior.nc")
    assert posterior.levels[4] == ("<30", ">=30", ">=60")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "5 variables (1 binary, 3 ordinal, 1 nominal) of 2 to 4 levels" in page
    assert "a step up the whole scale of" in page
    assert "orthogonal contrasts" in page
    payload = json.loads(re.search(r'<script[^>]*id="payload"[^>]*>(.*?)</script>', page, re.S)[1])
    assert payload["levels"][2][0][0] == "Bonn"
    assert sum(share for _, share in payload["levels"][2]) == pytest.approx(1, abs=1e-3)
    assert len(next(iter(payload["matrices"].values()))) in (2, 3, 4)
    again = edgewise("report", "out", "--data", "t.csv", "-o", "again.html")
    assert "is not the table of the fit" not in again.stderr
    (tmp_path / "new.csv").write_text("mood,item,city,smoker,age\nlow,,Oslo,no,44\nhigh,2,,yes,20\n")
    predicted = edgewise("predict", "out", "new.csv")
    assert [line.split(",")[1] for line in predicted.stdout.split()[1:]] == ["item"] * 4 + ["city"] * 3
    sampled = edgewise("sample", "out", "-n", "5", "--seed", "1")
    assert set(sampled.stdout.split()[1].split(",")) & {*CITY}
    graph = edgewise("export", "graphml", "out")
    assert networkx.parse_graphml(graph.stdout).nodes["city"]["kind"] == "nominal"
    for what in ("model", "weights", "edges"):
        edgewise("export", what, "out")
    refused = edgewise("export", "J", "out", code=1)
    assert "two levels" in refused.stderr
    for kind in ("network", "evidence", "forest", "trace", "inclusion"):
        edgewise("plot", kind, "out", "-o", f"{kind}.png")


def test_too_many_states_are_refused_with_what_would_fit() -> None:
    rows = np.random.default_rng(0).integers(1, 6, (60, 12))
    with pytest.raises(DataError, match=r"244,140,625 joint states.*at most 8 of these fit.*binarize"):
        SpikeSlabMRF(engine="exact", progress=False).fit(rows)
    with pytest.raises(DataError, match="two levels only"):
        SpikeSlabMRF(engine="langevin", progress=False).fit(rows[:, :4])
