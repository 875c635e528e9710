"""What is worth saying of a table that can be used: which label became 1, and which columns say the same."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from edgewise.data.problems import counted, listing


def level_notes(names: list[str], levels: list[tuple[Any, Any]]) -> list[str]:
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


def twin_note(names: list[str], packed: np.ndarray, n_rows: int) -> str | None:
    """Columns that say the same thing, straight or turned round."""
    padding = np.packbits(np.ones(n_rows, np.uint8))
    first: dict[bytes, int] = {}
    twins: dict[int, list[str]] = defaultdict(list)
    for position, bits in enumerate(packed):
        straight, turned = bits.tobytes(), (bits ^ padding).tobytes()
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
