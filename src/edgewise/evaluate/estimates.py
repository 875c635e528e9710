"""What any method says of every pair of variables, and what is true of them.

An *estimate* may be a posterior, a fitted estimator, a lasso path, a model, a list of models of equal weight,
or a symmetric matrix of edge scores such as inclusion probabilities. :func:`read_estimate` turns each into
the same few arrays over the pairs of variables, in the order of ``numpy.triu_indices(p, 1)``; everything else
works on those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.model.mrf import MRF


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method says of every pair of variables.

    Attributes
    ----------
    scores : float64 array (M,)
        How much the method believes in each pair; only the order matters.
    selected : bool array (M,) or None
        The pairs of its graph, where it has chosen one.
    probabilities : float64 array (M,) or None
        Inclusion probabilities, where the method has any.
    couplings : float64 array (M,) or None
        Couplings in 0/1 coding.
    density : float
        Share of all pairs in the graph; of a posterior, the mean over its draws.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> estimate = evaluate.read_estimate(found)
    >>> estimate.scores.tolist(), estimate.selected.tolist()
    ([0.9, 0.3, 0.6], [True, False, True])
    """

    scores: np.ndarray
    selected: np.ndarray | None
    probabilities: np.ndarray | None
    couplings: np.ndarray | None
    density: float


def read_estimate(estimate: Any, threshold: float = 0.5) -> Estimate:
    """Read any kind of estimate (see the top of the module).

    A matrix is taken as edge scores: pairs at or above `threshold` are selected, and scores between 0 and
    1 count as probabilities. Give couplings as a model, ``MRF.from_coupling(biases, coupling)``. The score
    of a lasso's pair is the largest lambda at which it has a coupling.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.read_estimate(found, threshold=0.7).selected.tolist()
    [True, False, False]
    """
    if hasattr(estimate, "posterior_"):
        return read_estimate(estimate.posterior_, threshold)
    if hasattr(estimate, "path_") and hasattr(estimate, "coupling_"):
        coupling = _pairs(estimate.coupling_)
        # Pairs that enter together, or were found between two lambdas, are ordered by their couplings.
        tie = np.abs(coupling) / (1.0 + np.abs(coupling))
        entry = _pairs(estimate.path_.entry)
        scores = entry + 1e-9 * tie * max(entry.max(initial=0.0), 1e-300)
        return Estimate(scores, coupling != 0, None, coupling, _share(coupling != 0))
    if is_path(estimate):
        return Estimate(_pairs(estimate.entry), None, None, None, np.nan)
    if isinstance(estimate, MRF):
        coupling = _pairs(estimate.coupling)
        return Estimate(np.abs(coupling), coupling != 0, None, coupling, estimate.density)
    if hasattr(estimate, "inclusion") and hasattr(estimate, "median_model"):
        probability = _pairs(estimate.inclusion)
        coupling = _pairs(estimate.coupling())
        mean_density = float(np.mean(estimate.n_edges) / max(1, estimate.n_cliques))
        return Estimate(probability, probability >= threshold, probability, coupling, mean_density)
    if isinstance(estimate, list | tuple) and estimate and all(isinstance(m, MRF) for m in estimate):
        couplings = np.array([_pairs(model.coupling) for model in estimate])
        share = (couplings != 0).mean(axis=0)
        return Estimate(share, share >= threshold, share, couplings.mean(axis=0), _share(share))
    matrix = np.asarray(estimate, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            "An estimate is a posterior, a fitted estimator, a lasso path, a model or a square matrix of "
            f"edge scores; not an array of shape {matrix.shape}."
        )
    scores = _pairs(matrix)
    if not np.isfinite(scores).all():
        raise DataError("The edge scores must be finite numbers; some are NaN or infinite.")
    selected = scores >= threshold
    probable = scores if ((scores >= 0) & (scores <= 1)).all() else None
    return Estimate(scores, selected, probable, None, _share(selected))


def is_path(estimate: Any) -> bool:
    """Whether this is a lasso path: models along lambda, and where each pair enters."""
    return hasattr(estimate, "lambdas") and hasattr(estimate, "entry")


def read_truth(truth: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Which pairs are edges, and their couplings where the truth is a model."""
    if isinstance(truth, MRF):
        coupling = _pairs(truth.coupling)
        return coupling != 0, coupling
    matrix = np.asarray(truth)
    if matrix.ndim == 1 and matrix.dtype == bool:
        return matrix, None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"The truth is a model or a square 0/1 matrix, not an array of shape {matrix.shape}.")
    return _pairs(matrix) != 0, None


def truth_and_scores(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs are edges, and the scores of an estimate or of a flat array of them."""
    true, _ = read_truth(truth)
    flat = isinstance(estimate, np.ndarray) and estimate.ndim == 1
    scores = estimate if flat else read_estimate(estimate).scores
    same_size(true, scores)
    return true, scores


def truth_and_probabilities(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs are edges, and their inclusion probabilities."""
    true, _ = read_truth(truth)
    flat = isinstance(estimate, np.ndarray) and estimate.ndim == 1
    probability = estimate if flat else read_estimate(estimate).probabilities
    if probability is None:
        raise DataError("This estimate has no inclusion probabilities; calibration needs them.")
    same_size(true, probability)
    return true, probability


def pooled(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same of one data set, or of several together."""
    if isinstance(estimate, list | tuple):
        parts = [truth_and_probabilities(one, other) for one, other in zip(truth, estimate, strict=True)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    return truth_and_probabilities(truth, estimate)


def _pairs(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix, np.float64)[np.triu_indices(len(matrix), 1)]


def _share(selected: np.ndarray) -> float:
    return float(selected.mean()) if len(selected) else 0.0


def same_size(true: np.ndarray, values: np.ndarray) -> None:
    """Refuse an estimate of other variables than the truth has."""
    if len(true) != len(values):
        raise DataError(f"The truth has {len(true)} pairs of variables and the estimate {len(values)}.")
