"""Exact inference: log Z, means, covariances, conditionals and independent samples of a model.

Each function picks its method by itself: listing all 2^p states for few variables, eliminating variables one
by one on larger sparse graphs (docs/method.md, section 3). A graph too wide for both is refused before any
memory is spent.

States of a group of k variables are numbered 0 to 2^k - 1, bit j of the number being the value of the j-th
variable of the group; with more levels the numbers count in mixed radix, the first variable running fastest.
:func:`states` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.exact.elimination import BYTES_PER_CELL, Elimination
from edgewise.exact.enumeration import Enumeration, LevelEnumeration, states
from edgewise.exact.groups import check_conditional, group_table
from edgewise.exact.orders import Order, elimination_orders
from edgewise.model.mrf import MRF

__all__ = [
    "conditional",
    "conditional_log_probability",
    "covariance",
    "elimination_width",
    "feasible",
    "level_marginals",
    "log_partition",
    "marginals",
    "means",
    "pair_marginals",
    "probabilities",
    "sample",
    "states",
]

ENUMERATION_LIMIT = 22
"""Most variables of two levels whose states are listed; as many states with other levels."""

ALWAYS_ENUMERATED = 12
"""Up to here listing the states is faster than finding an order, whatever the graph."""

MEMORY_LIMIT = 2_000_000_000
"""Bytes that elimination may use for its tables."""


def log_partition(model: MRF) -> float:
    """Logarithm of the normaliser Z of the model.

    Examples
    --------
    >>> from edgewise import MRF
    >>> round(log_partition(MRF([0.0, 0.0], [], [])), 4)
    1.3863
    """
    return _solver(model).log_partition()


def means(model: MRF) -> np.ndarray:
    """Mean of every feature: P(x_i = 1) of each variable, then P(all of a clique are 1) of each clique.

    Returns
    -------
    float64 array (p + m,)
        In the order of ``model.parameters``; it is the gradient of log Z with respect to them.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.means(chain).round(3)
    array([0.705, 0.886, 0.838, 0.648, 0.781])
    """
    return _solver(model).means()


def marginals(model: MRF) -> np.ndarray:
    """P(x_i = 1) of every variable: float64 (p,). With more levels, see :func:`level_marginals`.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.marginals(chain).round(3)
    array([0.705, 0.886, 0.838])
    """
    _only_binary(model, "level_marginals")
    return means(model)[: model.n_variables]


def level_marginals(model: MRF) -> list[np.ndarray]:
    """P(x_i = c) of every level c: for every variable float64 (levels,).

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> [part.round(3).tolist() for part in exact.level_marginals(chain)]
    [[0.295, 0.705], [0.114, 0.886], [0.162, 0.838]]
    """
    return _solver(model).level_marginals()


def pair_marginals(model: MRF) -> np.ndarray:
    """P(x_i = 1 and x_j = 1) of all pairs, coupled or not, and P(x_i = 1) on the diagonal: float64 (p, p).

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.pair_marginals(chain).round(3)
    array([[0.705, 0.648, 0.599],
           [0.648, 0.886, 0.781],
           [0.599, 0.781, 0.838]])
    """
    _only_binary(model, "means")
    solver = _solver(model)
    assert not isinstance(solver, LevelEnumeration)
    return solver.pair_marginals()


def _only_binary(model: MRF, instead: str) -> None:
    if not model.scales.all_binary:
        raise DataError(
            f"This model has variables with more than two levels; use edgewise.exact.{instead} instead."
        )


def covariance(model: MRF) -> np.ndarray:
    """Covariance of all features: float64 (p + m, p + m) (1.4).

    The order is that of :func:`means`; it is the Hessian of log Z. By elimination every row costs as much
    as :func:`means`.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.covariance(chain)[:3, :3].round(3)
    array([[0.208, 0.023, 0.009],
           [0.023, 0.101, 0.038],
           [0.009, 0.038, 0.136]])
    """
    solver = _solver(model)
    center = solver.means()
    return solver.second_moments() - np.outer(center, center)


def probabilities(model: MRF) -> np.ndarray:
    """Probability of every one of the 2^p states, numbered as in :func:`states`: float64 (2^p,).

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.probabilities(chain).round(3)
    array([0.028, 0.028, 0.028, 0.077, 0.028, 0.028, 0.21 , 0.571])
    """
    if model.scales.n_states > 1 << ENUMERATION_LIMIT:
        count = f"2^{model.n_variables}" if model.scales.all_binary else f"{model.scales.n_states:,}"
        raise DataError(
            f"A model of {model.n_variables} variables has {count} states; they are listed for "
            f"at most {ENUMERATION_LIMIT} variables of two levels. Use means, pair_marginals or conditional."
        )
    return _enumeration(model).probabilities()


def sample(model: MRF, n: int, rng: np.random.Generator | int) -> np.ndarray:
    """Independent draws from the model, exact ones: uint8 (n, p).

    Parameters
    ----------
    model : MRF
    n : int
        Number of rows.
    rng : numpy.random.Generator or int
        Source of randomness, or a seed.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.sample(chain, 10_000, 1).mean(axis=0).round(1)
    array([0.7, 0.9, 0.8])
    """
    if n < 0:
        raise DataError(f"The number of samples must be zero or more, not {n}.")
    return _solver(model).sample(n, np.random.default_rng(rng))


def elimination_width(model: MRF) -> int:
    """Number of variables a variable is joined with, at most, when they are eliminated one by one.

    The smallest over the orders tried: the treewidth of the graph or an upper bound of it. Exact inference
    by elimination needs tables of 2^(width + 1) cells, more with more levels. Cliques of weight zero do not
    count.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.elimination_width(chain)
    1
    """
    return min(order.width for order in _orders(model))


def feasible(model: MRF) -> bool:
    """Whether the functions of this module can deal with the model.

    Examples
    --------
    >>> from edgewise import datasets, exact
    >>> exact.feasible(datasets.lattice_model(10, 10))
    True
    """
    if model.scales.n_states <= 1 << ENUMERATION_LIMIT:
        return True
    return cells(model, cheapest_order(model)) * BYTES_PER_CELL <= MEMORY_LIMIT


def conditional(model: MRF, group: Sequence[int | str], given: Any) -> np.ndarray:
    """Log-probability of every state of a group of variables given all other variables.

    Parameters
    ----------
    model : MRF
    group : sequence of k variables, by number or name
        At most 16.
    given : array-like (n, p)
        Rows of 0/1 values, or of level numbers; the columns of the group are not looked at and may hold
        anything.

    Returns
    -------
    float64 array (n, 2^k)
        Entry (r, s) is log P(group is in state s | the other variables are as in row r): bit j of s is the
        value of ``group[j]``. Each row's exponentials sum to one.

    Examples
    --------
    >>> from edgewise import MRF
    >>> model = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0])
    >>> np.exp(conditional(model, [1], [[1, 0, 1]])).round(4)
    array([[0.0474, 0.9526]])
    """
    members, rows = check_conditional(model, group, given)
    needed = 2 * len(rows) * 8 * int(model.scales.levels[members].prod())
    if needed > MEMORY_LIMIT:
        raise DataError(
            f"The states of {len(members)} variables for {len(rows):,} rows would need {_bytes(needed)} of "
            f"memory; the limit is {_bytes(MEMORY_LIMIT)}. Use conditional_log_probability, give fewer rows "
            "at a time, or a smaller group."
        )
    result = group_table(model, members).log_potential(rows)
    result -= _log_sum(result)[:, None]
    return result


def conditional_log_probability(model: MRF, group: Sequence[int | str], rows: Any) -> np.ndarray:
    """Log P(group as in the row | all other variables as in the row) of every row: float64 (n,).

    The same numbers as :func:`conditional`, for the states that the rows are in, in little memory.

    Examples
    --------
    >>> from edgewise import MRF, exact
    >>> chain = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0], ["a", "b", "c"])
    >>> exact.conditional_log_probability(chain, ["b"], [[1, 1, 1], [1, 0, 1]]).round(4)
    array([-0.0486, -3.0486])
    """
    members, rows = check_conditional(model, group, rows)
    inside, levels = rows[:, members], model.scales.levels[members]
    if not ((inside >= 0) & (inside < levels) & (inside == np.floor(inside))).all():
        known = "0 or 1" if model.scales.all_binary else "the numbers of levels"
        raise DataError(f"The rows must have {known} in the columns of the group; some have other values.")
    table = group_table(model, members)
    result = np.empty(len(rows))
    block = max(1, 2_000_000 // int(levels.prod()))
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        potential = table.log_potential(part)
        chosen = potential[np.arange(len(part)), table.numbers(part)]
        result[start : start + block] = chosen - _log_sum(potential)
    return result


def _log_sum(log_values: np.ndarray) -> np.ndarray:
    peak = log_values.max(axis=1)
    return np.asarray(peak + np.log(np.exp(log_values - peak[:, None]).sum(axis=1)))


def _orders(model: MRF) -> tuple[Order, ...]:
    cliques = model.cliques
    if not model.strengths.all():
        cliques = tuple(clique for clique, weight in zip(cliques, model.strengths) if weight != 0.0)
    return elimination_orders(model.n_variables, cliques)


def cells(model: MRF, order: Order) -> int:
    """Number of cells of the tables of an order."""
    if model.scales.all_binary:
        return order.cells
    levels = [scale.n_levels for scale in model.scales]
    return sum(math.prod(levels[i] for i in bag) for bag in order.bags)


def cheapest_order(model: MRF) -> Order:
    """The elimination order with the fewest cells of those tried."""
    return min(_orders(model), key=lambda order: cells(model, order))


def _enumeration(model: MRF) -> Enumeration | LevelEnumeration:
    return Enumeration(model) if model.scales.all_binary else LevelEnumeration(model)


def _solver(model: MRF) -> Enumeration | LevelEnumeration | Elimination:
    """The cheaper of the two methods; an error where neither is possible."""
    p, n_states = model.n_variables, model.scales.n_states
    if n_states <= 1 << ALWAYS_ENUMERATED:
        return _enumeration(model)
    order = cheapest_order(model)
    count = cells(model, order)
    # Enumeration is a few passes over one large array, elimination many over small ones: it has to win by
    # a margin.
    if n_states <= 1 << ENUMERATION_LIMIT and count << 3 > n_states:
        return _enumeration(model)
    needed = count * BYTES_PER_CELL
    if needed > MEMORY_LIMIT:
        raise DataError(
            f"The graph of this model ({p} variables, {np.count_nonzero(model.strengths)} cliques) is too "
            f"wide for exact inference: eliminating its variables joins {order.width + 1} of them at a time "
            f"(width {order.width}) and would need {_bytes(needed)} of memory; the limit is "
            f"{_bytes(MEMORY_LIMIT)}. Use edgewise.predict.ais_log_partition for an estimate of log Z with "
            "its error, and model.gibbs for approximate samples."
        )
    return Elimination(model, order)


def _bytes(count: int) -> str:
    for power, unit in enumerate(("bytes", "kB", "MB", "GB", "TB")):
        if count < 1000 ** (power + 1):
            return f"{count / 1000**power:.3g} {unit}"
    return f"about 10^{len(str(count)) - 1} bytes"
