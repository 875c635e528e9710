"""Methods compared: precision against recall, predictive score against density, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.source import edge_view
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
        A value of the mapping may also be a pair ``(recall, precision)`` of arrays, an object with these
        attributes, or a (p, p) matrix of edge scores.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    truth : MRF or (p, p) array
        The true model; not needed where all curves are given as numbers.
    title : str, optional
        Title of the axes.
    """
    if not isinstance(curves, Mapping):
        curves = {"posterior" if hasattr(curves, "inclusion_probability") else type(curves).__name__: curves}
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
    if hasattr(value, "recall") and hasattr(value, "precision"):
        return np.atleast_1d(value.recall), np.atleast_1d(value.precision)
    if isinstance(value, tuple) and len(value) == 2:
        return np.atleast_1d(np.asarray(value[0], float)), np.atleast_1d(np.asarray(value[1], float))
    if truth is None:
        raise DataError(f"A precision-recall curve of {label!r} needs truth=: the true model.")
    scores = _score_matrix(value)
    coupling = np.asarray(truth.coupling if hasattr(truth, "coupling") else truth)
    if scores.shape != coupling.shape:
        raise DataError(
            f"The truth has {len(coupling)} variables and {label!r} has {len(scores)}; give the model "
            "of the same data."
        )
    rows, columns = np.triu_indices(len(coupling), 1)
    return ranked_curve(scores[rows, columns], coupling[rows, columns] != 0)


def _score_matrix(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return np.abs(value)
    view = edge_view(value)
    return view.matrix(view.inclusion if view.evidence is not None else np.abs(view.strength))


def ranked_curve(scores: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision when edges are taken in the order of their scores, equal scores together.

    >>> recall, precision = ranked_curve(np.array([0.9, 0.8, 0.1]), np.array([True, False, True]))
    >>> recall.tolist(), precision.round(2).tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.67])
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = np.cumsum(true[order])[ends]
    found = ends + 1
    keep = scores[order][ends] > 0
    if not keep.any():
        return np.array([0.0]), np.array([1.0])
    return hits[keep] / max(int(true.sum()), 1), hits[keep] / found[keep]


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
    curves : mapping from label to (density, score) or (density, score, spread)
        Arrays, or single numbers for a method without a sparsity parameter (drawn as a point); the spread
        is a standard deviation, drawn as a band or an error bar.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    true_density : float, optional
        Density of the true model, drawn as a vertical line.
    score : str
        What the vertical axis holds.
    title : str, optional
        Title of the axes.
    """
    ax = new_axes(ax, 6.4, 4.4)
    for k, (label, curve) in enumerate(curves.items()):
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
    probability: np.ndarray,
    true: np.ndarray,
    ax: Axes | None = None,
    *,
    bins: int = 10,
    title: str | None = None,
) -> Axes:
    """Plot how often edges of a stated probability are really there.

    `probability` and `true` are arrays of the same length: inclusion probabilities, and whether the edge is
    in the true model. Bars are 95 % binomial (Wilson) intervals of the observed share.
    """
    probability, true = np.asarray(probability, float).ravel(), np.asarray(true, bool).ravel()
    if len(probability) != len(true):
        raise DataError(
            f"There are {len(probability)} probabilities and {len(true)} truths; give one for each."
        )
    ax = new_axes(ax, 5.2, 4.8)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = count > 0
    stated = np.bincount(place, probability, bins)[filled] / count[filled]
    observed = np.bincount(place, true, bins)[filled] / count[filled]
    n, z = count[filled], 1.96
    middle = (observed + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(observed * (1 - observed) / n + z**2 / (4 * n**2))
    ax.plot([0, 1], [0, 1], color=NEUTRAL, linestyle="--", linewidth=1, label="perfect calibration")
    ax.vlines(stated, middle - half, middle + half, color=colour(0), linewidth=1.4)
    ax.plot(stated, observed, "o", color=colour(0), markersize=6, label="observed, 95 % interval")
    for x, y, size in zip(stated, middle + half, n):
        ax.annotate(
            f"{size:,}", (x, y), (0, 3), textcoords="offset points", ha="center", fontsize=6, color=INK
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.04, 1.1)
    ax.set_xlabel("stated inclusion probability")
    ax.set_ylabel("share of these edges in the true model")
    ax.set_title(
        title or "Calibration of the inclusion probabilities (numbers: edges per bin)", fontsize="medium"
    )
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    plain(ax)
    return ax
