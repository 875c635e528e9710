"""Scores and predictions: conditional, pseudo- and full log-likelihood, probabilities of unseen variables.

Everything takes one model or a *mixture*: a sequence of models of equal weight, such as 100 posterior draws
("Bayes" of Chen & Welling, 2012). A mixture's likelihood is the average of its components' likelihoods; the
logarithm comes after the average. Fitted estimators and posteriors are taken too: a posterior stands for
its mixture, a lasso for its model. docs/method.md, section 9, has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.predict import levels
from edgewise.predict.annealing import ais_log_partition, gibbs_marginals
from edgewise.predict.groups import (
    complete_rows,
    grid_windows,
    partial_rows,
    random_groups,
    random_windows,
    resolve_groups,
    resolve_variables,
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

# The largest group whose states are listed in one table.
TABLE_LIMIT = 16
CELLS = 1 << 19


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


def components(model: Any) -> list[MRF]:
    """The models of equal weight that `model` stands for.

    Examples
    --------
    >>> from edgewise import MRF, predict
    >>> len(predict.components([MRF([0.0], [], []), MRF([1.0], [], [])]))
    2
    """
    if isinstance(model, MRF):
        return [model]
    for attribute in ("posterior_", "model_"):
        if hasattr(model, attribute):
            return components(getattr(model, attribute))
    if hasattr(model, "mixture"):
        return list(model.mixture())
    if not isinstance(model, Sequence) or not model or not all(isinstance(part, MRF) for part in model):
        raise DataError(
            "Give a model (MRF), a list of models of equal weight, a posterior or a fitted estimator; "
            f"not {type(model).__name__}."
        )
    if len({part.n_variables for part in model}) > 1:
        raise DataError("The models of a mixture must have the same variables.")
    return list(model)


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


def conditional_probability(
    model: Any,
    X: Any,
    targets: Sequence[int | str] | int | str | None = None,
    *,
    sweeps: int = 500,
    chains: int = 4,
    seed: int = 0,
) -> np.ndarray:
    """P(x_t = 1 | the seen variables of the row) for every row and target variable.

    Parameters
    ----------
    model : MRF, sequence of MRF, posterior or fitted estimator
        For a mixture, the components' probabilities are averaged.
    X : array (n, p)
        0, 1, and -1 or NaN where a variable is unseen.
    targets : variables by number or name, optional
        All variables by default. A target's own cells are never looked at when targets are given; without
        targets a seen cell's "probability" is its value.
    sweeps, chains : int
        Of Gibbs sampling, which takes over where too many variables are unseen for exact answers.
    seed : int
        Of Gibbs sampling.

    Returns
    -------
    float64 array (n, targets)

    Examples
    --------
    >>> chain = MRF([0, 0, 0], [(0, 1), (1, 2)], [2.0, 2.0])
    >>> conditional_probability(chain, [[1, -1, -1]], [2]).round(3)
    array([[0.869]])
    """
    parts = components(model)
    first = parts[0]
    if not first.scales.all_binary:
        raise DataError("With more than two levels, level_probabilities gives the probability of each.")
    rows = partial_rows(first, X)
    if targets is None:
        wanted = np.arange(first.n_variables)
    else:
        listed = [targets] if isinstance(targets, int | str | np.integer) else list(targets)
        wanted = resolve_variables(first, listed)
        rows[:, wanted] = -1
    rng = np.random.default_rng(seed)
    full = np.where(rows == 1, 1.0, 0.0)
    patterns, which = np.unique(rows < 0, axis=0, return_inverse=True)
    which = which.ravel()
    for number, pattern in enumerate(patterns):
        unseen = np.flatnonzero(pattern)
        if len(unseen) == 0:
            continue
        chosen = np.flatnonzero(which == number)
        total = np.zeros((len(chosen), len(unseen)))
        for part in parts:
            total += _unseen_probability(part, full[chosen], unseen, sweeps, chains, rng)
        full[np.ix_(chosen, unseen)] = total / len(parts)
    return full[:, wanted]


def level_probabilities(
    model: Any, X: Any, targets: Sequence[int | str] | int | str | None = None, *, seed: int = 0
) -> list[np.ndarray]:
    """P(x_t = c | the seen variables of the row) of every level c: for each target float64 (n, levels).

    Parameters
    ----------
    model : MRF, sequence of MRF, posterior or fitted estimator
        For a mixture, the components' probabilities are averaged.
    X : array (n, p)
        Numbers of levels, and -1 or NaN where a variable is unseen.
    targets : variables by number or name, optional
        As for :func:`conditional_probability`.
    seed : int
        Of Gibbs sampling, which takes over where too many variables are unseen for exact answers.

    Examples
    --------
    >>> from edgewise.scales import Scale
    >>> mood = Scale("ordinal", ("low", "middle", "high"))
    >>> model = MRF.from_levels([mood] * 2, [[0, 0, 0]] * 2, [(0, 1)], [2.0])
    >>> level_probabilities(model, [[2, -1]], [1])[0].round(3)
    array([[0.09 , 0.245, 0.665]])
    """
    parts = components(model)
    rows = partial_rows(parts[0], X)
    if targets is None:
        return levels.level_probabilities(parts, rows, seed=seed)
    listed = [targets] if isinstance(targets, int | str | np.integer) else list(targets)
    return levels.level_probabilities(parts, rows, resolve_variables(parts[0], listed).tolist(), seed=seed)


def _unseen_probability(
    model: MRF, rows: np.ndarray, unseen: np.ndarray, sweeps: int, chains: int, rng: np.random.Generator
) -> np.ndarray:
    """P(x_i = 1 | seen) of the unseen variables of rows that share them; rows hold 0 where unseen."""
    from edgewise import exact

    if len(unseen) == 1:
        return model.conditional_probability(rows)[:, unseen]
    if len(unseen) <= TABLE_LIMIT:
        states = exact.states(len(unseen)).astype(np.float64)
        result = np.empty((len(rows), len(unseen)))
        block = max(1, CELLS >> len(unseen))
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            result[start : start + len(part)] = np.exp(exact.conditional(model, list(unseen), part)) @ states
        return result
    different, back = np.unique(rows, axis=0, return_inverse=True)
    if exact.feasible(conditioned(model, different[0], unseen)):
        found = [exact.marginals(conditioned(model, row, unseen)) for row in different]
        return np.array(found)[back.ravel()]
    return gibbs_marginals(model, different, unseen, sweeps, chains, rng)[back.ravel()]


def conditioned(model: MRF, row: np.ndarray, group: np.ndarray) -> MRF:
    """The model of the variables in `group` (in that order) given the others as in `row`."""
    place = {int(variable): k for k, variable in enumerate(group)}
    biases = model.biases[group].copy()
    weights: dict[tuple[int, ...], float] = {}
    for clique, weight in zip(model.cliques, model.weights.tolist()):
        inside = tuple(sorted(place[i] for i in clique if i in place))
        if weight == 0.0 or not inside or not all(row[i] == 1 for i in clique if i not in place):
            continue
        if len(inside) == 1:
            biases[inside[0]] += weight
        else:
            weights[inside] = weights.get(inside, 0.0) + weight
    return MRF(biases, list(weights), list(weights.values()))


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
