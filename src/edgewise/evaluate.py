"""Scores of learned structure and parameters against a known truth: any method, one table.

An *estimate* may be a posterior, a fitted estimator, a lasso path, a model, a list of models of equal weight,
or a symmetric matrix of edge scores such as inclusion probabilities. :func:`read_estimate` turns each into
the same few arrays over the pairs of variables, in the order of ``numpy.triu_indices(p, 1)``; everything else
works on those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.baselines.solver import LassoPath
from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.predict.scores import conditional_log_likelihood, pseudo_log_likelihood

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Estimate",
    "average_precision",
    "brier_score",
    "calibration_error",
    "compare",
    "coupling_error",
    "density_curve",
    "edge_scores",
    "path_curve",
    "precision_recall_curve",
    "read_estimate",
    "reliability_curve",
    "roc_auc",
    "structural_hamming_distance",
]

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
    if isinstance(estimate, LassoPath):
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
    true, true_coupling = _truth(truth)
    read = read_estimate(estimate, threshold)
    _same_size(true, read.scores)
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
    """
    import pandas

    table = {}
    for name, estimate in estimates.items():
        if truth is not None:
            row = edge_scores(truth, estimate, threshold=threshold)
        else:
            row = {"density": read_estimate(estimate, threshold).density}
        if X is not None and not isinstance(estimate, LassoPath | np.ndarray):
            if groups is not None:
                row |= _mean_and_error(conditional_log_likelihood(estimate, X, groups))
            row["pll"] = float(pseudo_log_likelihood(estimate, X).mean())
        table[name] = row
    return pandas.DataFrame.from_dict(table, orient="index").rename_axis("method")


def precision_recall_curve(truth: Any, estimate: Any) -> pandas.DataFrame:
    """Precision and recall when all pairs with at least a given score are selected.

    One row per distinct score, from high to low: ``threshold``, ``selected``, ``precision``, ``recall``.
    """
    import pandas

    true, scores = _truth_and_scores(truth, estimate)
    cut, hits, count = _cumulative(true, scores)
    return pandas.DataFrame(
        {
            "threshold": cut,
            "selected": count,
            "precision": hits / count,
            "recall": hits / max(true.sum(), 1),
        }
    )


def average_precision(truth: Any, estimate: Any) -> float:
    """Area under the precision-recall curve as a sum of steps; NaN when the truth has no edge."""
    true, scores = _truth_and_scores(truth, estimate)
    if not true.any():
        return np.nan
    _, hits, count = _cumulative(true, scores)
    recall = hits / true.sum()
    return float((np.diff(recall, prepend=0.0) * hits / count).sum())


def roc_auc(truth: Any, estimate: Any) -> float:
    """Probability that a true pair scores above a false one, ties counting one half."""
    true, scores = _truth_and_scores(truth, estimate)
    n_true, n_false = int(true.sum()), int((~true).sum())
    if not n_true or not n_false:
        return np.nan
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    return float((ranks[true].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def structural_hamming_distance(truth: Any, estimate: Any, *, threshold: float = 0.5) -> int:
    """Number of pairs on which two graphs disagree."""
    return int(edge_scores(truth, estimate, threshold=threshold)["hamming"])


def brier_score(truth: Any, estimate: Any) -> float:
    """Mean squared difference of the inclusion probability and the truth (0 or 1)."""
    true, probability = _truth_and_probabilities(truth, estimate)
    return float(np.mean((probability - true) ** 2))


def reliability_curve(truth: Any, estimate: Any, bins: int = 10) -> pandas.DataFrame:
    """How often pairs of a given inclusion probability are true.

    Parameters
    ----------
    truth, estimate : one truth and estimate, or lists of them
        The pairs of several data sets are pooled.
    bins : int
        Number of equal intervals between 0 and 1; empty ones are left out.

    Returns
    -------
    DataFrame
        ``low``, ``high``, ``pairs``, ``probability`` (mean), ``frequency`` of true ones, and
        ``standard_error`` of that frequency if the probabilities were right.
    """
    import pandas

    if bins < 1:
        raise DataError(f"The number of bins must be one or more, not {bins}.")
    true, probability = _pooled(truth, estimate)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    rows = []
    for b in np.unique(place):
        inside = place == b
        chance = probability[inside]
        rows.append(
            {
                "low": b / bins,
                "high": (b + 1) / bins,
                "pairs": int(inside.sum()),
                "probability": float(chance.mean()),
                "frequency": float(true[inside].mean()),
                "standard_error": float(np.sqrt((chance * (1 - chance)).sum()) / inside.sum()),
            }
        )
    return pandas.DataFrame(rows)


def calibration_error(truth: Any, estimate: Any, bins: int = 10) -> float:
    """Mean distance of frequency and probability over the bins of :func:`reliability_curve`, by pairs."""
    true, probability = _pooled(truth, estimate)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(place, weights=true - probability, minlength=bins)
    return float(np.abs(gap).sum() / max(len(true), 1))


def coupling_error(truth: MRF, estimate: Any, *, coding: str = "binary", active: bool = False) -> float:
    """Root mean squared error of the couplings, over all pairs or over the true edges alone (`active`)."""
    if coding not in ("binary", "ising"):
        raise DataError(f'coding must be "binary" or "ising", not {coding!r}.')
    true, true_coupling = _truth(truth)
    couplings = read_estimate(estimate).couplings
    if true_coupling is None or couplings is None:
        raise DataError("The error of couplings needs a true model and an estimate with couplings.")
    _same_size(true, couplings)
    which = true if active else np.ones(len(true), bool)
    error = float(np.sqrt(np.mean((couplings - true_coupling)[which] ** 2))) if which.any() else 0.0
    return error / 4 if coding == "ising" else error


def path_curve(truth: Any, path: Any) -> pandas.DataFrame:
    """Precision, recall and F1 of every model of a lasso path, with its ``lam`` and ``density``."""
    import pandas

    path = getattr(path, "path_", path)
    rows = []
    for index, lam in enumerate(path.lambdas):
        found = edge_scores(truth, path.model(index))
        kept = {name: found[name] for name in ("density", "selected", "precision", "recall", "f1", "hamming")}
        rows.append({"lam": float(lam)} | kept)
    return pandas.DataFrame(rows)


def density_curve(models: Any, X: Any, groups: Any) -> pandas.DataFrame:
    """Mean conditional log-likelihood against edge density (Chen & Welling, 2012, Figures 6 and 10).

    Parameters
    ----------
    models : lasso path, fitted lasso, or sequence of estimates that have a model
        For instance posteriors under different fixed inclusion probabilities, or their median models.
    X : 0/1 array (n, p)
        Test rows.
    groups : as in :func:`edgewise.predict.conditional_log_likelihood`

    Returns
    -------
    DataFrame
        ``density``, ``cll``, ``cll_se`` and, for a lasso path, ``lam``.
    """
    import pandas

    path = getattr(models, "path_", models)
    listed: Sequence[Any] = path.models() if isinstance(path, LassoPath) else list(path)
    rows = []
    for number, model in enumerate(listed):
        row = {"density": read_estimate(model).density}
        row |= _mean_and_error(conditional_log_likelihood(model, X, groups))
        if isinstance(path, LassoPath):
            row["lam"] = float(path.lambdas[number])
        rows.append(row)
    return pandas.DataFrame(rows)


def _mean_and_error(values: np.ndarray) -> dict[str, float]:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return {"cll": float(values.mean()), "cll_se": float(error)}


def _pairs(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix, np.float64)[np.triu_indices(len(matrix), 1)]


def _share(selected: np.ndarray) -> float:
    return float(selected.mean()) if len(selected) else 0.0


def _truth(truth: Any) -> tuple[np.ndarray, np.ndarray | None]:
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


def _truth_and_scores(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    true, _ = _truth(truth)
    flat = isinstance(estimate, np.ndarray) and estimate.ndim == 1
    scores = estimate if flat else read_estimate(estimate).scores
    _same_size(true, scores)
    return true, scores


def _truth_and_probabilities(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    true, _ = _truth(truth)
    flat = isinstance(estimate, np.ndarray) and estimate.ndim == 1
    probability = estimate if flat else read_estimate(estimate).probabilities
    if probability is None:
        raise DataError("This estimate has no inclusion probabilities; calibration needs them.")
    _same_size(true, probability)
    return true, probability


def _pooled(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(estimate, list | tuple):
        parts = [_truth_and_probabilities(one, other) for one, other in zip(truth, estimate, strict=True)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    return _truth_and_probabilities(truth, estimate)


def _same_size(true: np.ndarray, values: np.ndarray) -> None:
    if len(true) != len(values):
        raise DataError(f"The truth has {len(true)} pairs of variables and the estimate {len(values)}.")


def _cumulative(true: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores from high to low, and the true pairs and all pairs with at least that score."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    return ordered[last], np.cumsum(true[order])[last], last + 1
