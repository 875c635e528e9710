"""What is worth saying of a table that can be used: which label became 1, and which columns say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from edgewise.data.cuts import cut_behind
from edgewise.data.problems import counted, listing
from edgewise.scales import BINARY, NOMINAL, Scale


def level_notes(names: list[str], levels: list[tuple[Any, ...]]) -> list[str]:
    """Which label became 1, wherever it is not plainly 0 and 1."""
    alike = defaultdict(list)
    for name, pair in zip(names, levels):
        if not isinstance(pair[0], bool) and pair != (0, 1):
            alike[pair].append(name)
    notes = []
    for (zero, one), members in alike.items():
        if (zero, one) == ("False", "True"):
            continue
        kind = "text column" if isinstance(zero, str) or isinstance(one, str) else "column"
        verb = "is a variable" if len(members) == 1 else "are variables"
        which = f"{counted(len(members), kind)} {verb} with {zero!r} as 0 and {one!r} as 1"
        notes.append(f"{which}: {listing(members, 10)}")
    return notes


ORDINARY_WORDS = {
    *(("n", "y"), ("no", "yes"), ("false", "true"), ("f", "t"), ("absent", "present"), ("-", "+")),
    ("off", "on"),
}


def label_columns(names: Sequence[str], levels: Sequence[tuple[Any, ...] | None]) -> list[str]:
    """Columns of words that look like labels of the rows: words that fewer columns share than others do.

    >>> label_columns(["party", "tax", "roads"], [("left", "right"), ("n", "y"), ("n", "y")])
    ['party']
    """
    pairs = [(str(pair[0]), str(pair[1])) if pair else ("", "") for pair in levels]
    most = max((pairs.count(pair) for pair in set(pairs)), default=0)
    return [
        name
        for name, pair, given in zip(names, pairs, levels)
        if given is not None
        and isinstance(given[0], str)
        and isinstance(given[1], str)
        and cut_behind(given) is None  # a number, cut on request
        and (pair[0].casefold(), pair[1].casefold()) not in ORDINARY_WORDS
        and (pairs.count(pair) < most or most == 1)
    ]


def kind_notes(
    names: Sequence[str], scales: Sequence[Scale], said: Container[int], places: Sequence[int]
) -> list[str]:
    """What columns with more than two levels were taken for, and how to say otherwise."""
    alike = defaultdict(list)
    for name, scale, place in zip(names, scales, places):
        if scale.kind != BINARY:
            alike[scale.kind, scale.labels, place in said].append(name)
    notes = []
    for (kind, labels, known), members in alike.items():
        words = all(isinstance(label, str) for label in labels)
        ends = f"{labels[0]!r} to {labels[-1]!r}" if kind != NOMINAL else listing(labels, 6)
        text = f"{counted(len(members), 'column')} {'is' if len(members) == 1 else 'are'} {kind} with "
        text += f"{len(labels)} levels, {ends}: {listing(members, 10)}"
        if kind == NOMINAL and words and not known:
            text += f" (words have no order unless levels={{{members[0]!r}: [...]}} gives one)"
        notes.append(text)
    return notes


def twin_note(names: list[str], columns: list[np.ndarray], tops: list[int], n_rows: int | None) -> str | None:
    """Columns that say the same thing, straight or turned round.

    `columns` are bits of `n_rows` rows, or numbers of levels up to `tops`, of which 0 means no turning round.
    """
    padding = None if n_rows is None else np.packbits(np.ones(n_rows, np.uint8))
    first: dict[bytes, int] = {}
    twins: dict[int, list[str]] = defaultdict(list)
    for position, (cells, top) in enumerate(zip(columns, tops)):
        straight = cells.tobytes()
        turned = straight if not top else (top - cells if padding is None else cells ^ padding).tobytes()
        if straight in first:
            twins[first[straight]].append(repr(names[position]))
        elif turned in first:
            twins[first[turned]].append(f"{names[position]!r} (turned round)")
        else:
            first[straight] = position
    if not twins:
        return None
    words = [f"{names[position]!r} = {listing(others)}" for position, others in twins.items()]
    return f"identical columns: {listing(words)}"
