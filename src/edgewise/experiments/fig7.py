"""Figure 7: conditional log-likelihood of exact and approximate Bayesian models, block model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.experiments.drawing import curves, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, score_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Predictive score: approximate and exact inference"
ENGINES = ("exact", "particle", "langevin")
METHODS = ("Bayes Exact p0", "Bayes p0", "Bayes Algorithm 1 p0", "Bayes Exact", "Bayes", "Bayes Algorithm 1")


def tasks(study: Study) -> list[Task]:
    """One training set with all engines, learned and fixed p0."""
    rows = study.profile.rows
    return [
        study.bayes("block", rows, 0, p0, engine=engine)
        for p0 in (None, *study.grid("block"))
        for engine in ENGINES
    ]


def tables(study: Study, results: Results) -> Tables:
    """One row per model."""
    table = score_table(tasks(study), results)
    return {} if table.empty else {"fig7": table.round(6)}


def draw(tables: Tables) -> Figure:
    """Mixtures on the left, median models on the right."""
    figure, axes = new_figure(10.5, 4.4, 1, 2)
    curves(axes[0, 0], tables["fig7"], METHODS)
    curves(axes[0, 1], tables["fig7"], [method.replace("Bayes", "Bayes PM", 1) for method in METHODS])
    for ax, title in zip(axes[0], ("mixture of draws", "median model")):
        ax.set_title(title, fontsize=10)
        ax.legend(frameon=False, fontsize=8)
    return figure
