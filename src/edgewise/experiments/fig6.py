"""Figure 6: conditional log-likelihood against edge density, block model and lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.experiments.data import true_model
from edgewise.experiments.drawing import curves, focus, legend, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, score_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Predictive score against edge density"
KINDS = ("block", "lattice")
METHODS = ("Bayes p0", "Bayes PM p0", "Wain Max", "Wain Min", "MLE", "Bayes", "Bayes PM", "Bayes Algorithm 1")


def tasks(study: Study) -> list[Task]:
    """All methods on all training sets of both models, and Algorithm 1 once on the lattice."""
    rows = study.profile.rows
    found = [study.bayes("lattice", rows, 0, None, engine="langevin")]
    for kind in KINDS:
        found += study.comparison(kind, rows, range(study.replicates(kind, rows)))
    return found


def tables(study: Study, results: Results) -> Tables:
    """One row per model; the true densities in a table of their own."""
    import pandas

    table = score_table(tasks(study), results)
    if table.empty:
        return {}
    true = [
        {"kind": kind, "density": true_model(kind, study.seed, study.profile.side).density} for kind in KINDS
    ]
    return {"fig6": table.round(6), "fig6_truth": pandas.DataFrame(true)}


def draw(tables: Tables) -> Figure:
    """Both models side by side."""
    figure, axes = new_figure(10.5, 4.6, 1, 2)
    truth = tables["fig6_truth"].set_index("kind")["density"]
    for ax, kind in zip(axes[0], KINDS):
        table = tables["fig6"][tables["fig6"]["kind"] == kind]
        curves(ax, table, METHODS, float(truth[kind]))
        focus(ax, table, METHODS)
        count = table["replicate"].nunique()
        words = f"mean and sd of {count} training sets" if count else "not computed yet"
        ax.set_title(f"{kind}: {words}", fontsize=10)
        if kind == "lattice":
            ax.set_xscale("symlog", linthresh=0.05)
            ax.set_xticks([0, 0.02, 0.05, 0.1, 0.3, 1], ["0", "0.02", "0.05", "0.1", "0.3", "1"])
            ax.set_xlim(-0.001, 1.05)
    legend(figure, list(axes[0]))
    return figure
