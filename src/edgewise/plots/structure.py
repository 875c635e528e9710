"""The graph as a whole: how central its variables are, and which graphs are probable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.source import as_posterior
from edgewise.plots.style import INK, NEUTRAL, PALE, POSITIVE, clique_label, mark, new_axes, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edgewise.posterior.posterior import Posterior


def centrality(
    source: Any,
    ax: Axes | None = None,
    *,
    measure: str = "strength",
    variables: int = 40,
    title: str | None = None,
) -> Axes:
    """Plot how central every variable is, with its posterior interval.

    Parameters
    ----------
    source : Posterior or fitted SpikeSlabMRF
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    measure : str
        "strength", "expected influence", "degree", "betweenness", "closeness" or "eigenvector", as of
        :meth:`edgewise.Posterior.centrality`.
    variables : int
        Number of variables, the most central first.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(datasets.diabetes())
    >>> plots.centrality(model, measure="degree").get_xlabel()
    'degree: number of neighbours'
    """
    posterior = as_posterior(source)
    table = posterior.centrality(measure)
    table = table.sort_values("mean", ascending=False, kind="stable").head(max(variables, 1))
    table = table.iloc[::-1]
    places = np.arange(len(table))
    ax = new_axes(ax, 6.4, max(2.4, 1.2 + 0.23 * len(table)))
    ax.hlines(places, table["low"], table["high"], colors=POSITIVE, linewidth=1.6)
    ax.scatter(table["mean"], places, s=26, c=POSITIVE, zorder=3)
    if measure == "expected influence":
        ax.axvline(0, color=NEUTRAL, linewidth=0.8)
    ax.set_yticks(places, labels=[short(name) for name in table["variable"]], fontsize=8)
    ax.set_ylim(-0.8, len(table) - 0.2)
    ax.grid(axis="y", color=PALE, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.set_xlabel(MEASURES.get(measure, measure), fontsize="small")
    ax.set_ylabel("variable")
    count = posterior.n_variables
    what = f"the {len(table)} most central of {count:,}" if len(table) < count else "every variable"
    ax.set_title(title or f"Centrality of {what}\n(point: mean; line: 95 % interval)", fontsize="medium")
    plain(ax)
    return mark(ax, posterior)


MEASURES = {
    "strength": "strength: sum of the sizes of the couplings",
    "expected influence": "expected influence: sum of the couplings",
    "degree": "degree: number of neighbours",
    "betweenness": "betweenness: share of shortest paths that pass here",
    "closeness": "closeness: nearness to all others along paths",
    "eigenvector": "eigenvector centrality",
}


def structures(
    source: Any, ax: Axes | None = None, *, graphs: int = 20, rows: int = 25, title: str | None = None
) -> Axes:
    """Plot the most probable graphs: how probable each is, and in which edges they differ.

    Every column is a graph, the most probable first; the bar above is its share of the draws. A filled dot
    says that the edge of the row is in the graph, a hollow one that it is not. Edges that all of these graphs
    have, or none, are counted below and not drawn.

    Parameters
    ----------
    source : Posterior or fitted SpikeSlabMRF
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    graphs : int
        Number of graphs.
    rows : int
        Number of edges at most, those about which the graphs differ most.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(datasets.diabetes())
    >>> plots.structures(model, graphs=5).get_ylabel()
    'edges in which they differ'
    """
    posterior = as_posterior(source)
    if graphs < 1 or rows < 1:
        raise DataError(f"graphs and rows must be positive numbers, not {graphs} and {rows}.")
    share, inside, different = _frequent(posterior, graphs)
    shown = inside.shape[0]
    often = share @ inside / share.sum()
    order = np.argsort(np.abs(often - 0.5), kind="stable")
    varying = order[(inside.min(0) != inside.max(0))[order]]
    listed = varying[:rows]
    listed = listed[np.argsort(-often[listed], kind="stable")]
    ax = new_axes(ax, max(4.8, 2.6 + 0.24 * shown), max(3.2, 2.2 + 0.22 * len(listed)))
    # Bars stand on the rows of dots, in the same axes: a row is one unit high, the tallest bar `tall`.
    tall = max(4.0, 0.45 * len(listed))
    across = np.arange(shown)
    ax.bar(across, tall * share / share.max(), width=0.7, bottom=0.4, color=POSITIVE)
    for row, edge in enumerate(listed.tolist(), 1):
        there = inside[:, edge]
        ax.axhline(-row, color=PALE, linewidth=0.5, zorder=0)
        ax.scatter(across[there], np.full(there.sum(), -row), s=26, c=INK, zorder=2)
        ax.scatter(
            across[~there],
            np.full((~there).sum(), -row),
            s=26,
            facecolors="white",
            edgecolors=NEUTRAL,
            linewidths=0.7,
            zorder=2,
        )
    names = [clique_label(posterior.features.clique(k), posterior.names, 14) for k in listed.tolist()]
    ticks = [0.0, 0.5, 1.0]
    ax.set_yticks(
        [0.4 + tall * tick for tick in ticks] + [-row for row in range(1, len(listed) + 1)],
        labels=[f"{tick * share.max():.2g}" for tick in ticks] + names,
        fontsize=8,
    )
    ax.set_xticks(across, labels=[str(k + 1) for k in across], fontsize=7)
    ax.set_ylim(-len(listed) - 0.8, tall + 0.7)
    ax.set_xlim(-0.7, shown - 0.3)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    always, more = int(inside.all(0).sum()), len(varying) - len(listed)
    said = "1 edge is" if always == 1 else f"{always:,} edges are"
    facts = [f"{said} in all of them", f"and {more:,} more differ" if more > 0 else ""]
    ax.set_xlabel("graph, the most probable first\n" + "; ".join(filter(None, facts)), fontsize="small")
    ax.set_ylabel("edges in which they differ")
    how = f"{different:,} different graphs in {posterior.n_chains * posterior.n_draws:,} draws"
    ax.set_title(
        title or f"The {shown} most probable graphs and their probability\n({how})", fontsize="medium"
    )
    return mark(ax, posterior)


def _frequent(posterior: Posterior, graphs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Shares of the most frequent graphs, which candidates each has, and how many graphs there are."""
    table = posterior.graphs(graphs)
    inside = np.zeros((len(table), posterior.n_cliques), bool)
    for row, edges in enumerate(table["edges"]):
        inside[row, [posterior.features.index(edge, posterior.names) for edge in edges]] = True
    return table["probability"].to_numpy(), inside, int(table.attrs["n_different"])
