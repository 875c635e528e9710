"""The truth for strata and groups: every state of every pair enumerated, importance sampling within.

Independent of the engines: differences are written in a basis of contrasts (13.1), which no kernel knows, and
log Z is a sum over all states. p0 and q0 integrate in closed form over the states, sigma0 and sigma_D to
multivariate t densities, as in ``truth.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats
from scipy.stats import qmc

from edgewise.features import Features, Statistics

ABSENT, SAME, DIFFERENT = 0, 1, 2
FREEDOM = 8.0


@dataclass(frozen=True)
class GroupTruth:
    """Probabilities (M, 3) of the states; mean couplings (M, G), of their squares; mean biases."""

    states: np.ndarray
    couplings: np.ndarray
    squares: np.ndarray
    biases: np.ndarray
    error: float


def contrasts(groups: int) -> np.ndarray:
    """An orthonormal basis of what adds up to zero, over the root of two: (G, G - 1)."""
    made = np.linalg.qr(np.eye(groups) - 1.0 / groups)[0][:, : groups - 1]
    return made / math.sqrt(2.0)


def enumerate_groups(
    features: Features,
    parts: Sequence[Statistics],
    group_of: Sequence[int],
    *,
    beta=(5.0, 5.0),
    gamma=(5.0, 5.0),
    difference_beta=(5.0, 5.0),
    difference_gamma=(5.0, 5.0),
    bias_sd: float = 10.0,
    points: int = 1 << 13,
) -> GroupTruth:
    """Sum over all states of all pairs of a few variables; without groups there is no third state."""
    p, members = features.n_variables, features.members
    M, G, S = len(members), max(group_of) + 1, len(parts)
    c = contrasts(G)
    table = np.array(list(itertools.product((0.0, 1.0), repeat=p)))
    pairs = np.stack([table[:, i] * table[:, j] for i, j in members[:, :2]], axis=1)
    results, weights, errors = [], [], []
    for states in itertools.product(range(3 if G > 1 else 2), repeat=M):
        states = np.array(states)
        on, apart = np.flatnonzero(states), np.flatnonzero(states == DIFFERENT)
        E, D, width = len(on), len(apart), G - 1
        size = S * p + E + D * width
        # theta[k, a] of every group is linear in the parameters.
        lay = np.zeros((G, M, size))
        lay[:, on, S * p + np.arange(E)] = 1.0
        for n, a in enumerate(apart):
            for k in range(width):
                lay[:, a, S * p + E + n * width + k] = c[:, k]

        def log_posterior(x, E=E, D=D, width=width, lay=lay):
            """Of many points (n, size), and its gradient where there is one point."""
            theta = np.einsum("gaz,nz->nga", lay, x)
            total = np.zeros(len(x))
            slope = np.zeros_like(x)
            for s, part in enumerate(parts):
                bias, coupling = x[:, s * p : (s + 1) * p], theta[:, group_of[s]]
                energy = bias @ table.T + coupling @ pairs.T
                log_z = special.logsumexp(energy, axis=1)
                total += bias @ part.singles + coupling @ part.cliques - part.n_rows * log_z
                chance = np.exp(energy - log_z[:, None])
                slope[:, s * p : (s + 1) * p] += part.singles - part.n_rows * chance @ table
                slope += (part.cliques - part.n_rows * chance @ pairs) @ lay[group_of[s]]
            bias = x[:, : S * p]
            total -= (bias**2).sum(axis=1) / (2 * bias_sd**2) + S * p * math.log(
                bias_sd * math.sqrt(2 * math.pi)
            )
            slope[:, : S * p] -= bias / bias_sd**2
            for begin, count, (shape, rate) in (
                (S * p, E, gamma),
                (S * p + E, D * width, difference_gamma),
            ):
                values = x[:, begin : begin + count]
                inside = rate + (values**2).sum(axis=1) / 2
                total += (
                    special.gammaln(shape + count / 2)
                    - special.gammaln(shape)
                    + shape * math.log(rate)
                    - count / 2 * math.log(2 * math.pi)
                    - (shape + count / 2) * np.log(inside)
                )
                slope[:, begin : begin + count] -= (shape + count / 2) * values / inside[:, None]
            return total, slope

        found = optimize.minimize(
            lambda x: tuple(-part[0] for part in log_posterior(x[None])),
            np.zeros(size),
            jac=True,
            method="BFGS",
        )
        mode, step = found.x, 1e-4
        around = mode + step * np.concatenate([np.eye(size), -np.eye(size)])
        slopes = log_posterior(around)[1]
        hessian = -(slopes[:size] - slopes[size:]) / (2 * step)
        cov = np.linalg.inv((hessian + hessian.T) / 2) * 1.2
        root = np.linalg.cholesky(cov)
        uniform = qmc.Sobol(size + 1, seed=0).random(points)
        normal = stats.norm.ppf(np.clip(uniform[:, :size], 1e-12, 1 - 1e-12))
        chi = stats.chi2.ppf(np.clip(uniform[:, size], 1e-12, 1 - 1e-12), FREEDOM)
        x = mode + (normal @ root.T) * np.sqrt(FREEDOM / chi)[:, None]
        log_q = stats.multivariate_t(mode, cov, df=FREEDOM).logpdf(x)
        log_w = log_posterior(x)[0] - log_q
        log_evidence = special.logsumexp(log_w) - math.log(points)
        share = np.exp(log_w - special.logsumexp(log_w))
        log_prior = special.betaln(beta[0] + E, beta[1] + M - E) - special.betaln(*beta)
        if G > 1:
            log_prior += special.betaln(difference_beta[0] + D, difference_beta[1] + E - D)
            log_prior -= special.betaln(*difference_beta)
        theta = np.einsum("gaz,nz->nag", lay, x)
        weights.append(log_evidence + log_prior)
        errors.append(math.sqrt((share**2).sum()))
        results.append((states, share @ theta.reshape(points, -1), share @ theta.reshape(points, -1) ** 2,
                        share @ x[:, : S * p]))  # fmt: skip
    chance = np.exp(np.array(weights) - special.logsumexp(weights))
    states = np.stack([np.eye(3)[part[0]] for part in results])
    return GroupTruth(
        np.einsum("n,nas->as", chance, states),
        (chance @ np.stack([part[1] for part in results])).reshape(M, G),
        (chance @ np.stack([part[2] for part in results])).reshape(M, G),
        chance @ np.stack([part[3] for part in results]),
        float(chance @ np.array(errors)),
    )
