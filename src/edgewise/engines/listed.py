"""Rows and particles in bits, and a rough fit, for pairs that are listed rather than laid out in a matrix."""

from __future__ import annotations

import math

import numpy as np

from edgewise.data.table import BinaryData
from edgewise.engines.start import FIRST_STEP, LARGEST, STEPS, WEAK


def packed_rows(rows: BinaryData) -> tuple[np.ndarray, np.ndarray]:
    """Columns in words of 64 rows, and the weights of the rows in the order of the bits (or none).

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> words, weights = packed_rows(read_data([[0, 1], [1, 1], [1, 0]], sample_weight=[1, 2, 3]))
    >>> [[b for b in range(64) if int(word) >> b & 1] for word in words[:, 0]], weights[[5, 6, 7]]
    ([[5, 6], [6, 7]], array([3., 2., 1.]))
    """
    words = max(1, -(-rows.n_rows // 64))
    padded = np.zeros((rows.n_variables, 8 * words), np.uint8)
    padded[:, : rows.packed.shape[1]] = rows.packed
    if rows.weights is None:
        return padded.view("<u8"), np.zeros(0)
    weights = np.zeros(64 * words)
    weights[: rows.n_rows] = rows.weights
    # A byte has its first row in its highest bit.
    return padded.view("<u8"), weights.reshape(-1, 8)[:, ::-1].ravel().copy()


def packed_particles(X: np.ndarray) -> np.ndarray:
    """States of the particles (p, n), a multiple of 64 of them or some less, in words."""
    count = X.shape[1] // 64 * 64
    if count == 0:
        return np.packbits(np.pad(X > 0.5, ((0, 0), (0, 64 - X.shape[1]))), axis=1).view("<u8")
    return np.ascontiguousarray(np.packbits(X[:, :count] > 0.5, axis=1)).view("<u8")


def correlations(X: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Correlations of pairs of variables over the particles, whose weights are left out of account."""
    from edgewise.kernels.pairs import sums_together

    words = packed_particles(X)
    count = min(64 * words.shape[1], X.shape[1])
    sums = np.empty(len(pairs))
    sums_together(np.ascontiguousarray(pairs, np.int64), words, np.zeros(0), sums)
    means = np.bitwise_count(words).sum(axis=1) / count
    i, j = pairs.T
    spread = np.sqrt(means * (1 - means))
    scale = spread[i] * spread[j]
    covariance = sums / count - means[i] * means[j]
    return np.divide(covariance, scale, out=np.zeros(len(pairs)), where=scale > 0)


def listed_fit(
    rows: float,
    singles: np.ndarray,
    pairs: np.ndarray,
    sums: np.ndarray,
    reach: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:func:`~edgewise.engines.start.sparse_fit` over listed pairs: couplings, biases, particles (p, n).

    `n` is a multiple of 64; `singles` and `sums` are those of the data.
    """
    from edgewise.kernels.gibbs import listed_sweep
    from edgewise.kernels.pairs import sums_together

    p, rows = len(singles), max(rows, 1.0)
    n = max(64, n // 64 * 64)
    pairs = pairs.astype(np.int64)
    i, j = pairs.T
    means = (singles + 0.5) / (rows + 1.0)
    covariance = sums / rows - singles[i] * singles[j] / rows**2
    spread = means * (1 - means)
    scale = np.sqrt(spread[i] * spread[j])
    threshold = reach / math.sqrt(rows)
    both = np.concatenate([i, j])
    order = np.argsort(both, kind="stable")
    start = np.searchsorted(both[order], np.arange(p + 1))
    other, own = np.concatenate([j, i])[order], np.tile(np.arange(len(pairs)), 2)[order]
    coupling, joint = np.zeros(len(pairs)), np.zeros(len(pairs))
    bias = np.log(means) - np.log1p(-means)
    states = (rng.random((p, n), np.float32) < means[:, None]).astype(np.float32)
    lanes = rng.integers(0, 2**32, (4, n), np.uint32)
    field, change = np.empty((2, n), np.float32)
    for step in range(STEPS):
        rate = FIRST_STEP / (1 + 4 * step / STEPS)
        listed_sweep(states, lanes, start, other, own, coupling, bias, field, change)
        words = packed_particles(states)
        sums_together(pairs, words, np.zeros(0), joint)
        present = np.bitwise_count(words).sum(axis=1) / n
        model = joint / n - means[i] * present[j] - present[i] * means[j] + means[i] * means[j]
        moved = coupling * scale + rate * (covariance - model) / scale
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - rate * threshold, 0.0)
        new = np.clip(shrunk / scale, -LARGEST, LARGEST)
        bias -= _shifted(new - coupling, means, i, j)
        bias = np.clip(bias - rate * (present - means) / spread, -40, 40)
        coupling = new
    weak = np.abs(coupling) * scale * math.sqrt(rows) < WEAK
    bias = bias + _shifted(coupling * weak, means, i, j)
    return np.where(weak, 0.0, coupling), bias, states


def _shifted(change: np.ndarray, means: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """How far the means of their partners move the fields of the variables when couplings change."""
    p = len(means)
    return np.bincount(i, change * means[j], p) + np.bincount(j, change * means[i], p)
