"""Posterior predictive checks: does data made by models of the posterior look like the data?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.scales import NOMINAL, Scales

if TYPE_CHECKING:
    from edgewise.data import Data
    from edgewise.model.mrf import MRF
    from edgewise.posterior.posterior import Posterior

# Above this width the tables of exact sampling cost more than many Gibbs sweeps.
_WIDEST_EXACT = 12
_MOST_CELLS = 1 << 18
_FILLING_SWEEPS = 10


@dataclass(frozen=True, eq=False)
class CheckPart:
    """One kind of statistic, of the data and of the replicated data sets.

    Attributes
    ----------
    members : int array (k, order)
        Variables of each statistic (for the number of ones: the number itself).
    observed : float64 array (k,)
        Frequency in the data.
    mean, sd : float64 arrays (k,)
        Over the replicated data sets.
    low, high : float64 arrays (k,)
        Equal-tailed interval of the replicated data sets.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import predictive_check
    >>> part = predictive_check(model.posterior_, people).pairs
    >>> len(part.observed), part.inside > 0.8
    (6, True)
    """

    members: np.ndarray
    observed: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Distance of the data from the replications in their standard deviations."""
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (self.observed - self.mean) / self.sd
        return np.where(self.observed == self.mean, 0.0, z)

    @property
    def inside(self) -> float:
        """Share of the statistics whose data value lies in the interval."""
        rounding = 1e-12
        within = (self.observed >= self.low - rounding) & (self.observed <= self.high + rounding)
        return float(within.mean()) if len(within) else 1.0


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """Comparison of the data with data sets drawn from the posterior mixture.

    Attributes
    ----------
    means, pairs, triples : CheckPart
        Frequency of ones, of joint ones of two and of three variables. Where some have more levels: frequency
        of every level and of every pair of levels of two variables (members are variables, then levels), and
        no triples.
    ones : CheckPart
        Distribution of the number of ones in a row, 0 to p; of the sum of the numbers of the levels, from 0,
        of all variables that are not nominal.
    names : tuple of str
    n_models, n_rows : int
        Replicated data sets and the rows of each.
    probability : float
        Content of the intervals.
    method : str
        How the rows were drawn: "exact" or "gibbs" (or "exact and gibbs").

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import predictive_check
    >>> sorted(predictive_check(model.posterior_, people).parts())
    ['means', 'ones', 'pairs', 'triples']
    """

    means: CheckPart
    pairs: CheckPart
    triples: CheckPart
    ones: CheckPart
    names: tuple[str, ...]
    n_models: int
    n_rows: int
    probability: float
    method: str
    levels: tuple[tuple[Any, ...], ...] | None = None

    def parts(self) -> dict[str, CheckPart]:
        """The four comparisons by name."""
        return {"means": self.means, "pairs": self.pairs, "triples": self.triples, "ones": self.ones}

    def label(self, kind: str, index: int) -> str:
        """Readable name of one statistic."""
        members = self.parts()[kind].members[index]
        if kind == "ones":
            return f"{members[0]} ones" if self.levels is None else f"a sum of {members[0]}"
        if self.levels is not None:
            half = len(members) // 2
            return " -- ".join(
                f"{self.names[i]} = {self.levels[i][c]}" for i, c in zip(members[:half], members[half:])
            )
        return " -- ".join(self.names[i] for i in members)

    def worst(self, kind: str) -> tuple[str, float]:
        """The statistic that fits least, with its z."""
        part = self.parts()[kind]
        index = int(np.argmax(np.abs(part.z)))
        return self.label(kind, index), float(part.z[index])

    def __str__(self) -> str:
        lines = [
            f"{self.n_models} replicated data sets of {self.n_rows:,} rows ({self.method}); "
            f"{self.probability:.0%} of each kind should lie in its interval:"
        ]
        for kind, part in self.parts().items():
            if len(part.observed):
                label, z = self.worst(kind)
                lines.append(f"  {kind}: {part.inside:.0%} inside; farthest: {label} (z = {z:+.1f})")
        return "\n".join(lines)


def predictive_check(
    posterior: Posterior,
    data: Data | Any,
    *,
    n_models: int = 50,
    seed: int = 0,
    probability: float = 0.95,
    n_triples: int = 500,
    sweeps: int = 100,
    max_rows: int = 5000,
) -> PredictiveCheck:
    """Compare the data with data sets of the same size drawn from models of the posterior.

    Parameters
    ----------
    posterior : Posterior
    data : Data or rows in the coding of the fit
        The data that were fitted, or others with the same variables.
    n_models : int
        Draws of the posterior, each of which makes one data set.
    seed : int
        Seed of the choice of draws and triples and of the replicated rows.
    probability : float
        Content of the intervals.
    n_triples : int
        All triples of variables if there are at most so many, otherwise so many at random.
    sweeps : int
        Gibbs sweeps per row where exact sampling is too expensive.
    max_rows : int
        Most rows of a replicated data set; with longer data the intervals are wider than they could be.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import predictive_check
    >>> check = predictive_check(model.posterior_, people)
    >>> check.n_models, check.n_rows, check.method
    (50, 442, 'exact')
    """
    if not 0 < probability < 1:
        raise DataError(f"probability must lie strictly between 0 and 1, not {probability!r}.")
    rows, weights = rows_of(posterior, data)
    if len(rows) == 0:
        raise DataError("A predictive check compares with data, and there are no rows.")
    rng = np.random.default_rng(seed)
    several = not posterior.scales.all_binary
    triples = _choose_triples(rows.shape[1], 0 if several else n_triples, rng)
    total = len(rows) if weights is None else max(1, round(float(weights.sum())))
    n_rows = min(total, max_rows)
    mixtures = [part.mixture(n_models, seed) for part in _parts(posterior)]
    shares = _shares(posterior, n_rows)
    tally: Callable[..., tuple[np.ndarray, ...]] = _statistics
    if several:
        tally = partial(_level_statistics, scales=posterior.scales)
    replicated, methods = [], set()
    for models in zip(*mixtures):
        samples = []
        for model, count in zip(models, shares):
            sample, method = sample_model(model, count, sweeps, rng)
            methods.add(method)
            samples.append(sample)
        replicated.append(tally(np.concatenate(samples), None, triples))
    observed = tally(rows, weights, triples)
    p = rows.shape[1]
    members = [
        np.arange(p)[:, None],
        np.stack(np.triu_indices(p, 1), axis=1),
        triples,
        np.arange(p + 1)[:, None],
    ]
    if several:
        members = _level_members(posterior.scales, triples)

    def part(kind: int) -> CheckPart:
        values = np.stack([statistics[kind] for statistics in replicated])
        tail = (1 - probability) / 2
        low, high = np.quantile(values, [tail, 1 - tail], axis=0)
        sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
        return CheckPart(members[kind], observed[kind], values.mean(axis=0), sd, low, high)

    return PredictiveCheck(
        means=part(0),
        pairs=part(1),
        triples=part(2),
        ones=part(3),
        names=posterior.names,
        n_models=len(replicated),
        n_rows=n_rows,
        probability=probability,
        method=" and ".join(sorted(methods)),
        levels=posterior.levels if several else None,
    )


def rows_of(posterior: Posterior, data: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows with the variables of a posterior in its coding, and their weights if they have any."""
    from edgewise.data import Data, encode_rows

    if not isinstance(data, Data):
        blank = posterior.info.get("blanks", ())
        return np.asarray(encode_rows(data, posterior.names, posterior.levels, blank=blank)), None
    if data.names != posterior.names:
        other = [name for name in data.names if name not in posterior.names]
        missing = [name for name in posterior.names if name not in data.names]
        detail = f"not in the posterior: {other[:5]}; not in the data: {missing[:5]}"
        raise DataError(
            "The data do not have the variables of the posterior in the same order "
            f"({detail if other or missing else 'the order differs'}); select the columns that were fitted."
        )
    if not posterior.scales.all_binary and data.levels != posterior.levels:
        raise DataError("The data do not have the levels of the posterior; give the rows that were fitted.")
    if data.unknown is not None:
        return completed(posterior, data.values(), data.unknown_cells()), data.weights
    return data.values(), data.weights


def completed(posterior: Posterior, rows: np.ndarray, unknown: np.ndarray, seed: int = 0) -> np.ndarray:
    """Rows whose blanks are drawn given the other cells, by the model of one draw of the posterior.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> posterior = SpikeSlabMRF(random_state=1, progress=False).fit(people).posterior_
    >>> rows, unknown = np.zeros((2, 4), np.uint8), np.eye(2, 4).astype(bool)
    >>> completed(posterior, rows, unknown).shape
    (2, 4)
    """
    rng = np.random.default_rng(seed)
    model = posterior.model(int(rng.integers(posterior.n_chains * posterior.n_draws)))
    levels = posterior.scales.levels
    result = np.where(unknown, (rng.random(rows.shape) * levels).astype(rows.dtype), rows)
    places = {i: np.flatnonzero(unknown[:, i]) for i in np.flatnonzero(unknown.any(axis=0)).tolist()}
    for _ in range(_FILLING_SWEEPS):
        for i, where in places.items():
            if posterior.scales.all_binary:
                one = model.conditional_probability(result[where])[:, i]
                result[where, i] = rng.random(len(where)) < one
            else:
                chance = np.cumsum(model.conditional_levels(result[where])[i], axis=1)
                drawn = (rng.random((len(where), 1)) >= chance).sum(axis=1)
                result[where, i] = np.minimum(drawn, levels[i] - 1)
    return result


def _choose_triples(p: int, most: int, rng: np.random.Generator) -> np.ndarray:
    if not most:
        return np.zeros((0, 3), int)
    if math.comb(p, 3) <= most:
        found = list(itertools.combinations(range(p), 3))
        return np.array(found, int).reshape(len(found), 3)
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(p, 3, replace=False).tolist())))
    return np.array(sorted(chosen), int)


def _parts(posterior: Posterior) -> list[Posterior]:
    """The posterior of every stratum that rows are made for; of one, itself."""
    layout = posterior.strata
    return [posterior] if layout is None else [posterior.of_stratum(k) for k in range(layout.n_strata)]


def _shares(posterior: Posterior, n_rows: int) -> list[int]:
    """How many of the rows that are made belong to each stratum: as among the data."""
    if posterior.strata is None:
        return [n_rows]
    ends = np.cumsum(posterior.strata.rows) / sum(posterior.strata.rows) * n_rows
    return [int(count) for count in np.diff(np.round(ends).astype(int), prepend=0)]


def sample_model(model: MRF, n_rows: int, sweeps: int, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Rows of a model, exact ones where that is cheap, and how they were drawn."""
    from edgewise import exact

    if not model.scales.all_binary:
        order = exact.inference.cheapest_order(model)
        if min(model.scales.n_states, exact.inference.cells(model, order)) <= _MOST_CELLS:
            return exact.sample(model, n_rows, rng), "exact"
        return model.gibbs(n_rows, sweeps, rng), "gibbs"
    if model.n_variables <= _WIDEST_EXACT or exact.elimination_width(model) <= _WIDEST_EXACT:
        return exact.sample(model, n_rows, rng), "exact"
    return model.gibbs(n_rows, sweeps, rng), "gibbs"


def _statistics(
    rows: np.ndarray, weights: np.ndarray | None, triples: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    values = rows.astype(np.float32)
    share = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
    weighted = values * share[:, None].astype(np.float64)
    pairs = weighted.T @ values.astype(np.float64)
    p = rows.shape[1]
    joint = np.array([weighted[:, i] @ (values[:, j] * values[:, k]) for i, j, k in triples])
    ones = np.bincount(rows.sum(axis=1, dtype=np.int64), share, minlength=p + 1)
    return weighted.sum(axis=0), pairs[np.triu_indices(p, 1)], joint.reshape(len(triples)), ones


def _level_members(scales: Scales, triples: np.ndarray) -> list[np.ndarray]:
    """Variables and levels of the statistics of :func:`_level_statistics`."""
    owner = np.repeat(np.arange(len(scales)), scales.levels)
    level = np.concatenate([np.arange(count) for count in scales.levels])
    one, two = _cells_of_pairs(owner)
    largest = int(sum(scale.n_levels - 1 for scale in scales if scale.kind != NOMINAL))
    return [
        np.stack([owner, level], axis=1),
        np.stack([owner[one], owner[two], level[one], level[two]], axis=1),
        triples,
        np.arange(largest + 1)[:, None],
    ]


def _cells_of_pairs(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    one, two = np.triu_indices(len(owner), 1)
    apart = owner[one] != owner[two]
    return one[apart], two[apart]


def _level_statistics(
    rows: np.ndarray, weights: np.ndarray | None, triples: np.ndarray, *, scales: Scales
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies of levels and of pairs of levels, and the distribution of the sum of level numbers."""
    share = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
    owner = np.repeat(np.arange(len(scales)), scales.levels)
    level = np.concatenate([np.arange(count) for count in scales.levels])
    there = (rows[:, owner] == level).astype(np.float64)
    joint = (there * share[:, None]).T @ there
    ordered = np.array([scale.kind != NOMINAL for scale in scales])
    largest = int((scales.levels[ordered] - 1).sum())
    total = np.bincount(rows[:, ordered].sum(axis=1, dtype=np.int64), share, minlength=largest + 1)
    return np.diag(joint).copy(), joint[_cells_of_pairs(owner)], np.zeros(len(triples)), total
