"""The errors and the one warning class that edgewise raises on purpose, and what their text may hold."""

from __future__ import annotations

import re
import sys

# Control characters, line separators, marks that turn the direction of writing, and halves of characters.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str, keep: str = "\n\t") -> str:
    r"""Text that a terminal shows instead of obeying it; names should `keep` nothing.

    >>> print(printable("a\x1b[31m", keep=""))
    a\x1b[31m
    """
    return _CONTROL.sub(
        lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text
    )


class _Shown:
    """A message may quote anything, and is shown in terminals."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(_Shown, ValueError):
    """Bad input: a table, an argument or a combination of both that cannot be used as it is.

    Examples
    --------
    >>> from edgewise import MRF
    >>> from edgewise.errors import DataError
    >>> try:
    ...     MRF([0, 0], [(0, 5)], [1.0])
    ... except DataError as error:
    ...     print(error)
    There is no variable 5; the 2 variables are numbered from 0.
    """


class FileError(_Shown, ValueError):
    """A file that is missing, truncated, of the wrong kind or made by something else.

    Examples
    --------
    >>> from edgewise import load_posterior
    >>> from edgewise.errors import FileError
    >>> try:
    ...     load_posterior("nothing.nc")
    ... except FileError as error:
    ...     print(error)
    There is no file nothing.nc.
    """


class ClusterError(_Shown, RuntimeError):
    """A cluster that has gone, has no workers or has other software than this machine.

    Nothing is wrong with the fit: it goes on from its checkpoint, here or on another cluster.

    Examples
    --------
    >>> from edgewise.errors import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class EdgewiseWarning(_Shown, UserWarning):
    """A result that stands but deserves a second look; the text has the number and the remedy.

    Examples
    --------
    >>> import warnings
    >>> from edgewise.errors import EdgewiseWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", EdgewiseWarning)  # a result to look at twice ends the program
    """


def users_line() -> int:
    """The `stacklevel` with which a warning of the caller points at the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "edgewise":
        frame, level = frame.f_back, level + 1
    return level
