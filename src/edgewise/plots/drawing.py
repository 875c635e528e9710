"""Nodes, lines, names and legends of a network, drawn into axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots import placing
from edgewise.plots.groups import Groups, node_colours, node_groups
from edgewise.plots.source import EdgeView
from edgewise.plots.style import (
    INK,
    NEGATIVE,
    POSITIVE,
    colour,
    short,
    tally,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Up to so many variables every name is written; beyond so many, edges with evidence against them are not.
FEW = 25
BELOW: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, 0.0),
    "ncols": 3,
    "frameon": False,
    "fontsize": 8,
    "title_fontsize": 8,
}


def node_size(count: int) -> float:
    """Area of a node in square points."""
    return float(np.clip(6000 / max(count, 1), 32, 230))


def sign_kinds(view: EdgeView, drawn: np.ndarray) -> list[tuple[str, np.ndarray, str, Any]]:
    """The four kinds of line: label, edges, colour, line style."""
    positive = view.strength[drawn] >= 0
    unsure = np.zeros(len(drawn), bool) if view.evidence is None else view.evidence[drawn] == "inconclusive"
    dashed = (0, (4, 2))
    return [
        ("positive, inconclusive", drawn[positive & unsure], POSITIVE, dashed),
        ("negative, inconclusive", drawn[~positive & unsure], NEGATIVE, dashed),
        ("positive", drawn[positive & ~unsure], POSITIVE, "solid"),
        ("negative", drawn[~positive & ~unsure], NEGATIVE, "solid"),
    ]


def _scale(view: EdgeView, drawn: np.ndarray) -> tuple[float, float]:
    """Strength of the widest line, and its width in points."""
    strongest = float(np.abs(view.strength[drawn]).max(initial=0.0)) or 1.0
    return strongest, float(np.clip(7.0 * (40 / max(len(drawn), 1)) ** 0.3, 2.0, 7.0))


def draw_edges(
    ax: Axes,
    view: EdgeView,
    drawn: np.ndarray,
    lines_of: Mapping[int, np.ndarray],
    kinds: list[tuple[str, np.ndarray, str, Any]],
) -> None:
    """Draw the lines, as wide as they are strong."""
    from matplotlib.collections import LineCollection

    strongest, widest = _scale(view, drawn)
    fade = float(np.clip((600 / max(len(drawn), 1)) ** 0.5, 0.25, 0.85))
    for _, chosen, shade, style in kinds:
        if not len(chosen):
            continue
        share = np.abs(view.strength[chosen]) / strongest
        widths = 0.4 + (widest - 0.4) * share
        order = np.argsort(widths)
        lines = LineCollection(
            [lines_of[k] for k in chosen[order].tolist()],
            linewidths=widths[order],
            colors=shade,
            linestyles=[style],
            # Weak lines step back.
            alpha=fade * (0.5 + 0.5 * share[order]),
            zorder=1,
            capstyle="butt",
        )
        ax.add_collection(lines)


def bent(lines: np.ndarray, bulge: float) -> np.ndarray:
    """Bend lines (k, 2, 2) longer than the step to a diagonal neighbour, so that none hides another."""
    if not bulge:
        return lines
    along = lines[:, 1] - lines[:, 0]
    length = np.sqrt((along**2).sum(1))
    aside = np.stack([-along[:, 1], along[:, 0]], axis=1) * np.where(length > 1.5, bulge, 0.0)[:, None]
    t = np.linspace(0, 1, 13)[None, :, None]
    straight = lines[:, None, 0] + t * along[:, None]
    result: np.ndarray = straight + 4 * t * (1 - t) * aside[:, None]
    return result


def draw_nodes(
    ax: Axes,
    view: EdgeView,
    positions: np.ndarray,
    degree: np.ndarray,
    groups: Groups | None,
    labels: bool | None,
    lines: np.ndarray,
) -> None:
    """Draw the nodes in the colours of their groups, and their names."""
    count = view.n_variables
    area = np.where(degree > 0, 1.0, 0.45) * node_size(count)
    face = _group_colours(ax, view, groups)
    ax.scatter(
        positions[:, 0],
        positions[:, 1],
        s=area,
        c=face,
        edgecolors=INK,
        linewidths=0.8 if count <= 100 else 0.4,
        zorder=2,
    )
    if labels is not False:
        _write_names(ax, view, positions, degree, np.sqrt(area) / 2, lines, bool(labels))


def _write_names(
    ax: Axes,
    view: EdgeView,
    positions: np.ndarray,
    degree: np.ndarray,
    radii: np.ndarray,
    lines: np.ndarray,
    force: bool,
) -> None:
    """Write the names beside their nodes, on a pale halo, each where it covers nothing."""
    from matplotlib import patheffects

    scale = 72 / ax.figure.dpi
    box = ax.get_window_extent()
    font = float(np.clip(11 - view.n_variables / 20, 6, 10))
    texts = [short(name) for name in view.names]
    places = placing.names(
        ax.transData.transform(positions) * scale,
        radii,
        texts,
        font,
        ax.transData.transform(lines.reshape(-1, 2)).reshape(lines.shape) * scale,
        (box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale),
        np.argsort(-degree, kind="stable").tolist(),
        force or view.n_variables <= FEW,
    )
    back = ax.transData.inverted()
    for text, place in zip(texts, places):
        if place is not None:
            x, y = back.transform((place.x / scale, place.y / scale))
            written = ax.text(x, y, text, ha="center", va="center", fontsize=font, color=INK, zorder=3)
            halo = patheffects.withStroke(linewidth=2, foreground="white", alpha=0.8)
            written.set_path_effects([halo])
            written.set_in_layout(False)


def _group_colours(ax: Axes, view: EdgeView, groups: Groups | None) -> list[str]:
    group, labels = node_groups(view.names, view.matrix(view.inclusion), groups)
    if labels is not None:
        for index, label in enumerate(labels):
            ax.scatter([], [], s=60, c=colour(index), edgecolors=INK, label=short(label))
        ax.add_artist(ax.legend(loc="upper right", frameon=False, fontsize=8))
    return node_colours(group, labels is not None)


def draw_pixels(ax: Axes, positions: np.ndarray, degree: np.ndarray) -> None:
    """Draw the squares of an image, with a dot where edges end."""
    from matplotlib.collections import PolyCollection

    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    squares = positions[:, None, :] + corners
    ax.add_collection(
        PolyCollection(list(squares), facecolors="#F7F7F7", edgecolors="#E0E0E0", linewidths=0.6, zorder=0)
    )
    joined = degree > 0
    ax.scatter(positions[joined, 0], positions[joined, 1], s=14, c=INK, zorder=2)
    ax.scatter(
        positions[~joined, 0],
        positions[~joined, 1],
        s=8,
        facecolors="none",
        edgecolors="#9A9A9A",
        linewidths=0.8,
        zorder=2,
    )
    frame(ax, positions, 0.0, 0.6)


def frame(ax: Axes, positions: np.ndarray, share: float, least: float = 0.0) -> None:
    """Leave room around the nodes for their names."""
    low, high = positions.min(0), positions.max(0)
    margin = np.maximum(share * (high - low).max(), least)
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(
        low[1] - 0.5 * margin if not least else low[1] - margin,
        high[1] + (0.5 * margin if not least else margin),
    )
    ax.set_aspect("equal")
    ax.set_axis_off()


def width_legend(
    ax: Axes,
    view: EdgeView,
    drawn: np.ndarray,
    kinds: list[tuple[str, np.ndarray, str, Any]],
    silent: bool,
) -> None:
    """Explain the lines that are there, with their numbers, and two widths."""
    from matplotlib.lines import Line2D

    if not len(drawn):
        ax.text(
            0.5,
            -0.02,
            "no edge reaches the threshold",
            transform=ax.transAxes,
            ha="center",
            va="top",
            color=INK,
        )
        return
    handles = [
        Line2D([], [], color=shade, linewidth=2.2, linestyle=style, label=tally(word, len(chosen), silent))
        for word, chosen, shade, style in reversed(kinds)
        if len(chosen)
    ]
    strongest, widest = _scale(view, drawn)
    for part in (1.0, 0.25):
        width = 0.4 + (widest - 0.4) * part
        handles.append(
            Line2D(
                [], [], color="#777777", linewidth=width, label=f"strength {part * strongest:.2g} (log odds)"
            )
        )
    ax.legend(handles=handles, **BELOW)
