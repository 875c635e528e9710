"""Comparing groups and adjusting, from a table to files, predictions, pictures and the command line."""

from __future__ import annotations

import csv
import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from command import edgewise
from edgewise import MRF, SpikeSlabMRF, exact, load_posterior, plots
from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.posterior.predictive import predictive_check
from edgewise.priors import FixedInclusion, FixedSlab, Prior
from edgewise.report import write_report

mpl.use("Agg")
NAMES = ["a", "b", "c", "d"]
QUICK = {"progress": False, "chains": 2, "min_draws": 300, "max_draws": 300, "target_ess": None}


def people(n=250):
    first = MRF([-1.25, -0.25, 1.0, 0.0], [(0, 1), (1, 2)], [2.5, -2.0], NAMES)
    second = MRF([-1.25, -2.25, -1.0, -0.5], [(0, 1), (1, 2)], [2.5, 2.0], NAMES)
    rows = np.concatenate([exact.sample(first, n, 1), exact.sample(second, n, 2)])
    made = pd.DataFrame(rows, columns=NAMES)
    made["town"] = ["Ulm"] * n + ["Bonn"] * n
    made["site"] = np.tile(["x", "y"], n)
    return made


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def fitted(table):
    return SpikeSlabMRF(random_state=1, **QUICK).fit(table.drop(columns="site"), groups="town")


def test_what_was_planted_is_found(fitted):
    found = fitted.posterior_.group_summary().set_index("edge")
    np.testing.assert_allclose(found[["absent", "same", "different"]].sum(axis=1), 1.0)
    planted = found.loc["b -- c"]
    assert planted["different"] > 0.95
    assert planted["answer"].startswith("differs")
    # Bonn comes before Ulm: the difference is that of Ulm less that of Bonn.
    assert fitted.posterior_.groups == ("Bonn", "Ulm")
    assert planted["hdi_high"] < -2
    assert planted["coupling_1"] > 1 > -1 > planted["coupling_2"]
    assert found.loc["a -- b", "absent"] < 0.01
    factors = found[[f"log10_bf_{state}" for state in ("absent", "same", "different")]]
    assert ((factors > 0).sum(axis=1) <= 1).all()
    one = fitted.posterior_.of_group("Ulm")
    assert one.coupling()[1, 2] == pytest.approx(planted["coupling_2"])
    assert one.median_model.coupling[1, 2] < -1
    biases = fitted.posterior_.group_bias_summary()
    assert biases["variable"].tolist() == NAMES


def test_saved_and_loaded(fitted, tmp_path):
    fitted.posterior_.save(tmp_path / "p.nc")
    again = load_posterior(tmp_path / "p.nc")
    pd.testing.assert_frame_equal(again.group_summary(), fitted.posterior_.group_summary())
    assert again.strata.to_dict() == fitted.posterior_.strata.to_dict()
    with pytest.raises(DataError, match="models of their own"):
        again.mixture(3)


def test_predictions_are_those_of_the_group(fitted, table):
    rows = table[NAMES].head(3).assign(b=1, c=np.nan)
    ulm, bonn = (fitted.predict_proba(rows, "c", groups=[town] * 3)[0, 0] for town in ("Ulm", "Bonn"))
    assert ulm < 0.4 < 0.6 < bonn
    assert fitted.predict_proba(rows.assign(town="Ulm"), "c")[0, 0] == pytest.approx(ulm)
    with pytest.raises(DataError, match="no column 'town', by which the rows"):
        fitted.predict_proba(rows, "c")
    with pytest.raises(DataError, match="no group 'Rome'; the groups are 'Bonn', 'Ulm'"):
        fitted.predict(rows, "c", groups=["Rome"] * 3)
    swapped = table.assign(town=table["town"].map({"Ulm": "Bonn", "Bonn": "Ulm"}))
    assert fitted.score(table) > fitted.score(swapped)
    drawn = fitted.sample(400, 1, group="Ulm")
    assert np.corrcoef(drawn["b"], drawn["c"])[0, 1] < -0.2
    assert len(fitted.sample(7, 1)) == 7
    assert not fitted.impute(rows.assign(town="Ulm")).isna().any().any()


def test_a_fit_that_goes_on_has_the_same_draws(table):
    options = {**QUICK, "min_draws": 40, "max_draws": 40}
    rows = table[[*NAMES, "town"]]
    short = SpikeSlabMRF(random_state=3, **options).fit(rows, groups="town").extend(40)
    options = {**QUICK, "min_draws": 80, "max_draws": 80, "n_jobs": 1}
    whole = SpikeSlabMRF(random_state=3, **options).fit(rows, groups="town")
    for one, other in zip(short.posterior_.draws, whole.posterior_.draws):
        np.testing.assert_array_equal(one.couplings, other.couplings)
        np.testing.assert_array_equal(one.rates, other.rates)


def test_groups_in_strata_with_weights_and_a_fixed_prior(table):
    prior = Prior(
        difference=FixedInclusion(0.2),
        difference_slab=FixedSlab(1.5),
        forced=[("a", "d")],
        forbidden=[("b", "d")],
    )
    weights = np.random.default_rng(0).gamma(2.0, 0.5, len(table))
    fitted = SpikeSlabMRF(random_state=1, prior=prior, adjust="site", **QUICK)
    fitted.fit(table, groups="town", sample_weight=weights)
    found = fitted.posterior_.group_summary().set_index("edge")
    assert found.loc["b -- d", "absent"] == 1
    assert found.loc["a -- d", "absent"] == 0
    assert fitted.posterior_.strata.names == ("Bonn, x", "Bonn, y", "Ulm, x", "Ulm, y")
    assert {chain.biases.shape[1] for chain in fitted.posterior_.draws} == {16}
    assert (fitted.posterior_.draws[0].rates == [0.2, 1.5]).all()
    assert fitted.predict(table.head(2), "a").shape == (2,)


def test_what_adjusting_takes_away():
    rng = np.random.default_rng(0)
    old = rng.random(400) < 0.5
    grey, glasses = (rng.random(400) < np.where(old, 0.85, 0.15) for _ in range(2))
    X = pd.DataFrame({"grey": grey, "glasses": glasses, "tea": rng.random(400) < 0.5, "old": old})
    plain = SpikeSlabMRF(random_state=1, drop_columns=["old"], **QUICK).fit(X)
    held = SpikeSlabMRF(random_state=1, adjust=["old"], **QUICK).fit(X)
    assert plain.inclusion_[0, 1] > 0.99
    assert held.inclusion_[0, 1] < 0.7
    assert abs(held.coupling_[0, 1]) < 0.4
    check = predictive_check(held.posterior_, X[["grey", "glasses", "tea"]], n_models=20)
    # The dependence of the pooled rows comes back through the strata.
    assert abs(check.pairs.observed[0] - check.pairs.mean[0]) < 0.05
    three = SpikeSlabMRF(random_state=1, adjust=["old"], features=3, **QUICK).fit(X)
    assert three.posterior_.n_cliques == 4


def test_what_is_refused(table):
    three = table.assign(a=np.arange(len(table)) % 3)
    with pytest.raises(DataError, match="Comparing groups takes variables with two levels, and 'a' has more"):
        SpikeSlabMRF(**QUICK).fit(three, groups="town")
    with pytest.raises(DataError, match="Groups are compared pair by pair"):
        SpikeSlabMRF(features=3, **QUICK).fit(table[[*NAMES, "town"]], groups="town")
    for engine in ("particle", "surrogate", "langevin"):
        with pytest.raises(DataError, match=f"The {engine} engine neither compares groups nor adjusts"):
            SpikeSlabMRF(engine=engine, **QUICK).fit(table[[*NAMES, "town"]], groups="town")
    plain = SpikeSlabMRF(random_state=1, **QUICK).fit(table[NAMES])
    with pytest.raises(DataError, match="No groups were compared"):
        plain.posterior_.group_summary()
    with pytest.raises(DataError, match="leave groups out"):
        plain.predict(table[NAMES], groups=["x"] * len(table))
    assert Features.pairs(4).n_cliques == plain.posterior_.n_cliques


def test_report_and_pictures(fitted, tmp_path):
    page = write_report(fitted.posterior_, tmp_path / "r.html").read_text("utf-8")
    assert "How the groups differ" in page
    assert "data:image/png;base64," in page
    assert "Groups of town were compared" in page
    legend = plots.difference_network(fitted).get_legend()
    assert "larger in Ulm" in legend.texts[0].get_text()
    assert len(plots.difference_forest(fitted, edges=3).get_yticks()) == 3
    with pytest.raises(DataError, match="labels of two groups"):
        plots.difference_network(fitted, between=["Ulm"])


def test_the_command(table, tmp_path):
    file, out = tmp_path / "people.csv", tmp_path / "out"
    table.to_csv(file, index=False)
    options = ("--adjust", "site", "--seed", 1, "--draws", 200, "--max-draws", 200, "--chains", 2, "-o", out)
    edgewise("fit", file, "--compare-groups", "town", *options)
    rows = list(csv.DictReader((out / "groups.csv").open(encoding="utf-8-sig")))
    assert rows[0]["edge"] == "b -- c"
    found = json.loads(edgewise("summary", out, "--json").stdout)
    assert found["groups"][0]["group_1"] == "Bonn"
    for kind in ("difference-network", "difference-forest"):
        edgewise("plot", kind, out, "-o", tmp_path / f"{kind}.png")
    edgewise("sample", out, "-n", 5, "--of-group", "Ulm")
    edgewise("export", "model", out, code=1)
    edgewise("export", "model", out, "--of-group", "Ulm")
    edgewise("predict", out, file, "--target", "c")
    said = edgewise("report", out, "--data", file, "-o", tmp_path / "r.html").output
    assert "not the table of the fit" not in said


@pytest.mark.parametrize(("p", "groups", "most"), [(21, 2, 20), (20, 10, 19)])
def test_too_many_states_are_refused_before_any_work(p, groups, most):
    rows = np.random.default_rng(0).integers(0, 2, (200, p))
    with pytest.raises(DataError, match=f"possible for up to {most} variables, and this table has {p}"):
        SpikeSlabMRF(progress=False).fit(rows, groups=np.arange(200) % groups)
