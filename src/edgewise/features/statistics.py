"""Sums of the candidates' features over the data: all that the likelihood knows of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgewise.data.table import BinaryData, Data
from edgewise.errors import DataError
from edgewise.features.candidates import MOST_LISTED, Features
from edgewise.scales import Scales, check_cliques


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics: all that the likelihood (1.3) knows of the data.

    Attributes
    ----------
    n_rows : float
        Number of rows N, or the sum of the row weights.
    singles : float64 array (p,)
        Sum of every variable; with more levels, of the feature of every threshold coordinate.
    cliques : float64 array (M,)
        Sum of every candidate's feature (empty where these are more pairs than are laid out); with more
        levels, of all products of scores of every candidate, in the order of the parameters of a model.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> from edgewise.features import Features, sufficient_statistics
    >>> found = sufficient_statistics(read_data([[0, 1], [1, 1], [1, 0]]), Features.pairs(2))
    >>> found.n_rows, found.singles.tolist(), found.cliques.tolist()
    (3.0, [2.0, 2.0], [1.0])
    """

    n_rows: float
    singles: np.ndarray
    cliques: np.ndarray

    @classmethod
    def none(cls, features: Features, scales: Scales | None = None) -> Statistics:
        """The statistics of no data at all: the posterior is then the prior."""
        if scales is None or scales.all_binary:
            return cls(0.0, np.zeros(features.n_variables), np.zeros(features.n_cliques))
        return cls(0.0, np.zeros(scales.n_biases), np.zeros(int(scales.dimensions(features.members).sum())))


def sufficient_statistics(data: Data, features: Features) -> Statistics:
    """Sum every feature over the rows.

    Pairs are summed by BLAS in blocks of rows, larger cliques by counting bits of the packed columns (or,
    with row weights, by products in blocks), so that no more than a block is ever unpacked.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> data = read_data([[0, 1, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1]])
    >>> statistics = sufficient_statistics(data, Features.up_to(3, 3))
    >>> statistics.singles.tolist(), statistics.cliques.tolist()
    ([2.0, 3.0, 3.0], [2.0, 1.0, 2.0, 1.0])
    """
    if data.unknown is not None:
        raise DataError("Cells of the table are blank; read it with missing='drop' to sum its features.")
    if not isinstance(data, BinaryData):
        return level_statistics(data.values(), data.weights, data.scales, features)
    if features.unlisted:
        return Statistics(data.total, _column_sums(data), np.zeros(0))
    p = data.n_variables
    if features.table is not None and p * p > MOST_LISTED and features.pairs_only and data.weights is None:
        return Statistics(data.total, _column_sums(data), _count_by_bits(data, features.table))
    pair_sums = np.zeros((p, p))
    # Sums of at most 65,536 ones are exact in single precision, which BLAS does twice as fast.
    block = max(1, min(65_536, 16_000_000 // max(p, 1)))
    for start in range(0, data.n_rows, block):
        rows = data.values(start, start + block)
        if data.weights is None:
            single = rows.astype(np.float32)
            pair_sums += single.T @ single
        else:
            double = rows.astype(np.float64)
            pair_sums += (double * data.weights[start : start + len(rows), None]).T @ double
    singles = np.diag(pair_sums).copy()
    if features.all_pairs:
        return Statistics(data.total, singles, pair_sums[np.triu_indices(p, 1)])
    table = features.members
    sizes = (table >= 0).sum(axis=1)
    sums = np.empty(len(table))
    for size in np.unique(sizes).tolist():
        chosen = np.flatnonzero(sizes == size)
        members = table[chosen, :size]
        if size == 2:
            sums[chosen] = pair_sums[members[:, 0], members[:, 1]]
        elif data.weights is None:
            sums[chosen] = _count_by_bits(data, members)
        else:
            sums[chosen] = _sum_by_products(data, data.weights, members)
    return Statistics(data.total, singles, sums)


def level_statistics(
    rows: np.ndarray, weights: np.ndarray | None, scales: Scales, features: Features
) -> Statistics:
    """Sum the features of rows of level numbers (11.4), by BLAS over the scores in blocks of rows.

    Examples
    --------
    >>> from edgewise.scales import Scale
    >>> scales = Scales((Scale("ordinal", ("low", "middle", "high")),) * 2)
    >>> level_statistics(np.array([[0, 2], [1, 2], [2, 1]]), None, scales, Features.pairs(2)).cliques
    array([1.])
    """
    check_cliques(scales, features.members)
    share = np.ones(len(rows)) if weights is None else weights
    singles, products = np.zeros(scales.n_biases), np.zeros((int(scales.score_start[-1]),) * 2)
    block = max(1, 4_000_000 // max(1, len(products)))
    for start in range(0, len(rows), block):
        part, weight = rows[start : start + block], share[start : start + block]
        scored = scales.scored(part)
        singles += weight @ scales.thresholded(part)
        products += (scored * weight[:, None]).T @ scored
    where = scales.score_start
    sums = [
        products[where[i] : where[i + 1], where[j] : where[j + 1]].ravel()
        for i, j in features.members[:, :2].tolist()
    ]
    return Statistics(float(share.sum()), singles, np.concatenate([np.zeros(0), *sums]))


def _column_sums(data: BinaryData) -> np.ndarray:
    """Sum of every variable over the rows."""
    if data.weights is None:
        return np.asarray(np.bitwise_count(data.packed).sum(axis=1, dtype=np.int64), float)
    return np.array([data.column(i) @ data.weights for i in range(data.n_variables)])


def _count_by_bits(data: BinaryData, members: np.ndarray) -> np.ndarray:
    """Number of rows in which all members of each clique are 1."""
    counts = np.empty(len(members))
    block = max(1, 4_000_000 // max(1, data.packed.shape[1]))
    for start in range(0, len(members), block):
        part = members[start : start + block]
        both = data.packed[part[:, 0]]
        for column in range(1, part.shape[1]):
            both &= data.packed[part[:, column]]
        counts[start : start + block] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return counts


def _sum_by_products(data: BinaryData, weights: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Total weight of the rows in which all members of each clique are 1."""
    sums = np.zeros(len(members))
    for row in range(0, data.n_rows, 8192):
        columns = np.ascontiguousarray(data.values(row, row + 8192).T)
        for start in range(0, len(members), 512):
            part = members[start : start + 512]
            product = columns[part[:, 0]]
            for column in range(1, part.shape[1]):
                product &= columns[part[:, column]]
            sums[start : start + 512] += product @ weights[row : row + columns.shape[1]]
    return sums
