"""Columns with more than two levels: of which kind they are, and what must be asked before they are used."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.factor import MANY, Factor, Where
from edgewise.data.labels import (
    BLANKS,
    DOUBTFUL,
    HIGH_CODES,
    OPPOSITES,
    SUSPECT,
    are_plain,
    is_blank,
    level_key,
    number_of,
    order_levels,
    plain_label,
)
from edgewise.data.problems import LEVELS, Fault, counted, listing
from edgewise.data.wishes import Wish
from edgewise.scales import BINARY, BLUME_CAPEL, MOST_LEVELS, NOMINAL, ORDINAL, Scale

# Rows of a level beside an ordinary pair, in all or of a thousand, up to which it seems a slip of the pen.
FEW_ROWS, RARE = 1, 0.001


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
        return _too_many(factor, name)
    numbers = [isinstance(label, int | float) and not factor.ordered for label in labels]
    problem = (
        (None if wish.kind else _slip(factor, counts, name, where))
        or (None if all(numbers) or not any(numbers) else _mixture(factor, name, where))
        or _code(factor, counts, name, where)
        or (None if wish.kind or factor.ordered else _identifier(factor, counts, name))
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
        words, odd = [_seen(factor, k, where) for k in others], [_plain(factor.labels[k]) for k in others[:3]]
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
        seen = _seen(factor, words[0], where) if words else "more values than can be told apart"
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


def doubtful_word(factor: Factor, name: str, where: Where, wish: Wish) -> Fault | None:
    """A blank word among other words: a blank, or a level?"""
    labels = [number_of(label) for label in factor.labels]
    words = [
        k
        for k, label in enumerate(labels)
        if isinstance(label, str) and label in DOUBTFUL and level_key(label) not in wish.blank
    ]
    rest = [label for label in labels if not is_blank(label) and level_key(label) not in wish.blank]
    if not words or factor.exhausted or len(rest) > MOST_LEVELS or not rest or are_plain(rest):
        return None
    words = [k for k in words if (factor.codes == k).any()]
    return _ask(factor, words, name, where) if words else None


def _ask(factor: Factor, suspects: list[int], name: str, where: Where) -> Fault:
    labels = [_plain(label) for label in factor.labels]
    odd = [labels[k] for k in suspects]
    seen = listing([_seen(factor, k, where) for k in suspects], 3)
    rest = [label for label in labels if not (isinstance(label, str) and label in BLANKS) or label in odd]
    numbers = all(isinstance(label, int | float) for label in rest)
    listed = sorted(rest) if numbers else rest
    unordered = "" if numbers else f" (with kinds={{{name!r}: {NOMINAL!r}}} too if they have no order)"
    return Fault(
        LEVELS,
        f"column {name!r} has {seen}: a blank or a level? Say blank={odd!r} if it stands for a blank, or "
        f"list it with levels={{{name!r}: {listed!r}}} if it is a level{unordered}.",
        (name,),
    )


def _code(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault | None:
    """A word or number that looks like a blank among levels that do not."""
    labels = factor.labels
    words = [k for k, label in enumerate(labels) if isinstance(label, str) and label.casefold() in SUSPECT]
    words = [k for k in words or _number_codes(labels) if counts[k]]
    return _ask(factor, words, name, where) if words else None


def _number_codes(labels: Sequence[Any]) -> list[int]:
    """Positions of numbers that stand apart from a scale: -9 or 99, or a lone negative one."""
    plain = [isinstance(label, int | float) and not isinstance(label, bool) for label in labels]
    if not all(plain):
        return []
    order = sorted(range(len(labels)), key=lambda k: labels[k])
    values = [labels[k] for k in order]
    steps = {b - a for a, b in itertools.pairwise(values)}
    negative = [k for k in order if labels[k] < 0]
    if len(steps) == 1 and not (negative and -values[0] < values[-1] and len(negative) == 1):
        return []
    found = []
    if negative and len(negative) < len(labels) - 1 and -values[0] != values[-1]:
        gap = values[len(negative)] - values[len(negative) - 1]
        if len(negative) == 1 or gap > 1:
            found = negative
    for position in range(len(values) - 1, 0, -1):
        gap = values[position] - values[position - 1]
        inside = position < len(values) - 1 and order[position + 1] not in found
        if values[position] not in HIGH_CODES or inside:
            break
        if gap < (3 if values[position] == 8 else 2):
            # 98 beside 99 stands apart if they do together.
            lower = [values[k] - values[k - 1] for k in range(position, 0, -1) if values[k] in HIGH_CODES]
            if max(lower, default=0) < 3:
                break
        found.append(order[position])
    return found


def _slip(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault | None:
    """An ordinary pair such as 0 and 1 with a cell or two of something else."""
    labels = factor.labels
    expected = _expected_pair(labels)
    others = sorted((k for k in range(len(labels)) if k not in expected), key=lambda k: (-counts[k], k))
    few = max(FEW_ROWS, RARE * counts.sum())
    if not expected or factor.ordered or any(counts[k] > few for k in others):
        return None
    words = isinstance(labels[expected[0]], str)
    main = " and ".join(repr(labels[k]) for k in (sorted(expected) if words else expected))
    extra = ", ".join(_seen(factor, k, where) for k in others)
    codes = {*_number_codes(labels), *(k for k in others if str(labels[k]).casefold() in SUSPECT | {"x"})}
    advice = "correct these cells or leave them empty"
    if codes & set(others):
        odd = [labels[k] for k in others if k in codes]
        advice = f"if this stands for a blank, leave the cell empty or say blank={odd!r}"
    kind = NOMINAL if any(isinstance(label, str) for label in labels) else ORDINAL
    return Fault(
        LEVELS,
        f"column {name!r} has {len(labels)} levels: besides {main} there is {extra}; {advice}, take all as "
        f"levels with kinds={{{name!r}: {kind!r}}}, or leave the column out with drop_columns=[{name!r}].",
        (name,),
    )


def _expected_pair(labels: Sequence[Any]) -> list[int]:
    """Positions of two labels that belong together, such as 0 and 1 or y and n, where there are such."""
    places = {str(label).casefold(): k for k, label in enumerate(labels)}
    for zero, one in (("0", "1"), ("-1", "1"), *((zero, one) for one, zero in OPPOSITES.items())):
        if zero in places and one in places:
            return [places[zero], places[one]]
    return []


def _mixture(factor: Factor, name: str, where: Where) -> Fault:
    labels = factor.labels
    words = [k for k, label in enumerate(labels) if isinstance(label, str)]
    numbers = [repr(label) for label in sorted(label for label in labels if not isinstance(label, str))]
    more = f" and {counted(len(words) - 1, 'more word')}" if len(words) > 1 else ""
    odd = [labels[k] for k in words[:3]]
    return Fault(
        LEVELS,
        f"column {name!r} mixes numbers and words: {listing(numbers)} beside "
        f"{_seen(factor, words[0], where)}{more}; write all levels as numbers or all as words, name blanks "
        f"with blank={odd!r}, or list every level in its order with levels={{{name!r}: [...]}}.",
        (name,),
    )


def _identifier(factor: Factor, counts: np.ndarray, name: str) -> Fault | None:
    if counts.max() > 1:
        return None
    examples = ", ".join(repr(label) for label in factor.labels[:3])
    return Fault(
        LEVELS,
        f"column {name!r} has {len(counts)} levels in as many rows ({examples}, ...): it numbers or names "
        f"them; leave it out with drop_columns=[{name!r}], or say kinds={{{name!r}: ...}} if it does not.",
        (name,),
    )


def _too_many(factor: Factor, name: str) -> Fault:
    labels = factor.labels
    number = f"more than {MANY}" if factor.exhausted else f"{len(labels):,}"
    examples = ", ".join(repr(label) for label in labels[:3])
    if all(isinstance(label, int | float) for label in labels[:20]):
        return Fault(
            LEVELS,
            f"column {name!r} has {number} different values ({examples}, ...): counts or measurements, not "
            f"levels; cut it into quarters with cut='{name}/4', at a threshold with cut='{name}>=...', or "
            f"leave it out with drop_columns=[{name!r}].",
            (name,),
        )
    return Fault(
        LEVELS,
        f"column {name!r} has {number} different values ({examples}, ...): an identifier or a text, not "
        f"levels (at most {MOST_LEVELS}); leave it out with drop_columns=[{name!r}].",
        (name,),
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


def _seen(factor: Factor, k: int, where: Where) -> str:
    """A level with the number of its rows and the first of them."""
    rows = np.flatnonzero(factor.codes == k)
    return f"{_plain(factor.labels[k])!r} ({counted(len(rows), 'row')}, first at {where(int(rows[0]))})"


def _plain(label: Any) -> Any:
    return number_of(label)


def _leading(label: str) -> float:
    """The number at the start of a word, infinite where there is none."""
    found = re.match(r"\s*([+-]?\d+(?:\.\d+)?)\b", label)
    return float(found[1]) if found else math.inf
