"""Checks of the arguments of a model, each naming what is wrong and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Clique
from edgewise.features.candidates import label_of, resolve_clique


def read_only(array: np.ndarray) -> np.ndarray:
    """The same array, closed for writing."""
    array.flags.writeable = False
    return array


def float_vector(values: Any, what: str) -> np.ndarray:
    """A fresh float64 vector."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"The {what} must be numbers; {str(values)[:80]} are not.") from None
    if vector.ndim != 1:
        raise DataError(f"The {what} must be one row of numbers, not an array of shape {vector.shape}.")
    return vector


def symmetric_matrix(matrix: Any, what: str) -> np.ndarray:
    """A fresh symmetric float64 matrix with a zero diagonal."""
    result = np.array(matrix, dtype=np.float64)
    if result.ndim != 2 or result.shape[0] != result.shape[1]:
        raise DataError(f"The {what} must be a square matrix, not an array of shape {result.shape}.")
    if np.diag(result).any():
        first = int(np.flatnonzero(np.diag(result))[0])
        raise DataError(f"The {what} must have a zero diagonal; entry ({first}, {first}) is not zero.")
    if not np.array_equal(result, result.T, equal_nan=True):
        i, j = map(int, np.argwhere(result != result.T)[0])
        raise DataError(f"The {what} must be symmetric; entries ({i}, {j}) and ({j}, {i}) differ.")
    return result


def checked_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...] | None:
    """Names that are there, differ and are as many as the variables."""
    if names is None:
        return None
    result = tuple(str(name) for name in names)
    if len(result) != n_variables:
        raise DataError(f"There are {len(result)} names for {n_variables} variables.")
    if len(set(result)) != len(result):
        twice = next(name for k, name in enumerate(result) if name in result[:k])
        raise DataError(f"Two variables are named {twice!r}; names must differ.")
    if "" in result:
        raise DataError(f"Variable {result.index('')} has an empty name.")
    return result


def member_table(
    cliques: Sequence[Clique] | np.ndarray, n_variables: int, names: tuple[str, ...] | None
) -> np.ndarray:
    """Check the cliques and lay them out as one array, ascending in each row and padded with -1."""
    if isinstance(cliques, np.ndarray) and np.issubdtype(cliques.dtype, np.integer) and cliques.ndim == 2:
        table = np.sort(cliques.astype(np.int64), axis=1)
        listed = [row[row >= 0] for row in table] if _table_is_odd(table, n_variables) else None
    else:
        listed = list(cliques)
    if listed is not None:
        resolved = [resolve_clique(clique, n_variables, names) for clique in listed]
        table = np.full((len(resolved), max(map(len, resolved), default=2)), -1, np.int64)
        for row, clique in enumerate(resolved):
            table[row, len(table[row]) - len(clique) :] = clique
    # Drop columns of padding only (they sort to the front), but keep the two that every clique fills.
    unused = int((table < 0).all(axis=0).sum())
    table = table[:, min(unused, table.shape[1] - 2) :]
    ordered = table[np.lexsort(table.T)]
    repeated = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    if len(repeated):
        clique = tuple(int(i) for i in ordered[repeated[0]] if i >= 0)
        raise DataError(f"The clique {label_of(clique, names)} is listed twice; list it once.")
    # Padding goes behind the variables: a stable sort on "is padding" keeps them ascending.
    order = np.argsort(table < 0, axis=1, kind="stable")
    return np.ascontiguousarray(np.take_along_axis(table, order, axis=1).astype(np.int32))


def _table_is_odd(table: np.ndarray, n_variables: int) -> bool:
    """Whether a sorted table of members needs the careful path, which finds the words for what is wrong."""
    if table.shape[1] < 2 or (table[:, -2:] < 0).any() or (table >= n_variables).any():
        return True
    return bool(((table[:, 1:] == table[:, :-1]) & (table[:, 1:] >= 0)).any())
