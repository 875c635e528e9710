"""The L1 baselines of Chen & Welling (2012): node-wise logistic regressions and pseudo-likelihood.

Both are scikit-learn estimators over the same data door as :class:`edgewise.SpikeSlabMRF`. The solutions
come from :mod:`edgewise.baselines.solver`; here lambda is chosen and the result is put into words.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from edgewise.baselines.selection import choose_by_cross_validation, choose_by_ebic, pseudo_log_likelihoods
from edgewise.baselines.solver import COMBINE, RULES, Kind, LassoPath, Rows, lambda_grid, solve_path
from edgewise.data import BinaryData, encode_rows, read_data
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.model.mrf import MRF

# An odds ratio of e^10 = 22,000: no table of data can tell such a coupling from an infinite one.
HUGE_COUPLING = 10.0


class _Lasso(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: reading, choosing lambda, telling."""

    _kind: ClassVar[Kind]

    lam: float | str | None
    density: float | None
    gamma: float
    cv: int
    n_lambdas: int
    lambda_ratio: float
    tol: float
    max_steps: int
    n_jobs: int | None
    random_state: Any
    missing: str
    constant: str

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Any:
        """Fit the path and choose one solution.

        Parameters
        ----------
        X : array, DataFrame, file or BinaryData
            Binary columns in any two-valued coding.
        y : None
            Ignored; scikit-learn's convention.
        sample_weight : array-like (n,), optional
            Weights of the rows; a BinaryData has its own.
        """
        lam = self._check()
        data = read_data(X, sample_weight=sample_weight, missing=self.missing, constant=self.constant)
        if not isinstance(data, BinaryData):
            several = next(name for name, labels in zip(data.names, data.levels) if len(labels) > 2)
            raise DataError(
                f"{type(self).__name__} takes variables with two levels, and {several!r} has more; cut it in "
                "two (read_data with cut=... or binarize=...), or use SpikeSlabMRF."
            )
        if data.unknown is not None:
            raise DataError(
                f"{type(self).__name__} takes complete rows only; leave those with blanks out with "
                "missing='drop'."
            )
        values = data.values()
        rows = Rows.collect(values, data.weights)
        grid = lambda_grid(self._kind, rows, self.n_lambdas, self.lambda_ratio)
        if isinstance(lam, float):
            grid = np.append(grid[grid > lam], lam)
        path = self._solve(rows, grid, data.names)
        chosen = path
        if self.density is not None:
            chosen = path.solved_at_density(self.density)
        elif lam == "ebic":
            path, self.ebic_, chosen = choose_by_ebic(path, self.gamma)
        elif lam == "cv":
            path, self.cv_scores_, chosen = choose_by_cross_validation(
                path, values, data.weights, self.cv, self.random_state
            )
        self.path_ = path
        self.lam_ = self._chosen_lambda(path, lam, chosen)
        self.coupling_ = chosen.couplings[-1].copy()
        self.bias_ = chosen.biases[-1].copy()
        self.model_ = MRF.from_coupling(self.bias_, self.coupling_, data.names)
        self.density_ = self.model_.density
        self.levels_ = data.levels
        self.notes_ = tuple(data.notes)
        self.n_features_in_ = data.n_variables
        self.feature_names_in_ = np.array(data.names, dtype=object)
        self.separated_ = _report(chosen, rows)
        return self

    def score(self, X: Any, y: None = None) -> float:
        """Mean pseudo-log-likelihood of the rows of `X` under the chosen model."""
        check_is_fitted(self)
        rows = encode_rows(X, list(self.feature_names_in_), self.levels_)
        return float(pseudo_log_likelihoods(rows, self.bias_[None], self.coupling_[None]).mean())

    def _solve(self, rows: Rows, grid: np.ndarray, names: tuple[str, ...]) -> LassoPath:
        return solve_path(
            self._kind,
            rows,
            grid,
            names,
            combine=getattr(self, "combine", "max"),
            rule=getattr(self, "rule", None),
            tolerance=self.tol,
            max_steps=self.max_steps,
            n_jobs=_workers(self.n_jobs),
        )

    def _check(self) -> float | str:
        """Check the arguments; return lambda as a number or as the name of a criterion."""
        lam = self.lam
        if self.density is not None:
            if lam is not None:
                raise DataError(
                    f"Both lam={lam!r} and density={self.density!r} are given; each decides the other. "
                    "Give one."
                )
            if not 0 <= self.density <= 1:
                raise DataError(f"density is a share of all pairs, between 0 and 1, not {self.density!r}.")
        if lam is None:
            lam = "ebic"
        if isinstance(lam, str):
            if lam not in ("ebic", "cv"):
                raise DataError(f'lam must be a number, "ebic" or "cv", not {lam!r}.')
        else:
            lam = float(lam)
            if not (np.isfinite(lam) and lam >= 0):
                raise DataError(f"lam must be a number that is not negative, not {self.lam!r}.")
        choices: Mapping[str, Sequence[Any]] = {"combine": COMBINE, "rule": (None, *RULES)}
        for name, allowed in choices.items():
            if hasattr(self, name) and getattr(self, name) not in allowed:
                listed = ", ".join(repr(value) for value in allowed)
                raise DataError(f"{name} must be one of {listed}, not {getattr(self, name)!r}.")
        if self.n_lambdas < 2 or not 0 < self.lambda_ratio < 1:
            raise DataError(
                "A path needs n_lambdas of at least 2 and a lambda_ratio between 0 and 1, "
                f"not {self.n_lambdas!r} and {self.lambda_ratio!r}."
            )
        if self.gamma < 0:
            raise DataError(f"gamma of the EBIC must not be negative, it is {self.gamma!r}.")
        return lam

    def _chosen_lambda(self, path: LassoPath, lam: float | str, chosen: LassoPath) -> Any:
        if lam == "ebic" and self.density is None and self._kind == "nodewise":
            return path.lambdas[self.ebic_.argmin(axis=0)]
        return float(chosen.lambdas[-1])


class NodewiseLasso(_Lasso):
    """Every variable regressed on all others by L1-penalised logistic regression.

    Wainwright, Ravikumar & Lafferty (2007). Each node's objective is its mean negative log-likelihood per
    row plus `lam` times the L1 norm of its own coefficients in 0/1 coding; biases are not penalised. The
    two coefficients of a pair are then combined into one coupling.

    Parameters
    ----------
    lam : float, "ebic" or "cv", optional
        The penalty, or how to choose it: for every node by the extended BIC, or one for all by the
        held-out pseudo-log-likelihood. "ebic" unless `density` is given.
    combine : {"max", "min", "mean"}
        The coupling is the coefficient of larger ("Wain max") or smaller ("Wain min") absolute value, or
        the mean of both.
    rule : {"and", "or"}, optional
        Whether an edge needs both coefficients or only one. By default "or" for "max" and "and" for the
        others. ``combine="mean", rule="and"`` with "ebic" is the recipe of the R package IsingFit.
    density : float, optional
        Choose the solution whose share of all pairs is nearest to this; instead of `lam`.
    gamma : float
        Of the extended BIC; 0 is the ordinary BIC.
    cv : int
        Number of folds.
    n_lambdas, lambda_ratio : int, float
        The path has `n_lambdas` penalties from the smallest without couplings down to `lambda_ratio`
        times that, evenly spaced in the logarithm. Where "ebic" or "cv" finds its best at the end, the path
        is continued.
    tol : float
        Largest violation of the optimality conditions that is accepted (in units of the gradient).
    max_steps : int
        Newton steps per solution.
    n_jobs : int, optional
        Threads over the nodes; -1 for one per processor.
    random_state : int, optional
        Of the division into folds.
    missing, constant : str
        As in :func:`edgewise.data.read_data`. A constant column that is kept has no couplings and a bias
        from its mean with half a row of each value added.

    Attributes
    ----------
    coupling_ : float64 array (p, p)
        Couplings in 0/1 coding.
    bias_ : float64 array (p,)
    model_ : MRF
    lam_ : float or float64 array (p,)
        The penalty chosen; one per node for "ebic".
    density_ : float
    path_ : LassoPath
        All solutions: ``lambdas``, ``couplings``, ``densities``, ``at(lam)``, ``at_density(density)``.
    separated_ : tuple of str
        Variables that the others determine at the chosen solution.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(500) < 0.5
    >>> X = np.column_stack([a, a ^ (rng.random(500) < 0.2), rng.random(500) < 0.5]).astype(int)
    >>> lasso = NodewiseLasso().fit(X)
    >>> lasso.model_.cliques
    ((0, 1),)
    >>> bool(lasso.coupling_[0, 1] > 1.5)
    True
    """

    _kind = "nodewise"

    def __init__(
        self,
        lam: float | str | None = None,
        combine: str = "max",
        *,
        rule: str | None = None,
        density: float | None = None,
        gamma: float = 0.25,
        cv: int = 5,
        n_lambdas: int = 50,
        lambda_ratio: float = 0.01,
        tol: float = 1e-7,
        max_steps: int = 200,
        n_jobs: int | None = None,
        random_state: int | None = None,
        missing: str = "error",
        constant: str = "error",
    ) -> None:
        self.lam = lam
        self.combine = combine
        self.rule = rule
        self.density = density
        self.gamma = gamma
        self.cv = cv
        self.n_lambdas = n_lambdas
        self.lambda_ratio = lambda_ratio
        self.tol = tol
        self.max_steps = max_steps
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing = missing
        self.constant = constant


class PseudoLikelihoodLasso(_Lasso):
    """The L1-penalised maximum pseudo-likelihood model ("MLE" of Chen & Welling, 2012).

    Hoefling & Tibshirani (2009). The objective is the mean over rows of the negative log pseudo-likelihood
    (summed over nodes) plus `lam` times the L1 norm of the couplings in 0/1 coding, each pair counted
    once; biases are not penalised.

    Parameters
    ----------
    lam : float, "ebic" or "cv", optional
        The penalty, or how to choose it: by the extended BIC of the pseudo-likelihood or by the held-out
        pseudo-log-likelihood. "ebic" unless `density` is given.
    density, gamma, cv, n_lambdas, lambda_ratio, tol, max_steps, random_state, missing, constant
        As in :class:`NodewiseLasso`.

    Attributes
    ----------
    coupling_, bias_, model_, lam_, density_, path_, separated_
        As in :class:`NodewiseLasso`; `lam_` is always one number.

    Examples
    --------
    >>> from edgewise import PseudoLikelihoodLasso, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> PseudoLikelihoodLasso(random_state=1).fit(people).coupling_.shape
    (4, 4)
    """

    _kind = "joint"
    n_jobs = None

    def __init__(
        self,
        lam: float | str | None = None,
        *,
        density: float | None = None,
        gamma: float = 0.25,
        cv: int = 5,
        n_lambdas: int = 50,
        lambda_ratio: float = 0.01,
        tol: float = 1e-7,
        max_steps: int = 200,
        random_state: int | None = None,
        missing: str = "error",
        constant: str = "error",
    ) -> None:
        self.lam = lam
        self.density = density
        self.gamma = gamma
        self.cv = cv
        self.n_lambdas = n_lambdas
        self.lambda_ratio = lambda_ratio
        self.tol = tol
        self.max_steps = max_steps
        self.random_state = random_state
        self.missing = missing
        self.constant = constant


def _workers(n_jobs: int | None) -> int:
    import os

    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)


def _report(chosen: LassoPath, rows: Rows) -> tuple[str, ...]:
    """Warn of everything that makes the chosen solution less than it seems; return the separated names."""
    names = chosen.names
    lam = float(chosen.lambdas[-1])
    if not rows.usable.all():
        warnings.warn(
            f"Constant columns: {_listed(names, ~rows.usable)}. They get no couplings, and a bias from their "
            "mean with half a row of each value added. Drop them with constant='drop'.",
            EdgewiseWarning,
            stacklevel=3,
        )
    unfinished = chosen.violations[-1] > 100 * chosen.tolerance
    if unfinished.any():
        warnings.warn(
            f"At lambda {lam:.3g} the optimality conditions are still violated by "
            f"{chosen.violations[-1].max():.2g} in the regressions of {_listed(names, unfinished)}. "
            "Raise lam or max_steps.",
            EdgewiseWarning,
            stacklevel=3,
        )
    off_diagonal = chosen.coefficients[-1] - np.diag(chosen.biases[-1])
    separated = (chosen.margins[-1] > 0) | (np.abs(off_diagonal).max(axis=1) > HUGE_COUPLING)
    if separated.any():
        warnings.warn(
            f"Separation: the other columns determine {_listed(names, separated)} in these data, so that the "
            "size of their couplings rests on the penalty alone (without it they would be infinite). "
            "Raise lam, or drop columns that say the same.",
            EdgewiseWarning,
            stacklevel=3,
        )
    return tuple(names[i] for i in np.flatnonzero(separated))


def _listed(names: Sequence[str], which: np.ndarray, most: int = 8) -> str:
    found = [names[int(i)] for i in np.flatnonzero(which)]
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest
