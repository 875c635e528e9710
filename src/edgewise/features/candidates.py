"""Candidate cliques: which products of variables may enter the model.

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

from edgewise.errors import DataError
from edgewise.reading import physical_memory

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
        resolved = [resolve_clique(clique, n_variables, names, positions) for clique in cliques]
        seen: set[tuple[int, ...]] = set()
        for clique in resolved:
            if clique in seen:
                raise DataError(f"The clique {label_of(clique, names)} is listed twice; list it once.")
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
        members = resolve_clique(clique, self.n_variables, names)
        if self.table is None:
            if len(members) != 2:
                raise DataError(
                    f"The clique {label_of(members, names)} is not a candidate: the candidates are all "
                    "pairs. Ask for larger cliques with features=3 or a list."
                )
            i, j = members
            return i * self.n_variables - i * (i + 1) // 2 + j - i - 1
        try:
            return self._positions[members]
        except KeyError:
            raise DataError(
                f"The clique {label_of(members, names)} is not among the {self.n_cliques} candidates."
            ) from None

    @cached_property
    def _positions(self) -> dict[tuple[int, ...], int]:
        assert self.table is not None
        return {tuple(i for i in row if i >= 0): k for k, row in enumerate(self.table.tolist())}

    def label(self, index: int, names: Sequence[str] | None = None) -> str:
        """Readable name of a candidate, for instance ``sleep -- mood``."""
        return label_of(self.clique(index), names)


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


def resolve_clique(
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
            f"The clique {label_of(tuple(members), names)} must have two or more different variables."
        )
    return tuple(sorted(members))


def _positions(names: Sequence[str] | None) -> dict[str, int]:
    return {} if names is None else {name: position for position, name in enumerate(names)}


def label_of(clique: Sequence[int], names: Sequence[str] | None) -> str:
    """Readable name of a clique."""
    return " -- ".join(str(names[i]) if names is not None else str(i) for i in clique)
