"""Methods compared: precision against recall, predictive score against density, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.style import INK, LINE_STYLES, MARKERS, NEUTRAL, colour, new_axes, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def precision_recall(
    curves: Any, ax: Axes | None = None, *, truth: Any = None, title: str | None = None
) -> Axes:
    """Plot precision against recall of the edges found, one line per method.

    Parameters
    ----------
    curves : Posterior, estimator or mapping from label to any of them
        A value of the mapping may also be a lasso path, a (p, p) matrix of edge scores, the table of
        :func:`edgewise.evaluate.precision_recall_curve` or a pair ``(recall, precision)``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    truth : MRF or (p, p) array
        The true model; not needed where all curves are given as numbers.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, exact, plots
    >>> truth = datasets.random_model(6, seed=1)
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(exact.sample(truth, 500, 1))
    >>> plots.precision_recall(model, truth=truth).get_xlabel()
    'recall (share of the true edges that are found)'
    """
    if not isinstance(curves, Mapping):
        curves = {"posterior" if hasattr(curves, "edge_values") else type(curves).__name__: curves}
    ax = new_axes(ax, 6.0, 4.6)
    for k, (label, value) in enumerate(curves.items()):
        recall, precision = _curve(value, truth, str(label))
        single = len(recall) == 1
        ax.plot(
            recall,
            precision,
            color=colour(k),
            linestyle="none" if single else LINE_STYLES[k % len(LINE_STYLES)],
            marker=MARKERS[k % len(MARKERS)] if single else None,
            markersize=8,
            linewidth=1.8,
            label=short(label, 40),
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.04)
    ax.set_xlabel("recall (share of the true edges that are found)")
    ax.set_ylabel("precision (share of the found edges that are true)")
    ax.set_title(title or "Precision and recall of the edges")
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    plain(ax)
    return ax


def _curve(value: Any, truth: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(value, tuple) and len(value) == 2:
        return np.atleast_1d(np.asarray(value[0], float)), np.atleast_1d(np.asarray(value[1], float))
    if not (hasattr(value, "recall") and hasattr(value, "precision")):
        if truth is None:
            raise DataError(f"A precision-recall curve of {label!r} needs truth=: the true model.")
        from edgewise.evaluate import precision_recall_curve

        value = precision_recall_curve(truth, value)
        # A score of zero means "not selected": the step to all pairs says nothing of the method.
        value = value[(value["threshold"] > 0) | (value.index == 0)]
    return np.atleast_1d(np.asarray(value.recall, float)), np.atleast_1d(np.asarray(value.precision, float))


def density_curve(
    curves: Mapping[str, Any],
    ax: Axes | None = None,
    *,
    true_density: float | None = None,
    score: str = "conditional log-likelihood",
    title: str | None = None,
) -> Axes:
    """Plot a predictive score against edge density, one line per method.

    Parameters
    ----------
    curves : mapping from label to a table of evaluate.density_curve, or to (density, score[, spread])
        Arrays, or single numbers for a method without a sparsity parameter (drawn as a point); the spread
        is drawn as a band or an error bar.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    true_density : float, optional
        Density of the true model, drawn as a vertical line.
    score : str
        What the vertical axis holds.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> from edgewise import MRF, evaluate, plots
    >>> models = [MRF([0, 0], [], []), MRF([0, 0], [(0, 1)], [1.0])]
    >>> curve = evaluate.density_curve(models, [[0, 0], [1, 1], [0, 1]], [0])
    >>> ax = plots.density_curve({"two models": curve})
    >>> ax.get_xlabel()
    'edge density (active edges / all pairs)'
    """
    ax = new_axes(ax, 6.4, 4.4)
    for k, (label, curve) in enumerate(curves.items()):
        if hasattr(curve, "cll"):
            curve = (curve.density, curve.cll, curve.cll_se)
        density, value = (np.atleast_1d(np.asarray(part, float)) for part in curve[:2])
        spread = np.atleast_1d(np.asarray(curve[2], float)) if len(curve) > 2 else None
        if len(density) == 1:
            ax.errorbar(
                density,
                value,
                yerr=spread,
                color=colour(k),
                marker=MARKERS[k % len(MARKERS)],
                markersize=8,
                linestyle="none",
                capsize=3,
                label=short(label, 40),
            )
            continue
        order = np.argsort(density, kind="stable")
        density, value = density[order], value[order]
        style = LINE_STYLES[k % len(LINE_STYLES)]
        marker = MARKERS[k % len(MARKERS)]
        ax.plot(
            density,
            value,
            color=colour(k),
            linestyle=style,
            marker=marker,
            markersize=3.5,
            label=short(label, 40),
        )
        if spread is not None:
            band = spread[order]
            ax.fill_between(density, value - band, value + band, color=colour(k), alpha=0.15, linewidth=0)
    if true_density is not None:
        ax.axvline(true_density, color=NEUTRAL, linestyle="--", linewidth=1, label="density of the truth")
    ax.set_xlabel("edge density (active edges / all pairs)")
    ax.set_ylabel(f"{score}\n(nats per row, higher is better)")
    ax.set_title(title or f"{score[:1].upper()}{score[1:]} against density")
    ax.legend(frameon=False, fontsize=8)
    plain(ax)
    return ax


def calibration(
    source: Any, ax: Axes | None = None, *, truth: Any = None, bins: int = 10, title: str | None = None
) -> Axes:
    """Plot how often edges of a stated probability are really there.

    Parameters
    ----------
    source : Posterior, list of posteriors or table of evaluate.reliability_curve
        Probabilities to judge.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    truth : MRF, or list of as many
        The true models; not needed with a table.
    bins : int
        Number of intervals between 0 and 1.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import plots
    >>> rng = np.random.default_rng(1)
    >>> stated = np.triu(rng.random((20, 20)), 1)
    >>> truth = rng.random((20, 20)) < stated
    >>> ax = plots.calibration(stated + stated.T, truth=truth + truth.T)
    >>> ax.get_xlabel()
    'stated inclusion probability'
    """
    if not hasattr(source, "standard_error"):
        if truth is None:
            raise DataError("A calibration plot needs truth=: the true model, or one for each posterior.")
        from edgewise.evaluate import reliability_curve

        source = reliability_curve(truth, source, bins)
    stated, observed = (np.asarray(source[name], float) for name in ("probability", "frequency"))
    error = 1.96 * np.asarray(source["standard_error"], float)
    ax = new_axes(ax, 5.2, 4.8)
    ax.plot([0, 1], [0, 1], color=NEUTRAL, linestyle="--", linewidth=1, label="perfect calibration")
    low, high = np.clip(stated - error, 0, 1), np.clip(stated + error, 0, 1)
    ax.vlines(stated, low, high, color="#C9C9C9", linewidth=6, label="95 % of the time, if calibrated")
    ax.plot(stated, observed, "o", color=colour(0), markersize=6, label="observed")
    for x, y, size in zip(stated, np.maximum(high, observed), source["pairs"]):
        place = (float(x), float(y))
        ax.annotate(
            f"{size:,}", place, (0, 4), textcoords="offset points", ha="center", fontsize=6, color=INK
        )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.04, 1.1)
    ax.set_xlabel("stated inclusion probability")
    ax.set_ylabel("share of these edges in the true model")
    heading = "Calibration of the inclusion probabilities\n(small numbers: edges per bin)"
    ax.set_title(title or heading, fontsize="medium")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    plain(ax)
    return ax
