"""The code blocks of a Markdown page, and what the page says about running them.

A fence of Python or ``sh`` is run when the site is built, unless a comment before it says why not. Comments
are invisible wherever the page is read:

- ``<!-- not run: needs a cluster -->``: the next fence is shown and not run, and the reader is told why;
- ``<!-- fails -->``: the next fence must end with an error, which is shown;
- ``<!-- picture: what it shows -->``: what the next fence draws, for those who cannot see it;
- ``<!-- python`` or ``<!-- sh``, lines of code, ``-->``: run and not shown: what a page needs, and
  checks that what it says is so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

RUN = ("python", "sh")
# Shown as they are: outputs, files and other programs' words. A fence must say what it is.
SHOWN = ("text", "json", "bibtex", "csv")
# Programs that are not there when the site is built: they need a reason.
ELSEWHERE = ("r",)

FENCE = re.compile(
    r"^(?P<mark>`{3,}|:{3,})(?P<language>[^\s`]*)[^\n]*\n(?P<code>.*?)^(?P=mark)[ \t]*$", re.M | re.S
)
COMMENT = re.compile(r"^<!--(?P<text>.*?)-->[ \t]*$", re.M | re.S)
WORD = re.compile(r"\s*(not run|picture):\s*(.*)", re.S)


@dataclass(frozen=True)
class Block:
    """One block: its language and code, where it ends in the page, and what is said about it."""

    language: str
    code: str
    line: int
    end: int
    shown: bool = True
    reason: str = ""
    fails: bool = False
    picture: str = ""
    complaint: str = field(default="", compare=False)

    @property
    def run(self) -> bool:
        """Whether the block is run when the site is built."""
        return self.language in RUN and not self.reason and not self.complaint


def blocks(text: str) -> Iterator[Block]:
    """Every fence and every hidden block of a page, in order; directives are none of them."""
    place = 0
    said: dict[str, str] = {}
    while match := _next(text, place):
        place = match.end()
        line = text.count("\n", 0, match.start()) + 1
        if match.re is COMMENT:
            hidden = re.match(r"[ \t]*(python|sh)\n(.*)", match["text"], re.S)
            if hidden:
                yield Block(hidden[1], hidden[2], line, match.end(), shown=False)
            elif match["text"].strip() == "fails":
                said["fails"] = "yes"
            elif word := WORD.fullmatch(match["text"]):
                said["reason" if word[1] == "not run" else "picture"] = " ".join(word[2].split())
            continue
        language, code = match["language"], match["code"]
        if not language.startswith("{"):
            yield Block(
                language,
                code,
                line,
                match.end(),
                reason=said.get("reason", ""),
                fails="fails" in said,
                picture=said.get("picture", ""),
                complaint=complaint(language, code, said),
            )
        said = {}


def indented(text: str) -> Iterator[int]:
    """Lines with a fence of code inside a list, where it would be shown and not run."""
    for match in re.finditer(r"^[ \t]+`{3,}(?:python|sh|r)\b", text, re.M):
        yield text.count("\n", 0, match.start()) + 1


def _next(text: str, place: int) -> re.Match[str] | None:
    found = [match for pattern in (FENCE, COMMENT) if (match := pattern.search(text, place))]
    return min(found, key=lambda match: match.start(), default=None)


def complaint(language: str, code: str, said: dict[str, str]) -> str:
    """What is wrong with a fence, in words; empty if nothing is."""
    if language in RUN:
        return ""
    if language in ELSEWHERE:
        return "" if said.get("reason") else f"a block of {language} is not run: say why before it"
    if language not in SHOWN:
        known = ", ".join((*RUN, *SHOWN, *ELSEWHERE))
        return f"a block must say what it is (one of {known}), not {language!r}"
    if re.search(r"^(\$ )?edgewise ", code, re.M):
        return "commands of edgewise are run: call the block sh, and say before it if it cannot be run"
    return ""
