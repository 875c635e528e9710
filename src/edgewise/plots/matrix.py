"""The inclusion probabilities of all pairs as a matrix, related variables side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots.source import as_posterior, edge_view
from edgewise.plots.style import mark, named_ticks, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def inclusion_matrix(
    source: Any,
    ax: Axes | None = None,
    *,
    order: bool = True,
    title: str | None = None,
    numbers: bool | None = None,
) -> Axes:
    """Show the inclusion probability of every pair.

    Parameters
    ----------
    source : Posterior or fitted SpikeSlabMRF
        What to draw; a single model shows zeros and ones.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    order : bool
        Put variables that are probably linked beside each other (average-linkage clustering).
    title : str, optional
        Title of the axes.
    numbers : bool, optional
        Write the probabilities into the cells; by default up to 12 variables.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> ax = plots.inclusion_matrix(model)
    >>> ax.images[0].get_array().shape
    (4, 4)
    """
    view = edge_view(source)
    matrix = view.matrix(view.inclusion)
    places = cluster_order(matrix) if order else np.arange(len(matrix))
    shown = matrix[np.ix_(places, places)]
    np.fill_diagonal(shown, np.nan)
    count = len(shown)
    ax = new_axes(ax, *((6.6, 5.6) if count <= 40 else (8.2, 7.2)))
    picture = ax.imshow(shown, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    ax.set_facecolor("#E9E9E9")
    ax.figure.colorbar(picture, ax=ax, label="posterior inclusion probability", shrink=0.85)
    names = [view.names[i] for i in places]
    font = float(np.clip(11 - count / 10, 6, 9))
    named_ticks(ax.xaxis, names, 50, 16, rotation=90, fontsize=font)
    named_ticks(ax.yaxis, names, 50, 16, fontsize=font)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if numbers or (numbers is None and count <= 12):
        for i, j in zip(*np.nonzero(np.isfinite(shown))):
            ink = "white" if shown[i, j] > 0.55 else "black"
            ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=7, color=ink)
    how = "ordered by clustering" if order else "in the order of the columns"
    if count > 50:
        how += ", every k-th name"
    ax.set_title(title or f"Inclusion probability of every pair\n({how})", fontsize="medium")
    ax.set_xlabel("variable")
    ax.set_ylabel("variable")
    return mark(ax, as_posterior(source)) if view.evidence is not None else ax


def cluster_order(inclusion: np.ndarray) -> np.ndarray:
    """Order of the variables in which probable neighbours are close: deterministic, no seed."""
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    count = len(inclusion)
    if count < 3:
        return np.arange(count)
    distance = 1 - np.clip(np.nan_to_num(inclusion), 0, 1)
    np.fill_diagonal(distance, 0)
    condensed = squareform((distance + distance.T) / 2, checks=False)
    tree = linkage(condensed, "average")
    if count <= 250:
        tree = optimal_leaf_ordering(tree, condensed)
    return leaves_list(tree)
