"""`read_data`: the one door, and `encode_rows` for new rows in the coding of an earlier table."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.data.levels import Factor, encode, is_blank, level_key
from edgewise.data.problems import (
    CONSTANT,
    LEVELS,
    MISSING,
    NAMES,
    SHAPE,
    WEIGHTS,
    Problem,
    TableError,
    counted,
    listing,
)
from edgewise.data.sources import Table, open_table
from edgewise.data.table import BinaryData
from edgewise.errors import DataError, EdgewiseWarning


def read_data(
    source: Any,
    *,
    names: Sequence[str] | None = None,
    sample_weight: Any = None,
    columns: Sequence[str | int] | None = None,
    drop_columns: Sequence[str | int] | None = None,
    group: str | int | None = None,
    missing: str = "error",
    constant: str = "error",
) -> BinaryData:
    """Read a binary table, checking everything.

    Parameters
    ----------
    source : array, list of rows, mapping, DataFrame (pandas, polars), sparse matrix, path or open file
        Files are CSV, TSV (both also gzipped), npz, npy or Parquet. ``measurements.npz:train`` takes one
        array out of an npz file that has several.
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
        With everything that is wrong with the table, worst first.
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
                "The data have been read already; names, sample_weight, columns, drop_columns and group "
                "must be given when they are read first."
            )
        return source
    return _Reading(open_table(source), names, sample_weight, columns, drop_columns, group, missing, constant).run()


def _check_choice(what: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise DataError(f"{what} must be one of {', '.join(map(repr, choices))}; not {value!r}.")


class _Reading:
    """One pass through the door; each step fills in what the next one needs."""

    def __init__(
        self,
        table: Table,
        names: Sequence[str] | None,
        sample_weight: Any,
        columns: Sequence[str | int] | None,
        drop_columns: Sequence[str | int] | None,
        group: str | int | None,
        missing: str,
        constant: str,
    ) -> None:
        self.table = table
        self.missing = missing
        self.constant = constant
        self.sample_weight = sample_weight
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._rename(names)
        self._select(columns, drop_columns, group)

    def run(self) -> BinaryData:
        """Read, check and pack."""
        raw = [index for index in (self.group, self.weight_column) if index is not None]
        self.table.load(self.chosen, raw)
        n_rows = self.table.n_rows
        if n_rows == 0:
            self._refuse(Problem(SHAPE, "it has no rows; give at least one observation."))
        weights = self._weights(n_rows)
        self._encode()
        keep = self._rows_to_keep(n_rows, weights)
        return self._pack(keep, weights)

    def _refuse(self, *problems: Problem) -> None:
        raise TableError(self.table.origin, [*self.problems, *problems])

    def _rename(self, names: Sequence[str] | None) -> None:
        if names is None:
            return
        given = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(given) != len(self.table.names):
            self._refuse(
                Problem(
                    NAMES,
                    f"it has {counted(len(self.table.names), 'column')} and names has {len(given)}; "
                    "give one name per column.",
                )
            )
        self.table.names = given

    def _select(
        self,
        columns: Sequence[str | int] | None,
        drop_columns: Sequence[str | int] | None,
        group: str | int | None,
    ) -> None:
        names = self.table.names
        self.group = self._find(group, "group") if group is not None else None
        weight = self.sample_weight
        self.weight_column = self._find(weight, "sample_weight") if isinstance(weight, str) else None
        if columns is not None:
            chosen = [self._find(column, "columns") for column in _as_list(columns)]
        else:
            chosen = list(range(len(names)))
        dropped = {self._find(column, "drop_columns") for column in _as_list(drop_columns or ())}
        aside = {self.group, self.weight_column}
        for column, times in Counter(chosen).items():
            if times > 1 and column is not None:
                self.problems.append(Problem(NAMES, f"columns names {names[column]!r} twice; name it once."))
        self.chosen = [
            column for column in chosen if column is not None and column not in dropped and column not in aside
        ]
        self._check_names()
        if self.problems:
            self._refuse()

    def _find(self, column: str | int | Any, argument: str) -> int | None:
        names = self.table.names
        if isinstance(column, str) or str(column) in names:
            if str(column) in names:
                return names.index(str(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool):
            if 0 <= column < len(names):
                return int(column)
        import difflib

        close = difflib.get_close_matches(str(column), names, 3, 0.6)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {listing(names, 10)}."
        self.problems.append(Problem(NAMES, f"{argument} asks for column {column!r}, which is not there; {hint}"))
        return None

    def _check_names(self) -> None:
        names = self.table.names
        chosen = self.chosen
        unnamed = [column for column in chosen if not names[column].strip()]
        if unnamed:
            self.problems.append(
                Problem(
                    NAMES,
                    f"{counted(len(unnamed), 'column')} without a name (column number "
                    f"{listing([column + 1 for column in unnamed])}); name every column, or leave it out with "
                    f"drop_columns={unnamed[:3]!r} if it only numbers the rows.",
                )
            )
        places = defaultdict(list)
        for column in chosen:
            if names[column].strip():
                places[names[column]].append(column + 1)
        twice = {name: where for name, where in places.items() if len(where) > 1}
        if twice:
            words = [f"{name!r} (columns {', '.join(map(str, where))})" for name, where in twice.items()]
            self.problems.append(
                Problem(NAMES, f"column names must differ; repeated: {listing(words)}; rename them.", tuple(twice))
            )
        if len(chosen) < 2 and not any(problem.severity <= NAMES for problem in self.problems):
            self.problems.append(
                Problem(
                    SHAPE,
                    f"{'no column is' if not chosen else 'only the column ' + repr(names[chosen[0]]) + ' is'} left "
                    f"of {len(names)}; dependence needs two or more variables.",
                )
            )

    def _weights(self, n_rows: int) -> np.ndarray | None:
        weight = self.sample_weight
        if weight is None:
            return None
        if self.weight_column is not None:
            weight = self.table.raw(self.weight_column)
        try:
            weights = np.asarray(weight, float)
        except (TypeError, ValueError):
            self.problems.append(Problem(WEIGHTS, "sample_weight must hold numbers, one per row."))
            return None
        if weights.shape != (n_rows,):
            self.problems.append(
                Problem(
                    WEIGHTS, f"sample_weight has shape {weights.shape}; give one number for each of {n_rows:,} rows."
                )
            )
            return None
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            self.problems.append(
                Problem(
                    WEIGHTS,
                    f"sample_weight is {weights[row]:g} at {self.table.where(row)}; weights must be finite and "
                    "not negative.",
                )
            )
            return None
        if not weights.sum() > 0:
            self.problems.append(Problem(WEIGHTS, "every sample_weight is zero, so no row counts."))
            return None
        return weights

    def _encode(self) -> None:
        table = self.table
        n_rows = table.n_rows
        self.levels: list[tuple[Any, Any] | None] = []
        self.packed = np.zeros((len(self.chosen), (n_rows + 7) // 8), np.uint8)
        self.blank: dict[int, np.ndarray] = {}
        for position, column in enumerate(self.chosen):
            name = table.names[column]
            try:
                cells = table.column(column)
            except TypeError:
                self.problems.append(
                    Problem(
                        LEVELS,
                        f"column {name!r} holds cells that are lists or other containers; leave it out with "
                        "drop_columns or recode it as 0 and 1.",
                        (name,),
                    )
                )
                self.levels.append(None)
                continue
            encoded = encode(cells, name, table.where)
            self.levels.append(encoded.levels)
            if encoded.missing is not None:
                self.blank[position] = np.packbits(encoded.missing)
            if encoded.problem is not None:
                self.problems.append(encoded.problem)
            else:
                self.packed[position] = np.packbits(encoded.bits)

    def _rows_to_keep(self, n_rows: int, weights: np.ndarray | None) -> np.ndarray | None:
        keep = None if weights is None or weights.all() else weights > 0
        if keep is not None:
            self.notes.append(f"{counted(int((~keep).sum()), 'row')} with weight zero left out")
        if self.blank:
            any_blank = np.zeros((n_rows + 7) // 8, np.uint8)
            for bits in self.blank.values():
                any_blank |= bits
            complete = ~np.unpackbits(any_blank, count=n_rows).view(bool)
            n_complete = int(complete.sum())
            if self.missing == "error" or n_complete == 0:
                self._complain_of_blanks(n_rows, n_complete)
            else:
                self.notes.append(f"{n_complete:,} of {n_rows:,} rows are complete and stay")
                keep = complete if keep is None else keep & complete
        return keep

    def _complain_of_blanks(self, n_rows: int, n_complete: int) -> None:
        counts = {
            self.chosen[position]: int(np.unpackbits(bits, count=n_rows).sum())
            for position, bits in self.blank.items()
        }
        worst = sorted(counts, key=lambda column: -counts[column])
        words = [f"{self.table.names[column]} ({counts[column]:,})" for column in worst]
        self.problems.append(
            Problem(
                MISSING,
                f"{counted(sum(counts.values()), 'cell')} in {counted(n_rows - n_complete, 'row')} are blank, most "
                f"in {listing(words)}; {n_complete:,} of {n_rows:,} rows are complete and would stay with "
                "missing='drop'.",
                tuple(self.table.names[column] for column in worst),
            )
        )

    def _pack(self, keep: np.ndarray | None, weights: np.ndarray | None) -> BinaryData:
        n_rows = self.table.n_rows
        if keep is not None and not keep.all() and not self.problems:
            n_kept = int(keep.sum())
            packed = np.zeros((len(self.chosen), (n_kept + 7) // 8), np.uint8)
            for position in range(len(self.chosen)):
                packed[position] = np.packbits(np.unpackbits(self.packed[position], count=n_rows).view(bool)[keep])
            self.packed = packed
            weights = None if weights is None else weights[keep]
            n_rows = n_kept
        else:
            keep = None
        names = [self.table.names[column] for column in self.chosen]
        order = list(range(len(names)))
        sums = [int(np.unpackbits(bits, count=n_rows).sum()) for bits in self.packed]
        fixed = [k for k in order if self.levels[k] is not None and sums[k] in (0, n_rows)]
        if fixed and self.constant == "error":
            words = [f"{names[k]} (always {self.levels[k][sums[k] > 0]!r})" for k in fixed]  # type: ignore[index]
            self.problems.append(
                Problem(
                    CONSTANT,
                    f"{counted(len(fixed), 'column')} with one level only: {listing(words)}; leave out with "
                    "constant='drop' or keep with constant='keep'.",
                    tuple(names[k] for k in fixed),
                )
            )
        if self.problems:
            self._refuse()
        if fixed and self.constant == "drop":
            order = [k for k in order if k not in set(fixed)]
            self.notes.append(f"constant columns left out: {listing([names[k] for k in fixed], 20)}")
        levels = [self.levels[k] for k in order]
        labels = None
        if self.group is not None:
            raw = self.table.raw(self.group)
            kept = raw if keep is None else np.asarray(raw, object)[keep]
            labels = tuple("" if is_blank(label) else str(label) for label in kept)
        return BinaryData(
            packed=np.ascontiguousarray(self.packed[order]),
            names=tuple(names[k] for k in order),
            n_rows=n_rows,
            weights=weights,
            levels=tuple(levels),  # type: ignore[arg-type]
            notes=tuple(self.notes),
            group=labels,
            group_name=self.table.names[self.group] if self.group is not None else None,
        )


def _as_list(columns: Any) -> list[Any]:
    return [columns] if isinstance(columns, str | int) else list(columns)


def encode_rows(
    source: Any, names: Sequence[str], levels: Sequence[tuple[Any, Any]], *, allow_missing: bool = False
) -> np.ndarray:
    """New rows in the user's coding as int8 (n, p): 0, 1, and -1 where a cell is blank.

    Parameters
    ----------
    source : as for :func:`read_data`
        Columns are found by name where the source has names, and by position otherwise.
    names, levels : sequences
        Names and level labels of the table that the model was fitted to.
    allow_missing : bool
        Whether cells may be blank.
    """
    if isinstance(source, BinaryData):
        return source.values().astype(np.int8)
    table = open_table(source)
    wanted = list(range(len(names)))
    table.load(wanted)
    result = np.empty((table.n_rows, len(names)), np.int8)
    for position in wanted:
        cells = table.column(position)
        assert not isinstance(cells, Factor)
        lookup = {level_key(levels[position][0]): 0, level_key(levels[position][1]): 1}
        result[:, position] = cells == levels[position][1]
        assert lookup
    return result


def _warn(text: str) -> None:
    warnings.warn(text, EdgewiseWarning, stacklevel=4)
