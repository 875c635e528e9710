"""What the user says of columns: their kinds, the order of their levels, what is blank, where to cut."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.data.cuts import Cut, parse_cut
from edgewise.data.labels import level_key, plain_label
from edgewise.data.problems import NAMES, Fault, counted, listing
from edgewise.data.selection import as_list, find_columns
from edgewise.errors import DataError
from edgewise.scales import BLUME_CAPEL, KINDS, MOST_LEVELS


@dataclass(frozen=True)
class Wish:
    """What was said of one column.

    Attributes
    ----------
    kind : str
        One of :data:`edgewise.scales.KINDS`, or empty.
    reference : object
        Label of the level from which a Blume-Capel variable counts.
    levels : tuple
        The labels in their order, all that may occur; empty where nothing was said.
    blank : frozenset
        Keys of labels that stand for a blank.
    cut : Cut, optional
        Where to cut it into levels.
    if_several : Cut, optional
        Where to cut it if it has more than two levels.
    """

    kind: str = ""
    reference: Any = None
    levels: tuple[Any, ...] = ()
    blank: frozenset[Any] = frozenset()
    cut: Cut | None = None
    if_several: Cut | None = None


NOTHING = Wish()
LABEL = str | int | float | np.generic


@dataclass
class Wishes:
    """What was said of all columns, by their positions in the table."""

    kinds: dict[int, tuple[str, Any]] = field(default_factory=dict)
    levels: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    blank: dict[int | None, frozenset[Any]] = field(default_factory=dict)
    cuts: dict[int, Cut] = field(default_factory=dict)
    binarize: Cut | None = None

    def of(self, column: int) -> Wish:
        """What was said of one column."""
        kind, reference = self.kinds.get(column, self.kinds.get(-1, ("", None)))
        blank = self.blank.get(None, frozenset()) | self.blank.get(column, frozenset())
        cut, levels = self.cuts.get(column), self.levels.get(column, ())
        spoken_for = cut is not None or bool(levels) or column in self.kinds
        return Wish(kind, reference, levels, blank, cut, None if spoken_for else self.binarize)


def parse_wishes(
    names: Sequence[str],
    kinds: Any,
    levels: Any,
    blank: Any,
    cut: Any,
    binarize: Any,
    problems: list[Fault],
) -> Wishes:
    """Read the arguments of :func:`edgewise.data.read_data`; what is wrong with them goes to `problems`."""
    wishes = Wishes()
    if isinstance(kinds, str):
        wishes.kinds[-1] = _kind(kinds)
    elif kinds is not None:
        for column, kind in _mapping(kinds, "kinds", "{'item3': 'ordinal', 'city': 'nominal'}").items():
            for place in find_columns(names, column, "kinds", problems):
                wishes.kinds[place] = _kind(kind)
    if levels is not None:
        for column, labels in _mapping(levels, "levels", "{'item': ['never', 'often']}").items():
            checked = _labels(labels, column)
            for place in find_columns(names, column, "levels", problems):
                wishes.levels[place] = checked
    if isinstance(blank, Mapping):
        for column, labels in blank.items():
            for place in find_columns(names, column, "blank", problems):
                wishes.blank[place] = _keys(labels)
    elif blank is not None:
        wishes.blank[None] = _keys(blank)
    for text in _cuts(cut):
        name, found = _split_cut(text, names, problems)
        if found is not None:
            for place in find_columns(names, name, "cut", problems):
                if place in wishes.levels:
                    text = f"column {names[place]!r} has both a cut and levels; give one of them."
                    problems.append(Fault(NAMES, text, (names[place],)))
                wishes.cuts[place] = found
    if binarize is not None:
        wishes.binarize = parse_cut(binarize) if isinstance(binarize, str) else None
        if wishes.binarize is None or wishes.binarize.n_levels != 2:
            raise DataError(f"binarize takes one comparison such as '>0' or '>=2'; not {binarize!r}.")
    return wishes


def _mapping(value: Any, argument: str, example: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{argument} takes a mapping from columns, for instance {example}; not {value!r}.")
    return value


def _kind(value: Any) -> tuple[str, Any]:
    kind, separator, reference = (value if isinstance(value, str) else "").partition(":")
    if kind not in KINDS or (separator and kind != BLUME_CAPEL):
        raise DataError(f"There is no kind of variable {value!r}; the kinds are {', '.join(KINDS)}.")
    return kind, plain_label(reference) if separator else None


def _labels(labels: Any, column: Any) -> tuple[Any, ...]:
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise DataError(
            f"levels takes a list of labels for {column!r}, in their order, for instance ['never', "
            f"'sometimes', 'often']; not {labels!r}."
        )
    listed = tuple(plain_label(label) for label in labels)
    for label in listed:
        if not isinstance(label, LABEL):
            raise DataError(f"The levels of {column!r} must be words or numbers; not {label!r}.")
    keys = [level_key(label) for label in listed]
    twice = [label for k, label in enumerate(listed) if keys[k] in keys[:k]]
    if twice:
        raise DataError(f"levels lists {twice[0]!r} twice for {column!r}; list every level once.")
    if not 2 <= len(listed) <= MOST_LEVELS:
        raise DataError(
            f"levels lists {counted(len(listed), 'level')} for {column!r}; a variable has 2 to {MOST_LEVELS}."
        )
    return listed


def _keys(labels: Any) -> frozenset[Any]:
    listed = [labels] if isinstance(labels, LABEL) or not hasattr(labels, "__iter__") else list(labels)
    for label in listed:
        if not isinstance(label, LABEL):
            raise DataError(
                f"blank takes labels, words or numbers, for instance [-9, 'None']; not {label!r}."
            )
    return frozenset(level_key(label) for label in listed)


def _cuts(cut: Any) -> list[str]:
    if cut is None:
        return []
    if isinstance(cut, Mapping):
        return [
            f"{column}{where if isinstance(where, str) else f'/{where}'}" for column, where in cut.items()
        ]
    return [str(text) for text in as_list(cut, "cut")]


def _split_cut(text: str, names: Sequence[str], problems: list[Fault]) -> tuple[str, Cut | None]:
    """A column and where to cut it: the operator before which the name of a column or a range stands."""
    usable = None
    for found in re.finditer(r">=|<=|==|!=|>|<|=|/", text):
        name, cut = text[: found.start()].strip(), parse_cut(text[found.start() :])
        if cut is not None and name:
            usable = usable or (name, cut)
            if name in names:
                return name, cut
    if usable is None:
        problems.append(
            Fault(
                NAMES,
                f"the cut {text!r} cannot be read; write a column and where to cut it, for instance "
                "'item3>=2', 'age>=30,50', 'age/4' (quarters) or 'city==Paris'. The columns are "
                f"{listing(names, 10)}.",
            )
        )
        return "", None
    return usable
