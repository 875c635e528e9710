"""Rows from a mixture of models, and every variable predicted from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.model.mrf import MRF

GIBBS_SWEEPS = 300


def sample_rows(models: Sequence[MRF], n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `n` rows, each from a model chosen at random: uint8 (n, p).

    Exact where that is possible, and the end of a Gibbs chain of its own elsewhere.
    """
    from edgewise import exact

    owner = rng.integers(len(models), size=n)
    rows = np.empty((n, models[0].n_variables), np.uint8)
    for number, model in enumerate(models):
        mine = np.flatnonzero(owner == number)
        if not len(mine):
            continue
        if exact.feasible(model):
            rows[mine] = exact.sample(model, len(mine), rng)
        else:
            rows[mine] = model.gibbs(len(mine), GIBBS_SWEEPS, rng)
    return rows


def each_given_others(models: Sequence[MRF], rows: np.ndarray) -> np.ndarray:
    """P(x_i = 1 | the seen cells of the row but its own) of every cell: float64 (n, p); -1 is unseen."""
    from edgewise.predict.scores import conditional_probability

    result = np.empty(rows.shape)
    whole = (rows >= 0).all(axis=1)
    if whole.any():
        result[whole] = np.mean([model.conditional_probability(rows[whole]) for model in models], axis=0)
    if not whole.all():
        for variable in range(rows.shape[1]):
            result[~whole, variable] = conditional_probability(models, rows[~whole], [variable])[:, 0]
    return result
