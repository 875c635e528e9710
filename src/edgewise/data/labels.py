"""Labels of levels: which are blank, which are the same, which of two is 1."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

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
EMPTY = frozenset({"", "?", ".", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"})
EMPTY |= {"1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"}
# Words that are blank beside numbers or an ordinary yes and no, and may be a level beside other words.
DOUBTFUL = frozenset({"None", "NA", "N/A", "n/a", "NULL", "null"})
BLANKS = EMPTY | DOUBTFUL
# Words that are levels for all that is known, and look like blanks beside others.
SUSPECT = frozenset({"-", "--", "n.a.", "na.", "missing", "unknown", "not available", "#ref!", "#value!"})
HIGH_CODES = frozenset({8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9998, 9999})
WHOLE = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
LONGEST_WHOLE = 300  # beyond lies the infinity of floats


def is_empty(label: Any) -> bool:
    """Whether a label stands for a missing cell, whatever the other levels are."""
    return is_blank(label) and label not in DOUBTFUL


def are_plain(labels: Iterable[Any]) -> bool:
    """Whether labels are numbers or an ordinary yes and no, beside which a blank word is a blank."""
    rest = list(labels)
    words = {label.casefold() for label in rest if isinstance(label, str)}
    pairs = [{one, zero} for one, zero in OPPOSITES.items()]
    return not words or (len(words) == len(rest) and any(words <= pair for pair in pairs))


def is_blank(label: Any) -> bool:
    """Whether a label stands for a missing cell."""
    if isinstance(label, str):
        return label in BLANKS
    if isinstance(label, float | np.floating):
        return math.isnan(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def level_key(label: Any) -> Any:
    """What makes two labels the same level: the number they spell, their truth value or their letters."""
    label = number_of(label)
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


def number_of(label: Any) -> Any:
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
