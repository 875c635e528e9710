"""The checked table: `BinaryData` has one bit per cell, `LevelData` one byte."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from edgewise.data.strata import Strata
from edgewise.scales import Scales


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """A table as the rest of edgewise reads it; :func:`edgewise.data.read_data` makes it.

    Attributes
    ----------
    names : tuple of str
        Names of the variables.
    n_rows : int
        Number of rows.
    weights : float64 array (n_rows,), optional
        How often each row counts; None when every row counts once.
    levels : tuple of tuples
        The user's labels of the levels of every variable, for instance ``("n", "y")`` for 0 and 1.
    notes : tuple of str
        What was done at the door, in words.
    group : tuple of str, optional
        A label for each row that is not a variable.
    group_name : str, optional
        Name of the column the labels come from.
    blanks : tuple
        Labels that the user says are blanks.
    strata : Strata, optional
        Groups that are compared and covariates that are adjusted for, with the stratum of every row.
    unknown : uint8 array (p, ceil(n_rows / 8)), optional
        ``numpy.packbits`` of the cells that are blank, column by column, where blanks stay: their levels are
        zero and mean nothing. None where the table is complete.
    places : int64 array (n_rows,), optional
        The row of the source that each row is, counted from 0; None where all rows of the source are here.

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

    _arrays: ClassVar[tuple[str, ...]] = ("weights", "unknown", "places")

    names: tuple[str, ...]
    n_rows: int
    weights: np.ndarray | None
    levels: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    group: tuple[str, ...] | None = None
    group_name: str | None = None
    blanks: tuple[Any, ...] = ()
    strata: Strata | None = None
    unknown: np.ndarray | None = None
    places: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in self._arrays:
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
            for name, labels in zip(self.names, self.levels)
            if any(isinstance(label, str) for label in labels)
        )

    if TYPE_CHECKING:

        @property
        def scales(self) -> Scales:
            """The levels of the variables."""
            ...

    def values(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows `start` to `stop` as a uint8 array (rows, p) of the numbers of levels."""
        raise NotImplementedError

    def column(self, variable: int) -> np.ndarray:
        """One variable as a uint8 array (n_rows,) of the numbers of its levels."""
        raise NotImplementedError

    def parts(self) -> list[Data]:
        """The rows of every stratum by themselves."""
        if self.strata is None:
            return [self]
        of_row = self.strata.of_row
        return [self._some(of_row == k) for k in range(self.strata.layout.n_strata)]

    def _some(self, chosen: np.ndarray) -> Data:
        """Some of the rows, without their labels."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(
            self, n_rows=int(chosen.sum()), weights=weights, group=None, group_name=None, strata=None,
            unknown=None, places=None,
            **self._chosen_cells(chosen),
        )  # fmt: skip

    def _chosen_cells(self, chosen: np.ndarray) -> dict[str, Any]:
        """The cells of some rows, by the name of their array."""
        raise NotImplementedError

    def unknown_cells(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Which cells of the rows `start` to `stop` are blank: bool (rows, p)."""
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        if self.unknown is None or stop <= start:
            return np.zeros((max(0, stop - start), self.n_variables), bool)
        first = start // 8
        bits = np.unpackbits(self.unknown[:, first : (stop + 7) // 8], axis=1, count=stop - 8 * first)
        return np.ascontiguousarray(bits[:, start - 8 * first :].T.view(bool))

    def row_number(self, row: int) -> int:
        """The row of the source that a row is, counted from 1."""
        return int(row if self.places is None else self.places[row]) + 1

    def digest(self) -> str:
        """SHA-256 of names, levels, values and weights: equal data, equal digest, on every machine."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        head = json.dumps([list(self.names), *self._heading(), self.n_rows], ensure_ascii=True)
        total = hashlib.sha256(head.encode())
        total.update(np.ascontiguousarray(self._cells()).tobytes())
        if self.weights is not None:
            total.update(np.ascontiguousarray(self.weights, "<f8").tobytes())
        if self.strata is not None:
            total.update(json.dumps(self.strata.layout.to_dict(), ensure_ascii=True).encode())
            total.update(np.ascontiguousarray(self.strata.of_row, "<i8").tobytes())
        if self.unknown is not None:
            total.update(b"blank")
            total.update(np.ascontiguousarray(self.unknown).tobytes())
        return total.hexdigest()

    def _heading(self) -> list[Any]:
        """What the digest knows of the levels."""
        return [_labels(self.levels)]

    def _cells(self) -> np.ndarray:
        """The array of all cells."""
        raise NotImplementedError

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        return f"{type(self).__name__}({self.n_rows} rows x {self.n_variables} variables{weighted})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BinaryData(Data):
    """A table whose variables all have two levels.

    Attributes
    ----------
    packed : uint8 array (p, ceil(n_rows / 8))
        ``numpy.packbits`` of every column.

    The others are those of :class:`Data`.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data([["y", "n"], ["n", "n"], ["y", "y"]])
    >>> data
    BinaryData(3 rows x 2 variables)
    >>> data.levels, data.values().tolist()
    ((('n', 'y'), ('n', 'y')), [[1, 0], [0, 0], [1, 1]])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("packed", "weights", "unknown", "places")

    packed: np.ndarray

    @property
    def scales(self) -> Scales:
        """The levels of the variables: two each."""
        return Scales.binary(self.n_variables)

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

    def _cells(self) -> np.ndarray:
        return self.packed

    def _chosen_cells(self, chosen: np.ndarray) -> dict[str, Any]:
        rows = [np.packbits(self.column(variable)[chosen]) for variable in range(self.n_variables)]
        return {"packed": np.stack(rows)}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LevelData(Data):
    """A table with variables of more than two levels.

    Attributes
    ----------
    codes : uint8 array (p, n_rows)
        Number of the level of every cell.
    scales : Scales
        The levels of every variable.

    The others are those of :class:`Data`.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data({"stars": [1, 3, 2, 2], "bought": ["no", "yes", "yes", "no"]})
    >>> data
    LevelData(4 rows x 2 variables)
    >>> data.values().tolist()
    [[0, 0], [2, 1], [1, 1], [1, 0]]
    """

    _arrays: ClassVar[tuple[str, ...]] = ("codes", "weights", "unknown", "places")

    codes: np.ndarray
    scales: Scales

    def values(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows `start` to `stop` as a uint8 array (rows, p) of the numbers of levels."""
        return np.ascontiguousarray(self.codes[:, start:stop].T)

    def column(self, variable: int) -> np.ndarray:
        """One variable as a uint8 array (n_rows,) of the numbers of its levels."""
        return np.asarray(self.codes[variable])

    def kinds(self) -> dict[str, list[str]]:
        """Names of the variables of every kind."""
        found: dict[str, list[str]] = {}
        for name, scale in zip(self.names, self.scales):
            found.setdefault(scale.kind, []).append(name)
        return found

    def _heading(self) -> list[Any]:
        places = [[scale.kind, list(scale.positions), scale.reference] for scale in self.scales]
        return [_labels(self.levels), places]

    def _cells(self) -> np.ndarray:
        return self.codes

    def _chosen_cells(self, chosen: np.ndarray) -> dict[str, Any]:
        return {"codes": np.ascontiguousarray(self.codes[:, chosen])}


def _labels(levels: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
    return [[_plain(label) for label in pair] for pair in levels]


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, bool | int | float | str) else str(label)
