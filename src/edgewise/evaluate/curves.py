"""Curves: precision against recall, frequency against probability, scores along a path of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.evaluate.estimates import is_path, pooled, read_estimate, truth_and_scores
from edgewise.evaluate.scores import cumulative, edge_scores, mean_and_error
from edgewise.predict.scores import conditional_log_likelihood

if TYPE_CHECKING:
    import pandas


def precision_recall_curve(truth: Any, estimate: Any) -> pandas.DataFrame:
    """Precision and recall when all pairs with at least a given score are selected.

    One row per distinct score, from high to low: ``threshold``, ``selected``, ``precision``, ``recall``.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.precision_recall_curve(truth, found)
       threshold  selected  precision  recall
    0        0.9         1   1.000000     0.5
    1        0.6         2   1.000000     1.0
    2        0.3         3   0.666667     1.0
    """
    import pandas

    true, scores = truth_and_scores(truth, estimate)
    cut, hits, count = cumulative(true, scores)
    return pandas.DataFrame(
        {
            "threshold": cut,
            "selected": count,
            "precision": hits / count,
            "recall": hits / max(true.sum(), 1),
        }
    )


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

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import evaluate
    >>> truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = np.array([[0, 0.9, 0.3], [0.9, 0, 0.6], [0.3, 0.6, 0]])
    >>> evaluate.reliability_curve(truth, found, bins=2)
       low  high  pairs  probability  frequency  standard_error
    0  0.0   0.5      1         0.30        0.0        0.458258
    1  0.5   1.0      2         0.75        1.0        0.287228
    """
    import pandas

    if bins < 1:
        raise DataError(f"The number of bins must be one or more, not {bins}.")
    true, probability = pooled(truth, estimate)
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


def path_curve(truth: Any, path: Any) -> pandas.DataFrame:
    """Precision, recall and F1 of every model of a lasso path, with its ``lam`` and ``density``.

    Examples
    --------
    >>> from edgewise import NodewiseLasso, datasets, evaluate, exact
    >>> truth = datasets.random_model(6, seed=1)
    >>> lasso = NodewiseLasso().fit(exact.sample(truth, 500, 1))
    >>> curve = evaluate.path_curve(truth, lasso)
    >>> bool(curve["recall"].max() > 0.5)
    True
    """
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

    Examples
    --------
    >>> from edgewise import MRF, evaluate
    >>> models = [MRF([0, 0], [], []), MRF([0, 0], [(0, 1)], [1.0])]
    >>> evaluate.density_curve(models, [[0, 0], [1, 1], [0, 1]], [0]).round(3)
       density    cll  cll_se
    0      0.0 -0.693   0.000
    1      1.0 -0.773   0.291
    """
    import pandas

    path = getattr(models, "path_", models)
    listed: Sequence[Any] = path.models() if is_path(path) else list(path)
    rows = []
    for number, model in enumerate(listed):
        row = {"density": read_estimate(model).density}
        row |= mean_and_error(conditional_log_likelihood(model, X, groups))
        if is_path(path):
            row["lam"] = float(path.lambdas[number])
        rows.append(row)
    return pandas.DataFrame(rows)
