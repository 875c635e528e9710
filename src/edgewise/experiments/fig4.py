"""Figure 4: inclusion, mean and sd of every edge under every p0, approximate against exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgewise.experiments.drawing import STYLES, identity, legend, new_figure
from edgewise.experiments.methods import bayes_name
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

TITLE = "Every edge under every p0: approximate and exact"
OTHERS = ("particle", "langevin")
STATISTICS = ("inclusion", "mean", "sd")
# Fewer draws than this say little of a mean or an sd.
LEAST_INCLUSION = 0.05


def _task(study: Study, engine: str, p0: float) -> Task:
    return study.bayes("block", study.profile.rows, 0, p0, engine=engine)


def tasks(study: Study) -> list[Task]:
    """One training set, all p0, all engines."""
    return [_task(study, engine, p0) for p0 in study.grid("block") for engine in ("exact", *OTHERS)]


def tables(study: Study, results: Results) -> Tables:
    """One row per edge, p0 and approximate engine, with its own numbers and the exact ones."""
    import pandas

    rows = []
    i, j = np.triu_indices(12, 1)
    for p0 in study.grid("block"):
        exact = results.get(_task(study, "exact", p0).key)
        for engine in OTHERS:
            other = results.get(_task(study, engine, p0).key)
            if exact is None or other is None:
                continue
            for k in range(len(i)):
                row = {"method": bayes_name(engine, True, False), "p0": p0, "edge": f"x{i[k]} -- x{j[k]}"}
                for name in STATISTICS:
                    row[name] = float(other.arrays[name][k])
                    row[f"exact_{name}"] = float(exact.arrays[name][k])
                rows.append(row)
    return {"fig4": pandas.DataFrame(rows).round(4)} if rows else {}


def shown(table: pandas.DataFrame, name: str) -> pandas.DataFrame:
    """The rows in which a statistic rests on enough draws of both engines."""
    if name == "inclusion":
        return table
    enough = (table["inclusion"] >= LEAST_INCLUSION) & (table["exact_inclusion"] >= LEAST_INCLUSION)
    return table[enough].dropna()


def draw(tables: Tables) -> Figure:
    """Three scatter plots, exact across."""
    table = tables["fig4"]
    figure, axes = new_figure(11, 4, 1, 3)
    titles = ("P(edge present)", "mean, given presence", "sd, given presence")
    for ax, name, title in zip(axes[0], STATISTICS, titles):
        for method, part in table.groupby("method", sort=False):
            part = shown(part, name)
            colour, marker, _ = STYLES[str(method)]
            ax.plot(
                part[f"exact_{name}"],
                part[name],
                marker,
                color=colour,
                markersize=3.5,
                alpha=0.6,
                label=method,
            )
        identity(ax, [shown(table, name)[f"exact_{name}"]])
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("Bayes Exact p0")
        ax.set_ylabel("approximate")
    legend(figure, [axes[0, 0]])
    return figure
