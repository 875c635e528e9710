"""Figure 9: predictive score against the F1 score of the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgewise.experiments import fig6
from edgewise.experiments.drawing import STYLES, legend, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

TITLE = "Predictive score against F1"
LINES = ("Bayes p0", "Bayes PM p0", "Wain Max", "Wain Min", "MLE")
POINTS = ("Bayes", "Bayes PM")
COLUMNS = ["kind", "rows", "replicate", "method", "p0", "lam", "density", "f1", "cll"]


def tasks(study: Study) -> list[Task]:
    """The fits of Figure 6."""
    return fig6.tasks(study)


def tables(study: Study, results: Results) -> Tables:
    """One row per model."""
    found = fig6.tables(study, results)
    if not found:
        return {}
    table = found["fig6"]
    return {"fig9": table.loc[table["method"].isin([*LINES, *POINTS]), COLUMNS]}


def mean_path(part: pandas.DataFrame, bins: int = 15) -> pandas.DataFrame:
    """Mean F1 and score along a path: over replicates at each p0, or at each step of the penalty."""
    if part["p0"].notna().any():
        return part.groupby("p0")[["f1", "cll"]].mean()
    step = part.groupby("replicate")["lam"].rank(ascending=False, method="first")
    return part.groupby(step)[["f1", "cll"]].mean()


def draw(tables: Tables) -> Figure:
    """Both models side by side; the good corner is the upper right."""
    figure, axes = new_figure(10.5, 4.6, 1, 2)
    for ax, kind in zip(axes[0], fig6.KINDS):
        table = tables["fig9"][tables["fig9"]["kind"] == kind]
        if table.empty:
            ax.set_title(f"{kind}: not computed yet", fontsize=10)
            continue
        best, floor = table["cll"].max(), table.loc[table["method"] == "MLE", "cll"].quantile(0.3)
        for method in LINES:
            part = table[table["method"] == method]
            if part.empty:
                continue
            path = mean_path(part)
            colour, marker, line = STYLES[method]
            ax.plot(
                path["f1"],
                path["cll"],
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=4,
                label=method,
            )
        for method in POINTS:
            part = table[table["method"] == method]
            if part.empty:
                continue
            colour, marker, _ = STYLES[method]
            ax.errorbar(
                [part["f1"].mean()],
                [part["cll"].mean()],
                [part["cll"].std(ddof=0)],
                [part["f1"].std(ddof=0)],
                color=colour,
                marker=marker,
                markersize=12,
                markeredgecolor="white",
                linestyle="none",
                elinewidth=1.5,
                label=method,
                zorder=5,
            )
        first = table.loc[(table["method"] == "MLE") & (table["density"] == 0), "cll"].mean()
        floor = np.fmin(first, floor)
        if np.isfinite(floor):
            ax.set_ylim(best - 1.4 * (best - floor), best + 0.15 * (best - floor))
        ax.set_title(kind, fontsize=10)
        ax.set_xlabel("F1 of the edges (larger is better)")
        ax.set_ylabel("conditional log-likelihood\nper test case (larger is better)")
    legend(figure, list(axes[0]))
    return figure
