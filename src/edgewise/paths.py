"""What a user gives as a path: ``~`` is a home, and what can be no path is said so at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from edgewise.errors import DataError, FileError

LONGEST_NAME = 255  # bytes, on nearly every file system
LONGEST_PATH = 4095


def as_path(given: Any, what: str = "a file") -> Path:
    """The path that a user means by text or an object that stands for a path.

    Parameters
    ----------
    given : str or path
        ``~`` and ``~name`` at its beginning are the home of the user, or of the user of that name.
    what : str
        What should be there, for messages.

    Raises
    ------
    DataError
        For what is no path at all, such as a number.
    FileError
        For text that can be no path, and homes of users that do not exist.

    Examples
    --------
    >>> as_path("table.csv").name
    'table.csv'
    >>> try:
    ...     as_path("")
    ... except FileError as error:
    ...     print(error)
    '' is not a path; give the path of a file.
    """
    if not isinstance(given, str | os.PathLike):
        raise DataError(f"Give the path of {what} as text or pathlib.Path; not {repr(given)[:60]}.")
    text = os.fsdecode(os.fspath(given))
    wrong = _wrong(text)
    if wrong is not None:
        shown = text if len(text) <= 60 else f"{text[:40]}...{text[-15:]}"
        raise FileError(f"{shown!r} is not a path{wrong}; give the path of {what}.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise FileError(f"{text}: there is no user of that name here; write the whole path.") from None


def _wrong(text: str) -> str | None:
    """What is wrong with a path, as the rest of a sentence."""
    if not text.strip():
        return ""
    if "\0" in text:
        return ": it has a zero character in it"
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        return ": it has half a character (a lone surrogate) in it"
    longest = max(len(part) for part in encoded.replace(os.sep.encode(), b"/").split(b"/"))
    if longest > LONGEST_NAME:
        return f": a name in it has {longest:,} bytes, and the most is {LONGEST_NAME}"
    if len(encoded) > LONGEST_PATH:
        return f": it has {len(encoded):,} bytes, and the most is {LONGEST_PATH:,}"
    return None
