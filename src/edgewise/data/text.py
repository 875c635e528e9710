"""Delimited text: the header is checked at once, the body read in pieces.

Plain files go through ``tokens.py``; pandas reads those with quotes, long cells or odd lines.
"""

from __future__ import annotations

import contextlib
import csv
import io
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from edgewise.data.content import GZIP_ERRORS, HEAD, Content
from edgewise.data.factor import Factor, factorise
from edgewise.data.labels import BLANKS, EMPTY
from edgewise.data.memory import EXACT, pandas_cells
from edgewise.data.problems import SHAPE, Fault, TableError
from edgewise.data.tokens import Levels, PlainBody, read_plain
from edgewise.errors import FileError

DELIMITERS = ",\t;|"
PIECE_CELLS = 8_000_000
PIECE_BYTES = 1 << 18
LONGEST_FIELD = 2**31 - 1
# Of one line: bytes, and columns. A column takes about so many bytes for what is kept of it alone.
LONGEST_LINE = 64_000_000
MOST_COLUMNS = 1_000_000
COLUMN_BYTES = 2_000
_limit = threading.Lock()
# A header made of these only is the first row of a table without one.
DATA_WORDS = {"0", "1", "-1", "0.0", "1.0", "-1.0", "true", "false", "y", "n", "yes", "no", "t", "f"}
DATA_WORDS |= {word.casefold() for word in BLANKS}


def open_text(content: Content) -> TextTable:
    """Check the first lines of a text file and return its table."""
    text = content.head.decode("utf-8-sig", errors="ignore")
    whole = len(content.head) < HEAD
    suffix = "" if content.path is None else "".join(content.path.suffixes[-2:]).lower()
    delimiter = _delimiter(text, "\t" if ".tsv" in suffix or ".tab" in suffix else ",")
    header, first = _first_rows(content, text, delimiter, whole)
    header = [name.strip() for name in header]
    if len(header) == 1:
        words = header[0].split()
        hint = (
            "it seems to be separated by spaces; separate the columns by commas"
            if len(words) > 1
            else "separate the columns by commas, or give a table with two or more columns"
        )
        raise TableError(
            content.origin, [Fault(SHAPE, f"the first line has one column only, {header[0]!r}; {hint}.")]
        )
    if all(name.casefold() in DATA_WORDS for name in header) and not _numbered(header):
        raise TableError(
            content.origin,
            [
                Fault(
                    SHAPE,
                    f"the first line ({delimiter.join(header)[:40]}...) looks like data; "
                    "put a line of column names before it.",
                )
            ],
        )
    if first is None:
        raise TableError(
            content.origin, [Fault(SHAPE, "it has column names and no rows; add the observations.")]
        )
    if len(first) != len(header):
        hint = "give every line one field per column"
        if len(first) == len(header) + 1:
            hint = (
                "if the first field names the rows, as R's write.table does, write the file without row names"
            )
        raise FileError(
            f"{content.origin}: the first line names {len(header)} columns and the next has {len(first)} "
            f"fields; {hint}."
        )
    table = TextTable(content, header, delimiter)
    table.check_end()
    return table


def _numbered(header: Sequence[str]) -> bool:
    return len(header) > 2 and list(header) == [str(k) for k in range(len(header))]


def _delimiter(text: str, preferred: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    outside = "".join(line.split('"')[::2])
    counts = {mark: outside.count(mark) for mark in DELIMITERS}
    if counts.get(preferred):
        return preferred
    best = max(DELIMITERS, key=lambda mark: counts[mark])
    return best if counts[best] else preferred


def _first_rows(
    content: Content, text: str, delimiter: str, whole: bool
) -> tuple[list[str], list[str] | None]:
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        with _long_fields():
            for row in reader:
                if any(cell.strip() for cell in row) or len(row) > 1:
                    rows.append(row)
                if len(rows) == 3:
                    break
            if not whole and len(rows) < 3:
                # The head of a very wide file: read as many lines as it takes.
                with content.open() as handle:
                    lines = [_line(content, handle, delimiter) for _ in range(2)]
                rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error as error:
        raise FileError(f"{content.origin}: the first lines cannot be read as a table ({error}).") from None
    if not rows:
        raise content.error(
            "has no column names", "it should have a line of them and one line per observation"
        )
    return rows[0], rows[1] if len(rows) > 1 else None


def _line(content: Content, handle: BinaryIO, delimiter: str) -> str:
    """The next of the first lines; refused before it is split where it would take too much memory."""
    line = handle.readline(LONGEST_LINE + 1)
    columns = line.count(delimiter.encode()) + 1
    if columns > MOST_COLUMNS:
        raise content.error(
            f"has a line of {columns:,} columns or more at its beginning, which take "
            f"{columns * COLUMN_BYTES / 1e9:,.0f} GB or more to read",
            f"give a table of at most {MOST_COLUMNS:,} columns",
        )
    if len(line) > LONGEST_LINE:
        raise _too_long(content.origin, None)
    return line.decode("utf-8-sig", errors="replace")


def _too_long(origin: str, number: int | None) -> FileError:
    where = "a line at its beginning" if number is None else f"line {number}"
    return FileError(
        f"{origin}: {where} has more than {LONGEST_LINE // 1_000_000} MB, which is no row of a table; give "
        "one line per observation."
    )


class _Lines(io.RawIOBase):
    """A stream whose lines are refused when they become longer than any row, before a reader keeps them.

    A line that goes on beyond the piece in which it began is refused as soon as it has more separators than
    the header, too, where no quotes may hide some: a reader would make a field of each.
    """

    def __init__(self, table: TextTable, handle: BinaryIO) -> None:
        self._table = table
        self._handle = handle
        self._ended = 0  # lines so far
        self._length = self._marks = 0  # of the line that has not ended yet
        self._quoted = False

    def readable(self) -> bool:
        """Yes."""
        return True

    def close(self) -> None:
        """Close what it reads from, too."""
        self._handle.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        count: int = self._handle.readinto(buffer)  # type: ignore[attr-defined]
        block = bytes(memoryview(buffer)[:count])
        self._quoted = self._quoted or b'"' in block
        self._ended += block.count(b"\n")
        rest = block[max(block.rfind(b"\n"), block.rfind(b"\r")) + 1 :]
        if len(rest) < len(block):
            self._length = self._marks = 0
        self._length += len(rest)
        self._marks += rest.count(self._table.delimiter.encode())
        fields, width = self._marks + 1, len(self._table.names)
        if fields > (max(width, MOST_COLUMNS) if self._quoted else width):
            raise self._table.wrong_length((self._ended + 1, fields), " or more")
        if self._length > LONGEST_LINE:
            raise _too_long(self._table.origin, self._ended + 1)
        return count


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Let the csv module read fields of more than 131,072 characters; its limit is that of all threads."""
    with _limit:
        before = csv.field_size_limit(LONGEST_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


class TextTable:
    """A CSV or TSV file."""

    def __init__(self, content: Content, names: list[str], delimiter: str) -> None:
        self.origin = content.origin
        self.names = names
        self.n_rows = -1
        self._content = content
        self._width = len(names)
        self.delimiter = delimiter
        self._plain: PlainBody | None = None
        self._place: dict[int, int] = {}
        self._columns: dict[int, _Column] = {}
        self._raw: dict[int, list[Any]] = {}
        self._line_numbers: np.ndarray | int | None = None

    def check_end(self) -> None:
        """Refuse a file whose last line breaks off, where the end can be seen without reading all of it."""
        if self._content.zipped:
            return
        with self._content.raw() as handle:
            size = handle.seek(0, io.SEEK_END)
            handle.seek(max(0, size - HEAD))
            tail = handle.read()
        stripped = tail.rstrip(b"\r\n \t" if self.delimiter != "\t" else b"\r\n")
        start = max(stripped.rfind(b"\n"), stripped.rfind(b"\r")) + 1
        last = stripped[start:]
        if (start == 0 and size > HEAD) or b'"' in tail:
            return
        fields = last.count(self.delimiter.encode()) + 1
        if fields < self._width:
            raise FileError(
                f"{self.origin} is truncated: its last line has {fields} of {self._width} fields "
                f"({last[:40].decode(errors='replace')!r}); copy it again or complete the line."
            )

    def load(self, variables: Sequence[int], raw: Sequence[int] = ()) -> None:
        """Read the body in pieces; every piece of a column shrinks to one byte per cell at once."""
        try:
            with self._lines() as handle:
                self._plain = read_plain(handle, self._width, self.delimiter, variables, raw)
            if self._plain is None:
                self._load_by_pandas(variables, raw)
            else:
                self.n_rows = self._plain.n_rows
                self._line_numbers = 2
                self._place = {column: position for position, column in enumerate(variables)}
        except GZIP_ERRORS:
            raise FileError(f"{self.origin} is truncated: its gzip data end early; copy it again.") from None

    def _load_by_pandas(
        self, variables: Sequence[int], raw: Sequence[int], as_text: Sequence[int] = ()
    ) -> None:
        import pandas as pd

        self._columns = {index: _Column() for index in variables}
        self._raw = {index: [] for index in raw}
        self.n_rows = 0
        pieces = None
        try:
            with self._lines() as handle, warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                pieces = pd.read_csv(
                    handle,
                    sep=self.delimiter,
                    header=0,
                    names=list(range(self._width)),
                    index_col=False,
                    dtype=dict.fromkeys([*raw, *as_text], str),
                    na_values=sorted(EMPTY),
                    keep_default_na=False,
                    skipinitialspace=f'{self.delimiter} "'.encode() in self._content.head,
                    chunksize=max(1000, PIECE_CELLS // self._width),
                    low_memory=False,
                )
                for piece in pieces:
                    self._take(piece)
        except _Rounded:
            return self._load_by_pandas(variables, raw, variables)
        except pd.errors.ParserWarning:
            raise self.wrong_length(None) from None
        except pd.errors.ParserError as error:
            raise self._translate(error) from None
        except UnicodeDecodeError as error:
            raise FileError(
                f"{self.origin} is not UTF-8 text throughout ({error.reason}); save it as UTF-8."
            ) from None
        finally:
            if pieces is not None:
                # Earlier pandas flushes a stream that is closed already when reading has ended early.
                with contextlib.suppress(ValueError):
                    pieces.close()
        self._check_short_lines()

    def _take(self, piece: Any) -> None:
        self.n_rows += len(piece)
        for index, column in self._columns.items():
            cells = pandas_cells(piece[index])
            if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and _rounded(cells):
                raise _Rounded
            column.add(cells)
        for index, cells in self._raw.items():
            cells.extend(piece[index].tolist())

    def _lines(self) -> BinaryIO:
        """The file, no line of which is longer than a row may be."""
        return io.BufferedReader(_Lines(self, self._content.open()), PIECE_BYTES)

    def column(self, index: int) -> Factor:
        """The cells of one variable."""
        if self._plain is not None:
            return self._plain.factor(self._place[index])
        return self._columns[index].factor()

    def raw(self, index: int) -> Sequence[Any]:
        """The text of a column."""
        return self._raw[index] if self._plain is None else self._plain.raw[index]

    def where(self, row: int) -> str:
        """Line number of a row, or its number below the header where lines and rows do not match."""
        if self._line_numbers is None:
            self._line_numbers = self._find_lines()
        if isinstance(self._line_numbers, int):
            return (
                f"line {row + self._line_numbers}"
                if self._line_numbers
                else f"row {row + 1} below the header"
            )
        return f"line {self._line_numbers[row + 1]}"

    def _find_lines(self) -> np.ndarray | int:
        """Line number of the first row when all lines are rows, of every row otherwise, 0 if unknown."""
        breaks = 0
        last = b""
        with self._content.open() as handle:
            while block := handle.read(1 << 20):
                breaks += block.count(b"\n")
                last = block
        if breaks + (not last.endswith(b"\n")) == self.n_rows + 1:
            return 2
        with self._content.open() as handle:
            filled = [number for number, line in enumerate(handle, 1) if line.strip()]
        return np.array(filled) if len(filled) == self.n_rows + 1 else 0

    def _check_short_lines(self) -> None:
        """Pandas fills short lines with blanks; tell them from cells that were left empty on purpose."""
        last = self._columns.get(self._width - 1)
        if last is None or not last.has_blanks:
            return
        mark = self.delimiter.encode()
        with self._content.open() as handle:
            for number, line in enumerate(handle, 1):
                if line.count(mark) < self._width - 1 and line.strip() and b'"' not in line:
                    raise self.wrong_length((number, line.count(mark) + 1))

    def wrong_length(self, place: tuple[int, int] | None, more: str = "") -> FileError:
        """A line with another number of fields than the header, looked for where it is not known."""
        if place is None:
            with self._lines() as handle:
                text = io.TextIOWrapper(handle, "utf-8-sig", errors="replace")
                reader = csv.reader(text, delimiter=self.delimiter)
                with _long_fields(), contextlib.suppress(csv.Error):  # the line is a courtesy
                    for row in reader:
                        if len(row) > self._width:
                            place = (reader.line_num, len(row))
                            break
        line, fields = place or (0, 0)
        where = f"line {line} has {fields}{more} fields" if place else "a line has more fields"
        return FileError(
            f"{self.origin}: {where} and the first line names {self._width} columns; give every line one "
            "field per column, and put quotes around a field that contains the separator."
        )

    def _translate(self, error: Exception) -> FileError:
        text = str(error)
        if "Expected" in text and "saw" in text:
            return self.wrong_length(None)
        if "EOF inside string" in text:
            return FileError(
                f'{self.origin} is truncated or has a quote (") that is never closed; {text[-40:].strip()}.'
            )
        return FileError(f"{self.origin} cannot be read as a table: {text.strip()}.")


class _Rounded(Exception):
    """A column of whole numbers that floats cannot tell apart; it must be read as text."""


def _rounded(cells: np.ndarray) -> bool:
    return bool((np.abs(cells, where=np.isfinite(cells), out=np.zeros_like(cells)) >= EXACT).any())


class _Column:
    """A column that grows piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[np.ndarray] = []
        self.levels = Levels()
        self.has_blanks = False

    def add(self, cells: np.ndarray | Factor) -> None:
        """Append one piece."""
        if not isinstance(cells, Factor):
            cells = self._count(cells)
        target = np.full(len(cells.labels) + 1, -1, np.int8)
        for k, label in enumerate(cells.labels):
            target[k] = self.levels.code(label)
        codes = target[cells.codes]
        self.has_blanks |= bool((codes < 0).any())
        self.pieces.append(codes)

    @staticmethod
    def _count(cells: np.ndarray) -> Factor:
        """Levels of a column of numbers, without sorting where there are two."""
        valid = cells
        if cells.dtype.kind == "f" and np.isnan(cells).any():
            valid = cells[~np.isnan(cells)]
            if not len(valid):
                return Factor(np.full(len(cells), -1, np.int8), [])
        low, high = valid.min(), valid.max()
        codes = (cells == high).astype(np.int8)
        known = codes.view(bool) | (cells == low)
        if len(valid) < len(cells):
            known |= np.isnan(cells)
            codes[np.isnan(cells)] = -1
        return Factor(codes, [low, high]) if known.all() else factorise(cells)

    def factor(self) -> Factor:
        """The whole column."""
        codes = np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.int8)
        return Factor(codes, self.levels.labels, self.levels.exhausted)
