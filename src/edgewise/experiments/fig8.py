"""Figure 8: selective shrinkage: parameters of sparse and dense models on the lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgewise.experiments.data import true_model
from edgewise.experiments.drawing import STYLES, legend, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, matched, nearest
from edgewise.plots.style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Selective shrinkage on the lattice"
DENSITIES = (0.03, 0.65)


def _lasso(study: Study) -> Task:
    return study.lasso("lattice", study.profile.rows, 0, "Wain", densities=DENSITIES, label="-fig8")


def _grid(study: Study) -> list[tuple[float, Task]]:
    return [(p0, study.bayes("lattice", study.profile.rows, 0, p0)) for p0 in study.grid("lattice")]


def tasks(study: Study) -> list[Task]:
    """The path at both densities, and the fixed-p0 fits between which the right p0 lies."""
    return [_lasso(study), *(task for _, task in _grid(study))]


def _fits(study: Study, results: Results) -> dict[float, list[Task]]:
    """Fits at the p0 at which the median model should have each density."""

    def fits(density: float) -> list[Task]:
        def fit(p0: float) -> Task:
            return study.bayes("lattice", study.profile.rows, 0, p0, label=f"-at{density:g}")

        return matched(fit, _grid(study), results, density, "Bayes PM", study.profile.matching_fits)

    return {density: fits(density) for density in DENSITIES}


def follow_up(study: Study, results: Results) -> list[Task]:
    """Fits whose median model should have each density."""
    return [task for tasks in _fits(study, results).values() for task in tasks]


def tables(study: Study, results: Results) -> Tables:
    """|parameter| of every pair that is not zero in all models, at both densities."""
    import pandas

    path = results.get(_lasso(study).key)
    if path is None:
        return {}
    truth = true_model("lattice", study.seed, study.profile.side)
    upper = np.triu_indices(truth.n_variables, 1)
    true = truth.coupling[upper]
    parts, facts = [], []
    for density, tried in _fits(study, results).items():
        label = f"Wain Max {density:g}"
        task = nearest(tried, results, density, "Bayes PM")
        if task is None or label not in path.arrays:
            continue
        fit = results[task.key]
        mean = np.nan_to_num(fit.arrays["mean"])
        bayes = np.where(fit.arrays["inclusion"] >= 0.5, mean, 0.0)
        lasso = path.arrays[label]
        kept = (true != 0) | (bayes != 0) | (lasso != 0)
        parts.append(
            pandas.DataFrame(
                {
                    "density": density,
                    "truth": np.abs(true[kept]),
                    "Wain Max": np.abs(lasso[kept]),
                    "Bayes PM": np.abs(bayes[kept]),
                }
            ).sort_values(["truth", "Wain Max", "Bayes PM"], kind="stable")
        )
        size = np.abs(true[true != 0]).mean()
        for method, found in (("Wain Max", lasso), ("Bayes PM", bayes)):
            on = found[(true != 0) & (found != 0)]
            facts.append(
                {
                    "target": density,
                    "method": method,
                    "density": float((found != 0).mean()),
                    "p0": task.arguments["p0"] if method == "Bayes PM" else None,
                    "sigma0": fit.values["sigma0"] if method == "Bayes PM" else None,
                    # How large found true edges are, relative to what they truly are.
                    "size_of_found": float(
                        np.abs(on).sum() / max(np.abs(true[(true != 0) & (found != 0)]).sum(), 1e-12)
                    ),
                    "size_of_true": float(np.abs(found[true != 0]).mean() / size),
                    "size_of_false": float(np.abs(found[true == 0]).mean() / size),
                    "rmse": float(np.sqrt(np.mean((found - true) ** 2))),
                }
            )
    if not parts:
        return {}
    return {"fig8": pandas.concat(parts).round(4), "fig8_sizes": pandas.DataFrame(facts).round(6)}


def draw(tables: Tables) -> Figure:
    """Sparse above, dense below; the true edges again in an inset."""
    figure, axes = new_figure(9, 6.6, 2, 1)
    for ax, density in zip(axes[:, 0], DENSITIES):
        part = tables["fig8"][tables["fig8"]["density"] == density].reset_index(drop=True)
        sizes = tables["fig8_sizes"]
        if part.empty:
            continue
        count = int((part["truth"] > 0).sum())
        inset = ax.inset_axes((0.06, 0.42, 0.5, 0.53))
        for where, first in ((ax, 0), (inset, len(part) - count)):
            x = np.arange(first, len(part))
            zoomed = where is inset
            for method in ("Wain Max", "Bayes PM"):
                colour, marker, _ = STYLES[method]
                where.plot(
                    x,
                    part[method][first:],
                    marker,
                    color=colour,
                    markersize=4.5 if zoomed else 2.8,
                    alpha=0.8,
                    label=method,
                )
            where.plot(x, part["truth"][first:], color=INK, linewidth=1.4, label="truth")
        inset.set_title("the true edges", fontsize=8)
        inset.tick_params(labelsize=7)
        found = sizes[sizes["target"] == density].set_index("method")["density"]
        ax.set_title(
            f"edge density {found['Wain Max']:.2f} (Wain Max), {found['Bayes PM']:.2f} (Bayes PM)",
            fontsize=10,
        )
        ax.set_ylim(0, max(part["truth"].max() * 1.35, float(np.quantile(part["Wain Max"], 0.995))))
        inset.set_ylim(0, part["truth"].max() * 1.2)
        ax.set_xlabel("pairs of variables, sorted by the true |parameter|")
        ax.set_ylabel("|parameter| (0/1 coding)")
    legend(figure, [axes[0, 0]])
    return figure
