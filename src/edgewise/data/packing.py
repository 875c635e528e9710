"""From the body of a table that has been read and checked to data: columns, rows and levels that count."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.data.body import Body
from edgewise.data.labels import is_blank
from edgewise.data.notes import kind_notes, level_notes, twin_note
from edgewise.data.problems import (
    counted,
    listing,
)
from edgewise.data.several import settle
from edgewise.data.table import BinaryData, Data, LevelData
from edgewise.errors import EdgewiseWarning
from edgewise.scales import BINARY, NOMINAL, Scale, Scales


def pack(body: Body, keep: np.ndarray | None, weights: np.ndarray | None, fixed: list[int]) -> Data:
    """The data of a body: rows to `keep` (None: all), `weights` of all rows, the columns with one level."""
    return _Packing(body, keep).run(weights, fixed)


class _Packing:
    """`settled` has the level numbers, in the rows that count, of columns with more than two levels."""

    def __init__(self, body: Body, keep: np.ndarray | None) -> None:
        self.body = body
        self.keep = keep
        self.settled: dict[int, np.ndarray] = {}

    def run(self, weights: np.ndarray | None, fixed: list[int]) -> Data:
        """Leave out what does not count, settle the levels and put everything together."""
        body, keep, notes = self.body, self.keep, self.body.notes
        order = list(range(len(body.names)))
        if fixed and body.constant == "drop":
            left_out = set(fixed)
            order = [position for position in order if position not in left_out]
            notes.append(f"constant columns left out: {listing([body.names[k] for k in fixed], 20)}")
        elif fixed:
            notes.append(f"constant columns kept: {listing([body.names[k] for k in fixed], 20)}")
        if keep is not None and keep.all():
            keep = self.keep = None
        n_rows = body.table.n_rows if keep is None else int(keep.sum())
        scales = self._settle(order)
        names = [body.names[position] for position in order]
        levels = [body.levels[position] or (0, 1) for position in order]
        pairs = [k for k, scale in enumerate(scales) if scale.kind == BINARY]
        notes += level_notes([names[k] for k in pairs], [levels[k] for k in pairs])
        notes += kind_notes(names, scales, body.wishes.kinds, [body.selection.variables[k] for k in order])
        shared: dict[str, Any] = {
            "names": tuple(names),
            "n_rows": n_rows,
            "weights": None if weights is None or keep is None else weights[keep],
            "levels": tuple(levels),
            "group": self._group_labels(),
            "group_name": None if body.selection.group is None else body.table.names[body.selection.group],
            "strata": None if body.division is None else body.division.strata(keep, weights, notes),
        }
        if keep is None:
            shared["weights"] = weights
        shared |= self._blank_cells(order, names)
        if len(pairs) == len(names):
            packed = self._bits(order)
            if "unknown" in shared:
                packed &= ~shared["unknown"]
            self._warn_of_twins(twin_note(names, list(packed), [1] * len(names), n_rows))
            return BinaryData(packed=packed, notes=tuple(notes), **shared)
        codes = np.empty((len(names), n_rows), np.uint8)
        for k, position in enumerate(order):
            if k in pairs and position not in body.several:
                codes[k] = np.unpackbits(self._bits([position])[0], count=n_rows)
            else:
                codes[k] = self.settled[position]
        if "unknown" in shared:
            codes[np.unpackbits(shared["unknown"], axis=1, count=n_rows).view(bool)] = 0
        tops = [0 if scale.kind == NOMINAL else scale.n_levels - 1 for scale in scales]
        self._warn_of_twins(twin_note(names, list(codes), tops, None))
        return LevelData(codes=codes, scales=Scales(tuple(scales)), notes=tuple(notes), **shared)

    def _blank_cells(self, order: list[int], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Which cells are blank in the rows that count, and where these rows stand in the source."""
        keep = self.keep
        n_rows = self.body.table.n_rows if keep is None else int(keep.sum())
        unknown = np.zeros((len(order), (n_rows + 7) // 8), np.uint8)
        counts = {}
        for k, position in enumerate(order):
            if position in self.body.blanks:
                bits = self.body.blanks[position]
                if keep is not None:
                    bits = np.packbits(np.unpackbits(bits, count=self.body.table.n_rows).view(bool)[keep])
                unknown[k] = bits
                counts[names[k]] = int(np.bitwise_count(bits).sum())
        counts = {name: count for name, count in counts.items() if count}
        if not counts:
            return {}
        worst = sorted(counts, key=lambda name: -counts[name])
        self.body.notes.append(
            f"{counted(sum(counts.values()), 'blank cell')} imputed: "
            + listing([f"{name!r} ({counts[name]:,})" for name in worst])
        )
        places = {} if keep is None else {"places": np.flatnonzero(keep)}
        return {"unknown": unknown, **places}

    def _settle(self, order: list[int]) -> list[Scale]:
        """The scales of the columns, now that the rows that count are known."""
        scales = []
        for position in order:
            scale = None
            if position in self.body.several:
                found = settle(self.body.several[position], self.keep, self.body.names[position])
                self.settled[position], scale, self.body.levels[position], notes = found
                self.body.notes += notes
            scales.append(Scale(BINARY, self.body.levels[position] or (0, 1)) if scale is None else scale)
        return scales

    def _bits(self, order: list[int]) -> np.ndarray:
        """Bits of some columns of two levels in the rows that count."""
        rows = []
        for position in order:
            bits = self.body.packed[position]
            if position in self.settled:
                bits = np.packbits(self.settled[position])
            elif self.keep is not None:
                bits = np.packbits(np.unpackbits(bits, count=self.body.table.n_rows).view(bool)[self.keep])
            rows.append(bits)
        return np.stack(rows)

    def _warn_of_twins(self, twins: str | None) -> None:
        if twins is None:
            return
        self.body.notes.append(twins)
        warnings.warn(
            f"{self.body.table.origin} has {twins}. Their dependence is perfect and hides what else each "
            "depends on; keep one of each with drop_columns unless that is what you want.",
            EdgewiseWarning,
            stacklevel=5,
        )

    def _group_labels(self) -> tuple[str, ...] | None:
        if self.body.selection.group is None:
            return None
        keep = self.keep
        labels = self.body.table.raw(self.body.selection.group)
        rows = range(self.body.table.n_rows) if keep is None else np.flatnonzero(keep).tolist()
        return tuple("" if is_blank(labels[row]) else str(labels[row]) for row in rows)
