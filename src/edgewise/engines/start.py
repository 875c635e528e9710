"""Where a particle chain starts: a quick sparse maximum-likelihood fit from the pair sums alone.

Stochastic approximation with persistent particles (as in persistent contrastive divergence): the couplings
climb the difference between the data's and the particles' covariances, in units of their standard
deviation, and are pulled to zero by a soft threshold of `reach` standard errors. The answer is rough on
purpose; it saves the chain the long way from an empty graph, where the first steps would exhaust the
particles' weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgewise.engines.common import is_free
from edgewise.features import Features, Statistics

STEPS = 80
FIRST_STEP = 0.25
MOST_WORK = 3e10
LARGEST = 6.0
WEAK = 1.5
REACH = (3.0, 4.5)
# Active pairs per variable.
MOST_AT_START = 3
PROBING = 1024


def independent_particles(engine: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    """Particles with the means of the data and nothing else of them."""
    means = engine._rules.centres[0]
    return (rng.random((len(means), n)) < means[:, None]).astype(np.float32)


def start_from_fit(
    engine: Any, n: int, rng: np.random.Generator, most: float = MOST_AT_START
) -> np.ndarray | None:
    """Put a chain on lines at a rough sparse fit, of another sparsity in every chain; returns its particles.

    Where the fit has more than `most` pairs per variable it has run away (strongly dependent variables), and
    the empty graph is the better place to begin: then nothing is done and None returned.
    """
    rules, data, status = engine._rules, engine._sums, engine.problem.prior.status
    index, means = rules.pair_index, rules.centres[0]
    rows, singles, sums = max(data.rows[0], 1.0), data.singles[0], data.cliques[0]
    allowed = (index >= 0) & is_free(status[index])
    joint = np.where(index >= 0, sums[index], 0.0) / rows
    covariance = np.where(allowed, joint - np.outer(singles, singles) / rows**2, 0.0)
    coupling, bias, states = sparse_fit(rows, means, covariance, allowed, rng.uniform(*REACH), n, rng)
    if np.count_nonzero(coupling) > 2 * most * len(means):
        return None
    found = np.nonzero(np.triu(coupling, 1))
    engine._activate(index[found], coupling[found])
    engine._chain.bias[:] = bias
    return states


def rough_edges(features: Features, statistics: Statistics, status: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of a rough sparse fit, always the same for the same data."""
    p, rows = features.n_variables, max(float(statistics.n_rows), 1.0)
    singles = np.asarray(statistics.singles, float)
    means = (singles + 0.5) / (rows + 1.0)
    joint, allowed = np.zeros((p, p)), np.zeros((p, p), bool)
    i, j = features.members[:, 0], features.members[:, 1]
    joint[i, j] = joint[j, i] = np.asarray(statistics.cliques, float) / rows
    allowed[i, j] = allowed[j, i] = is_free(status)
    covariance = np.where(allowed, joint - np.outer(singles, singles) / rows**2, 0.0)
    coupling, _, _ = sparse_fit(
        rows, means, covariance, allowed, min(REACH), PROBING, np.random.default_rng(0)
    )
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
