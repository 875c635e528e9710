"""The bytes behind a path or a stream, unpacked on the way, and errors that name where they came from."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from edgewise.errors import DataError, FileError, printable

HEAD = 65_536
GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)


class _Unpacked(gzip.GzipFile):
    """Closes the file that it unpacks, too."""

    def close(self) -> None:
        handle: Any = self.fileobj
        super().close()
        if handle is not None:
            handle.close()


class Content:
    """The bytes of a file, or of a stream that was read to its end; gzip is unpacked on the way."""

    def __init__(self, origin: str, path: Path | None = None, content: bytes | None = None) -> None:
        self.origin = printable(origin, keep="")
        self.path = path
        self.content = content
        with self.raw() as handle:
            start = handle.read(2)
        self.zipped = start == b"\x1f\x8b"
        try:
            with self.open() as handle:
                self.head = handle.read(HEAD)
        except GZIP_ERRORS as error:
            raise self.error(
                f"is damaged or truncated: its gzip data end early ({error})", "copy it again"
            ) from None

    def raw(self) -> BinaryIO:
        """The bytes as they are."""
        if self.path is None:
            return io.BytesIO(self.content or b"")
        try:
            return self.path.open("rb")
        except OSError as error:
            raise FileError(f"{self.origin} cannot be opened: {error.strerror}.") from None

    def open(self) -> BinaryIO:
        """The bytes, unpacked."""
        handle = self.raw()
        return _Unpacked(fileobj=handle) if self.zipped else handle  # type: ignore[return-value]

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Turn whatever a foreign reader raises over damaged bytes into a FileError."""
        try:
            yield
        except (DataError, FileError):
            raise
        except Exception as error:
            detail = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise self.error(f"is damaged or truncated: {what} ({detail})", "copy it again") from None

    def error(self, what: str, remedy: str) -> FileError:
        """A FileError about this file."""
        return FileError(f"{self.origin} {what}; {remedy}.")
