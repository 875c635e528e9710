"""Names that have changed: they work for one more version, with a warning that says the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from edgewise.posterior import columns, summaries

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

Old = Mapping[str, tuple[str, Callable[[Any], Any]]]


class OldNames:
    """Base of classes whose attributes have been renamed: `_OLD` says what to use instead, and how."""

    _OLD: ClassVar[Old] = {}

    # Not for type checkers, which are to find the old names.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in self._OLD:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
                )
            now, value = self._OLD[name]
            warnings.warn(
                f"{type(self).__name__}.{name} will go in the next version: use {now}.",
                DeprecationWarning,
                stacklevel=2,
            )
            return value(self)


def _clique_statistic(posterior: Posterior) -> Callable[..., np.ndarray]:
    def clique_statistic(
        statistic: str, given_inclusion: bool = False, coding: str = "binary", probability: float = 0.95
    ) -> np.ndarray:
        column = f"{statistic}_if_included" if given_inclusion else statistic
        return posterior.edge_values(column, coding=coding, probability=probability)

    return clique_statistic


def _edge_count_probability(posterior: Posterior) -> Any:
    import pandas

    number, count = np.unique(posterior.n_edges, return_counts=True)
    return pandas.Series(count / count.sum(), pandas.Index(number, name="edges"), name="probability")


class Density(NamedTuple):
    """Share of active candidates: its mean and standard deviation over the draws."""

    mean: float
    sd: float


def _density(posterior: Posterior) -> Density:
    share = posterior.n_edges / max(1, posterior.n_cliques)
    return Density(float(share.mean()), float(share.std(ddof=1)) if share.size > 1 else 0.0)


POSTERIOR: Old = {
    "inclusion_probability": ("edge_values('inclusion')", lambda p: p.edge_values("inclusion")),
    "inclusion_frequency": ("edge_values('frequency')", lambda p: p.edge_values("frequency")),
    "log10_bayes_factor": ("edge_values('log10_bf')", lambda p: p.edge_values("log10_bf")),
    "bayes_factor_bound": ("edge_values('bf_bound')", lambda p: p.edge_values("bf_bound")),
    "evidence": (
        "edge_values('evidence')",
        lambda p: lambda thresholds=(3, 10): p.edge_values("evidence", thresholds=thresholds),
    ),
    "clique_statistic": ("edge_values('mean') or edge_values('mean_if_included')", _clique_statistic),
    "pair_matrix": (
        "pair_values('inclusion') and the like",
        lambda p: lambda values: columns.pair_matrix(p, values),
    ),
    "shared_clique_probability": (
        "pair_values('adjacency')",
        lambda p: lambda: p.pair_values("adjacency"),
    ),
    "labels": ("candidates", lambda p: lambda: p.candidates.copy()),
    "bias": ("biases().mean(axis=(0, 1)) or bias_summary()", lambda p: p._bias),
    "edge_count": ("n_edges", lambda p: lambda: p.n_edges),
    "edge_count_probability": (
        "numpy.unique(posterior.n_edges, return_counts=True)",
        lambda p: lambda: _edge_count_probability(p),
    ),
    "density": ("n_edges / n_cliques", lambda p: lambda: _density(p)),
    "transitions": (
        "edge_values('flips') or diagnose(posterior).table",
        lambda p: lambda: summaries.transitions(p._table),
    ),
    "quality": ("edge_values('r_hat'), 'ess_bulk' or 'mcse'", lambda p: p._quality),
    "resolved_prior": ("prior.resolve(features, names)", lambda p: p._resolved_prior),
    "table": ("draws_of(edge), or draws", lambda p: p._table),
    "joined": ("Draws.concatenate(posterior.draws)", lambda p: p._joined),
    "edge_sums": ("edge_values('inclusion')", lambda p: p._edge_sums.by_chain()),
    "counters": ("diagnose(posterior).rates", lambda p: p._counters),
}

REWEIGHTED: Old = {"inclusion_probability": ("edge_inclusion", lambda result: result.edge_inclusion)}
