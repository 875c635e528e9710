"""The files of a checkpoint: plain ``.npz`` archives and the manifest of one, read as from a stranger.

Every array is read to its end, where alone its checksum is verified, and every size is compared with the file
before room is made for it.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.reading import open_file, physical_memory, size_of
from edgewise.run.options import MOST_CHAINS

NAME = re.compile(r"(generation|draws|shared)-(\d{8})\.npz")


class Damaged(Exception):
    """A file of the checkpoint that cannot be read."""


def load(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, each read to its end: only there is its checksum verified."""
    try:
        with open_file(path, follow=False) as file, zipfile.ZipFile(file) as archive:
            size = size_of(file)
            members = archive.infolist()
            # Written without packing; what claims to be larger than its file is no work of ours.
            packed = any(member.compress_size != member.file_size for member in members)
            if packed or sum(member.file_size for member in members) > min(size, physical_memory()):
                raise ValueError("it claims more than it holds")
            arrays = {
                member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members
            }
            if len(arrays) != len(members):
                raise ValueError("an array is there twice")
            return arrays
    except Exception as error:  # damaged bytes make zipfile raise nearly anything
        raise Damaged(f"{path.name}: {error or type(error).__name__}") from None


def _array(content: bytes) -> np.ndarray:
    """One array of NumPy's own format, whose header is compared with what follows before room is made."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    start = stream.tell()
    if dtype.kind not in "biuf" or any(length < 0 for length in shape):
        raise ValueError(f"an array of {dtype} {shape}")
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"{len(content) - start} bytes for an array of {dtype} {shape}")
    flat = np.frombuffer(content, dtype, offset=start)
    return flat.reshape(shape, order="F" if by_columns else "C").copy()


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Types and references of a manifest; the names of its files stay within the directory."""
    chains, segments, notes = manifest["chains"], manifest["segments"], manifest["notes"]
    if type(chains) is not int or not 0 <= chains <= MOST_CHAINS:
        raise ValueError(f"there are {short(chains)} chains")
    if not isinstance(manifest["identity"], Mapping) or not isinstance(notes, Mapping):
        raise TypeError("identity and notes are no mappings")
    seen = set()
    for segment in segments:
        name, counts = str(segment["file"]), segment["draws"]
        match = NAME.fullmatch(name)
        if match is None or match[1] != "draws" or name in seen:
            raise ValueError(f"{short(name)!r} is not the name of a segment, or is listed twice")
        seen.add(name)
        if len(counts) != chains or any(type(count) is not int for count in counts):
            raise ValueError(f"the numbers of draws in {name!r} are {short(counts)}")
    if chains:
        thin, seconds = notes["thin"], notes["seconds"]
        if thin is not None and (type(thin) is not int or not 0 < thin < 2**53):
            raise ValueError(f"thin is {short(thin)}")
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise ValueError(f"the seconds are {short(seconds)}")
    if not all(isinstance(name, str) for name in manifest.get("arrays", [])):
        raise TypeError("the names of the arrays are none")
    seed = manifest["identity"].get("seed")
    words = seed if isinstance(seed, list) else [seed]
    if seed is not None and not all(type(word) is int and word >= 0 for word in words):
        raise ValueError(f"the seed is {short(seed)}")


def short(value: Any) -> str:
    """A value in a few words."""
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else text[:28] + "..." + text[-28:]
