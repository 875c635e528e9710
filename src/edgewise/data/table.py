"""`BinaryData`: the checked table, one bit per cell."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class BinaryData:
    """A binary table as the rest of edgewise reads it; :func:`edgewise.data.read_data` makes it.

    Attributes
    ----------
    packed : uint8 array (p, ceil(n_rows / 8))
        ``numpy.packbits`` of every column.
    names : tuple of str
        Names of the variables.
    n_rows : int
        Number of rows.
    weights : float64 array (n_rows,), optional
        How often each row counts; None when every row counts once.
    levels : tuple of pairs
        The user's labels of 0 and of 1 of every variable, for instance ``("n", "y")``.
    notes : tuple of str
        What was done at the door, in words.
    group : tuple of str, optional
        A label for each row that is not a variable.
    group_name : str, optional
        Name of the column the labels come from.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data([["y", "n"], ["n", "n"], ["y", "y"]])
    >>> data
    BinaryData(3 rows x 2 variables)
    >>> data.levels
    (('n', 'y'), ('n', 'y'))
    >>> data.values().tolist()
    [[1, 0], [0, 0], [1, 1]]
    """

    packed: np.ndarray
    names: tuple[str, ...]
    n_rows: int
    weights: np.ndarray | None
    levels: tuple[tuple[Any, Any], ...]
    notes: tuple[str, ...] = ()
    group: tuple[str, ...] | None = None
    group_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("packed", "weights"):
            array = getattr(self, name)
            if array is not None:
                locked = array.view()
                locked.flags.writeable = False
                object.__setattr__(self, name, locked)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def n_variables(self) -> int:
        """Number p of variables."""
        return len(self.names)

    @property
    def total(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Names of the variables whose levels are words rather than numbers or booleans."""
        return tuple(
            name
            for name, pair in zip(self.names, self.levels)
            if any(isinstance(label, str) for label in pair)
        )

    def values(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows `start` to `stop` as a uint8 array (rows, p) of zeros and ones."""
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        if stop <= start:
            return np.zeros((0, self.n_variables), np.uint8)
        first_byte = start // 8
        block = self.packed[:, first_byte : (stop + 7) // 8]
        bits = np.unpackbits(block, axis=1, count=stop - 8 * first_byte)
        return np.ascontiguousarray(bits[:, start - 8 * first_byte :].T)

    def column(self, variable: int) -> np.ndarray:
        """One variable as a uint8 array (n_rows,) of zeros and ones."""
        return np.unpackbits(self.packed[variable], count=self.n_rows)

    def digest(self) -> str:
        """SHA-256 of names, levels, values and weights: equal data, equal digest, on every machine."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        head = json.dumps([list(self.names), _labels(self.levels), self.n_rows], ensure_ascii=True)
        total = hashlib.sha256(head.encode())
        total.update(np.ascontiguousarray(self.packed).tobytes())
        if self.weights is not None:
            total.update(np.ascontiguousarray(self.weights, "<f8").tobytes())
        return total.hexdigest()

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        return f"BinaryData({self.n_rows} rows x {self.n_variables} variables{weighted})"


def _labels(levels: tuple[tuple[Any, Any], ...]) -> list[list[Any]]:
    return [[_plain(label) for label in pair] for pair in levels]


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, bool | int | float | str) else str(label)
