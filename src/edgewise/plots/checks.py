"""Posterior predictive checks: does data made by the fitted model look like the data?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.source import as_posterior
from edgewise.plots.style import INK, NEGATIVE, NEUTRAL, POSITIVE, new_axes, plain, short, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {
    "means": "frequency of ones of each variable",
    "pairs": "frequency of joint ones of each pair",
    "triples": "frequency of joint ones of triples",
    "ones": "number of ones in a row",
}
LEVEL_KINDS = {
    "means": "frequency of each level of each variable",
    "pairs": "frequency of each pair of levels",
    "triples": "triples are for two levels",
    "ones": "sum of the levels of a row",
}


def predictive(
    source: Any,
    ax: Axes | None = None,
    *,
    data: Any = None,
    kind: str = "pairs",
    title: str | None = None,
    **options: Any,
) -> Axes:
    """Compare frequencies in the data with those in data made by the posterior.

    Parameters
    ----------
    source : PredictiveCheck, Posterior or fitted SpikeSlabMRF
        A check made before, or a posterior together with `data`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    data : BinaryData or rows, optional
        The data to compare with; needed unless `source` is a check.
    kind : {"pairs", "means", "triples", "ones"}
        Which frequencies.
    title : str, optional
        Title of the axes.
    **options
        Passed to :func:`edgewise.posterior.diagnostics.predictive_check`.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.predictive(model, data=people, kind="triples").get_xlabel()
    'in the data (share of the rows)'
    """
    if kind not in KINDS:
        raise DataError(f"There is no predictive check of {kind!r}; choose from {', '.join(KINDS)}.")
    check = _check(source, data, options)
    part = check.parts()[kind]
    if kind == "ones":
        ax = _counts(ax, check, part)
    else:
        ax = _against(ax, check, part, kind)
    words = KINDS | (LEVEL_KINDS if check.levels is not None else {})
    heading = f"Predictive check: {words[kind]}\n{part.inside:.0%} within their {check.probability:.0%} range"
    ax.set_title(title or heading, fontsize="medium")
    plain(ax)
    return ax


def predictive_panels(source: Any, *, data: Any = None, **options: Any) -> np.ndarray:
    """Draw the four predictive checks in one figure; returns its axes, two by two.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.predictive_panels(model, data=people).size >= 3
    True
    """
    from matplotlib import pyplot

    check = _check(source, data, options)
    axes: np.ndarray = pyplot.subplots(2, 2, figsize=(10, 8.4), layout="constrained")[1]
    for ax, kind in zip(axes.flat, KINDS):
        predictive(check, ax, kind=kind)
    return axes


def _check(source: Any, data: Any, options: dict[str, Any]) -> Any:
    if hasattr(source, "parts") and hasattr(source, "ones"):
        return source
    if data is None:
        raise DataError("A predictive check needs data=: the rows to compare with.")
    from edgewise.posterior.diagnostics import predictive_check

    return predictive_check(as_posterior(source), data, **options)


def _against(ax: Axes | None, check: Any, part: Any, kind: str) -> Axes:
    ax = new_axes(ax, 5.4, 5.2)
    if not len(part.observed):
        ax.text(0.5, 0.5, "nothing to compare", transform=ax.transAxes, ha="center", color=INK)
    inside = (part.observed >= part.low - 1e-12) & (part.observed <= part.high + 1e-12)
    few = len(inside) <= 600
    for chosen, shade, marker, word in (
        (inside, POSITIVE, "o", "inside"),
        (~inside, NEGATIVE, "^", "outside"),
    ):
        if few:
            ax.vlines(
                part.observed[chosen],
                part.low[chosen],
                part.high[chosen],
                colors=shade,
                linewidth=0.7,
                alpha=0.5,
            )
        size = float(np.clip(2500 / max(len(inside), 1), 4, 22))
        ax.scatter(
            part.observed[chosen],
            part.mean[chosen],
            s=size,
            c=shade,
            marker=marker,
            alpha=0.8,
            label=f"{word} the range: {int(chosen.sum()):,}",
        )
    high = float(max(part.observed.max(initial=0.05), part.high.max(initial=0.05))) * 1.04
    ax.plot([0, high], [0, high], color=NEUTRAL, linestyle="--", linewidth=1)
    if len(part.observed) and not inside.all():
        worst = int(np.argmax(np.where(np.isfinite(part.z), np.abs(part.z), 0)))
        ax.annotate(
            f"{short(check.label(kind, worst), 34)} (z = {part.z[worst]:+.1f})",
            (part.observed[worst], part.mean[worst]),
            (0.97, 0.04),
            textcoords="axes fraction",
            ha="right",
            fontsize=7,
            color=INK,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": NEUTRAL},
        )
    ax.set_xlim(0, high)
    ax.set_ylim(0, high)
    ax.set_aspect("equal")
    ax.set_xlabel("in the data (share of the rows)")
    ax.set_ylabel(f"in data made by the posterior\n(share; mean and {check.probability:.0%} range)")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return ax


def _counts(ax: Axes | None, check: Any, part: Any) -> Axes:
    ax = new_axes(ax, 5.8, 4.4)
    number = part.members[:, 0]
    ax.fill_between(number, part.low, part.high, step="mid", color=POSITIVE, alpha=0.25, linewidth=0)
    ax.step(
        number,
        part.mean,
        where="mid",
        color=POSITIVE,
        label=f"posterior: mean and {check.probability:.0%} range",
    )
    ax.plot(number, part.observed, "o", color=INK, markersize=4, label="data")
    seen = np.flatnonzero((part.observed > 0) | (part.high > 0))
    ax.set_xlim(number[seen[0]] - 0.8, number[seen[-1]] + 0.8)
    ax.set_ylim(bottom=0)
    whole_numbers(ax.xaxis)
    several = check.levels is not None
    ax.set_xlabel(
        "sum of the numbers of the levels in a row, from 0" if several else "number of ones in a row"
    )
    ax.set_ylabel("share of the rows")
    ax.legend(frameon=False, fontsize=8)
    return ax
