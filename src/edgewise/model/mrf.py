"""The model: a binary Markov random field given by biases, cliques and their weights.

    log P(x) = sum_i b_i x_i + sum_a w_a prod_{i in a} x_i - log Z        (docs/method.md, eq. 1.1)

with x in {0, 1}^p. An :class:`MRF` knows its unnormalised log-probability and its conditionals; what needs
the normaliser Z lives in :mod:`edgewise.exact`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError, FileError
from edgewise.features import Clique, _label
from edgewise.model import files
from edgewise.model.checks import checked_names, float_vector, member_table, read_only, symmetric_matrix

if TYPE_CHECKING:
    import networkx

FORMAT = "edgewise-mrf"
FORMAT_VERSION = 1


class MRF:
    """A binary Markov random field over 0/1 variables. Immutable.

    Parameters
    ----------
    biases : array-like (p,)
        Weight of every single variable.
    cliques : sequence of cliques, or int array (m, k)
        Each clique is two or more different variables, by number or name, in any order; no clique twice.
        An integer array has one clique per row, padded with -1 (the layout of ``Features.members``).
    weights : array-like (m,)
        Weight of every clique, in the same order. Zero is allowed.
    names : sequence of str, optional
        Names of the variables.

    Attributes
    ----------
    biases, weights : float64 arrays, read-only
    cliques : tuple of tuples of int
        Variables of every clique, ascending, in the order given.
    members : int32 array (m, k), read-only
        The same as one array, padded with -1.
    names : tuple of str or None

    Examples
    --------
    >>> model = MRF([0.0, -1.0, 0.5], [("b", "a"), ("b", "c")], [2.0, -1.0], names=["a", "b", "c"])
    >>> model
    MRF(3 variables, 2 pairs)
    >>> model.cliques
    ((0, 1), (1, 2))
    >>> model.log_potential([[1, 1, 0], [0, 1, 1]])
    array([ 1. , -1.5])
    """

    biases: np.ndarray
    weights: np.ndarray
    members: np.ndarray
    names: tuple[str, ...] | None

    def __init__(
        self,
        biases: Any,
        cliques: Sequence[Clique] | np.ndarray,
        weights: Any,
        names: Sequence[str] | None = None,
    ) -> None:
        store = self.__dict__
        store["biases"] = read_only(float_vector(biases, "biases"))
        if len(self.biases) == 0:
            raise DataError("A model needs at least one variable; biases is empty.")
        store["names"] = checked_names(names, len(self.biases))
        store["members"] = read_only(member_table(cliques, len(self.biases), self.names))
        store["weights"] = read_only(float_vector(weights, "weights"))
        if len(self.weights) != len(self.members):
            raise DataError(
                f"There are {len(self.members)} cliques and {len(self.weights)} weights; "
                "give one weight per clique."
            )
        for values, kind in ((self.biases, "bias of variable"), (self.weights, "weight of clique")):
            if not np.isfinite(values).all():
                first = int(np.flatnonzero(~np.isfinite(values))[0])
                members = (first,) if values is self.biases else self.cliques[first]
                raise DataError(
                    f"The {kind} {_label(members, self.names)} is {values[first]}; give a finite number."
                )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an MRF cannot be changed; make a new one with another {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an MRF cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return MRF, (self.biases, self.members, self.weights, self.names)

    def __eq__(self, other: object) -> bool:
        """Whether names, biases, cliques (in their order) and weights are all the same."""
        if not isinstance(other, MRF):
            return NotImplemented
        return (
            self.names == other.names
            and np.array_equal(self.biases, other.biases)
            and np.array_equal(self.members, other.members)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        # Adding zero turns -0.0 into 0.0: equal models must have equal hashes.
        parts = (self.biases + 0.0, self.members, self.weights + 0.0)
        return hash((self.names, *(part.tobytes() for part in parts)))

    def __repr__(self) -> str:
        sizes = np.count_nonzero(self.members >= 0, axis=1)
        parts = [f"{self.n_variables} variable{'s' * (self.n_variables != 1)}"]
        pairs, larger = int((sizes == 2).sum()), int((sizes > 2).sum())
        parts.append(f"{pairs} pair{'s' * (pairs != 1)}")
        if larger:
            parts.append(f"{larger} larger clique{'s' * (larger != 1)}")
        return f"MRF({', '.join(parts)})"

    @property
    def n_variables(self) -> int:
        """Number p of variables."""
        return len(self.biases)

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """Variables of every clique."""
        if self.members.shape[1] == 2:
            return tuple(map(tuple, self.members.tolist()))
        return tuple(tuple(i for i in row if i >= 0) for row in self.members.tolist())

    @cached_property
    def parameters(self) -> np.ndarray:
        """Biases and then weights, in the order of :func:`edgewise.exact.means`."""
        return read_only(np.concatenate([self.biases, self.weights]))

    @property
    def pairs_only(self) -> bool:
        """Whether no clique has more than two variables."""
        return bool(self.members.shape[1] == 2)

    @cached_property
    def coupling(self) -> np.ndarray:
        """Symmetric p x p matrix of the weights of the pairs, with a zero diagonal. Read-only."""
        matrix = np.zeros((self.n_variables, self.n_variables))
        i, j = self.members[self._is_pair, :2].T
        matrix[i, j] = matrix[j, i] = self.weights[self._is_pair]
        return read_only(matrix)

    @property
    def density(self) -> float:
        """Share of all pairs of variables whose weight is not zero."""
        possible = self.n_variables * (self.n_variables - 1) // 2
        return float(np.count_nonzero(self.weights[self._is_pair])) / possible if possible else 0.0

    @cached_property
    def _is_pair(self) -> np.ndarray:
        return np.asarray(np.count_nonzero(self.members >= 0, axis=1) == 2)

    @cached_property
    def _larger(self) -> list[tuple[tuple[int, ...], float]]:
        return [(self.cliques[k], float(self.weights[k])) for k in np.flatnonzero(~self._is_pair)]

    @cached_property
    def _matrix(self) -> Any:
        """The coupling as scipy's sparse matrix where that multiplies faster, else dense."""
        if self.n_variables < 256 or self.density > 0.05:
            return self.coupling
        from scipy.sparse import coo_array

        i, j = self.members[self._is_pair, :2].T
        w = self.weights[self._is_pair]
        index = (np.concatenate([i, j]), np.concatenate([j, i]))
        return coo_array((np.concatenate([w, w]), index), shape=(self.n_variables,) * 2).tocsc()

    def log_potential(self, x: Any) -> np.ndarray:
        """Unnormalised log-probability of every row of `x` (n, p), that is log P(x) + log Z (1.1)."""
        rows = self._rows(x)
        result = rows @ self.biases
        for start, block in _blocks(rows):
            part = result[start : start + len(block)]
            part += 0.5 * ((block @ self._matrix) * block).sum(axis=1)
            for clique, weight in self._larger:
                part += weight * block[:, clique].prod(axis=1)
        return np.asarray(result)

    def conditional_probability(self, x: Any) -> np.ndarray:
        """P(x_i = 1 | all other variables) for every row of `x` and variable: float64 (n, p) (1.2)."""
        rows = self._rows(x)
        field = np.empty(rows.shape)
        for start, block in _blocks(rows):
            part = field[start : start + len(block)]
            part[:] = self.biases + block @ self._matrix
            for clique, weight in self._larger:
                for variable in clique:
                    others = [i for i in clique if i != variable]
                    part[:, variable] += weight * block[:, others].prod(axis=1)
        return _logistic(field)

    def gibbs(
        self, n: int, sweeps: int, rng: np.random.Generator, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Run `n` independent Gibbs chains for `sweeps` sweeps over all variables in order.

        Parameters
        ----------
        n : int
            Number of chains, and of rows returned.
        sweeps : int
            Sweeps of each chain.
        rng : numpy.random.Generator
        start : 0/1 array (n, p), optional
            First states; fair coins by default.

        Returns
        -------
        uint8 array (n, p)
            The last state of each chain. It is a draw from the model only as far as the chains have
            forgotten their start; :func:`edgewise.exact.sample` is exact where it is possible.
        """
        if start is None:
            state = (rng.random((self.n_variables, n)) < 0.5).astype(np.float64)
        else:
            state = np.ascontiguousarray(self._rows(start).T)
            if state.shape[1] != n:
                raise DataError(f"start has {state.shape[1]} rows for {n} chains; give one row per chain.")
            state = state.copy() if np.may_share_memory(state, start) else state
        neighbours = [np.flatnonzero(row) for row in self.coupling]
        couplings = [self.coupling[i, found] for i, found in enumerate(neighbours)]
        larger: list[list[tuple[list[int], float]]] = [[] for _ in range(self.n_variables)]
        for clique, weight in self._larger:
            for i in clique:
                larger[i].append(([j for j in clique if j != i], weight))
        for _ in range(sweeps):
            for i in range(self.n_variables):
                field = self.biases[i] + couplings[i] @ state[neighbours[i]]
                for others, weight in larger[i]:
                    field = field + weight * state[others].prod(axis=0)
                state[i] = rng.random(n) < _logistic(field)
        return np.ascontiguousarray(state.T.astype(np.uint8))

    def _rows(self, x: Any) -> np.ndarray:
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_variables:
            raise DataError(
                f"The states must have shape (n, {self.n_variables}), one column per variable; "
                f"these have shape {rows.shape}."
            )
        bad = (rows != 0) & (rows != 1)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            raise DataError(
                f"States are 0 or 1, but row {row} has {rows[row, column]:g} for variable "
                f"{_label((column,), self.names)}."
            )
        return rows

    @classmethod
    def from_coupling(cls, biases: Any, coupling: Any, names: Sequence[str] | None = None) -> MRF:
        """Pairwise model of a symmetric 0/1-coding coupling matrix; zeros are absent edges."""
        matrix = symmetric_matrix(coupling, "coupling")
        i, j = np.nonzero(np.triu(matrix, 1))
        return cls(biases, np.stack([i, j], axis=1), matrix[i, j], names)

    @classmethod
    def from_ising(cls, coupling: Any, field: Any, names: Sequence[str] | None = None) -> MRF:
        """The same distribution as the Ising model with states s = 2x - 1 in {-1, +1}.

        Parameters
        ----------
        coupling : symmetric matrix (p, p) with zero diagonal
            J, in ``log P(s) = sum_{i<j} J_ij s_i s_j + sum_i h_i s_i - log Z``.
        field : array-like (p,)
            h.
        names : sequence of str, optional
        """
        matrix = symmetric_matrix(coupling, "coupling")
        h = float_vector(field, "field")
        if len(h) != len(matrix):
            raise DataError(f"The coupling is for {len(matrix)} variables and the field for {len(h)}.")
        return cls.from_coupling(2 * h - 2 * matrix.sum(axis=1), 4 * matrix, names)

    def to_ising(self) -> tuple[np.ndarray, np.ndarray]:
        """Coupling J (p, p) and field h (p,) of the same distribution over s = 2x - 1 in {-1, +1} (1.5)."""
        if not self.pairs_only:
            clique = self._larger[0][0]
            raise DataError(
                "Only models of pairs have an Ising form with couplings and fields alone; this one has the "
                f"clique {_label(clique, self.names)}."
            )
        coupling = self.coupling / 4
        return coupling, self.biases / 2 + coupling.sum(axis=1)

    def to_networkx(self) -> networkx.Graph:
        """The Markov graph, with node attribute ``bias`` and edge attribute ``weight``.

        Nodes are the names, or numbers without names. Two variables that only share a larger clique are
        joined by an edge without weight; the larger cliques are listed in the graph attribute ``cliques``
        as (variables, weight).
        """
        return files.to_networkx(self)

    def to_json(self) -> str:
        """The model as text; :meth:`from_json` gives back an equal model."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "names": self.names,
                "biases": self.biases.tolist(),
                "cliques": self.cliques,
                "weights": self.weights.tolist(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> MRF:
        """Read the text written by :meth:`to_json`."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise FileError(f"This is not the JSON text of a model: {error}.") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise FileError(f"This JSON text is not a model: it lacks the format mark {FORMAT!r}.")
        if values.get("version") != FORMAT_VERSION:
            raise FileError(
                f"The model has format version {values.get('version')!r}; this edgewise reads version "
                f"{FORMAT_VERSION}. Install a newer edgewise."
            )
        missing = [key for key in ("biases", "cliques", "weights") if key not in values]
        if missing:
            raise FileError(f"The JSON text of the model lacks {', '.join(missing)}; it may be truncated.")
        return cls(values["biases"], values["cliques"], values["weights"], values.get("names"))

    def to_graphml(self, path: str | PathLike[str]) -> None:
        """Write the graph of :meth:`to_networkx` as GraphML, for Gephi, Cytoscape, igraph and others."""
        files.write_graphml(self, path)

    @classmethod
    def from_graphml(cls, path: str | PathLike[str]) -> MRF:
        """Read the file written by :meth:`to_graphml`; cliques come sorted by size, then by variables."""
        return cls(*files.read_graphml(path))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write one line per parameter: the names of its variables and its weight, biases first."""
        files.write_csv(self, path)

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> MRF:
        """Read the file written by :meth:`to_csv`. Unnamed variables have become x0, x1, ..."""
        parts = files.read_csv(path)
        try:
            return cls(*parts)
        except DataError as error:
            raise FileError(f"{path}: {error}") from None


def _logistic(field: np.ndarray) -> np.ndarray:
    # tanh saturates without overflow, unlike 1 / (1 + exp(-field)), and needs no scipy.
    return 0.5 + 0.5 * np.tanh(0.5 * field)


def _blocks(rows: np.ndarray, cells: int = 4_000_000) -> Any:
    size = max(1, cells // rows.shape[1])
    return ((start, rows[start : start + size]) for start in range(0, len(rows), size))
