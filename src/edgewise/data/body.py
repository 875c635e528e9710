"""The body of a table: every column as bits or level numbers, which rows count, and all that is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.data.division import Division
from edgewise.data.factor import factorise
from edgewise.data.levels import Encoded, containers, encode
from edgewise.data.memory import Table, too_large
from edgewise.data.notes import label_columns
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
from edgewise.data.remedy import blank_problem, columns_to_leave_out, complete_rows, silent_rows
from edgewise.data.selection import Selection
from edgewise.data.several import Several
from edgewise.data.wishes import Wishes
from edgewise.reading import physical_memory

# All rows together stand for so many at most: sums of their weights stay exact, and the engines true.
MOST_ROWS = 1e12
CELL_BYTES = 24  # of a column while it is read: the cells, their levels, their bits


def _numbers(given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as floats, and which of them are masked."""
    if isinstance(given, list | tuple):
        masked = np.array([cell is np.ma.masked for cell in given], bool)
        return np.asarray([0 if cell is np.ma.masked else cell for cell in given], float), masked
    array = np.asanyarray(given)
    return np.asarray(np.ma.getdata(array), float), np.ma.getmaskarray(array)


class Body:
    """One pass through the body of a table; every column is one row of `packed`, in the order of `names`.

    ``levels`` of a column are None where it cannot be used; ``several`` and ``blanks`` have those with more
    than two levels and with blanks; ``problems`` and ``notes`` are what is to be said.
    """

    def __init__(
        self,
        table: Table,
        selection: Selection,
        sample_weight: Any,
        dropped: list[str],
        missing: str,
        constant: str,
        wishes: Wishes,
        division: Division | None = None,
    ) -> None:
        self.table = table
        self.division = division
        self.selection = selection
        self.sample_weight = sample_weight
        self.dropped = dropped
        self.missing = missing
        self.constant = constant
        self.wishes = wishes
        self.names = [table.names[column] for column in selection.variables]
        self.problems: list[Fault] = []
        self.notes: list[str] = []

    def read(self) -> tuple[np.ndarray | None, np.ndarray | None, list[int]]:
        """Read and check; the rows that count (None: all), their weights, and the columns with one level."""
        selection = self.selection
        aside = [column for column in (selection.group, selection.weight) if column is not None]
        aside += [] if self.division is None else self.division.places
        self._check_size()
        # What is to be cut may have any number of values.
        aside += [column for column in selection.variables if column in self.wishes.cuts]
        self.table.load([k for k in selection.variables if k not in self.wishes.cuts], aside)
        if self.table.n_rows == 0:
            raise TableError(
                self.table.origin, [Fault(SHAPE, "it has no rows; give at least one observation.")]
            )
        weights = self._weights()
        if self.division is not None:
            self.division.read(self.table, self.wishes, self.problems)
        self._encode()
        keep = self._rows_to_keep(weights)
        fixed = self._constant_columns(keep)
        if self.problems:
            raise self._refusal()
        return keep, weights, fixed

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
            rows = "the one row" if n_rows == 1 else f"each of the {n_rows:,} rows"
            text = f"sample_weight has shape {weights.shape}; give one number for {rows}."
        elif (wrong | masked).any():
            row = int(np.flatnonzero(wrong | masked)[0])
            found = "masked" if masked[row] else f"{weights[row]:g}"
            text = (
                f"sample_weight is {found} at {self.table.where(row)}; weights must be finite and not "
                "negative."
            )
        elif not weights.any():
            text = "every sample_weight is zero, so that no row counts; give at least one a positive weight."
        elif not weights.max() <= MOST_ROWS or not weights.sum() <= MOST_ROWS:
            with np.errstate(over="ignore"):
                total = weights.sum()
            text = (
                f"the values of sample_weight add up to {total:g}, as if there were so many rows; divide "
                f"them by a number so that their sum is at most {MOST_ROWS:g} (usually the number of rows)."
            )
        else:
            return weights
        self.problems.append(Fault(WEIGHTS, text))
        return None

    def _encode(self) -> None:
        """Turn every column into packed bits, and its blanks too."""
        table = self.table
        self.levels: list[tuple[Any, ...] | None] = []
        self.several: dict[int, Several] = {}
        self.packed = np.zeros((len(self.names), (table.n_rows + 7) // 8), np.uint8)
        self.blanks: dict[int, np.ndarray] = {}
        for position, (column, name) in enumerate(zip(self.selection.variables, self.names)):
            try:
                encoded = self._encoded(column, name)
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
            elif encoded.several is not None:
                self.several[position] = encoded.several
            elif levels is not None:
                self.packed[position] = np.packbits(encoded.bits)
            if encoded.note:
                self.notes.append(encoded.note)

    def _encoded(self, column: int, name: str) -> Encoded:
        wish = self.wishes.of(column)
        cells: Any = self.table.column(column) if wish.cut is None else self.table.raw(column)
        if wish.cut is not None:
            cells = factorise(np.array(list(cells), object))
        return encode(cells, name, self.table.where, wish)

    def _rows_to_keep(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Rows that count: None for all of them."""
        n_rows = self.table.n_rows
        keep = None
        if self.blanks and self.missing == "impute":
            keep = self._rows_with_answers(weights)
        elif self.blanks:
            complete = complete_rows(self.blanks, n_rows)
            if self.missing == "drop" and complete.any():
                keep = complete
                self.notes.append(f"{int(complete.sum()):,} of {n_rows:,} rows are complete and stay")
            else:
                self.problems.append(blank_problem(self.blanks, self.names, n_rows, self.missing == "drop"))
        if self.division is not None:
            dropping = self.missing == "drop"
            nowhere = self.division.incomplete(self.table, dropping, self.problems, self.notes)
            if nowhere is not None:
                keep = ~nowhere if keep is None else keep & ~nowhere
        if weights is not None and not weights.all():
            counting = weights > 0
            keep = counting if keep is None else keep & counting
            self.notes.append(f"{counted(int((~counting).sum()), 'row')} of weight zero left out")
            if not keep.any():
                which = "row with an answer" if self.missing == "impute" else "complete row"
                self.problems.append(
                    Fault(WEIGHTS, f"every {which} has the weight zero, so that no row counts.")
                )
                return None
        return keep

    def _rows_with_answers(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Rows that say something, where blanks stay: None for all of them."""
        n_rows = self.table.n_rows
        silent = silent_rows(self.blanks, n_rows, len(self.names))
        if weights is not None:
            doubtful = ~complete_rows(self.blanks, n_rows) & ~silent & (weights % 1 != 0)
            if doubtful.any():
                row = int(np.flatnonzero(doubtful)[0])
                column = next(k for k, bits in self.blanks.items() if bits[row // 8] >> (7 - row % 8) & 1)
                text = (
                    f"sample_weight is {weights[row]:g} at {self.table.where(row)}, where column "
                    f"{self.names[column]!r} is blank; a row with blanks stands for a whole number of "
                    "rows, each with answers of its own. Round such weights, or leave these rows "
                    "out with missing='drop'."
                )
                self.problems.append(Fault(WEIGHTS, text, (self.names[column],)))
        if not silent.any():
            return None
        count = int(silent.sum())
        self.notes.append(f"{counted(count, 'row')} without any answer left out")
        return ~silent

    def _constant_columns(self, keep: np.ndarray | None) -> list[int]:
        fixed = self._fixed(keep, range(len(self.names)))
        if fixed and self.constant == "error":
            words = []
            for position in fixed:
                labels = self.levels[position] or (0, 1)
                words.append(f"{self.names[position]!r} (always {labels[self._first(position, keep)]!r})")
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
            if position in self.several:
                codes = self.several[position].codes
                codes = codes if keep is None else codes[keep]
                if len(codes) and codes.max() == codes[codes >= 0].min(initial=codes.max()):
                    fixed.append(position)
                continue
            valid = n_kept
            blank = self.blanks.get(position)
            if blank is not None:
                valid -= int(np.bitwise_count(blank if kept_bits is None else blank & kept_bits).sum())
            if self._ones(position, keep) in (0, valid):
                fixed.append(position)
        return fixed

    def _first(self, position: int, keep: np.ndarray | None) -> int:
        """The one level of a column that has no other."""
        if position not in self.several:
            return int(self._ones(position, keep) > 0)
        codes = self.several[position].codes
        return max(0, int((codes if keep is None else codes[keep]).max()))

    def _ones(self, position: int, keep: np.ndarray | None) -> int:
        bits = self.packed[position] if keep is None else self.packed[position] & np.packbits(keep)
        return int(np.bitwise_count(bits).sum())

    def _without(
        self, left_out: set[int], usable: list[int], dropping: bool
    ) -> tuple[list[int], dict[int, np.ndarray], np.ndarray | None, list[int]]:
        """The columns that stay, their blanks, the rows that stay then, and the columns with one level."""
        rest = [position for position in usable if position not in left_out]
        blanks = {k: bits for k, bits in self.blanks.items() if k not in left_out} if dropping else {}
        keep = complete_rows(blanks, self.table.n_rows) if blanks else None
        return rest, blanks, keep, self._fixed(keep, rest) if self.constant != "keep" else []

    def _refusal(self) -> TableError:
        """The error with all problems and, where there is one, a set of arguments that gets round them."""
        usable = [position for position, levels in enumerate(self.levels) if levels is not None]
        if len(usable) < 2 or any(
            problem.severity <= NAMES or problem.severity == WEIGHTS for problem in self.problems
        ):
            return TableError(self.table.origin, self.problems)
        n_rows = self.table.n_rows
        dropping = bool(self.blanks) and self.missing != "impute"
        emptiest = set(columns_to_leave_out(self.blanks, n_rows, len(usable)) if dropping else [])
        rest, blanks, keep, fixed = self._without(emptiest, usable, dropping)
        leave_out = [self.names[k] for k in range(len(self.names)) if k in emptiest or self.levels[k] is None]
        remedy: dict[str, Any] = {}
        # One column of words that no other shares says what a row is, not what was answered.
        pairs = [k for k in rest if k not in self.several]
        labels = label_columns([self.names[k] for k in pairs], [self.levels[k] for k in pairs])
        label = None
        if self.selection.group is None and len(labels) == 1 and len(rest) - len(fixed) > 2:
            label = labels[0]
            leave_out.append(label)
            place = next(k for k in pairs if self.names[k] == label)
            rest, blanks, keep, fixed = self._without(emptiest | {place}, usable, dropping)
        rows_left = n_rows if keep is None else int(keep.sum())
        columns_left = len(rest) - len(fixed)
        if leave_out or self.dropped:
            remedy["drop_columns"] = [*self.dropped, *leave_out]
        if blanks:
            remedy["missing"] = "drop"
        if fixed:
            remedy["constant"] = "drop"
        if rows_left == 0 or columns_left < 2:
            remedy = {}
        return TableError(self.table.origin, self.problems, remedy, rows_left, columns_left, label)
