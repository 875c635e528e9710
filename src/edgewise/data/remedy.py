"""Blank cells: how many, where, and what could be left out so that complete rows remain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgewise.data.problems import MISSING, Fault, counted, listing


def complete_rows(blanks: Mapping[int, np.ndarray], n_rows: int) -> np.ndarray:
    """Which rows have no blank; `blanks` maps a column to its packed blank cells."""
    incomplete = np.zeros((n_rows + 7) // 8, np.uint8)
    for bits in blanks.values():
        incomplete |= bits
    return ~np.unpackbits(incomplete, count=n_rows).view(bool)


def silent_rows(blanks: Mapping[int, np.ndarray], n_rows: int, n_columns: int) -> np.ndarray:
    """Which rows have no answer at all."""
    if len(blanks) < n_columns:
        return np.zeros(n_rows, bool)
    silent = np.full((n_rows + 7) // 8, 255, np.uint8)
    for bits in blanks.values():
        silent &= bits
    return np.unpackbits(silent, count=n_rows).view(bool)


def blank_problem(
    blanks: Mapping[int, np.ndarray], names: Sequence[str], n_rows: int, dropping: bool
) -> Fault:
    """What to say about blank cells."""
    counts = {column: int(np.bitwise_count(bits).sum()) for column, bits in blanks.items()}
    worst = sorted(counts, key=lambda column: (-counts[column], column))
    words = listing([f"{names[column]!r} ({counts[column]:,})" for column in worst])
    n_complete = int(complete_rows(blanks, n_rows).sum())
    total = sum(counts.values())
    verb = "is" if total == 1 else "are"
    text = (
        f"{counted(total, 'cell')} in {counted(n_rows - n_complete, 'row')} {verb} blank, most in {words}; "
    )
    if n_complete:
        text += f"{n_complete:,} of {n_rows:,} rows are complete and would stay with missing='drop'."
    elif dropping:
        text += "no row is complete, so that none would stay; leave out the columns with most blanks."
    else:
        text += "no row is complete, so that missing='drop' alone would leave none."
    return Fault(MISSING, text, tuple(names[column] for column in worst))


def columns_to_leave_out(blanks: Mapping[int, np.ndarray], n_rows: int, n_columns: int) -> list[int]:
    """The fewest columns with most blanks without which there are as many complete rows as columns.

    Where that cannot be had, the columns whose removal keeps the largest complete table.
    """
    counts = {column: int(np.bitwise_count(bits).sum()) for column, bits in blanks.items()}
    worst = sorted(counts, key=lambda column: (-counts[column], column))
    blanks_of_row = np.zeros(n_rows, np.int32)
    for bits in blanks.values():
        blanks_of_row += np.unpackbits(bits, count=n_rows)
    best, most_cells = 0, -1
    for dropped in range(min(len(worst), n_columns - 2) + 1):
        if dropped:
            blanks_of_row -= np.unpackbits(blanks[worst[dropped - 1]], count=n_rows)
        rows, columns = int((blanks_of_row == 0).sum()), n_columns - dropped
        if rows >= columns:
            return worst[:dropped]
        if rows * columns > most_cells:
            best, most_cells = dropped, rows * columns
    return worst[:best]
