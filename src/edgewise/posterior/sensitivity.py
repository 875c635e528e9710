"""And with another prior? The same draws with other weights, or new chains that begin at the posterior.

Where two priors are close the draws of one serve for the other (docs/method.md, 8.7). Where they are not, the
weights say so, and new chains under the other prior begin where the old ones were: nothing is extrapolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.posterior import reweighting, summaries
from edgewise.priors import BetaInclusion, CauchySlab, FixedInclusion, FixedSlab, GammaSlab, Prior

if TYPE_CHECKING:
    import pandas

    from edgewise.engines.protocol import Problem
    from edgewise.posterior.posterior import Posterior
    from edgewise.priors import ResolvedPrior
    from edgewise.run.chains import RunResult
    from edgewise.run.options import RunOptions

# Fewest effective draws that weights may leave of the slowest quantity.
FEWEST = 150.0
# Largest Monte Carlo error of a probability that verdicts under another prior need, and draws before a look.
COARSE, EARLY = 0.05, 160
# Monte Carlo errors that two probabilities must be apart for a change of verdict to count as one.
ERRORS_APART = 2.0
# Beyond it the tail of the weights is too heavy for their mean to settle (Vehtari et al. 2024).
LARGEST_TAIL = 0.7
REWEIGHTED, NEW, REFUSED, OWN = "reweighted", "new chains", "refused", "as fitted"
# What helps where a prior was refused; the last sentence of every reason.
DRAW = "Leave out draw=False, and new chains are drawn."
AGAIN = "Fit again with that prior."
LONGER = "Allow more time (max_time), or fit again with that prior."


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
        "as fitted", "reweighted", "new chains" or "refused" (too far for weights, and no new chains wanted or
        possible).
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
    reason : tuple of str
        Why a prior was refused and what helps, or what to know of its new chains; empty elsewhere.
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
    reason: tuple[str, ...] = ()

    @property
    def known(self) -> list[int]:
        """Numbers of the priors that were not refused; that of the fit is 0."""
        return [k for k, how in enumerate(self.how) if how != REFUSED]

    @cached_property
    def changes(self) -> np.ndarray:
        """How far apart the verdicts of an edge are over the priors, in categories: int array (M,).

        Two verdicts count as different only where the inclusion probabilities are more than two Monte Carlo
        errors apart, those of both combined: near a threshold the same probability, drawn twice, may get two
        words.
        """
        level = {word: k for k, word in enumerate(summaries.EVIDENCE)}
        rank = {k: np.array([level[word] for word in self.evidence[k]], int) for k in self.known}
        found = np.zeros(len(self.candidates), int)
        for k, m in combinations(self.known, 2):
            error = np.hypot(self.mcse[k], self.mcse[m])
            real = np.abs(self.inclusion[k] - self.inclusion[m]) > ERRORS_APART * error
            found = np.maximum(found, np.where(real, np.abs(rank[k] - rank[m]), 0))
        return found

    @cached_property
    def order(self) -> np.ndarray:
        """The candidates, those that change their verdict most first, then by the range of their odds."""
        odds = np.clip(self.log10_bf[self.known], -4, 4)
        return np.asarray(np.lexsort((-np.ptp(odds, axis=0), -self.changes)))

    def headline(self) -> str:
        """How many edges change their verdict, and for which priors nothing could be computed and why."""
        refused = [label for label, how in zip(self.labels, self.how) if how == REFUSED]
        others, words = len(self.labels) - 1, ""
        if len(refused) < others:
            changing = int((self.changes > 0).sum())
            noun = "edge changes its" if changing == 1 else "edges change their"
            words = f"{changing} of {len(self.candidates)} {noun} verdict with the prior."
        if not others:
            return "There is no other prior to compare with."
        if not refused:
            return words
        helps = dict.fromkeys(
            reason.rpartition(". ")[2] for reason, how in zip(self.reason, self.how) if how == REFUSED
        )
        whom = _listed(refused)
        if not words:
            return f"Nothing could be computed for any other prior ({whom}). {' '.join(helps)}".rstrip()
        return f"{words} Nothing could be computed for {whom}. {' '.join(helps)}".rstrip()

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
                "reason": self.reason or ("",) * len(self.labels),
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
        table = self.table().drop(columns="reason")
        lines = [table.to_string(index=False, float_format=lambda x: f"{x:.4g}"), self.headline()]
        lines += [f"{label}: {reason}" for label, reason in zip(self.labels, self.reason) if reason]
        return "\n".join(lines)


def _listed(labels: Sequence[str]) -> str:
    """Names of priors, the first few of them.

    Examples
    --------
    >>> _listed(["p0 = 0.5", "wide"])
    "'p0 = 0.5' and 'wide'"
    """
    quoted = [f"'{label}'" for label in labels]
    if len(quoted) > 4:
        return f"{', '.join(quoted[:3])} and {len(quoted) - 3} more"
    return " and ".join(part for part in (", ".join(quoted[:-1]), quoted[-1]) if part)


def default_priors(prior: Prior) -> dict[str, Prior]:
    """Priors that a reviewer may ask for: other numbers of edges, narrower, wider and heavier slabs."""
    return {
        "p0 = 0.5": replace(prior, inclusion=FixedInclusion(0.5)),
        "p0 ~ Beta(1, 1)": replace(prior, inclusion=BetaInclusion(1, 1)),
        "p0 ~ Beta(1, 9)": replace(prior, inclusion=BetaInclusion(1, 9)),
        "sigma0 = 0.5": replace(prior, slab=FixedSlab(0.5)),
        "sigma0 = 2": replace(prior, slab=FixedSlab(2.0)),
        "1/sigma0^2 ~ Gamma(1, 1)": replace(prior, slab=GammaSlab(1, 1)),
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
    # What is wrong with a prior or an option is said before anything is computed.
    resolved = [prior.resolve(posterior.features, posterior.names) for prior in chosen.values()]
    runs = [_run_options(posterior, number, options or {}) for number in range(len(chosen))] if draw else []
    rows: list[dict[str, Any]] = [_own(posterior, thresholds)]
    for number, prior in enumerate(chosen.values()):
        weights = reweighting.weights(posterior, prior)
        why, row = _distance(posterior, weights, fewest), None
        if weights is not None and not why:
            row = _reweighted(posterior, prior, weights, thresholds)
            largest, limit = float(row["mcse"].max()), max(COARSE, 1.5 * float(rows[0]["mcse"].max()))
            if largest > limit:
                why = f"Too far for weights: an error of {largest:.2f} would be left, {limit:.2g} is wanted."
        if row is not None and not why:
            rows.append(row)
            continue
        obstacle, fresh = _obstacle(posterior, resolved[number], draw), None
        if not obstacle:
            fresh, obstacle = _new_chains(posterior, prior, resolved[number], runs[number], result)
        if fresh is None:
            rows.append(_refused(posterior, weights, f"{why} {obstacle}"))
        else:
            new = {"how": NEW, "effective": np.nan, "tail": np.nan, "reason": obstacle}
            rows.append({**_own(fresh, thresholds), **new})
    words = ("how", "reason")
    stacked = {name: np.array([row[name] for row in rows]) for name in rows[0] if name not in words}
    return Sensitivity(
        labels=("as fitted", *chosen),
        priors=(posterior.prior, *chosen.values()),
        candidates=posterior.candidates,
        how=tuple(row["how"] for row in rows),
        reason=tuple(row["reason"] for row in rows),
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
    if isinstance(priors, Prior):
        raise DataError("Give the other priors as a list, [prior], or with their names, {'wide': prior}.")
    chosen = dict(priors) if isinstance(priors, Mapping) else {prior_label(p): p for p in priors}
    for name, prior in chosen.items():
        if not isinstance(name, str):
            raise DataError(f"The name of a prior must be a text, not {name!r}.")
        if name == OWN:
            raise DataError(
                f"{OWN!r} is what the prior of the fit is called here; give {prior!r} another name."
            )
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
        "reason": "",
        "effective": float(posterior._table.total),
        "tail": np.nan,
        "inclusion": posterior.edge_values("inclusion"),
        "mcse": posterior.edge_values("mcse"),
        "log10_bf": posterior.edge_values("log10_bf"),
        "mean": posterior.edge_values("mean"),
        "evidence": posterior.edge_values("evidence", thresholds=thresholds).astype(object),
        "n_edges": float(posterior.n_edges.mean()),
    }


def _distance(posterior: Posterior, weights: reweighting.Weights | None, fewest: float) -> str:
    """Why weights do not lead to a prior; empty where they may."""
    if weights is None:
        return "No weights lead from the prior of the fit to this one."
    left = posterior._seen.min_bulk_ess * weights.share
    if not left >= fewest:
        return f"Too far for weights: {left:.0f} effective draws would be left, and {fewest:g} are wanted."
    if not weights.tail < LARGEST_TAIL:
        return f"Too far for weights: a few draws would carry most of the weight (k = {weights.tail:.2f})."
    return ""


def _obstacle(posterior: Posterior, prior: ResolvedPrior, draw: bool) -> str:
    """Why there are no new chains under another prior, and what helps; empty where there may be."""
    engine = str(posterior.info.get("engine", "auto"))
    if posterior.imputed is not None:
        return f"New chains would have to draw the blank cells again, whose rows are not kept. {AGAIN}"
    if posterior.statistics.n_rows <= 0:
        return f"The sums of the data are not at hand, so that there are no new chains. {AGAIN}"
    if posterior.n_unlisted:
        return f"Only pairs that were ever active are kept, too few for new chains. {AGAIN}"
    if engine == "langevin":
        return f"New chains of the langevin engine would have to warm up for very long. {AGAIN}"
    if not draw:
        return DRAW
    from edgewise.engines.choose import load_engine, resolve

    kind = load_engine(resolve(engine, _problem(posterior, prior), posterior.info.get("settings")))
    if not prior.plain and not getattr(kind, "takes_any_prior", True):
        return f"The engine of the fit, {engine}, does not take such a prior. {AGAIN}"
    return ""


def _refused(posterior: Posterior, weights: reweighting.Weights | None, reason: str) -> dict[str, Any]:
    unknown = np.full(posterior.n_cliques, np.nan)
    return {
        "how": REFUSED,
        "reason": reason,
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
    mcse = reweighting.errors(table, weights, posterior._quality)
    odds = prior.resolve(posterior.features, posterior.names).prior_odds()
    factors, bound = summaries.log10_bayes_factors(
        inclusion, odds, weights.share * posterior._quality.ess, posterior._settled
    )
    return {
        "how": REWEIGHTED,
        "reason": "",
        "effective": weights.effective,
        "tail": weights.tail,
        "inclusion": inclusion,
        "mcse": mcse,
        "log10_bf": factors,
        "mean": mean,
        "evidence": summaries.evidence_category(factors, thresholds, bound),
        "n_edges": float(inclusion.sum()),
    }


def _run_options(posterior: Posterior, number: int, options: Mapping[str, Any]) -> RunOptions:
    """How to draw new chains under the prior of this number."""
    from edgewise.run.options import RunOptions

    given = dict(options)
    if "random_state" in given:
        given["seed"] = given.pop("random_state")
    known = sorted({field.name for field in fields(RunOptions)} - {"engine", "chains"})
    for name in given:
        if name not in known:
            raise DataError(f"New chains have no option {name!r}; they have {', '.join(known)}.")
    seed = given.pop("seed", None)
    first = [_seed_of(posterior)] if seed is None else np.atleast_1d(seed).tolist()
    chosen = {
        "progress": False,
        "seed": [*first, 1 + number],
        "settings": dict(posterior.info.get("settings") or {}),
        "target_error": COARSE,
        "min_draws": min(EARLY, int(given.get("max_draws", EARLY))),
        **given,
    }
    return RunOptions(engine=str(posterior.info.get("engine", "auto")), chains=posterior.n_chains, **chosen)


def _problem(posterior: Posterior, prior: ResolvedPrior) -> Problem:
    from edgewise.engines.protocol import Problem

    scales = None if posterior.scales.all_binary else posterior.scales
    return Problem(posterior.features, posterior.statistics, prior, None, scales)


def _new_chains(
    posterior: Posterior, prior: Prior, resolved: ResolvedPrior, options: RunOptions, result: RunResult | None
) -> tuple[Posterior | None, str]:
    """The posterior under another prior, by chains that begin where those of this one were.

    With it what is to be known of it; None, and why, where the chains have come to nothing.
    """
    from edgewise.run.beginning import begun
    from edgewise.run.chains import run

    problem = _problem(posterior, resolved)
    try:
        previous = begun(problem, options, posterior.draws, posterior.edge_values("inclusion"), result)
        made = run(problem, options, previous=previous)
    except DataError as error:
        return None, f"New chains are refused: {str(error).rstrip('.')}. {AGAIN}"
    if made.info["interrupted"]:
        raise KeyboardInterrupt("Interrupted while new chains were drawn; nothing is lost but their draws.")
    if made.info["warm_up_unfinished"]:
        return None, f"The new chains were stopped while they warmed up. {LONGER}"
    early = made.info["stop_reason"] != "target_ess"
    words = "The new chains ended before they were as precise as wanted; mcse says how precise they are."
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
        problem.scales,
    ), words if early else ""


def _seed_of(posterior: Posterior) -> int:
    seed = posterior.info.get("seed")
    found = seed[0] if isinstance(seed, list) and seed else seed
    return int(found) % 2**63 if isinstance(found, int) else 0
