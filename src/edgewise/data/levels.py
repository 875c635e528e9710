"""From the cells of one column to bits: which two levels it has, which of them is 1, and what is wrong.

A column arrives as a NumPy array of numbers or booleans, or as a :class:`Factor` (codes and labels) when it
holds words or a mixture. Both leave as :class:`Encoded`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.problems import LEVELS, Fault, counted

POSITIVE_WORDS = ("1", "y", "yes", "true", "present")
OPPOSITES = {
    "y": "n",
    "yes": "no",
    "true": "false",
    "t": "f",
    "present": "absent",
    "+": "-",
    "on": "off",
}
# What a blank cell looks like in text: the markers pandas knows, the "?" of many repositories and
# the "." of SAS and Stata.
BLANKS = frozenset(
    {"", "?", ".", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN"}
)
BLANKS |= {"-nan", "NULL", "null", "None", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"}
MANY = 100
WHOLE = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
LONGEST_WHOLE = 300  # beyond lies the infinity of floats


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of anything: ``labels[codes[row]]`` is the cell, and a code of -1 is a blank.

    `exhausted` says that further labels exist which all share the last code.
    """

    codes: np.ndarray
    labels: list[Any]
    exhausted: bool = False


@dataclass(frozen=True, eq=False)
class Encoded:
    """A column as bits.

    `levels` is None when the column cannot be used, with `problem` saying why; `missing` is None when no
    cell is blank. Blank cells have the bit 0. `note` says what was done to the labels.
    """

    bits: np.ndarray
    missing: np.ndarray | None
    levels: tuple[Any, Any] | None
    problem: Fault | None = None
    note: str = ""


Where = Callable[[int], str]


def factorise(values: Any) -> Factor:
    """Codes and labels of a pandas array, an object array or a list; TypeError for cells such as lists."""
    import pandas as pd

    codes, labels = pd.factorize(values, use_na_sentinel=True)
    return Factor(codes, [plain_label(label) for label in labels])


def encode(values: np.ndarray | Factor, name: str, where: Where) -> Encoded:
    """Find the two levels of a column and turn it into bits.

    Parameters
    ----------
    values : array or Factor
        The cells.
    name : str
        Name of the column, for messages.
    where : callable
        Words for a row number, for instance ``line 18``.
    """
    if isinstance(values, Factor):
        return _encode_factor(values, name, where)
    if values.dtype.kind == "b":
        return Encoded(values.view(np.uint8), None, (False, True))
    return _encode_numbers(values, name, where)


def _encode_numbers(values: np.ndarray, name: str, where: Where) -> Encoded:
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
        levels, counts = np.unique(valid, return_counts=True)
        labels = [plain_label(level) for level in levels]
        factor = Factor(np.searchsorted(levels, values), labels)
        if missing is not None:
            factor.codes[missing] = -1
        return _unusable(values, missing, _third_level(factor, counts, name, where))
    if low == high:
        levels_pair = complement(plain_label(low))
        is_one = levels_pair[1] == plain_label(low)
        return Encoded((ones & is_one).view(np.uint8), missing, levels_pair)
    return Encoded(ones.view(np.uint8), missing, (plain_label(low), plain_label(high)))


def _encode_factor(factor: Factor, name: str, where: Where) -> Encoded:
    labels = [plain_label(label) for label in factor.labels]
    keys: dict[Any, int] = {}
    merged: list[Any] = []
    target = np.full(len(labels) + 1, -1, np.int8 if len(labels) < MANY else np.int32)
    for position, label in enumerate(labels):
        if is_blank(label):
            continue
        key = level_key(label)
        if key not in keys:
            keys[key] = len(merged)
            merged.append(_number_of(label))
        target[position] = keys[key]
    codes = target[factor.codes]
    blank = codes < 0
    missing = blank if blank.any() else None
    if len(merged) <= 4:
        counts = np.array([np.count_nonzero(codes == k) for k in range(len(merged))], np.int64)
    else:
        counts = np.bincount(codes[~blank], minlength=len(merged))
    present = np.flatnonzero(counts)
    if len(present) < len(merged):
        # Categories nobody uses: forget them, unless they complete a constant column below.
        unused = [merged[k] for k in np.flatnonzero(counts == 0)]
        renumber = np.full(len(merged) + 1, -1, target.dtype)
        renumber[present] = np.arange(len(present))
        codes = renumber[codes]
        merged = [merged[k] for k in present]
        counts = counts[present]
    else:
        unused = []
    joined, counts, note = _one_spelling(Factor(codes, merged, factor.exhausted), counts, name)
    codes, merged = joined.codes, joined.labels
    problem = _check_factor(joined, counts, name, where)
    if problem is not None:
        return _unusable(codes, missing, problem)
    if not merged:
        return Encoded(np.zeros(len(codes), np.uint8), missing, (0, 1))
    if len(merged) == 1:
        pair = order_levels((merged[0], unused[0])) if len(unused) == 1 else complement(merged[0])
    else:
        pair = order_levels((merged[0], merged[1]))
    one = next((k for k, label in enumerate(merged) if level_key(label) == level_key(pair[1])), -2)
    return Encoded((codes == one).view(np.uint8), missing, pair, note=note)


def _one_spelling(factor: Factor, counts: np.ndarray, name: str) -> tuple[Factor, np.ndarray, str]:
    """Join words that differ in capitals only, where that leaves two levels, under the commonest spelling."""
    labels = factor.labels
    kinds: dict[str, list[int]] = {}
    if not factor.exhausted and 2 < len(labels) <= MANY and all(isinstance(label, str) for label in labels):
        for k, label in enumerate(labels):
            kinds.setdefault(label.casefold(), []).append(k)
    if len(kinds) != 2:
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
    return Factor(target[factor.codes], kept), sums, f"column {name!r} is read with {', '.join(words)}"


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
                f"({where(first(k))}), not two levels; leave it out with drop_columns=[{name!r}].",
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
    if len(labels) > 2 or factor.exhausted:
        return _third_level(factor, counts, name, where)
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


def _third_level(factor: Factor, counts: np.ndarray, name: str, where: Where) -> Fault:
    labels = factor.labels
    if factor.exhausted or len(labels) > 10:
        number = f"more than {MANY}" if factor.exhausted else f"{len(labels):,}"
        examples = ", ".join(repr(label) for label in labels[:3])
        kind = (
            "measurements"
            if all(isinstance(label, float) for label in labels[:20])
            else "an identifier or a text"
        )
        if all(isinstance(label, int | float) for label in labels[:20]):
            hint = "cut it at a threshold, for instance its median, or leave it out"
            kind = "counts or measurements"
        else:
            hint = "leave it out"
        return Fault(
            LEVELS,
            f"column {name!r} has {number} different values ({examples}, ...): {kind}, not two levels; "
            f"{hint} with drop_columns=[{name!r}].",
            (name,),
        )
    if _is_scale(labels, counts):
        low, high = min(labels), max(labels)
        return Fault(
            LEVELS,
            f"column {name!r} has {len(labels)} levels, a scale from {low} to {high}; cut it in two, for "
            f"instance at {low + len(labels) // 2} and above, or leave it out with drop_columns=[{name!r}].",
            (name,),
        )
    expected = _expected_pair(labels)
    order = sorted(range(len(labels)), key=lambda k: (k not in expected, -counts[k], k))
    main = " and ".join(repr(labels[k]) for k in sorted(order[:2]))
    extra = []
    for k in order[2:]:
        row = int(np.flatnonzero(factor.codes == k)[0])
        extra.append(f"{labels[k]!r} ({counted(int(counts[k]), 'row')}, first at {where(row)})")
    advice = "correct these cells or leave them empty"
    if any(_looks_like_code(labels[k]) for k in order[2:]):
        advice = "if this stands for a blank, leave the cell empty"
    return Fault(
        LEVELS,
        f"column {name!r} has {len(labels)} levels: besides {main} there is {', '.join(extra)}; {advice}, "
        f"or leave the column out with drop_columns=[{name!r}].",
        (name,),
    )


def _is_scale(labels: Sequence[Any], counts: np.ndarray) -> bool:
    """Whether three or more whole numbers in a row are steps of a scale rather than slips of the pen."""
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
    if not whole or max(labels) - min(labels) != len(labels) - 1:
        return False
    return len(labels) > 3 or bool(counts.min() >= max(5, 0.05 * counts.sum()))


def _expected_pair(labels: Sequence[Any]) -> list[int]:
    """Positions of two labels that belong together, such as 0 and 1 or y and n, where there are such."""
    places = {str(label).casefold(): k for k, label in enumerate(labels)}
    for zero, one in (("0", "1"), ("-1", "1"), *((zero, one) for one, zero in OPPOSITES.items())):
        if zero in places and one in places:
            return [places[zero], places[one]]
    return []


def _looks_like_code(label: Any) -> bool:
    if isinstance(label, str):
        return label.casefold() in {
            "missing",
            "unknown",
            "x",
            "-",
            "--",
            "na.",
            "not available",
            "#ref!",
            "#value!",
        }
    return not isinstance(label, bool) and label in (-9, -99, -999, -9999, 9, 99, 999, 9999)


def _unusable(values: np.ndarray, missing: np.ndarray | None, problem: Fault) -> Encoded:
    return Encoded(np.zeros(0, np.uint8), missing, None, problem)


def containers(name: str) -> Fault:
    """What to say of a column whose cells cannot be compared."""
    return Fault(
        LEVELS,
        f"column {name!r} holds lists or other containers, not two levels; leave it out with "
        f"drop_columns=[{name!r}] or recode it as 0 and 1.",
        (name,),
    )


def is_blank(label: Any) -> bool:
    """Whether a label stands for a missing cell."""
    if isinstance(label, str):
        return label in BLANKS
    if isinstance(label, float | np.floating):
        return math.isnan(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def level_key(label: Any) -> Any:
    """What makes two labels the same level: the number they spell, their truth value or their letters."""
    label = _number_of(label)
    if isinstance(label, str):
        folded = label.casefold()
        return ("truth", folded == "true") if folded in ("true", "false") else label
    if isinstance(label, bool | np.bool_):
        return ("truth", bool(label))
    return label


def order_levels(pair: Sequence[Any]) -> tuple[Any, Any]:
    """The two labels of a column with the label of 0 first.

    Examples
    --------
    >>> order_levels(("yes", "no")), order_levels((1, -1)), order_levels(("rep", "dem"))
    (('no', 'yes'), (-1, 1), ('dem', 'rep'))
    """
    first, second = pair
    if not (isinstance(first, str) or isinstance(second, str)):
        return (first, second) if first < second else (second, first)
    words = [str(label).casefold() for label in pair]
    positive = [word in POSITIVE_WORDS for word in words]
    if positive[0] != positive[1]:
        return (second, first) if positive[0] else (first, second)
    return (first, second) if words[0] < words[1] else (second, first)


def complement(label: Any) -> tuple[Any, Any]:
    """Both levels of a column in which only `label` occurs."""
    if isinstance(label, bool | np.bool_):
        return (False, True)
    if isinstance(label, str):
        for one, zero in OPPOSITES.items():
            if label.casefold() in (one, zero):
                partner = zero if label.casefold() == one else one
                partner = partner.upper() if label.isupper() else partner
                partner = partner.title() if label.istitle() else partner
                return (partner, label) if label.casefold() == one else (label, partner)
        return (label, f"not {label}")
    if label in (0, 1):
        return (0, 1)
    return (-1, 1) if label == -1 else (label, f"not {label}")


def _number_of(label: Any) -> Any:
    """The number a text spells, or the label itself."""
    label = plain_label(label)
    if not isinstance(label, str):
        return label
    if not label or label[0] not in "+-.0123456789iI" or "_" in label:
        return label
    whole = WHOLE.fullmatch(label)
    if whole and len(label) < LONGEST_WHOLE:
        return int(whole[1])  # exact, where a float would merge numbers above 2^53
    try:
        return plain_label(float(label))
    except ValueError:
        return label


def plain_label(value: Any) -> Any:
    """A plain Python value: whole floats become integers and words lose the spaces around them."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if isinstance(value, str) else value
