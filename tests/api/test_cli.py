"""Looking at a posterior from the command line, using it, and making data."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from command import FAST, edgewise, table, written
from edgewise import MRF, load_posterior
from edgewise.cli import options
from edgewise.data import read_data
from edgewise.plots import PLOTS
from edgewise.predict import conditional_probability


def test_the_home_of_nobody_is_no_directory(fitted: Path, votes: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (
        ["fit", votes, "-o", "~nosuchuser/x"],
        ["fit", votes, "-o", "x", "--checkpoint", "~nosuchuser/x"],
        ["demo", "-o", "~nosuchuser/x"],
        ["summary", "~nosuchuser/x"],
        ["export", "edges", fitted, "-o", "~nosuchuser/x.csv"],
    ):
        assert "there is no user of that name" in edgewise(*command, code=1).stderr
    assert not list(tmp_path.iterdir())


def test_summary_shows_the_edges_as_text_and_json(fitted: Path):
    posterior = load_posterior(fitted / "posterior.nc")
    text = edgewise("summary", fitted, "--top", "1").stdout
    assert "... and 2 more (--top 0 shows all)." in text
    whole = edgewise("summary", fitted / "posterior.nc", "--top", "0").stdout
    assert all(label in whole for label in posterior.candidates)
    answer = json.loads(edgewise("summary", fitted, "--json").stdout)
    order = [edge["edge"] for edge in answer["edges"]]
    assert order == [
        posterior.candidates[k] for k in np.argsort(-posterior.edge_values("inclusion"), kind="stable")
    ]
    assert answer["quality"]["light"] in ("green", "amber", "red")


def test_every_kind_of_plot_is_offered():
    assert set(options.PLOT_KINDS) == set(PLOTS)


# Those of a prior with communities and of compared groups have tests beside those fits.
OF_OTHER_FITS = {"communities", "difference-network", "difference-forest"}


@pytest.mark.parametrize("kind", [kind for kind in options.PLOT_KINDS if kind not in OF_OTHER_FITS])
def test_plot(kind: str, fitted: Path, votes: Path, tmp_path: Path):
    extra = {
        "predictive": ["--data", votes, "--missing", "drop", "--check", "means"],
        "precision-recall": ["--truth", tmp_path / "truth.json"],
        "samples": ["--grid", "1x3"],
        "network": ["--threshold", "0.2", "--title", "Votes"],
        "trace": ["--parameter", "tax -- roads"],
        "forest": ["--coding", "ising", "--edges", "2"],
    }
    (tmp_path / "truth.json").write_text(
        MRF([0, 0, 0], [(0, 1)], [1.0], ["tax", "roads", "schools"]).to_json()
    )
    picture = tmp_path / f"{kind}.{'svg' if kind == 'network' else 'png'}"
    edgewise("plot", kind, fitted, "-o", picture, "--dpi", "40", *extra.get(kind, []))
    content = picture.read_bytes()
    assert content.startswith(b"<?xml" if kind == "network" else b"\x89PNG")
    if kind == "network":
        assert b"Votes" in content


def test_plot_to_standard_output_and_its_refusals(fitted: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert edgewise("plot", "p0", fitted, "-o", "-", "--dpi", "40").stdout_bytes.startswith(b"\x89PNG")
    edgewise("plot", "inclusion", fitted, "--dpi", "40")
    assert Path("inclusion.png").exists()
    assert "did you mean network?" in edgewise("plot", "netwrk", fitted, code=2).stderr
    assert (
        "does not take --grid; it takes --parameter"
        in edgewise("plot", "trace", fitted, "--grid", "1x3", code=2).stderr
    )
    assert "--data FILE" in edgewise("plot", "predictive", fitted, code=2).stderr
    assert "--truth FILE" in edgewise("plot", "precision-recall", fitted, code=2).stderr
    assert "should end in .png" in edgewise("plot", "p0", fitted, "-o", "picture.bmp", code=2).stderr


def test_report(fitted: Path, votes: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    edgewise(
        "report",
        fitted,
        "--data",
        votes,
        "--group",
        "party",
        "--missing",
        "drop",
        "-o",
        page,
        "--title",
        "A <b>",
    )
    text = page.read_text("utf-8")
    assert "A &lt;b&gt;" in text
    assert "party" in text
    streamed = edgewise("report", fitted, "-o", "-").stdout
    assert streamed.startswith("<!DOCTYPE html>") or streamed.startswith("<!doctype html>")
    (fitted / "report.html").unlink()
    edgewise("report", fitted)
    assert (fitted / "report.html").exists()


def test_data_of_another_fit_are_noticed(fitted: Path, votes: Path, tmp_path: Path):
    lines = votes.read_text("utf-8").splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines[:40]))
    note = edgewise("report", fitted, "--data", part, "--missing", "drop", "-o", tmp_path / "r.html").stderr
    assert "is not the table of the fit: it has 36 rows where the fit had 75 rows" in note


def test_compare_two_posteriors(fitted: Path, votes: Path, tmp_path: Path):
    edgewise("fit", votes, "--missing", "drop", "-o", tmp_path / "with", "-q", *FAST)
    result = edgewise("compare", fitted, tmp_path / "with")
    assert "3 variables, 3 pairs" in result.stdout
    assert "different data" in result.stdout
    assert "left out: party" in result.stderr
    same = json.loads(edgewise("compare", fitted, fitted, "--json").stdout)
    assert same["same_data"]
    assert same["beyond_monte_carlo_error"] == 0
    assert same["edges_both"] == same["edges_first"] == same["edges_second"]
    assert same["coupling_rms_difference"] == 0


def test_compare_with_a_lasso_and_with_the_truth(fitted: Path, votes: Path, tmp_path: Path):
    posterior = load_posterior(fitted / "posterior.nc")
    for method in ("nodewise", "pseudo-likelihood"):
        result = json.loads(
            edgewise(
                "compare", fitted, "--lasso", votes, "--missing", "drop", "--method", method, "--json"
            ).stdout
        )
        assert result["second"] == "lasso"
        assert result["edges_first"] == int((posterior.edge_values("inclusion") >= 0.5).sum())
        assert len(result["pairs"]) == 3
    truth = tmp_path / "truth.json"
    truth.write_text(MRF([0, 0, 0], [(0, 1)], [1.0], posterior.names).to_json())
    text = edgewise("compare", fitted, truth, "--truth", truth).stdout
    assert "against the truth" in text
    scores = json.loads(edgewise("compare", fitted, truth, "--truth", truth, "--json").stdout)["scores"]
    assert scores[str(truth)]["f1"] == 1
    assert "one thing to compare with" in edgewise("compare", fitted, code=2).stderr
    assert "cannot be read" in edgewise("compare", fitted, tmp_path / "no.json", code=1).stderr
    assert "not a model" in edgewise("compare", fitted, written(tmp_path / "x.json", "{}"), code=1).stderr


def test_predict_gives_the_probability_of_every_blank(fitted: Path, votes: Path, tmp_path: Path):
    posterior = load_posterior(fitted / "posterior.nc")
    rows = written(tmp_path / "rows.csv", "schools,tax,roads\ny,,n\nn,y,y\n,,\n")
    found = table(edgewise("predict", fitted, rows).stdout)
    assert [(cell["row"], cell["variable"], cell["level"]) for cell in found] == [
        ("1", "tax", "y"),
        *(("3", name, "y") for name in posterior.names),
    ]
    cells = np.array([[-1, 0, 1], [1, 1, 0], [-1, -1, -1]])
    expected = conditional_probability(posterior.mixture(100), cells)
    assert float(found[0]["probability"]) == pytest.approx(expected[0, 0], abs=1e-5)
    assert [float(cell["probability"]) for cell in found[1:]] == pytest.approx(expected[2], abs=1e-5)
    same = json.loads(edgewise("predict", fitted, "-", "--json", stdin=rows.read_text("utf-8")).stdout)
    assert [cell["probability"] for cell in same] == pytest.approx(
        [float(c["probability"]) for c in found], abs=1e-5
    )


def test_predict_targets_without_looking_at_them(fitted: Path, tmp_path: Path):
    posterior = load_posterior(fitted / "posterior.nc")
    rows = written(tmp_path / "rows.csv", "tax,roads,schools\ny,y,y\nn,y,y\n")
    output = tmp_path / "wide.csv"
    edgewise("predict", fitted, rows, "--target", "tax,schools", "--wide", "-o", output)
    found = table(output.read_text("utf-8"))
    assert list(found[0]) == ["row", "P(tax = y)", "P(schools = y)"]
    assert found[0]["P(tax = y)"] == found[1]["P(tax = y)"]
    expected = conditional_probability(posterior.mixture(100), np.array([[-1, 1, -1]]), [0, 2])
    assert float(found[0]["P(schools = y)"]) == pytest.approx(expected[0, 1], abs=1e-5)
    assert "no blank cell" in edgewise("predict", fitted, rows, code=1).stderr
    assert "did you mean 'tax'?" in edgewise("predict", fitted, rows, "--target", "taxes", code=1).stderr
    strange = written(tmp_path / "strange.csv", "tax,roads,schools\nmaybe,,y\n")
    assert "has 'maybe' (line 2)" in edgewise("predict", fitted, strange, code=1).stderr


def test_sample_speaks_the_language_of_the_data(fitted: Path, tmp_path: Path):
    first = edgewise("sample", fitted, "-n", "50", "--seed", "4").stdout
    rows = table(first)
    assert len(rows) == 50
    assert list(rows[0]) == ["tax", "roads", "schools"]
    assert {cell for row in rows for cell in row.values()} == {"n", "y"}
    edgewise("sample", fitted, "-n", "50", "--seed", "4", "-o", tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text("utf-8") == first
    assert edgewise("sample", fitted, "-n", "50", "--seed", "5").stdout != first


def test_export_graphml_and_tables(fitted: Path, tmp_path: Path):
    import networkx

    posterior = load_posterior(fitted / "posterior.nc")
    edgewise("export", "graphml", fitted, "--threshold", "0.3", "-o", tmp_path / "g.graphml")
    graph = networkx.read_graphml(tmp_path / "g.graphml")
    assert set(graph.nodes) == set(posterior.names)
    assert graph.number_of_edges() == int((posterior.edge_values("inclusion") >= 0.3).sum())
    for a, b, values in graph.edges(data=True):
        k = posterior.features.index((a, b), posterior.names)
        assert values["inclusion"] == pytest.approx(posterior.edge_values("inclusion")[k])
    assert graph.nodes["tax"]["bias"] == pytest.approx(posterior.biases().mean(axis=(0, 1))[0])
    edges = table(edgewise("export", "edges", fitted, "--coding", "ising").stdout)
    assert len(edges) == 3
    model = MRF.from_json(edgewise("export", "model", fitted).stdout)
    assert model == posterior.median_model
    edgewise("export", "weights", fitted, "-o", tmp_path / "w.csv")
    assert MRF.from_csv(tmp_path / "w.csv") == model
    assert "the formats are graphml" in edgewise("export", "xml", fitted, code=2).stderr


@pytest.mark.parametrize("mean", [False, True])
def test_exported_couplings_and_fields_are_those_of_the_ising_model(fitted: Path, mean: bool):
    posterior = load_posterior(fitted / "posterior.nc")
    extra = ["--mean"] if mean else []
    lines = list(csv.reader(io.StringIO(edgewise("export", "J", fitted, *extra).stdout)))
    assert lines[0] == ["J", *posterior.names]
    coupling = np.array([[float(cell) for cell in line[1:]] for line in lines[1:]])
    field = np.array([float(row["h"]) for row in table(edgewise("export", "h", fitted, *extra).stdout)])
    if mean:
        assert np.allclose(coupling, posterior.coupling() / 4)
        assert np.allclose(field, posterior.biases("ising").mean(axis=(0, 1)))
    else:
        again = MRF.from_ising(coupling, field, posterior.names)
        assert np.allclose(again.biases, posterior.median_model.biases)
        assert np.allclose(again.coupling, posterior.median_model.coupling)


@pytest.mark.parametrize(
    ("kind", "extra", "shape"),
    [
        ("block", [], (12, None)),
        ("lattice", ["--size", "2x3"], (6, 7)),
        ("chain", ["-p", "5"], (5, 4)),
        ("ring", ["-p", "5"], (5, 5)),
        ("tree", ["-p", "5"], (5, 4)),
        ("erdos-renyi", ["-p", "6", "--degree", "2"], (6, None)),
        ("barabasi-albert", ["-p", "6", "--degree", "2"], (6, None)),
    ],
)
def test_simulate(kind: str, extra: list[str], shape: tuple[int, int | None], tmp_path: Path):
    common = ["simulate", kind, "-n", "30", "--seed", "2", *extra]
    edgewise(*common, "-o", tmp_path / "d.csv", "--truth", tmp_path / "t.json")
    assert edgewise(*common).stdout == (tmp_path / "d.csv").read_text("utf-8")
    truth = MRF.from_json((tmp_path / "t.json").read_text("utf-8"))
    assert truth.n_variables == shape[0]
    assert shape[1] is None or len(truth.cliques) == shape[1]
    data = read_data(tmp_path / "d.csv", constant="keep")
    assert (data.n_rows, data.names) == (30, truth.names)


def test_simulate_refuses_unknown_kinds():
    assert "the kinds are survey, block" in edgewise("simulate", "cube", code=2).stderr


def test_prior_shows_what_it_expects(tmp_path: Path):
    picture = tmp_path / "prior.png"
    arguments = ["prior", "--variables", "6", "--rows", "200", "--sigma0", "2", "-o", str(picture)]
    words = edgewise(*arguments, "--networks", "2").stdout
    assert "6 variables, 15 pairs" in words
    assert "With 200 rows" in words
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads(edgewise(*arguments, "--json").stdout)
    assert told["prior"]["slab"]["sigma0"] == 2
    assert 6 < told["largest_factor_against"] < 8
    assert "one of them" in edgewise(*arguments, "--slab", "3", "3", code=2).stderr


def test_prior_of_named_variables(tmp_path: Path):
    picture, table = tmp_path / "prior.svg", tmp_path / "items.csv"
    table.write_text("item,scale\na,x\nb,x\nc,y\nd,y\n", "utf-8")
    said = edgewise(
        "prior", "--attributes", "scale", "--attribute-table", str(table), "-o", str(picture)
    ).stdout
    assert "4 variables, 6 pairs" in said
    own = tmp_path / "prior.toml"
    own.write_text('edge_slab = [[["mood", "sleep"], [0.8, 0.3]]]\n', "utf-8")
    assert "15 variables" in edgewise("prior", "--prior", str(own), "-o", str(picture)).stdout
    named = ("prior", "--prior", str(own), "-o", str(picture), "--names")
    assert "3 variables" in edgewise(*named, "mood,sleep,2").stdout
    assert "sleep" in edgewise(*named, "mood,work", code=1).stderr
    assert "random" not in edgewise("prior", "--help").stdout


def test_prior_of_a_large_screen_is_drawn(tmp_path: Path):
    picture = tmp_path / "prior.png"
    said = edgewise("prior", "-p", "1000", "--networks", "1", "-o", str(picture)).stdout
    assert "1000 variables, 499,500 pairs" in said
    assert picture.stat().st_size < 1e6
