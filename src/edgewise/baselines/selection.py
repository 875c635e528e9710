"""Choosing lambda on a lasso path: extended BIC and cross-validation.

A path whose best lambda is its last one may end too early; it is then continued by another factor of ten.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgewise.baselines.solver import SMALLEST_RATIO, LassoPath, Rows, solve_path
from edgewise.errors import DataError


def extended_bic(path: LassoPath, gamma: float) -> np.ndarray:
    """Extended Bayesian information criterion along a path; smaller is better.

    Node-wise (Foygel & Drton 2011, as IsingFit): for every lambda and node, -2 log-likelihood + k log N +
    2 gamma k log(p - 1), with k coefficients; an array (L, p). Joint: -2 log pseudo-likelihood +
    E log N + 4 gamma E log p, with E edges; an array (L,).
    """
    p = path.coefficients.shape[1]
    total = path.rows.total
    if path.kind == "joint":
        edges = np.count_nonzero(path.couplings, axis=(1, 2)) / 2
        return np.asarray(
            2 * total * path.losses.sum(axis=1) + edges * (np.log(total) + 4 * gamma * np.log(p))
        )
    present = path.coefficients != 0
    present[:, np.arange(p), np.arange(p)] = False
    count = present.sum(axis=2)
    return np.asarray(2 * total * path.losses + count * (np.log(total) + 2 * gamma * np.log(max(p - 1, 1))))


def choose_by_ebic(path: LassoPath, gamma: float) -> tuple[LassoPath, np.ndarray, LassoPath]:
    """The path (perhaps continued), its criterion, and a path that ends with the chosen solution.

    Node-wise, every node has its own best lambda; `lambdas` of the chosen solution is then the largest.
    """
    while True:
        criterion = extended_bic(path, gamma)
        best = criterion.argmin(axis=0)
        # The likelihood of a separated node grows for ever, so its best lambda is always the last.
        open_ended = (best == len(path) - 1) & ((path.margins[-1] <= 0) if best.ndim else True)
        if not open_ended.any() or _is_complete(path):
            break
        path = path.extended(_further(path.lambdas))
    if path.kind == "joint":
        return path, criterion, path[: int(best) + 1]
    nodes = np.arange(len(best))
    chosen = replace(
        path,
        lambdas=path.lambdas[best].max(keepdims=True),
        coefficients=path.coefficients[best, nodes][None],
        losses=path.losses[best, nodes][None],
        margins=path.margins[best, nodes][None],
        violations=path.violations[best, nodes][None],
    )
    return path, criterion, chosen


def choose_by_cross_validation(
    path: LassoPath, values: np.ndarray, weights: np.ndarray | None, folds: int, seed: int | None
) -> tuple[LassoPath, np.ndarray, LassoPath]:
    """The path (perhaps continued), held-out scores (L, folds), and a path that ends with the best.

    A score is the mean pseudo-log-likelihood of the held-out rows under the combined model.
    """
    n = len(values)
    if not 2 <= folds <= n:
        raise DataError(f"cv={folds!r} folds of {n} rows are not possible; give 2 up to the number of rows.")
    weights = np.ones(n) if weights is None else weights
    parts = np.array_split(np.random.default_rng(seed).permutation(n), folds)
    fold_paths = []
    for part in parts:
        train = np.setdiff1d(np.arange(n), part)
        rows = Rows.collect(values[train], weights[train])
        fold_paths.append(
            solve_path(
                path.kind,
                rows,
                path.lambdas,
                path.names,
                combine=path.combine,
                rule=path.rule,
                tolerance=path.tolerance,
                max_steps=path.max_steps,
                n_jobs=path.n_jobs,
            )
        )
    while True:
        scores = np.empty((len(path), folds))
        for number, (part, fold_path) in enumerate(zip(parts, fold_paths)):
            held_out = pseudo_log_likelihoods(values[part], fold_path.biases, fold_path.couplings)
            scores[:, number] = held_out @ weights[part] / weights[part].sum()
        best = int(scores.mean(axis=1).argmax())
        if best < len(path) - 1 or _is_complete(path):
            return path, scores, path[: best + 1]
        further = _further(path.lambdas)
        path = path.extended(further)
        fold_paths = [fold_path.extended(further) for fold_path in fold_paths]


def pseudo_log_likelihoods(rows: np.ndarray, biases: np.ndarray, couplings: np.ndarray) -> np.ndarray:
    """Pseudo-log-likelihood of every row under every solution: float64 (L, n)."""
    values = rows.astype(np.float64)
    signs = 1.0 - 2.0 * values
    result = np.empty((len(biases), len(values)))
    for index, (bias, coupling) in enumerate(zip(biases, couplings)):
        result[index] = -np.logaddexp(0.0, signs * (bias + values @ coupling)).sum(axis=1)
    return result


def _is_complete(path: LassoPath) -> bool:
    return len(path) < 2 or path.lambdas[-1] <= 10 * SMALLEST_RATIO * path.lambdas[0]


def _further(lambdas: np.ndarray) -> np.ndarray:
    """Another factor of ten in the steps of the grid."""
    step = lambdas[-1] / lambdas[-2]
    count = int(np.ceil(np.log(0.1) / np.log(step)))
    return np.asarray(lambdas[-1] * step ** np.arange(1, count + 1))
