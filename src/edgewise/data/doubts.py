"""What must be asked before the levels of a column are used: blanks, slips, mixtures, identifiers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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
)
from edgewise.data.problems import LEVELS, Fault, counted, listing
from edgewise.data.wishes import Wish
from edgewise.scales import MOST_LEVELS, NOMINAL, ORDINAL

# Rows of a level beside an ordinary pair, in all or of a thousand, up to which it seems a slip of the pen.
FEW_ROWS, RARE = 1, 0.001


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
    labels = [number_of(label) for label in factor.labels]
    odd = [labels[k] for k in suspects]
    seen = listing([described(factor, k, where) for k in suspects], 3)
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


def blank_code(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault | None:
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


def slip_of_the_pen(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault | None:
    """An ordinary pair such as 0 and 1 with a cell or two of something else."""
    labels = factor.labels
    expected = _expected_pair(labels)
    others = sorted((k for k in range(len(labels)) if k not in expected), key=lambda k: (-counts[k], k))
    few = max(FEW_ROWS, RARE * counts.sum())
    if not expected or factor.ordered or any(counts[k] > few for k in others):
        return None
    words = isinstance(labels[expected[0]], str)
    main = " and ".join(repr(labels[k]) for k in (sorted(expected) if words else expected))
    extra = ", ".join(described(factor, k, where) for k in others)
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


def mixture(factor: Factor, name: str, where: Where) -> Fault:
    """Numbers and words in one column."""
    labels = factor.labels
    words = [k for k, label in enumerate(labels) if isinstance(label, str)]
    numbers = [repr(label) for label in sorted(label for label in labels if not isinstance(label, str))]
    more = f" and {counted(len(words) - 1, 'more word')}" if len(words) > 1 else ""
    odd = [labels[k] for k in words[:3]]
    return Fault(
        LEVELS,
        f"column {name!r} mixes numbers and words: {listing(numbers)} beside "
        f"{described(factor, words[0], where)}{more}; write all levels as numbers or all as words, name "
        f"blanks with blank={odd!r}, or list every level in its order with levels={{{name!r}: [...]}}.",
        (name,),
    )


def identifier(factor: Factor, counts: np.ndarray, name: str) -> Fault | None:
    """A level of its own in every row."""
    if counts.max() > 1:
        return None
    examples = ", ".join(repr(label) for label in factor.labels[:3])
    return Fault(
        LEVELS,
        f"column {name!r} has {len(counts)} levels in as many rows ({examples}, ...): it numbers or names "
        f"them; leave it out with drop_columns=[{name!r}], or say kinds={{{name!r}: ...}} if it does not.",
        (name,),
    )


def too_many(factor: Factor, name: str) -> Fault:
    """More values than levels: measurements, or a text."""
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


def described(factor: Factor, k: int, where: Where) -> str:
    """A level with the number of its rows and the first of them."""
    rows = np.flatnonzero(factor.codes == k)
    return f"{number_of(factor.labels[k])!r} ({counted(len(rows), 'row')}, first at {where(int(rows[0]))})"
