"""What the data say of single edges: evidence against strength, and couplings with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots.source import as_posterior, conditional_means
from edgewise.plots.style import (
    EVIDENCE_COLOURS,
    INK,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    clique_label,
    mark,
    new_axes,
    plain,
    tally,
    withheld,
)
from edgewise.posterior.verdict import SET_BY_PRIOR, WORDS, categories

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def edge_evidence(
    source: Any,
    ax: Axes | None = None,
    *,
    thresholds: tuple[float, float] = (3, 10),
    labels: int = 8,
    title: str | None = None,
) -> Axes:
    """Plot the Bayes factor for the presence of every edge against its coupling.

    The bands are the evidence categories, with the number of edges in each. Triangles mark bounds: the
    draws show at least (or at most) this much. The `labels` edges with most evidence are named, in a column
    beside the points; the axis is compressed where the evidence is overwhelming.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.edge_evidence(model).get_title()
    'Evidence for each of 6 candidate edges'
    """
    posterior = as_posterior(source)
    factor = posterior.edge_values("log10_bf")
    strength = conditional_means(posterior)
    kinds = categories(posterior, thresholds)
    usable = kinds != SET_BY_PRIOR
    bound = posterior.edge_values("bf_bound").astype(str)
    silent = withheld(posterior)
    ax = new_axes(ax, 7.6, 5.4)
    top = max(1.6, float(factor[usable].max(initial=0.0)) * 1.12)
    bottom = min(-1.6, float(factor[usable].min(initial=0.0)) * 1.12)
    some, strong = np.log10(thresholds)
    limits = ((strong, top), (some, strong), (-some, some), (-strong, -some), (bottom, -strong))
    for word, (low, high) in zip(WORDS, limits):
        ax.axhspan(low, high, color=EVIDENCE_COLOURS[word], alpha=0.10, linewidth=0)
        chosen = usable & (kinds == word)
        size = float(np.clip(4000 / max(int(chosen.sum()), 1), 5, 34))
        for sign, marker in (("", "o"), (">", "^"), ("<", "v")):
            some_of = chosen & (bound == sign)
            ax.scatter(
                strength[some_of],
                factor[some_of],
                s=size,
                marker=marker,
                c=EVIDENCE_COLOURS[word],
                edgecolors="white",
                linewidths=0.3,
                alpha=0.85,
                label=tally(word, int((kinds == word).sum()), silent) if sign == "" else None,
                rasterized=some_of.sum() > 5000,
            )
    for sign, marker, words in ((">", "^", "at least this much"), ("<", "v", "at most this much")):
        if (usable & (bound == sign)).any():
            ax.scatter([], [], s=26, marker=marker, c="white", edgecolors=INK, linewidths=0.8, label=words)
    if top - bottom > 6:
        ax.set_yscale("function", functions=(compressed, lambda values: compressed(values, -1)))
        ticks = [-300, -100, -50, -20, -10, -5, -3, -2, -1, 0, 1, 2, 3, 5, 10, 20, 50, 100, 300]
        ax.set_yticks([tick for tick in ticks if bottom <= tick <= top])
    ax.axhline(0, color=NEUTRAL, linewidth=0.8)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8, linestyle=":")
    ax.set_ylim(bottom, top)
    ax.margins(x=0.06)
    ax.set_xlabel("coupling: posterior mean given inclusion (log odds, 0/1 coding)")
    ax.set_ylabel(r"$\log_{10}$ Bayes factor for presence")
    ax.set_title(title or f"Evidence for each of {len(factor):,} candidate edges")
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4)
    plain(ax)
    chosen = _named(factor, strength, usable & (factor >= some), labels)
    texts = [clique_label(posterior.features.clique(int(k)), posterior.names, 14) for k in chosen]
    _write_beside(ax, np.stack([strength[chosen], factor[chosen]], axis=1), texts)
    return mark(ax, posterior)


def compressed(values: Any, direction: int = 1) -> Any:
    """Scale of the evidence axis: linear up to two either way, logarithmic beyond, and its inverse (-1).

    >>> compressed(np.array([-1.0, 2.0, 2 * np.e])).tolist()
    [-1.0, 2.0, 4.0]
    >>> float(compressed(compressed(7.0), -1).round(6))
    7.0
    """
    size = np.abs(values)
    if direction == 1:
        far = 2 + 2 * np.log(np.maximum(size, 2) / 2)
    else:
        far = 2 * np.exp((np.maximum(size, 2) - 2) / 2)
    return np.sign(values) * np.where(size <= 2, size, far)


def _write_beside(ax: Axes, points: np.ndarray, texts: list[str], font: float = 7.5) -> None:
    """Write labels in a column at the right, each joined to its point by a line; no two lines cross.

    Lines of the shortest total length between points and places cannot cross, and the names stand right
    of all points, where no line goes.
    """
    from scipy.optimize import linear_sum_assignment

    if not texts:
        return
    figure: Any = ax.figure
    getattr(figure, "figure", figure).draw_without_rendering()
    # Room for the names, whose extent is estimated from their length.
    box, scale = ax.get_window_extent(), 72 / ax.figure.dpi
    share = min(0.45, (0.6 * font * max(map(len, texts)) + 14) / (box.width * scale))
    left, right = ax.get_xlim()
    edge = right + 0.02 * (right - left)
    ax.set_xlim(left, left + (edge - left) / (1 - share))
    line = 1.5 * font / (box.height * scale)
    # In parts of the axes, which the scale of either axis does not bend.
    here = ax.transAxes.inverted().transform(ax.transData.transform(points))
    height = line * len(texts)
    start = float(np.clip(np.median(here[:, 1]) + height / 2, height, 1.0)) - line / 2
    places = np.stack([np.full(len(texts), 1 - share + 0.02), start - line * np.arange(len(texts))], axis=1)
    wide = np.array([box.width, box.height])
    gap = (here[:, None] - places) * wide
    _, place = linear_sum_assignment(np.sqrt((gap**2).sum(2)))
    for k, text in enumerate(texts):
        ax.annotate(
            text,
            tuple(points[k]),
            tuple(places[place[k]]),
            textcoords="axes fraction",
            ha="left",
            va="center",
            fontsize=font,
            color=INK,
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.5,
                "color": NEUTRAL,
                "shrinkA": 0,
                "shrinkB": 3,
                "relpos": (0.0, 0.5),
            },
            annotation_clip=False,
        ).set_in_layout(False)


def _named(factor: np.ndarray, strength: np.ndarray, usable: np.ndarray, count: int) -> np.ndarray:
    """The edges to name: most evidence first, the stronger coupling among equals."""
    order = np.lexsort((-np.abs(strength), -factor))
    result: np.ndarray = order[usable[order]][:count]
    return result


def forest(
    source: Any,
    ax: Axes | None = None,
    *,
    edges: int = 30,
    threshold: float = 0.1,
    coding: str = "binary",
    title: str | None = None,
) -> Axes:
    """Plot the couplings of the most probable edges with their posterior intervals.

    The point is the model-averaged posterior mean, the line the highest-density interval (both count draws
    without the edge as zero), and the number at the right the inclusion probability.

    Parameters
    ----------
    source : Posterior or fitted SpikeSlabMRF
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    edges : int
        Number of edges, the most probable first and the stronger among equals.
    threshold : float
        Smallest inclusion probability of a listed edge.
    coding : {"binary", "ising"}
        Scale of the couplings: 0/1 (log odds) or -1/+1 variables.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> ax = plots.forest(model, edges=3)
    >>> len(ax.get_yticks())
    3
    """
    posterior = as_posterior(source)
    table = posterior.summary(coding=coding)
    table = table[table["inclusion"] >= threshold]
    table = table.assign(size=table["mean"].abs())
    table = table.sort_values(["inclusion", "size"], ascending=False, kind="stable").head(edges)
    table = table.sort_values("mean", kind="stable")
    ax = new_axes(ax, 6.8, max(2.4, 1.3 + 0.24 * max(len(table), 1)))
    places = np.arange(len(table))
    names = [clique_label(posterior.features.clique(int(k)), posterior.names) for k in table.index]
    mean = table["mean"].to_numpy()
    shades = np.where(mean >= 0, POSITIVE, NEGATIVE)
    ax.hlines(places, table["hdi_low"], table["hdi_high"], colors=list(shades), linewidth=1.6)
    solid = (table["evidence"] != "inconclusive").to_numpy()
    ax.scatter(mean, places, s=26, c=np.where(solid, shades, "white"), edgecolors=list(shades), zorder=3)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8)
    ax.set_yticks(places, labels=names, fontsize=8)
    ax.set_ylim(-0.8, max(len(table) - 0.2, 0.8))
    beside = ax.get_yaxis_transform()
    for place, probability in zip(places, table["inclusion"]):
        ax.text(
            1.01, float(place), f"{probability:.2f}", transform=beside, va="center", fontsize=7, color=INK
        )
    ax.text(1.01, 1.0, "PIP", transform=ax.transAxes, va="bottom", fontsize=7, color=INK)
    if not len(table):
        ax.text(0.5, 0.5, "no edge to show", transform=ax.transAxes, ha="center", color=INK)
    unit = "log odds, 0/1 coding" if coding == "binary" else "Ising coupling J, ±1 coding"
    ax.set_xlabel(
        f"coupling ({unit})\npoint: mean; line: 95 % interval; hollow: inconclusive", fontsize="small"
    )
    ax.set_ylabel("edge" if posterior.features.pairs_only else "clique")
    noun = "edge" if len(table) == 1 else "edges"
    ax.set_title(title or f"Couplings of the {len(table)} most probable {noun}")
    plain(ax)
    return mark(ax, posterior)
