"""What used to end in an exception of somebody else's: each is a DataError or FileError with the way out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from edgewise.data import encode_rows, read_data
from edgewise.errors import DataError, FileError

GOOD = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
LONG = "x" * 200_000
LISTS = pa.array([[0], [1], [0], [1]])
STRUCTS = pa.array([{"k": 0}, {"k": 1}, {"k": 0}, {"k": 1}])


# Text.


@pytest.mark.parametrize(
    "text",
    [
        f"a,{LONG}\n0,1\n1,0\n",
        f'a,"{LONG}"\n0,1\n1,0\n',
        f'a,b\n0,"{LONG}"\n1,0\n',
        f'a,b\n0,1\n1,"{LONG}"\n1,0,0\n',
    ],
)
def test_very_long_fields_are_read_or_refused_by_name(text: str) -> None:
    with pytest.raises((DataError, FileError)) as caught:
        read_data(io.StringIO(text), columns=["a", "b"])
    assert len(str(caught.value)) < 2000
    assert "csv" not in type(caught.value).__module__


def test_a_very_long_name_is_a_name() -> None:
    assert read_data(io.StringIO(f"a,{LONG}\n0,1\n1,0\n1,1\n")).names == ("a", LONG)


# Streams.


class Failing(io.RawIOBase):
    name = "wire.csv"

    def read(self, size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


class Odd:
    def read(self) -> int:
        return 3


def closed() -> io.StringIO:
    stream = io.StringIO("a,b\n0,1\n1,0\n")
    stream.close()
    return stream


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (closed, "is closed; open it"),
        (Failing, r"wire.csv cannot be read \(Input/output error\)"),
        (Odd, "gives int instead of text or bytes"),
        (lambda: io.StringIO("a\ud800,b\n0,1\n"), "halves of characters"),
    ],
)
def test_streams_that_cannot_be_read(stream: Any, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read_data(stream())


def test_a_stream_that_only_writes(tmp_path: Path) -> None:
    with open(tmp_path / "t.csv", "w") as stream, pytest.raises(FileError, match=r"t.csv cannot be read"):
        read_data(stream)


def test_an_unknown_home() -> None:
    with pytest.raises(FileError, match=r"~nosuchuser/x.csv.*no user"):
        read_data("~nosuchuser/x.csv")


# Names and columns.


def test_halves_of_characters_in_names() -> None:
    with pytest.raises(DataError, match=r"'a\\ud800'.*half a character.*rename"):
        read_data(GOOD, names=["a\ud800", "b", "c"])


@pytest.mark.parametrize("cells", [LISTS, STRUCTS])
def test_nested_arrow_columns(cells: Any, tmp_path: Path) -> None:
    table = pa.table({"a": cells, "b": [0, 1, 1, 0], "c": [1, 1, 0, 0]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for source in (tmp_path / "t.parquet", table, frame):
        with pytest.raises(DataError, match="column 'a' holds lists or other containers"):
            read_data(source)
        with pytest.raises(DataError, match="column 'a' holds lists or other containers"):
            encode_rows(source, ["a", "b"], [(0, 1), (0, 1)])
        assert read_data(source, drop_columns=["a"]).names == ("b", "c")


@pytest.mark.parametrize("argument", ["columns", "drop_columns"])
@pytest.mark.parametrize(
    "value", [slice(0, 2), True, False, 1.5, [True, False, True], [slice(0, 2)], [None], [[0]]]
)
def test_columns_that_are_neither_names_nor_numbers(argument: str, value: Any) -> None:
    with pytest.raises(DataError, match=rf"{argument} (takes|asks for).*name"):
        read_data(GOOD, **{argument: value})


@pytest.mark.parametrize("argument", ["group", "sample_weight"])
def test_a_group_that_is_neither_name_nor_number(argument: str) -> None:
    with pytest.raises(DataError, match=argument):
        read_data(GOOD, **{argument: slice(0, 2)})
