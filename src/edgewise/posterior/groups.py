"""How groups differ: the three states of every pair, differences, and the posterior of one group (13.3)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.errors import DataError
from edgewise.posterior import levels, summaries

if TYPE_CHECKING:
    import pandas

    from edgewise.posterior.posterior import Posterior

STATES = ("absent", "same", "different")
# What is said of a difference, from the strongest evidence against it to the strongest for it.
ANSWERS = (
    "no difference (strong evidence)",
    "no difference",
    "undecided",
    "differs",
    "differs (strong evidence)",
)


def check_groups(posterior: Posterior) -> None:
    """Refuse a posterior without groups."""
    if not posterior.groups:
        raise DataError("No groups were compared; fit with groups=..., or --compare-groups, to do so.")


def difference_draws(posterior: Posterior, first: int = 0, second: int = 1) -> summaries.CliqueDraws:
    """The differences of two groups in all draws, ordered by candidate."""
    parts = [chain.differences(first, second) for chain in posterior.draws]
    return summaries.CliqueDraws.of(parts, posterior.n_cliques)


def state_probabilities(posterior: Posterior) -> np.ndarray:
    """Probabilities of the three states of every candidate: (M, 3)."""
    check_groups(posterior)
    sums = posterior._edge_sums
    frequency = summaries.chain_frequency(difference_draws(posterior))
    different = summaries.combine_inclusion(frequency, sums.get("tries"), sums.get("difference"))
    present = posterior._edge_inclusion
    different = np.minimum(different, present)
    return np.stack([1.0 - present, present - different, different], axis=1)


def prior_probabilities(posterior: Posterior) -> np.ndarray:
    """Prior probabilities of the three states: (M, 3)."""
    prior = posterior._resolved_prior
    odds = prior.prior_odds()
    with np.errstate(invalid="ignore"):
        present = np.where(np.isinf(odds), 1.0, odds / (1.0 + odds))
    q0 = prior.difference.q0
    return np.stack([1.0 - present, present * (1.0 - q0), present * q0], axis=1)


def bayes_factors(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Log10 Bayes factors of every state against the better of the other two (M, 3), and which are bounds.

    Against the two together a pair that is there for certain would count as evidence for a difference. As in
    (8.2), what so many effective draws cannot tell is not claimed.
    """
    found, prior = state_probabilities(posterior), prior_probabilities(posterior)
    apart = summaries.indicator_quality(difference_draws(posterior))
    effective = np.minimum(posterior._quality.ess, apart.ess)
    settled = posterior._settled
    if not settled:
        known = 1.0 if posterior.info.get("warm_up_unfinished") else posterior._seen.min_bulk_ess
        effective = np.minimum(effective, known)
    resolved = (1.0 / (np.maximum(effective, 1.0) + 1.0))[:, None]
    floored = found < (summaries.ROUNDING if settled else resolved)
    possible = prior > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        support = np.where(possible, np.log10(np.where(floored, resolved, found)) - np.log10(prior), -np.inf)
    factors, bounds = np.zeros(found.shape), np.full(found.shape, "", object)
    for k in range(3):
        others = [n for n in range(3) if n != k]
        best = np.array(others)[support[:, others].argmax(axis=1)]
        rows = np.arange(len(found))
        asked = possible[:, k] & possible[rows, best]
        with np.errstate(invalid="ignore"):
            factors[:, k] = np.where(asked, support[:, k] - support[rows, best], 0.0)
        bounds[floored[:, k], k] = "<"
        bounds[floored[rows, best], k] = ">"
        bounds[~asked, k] = "prior"
    return factors, bounds


def answers(factors: np.ndarray, bounds: np.ndarray, thresholds: tuple[float, float]) -> np.ndarray:
    """What is said of the difference of every candidate, in words."""
    words = summaries.evidence_category(factors, thresholds, bounds)
    known = dict(zip(summaries.EVIDENCE, ANSWERS))
    return np.array([known[word] for word in words], object)


def group_table(
    posterior: Posterior, thresholds: tuple[float, float], probability: float
) -> pandas.DataFrame:
    """See :meth:`edgewise.Posterior.group_summary`."""
    import pandas

    check_groups(posterior)
    labels = posterior.groups
    found, (factors, bounds) = state_probabilities(posterior), bayes_factors(posterior)
    words = answers(factors[:, 2], bounds[:, 2], thresholds)
    apart = summaries.indicator_quality(difference_draws(posterior))
    names = np.array(posterior.names, object)
    members = posterior.features.members
    means = [_group_means(posterior, k) for k in range(len(labels))]
    parts = []
    for first, second in itertools.combinations(range(len(labels)), 2):
        table = difference_draws(posterior, first, second)
        mean, sd = summaries.moments(table, False)
        _, low, high = summaries.quantities_of_order(table, probability, False)
        given, _ = summaries.moments(table, True)
        parts.append(
            pandas.DataFrame(
                {
                    "edge": posterior.candidates,
                    "variable_1": names[members[:, 0]],
                    "variable_2": names[members[:, 1]],
                    "group_1": labels[first],
                    "group_2": labels[second],
                    **{state: found[:, k] for k, state in enumerate(STATES)},
                    **{f"log10_bf_{state}": factors[:, k] for k, state in enumerate(STATES)},
                    "bf_bound": bounds[:, 2],
                    "answer": words,
                    "coupling_1": means[first],
                    "coupling_2": means[second],
                    "difference": mean,
                    "difference_sd": sd,
                    "hdi_low": low,
                    "hdi_high": high,
                    "difference_if_different": given,
                    "mcse_different": apart.mcse,
                    "ess_different": apart.ess,
                    "r_hat_different": apart.r_hat,
                }
            )
        )
    return pandas.concat(parts, ignore_index=True)


def _group_means(posterior: Posterior, group: int) -> np.ndarray:
    """Posterior mean of the couplings of one group: (M,)."""
    table = summaries.CliqueDraws.of(
        [chain.of_group(group) for chain in posterior.draws], posterior.n_cliques
    )
    return summaries.moments(table, False)[0]


def bias_table(posterior: Posterior, probability: float) -> pandas.DataFrame:
    """See :meth:`edgewise.Posterior.group_bias_summary`."""
    import pandas

    check_groups(posterior)
    each = [_group_biases(posterior, k) for k in range(len(posterior.groups))]
    parts = []
    for first, second in itertools.combinations(range(len(each)), 2):
        values = np.moveaxis(each[second] - each[first], 2, 0)
        parts.append(
            pandas.DataFrame(
                {
                    "variable": posterior.names,
                    "group_1": posterior.groups[first],
                    "group_2": posterior.groups[second],
                    "bias_1": each[first].mean(axis=(0, 1)),
                    "bias_2": each[second].mean(axis=(0, 1)),
                    **{
                        ("difference" if name == "mean" else name): column
                        for name, column in levels.described(values, probability).items()
                    },
                }
            )
        )
    return pandas.concat(parts, ignore_index=True)


def _group_biases(posterior: Posterior, group: int) -> np.ndarray:
    """Draws of the biases of one group: (chains, draws, p)."""
    assert posterior.strata is not None
    own = [k for k, of in enumerate(posterior.strata.group_of) if of == group]
    return posterior._biases_of(own)


def of_group(posterior: Posterior, label: Any) -> Posterior:
    """See :meth:`edgewise.Posterior.of_group`."""
    check_groups(posterior)
    assert posterior.strata is not None
    group = posterior.strata.group(label)
    rows = posterior.strata.rows_of_groups[group]
    return _part(posterior, group, _group_biases(posterior, group), rows, posterior.groups[group])


def of_stratum(posterior: Posterior, stratum: int) -> Posterior:
    """See :meth:`edgewise.Posterior.of_stratum`."""
    layout = posterior.strata
    if layout is None:
        raise DataError("The rows were not divided into strata; fit with groups=... or adjust=... to do so.")
    if not 0 <= stratum < layout.n_strata:
        raise DataError(f"There is no stratum {stratum!r}; there are {layout.n_strata}, from 0.")
    biases = posterior._biases_of([stratum])
    return _part(posterior, layout.group_of[stratum], biases, layout.rows[stratum], layout.names[stratum])


def _part(posterior: Posterior, group: int, biases: np.ndarray, rows: float, name: str) -> Posterior:
    from dataclasses import replace

    kept = {key: value for key, value in posterior.info.items() if key not in ("strata", "command")}
    draws: list[Draws] = []
    for chain, own in zip(posterior.draws, biases):
        plain = chain if chain.couplings is None else chain.of_group(group)
        draws.append(replace(plain, biases=np.ascontiguousarray(own)))
    return type(posterior)(
        draws,
        posterior.features,
        posterior.names,
        posterior.levels,
        posterior.statistics,
        posterior.prior,
        {**kept, "n_rows": rows, "part": name},
        posterior._edge_sums,
        posterior._counters,
    )
