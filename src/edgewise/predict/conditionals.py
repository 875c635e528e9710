"""Probabilities of unseen variables given the seen ones, of one model or a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.predict import levels
from edgewise.predict.annealing import gibbs_marginals
from edgewise.predict.groups import (
    partial_rows,
    resolve_variables,
)

# The largest group whose states are listed in one table, and most cells of tables held at a time.
TABLE_LIMIT = 16
CELLS = 1 << 19


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
