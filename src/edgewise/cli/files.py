"""Where results go: a file, or standard output for ``-``."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from edgewise.atomic import replacing
from edgewise.errors import printable

PICTURES = {".png": "png", ".svg": "svg", ".pdf": "pdf"}


@dataclass(frozen=True)
class BinaryTarget:
    """A file for a picture, or standard output."""

    path: Path | None
    format: str

    def write_figure(self, figure: Any, dpi: int) -> None:
        """Write a figure of Matplotlib; a file is there completely or not at all."""
        picture = io.BytesIO()
        figure.savefig(picture, format=self.format, dpi=dpi, bbox_inches="tight")
        if self.path is None:
            sys.stdout.buffer.write(picture.getvalue())
            sys.stdout.buffer.flush()
        else:
            replace_bytes(self.path, picture.getvalue())

    def __str__(self) -> str:
        return "standard output" if self.path is None else str(self.path)


def binary_target(name: str) -> BinaryTarget:
    """Where a picture goes, checked before anything is computed."""
    if name == "-":
        if sys.stdout.isatty():
            raise typer.BadParameter(
                "-o - writes a picture to standard output; send that to a file or a program"
            )
        return BinaryTarget(None, "png")
    path = Path(name)
    if path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{name!r} should end in .png, .svg or .pdf")
    return BinaryTarget(path, PICTURES[path.suffix.lower()])


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file that is there completely or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_text(output: str, text: str) -> None:
    """Write text to a file, or to standard output for ``-``."""
    if output == "-":
        sys.stdout.write(printable(text.replace("\r\n", "\n")) if _is_terminal() else text)
        sys.stdout.flush()
    else:
        replace_bytes(Path(output), text.encode())


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def safe_csv(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV in which no name and no label runs as a formula; numbers stay numbers."""
    from edgewise.model.cells import safe_cell

    def guarded(cells: Sequence[Any]) -> list[Any]:
        return [safe_cell(cell) if isinstance(cell, str) else cell for cell in cells]

    return csv_text(guarded(header), map(guarded, rows))


def csv_text(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
