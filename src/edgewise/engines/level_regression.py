"""The averaged quadratic of a posterior with levels, as a regression (docs/method.md, 10 and 11)."""

from __future__ import annotations

import numpy as np

from edgewise.engines.level_features import data_sums, data_variances
from edgewise.engines.protocol import Problem

# A feature that no particle shows would have no variance: it gets this share of the data's own.
VARIANCE_FLOOR = 0.3
RIDGE = 1e-3


def first_surrogate(candidates: np.ndarray, offset: np.ndarray, n_biases: int) -> dict[str, np.ndarray]:
    """A stand-in of the right types for the first round, in which nothing moves."""
    total = int(offset[-1])
    return {
        "candidates": candidates,
        "offset": offset,
        "precision": np.zeros((total, total)),
        "pull": np.zeros(total),
        "bias_mean": np.zeros(n_biases),
        "bias_slope": np.zeros((total, n_biases)),
        "bias_root": np.eye(n_biases),
        "bias_precision": np.eye(n_biases),
    }


def regression(
    problem: Problem,
    candidates: np.ndarray,
    offset: np.ndarray,
    phi: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    caution: float = 1.0,
) -> dict[str, np.ndarray]:
    """The averaged quadratic (10.1) as a regression with the thresholds integrated out (10.3).

    With a `caution` below one, that share of the way from what the particles show to what the data show.
    """
    from threadpoolctl import threadpool_limits

    assert problem.scales is not None
    rows, nb = float(problem.statistics.n_rows), problem.scales.n_biases
    sums = data_sums(problem, candidates)
    C = (covariance + covariance.T) / 2
    own = np.diag(C).copy()
    floor = VARIANCE_FLOOR * data_variances(problem, candidates, offset)
    np.fill_diagonal(C, own + np.maximum(0.0, floor - own) + RIDGE * own)
    with threadpool_limits(1):
        C *= rows
        pull = caution * (sums - rows * mean) + C @ phi
        bias_precision = C[:nb, :nb] + np.eye(nb) / problem.prior.bias_sd**2
        inverse = np.linalg.inv(bias_precision)
        inverse = (inverse + inverse.T) / 2
        slope = C[nb:, :nb] @ inverse
        precision = C[nb:, nb:] - slope @ C[:nb, nb:]
        least = 1e-6 * np.diag(C)[nb:] + 1e-12
        np.fill_diagonal(precision, np.maximum(np.diag(precision), least))
        return {
            "candidates": candidates,
            "offset": offset,
            "precision": np.ascontiguousarray((precision + precision.T) / 2),
            "pull": pull[nb:] - slope @ pull[:nb],
            "bias_mean": inverse @ pull[:nb],
            "bias_slope": np.ascontiguousarray(slope),
            "bias_root": np.linalg.cholesky(inverse),
            "bias_precision": bias_precision,
        }
