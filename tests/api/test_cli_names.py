"""Names with control characters and formulas: nothing of them runs in a terminal or a spreadsheet."""

from __future__ import annotations

import json
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import FAST, edgewise, table
from edgewise.errors import printable
from edgewise.model import MRF

BAD = ["\x1b[31mred", "bell\x07", "two\nlines", "=1+1", "c1\x9b\u202e"]
RAW = ("\x1b", "\x07", "two\nlines", "\x9b", "\u202e")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (60, 5)), columns=BAD)
    frame["=1+1"] = frame["=1+1"].map({0: "@a", 1: "=b"})
    path = tmp_path_factory.mktemp("names") / "ta\x1b[2Jble.parquet"
    frame.to_parquet(path)
    out = path.parent / "fit"
    result = edgewise("fit", path, "-o", out, *FAST)
    check(result.output)
    return out


def check(text: str) -> None:
    assert not [raw for raw in RAW if raw in text]


def test_printable_text() -> None:
    assert printable("a\x1b[0m\nb\u202e\ud800") == "a\\x1b[0m\nb\\u202e\\ud800"
    assert printable("a\n\tb", keep="") == "a\\n\\tb"
    assert printable("é – 語") == "é – 語"


@pytest.mark.parametrize("arguments", [["summary"], ["summary", "--json"], ["compare"]])
def test_nothing_raw_reaches_the_terminal(fitted: Path, arguments: list[str]) -> None:
    sources = [fitted, fitted] if arguments == ["compare"] else [fitted]
    shown = edgewise(arguments[0], *sources, *arguments[1:]).output
    check(shown)
    if "--json" in arguments:
        assert json.loads(shown)["variables"] == BAD


def test_samples_in_a_terminal_are_printable(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewise.cli.files._is_terminal", lambda: True)
    text = edgewise("sample", fitted, "-n", "3", "--seed", "1").stdout
    assert not [raw for raw in RAW if raw in text and raw != "two\nlines"]
    assert "\\x1b[31mred" in text


def test_errors_are_printable(fitted: Path, tmp_path: Path) -> None:
    path = tmp_path / "ba\x1b[2Jd\nname.csv"
    path.write_text("a\n")
    for arguments in (["fit", path], ["fit", tmp_path / "no\x1bsuch"], ["predict", fitted, path]):
        shown = edgewise(*arguments, code=1).output
        check(shown)
        assert "d\nname" not in shown


def test_csv_files_guard_formulas(fitted: Path, tmp_path: Path) -> None:
    weights = edgewise("export", "weights", fitted).stdout
    assert {"'=1+1"} <= {row["variable_1"] for row in table(weights)}
    sample = table(edgewise("sample", fitted, "-n", "50", "--seed", "1").stdout)
    assert "'=1+1" in sample[0]
    assert {row["'=1+1"] for row in sample} == {"'@a", "'=b"}
    rows = tmp_path / "rows.csv"
    rows.write_text('"=1+1","two\nlines"\n@a,\n,1\n')
    predicted = table(edgewise("predict", fitted, rows).stdout)
    assert "'=1+1" in {row["variable"] for row in predicted}
    assert "'@a" in {row["level"] for row in predicted}


def test_weights_with_guarded_names_are_read_back(tmp_path: Path) -> None:
    names = ("=1", "'=1", "plain", " @x", "'quoted")
    model = MRF.from_coupling(np.arange(5.0), np.ones((5, 5)) - np.eye(5), names)
    model.to_csv(tmp_path / "m.csv")
    assert "\n=1" not in (tmp_path / "m.csv").read_text("utf-8").replace("\r", "")
    assert MRF.from_csv(tmp_path / "m.csv").names == names


def test_graphml_stays_xml_and_keeps_the_names(fitted: Path, tmp_path: Path) -> None:
    text = edgewise("export", "graphml", fitted, "--threshold", "0").stdout
    assert len(xml.etree.ElementTree.fromstring(text).findall(".//{*}node")) == len(BAD)
    names = ("a\x1b", "a\\x1b", "b\nc", "d")
    model = MRF.from_coupling(np.arange(4.0), np.ones((4, 4)) - np.eye(4), names)
    model.to_graphml(tmp_path / "m.graphml")
    xml.etree.ElementTree.parse(tmp_path / "m.graphml")
    again = MRF.from_graphml(tmp_path / "m.graphml")
    assert again.names == names
    assert again.parameters.tolist() == model.parameters.tolist()
