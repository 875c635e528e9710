"""The model: a discrete Markov random field given by biases, cliques and their weights.

    log P(x) = sum_i b_i x_i + sum_a w_a prod_{i in a} x_i - log Z        (docs/method.md, eq. 1.1)

with x in {0, 1}^p; with more levels, thresholds take the place of the biases and products of scores that of
the features (eq. 11.1). An :class:`MRF` knows its unnormalised log-probability and its conditionals; what
needs the normaliser Z lives in :mod:`edgewise.exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError, FileError
from edgewise.features import Clique
from edgewise.features.candidates import label_of
from edgewise.model import energies, files
from edgewise.model.checks import checked_names, float_vector, member_table, read_only, symmetric_matrix
from edgewise.scales import Scale, Scales, check_cliques, root_mean_squares

if TYPE_CHECKING:
    import networkx


class MRF:
    """A Markov random field over 0/1 variables, or variables with any levels. Immutable.

    Parameters
    ----------
    biases : array-like (p,)
        Weight of every single variable; with `scales`, the coordinates of the thresholds of all variables
        (:meth:`from_levels` takes the thresholds themselves).
    cliques : sequence of cliques, or int array (m, k)
        Each clique is two or more different variables, by number or name, in any order; no clique twice.
        An integer array has one clique per row, padded with -1 (the layout of ``Features.members``).
    weights : array-like (m,)
        Weight of every clique, in the same order. Zero is allowed. With `scales`, the matrices of all pairs
        one after the other, each row by row.
    names : sequence of str, optional
        Names of the variables.
    scales : sequence of Scale, optional
        The levels of every variable; 0 and 1 by default. With more levels there are pairs only.

    Attributes
    ----------
    biases, weights : float64 arrays, read-only
    cliques : tuple of tuples of int
        Variables of every clique, ascending, in the order given.
    members : int32 array (m, k), read-only
        The same as one array, padded with -1.
    names : tuple of str or None
    scales : Scales

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
    scales: Scales

    def __init__(
        self,
        biases: Any,
        cliques: Sequence[Clique] | np.ndarray,
        weights: Any,
        names: Sequence[str] | None = None,
        scales: Sequence[Scale] | None = None,
    ) -> None:
        store = self.__dict__
        store["biases"] = read_only(float_vector(biases, "biases"))
        if len(self.biases) == 0:
            raise DataError("A model needs at least one variable; biases is empty.")
        store["scales"] = Scales.binary(len(self.biases)) if scales is None else Scales.of(scales)
        if len(self.biases) != self.scales.n_biases:
            raise DataError(
                f"There are {len(self.biases)} biases; the levels of {len(self.scales)} variables ask for "
                f"{self.scales.n_biases}, one less than there are levels of each."
            )
        store["names"] = checked_names(names, self.n_variables)
        store["members"] = read_only(member_table(cliques, self.n_variables, self.names))
        check_cliques(self.scales, self.members, self.names)
        store["weights"] = read_only(float_vector(weights, "weights"))
        if len(self.weights) != self.weight_start[-1]:
            raise DataError(
                f"There are {len(self.members)} cliques and {len(self.weights)} weights; "
                f"give {'one weight per clique' if self.scales.all_binary else self.weight_start[-1]}."
            )
        owners = np.repeat(np.arange(self.n_variables), np.diff(self.scales.bias_start))
        places = np.repeat(np.arange(len(self.members)), np.diff(self.weight_start))
        for values, kind in ((self.biases, "bias of variable"), (self.weights, "weight of clique")):
            if not np.isfinite(values).all():
                first = int(np.flatnonzero(~np.isfinite(values))[0])
                members = (int(owners[first]),) if values is self.biases else self.cliques[places[first]]
                raise DataError(
                    f"The {kind} {label_of(members, self.names)} is {values[first]}; give a finite number."
                )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an MRF cannot be changed; make a new one with another {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an MRF cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return MRF, (self.biases, self.members, self.weights, self.names, self.scales)

    def __eq__(self, other: object) -> bool:
        """Whether names, levels, biases, cliques (in their order) and weights are all the same."""
        if not isinstance(other, MRF):
            return NotImplemented
        return (
            self.names == other.names
            and self.scales == other.scales
            and np.array_equal(self.biases, other.biases)
            and np.array_equal(self.members, other.members)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        # Adding zero turns -0.0 into 0.0: equal models must have equal hashes.
        parts = (self.biases + 0.0, self.members, self.weights + 0.0)
        return hash((self.names, self.scales.levels.tobytes(), *(part.tobytes() for part in parts)))

    def __repr__(self) -> str:
        sizes = np.count_nonzero(self.members >= 0, axis=1)
        parts = [f"{self.n_variables} variable{'s' * (self.n_variables != 1)}"]
        if not self.scales.all_binary:
            few, many = self.scales.levels.min(), self.scales.levels.max()
            parts[0] += f" of {few}{f' to {many}' * bool(few < many)} levels"
        pairs, larger = int((sizes == 2).sum()), int((sizes > 2).sum())
        parts.append(f"{pairs} pair{'s' * (pairs != 1)}")
        if larger:
            parts.append(f"{larger} larger clique{'s' * (larger != 1)}")
        return f"MRF({', '.join(parts)})"

    @property
    def n_variables(self) -> int:
        """Number p of variables."""
        return len(self.scales)

    @cached_property
    def weight_start(self) -> np.ndarray:
        """Where the weights of every clique begin, and where the last end: int64 (m + 1,)."""
        return read_only(self.scales.weight_start(self.members))

    @cached_property
    def thresholds(self) -> tuple[np.ndarray, ...]:
        """Threshold b_i(c) of every level of every variable; only differences within a variable matter."""
        return tuple(read_only(part) for part in self.scales.thresholds(self.biases))

    def matrix(self, clique: int) -> np.ndarray:
        """Parameters of one pair, by its place in `cliques`: float64 (d_i, d_j)."""
        i, j = self.members[clique, :2]
        part = self.weights[self.weight_start[clique] : self.weight_start[clique + 1]]
        return np.asarray(part.reshape(self.scales[i].dimension, self.scales[j].dimension))

    def pair_potential(self, clique: int) -> np.ndarray:
        """U_i A U_j' of one pair, by its place in `cliques`: float64 (levels of i, levels of j) (11.1)."""
        i, j = self.members[clique, :2]
        return np.asarray(self.scales[i].scores @ self.matrix(clique) @ self.scales[j].scores.T)

    def coupling_matrix(self, first: int | str, second: int | str) -> np.ndarray:
        """What the levels of two variables add to the log-potential, in the order of the arguments.

        Returns
        -------
        float64 array (levels of the first, levels of the second)
            With its rows and columns centred, so that it is zero where nothing depends; the log odds ratio
            of four cells is their alternating sum.
        """
        clique, turned = energies.ordered_pair((first, second), self.n_variables, self.names)
        found = np.flatnonzero((self.members[:, :2] == clique).all(axis=1) & self._is_pair)
        shape = self.scales[clique[0]].n_levels, self.scales[clique[1]].n_levels
        table = self.pair_potential(int(found[0])) if len(found) else np.zeros(shape)
        table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        return np.asarray(table.T if turned else table)

    @cached_property
    def score_coupling(self) -> np.ndarray:
        """The couplings of all pairs in one symmetric matrix over the scores of all variables. Read-only."""
        return read_only(energies.score_coupling(self))

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
        """Symmetric p x p matrix of the weights of the pairs, with a zero diagonal. Read-only.

        A pair with a nominal variable has its strength here, the root mean square of its log odds ratios.
        """
        matrix = np.zeros((self.n_variables, self.n_variables))
        i, j = self.members[self._is_pair, :2].T
        matrix[i, j] = matrix[j, i] = self.strengths[self._is_pair]
        return read_only(matrix)

    @cached_property
    def strengths(self) -> np.ndarray:
        """One number per clique: its weight, or the root mean square of the entries of its matrix (11.3)."""
        if len(self.weights) == len(self.members):
            return self.weights
        size = np.diff(self.weight_start)
        found = root_mean_squares(self.weights, size)
        return read_only(np.where(size > 1, found, self.weights[self.weight_start[:-1]]))

    @property
    def density(self) -> float:
        """Share of all pairs of variables whose weight is not zero."""
        possible = self.n_variables * (self.n_variables - 1) // 2
        return float(np.count_nonzero(self.strengths[self._is_pair])) / possible if possible else 0.0

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
        if not self.scales.all_binary:
            return energies.log_potential(self, rows)
        result = rows @ self.biases
        for start, block in _blocks(rows):
            part = result[start : start + len(block)]
            part += 0.5 * ((block @ self._matrix) * block).sum(axis=1)
            for clique, weight in self._larger:
                part += weight * block[:, clique].prod(axis=1)
        return np.asarray(result)

    def conditional_probability(self, x: Any) -> np.ndarray:
        """P(x_i = 1 | all other variables) for every row of `x` and variable: float64 (n, p) (1.2).

        With more than two levels, :meth:`conditional_levels` has the probability of every level.
        """
        if not self.scales.all_binary:
            raise DataError("With more than two levels, conditional_levels gives the probability of each.")
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

    def conditional_levels(self, x: Any) -> tuple[np.ndarray, ...]:
        """P(x_i = c | all other variables) of every level c: for each variable float64 (n, levels) (11.1).

        Examples
        --------
        >>> scale = Scale("ordinal", ("low", "middle", "high"))
        >>> model = MRF.from_levels([scale] * 2, [[0.0, 0.0, 0.0]] * 2, [(0, 1)], [2.0])
        >>> model.conditional_levels([[0, 2]])[0].round(3)
        array([[0.09 , 0.245, 0.665]])
        """
        rows = self._rows(x)
        if self.scales.all_binary:
            ones = self.conditional_probability(rows)
            return tuple(np.stack([1.0 - column, column], axis=1) for column in ones.T)
        return tuple(energies.softmax(part) for part in energies.conditional_log_potential(self, rows))

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
            First states; fair coins by default. With more levels, their numbers.

        Returns
        -------
        uint8 array (n, p)
            The last state of each chain. It is a draw from the model only as far as the chains have
            forgotten their start; :func:`edgewise.exact.sample` is exact where it is possible.
        """
        if start is None and self.scales.all_binary:
            state = (rng.random((self.n_variables, n)) < 0.5).astype(np.float64)
        elif start is None:
            state = rng.integers(self.scales.levels[:, None], size=(self.n_variables, n))
        else:
            state = np.ascontiguousarray(self._rows(start).T)
            if state.shape[1] != n:
                raise DataError(f"start has {state.shape[1]} rows for {n} chains; give one row per chain.")
        if not self.scales.all_binary:
            return energies.gibbs(self, state.T.copy(), sweeps, rng).astype(np.uint8)
        if start is not None:
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
        if not self.scales.all_binary:
            return energies.checked_levels(self, x)
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
                f"{label_of((column,), self.names)}."
            )
        return rows

    @classmethod
    def from_levels(
        cls,
        scales: Sequence[Scale],
        thresholds: Sequence[Any],
        pairs: Sequence[Clique],
        couplings: Sequence[Any],
        names: Sequence[str] | None = None,
    ) -> MRF:
        """A model of variables with any levels.

        Parameters
        ----------
        scales : sequence of Scale
            The levels of every variable.
        thresholds : sequence of arrays
            One number for each level of each variable; only differences matter.
        pairs : sequence of pairs
            By number or name.
        couplings : sequence
            For each pair one number, where neither variable is nominal; otherwise its matrix (d_i, d_j) or
            a table over the levels of both.
        names : sequence of str, optional

        Examples
        --------
        >>> city, mood = Scale("nominal", ("A", "B", "C")), Scale("ordinal", (1, 2, 3, 4))
        >>> model = MRF.from_levels([city, mood], [[0, 1, 0], [0, 0, 0, 0]], [(0, 1)], [[[1.0], [-0.5]]])
        >>> model
        MRF(2 variables of 3 to 4 levels, 1 pair)
        """
        each = Scales.of(scales)
        if len(pairs) != len(couplings):
            raise DataError(
                f"There are {len(pairs)} pairs and {len(couplings)} couplings; give one for each."
            )
        weights = energies.pair_parameters(each, pairs, couplings, checked_names(names, len(each)))
        return cls(energies.threshold_coordinates(each, thresholds), pairs, weights, names, each)

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
        if not self.scales.all_binary:
            raise DataError("Only variables with two levels have an Ising form; this model has others.")
        if not self.pairs_only:
            clique = self._larger[0][0]
            raise DataError(
                "Only models of pairs have an Ising form with couplings and fields alone; this one has the "
                f"clique {label_of(clique, self.names)}."
            )
        coupling = self.coupling / 4
        return coupling, self.biases / 2 + coupling.sum(axis=1)

    def to_networkx(self) -> networkx.Graph:
        """The Markov graph, with node attribute ``bias`` and edge attribute ``weight``.

        With more than two levels nodes have ``kind``, ``levels`` and ``thresholds``, edges ``weight`` (the
        coupling, or the strength of a nominal pair) and ``parameters``.

        Nodes are the names, or numbers without names. Two variables that only share a larger clique are
        joined by an edge without weight; the larger cliques are listed in the graph attribute ``cliques``
        as (variables, weight).
        """
        return files.to_networkx(self)

    def to_json(self) -> str:
        """The model as JSON; :meth:`from_json` gives back an equal model."""
        return files.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> MRF:
        """Read the text written by :meth:`to_json`."""
        return cls(*files.from_json(text))

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
