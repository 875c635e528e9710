"""Numbers from sparse draws, on plain arrays: frequencies, moments, intervals, flips and ragged counts.

Nothing here knows names, files or tables. ``CliqueDraws`` turns the draws of all chains around once, from
"the active cliques of each draw" to "the draws of each clique"; everything else is a pass over that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.draws import Draws

_CELLS_AT_ONCE = 250_000
# Indicators active in at most this share of the draws are followed through their ones alone.
_RARE = 0.05
# Probabilities closer than this to 0 or 1 drown in the rounding of the sums they come from.
ROUNDING = 1e-12
# Median, lower and upper end, each (M,).
Intervals = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class CliqueDraws:
    """The draws of all chains, ordered by clique.

    Attributes
    ----------
    pointer : int64 array (M + 1,)
        Clique ``k`` owns the entries ``pointer[k]:pointer[k + 1]`` of ``position`` and ``value``.
    position : int32 array
        Draw number of the entry, counted through all chains: ``chain * n_draws + draw``; ascending.
    value : float64 array
        Parameter of the clique in that draw.
    """

    pointer: np.ndarray
    position: np.ndarray
    value: np.ndarray
    n_chains: int
    n_draws: int

    @classmethod
    def of(cls, chains: Sequence[Draws], n_cliques: int) -> CliqueDraws:
        """Turn the draws around."""
        from scipy.sparse import csr_array

        starts = np.cumsum([0] + [int(chain.indptr[-1]) for chain in chains])
        pointer = np.concatenate([[0]] + [chain.indptr[1:] + start for chain, start in zip(chains, starts)])
        total = len(pointer) - 1
        by_draw = csr_array(
            (
                np.concatenate([chain.values for chain in chains]),
                np.concatenate([chain.indices for chain in chains]),
                pointer,
            ),
            shape=(total, n_cliques),
        )
        by_clique = by_draw.tocsc()
        return cls(
            by_clique.indptr.astype(np.int64), by_clique.indices, by_clique.data, len(chains), len(chains[0])
        )

    @property
    def n_cliques(self) -> int:
        """Number of candidates M."""
        return len(self.pointer) - 1

    @property
    def total(self) -> int:
        """Number of draws of all chains together."""
        return self.n_chains * self.n_draws

    @property
    def counts(self) -> np.ndarray:
        """Number of draws in which each clique is active."""
        return np.diff(self.pointer)

    @cached_property
    def owner(self) -> np.ndarray:
        """Clique of every entry."""
        return np.repeat(np.arange(self.n_cliques, dtype=np.int32), self.counts)

    def dense(self, cliques: np.ndarray, indicator: bool = False) -> np.ndarray:
        """Parameters (or 0/1 indicators) of some cliques: (cliques, chains, draws), zero where absent."""
        result = np.zeros((len(cliques), self.total))
        for row, clique in enumerate(cliques):
            part = slice(self.pointer[clique], self.pointer[clique + 1])
            result[row, self.position[part]] = 1.0 if indicator else self.value[part]
        return result.reshape(len(cliques), self.n_chains, self.n_draws)

    def ones(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[int, int, int]]:
        """Where the indicators of the masked cliques are one: row among them, draw, and the dense shape."""
        owner = self.owner
        chosen = mask[owner]
        row = (np.cumsum(mask) - 1)[owner[chosen]]
        return row, self.position[chosen], (int(mask.sum()), self.n_chains, self.n_draws)

    def batches(self, cliques: np.ndarray) -> list[np.ndarray]:
        """Cut a list of cliques so that the dense draws of each piece fit comfortably in memory."""
        step = max(1, _CELLS_AT_ONCE // max(1, self.total))
        return [cliques[start : start + step] for start in range(0, len(cliques), step)]


def chain_frequency(table: CliqueDraws) -> np.ndarray:
    """Fraction of draws in which each clique is active, per chain: (chains, M)."""
    chain = table.position // table.n_draws
    flat = chain * np.int64(table.n_cliques) + table.owner
    counts = np.bincount(flat, minlength=table.n_chains * table.n_cliques)
    return counts.reshape(table.n_chains, table.n_cliques) / table.n_draws


def transitions(table: CliqueDraws) -> tuple[np.ndarray, np.ndarray]:
    """Number of 0 -> 1 and of 1 -> 0 steps of each indicator between neighbouring draws of a chain."""
    draw = table.position % table.n_draws
    owner = table.owner
    same_run = np.zeros(len(owner), bool)
    if len(owner) > 1:
        same_run[1:] = (owner[1:] == owner[:-1]) & (table.position[1:] == table.position[:-1] + 1)
        same_run[1:] &= draw[1:] > 0
    starts = ~same_run & (draw > 0)
    ends = np.ones(len(owner), bool)
    ends[:-1] = ~same_run[1:]
    ends &= draw < table.n_draws - 1
    count = table.n_cliques
    return np.bincount(owner[starts], minlength=count), np.bincount(owner[ends], minlength=count)


def combine_inclusion(frequency: np.ndarray, tries: np.ndarray | None, sums: np.ndarray | None) -> np.ndarray:
    """Inclusion probability of each clique from all chains (8.1).

    Each chain gives the mean of its acceptance-based probabilities where it decided the clique at least
    once and all of them are numbers, and the frequency among its draws otherwise. Chains count equally:
    they are equally long, while the number of tries follows each chain's own adaptation and so may go along
    with its answer.
    """
    if tries is None or sums is None:
        estimate = frequency
    else:
        told = (tries > 0) & np.isfinite(sums)
        estimate = np.clip(np.where(told, sums / np.maximum(tries, 1e-300), frequency), 0.0, 1.0)
    result: np.ndarray = estimate.mean(axis=0)
    return result


def moments(table: CliqueDraws, given_inclusion: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each parameter, over all draws or those in which it is active.

    Given inclusion, both are NaN where a clique was never active, and the deviation where it was once.
    """
    counts = table.counts
    owner = table.owner
    sums = np.bincount(owner, table.value, table.n_cliques)
    divisor = counts if given_inclusion else np.full(table.n_cliques, table.total)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / divisor
        squares = np.bincount(owner, (table.value - mean[owner]) ** 2, minlength=table.n_cliques).astype(
            float
        )
        if not given_inclusion:
            squares += (table.total - counts) * mean**2
        sd = np.sqrt(squares / (divisor - 1))
    if given_inclusion:
        sd[counts < 2] = np.nan
    elif table.total < 2:
        sd[:] = 0.0
    return mean, sd


def shortest_interval(ordered: np.ndarray, probability: float) -> tuple[np.ndarray, np.ndarray]:
    """Shortest interval that holds the share `probability` of each row of sorted values.

    Examples
    --------
    >>> low, high = shortest_interval(np.array([[0.0, 0.0, 0.0, 1.0, 5.0]]), 0.8)
    >>> float(low[0]), float(high[0])
    (0.0, 1.0)
    """
    total = ordered.shape[-1]
    inside = min(total, max(1, math.ceil(probability * total - 1e-9)))
    widths = ordered[..., inside - 1 :] - ordered[..., : total - inside + 1]
    first = widths.argmin(axis=-1)[..., None]
    low = np.take_along_axis(ordered, first, -1)[..., 0]
    return low, np.take_along_axis(ordered, first + inside - 1, -1)[..., 0]


def quantities_of_order(table: CliqueDraws, probability: float, given_inclusion: bool) -> Intervals:
    """Median and shortest interval of each parameter, over all draws or those in which it is active."""
    median, low, high = (np.full(table.n_cliques, np.nan if given_inclusion else 0.0) for _ in range(3))
    counts = table.counts
    if given_inclusion:
        for clique in np.flatnonzero(counts):
            values = np.sort(table.value[table.pointer[clique] : table.pointer[clique + 1]])
            median[clique] = np.median(values)
            low[clique], high[clique] = shortest_interval(values, probability)
        return median, low, high
    # Where the zeros alone fill the interval (and more than half), they are the whole answer.
    zeros = table.total - counts
    needed = np.flatnonzero(zeros < max(math.ceil(probability * table.total - 1e-9), table.total // 2 + 1))
    for cliques in table.batches(needed):
        ordered = np.sort(table.dense(cliques).reshape(len(cliques), -1), axis=1)
        median[cliques] = np.median(ordered, axis=1)
        low[cliques], high[cliques] = shortest_interval(ordered, probability)
    return median, low, high


@dataclass(frozen=True, eq=False)
class IndicatorQuality:
    """How well the chains have explored each indicator; arrays (M,).

    Attributes
    ----------
    r_hat : rank-normalised split R-hat; 1 where nothing ever flips, NaN with fewer than four draws
    ess : bulk effective number of draws; `typical` where nothing ever flips
    mcse : Monte Carlo standard error of the frequency
    varies : whether the indicator takes both values anywhere
    typical : effective number of draws of an ordinary quantity of this run
    """

    r_hat: np.ndarray
    ess: np.ndarray
    mcse: np.ndarray
    varies: np.ndarray
    typical: float


def indicator_quality(table: CliqueDraws, moving: np.ndarray | None = None) -> IndicatorQuality:
    """R-hat, effective draws and error of every indicator, computed only for those that vary.

    `moving` holds other quantities (k, chains, draws), such as p0 and sigma0; they say how many draws are
    effective when no indicator varies at all.
    """
    counts = table.counts
    varies = (counts > 0) & (counts < table.total)
    r_hat = np.ones(table.n_cliques)
    ess = np.full(table.n_cliques, np.nan)
    if table.n_draws < convergence.FEWEST_DRAWS:
        r_hat[:] = np.nan
        typical = float(table.n_chains)
        ess[:] = typical
    else:
        rare = varies & (counts <= _RARE * table.total)
        r_hat[varies] = convergence.sparse_indicator_r_hat(*table.ones(varies))
        ess[rare] = convergence.sparse_indicator_ess(*table.ones(rare))
        for cliques in table.batches(np.flatnonzero(varies & np.isnan(ess))):
            ess[cliques] = convergence.indicator_ess(table.dense(cliques, indicator=True))
        typical = _typical_ess(ess[varies], table, moving)
        ess[~varies] = typical
    frequency = counts / table.total
    # A constant indicator is not known without error: one flip more would have been one in about `typical`.
    spread = np.where(varies, frequency * (1 - frequency), 1 / (typical + 2) * (1 - 1 / (typical + 2)))
    mcse = np.sqrt(spread * table.total / max(1, table.total - 1) / ess)
    return IndicatorQuality(r_hat, ess, mcse, varies, typical)


def _typical_ess(ess: np.ndarray, table: CliqueDraws, moving: np.ndarray | None) -> float:
    if len(ess):
        return float(min(np.median(ess), table.total))
    if moving is not None and len(moving):
        changing = moving[np.ptp(moving.reshape(len(moving), -1), axis=1) > 0]
        if len(changing):
            return float(min(np.median(convergence.bulk_ess(changing)), table.total))
    return float(table.total)


def log10_bayes_factors(
    inclusion: np.ndarray, prior_odds: np.ndarray, effective: np.ndarray, settled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Log10 Bayes factors of presence against absence (8.2), and where they are only bounds.

    Parameters
    ----------
    inclusion : posterior inclusion probabilities (M,)
    prior_odds : prior odds of inclusion (M,), infinite where forced and zero where forbidden
    effective : effective number of draws behind each probability (M,)
    settled : whether the chains agree and have draws enough; if not, no factor says more than so many draws

    Returns
    -------
    log10_bf : float64 array (M,)
        Finite everywhere; zero where the prior alone decides.
    bound : array of str (M,)
        ``">"`` or ``"<"`` where the factor is beyond the number given, ``"prior"`` where the prior decides.
    """
    # n effective draws without a single flip cannot tell posterior odds beyond about n to one. An engine's
    # own probabilities tell more, but only if the chains have been everywhere.
    resolved = 1 / (np.maximum(effective, 1) + 1)
    certain = np.minimum(inclusion, 1 - inclusion) < (ROUNDING if settled else resolved)
    least = np.where(certain, resolved, 0.0)
    probability = np.clip(inclusion, least, 1 - least)
    bound = np.where(certain, np.where(inclusion < 0.5, "<", ">"), "").astype(object)
    decided = ~((prior_odds > 0) & np.isfinite(prior_odds))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.log10(probability) - np.log10(1 - probability) - np.log10(prior_odds)
    result[decided] = 0.0
    bound[decided] = "prior"
    return result, bound


EVIDENCE = ("strong absence", "absence", "inconclusive", "presence", "strong presence")


def evidence_category(
    log10_bf: np.ndarray, thresholds: tuple[float, float] = (3, 10), bound: np.ndarray | None = None
) -> np.ndarray:
    """One of the five words of ``EVIDENCE`` for each log10 Bayes factor, which may be a bound.

    Examples
    --------
    >>> evidence_category(np.log10([0.02, 0.5, 4, 300])).tolist()
    ['strong absence', 'inconclusive', 'presence', 'strong presence']
    >>> evidence_category(np.log10([4, 300]), bound=np.array([">", "<"])).tolist()
    ['presence', 'inconclusive']
    """
    weak, strong = np.log10(thresholds)
    if bound is not None:
        # "At most 300" is no evidence for anything, nor is "at least 1/300".
        log10_bf = np.where(bound == "<", np.minimum(log10_bf, 0), log10_bf)
        log10_bf = np.where(bound == ">", np.maximum(log10_bf, 0), log10_bf)
    # A factor that equals the threshold up to rounding reaches it.
    value = log10_bf + np.sign(log10_bf) * 1e-12
    level = (value >= weak).astype(int) + (value >= strong) - (value <= -weak) - (value <= -strong)
    result: np.ndarray = np.array(EVIDENCE, object)[level + 2]
    return result
