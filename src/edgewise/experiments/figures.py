"""The figures of the paper by name, and the module of each."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from edgewise.errors import DataError

FIGURES = ("fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "other")
RUN = "run.json"


def figure_module(name: str) -> ModuleType:
    """The module of a figure."""
    return import_module(f"edgewise.experiments.{name}")


def chosen_figures(name: str) -> tuple[str, ...]:
    """The figures that a word on the command line stands for."""
    if name == "all":
        return FIGURES
    short = f"fig{name}" if name.isdigit() else name
    if short not in FIGURES:
        raise DataError(f"There is no figure {name!r}; the figures are {', '.join(FIGURES)} and all.")
    return (short,)
