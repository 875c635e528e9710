"""Cutting a column into levels: at numbers, at quantiles, or one word against the rest.

The labels of a cut column say where it was cut (``<2`` and ``>=2``), so that new rows can be cut in the same
way by whoever knows the labels alone.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.labels import number_of, plain_label

OPPOSITE = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "==": "!=", "!=": "=="}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
CUT = re.compile(r"\s*(>=|<=|==|!=|>|<|=|/)\s*(.+?)\s*")
MOST_PARTS = 20


@dataclass(frozen=True)
class Cut:
    """Where to cut a column.

    Attributes
    ----------
    operator : str
        A comparison, or ``/`` for parts of equal size.
    points : tuple
        What to compare with, ascending; the number of parts for ``/``.

    Examples
    --------
    >>> Cut(">=", (20, 50)).labels, Cut("==", ("Paris",)).labels
    (('<20', '>=20', '>=50'), ('!=Paris', '==Paris'))
    >>> [Cut(">=", (20, 50)).level(value) for value in (3, 20, 70)]
    [0, 1, 2]
    """

    operator: str
    points: tuple[Any, ...]

    @property
    def n_levels(self) -> int:
        """Number of levels that it makes."""
        return int(self.points[0]) if self.operator == "/" else len(self.points) + 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its levels."""
        below = f"{OPPOSITE[self.operator]}{self.points[0]}"
        return (below, *(f"{self.operator}{point}" for point in self.points))

    @property
    def numeric(self) -> bool:
        """Whether only numbers can be compared."""
        return self.operator not in ("==", "!=")

    def level(self, label: Any) -> int | None:
        """Level of a label; None where it cannot be compared."""
        value = number_of(label)
        if isinstance(value, str) and self.numeric:
            return None
        if not self.numeric:
            equal = str(value) == str(self.points[0])
            return int(equal == (self.operator == "=="))
        return sum(COMPARE[self.operator](value, point) for point in self.points)

    def resolved(self, values: np.ndarray) -> Cut:
        """Parts of equal size as comparisons with the quantiles of some numbers."""
        if self.operator != "/":
            return self
        shares = np.arange(1, self.n_levels) / self.n_levels
        found = np.unique(np.quantile(values, shares, method="higher"))
        return Cut(">=", tuple(plain_label(point) for point in found[found > values.min()]))


def parse_cut(text: str) -> Cut | None:
    """A cut from its comparison: ``>=2``, ``>=20,50``, ``==Paris``, ``/4``; None where it is none."""
    found = CUT.fullmatch(text)
    if not found:
        return None
    sign = "==" if found[1] == "=" else found[1]
    parts = found[2].split(",") if sign in (">", ">=", "/") else [found[2]]
    points = tuple(number_of(part.strip()) for part in parts)
    numbers = all(isinstance(point, int | float) for point in points)
    if sign in ("==", "!="):
        return Cut(sign, points)
    if not numbers or any(b <= a for a, b in itertools.pairwise(points)):
        return None
    if sign == "/" and not (len(points) == 1 and points[0] in range(2, MOST_PARTS + 1)):
        return None
    return Cut(sign, points)


def cut_behind(labels: Sequence[Any]) -> Cut | None:
    """The cut that made these labels, if one did.

    >>> cut_behind(("<20", ">=20", ">=50")), cut_behind(("no", "yes"))
    (Cut(operator='>=', points=(20, 50)), None)
    """
    if not all(isinstance(label, str) for label in labels):
        return None
    parts = [parse_cut(label) for label in labels[1:]]
    if not parts or any(part is None or part.n_levels != 2 or part.operator == "/" for part in parts):
        return None
    known = [part for part in parts if part is not None]
    cut = Cut(known[0].operator, tuple(part.points[0] for part in known))
    return cut if cut.labels == tuple(labels) else None
