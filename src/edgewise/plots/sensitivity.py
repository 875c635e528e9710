"""What another prior would say of the edges: those that change their verdict first."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.style import CYCLE, INK, MARKERS, PALE, new_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edgewise.posterior.sensitivity import Sensitivity

FARTHEST = 3.0


def sensitivity(
    source: Sensitivity | Any,
    ax: Axes | None = None,
    *,
    question: str = "evidence",
    edges: int = 25,
    thresholds: tuple[float, float] = (3, 10),
    title: str | None = None,
    wording: Callable[[str], str] = str,
) -> Axes:
    """Draw every edge under every prior, the edges that change their verdict first.

    Filled marks are of the fit and of weighted draws, hollow ones of new chains; a prior that was refused is
    not shown, and the title says so. Edges on which all priors agree come last.

    Parameters
    ----------
    source : Sensitivity, posterior or fitted estimator
        What :meth:`edgewise.Posterior.sensitivity` has found; otherwise it is asked, with weights alone.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    question : {"evidence", "inclusion", "edges"}
        Bayes factors, inclusion probabilities, or the expected number of edges under every prior.
    edges : int
        Number of edges to draw.
    thresholds : pair of float
        Bayes factors from which evidence counts, and counts as strong.
    title : str, optional
        Title of the axes; by default what was found.
    wording : function of a text
        Says the default title in the words of the caller.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.sensitivity(model.posterior_.sensitivity(draw=False)).get_xlabel()
    'Bayes factor for the edge'
    """
    if question not in ("evidence", "inclusion", "edges"):
        raise DataError(f"question must be 'evidence', 'inclusion' or 'edges', not {question!r}.")
    found: Any = source
    if not hasattr(found, "log10_bf"):
        posterior: Any = getattr(source, "posterior_", source)
        found = posterior.sensitivity(draw=False)
    known = found.known
    words = "\n".join(textwrap.wrap(short(wording(found.headline()), 500), 76))
    if question == "edges":
        return _numbers(found, known, ax, title or _with_refused(found, words))
    order = found.order[:edges]
    ax = new_axes(ax, 7.8, float(np.clip(0.27 * len(order) + 1.8, 3.2, 14)))
    values = found.log10_bf if question == "evidence" else found.inclusion
    shown = np.clip(values, -FARTHEST, FARTHEST) if question == "evidence" else values
    rows = np.arange(len(order))
    for row in rows:
        ax.plot(
            [np.nanmin(shown[known][:, order[row]]), np.nanmax(shown[known][:, order[row]])],
            [row, row],
            color=PALE,
            linewidth=3,
            zorder=1,
            solid_capstyle="round",
        )
    for number, k in enumerate(known):
        colour = CYCLE[number % len(CYCLE)]
        hollow = found.how[k] == "new chains"
        ax.scatter(
            shown[k, order],
            rows,
            marker=MARKERS[number % len(MARKERS)],
            s=34,
            facecolor="white" if hollow else colour,
            edgecolor=colour,
            linewidth=1.2,
            label=short(found.labels[k], 40) + (" (new chains)" if hollow else ""),
            zorder=3,
        )
    ax.set_yticks(rows, [short(str(found.candidates[a]), 40) for a in order], fontsize=8)
    ax.set_ylim(len(order) - 0.5, -0.5)
    changing = int((found.changes[order] > 0).sum())
    if 0 < changing < len(order):
        ax.axhline(changing - 0.5, color=INK, linewidth=0.8, linestyle=":")
    if question == "evidence":
        _evidence_axis(ax, thresholds)
    else:
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel("inclusion probability")
    ax.set_title(title or words, fontsize=11)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return ax


def _with_refused(found: Sensitivity, words: str) -> str:
    """The title of the number of edges, which is not about verdicts unless something is missing."""
    title = "Number of edges under each prior"
    return title if len(found.known) == len(found.labels) else f"{title}\n{words}"


def _evidence_axis(ax: Axes, thresholds: tuple[float, float]) -> None:
    low, high = (float(np.log10(value)) for value in thresholds)
    ax.axvspan(-low, low, color=PALE, alpha=0.45, zorder=0)
    for place in (-high, high):
        ax.axvline(place, color=PALE, linewidth=1, zorder=0)
    ticks = [-3, -2, -1, 0, 1, 2, 3]
    ax.set_xticks(ticks, ["1/1,000", "1/100", "1/10", "1", "10", "100", "1,000"], fontsize=8)
    ax.set_xlim(-FARTHEST - 0.15, FARTHEST + 0.15)
    ax.set_xlabel("Bayes factor for the edge")


def _numbers(found: Sensitivity, known: list[int], ax: Axes | None, title: str) -> Axes:
    ax = new_axes(ax, 6.4, float(max(0.4 * len(known) + 1.4, 2.4)))
    for row, k in enumerate(known):
        hollow = found.how[k] == "new chains"
        face = "white" if hollow else CYCLE[0]
        ax.scatter(found.n_edges[k], row, s=50, facecolor=face, edgecolor=CYCLE[0], zorder=3)
    ax.set_yticks(range(len(known)), [short(found.labels[k], 40) for k in known])
    ax.set_ylim(len(known) - 0.5, -0.5)
    ax.set_xlim(0, float(np.nanmax(found.n_edges)) * 1.1 + 1)
    ax.grid(axis="y", color=PALE, linewidth=0.8)
    ax.set_xlabel("expected number of edges")
    ax.set_title(title, fontsize=11)
    return ax
