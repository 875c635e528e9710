"""Which columns are variables, which one labels the rows and which one weighs them."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.problems import NAMES, SHAPE, Fault, counted, listing


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
    group_column = find(names, group, "group", problems) if group is not None else None
    weight = find(names, sample_weight, "sample_weight", problems) if isinstance(sample_weight, str) else None
    chosen: list[int | None] = list(range(len(names)))
    if columns is not None:
        chosen = [find(names, column, "columns", problems) for column in as_list(columns)]
        for column, times in Counter(chosen).items():
            if times > 1 and column is not None:
                problems.append(Fault(NAMES, f"columns names {names[column]!r} twice; name it once."))
    aside = {find(names, column, "drop_columns", problems) for column in as_list(drop_columns or ())}
    aside |= {group_column, weight, None}
    variables = [column for column in dict.fromkeys(chosen) if column is not None and column not in aside]
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


def find(names: Sequence[str], column: str | int, argument: str, problems: list[Fault]) -> int | None:
    """Position of a column given by name, or by number where no column has that name."""
    if str(column) in names:
        return list(names).index(str(column))
    number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if number and 0 <= int(column) < len(names):
        return int(column)
    close = difflib.get_close_matches(str(column), names, 3, 0.6)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"the columns are {listing(names, 10)}."
    )
    problems.append(Fault(NAMES, f"{argument} asks for a column {column!r}, which is not there; {hint}"))
    return None


def as_list(columns: Any) -> list[Any]:
    """A single column or several, as a list."""
    return [columns] if isinstance(columns, str | int | np.integer) else list(columns)


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
