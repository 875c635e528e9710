"""`read_data`: the one door between what the user has and what edgewise computes with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from edgewise.data.levels import containers, encode, is_blank
from edgewise.data.memory import Table, too_large
from edgewise.data.notes import label_columns, level_notes, twin_note
from edgewise.data.problems import (
    CONSTANT,
    LEVELS,
    NAMES,
    SHAPE,
    WEIGHTS,
    Fault,
    TableError,
    counted,
    listing,
)
from edgewise.data.remedy import blank_problem, columns_to_leave_out, complete_rows
from edgewise.data.selection import Selection, as_list, select
from edgewise.data.sources import open_table
from edgewise.data.table import BinaryData
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.reading import physical_memory

CELL_BYTES = 24  # of a column while it is read: the cells, their levels, their bits


def read_data(
    source: Any,
    *,
    names: Sequence[str] | None = None,
    sample_weight: Any = None,
    columns: Iterable[str | int] | None = None,
    drop_columns: Iterable[str | int] | None = None,
    group: str | int | None = None,
    missing: str = "error",
    constant: str = "error",
) -> BinaryData:
    """Read a binary table, checking everything.

    Parameters
    ----------
    source : array, list of rows, mapping, DataFrame (pandas, polars), sparse matrix, path or open file
        Files are CSV, TSV (both also gzipped), npz, npy or Parquet. ``measurements.npz:train`` takes one
        array out of an npz file that has several; ``-`` is standard input.
    names : sequence of str, optional
        Names of the columns, replacing those of the source. Unnamed columns are called x0, x1, ...
    sample_weight : array or str, optional
        How often each row counts, or the name of a column that says so.
    columns, drop_columns : sequence of str or int, optional
        Take only these columns, or all but these.
    group : str or int, optional
        A column that labels the rows and is not a variable.
    missing : {"error", "drop"}
        Whether a blank cell is an error or its row is left out.
    constant : {"error", "keep", "drop"}
        Whether a column with one level is an error, kept (the prior alone then speaks about its other
        level) or left out.

    Returns
    -------
    BinaryData

    Raises
    ------
    DataError
        With everything that is wrong with the table, worst first (a :class:`TableError`).
    FileError
        When there is no readable file.

    Examples
    --------
    >>> data = read_data({"rain": ["no", "yes", "yes"], "umbrella": ["no", "yes", "no"]})
    >>> data.names, data.levels[0], data.values().tolist()
    (('rain', 'umbrella'), ('no', 'yes'), [[0, 0], [1, 1], [1, 0]])
    """
    _check_choice("missing", missing, ("error", "drop"))
    _check_choice("constant", constant, ("error", "keep", "drop"))
    if isinstance(source, BinaryData):
        if any(argument is not None for argument in (names, sample_weight, columns, drop_columns, group)):
            raise DataError(
                "The data have been read already; give names, sample_weight, columns, drop_columns and group "
                "when reading them."
            )
        return source
    table = open_table(source)
    problems: list[Fault] = []
    if names is not None:
        _rename(table, names)
    selection = select(table.names, columns, drop_columns, group, sample_weight, problems)
    if problems:
        raise TableError(table.origin, problems)
    dropped = [] if drop_columns is None else [str(column) for column in as_list(drop_columns)]
    return _Reading(table, selection, sample_weight, dropped, missing, constant).run()


def _numbers(given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as floats, and which of them are masked."""
    if isinstance(given, list | tuple):
        masked = np.array([cell is np.ma.masked for cell in given], bool)
        return np.asarray([0 if cell is np.ma.masked else cell for cell in given], float), masked
    array = np.asanyarray(given)
    return np.asarray(np.ma.getdata(array), float), np.ma.getmaskarray(array)


def _check_choice(what: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise DataError(f"{what} must be one of {', '.join(map(repr, choices))}; not {value!r}.")


def _rename(table: Table, names: Sequence[str]) -> None:
    given = [str(name) for name in as_list(names)]
    if len(given) != len(table.names):
        count = counted(len(table.names), "column")
        text = f"it has {count} and names has {len(given)}; give one name per column."
        raise TableError(table.origin, [Fault(NAMES, text)])
    table.names = given


class _Reading:
    """One pass through the body of a table; every column is one row of `packed`, in the order of `names`."""

    def __init__(
        self,
        table: Table,
        selection: Selection,
        sample_weight: Any,
        dropped: list[str],
        missing: str,
        constant: str,
    ) -> None:
        self.table = table
        self.selection = selection
        self.sample_weight = sample_weight
        self.dropped = dropped
        self.missing = missing
        self.constant = constant
        self.names = [table.names[column] for column in selection.variables]
        self.problems: list[Fault] = []
        self.notes: list[str] = []

    def run(self) -> BinaryData:
        """Read, check and pack."""
        selection = self.selection
        aside = [column for column in (selection.group, selection.weight) if column is not None]
        self._check_size()
        self.table.load(selection.variables, aside)
        if self.table.n_rows == 0:
            raise TableError(
                self.table.origin, [Fault(SHAPE, "it has no rows; give at least one observation.")]
            )
        weights = self._weights()
        self._encode()
        keep = self._rows_to_keep(weights)
        fixed = self._constant_columns(keep)
        if self.problems:
            raise self._refusal()
        return self._pack(keep, weights, fixed)

    def _check_size(self) -> None:
        """Refuse what does not fit into memory: all columns as bits, and the one that is being read."""
        rows, columns = self.table.n_rows, len(self.names)
        size = rows * columns / 8 + rows * CELL_BYTES
        if size > physical_memory():
            text = too_large(f"{rows:,} x {columns:,}", size)
            raise TableError(self.table.origin, [Fault(SHAPE, text)])

    def _weights(self) -> np.ndarray | None:
        if self.sample_weight is None:
            return None
        column = self.selection.weight
        given = self.sample_weight if column is None else self.table.raw(column)
        try:
            weights, masked = _numbers(given)
        except (TypeError, ValueError):
            self.problems.append(Fault(WEIGHTS, "sample_weight must hold numbers, one per row."))
            return None
        n_rows = self.table.n_rows
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if weights.shape != (n_rows,):
            text = (
                f"sample_weight has shape {weights.shape}; give one number for each of the {n_rows:,} rows."
            )
        elif (wrong | masked).any():
            row = int(np.flatnonzero(wrong | masked)[0])
            found = "masked" if masked[row] else f"{weights[row]:g}"
            text = (
                f"sample_weight is {found} at {self.table.where(row)}; weights must be finite and not "
                "negative."
            )
        elif not weights.any():
            text = "every sample_weight is zero, so that no row counts; give at least one a positive weight."
        else:
            return weights
        self.problems.append(Fault(WEIGHTS, text))
        return None

    def _encode(self) -> None:
        """Turn every column into packed bits, and its blanks too."""
        table = self.table
        self.levels: list[tuple[Any, Any] | None] = []
        self.packed = np.zeros((len(self.names), (table.n_rows + 7) // 8), np.uint8)
        self.blanks: dict[int, np.ndarray] = {}
        for position, (column, name) in enumerate(zip(self.selection.variables, self.names)):
            try:
                encoded = encode(table.column(column), name, table.where)
            except (TypeError, NotImplementedError):
                self.problems.append(containers(name))
                self.levels.append(None)
                continue
            levels, problem = encoded.levels, encoded.problem
            if encoded.missing is not None:
                if encoded.missing.all():
                    text = (
                        f"column {name!r} is blank in every row; leave it out with drop_columns=[{name!r}]."
                    )
                    levels, problem = None, Fault(LEVELS, text, (name,))
                elif levels is not None:
                    self.blanks[position] = np.packbits(encoded.missing)
            self.levels.append(levels)
            if problem is not None:
                self.problems.append(problem)
            else:
                self.packed[position] = np.packbits(encoded.bits)
            if encoded.note:
                self.notes.append(encoded.note)

    def _rows_to_keep(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Rows that count: None for all of them."""
        n_rows = self.table.n_rows
        keep = None
        if self.blanks:
            complete = complete_rows(self.blanks, n_rows)
            if self.missing == "drop" and complete.any():
                keep = complete
                self.notes.append(f"{int(complete.sum()):,} of {n_rows:,} rows are complete and stay")
            else:
                self.problems.append(blank_problem(self.blanks, self.names, n_rows, self.missing == "drop"))
        if weights is not None and not weights.all():
            counting = weights > 0
            keep = counting if keep is None else keep & counting
            self.notes.append(f"{counted(int((~counting).sum()), 'row')} of weight zero left out")
            if not keep.any():
                self.problems.append(
                    Fault(WEIGHTS, "every complete row has the weight zero, so that no row counts.")
                )
                return None
        return keep

    def _constant_columns(self, keep: np.ndarray | None) -> list[int]:
        fixed = self._fixed(keep, range(len(self.names)))
        if fixed and self.constant == "error":
            words = []
            for position in fixed:
                zero, one = self.levels[position] or (0, 1)
                words.append(
                    f"{self.names[position]!r} (always {(one if self._ones(position, keep) else zero)!r})"
                )
            dropping = keep is not None and self.missing == "drop" and bool(self.blanks)
            after = " once the incomplete rows are left out" if dropping else ""
            text = (
                f"{counted(len(fixed), 'column')} with one level only{after}: {listing(words)}; leave such "
                "columns out with constant='drop', or keep them with constant='keep'."
            )
            self.problems.append(Fault(CONSTANT, text, tuple(self.names[position] for position in fixed)))
        if fixed and self.constant == "drop" and not self.problems:
            left = len(self.names) - len(fixed)
            if left < 2:
                text = (
                    f"all but {left} of {counted(len(self.names), 'column')} have one level only; dependence "
                    "needs two or more variables that vary."
                )
                self.problems.append(Fault(SHAPE, text))
        return fixed

    def _fixed(self, keep: np.ndarray | None, positions: Iterable[int]) -> list[int]:
        """Usable columns that have one level in the rows kept."""
        kept_bits = None if keep is None else np.packbits(keep)
        n_kept = self.table.n_rows if keep is None else int(keep.sum())
        fixed = []
        for position in positions:
            if self.levels[position] is None:
                continue
            valid = n_kept
            blank = self.blanks.get(position)
            if blank is not None:
                valid -= int(np.bitwise_count(blank if kept_bits is None else blank & kept_bits).sum())
            if self._ones(position, keep) in (0, valid):
                fixed.append(position)
        return fixed

    def _ones(self, position: int, keep: np.ndarray | None) -> int:
        bits = self.packed[position] if keep is None else self.packed[position] & np.packbits(keep)
        return int(np.bitwise_count(bits).sum())

    def _refusal(self) -> TableError:
        """The error with all problems and, where there is one, a set of arguments that gets round them."""
        usable = [position for position, levels in enumerate(self.levels) if levels is not None]
        if len(usable) < 2 or any(
            problem.severity <= NAMES or problem.severity == WEIGHTS for problem in self.problems
        ):
            return TableError(self.table.origin, self.problems)
        n_rows = self.table.n_rows
        emptiest = set(columns_to_leave_out(self.blanks, n_rows, len(usable)) if self.blanks else [])
        rest = [position for position in usable if position not in emptiest]
        # Blanks are of usable columns only.
        blanks = {position: bits for position, bits in self.blanks.items() if position not in emptiest}
        keep = complete_rows(blanks, n_rows) if blanks else None
        fixed = self._fixed(keep, rest) if self.constant != "keep" else []
        rows_left = n_rows if keep is None else int(keep.sum())
        columns_left = len(rest) - len(fixed)
        leave_out = [self.names[k] for k in range(len(self.names)) if k in emptiest or self.levels[k] is None]
        remedy: dict[str, Any] = {}
        # One column of words that no other shares says what a row is, not what was answered.
        labels = label_columns([self.names[k] for k in rest], [self.levels[k] for k in rest])
        label = labels[0] if self.selection.group is None and len(labels) == 1 and columns_left > 2 else None
        if label is not None:
            leave_out.append(label)
            columns_left -= label not in {self.names[k] for k in fixed}
        if leave_out or self.dropped:
            remedy["drop_columns"] = [*self.dropped, *leave_out]
        if blanks:
            remedy["missing"] = "drop"
        if fixed:
            remedy["constant"] = "drop"
        if rows_left == 0 or columns_left < 2:
            remedy = {}
        return TableError(self.table.origin, self.problems, remedy, rows_left, columns_left, label)

    def _pack(self, keep: np.ndarray | None, weights: np.ndarray | None, fixed: list[int]) -> BinaryData:
        order = list(range(len(self.names)))
        n_rows = self.table.n_rows
        if fixed and self.constant == "drop":
            left_out = set(fixed)
            order = [position for position in order if position not in left_out]
            self.notes.append(f"constant columns left out: {listing([self.names[k] for k in fixed], 20)}")
        elif fixed:
            self.notes.append(f"constant columns kept: {listing([self.names[k] for k in fixed], 20)}")
        packed = self.packed if len(order) == len(self.names) else self.packed[order]
        if keep is not None and not keep.all():
            kept = [np.packbits(np.unpackbits(bits, count=n_rows).view(bool)[keep]) for bits in packed]
            packed = np.stack(kept)
            n_rows = int(keep.sum())
            weights = None if weights is None else weights[keep]
        else:
            keep = None
        names = [self.names[position] for position in order]
        levels = [self.levels[position] or (0, 1) for position in order]
        self.notes += level_notes(names, levels)
        twins = twin_note(names, packed, n_rows)
        if twins is not None:
            self.notes.append(twins)
            warnings.warn(
                f"{self.table.origin} has {twins}. Their dependence is perfect and hides what else each "
                "depends on; keep one of each with drop_columns unless that is what you want.",
                EdgewiseWarning,
                stacklevel=4,
            )
        return BinaryData(
            packed=packed,
            names=tuple(names),
            n_rows=n_rows,
            weights=weights,
            levels=tuple(levels),
            notes=tuple(self.notes),
            group=self._group_labels(keep),
            group_name=None if self.selection.group is None else self.table.names[self.selection.group],
        )

    def _group_labels(self, keep: np.ndarray | None) -> tuple[str, ...] | None:
        if self.selection.group is None:
            return None
        labels = self.table.raw(self.selection.group)
        rows = range(self.table.n_rows) if keep is None else np.flatnonzero(keep).tolist()
        return tuple("" if is_blank(labels[row]) else str(labels[row]) for row in rows)
