"""Single numbers: how well a graph, its probabilities and its couplings meet the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.evaluate.estimates import (
    is_path,
    pooled,
    read_estimate,
    read_truth,
    same_size,
    truth_and_probabilities,
    truth_and_scores,
)
from edgewise.model.mrf import MRF
from edgewise.predict.scores import conditional_log_likelihood, pseudo_log_likelihood

if TYPE_CHECKING:
    import pandas

SCORES = (
    "selected",
    "density",
    "precision",
    "recall",
    "f1",
    "hamming",
    "average_precision",
    "roc_auc",
    "brier",
    "calibration_error",
    "coupling_rmse",
    "ising_rmse",
)


def edge_scores(truth: Any, estimate: Any, *, threshold: float = 0.5) -> dict[str, float]:
    """All scores of one estimate against the truth; NaN where a score does not apply to it.

    Parameters
    ----------
    truth : MRF or 0/1 matrix (p, p)
        The true model, or its graph alone.
    estimate : any estimate
        See :func:`read_estimate`.
    threshold : float
        Smallest inclusion probability of a selected pair.

    Returns
    -------
    dict
        ``selected`` (edges), ``density``, ``precision``, ``recall``, ``f1``, ``hamming`` (structural
        Hamming distance), ``average_precision``, ``roc_auc``, ``brier``, ``calibration_error``, and
        ``coupling_rmse`` (0/1 coding) and ``ising_rmse`` (J = theta / 4) over all pairs.

    Examples
    --------
    >>> truth = MRF([0, 0, 0], [(0, 1), (1, 2)], [1.0, -1.0])
    >>> found = edge_scores(truth, MRF([0, 0, 0], [(0, 1), (0, 2)], [0.8, 0.2]))
    >>> found["precision"], found["recall"], found["hamming"]
    (0.5, 0.5, 2.0)
    """
    true, true_coupling = read_truth(truth)
    read = read_estimate(estimate, threshold)
    same_size(true, read.scores)
    result = dict.fromkeys(SCORES, np.nan)
    result["density"] = read.density
    if read.selected is not None:
        hits = float((read.selected & true).sum())
        count = float(read.selected.sum())
        result["selected"] = count
        # Nothing selected: no false edge either, so precision is one by convention.
        result["precision"] = hits / count if count else 1.0
        result["recall"] = hits / true.sum() if true.any() else 1.0
        result["f1"] = 2 * hits / (count + true.sum()) if count + true.sum() else 1.0
        result["hamming"] = float((read.selected != true).sum())
    result["average_precision"] = average_precision(true, read.scores)
    result["roc_auc"] = roc_auc(true, read.scores)
    if read.probabilities is not None:
        result["brier"] = brier_score(true, read.probabilities)
        result["calibration_error"] = calibration_error(true, read.probabilities)
    if read.couplings is not None and true_coupling is not None:
        result["coupling_rmse"] = float(np.sqrt(np.mean((read.couplings - true_coupling) ** 2)))
        result["ising_rmse"] = result["coupling_rmse"] / 4
    return {name: float(value) for name, value in result.items()}


def compare(
    truth: Any,
    estimates: Mapping[str, Any],
    X: Any = None,
    groups: Any = None,
    *,
    threshold: float = 0.5,
) -> pandas.DataFrame:
    """One table of all scores, one row per method.

    Parameters
    ----------
    truth : MRF, 0/1 matrix or None
        Without a truth only the scores on test rows are given.
    estimates : mapping
        Name of the method -> its estimate.
    X : 0/1 array (n, p), optional
        Test rows. They add ``cll`` (mean conditional log-likelihood of the groups), ``cll_se`` (its
        standard error over the rows) and ``pll`` (mean pseudo-log-likelihood) of every method that has a
        model.
    groups : optional
        As in :func:`edgewise.predict.conditional_log_likelihood`; without it ``cll`` is left out. The same
        groups are used for all methods.
    threshold : float

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> guess = np.full((3, 3), 0.5)
    >>> evaluate.compare(truth, {"found": found, "a guess": guess})[["f1", "roc_auc", "brier"]]
              f1  roc_auc     brier
    method
    found    1.0      1.0  0.086667
    a guess  0.8      0.5  0.250000
    """
    import pandas

    table = {}
    for name, estimate in estimates.items():
        if truth is not None:
            row = edge_scores(truth, estimate, threshold=threshold)
        else:
            row = {"density": read_estimate(estimate, threshold).density}
        if X is not None and not (is_path(estimate) or isinstance(estimate, np.ndarray)):
            if groups is not None:
                row |= mean_and_error(conditional_log_likelihood(estimate, X, groups))
            row["pll"] = float(pseudo_log_likelihood(estimate, X).mean())
        table[name] = row
    return pandas.DataFrame.from_dict(table, orient="index").rename_axis("method")


def mean_and_error(values: np.ndarray) -> dict[str, float]:
    """Mean of the scores of the rows, and its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return {"cll": float(values.mean()), "cll_se": float(error)}


def average_precision(truth: Any, estimate: Any) -> float:
    """Area under the precision-recall curve as a sum of steps; NaN when the truth has no edge.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.average_precision(truth, found)
    1.0
    """
    true, scores = truth_and_scores(truth, estimate)
    if not true.any():
        return np.nan
    _, hits, count = cumulative(true, scores)
    recall = hits / true.sum()
    return float((np.diff(recall, prepend=0.0) * hits / count).sum())


def roc_auc(truth: Any, estimate: Any) -> float:
    """Probability that a true pair scores above a false one, ties counting one half.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.roc_auc(truth, found)
    1.0
    """
    true, scores = truth_and_scores(truth, estimate)
    n_true, n_false = int(true.sum()), int((~true).sum())
    if not n_true or not n_false:
        return np.nan
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    return float((ranks[true].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def structural_hamming_distance(truth: Any, estimate: Any, *, threshold: float = 0.5) -> int:
    """Number of pairs on which two graphs disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.structural_hamming_distance(truth, found, threshold=0.7)
    1
    """
    return int(edge_scores(truth, estimate, threshold=threshold)["hamming"])


def brier_score(truth: Any, estimate: Any) -> float:
    """Mean squared difference of the inclusion probability and the truth (0 or 1).

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> round(evaluate.brier_score(truth, found), 4)
    0.0867
    """
    true, probability = truth_and_probabilities(truth, estimate)
    return float(np.mean((probability - true) ** 2))


def calibration_error(truth: Any, estimate: Any, bins: int = 10) -> float:
    """Mean distance of frequency and probability over the bins of :func:`reliability_curve`, by pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> round(evaluate.calibration_error(truth, found), 4)
    0.2667
    """
    true, probability = pooled(truth, estimate)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(place, weights=true - probability, minlength=bins)
    return float(np.abs(gap).sum() / max(len(true), 1))


def coupling_error(truth: MRF, estimate: Any, *, coding: str = "binary", active: bool = False) -> float:
    """Root mean squared error of the couplings, over all pairs or over the true edges alone (`active`).

    Examples
    --------
    >>> from edgewise import MRF, evaluate
    >>> truth = MRF([0, 0], [(0, 1)], [1.0])
    >>> evaluate.coupling_error(truth, MRF([0, 0], [(0, 1)], [0.5]))
    0.5
    """
    if coding not in ("binary", "ising"):
        raise DataError(f'coding must be "binary" or "ising", not {coding!r}.')
    true, true_coupling = read_truth(truth)
    couplings = read_estimate(estimate).couplings
    if true_coupling is None or couplings is None:
        raise DataError("The error of couplings needs a true model and an estimate with couplings.")
    same_size(true, couplings)
    which = true if active else np.ones(len(true), bool)
    error = float(np.sqrt(np.mean((couplings - true_coupling)[which] ** 2))) if which.any() else 0.0
    return error / 4 if coding == "ising" else error


def cumulative(true: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores from high to low, and the true pairs and all pairs with at least that score."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    return ordered[last], np.cumsum(true[order])[last], last + 1
