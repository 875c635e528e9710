"""Prior probabilities of whole graphs under models of inclusion, by brute force: all partitions, or a grid.

Nothing here is shared with the package but what the user has given and which candidates belong to the model.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import special

from edgewise.priors.attributes import AttributeLayout
from edgewise.priors.communities import BlockLayout

GRID = 41


def partitions(n: int) -> np.ndarray:
    """All partitions of n things, each numbered in the order of appearance."""
    found = []
    for labels in itertools.product(range(n), repeat=n):
        seen: dict[int, int] = {}
        if tuple(seen.setdefault(label, len(seen)) for label in labels) == labels:
            found.append(labels)
    return np.array(found)


def log_partition_prior(z: np.ndarray, concentration: float, mean: float) -> float:
    """Log probability of a partition: components and their shares summed out one number at a time."""
    n, sizes = len(z), np.bincount(z)
    t, total = len(sizes), []
    for k in range(t, 300):
        log_poisson = (k - 1) * math.log(mean - 1) - (mean - 1) - special.gammaln(k)
        ways = special.gammaln(k + 1) - special.gammaln(k - t + 1)
        shares = special.gammaln(concentration * k) - special.gammaln(concentration * k + n)
        shares += (special.gammaln(concentration + sizes) - special.gammaln(concentration)).sum()
        total.append(log_poisson + ways + shares)
    return float(special.logsumexp(total))


def log_blocks(graphs: np.ndarray, model: BlockLayout) -> tuple[np.ndarray, np.ndarray]:
    """Partitions, and the log joint probability of every graph and partition: (G, partitions)."""
    given, inside = model.inclusion, model.inside
    known = partitions(model.n_variables)
    result = np.zeros((len(graphs), len(known)))
    for column, z in enumerate(known):
        result[:, column] = log_partition_prior(z, given.concentration, given.mean_communities)
        ends = np.sort(z[model.members], axis=1)
        for k, m in itertools.combinations_with_replacement(range(z.max() + 1), 2):
            block = inside & (ends[:, 0] == k) & (ends[:, 1] == m)
            a, b = given.beta[:2] if k == m else given.beta[2:]
            active = graphs[:, block].sum(axis=1)
            result[:, column] += special.betaln(a + active, b + block.sum() - active) - special.betaln(a, b)
    return known, result


def log_regression(graphs: np.ndarray, model: AttributeLayout) -> tuple[np.ndarray, np.ndarray]:
    """Grid points, and the log joint weight of every graph and point: (G, points)."""
    places, weights = np.polynomial.hermite_e.hermegauss(GRID)
    grids = np.meshgrid(*[places] * len(model.labels), indexing="ij")
    points = np.stack([grid.ravel() for grid in grids], axis=1) * model.sd + model.mean
    products = itertools.product(np.log(weights / weights.sum()), repeat=len(model.labels))
    log_weight = np.array([sum(part) for part in products])
    linear = points @ model.design[model.inside].T
    active = graphs[:, model.inside].astype(float)
    return points, active @ linear.T - np.logaddexp(0, linear).sum(axis=1) + log_weight


def log_model_prior(graphs: np.ndarray, model: BlockLayout | AttributeLayout) -> np.ndarray:
    """Log probability of the candidates of the model in every graph."""
    joint = log_blocks if isinstance(model, BlockLayout) else log_regression
    return np.asarray(special.logsumexp(joint(graphs, model)[1], axis=1))  # type: ignore[operator]


def rates(graphs: np.ndarray, model: BlockLayout | AttributeLayout) -> np.ndarray:
    """E[mean inclusion probability of the model's candidates | graph], for every graph."""
    if isinstance(model, AttributeLayout):
        points, joint = log_regression(graphs, model)
        means = special.expit(points @ model.design[model.inside].T).mean(axis=1)
        return np.asarray(special.softmax(joint, axis=1) @ means)
    known, joint = log_blocks(graphs, model)
    means = np.zeros(joint.shape)
    for column, z in enumerate(known):
        ends = np.sort(z[model.members], axis=1)
        for k, m in itertools.combinations_with_replacement(range(z.max() + 1), 2):
            block = model.inside & (ends[:, 0] == k) & (ends[:, 1] == m)
            a, b = model.inclusion.beta[:2] if k == m else model.inclusion.beta[2:]
            active, size = graphs[:, block].sum(axis=1), block.sum()
            means[:, column] += size * (a + active) / (a + b + size)
    return np.asarray((special.softmax(joint, axis=1) * means).sum(axis=1) / model.inside.sum())
