"""Where a chain with particles starts: a quick sparse maximum-likelihood fit from the pair sums alone.

Stochastic approximation with persistent particles (as in persistent contrastive divergence): the couplings
climb the difference between the data's and the particles' covariances, in units of their standard
deviation, and are pulled to zero by a soft threshold of `reach` standard errors. The answer is rough on
purpose; it saves the chain the long way from an empty graph, where the first steps would exhaust the
particles' weights.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.engines.protocol import Problem
from edgewise.kernels.codes import SEPARATE

STEPS = 80
FIRST_STEP = 0.25
MOST_WORK = 3e10
LARGEST = 6.0
WEAK = 1.5
REACH = (3.0, 4.5)
PROBING = 1024


def rough_fit(
    problem: Problem, reach: float, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:func:`sparse_fit` of a problem's free pairs; larger cliques are left out."""
    features, statistics = problem.features, problem.statistics
    p, rows = features.n_variables, float(statistics.n_rows)
    singles = np.asarray(statistics.singles, float)
    means = (singles + 0.5) / (rows + 1.0)
    rows = max(rows, 1.0)
    joint, allowed = np.zeros((p, p)), np.zeros((p, p), bool)
    members = features.members
    pairs = np.flatnonzero(members[:, 2] < 0) if members.shape[1] > 2 else np.arange(len(members))
    i, j = members[pairs, 0], members[pairs, 1]
    joint[i, j] = joint[j, i] = np.asarray(statistics.cliques, float)[pairs] / rows
    allowed[i, j] = allowed[j, i] = problem.prior.status[pairs] <= SEPARATE
    covariance = np.where(allowed, joint - np.outer(singles, singles) / rows**2, 0.0)
    return sparse_fit(rows, means, covariance, allowed, reach, n, rng)


def rough_edges(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of a rough sparse fit, always the same for the same data."""
    coupling, _, _ = rough_fit(problem, min(REACH), PROBING, np.random.default_rng(0))
    return [(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(coupling, 1)))]


def sparse_fit(
    rows: float,
    means: np.ndarray,
    covariance: np.ndarray,
    allowed: np.ndarray,
    reach: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Couplings (p, p), biases and particles (p, n) of a sparse model that roughly matches the data.

    Parameters
    ----------
    rows : float
        Number of rows N.
    means, covariance : arrays
        Means (kept away from 0 and 1) and covariances of the variables.
    allowed : bool array (p, p)
        Pairs that may be active.
    reach : float
        Soft threshold in standard errors of a covariance.
    n : int
        Number of particles.
    rng : numpy.random.Generator
        Source of randomness.
    """
    from edgewise.kernels.gibbs import dense_sweep

    p = len(means)
    spread = means * (1 - means)
    scale = np.sqrt(np.outer(spread, spread))
    threshold = reach / math.sqrt(max(rows, 1.0))
    coupling = np.zeros((p, p))
    bias = np.log(means) - np.log1p(-means)
    states = (rng.random((p, n)) < means[:, None]).astype(np.float32)
    lanes = rng.integers(0, 2**32, (4, n), np.uint32)
    field, change = np.empty((2, n), np.float32)
    steps = int(max(20, min(STEPS, MOST_WORK / (2.0 * p * p * n))))
    for step in range(steps):
        rate = FIRST_STEP / (1 + 4 * step / steps)
        dense_sweep(states, lanes, coupling, bias, field, change)
        # Counts are whole numbers, hence the same on any number of BLAS threads.
        counts = (states @ states.T).astype(float) / n
        present = np.diag(counts).copy()
        offset = present - means
        model = counts - np.outer(means, present) - np.outer(present, means) + np.outer(means, means)
        moved = coupling * scale + rate * (covariance - model) / scale
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - rate * threshold, 0.0)
        shrunk[~allowed] = 0.0
        np.fill_diagonal(shrunk, 0.0)
        new = np.clip(shrunk / scale, -LARGEST, LARGEST)
        shift = ((new - coupling) * means).sum(axis=1)
        bias = np.clip(bias - shift - rate * offset / spread, -40, 40)
        coupling = new
    weak = np.abs(coupling) * scale * math.sqrt(max(rows, 1.0)) < WEAK
    bias = bias + (coupling * weak * means).sum(axis=1)
    return np.where(weak, 0.0, coupling), bias, states
