"""What newcomers met in their first hour: words, numbers and commands that must stay mended."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest

from command import edgewise
from edgewise import SpikeSlabMRF, load_posterior
from edgewise.cli.messages import in_options
from edgewise.posterior.columns import signed
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.verdict import judge
from edgewise.report.build import build_report
from helpers import fake_posterior
from toy_engine import TOY


def test_a_red_posterior_is_not_counted_in_the_terminal(tmp_path: Path):
    fake_posterior(8, draws=100, seed=2, persistence=0.99).save(tmp_path / "posterior.nc")
    shown = edgewise("summary", tmp_path).stdout
    assert shown.startswith(" RED ")
    assert "No count, probability or Bayes factor of it can be quoted yet." in shown.splitlines()[0]
    assert "included with strong evidence" not in shown
    assert "The data decide" not in shown
    told = json.loads(edgewise("summary", tmp_path, "--json").stdout)
    assert told["quality"]["banner"].startswith("Red: ")
    assert told["decided"] is None
    least = diagnose(load_posterior(tmp_path / "posterior.nc")).min_ess
    assert max(abs(edge["log10_bf"]) for edge in told["edges"]) <= np.log10(max(least, 1)) + 1e-9


def test_a_green_posterior_says_what_the_data_decide(tmp_path: Path):
    posterior = fake_posterior(8, draws=1500, seed=2, persistence=0.0)
    posterior.save(tmp_path / "posterior.nc")
    shown = edgewise("summary", tmp_path).stdout
    verdict = judge(posterior)
    assert shown.startswith("500 rows")
    assert f"The data decide {verdict.decided} of 28 pairs." in shown
    assert sum(verdict.counts.values()) == 28


@pytest.mark.parametrize("rows", ["none", "constant", "one constant"])
def test_data_that_cannot_speak_are_never_green(rows: str):
    posterior = fake_posterior(5, draws=1500, persistence=0.0, n_rows=0 if rows == "none" else 200)
    singles = posterior.statistics.singles
    assert diagnose(posterior).light == ("amber" if rows == "none" else "green")
    if rows != "none":
        singles[: 1 if rows == "one constant" else 5] = 0.0
        found = diagnose(posterior)
        assert found.light == "amber"
        assert "not vary" in found.banner or "No variable varies" in found.banner.replace("no v", "No v")


def test_a_fit_that_ran_out_of_time_says_so_in_its_banner():
    posterior = fake_posterior(6, draws=100, persistence=0.9, info={"stop_reason": "max_time"})
    assert "the time allowed ran out; " in diagnose(posterior).banner
    enough = fake_posterior(6, draws=1500, persistence=0.0, info={"stop_reason": "max_time"})
    assert diagnose(enough).banner == ""


def test_remedies_are_python_in_python_and_options_on_the_command_line(tmp_path: Path):
    posterior = fake_posterior(8, draws=100, seed=2, persistence=0.99)
    in_python = build_report(posterior)
    found = re.search(r"extend\(draws=(\S+?)\)", in_python)
    assert found is not None
    assert found[1].isdigit()
    posterior.save(tmp_path / "posterior.nc")
    edgewise("report", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "extend(" not in page
    assert "more draws per chain" in page
    assert in_options("go on with extend(draws=16700).").endswith("(about 16,700 more draws per chain).")


def test_a_seed_is_not_a_quantity_and_zero_has_no_sign():
    page = build_report(fake_posterior(4, draws=50, info={"seed": 1234567}))
    assert "seed 1234567" in page
    assert [signed(value) for value in (-0.001, 0.0, 0.25, -0.25)] == ["0.00", "0.00", "+0.25", "-0.25"]


def test_the_methods_say_which_rows_were_left_out():
    note = ["232 of 435 rows are complete and stay", "constant columns left out: a and b"]
    page = build_report(fake_posterior(4, draws=50, info={"notes": note}))
    methods = page[page.index('id="methods-text"') :]
    assert "232 of 435 rows were complete and used." in methods
    assert "Constant columns were left out: a and b." in methods


def test_tables_fit_into_a_hundred_columns(tmp_path: Path):
    names = [f"a question with a name of about fifty letters, number {k}" for k in range(6)]
    fake_posterior(6, draws=1500, persistence=0.0, names=names).save(tmp_path / "posterior.nc")
    table = edgewise("summary", tmp_path).stdout.split("\n\n")[-1].splitlines()
    rows = [line for line in table if " -- " in line]
    assert len(rows) == 15
    assert max(map(len, rows)) <= 100


def test_options_that_are_named_exist(fitted: Path, votes: Path, tmp_path: Path):
    said = edgewise("plot", "samples", fitted, code=1).stderr
    assert "--grid" in said
    assert "shape=" not in said
    few = tmp_path / "few.csv"
    few.write_text("tax,roads\ny,n\nn,y\n")
    said = edgewise("report", fitted, "--data", few, code=1).stderr
    assert "there is no column 'schools'" in said
    assert "--columns" not in said
    third = tmp_path / "third.csv"
    third.write_text(votes.read_text().replace("y,", "maybe,", 3))
    said = edgewise("report", fitted, "--data", third, "--missing", "drop", code=1).stderr
    assert "has 3 levels" in said
    assert "--drop-columns" not in said


def test_the_command_that_is_suggested_keeps_the_label_as_a_label(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edgewise("simulate", "survey", "-n", "60", "--seed", "1", "-o", "survey.csv", "--truth", "truth.json")
    short = ["--engine", "exact", "--chains", "1", "--draws", "20", "--max-draws", "20"]
    refusal = edgewise("fit", "survey.csv", *short, code=1).stderr.strip().splitlines()
    command = shlex.split(refusal[-1])
    assert command[command.index("--group") + 1] == "region"
    said = edgewise(*command[1:], "-o", "survey").stderr
    assert "12 variables" in said
    assert "region labels the rows and is not a variable" in said
    assert len(json.loads(Path("truth.json").read_text())["cliques"]) == 11


def test_the_estimator_takes_the_columns_that_messages_tell_it_to_drop():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.integers(0, 2, (60, 3)), columns=["a", "b", "c"])
    table.insert(0, "id", [f"p{k}" for k in range(60)])
    with pytest.raises(ValueError, match=r"drop_columns=\['id'\]"):
        SpikeSlabMRF(TOY, progress=False).fit(table)
    model = SpikeSlabMRF(
        TOY, chains=1, min_draws=20, max_draws=20, target_ess=None, progress=False, drop_columns=["id"]
    )
    model.fit(table)
    assert model.posterior_.names == ("a", "b", "c")
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(table.drop(columns="id")))
    rows = rng.integers(0, 2, (60, 4))
    without = SpikeSlabMRF(**{**model.get_params(), "drop_columns": [1]}).fit(rows)
    assert without.posterior_.names == ("x0", "x2", "x3")
    assert without.predict_proba(rows).shape == (60, 3)
