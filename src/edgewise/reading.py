"""Opening files that others may have made: a file and nothing else, and no more than the machine can hold."""

from __future__ import annotations

import os
import stat
from typing import IO


class NotAFile(OSError):
    """Something else than a file: reading it might never end."""


def open_file(path: str | os.PathLike[str], follow: bool = True) -> IO[bytes]:
    """Open a regular file for reading bytes, a link only if asked to `follow` it.

    Raises
    ------
    OSError
        When it cannot be opened; :class:`NotAFile` for pipes, devices and directories.
    """

    def opener(name: str, flags: int) -> int:
        # A pipe would keep an ordinary open() waiting for somebody who writes.
        extra = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
        return os.open(name, flags | extra)

    file = open(path, "rb", opener=opener)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotAFile(f"{path} is not a file")
    return file


def size_of(file: IO[bytes]) -> int:
    """Number of bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def physical_memory() -> int:
    """Bytes of memory of this machine; a very large number where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 40
