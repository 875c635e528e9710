"""Regularisation paths of the L1 baselines: distinct rows in, every solution along lambda out.

Two problems share the code: *node-wise* (every variable regressed on the others, Wainwright et al. 2007)
and *joint* (the pseudo-likelihood with one coupling per pair, Hoefling & Tibshirani 2009). The mathematics
of one solution is in ``kernels/lasso.py``; docs/baselines.md has the objectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgewise.errors import DataError

if TYPE_CHECKING:
    from edgewise.model.mrf import MRF

Kind = Literal["nodewise", "joint"]
COMBINE = ("max", "min", "mean")
RULES = ("and", "or")
# Below a step of this size between neighbouring lambdas a warm start is a good start.
WARM_FACTOR = 0.8
DENSITY_STEPS = 25
SMALLEST_RATIO = 1e-6


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct 0/1 rows with weights that sum to one, laid out by column.

    Attributes
    ----------
    columns : float32 array (p, n)
    weights : float64 array (n,)
    total : float
        Number of rows N (or sum of the weights given), which EBIC needs.
    """

    columns: np.ndarray
    weights: np.ndarray
    total: float

    @classmethod
    def collect(cls, values: np.ndarray, weights: np.ndarray | None = None) -> Rows:
        """Merge equal rows of `values` (n, p), adding their weights."""
        values = np.ascontiguousarray(values, np.uint8)
        packed = np.packbits(values, axis=1)
        keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        sums = np.bincount(inverse, weights=weights, minlength=len(first)).astype(np.float64)
        kept = sums > 0
        total = float(sums.sum())
        return cls(np.ascontiguousarray(values[first[kept]].T, np.float32), sums[kept] / total, total)

    @property
    def n_variables(self) -> int:
        """Number p of variables."""
        return len(self.columns)

    @cached_property
    def means(self) -> np.ndarray:
        """Weighted mean of every column."""
        return np.asarray(self.columns.astype(np.float64) @ self.weights)

    @cached_property
    def usable(self) -> np.ndarray:
        """Whether a column takes both values; constant ones have no couplings."""
        lowest, highest = self.columns.min(axis=1), self.columns.max(axis=1)
        return np.asarray(lowest != highest)

    @cached_property
    def start(self) -> np.ndarray:
        """Coefficients without couplings: a diagonal matrix of biases.

        The bias of a constant column would be infinite; half a row of each value is added there.
        """
        means = np.where(self.usable, self.means, (self.total * self.means + 0.5) / (self.total + 1.0))
        return np.diag(np.log(means) - np.log1p(-means))

    @cached_property
    def largest_covariance(self) -> float:
        """Largest absolute covariance of two columns."""
        rows = self.columns.astype(np.float64)
        covariance = (rows * self.weights) @ rows.T - np.outer(self.means, self.means)
        np.fill_diagonal(covariance, 0.0)
        return float(np.abs(covariance).max()) if len(covariance) > 1 else 0.0


def combine_coefficients(coefficients: np.ndarray, combine: str, rule: str | None) -> np.ndarray:
    """Symmetric couplings from the two coefficients of every pair.

    Parameters
    ----------
    coefficients : float64 array (..., p, p)
        Entry (i, j) is the coefficient of variable j in the regression of variable i.
    combine : {"max", "min", "mean"}
        The coefficient of larger or of smaller absolute value, or the mean of the two.
    rule : {"and", "or"} or None
        Whether an edge needs both coefficients or one of them. None follows `combine`: one for "max",
        both for "min" and "mean".
    """
    one, other = coefficients, np.swapaxes(coefficients, -1, -2)
    if combine == "mean":
        result = 0.5 * (one + other)
    else:
        larger = np.abs(one) >= np.abs(other)
        result = np.where(larger if combine == "max" else ~larger, one, other)
    if rule == "and" or (rule is None and combine == "mean"):
        result = np.where((one != 0) & (other != 0), result, 0.0)
    elif rule == "or" and combine == "min":
        result = np.where((one != 0) & (other != 0), result, one + other)
    upper = np.triu(result, 1)
    return upper + np.swapaxes(upper, -1, -2)


@dataclass(frozen=True, eq=False)
class LassoPath:
    """All solutions along a grid of penalties, with the means to find those between.

    Attributes
    ----------
    lambdas : float64 array (L,)
        Penalties, from large to small.
    coefficients : float64 array (L, p, p)
        Entry (l, i, j) is the coefficient of variable j in the regression of variable i, (l, i, i) its
        bias. Symmetric for the pseudo-likelihood.
    losses : float64 array (L, p)
        Mean negative conditional log-likelihood of every variable.
    margins : float64 array (L, p)
        Smallest margin of a row; positive where the fit separates the variable perfectly.
    violations : float64 array (L, p)
        What is left of the optimality conditions.
    names : tuple of str
        Names of the variables.
    """

    kind: Kind
    lambdas: np.ndarray
    coefficients: np.ndarray
    losses: np.ndarray
    margins: np.ndarray
    violations: np.ndarray
    names: tuple[str, ...]
    combine: str = "max"
    rule: str | None = None
    tolerance: float = 1e-7
    max_steps: int = 200
    n_jobs: int = 1
    rows: Rows = field(repr=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.lambdas)

    @cached_property
    def couplings(self) -> np.ndarray:
        """Symmetric couplings in 0/1 coding at every lambda: float64 (L, p, p)."""
        if self.kind == "joint":
            result = self.coefficients.copy()
            diagonal = np.arange(result.shape[1])
            result[:, diagonal, diagonal] = 0.0
            return result
        return combine_coefficients(self.coefficients, self.combine, self.rule)

    @cached_property
    def biases(self) -> np.ndarray:
        """Biases at every lambda: float64 (L, p)."""
        return np.diagonal(self.coefficients, axis1=1, axis2=2).copy()

    @cached_property
    def densities(self) -> np.ndarray:
        """Share of all pairs that have a coupling, at every lambda."""
        p = self.coefficients.shape[1]
        return np.asarray(np.count_nonzero(self.couplings, axis=(1, 2)) / max(p * (p - 1), 1))

    @cached_property
    def entry(self) -> np.ndarray:
        """Largest lambda of the grid at which a pair has a coupling, zero if never: float64 (p, p).

        It ranks the pairs, as an edge score for precision-recall curves.
        """
        active = self.couplings != 0
        return np.where(active.any(axis=0), self.lambdas[np.argmax(active, axis=0)], 0.0)

    def model(self, index: int) -> MRF:
        """The model at one position of the grid."""
        from edgewise.model.mrf import MRF

        return MRF.from_coupling(self.biases[index], self.couplings[index], self.names)

    def models(self) -> list[MRF]:
        """The models of the whole grid."""
        return [self.model(index) for index in range(len(self))]

    def at(self, lam: float) -> MRF:
        """The model at any lambda, solved exactly from the nearest larger one of the grid."""
        return self.solved_at(lam).model(-1)

    def at_density(self, density: float) -> MRF:
        """The model whose density is nearest to the one asked for, found by bisection in lambda."""
        return self.solved_at_density(density).model(-1)

    def solved_at(self, lam: float) -> LassoPath:
        """A path that ends at `lam`, with the nearest larger lambda of the grid (if any) before it."""
        if not (np.isfinite(lam) and lam >= 0):
            raise DataError(f"lam must be a number that is not negative, not {lam!r}.")
        exact = np.flatnonzero(self.lambdas == lam)
        if len(exact):
            return self[: int(exact[0]) + 1]
        before = int((self.lambdas > lam).sum())
        if before == 0:
            return self._continued([lam], None)
        last = self.lambdas[before - 1]
        bottom = max(lam, min(last, self.rows.largest_covariance) * SMALLEST_RATIO)
        count = int(np.ceil(np.log(bottom / last) / np.log(WARM_FACTOR)))
        between = np.geomspace(last, bottom, max(count, 1) + 1)[1:]
        between[-1] = lam
        return self._continued(between, before)

    def solved_at_density(self, density: float) -> LassoPath:
        """A path that ends at the solution of the density nearest to the one asked for."""
        if not 0 <= density <= 1:
            raise DataError(f"A density is a share of all pairs, between 0 and 1, not {density!r}.")
        path = self
        while path.densities.max() < density:
            # A lambda as small as the tolerance cannot tell a zero from a small coefficient.
            floor = max(self.rows.largest_covariance * SMALLEST_RATIO, 10 * self.tolerance)
            if path.lambdas[-1] <= floor:
                raise DataError(
                    f"The path does not reach density {density:g}: at lambda {path.lambdas[-1]:.3g} it is "
                    f"{path.densities[-1]:.3g}. Constant columns never get couplings, and a variable that a "
                    "few others determine needs no more of them however small lambda is. Ask for less."
                )
            path = path._continued([path.lambdas[-1] * WARM_FACTOR], len(path))
        above = int(np.argmax(path.densities >= density))
        if above == 0:
            return path[:1]
        path = path[: above + 1]
        for _ in range(DENSITY_STEPS):
            low, high = path.densities[-2:]
            if high == density or high - low <= 1.5 / max(self.coefficients.shape[1] ** 2 / 2, 1):
                break
            middle = path[:-1]._continued(
                [float(np.sqrt(path.lambdas[-1] * path.lambdas[-2]))], len(path) - 1
            )
            if middle.densities[-1] >= density:
                path = middle
            else:
                path = middle._joined(path[-1:])
        low, high = path.densities[-2:]
        return path if abs(high - density) <= abs(low - density) else path[:-1]

    def extended(self, lambdas: np.ndarray) -> LassoPath:
        """This path, continued through smaller lambdas."""
        return self._joined(self._continued(lambdas, len(self))[1:])

    def __getitem__(self, part: slice) -> LassoPath:
        return replace(
            self,
            lambdas=self.lambdas[part],
            coefficients=self.coefficients[part],
            losses=self.losses[part],
            margins=self.margins[part],
            violations=self.violations[part],
        )

    def _joined(self, other: LassoPath) -> LassoPath:
        return replace(
            self,
            lambdas=np.concatenate([self.lambdas, other.lambdas]),
            coefficients=np.concatenate([self.coefficients, other.coefficients]),
            losses=np.concatenate([self.losses, other.losses]),
            margins=np.concatenate([self.margins, other.margins]),
            violations=np.concatenate([self.violations, other.violations]),
        )

    def _continued(self, lambdas: Sequence[float] | np.ndarray, before: int | None) -> LassoPath:
        """Solve further lambdas from position `before` - 1, or from no couplings when it is None."""
        start = self.rows.start if before is None else self.coefficients[before - 1]
        more = solve_path(
            self.kind,
            self.rows,
            np.asarray(lambdas, np.float64),
            self.names,
            combine=self.combine,
            rule=self.rule,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
            start=start,
            n_jobs=self.n_jobs,
        )
        return more if before is None else self[before - 1 : before]._joined(more)


def lambda_grid(kind: Kind, rows: Rows, count: int, ratio: float) -> np.ndarray:
    """Penalties evenly spaced in the logarithm, from the smallest one without couplings downwards."""
    largest = rows.largest_covariance * (2.0 if kind == "joint" else 1.0)
    if largest <= 0:
        return np.array([1.0])
    return np.geomspace(largest, largest * ratio, count)


def solve_path(
    kind: Kind,
    rows: Rows,
    lambdas: np.ndarray,
    names: tuple[str, ...],
    *,
    combine: str = "max",
    rule: str | None = None,
    tolerance: float = 1e-7,
    max_steps: int = 200,
    start: np.ndarray | None = None,
    n_jobs: int = 1,
) -> LassoPath:
    """Solve at every lambda (from large to small), each from the solution before it."""
    start = rows.start if start is None else start
    p = rows.n_variables
    coefficients = np.zeros((len(lambdas), p, p))
    losses = np.zeros((len(lambdas), p))
    margins = np.full((len(lambdas), p), -np.inf)
    violations = np.zeros((len(lambdas), p))
    if kind == "joint":
        from edgewise.kernels.lasso import joint_solve

        current = np.ascontiguousarray(start, np.float64).copy()
        for index, lam in enumerate(lambdas):
            found = joint_solve(rows.columns, rows.weights, lam, current, rows.usable, tolerance, max_steps)
            coefficients[index] = current
            losses[index], violations[index], margins[index] = found
        margins[:, ~rows.usable] = -np.inf
    else:
        from edgewise.kernels.lasso import node_path

        def one_node(node: int) -> None:
            if not rows.usable[node]:
                coefficients[:, node, node] = start[node, node]
                return
            begin = np.ascontiguousarray(start[node], np.float64)
            found = node_path(
                rows.columns, rows.weights, node, lambdas, begin, rows.usable, tolerance, max_steps
            )
            coefficients[:, node], losses[:, node], violations[:, node], margins[:, node] = found

        with ThreadPoolExecutor(max(n_jobs, 1)) as pool:
            list(pool.map(one_node, range(p)))
    return LassoPath(
        kind,
        np.asarray(lambdas, np.float64),
        coefficients,
        losses,
        margins,
        violations,
        names,
        combine,
        rule,
        tolerance,
        max_steps,
        n_jobs,
        rows=rows,
    )
