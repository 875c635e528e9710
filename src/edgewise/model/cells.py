"""Names as cells of CSV files that are safe to open in a spreadsheet, and back."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(text: object) -> str:
    r"""Text that a spreadsheet shows instead of running it.

    A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break is taken for a formula by
    spreadsheet programs; a leading apostrophe makes it text. Spaces before such a sign do not hide it. Text
    that looks guarded already gets one more, so that :func:`plain_cell` gives it back.

    >>> safe_cell("=1+1"), safe_cell("sleep"), safe_cell("'=1")
    ("'=1+1", 'sleep', "''=1")
    """
    words = str(text)
    return f"'{words}" if _runs(words.lstrip("'")) else words


def plain_cell(text: str) -> str:
    """The text that :func:`safe_cell` was given.

    >>> plain_cell("'=1+1"), plain_cell("''=1"), plain_cell("'tis")
    ('=1+1', "'=1", "'tis")
    """
    return text[1:] if text.startswith("'") and _runs(text.lstrip("'")) else text


def _runs(words: str) -> bool:
    return words.startswith(FORMULA_STARTS) or words.lstrip().startswith(FORMULA_STARTS)
