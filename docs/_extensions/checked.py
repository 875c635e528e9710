"""Sphinx: every internal link of the finished site leads somewhere, and nothing comes from the network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
# What a browser fetches by itself when it shows a page.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
STYLES = ("stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "prefetch", "manifest")


class Page(HTMLParser):
    """What a page links to, what it loads, and which places in it have a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take note of an element."""
        has = {key: value or "" for key, value in attributes}
        self.places.update(has[key] for key in ("id", "name") if has.get(key))
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag == "link" and set(has.get("rel", "").split()) & set(STYLES):
            self.loads.append(has.get("href", ""))
        elif LOADED.get(tag) in has:
            self.loads.append(has[LOADED[tag]])


def problems(directory: Path) -> list[str]:
    """Everything that is wrong with the links of a site."""
    pages = {
        path: Page(path.read_text("utf-8"))
        for path in sorted(directory.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(directory)
        for link in page.loads + page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{name} loads {link} from the network")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name} links to {link}, which has no such place")
    for path in sorted(directory.rglob("*.css")):
        for link in re.findall(
            r"""url\(\s*['"]?((?:https?:)?//[^)'"]+)""", path.read_text("utf-8", "replace")
        ):
            found.append(f"{path.relative_to(directory)} loads {link} from the network")
    return list(dict.fromkeys(found))


def after_building(app: Sphinx, exception: Exception | None) -> None:
    """Warn of every problem; where warnings are errors, the build fails."""
    if exception is None and app.builder.format == "html":
        for problem in problems(Path(app.outdir)):
            logger.warning(problem)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("build-finished", after_building, priority=900)
    return {"version": "1", "parallel_read_safe": True}
