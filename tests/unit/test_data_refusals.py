"""Every kind of bad input, each with the message it must give: what, where and the way out."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from edgewise.data import BinaryData, TableError, read_data
from edgewise.errors import DataError, FileError

GOOD = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]])


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 0, 1, 0]} | columns)


def with_cell(value: float) -> np.ndarray:
    array = GOOD.astype(float)
    array[2, 1] = value
    return array


# name: (source, arguments, words the message must have)
IN_MEMORY: dict[str, tuple[Callable[[], Any], dict[str, Any], list[str]]] = {
    "no data": (lambda: None, {}, ["NoneType", "2-D array"]),
    "a number": (lambda: 3, {}, ["'int'", "DataFrame"]),
    "a generator": (lambda: (row for row in GOOD), {}, ["'generator'", "list of rows"]),
    "bytes": (lambda: b"0,1", {}, ["'bytes'"]),
    "a vector": (lambda: GOOD[0], {}, ["1 dimension", "(3,)", "one column per variable"]),
    "a cube": (lambda: np.zeros((2, 2, 2)), {}, ["3 dimensions", "(2, 2, 2)", "reshape"]),
    "a cube as a list": (lambda: np.zeros((2, 2, 2), int).tolist(), {}, ["3 dimensions"]),
    "complex numbers": (lambda: GOOD.astype(complex), {}, ["complex128", "0 and 1"]),
    "dates in an array": (lambda: GOOD.astype("M8[D]"), {}, ["datetime64[D]"]),
    "no rows": (lambda: GOOD[:0], {}, ["no rows"]),
    "no columns": (lambda: GOOD[:, :0], {}, ["no column is a variable", "two or more variables"]),
    "one column": (lambda: GOOD[:, :1], {}, ["only the column 'x0'", "two or more variables"]),
    "an empty list": (lambda: [], {}, ["The list", "no rows"]),
    "a flat list": (lambda: [0, 1, 1], {}, ["row 0 is 0", "list of rows"]),
    "a list of words": (lambda: ["ab", "cd"], {}, ["row 0 is 'ab'"]),
    "ragged rows": (lambda: [[0, 1], [1, 0], [1]], {}, ["row 2 has 1 cell ", "row 0 has 2"]),
    "ragged columns": (lambda: {"a": [0, 1], "b": [0, 1, 1]}, {}, ["one length", "'b'"]),
    "a pandas Series": (lambda: frame()["a"], {}, ["pandas Series", "two or more columns"]),
    "a polars Series": (lambda: pl.Series([0, 1]), {}, ["polars Series"]),
    "names in two levels": (
        lambda: pd.DataFrame(GOOD, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])),
        {},
        ["2 levels", "join"],
    ),
    "a repeated name": (
        lambda: pd.DataFrame(GOOD, columns=["a", "b", "a"]),
        {},
        ["must differ", "'a' (columns 1 and 3)", "rename"],
    ),
    "an empty name": (lambda: pd.DataFrame(GOOD, columns=["a", "", "c"]), {}, ["without a name", "number 2"]),
    "a blank name": (lambda: pd.DataFrame(GOOD, columns=["a", " ", "c"]), {}, ["without a name"]),
    "a missing name": (
        lambda: pd.DataFrame(GOOD, columns=["a", "b", None]),
        {},
        ["without a name", "number 3"],
    ),
    "too few names": (lambda: GOOD, {"names": ["a", "b"]}, ["3 columns", "names has 2"]),
    "names that repeat": (lambda: GOOD, {"names": ["a", "b", "b"]}, ["'b' (columns 2 and 3)"]),
    "a column that is not there": (
        lambda: frame(smoker=[0, 1, 0, 1]),
        {"columns": ["a", "smokr"]},
        ["columns asks for a column 'smokr'", "did you mean 'smoker'?"],
    ),
    "a dropped column that is not there": (lambda: frame(), {"drop_columns": "zzz"}, ["'zzz'", "a and b"]),
    "a group that is not there": (lambda: frame(), {"group": "party"}, ["group asks for a column 'party'"]),
    "a column number too large": (lambda: GOOD, {"columns": [0, 7]}, ["column 7", "x0, x1 and x2"]),
    "a column chosen twice": (lambda: frame(), {"columns": ["a", "b", "a"]}, ["'a' twice"]),
    "everything dropped": (lambda: frame(), {"drop_columns": ["a", "b"]}, ["no column is a variable"]),
    "a third level": (
        lambda: frame(q=["y", "n", "maybe", "y"]),
        {},
        ["'q' has 3 levels", "besides 'y' and 'n'", "'maybe' (1 row, first at row 2)", "drop_columns=['q']"],
    ),
    "a third number": (
        lambda: with_cell(2),
        {},
        ["'x1' has 3 levels", "besides 0 and 1", "2 (1 row, first at row 2)"],
    ),
    "a fraction": (lambda: with_cell(0.5), {}, ["0.5 (1 row, first at row 2)"]),
    "a code for blanks": (
        lambda: np.vstack([GOOD, [[-99, 1, 1]]]),
        {},
        ["-99", "stands for a blank", "leave the cell empty"],
    ),
    "an identifier": (
        lambda: pd.DataFrame({"id": [f"p{k}" for k in range(40)], "a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10}),
        {},
        ["'id' has 40 different values ('p0', 'p1', 'p2', ...)", "identifier", "drop_columns=['id']"],
    ),
    "measurements": (
        lambda: pd.DataFrame({"age": np.arange(40), "a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10}),
        {},
        ["'age' has 40 different values", "cut='age/4'", "threshold"],
    ),
    "spelling": (
        lambda: frame(q=["Yes", "yes", "yes", "Yes"]),
        {},
        ["'Yes' (row 0)", "'yes' (row 1)", "one way"],
    ),
    "numbers and words": (
        lambda: pd.DataFrame({"a": [0, 1, 0, 1], "q": np.array([1, "x", 1, 1], object)}),
        {},
        ["'q' mixes numbers and words", "1 and 'x' (row 1)"],
    ),
    "lists in cells": (lambda: frame(q=[[0], [1], [0], [1]]), {}, ["'q' holds lists", "drop_columns=['q']"]),
    "dates": (
        lambda: frame(q=pd.to_datetime(["2020-01-01"] * 4)),
        {},
        ["'q' holds Timestamp values", "row 0"],
    ),
    "NaN": (
        lambda: with_cell(np.nan),
        {},
        ["1 cell in 1 row is blank", "'x1' (1)", "3 of 4 rows are complete", "missing='drop'"],
    ),
    "None": (lambda: [[0, 1], [1, None], [1, 0]], {}, ["1 cell in 1 row is blank", "'x1' (1)"]),
    "masked cells": (
        lambda: np.ma.masked_equal(with_cell(9), 9),
        {},
        ["1 cell in 1 row is blank", "'x1' (1)"],
    ),
    "polars null": (lambda: pl.DataFrame({"a": [0, 1, None], "b": [0, 1, 0]}), {}, ["'a' (1)"]),
    "nullable integers": (
        lambda: frame(q=pd.array([0, 1, None, 1], "Int64")),
        {},
        ["1 cell in 1 row is blank", "'q' (1)"],
    ),
    "no complete row": (
        lambda: np.array([[np.nan, 1, 0], [1, np.nan, 1], [0, 1, np.nan]]),
        {"missing": "drop"},
        ["no row is complete"],
    ),
    "an empty column": (lambda: frame(q=[None] * 4), {}, ["'q' is blank in every row", "drop_columns=['q']"]),
    "infinity": (lambda: with_cell(np.inf), {}, ["'x1' has an infinite value (row 2"]),
    "minus infinity": (lambda: with_cell(-np.inf), {}, ["'x1' has an infinite value (row 2"]),
    "a constant column": (
        lambda: frame(q=[1, 1, 1, 1]),
        {},
        ["1 column with one level only: 'q' (always 1)", "constant='drop'", "constant='keep'"],
    ),
    "a constant word": (lambda: frame(q=["no"] * 4), {}, ["'q' (always 'no')"]),
    "constant once rows are dropped": (
        lambda: frame(q=[1, 0, 1, 1], r=[1, np.nan, 0, 0]),
        {"missing": "drop"},
        ["once the incomplete rows are left out", "'q' (always 1)"],
    ),
    "constant but for blanks": (
        lambda: frame(q=["y", None, "y", "y"]),
        {"missing": "error"},
        ["'q' (always 'y')"],
    ),
    "all constant": (lambda: np.ones((3, 3)), {"constant": "drop"}, ["all but 0 of 3 columns", "vary"]),
    "weights too few": (lambda: GOOD, {"sample_weight": [1, 2]}, ["shape (2,)", "each of the 4 rows"]),
    "a negative weight": (lambda: GOOD, {"sample_weight": [1, 2, -1, 1]}, ["-1 at row 2", "not negative"]),
    "an infinite weight": (lambda: GOOD, {"sample_weight": [1, np.inf, 1, 1]}, ["inf at row 1"]),
    "weights of zero": (lambda: GOOD, {"sample_weight": [0, 0, 0, 0]}, ["every sample_weight is zero"]),
    "weights of words": (lambda: GOOD, {"sample_weight": list("abcd")}, ["must hold numbers"]),
    "a weight column that is not there": (lambda: frame(), {"sample_weight": "count"}, ["column 'count'"]),
    "an unknown way with blanks": (lambda: GOOD, {"missing": "guess"}, ["'error', 'drop'", "'guess'"]),
    "an unknown way with constants": (lambda: GOOD, {"constant": True}, ["'keep'", "not True"]),
    "a sparse vector": (lambda: scipy.sparse.coo_array(np.array([0, 1])), {}, ["1 dimension", "2-D"]),
    "sparse complex numbers": (lambda: scipy.sparse.csr_array(GOOD.astype(complex)), {}, ["complex128"]),
    "a sparse third level": (lambda: scipy.sparse.csr_array(with_cell(2)), {}, ["'x1' has 3 levels"]),
    "names for data already read": (lambda: read_data(GOOD), {"names": ["a", "b", "c"]}, ["read already"]),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_bad_table_in_memory(kind: str) -> None:
    source, arguments, words = IN_MEMORY[kind]
    with pytest.raises(DataError) as caught:
        read_data(source(), **arguments)
    for word in words:
        assert word in str(caught.value)
    assert "Traceback" not in str(caught.value)


CSV = "a,b,c\n0,1,0\n1,0,0\n1,1,1\n0,0,1\n"


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(GOOD, columns=list("abc")).to_parquet(buffer)
    return buffer.getvalue()


def workbook() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


def archive_of_text() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("table.csv", CSV)
    return buffer.getvalue()


NOISE = np.random.default_rng(5).integers(128, 256, 3000, dtype=np.uint8).tobytes()
LONG = ("a,b,c\n" + "0,1,0\n1,1,1\n0,0,0\n" * 20_000).encode()

# name: (file name, content, kind of error, words the message must have)
FILES: dict[str, tuple[str, bytes, type[Exception], list[str]]] = {
    "empty": ("t.csv", b"", FileError, ["is empty", "column names"]),
    "blank lines": ("t.csv", b"\n\n  \n", FileError, ["blank lines only"]),
    "header only": ("t.csv", b"a,b,c\n", DataError, ["column names and no rows"]),
    "one column": ("t.csv", b"a\n0\n1\n", DataError, ["one column only, 'a'", "commas"]),
    "spaces": ("t.csv", b"a b c\n0 1 0\n", DataError, ["separated by spaces", "commas"]),
    "no header": ("t.csv", b"0,1,0\n1,0,0\n", DataError, ["looks like data", "line of column names"]),
    "no header, words": ("t.csv", b"y,n,y\nn,n,y\n", DataError, ["looks like data"]),
    "repeated name": ("t.csv", CSV.replace("a,b,c", "a,b,a").encode(), DataError, ["'a' (columns 1 and 3)"]),
    "row numbers": (
        "t.csv",
        CSV.replace("a,b,c", ",b,c").encode(),
        DataError,
        ["without a name", "number 1"],
    ),
    "random bytes": ("t.csv", NOISE, FileError, ["is not UTF-8 text", "line 1"]),
    "zero bytes": ("t.csv", b"a,b\n0,\x001\n", FileError, ["zero bytes", "CSV, TSV"]),
    "control characters": ("t.csv", b"a,b\n\x01\x02,1\n", FileError, ["control characters"]),
    "Latin-1": ("t.csv", "größe,b\n0,1\n".encode("latin-1"), FileError, ["0xf6 in line 1", "UTF-8"]),
    "Latin-1 far down": (
        "t.csv",
        LONG + "0,1,größe\n".encode("latin-1"),
        FileError,
        ["UTF-8 text throughout"],
    ),
    "UTF-16": ("t.csv", CSV.encode("utf-16"), FileError, ["UTF-16", "UTF-8"]),
    "a web page": ("t.csv", b"<!DOCTYPE html><html>", FileError, ["web page", "download"]),
    "JSON": ("t.json", b'{"a": [0, 1]}', FileError, ["is JSON"]),
    "an LFS pointer": ("t.csv", b"version https://git-lfs.github.com/spec/v1\n", FileError, ["git lfs pull"]),
    "a saved posterior": ("t.nc", b"\x89HDF\r\n\x1a\n" + NOISE, FileError, ["load_posterior"]),
    "a picture": ("t.png", b"\x89PNG\r\n\x1a\n" + NOISE, FileError, ["is a picture"]),
    "a workbook": ("t.xlsx", workbook(), FileError, ["Excel workbook", "CSV"]),
    "an old workbook": ("t.xls", b"\xd0\xcf\x11\xe0" + NOISE, FileError, ["old Excel workbook"]),
    "bzip2": ("t.csv.bz2", b"BZh9" + NOISE, FileError, ["bzip2", "gzip"]),
    "gzipped twice": ("t.csv.gz", gzip.compress(gzip.compress(CSV.encode())), FileError, ["gzipped twice"]),
    "a zip of a table": ("t.zip", archive_of_text(), FileError, ["zip archive without arrays"]),
    "gzip cut short": ("t.csv.gz", gzip.compress(CSV.encode())[:-12], FileError, ["truncated", "gzip"]),
    "gzip cut far down": (
        "t.csv.gz",
        gzip.compress(LONG + NOISE)[:-900],
        FileError,
        ["truncated", "copy it again"],
    ),
    "last line cut": ("t.csv", CSV.encode()[:-5], FileError, ["truncated", "1 of 3 fields"]),
    "short line": (
        "t.csv",
        CSV.replace("1,0,0", "1,0").encode(),
        FileError,
        ["line 3 has 2 fields", "3 columns"],
    ),
    "short first line": ("t.csv", CSV.replace("0,1,0", "0,1").encode(), FileError, ["next has 2 fields"]),
    "long line": ("t.csv", CSV.replace("1,0,0", "1,0,0,1").encode(), FileError, ["line 3 has 4 fields"]),
    "row names of R": ("t.csv", b"a,b\nr1,0,1\nr2,1,0\n", FileError, ["row names"]),
    "open quote": ("t.csv", CSV.encode() + b'0,"1,0\n0,1,1\n', FileError, ["never closed"]),
    "third level": (
        "t.csv",
        CSV.replace("1,0,0", "1,maybe,0").encode(),
        DataError,
        ["'b' has 3 levels", "'maybe' (1 row, first at line 3)"],
    ),
    "third level below blank lines": (
        "t.csv",
        CSV.replace("1,0,0", "\n\n1,maybe,0").encode(),
        DataError,
        ["first at line 5"],
    ),
    "third level below a broken line": (
        "t.csv",
        b'"a\nz",b\n0,1\n1,0\n1,maybe\n',
        DataError,
        ["first at row 3 below the header"],
    ),
    "far third level": ("t.csv", LONG + b"0,2,0\n", DataError, ["2 (1 row, first at line 60002)"]),
    "spelling": ("t.csv", b"a,b\nYes,1\nYes,0\nyes,1\n", DataError, ["'Yes' (line 2)", "'yes' (line 4)"]),
    "infinity": ("t.csv", b"a,b\n0,1\ninf,0\n1,1\n", DataError, ["'a' has an infinite value (line 3"]),
    "blank": (
        "t.csv",
        CSV.replace("1,0,0", "1,,0").encode(),
        DataError,
        ["1 cell in 1 row is blank", "'b' (1)"],
    ),
    "question marks": (
        "t.csv",
        CSV.replace("1,0,0", "?,?,0").encode(),
        DataError,
        ["2 cells in 1 row are blank"],
    ),
    "many values": (
        "t.csv",
        ("a,b\n" + "".join(f"{k % 2},{k / 7:.3f}\n" for k in range(500))).encode(),
        DataError,
        ["'b' has more than 100 different values", "threshold"],
    ),
    "tabs": (
        "t.tsv",
        CSV.replace(",", "\t").replace("1\t0\t0", "1\t7\t0").encode(),
        DataError,
        ["7 (1 row, first"],
    ),
    "several arrays": ("t.npz", npz(train=GOOD, test=GOOD), FileError, ["train (4, 3)", "t.npz:train"]),
    "objects": ("t.npz", npz(x=np.array([[None, 1]], object)), FileError, ["Python objects"]),
    "npz cut short": ("t.npz", npz(x=GOOD)[:-30], FileError, ["damaged or truncated"]),
    "npz damaged": (
        "t.npz",
        npz(x=GOOD).replace(b"\x93NUMPY", b"\x93NUMPX"),
        FileError,
        ["damaged", "array 'x'"],
    ),
    "npz with a vector": ("t.npz", npz(x=GOOD[0]), DataError, ["1 dimension"]),
    "not an npz": ("t.npz", CSV.encode(), FileError, ["not an npz file"]),
    "npy cut short": ("t.npy", npz(x=GOOD)[42:120], FileError, ["t.npy"]),
    "not Parquet": ("t.parquet", CSV.encode(), FileError, ["not a Parquet file"]),
    "Parquet cut short": ("t.parquet", parquet()[:-20], FileError, ["damaged or truncated"]),
    "Parquet damaged": ("t.parquet", b"PAR1" + NOISE + parquet()[-400:], FileError, ["damaged"]),
}


@pytest.mark.parametrize("kind", FILES)
def test_bad_file(kind: str, tmp_path: Path) -> None:
    name, content, error, words = FILES[kind]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read_data(path)
    for word in words:
        assert word in str(caught.value)
    assert name in str(caught.value), "the message must name the file"


def test_missing_file_and_directory(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(CSV)
    with pytest.raises(FileError, match=r"There is no file .*vote\.csv; did you mean votes\.csv\?"):
        read_data(tmp_path / "vote.csv")
    with pytest.raises(FileError, match=r"the directory .*nowhere does not exist"):
        read_data(tmp_path / "nowhere" / "votes.csv")
    with pytest.raises(FileError, match="is a directory"):
        read_data(tmp_path)
    with pytest.raises(FileError, match="download"):
        read_data("https://example.org/votes.csv")
    with pytest.raises(FileError, match="is not a path"):
        read_data(" ")
    np.savez(tmp_path / "t.npz", a=GOOD)
    with pytest.raises(FileError, match="has no array 'b'"):
        read_data(f"{tmp_path}/t.npz:b")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(CSV)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match=r"votes\.csv cannot be opened: Permission denied"):
        read_data(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(FileError, match=r'pip install "edgewise\[parquet\]"'):
        read_data(path)


def test_structure_is_judged_before_the_body_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the body was read")

    monkeypatch.setattr("edgewise.data.text.TextTable.load", never)
    path = tmp_path / "t.csv"
    for content in (
        "a,b,a\n0,1,1\n",
        "a,,c\n0,1,1\n",
        "a\n1\n",
        "0,1,1\n0,0,1\n",
        "a,b\n0,1,0\n",
        "a,b\n0,1\n1",
    ):
        path.write_text(content)
        with pytest.raises((DataError, FileError)):
            read_data(path)
    path.write_text(CSV)
    with pytest.raises(DataError, match="'party'"):
        read_data(path, group="party")
    with pytest.raises(AssertionError, match="the body was read"):
        read_data(path)


def test_all_problems_in_one_message_worst_first() -> None:
    table = frame(c=[1, 1, 1, 1], d=[0, np.nan, 1, 0], e=["x", "y", "z", "w"], f=[0, np.inf, 1, 1])
    with pytest.raises(TableError) as caught:
        read_data(table, sample_weight=[1, 1])
    text = str(caught.value)
    places = [
        text.index(word)
        for word in ("'e' has 4 levels", "'f' has an inf", "shape (2,)", "blank, most", "one level")
    ]
    assert places == sorted(places)
    assert "5 problems, worst first" in text
    assert [problem.columns for problem in caught.value.problems] == [("e",), ("f",), (), ("d",), ("c",)]


def test_hundreds_of_problems_stay_readable(rng: np.random.Generator) -> None:
    with pytest.raises(TableError) as caught:
        read_data(rng.random((50, 300)))
    assert "300 problems" in str(caught.value)
    assert "and 288 more, in the columns 'x12'" in str(caught.value)
    assert len(str(caught.value)) < 4000


def test_the_way_out_works(rng: np.random.Generator) -> None:
    table = pd.DataFrame((rng.random((60, 8)) < 0.5).astype(float), columns=list("abcdefgh"))
    table["id"] = np.arange(60) + 0.5
    table["fixed"] = 1
    table.loc[:58, "c"] = np.nan
    table.loc[rng.choice(60, 12, replace=False), "d"] = np.nan
    with pytest.raises(TableError) as caught:
        read_data(table, drop_columns=["h"])
    error = caught.value
    assert error.remedy == {"drop_columns": ["h", "c", "id"], "missing": "drop", "constant": "drop"}
    data = read_data(table, **error.remedy)
    assert isinstance(data, BinaryData)
    assert (data.n_rows, data.n_variables) == (error.rows_left, error.columns_left) == (48, 6)
    assert "To go on without repairing it: drop_columns=['h', 'c', 'id'], missing='drop'" in str(error)


def test_no_way_out_is_offered_where_there_is_none() -> None:
    with pytest.raises(TableError) as caught:
        read_data({"a": ["x", "y", "z"], "b": ["u", "v", "w"], "c": [0, 1, 1]})
    assert caught.value.remedy == {}
    assert "To go on" not in str(caught.value)


def test_a_column_of_a_table_that_has_none():
    with pytest.raises(DataError, match=r"drop_columns asks for a column 'a', which is not there"):
        read_data(np.zeros((3, 0)), drop_columns=["a"])
