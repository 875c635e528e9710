"""Tables and pages of measured numbers, from what the benchmarks have stored under ``benchmarks/results``.

A comment before a table of a page, ``<!-- results: accuracy -->``, says which benchmark has made it
(``speed:1`` is its second table). The build shows what is stored, and complains where the page says
something else, so that neither can grow old. ``python docs/_extensions/stored.py`` writes all tables anew.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
RENEW = "renew it with: python docs/_extensions/stored.py"
TABLE = re.compile(r"(?:^\|.*\n?)+", re.M)
MARKED = re.compile(r"^<!-- results: (\S+) -->\n(?P<table>(?:^\|.*\n?)*)", re.M)
# Whole pages that a benchmark writes, with the function that returns their texts.
PAGES = {"calibration": "benchmarks.calibration.page", "pseudo-likelihood": "benchmarks.calibration.page"}


@functools.cache
def printed(name: str) -> tuple[str, ...]:
    """The tables that a benchmark prints of what it has stored, without what it says on the way."""
    home = f"benchmarks.engines.{name}"
    if not (ROOT / "benchmarks" / "engines" / f"{name}.py").exists():
        home = f"benchmarks.{name}"
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        _module(home).main(argparse.Namespace(stored=True, fresh=False, only="", other="", repeats=0))
    return tuple(table.strip() + "\n" for table in TABLE.findall(told.getvalue()))


def table(name: str) -> str:
    """One table, by the name of its benchmark and its number among those that it prints."""
    benchmark, _, number = name.partition(":")
    tables = printed(benchmark)
    if not tables:
        raise ValueError(f"benchmarks/results/{benchmark} has no table")
    return tables[int(number or 0)]


@functools.cache
def texts(home: str) -> dict[str, str]:
    """The pages that a benchmark writes, by their names."""
    found: dict[str, str] = _module(home).texts()
    return found


def _module(name: str) -> Any:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(name)


def renewed(page: str, text: str) -> str:
    """The text of a page with everything that is stored in its place."""
    if page in PAGES:
        text = texts(PAGES[page])[page]
    return MARKED.sub(lambda match: f"<!-- results: {match[1]} -->\n{table(match[1])}", text)


def old(page: str, text: str) -> Iterator[str]:
    """What a page says that is not what is stored."""
    if page in PAGES and texts(PAGES[page])[page] != text:
        yield f"the page is not what {PAGES[page]} makes of the stored results"
    for match in MARKED.finditer(text):
        if match["table"] != table(match[1]):
            yield f"the table {match[1]} is not what is stored"


def after_reading_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Show what is stored, and complain of what is not."""
    if name not in PAGES and not MARKED.search(source[0]):
        return
    try:
        for complaint in old(name, source[0]):
            logger.warning("%s; %s", complaint, RENEW, location=name)
        source[0] = renewed(name, source[0])
    except Exception as problem:
        logger.warning("stored results: %s", problem, location=name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", after_reading_source, priority=100)
    return {"version": "1", "parallel_read_safe": True}


if __name__ == "__main__":
    for path in sorted((ROOT / "docs").rglob("*.md")):
        before = path.read_text("utf-8")
        after = renewed(path.relative_to(ROOT / "docs").with_suffix("").as_posix(), before)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"Written: {path.relative_to(ROOT)}")
