"""What a prior expects: number of links, odds ratios, and networks drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots import layout as layouts
from edgewise.plots.style import INK, NEGATIVE, NODE, POSITIVE, plain
from edgewise.plots.traces import count_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edgewise.model.mrf import MRF
    from edgewise.priors import Prior

TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100)
ACROSS = 3
# Lines of a small network that the eye still tells apart.
MOST_LINES = 300


def prior_networks(
    prior: Prior | None = None,
    *,
    n_variables: int | None = None,
    n: int = 6,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> np.ndarray:
    """Draw what a prior expects of a network: above the number of links and their strength, below examples.

    Parameters
    ----------
    prior : Prior, optional
        The default one if left out.
    n_variables : int, optional
        Number of variables; by default 15, or those that the prior names.
    n : int
        Number of networks drawn from the prior; of more than 300 links the strongest are drawn.
    seed : int
        Of the networks.
    names : sequence of str, optional
        Names of the variables, where the prior is about some of them.

    Returns
    -------
    array of matplotlib axes
        The two distributions, then the networks.

    Examples
    --------
    >>> from edgewise import plots
    >>> from edgewise.priors import BetaInclusion, Prior
    >>> axes = plots.prior_networks(Prior(inclusion=BetaInclusion(1, 9)), n_variables=8)
    >>> axes.size > 1
    True
    """
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    from edgewise.priors import expect, networks

    if n < 1:
        raise DataError(f"n must be at least 1, not {n!r}.")
    found = expect(prior, n_variables, seed, names)
    across = min(ACROSS, max(n, 2))
    rows = -(-n // across)
    figure = pyplot.figure(figsize=(3.4 * across, 2.9 + 3.1 * rows), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[0.95, rows])
    above, below = parts
    top = above.subplots(1, 2)
    count_bars(top[0], found.edges)
    plain(top[0])
    top[0].set_xlabel("number of links")
    top[0].set_title(f"{found.n_variables} variables, {found.n_pairs:,} pairs")
    _odds_ratios(top[1], found.couplings)
    axes = list(top)
    places = below.subplots(rows, across, squeeze=False).ravel()
    for ax in places[n:]:
        ax.set_axis_off()
    axes += [
        _small_network(ax, model) for ax, model in zip(places, networks(prior, n_variables, n, seed, names))
    ]
    handles = [
        Line2D([], [], color=POSITIVE, linewidth=_width(np.log(3)), label="odds ratio 3"),
        Line2D([], [], color=NEGATIVE, linewidth=_width(np.log(3)), label="odds ratio 1/3"),
        Line2D([], [], color=POSITIVE, linewidth=_width(np.log(10)), label="odds ratio 10"),
    ]
    below.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return np.array(axes, object)


def _width(coupling: Any) -> Any:
    """Width of a line: the same for the same odds ratio in every network."""
    return np.clip(1.6 * np.abs(coupling), 0.25, 7.0)


def _small_network(ax: Axes, model: MRF) -> Axes:
    from matplotlib.collections import LineCollection

    positions, weights = layouts.circle(model.n_variables), np.asarray(model.weights)
    ends = np.array(model.cliques, int).reshape(-1, 2)
    count = len(weights)
    if count > MOST_LINES:
        strongest = np.argsort(np.abs(weights), kind="stable")[-MOST_LINES:]
        ends, weights = ends[strongest], weights[strongest]
    colours = np.where(weights > 0, POSITIVE, NEGATIVE)
    ax.add_collection(
        LineCollection(list(positions[ends]), colors=colours.tolist(), linewidths=_width(weights), alpha=0.75)
    )
    size = float(np.clip(900 / model.n_variables, 2, 60))
    line = 0.8 if model.n_variables <= 100 else 0.2
    ax.scatter(positions[:, 0], positions[:, 1], s=size, color=NODE, edgecolor=INK, linewidth=line, zorder=3)
    title = f"{count:,} link{'s' * (count != 1)}"
    ax.set_title(title if count == len(weights) else f"{title}, the {MOST_LINES:,} strongest", fontsize=10)
    ax.set_aspect("equal")
    ax.margins(0.08)
    ax.set_axis_off()
    return ax


def _odds_ratios(ax: Axes, couplings: np.ndarray) -> None:
    """Distribution of the odds ratios of links, those below one turned round."""
    sizes = np.minimum(np.abs(couplings), np.log(TICKS[-1]))
    edges = np.linspace(0, np.log(TICKS[-1]), 47)
    ax.hist(
        sizes, edges.tolist(), weights=np.full(len(sizes), 1 / max(len(sizes), 1)), color=POSITIVE, alpha=0.75
    )
    if len(sizes):
        median = float(np.median(sizes))
        beyond = median >= np.log(TICKS[-1])
        label = f"median above {TICKS[-1]}" if beyond else f"median {np.exp(median):.2g}"
        ax.axvline(median, color=INK, linewidth=1.2, linestyle="--", label=label)
        ax.legend(frameon=False, fontsize=8)
    ax.set_xticks(np.log(TICKS), [f"{tick:g}" for tick in TICKS[:-1]] + [f"{TICKS[-1]}+"])
    ax.set_xlabel("odds ratio of a link, or its inverse")
    ax.set_ylabel("share of the links")
    ax.set_title("How strong links are")
    plain(ax)
