"""The two errors and the one warning class that edgewise raises on purpose."""

from __future__ import annotations


class DataError(ValueError):
    """Bad input: a table, an argument or a combination of both that cannot be used as it is."""


class FileError(ValueError):
    """A file that is missing, truncated, of the wrong kind or made by something else."""


class EdgewiseWarning(UserWarning):
    """A result that stands but deserves a second look; the text has the number and the remedy."""
