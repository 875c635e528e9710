"""How the figures look: one colour, marker and line for each method, everywhere the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.experiments.study import mean_curve
from edgewise.plots.style import INK, NEUTRAL, plain

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours; marker and line say it again.
STYLES: dict[str, tuple[str, str, str]] = {
    "Bayes": ("#0072B2", "*", "none"),
    "Bayes PM": ("#56B4E9", "P", "none"),
    "Bayes p0": ("#0072B2", "o", "-"),
    "Bayes PM p0": ("#56B4E9", "s", "--"),
    "Bayes Exact": ("#000000", "X", "none"),
    "Bayes Exact p0": ("#000000", "D", ":"),
    "Bayes PM Exact": ("#7A7A7A", "X", "none"),
    "Bayes PM Exact p0": ("#7A7A7A", "D", ":"),
    "Bayes Algorithm 1": ("#E69F00", "d", "none"),
    "Bayes Algorithm 1 p0": ("#E69F00", "^", "-."),
    "Bayes PM Algorithm 1": ("#E69F00", "d", "none"),
    "Bayes PM Algorithm 1 p0": ("#B8860B", "v", "-."),
    "Wain Max": ("#D55E00", "v", "-."),
    "Wain Min": ("#CC79A7", "^", ":"),
    "MLE": ("#009E73", "D", "--"),
}


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure that is no part of pyplot, with its axes as a 2-d array."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        plain(ax)
    return figure, axes


def curves(
    ax: Axes, table: pandas.DataFrame, methods: Sequence[str], true_density: float | None = None
) -> None:
    """Mean score against density of some methods, with the standard deviation over replicates."""
    for method in methods:
        density, mean, sd = mean_curve(table, method)
        if not len(density):
            continue
        colour, marker, line = STYLES[method]
        if len(density) == 1:
            style: dict[str, Any] = {
                "markersize": 13 if marker == "*" else 9,
                "markeredgecolor": "white",
                "zorder": 5,
            }
            ax.errorbar(
                density,
                mean,
                sd,
                color=colour,
                marker=marker,
                linestyle="none",
                capsize=3,
                label=method,
                **style,
            )  # type: ignore[arg-type]
            continue
        few = len(density) < 40
        every = 1 if few else max(1, len(density) // 8)
        ax.plot(
            density,
            mean,
            color=colour,
            marker=marker,
            markersize=4.5,
            markevery=every,
            linestyle=line,
            linewidth=1.6,
            label=method,
        )
        ax.fill_between(density, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
    if true_density is not None:
        ax.axvline(true_density, color=INK, linewidth=1, linestyle=(0, (2, 2)))
        ax.annotate(
            " true density",
            (true_density, 0.02),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            color=INK,
            va="bottom",
        )
    ax.set_xlabel("edge density (share of all pairs)")
    ax.set_ylabel("conditional log-likelihood\nper test case")


def focus(ax: Axes, table: pandas.DataFrame, methods: Sequence[str], share: float = 1.3) -> None:
    """Let the vertical axis show the good part: far too bad models run out below."""
    best, floor = -np.inf, np.inf
    for method in methods:
        density, mean, _ = mean_curve(table, method)
        if len(mean):
            best = max(best, np.nanmax(mean))
            if method == "MLE" or (method.startswith("Bayes") and "Algorithm" not in method):
                floor = min(floor, mean[np.argmin(density)])
    if np.isfinite(best) and np.isfinite(floor) and floor < best:
        room = best - floor
        ax.set_ylim(best - share * room, best + 0.12 * room)


def identity(ax: Axes, values: Sequence[Any]) -> None:
    """The line of equality over the range of the values."""
    joined = np.concatenate([np.ravel(value) for value in values])
    joined = joined[np.isfinite(joined)]
    if len(joined):
        low, high = float(joined.min()), float(joined.max())
        ax.plot([low, high], [low, high], color=NEUTRAL, linewidth=1, zorder=0)


def legend(figure: Figure, axes: Sequence[Axes], columns: int = 4) -> None:
    """One legend for all axes, below them."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )
