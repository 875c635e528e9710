"""Scores and predictions: conditional, pseudo- and full log-likelihood, probabilities of unseen variables.

Everything takes one model or a *mixture*: a sequence of models of equal weight, such as 100 posterior draws
("Bayes" of Chen & Welling, 2012). A mixture's likelihood is the average of its components' likelihoods; the
logarithm comes after the average. Fitted estimators and posteriors are taken too: a posterior stands for
its mixture, a lasso for its model. docs/method.md, section 9, has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.predict import levels
from edgewise.predict.annealing import ais_log_partition
from edgewise.predict.conditionals import (
    CELLS,
    TABLE_LIMIT,
    components,
    conditional_probability,
    conditioned,
    level_probabilities,
)
from edgewise.predict.groups import (
    complete_rows,
    grid_windows,
    random_groups,
    random_windows,
    resolve_groups,
    spread,
)

__all__ = [
    "LogLikelihood",
    "ais_log_partition",
    "components",
    "conditional_log_likelihood",
    "conditional_probability",
    "grid_windows",
    "level_probabilities",
    "log_likelihood",
    "pseudo_log_likelihood",
    "random_groups",
    "random_windows",
]


class LogLikelihood(NamedTuple):
    """Log-likelihood of every row, and how sure it is.

    Attributes
    ----------
    values : float64 array (n,)
        One log-likelihood per row.
    standard_error : float
        Of the mean of `values`, from the estimate of log Z alone; zero where Z is exact.
    method : str
        "exact", "annealing", or "annealing and exact" for a mixture of both kinds.

    Examples
    --------
    >>> from edgewise import MRF, predict
    >>> found = predict.log_likelihood(MRF([0.0, 0.0], [(0, 1)], [1.0]), [[1, 1], [0, 1]])
    >>> found.values.round(4), found.method
    (array([-0.7437, -1.7437]), 'exact')
    """

    values: np.ndarray
    standard_error: float
    method: str

    @property
    def mean(self) -> float:
        """Mean over the rows."""
        return float(self.values.mean())


def conditional_log_likelihood(model: Any, X: Any, groups: Any = "all") -> np.ndarray:
    """Log P(a group of variables | all other variables) of every row (9.1).

    Parameters
    ----------
    model : MRF, sequence of MRF, posterior or fitted estimator
    X : array (n, p) of 0 and 1, or of the numbers of levels, or Data
        Test rows.
    groups : "all", sequence of variables, or int array (n, k)
        One group for all rows, by numbers or names, or a group of its own for every row (see
        :func:`random_windows` and :func:`random_groups`). With "all", this is the log-likelihood.

    Returns
    -------
    float64 array (n,)
        Take its mean for the score of the paper.

    Examples
    --------
    >>> model = MRF([0.0, 0.0], [(0, 1)], [1.0])
    >>> conditional_log_likelihood(model, [[1, 1], [0, 1]], [0]).round(4)
    array([-0.3133, -1.3133])
    """
    parts = components(model)
    rows = complete_rows(parts[0], X)
    group_rows = resolve_groups(parts[0], len(rows), groups)
    return _average(_group_log_likelihood(part, rows, group_rows) for part in parts)


def pseudo_log_likelihood(model: Any, X: Any) -> np.ndarray:
    """Sum over variables of log P(x_i | all others) of every row: float64 (n,).

    For a mixture every conditional probability is averaged over the components before its logarithm.

    Examples
    --------
    >>> from edgewise import MRF, predict
    >>> predict.pseudo_log_likelihood(MRF([0.0, 0.0], [(0, 1)], [1.0]), [[1, 1], [0, 1]]).round(4)
    array([-0.6265, -2.0064])
    """
    parts = components(model)
    rows = complete_rows(parts[0], X)
    result = _average(_site_log_likelihood(part, rows) for part in parts)
    return np.asarray(result.sum(axis=1))


def log_likelihood(
    model: Any, X: Any, *, method: str = "auto", particles: int = 500, seed: int | None = 0
) -> LogLikelihood:
    """Log-likelihood of every row, with exact Z where possible and annealing where it is not.

    Parameters
    ----------
    model : MRF, sequence of MRF, posterior or fitted estimator
    X : array (n, p) of 0 and 1, or of the numbers of levels, or Data
    method : {"auto", "exact", "annealing"}
    particles : int
        Of annealed importance sampling, for each model.
    seed : int, optional
        Of annealed importance sampling.

    Examples
    --------
    >>> from edgewise import MRF, predict
    >>> round(predict.log_likelihood(MRF([0.0, 0.0], [(0, 1)], [1.0]), [[1, 1], [0, 1]]).mean, 4)
    -1.2437
    """
    from edgewise import exact

    if method not in ("auto", "exact", "annealing"):
        raise DataError(f'method must be "auto", "exact" or "annealing", not {method!r}.')
    parts = components(model)
    rows = complete_rows(parts[0], X)
    seeds = np.random.SeedSequence(seed).spawn(len(parts))
    values, errors, methods = [], [], set()
    for part, source in zip(parts, seeds):
        if method == "exact" or (method == "auto" and exact.feasible(part)):
            log_z, error = exact.log_partition(part), 0.0
            methods.add("exact")
        else:
            log_z, error = ais_log_partition(part, particles=particles, seed=np.random.default_rng(source))
            methods.add("annealing")
        values.append(part.log_potential(rows) - log_z)
        errors.append(error)
    result = _average(values)
    # d log-average / d log Z_k is minus component k's share of the row's likelihood.
    shares = np.array([np.exp(value - result).mean() for value in values]) / len(values)
    standard_error = float(np.sqrt(((shares * errors) ** 2).sum()))
    return LogLikelihood(result, standard_error, " and ".join(sorted(methods)))


def _group_log_likelihood(model: MRF, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Log P(group | rest) of every row; `groups` has one row of variables per row, or one for all."""
    from edgewise import exact

    size = groups.shape[1]
    if size == model.n_variables:
        return model.log_potential(rows) - exact.log_partition(model)
    if size == 1:
        return np.take_along_axis(_site_log_likelihood(model, rows), spread(groups, len(rows)), axis=1)[:, 0]
    several = not model.scales.all_binary
    largest = int(np.sort(model.scales.levels)[-size:].astype(object).prod())
    if size > TABLE_LIMIT or (several and largest > levels.MOST_STATES):
        return _large_group_log_likelihood(model, rows, groups)
    if model.pairs_only and not several:
        return _pairwise_log_likelihood(model, rows, spread(groups, len(rows)))
    result = np.empty(len(rows))
    different, which = np.unique(spread(groups, len(rows)), axis=0, return_inverse=True)
    for number, group in enumerate(different):
        chosen = np.flatnonzero(which.ravel() == number)
        result[chosen] = exact.conditional_log_probability(model, list(group), rows[chosen])
    return result


def _pairwise_log_likelihood(model: MRF, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The group's log-potential less that of all its 2^k states, by matrix products over blocks of rows.

    A state's log-potential is linear in the k fields from outside and the k (k - 1) / 2 couplings inside,
    which are the columns of one matrix; the other matrix is the same for all rows.
    """
    from edgewise import exact

    size = groups.shape[1]
    one, other = np.triu_indices(size, 1)
    states = exact.states(size).astype(np.float64)
    design = np.concatenate([states, states[:, one] * states[:, other]], axis=1).T.copy()
    coupling = model.coupling
    field = model.biases + rows @ coupling
    result = np.empty(len(rows))
    block = max(1, CELLS >> size)
    parameters = np.empty((min(block, len(rows)), len(design)))
    for start in range(0, len(rows), block):
        group = groups[start : start + block]
        here = parameters[: len(group)]
        values = np.take_along_axis(rows[start : start + block], group, axis=1)
        inside = coupling[group[:, one], group[:, other]]
        here[:, size:] = inside
        here[:, :size] = np.take_along_axis(field[start : start + block], group, axis=1)
        for k, (a, b) in enumerate(zip(one, other)):
            here[:, a] -= inside[:, k] * values[:, b]
            here[:, b] -= inside[:, k] * values[:, a]
        observed = (here[:, :size] * values).sum(axis=1)
        observed += (inside * values[:, one] * values[:, other]).sum(axis=1)
        table = here @ design
        table -= observed[:, None]
        peak = table.max(axis=1)
        table -= peak[:, None]
        np.exp(table, out=table)
        result[start : start + len(group)] = -peak - np.log(table.sum(axis=1))
    return result


def _large_group_log_likelihood(model: MRF, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """One exact normaliser per row, for groups too large for a table."""
    from edgewise import exact

    result = np.empty(len(rows))
    for number, group in enumerate(spread(groups, len(rows))):
        inside = (conditioned if model.scales.all_binary else levels.conditioned)(model, rows[number], group)
        result[number] = inside.log_potential(rows[number][None, group])[0] - exact.log_partition(inside)
    return result


def _site_log_likelihood(model: MRF, rows: np.ndarray) -> np.ndarray:
    """Log P(x_i | all others) of every row and variable, with all its digits: float64 (n, p)."""
    if not model.scales.all_binary:
        return levels.site_log_likelihood(model, rows)
    field = model.biases + rows @ model.coupling
    if not model.pairs_only:
        for clique, weight in zip(model.cliques, model.weights.tolist()):
            if len(clique) > 2:
                for i in clique:
                    field[:, i] += weight * rows[:, [j for j in clique if j != i]].prod(axis=1)
    return np.asarray(-np.logaddexp(0.0, (1.0 - 2.0 * rows) * field))


def _average(values: Iterable[np.ndarray]) -> np.ndarray:
    """Logarithm of the mean of the exponentials over the components, holding one of them at a time."""
    total, count = None, 0
    for value in values:
        total = value if total is None else np.logaddexp(total, value)
        count += 1
    assert total is not None
    return np.asarray(total - np.log(count))
