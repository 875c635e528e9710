"""Exact inference: log Z, means, covariances, conditionals and independent samples of a model.

Each function picks its method by itself: listing all 2^p states for few variables, eliminating variables one
by one on larger sparse graphs (docs/method.md, section 3). A graph too wide for both is refused before any
memory is spent.

States of a group of k variables are numbered 0 to 2^k - 1, bit j of the number being the value of the j-th
variable of the group; :func:`states` lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.exact.elimination import BYTES_PER_CELL, Elimination
from edgewise.exact.enumeration import Enumeration, pack, state_number, states, sum_over_subsets
from edgewise.exact.orders import Order, elimination_orders
from edgewise.features import _label
from edgewise.model.mrf import MRF

__all__ = [
    "conditional",
    "conditional_log_probability",
    "covariance",
    "elimination_width",
    "feasible",
    "log_partition",
    "marginals",
    "means",
    "pair_marginals",
    "probabilities",
    "sample",
    "states",
]

ENUMERATION_LIMIT = 22
"""Most variables whose states are listed."""

ALWAYS_ENUMERATED = 12
"""Up to here listing the states is faster than finding an order, whatever the graph."""

MEMORY_LIMIT = 2_000_000_000
"""Bytes that elimination may use for its tables."""

GROUP_LIMIT = 16
"""Largest group of which :func:`conditional` lists the states."""


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
    """
    return _solver(model).means()


def marginals(model: MRF) -> np.ndarray:
    """P(x_i = 1) of every variable: float64 (p,)."""
    return means(model)[: model.n_variables]


def pair_marginals(model: MRF) -> np.ndarray:
    """P(x_i = 1 and x_j = 1) of all pairs, coupled or not, and P(x_i = 1) on the diagonal: float64 (p, p)."""
    return _solver(model).pair_marginals()


def covariance(model: MRF) -> np.ndarray:
    """Covariance of all features: float64 (p + m, p + m) (1.4).

    The order is that of :func:`means`; it is the Hessian of log Z. By elimination every row costs as much
    as :func:`means`.
    """
    solver = _solver(model)
    center = solver.means()
    return solver.second_moments() - np.outer(center, center)


def probabilities(model: MRF) -> np.ndarray:
    """Probability of every one of the 2^p states, numbered as in :func:`states`: float64 (2^p,)."""
    if model.n_variables > ENUMERATION_LIMIT:
        raise DataError(
            f"A model of {model.n_variables} variables has 2^{model.n_variables} states; they are listed for "
            f"at most {ENUMERATION_LIMIT} variables. Use means, pair_marginals or conditional."
        )
    return Enumeration(model).probabilities()


def sample(model: MRF, n: int, rng: np.random.Generator | int) -> np.ndarray:
    """Independent draws from the model, exact ones: uint8 (n, p).

    Parameters
    ----------
    model : MRF
    n : int
        Number of rows.
    rng : numpy.random.Generator or int
        Source of randomness, or a seed.
    """
    if n < 0:
        raise DataError(f"The number of samples must be zero or more, not {n}.")
    return _solver(model).sample(n, np.random.default_rng(rng))


def elimination_width(model: MRF) -> int:
    """Number of variables a variable is joined with, at most, when they are eliminated one by one.

    The smallest over the orders tried: the treewidth of the graph or an upper bound of it. Exact inference
    by elimination needs tables of 2^(width + 1) cells. Cliques of weight zero do not count.
    """
    return min(order.width for order in _orders(model))


def feasible(model: MRF) -> bool:
    """Whether the functions of this module can deal with the model."""
    return (
        model.n_variables <= ENUMERATION_LIMIT or cheapest_order(model).cells * BYTES_PER_CELL <= MEMORY_LIMIT
    )


def conditional(model: MRF, group: Sequence[int | str], given: Any) -> np.ndarray:
    """Log-probability of every state of a group of variables given all other variables.

    Parameters
    ----------
    model : MRF
    group : sequence of k variables, by number or name
        At most 16.
    given : array-like (n, p)
        Rows of 0/1 values; the columns of the group are not looked at and may hold anything.

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
    members, rows = _check_conditional(model, group, given)
    needed = 2 * len(rows) * 8 << len(members)
    if needed > MEMORY_LIMIT:
        raise DataError(
            f"The states of {len(members)} variables for {len(rows):,} rows would need {_bytes(needed)} of "
            f"memory; the limit is {_bytes(MEMORY_LIMIT)}. Use conditional_log_probability, give fewer rows "
            "at a time, or a smaller group."
        )
    result = _GroupTable(model, members).log_potential(rows)
    result -= _log_sum(result)[:, None]
    return result


def conditional_log_probability(model: MRF, group: Sequence[int | str], rows: Any) -> np.ndarray:
    """Log P(group as in the row | all other variables as in the row) of every row: float64 (n,).

    The same numbers as :func:`conditional`, for the states that the rows are in, in little memory.
    """
    members, rows = _check_conditional(model, group, rows)
    inside = rows[:, members]
    if ((inside != 0) & (inside != 1)).any():
        raise DataError("The rows must have 0 or 1 in the columns of the group; some have other values.")
    table = _GroupTable(model, members)
    result = np.empty(len(rows))
    block = max(1, 2_000_000 >> len(members))
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        potential = table.log_potential(part)
        chosen = potential[np.arange(len(part)), pack(part, members)]
        result[start : start + block] = chosen - _log_sum(potential)
    return result


class _GroupTable:
    """Log-potentials of a group's states as a function of the variables around it.

    Every clique that touches the group is split into its inside and its outside. Cliques with the same
    inside differ only in a row-dependent factor, so one number per row and inside is enough, and the
    potential of a state is the sum of the numbers of all insides contained in the state (docs/method.md,
    eq. 3.8).
    """

    def __init__(self, model: MRF, members: list[int]) -> None:
        place = {variable: j for j, variable in enumerate(members)}
        constant = np.zeros(1 << len(members))
        constant[[1 << j for j in range(len(members))]] = model.biases[members]
        varying: dict[int, list[tuple[list[int], float]]] = {}
        for clique, weight in zip(model.cliques, model.weights.tolist()):
            inside = state_number(place[i] for i in clique if i in place)
            outside = [i for i in clique if i not in place]
            if not inside or weight == 0.0:
                continue
            if outside:
                varying.setdefault(inside, []).append((outside, weight))
            else:
                constant[inside] += weight
        numbers = np.arange(1 << len(members))
        insides = np.array(list(varying), np.int64)
        self.contains = ((numbers & insides[:, None]) == insides[:, None]).astype(np.float64)
        self.varying = list(varying.values())
        sum_over_subsets(constant)
        self.constant = constant

    def log_potential(self, rows: np.ndarray) -> np.ndarray:
        factors = np.zeros((len(rows), len(self.varying)))
        for column, terms in enumerate(self.varying):
            for outside, weight in terms:
                factors[:, column] += weight * rows[:, outside].prod(axis=1)
        return np.asarray(factors @ self.contains + self.constant)


def _check_conditional(model: MRF, group: Sequence[int | str], rows: Any) -> tuple[list[int], np.ndarray]:
    members = []
    for variable in group:
        if isinstance(variable, str):
            if model.names is None or variable not in model.names:
                raise DataError(f"The model has no variable named {variable!r}.")
            members.append(model.names.index(variable))
        elif 0 <= variable < model.n_variables:
            members.append(int(variable))
        else:
            raise DataError(
                f"There is no variable {variable}; the {model.n_variables} variables are numbered from 0."
            )
    if not members or len(set(members)) != len(members):
        raise DataError("The group must be one or more different variables.")
    if len(members) > GROUP_LIMIT:
        raise DataError(
            f"The group has {len(members)} variables and 2^{len(members)} states; at most {GROUP_LIMIT} "
            "variables are possible. Use smaller groups."
        )
    table = np.asarray(rows)
    if table.ndim != 2 or table.shape[1] != model.n_variables:
        raise DataError(
            f"The given values must have shape (n, {model.n_variables}), one column per variable; these have "
            f"shape {table.shape}."
        )
    others = np.delete(np.arange(model.n_variables), members)
    around = table[:, others]
    bad = (around != 0) & (around != 1)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        raise DataError(
            f"Given values are 0 or 1, but row {row} has {around[row, column]} for variable "
            f"{_label((int(others[column]),), model.names)}, which is not in the group."
        )
    return members, table


def _log_sum(log_values: np.ndarray) -> np.ndarray:
    peak = log_values.max(axis=1)
    return np.asarray(peak + np.log(np.exp(log_values - peak[:, None]).sum(axis=1)))


def _orders(model: MRF) -> tuple[Order, ...]:
    cliques = model.cliques
    if not model.weights.all():
        cliques = tuple(clique for clique, weight in zip(cliques, model.weights) if weight != 0.0)
    return elimination_orders(model.n_variables, cliques)


def cheapest_order(model: MRF) -> Order:
    """The elimination order with the fewest cells of those tried."""
    return min(_orders(model), key=lambda order: order.cells)


def _solver(model: MRF) -> Enumeration | Elimination:
    """The cheaper of the two methods; an error where neither is possible."""
    p = model.n_variables
    if p <= ALWAYS_ENUMERATED:
        return Enumeration(model)
    order = cheapest_order(model)
    # Enumeration is a few passes over one large array, elimination many over small ones: it has to win by
    # a margin.
    if p <= ENUMERATION_LIMIT and order.cells << 3 > 1 << p:
        return Enumeration(model)
    needed = order.cells * BYTES_PER_CELL
    if needed > MEMORY_LIMIT:
        raise DataError(
            f"The graph of this model ({p} variables, {np.count_nonzero(model.weights)} cliques) is too wide "
            f"for exact inference: eliminating its variables joins {order.width + 1} of them at a time "
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
