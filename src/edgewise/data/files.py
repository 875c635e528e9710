"""Files: what kind it is, judged by its first bytes, and the array formats (npz, npy, Parquet).

Everything that can be said without reading the body is said first.
"""

from __future__ import annotations

import difflib
import os
import sys
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.data.content import HEAD, Content
from edgewise.data.memory import Cells, ColumnsTable, Table, array_table, pandas_cells
from edgewise.data.text import open_text
from edgewise.errors import FileError
from edgewise.paths import as_path

READABLE = "CSV, TSV, npz, npy and Parquet files can be read (CSV and TSV also gzipped)"

# First bytes of files that people mistake for tables, and what to do about them.
FOREIGN = (
    (
        b"\x89HDF",
        "is an HDF5 or NetCDF file, perhaps a saved posterior; open that with edgewise.load_posterior",
    ),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook; save the sheet as CSV"),
    (b"BZh", "is compressed with bzip2; unpack it or compress it with gzip"),
    (b"\xfd7zXZ", "is compressed with xz; unpack it or compress it with gzip"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it or compress it with gzip"),
    (b"SQLite format 3", "is an SQLite database; export the table as CSV"),
    (b"%PDF", "is a PDF document; export the table as CSV"),
    (b"\x89PNG", "is a picture; give a table"),
    (b"$FL2", "is an SPSS file; save it as CSV"),
    (b"$FL3", "is an SPSS file; save it as CSV"),
    (b"ARROW1", "is an Arrow (Feather) file; save it as Parquet or CSV"),
    (b"RDX", "is an R data file; write the table with write.csv(table, row.names = FALSE)"),
    (b"\x1f\x8b", "is gzipped twice; unpack it once"),
    (b"\xff\xfe", "is encoded as UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "is encoded as UTF-16; save it as UTF-8"),
)


def open_file(source: Any) -> Table:
    """Look at the beginning of a file and return the table behind it, its body still unread."""
    key = None
    if hasattr(source, "read"):
        content = _from_stream(source)
    elif str(source) == "-" and not Path("-").exists():
        if sys.stdin is None:
            raise FileError("There is no standard input to read from; give the path of a file.")
        content = _from_stream(sys.stdin)
    else:
        path, key = _find(source)
        content = Content(str(source) if key is None else str(path), path)
    head = content.head
    if not head:
        raise content.error("is empty", "it should have a line of column names and one line per observation")
    if head.startswith(b"PK\x03\x04"):
        return _open_zip(content, key)
    if head.startswith(b"\x93NUMPY"):
        return _open_npy(content)
    if head.startswith(b"PAR1"):
        return _open_parquet(content)
    suffixes = "" if content.path is None else "".join(content.path.suffixes).lower()
    for ending, kind in ((".npz", "an npz"), (".npy", "an npy"), (".parquet", "a Parquet")):
        if suffixes.endswith(ending):
            raise content.error(f"is not {kind} file, whatever its name says", f"write it again; {READABLE}")
    for magic, what in FOREIGN:
        if head.startswith(magic):
            raise FileError(f"{content.origin} {what}. {READABLE}.")
    _check_text(content)
    return open_text(content)


def _from_stream(stream: Any) -> Content:
    name = getattr(stream, "name", None)
    origin = "standard input" if name in ("<stdin>", 0, None) else str(name)
    if getattr(stream, "closed", False) is True:
        raise FileError(f"{origin} is closed; open it again, or give its path.")
    binary = getattr(stream, "buffer", stream)
    try:
        content = binary.read()
        if isinstance(content, str):
            content = content.encode()
    except UnicodeDecodeError:
        raise FileError(f"{origin} is not UTF-8 text; save it as UTF-8.") from None
    except UnicodeEncodeError:
        raise FileError(f"{origin} has halves of characters (lone surrogates); save it as UTF-8.") from None
    except Exception as error:  # whatever the stream of a stranger raises
        detail = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FileError(
            f"{origin} cannot be read ({detail}); open it for reading, or give its path."
        ) from None
    if not isinstance(content, bytes | bytearray | memoryview):
        kind = type(content).__name__
        raise FileError(f"{origin} gives {kind} instead of text or bytes; give the path of a file.")
    return Content(origin, content=bytes(content))


def _find(source: Any) -> tuple[Path, str | None]:
    text = os.fspath(source)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    if "://" in text[:12]:
        raise FileError(f"{text} is an address on the network; download the file and give its path.")
    key = None
    try:
        path = as_path(text, "a table")
        if not path.exists() and ".npz:" in text:
            stem, _, key = text.rpartition(":")
            path = as_path(stem, "a table")
            path.exists()
    except OSError as error:
        raise FileError(f"{text[:60]!r} cannot be opened: {error.strerror}.") from None
    if path.is_dir():
        raise FileError(f"{path} is a directory; give the path of a file in it. {READABLE}.")
    if not path.exists():
        directory = path.parent
        if not directory.is_dir():
            raise FileError(f"There is no file {path}: the directory {directory} does not exist.")
        close = difflib.get_close_matches(path.name, os.listdir(directory), 3, 0.6)
        hint = f"did you mean {' or '.join(close)}?" if close else f"look in {directory.resolve()}."
        raise FileError(f"There is no file {path}; {hint}")
    return path, key


def _check_text(content: Content) -> None:
    head = content.head
    lowered = head[:200].lstrip().lower()
    if lowered.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise content.error(
            "is a web page or XML, not a table", "the download may have failed; save it as CSV"
        )
    if lowered.startswith((b"{", b"[{")):
        raise content.error(
            "is JSON, not a table", "convert it, for instance with pandas.read_json(...).to_csv(...)"
        )
    if lowered.startswith((b"version https://git-lfs",)):
        raise content.error("is a Git LFS pointer, not the data", "fetch the data with git lfs pull")
    if b"\0" in head:
        raise content.error("is not text: it has zero bytes", READABLE)
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 4 and len(head) == HEAD:
            text = head[: error.start].decode()
        else:
            bad = head[error.start]
            line = head.count(b"\n", 0, error.start) + 1
            raise content.error(
                f"is not UTF-8 text (byte 0x{bad:02x} in line {line})",
                "save it as UTF-8, or check that it is a table",
            ) from None
    strange = sum(ord(letter) < 32 and letter not in "\t\n\r\f\v" for letter in text[:4096])
    if strange:
        raise content.error("is not text: it has control characters", READABLE)
    if not text.strip("\ufeff \t\r\n"):
        raise content.error(
            "has blank lines only", "it should have a line of column names and one per observation"
        )


def _open_zip(content: Content, key: str | None) -> Table:
    with content.reading("it starts like an npz file"):
        archive = zipfile.ZipFile(content.open())
        members = archive.namelist()
    if any(name.startswith("xl/") for name in members):
        raise content.error("is an Excel workbook", "save the sheet as CSV")
    arrays = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if not arrays:
        raise content.error("is a zip archive without arrays", f"unpack it; {READABLE}")
    shapes = {}
    for name in arrays:
        with content.reading(f"array {name!r} has no readable head"), archive.open(f"{name}.npy") as handle:
            shapes[name] = _npy_shape(content, handle, name)
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if key is not None:
        if key not in arrays:
            raise content.error(f"has no array {key!r}", f"it has {', '.join(arrays)}")
        chosen = key
    elif len(tables) == 1:
        chosen = tables[0]
    elif len(arrays) == 1:
        chosen = arrays[0]
    else:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        example = f"{content.origin}:{(tables or arrays)[0]}"
        raise content.error(f"has {len(arrays)} arrays ({listed})", f"say which one, for instance {example}")

    def read(name: str) -> np.ndarray:
        with content.reading(f"array {name!r} cannot be read"), archive.open(f"{name}.npy") as handle:
            array: np.ndarray = np.lib.format.read_array(handle, allow_pickle=False)
            if handle.read():  # to the end, where the checksum is verified
                raise content.error(f"has more in array {name!r} than its head says", "write it again")
            return array

    origin = f"{content.origin} (array {chosen!r})" if len(arrays) > 1 else content.origin
    table = array_table(read(chosen), origin)
    if chosen != "names" and shapes.get("names") == (len(table.names),):
        table.names = [str(name) for name in read("names")]
    return table


def _npy_shape(content: Content, handle: Any, name: str) -> tuple[int, ...]:
    form = np.lib.format
    version = form.read_magic(handle)
    read_header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, _, dtype = read_header(handle)
    if dtype.hasobject:
        raise content.error(
            f"holds Python objects in array {name!r}, which are not safe to load",
            "save numbers or text instead",
        )
    return shape


def _open_npy(content: Content) -> Table:
    with content.reading("it starts like an npy file"):
        with content.open() as handle:
            _npy_shape(content, handle, "data")
        with content.open() as handle:
            array = np.lib.format.read_array(handle, allow_pickle=False)
    return array_table(array, content.origin)


def _open_parquet(content: Content) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise content.error(
            "is a Parquet file and pyarrow is not installed",
            'run pip install "edgewise[parquet]" or save it as CSV',
        ) from None
    return ParquetTable(content, pyarrow.parquet.ParquetFile)


class ParquetTable(ColumnsTable):
    """Columns of a Parquet file; its foot gives names and row count, and only the columns used are read."""

    def __init__(self, content: Content, reader: Any) -> None:
        with content.reading("it starts like a Parquet file"), content.open() as handle:
            opened = reader(handle)
            stored = [name for name in opened.schema_arrow.names if not name.startswith("__index_level_")]
            n_rows = opened.metadata.num_rows
        super().__init__(content.origin, stored, n_rows, self._cells, self._plain)
        self._content = content
        self._stored = stored
        self._reader = reader
        self._frame: Any = None
        self._place: dict[int, int] = {}

    def load(self, variables: Sequence[int], raw: Sequence[int] = ()) -> None:
        """Read the columns asked for."""
        wanted = sorted({*variables, *raw})
        with self._content.reading("its columns cannot be read"), self._content.open() as handle:
            names = list({self._stored[index]: None for index in wanted})
            self._frame = self._reader(handle).read(columns=names)
            self._frame.validate(full=True)
            if self._frame.num_rows != self.n_rows:
                raise ValueError(f"{self._frame.num_rows:,} rows instead of {self.n_rows:,}")
        # Asking for a name gives every column that has it, and those whose names go on with a dot.
        places = defaultdict(list)
        for position, name in enumerate(self._frame.column_names):
            places[name].append(position)
        for index in wanted:
            name = self._stored[index]
            self._place[index] = places[name][self._stored[:index].count(name)]

    def _cells(self, index: int) -> Cells:
        return pandas_cells(self._frame.column(self._place[index]).to_pandas(integer_object_nulls=True))

    def _plain(self, index: int) -> Any:
        return self._frame.column(self._place[index]).to_pandas().to_numpy()
