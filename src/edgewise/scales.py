"""What the levels of a variable are: labels, scores, and the thresholds they may have (docs/method.md, 11).

Every variable has a matrix of scores U (levels x d) and a basis of its thresholds B (levels x t). A pair of
variables is coupled by a matrix A of d_i x d_j parameters, and the threshold of a level is B times t
coordinates, each N(0, sigma_b^2) a priori.

``binary``       two levels; U = B = (0, 1)
``ordinal``      levels in an order; one score from 0 to 1, free thresholds
``nominal``      levels without an order; as many scores as contrasts, free thresholds
``blume-capel``  ordinal, with thresholds alpha s + beta s^2, s the distance from a reference level

Free thresholds have the Helmert contrasts divided by the square root of two as their basis, and so have the
scores of a nominal variable: then every difference of two thresholds has the standard deviation sigma_b, and
every log odds ratio that of the slab, whatever the order of the levels.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edgewise.errors import DataError

BINARY, ORDINAL, NOMINAL, BLUME_CAPEL = "binary", "ordinal", "nominal", "blume-capel"
KINDS = (BINARY, ORDINAL, NOMINAL, BLUME_CAPEL)
MOST_LEVELS = 20
"""Most levels of a variable."""

MOST_PARAMETERS = 100
"""Most parameters of the matrix that couples two nominal variables."""


def contrasts(levels: int) -> np.ndarray:
    """Helmert contrasts of some levels, orthonormal and divided by the square root of two (11.2).

    Examples
    --------
    >>> contrasts(2).ravel()
    array([-0.5,  0.5])
    >>> basis = contrasts(4)
    >>> float(((basis[3] - basis[1]) ** 2).sum().round(12))
    1.0
    """
    basis = np.zeros((levels, levels - 1))
    for k in range(1, levels):
        basis[:k, k - 1] = -1.0
        basis[k, k - 1] = k
        basis[:, k - 1] /= np.sqrt(2.0 * k * (k + 1.0))
    return basis


@dataclass(frozen=True)
class Scale:
    """The levels of one variable.

    Attributes
    ----------
    kind : {"binary", "ordinal", "nominal", "blume-capel"}
    labels : tuple
        The user's labels, in order.
    positions : tuple of int, optional
        Place of each level on the whole scale, where levels between them never occur; 0, 1, ... by default.
        The scores of the others stay where they are.
    reference : int, optional
        Position of the level from which a Blume-Capel variable counts; the first by default.

    Examples
    --------
    >>> Scale("ordinal", ("never", "sometimes", "often")).scores.ravel()
    array([0. , 0.5, 1. ])
    """

    kind: str
    labels: tuple[Any, ...]
    positions: tuple[int, ...] = ()
    reference: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"There is no kind of variable {self.kind!r}; the kinds are {', '.join(KINDS)}.")
        object.__setattr__(self, "labels", tuple(self.labels))
        count = len(self.labels)
        positions = tuple(int(place) for place in self.positions) or tuple(range(count))
        object.__setattr__(self, "positions", positions)
        if not 2 <= count <= MOST_LEVELS or (self.kind == BINARY and count != 2):
            wanted = "2 levels" if self.kind == BINARY else f"2 to {MOST_LEVELS} levels"
            raise DataError(f"A variable of the kind {self.kind!r} has {wanted}, not {count}.")
        if len(set(map(repr, self.labels))) != count:
            raise DataError(f"The levels {', '.join(map(repr, self.labels))} must differ.")
        if len(positions) != count or any(b <= a for a, b in itertools.pairwise(positions)):
            raise DataError(f"The positions of {count} levels must be {count} ascending numbers.")
        if self.kind == BLUME_CAPEL:
            object.__setattr__(self, "reference", int(self.reference or 0))
            if not 0 <= int(self.reference or 0) < count:
                raise DataError(f"The reference of {count} levels lies between 0 and {count - 1}.")
            if count < 3:
                raise DataError("A Blume-Capel variable has three levels or more.")
        elif self.reference is not None:
            raise DataError(f"A variable of the kind {self.kind!r} has no reference level.")

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.labels)

    @property
    def dimension(self) -> int:
        """Number d of scores of a level."""
        return self.n_levels - 1 if self.kind == NOMINAL else 1

    @property
    def n_thresholds(self) -> int:
        """Number t of coordinates of the thresholds."""
        return 2 if self.kind == BLUME_CAPEL else self.n_levels - 1

    @cached_property
    def scores(self) -> np.ndarray:
        """Scores of the levels: float64 (levels, d)."""
        if self.kind == NOMINAL:
            return _locked(contrasts(self.n_levels))
        places = np.array(self.positions, float)
        return _locked(((places - places[0]) / (places[-1] - places[0]))[:, None])

    @cached_property
    def basis(self) -> np.ndarray:
        """Basis of the thresholds: float64 (levels, t)."""
        if self.kind == BINARY:
            return _locked(np.array([[0.0], [1.0]]))
        if self.kind == BLUME_CAPEL:
            distance = self.scores[:, 0] - self.scores[self.reference or 0, 0]
            return _locked(np.stack([distance, distance**2], axis=1))
        return _locked(contrasts(self.n_levels))

    @cached_property
    def projection(self) -> np.ndarray:
        """Coordinates (t, d) in the basis of the thresholds of each score, up to a constant."""
        return self.coordinates(self.scores)

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Coordinates in the basis of functions of the level (levels, ...), up to constants."""
        centred = self.basis - self.basis.mean(axis=0)
        found = np.linalg.lstsq(centred, values - values.mean(axis=0), rcond=None)[0]
        found[np.abs(found) < 1e-15] = 0.0
        return np.asarray(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for files; :meth:`from_dict` reads them back."""
        plain = [label.item() if isinstance(label, np.generic) else label for label in self.labels]
        labels = [label if isinstance(label, bool | int | float | str) else str(label) for label in plain]
        return {
            "kind": self.kind,
            "labels": labels,
            "positions": list(self.positions),
            "reference": self.reference,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scale:
        """The scale that :meth:`to_dict` was asked of."""
        return cls(
            values["kind"], tuple(values["labels"]), tuple(values["positions"]), values.get("reference")
        )


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Scales(Sequence[Scale]):
    """The scales of all variables, and where their parameters lie.

    Parameters of a model come in one order: the threshold coordinates of the variables one after the other,
    then the matrices of the cliques, each row by row. With two levels that is one bias per variable and one
    weight per clique.

    Examples
    --------
    >>> scales = Scales((Scale("ordinal", (0, 1, 2)), Scale("nominal", ("a", "b", "c")), BINARY_SCALE))
    >>> scales.bias_start.tolist(), scales.dimensions(np.array([[0, 1], [1, 2], [0, 2]])).tolist()
    ([0, 2, 4, 5], [2, 2, 1])
    """

    each: tuple[Scale, ...]

    @classmethod
    def binary(cls, n_variables: int) -> Scales:
        """All variables with the levels 0 and 1."""
        return cls((BINARY_SCALE,) * n_variables)

    @classmethod
    def of(cls, scales: Sequence[Scale] | Scales) -> Scales:
        """Any sequence of scales."""
        return scales if isinstance(scales, Scales) else cls(tuple(scales))

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, index: Any) -> Any:
        return self.each[index]

    def __iter__(self) -> Iterator[Scale]:
        return iter(self.each)

    @cached_property
    def all_binary(self) -> bool:
        """Whether every variable has two levels with the scores 0 and 1."""
        return all(scale.kind == BINARY for scale in self.each)

    @cached_property
    def levels(self) -> np.ndarray:
        """Number of levels of every variable: int64 (p,)."""
        return _locked(np.array([scale.n_levels for scale in self.each], np.int64))

    @cached_property
    def bias_start(self) -> np.ndarray:
        """Where the threshold coordinates of every variable begin, and where the last end: int64 (p + 1,)."""
        return _locked(np.concatenate([[0], np.cumsum([scale.n_thresholds for scale in self.each])]))

    @cached_property
    def score_start(self) -> np.ndarray:
        """The same for the scores of all variables side by side: int64 (p + 1,)."""
        return _locked(np.concatenate([[0], np.cumsum([scale.dimension for scale in self.each])]))

    @property
    def n_biases(self) -> int:
        """Number of threshold coordinates of all variables."""
        return int(self.bias_start[-1])

    @property
    def n_states(self) -> int:
        """Number of joint states of all variables; a Python integer of any size."""
        count = 1
        for scale in self.each:
            count *= scale.n_levels
        return count

    def dimensions(self, members: np.ndarray) -> np.ndarray:
        """Number of parameters of every clique: int64 (m,)."""
        if self.all_binary:
            return np.ones(len(members), np.int64)
        each = np.array([scale.dimension for scale in self.each], np.int64)
        return np.asarray(each[members[:, 0]] * each[members[:, 1]])

    def weight_start(self, members: np.ndarray) -> np.ndarray:
        """Where the parameters of every clique begin, and where the last end: int64 (m + 1,)."""
        return np.concatenate([[0], np.cumsum(self.dimensions(members))])

    def scored(self, rows: np.ndarray) -> np.ndarray:
        """Scores of rows of level numbers, the variables side by side: float64 (n, sum of d)."""
        if self.all_binary:
            return np.asarray(rows, np.float64)
        return np.concatenate([scale.scores[rows[:, i]] for i, scale in enumerate(self.each)], axis=1)

    def thresholded(self, rows: np.ndarray) -> np.ndarray:
        """The features of the threshold coordinates in rows of level numbers: float64 (n, sum of t)."""
        if self.all_binary:
            return np.asarray(rows, np.float64)
        return np.concatenate([scale.basis[rows[:, i]] for i, scale in enumerate(self.each)], axis=1)

    def thresholds(self, biases: np.ndarray) -> list[np.ndarray]:
        """Threshold of every level of every variable, from coordinates (..., t): arrays (..., levels)."""
        start = self.bias_start
        return [biases[..., start[i] : start[i + 1]] @ scale.basis.T for i, scale in enumerate(self.each)]

    def varying(self, singles: np.ndarray, n_rows: float) -> np.ndarray:
        """Which variables have rows at more than one level, by the sums of their threshold features: (p,)."""
        if self.all_binary:
            return np.asarray((singles > 0) & (singles < n_rows))
        parts = np.split(singles, self.bias_start[1:-1])
        still = [
            np.isclose(n_rows * scale.basis, part, rtol=0.0, atol=1e-9 * max(n_rows, 1e-300))
            for scale, part in zip(self.each, parts)
        ]
        return np.array([not level.all(axis=1).any() for level in still])


def root_mean_squares(values: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Strengths of matrices of these sizes, whose entries come one after the other (11.3).

    Examples
    --------
    >>> root_mean_squares(np.array([3.0, 4.0, 5.0, 5.0, 1.0, 7.0]), np.array([2, 4])).tolist()
    [3.5355339059327378, 5.0]
    """
    if not len(size):
        return np.zeros(0)
    return np.asarray(np.sqrt(np.add.reduceat(values**2, np.cumsum(size) - size) / size))


BINARY_SCALE = Scale(BINARY, (0, 1))


def check_cliques(scales: Scales, members: np.ndarray, names: Sequence[str] | None = None) -> None:
    """Refuse larger cliques of variables with more than two levels, and matrices that are too large."""

    def name(variable: int) -> str:
        return repr(names[variable]) if names is not None else f"variable {variable}"

    if scales.all_binary or not len(members):
        return
    larger = members[:, 2:].max(axis=1, initial=-1) >= 0
    several = np.array([scale.kind != BINARY for scale in scales] + [False])
    touched = np.flatnonzero(larger & several[members].any(axis=1))
    if len(touched):
        variable = next(int(i) for i in members[touched[0]] if several[i])
        raise DataError(
            f"Cliques of three and more variables are for variables with two levels; {name(variable)} has "
            f"{scales[variable].n_levels}. Use pairs, or cut it into two levels."
        )
    size = scales.dimensions(members)
    if size.max() > MOST_PARAMETERS:
        i, j = members[int(size.argmax()), :2]
        raise DataError(
            f"The coupling of {name(int(i))} ({scales[i].n_levels} levels) and {name(int(j))} "
            f"({scales[j].n_levels} levels) would be a matrix of {int(size.max())} parameters; at most "
            f"{MOST_PARAMETERS} are possible. Merge levels, or call one of them ordinal."
        )
