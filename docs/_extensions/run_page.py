"""Run the blocks of one page in a process of its own: ``python run_page.py BLOCKS.json RESULTS``.

All blocks share one namespace and one directory, the present one. Writes ``result.json``, a list with the
outputs of each block, and the pictures. The first block that does not end as it should ends the page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

Output = dict[str, Any]
DPI = 160


class Page:
    """The blocks of one page, run one after the other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.pictures = 0

    def run(self, block: dict[str, Any]) -> list[Output]:
        """Outputs of one block; an output of the kind ``failure`` is one that should not be."""
        outputs, error = self.python(block) if block["language"] == "python" else self.shell(block)
        if block["fails"] and not error:
            return [*outputs, {"kind": "failure", "text": "This block should have failed, and did not."}]
        if error:
            outputs.append({"kind": "error" if block["fails"] else "failure", "text": error})
        return outputs

    def python(self, block: dict[str, Any]) -> tuple[list[Output], str]:
        """Run Python, as a notebook would: what is printed, the last value, pictures and warnings."""
        printed, error, value = io.StringIO(), "", None
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
            warnings.simplefilter("default")
            try:
                value = self.evaluate(block["code"])
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}" if block["fails"] else traceback.format_exc()
        outputs = [{"kind": "warning", "text": f"{w.category.__name__}: {w.message}"} for w in caught]
        if printed.getvalue().strip():
            outputs.append({"kind": "text", "text": printed.getvalue()})
        return outputs + self.shown(value) + self.drawn(), error

    def evaluate(self, code: str) -> Any:
        """The value of the last line, if it has one."""
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "page", "exec"), self.namespace)
        return eval(compile(ast.Expression(last.value), "page", "eval"), self.namespace) if last else None

    def shown(self, value: Any) -> list[Output]:
        """A value as a notebook shows it; the pieces of pictures are seen in the picture."""
        if value is None or type(value).__module__.startswith("matplotlib"):
            return []
        if hasattr(value, "_repr_html_") and type(value).__module__.startswith("pandas"):
            return [{"kind": "html", "html": value._repr_html_()}]
        return [{"kind": "text", "text": repr(value)}]

    def drawn(self) -> list[Output]:
        """Every open picture, saved and closed."""
        if "matplotlib.pyplot" not in sys.modules:
            return []
        from matplotlib import pyplot

        outputs = []
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            self.pictures += 1
            name = f"{self.pictures}.png"
            figure.savefig(self.directory / name, dpi=DPI, bbox_inches="tight")
            width = round(figure.get_size_inches()[0] * 75)
            outputs.append({"kind": "picture", "file": name, "width": width})
            pyplot.close(figure)
        return outputs

    def shell(self, block: dict[str, Any]) -> tuple[list[Output], str]:
        """Run commands; what they print on standard output, and on the other stream if they fail."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block["code"]], capture_output=True, text=True
        )
        outputs = [{"kind": "text", "text": done.stdout}] if done.stdout.strip() else []
        said = done.stderr if block["fails"] else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return outputs, said if done.returncode else ""


def main(blocks: str, directory: str) -> None:
    """Run the page and write what came of it."""
    page, results = Page(Path(directory)), []
    for block in json.loads(Path(blocks).read_text("utf-8")):
        results.append(page.run(block))
        if any(output["kind"] == "failure" for output in results[-1]):
            break
    Path(directory, "result.json").write_text(json.dumps(results), "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    main(*sys.argv[1:])
