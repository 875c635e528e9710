"""What comes of an input: a short text, or something that no user should see."""

from __future__ import annotations

import re
import warnings
from typing import Any


class Escaped(Exception):
    """Something that no user should see."""


def worded(error: BaseException) -> str:
    """An error without what differs from input to input."""
    try:
        str(error).encode()
    except UnicodeEncodeError:
        raise Escaped(f"a message that cannot be printed: {error!r}") from error
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|-?\d[\d.,e+-]*", "_", str(error))
    return f"refused: {type(error).__name__} {text[:110]}".replace("\n", " ")


def tried(target: Any, data: bytes) -> str:
    """The outcome of one input; whatever is no error of edgewise's own has escaped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return str(target(data))
        except Escaped:
            raise
        except MemoryError as error:
            raise Escaped("out of memory") from error
        except Exception as error:
            raise Escaped(f"{type(error).__name__}: {error}") from error
