"""Figure 5: precision and recall on the lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.experiments.drawing import STYLES, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, score_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Precision and recall on the lattice"
LINES = ("Bayes p0", "Wain Max", "Wain Min", "MLE")
POINTS = ("Bayes", "Bayes Algorithm 1")
COLUMNS = [
    "rows",
    "replicate",
    "method",
    "p0",
    "lam",
    "density",
    "precision",
    "recall",
    "f1",
    "average_precision",
]


def tasks(study: Study) -> list[Task]:
    """All methods on all lattice training sets, and Algorithm 1 on the first."""
    rows = study.profile.rows
    found = study.comparison("lattice", rows, range(study.replicates("lattice", rows)))
    return [*found, study.bayes("lattice", rows, 0, None, engine="langevin")]


def tables(study: Study, results: Results) -> Tables:
    """One row per model."""
    table = score_table(tasks(study), results)
    if table.empty:
        return {}
    kept = table["method"].isin([*LINES, *POINTS])
    return {"fig5": table.loc[kept, COLUMNS].round(6)}


def draw(tables: Tables) -> Figure:
    """Typical curves: those of the first training set."""
    table = tables["fig5"]
    table = table[table["replicate"] == 0]
    figure, axes = new_figure(6.4, 4.8)
    ax = axes[0, 0]
    for method in LINES:
        part = table[(table["method"] == method) & (table["density"] > 0)].sort_values("density")
        colour, marker, line = STYLES[method]
        every = 1 if method.startswith("Bayes") else 5
        ax.plot(
            part["recall"],
            part["precision"],
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=4.5,
            markevery=every,
            label=method,
        )
    for method in POINTS:
        part = table[table["method"] == method]
        if part.empty:
            continue
        colour, marker, _ = STYLES[method]
        ax.plot(
            part["recall"],
            part["precision"],
            marker,
            color=colour,
            markersize=13,
            markeredgecolor="white",
            label=method,
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.04)
    ax.set_xlabel("recall (share of the true edges that are found)")
    ax.set_ylabel("precision (share of the found edges that are true)")
    ax.legend(frameon=False, fontsize=8)
    return figure
