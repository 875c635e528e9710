"""One fit at a time in a directory: a lock that ends with the process that took it, however it ends.

``flock`` rather than a POSIX record lock: that would not keep two fits of one process apart, and any other
file opened on the lock would free it when closed. Its one weakness is that forked children, such as the
workers of a process pool, inherit it and may outlive the fit; they close it when they are born.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path

from edgewise.errors import FileError

NAME = "lock"

_held: set[Lock] = set()
_changing = threading.RLock()  # nobody forks while a lock is open and not yet among those held


class Lock:
    """The lock of a directory, held until :meth:`release`."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    @classmethod
    def take(cls, directory: Path) -> Lock:
        """Lock a directory.

        Raises
        ------
        FileError
            When another fit holds the lock, or something else is in its place.
        OSError
            When no lock can be made there.
        """
        path = directory / NAME
        while True:
            with _changing:
                handle = _open(path)
                try:
                    _lock(handle, directory)
                    if not _is_at(handle, path):  # deleted between opening and locking: of no use to others
                        os.close(handle)
                        continue
                    os.ftruncate(handle, 0)
                    os.write(handle, f"{os.getpid()}\n".encode())
                except BaseException:
                    os.close(handle)
                    raise
                lock = cls(handle)
                _held.add(lock)
                return lock

    def release(self) -> None:
        """Let others have the directory."""
        with _changing:
            _held.discard(self)
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if path.is_symlink() and error.errno in (errno.ELOOP, errno.EMLINK):
            raise FileError(
                f"{str(path)!r} is a link to {str(path.readlink())!r}; delete it, a lock is a file of its "
                "own."
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(f"{str(path)!r} is not a file; delete it, a lock is a file of its own.")
    return handle


def _is_at(handle: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    return False


def _lock(handle: int, directory: Path) -> None:
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:  # pragma: no cover - Windows
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        raise FileError(
            f"The checkpoint {str(directory)!r} is in use by another fit (process {_owner(handle)}); wait "
            "for it or give another directory."
        ) from None


def _owner(handle: int) -> str:
    try:
        found = os.read(handle, 20).strip()
    except OSError:  # pragma: no cover - Windows locks the bytes themselves
        return "unknown"
    return found.decode() if found.isdigit() else "unknown"


def _leave_to_parent() -> None:
    """In a forked child: forget the locks of the parent without freeing them."""
    for lock in _held:
        if lock._handle is not None:
            os.close(lock._handle)
            lock._handle = None
    _held.clear()
    _changing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_leave_to_parent
    )
