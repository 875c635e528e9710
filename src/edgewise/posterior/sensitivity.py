"""And with another prior? The same draws with other weights, or new chains that begin at the posterior.

Where two priors are close the draws of one serve for the other (docs/method.md, 8.7). Where they are not, the
weights say so, and new chains under the other prior begin where the old ones were: nothing is extrapolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.posterior import reweighting, summaries
from edgewise.priors import BetaInclusion, CauchySlab, FixedInclusion, FixedSlab, Prior

if TYPE_CHECKING:
    import pandas

    from edgewise.posterior.posterior import Posterior
    from edgewise.run.chains import RunResult

# Fewest effective draws that weights may leave of the slowest quantity.
FEWEST = 100.0
# Largest Monte Carlo error of a probability that verdicts under another prior need, and draws before a look.
COARSE, EARLY = 0.04, 250
# Beyond it the tail of the weights is too heavy for their mean to settle (Vehtari et al. 2024).
LARGEST_TAIL = 0.7
REWEIGHTED, NEW, REFUSED, OWN = "reweighted", "new chains", "refused", "as fitted"


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """What the posterior says under each of several priors; the first one is that of the fit.

    Attributes
    ----------
    labels : tuple of str
        Names of the priors.
    priors : tuple of Prior
        The priors.
    candidates : array of str (M,)
        Names of the edges.
    how : tuple of str
        "as fitted", "reweighted", "new chains" or "refused" (too far for weights, and no new chains wanted).
    effective : float array (K,)
        Draws that carry the weight, of all draws; NaN where chains are new.
    tail : float array (K,)
        Shape of the tail of the weights (Pareto's k); below 0.7 it can be trusted. NaN where chains are new.
    inclusion, mcse, log10_bf, mean : float arrays (K, M)
        Inclusion probabilities with their Monte Carlo errors, Bayes factors and mean couplings; NaN where
        refused.
    evidence : str array (K, M)
        Evidence categories; empty where refused.
    n_edges : float array (K,)
        Expected number of edges.
    """

    labels: tuple[str, ...]
    priors: tuple[Prior, ...]
    candidates: np.ndarray
    how: tuple[str, ...]
    effective: np.ndarray
    tail: np.ndarray
    inclusion: np.ndarray
    mcse: np.ndarray
    log10_bf: np.ndarray
    mean: np.ndarray
    evidence: np.ndarray
    n_edges: np.ndarray

    @property
    def changes(self) -> np.ndarray:
        """How far apart the verdicts of an edge are over the priors, in categories: int array (M,)."""
        level = {word: k for k, word in enumerate(summaries.EVIDENCE)}
        known = np.array([[level[word] for word in row] for row in self.evidence if row[0] in level])
        return np.asarray(np.ptp(known, axis=0))

    @property
    def order(self) -> np.ndarray:
        """The candidates, those that change their verdict most first, then by the range of their odds."""
        known = self.log10_bf[np.isfinite(self.log10_bf).all(axis=1)]
        return np.asarray(np.lexsort((-np.ptp(np.clip(known, -4, 4), axis=0), -self.changes)))

    def table(self) -> pandas.DataFrame:
        """One row per prior: how it was computed, and how many edges there are and are decided."""
        import pandas

        present = np.isin(self.evidence, ("presence", "strong presence")).sum(axis=1)
        absent = np.isin(self.evidence, ("absence", "strong absence")).sum(axis=1)
        refused = np.array([word == REFUSED for word in self.how])
        return pandas.DataFrame(
            {
                "prior": self.labels,
                "how": self.how,
                "effective_draws": self.effective,
                "tail": self.tail,
                "n_edges": self.n_edges,
                "present": np.where(refused, np.nan, present),
                "absent": np.where(refused, np.nan, absent),
                "undecided": np.where(refused, np.nan, self.evidence.shape[1] - present - absent),
            }
        )

    def edges(self, value: str = "inclusion") -> pandas.DataFrame:
        """One row per edge and one column per prior, the edges that change their verdict first.

        Parameters
        ----------
        value : {"inclusion", "mcse", "log10_bf", "mean", "evidence"}
            What to show.
        """
        import pandas

        if value not in ("inclusion", "mcse", "log10_bf", "mean", "evidence"):
            raise DataError(
                f"There is no {value!r} under each prior; choose inclusion, evidence, log10_bf, ..."
            )
        values = getattr(self, value)[:, self.order]
        table = pandas.DataFrame(
            values.T, pandas.Index(self.candidates[self.order], name="edge"), self.labels
        )
        table["changes"] = self.changes[self.order]
        return table

    def __str__(self) -> str:
        return self.table().to_string(index=False, float_format=lambda x: f"{x:.4g}")


def default_priors(prior: Prior) -> dict[str, Prior]:
    """Priors that a reviewer may ask for: other numbers of edges, narrower, wider and heavier slabs."""
    return {
        "p0 = 0.5": replace(prior, inclusion=FixedInclusion(0.5)),
        "p0 ~ Beta(1, 1)": replace(prior, inclusion=BetaInclusion(1, 1)),
        "p0 ~ Beta(1, 9)": replace(prior, inclusion=BetaInclusion(1, 9)),
        "sigma0 = 0.5": replace(prior, slab=FixedSlab(0.5)),
        "sigma0 = 2": replace(prior, slab=FixedSlab(2.0)),
        "Cauchy(1)": replace(prior, slab=CauchySlab(1.0)),
    }


def sensitivity(
    posterior: Posterior,
    priors: Mapping[str, Prior] | Sequence[Prior] | None = None,
    *,
    draw: bool = True,
    thresholds: tuple[float, float] = (3, 10),
    fewest: float = FEWEST,
    options: Mapping[str, Any] | None = None,
    result: RunResult | None = None,
) -> Sensitivity:
    """The posterior under other priors; see :meth:`edgewise.Posterior.sensitivity`.

    `result` is the run behind the posterior, where it is at hand: new chains then go on from its states, on
    what it has learned.
    """
    _refuse_unknown(posterior)
    chosen = _named(posterior, priors)
    rows: list[dict[str, Any]] = [_own(posterior, thresholds)]
    for number, prior in enumerate(chosen.values()):
        weights = reweighting.weights(posterior, prior)
        enough = weights is not None and (
            posterior._seen.min_bulk_ess * weights.share >= fewest and weights.tail < LARGEST_TAIL
        )
        if enough and weights is not None:
            rows.append(_reweighted(posterior, prior, weights, thresholds))
        elif draw:
            fresh = _new_chains(posterior, prior, number, dict(options or {}), result)
            rows.append({**_own(fresh, thresholds), "how": NEW, "effective": np.nan, "tail": np.nan})
        else:
            rows.append(_refused(posterior, weights))
    stacked = {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "how"}
    return Sensitivity(
        labels=("as fitted", *chosen),
        priors=(posterior.prior, *chosen.values()),
        candidates=posterior.candidates,
        how=tuple(row["how"] for row in rows),
        **stacked,
    )


def _refuse_unknown(posterior: Posterior) -> None:
    if posterior.info.get("warm_up_unfinished"):
        raise DataError(
            "This fit ended inside its warm-up, so that it has no posterior yet; go on with it first."
        )
    if posterior.info.get("strata"):
        raise DataError(
            "The couplings of this posterior differ between groups; its prior cannot be changed here."
        )


def _named(posterior: Posterior, priors: Mapping[str, Prior] | Sequence[Prior] | None) -> dict[str, Prior]:
    if priors is None:
        own = posterior.prior.to_dict()
        return {k: p for k, p in default_priors(posterior.prior).items() if p.to_dict() != own}
    chosen = dict(priors) if isinstance(priors, Mapping) else {prior_label(p): p for p in priors}
    for name, prior in chosen.items():
        if not isinstance(prior, Prior):
            raise DataError(f"{name!r} must be a Prior, not {prior!r}.")
    if not isinstance(priors, Mapping) and len(chosen) < len(priors):
        raise DataError(
            "Two of the priors are alike; give them names: sensitivity({'first': ..., 'second': ...})."
        )
    return chosen


def prior_label(prior: Prior) -> str:
    """A prior in one line.

    Examples
    --------
    >>> prior_label(Prior(inclusion=FixedInclusion(0.5)))
    'FixedInclusion(p0=0.5), GammaSlab(shape=5.0, rate=5.0)'
    """
    return f"{prior.inclusion!r}, {prior.slab!r}" if isinstance(prior, Prior) else repr(prior)


def _own(posterior: Posterior, thresholds: tuple[float, float]) -> dict[str, Any]:
    return {
        "how": OWN,
        "effective": float(posterior._table.total),
        "tail": np.nan,
        "inclusion": posterior.edge_values("inclusion"),
        "mcse": posterior.edge_values("mcse"),
        "log10_bf": posterior.edge_values("log10_bf"),
        "mean": posterior.edge_values("mean"),
        "evidence": posterior.edge_values("evidence", thresholds=thresholds).astype(object),
        "n_edges": float(posterior.n_edges.mean()),
    }


def _refused(posterior: Posterior, weights: reweighting.Weights | None) -> dict[str, Any]:
    unknown = np.full(posterior.n_cliques, np.nan)
    return {
        "how": REFUSED,
        "effective": np.nan if weights is None else weights.effective,
        "tail": np.nan if weights is None else weights.tail,
        **dict.fromkeys(("inclusion", "mcse", "log10_bf", "mean"), unknown),
        "evidence": np.full(posterior.n_cliques, "", object),
        "n_edges": np.nan,
    }


def _reweighted(
    posterior: Posterior, prior: Prior, weights: reweighting.Weights, thresholds: tuple[float, float]
) -> dict[str, Any]:
    table, draw = posterior._table, weights.draw
    owner, weight = table.owner, draw[table.position]
    inclusion = reweighting.frequency(table, weights)
    mean = np.bincount(owner, weight * table.value, table.n_cliques)
    # The error of the weighted frequency, and what the draws of an indicator are worth beside it.
    squares = np.bincount(owner, weight**2, table.n_cliques)
    spread = squares * (1 - 2 * inclusion) + inclusion**2 * float((draw**2).sum())
    worth = np.maximum(posterior._quality.ess, 1) / table.total
    odds = prior.resolve(posterior.features, posterior.names).prior_odds()
    factors, bound = summaries.log10_bayes_factors(
        inclusion, odds, weights.share * posterior._quality.ess, posterior._settled
    )
    return {
        "how": REWEIGHTED,
        "effective": weights.effective,
        "tail": weights.tail,
        "inclusion": inclusion,
        "mcse": np.sqrt(np.maximum(spread, 0) / worth),
        "log10_bf": factors,
        "mean": mean,
        "evidence": summaries.evidence_category(factors, thresholds, bound),
        "n_edges": float(inclusion.sum()),
    }


def _new_chains(
    posterior: Posterior, prior: Prior, number: int, options: dict[str, Any], result: RunResult | None
) -> Posterior:
    """The posterior under another prior, by chains that begin where those of this one were."""
    from edgewise.engines.protocol import Problem
    from edgewise.run.beginning import begun
    from edgewise.run.chains import run
    from edgewise.run.options import RunOptions

    if posterior.statistics.n_rows <= 0 or posterior.imputed is not None:
        raise DataError(
            "New chains need the sums of the data, and this posterior has imputed cells or no data: fit "
            "again with the other prior, or use draw=False."
        )
    scales = None if posterior.scales.all_binary else posterior.scales
    resolved = prior.resolve(posterior.features, posterior.names)
    problem = Problem(posterior.features, posterior.statistics, resolved, None, scales)
    given = {
        "progress": False,
        "seed": [_seed_of(posterior), 1 + number],
        "settings": dict(posterior.info.get("settings") or {}),
        "target_error": COARSE,
        "min_draws": min(EARLY, int(options.get("max_draws", EARLY))),
        **options,
    }
    chosen = RunOptions(engine=str(posterior.info.get("engine", "auto")), chains=posterior.n_chains, **given)
    previous = begun(problem, chosen, posterior.draws, posterior.edge_values("inclusion"), result)
    made = run(problem, chosen, previous=previous)
    return type(posterior)(
        made.draws,
        posterior.features,
        posterior.names,
        posterior.levels,
        posterior.statistics,
        prior,
        {**posterior.info, **made.info},
        made.edge_sums,
        made.counters,
        scales,
    )


def _seed_of(posterior: Posterior) -> int:
    seed = posterior.info.get("seed")
    found = seed[0] if isinstance(seed, list) and seed else seed
    return int(found) % 2**63 if isinstance(found, int) else 0
