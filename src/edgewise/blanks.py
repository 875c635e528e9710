"""Rows with blank cells: which of them are alike, and what a table with blanks says before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgewise.data.table import Data
from edgewise.errors import DataError
from edgewise.features import Features, Statistics, sufficient_statistics
from edgewise.scales import Scales


@dataclass(frozen=True, eq=False)
class Patterns:
    """The rows with blanks, whose likelihood is (12.1): those with equal answers and blanks are one pattern.

    Attributes
    ----------
    known : int16 array (G, p)
        Numbers of levels, and -1 where a cell is blank.
    count : int64 array (G,)
        How many rows each pattern stands for, counted with their weights.
    start, variables : int64 arrays (G + 1,) and (cells,)
        ``variables[start[g] : start[g + 1]]`` are the blank ones of a pattern, ascending.
    rows, pattern : int64 arrays
        The rows with blanks, and the pattern of each.
    """

    known: np.ndarray
    count: np.ndarray
    start: np.ndarray
    variables: np.ndarray
    rows: np.ndarray
    pattern: np.ndarray

    @property
    def n_blanks(self) -> np.ndarray:
        """Number of blanks of every pattern: (G,)."""
        return np.diff(self.start)

    @property
    def cells(self) -> int:
        """Number of blank cells of all patterns."""
        return len(self.variables)


def patterns_of(data: Data) -> Patterns | None:
    """Group the rows with blanks; None where there are none.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data([[1, None], [0, 1], [1, None], [1, 0]], missing="impute")
    >>> found = patterns_of(data)
    >>> found.known.tolist(), found.count.tolist(), found.rows.tolist()
    ([[1, -1]], [2], [0, 2])
    """
    if data.unknown is None:
        return None
    unknown = data.unknown_cells()
    rows = np.flatnonzero(unknown.any(axis=1))
    if not len(rows):
        return None
    cells = np.where(unknown[rows], -1, data.values()[rows].astype(np.int16))
    known, pattern = np.unique(cells, axis=0, return_inverse=True)
    pattern = np.ravel(pattern)
    weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]
    if (weights % 1 != 0).any():
        where = int(np.flatnonzero(weights % 1 != 0)[0])
        row = int(rows[where])
        column = data.names[int(np.flatnonzero(unknown[row])[0])]
        raise DataError(
            f"Row {data.row_number(row)} has the weight {weights[where]:g} and a blank in column {column!r}: "
            "a row with blanks stands for a whole number of rows, each with answers of its own. Round the "
            "weights of such rows, or leave them out with missing='drop'."
        )
    count = np.bincount(pattern, weights, len(known)).astype(np.int64)
    which, variables = np.nonzero(known < 0)
    start = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(known)))])
    return Patterns(
        np.ascontiguousarray(known), count, start.astype(np.int64), variables.astype(np.int64), rows, pattern
    )


def statistics_of(data: Data, features: Features) -> Statistics:
    """Sums over the rows; what is blank counts as the mean of its column.

    A chain begins with these sums and draws its blanks anew.
    """
    if data.unknown is None:
        return sufficient_statistics(data, features)
    return filled_statistics(data, features, mean=True)


def filled_statistics(data: Data, features: Features, *, mean: bool) -> Statistics:
    """Sums over the rows whose blanks have the mean features of their columns, or features of zero.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data([[1, None], [0, 1], [1, 0]], missing="impute")
    >>> filled_statistics(data, Features.pairs(2), mean=False).singles.tolist()
    [2.0, 1.0]
    """
    scales, members = data.scales, features.members
    p = data.n_variables
    weights = np.ones(data.n_rows) if data.weights is None else np.asarray(data.weights, float)
    scores, thresholds = _owners(scales.score_start), _owners(scales.bias_start)
    block = max(1, 2_000_000 // max(1, p))
    blocks = [slice(k, min(k + block, data.n_rows)) for k in range(0, data.n_rows, block)]
    fill_scores, fill_thresholds = np.zeros(len(scores)), np.zeros(len(thresholds))
    if mean:
        seen = np.zeros(p)
        for part in blocks:
            rows, weight, blank = data.values(part.start, part.stop), weights[part], _blank(data, part)
            seen += weight @ ~blank
            fill_scores += weight @ np.where(blank[:, scores], 0.0, scales.scored(rows))
            fill_thresholds += weight @ np.where(blank[:, thresholds], 0.0, scales.thresholded(rows))
        fill_scores /= np.maximum(seen, 1e-300)[scores]
        fill_thresholds /= np.maximum(seen, 1e-300)[thresholds]
    singles, products = np.zeros(len(thresholds)), np.zeros((len(scores),) * 2)
    larger = np.flatnonzero((members[:, 2:] >= 0).any(axis=1))
    larger_sums = np.zeros(len(larger))
    for part in blocks:
        rows, weight, blank = data.values(part.start, part.stop), weights[part], _blank(data, part)
        scored = np.where(blank[:, scores], fill_scores, scales.scored(rows))
        singles += weight @ np.where(blank[:, thresholds], fill_thresholds, scales.thresholded(rows))
        products += (scored * weight[:, None]).T @ scored
        for k, a in enumerate(larger):
            larger_sums[k] += weight @ scored[:, members[a][members[a] >= 0]].prod(axis=1)
    start = scales.score_start
    if scales.all_binary:
        cliques = products[members[:, 0], members[:, 1]]
        cliques[larger] = larger_sums
    else:
        parts = [
            products[start[i] : start[i + 1], start[j] : start[j + 1]].ravel()
            for i, j in members[:, :2].tolist()
        ]
        cliques = np.concatenate([np.zeros(0), *parts])
    return Statistics(data.total, singles, cliques)


def _blank(data: Data, part: slice) -> np.ndarray:
    return data.unknown_cells(part.start, part.stop)


def _owners(start: np.ndarray) -> np.ndarray:
    """The variable that each column of features belongs to."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def states_of(scales: Scales, patterns: Patterns) -> np.ndarray:
    """Number of ways in which the blanks of every pattern can be filled, as floats: (G,)."""
    logs = np.log(scales.levels.astype(float))[patterns.variables]
    return np.rint(np.exp(np.add.reduceat(logs, patterns.start[:-1])))
