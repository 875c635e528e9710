"""Quantities along the chains: their distribution, trace and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.source import as_posterior
from edgewise.plots.style import (
    INK,
    LINE_STYLES,
    NEUTRAL,
    POSITIVE,
    clique_label,
    colour,
    new_axes,
    plain,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edgewise.posterior.posterior import Posterior

Parameter = str | Sequence[int | str]

_WORDS = {
    "edge_count": "number of edges",
    "p0": "inclusion rate p0 (probability)",
    "sigma0": "slab scale sigma0 (log odds)",
}


def chain_values(posterior: Posterior, parameter: Parameter) -> tuple[np.ndarray, str]:
    """Values of a quantity, chain by draw, and what to call it.

    `parameter` is "edge_count", "p0", "sigma0" or an edge: its two names or indices, or its label.
    """
    draws = posterior.draws
    if isinstance(parameter, str) and parameter in _WORDS:
        if parameter == "edge_count":
            values = [chain.n_edges for chain in draws]
        elif parameter == "p0":
            _refuse_model(posterior)
            values = [chain.inclusion_rate for chain in draws]
        else:
            values = [chain.slab_scale for chain in draws]
        return np.array(values), _WORDS[parameter]
    edge = _parse_edge(posterior, parameter)
    index = posterior.features.index(edge, posterior.names)
    label = clique_label(posterior.features.clique(index), posterior.names)
    return np.array([chain.column(index) for chain in draws]), f"coupling of {label} (log odds)"


def _refuse_model(posterior: Posterior) -> None:
    """Say what takes the place of p0 where a model of inclusion does."""
    from edgewise.priors import AttributeInclusion, BlockInclusion

    inclusion = getattr(getattr(posterior, "prior", None), "inclusion", None)
    if isinstance(inclusion, BlockInclusion):
        raise DataError(
            "This posterior has no p0: its prior is a block model, in which every two communities have an "
            "inclusion probability of their own. Plot the communities, or the number of edges."
        )
    if isinstance(inclusion, AttributeInclusion):
        raise DataError(
            "This posterior has no p0: its prior is a regression on attributes, whose coefficients are in "
            "the summary. Plot the number of edges."
        )


def _parse_edge(posterior: Posterior, parameter: Parameter) -> Sequence[int | str]:
    if not isinstance(parameter, str):
        return parameter
    for mark in (" -- ", "--", ","):
        parts = [part.strip() for part in parameter.split(mark)]
        if len(parts) > 1 and all(part in posterior.names for part in parts):
            return parts
    raise DataError(
        f"There is nothing called {parameter!r} to plot; use 'edge_count', 'p0', 'sigma0' or an edge "
        f"such as '{posterior.names[0]} -- {posterior.names[-1]}'."
    )


def histogram(
    source: Any, parameter: Parameter = "edge_count", ax: Axes | None = None, *, title: str | None = None
) -> Axes:
    """Plot the posterior distribution of the number of edges, p0, sigma0 or a coupling.

    The dashed line is the prior where the quantity has one.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.histogram(model, parameter="sigma0").get_xlabel()
    'slab scale sigma0 (log odds)'
    """
    posterior = as_posterior(source)
    values, label = chain_values(posterior, parameter)
    flat = values.ravel()
    ax = new_axes(ax, 5.6, 3.6)
    if parameter == "edge_count":
        count_bars(ax, flat)
    else:
        edges = _bin_edges(flat[flat != 0] if parameter not in _WORDS else flat)
        ax.hist(flat[flat != 0], edges.tolist(), density=True, color=POSITIVE, alpha=0.75, label="posterior")
        ax.set_ylabel("density")
        if parameter in _WORDS:
            _draw_prior(ax, posterior, str(parameter), edges)
    if parameter not in _WORDS:
        share = float((flat != 0).mean())
        ax.set_ylabel("density given inclusion")
        ax.text(
            0.02, 0.96, f"included with probability {share:.2f}", transform=ax.transAxes, va="top", fontsize=8
        )
    ax.set_xlabel(label)
    ax.set_title(title or f"Posterior of the {label.split(' (')[0]}")
    plain(ax)
    return ax


def edge_count(source: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Plot the posterior distribution of the number of edges.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.edge_count(model).get_xlabel()
    'number of edges'
    """
    return histogram(source, "edge_count", ax, **options)


def inclusion_rate(source: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Plot the posterior distribution of the inclusion rate p0, with its prior.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.inclusion_rate(model).get_xlabel()
    'inclusion rate p0 (probability)'
    """
    return histogram(source, "p0", ax, **options)


def slab_scale(source: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Plot the posterior distribution of the slab scale sigma0, with its prior.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.slab_scale(model).get_xlabel()
    'slab scale sigma0 (log odds)'
    """
    return histogram(source, "sigma0", ax, **options)


def count_bars(ax: Axes, counts: np.ndarray) -> None:
    """Bars of how often each number of edges occurs, with the mean."""
    low, high = int(counts.min()), int(counts.max())
    width = max(1, -(-(high - low + 1) // 60))
    edges = (np.arange(low, high + width + 1, width) - 0.5).tolist()
    ax.hist(
        counts, edges, weights=np.full(len(counts), 1 / len(counts)), color=POSITIVE, alpha=0.75, rwidth=0.92
    )
    ax.axvline(counts.mean(), color=INK, linewidth=1.2, linestyle="--", label=f"mean {counts.mean():.1f}")
    ax.set_ylabel("probability" if width == 1 else f"probability per {width} edges")
    whole_numbers(ax.xaxis)
    if high - low < 4:
        ax.set_xlim(max(low - 2.5, -0.75), high + 2.5)
    ax.legend(frameon=False, fontsize=8)


def _bin_edges(values: np.ndarray) -> np.ndarray:
    if not len(values):
        return np.linspace(-1, 1, 11)
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9 * max(abs(high), 1.0):
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    return np.linspace(low, high, int(np.clip(len(values) ** 0.5, 10, 50)) + 1)


def prior_density(posterior: Posterior, parameter: str, places: np.ndarray) -> np.ndarray | None:
    """Prior density of "p0" or "sigma0" at `places`; None where the prior is a fixed value or unknown."""
    from edgewise.priors import BetaInclusion, GammaSlab

    prior = getattr(posterior, "prior", None)
    if prior is None:
        return None
    part = prior.inclusion if parameter == "p0" else prior.slab if parameter == "sigma0" else None
    density: np.ndarray | None = None
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(part, BetaInclusion):
            a, b = part.a, part.b
            log_norm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
            density = np.exp(log_norm + (a - 1) * np.log(places) + (b - 1) * np.log1p(-places))
        elif isinstance(part, GammaSlab):
            # The precision is Gamma(shape, rate); |d precision / d sigma| = 2 sigma^-3.
            log_norm = part.shape * math.log(part.rate) - math.lgamma(part.shape) + math.log(2)
            density = np.exp(log_norm - (2 * part.shape + 1) * np.log(places) - part.rate / places**2)
    return density


def _draw_prior(ax: Axes, posterior: Posterior, parameter: str, edges: np.ndarray) -> None:
    reach = 0.35 * (edges[-1] - edges[0])
    low = max(edges[0] - reach, 1e-3)
    high = edges[-1] + reach
    places = np.linspace(low, min(high, 0.999) if parameter == "p0" else high, 200)
    density = prior_density(posterior, parameter, places)
    if density is None:
        return
    ax.plot(places, density, color=INK, linestyle="--", linewidth=1.2, label="prior")
    ax.legend(frameon=False, fontsize=8)


def trace(
    source: Any, ax: Axes | None = None, *, parameter: Parameter = "edge_count", title: str | None = None
) -> Axes:
    """Plot a quantity along every chain.

    Chains that mix look alike: the same level, the same spread, no drift. `parameter` is "edge_count",
    "p0", "sigma0" or an edge.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> ax = plots.trace(model, parameter="edge_count")
    >>> len(ax.lines)
    4
    """
    posterior = as_posterior(source)
    values, label = chain_values(posterior, parameter)
    ax = new_axes(ax, 7.2, 3.2)
    for k, chain in enumerate(values):
        style = LINE_STYLES[k // 8 % len(LINE_STYLES)]
        ax.plot(
            np.arange(1, len(chain) + 1),
            chain,
            color=colour(k),
            linewidth=0.6,
            alpha=0.8,
            linestyle=style,
            label=f"chain {k + 1}",
        )
    ax.set_xlabel("kept draw")
    ax.set_ylabel(label, wrap=True)
    ax.set_title(title or f"Trace of the {label.split(' (')[0]}")
    ax.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    plain(ax)
    return ax


def rank(
    source: Any,
    ax: Axes | None = None,
    *,
    parameter: Parameter = "edge_count",
    bins: int = 20,
    title: str | None = None,
) -> Axes:
    """Plot how the ranks of every chain are spread among all draws.

    If the chains agree, every line stays near the dashed one; the band holds about 99 of 100 values of
    independent draws (correlated ones stray farther). Ties, as in counts, share their ranks.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.rank(model, parameter="body mass -- progression").get_xlabel()
    'rank among all draws (share)'
    """
    posterior = as_posterior(source)
    values, label = chain_values(posterior, parameter)
    chains, length = values.shape
    ax = new_axes(ax, 6.4, 3.4)
    bins = max(2, min(bins, length // 5 or 2))
    # Equal values are spread evenly over the ranks they share, so that ties cannot look like disagreement.
    shares = rank_shares(values, bins)
    share = 1 / bins
    spread = 2.58 * (share * (1 - share) / length) ** 0.5
    centres = (np.arange(bins) + 0.5) / bins
    ax.axhspan(max(0, share - spread), share + spread, color="#E8E8E8", zorder=0)
    ax.axhline(share, color=NEUTRAL, linestyle="--", linewidth=1)
    for k in range(chains):
        style = LINE_STYLES[k // 8 % len(LINE_STYLES)]
        ax.step(
            centres,
            shares[k],
            where="mid",
            color=colour(k),
            linewidth=1.3,
            linestyle=style,
            label=f"chain {k + 1}",
        )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, max(2.2 * share, float(shares.max()) * 1.1))
    ax.set_xlabel("rank among all draws (share)")
    ax.set_ylabel("share of the chain's draws")
    ax.set_title(title or f"Ranks of the {label.split(' (')[0]}")
    ax.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    plain(ax)
    return ax


def rank_shares(values: np.ndarray, bins: int) -> np.ndarray:
    """Share of each chain's draws in each bin of the common ranks, ties spread over their ranks."""
    flat = values.ravel()
    _, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True)
    stop = np.cumsum(counts) / len(flat)
    start = stop - counts / len(flat)
    limits = np.linspace(0, 1, bins + 1)
    overlap = np.minimum(stop[:, None], limits[1:]) - np.maximum(start[:, None], limits[:-1])
    weights = np.maximum(overlap, 0) / (stop - start)[:, None]
    owner = inverse.reshape(values.shape)
    return np.array(
        [np.bincount(chain, minlength=len(counts)) @ weights / values.shape[1] for chain in owner]
    )


def trace_panels(source: Any, parameters: Sequence[Parameter] | None = None) -> np.ndarray:
    """Plot trace and ranks of several quantities in one figure; returns the axes, one row per quantity.

    By default these are the number of edges, p0 where there is one, and sigma0.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets, plots
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> plots.trace_panels(model).size >= 3
    True
    """
    from matplotlib import pyplot

    posterior = as_posterior(source)
    if parameters is None:
        model = posterior._resolved_prior.model is not None
        parameters = ("edge_count", "sigma0") if model else ("edge_count", "p0", "sigma0")
    axes = pyplot.subplots(
        len(parameters), 2, figsize=(11, 2.7 * len(parameters)), layout="constrained", squeeze=False
    )[1]
    for row, parameter in zip(axes, parameters):
        trace(posterior, row[0], parameter=parameter)
        rank(posterior, row[1], parameter=parameter)
        row[0].get_legend().remove()
    return axes
