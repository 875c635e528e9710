"""What newcomers met in their first hour: words, numbers and commands that must stay mended."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest

from command import edgewise
from edgewise import SpikeSlabMRF, load_posterior
from edgewise.cli import shown
from edgewise.cli.messages import in_options, wrapped
from edgewise.posterior.columns import signed
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.verdict import judge
from edgewise.report.build import build_report
from edgewise.run.console import Console
from helpers import fake_posterior
from toy_engine import TOY


def test_a_red_posterior_is_not_counted_in_the_terminal(tmp_path: Path):
    fake_posterior(8, draws=100, seed=2, persistence=0.99).save(tmp_path / "posterior.nc")
    said = edgewise("summary", tmp_path).stdout
    assert said.startswith(" RED ")
    assert "No count, probability or Bayes factor of it can be quoted yet." in said.splitlines()[0]
    assert "included with strong evidence" not in said
    assert "The data decide" not in said
    assert "Where the chains are so far; not to be quoted:" in said
    told = json.loads(edgewise("summary", tmp_path, "--json").stdout)
    assert told["quality"]["banner"].startswith("Red: ")
    assert told["decided"] is None
    least = diagnose(load_posterior(tmp_path / "posterior.nc")).min_ess
    assert max(abs(edge["log10_bf"]) for edge in told["edges"]) <= np.log10(max(least, 1)) + 1e-9


def test_a_green_posterior_says_what_the_data_decide(tmp_path: Path):
    posterior = fake_posterior(8, draws=1500, seed=2, persistence=0.0)
    posterior.save(tmp_path / "posterior.nc")
    said = edgewise("summary", tmp_path).stdout
    verdict = judge(posterior)
    assert said.startswith("500 rows")
    assert f"The data decide {verdict.decided} of 28 pairs." in said
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
    page = (tmp_path / "report.html").read_text("utf-8")
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


@pytest.mark.parametrize("width", [80, 60])
def test_nothing_is_cut_off_in_a_narrow_terminal(width: int, monkeypatch):
    names = [f"a question with a name of about fifty letters, number {k}" for k in range(6)]
    posterior = fake_posterior(6, draws=1500, persistence=0.0, names=names)
    narrow = shown_in(posterior, width, monkeypatch)
    lines = narrow.splitlines()
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if " -- " in line]
    assert len(rows) == 15
    # Names are shortened, numbers and words never are.
    for line in rows:
        assert re.search(r" \d\.\d{3} .*(presence|absence|inconclusive) *$", line), line
        assert re.match(r"a .*… -- a .*… ", line), line
    assert "interval" not in narrow
    assert "interval" in shown_in(posterior, 200, monkeypatch)


def shown_in(posterior, width: int, monkeypatch) -> str:
    """What is shown of a posterior in a terminal of so many columns."""
    out = io.StringIO()
    monkeypatch.setattr(shown, "console", lambda: Console(file=out, width=width))
    shown.show_posterior(posterior, diagnose(posterior), top=0)
    return out.getvalue()


REFUSING = ["--missing", "error"]


def test_errors_are_broken_between_words_and_commands_are_not(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edgewise("simulate", "survey", "-n", "200", "--seed", "1", "-o", "a survey with a long name.csv")
    refusal = edgewise(
        "fit", "a survey with a long name.csv", "--columns", "region,smokes,worries", *REFUSING, code=1
    )
    told = refusal.stderr.strip()
    lines = wrapped(told, 60).split("\n")
    assert [line for line in lines if len(line) > 60 and "edgewise fit" not in line] == []
    assert told.split("\n")[-1] in lines
    assert " ".join(told.split()) == " ".join(" ".join(lines).split())


def test_colours_by_a_file_of_groups(fitted: Path, tmp_path: Path):
    groups = tmp_path / "topics.csv"
    groups.write_text("vote,topic\ntax,money\nroads,money\nschools,people\n")
    edgewise("plot", "network", fitted, "--color-by", groups, "-o", tmp_path / "network.svg")
    drawn = (tmp_path / "network.svg").read_text("utf-8")
    assert "<!-- money -->" in drawn
    assert "<!-- people -->" in drawn
    edgewise("report", fitted, "--color-by", groups, "-o", tmp_path / "report.html")
    assert '"groups":["money","people"]' in (tmp_path / "report.html").read_text("utf-8")
    groups.write_text("tax,money\n")
    said = edgewise("plot", "network", fitted, "--color-by", groups, code=1).stderr
    assert "has no group for 'roads' and 1 more; it has tax." in said
    groups.write_text("tax\n")
    assert (
        "line 1: there is no second column" in edgewise("report", fitted, "--color-by", groups, code=1).stderr
    )
    said = edgewise("plot", "network", fitted, "--color-by", tmp_path / "nothing.csv", code=1).stderr
    assert "--color-by takes a CSV file" in said


def test_centrality_and_structures_are_kinds_of_plots(fitted: Path, tmp_path: Path):
    for arguments in (("centrality",), ("centrality", "--measure", "expected influence"), ("structures",)):
        path = tmp_path / f"{len(arguments)}{arguments[0]}.png"
        edgewise("plot", arguments[0], fitted, *arguments[1:], "-o", path)
        assert path.stat().st_size > 5_000
    assert (
        "no centrality 'fame'" in edgewise("plot", "centrality", fitted, "--measure", "fame", code=1).stderr
    )


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
    third.write_text(votes.read_text("utf-8").replace("y,", "maybe,", 3))
    said = edgewise("report", fitted, "--data", third, "--missing", "drop", code=1).stderr
    assert "has 3 levels" in said
    assert "--drop-columns" not in said


def test_the_command_that_is_suggested_keeps_the_label_as_a_label(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edgewise("simulate", "survey", "-n", "60", "--seed", "1", "-o", "survey.csv", "--truth", "truth.json")
    short = ["--engine", "exact", "--chains", "1", "--draws", "20", "--max-draws", "20"]
    refusal = edgewise("fit", "survey.csv", *short, *REFUSING, code=1).stderr.strip().splitlines()
    command = shlex.split(refusal[-1])
    assert command[command.index("--group") + 1] == "region"
    said = edgewise(*command[1:], "-o", "survey").stderr
    assert "12 variables" in said
    assert "region labels the rows and is not a variable" in said
    assert len(json.loads(Path("truth.json").read_text("utf-8"))["cliques"]) == 11


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
