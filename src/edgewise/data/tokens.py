"""A fast path for plain delimited text: short cells, one line per row.

Cells are cut out by their separators and compared as whole machine words, all columns at once; a level is
looked at as text only when it is first met. Anything else (long cells in many columns, separators inside
quotes, blank or uneven lines) makes :func:`read_plain` return None, and the general reader takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from edgewise.data.levels import MANY, Factor, is_blank, level_key, plain_label

BLOCK_BYTES = 1 << 19
WORD = 8
NEWLINE, RETURN = 10, 13
_NO_KEY = np.uint64(2**64 - 1)  # eight bytes 0xff: never UTF-8 text


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
        if is_blank(label):
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
        self.known: list[dict[int, int]] = [{} for _ in variables]
        # The two words met first in every column and their codes, for comparing all columns at once.
        self.words = np.full((2, len(variables)), _NO_KEY, np.uint64)
        self.word_codes = np.full((2, len(variables)), -1, np.int8)
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
        if len(self.variables) < self.width:
            starts, lengths = starts[:, self.variables], lengths[:, self.variables]
        self._encode(block, buffer, starts, lengths)
        self.n_rows += len(table)

    def _encode(self, block: bytes, buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        longest = lengths.max(axis=0)
        long_columns = np.flatnonzero(longest > WORD)
        if len(long_columns) > 2 + len(longest) // 20:
            raise NotPlain
        words = self._words(buffer, starts, lengths, int(min(longest.max(), WORD)))
        largest = np.iinfo(words.dtype).max
        # A known word too long for this block matches nothing: no cell is all 0xff.
        first, second = (words == np.minimum(known, largest).astype(words.dtype) for known in self.words)
        codes = np.where(first, self.word_codes[0], self.word_codes[1])
        strange = ~(first | second)
        strange[:, long_columns] = False
        for position in np.flatnonzero(strange.any(axis=0)).tolist():
            self._learn(block, position, words[:, position], starts[:, position], lengths[:, position], codes)
        for position in long_columns.tolist():
            code = self.levels[position].code
            texts = self._texts(block, starts[:, position], lengths[:, position])
            translation = {text: code(unquote(text)) for text in dict.fromkeys(texts)}
            codes[:, position] = [translation[text] for text in texts]
        self.pieces.append(np.ascontiguousarray(codes.T))

    @staticmethod
    def _words(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, longest: int) -> np.ndarray:
        """The bytes of every cell as one integer; bytes beyond its end are zero."""
        kind = next(
            kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if longest <= np.dtype(kind).itemsize
        )
        padded = np.concatenate([buffer, np.zeros(WORD, np.uint8)])
        words = np.zeros(starts.shape, kind)
        for byte in range(longest):
            letters = padded[starts + byte] if byte else padded[starts]
            letters *= lengths > byte
            words |= letters.astype(kind) << kind(8 * byte)
        return words

    def _learn(
        self,
        block: bytes,
        position: int,
        words: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        codes: np.ndarray,
    ) -> None:
        """Codes of a column that has words other than its first two."""
        known, levels = self.known[position], self.levels[position]
        if levels.exhausted:
            codes[:, position] = MANY
            return
        values, first_rows, inverse = np.unique(words, return_index=True, return_inverse=True)
        found = np.empty(len(values), np.int8)
        for k in np.argsort(first_rows):
            word = int(values[k])
            if word not in known:
                start = starts[first_rows[k]]
                known[word] = levels.code(unquote(_decode(block[start : start + lengths[first_rows[k]]])))
                if len(known) <= 2:
                    self.words[len(known) - 1, position] = word
                    self.word_codes[len(known) - 1, position] = known[word]
            found[k] = known[word]
        codes[:, position] = found[inverse]

    @staticmethod
    def _texts(block: bytes, starts: np.ndarray, lengths: np.ndarray) -> list[str]:
        stops = (starts + lengths).tolist()
        return [unquote(_decode(block[start:stop])) for start, stop in zip(starts.tolist(), stops)]


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
