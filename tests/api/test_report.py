"""The report as a file: complete, self-contained, small, and deaf to hostile names."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from edgewise import Posterior
from edgewise.data import read_data
from edgewise.draws import Draws
from edgewise.errors import DataError, FileError
from edgewise.features import Features, Statistics
from edgewise.posterior.diagnostics import diagnose
from edgewise.priors import FixedInclusion, FixedSlab, Prior
from edgewise.report import write_edges_csv, write_report
from edgewise.report.payload import MOST_EDGES, choose_edges
from helpers import fake_posterior, sparse_draws

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=2</script>",
    "<img src=x onerror='window.hacked=3'>",
    "\"'><b onclick=window.hacked=4>",
    "{{payload}}",
    '=HYPERLINK("http://evil.example")',
    "\u2028日本 ünï\u202e",
    "<!--",
]


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text of each script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data):
        if self._inside:
            if self._inside[-1] == "script":
                self.scripts[-1] += data
        else:
            self.text += data

    def attributes(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def payload(self):
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def posterior():
    return fake_posterior(9, seed=2, info={"notes": ["3 rows with missing cells were dropped."]})


@pytest.fixture(scope="module")
def page(posterior, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(posterior, path, title="Votes", command="edgewise fit votes.csv --seed 2") == path
    return Page(path)


def test_the_page_has_all_its_parts(page):
    sections = {attributes.get("id") for attributes in page.attributes("section")}
    assert sections >= {
        "question",
        "answer",
        "network",
        "edges",
        "evidence",
        "hyper",
        "diagnostics",
        "notes",
        "methods",
        "reproduce",
    }
    assert "3 rows with missing cells were dropped." in page.text
    assert "edgewise fit votes.csv --seed 2" in page.text
    assert "0" * 64 in page.text
    links = {a["href"][1:] for a in page.attributes("a")}
    assert links <= {attributes.get("id") for _, attributes in page.elements}


@pytest.mark.parametrize(("persistence", "light"), [(0.99, "red"), (0.7, "amber")])
def test_a_page_whose_light_is_not_green_says_so_first(persistence, light, tmp_path):
    posterior = fake_posterior(9, seed=2, persistence=persistence)
    found = diagnose(posterior)
    assert found.light == light
    page = Page(write_report(posterior, tmp_path / "page.html"))
    assert page.attributes("body")[0]["data-light"] == light
    assert page.text.index(found.banner.partition(": ")[2]) < page.text.index("What was asked")
    if light == "red":
        assert "is not counted while the light is red" in page.text
        assert "included with strong evidence" not in page.text
        assert "How many pairs the data decide is not known" in page.text
    else:
        assert "Provisionally:" in page.text
        assert "counted withheld" in (tmp_path / "page.html").read_text("utf-8")


def test_the_answer_counts_every_candidate_once(tmp_path):
    posterior = fake_posterior(9, draws=1500, seed=2, persistence=0.0)
    assert diagnose(posterior).light == "green"
    page = Page(write_report(posterior, tmp_path / "green.html"))
    assert page.attributes("body")[0]["data-light"] == "green"
    assert 'class="banner' not in (tmp_path / "green.html").read_text("utf-8")
    decided = int((posterior.edge_values("evidence") != "inconclusive").sum())
    assert f"The data decide {decided} of 36 pairs." in page.text
    counts = posterior.summary()["evidence"].value_counts()
    for word in ("strong presence", "presence", "inconclusive", "absence", "strong absence"):
        assert re.search(rf"(?<!strong ){word}: {counts.get(word, 0):,}(?!\d)", page.text)
    assert sum(page.payload["counts"]) == posterior.n_cliques
    lead = re.search(
        r"(\d+) edges? included with strong evidence, (\d+) with some; (\d+) undecided", page.text
    )
    assert [int(part) for part in lead.groups()] == [
        counts.get(word, 0) for word in ("strong presence", "presence", "inconclusive")
    ]


def test_the_page_loads_nothing_and_runs_only_its_own_script(page):
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert len(page.scripts) == 2
    policy = next(a["content"] for a in page.attributes("meta") if a.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_everything_to_use_has_a_name_and_headings_are_in_order(page):
    labelled = {attributes.get("for") for attributes in page.attributes("label")}
    for tag in ("input", "select"):
        assert {attributes["id"] for attributes in page.attributes(tag)} <= labelled
    for attributes in page.attributes("svg"):
        assert attributes.get("aria-label")
        assert attributes.get("role") in ("img", "application")
    assert len(page.attributes("h1")) == 1
    assert page.attributes("html")[0]["lang"] == "en"


def test_the_payload_holds_the_posterior(page, posterior):
    edges = page.payload["edges"]
    members = [tuple(row) for row in edges["members"]]
    assert sorted(members) == sorted(posterior.features.clique(k) for k in range(posterior.n_cliques))
    index = [posterior.features.index(row) for row in members]
    np.testing.assert_array_equal(edges["pip"], posterior.edge_values("inclusion")[index])
    assert np.all(np.diff(edges["pip"]) <= 0)
    np.testing.assert_allclose(edges["bf"], posterior.edge_values("log10_bf")[index], atol=6e-4)
    np.testing.assert_allclose(page.payload["degree"], posterior.inclusion.sum(1), atol=1e-3)


def test_methods_say_model_prior_engine_draws_and_versions(posterior, tmp_path):
    prior = Prior(FixedInclusion(0.25), FixedSlab(1.5), forbidden=[("x0", "x1")])
    path = write_report(fake_posterior(4, draws=50, prior=prior), tmp_path / "a.html")
    text = Page(path).text
    for words in (
        "prior probability 0.25",
        "N(0, 1.52)",
        "1 edge always excluded",
        "“particle” engine",
        "4 chains of 50 kept draws",
        "seed 0",
        "the target of 400 effective draws was reached",
        "edgewise 0.0",
        "R-hat was at most",
    ):
        assert words in text
    assert "Beta(5, 5)" in Page(write_report(posterior, tmp_path / "b.html")).text


def test_without_a_command_the_page_gives_code(posterior, tmp_path):
    text = Page(write_report(posterior, tmp_path / "report.html")).text
    assert "SpikeSlabMRF(engine='particle', chains=4, random_state=2" in text


def test_hostile_names_are_text(tmp_path):
    posterior = fake_posterior(8, names=HOSTILE, seed=4, info={"notes": HOSTILE, "engine": HOSTILE[1]})
    path = write_report(posterior, tmp_path / "report.html", title=HOSTILE[1], command=HOSTILE[0])
    page = Page(path)
    assert len(page.scripts) == 2
    assert page.payload["names"] == HOSTILE
    assert not page.attributes("img")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not any(name in ("onerror", "onclick") for _, attributes in page.elements for name in attributes)
    for name in HOSTILE:
        assert name in page.text
    assert "<" not in page.scripts[0]


def test_lone_surrogates_do_not_stop_the_report(tmp_path):
    posterior = fake_posterior(3, draws=20, names=["a", "b\ud800", "c"])
    assert write_report(posterior, tmp_path / "report.html").stat().st_size > 1000


def test_groups_and_predictive_check_come_with_data(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (60, 4))
    party = np.where(rows[:, 0] == 1, "left", "right")
    import pandas

    table = pandas.DataFrame(rows, columns=["x0", "x1", "x2", "x3"]).assign(party=party)
    data = read_data(table, group="party")
    page = Page(write_report(fake_posterior(4, draws=40), tmp_path / "report.html", data=data))
    sections = {attributes.get("id") for attributes in page.attributes("section")}
    assert {"groups", "predictive"} <= sections
    assert "party" in page.text
    assert "100 %" in page.text


@pytest.mark.parametrize(
    "made",
    [
        lambda: Posterior([sparse_draws(np.zeros((9, 3)), np.zeros((9, 3)))], Features.pairs(3), list("abc")),
        lambda: fake_posterior(2, draws=3, chains=1),
        lambda: fake_posterior(5, draws=30, order=3),
        lambda: fake_posterior(5, draws=30, prior=Prior(forced=[("x0", "x1")], forbidden=[("x1", "x2")])),
        lambda: fake_posterior(4, draws=30, n_rows=0),
    ],
    ids=["no edges", "two variables", "triples", "set by the prior", "no data"],
)
def test_awkward_posteriors_get_a_page(made, tmp_path):
    posterior = made()
    page = Page(write_report(posterior, tmp_path / "report.html"))
    assert sum(page.payload["counts"]) == posterior.n_cliques
    assert len(page.payload["edges"]["pip"]) == posterior.n_cliques


def test_a_thousand_variables_stay_below_six_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    features = Features.pairs(1000)
    active = np.sort(rng.choice(features.n_cliques, 14_000, replace=False)).astype(np.int32)
    chains = []
    for _ in range(2):
        kept = [active[rng.random(len(active)) < 0.9] for _ in range(20)]
        pointer = np.concatenate([[0], np.cumsum([len(part) for part in kept])])
        values = rng.normal(size=pointer[-1])
        chains.append(
            Draws(
                pointer,
                np.concatenate(kept),
                values,
                np.zeros((20, 1000)),
                rng.beta(5, 90, 20),
                rng.gamma(9, 1, 20),
            )
        )
    names = [f"a long name of variable {i} <&>" for i in range(1000)]
    statistics = Statistics(100.0, np.full(1000, 50.0), np.zeros(features.n_cliques))
    posterior = Posterior(chains, features, names, statistics=statistics)
    path = write_report(posterior, tmp_path / "report.html")
    assert path.stat().st_size < 6_000_000
    payload = Page(path).payload
    listed = np.array(payload["edges"]["pip"])
    assert len(listed) + payload["unlisted"] == features.n_cliques
    for threshold in (payload["slider"][0], 0.5, 0.95, 1.0):
        assert (listed >= threshold).sum() == (posterior.edge_values("inclusion") >= threshold).sum()


def test_the_floor_is_the_lowest_hundredth_that_fits():
    probability = np.linspace(0, 1, 101)
    floor, chosen = choose_edges(probability, probability, most=50)
    assert floor == 0.51
    assert len(chosen) == (probability >= floor).sum() == 50
    floor, chosen = choose_edges(np.ones(100), np.arange(100.0), most=10)
    assert floor == 1.0
    assert sorted(chosen) == list(range(90, 100))
    assert choose_edges(probability, probability)[0] == 0.0
    assert MOST_EDGES >= 173 * 172 // 2


def test_an_unwritable_place_is_a_clear_error_and_leaves_nothing(posterior, tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        write_report(posterior, tmp_path / "missing" / "report.html")
    with pytest.raises(FileError, match="cannot be written"):
        write_edges_csv(posterior, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="was given str"):
        write_report("posterior.nc", tmp_path / "report.html")


def test_edges_csv_is_complete_and_ordered(posterior, tmp_path):
    path = write_edges_csv(posterior, tmp_path / "edges.csv")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == posterior.n_cliques
    summary = posterior.summary()
    assert list(rows[0]) == list(summary.columns)
    found = [float(row["inclusion"]) for row in rows]
    assert found == sorted(found, reverse=True)
    by_name = summary.set_index("edge")
    for row in rows:
        assert float(row["mean"]) == pytest.approx(by_name.loc[row["edge"], "mean"], rel=1e-5)


def test_edges_csv_disarms_formulas(tmp_path):
    names = ["=1+1", "+x", "-y", "@sum", "\tz", "\rw", "  =a", "fine", "mid=dle"]
    posterior = fake_posterior(9, draws=20, names=names)
    path = write_edges_csv(posterior, tmp_path / "edges.csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    cells = [
        cell
        for row in rows[1:]
        for column, cell in zip(rows[0], row)
        if column in ("edge", "variable_1", "variable_2", "note")
    ]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    assert {"'=1+1", "'+x", "'-y", "'@sum", "'\tz", "'\rw", "'  =a", "fine", "mid=dle"} <= set(cells)


def test_text_is_escaped_once(posterior, tmp_path):
    path = write_report(posterior, tmp_path / "report.html", title="a & b")
    assert "<title>a &amp; b</title>" in path.read_text(encoding="utf-8")
    assert html.unescape("a &amp; b") in Page(path).text
