"""Sphinx: text that is made when the site is built, in the place of a fence with a name in braces.

- ``{public} edgewise.plots``: every public name of a module, from its docstring, none forgotten;
- ``{commands}``: every command with all its options, from the command's own help;
- ``{claims}``: how the claims of the paper fared, counted in ``docs/reproduction``;
- ``{citation}``: CITATION.cff as a BibTeX entry.
"""

from __future__ import annotations

import csv
import enum
import fnmatch
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```\{(\w+)\}([^\n]*)\n```[ \t]*$", re.M)


def public_names(module: ModuleType) -> list[str]:
    """The names a module offers: those of ``__all__``, or else the classes and functions it defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def public(name: str, *chosen: str) -> str:
    """Every public name of a module, or the `chosen` ones, or with a minus all but those."""
    module = importlib.import_module(name)
    left = {word[1:] for word in chosen if word.startswith("-")}
    wanted = [word for word in chosen if not word.startswith("-")] or public_names(module)
    lines = ["```{eval-rst}", ".. default-role:: py:obj"]
    for one in wanted:
        if one in left or one.startswith("_"):
            continue
        value = getattr(module, one)
        kind = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else "autodata"
        lines += ["", f".. {kind}:: {name}.{one}"]
        lines += ["   :members:"] if kind == "autoclass" else ["   :no-value:"] if kind == "autodata" else []
    return "\n".join([*lines, "```"])


def commands() -> str:
    """Every command: what it does, its examples, and its options group by group."""
    from typer.main import get_command

    from edgewise.cli import app

    parts = []
    for name, command in get_command(app).commands.items():
        told, _, examples = command.help.partition("[bold]Examples[/bold]")
        arguments = [one for one in command.params if not one.opts[0].startswith("-")]
        usage = " ".join(
            ["edgewise", name, *(one.metavar or one.name.upper() for one in arguments), "[OPTIONS]"]
        )
        parts += [f"## edgewise {name}", f"```text\n{usage}\n```", plain(told)]
        if examples.strip():
            lines = [line.strip() for line in plain(examples).splitlines() if line.strip()]
            parts.append("```text\n" + "\n".join(lines) + "\n```")
        groups: dict[str, list[Any]] = {}
        for one in command.params:
            if not one.hidden:
                title = "Arguments" if one in arguments else one.rich_help_panel or "Options"
                groups.setdefault(title, []).append(one)
        for title, members in groups.items():
            rows = [f"| {option(one)} | {meaning(one)} |" for one in members]
            parts.append("\n".join([f"| {title} | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def plain(text: str) -> str:
    """Help without the marks of the terminal."""
    return re.sub(r"\[/?\w+\]", "", text).strip()


def option(one: Any) -> str:
    """An option as it is typed."""
    if not one.opts[0].startswith("-"):
        return f"`{one.metavar or one.name.upper()}`"
    words = ", ".join(f"`{word}`" for word in (*one.opts, *one.secondary_opts))
    return words if one.is_flag or not one.metavar else f"{words} `{one.metavar}`"


def meaning(one: Any) -> str:
    """What an option does, and what it is when nobody says."""
    told = plain(one.help or "").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    default = one.show_default if isinstance(one.show_default, str) else one.default
    default = default.value if isinstance(default, enum.Enum) else default
    if one.show_default is False or default is None or default is False or callable(default):
        return told
    return f"{told} Default: {default}."


def claims() -> str:
    """One line per verdict on the claims of the paper, with their number."""
    with (ROOT / "docs" / "reproduction" / "claims.csv").open(encoding="utf-8", newline="") as file:
        verdicts = Counter(row["verdict"] for row in csv.DictReader(file))
    rows = [f"| {verdict} | {count} |" for verdict, count in verdicts.most_common()]
    return "\n".join(["| verdict | claims |", "|---|---|", *rows])


def citation() -> str:
    """BibTeX of the software and of the paper it builds on."""
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    (paper,) = told["references"]
    people = " and ".join(f"{one['family-names']}, {one['given-names']}" for one in paper["authors"])
    entries = {
        "@software{edgewise": {
            "title": f"{{{told['title']}}}",
            "author": f"{{{{{told['authors'][0]['name']}}}}}",
            "version": f"{{{told['version']}}}",
        },
        f"@inproceedings{{{paper['authors'][0]['family-names'].lower()}{paper['year']}": {
            "title": f"{{{paper['title']}}}",
            "author": f"{{{people}}}",
            "booktitle": f"{{{paper['collection-title']}}}",
            "year": f"{{{paper['year']}}}",
        },
    }
    texts = [
        head + ",\n" + "".join(f"  {key} = {value},\n" for key, value in fields.items()) + "}"
        for head, fields in entries.items()
    ]
    return "```bibtex\n" + "\n\n".join(texts) + "\n```"


MAKERS = {"public": public, "commands": commands, "claims": claims, "citation": citation}


def after_reading_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the text in its place."""

    def made(match: re.Match[str]) -> str:
        if match[1] not in MAKERS:
            return match[0]
        try:
            return MAKERS[match[1]](*match[2].split())
        except Exception as problem:
            line = source[0].count("\n", 0, match.start()) + 1
            logger.warning("{%s}%s: %s", match[1], match[2], problem, location=(name, line))
            return ""

    text = FENCE.sub(made, source[0])
    # A place named in HTML is one that Sphinx can link to.
    text = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", text, flags=re.M)
    source[0] = re.sub(
        r"^```\{toctree\}\n.*?^```$", lambda fence: present(app, fence[0]), text, flags=re.M | re.S
    )


def present(app: Sphinx, toctree: str) -> str:
    """A toctree without the patterns that no page fits yet: pages take their place when they are written."""
    pages = [f"/{page}" for page in app.env.found_docs]
    lines = toctree.splitlines()
    return "\n".join(line for line in lines if "*" not in line or fnmatch.filter(pages, line))


def after_including(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Links of the files at the root, as seen from the page that includes them."""
    homes = {
        "ARCHITECTURE.md": "architecture.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changes.md",
    }
    text = re.sub(r"\]\(docs/", "](../", content[0])
    content[0] = re.sub(r"\]\((\w+\.md)\)", lambda link: f"]({homes.get(link[1], link[1])})", text)


def left_out(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator by itself."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    # After the outputs have been put in: what is made here holds no code to run.
    app.connect("source-read", after_reading_source, priority=900)
    app.connect("include-read", after_including)
    app.connect("autodoc-skip-member", left_out)
    return {"version": "1", "parallel_read_safe": True}
