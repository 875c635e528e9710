"""Replacing a file in one step: whoever looks sees the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from edgewise.errors import FileError
from edgewise.paths import as_path

PART = ".part"


@contextlib.contextmanager
def beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty file beside `path` that takes its place, once it is on disk, when the block ends well.

    After an error `path` is as it was and nothing is left behind. A link at `path` is replaced itself; the
    file it points to stays. What is neither file nor link to one (a pipe, ``/dev/stdout``) is written to.

    Raises
    ------
    OSError
        When the file cannot be written.
    DataError, FileError
        When `path` is none.
    """
    target = as_path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    special = target.exists() and not target.is_file()
    folder = Path(tempfile.gettempdir()) if special else target.parent
    # A name may have 255 bytes; the number makes the draft ours alone.
    name = os.fsdecode(os.fsencode(target.name)[:200])
    draft = folder / f".{name}.{secrets.token_hex(4)}{PART}"
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        if special:
            with open(draft, "rb") as content, open(target, "wb") as stream:
                shutil.copyfileobj(content, stream)
            return
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, target)
        _sync_directory(folder)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file that takes the place of `path` when the block ends well: bytes, or text in an `encoding`.

    Raises
    ------
    FileError
        When the file cannot be written.
    """
    try:
        with (
            beside(path) as draft,
            open(
                draft,
                "wb" if encoding is None else "w",
                encoding=encoding,
                newline=None if encoding is None else "",
            ) as file,
        ):
            yield file
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error


def _sync_directory(folder: Path) -> None:
    """Make the new name last through a power cut, where the system can; the file itself is safe by now."""
    if os.name != "posix":
        return
    # Directories may be writable and not readable, and some network drives cannot do this.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
