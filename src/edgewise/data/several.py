"""Columns with more than two levels: of which kind they are, and what must be asked before they are used."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.doubts import blank_code, described, identifier, mixture, slip_of_the_pen, too_many
from edgewise.data.factor import Factor, Where
from edgewise.data.labels import (
    is_blank,
    level_key,
    number_of,
    order_levels,
    plain_label,
)
from edgewise.data.problems import LEVELS, Fault, listing
from edgewise.data.wishes import Wish
from edgewise.scales import BINARY, BLUME_CAPEL, MOST_LEVELS, NOMINAL, ORDINAL, Scale


@dataclass(frozen=True, eq=False)
class Several:
    """A column with more than two levels.

    Attributes
    ----------
    codes : int array
        Level of every row, -1 where it is blank.
    labels : tuple
    kind : str
    reference : object
        Label of the reference of a Blume-Capel variable.
    ordered : bool
        Whether a level's place on the scale is its place among the labels, and not its number.
    kept : bool
        Whether levels that never occur stay.
    """

    codes: np.ndarray
    labels: tuple[Any, ...]
    kind: str
    reference: Any = None
    ordered: bool = False
    kept: bool = False


def undeclared(factor: Factor, counts: np.ndarray, name: str, where: Where, wish: Wish) -> Several | Fault:
    """The levels of a column as its cells show them, or why they cannot be taken so."""
    labels = factor.labels
    if factor.exhausted or np.count_nonzero(counts) > MOST_LEVELS:
        return too_many(factor, name)
    numbers = [isinstance(label, int | float) and not factor.ordered for label in labels]
    problem = (
        (None if wish.kind else slip_of_the_pen(factor, counts, name, where))
        or (None if all(numbers) or not any(numbers) else mixture(factor, name, where))
        or blank_code(factor, counts, name, where)
        or (None if wish.kind or factor.ordered else identifier(factor, counts, name))
        or _impossible(factor, name, wish)
    )
    if problem is not None:
        return problem
    kind = wish.kind or (ORDINAL if factor.ordered or all(numbers) else NOMINAL)
    order = list(range(len(labels)))
    if not factor.ordered:
        order.sort(key=lambda k: labels[k] if numbers[k] else (_leading(labels[k]), labels[k].casefold()))
    place = np.full(len(labels) + 1, -1, np.int16)
    place[order] = np.arange(len(order))
    sorted_labels = tuple(labels[k] for k in order)
    return Several(place[factor.codes], sorted_labels, kind, wish.reference, not all(numbers))


def declared(
    factor: Factor, name: str, where: Where, wish: Wish
) -> tuple[np.ndarray, tuple[Any, ...], Fault | None]:
    """Codes of a column whose levels are given."""
    known = {level_key(label): k for k, label in enumerate(wish.levels)}
    folded = {str(label).casefold(): k for k, label in enumerate(wish.levels)}
    target = np.full(len(factor.labels) + 1, -1, np.int16)
    others = []
    for k, label in enumerate(factor.labels):
        key = level_key(plain_label(label))
        if key in wish.blank:
            continue
        found = known.get(key, folded.get(str(plain_label(label)).casefold()))
        if found is not None:
            target[k] = found
        elif not is_blank(plain_label(label)) and (factor.codes == k).any():
            others.append(k)
    codes = target[factor.codes]
    if others or factor.exhausted:
        words = [described(factor, k, where) for k in others]
        odd = [number_of(factor.labels[k]) for k in others[:3]]
        text = (
            f"column {name!r} has {listing(words, 3)}, which levels does not list; list it too, correct the "
            f"cells, or say that it stands for a blank with blank={odd!r}."
        )
        return codes, wish.levels, Fault(LEVELS, text, (name,))
    if wish.kind == BINARY and len(wish.levels) > 2:
        return codes, wish.levels, _not_binary(name, len(wish.levels))
    return codes, wish.levels, _no_reference(name, wish.levels, wish)


def cut_column(
    factor: Factor, name: str, where: Where, wish: Wish
) -> tuple[np.ndarray, tuple[Any, ...], Fault | None]:
    """Codes of a column that is to be cut."""
    assert wish.cut is not None
    labels = [number_of(label) for label in factor.labels]
    used = [k for k, label in enumerate(labels) if not (is_blank(label) or level_key(label) in wish.blank)]
    words = (
        [k for k in used if isinstance(labels[k], str) or math.isinf(labels[k])] if wish.cut.numeric else []
    )
    target = np.full(len(labels) + 1, -1, np.int16)
    if words or (factor.exhausted and wish.cut.numeric):
        seen = described(factor, words[0], where) if words else "more values than can be told apart"
        text = (
            f"column {name!r} cannot be cut by numbers: it has {seen}; correct these cells, name blanks with "
            f"blank=[...], or set one level against the rest with cut='{name}==...'."
        )
        return target[factor.codes], (), Fault(LEVELS, text, (name,))
    cut = wish.cut
    if cut.operator == "/":
        chosen = np.isin(factor.codes, used)
        values = np.array([labels[k] for k in factor.codes[chosen]], float)
        cut = cut.resolved(values) if len(values) else cut
        if not len(values) or not cut.points:
            text = f"column {name!r} has one value only and cannot be cut into parts; leave it out."
            return target[factor.codes], (), Fault(LEVELS, text, (name,))
    for k in used:
        level = cut.level(labels[k])
        target[k] = -1 if level is None else level
    return target[factor.codes], cut.labels, None


def settle(
    found: Several, rows: np.ndarray | None, name: str
) -> tuple[np.ndarray, Scale | None, tuple, list]:
    """Codes, scale, labels and notes of a column, once it is known which rows count.

    Levels that never occur are dropped; the others keep their places on the scale. The scale is None where
    two levels are left.
    """
    codes = found.codes if rows is None else found.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(found.labels))
    stay = np.flatnonzero(counts)
    notes = []
    if found.kept or len(stay) < 2:
        stay = np.arange(len(found.labels))
    elif len(stay) < len(found.labels):
        gone = [repr(found.labels[k]) for k in np.flatnonzero(counts == 0)]
        verb = "occurs" if len(gone) == 1 else "occur"
        notes.append(
            f"column {name!r}: {listing(gone)} never {verb} and {'is' if len(gone) == 1 else 'are'} dropped "
            f"(kept with levels={{{name!r}: [...]}})"
        )
    labels = tuple(found.labels[k] for k in stay)
    place = np.full(len(found.labels) + 1, 0, np.uint8)
    place[stay] = np.arange(len(stay))
    numbered = place[codes]
    if len(stay) == 2:
        if found.kind == NOMINAL and order_levels(labels) != labels:
            return 1 - numbered, None, order_levels(labels), notes
        return numbered, None, labels, notes
    positions: Sequence[int] = ()
    if found.kind != NOMINAL:
        positions = [int(k) for k in stay]
        if not found.ordered:
            positions, gap = _places(labels)
            notes += [f"column {name!r} {gap}"] if gap else []
    reference = None
    if found.kind == BLUME_CAPEL:
        keys = [level_key(label) for label in labels]
        reference = keys.index(level_key(found.reference)) if found.reference is not None else 0
    return numbered, Scale(found.kind, labels, tuple(positions), reference), labels, notes


def _places(labels: Sequence[Any]) -> tuple[list[int], str]:
    """Places of numbers on their scale: levels between them that nobody chose leave a gap."""
    steps = np.diff(np.array(labels, float))
    smallest = float(steps.min())
    relative = np.cumsum(np.concatenate([[0.0], steps])) / smallest
    places = np.rint(relative).astype(int)
    if np.abs(relative - places).max() > 1e-6 or places[-1] >= MOST_LEVELS:
        return list(range(len(labels))), "has levels at uneven distances, taken as steps of equal width"
    if places[-1] == len(labels) - 1:
        return places.tolist(), ""
    absent = [plain_label(labels[0] + smallest * k) for k in range(places[-1]) if k not in places]
    return places.tolist(), (
        f"has no {listing(absent)} between {labels[0]} and {labels[-1]}; the other levels keep their places"
    )


def _impossible(factor: Factor, name: str, wish: Wish) -> Fault | None:
    """A kind that these levels cannot have."""
    if wish.kind == BINARY:
        return _not_binary(name, len(factor.labels))
    words = [label for label in factor.labels if isinstance(label, str)]
    if wish.kind in (ORDINAL, BLUME_CAPEL) and words and not factor.ordered:
        leading = [_leading(label) for label in words]
        if math.inf in leading or len(set(leading)) < len(words):
            return Fault(
                LEVELS,
                f"column {name!r} is to be {wish.kind} and its levels are words; say their order with "
                f"levels={{{name!r}: {sorted(words, key=str.casefold)!r}}}, the lowest first.",
                (name,),
            )
    return _no_reference(name, factor.labels, wish)


def _no_reference(name: str, labels: Sequence[Any], wish: Wish) -> Fault | None:
    known = {level_key(label) for label in labels}
    if wish.kind != BLUME_CAPEL or wish.reference is None or level_key(wish.reference) in known:
        return None
    text = (
        f"column {name!r} is to count from {wish.reference!r}, which is none of its levels "
        f"({listing([repr(label) for label in labels], 10)})."
    )
    return Fault(LEVELS, text, (name,))


def _not_binary(name: str, count: int) -> Fault:
    return Fault(
        LEVELS,
        f"column {name!r} is to be binary and has {count} levels; cut it in two with cut='{name}>=...', or "
        "call it ordinal or nominal.",
        (name,),
    )


def _leading(label: str) -> float:
    """The number at the start of a word, infinite where there is none."""
    found = re.match(r"\s*([+-]?\d+(?:\.\d+)?)\b", label)
    return float(found[1]) if found else math.inf
