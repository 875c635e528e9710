"""Candidate cliques: which products of variables may enter the model, and their sums over the data.

The feature of a clique is the product of its 0/1 variables (eq. 1). Every variable has a bias; the
*candidates* are the cliques of two or more variables. All pairs, the default, are indexed by a formula;
other sets are kept as one small integer array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgewise.data.table import BinaryData, Data
from edgewise.errors import DataError
from edgewise.reading import physical_memory
from edgewise.scales import Scales, check_cliques

Clique = Sequence[int | str]
FeatureArgument = int | Iterable[Clique] | None

CANDIDATE_BYTES = 100  # of a fit, about: 2 million candidates were measured to take 430 MB, with all else
# Of more pairs than this only those that matter are listed (``engines/sparse.py``).
MOST_LISTED = 600_000
# Candidates have numbers of 32 bits.
MOST_VARIABLES = 65_536


@dataclass(frozen=True, eq=False)
class Features:
    """The candidate cliques over `n_variables` variables.

    Use :meth:`pairs`, :meth:`up_to` or :meth:`listed` rather than the constructor. Candidates are ordered
    by size and lexicographically within a size, so that all pairs come in the order of
    ``numpy.triu_indices(p, 1)``; `listed` sorts in the same way.

    Examples
    --------
    >>> from edgewise.features import Features
    >>> features = Features.up_to(4, 3)
    >>> features.n_cliques, features.clique(6), features.index((0, 1, 2))
    (10, (0, 1, 2), 6)
    """

    n_variables: int
    table: np.ndarray | None = None

    @classmethod
    def pairs(cls, n_variables: int) -> Features:
        """All pairs of variables."""
        return cls(n_variables)

    @classmethod
    def up_to(cls, n_variables: int, order: int) -> Features:
        """All cliques of two up to `order` variables."""
        if not 2 <= order <= n_variables:
            raise DataError(
                f"The order of the features must be between 2 and the number of variables "
                f"({n_variables}), not {order}."
            )
        if order == 2:
            return cls(n_variables)
        count = sum(math.comb(n_variables, size) for size in range(2, order + 1))
        if count > 50_000_000:
            raise DataError(
                f"All cliques of up to {order} among {n_variables} variables are {count:,} candidates; "
                "list the cliques you are interested in, or lower the order."
            )
        table = np.full((count, order), -1, np.int32)
        start = 0
        for size in range(2, order + 1):
            block = math.comb(n_variables, size)
            flat = itertools.chain.from_iterable(itertools.combinations(range(n_variables), size))
            members = np.fromiter(flat, np.int32, block * size)
            table[start : start + block, :size] = members.reshape(block, size)
            start += block
        return cls(n_variables, table)

    @classmethod
    def listed(
        cls, n_variables: int, cliques: Iterable[Clique], names: Sequence[str] | None = None
    ) -> Features:
        """An explicit list of cliques, each by indices or names."""
        positions = _positions(names)
        resolved = [_resolve_clique(clique, n_variables, names, positions) for clique in cliques]
        seen: set[tuple[int, ...]] = set()
        for clique in resolved:
            if clique in seen:
                raise DataError(f"The clique {_label(clique, names)} is listed twice; list it once.")
            seen.add(clique)
        if not resolved:
            raise DataError("The list of cliques is empty; give at least one clique of two variables.")
        resolved.sort(key=lambda clique: (len(clique), clique))
        table = np.full((len(resolved), max(map(len, resolved))), -1, np.int32)
        for row, clique in enumerate(resolved):
            table[row, : len(clique)] = clique
        return cls(n_variables, table)

    @property
    def n_cliques(self) -> int:
        """Number M of candidates."""
        if self.table is None:
            return self.n_variables * (self.n_variables - 1) // 2
        return len(self.table)

    @property
    def max_order(self) -> int:
        """Size of the largest candidate."""
        return 2 if self.table is None else self.table.shape[1]

    @property
    def all_pairs(self) -> bool:
        """Whether the candidates are exactly all pairs."""
        return self.table is None

    @property
    def unlisted(self) -> bool:
        """Whether the candidates are more pairs than are laid out in arrays."""
        return self.table is None and self.n_cliques > MOST_LISTED

    @property
    def pairs_only(self) -> bool:
        """Whether every candidate is a pair."""
        return self.max_order == 2

    @cached_property
    def members(self) -> np.ndarray:
        """Variables of every candidate: int32 (M, max_order), ascending, padded with -1."""
        if self.table is not None:
            return self.table
        rows, columns = np.triu_indices(self.n_variables, 1)
        return np.stack([rows, columns], axis=1).astype(np.int32)

    def clique(self, index: int) -> tuple[int, ...]:
        """Variables of one candidate."""
        if not 0 <= index < self.n_cliques:
            raise IndexError(f"there is no candidate {index}; there are {self.n_cliques}")
        if self.table is not None:
            return tuple(int(i) for i in self.table[index] if i >= 0)
        p = self.n_variables
        i = int(p - 2 - math.floor((math.isqrt(4 * p * (p - 1) - 8 * index - 7) - 1) / 2))
        j = index + i + 1 - (p * (p - 1) - (p - i) * (p - i - 1)) // 2
        return i, j

    def index(self, clique: Clique, names: Sequence[str] | None = None) -> int:
        """Index of a candidate given by variable indices or names, in any order."""
        members = _resolve_clique(clique, self.n_variables, names)
        if self.table is None:
            if len(members) != 2:
                raise DataError(
                    f"The clique {_label(members, names)} is not a candidate: the candidates are all pairs. "
                    "Ask for larger cliques with features=3 or a list."
                )
            i, j = members
            return i * self.n_variables - i * (i + 1) // 2 + j - i - 1
        try:
            return self._positions[members]
        except KeyError:
            raise DataError(
                f"The clique {_label(members, names)} is not among the {self.n_cliques} candidates."
            ) from None

    @cached_property
    def _positions(self) -> dict[tuple[int, ...], int]:
        assert self.table is not None
        return {tuple(i for i in row if i >= 0): k for k, row in enumerate(self.table.tolist())}

    def label(self, index: int, names: Sequence[str] | None = None) -> str:
        """Readable name of a candidate, for instance ``sleep -- mood``."""
        return _label(self.clique(index), names)


def check_candidates(argument: FeatureArgument | Features, n_variables: int) -> None:
    """Refuse all pairs of more variables than candidates have numbers for.

    Examples
    --------
    >>> check_candidates(None, 10_000)
    """
    if argument is None and n_variables > MOST_VARIABLES:
        raise DataError(
            f"All pairs of {n_variables:,} variables are {math.comb(n_variables, 2):,} candidates, and those "
            f"of {MOST_VARIABLES:,} variables are the most that can be told apart. Take fewer columns, or "
            "list the pairs you are interested in with features=[...]."
        )


def check_laid_out(n_variables: int, n_bytes: int = CANDIDATE_BYTES) -> None:
    """Refuse all pairs of variables with levels where no fit of them fits into memory.

    Examples
    --------
    >>> check_laid_out(1000)
    """
    count, memory = math.comb(n_variables, 2), physical_memory()
    if count * n_bytes > memory:
        raise DataError(
            f"All pairs of {n_variables:,} variables are {count:,} candidates; a fit of them takes about "
            f"{count * n_bytes / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f}. Take fewer "
            "columns, list the pairs you are interested in with features=[...], or cut the levels in two: of "
            "binary variables only the pairs that matter are laid out."
        )


def resolve_features(
    argument: FeatureArgument | Features, n_variables: int, names: Sequence[str] | None = None
) -> Features:
    """Turn the user's `features` argument into :class:`Features`.

    None means all pairs, an integer all cliques up to that size, and a list the cliques in it.

    Examples
    --------
    >>> from edgewise.features import resolve_features
    >>> resolve_features(3, 4, ["a", "b", "c", "d"]).n_cliques
    10
    """
    if isinstance(argument, Features):
        if argument.n_variables != n_variables:
            raise DataError(
                f"The features are made for {argument.n_variables} variables and the data have {n_variables}."
            )
        return argument
    check_candidates(argument, n_variables)
    if argument is None:
        return Features.pairs(n_variables)
    if isinstance(argument, bool | str) or not isinstance(argument, int | np.integer | Iterable):
        raise DataError(
            f"features must be None, a clique size such as 3, or a list of cliques; not {argument!r}."
        )
    if isinstance(argument, int | np.integer):
        return Features.up_to(n_variables, int(argument))
    return Features.listed(n_variables, argument, names)


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


def _resolve_clique(
    clique: Clique,
    n_variables: int,
    names: Sequence[str] | None,
    positions: Mapping[str, int] | None = None,
) -> tuple[int, ...]:
    """Ascending variable numbers of a clique; `positions` saves looking through `names` for many cliques."""
    if isinstance(clique, str) or not isinstance(clique, Sequence | np.ndarray):
        raise DataError(f"A clique is a list of two or more variables, not {clique!r}.")
    if positions is None and any(isinstance(variable, str) for variable in clique):
        positions = _positions(names)
    members = []
    for variable in clique:
        if isinstance(variable, str):
            if not positions or variable not in positions:
                known = "" if names is None else " The variables are: " + ", ".join(map(str, names[:10]))
                more = ", ..." if names is not None and len(names) > 10 else ""
                raise DataError(f"There is no variable named {variable!r}.{known}{more}")
            members.append(positions[variable])
        elif isinstance(variable, int | np.integer) and not isinstance(variable, bool):
            if not 0 <= variable < n_variables:
                raise DataError(
                    f"There is no variable {variable}; the {n_variables} variables are numbered from 0."
                )
            members.append(int(variable))
        else:
            raise DataError(f"A variable is given by its name or number, not {variable!r}.")
    if len(set(members)) != len(members) or len(members) < 2:
        raise DataError(
            f"The clique {_label(tuple(members), names)} must have two or more different variables."
        )
    return tuple(sorted(members))


def _positions(names: Sequence[str] | None) -> dict[str, int]:
    return {} if names is None else {name: position for position, name in enumerate(names)}


def _label(clique: Sequence[int], names: Sequence[str] | None) -> str:
    return " -- ".join(str(names[i]) if names is not None else str(i) for i in clique)
