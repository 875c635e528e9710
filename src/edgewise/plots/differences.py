"""How groups differ: the network of differences, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.drawing import BELOW, draw_nodes, frame, node_size
from edgewise.plots.network import Layout, curves, find_positions, network, network_size
from edgewise.plots.source import as_posterior, edge_view
from edgewise.plots.style import (
    INK,
    NEGATIVE,
    NEUTRAL,
    PALE,
    POSITIVE,
    clique_label,
    mark,
    new_axes,
    plain,
    short,
    tally,
    withheld,
)
from edgewise.posterior.verdict import present

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edgewise.posterior.posterior import Posterior

UNDECIDED = "undecided"


def _pair(posterior: Posterior, between: Sequence[Any] | None) -> tuple[str, str]:
    """Labels of the two groups whose difference is drawn: the first two where nothing is said."""
    if len(posterior.groups) < 2:
        raise DataError("This picture needs a fit that compared groups (groups=..., --compare-groups).")
    if between is None:
        return posterior.groups[0], posterior.groups[1]
    if isinstance(between, str) or len(between) != 2:
        raise DataError(f"between takes the labels of two groups, not {between!r}.")
    assert posterior.strata is not None
    first, second = sorted(posterior.strata.group(label) for label in between)
    if first == second:
        raise DataError(f"between takes two different groups, not {between!r}.")
    return posterior.groups[first], posterior.groups[second]


def _table(
    posterior: Posterior, groups: tuple[str, str], thresholds: tuple[float, float]
) -> pandas.DataFrame:
    """The rows of the group summary about two groups, in the order of the candidates."""
    table = posterior.group_summary(thresholds)
    chosen = (table["group_1"] == groups[0]) & (table["group_2"] == groups[1])
    return table[chosen].reset_index(drop=True)


def difference_network(
    source: Any,
    ax: Axes | None = None,
    *,
    between: Sequence[Any] | None = None,
    layout: Layout = "stress",
    thresholds: tuple[float, float] = (3, 10),
    title: str | None = None,
) -> Axes:
    """Draw which edges differ between two groups.

    Solid lines are edges for which there is evidence that they differ: blue where the coupling is larger in
    the second group, orange where it is smaller, as wide as the difference. Dashed grey lines are edges that
    are there and of which the data cannot tell whether they differ; thin pale ones are the same in all
    groups. Nodes stand where :func:`network` has them.

    Parameters
    ----------
    source : Posterior or fitted SpikeSlabMRF
        A fit that compared groups.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    between : two labels, optional
        The groups; the first two by default.
    layout : as of :func:`network`
        Where the nodes stand.
    thresholds : pair of float
        Bayes factors from which evidence counts, and counts as strong.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import SpikeSlabMRF, plots
    >>> rng = np.random.default_rng(0)
    >>> first, city = rng.random((2, 300)) < 0.5
    >>> second = np.where(city, first ^ (rng.random(300) < 0.1), rng.random(300) < 0.5)
    >>> X = np.stack([first, second, rng.random(300) < 0.5], axis=1)
    >>> where = np.where(city, "city", "country")
    >>> model = SpikeSlabMRF(random_state=1, progress=False, max_draws=2000).fit(X, groups=where)
    >>> plots.difference_network(model).get_title()
    'city against country: 1 edge differs'
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    posterior = as_posterior(source)
    groups = _pair(posterior, between)
    view = edge_view(posterior, thresholds)
    table = _table(posterior, groups, thresholds)
    size = np.nan_to_num(table["difference_if_different"].to_numpy())
    differs = table["answer"].str.startswith("differs").to_numpy()
    assert view.evidence is not None
    there = present(view.evidence, view.inclusion)
    unsure = ~differs & there & (table["answer"] == UNDECIDED).to_numpy()
    same = ~differs & ~unsure & there
    positions = find_positions(view, layout)
    ax = new_axes(ax, *network_size(view.n_variables))
    frame(ax, positions, 0.14)
    silent = withheld(posterior)
    count = int(differs.sum())
    verb = "edge differs" if count == 1 else "edges differ"
    counted = "differences so far" if silent else f"{count:,} {verb}"
    ax.set_title(title or f"{short(groups[0])} against {short(groups[1])}: {counted}")
    strongest = float(np.abs(size[differs]).max(initial=0.0)) or 1.0
    lines = curves(ax, positions, view.pairs, node_size(view.n_variables))
    handles: list[Line2D] = []
    kinds: tuple[tuple[str, Any, str, Any], ...] = (
        (f"larger in {short(groups[1])}", differs & (size >= 0), POSITIVE, "solid"),
        (f"smaller in {short(groups[1])}", differs & (size < 0), NEGATIVE, "solid"),
        ("there, undecided", unsure, NEUTRAL, (0, (4, 2))),
        ("there, no difference", same, PALE, "solid"),
    )
    for words, chosen, shade, style in kinds:
        where = np.flatnonzero(chosen)
        solid = shade in (POSITIVE, NEGATIVE)
        widths = 1.5 + 5.0 * np.abs(size[where]) / strongest if solid else np.full(len(where), 1.0)
        ax.add_collection(
            LineCollection(
                list(lines[where]), colors=shade, linewidths=widths, linestyles=[style], alpha=0.9,
                zorder=1.5 if solid else 1,
            )
        )  # fmt: skip
        label = tally(words, len(where), silent)
        handles.append(
            Line2D([], [], color=shade, linestyle=style, linewidth=3 if solid else 1.2, label=label)
        )
    ax.legend(handles=handles, **{**BELOW, "ncols": 2})
    degree = np.bincount(view.pairs[differs].ravel(), minlength=view.n_variables)
    draw_nodes(ax, view, positions, degree, None, None, lines[differs])
    return mark(ax, posterior)


def difference_forest(
    source: Any,
    ax: Axes | None = None,
    *,
    between: Sequence[Any] | None = None,
    edges: int = 30,
    thresholds: tuple[float, float] = (3, 10),
    title: str | None = None,
) -> Axes:
    """Plot by how much the couplings of two groups differ, with intervals.

    The point is the posterior mean of the difference, second group less first, the line its highest-density
    interval (both count draws in which the edge does not differ as zero), and the number at the right the
    probability that it differs. Hollow points are undecided.

    Parameters
    ----------
    source, ax, between, thresholds, title
        As of :func:`difference_network`.
    edges : int
        Number of edges, those that differ most probably.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import SpikeSlabMRF, plots
    >>> rng = np.random.default_rng(0)
    >>> X, city = rng.random((100, 3)) < 0.5, rng.random(100) < 0.5
    >>> model = SpikeSlabMRF(random_state=1, progress=False, max_draws=2000).fit(X, groups=city)
    >>> len(plots.difference_forest(model, edges=2).get_yticks())
    2
    """
    posterior = as_posterior(source)
    groups = _pair(posterior, between)
    table = _table(posterior, groups, thresholds)
    table = table.sort_values("different", ascending=False, kind="stable").head(edges)
    table = table.sort_values("difference", kind="stable")
    ax = new_axes(ax, 6.8, max(2.4, 1.3 + 0.24 * max(len(table), 1)))
    places, mean = np.arange(len(table)), table["difference"].to_numpy()
    shades = np.where(mean >= 0, POSITIVE, NEGATIVE)
    ax.hlines(places, table["hdi_low"], table["hdi_high"], colors=list(shades), linewidth=1.6)
    solid = (table["answer"] != UNDECIDED).to_numpy()
    ax.scatter(mean, places, s=26, c=np.where(solid, shades, "white"), edgecolors=list(shades), zorder=3)
    ax.axvline(0, color=NEUTRAL, linewidth=0.8)
    names = [clique_label(posterior.features.clique(int(k)), posterior.names) for k in table.index]
    ax.set_yticks(places, labels=names, fontsize=8)
    ax.set_ylim(-0.8, max(len(table) - 0.2, 0.8))
    beside = ax.get_yaxis_transform()
    for place, probability in zip(places.tolist(), table["different"]):
        text = f"{probability:.2f}"
        ax.text(1.01, float(place), text, transform=beside, va="center", fontsize=7, color=INK)
    ax.text(1.01, 0.0, "P(differs)", transform=ax.transAxes, va="top", fontsize=7, color=INK)
    ax.set_xlabel(
        f"difference of couplings, {short(groups[1])} less {short(groups[0])} (log odds)\n"
        "point: mean; line: 95 % interval; hollow: undecided",
        fontsize="small",
    )
    ax.set_ylabel("edge")
    ax.set_title(title or f"Couplings: {short(groups[1])} less {short(groups[0])}")
    plain(ax)
    return mark(ax, posterior)


def group_networks(
    source: Any, *, between: Sequence[Any] | None = None, thresholds: tuple[float, float] = (3, 10)
) -> Figure:
    """Draw the networks of two groups and the network of their differences side by side, in one layout.

    Parameters
    ----------
    source, between, thresholds
        As of :func:`difference_network`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import SpikeSlabMRF, plots
    >>> rng = np.random.default_rng(0)
    >>> X, city = rng.random((100, 3)) < 0.5, rng.random(100) < 0.5
    >>> model = SpikeSlabMRF(random_state=1, progress=False, max_draws=2000).fit(X, groups=city)
    >>> [ax.get_title() for ax in plots.group_networks(model).axes][:2]
    ['group: False', 'group: True']
    """
    from matplotlib.figure import Figure

    posterior = as_posterior(source)
    groups = _pair(posterior, between)
    positions = find_positions(edge_view(posterior))
    width, height = network_size(posterior.n_variables)
    figure = Figure(figsize=(3 * 0.9 * width, height), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, label in zip(axes, groups):
        network(posterior.of_group(label), ax, layout=positions,
        title=f"{posterior.info['strata']['group_name']}: "
                f"{short(label)}")  # fmt: skip
    difference_network(posterior, axes[2], between=groups, layout=positions, thresholds=thresholds)
    return figure
