"""`read_data`: the one door between what the user has and what edgewise computes with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data.factor import factorise
from edgewise.data.labels import is_blank
from edgewise.data.levels import Encoded, containers, encode
from edgewise.data.memory import Table, too_large
from edgewise.data.notes import kind_notes, label_columns, level_notes, twin_note
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
from edgewise.data.selection import Selection, as_list, select
from edgewise.data.several import Several, settle
from edgewise.data.sources import open_table
from edgewise.data.strata import BINS, Division
from edgewise.data.table import BinaryData, Data, LevelData
from edgewise.data.wishes import LABEL, Wishes, parse_wishes
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.reading import physical_memory
from edgewise.scales import BINARY, NOMINAL, Scale, Scales

WAYS_WITH_BLANKS = ("error", "drop", "impute")
# A row with blanks stands for so many at most.
MOST_ROWS_OF_A_KIND = 1e12
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
    kinds: Mapping[str, str] | str | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    blank: Any = None,
    cut: Any = None,
    binarize: str | None = None,
    groups: Any = None,
    adjust: Any = None,
    bins: int | None = None,
) -> Data:
    """Read a table, checking everything.

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
    missing : {"error", "drop", "impute"}
        Whether a blank cell is an error, its row is left out, or it stays blank, to be drawn by the fit
        along with everything else. Rows without any answer are then left out.
    constant : {"error", "keep", "drop"}
        Whether a column with one level is an error, kept (the prior alone then speaks about its other
        level) or left out.
    kinds : mapping, optional
        ``{"item3": "ordinal", "city": "nominal"}``; one word for all columns. Without it numbers and ordered
        categories are ordinal and words nominal. ``"blume-capel"`` (``"blume-capel:3"`` to count from 3) is
        ordinal with two parameters for all its thresholds.
    levels : mapping, optional
        The labels of a column in their order, lowest first: ``{"item": ["never", "sometimes", "often"]}``.
        Levels listed here stay even if they never occur.
    blank : list or mapping, optional
        Labels that stand for a blank, in all columns or column by column.
    cut : str, list of str or mapping, optional
        Columns to cut into levels: ``"item3>=2"``, ``"age>=30,50"``, ``"age/4"`` (quarters),
        ``"city==Paris"``.
    binarize : str, optional
        One comparison that cuts every column of more than two levels in two: ``">0"``.

    groups : str, int or one label per row, optional
        A column that tells the groups which are to be compared apart; it is no variable.
    adjust : str, int, list of these, or mapping or DataFrame with one label per row, optional
        Covariates to hold fixed: biases are free in each combination of their labels. They are no variables.
    bins : int, optional
        Quantile bins of a covariate that is a number with more values (4 by default).

    Wherever columns are named, ``"item1..item17"`` or ``"item1-item17"`` stands for all from the one to the
    other, unless a column has that very name.

    Returns
    -------
    BinaryData or LevelData
        The first where every variable has two levels.

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
    _check_choice("missing", missing, WAYS_WITH_BLANKS)
    _check_choice("constant", constant, ("error", "keep", "drop"))
    wanted = (kinds, levels, blank, cut, binarize)
    if isinstance(source, Data):
        given = (names, sample_weight, columns, drop_columns, group, *wanted, groups, adjust, bins)
        if any(argument is not None for argument in given):
            raise DataError(
                "The data have been read already; give names, sample_weight, columns, drop_columns, group "
                "and what the columns are when reading them."
            )
        return source
    table = open_table(source)
    problems: list[Fault] = []
    if names is not None:
        _rename(table, names)
    division = None
    if groups is not None or adjust is not None:
        division = Division(table.names, groups, adjust, BINS if bins is None else bins, problems)
        aside = [table.names[place] for place in division.places]
        left_out = [*([] if drop_columns is None else as_list(drop_columns, "drop_columns")), *aside]
    else:
        left_out = drop_columns
    selection = select(table.names, columns, left_out, group, sample_weight, problems)
    wishes = parse_wishes(table.names, *wanted, problems)
    if problems:
        raise TableError(table.origin, problems)
    dropped = [] if drop_columns is None else [str(column) for column in as_list(drop_columns)]
    data = _Reading(table, selection, sample_weight, dropped, missing, constant, wishes, division).run()
    known = blank.values() if isinstance(blank, Mapping) else [] if blank is None else [blank]
    said = [label for part in known for label in ([part] if isinstance(part, LABEL) else part)]
    return replace(data, blanks=tuple(said)) if said else data


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

    def run(self) -> Data:
        """Read, check and pack."""
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
            counted_one_by_one = (weights % 1 == 0) & (weights <= MOST_ROWS_OF_A_KIND)
            doubtful = ~complete_rows(self.blanks, n_rows) & ~silent & ~counted_one_by_one
            if doubtful.any():
                row = int(np.flatnonzero(doubtful)[0])
                column = next(k for k, bits in self.blanks.items() if bits[row // 8] >> (7 - row % 8) & 1)
                text = (
                    f"sample_weight is {weights[row]:g} at {self.table.where(row)}, where column "
                    f"{self.names[column]!r} is blank; a row with blanks stands for a whole number of rows "
                    "(at most 1e12), each with answers of its own. Round such weights, or leave these rows "
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
        rest = [position for position in usable if position not in emptiest]
        # Blanks are of usable columns only.
        blanks = {k: bits for k, bits in self.blanks.items() if k not in emptiest} if dropping else {}
        keep = complete_rows(blanks, n_rows) if blanks else None
        fixed = self._fixed(keep, rest) if self.constant != "keep" else []
        rows_left = n_rows if keep is None else int(keep.sum())
        columns_left = len(rest) - len(fixed)
        leave_out = [self.names[k] for k in range(len(self.names)) if k in emptiest or self.levels[k] is None]
        remedy: dict[str, Any] = {}
        # One column of words that no other shares says what a row is, not what was answered.
        pairs = [k for k in rest if k not in self.several]
        labels = label_columns([self.names[k] for k in pairs], [self.levels[k] for k in pairs])
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

    def _pack(self, keep: np.ndarray | None, weights: np.ndarray | None, fixed: list[int]) -> Data:
        order = list(range(len(self.names)))
        if fixed and self.constant == "drop":
            left_out = set(fixed)
            order = [position for position in order if position not in left_out]
            self.notes.append(f"constant columns left out: {listing([self.names[k] for k in fixed], 20)}")
        elif fixed:
            self.notes.append(f"constant columns kept: {listing([self.names[k] for k in fixed], 20)}")
        if keep is not None and keep.all():
            keep = None
        n_rows = self.table.n_rows if keep is None else int(keep.sum())
        scales = self._settle(order, keep)
        names = [self.names[position] for position in order]
        levels = [self.levels[position] or (0, 1) for position in order]
        pairs = [k for k, scale in enumerate(scales) if scale.kind == BINARY]
        self.notes += level_notes([names[k] for k in pairs], [levels[k] for k in pairs])
        self.notes += kind_notes(
            names, scales, self.wishes.kinds, [self.selection.variables[k] for k in order]
        )
        shared: dict[str, Any] = {
            "names": tuple(names),
            "n_rows": n_rows,
            "weights": None if weights is None or keep is None else weights[keep],
            "levels": tuple(levels),
            "group": self._group_labels(keep),
            "group_name": None if self.selection.group is None else self.table.names[self.selection.group],
            "strata": None if self.division is None else self.division.strata(keep, weights, self.notes),
        }
        if keep is None:
            shared["weights"] = weights
        shared |= self._blank_cells(order, keep, names)
        if len(pairs) == len(names):
            packed = self._packed(order, keep)
            if "unknown" in shared:
                packed &= ~shared["unknown"]
            self._warn_of_twins(twin_note(names, list(packed), [1] * len(names), n_rows))
            return BinaryData(packed=packed, notes=tuple(self.notes), **shared)
        codes = np.empty((len(names), n_rows), np.uint8)
        for k, position in enumerate(order):
            if k in pairs and position not in self.several:
                codes[k] = np.unpackbits(self._packed([position], keep)[0], count=n_rows)
            else:
                codes[k] = self.settled[position]
        if "unknown" in shared:
            codes[np.unpackbits(shared["unknown"], axis=1, count=n_rows).view(bool)] = 0
        tops = [0 if scale.kind == NOMINAL else scale.n_levels - 1 for scale in scales]
        self._warn_of_twins(twin_note(names, list(codes), tops, None))
        return LevelData(codes=codes, scales=Scales(tuple(scales)), notes=tuple(self.notes), **shared)

    def _blank_cells(
        self, order: list[int], keep: np.ndarray | None, names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Which cells are blank in the rows that count, and where these rows stand in the source."""
        n_rows = self.table.n_rows if keep is None else int(keep.sum())
        unknown = np.zeros((len(order), (n_rows + 7) // 8), np.uint8)
        counts = {}
        for k, position in enumerate(order):
            if position in self.blanks:
                bits = self.blanks[position]
                if keep is not None:
                    bits = np.packbits(np.unpackbits(bits, count=self.table.n_rows).view(bool)[keep])
                unknown[k] = bits
                counts[names[k]] = int(np.bitwise_count(bits).sum())
        counts = {name: count for name, count in counts.items() if count}
        if not counts:
            return {}
        worst = sorted(counts, key=lambda name: -counts[name])
        self.notes.append(
            f"{counted(sum(counts.values()), 'blank cell')} imputed: "
            + listing([f"{name!r} ({counts[name]:,})" for name in worst])
        )
        places = {} if keep is None else {"places": np.flatnonzero(keep)}
        return {"unknown": unknown, **places}

    def _settle(self, order: list[int], keep: np.ndarray | None) -> list[Scale]:
        """The scales of the columns, now that the rows that count are known."""
        self.settled: dict[int, np.ndarray] = {}
        scales = []
        for position in order:
            scale = None
            if position in self.several:
                found = settle(self.several[position], keep, self.names[position])
                self.settled[position], scale, self.levels[position], notes = found
                self.notes += notes
            scales.append(Scale(BINARY, self.levels[position] or (0, 1)) if scale is None else scale)
        return scales

    def _packed(self, order: list[int], keep: np.ndarray | None) -> np.ndarray:
        """Bits of some columns of two levels in the rows that count."""
        rows = []
        for position in order:
            bits = self.packed[position]
            if position in self.settled:
                bits = np.packbits(self.settled[position])
            elif keep is not None:
                bits = np.packbits(np.unpackbits(bits, count=self.table.n_rows).view(bool)[keep])
            rows.append(bits)
        return np.stack(rows)

    def _warn_of_twins(self, twins: str | None) -> None:
        if twins is None:
            return
        self.notes.append(twins)
        warnings.warn(
            f"{self.table.origin} has {twins}. Their dependence is perfect and hides what else each "
            "depends on; keep one of each with drop_columns unless that is what you want.",
            EdgewiseWarning,
            stacklevel=5,
        )

    def _group_labels(self, keep: np.ndarray | None) -> tuple[str, ...] | None:
        if self.selection.group is None:
            return None
        labels = self.table.raw(self.selection.group)
        rows = range(self.table.n_rows) if keep is None else np.flatnonzero(keep).tolist()
        return tuple("" if is_blank(labels[row]) else str(labels[row]) for row in rows)
