"""Figure 3: histograms of four edge parameters, approximate against exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgewise.experiments.drawing import STYLES, new_figure
from edgewise.experiments.methods import BINS, bayes_name
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Posterior of four edges: approximate and exact"
ENGINES = ("exact", "particle", "langevin")
TARGETS = (0.95, 0.75, 0.5, 0.25)


def tasks(study: Study) -> list[Task]:
    """One training set with all three engines."""
    return [study.bayes("block", study.profile.rows, 0, None, engine=engine) for engine in ENGINES]


def tables(study: Study, results: Results) -> Tables:
    """Share of the draws in every bin, given that the edge is present, for edges of four probabilities."""
    import pandas

    found = {engine: results[task.key] for engine, task in zip(ENGINES, tasks(study)) if task.key in results}
    if "exact" not in found:
        return {}
    inclusion = found["exact"].arrays["inclusion"]
    chosen: list[int] = []
    for target in TARGETS:
        order = np.argsort(np.abs(inclusion - target), kind="stable")
        chosen.append(next(int(k) for k in order if int(k) not in chosen))
    i, j = np.triu_indices(12, 1)
    rows, facts = [], []
    for engine, result in found.items():
        for edge in chosen:
            facts.append(
                {
                    "edge": f"x{i[edge]} -- x{j[edge]}",
                    "method": bayes_name(engine, False, False),
                    "inclusion": float(result.arrays["inclusion"][edge]),
                }
            )
            counts = result.arrays["histogram"][edge].astype(float)
            density = counts / max(counts.sum(), 1.0) / 0.1
            for k in np.flatnonzero(counts):
                rows.append(
                    {
                        "edge": f"x{i[edge]} -- x{j[edge]}",
                        "method": bayes_name(engine, False, False),
                        "low": float(BINS[k]),
                        "density": density[k],
                    }
                )
    return {"fig3": pandas.DataFrame(rows), "fig3_inclusion": pandas.DataFrame(facts).round(6)}


def draw(tables: Tables) -> Figure:
    """Exact as bars, the others as steps."""
    table = tables["fig3"]
    edges = list(dict.fromkeys(table["edge"]))
    figure, axes = new_figure(9, 6, 2, 2)
    for ax, edge in zip(axes.ravel(), edges):
        part = table[table["edge"] == edge]
        inclusion = tables["fig3_inclusion"]
        inclusion = inclusion[inclusion["edge"] == edge].set_index("method")["inclusion"]
        words = [f"{value:.2f} ({str(method).replace('Bayes ', '')})" for method, value in inclusion.items()]
        for method, one in part.groupby("method", sort=False):
            heights = np.zeros(len(BINS) - 1)
            heights[np.searchsorted(BINS, one["low"] + 0.05) - 1] = one["density"]
            # Bins of 0.2 are calmer.
            heights, edges_of_bins = heights.reshape(-1, 2).mean(axis=1), BINS[::2]
            colour, _, line = STYLES[str(method)]
            exact = method == "Bayes Exact"
            ax.stairs(
                heights,
                edges_of_bins,
                fill=exact,
                color="#C9C9C9" if exact else colour,
                linewidth=1.6,
                linestyle="-" if line == "none" and method == "Bayes" else "--",
                label=method,
            )
        ax.set_title(f"{edge}: present with probability\n{', '.join(words)}", fontsize=9)
        ax.set_xlim(part["low"].min() - 0.3, part["low"].max() + 0.4)
        ax.set_xlabel("parameter (0/1 coding), given that the edge is present")
        ax.set_ylabel("density")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
