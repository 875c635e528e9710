"""``edgewise reproduce``: the figures of the paper; the work is done in ``edgewise.experiments``."""

from __future__ import annotations

from pathlib import Path

import typer


def available() -> bool:
    """Whether the experiments are there; looked up without importing anything."""
    return (Path(__file__).parents[1] / "experiments" / "command.py").exists()


def reproduce(context: typer.Context) -> None:
    """Reproduce the experiments of Chen & Welling (2012)."""
    from edgewise.experiments.command import run

    run(list(context.args))
