"""A recipe: bytes that decide how an input is made, so that any fuzzer of bytes can drive any target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

NUMBERS = (0, 1, -1, 2, 5, 7, 127, 255, 2**15, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**31), -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf"), 1e18)
VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "\x1b[31m", "=1+1", "../../etc/passwd", "/etc/passwd", [], {}, [[]], [None],
    {"a": 1}, "1e999", 10**40,
)  # fmt: skip
TYPES = ("<i4", "<i8", "<f8", "<f4", "|u1", "|b1", "<u4", "<U3", "<c16")


class Recipe:
    """Decisions read from bytes; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1] if self.place <= len(self.data) else 0

    def below(self, count: int) -> int:
        return int.from_bytes(bytes(self.byte() for _ in range(3)), "little") % max(count, 1)

    def choose(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def value(self) -> Any:
        return self.choose((*VALUES, *NUMBERS, *REALS))

    def damage(self, content: bytes) -> bytes:
        """Flip, overwrite, cut, repeat or lose some bytes."""
        changed = bytearray(content)
        for _ in range(1 + self.below(3)):
            start = self.below(len(changed) + 1)
            kind = self.below(8)
            if kind <= 3 and start < len(changed):
                changed[start] ^= 1 << self.below(8)
            elif kind == 4:
                patch = bytes(self.byte() for _ in range(1 + self.below(8)))
                changed[start : start + len(patch)] = patch
            elif kind == 5:
                del changed[start:]
            elif kind == 6:
                del changed[start : start + 1 + self.below(64)]
            else:
                changed[start:start] = changed[start : start + self.below(512)]
        return bytes(changed)

    def alter(self, array: np.ndarray) -> np.ndarray:
        """Another array in the place of one: other values, another shape or another type."""
        kind = self.below(9)
        with np.errstate(all="ignore"):
            if kind <= 2 and array.size and array.dtype.kind in "iuf":
                changed = array.copy()
                value = self.choose(NUMBERS if array.dtype.kind in "iu" else REALS)
                changed.reshape(-1)[self.below(array.size)] = np.asarray(value).astype(array.dtype)
                return changed
            if kind == 3:
                return array[..., : self.below(array.shape[-1] + 1)].copy() if array.ndim else array[None]
            if kind == 4:
                return np.concatenate([array, array]) if array.ndim else array.reshape(1)
            if kind == 5:
                return array.reshape(-1)[None] if array.ndim < 2 else array.reshape(-1)
            if kind == 6:
                try:
                    return array.astype(self.choose(TYPES))
                except (ValueError, TypeError):
                    return array[:0] if array.ndim else array
            if kind == 7 and array.ndim:
                return array[::-1].copy()
            return np.zeros_like(array)

    def alter_json(self, record: Any) -> Any:
        """A record with one of its values replaced or lost."""
        record = json.loads(json.dumps(record))
        place = record
        for _ in range(12):
            if isinstance(place, dict) and place:
                key: Any = self.choose(sorted(place))
            elif isinstance(place, list) and place:
                key = self.below(len(place))
            else:
                return self.value()
            if self.below(3) == 0 or not isinstance(place[key], dict | list) or not place[key]:
                if self.below(5) == 0:
                    del place[key]
                else:
                    place[key] = self.value()
                return record
            place = place[key]
        return record
