"""From the cells of one column to levels: which it has, in which order, and what is wrong.

A column arrives as a NumPy array of numbers or booleans, or as a :class:`Factor` (codes and labels) when it
holds words or a mixture. Both leave as :class:`Encoded`: bits where it has two levels, and :class:`Several`
where it has more (``several.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.data.doubts import doubtful_word
from edgewise.data.factor import MANY, Factor, Where
from edgewise.data.labels import (
    complement,
    is_blank,
    level_key,
    number_of,
    order_levels,
    plain_label,
)
from edgewise.data.problems import LEVELS, Fault, counted, listing
from edgewise.data.several import Several, cut_column, declared, undeclared
from edgewise.data.wishes import NOTHING, Wish


@dataclass(frozen=True, eq=False)
class Encoded:
    """A column as bits, or as the numbers of several levels.

    `levels` is None when the column cannot be used, with `problem` saying why; `missing` is None when no
    cell is blank. Blank cells have the bit 0. `note` says what was done to the labels.
    """

    bits: np.ndarray
    missing: np.ndarray | None
    levels: tuple[Any, ...] | None
    problem: Fault | None = None
    note: str = ""
    several: Several | None = None


def encode(values: np.ndarray | Factor, name: str, where: Where, wish: Wish = NOTHING) -> Encoded:
    """Find the levels of a column and number its cells by them.

    Parameters
    ----------
    values : array or Factor
        The cells.
    name : str
        Name of the column, for messages.
    where : callable
        Words for a row number, for instance ``line 18``.
    wish : Wish
        What the user says of it.
    """
    if wish.levels or wish.cut is not None:
        return _as_asked(_factor_of(values), name, where, wish)
    if isinstance(values, Factor) or wish.blank:
        return _encode_factor(_factor_of(values), name, where, wish)
    if values.dtype.kind == "b":
        return Encoded(values.view(np.uint8), None, (False, True))
    return _encode_numbers(values, name, where, wish)


def _factor_of(values: np.ndarray | Factor) -> Factor:
    """Codes and labels of numbers too, in ascending order."""
    if isinstance(values, Factor):
        return values
    blank = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    found, inverse = np.unique(values[~blank], return_inverse=True)
    codes = np.full(len(values), -1, np.int64)
    codes[~blank] = inverse
    return Factor(codes, [plain_label(value) for value in found])


def _as_asked(factor: Factor, name: str, where: Where, wish: Wish) -> Encoded:
    """A column whose levels or cuts were given."""
    ask = declared if wish.levels else cut_column
    codes, labels, problem = ask(factor, name, where, wish)
    blank = codes < 0
    missing = blank if blank.any() else None
    if problem is not None:
        return _unusable(codes, None, problem)
    if len(labels) == 2:
        return Encoded((codes == 1).view(np.uint8), missing, labels)
    kind = wish.kind or "ordinal"
    return _several(Several(codes, labels, kind, wish.reference, True, bool(wish.levels)), missing)


def _several(found: Several, missing: np.ndarray | None, note: str = "") -> Encoded:
    return Encoded(np.zeros(0, np.uint8), missing, found.labels, note=note, several=found)


def _encode_numbers(values: np.ndarray, name: str, where: Where, wish: Wish) -> Encoded:
    missing = None
    valid = values
    if values.dtype.kind == "f":
        blank = np.isnan(values)
        if blank.any():
            missing = blank
            valid = values[~blank]
            if not len(valid):
                return Encoded(np.zeros(len(values), np.uint8), missing, (0, 1))
    low, high = valid.min(), valid.max()
    if values.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high)):
        row = int(np.flatnonzero(np.isinf(values))[0])
        return _unusable(
            values,
            missing,
            Fault(
                LEVELS,
                f"column {name!r} has an infinite value ({where(row)}; "
                f"{counted(int(np.isinf(values).sum()), 'cell')} in all); write 0, 1 or a blank there.",
                (name,),
            ),
        )
    ones = values == high
    zeros = values == low
    others = ~(ones | zeros)
    if missing is not None:
        others &= ~missing
    if others.any():
        factor = _factor_of(values)
        counts = np.bincount(factor.codes[factor.codes >= 0])
        return _more_levels(factor, counts, name, where, wish, missing)
    if low == high:
        levels_pair = complement(plain_label(low))
        is_one = levels_pair[1] == plain_label(low)
        return Encoded((ones & is_one).view(np.uint8), missing, levels_pair)
    return Encoded(ones.view(np.uint8), missing, (plain_label(low), plain_label(high)))


def _more_levels(
    factor: Factor, counts: np.ndarray, name: str, where: Where, wish: Wish, missing: np.ndarray | None
) -> Encoded:
    """A column with more than two levels."""
    if wish.if_several is not None:
        return _as_asked(factor, name, where, Wish(cut=wish.if_several, blank=wish.blank))
    found = undeclared(factor, counts, name, where, wish)
    return _unusable(factor.codes, missing, found) if isinstance(found, Fault) else _several(found, missing)


def _encode_factor(factor: Factor, name: str, where: Where, wish: Wish) -> Encoded:
    labels = [plain_label(label) for label in factor.labels]
    keys: dict[Any, int] = {}
    merged: list[Any] = []
    target = np.full(len(labels) + 1, -1, np.int8 if len(labels) < MANY else np.int32)
    problem = doubtful_word(factor, name, where, wish)
    if problem is not None:
        return _unusable(factor.codes, None, problem)
    for position, label in enumerate(labels):
        if is_blank(label) or level_key(label) in wish.blank:
            continue
        key = level_key(label)
        if key not in keys:
            keys[key] = len(merged)
            merged.append(number_of(label))
        target[position] = keys[key]
    codes = target[factor.codes]
    blank = codes < 0
    missing = blank if blank.any() else None
    if len(merged) <= 4:
        counts = np.array([np.count_nonzero(codes == k) for k in range(len(merged))], np.int64)
    else:
        counts = np.bincount(codes[~blank], minlength=len(merged))
    present = np.flatnonzero(counts)
    # The places of ordered levels count those that nobody uses.
    in_order = factor.ordered and len(present) > 2
    dropped = ""
    if len(present) < len(merged) and not in_order:
        # Categories nobody uses: forget them, unless they complete a constant column below.
        unused = [merged[k] for k in np.flatnonzero(counts == 0)]
        renumber = np.full(len(merged) + 1, -1, target.dtype)
        renumber[present] = np.arange(len(present))
        codes = renumber[codes]
        merged = [merged[k] for k in present]
        counts = counts[present]
        if len(present) > 2:
            verb = "occurs and is" if len(unused) == 1 else "occur and are"
            dropped = f"column {name!r}: {listing([repr(label) for label in unused])} never {verb} dropped"
    else:
        unused = []
    joined, counts, note = _one_spelling(
        Factor(codes, merged, factor.exhausted, factor.ordered), counts, name
    )
    codes, merged = joined.codes, joined.labels
    problem = _check_factor(joined, counts, name, where)
    if problem is not None:
        return _unusable(codes, missing, problem)
    if len(merged) > 2 or joined.exhausted:
        found = _more_levels(joined, counts, name, where, wish, missing)
        return replace(found, note="; ".join(part for part in (note, dropped) if part))
    if not merged:
        return Encoded(np.zeros(len(codes), np.uint8), missing, (0, 1))
    if len(merged) == 1:
        pair = order_levels((merged[0], unused[0])) if len(unused) == 1 else complement(merged[0])
    else:
        pair = order_levels((merged[0], merged[1]))
    one = next((k for k, label in enumerate(merged) if level_key(label) == level_key(pair[1])), -2)
    return Encoded((codes == one).view(np.uint8), missing, pair, note=note)


def _one_spelling(factor: Factor, counts: np.ndarray, name: str) -> tuple[Factor, np.ndarray, str]:
    """Join words that differ in capitals only under the commonest spelling, where that leaves two or more."""
    labels = factor.labels
    kinds: dict[str, list[int]] = {}
    if not factor.exhausted and 2 < len(labels) <= MANY and all(isinstance(label, str) for label in labels):
        for k, label in enumerate(labels):
            kinds.setdefault(label.casefold(), []).append(k)
    if not 2 <= len(kinds) < len(labels):
        return factor, counts, ""
    target, kept, words = np.full(len(labels) + 1, -1, factor.codes.dtype), [], []
    for number, alike in enumerate(kinds.values()):
        main = max(alike, key=lambda k: (counts[k], -k))
        kept.append(labels[main])
        target[alike] = number
        words += [
            f"{labels[k]!r} ({counted(int(counts[k]), 'row')}) as {labels[main]!r}"
            for k in alike
            if k != main
        ]
    sums = np.array([counts[alike].sum() for alike in kinds.values()])
    joined = Factor(target[factor.codes], kept, ordered=factor.ordered)
    return joined, sums, f"column {name!r} is read with {', '.join(words)}"


def _check_factor(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault | None:
    labels = factor.labels

    def first(k: int) -> int:
        return int(np.flatnonzero(factor.codes == k)[0])

    for k, label in enumerate(labels):
        if isinstance(label, float) and math.isinf(label):
            return Fault(
                LEVELS,
                f"column {name!r} has an infinite value ({where(first(k))}; "
                f"{counted(int(counts[k]), 'cell')} in all); write 0, 1 or a blank there.",
                (name,),
            )
        if not isinstance(label, str | bool | int | float | np.generic):
            return Fault(
                LEVELS,
                f"column {name!r} holds {type(label).__name__} values such as {str(label)!r} "
                f"({where(first(k))}), not levels; leave it out with drop_columns=[{name!r}].",
                (name,),
            )
    if not factor.exhausted and len(labels) <= MANY:
        folded: dict[str, int] = {}
        for k, label in enumerate(labels):
            if isinstance(label, str):
                other = folded.setdefault(label.casefold(), k)
                if other != k:
                    return Fault(
                        LEVELS,
                        f"column {name!r} spells one level in two ways: {labels[other]!r} "
                        f"({where(first(other))}) and {label!r} ({where(first(k))}); write it in one way, "
                        "for instance with str.lower() in pandas.",
                        (name,),
                    )
    if len(labels) == 2 and isinstance(labels[0], str) != isinstance(labels[1], str):
        word, number = sorted(range(2), key=lambda k: not isinstance(labels[k], str))
        return Fault(
            LEVELS,
            f"column {name!r} mixes numbers and words: {labels[number]!r} and {labels[word]!r} "
            f"({where(first(word))}); write both levels as numbers or both as words, and leave "
            "cells empty that are not known.",
            (name,),
        )
    return None


def _unusable(values: np.ndarray, missing: np.ndarray | None, problem: Fault) -> Encoded:
    return Encoded(np.zeros(0, np.uint8), missing, None, problem)


def containers(name: str) -> Fault:
    """What to say of a column whose cells cannot be compared."""
    return Fault(
        LEVELS,
        f"column {name!r} holds lists or other containers, not levels; leave it out with "
        f"drop_columns=[{name!r}] or recode it as 0 and 1.",
        (name,),
    )
