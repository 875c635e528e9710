"""The network: width is strength, colour is sign, dashed is inconclusive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots import layout as layouts
from edgewise.plots import placing
from edgewise.plots.drawing import (
    BELOW,
    bent,
    draw_edges,
    draw_nodes,
    draw_pixels,
    frame,
    node_size,
    sign_kinds,
    width_legend,
)
from edgewise.plots.groups import Groups, learned_groups
from edgewise.plots.source import EdgeView, as_posterior, edge_view
from edgewise.plots.style import (
    EVIDENCE_COLOURS,
    mark,
    new_axes,
    tally,
    withheld,
)
from edgewise.posterior.verdict import present

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Layout = str | np.ndarray | Mapping[str, Sequence[float]]
MOST_ABSENT = 40


def network(
    source: Any,
    ax: Axes | None = None,
    *,
    threshold: float | None = None,
    layout: Layout = "stress",
    grid: tuple[int, int] | None = None,
    groups: Groups | None = None,
    labels: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the learned network: the edges for which there is evidence (a Bayes factor of 3 or more).

    Nodes have the colour of their community in the graph of probable edges. Width shows the strength of the
    coupling, colour its sign, and a dashed line means that the evidence is inconclusive. A single model (an
    MRF, or a fitted lasso) is drawn with all its edges.

    Parameters
    ----------
    source : Posterior, fitted estimator or MRF
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    threshold : float, optional
        Draw instead every edge with at least this inclusion probability, conclusive or not.
    layout : {"stress", "circle"}, (p, 2) array or mapping from name to (x, y)
        "stress" depends on the inclusion probabilities alone, so it hardly changes from seed to seed.
    grid : (rows, columns), optional
        Draw over the pixel grid of image data instead.
    groups : sequence or mapping from name, optional
        One label per variable, shown as the colour of the node; by default the communities that a block
        model has learned, or else those of the graph of probable edges.
    labels : bool, optional
        Whether to write names: all of them, or none. By default all that find a place of their own, the best
        connected first.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.network(model, groups=["person", "person", "blood", "disease"]).get_title()
    'Network: 4 edges (Bayes factor ≥ 3)'
    """
    view = edge_view(source)
    groups = learned_groups(source) if groups is None else groups
    if threshold is None:
        evidence = view.evidence
        shown = np.ones(len(view.pairs), bool) if evidence is None else present(evidence, view.inclusion)
    else:
        shown = view.inclusion >= threshold
    drawn = np.flatnonzero(shown)
    if grid is not None:
        positions = layouts.grid(*grid, view.n_variables)
    else:
        positions = find_positions(view, layout)
    ax = new_axes(ax, *network_size(view.n_variables))
    kinds = sign_kinds(view, drawn)
    degree = np.bincount(view.pairs[drawn].ravel(), minlength=view.n_variables)
    what = "single model"
    if view.evidence is not None:
        what = "Bayes factor ≥ 3" if threshold is None else f"inclusion probability ≥ {threshold:g}"
    noun = "edge" if len(drawn) == 1 else "edges"
    silent = view.evidence is not None and withheld(as_posterior(source))
    counted = "Network so far" if silent else f"Network: {len(drawn):,} {noun}"
    ax.set_title(title or f"{counted} ({what})")
    width_legend(ax, view, drawn, kinds, silent)
    if grid is None:
        size = node_size(view.n_variables)
        frame(ax, positions, 0.14)
        lines = curves(ax, positions, view.pairs[drawn], size)
        draw_edges(ax, view, drawn, dict(zip(drawn.tolist(), lines)), kinds)
        draw_nodes(ax, view, positions, degree, groups, labels, lines)
    else:
        lines = bent(positions[view.pairs[drawn]], 0.1)
        draw_edges(ax, view, drawn, dict(zip(drawn.tolist(), lines)), kinds)
        draw_pixels(ax, positions, degree)
    return ax if view.evidence is None else mark(ax, as_posterior(source))


def network_size(count: int) -> tuple[float, float]:
    """Inches of a figure that so many nodes need."""
    side = float(np.clip(5.6 + count / 40, 6.2, 12.0))
    return 1.13 * side, side


def curves(ax: Axes, positions: np.ndarray, pairs: np.ndarray, size: float) -> np.ndarray:
    """Lines in the coordinates of the data that keep clear of third nodes on the paper."""
    places = _points(ax, positions)
    lines = placing.curves(places, pairs, clearance=size**0.5 / 2 + 2)
    scale = 72 / ax.figure.dpi
    found: np.ndarray = ax.transData.inverted().transform(lines.reshape(-1, 2) / scale).reshape(lines.shape)
    return found


def _points(ax: Axes, positions: np.ndarray) -> np.ndarray:
    """Where nodes stand, in points of the finished figure."""
    figure: Any = ax.figure
    getattr(figure, "figure", figure).draw_without_rendering()
    result: np.ndarray = ax.transData.transform(positions) * 72 / ax.figure.dpi
    return result


def evidence_network(
    source: Any,
    ax: Axes | None = None,
    *,
    layout: Layout = "stress",
    thresholds: tuple[float, float] = (3, 10),
    groups: Groups | None = None,
    title: str | None = None,
) -> Axes:
    """Draw what the data say of every pair: present, undecided or absent.

    Edges with evidence for presence are solid, inconclusive ones dashed, and those with evidence for
    absence dotted; an edge that is not there is a finding too. Beyond 40 variables those with evidence for
    absence are counted and not drawn. Nodes stand where :func:`network` has them.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.evidence_network(model).get_title()
    'Edge evidence (Bayes factor beyond 3: some, beyond 10: strong)'
    """
    view = edge_view(source, thresholds)
    groups = learned_groups(source) if groups is None else groups
    if view.evidence is None:
        raise DataError("An edge-evidence network needs a posterior; a single model has no evidence.")
    positions = find_positions(view, layout)
    ax = new_axes(ax, *network_size(view.n_variables))
    kinds: list[tuple[str, np.ndarray, str, Any, float, float]] = []
    styles: tuple[tuple[tuple[str, ...], Any, float], ...] = (
        (("strong absence", "absence"), (0, (1, 3)), 0.7),
        (("inconclusive",), (0, (4, 2)), 1.2),
        (("presence", "strong presence"), "solid", 2.2),
    )
    for words, style, strength in styles:
        for word in words:
            chosen = np.flatnonzero(view.evidence == word)
            crowd = min(1.0, 120 / max(len(chosen), 1), 40 / view.n_variables) ** 0.5
            kinds.append((word, chosen, EVIDENCE_COLOURS[word], style, strength * (0.3 + 0.7 * crowd), crowd))
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    handles: list[Line2D] = []
    silent = withheld(as_posterior(source))
    frame(ax, positions, 0.14)
    size = node_size(view.n_variables)
    for word, chosen, shade, style, width, crowd in kinds:
        if "absence" in word and view.n_variables > MOST_ABSENT:
            label = f"{tally(word, len(chosen), silent)} (not drawn)"
            handles.insert(0, Line2D([], [], linewidth=0, label=label))
            continue
        lines = curves(ax, positions, view.pairs[chosen], size)
        # Dots of thousands of lines run together, and take seconds to draw.
        drawn_style: Any = style if len(chosen) <= 3000 else "solid"
        fade = 0.9 if "presence" in word else 0.75 * max(crowd, 0.15)
        ax.add_collection(
            LineCollection(
                list(lines), colors=shade, linewidths=width, linestyles=[drawn_style], alpha=fade, zorder=1
            )
        )
        label = tally(word, len(chosen), silent)
        handles.insert(
            0, Line2D([], [], color=shade, linewidth=max(width, 1.2), linestyle=style, label=label)
        )
    there = np.flatnonzero(present(view.evidence, view.inclusion))
    degree = np.bincount(view.pairs[there].ravel(), minlength=view.n_variables)
    ax.legend(handles=handles, title="Evidence for the edge", **BELOW)
    some, strong = thresholds
    ax.set_title(title or f"Edge evidence (Bayes factor beyond {some:g}: some, beyond {strong:g}: strong)")
    lines = curves(ax, positions, view.pairs[there], size)
    draw_nodes(ax, view, positions, degree, groups, None, lines)
    return mark(ax, as_posterior(source))


def find_positions(view: EdgeView, layout: Layout = "stress") -> np.ndarray:
    """Positions of the nodes for a layout given by name, as an array or as a mapping."""
    if isinstance(layout, str):
        if layout == "stress":
            return layouts.stress(view.matrix(view.inclusion))
        if layout == "circle":
            return layouts.circle(view.n_variables)
        raise DataError(
            f"There is no layout {layout!r}; use 'stress', 'circle', an array or grid=(rows, columns)."
        )
    if isinstance(layout, Mapping):
        missing = [name for name in view.names if name not in layout]
        if missing:
            raise DataError(f"The layout has no position for {missing[0]!r}; give one for every variable.")
        layout = np.array([layout[name] for name in view.names], float)
    positions = np.asarray(layout, float)
    if positions.shape != (view.n_variables, 2):
        raise DataError(
            f"The layout has shape {positions.shape}; it must be ({view.n_variables}, 2): one x and y "
            "per variable."
        )
    return positions
