"""Which columns are variables, which one labels the rows and which one weighs them."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.problems import NAMES, SHAPE, Fault, counted, listing
from edgewise.errors import DataError

SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Selection:
    """Positions of the columns in the table."""

    variables: list[int]
    group: int | None
    weight: int | None


def select(
    names: Sequence[str],
    columns: Iterable[str | int] | None,
    drop_columns: Iterable[str | int] | None,
    group: str | int | None,
    sample_weight: Any,
    problems: list[Fault],
) -> Selection:
    """Find the columns that are asked for; what is wrong with them or their names goes to `problems`."""
    places = _first_places(names)
    group_column = find(names, group, "group", problems) if group is not None else None
    weight = find(names, sample_weight, "sample_weight", problems) if isinstance(sample_weight, str) else None
    chosen = list(range(len(names)))
    if columns is not None:
        asked = as_list(columns, "columns")
        chosen = [
            place for column in asked for place in find_columns(names, column, "columns", problems, places)
        ]
        for column, times in Counter(chosen).items():
            if times > 1:
                problems.append(Fault(NAMES, f"columns names {names[column]!r} twice; name it once."))
    without = [] if drop_columns is None else as_list(drop_columns, "drop_columns")
    aside = {
        place for column in without for place in find_columns(names, column, "drop_columns", problems, places)
    } | {group_column, weight}
    variables = [column for column in dict.fromkeys(chosen) if column not in aside]
    _check_names(names, variables, problems)
    if len(variables) < 2 and not problems:
        left = f"only the column {names[variables[0]]!r} is" if variables else "no column is"
        problems.append(
            Fault(
                SHAPE,
                f"{left} a variable, of {counted(len(names), 'column')} in all; dependence needs two or more "
                "variables.",
            )
        )
    return Selection(variables, group_column, weight)


def find_columns(
    names: Sequence[str],
    column: str | int,
    argument: str,
    problems: list[Fault],
    places: Mapping[str, int] | None = None,
) -> list[int]:
    """Positions of the columns meant by a name, a number or a range; a column of that very name wins.

    >>> find_columns(["a", "b", "c", "d", "b-c"], "b..d", "columns", [])
    [1, 2, 3]
    >>> find_columns(["a", "b", "c", "d", "b-c"], "b-c", "columns", [])
    [4]
    """
    if places is None:
        places = _first_places(names)
    if isinstance(column, str) and column not in places:
        for found in re.finditer(r"\.\.|-", column):
            ends = column[: found.start()].strip(), column[found.end() :].strip()
            if ends[0] in places and ends[1] in places:
                first, last = places[ends[0]], places[ends[1]]
                if first <= last:
                    return list(range(first, last + 1))
                problems.append(
                    Fault(
                        NAMES, f"{argument} asks for {column!r}, and {ends[1]!r} stands before {ends[0]!r}."
                    )
                )
                return []
    place = find(names, column, argument, problems, places)
    return [] if place is None else [place]


def _first_places(names: Sequence[str]) -> dict[str, int]:
    """Position of every name, the first of those that are alike."""
    return {name: column for column, name in reversed(list(enumerate(names)))}


def find(
    names: Sequence[str],
    column: str | int,
    argument: str,
    problems: list[Fault],
    places: Mapping[str, int] | None = None,
) -> int | None:
    """Position of a column given by name, or by number where no column has that name.

    Who asks for many columns gives the `places` of all names, so that none is looked for from the start.
    """
    if places is None:
        places = _first_places(names)
    if str(column) in places:
        return places[str(column)]
    number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if number and 0 <= int(column) < len(names):
        return int(column)
    if not isinstance(column, str) and not number:
        problems.append(Fault(NAMES, _neither(argument, column)))
        return None
    close = difflib.get_close_matches(str(column), names, 3, 0.6)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"the columns are {listing(names, 10)}."
    )
    problems.append(Fault(NAMES, f"{argument} asks for a column {column!r}, which is not there; {hint}"))
    return None


def as_list(columns: Any, argument: str = "names") -> list[Any]:
    """A single column or several, as a list."""
    if isinstance(columns, str | int | np.integer) and not isinstance(columns, bool):
        return [columns]
    try:
        return list(columns)
    except TypeError:
        raise DataError(_neither(argument, columns)) from None


def _neither(argument: str, value: Any) -> str:
    return f"{argument} takes a name, a number from 0, or a list of these; not {value!r}."


def _check_names(names: Sequence[str], variables: Sequence[int], problems: list[Fault]) -> None:
    unnamed = [column for column in variables if not names[column].strip()]
    if unnamed:
        problems.append(
            Fault(
                NAMES,
                f"{counted(len(unnamed), 'column')} without a name (number "
                f"{listing([k + 1 for k in unnamed])} from the left); name every column, or leave it out "
                f"with drop_columns={unnamed[:3]!r} if it only numbers the rows.",
            )
        )
    halves = [column for column in variables if SURROGATE.search(names[column])]
    if halves:
        problems.append(
            Fault(
                NAMES,
                f"{listing([repr(names[column]) for column in halves])} has half a character (a lone "
                "surrogate) in it, which no file can hold; rename it.",
            )
        )
    places = defaultdict(list)
    for column in variables:
        if names[column].strip():
            places[names[column]].append(column + 1)
    repeated = {name: where for name, where in places.items() if len(where) > 1}
    if repeated:
        words = [f"{name!r} (columns {listing(where)})" for name, where in repeated.items()]
        problems.append(
            Fault(
                NAMES,
                f"column names must differ, and these do not: {listing(words)}; rename them.",
                tuple(repeated),
            )
        )
