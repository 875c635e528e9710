"""Figure 10: conditional log-likelihood against edge density on images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.experiments.drawing import curves, focus, legend, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, score_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Predictive score against edge density on MNIST"
METHODS = ("Bayes p0", "Bayes PM p0", "Wain Max", "Wain Min", "MLE", "Bayes", "Bayes PM")


def tasks(study: Study) -> list[Task]:
    """All methods on all training sets of each size."""
    found = []
    for rows in study.profile.mnist_rows:
        found += study.comparison("mnist", rows, range(study.replicates("mnist", rows)))
    return found


def tables(study: Study, results: Results) -> Tables:
    """One row per model."""
    table = score_table(tasks(study), results)
    return {} if table.empty else {"fig10": table.round(6)}


def draw(tables: Tables) -> Figure:
    """One panel per training size."""
    table = tables["fig10"]
    sizes = sorted(table["rows"].unique())
    figure, axes = new_figure(5.3 * len(sizes), 4.6, 1, len(sizes))
    for ax, rows in zip(axes[0], sizes):
        part = table[table["rows"] == rows]
        curves(ax, part, METHODS)
        focus(ax, part, METHODS, 1.1)
        count = part["replicate"].nunique()
        words = f"mean and sd of {count} training sets" if count > 1 else "one training set"
        ax.set_title(f"{rows:,} training images, {words}", fontsize=10)
    legend(figure, list(axes[0]))
    return figure
