"""Where a chain with particles starts: a quick sparse fit from the pair sums, or a dense one from the rows.

Where rows are many and nearly all pairs matter, :func:`dense_fit` starts where the moments of the model
are those of the data: near enough for averages to be learned.

Everything else starts at a sparse maximum-likelihood fit from the pair sums alone: stochastic approximation
with persistent particles (as in persistent contrastive divergence). The couplings climb the difference
between the data's and the particles' covariances, in units of their standard deviation, and are pulled to
zero by a soft threshold of `reach` standard errors. The answer is rough on purpose; it saves the chain the
long way from an empty graph, where the first steps would exhaust the particles' weights.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.data.table import BinaryData
from edgewise.engines.protocol import Problem
from edgewise.kernels.codes import SEPARATE

STEPS = 80
FIRST_STEP = 0.25
MOST_WORK = 3e10
LARGEST = 6.0
WEAK = 1.5
REACH = (3.0, 4.5)
PROBING = 1024
# Of so many rows, chosen at random, the pseudo-likelihood is maximised; so many steps are enough to be near.
FITTED_ROWS = 10_000
FITTING_STEPS = 150
# Then it climbs in so many steps, their rates falling from the first to the second, each of so many sweeps.
CLIMBED, CLIMB, SWEEPS_OF_A_STEP = 1000, (0.03, 0.001), 2
# Couplings of fewer standard errors are left out; together more of them would matter.
NOTHING = 0.3
# A variance is never taken for less than that of so many particles.
FINEST = 8.0
# With so many rows, and at least as many as candidates, a quadratic knows all couplings together.
MANY_ROWS = 2000


def rough_fit(
    problem: Problem, reach: float, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:func:`sparse_fit` of a problem's free pairs; larger cliques are left out."""
    rows, means, covariance, allowed = _moments_of(problem)
    return sparse_fit(rows, means, covariance, allowed, reach, n, rng)


def _moments_of(problem: Problem) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Number of rows, means (kept away from 0 and 1), covariances (p, p), and which pairs are free."""
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
    return rows, means, covariance, allowed


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
        target = means, covariance, np.where(allowed, threshold, np.inf)
        coupling, bias = _climbed(coupling, bias, states, target, (spread, scale), rate)
    weak = np.abs(coupling) * scale * math.sqrt(max(rows, 1.0)) < WEAK
    bias = bias + (coupling * weak * means).sum(axis=1)
    return np.where(weak, 0.0, coupling), bias, states


def _climbed(
    coupling: np.ndarray,
    bias: np.ndarray,
    states: np.ndarray,
    target: tuple[np.ndarray, np.ndarray, np.ndarray],
    units: tuple[np.ndarray, np.ndarray],
    rate: float,
    largest: float = LARGEST,
) -> tuple[np.ndarray, np.ndarray]:
    """Couplings and biases after one step towards the model whose moments are the data's.

    `target` has the means and covariances of the data and what is taken off the size of every coupling, in
    `units`: the variances of the variables, and the standard deviations of products of two.
    """
    means, covariance, threshold = target
    spread, scale = units
    # Counts are whole numbers, hence the same on any number of BLAS threads.
    counts = (states @ states.T).astype(float) / states.shape[1]
    present = np.diag(counts).copy()
    model = counts - np.outer(means, present) - np.outer(present, means) + np.outer(means, means)
    moved = coupling * scale + rate * (covariance - model) / scale
    shrunk = np.sign(moved) * np.maximum(np.abs(moved) - rate * threshold, 0.0)
    np.fill_diagonal(shrunk, 0.0)
    new = np.clip(shrunk / scale, -largest, largest)
    shift = ((new - coupling) * means).sum(axis=1)
    return new, np.clip(bias - shift - rate * (present - means) / spread, -40, 40)


def has_many_rows(problem: Problem) -> bool:
    """Whether rows are many for the number of candidates, so that no coupling needs to be left out."""
    free = int(np.count_nonzero(problem.prior.status <= SEPARATE))
    return float(problem.statistics.n_rows) >= max(MANY_ROWS, free)


def dense_fit(
    problem: Problem, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Couplings, biases and `n` particles of a model whose moments are those of the data; None without rows.

    It begins at the largest pseudo-likelihood of some rows, with rows as particles, and is an average over
    the climb from there. The prior keeps couplings and biases finite.
    """
    from threadpoolctl import threadpool_limits

    from edgewise.kernels.gibbs import dense_sweep

    data, prior = problem.rows, problem.prior
    if not isinstance(data, BinaryData) or problem.blanks is not None or problem.features.max_order > 2:
        return None
    rows, means, covariance, allowed = _moments_of(problem)
    values = data.values(0, data.n_rows)
    weights = np.ones(len(values)) if data.weights is None else np.asarray(data.weights, float)
    states = values[rng.choice(len(values), n, p=weights / weights.sum())].T.astype(np.float32, order="C")
    chosen = rng.permutation(len(values))[:FITTED_ROWS]
    weight = weights[chosen] * (rows / weights[chosen].sum())
    flat = 1.0 / prior.sigma0**2 if prior.fixed_sigma0 else 1.0
    # On one thread the sums have one order, whatever the machine has to offer.
    with threadpool_limits(1):
        coupling, bias = _pseudo_fit(
            values[chosen].astype(float), weight, means, allowed, (flat, 1.0 / prior.bias_sd**2)
        )
    # What a few particles show of a rare pair is mostly noise: no unit is finer than that.
    spread = np.maximum(means * (1 - means), FINEST / n)
    scale = np.sqrt(np.maximum(np.outer(spread, spread), FINEST / n))
    lanes = rng.integers(0, 2**32, (4, n), np.uint32)
    field, change = np.empty((2, n), np.float32)
    mean_coupling, mean_bias, kept = np.zeros_like(coupling), np.zeros_like(bias), 0
    for step in range(CLIMBED):
        rate = CLIMB[0] * (CLIMB[1] / CLIMB[0]) ** (step / CLIMBED)
        for _ in range(SWEEPS_OF_A_STEP):
            dense_sweep(states, lanes, coupling, bias, field, change)
        # The slab pulls as the threshold of a sparse fit does, in proportion to the coupling.
        target = means, covariance, np.where(allowed, flat * np.abs(coupling) / (rows * scale), np.inf)
        coupling, bias = _climbed(coupling, bias, states, target, (spread, scale), rate, math.inf)
        if step >= CLIMBED * 3 // 4:
            mean_coupling, mean_bias, kept = mean_coupling + coupling, mean_bias + bias, kept + 1
    coupling, bias = mean_coupling / kept, mean_bias / kept
    variance = means * (1 - means)
    weak = np.abs(coupling) * np.sqrt(rows * np.outer(variance, variance)) < NOTHING
    return np.where(weak, 0.0, coupling), bias + (coupling * weak * means).sum(axis=1), states


def _pseudo_fit(
    values: np.ndarray,
    weight: np.ndarray,
    means: np.ndarray,
    allowed: np.ndarray,
    flat: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Couplings (p, p) and biases of the largest pseudo-likelihood of weighted rows, which are changed.

    `flat` are the precisions of the priors of couplings and biases.
    """
    from scipy.optimize import minimize

    p = values.shape[1]
    i, j = np.nonzero(np.triu(allowed, 1))
    # Couplings between centred variables, in standard errors of a pair of independent ones.
    spread = means * (1 - means)
    unit = 1 / np.sqrt(weight.sum() * np.concatenate([spread, 2 * spread[i] * spread[j]]))
    sign = np.where(values > 0.5, 1.0, -1.0)
    values -= means

    def matrix(theta: np.ndarray) -> np.ndarray:
        coupling = np.zeros((p, p))
        coupling[i, j] = coupling[j, i] = theta
        return coupling

    def objective(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        bias, theta = scaled[:p] * unit[:p], scaled[p:] * unit[p:]
        margin = sign * (values @ matrix(theta) + bias)
        loss = weight @ np.logaddexp(0.0, -margin).sum(axis=1)
        loss += 0.5 * flat[0] * (theta @ theta) + 0.5 * flat[1] * (bias @ bias)
        pull = sign * (weight[:, None] / (1.0 + np.exp(np.clip(margin, -700.0, 700.0))))
        both = values.T @ pull
        slope = np.concatenate([flat[1] * bias - pull.sum(axis=0), flat[0] * theta - (both + both.T)[i, j]])
        return float(loss), slope * unit

    start = np.concatenate([(np.log(means) - np.log1p(-means)) / unit[:p], np.zeros(len(i))])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": FITTING_STEPS}).x
    coupling = matrix(found[p:] * unit[p:])
    return coupling, found[:p] * unit[:p] - coupling @ means
