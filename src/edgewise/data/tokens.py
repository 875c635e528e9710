"""A fast path for plain delimited text: short cells, one line per row.

Cells are cut out by their separators and compared as whole machine words, all columns at once; a level is
looked at as text only when it is first met. Anything else (long cells in many columns, separators inside
quotes, blank or uneven lines) makes :func:`read_plain` return None, and the general reader takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from edgewise.data.factor import MANY, Factor
from edgewise.data.labels import is_empty, level_key, plain_label

BLOCK_BYTES = 1 << 19
WORD = 8
MOST_WORDS = 4
NEWLINE, RETURN = 10, 13
_NOTHING = np.uint64(2**64 - 1)  # eight bytes 0xff: never UTF-8 text
_FIRST_BYTES = np.array([2 ** (8 * count) - 1 for count in range(WORD + 1)], np.uint64)


class NotPlain(Exception):
    """The file needs the general reader."""


class Levels:
    """Levels of one column in order of appearance; those beyond `MANY` share one code."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self.positions: dict[Any, int] = {}
        self.exhausted = False

    def code(self, label: Any) -> int:
        """Code of a label, new or known; -1 for a blank."""
        label = plain_label(label)
        if is_empty(label):
            return -1
        key = level_key(label)
        if key not in self.positions:
            if len(self.labels) > MANY:
                self.exhausted = True
                return MANY
            self.positions[key] = len(self.labels)
            self.labels.append(label)
        return self.positions[key]


class PlainBody:
    """The cells of a plain file: codes of the variables and the text of other columns asked for."""

    def __init__(self, width: int, separator: str, variables: Sequence[int], raw: Sequence[int]) -> None:
        self.width = width
        self.separator = ord(separator)
        self.variables = np.array(variables, np.int64)
        self.levels = [Levels() for _ in variables]
        self.known: list[dict[bytes, int]] = [{} for _ in variables]
        # The two cells met first in every column, as words, and their codes: for comparing all at once.
        self.first_cells = np.full((2, MOST_WORDS, len(variables)), _NOTHING, np.uint64)
        self.first_codes = np.full((2, len(variables)), -1, np.int8)
        self.pieces: list[np.ndarray] = []
        self.raw: dict[int, list[str]] = {column: [] for column in raw}
        self.n_rows = 0

    def factor(self, position: int) -> Factor:
        """One variable, by its position among the variables."""
        codes = np.concatenate([piece[position] for piece in self.pieces])
        return Factor(codes, self.levels[position].labels, self.levels[position].exhausted)

    def take(self, block: bytes) -> None:
        """Read whole lines, each ended by a newline."""
        buffer = np.frombuffer(block, np.uint8)
        newline = buffer == NEWLINE
        ends = np.flatnonzero(newline | (buffer == self.separator))
        if len(ends) % self.width:
            raise NotPlain
        table = ends.reshape(-1, self.width)
        if np.count_nonzero(newline) != len(table) or not newline[table[:, -1]].all():
            raise NotPlain
        starts = np.empty_like(ends)
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
        starts = starts.reshape(table.shape)
        lengths = table - starts
        if b"\r" in block:
            lengths[:, -1] -= buffer[table[:, -1] - 1] == RETURN
            if (lengths < 0).any() or block.count(b"\r") != block.count(b"\r\n"):
                raise NotPlain
        for column, texts in self.raw.items():
            texts.extend(self._texts(block, starts[:, column], lengths[:, column]))
        if not np.array_equal(self.variables, np.arange(self.width)):
            starts, lengths = starts[:, self.variables], lengths[:, self.variables]
        self._encode(block, starts, lengths)
        self.n_rows += len(table)

    def _encode(self, block: bytes, starts: np.ndarray, lengths: np.ndarray) -> None:
        codes = np.empty(starts.shape, np.int8)
        n_words = -(-lengths.max(axis=0) // WORD)
        long_columns = np.flatnonzero(n_words > MOST_WORDS)
        if len(long_columns) > 2 + len(n_words) // 20:
            raise NotPlain
        for position in long_columns.tolist():
            codes[:, position] = self._spell(position, block, starts[:, position], lengths[:, position])
        # One column of long cells must not slow down all the others.
        for least, most in ((0, 1), (2, MOST_WORDS)):
            chosen = np.flatnonzero((least <= n_words) & (n_words <= most))
            if 0 < len(chosen) == len(n_words):
                self._compare(block, starts, lengths, chosen, codes)
            elif len(chosen):
                self._compare(block, starts[:, chosen], lengths[:, chosen], chosen, codes)
        self.pieces.append(np.ascontiguousarray(codes.T))

    def _compare(
        self, block: bytes, starts: np.ndarray, lengths: np.ndarray, columns: np.ndarray, codes: np.ndarray
    ) -> None:
        """Codes of some columns, most of whose cells are one of the two met first."""
        cells = _words(block, starts, lengths, int(lengths.max()))
        known = self.first_cells[:, :, columns]
        # A known cell longer than all of these would match by its first words alone.
        fits = (known[:, len(cells) :] == 0).all(axis=1)
        first, second = (
            np.logical_and.reduce([word == expected for word, expected in zip(cells, each)]) & fit
            for each, fit in zip(known, fits)
        )
        codes[:, columns] = np.where(first, self.first_codes[0, columns], self.first_codes[1, columns])
        for place in np.flatnonzero(~(first | second).all(axis=0)).tolist():
            position = int(columns[place])
            codes[:, position] = self._learn(position, [word[:, place] for word in cells])

    def _learn(self, position: int, words: list[np.ndarray]) -> np.ndarray | int:
        """Codes of a column that has cells other than its first two."""
        known, levels = self.known[position], self.levels[position]
        if levels.exhausted:
            return MANY
        texts = np.ascontiguousarray(np.stack(words, axis=1)).view(f"S{WORD * len(words)}").ravel()
        if len(words) == 1:
            # Integers are sorted much faster than texts.
            _, first_rows, inverse = np.unique(words[0], return_index=True, return_inverse=True)
        else:
            _, first_rows, inverse = np.unique(texts, return_index=True, return_inverse=True)
        found = np.full(len(first_rows), MANY, np.int8)
        for place in np.argsort(first_rows).tolist():
            cell = bytes(texts[first_rows[place]])
            if cell not in known:
                known[cell] = levels.code(unquote(_decode(cell)))
                if levels.exhausted:
                    break
                if len(known) <= 2:
                    spelled = np.frombuffer(cell.ljust(WORD * MOST_WORDS, b"\0"), "<u8")
                    self.first_cells[len(known) - 1, :, position] = spelled
                    self.first_codes[len(known) - 1, position] = known[cell]
            found[place] = known[cell]
        return found[inverse]

    def _spell(self, position: int, block: bytes, starts: np.ndarray, lengths: np.ndarray) -> list[int] | int:
        """Codes of a column with cells too long to be compared as words."""
        levels = self.levels[position]
        if levels.exhausted:
            return MANY
        texts = self._texts(block, starts, lengths)
        translation = {text: levels.code(text) for text in dict.fromkeys(texts)}
        return [translation[text] for text in texts]

    @staticmethod
    def _texts(block: bytes, starts: np.ndarray, lengths: np.ndarray) -> list[str]:
        stops = (starts + lengths).tolist()
        return [unquote(_decode(block[start:stop])) for start, stop in zip(starts.tolist(), stops)]


def _words(block: bytes, starts: np.ndarray, lengths: np.ndarray, longest: int) -> list[np.ndarray]:
    """The bytes of every cell as integers of eight bytes each; bytes beyond its end are zero."""
    if longest <= 1:
        letters = np.frombuffer(block, np.uint8).take(starts, mode="clip")
        return [(letters * (lengths > 0)).astype("<u8")]
    count = -(-longest // WORD)
    # Overlapping windows, one from every byte on: indexing copies only those at which a cell starts.
    windows: np.ndarray = np.ndarray(
        len(block), f"V{WORD * count}", block + bytes(WORD * count), strides=(1,)
    )
    # `take` is quicker but copies every window first, which pays where most of them are used.
    dense = len(block) * count < 8 * starts.size
    places = starts.ravel()
    gathered = windows.take(places, mode="clip") if dense else windows[places]
    gathered = gathered.view("<u8").reshape(*starts.shape, count)
    # Clipping a length to 0..8 picks the mask of the bytes that belong to the cell.
    return [
        gathered[..., k] & _FIRST_BYTES.take(lengths - WORD * k if k else lengths, mode="clip")
        for k in range(count)
    ]


def unquote(text: str) -> str:
    """The text without the quotes around it; a quote anywhere else is not plain."""
    text = text.strip(" ")
    if '"' not in text:
        return text
    inner = text[1:-1]
    if len(text) < 2 or text[0] != '"' or text[-1] != '"' or '"' in inner:
        raise NotPlain
    return inner


def _decode(cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        raise NotPlain from None


def read_plain(
    handle: BinaryIO, width: int, separator: str, variables: Sequence[int], raw: Sequence[int]
) -> PlainBody | None:
    """Read the lines below the header, or None where the file is not plain."""
    body = PlainBody(width, separator, variables, raw)
    header = handle.readline()
    if header.count(separator.encode()) != width - 1:
        return None
    rest = b""
    try:
        while block := handle.read(BLOCK_BYTES):
            cut = block.rfind(b"\n") + 1
            if cut:
                body.take(rest + block[:cut])
                rest = block[cut:]
            else:
                rest += block
        if rest:
            body.take(rest + b"\n")
    except NotPlain:
        return None
    return body
