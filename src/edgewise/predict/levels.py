"""Scores and predictions for variables with any levels; ``scores.py`` comes here where two are not all.

Probabilities of the levels of a variable come as one array (rows, levels) for each variable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.model import energies
from edgewise.model.mrf import MRF

MOST_STATES = 1 << 16
"""Joint states of unseen variables that are listed in one table."""

CELLS = 1 << 19
GIBBS_CHAINS = 250


def site_log_likelihood(model: MRF, rows: np.ndarray) -> np.ndarray:
    """Log P(x_i | all others) of every row and variable: float64 (n, p)."""
    result = np.empty(rows.shape)
    for i, potential in enumerate(energies.conditional_log_potential(model, rows)):
        potential = potential - potential.max(axis=1, keepdims=True)
        chosen = np.take_along_axis(potential, rows[:, [i]], axis=1)[:, 0]
        result[:, i] = chosen - np.log(np.exp(potential).sum(axis=1))
    return result


def conditioned(model: MRF, row: np.ndarray, group: np.ndarray) -> MRF:
    """The model of the variables in `group` (in that order) given the others as in `row`."""
    place = {int(variable): k for k, variable in enumerate(group)}
    scales = [model.scales[i] for i in place]
    thresholds = [np.array(model.thresholds[i]) for i in place]
    pairs, tables = [], []
    for number, (i, j) in enumerate(model.members[:, :2].tolist()):
        if i in place and j in place:
            pairs.append((place[i], place[j]))
            tables.append(model.pair_potential(number))
        elif i in place:
            thresholds[place[i]] += model.pair_potential(number)[:, row[j]]
        elif j in place:
            thresholds[place[j]] += model.pair_potential(number)[row[i]]
    return MRF.from_levels(scales, thresholds, pairs, tables)


def level_probabilities(
    models: Sequence[MRF], rows: np.ndarray, wanted: Sequence[int] | None = None, *, seed: int = 0
) -> list[np.ndarray]:
    """P(x_t = c | the seen variables of the row) of every level c: for each target float64 (n, levels).

    Parameters
    ----------
    models : sequence of MRF
        Of equal weight: their probabilities are averaged.
    rows : int array (n, p)
        Numbers of levels, and -1 where a variable is unseen.
    wanted : variables, optional
        Targets, none of whose own cells is looked at. Without them every variable is one, and a seen cell has
        the probability one.
    seed : int
        Of Gibbs sampling, which takes over where too many variables are unseen.
    """
    rows, rng = np.array(rows, np.int64), np.random.default_rng(seed)
    scales = models[0].scales
    targets = list(range(len(scales))) if wanted is None else [int(t) for t in wanted]
    if wanted is not None:
        rows[:, targets] = -1
    result = [np.zeros((len(rows), scales[t].n_levels)) for t in range(len(scales))]
    for i, column in enumerate(rows.T):
        seen = np.flatnonzero(column >= 0)
        result[i][seen, column[seen]] = 1.0
    patterns, which = np.unique(rows < 0, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        unseen = np.flatnonzero(pattern)
        chosen = np.flatnonzero(which.ravel() == number)
        filled = np.where(rows[chosen] < 0, 0, rows[chosen])
        for model in models if len(unseen) else ():
            for i, found in zip(unseen, _unseen(model, filled, unseen, rng)):
                result[i][chosen] += found / len(models)
    return [result[t] for t in targets]


def each_given_others(models: Sequence[MRF], rows: np.ndarray) -> list[np.ndarray]:
    """P(x_i = c | the seen cells of the row but its own) of every cell: for each variable (n, levels)."""
    whole = (rows >= 0).all(axis=1)
    result = [np.empty((len(rows), scale.n_levels)) for scale in models[0].scales]
    if whole.any():
        for model in models:
            for i, part in enumerate(model.conditional_levels(rows[whole])):
                result[i][whole] = part / len(models) + (result[i][whole] if model is not models[0] else 0.0)
    for i in range(rows.shape[1] if not whole.all() else 0):
        result[i][~whole] = level_probabilities(models, rows[~whole], [i])[0]
    return result


def _unseen(model: MRF, rows: np.ndarray, unseen: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Probabilities of the levels of the unseen variables of rows that share them."""
    from edgewise import exact

    if len(unseen) == 1:
        return [model.conditional_levels(rows)[int(unseen[0])]]
    levels = model.scales.levels[unseen]
    count = int(np.prod(levels.astype(object)))
    if count <= MOST_STATES and len(unseen) <= 16:
        result = [np.empty((len(rows), int(k))) for k in levels]
        block = max(1, CELLS // count)
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            table = np.exp(exact.conditional(model, list(unseen), part)).reshape(len(part), *levels[::-1])
            for k in range(len(unseen)):
                axes = tuple(a for a in range(1, len(unseen) + 1) if a != len(unseen) - k)
                result[k][start : start + len(part)] = table.sum(axis=axes)
        return result
    different, back = np.unique(rows, axis=0, return_inverse=True)
    found = []
    for row in different:
        inside = conditioned(model, row, unseen)
        if exact.feasible(inside):
            found.append(exact.level_marginals(inside))
        else:
            drawn = inside.gibbs(GIBBS_CHAINS, 100, rng)
            found.append(
                [np.bincount(column, minlength=k) / len(drawn) for column, k in zip(drawn.T, levels)]
            )
    return [np.stack([each[k] for each in found])[back.ravel()] for k in range(len(unseen))]


def anneal(model: MRF, base: MRF, particles: int, temperatures: int, rng: np.random.Generator) -> np.ndarray:
    """Log-weights of particles that go from the independent model `base` to `model`: float64 (particles,)."""
    state = np.stack(
        [
            energies.draw_levels(np.repeat(energies.softmax(part)[None], particles, axis=0), rng)
            for part in base.thresholds
        ],
        axis=1,
    )
    total, betas = np.zeros(particles), np.linspace(0.0, 1.0, temperatures + 1)
    for k in range(temperatures):
        total += (betas[k + 1] - betas[k]) * (model.log_potential(state) - base.log_potential(state))
        between = betas[k + 1] * model.biases + (1.0 - betas[k + 1]) * base.biases
        moved = MRF(between, model.members, betas[k + 1] * model.weights, scales=model.scales)
        state = energies.gibbs(moved, state, 1, rng)
    return total


def independent(model: MRF, particles: int, sweeps: int, rng: np.random.Generator) -> MRF:
    """The model without couplings that has about the margins of this one."""
    drawn = model.gibbs(particles, sweeps, rng)
    thresholds = []
    for column, scale in zip(drawn.T, model.scales):
        share = np.log(np.bincount(column, minlength=scale.n_levels) + 1.0)
        thresholds.append(scale.basis @ scale.coordinates(share))
    return MRF.from_levels(model.scales, thresholds, [], [])
