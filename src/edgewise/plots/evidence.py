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
    draws show at least (or at most) this much. The `labels` edges with most evidence are named; the axis is
    compressed where the evidence is overwhelming.
    """
    posterior = as_posterior(source)
    factor = posterior.edge_values("log10_bf")
    strength = conditional_means(posterior)
    kinds = categories(posterior, thresholds)
    usable = kinds != SET_BY_PRIOR
    bound = posterior.edge_values("bf_bound").astype(str)
    ax = new_axes(ax, 7.2, 5.0)
    up = max(1.6, float(factor[usable].max(initial=0.0)) * 1.12)
    bottom = min(-1.6, float(factor[usable].min(initial=0.0)) * 1.12)
    # Room above the points for their names, which stack up where many edges share one bound.
    top = compressed(compressed(up) + 0.3 * (compressed(up) - compressed(bottom)) * min(1.0, labels / 8), -1)
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
                label=f"{word}: {int((kinds == word).sum()):,}" if sign == "" else None,
                rasterized=some_of.sum() > 5000,
            )
    for sign, marker, words in ((">", "^", "at least this much"), ("<", "v", "at most this much")):
        if (usable & (bound == sign)).any():
            ax.scatter([], [], s=26, marker=marker, c="white", edgecolors=INK, linewidths=0.8, label=words)
    if up - bottom > 6:
        ax.set_yscale("function", functions=(compressed, lambda values: compressed(values, -1)))
        ticks = [-300, -100, -50, -20, -10, -5, -3, -2, -1, 0, 1, 2, 3, 5, 10, 20, 50, 100, 300]
        ax.set_yticks([tick for tick in ticks if bottom <= tick <= top])
    ax.axhline(0, color=NEUTRAL, linewidth=0.8)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8, linestyle=":")
    ax.set_ylim(bottom, top)
    ax.margins(x=0.12)
    ax.set_xlabel("coupling: posterior mean given inclusion (log odds, 0/1 coding)")
    ax.set_ylabel(r"$\log_{10}$ Bayes factor for presence")
    ax.set_title(title or f"Evidence for each of {len(factor):,} candidate edges")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    plain(ax)
    texts = [
        (strength[k], factor[k], clique_label(posterior.features.clique(int(k)), posterior.names, 12))
        for k in _named(factor, strength, usable & (factor >= some), labels)
    ]
    _write_apart(ax, texts)
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


def _write_apart(ax: Axes, texts: list[tuple[float, float, str]], font: float = 7) -> None:
    """Write labels above their points, stacked where they would cover each other.

    The extent of a label is estimated from its length; that is enough to keep labels apart and needs no
    drawing of the figure.
    """
    box = ax.get_window_extent()
    taken: list[tuple[float, float, float]] = []
    half_of_letter, line = 0.31 * font, 1.35 * font
    for x, y, text in sorted(texts):
        place, level = ax.transData.transform((x, y)) * 72 / ax.figure.dpi
        half = half_of_letter * len(text)
        left_end, right_end = np.array([box.x0, box.x1]) * 72 / ax.figure.dpi
        middle = float(np.clip(place, left_end + half, max(right_end - half, left_end + half)))
        height = level + 9
        while any(abs(middle - m) < half + h and abs(height - t) < line for m, h, t in taken):
            height += line
        taken.append((middle, half, height))
        ax.annotate(
            text,
            (x, y),
            (middle - place, height - level),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=font,
            color=INK,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": NEUTRAL, "shrinkA": 3, "shrinkB": 1},
            annotation_clip=False,
        )


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
