"""The posterior under the pseudo-likelihood: the same prior, the product of all conditionals as likelihood.

This is the model of most Bayesian software for networks of binary variables. It is a baseline for
``benchmarks.calibration`` and no engine: the product counts every row p times over, and its posterior is not
that of the model. Metropolis moves along one parameter at a time. A coupling moves its two biases against it,
as if its variables were centred at their means in the data: a shear, whose Jacobian is one. A birth proposes
from the slab, so that it is decided by the pseudo-likelihoods, the prior odds and the prior of those biases.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from edgewise.draws import Draws
from edgewise.priors import ResolvedPrior


@numba.njit(cache=True)
def _log_cells(rows, field, i):
    """Sum over the rows of log p(x_i | the others), given the field of variable i."""
    total = 0.0
    for r in range(rows.shape[0]):
        f = field[r]
        total += rows[r, i] * f - (f + math.log1p(math.exp(-f)) if f > 0 else math.log1p(math.exp(f)))
    return total


@numba.njit(cache=True)
def _run(
    rows, members, beta, gamma, bias_sd, iterations, thin, warm_up, seed, theta_out, bias_out, hyper_out
):
    np.random.seed(seed)
    n, p = rows.shape
    count = members.shape[0]
    theta, bias = np.zeros(count), np.zeros(p)
    active = np.zeros(count, np.bool_)
    fields = np.zeros((p, n))
    cells = np.zeros(p)
    for i in range(p):
        cells[i] = _log_cells(rows, fields[i], i)
    p0, sigma0 = beta[0] / (beta[0] + beta[1]), math.sqrt(gamma[1] / gamma[0])
    means = np.zeros(p)
    for r in range(n):
        for i in range(p):
            means[i] += (rows[r, i] + 0.5 / n) / (n + 1.0)
    spread = means * (1 - means)
    first, second = np.zeros(n), np.zeros(n)
    kept = 0
    for iteration in range(warm_up + iterations * thin):
        for i in range(p):
            step = 2.4 / math.sqrt(n * spread[i] + bias_sd**-2) * np.random.standard_normal()
            for r in range(n):
                first[r] = fields[i, r] + step
            new = _log_cells(rows, first, i)
            ratio = new - cells[i] + (bias[i] ** 2 - (bias[i] + step) ** 2) / (2 * bias_sd**2)
            if math.log(np.random.random()) < ratio:
                bias[i] += step
                fields[i, :] = first
                cells[i] = new
        # Each candidate: its parameter if it is active, then its indicator.
        for a in range(count):
            i, j = members[a, 0], members[a, 1]
            for move in range(2):
                if move == 0:
                    if not active[a]:
                        continue
                    width = 2.4 / math.sqrt(2 * n * spread[i] * spread[j] + sigma0**-2)
                    target = theta[a] + width * np.random.standard_normal()
                    prior = (theta[a] ** 2 - target**2) / (2 * sigma0**2)
                else:
                    odds = math.log(p0) - math.log1p(-p0)
                    target = 0.0 if active[a] else sigma0 * np.random.standard_normal()
                    prior = -odds if active[a] else odds
                step = target - theta[a]
                bias_i, bias_j = bias[i] - step * means[j], bias[j] - step * means[i]
                prior += (bias[i] ** 2 - bias_i**2 + bias[j] ** 2 - bias_j**2) / (2 * bias_sd**2)
                for r in range(n):
                    first[r] = fields[i, r] + step * (rows[r, j] - means[j])
                    second[r] = fields[j, r] + step * (rows[r, i] - means[i])
                new_i, new_j = _log_cells(rows, first, i), _log_cells(rows, second, j)
                if math.log(np.random.random()) < new_i + new_j - cells[i] - cells[j] + prior:
                    theta[a] = target
                    bias[i], bias[j] = bias_i, bias_j
                    active[a] = move == 0 or not active[a]
                    fields[i, :], fields[j, :] = first, second
                    cells[i], cells[j] = new_i, new_j
        edges = active.sum()
        p0 = np.random.beta(beta[0] + edges, beta[1] + count - edges)
        p0 = min(max(p0, 1e-12), 1 - 1e-12)
        rate = gamma[1] + 0.5 * (theta**2).sum()
        sigma0 = (np.random.gamma(gamma[0] + 0.5 * edges) / rate) ** -0.5
        if iteration >= warm_up and (iteration - warm_up + 1) % thin == 0:
            theta_out[kept] = theta
            bias_out[kept] = bias
            hyper_out[kept, 0], hyper_out[kept, 1] = p0, sigma0
            kept += 1


def sample(
    rows: np.ndarray,
    members: np.ndarray,
    prior: ResolvedPrior,
    draws: int,
    thin: int,
    warm_up: int,
    seed: int,
) -> Draws:
    """Draws of the posterior under the pseudo-likelihood, all pairs with one learned p0 and sigma0."""
    theta, bias = np.zeros((draws, len(members))), np.zeros((draws, rows.shape[1]))
    hyper = np.zeros((draws, 2))
    _run(
        np.ascontiguousarray(rows, np.float64),
        np.ascontiguousarray(members, np.int64),
        np.array([prior.beta_a, prior.beta_b]),
        np.array([prior.gamma_shape, prior.gamma_rate]),
        prior.bias_sd,
        draws,
        thin,
        warm_up,
        seed,
        theta,
        bias,
        hyper,
    )
    on = theta != 0
    return Draws(
        np.concatenate([[0], np.cumsum(on.sum(axis=1))]),
        np.nonzero(on)[1].astype(np.int32),
        theta[on],
        bias,
        hyper[:, 0],
        hyper[:, 1],
    )
