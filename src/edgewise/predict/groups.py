"""Groups of variables for conditional scores, and the checks of rows, groups and targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.data.table import Data
from edgewise.errors import DataError
from edgewise.model.mrf import MRF


def grid_windows(rows: int, columns: int, size: int = 3) -> np.ndarray:
    """All windows of `size` x `size` variables on a grid: int64 (windows, size * size).

    Variables are numbered row by row.

    Examples
    --------
    >>> grid_windows(2, 3, size=2)
    array([[0, 1, 3, 4],
           [1, 2, 4, 5]])
    """
    if not 1 <= size <= min(rows, columns):
        raise DataError(f"A window of {size} x {size} does not fit on a grid of {rows} x {columns}.")
    corner = (np.arange(rows - size + 1)[:, None] * columns + np.arange(columns - size + 1)).ravel()
    inside = (np.arange(size)[:, None] * columns + np.arange(size)).ravel()
    return corner[:, None] + inside


def random_windows(n_rows: int, windows: np.ndarray, seed: int | np.random.Generator = 0) -> np.ndarray:
    """One of the windows for each of `n_rows` rows, at random: int64 (n_rows, k).

    Examples
    --------
    >>> from edgewise import predict
    >>> predict.random_windows(5, predict.grid_windows(4, 4, size=2), seed=1).shape
    (5, 4)
    """
    windows = np.asarray(windows)
    return windows[np.random.default_rng(seed).integers(len(windows), size=n_rows)]


def random_groups(
    n_rows: int, n_variables: int, size: int, seed: int | np.random.Generator = 0
) -> np.ndarray:
    """A random set of `size` variables for each of `n_rows` rows: int64 (n_rows, size), ascending.

    Examples
    --------
    >>> from edgewise import predict
    >>> predict.random_groups(3, 10, 4, seed=1).shape
    (3, 4)
    """
    if not 1 <= size <= n_variables:
        raise DataError(f"A group of {size} among {n_variables} variables is not possible.")
    rng = np.random.default_rng(seed)
    scores = rng.random((n_rows, n_variables))
    return np.sort(np.argpartition(scores, size - 1, axis=1)[:, :size], axis=1)


def complete_rows(model: MRF, X: Any) -> np.ndarray:
    """The 0/1 rows as float64 (n, p), checked against the model."""
    return model._rows(X.values() if isinstance(X, Data) else X)


def partial_rows(model: MRF, X: Any) -> np.ndarray:
    """The rows as int8 (n, p), with -1 where a cell is unseen."""
    values = np.array(X.values() if isinstance(X, Data) else X, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != model.n_variables:
        raise DataError(
            f"The rows must have {model.n_variables} columns, one per variable; "
            f"they have shape {values.shape}."
        )
    values[np.isnan(values)] = -1
    wrong = ~((values >= -1) & (values < model.scales.levels) & (values == np.floor(values)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        top = int(model.scales.levels[column]) - 1
        known = "0, 1," if top == 1 else f"0 to {top},"
        raise DataError(
            f"Cells are {known} or -1 where unseen, but row {row} has {values[row, column]:g} "
            f"in column {column}."
        )
    return values.astype(np.int8)


def spread(groups: np.ndarray, n_rows: int) -> np.ndarray:
    """The groups with one row each, repeated without copying where all share one."""
    return groups if len(groups) == n_rows else np.broadcast_to(groups, (n_rows, groups.shape[1]))


def resolve_groups(model: MRF, n_rows: int, groups: Any) -> np.ndarray:
    """Variables of the groups: int64 (n_rows, k), or (1, k) when all rows share one."""
    if isinstance(groups, str) and groups == "all":
        return np.arange(model.n_variables)[None]
    if isinstance(groups, str) or len(groups) == 0:
        raise DataError(f'groups is "all", a list of variables or one list per row, not {groups!r}.')
    if np.ndim(groups[0]) == 0:
        return _check_distinct(resolve_variables(model, list(groups))[None])
    table = np.asarray(groups)
    if table.ndim != 2 or len(table) not in (1, n_rows) or table.dtype.kind not in "iu":
        raise DataError(
            f"Give one group of equal size per row, as integers of shape ({n_rows}, k); these have shape "
            f"{table.shape}."
        )
    if table.min() < 0 or table.max() >= model.n_variables:
        raise DataError(
            f"The groups name variable {table.min() if table.min() < 0 else table.max()}; the "
            f"{model.n_variables} variables are numbered from 0."
        )
    return _check_distinct(table.astype(np.int64))


def _check_distinct(table: np.ndarray) -> np.ndarray:
    ordered = np.sort(table, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        raise DataError(f"A group must not name a variable twice; the group {table[row].tolist()} does.")
    return table


def resolve_variables(model: MRF, variables: Sequence[int | str]) -> np.ndarray:
    """Numbers of variables given by number or name: int64 (k,)."""
    result = []
    for variable in variables:
        if isinstance(variable, str):
            if model.names is None or variable not in model.names:
                raise DataError(f"The model has no variable named {variable!r}.")
            result.append(model.names.index(variable))
        elif 0 <= int(variable) < model.n_variables:
            result.append(int(variable))
        else:
            raise DataError(
                f"There is no variable {variable}; the {model.n_variables} variables are numbered from 0."
            )
    return np.array(result, dtype=np.int64)
