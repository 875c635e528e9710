"""Paths that can be none, and homes: one answer for everything that is read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgewise import MRF, SpikeSlabMRF, load_posterior
from edgewise.atomic import replacing
from edgewise.data import read_data
from edgewise.errors import DataError, FileError
from edgewise.paths import as_path
from edgewise.report import write_report
from edgewise.run.checkpoint import Checkpoint, forget

NONE = [5, None, b"x.nc", 1.5, ["a"]]
WRONG = {
    "": "is not a path",
    " ": "is not a path",
    "a\0b": "zero character",
    "a\ud800.nc": "half a character",
    "x" * 300: "a name in it has 300 bytes, and the most is 255",
    "é" * 200: "400 bytes",
    "d/" * 3000 + "x": r"6,001 bytes, and the most is 4,095",
    "~nosuchuser/x": "~nosuchuser/x: there is no user of that name",
}
MODEL = MRF(np.zeros(3), [(0, 1)], [0.5])


@pytest.fixture(scope="module")
def posterior() -> Any:
    cells = np.random.default_rng(0).integers(0, 2, (30, 3))
    run = {"min_draws": 4, "max_draws": 4, "target_ess": None, "settings": {"warm_up": 5}}
    return SpikeSlabMRF(chains=1, progress=False, engine="exact", **run).fit(cells).posterior_


def doors(posterior: Any) -> dict[str, Any]:
    return {
        "save": posterior.save,
        "load": load_posterior,
        "report": lambda path: write_report(posterior, path),
        "checkpoint": lambda path: Checkpoint.open(path, {}),
        "to_graphml": MODEL.to_graphml,
        "from_graphml": MRF.from_graphml,
        "to_csv": MODEL.to_csv,
        "from_csv": MRF.from_csv,
        "replacing": lambda path: replacing(path).__enter__(),
    }


@pytest.mark.parametrize("path", WRONG, ids=lambda path: ascii(path)[:20])
def test_text_that_can_be_no_path(path: str, posterior: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name, door in doors(posterior).items():
        with pytest.raises(FileError, match=WRONG[path]) as caught:
            door(path)
        assert len(str(caught.value)) < 300, name
    with pytest.raises(FileError, match=WRONG[path]):
        read_data(path)
    with pytest.raises(DataError, match=f"checkpoint must be the path of a directory.*{WRONG[path]}"):
        SpikeSlabMRF(checkpoint=path, progress=False).fit(np.eye(3, dtype=int))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", NONE, ids=repr)
def test_what_is_no_path(path: Any, posterior: Any) -> None:
    for door in doors(posterior).values():
        with pytest.raises(DataError, match=r"as text or pathlib.Path; not"):
            door(path)


def test_the_home_is_the_same_for_all(posterior: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    posterior.save("~/p.nc")
    assert load_posterior("~/p.nc").n_draws == posterior.n_draws
    assert write_report(posterior, "~/r.html") == tmp_path / "r.html"
    MODEL.to_csv("~/m.csv")
    MODEL.to_graphml("~/m.graphml")
    assert MRF.from_csv("~/m.csv").n_variables == MRF.from_graphml("~/m.graphml").n_variables == 3
    Checkpoint.open("~/c", {}).close()
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {"p.nc", "r.html", "m.csv", "m.graphml", "c"}


def test_names_of_bytes_that_are_no_text_are_paths() -> None:
    assert as_path("a\udcff.csv") == Path("a\udcff.csv")


def test_nothing_is_left_in_the_directory_of_a_stranger(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileError, match=r"holds other files \('thesis.txt'\)"):
        Checkpoint.open(tmp_path, {})
    forget(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
