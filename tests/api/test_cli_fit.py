"""``edgewise fit``: what it reads, says, writes, refuses and resumes."""

from __future__ import annotations

import csv
import importlib
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from command import FAST, edgewise, table
from edgewise import load_posterior
from edgewise.cli import messages, opened
from edgewise.run.lock import Lock


def test_fit_writes_posterior_edges_and_report_and_says_what_it_did(votes: Path, tmp_path: Path):
    result = edgewise("fit", votes, "--group", "party", "--missing", "drop", "-o", tmp_path / "new", *FAST)
    assert {"posterior.nc", "edges.csv", "report.html", "checkpoint"} == {
        entry.name for entry in (tmp_path / "new").iterdir()
    }
    assert "75 of 80 rows are complete and stay" in result.stderr
    assert "party labels the rows and is not a variable: left" in result.stderr
    assert "75 rows, 3 variables, 3 candidate edges; 2 chains x 60 draws" in result.stdout
    assert "tax -- roads" in result.stdout
    assert "\x1b" not in result.output
    posterior = load_posterior(tmp_path / "new" / "posterior.nc")
    assert posterior.names == ("tax", "roads", "schools")
    assert posterior.levels == (("n", "y"),) * 3
    edges = table((tmp_path / "new" / "edges.csv").read_text("utf-8-sig"))
    assert sorted(row["edge"] for row in edges) == sorted(posterior.candidates)
    command = posterior.info["command"]
    given = [str(votes), "--group", "party", "--missing", "drop", "-o", str(tmp_path / "new")]
    assert command == shlex.join(["edgewise", "fit", *given, *FAST])
    assert command in (tmp_path / "new" / "report.html").read_text("utf-8").replace("&#x27;", "'")


def test_overwriting_leaves_a_running_fit_alone(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--missing", "drop", "-o", tmp_path / "new", *FAST]
    edgewise(*common)
    checkpoint = tmp_path / "new" / "checkpoint"
    files = {file.name: file.read_bytes() for file in checkpoint.glob("*.npz")}
    running = Lock.take(checkpoint)
    refusal = edgewise(*common, "--overwrite", code=1).stderr
    assert "is in use by another fit" in " ".join(refusal.split())
    assert {file.name: file.read_bytes() for file in checkpoint.glob("*.npz")} == files
    running.release()
    edgewise(*common, "--overwrite")


def test_a_fit_works_everything_out_once(votes: Path, tmp_path: Path, monkeypatch):
    counts: dict[str, int] = {}

    def count(place: str, name: str) -> None:
        module = importlib.import_module(place)
        original = getattr(module, name)

        def counted(*arguments, **options):
            counts[name] = counts.get(name, 0) + 1
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, counted)

    count("edgewise.fitting", "resolve_features")
    count("edgewise.blanks", "sufficient_statistics")
    count("edgewise.run.chains", "problem_digest")
    count("edgewise.run.chains", "versions")
    count("edgewise.posterior.diagnostics", "diagnose")
    count("edgewise.data.table", "_labels")
    edgewise("fit", votes, "--missing", "drop", "-o", tmp_path / "once", *FAST)
    assert counts == dict.fromkeys(counts, 1)
    assert len(counts) == 6


def test_the_command_of_a_posterior_has_the_seed_it_was_made_with(votes: Path, tmp_path: Path):
    unseeded = FAST[:-2]
    edgewise("fit", votes, "--missing", "drop", "-o", tmp_path / "a", "-q", *unseeded)
    posterior = load_posterior(tmp_path / "a" / "posterior.nc")
    again = shlex.split(posterior.info["command"])[1:]
    again[again.index("-o") + 1] = str(tmp_path / "b")
    edgewise(*again)
    repeated = load_posterior(tmp_path / "b" / "posterior.nc")
    assert np.array_equal(repeated._joined.values, posterior._joined.values)
    assert repeated.info["data_digest"] == posterior.info["data_digest"]


def test_fit_reads_standard_input_and_answers_in_json(votes: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = edgewise(
        "fit", "-", "--missing", "drop", "--json", "--coding", "ising", *FAST, stdin=votes.read_text("utf-8")
    )
    answer = json.loads(result.stdout)
    assert answer["rows"] == 75
    assert answer["variables"] == ["party", "tax", "roads", "schools"]
    assert len(answer["edges"]) == 6
    assert answer["coding"] == "ising"
    posterior = load_posterior("stdin-edgewise/posterior.nc")
    edge = answer["edges"][0]
    chosen = posterior.features.index(edge["edge"].split(" -- "), posterior.names)
    assert edge["mean"] == pytest.approx(posterior.edge_values("mean", coding="ising")[chosen])
    assert Path(answer["files"]["report.html"]).exists()


def test_quiet_says_nothing_but_the_result(votes: Path, tmp_path: Path):
    result = edgewise(
        "fit", votes, "--group", "party", "--missing", "drop", "-o", tmp_path / "q", "-q", *FAST
    )
    assert result.stderr == ""
    assert "candidate edges" in result.stdout


def test_a_text_column_nobody_asked_for_is_pointed_out(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--missing", "drop", "--overwrite", "-o", tmp_path / "x", *FAST]
    pointed_out = "the text column 'party' is used as a variable, 'left' as 0 and 'right' as 1"
    result = edgewise(*common)
    assert result.stderr.index(pointed_out) < result.stderr.index("Writing the results")
    assert "--group party" in result.stderr
    assert "column 'tax'" not in result.stderr
    assert pointed_out not in edgewise(*common, "--group", "party").stderr
    assert pointed_out not in edgewise(*common, "--columns", "party,tax,roads").stderr


def test_the_refusal_of_a_messy_table_gives_a_command_that_works(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("messy table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "alive", "Smith, John", "a", "b", "mostly 'blank'"])
        for row in range(40):
            cells = rng.integers(0, 2, 3).tolist()
            writer.writerow([f"p{row}", 1, "" if row == 7 else cells[0], *cells[1:], "" if row else 1])
    result = edgewise("fit", "messy table.csv", "--missing", "error", *FAST, code=1)
    assert result.stderr.startswith("Error: messy table.csv has 3 problems, worst first:")
    assert "--constant drop" in result.stderr
    assert "drop_columns" not in result.stderr
    assert not Path("messy table-edgewise").exists()
    lines = result.stderr.strip().splitlines()
    assert lines[-2] == "To go on without repairing it (leaves 39 rows and 3 columns):"
    command = shlex.split(lines[-1])
    assert command[0] == "edgewise"
    assert "39 rows, 3 variables" in edgewise(*command[1:]).stderr


def test_columns_with_commas_quotes_and_numbers_can_be_named(tmp_path: Path):
    path = tmp_path / "names.csv"
    path.write_text('"a,b",it\'s,3,x\n' + "0,1,0,1\n1,0,0,0\n1,1,1,0\n" * 5)
    common = ["fit", path, "-o", tmp_path / "n", "--overwrite", "-q", "--json", *FAST]
    assert json.loads(edgewise(*common, "--drop-columns", '"a,b"').stdout)["variables"] == ["it's", "3", "x"]
    chosen = json.loads(edgewise(*common, "--columns", "0,3", "--columns", "it's").stdout)["variables"]
    assert chosen == ["a,b", "3", "it's"]


def test_columns_keep_the_order_they_are_asked_for_in(votes: Path, tmp_path: Path):
    wanted = ["schools", "party", "roads", "tax"]
    common = ["fit", votes, "--missing", "drop", "-q", *FAST]
    edgewise(*common, "--columns", ",".join(wanted), "-o", tmp_path / "c")
    posterior = load_posterior(tmp_path / "c" / "posterior.nc")
    complete = [row for row in table(votes.read_text("utf-8")) if all(row.values())]
    ones = [sum(row[name] in ("y", "right") for row in complete) for name in wanted]
    assert posterior.names == tuple(wanted)
    assert posterior.statistics.singles.tolist() == ones


def test_prior_options_reach_the_posterior(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--group", "party", "--missing", "drop", "-q", *FAST, "-o"]
    edgewise(*common, tmp_path / "fixed", "--p0", "0.2", "--sigma0", "0.7", "--bias-sd", "3")
    edgewise(
        *common,
        tmp_path / "learned",
        *["--beta", "1", "3", "--slab", "2", "0.5", "--forced", "tax -- roads", "--forbidden", "tax,schools"],
    )
    prior = load_posterior(tmp_path / "fixed" / "posterior.nc").prior
    assert (prior.inclusion.p0, prior.slab.sigma0, prior.bias.sd) == (0.2, 0.7, 3.0)
    posterior = load_posterior(tmp_path / "learned" / "posterior.nc")
    prior = posterior.prior
    assert (prior.inclusion.a, prior.inclusion.b, prior.slab.shape, prior.slab.rate) == (1, 3, 2, 0.5)
    assert (posterior.draws_of(("tax", "roads")) != 0).all()
    assert (posterior.draws_of(("tax", "schools")) == 0).all()


def test_features_and_settings_reach_the_engine(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--group", "party", "--missing", "drop", "-q", *FAST]
    edgewise(*common, "-o", tmp_path / "t", "--features", "3", "--set", "warm_up=7")
    posterior = load_posterior(tmp_path / "t" / "posterior.nc")
    assert posterior.n_cliques == 4
    assert posterior.info["warm_up"] == 7
    assert "Which cliques are included" in edgewise("summary", tmp_path / "t").stdout
    refusal = edgewise("summary", tmp_path / "t", "--coding", "ising", code=1).stderr
    assert "Use --coding binary" in refusal
    assert "no setting" in edgewise(*common, "-o", tmp_path / "u", "--set", "colour=red", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--p0", "2"], "--p0 must lie strictly between 0 and 1"),
        (["--p0", "0.5", "--beta", "1", "1"], "--p0 fixes what --beta"),
        (["--slab", "1", "-1"], "RATE of --slab must be a positive number"),
        (["--max-time", "soon"], "'--max-time': 'soon' is not a time"),
        (["--grid", "eight"], "'--grid': 'eight' is not a grid"),
        (["--set", "particles"], "--set takes NAME=VALUE"),
        (["--chain", "2"], "--chains"),
        (["--missing", "guess"], "drop"),
    ],
)
def test_a_wrong_command_is_refused_with_code_2(votes: Path, arguments: list[str], words: str):
    result = edgewise("fit", votes, *arguments, code=2)
    assert words in result.stderr
    assert result.stderr.rstrip().endswith("See: edgewise fit --help")
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "vots.csv"], "did you mean votes.csv?"),
        (["fit", "votes.csv", "--group", "prty"], "did you mean 'party'?"),
        (["fit", "votes.csv", "--missing", "drop", "--forced", "tax,rods"], "no variable named 'rods'"),
        (["fit", "votes.csv", "--missing", "drop", "--engine", "bayes"], "There is no engine 'bayes'"),
        (["fit", "votes.csv", "--missing", "drop", "-o", "votes.csv"], "-o takes a directory"),
        (
            ["fit", "votes.csv", "--missing", "drop", "--draws", "9", "--max-draws", "4"],
            "--draws 9 is more than",
        ),
        (["summary", "."], "There is no posterior.nc in '.'"),
        (["summary", "votes.csv"], "is not a NetCDF file"),
        (["summary", "nowhere"], "There is no file nowhere"),
    ],
)
def test_bad_data_and_files_are_refused_with_code_1(votes: Path, monkeypatch, arguments, words: str):
    monkeypatch.chdir(votes.parent)
    result = edgewise(*arguments, code=1)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert words in last
    assert "Traceback" not in result.output
    assert [entry.name for entry in Path().iterdir()] == ["votes.csv"]


def test_debug_shows_the_traceback_before_or_after_the_command():
    for arguments in (["--debug", "summary", "nowhere"], ["summary", "nowhere", "--debug"]):
        result = edgewise(*arguments, code=1)
        assert result.stderr.startswith("Traceback")
        assert result.stderr.rstrip().endswith("There is no file nowhere.")


def test_a_mistake_of_ours_is_one_paragraph_too(monkeypatch, fitted: Path):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("one by nought")

    monkeypatch.setattr(opened, "open_posterior", broken)
    result = edgewise("summary", fitted, code=1)
    assert "This should not have happened: ZeroDivisionError: one by nought." in result.stderr
    assert "edgewise doctor" in result.stderr


def test_earlier_results_are_not_overwritten_unasked(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--missing", "drop", "-o", tmp_path / "keep", *FAST]
    edgewise(*common)
    before = (tmp_path / "keep" / "posterior.nc").read_bytes()
    refusal = edgewise(*common, code=1).stderr
    assert "--resume" in refusal
    assert "--overwrite" in refusal
    assert (tmp_path / "keep" / "posterior.nc").read_bytes() == before
    edgewise(*common, "--overwrite", "--seed", "2")
    assert load_posterior(tmp_path / "keep" / "posterior.nc").info["seed"] == 2


def test_resume_goes_on_with_more_draws(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--missing", "drop", *FAST, "-o"]
    edgewise(*common, tmp_path / "short")
    edgewise(*common, tmp_path / "short", "--resume", "--max-draws", "90", "--draws", "90")
    edgewise(*common, tmp_path / "long", "--max-draws", "90", "--draws", "90")
    short, long = (load_posterior(tmp_path / name / "posterior.nc") for name in ("short", "long"))
    assert short.n_draws == 90
    assert np.array_equal(short._joined.values, long._joined.values)
    assert "--resume" not in short.info["command"]


def test_resume_without_anything_to_go_on_from(votes: Path, tmp_path: Path):
    common = ["fit", votes, "--missing", "drop", "-o", tmp_path / "r", *FAST, "--resume"]
    assert "this is a new fit" in edgewise(*common).stderr
    messages_of_another = edgewise(*common, "--p0", "0.3", code=1).stderr
    assert "belongs to another fit" in messages_of_another
    shutil.rmtree(tmp_path / "r" / "checkpoint")
    assert "no checkpoint" in edgewise(*common, code=1).stderr


def test_not_enough_draws_says_so_with_the_command_that_goes_on(votes: Path, tmp_path: Path):
    result = edgewise("fit", votes, "--missing", "drop", "-o", tmp_path / "few", *FAST)
    assert "Few effective draws" in result.stdout
    assert "extend(" not in result.output
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("For more precision: edgewise fit ")
    assert last.endswith("--resume --max-draws 20000")


def test_messages_speak_in_options():
    words = messages.in_options(
        "column 'max_time' is odd; leave it out with drop_columns=[\"it's\", 'a]b'] or raise max_time, "
        "and use missing='drop'."
    )
    assert words == (
        "column 'max_time' is odd; leave it out with --drop-columns 'it'\"'\"'s,a]b' or raise --max-time, "
        "and use --missing drop."
    )


def test_a_fit_that_ran_out_of_time_or_disk_says_how_to_go_on(votes: Path, tmp_path: Path, capsys):
    common = ["fit", str(votes), "--missing", "drop", *FAST, "-o", str(tmp_path / "t")]
    result = edgewise(*common, "--max-time", "0.001s")
    assert "The time is over" in result.stderr
    assert (
        result.stderr.strip().splitlines()[-1]
        == f"To go on where it stopped: {shlex.join(['edgewise', *common])} --max-time 0.001s --resume"
    )
    edgewise(*common, "--resume")
    messages.session.resume = "edgewise fit x --resume"
    messages.fail("It is full: make room and run the same fit again to go on from there.", 1)
    assert capsys.readouterr().err == (
        "Error: It is full: make room.\nTo go on where it stopped: edgewise fit x --resume\n"
    )


def test_a_grid_that_does_not_fit_is_found_before_the_fit(votes, tmp_path):
    refused = edgewise(
        "fit", votes, "--group", "party", "--missing", "drop", "--grid", "5x5", "-o", tmp_path / "f", code=1
    )
    assert "A grid of 5 x 5 has 25 places" in refused.stderr
    assert not (tmp_path / "f").exists() or not list((tmp_path / "f").rglob("*.npz"))
