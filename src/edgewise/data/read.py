"""`read_data`: the one door between what the user has and what edgewise computes with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from edgewise.data.body import Body
from edgewise.data.division import Division, check_bins
from edgewise.data.memory import Table
from edgewise.data.packing import pack
from edgewise.data.problems import (
    NAMES,
    Fault,
    TableError,
    counted,
)
from edgewise.data.selection import as_list, select
from edgewise.data.sources import open_table
from edgewise.data.strata import BINS
from edgewise.data.table import Data
from edgewise.data.wishes import LABEL, parse_wishes
from edgewise.errors import DataError

WAYS_WITH_BLANKS = ("error", "drop", "impute")


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
    if bins is not None:
        check_bins(bins)
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
    body = Body(table, selection, sample_weight, dropped, missing, constant, wishes, division)
    data = pack(body, *body.read())
    known = blank.values() if isinstance(blank, Mapping) else [] if blank is None else [blank]
    said = [label for part in known for label in ([part] if isinstance(part, LABEL) else part)]
    return replace(data, blanks=tuple(said)) if said else data


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
