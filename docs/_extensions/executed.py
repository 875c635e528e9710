"""Sphinx: the code of every page is run when the site is built, and its outputs are shown below it.

Each page runs in a process and a directory of its own (``run_page.py``), as many at once as there are cores.
What came of it is kept beside Sphinx's own cache until the code of the page or the package changes.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from blocks import Block, blocks, indented

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src" / "edgewise"
DEADLINE = 900


def digest_of_package() -> str:
    """Digest of the package's sources: other sources, other outputs."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".py", ".html", ".js", ".css"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_page(page: list[Block], directory: Path) -> None:
    """Run the blocks of a page in a fresh directory, leaving the outputs in `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "NO_COLOR": "1",
        "COLUMNS": "110",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        # Pages run side by side; each computes on one core.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as scratch:
        tasks = Path(scratch, "blocks.json")
        tasks.write_text(json.dumps([asdict(block) for block in page]), "utf-8")
        work = Path(scratch, "work")
        work.mkdir()
        command = [sys.executable, str(HERE / "run_page.py"), str(tasks), str(directory)]
        try:
            done = subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True, timeout=DEADLINE
            )
            said = done.stderr
        except subprocess.TimeoutExpired:
            said = f"The page took more than {DEADLINE} seconds."
    result = directory / "result.json"
    if not result.exists():
        result.write_text(json.dumps([[{"kind": "failure", "text": said}]]), "utf-8")


def before_reading(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Run the pages that are about to be read."""
    package = digest_of_package()
    tasks: dict[str, tuple[list[Block], Path]] = {}
    for name in docnames:
        path = Path(env.doc2path(name))
        if path.suffix != ".md":
            continue
        text = path.read_text("utf-8")
        found = list(blocks(text))
        for line in indented(text):
            logger.warning("a block inside a list is not run: move it out of the list", location=(name, line))
        for block in found:
            if block.complaint:
                logger.warning(block.complaint, location=(name, block.line))
        page = [block for block in found if block.run]
        if not page or skipped(app, name):
            continue
        key = hashlib.sha256(json.dumps([package, *map(asdict, page)]).encode()).hexdigest()
        directory = Path(app.doctreedir, "executed", f"{name.replace('/', '-')}-{key[:16]}")
        env.executed = {**getattr(env, "executed", {}), name: str(directory)}  # type: ignore[attr-defined]
        if not (directory / "result.json").exists():
            tasks[name] = (page, directory)
    if not tasks:
        return
    # The longest pages first, so that none of them is alone at the end.
    first = app.config.executed_long
    order = sorted(tasks, key=lambda name: (first.index(name) if name in first else len(first), name))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(app.config.executed_jobs or cores) as pool:
        futures = {name: pool.submit(run_page, *tasks[name]) for name in order}
        for name in order:
            futures[name].result()
            logger.info("ran the code of %s", name)


def skipped(app: Sphinx, name: str) -> bool:
    """Whether the code of a page is left out: a long one, in the quick build."""
    return app.tags.has("quick") and name in app.config.executed_long


def after_reading_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the outputs of the blocks into the text of the page."""
    text = source[0]
    found = list(blocks(text))
    directory = getattr(app.env, "executed", {}).get(name)
    results: list[list[dict[str, Any]]] = []
    if directory and not skipped(app, name):
        results = json.loads(Path(directory, "result.json").read_text("utf-8"))
    runs = [block for block in found if block.run]
    for block, outputs in zip(runs, results, strict=False):
        for output in outputs:
            if output["kind"] == "failure":
                logger.warning("a block does not run:\n%s", output["text"], location=(name, block.line))
    for block in reversed(found):
        place = block.end
        if block.reason:
            text = f"{text[:place]}\n\n```{{not-run}} {block.reason}\n```\n{text[place:]}"
        elif block.run and block.shown:
            number = runs.index(block)
            if number < len(results):
                text = f"{text[:place]}\n\n```{{outputs-of}} {number}\n```\n{text[place:]}"
            elif skipped(app, name):
                text = (
                    f"{text[:place]}\n\n```{{not-run}} this is a quick build of the site\n```\n{text[place:]}"
                )
    source[0] = text


class NotRun(SphinxDirective):
    """A word below a block that is not run, with the reason."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The words."""
        return [nodes.paragraph("", f"Not run here: {self.arguments[0]}.", classes=["not-run"])]


class OutputsOf(SphinxDirective):
    """The outputs of one block of this page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One node for each output."""
        name = self.env.docname
        directory = Path(self.env.executed[name])  # type: ignore[attr-defined]
        number = int(self.arguments[0])
        path = Path(self.env.doc2path(name))
        block = [block for block in blocks(path.read_text("utf-8")) if block.run][number]
        outputs = json.loads((directory / "result.json").read_text("utf-8"))[number]
        return [node for output in outputs for node in self.nodes_of(output, directory, block)]

    def nodes_of(self, output: dict[str, Any], directory: Path, block: Block) -> list[nodes.Node]:
        """An output as nodes of the page."""
        if output["kind"] == "picture":
            up = "../" * self.env.docname.count("/")
            alt = html.escape(block.picture or "Drawn by the code above", quote=True)
            where = f"{up}_executed/{directory.name}/{output['file']}"
            code = f'<img class="drawn" src="{where}" alt="{alt}" width="{output["width"]}" loading="lazy">'
            return [nodes.raw("", f'<div class="output picture">{code}</div>', format="html")]
        if output["kind"] == "html":
            return [nodes.raw("", f'<div class="output table">{output["html"]}</div>', format="html")]
        text = output["text"].rstrip()
        literal = nodes.literal_block(text, text, language="text", classes=["output", output["kind"]])
        return [literal]


def after_building(app: Sphinx, exception: Exception | None) -> None:
    """Bring the pictures to the site."""
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir, "_executed")
        shutil.rmtree(target, ignore_errors=True)
        for directory in set(getattr(app.env, "executed", {}).values()):
            for picture in Path(directory).glob("*.png"):
                place = target / Path(directory).name
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(picture, place)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("executed_long", [], "env", [list])
    app.add_config_value("executed_jobs", 0, "", [int])
    app.add_directive("not-run", NotRun)
    app.add_directive("outputs-of", OutputsOf)
    app.connect("env-before-read-docs", before_reading)
    app.connect("source-read", after_reading_source)
    app.connect("build-finished", after_building, priority=400)
    return {"version": "1", "parallel_read_safe": False}
