"""Collecting everything that is wrong with a table and saying it once, worst first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewise.errors import DataError

SHOWN = 5
LISTED = 12
NAMED = 20
VERY_LONG = re.compile(r"\S{300,}")  # words of which a few letters tell enough

SHAPE, NAMES, LEVELS, WEIGHTS, MISSING, CONSTANT = range(6)


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: how bad (a small number is worse), in words, and which columns."""

    severity: int
    text: str
    columns: tuple[str, ...] = ()


class TableError(DataError):
    """A table that cannot be used as it is.

    Attributes
    ----------
    problems : tuple of Fault
        Everything that is wrong, worst first; the message has all of it.
    remedy : mapping
        Arguments of :func:`edgewise.data.read_data` that make the table usable, for instance
        ``{"drop_columns": ["id"], "missing": "drop"}``; empty when no arguments would.
    rows_left, columns_left : int
        What the remedy would leave.
    label : str or None
        A column that the remedy leaves out because it seems to label the rows.

    Examples
    --------
    >>> from edgewise.data import TableError, read_data
    >>> try:
    ...     read_data([["y", "n"], ["", "y"], ["n", "n"], ["y", "y"], ["n", "y"]])
    ... except TableError as error:
    ...     print(error.remedy)
    {'missing': 'drop'}
    """

    def __init__(
        self,
        origin: str,
        problems: Sequence[Fault],
        remedy: Mapping[str, Any] | None = None,
        rows_left: int = 0,
        columns_left: int = 0,
        label: str | None = None,
    ) -> None:
        self.origin = origin
        self.problems = tuple(sorted(problems, key=lambda problem: problem.severity))
        self.remedy = dict(remedy or {})
        self.rows_left = rows_left
        self.columns_left = columns_left
        self.label = label if self.remedy else None
        super().__init__(self._message())

    def _message(self) -> str:
        if len(self.problems) == 1:
            text = f"{_sentence(self.origin)}: {self.problems[0].text}"
        else:
            lines = [f"{_sentence(self.origin)} has {len(self.problems)} problems, worst first:"]
            shown = self.problems[:LISTED]
            lines += [f"  {k}. {problem.text}" for k, problem in enumerate(shown, 1)]
            rest = self.problems[LISTED:]
            if rest:
                columns = [repr(name) for problem in rest for name in problem.columns]
                lines.append(f"  ... and {len(rest):,} more, in the columns {listing(columns, 20)}.")
            text = "\n".join(lines)
        if self.remedy and (len(self.problems) > 1 or len(self.remedy) > 1):
            arguments = ", ".join(f"{name}={_argument(value)}" for name, value in self.remedy.items())
            aside = f"; {self.label!r} seems to label the rows" if self.label else ""
            left = f"{counted(self.rows_left, 'row')} and {counted(self.columns_left, 'column')}"
            text += f"\nTo go on without repairing it: {arguments} (leaves {left}{aside})."
        return VERY_LONG.sub(lambda found: f"{found[0][:60]}...{found[0][-20:]}", text)


def _argument(value: Any) -> str:
    """The value of an argument; of many columns the first."""
    if not isinstance(value, list) or len(value) <= NAMED:
        return repr(value)
    first = ", ".join(map(repr, value[:NAMED]))
    return f"[{first}, ... and {len(value) - NAMED:,} more, all of them in the error's `remedy`]"


def listing(items: Sequence[Any], shown: int = SHOWN) -> str:
    """First few of many things, for instance ``a, b, c and 14 more``."""
    if not len(items):
        return "none"
    words = [str(item) for item in items[:shown]]
    rest = len(items) - len(words)
    if rest > 0:
        return ", ".join(words) + f" and {rest:,} more"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def counted(number: int, noun: str) -> str:
    """A number with its noun, for instance ``1 row`` or ``1,200 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith("the ") else text
