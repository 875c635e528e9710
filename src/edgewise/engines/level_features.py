"""Features of variables with any levels: in the data, and in particles (docs/method.md, 11).

Thresholds come first, variable after variable, then the products of scores of the candidates in play.
``offset[k]`` is where the parameters of the k-th candidate begin among those of all candidates. Particles are
``answers[i, s]``, the level of variable i in particle s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.engines.protocol import Problem
from edgewise.kernels.codes import FORBIDDEN
from edgewise.scales import BLUME_CAPEL, Scales


def in_play(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The candidates that may be active, and where their parameters begin, and the last end."""
    assert problem.scales is not None
    chosen = np.flatnonzero(problem.prior.status != FORBIDDEN)
    size = problem.scales.dimensions(problem.features.members)[chosen]
    return chosen, np.concatenate([[0], np.cumsum(size)])


def particle_features(
    problem: Problem, candidates: np.ndarray, answers: np.ndarray, kind: type = np.float64
) -> np.ndarray:
    """Features of all particles: (features, n)."""
    scales: Scales | None = problem.scales
    assert scales is not None
    scored = np.concatenate([scale.scores.astype(kind)[answers[i]].T for i, scale in enumerate(scales)])
    parts = [scale.basis.astype(kind)[answers[i]].T for i, scale in enumerate(scales)]
    first, second = product_rows(scales, problem.features.members[candidates, :2])
    return np.concatenate([*parts, scored[first] * scored[second]])


def product_rows(scales: Scales, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which two of the scores of all variables, side by side, each parameter of the pairs multiplies."""
    first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for i, j in pairs.tolist():
        rows, columns = np.meshgrid(
            np.arange(scales.score_start[i], scales.score_start[i + 1]),
            np.arange(scales.score_start[j], scales.score_start[j + 1]),
            indexing="ij",
        )
        first.append(rows.ravel())
        second.append(columns.ravel())
    return np.concatenate(first), np.concatenate(second)


def scores_of(scales: Scales, answers: np.ndarray) -> np.ndarray:
    """Scores of particles, the variables one after the other, as kernels have them: float32."""
    rows = [scale.scores[answers[i]].T for i, scale in enumerate(scales)]
    return np.ascontiguousarray(np.concatenate(rows), np.float32)


def answers_of(scales: Scales, states: np.ndarray) -> np.ndarray:
    """The levels of particles that are known by their scores: int64 (variables, n)."""
    answers = np.empty((len(scales), states.shape[1]), np.int64)
    for i, scale in enumerate(scales):
        own = states[scales.score_start[i] : scales.score_start[i + 1]]
        if scale.dimension == 1:
            answers[i] = np.searchsorted(scale.scores[:, 0].astype(np.float32), own[0])
        else:
            # Helmert contrasts: the last one that is positive names the level.
            positive = own > 0
            answers[i] = np.where(positive.any(axis=0), len(own) - np.argmax(positive[::-1], axis=0), 0)
    return answers


def independent_answers(scales: Scales, biases: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Particles of a model of thresholds alone: int64 (variables, n)."""
    answers = np.empty((len(scales), n), np.int64)
    for i, scale in enumerate(scales):
        share = np.exp(scale.basis @ biases[scales.bias_start[i] : scales.bias_start[i + 1]])
        answers[i] = rng.choice(scale.n_levels, n, p=share / share.sum())
    return answers


def data_sums(problem: Problem, candidates: np.ndarray) -> np.ndarray:
    """Sums of all features over the rows: those of the thresholds, then those of the candidates."""
    assert problem.scales is not None
    start = problem.scales.weight_start(problem.features.members)
    pairs = [problem.statistics.cliques[start[a] : start[a + 1]] for a in candidates]
    return np.concatenate([problem.statistics.singles, *pairs])


def mismatch(problem: Problem, candidates: np.ndarray, offset: np.ndarray, mean: np.ndarray) -> float:
    """Root mean square distance of the particles' means from the data's, in standard errors of these."""
    rows = float(problem.statistics.n_rows)
    if rows <= 0:
        return 0.0
    error = np.sqrt(data_variances(problem, candidates, offset) / rows)
    return float(np.sqrt(np.mean(((mean - data_sums(problem, candidates) / rows) / error) ** 2)))


def data_variances(problem: Problem, candidates: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Variance of every feature in the data, products as if their variables were independent."""
    scales: Scales | None = problem.scales
    assert scales is not None
    rows = float(problem.statistics.n_rows)
    parts, first, second = [], [], []
    for i, scale in enumerate(scales):
        own = problem.statistics.singles[scales.bias_start[i] : scales.bias_start[i + 1]]
        share = level_shares(scale, own, rows)
        parts.append(share @ scale.basis**2 - (share @ scale.basis) ** 2)
        first.append(share @ scale.scores)
        second.append(share @ scale.scores**2)
    for i, j in problem.features.members[candidates, :2].tolist():
        parts.append((np.outer(second[i], second[j]) - np.outer(first[i], first[j]) ** 2).ravel())
    return np.maximum(np.concatenate(parts), 1e-6)


def level_shares(scale: Any, sums: np.ndarray, rows: float) -> np.ndarray:
    """Shares of the levels of a variable, by the sums of its threshold features; half a row added to each."""
    n_levels = scale.n_levels
    if scale.kind == BLUME_CAPEL:
        return np.full(n_levels, 1.0 / n_levels)
    if scale.kind == "binary":
        counts = np.array([rows - sums[0], sums[0]])
    else:
        counts = rows / n_levels + 2.0 * scale.basis @ sums
    counts = np.maximum(counts, 0.0) + 0.5
    return np.asarray(counts / counts.sum())
