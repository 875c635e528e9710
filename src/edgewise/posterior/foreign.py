"""Files without an index: the HDF5 library reads them in a process of its own, with a deadline.

One changed bit can send that library into an endless loop or out of its memory, and a file may point to
other files. So it is asked in a child process, which looks at every link and every size before it reads an
array, and answers with plain bytes: a line of JSON, then the arrays one after the other.

This module is also the program of the child and imports nothing of the package.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

DEADLINE_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 10e6
# Room for the interpreter and its libraries beside the arrays.
LIBRARY_BYTES = 4 << 30
_ATTRIBUTES = ("title", "format_version", "edgewise_version", "checksum")
_LONGEST_TEXT = 10_000
_FILTERS = (1, 2, 3)  # deflate, shuffle, Fletcher's checksum
_DAMAGED = "it cannot be read"


class Unreadable(Exception):
    """Why a file cannot be read, without its name."""


def read(path: Path, most_bytes: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Attributes and arrays of an HDF5 file.

    Raises
    ------
    Unreadable
        When the library fails, crashes, never ends, or what it finds is no plain array.
    """
    if not sys.executable:
        raise Unreadable("it was written by an earlier version, and there is no interpreter to open it with")
    deadline = DEADLINE_SECONDS + path.stat().st_size / SLOWEST_BYTES_PER_SECOND
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "OPENBLAS_NUM_THREADS": "1",
        "HDF5_PLUGIN_PATH": os.devnull,
    }
    command = [
        sys.executable,
        "-P",
        __file__,
        os.path.abspath(path),
        str(most_bytes),
        str(math.ceil(deadline)),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(f"the HDF5 library does not come to an end with it in {deadline:.0f} s") from None
    if done.returncode != 0:
        raise Unreadable(f"the HDF5 library fails with it (exit code {done.returncode})")
    try:
        return _unpack(done.stdout)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise Unreadable(str(error) or _DAMAGED) from None


def _unpack(answer: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    end = answer.index(b"\n")
    header = json.loads(answer[:end])
    if "fault" in header:
        raise ValueError(header["fault"])
    arrays, start = {}, end + 1
    for name, kind, shape in header["arrays"]:
        count = math.prod(shape)
        array = np.frombuffer(answer, kind, count, start).reshape(shape).copy()
        start += array.nbytes
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return header["attributes"], arrays


def _answer(path: str, most_bytes: int) -> None:
    """In the child: write what the file holds to standard output."""
    import h5py

    pieces = []
    with h5py.File(path, "r") as file:
        attributes = {name: _attribute(file.attrs, name) for name in _ATTRIBUTES if name in file.attrs}
        if attributes.get("title") == "edgewise posterior":
            total = 0
            for name in file:
                link = file.get(name, getlink=True)
                if not isinstance(link, h5py.HardLink):
                    raise ValueError(f"{name!r} is a link to elsewhere")
                found = file[name]
                if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
                    raise ValueError(f"{name!r} is not an array in the file itself")
                if found.is_scale:
                    continue
                if found.dtype.kind not in "iuf" or found.dtype.itemsize > 8:
                    raise ValueError(f"{name!r} is an array of {found.dtype}")
                creation = found.id.get_create_plist()
                filters = [creation.get_filter(k)[0] for k in range(creation.get_nfilters())]
                if any(code not in _FILTERS for code in filters):
                    raise ValueError(f"{name!r} is packed with a filter that edgewise never used")
                total += found.dtype.itemsize * math.prod(found.shape)
                if total > most_bytes:
                    raise ValueError(f"its arrays claim more than {most_bytes:,} bytes")
                pieces.append((name, found))
        arrays = [(name, np.ascontiguousarray(found[...])) for name, found in pieces]
    described = [(name, array.dtype.str, array.shape) for name, array in arrays]
    header = json.dumps({"attributes": attributes, "arrays": described})
    sys.stdout.buffer.write(header.encode() + b"\n")
    for _, array in arrays:
        if array.size:
            sys.stdout.buffer.write(array.reshape(-1).view(np.uint8).data)
    sys.stdout.buffer.flush()


def _attribute(attributes: Any, name: str) -> str | int:
    """A short text or a whole number."""
    found = attributes.get_id(name)
    if math.prod(found.shape) != 1 or found.get_storage_size() > _LONGEST_TEXT:
        raise ValueError(f"its {name} is not a single value")
    value = np.ravel(attributes[name])[0]
    if isinstance(value, np.integer):
        return int(value)
    return (value.decode() if isinstance(value, bytes) else str(value))[:_LONGEST_TEXT]


def _main() -> None:
    path, most_bytes, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        import resource

        for kind, limit in (
            (resource.RLIMIT_AS, LIBRARY_BYTES + 3 * most_bytes),
            (resource.RLIMIT_CPU, seconds + 1),
        ):
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass  # other systems have no limits; the deadline holds everywhere
    try:
        _answer(path, most_bytes)
    except Exception as error:
        first = (str(error).strip("'\"").splitlines() or [type(error).__name__])[0]
        sys.stdout.buffer.write(json.dumps({"fault": first}).encode() + b"\n")


if __name__ == "__main__":
    _main()
