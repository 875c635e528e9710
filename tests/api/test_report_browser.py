"""The report in headless Chromium: opened from disk, used with mouse and keyboard, and photographed."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from matplotlib import image

from edgewise import SpikeSlabMRF, datasets
from edgewise.data import read_data
from edgewise.errors import DataError
from edgewise.exact import sample
from edgewise.plots.layout import stress
from edgewise.report import write_report
from edgewise.report.payload import make_payload
from helpers import fake_posterior

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = [
    "sleep",
    "mood",
    "<script>window.hacked=1</script>",
    "</script><img src=x onerror='window.hacked=2'>",
    "=1+1",
    "\"quoted\" & 'single'",
    "Schlaf ünï 日本",
    "a name so long that it does not fit into any column of any table at all",
]


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{CHROMIUM} is missing; install Debian's package chromium.")
        pytest.skip(f"{CHROMIUM} is not installed (apt-get install chromium).")
    if not os.environ.get("CI"):
        pytest.importorskip("playwright.sync_api")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def fitted():
    """A real fit of simulated data with hostile column names."""
    model = datasets.random_model(8, 2.5, seed=3)
    rows = sample(model, 400, np.random.default_rng(0))
    table = pandas.DataFrame(rows, columns=NAMES)
    table["party"] = np.where(rows[:, 0] == 1, "left", "<b>right</b>")
    data = read_data(table, group="party")
    estimator = SpikeSlabMRF(
        engine="exact", chains=2, min_draws=300, max_draws=300, random_state=1, progress=False, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws are enough here
        estimator.fit(table[NAMES])
    return estimator.posterior_, data


@pytest.fixture(scope="module")
def report(fitted, tmp_path_factory):
    posterior, data = fitted
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(posterior, path, data=data, command="edgewise fit table.csv")


@pytest.fixture
def page(browser, report):
    """The open report; at the end nothing may have gone wrong or out."""
    context = browser.new_context(viewport={"width": 1180, "height": 900})
    opened = context.new_page()
    trouble: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text) if message.type != "log" else None)
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(report.as_uri())
    opened.wait_for_selector("html[data-ready=yes]")
    yield opened
    assert opened.evaluate("window.hacked") is None
    assert trouble == []
    assert requests == [report.as_uri()]
    context.close()


def set_slider(page, value: float) -> None:
    page.locator("#all-edges").check()
    page.locator("#threshold").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", str(value)
    )


def column(page, number: int) -> list[str]:
    return page.locator(f"#edge-table tbody tr td:nth-child({number})").all_inner_texts()


def test_the_slider_draws_exactly_the_edges_of_the_posterior(page, fitted):
    posterior, _ = fitted
    probability = posterior.edge_values("inclusion")
    on_the_edge = float(np.ceil(100 * np.median(probability)) / 100)
    counts = set()
    for threshold in (0.0, 0.05, 0.25, 0.5, on_the_edge, 0.9, 0.99, 1.0):
        set_slider(page, threshold)
        expected = int((probability >= threshold).sum())
        assert page.locator("#graph path[data-edge]").count() == expected
        assert page.locator("#drawn").inner_text().startswith(f"{expected} edge")
        counts.add(expected)
    assert len(counts) > 3


def test_the_slider_works_with_the_keyboard(page, fitted):
    posterior, _ = fitted
    page.locator("#all-edges").check()
    page.locator("#threshold").focus()
    page.keyboard.press("End")
    assert page.locator("#graph path[data-edge]").count() == (posterior.edge_values("inclusion") >= 1.0).sum()
    page.keyboard.press("Home")
    assert page.locator("#graph path[data-edge]").count() == posterior.n_cliques


def test_sorting_by_every_kind_of_column(page):
    def press(heading: str) -> None:
        page.locator("#edge-table th button", has_text=heading).first.click()

    shown = [float(text.strip("<> ")) for text in column(page, 3)]
    assert shown == sorted(shown, reverse=True)
    press("PIP")
    shown = [float(text.strip("<> ")) for text in column(page, 3)]
    assert shown == sorted(shown)
    assert page.locator("#edge-table th").nth(2).get_attribute("aria-sort") == "ascending"
    press("if included")
    values = [float(text.replace("−", "-")) for text in column(page, 9) if text != "–"]
    assert values == sorted(values, reverse=True)
    press("variable 1")
    first = column(page, 1)
    assert first == page.evaluate("names => names.slice().sort((a, b) => a.localeCompare(b))", first)


def test_filtering_by_name_and_evidence(page, fitted):
    posterior, _ = fitted
    page.fill("#filter", "SLEEP")
    assert page.locator("#edge-table tbody tr").count() == 7
    page.fill("#filter", "no such name")
    assert page.locator("#edge-table tbody tr").count() == 0
    assert page.locator("#table-status").inner_text().startswith("No edge fits")
    page.fill("#filter", "")
    page.select_option("#category", label="strong presence")
    expected = int((posterior.summary()["evidence"] == "strong presence").sum())
    assert expected > 0
    assert page.locator("#edge-table tbody tr").count() == expected


def test_pages_of_the_table(page, fitted):
    posterior, _ = fitted
    assert page.locator("#edge-table tbody tr").count() == 25
    page.click("#next")
    assert page.locator("#edge-table tbody tr").count() == posterior.n_cliques - 25
    assert page.locator("#next").is_disabled()


def test_searching_a_variable_shows_its_neighbourhood_with_numbers(page, fitted):
    posterior, data = fitted
    page.fill("#search", "mood")
    panel = page.locator("#panel")
    assert panel.locator("h3").inner_text() == "mood"
    share = 100 * data.column(1).mean()
    assert f"{share:.1f} %" in panel.inner_text()
    rows = panel.locator("tr").all()[1:]
    best = np.argmax(posterior.inclusion[1])
    assert rows[0].locator("td").first.inner_text() == posterior.names[best]
    shown = [float(row.locator("td").nth(1).inner_text().strip("<> ")) for row in rows]
    expected = np.sort(posterior.inclusion[1])[::-1][: len(shown)]
    np.testing.assert_allclose(shown, expected, atol=1.1e-3)  # three digits, and "> 0.999"
    page.fill("#search", "SCHLAF")
    assert panel.locator("h3").inner_text() == "Schlaf ünï 日本"
    page.fill("#search", "nobody")
    assert panel.inner_text() == "No variable has “nobody” in its name."
    page.fill("#search", "")
    assert panel.locator("h3").count() == 0


def test_a_hostile_name_is_shown_as_text(page):
    page.fill("#search", "<script>")
    assert page.locator("#panel h3").inner_text() == NAMES[2]
    page.fill("#search", "</script>")
    assert page.locator("#panel h3").inner_text() == NAMES[3]
    assert page.locator("img").count() == 0
    assert page.locator("#groups b").count() == 1


def test_hovering_an_edge_and_a_node_tells_their_numbers(page):
    set_slider(page, 0.5)
    page.locator("#graph").scroll_into_view_if_needed()
    where = page.locator("#graph path[data-edge]").first.evaluate(
        "line => { const middle = line.getPointAtLength(line.getTotalLength() / 2);"
        " const at = middle.matrixTransform(line.getScreenCTM());"
        " return [at.x, at.y]; }"
    )
    page.mouse.move(*where)
    assert "inclusion probability" in page.locator("#tooltip").inner_text()
    page.locator("#graph g.node").first.hover()
    assert "expected number of neighbours" in page.locator("#tooltip").inner_text()


def test_dragging_moves_a_node_and_its_edges(page):
    set_slider(page, 0.0)
    node = page.locator("#graph g.node").nth(2)
    node.scroll_into_view_if_needed()
    before = node.get_attribute("transform")
    box = node.locator("circle").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 40, steps=4)
    page.mouse.up()
    after = node.get_attribute("transform")
    assert after != before
    place = after.removeprefix("translate(").removesuffix(")").split()
    here = f"{place[0]} {place[1]}"
    ends = page.locator("#graph path[data-edge]").evaluate_all(
        "lines => lines.map(line => line.getAttribute('d'))"
    )
    touching = sum(d.startswith(f"M{here} ") or d.endswith((f"L{here}", f" {here}")) for d in ends)
    assert touching == 7
    assert page.locator("#panel h3").count() == 0  # a drag is not a click
    page.click("#reset")
    assert node.get_attribute("transform") == before


def test_the_network_with_the_keyboard_alone(page):
    page.locator("#graph").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    first = page.locator("#panel h3").inner_text()
    seen = {first}
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        seen.add(page.locator("#panel h3").inner_text())
        page.keyboard.press("Escape")
        assert page.locator("#panel h3").count() == 0
    assert len(seen) > 1
    page.keyboard.press("Shift+ArrowUp")
    assert page.locator("#graph .current").count() == 1


def test_zoom_changes_the_view_and_reset_brings_it_back(page):
    graph = page.locator("#graph")
    page.click("#zoom-in")
    assert graph.get_attribute("data-zoom") == "1.400"
    page.click("#reset")
    assert graph.get_attribute("data-zoom") == "1.000"


def test_the_page_prints_with_the_table_and_without_controls(page, tmp_path):
    page.emulate_media(media="print")
    assert not page.locator("#threshold").is_visible()
    assert not page.locator("nav").is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#edge-table tbody tr").count() == 28
    printed = tmp_path / "report.pdf"
    page.pdf(path=str(printed), format="A4")
    assert printed.stat().st_size > 20_000


def test_pictures_are_kept(page):
    """Screenshots for a person to look at, in artifacts/ (or where EDGEWISE_ARTIFACTS says)."""
    folder = Path(os.environ.get("EDGEWISE_ARTIFACTS", Path(__file__).parents[2] / "artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(folder / "report.png"), full_page=True)
    page.fill("#search", "mood")
    page.locator("#network").screenshot(path=str(folder / "report_neighbourhood.png"))
    page.set_viewport_size({"width": 420, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.screenshot(path=str(folder / "report_narrow.png"), full_page=True)
    assert (folder / "report.png").stat().st_size > 50_000


def test_edges_with_evidence_are_drawn_first_and_the_switch_shows_the_rest(page, fitted):
    posterior, _ = fitted
    evidence = posterior.edge_values("evidence")
    expected = int(np.isin(evidence, ("presence", "strong presence")).sum())
    assert 0 < expected < posterior.n_cliques
    assert page.locator("#graph path[data-edge]").count() == expected
    assert not page.locator("#threshold").is_visible()
    assert (
        page.locator("#drawn").inner_text().startswith(f"{expected} edges with a Bayes factor of 3 or more")
    )
    page.locator("#all-edges").check()
    assert page.locator("#threshold").is_visible()
    assert page.locator("#graph path[data-edge]").count() == (posterior.edge_values("inclusion") >= 0.5).sum()


def test_pictures_are_saved_with_their_colours_and_the_table_is_copied(page, fitted, tmp_path):
    page.emulate_media(color_scheme="dark")
    with page.expect_download() as waiting:
        page.locator("#save-network button", has_text="Save SVG").click()
    waiting.value.save_as(tmp_path / "network.svg")
    drawing = (tmp_path / "network.svg").read_text("utf-8")
    root = ElementTree.fromstring(drawing)
    lines = [part for part in root.iter() if part.get("data-edge")]
    assert len(lines) == page.locator("#graph path[data-edge]").count()
    # On white paper, in the colours of the light page.
    assert {part.get("stroke") for part in lines} <= {"rgb(0, 114, 178)", "rgb(194, 78, 0)"}
    assert "var(" not in drawing
    assert "<script" not in drawing
    with page.expect_download() as waiting:
        page.locator("#save-network button", has_text="Save PNG").click()
    waiting.value.save_as(tmp_path / "network.png")
    picture = image.imread(tmp_path / "network.png")
    assert picture.shape[1] >= 2000
    assert 0.005 < (picture[..., :3] < 0.9).any(-1).mean() < 0.5
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.fill("#filter", "=1+1")
    page.click("#copy-table")
    page.wait_for_function("window.copied !== undefined")
    rows = page.evaluate("window.copied").split("\n")
    assert len(rows) == 8
    assert all("'=1+1" in row.split("\t") for row in rows[1:])
    assert page.locator("#table-status").inner_text() == "7 rows are on the clipboard."


# Names as drawn, nodes, and the least distance of every line from a node that is not its own.
GEOMETRY = """() => {
  const radius = new Map(), middle = new Map();
  document.querySelectorAll('#graph g.node').forEach((node) => {
    const at = node.transform.baseVal[0].matrix;
    middle.set(Number(node.dataset.node), [at.e, at.f]);
    radius.set(Number(node.dataset.node), Number(node.firstChild.getAttribute('r')));
  });
  const page = JSON.parse(document.getElementById('payload').textContent);
  const gaps = Array.from(document.querySelectorAll('#graph path[data-edge]')).map((line) => {
    const ends = page.edges.members[Number(line.dataset.edge)];
    let least = Infinity;
    for (let k = 0; k <= 60; k++) {
      const at = line.getPointAtLength(k / 60 * line.getTotalLength());
      for (const [i, [x, y]] of middle)
        if (!ends.includes(i)) least = Math.min(least, Math.hypot(at.x - x, at.y - y) - radius.get(i));
    }
    return least;
  });
  const names = Array.from(document.querySelectorAll('#graph .names text')).map((name) => {
    const box = name.getBBox();
    return [box.x, box.y + 2, box.x + box.width, box.y + box.height - 2];
  });
  return {
    names: names, gaps: gaps, nodes: Array.from(middle, ([i, at]) => [...at, radius.get(i)]),
    width: document.getElementById('graph').viewBox.baseVal.width,
  };
}"""


@pytest.mark.parametrize(("width", "least"), [(1180, 40), (390, 12)])
def test_names_cover_nothing_and_lines_go_round_nodes_at_a_hundred_variables(browser, tmp_path, width, least):
    posterior = fake_posterior(100, chains=2, draws=200, persistence=0.0)
    path = write_report(posterior, tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    found = page.evaluate(GEOMETRY)
    assert found["width"] > 0.9 * width
    boxes = np.array(found["names"])
    assert len(boxes) >= least
    apart = (boxes[:, None, 0] >= boxes[None, :, 2]) | (boxes[:, None, 1] >= boxes[None, :, 3])
    apart = apart | apart.T | np.eye(len(boxes), dtype=bool)
    assert apart.all()
    nodes = np.array(found["nodes"])
    beside = np.maximum(np.maximum(boxes[:, None, :2] - nodes[:, :2], nodes[:, :2] - boxes[:, None, 2:]), 0)
    assert (np.hypot(*np.moveaxis(beside, 2, 0)) >= nodes[:, 2] - 1.5).all()
    gaps = np.array(found["gaps"])
    assert (gaps > 0).mean() > 0.97
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # Zooming in makes room for more names.
    for _ in range(3):
        page.click("#zoom-in")
    shown = page.evaluate(GEOMETRY)["names"]
    assert len(shown) >= 5
    context.close()


def test_a_result_that_is_not_green_is_marked_inside_the_pictures(browser, tmp_path):
    for persistence, words in ((0.99, "red: "), (0.0, None)):
        posterior = fake_posterior(6, draws=1500 if words is None else 100, persistence=persistence)
        path = write_report(posterior, tmp_path / "report.html")
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        marks = page.locator("svg g.mark text").all_text_contents()
        assert [mark.startswith("red: ") for mark in marks] == ([] if words is None else [True, True])
        counted = page.locator("#evidence-plot").text_content()
        assert bool(re.search(r"\d+ strong presence", counted)) == (words is None)
        drawn = page.locator("#drawn").inner_text()
        assert bool(re.match(r"[\d,]+ edge", drawn)) == (words is None)
        assert bool(re.search(r"(positive|negative): \d", page.locator("#graph").text_content())) == (
            words is None
        )
        page.close()


def test_the_page_has_the_places_of_all_plots_and_named_groups(fitted):
    posterior, _ = fitted
    kinds = ["x", "y"] * 4
    payload = make_payload(posterior, groups=kinds)
    np.testing.assert_allclose(payload["positions"], stress(posterior.inclusion) * [1, -1], atol=1e-4)
    assert payload["groups"] == ["x", "y"]
    assert payload["group"] == [0, 1] * 4
    assert make_payload(posterior)["groups"] is None
    with pytest.raises(DataError, match="no group for the variable 'mood'"):
        make_payload(posterior, groups={"sleep": "x"})
