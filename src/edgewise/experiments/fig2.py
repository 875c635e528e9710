"""Figure 2: partial momentum refreshment mixes faster and leaves the posterior where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.experiments import dynamics
from edgewise.experiments.drawing import identity, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables
from edgewise.plots.style import CYCLE, LINE_STYLES, MARKERS, NEUTRAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Momentum refreshment in the Langevin dynamics"
COMPARED = (0.0, 0.9)


def _chain(study: Study, step: float, alpha: float) -> Task:
    share = 1.0 if step in (dynamics.PUBLISHED, dynamics.MEASURED) else 0.1
    return dynamics.fixed_graph_task(study.profile, study.seed, "langevin", step, alpha, share)


def _exact(study: Study) -> Task:
    return dynamics.fixed_graph_task(study.profile, study.seed, "exact")


def tasks(study: Study) -> list[Task]:
    """The published step and one at which means can be told, with and without momentum; a grid of both."""
    steps = (dynamics.PUBLISHED, dynamics.MEASURED)
    pairs = [(step, alpha) for step in steps for alpha in COMPARED]
    pairs += [(step, alpha) for step in dynamics.STEPS for alpha in dynamics.ALPHAS]
    return [_exact(study), *(_chain(study, step, alpha) for step, alpha in pairs)]


def tables(study: Study, results: Results) -> Tables:
    """Parameters (mean, sd by step and alpha), their autocorrelation, and the error of each setting."""
    import pandas

    found: Tables = {}
    exact = results.get(_exact(study).key)
    parameters, curves, errors = [], [], []
    for step in (dynamics.PUBLISHED, dynamics.MEASURED, *dynamics.STEPS):
        for alpha in dynamics.ALPHAS:
            result = results.get(_chain(study, step, alpha).key)
            if result is None:
                continue
            mean, sd, ess = (result.arrays[name] for name in ("mean", "sd", "ess"))
            head: dict[str, Any] = {"step": step, "alpha": alpha}
            if step in (dynamics.PUBLISHED, dynamics.MEASURED):
                for k, clique in enumerate(result.values["cliques"]):
                    edge = f"x{clique[0]} -- x{clique[1]}"
                    parameters.append(head | {"edge": edge, "mean": mean[k], "sd": sd[k], "ess": ess[k]})
                median = np.argsort(ess)[[len(ess) // 3, 2 * len(ess) // 3]]
                for k in range(len(ess)):
                    for lag, value in zip(result.arrays["lags"], result.arrays["autocorrelation"][k]):
                        if k in median or lag <= 0:
                            curves.append(
                                head | {"edge": k, "lag": int(lag), "autocorrelation": float(value)}
                            )
                curves += [
                    head | {"edge": -1, "lag": int(lag), "autocorrelation": float(value)}
                    for lag, value in zip(
                        result.arrays["lags"], result.arrays["autocorrelation"].mean(axis=0)
                    )
                ]
            if exact is not None:
                true_mean, true_sd = exact.arrays["mean"], exact.arrays["sd"]
                errors.append(
                    head
                    | {
                        "sd_ratio": float(np.mean(sd / true_sd)),
                        "mean_error": float(np.sqrt(np.mean(((mean - true_mean) / true_sd) ** 2))),
                        "ess": float(np.median(ess)),
                        "expected_error": float(np.sqrt(np.mean(1 / ess + 1 / exact.arrays["ess"]))),
                    }
                )
    if parameters:
        found["fig2"] = pandas.DataFrame(parameters)
        found["fig2_autocorrelation"] = pandas.DataFrame(curves)
    if errors:
        found["fig2_errors"] = pandas.DataFrame(errors)
    return found


def draw(tables: Tables) -> Figure:
    """Autocorrelation at the published and the larger step; means and sds; too much momentum."""
    figure, axes = new_figure(10.5, 6.2, 2, 3)
    curves, parameters = tables["fig2_autocorrelation"], tables["fig2"]
    for ax, step, words in (
        (axes[0, 0], dynamics.PUBLISHED, "published step 0.001"),
        (axes[0, 1], dynamics.MEASURED, f"step {dynamics.MEASURED:g}"),
    ):
        for k, alpha in enumerate(COMPARED):
            part = curves[(curves["step"] == step) & (curves["alpha"] == alpha)]
            for edge, line in part.groupby("edge"):
                mean = edge == -1
                ax.plot(
                    line["lag"],
                    line["autocorrelation"],
                    color=CYCLE[1 - k],
                    linestyle=LINE_STYLES[1 - k],
                    linewidth=2.2 if mean else 0.8,
                    label=f"alpha = {alpha:g}" if mean else None,
                )
        ax.axhline(0, color=NEUTRAL, linewidth=0.8)
        ax.set_xscale("log")
        ax.set_ylim(-0.35, 1.05)
        ax.set_xlabel("lag (iterations)")
        ax.set_ylabel("autocorrelation")
        ax.set_title(f"Autocorrelation, {words}", fontsize=10)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=8, title="thick: mean of all edges", title_fontsize=7)
    wide = parameters[parameters["step"] == dynamics.MEASURED].pivot(index="edge", columns="alpha")
    for ax, name, words in ((axes[1, 0], "mean", "posterior mean"), (axes[1, 1], "sd", "posterior sd")):
        if set(COMPARED) <= set(wide[name].columns if name in wide else ()):
            x, y = wide[name][COMPARED[0]], wide[name][COMPARED[1]]
            identity(ax, [x, y])
            ax.plot(x, y, "o", color=CYCLE[0], markersize=4)
        ax.set_xlabel("alpha = 0")
        ax.set_ylabel("alpha = 0.9")
        ax.set_title(f"{words.capitalize()} of every edge, step {dynamics.MEASURED:g}", fontsize=10)
    if "fig2_errors" in tables:
        errors = tables["fig2_errors"]
        for ax, name, words in (
            (axes[0, 2], "sd_ratio", "posterior sd over the exact one"),
            (axes[1, 2], "mean_error", "error of means (posterior sds)"),
        ):
            for k, step in enumerate(dynamics.STEPS):
                part = errors[errors["step"] == step].sort_values("alpha")
                ax.plot(
                    range(len(part)),
                    part[name],
                    color=CYCLE[k],
                    marker=MARKERS[k],
                    linestyle=LINE_STYLES[k],
                    label=f"step {step:g}",
                )
            ax.set_xticks(range(len(dynamics.ALPHAS)), [f"{alpha:g}" for alpha in dynamics.ALPHAS])
            ax.set_xlabel("alpha (share of the momentum kept)")
            ax.set_ylabel(words)
            ax.set_yscale("log")
            ax.legend(frameon=False, fontsize=8)
        axes[0, 2].axhline(1, color=NEUTRAL, linewidth=0.8)
        axes[0, 2].set_title("Too much momentum at a large step", fontsize=10)
    return figure
