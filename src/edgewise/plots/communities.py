"""Communities of variables: who belongs together, and how many communities there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.plots.groups import node_colours
from edgewise.plots.source import as_posterior
from edgewise.plots.style import INK, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 40


def communities(source: Any, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw how probably every two variables belong to the same community, ordered by community.

    Names have the colour of their community in the partition closest to all draws; below, the probability
    of each number of communities, with what the prior said in brackets.

    Parameters
    ----------
    source : Posterior or fitted estimator
        Fitted with ``Prior(inclusion=BlockInclusion())``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> from edgewise.priors import BlockInclusion, Prior
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(prior=Prior(BlockInclusion()), random_state=1, progress=False).fit(people)
    >>> plots.communities(model).get_ylabel()
    'variable'
    """
    found = as_posterior(source).communities()
    order = np.lexsort((-found.together.mean(axis=1), found.partition))
    p = len(order)
    side = float(np.clip(0.28 * p + 2.4, 4.5, 12))
    ax = new_axes(ax, side + 0.8, side)
    image = ax.imshow(
        found.together[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="probability of being in one community")
    ends = np.cumsum(np.bincount(found.partition))[:-1] - 0.5
    for end in ends:
        ax.axhline(end, color=INK, linewidth=1)
        ax.axvline(end, color=INK, linewidth=1)
    if p <= MOST_NAMES:
        single = found.partition.max() == 0
        colours = [INK] * p if single else node_colours(found.partition, True)
        names = [short(found.names[i], 24) for i in order]
        ax.set_yticks(range(p), names, fontsize=8)
        ax.set_xticks(range(p), names, fontsize=8, rotation=90)
        for ticks in (ax.get_yticklabels(), ax.get_xticklabels()):
            for text, i in zip(ticks, order):
                text.set_color(colours[i])
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    ax.set_ylabel("variable")
    likely = [k for k in np.argsort(-found.number, kind="stable")[:4] if found.number[k] > 0.005]
    words = ", ".join(f"{k}: {found.number[k]:.2f} ({found.prior_number[k]:.2f})" for k in sorted(likely))
    ax.set_xlabel(f"number of communities, probability (before the data):\n{words}", fontsize=9)
    count = len(found.members)
    said = (
        f"Communities: {count} in the closest partition" if count > 1 else "Communities: all variables in one"
    )
    ax.set_title(title or said)
    return ax
