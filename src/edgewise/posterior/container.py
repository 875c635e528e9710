"""The bytes of a posterior file: where each array lies in it, and a digest of the whole.

Behind the end of the HDF5 file, where no HDF5 library looks, stand an index of the arrays, its length, the
SHA-256 of all that comes before, and a mark. A file with a mark is read from its index alone: a changed byte
is found before anything is interpreted, and the HDF5 library, which trusts what it reads, is not asked. It
stays an ordinary NetCDF file for every other program. Whoever changes it through HDF5 cuts the index off.

=========  ====================================================================================
bytes      content
=========  ====================================================================================
HDF5 file  as any NetCDF library reads it
index      JSON: ``title``, ``format_version``, ``edgewise_version`` and ``arrays``, each with its
           type, shape, the shape of its chunks (None where it lies in one piece) and its pieces:
           offset, stored bytes, and the filters of HDF5 that were left out for it
8          length of the index
32         SHA-256 of all bytes before
16         the mark
=========  ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from edgewise.reading import physical_memory

MARK = b"edgewise index 1"
_TAIL = struct.Struct("<Q32s16s")
_BLOCK = 1 << 20
_LONGEST_INDEX = 1 << 24
_TYPE = re.compile("[<>|][iuf][1248]")
_MOST_AXES = 8
# What HDF5 adds to the arrays of a posterior: headers and attributes.
_OVERHEAD = 1 << 22
# Filters of HDF5, as bits of what was left out.
_SHUFFLE, _DEFLATE = 1, 2


class Damaged(Exception):
    """What is wrong with a file, without its name."""


def most_bytes(stored: int) -> int:
    """The most that the arrays of a file may hold: names compress well, draws hardly at all."""
    return min((64 << 20) + 16 * stored, physical_memory())


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Chunks of about a megabyte that cut the first axis only."""
    row = itemsize * math.prod(shape[1:])
    return (max(1, min(shape[0], _BLOCK // row)), *shape[1:])


def add_index(path: Path, header: Mapping[str, Any]) -> None:
    """Put index and digest behind a finished HDF5 file."""
    import h5py

    arrays = {}
    with h5py.File(path, "r") as file:
        for name, found in file.items():
            if not found.is_scale:
                arrays[name] = {
                    "type": found.dtype.str,
                    "shape": list(found.shape),
                    "chunk": None if found.chunks is None else list(found.chunks),
                    "pieces": _pieces(found),
                }
    index = json.dumps({**header, "arrays": arrays}).encode()
    with open(path, "rb+") as file:
        digest = hashlib.file_digest(file, "sha256")
        file.seek(0, os.SEEK_END)
        tail = index + struct.pack("<Q", len(index))
        digest.update(tail)
        file.write(tail + digest.digest() + MARK)


def _pieces(found: Any) -> list[tuple[int, int, int]]:
    if not found.size:
        return []
    if found.chunks is None:
        return [(found.id.get_offset(), found.id.get_storage_size(), 0)]
    infos = [found.id.get_chunk_info(k) for k in range(found.id.get_num_chunks())]
    infos.sort(key=lambda info: info.chunk_offset)
    return [(info.byte_offset, info.size, info.filter_mask) for info in infos]


def read(file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Header and arrays of a file that has an index; None where it has none.

    Raises
    ------
    Damaged
        When the file is not as it was written.
    """
    if size < _TAIL.size:
        return None
    file.seek(size - _TAIL.size)
    length, digest, mark = _TAIL.unpack(file.read(_TAIL.size))
    if mark != MARK:
        return None
    end = size - _TAIL.size - length
    if end < 0 or length > _LONGEST_INDEX:
        raise Damaged("its index has an impossible length")
    file.seek(end)
    index = file.read(length)
    try:
        header = json.loads(index)
        arrays = {str(name): _Layout(**entry) for name, entry in header.pop("arrays").items()}
        layouts = list(arrays.values())
        for layout in layouts:
            layout.check(end)
        stored = sum(layout.stored for layout in layouts)
        declared = sum(layout.declared for layout in layouts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise Damaged(f"its index makes no sense: {error}") from None
    if end > stored + _OVERHEAD:
        raise Damaged(f"{end - stored:,} of its bytes belong to nothing")
    if declared > most_bytes(size):
        raise Damaged(f"its {size:,} bytes claim to hold {declared:,}")
    if _digest(file, size - _TAIL.size + 8) != digest:
        raise Damaged("its contents do not fit its checksum")
    return header, {name: layout.read(file) for name, layout in arrays.items()}


def _digest(file: IO[bytes], count: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    buffer = memoryview(bytearray(_BLOCK))
    while count > 0:
        found = file.readinto(buffer[: min(count, _BLOCK)])  # type: ignore[attr-defined]
        if not found:
            break
        digest.update(buffer[:found])
        count -= found
    return digest.digest()


class _Layout:
    """Where one array lies."""

    def __init__(self, type: Any, shape: Any, chunk: Any, pieces: Any) -> None:
        # NumPy would take far more than this for a type, and parse it as Python.
        if not _TYPE.fullmatch(str(type)):
            raise ValueError(f"an array of {str(type)[:40]}")
        self.dtype = np.dtype(str(type))
        self.shape = _lengths(shape)
        self.chunk = None if chunk is None else _lengths(chunk)
        self.pieces = [_lengths(piece) for piece in pieces]

    def check(self, end: int) -> None:
        """Compare the pieces with the shape and the file with both."""
        size, width = math.prod(self.shape), self.dtype.itemsize
        self.declared = size * width
        self.stored = 0
        for piece in self.pieces:
            if len(piece) != 3 or piece[0] + piece[1] > end:
                raise ValueError(f"a piece at {list(piece)} of {end} bytes")
            self.stored += piece[1]
        if not size:
            wanted = 0
        elif self.chunk is None:
            wanted = 1
            if self.stored != self.declared:
                raise ValueError(f"{self.stored} bytes for an array of {self.declared}")
        else:
            if len(self.chunk) != len(self.shape) or self.chunk[1:] != self.shape[1:] or not self.chunk[0]:
                raise ValueError(f"chunks of {self.chunk} in an array of {self.shape}")
            wanted = -(-self.shape[0] // self.chunk[0])
            self.declared = max(self.declared, wanted * math.prod(self.chunk) * width)
        if len(self.pieces) != wanted:
            raise ValueError(f"{len(self.pieces)} pieces instead of {wanted}")

    def read(self, file: IO[bytes]) -> np.ndarray:
        """The array."""
        values = np.empty(self.shape, self.dtype)
        if values.size and self.chunk is None:
            file.seek(self.pieces[0][0])
            if file.readinto(values.reshape(-1).view(np.uint8)) != values.nbytes:  # type: ignore[attr-defined]
                raise Damaged("it became shorter while it was read")
        elif values.size:
            assert self.chunk is not None
            for k, piece in enumerate(self.pieces):
                part = values[k * self.chunk[0] : (k + 1) * self.chunk[0]]
                part[...] = self._chunk(file, *piece)[: len(part)]
        return values.astype(self.dtype.newbyteorder("="), copy=False)

    def _chunk(self, file: IO[bytes], start: int, stored: int, left_out: int) -> np.ndarray:
        assert self.chunk is not None
        width, count = self.dtype.itemsize, math.prod(self.chunk)
        file.seek(start)
        content = file.read(stored)
        if not left_out & _DEFLATE:
            try:
                content = zlib.decompressobj().decompress(content, width * count + 1)
            except zlib.error as error:
                raise Damaged(f"an array cannot be unpacked: {error}") from None
        if len(content) != width * count:
            raise Damaged("an array has another length than it should have")
        if not left_out & _SHUFFLE and width > 1:
            content = np.frombuffer(content, np.uint8).reshape(width, count).T.tobytes()
        return np.frombuffer(content, self.dtype).reshape(self.chunk)


def _lengths(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) > _MOST_AXES:
        raise TypeError(f"{str(values)[:40]} are no lengths")
    for value in values:
        if type(value) is not int or not 0 <= value < 2**62:
            raise ValueError(f"{str(value)[:40]} is no length")
    return tuple(values)


def truncated(start: bytes, size: int) -> bool:
    """Whether an HDF5 file is shorter than its first bytes say."""
    place = {0: 40, 1: 44, 2: 28, 3: 28}.get(start[8] if len(start) > 8 else -1)
    if place is None or len(start) < place + 8:
        return size < 96
    return int.from_bytes(start[place : place + 8], "little") > size
