"""Calling the command line from tests, in this process."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from typer.testing import CliRunner, Result

from edgewise.cli import app
from toy_engine import TOY

FAST = ["--engine", TOY, "--chains", "2", "--draws", "60", "--max-draws", "60", "--seed", "1"]


def edgewise(*arguments: object, stdin: str | None = None, code: int = 0) -> Result:
    """Run one command and check its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def table(text: str) -> list[dict[str, str]]:
    """Rows of CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def written(path: Path, text: str) -> Path:
    """The path of a new file."""
    path.write_text(text)
    return path
