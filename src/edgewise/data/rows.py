"""New rows in the coding of an earlier table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.data.cuts import cut_behind
from edgewise.data.division import labels_given
from edgewise.data.factor import Factor, factorise
from edgewise.data.labels import is_blank, level_key, plain_label
from edgewise.data.levels import containers
from edgewise.data.memory import Table
from edgewise.data.problems import LEVELS, MISSING, NAMES, SHAPE, Fault, TableError, counted, listing
from edgewise.data.sources import open_table
from edgewise.data.strata import Layout
from edgewise.data.table import Data
from edgewise.errors import DataError


def encode_rows(
    source: Any,
    names: Sequence[str],
    levels: Sequence[tuple[Any, ...]],
    *,
    allow_missing: bool = False,
    blank: Sequence[Any] = (),
) -> np.ndarray:
    """New rows in the user's coding as int8 (n, p): numbers of levels, and -1 where a cell is blank.

    Parameters
    ----------
    source : as for :func:`edgewise.data.read_data`
        Columns are found by name where the source has them all, whatever their order; a source without
        names must have the same columns in the same order.
    names, levels : sequences
        Names and level labels of the table that came first, as `BinaryData` keeps them.
    allow_missing : bool
        Whether cells may be blank, and whole columns absent.
    blank : sequence
        Labels that stand for a blank.

    Examples
    --------
    >>> encode_rows([["y", "n"], ["n", None]], ["a", "b"], [("n", "y")] * 2, allow_missing=True).tolist()
    [[1, 0], [0, -1]]
    """
    if isinstance(source, Data):
        if source.names != tuple(names):
            raise TableError(
                "the data", [Fault(NAMES, f"the columns must be {listing(names, 10)}, in this order.")]
            )
        if source.levels != tuple(map(tuple, levels)):
            raise TableError(
                "the data",
                [Fault(LEVELS, "the levels are not those of the model; give the rows as they are.")],
            )
        unknown = source.unknown_cells()
        if unknown.any() and not allow_missing:
            text = f"{counted(int(unknown.sum()), 'cell')} blank; read the rows with missing='drop'."
            raise TableError("the data", [Fault(MISSING, text)])
        return np.where(unknown, np.int8(-1), source.values().astype(np.int8))
    table = open_table(source)
    places = _places(table, names, allow_missing)
    cut = {place for place, labels in zip(places, levels) if place is not None and cut_behind(labels)}
    table.load([place for place in places if place is not None and place not in cut], sorted(cut))
    blanks = frozenset(level_key(label) for label in blank)
    result = np.full((table.n_rows, len(names)), -1, np.int8)
    problems: list[Fault] = []
    for position, place in enumerate(places):
        if place is not None:
            result[:, position] = _codes(table, place, names[position], levels[position], blanks, problems)
    blank = (result < 0).any(axis=1)
    if blank.any() and not allow_missing:
        row = int(np.flatnonzero(blank)[0])
        column = names[int(np.flatnonzero(result[row] < 0)[0])]
        if not any(column in problem.columns for problem in problems):
            count = counted(int((result < 0).sum()), "cell")
            text = f"{count} blank, the first in column {column!r} at {table.where(row)}; fill them in."
            problems.append(Fault(MISSING, text, (column,)))
    if problems:
        raise TableError(table.origin, problems)
    return result


def _places(table: Table, names: Sequence[str], allow_missing: bool) -> list[int | None]:
    """Where each variable stands in the new table; None where it does not."""
    known = {name: place for place, name in enumerate(table.names)}
    if len(known) < len(table.names):
        twice = sorted({name for name in table.names if table.names.count(name) > 1} & set(names))
        if twice:
            text = f"column names must differ, and these do not: {listing(twice)}; rename them."
            raise TableError(table.origin, [Fault(NAMES, text)])
    absent = [name for name in names if name not in known]
    if not absent:
        return [known[name] for name in names]
    unnamed = table.names == [f"x{k}" for k in range(len(table.names))]
    if unnamed:
        if len(table.names) != len(names):
            count = counted(len(table.names), "column")
            text = (
                f"it has {count} and the model has {counted(len(names), 'variable')}; give the same columns."
            )
            raise TableError(table.origin, [Fault(SHAPE, text)])
        return list(range(len(names)))
    if allow_missing and len(absent) < len(names):
        return [known.get(name) for name in names]
    text = f"variables of the model are not there: {listing(absent, 10)}; add these columns."
    raise TableError(table.origin, [Fault(NAMES, text, tuple(absent))])


def _codes(
    table: Table,
    place: int,
    name: str,
    levels: tuple[Any, ...],
    blanks: frozenset[Any],
    problems: list[Fault],
) -> np.ndarray:
    lookup = {_key(label): code for code, label in enumerate(levels)}
    # A word in other capitals is the same word, as it is when a table is read first.
    folded = {str(label).casefold(): code for code, label in enumerate(levels) if isinstance(label, str)}
    folded = folded if len(folded) == len(levels) else {}
    cut = cut_behind(levels)
    try:
        cells = table.column(place) if cut is None else factorise(np.array(list(table.raw(place)), object))
    except (TypeError, NotImplementedError):
        problems.append(containers(name))
        return np.full(table.n_rows, -1, np.int8)
    if not isinstance(cells, Factor):
        found, inverse = np.unique(cells, return_inverse=True)
        cells = Factor(inverse, list(found))
    codes = np.full(len(cells.labels) + 1, -1, np.int8)
    for position, label in enumerate(cells.labels):
        label = plain_label(label)
        code = lookup.get(_key(label), folded.get(str(label).casefold()))
        if code is None and (is_blank(label) or level_key(label) in blanks):
            continue
        if code is None and cut is not None:
            code = cut.level(label)
        if code is None:
            rows = np.flatnonzero(cells.codes == position)
            if not len(rows):
                continue
            known = listing([repr(label) for label in levels], 20)
            text = f"column {name!r} has {label!r} ({table.where(int(rows[0]))}); the model knows {known}."
            problems.append(Fault(LEVELS, text, (name,)))
            break
        codes[position] = code
    return np.asarray(codes[cells.codes])


def _key(label: Any) -> Any:
    """As for reading, but a truth value and the number it stands for are the same."""
    key = level_key(label)
    return int(key[1]) if isinstance(key, tuple) else key


def labels_in(source: Any, layout: Layout, groups: Any = None) -> tuple[Any, dict[str, Any]]:
    """Labels of the groups and covariates of rows: as given, or from the columns of those names."""
    table = open_table(source)
    wanted = [*layout.covariates]
    column = layout.group_name if groups is None else groups
    named = layout.compares and isinstance(column, str | int) and not isinstance(column, bool)
    if named:
        wanted.append(str(column))
    missing = [name for name in wanted if name not in table.names]
    if missing:
        what = "groups=, one label per row," if missing[0] == str(column) and named else "that column"
        raise DataError(
            f"{table.origin} has no column {missing[0]!r}, by which the rows of the fit were divided; "
            f"give {what} "
            "too."
        )
    places = {name: table.names.index(name) for name in wanted}
    table.load([], list(places.values()))
    found = {name: list(table.raw(place)) for name, place in places.items()}
    if groups is not None and not layout.compares:
        raise DataError("No groups were compared in this fit; leave groups out.")
    labels = found.pop(str(column)) if named else groups
    if labels is not None:
        labels = list(labels_given(labels, layout.group_name))
    return labels, found
