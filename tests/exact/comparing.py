"""Draws of an engine beside the enumerated truth, in units of Monte Carlo error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from truth import Truth

from edgewise.convergence import effective_draws
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem


def run(
    problem: Problem, name: str, iterations: int, seed: int = 1, chains: int = 1, **settings
) -> list[Draws]:
    """Draws of some chains after warm-up."""
    result = []
    for chain in range(chains):
        engine = load_engine(name)(problem, settings, np.random.SeedSequence([seed, chain]))
        engine.advance(engine.warm_up)
        result.append(engine.advance(iterations))
    return result


def z_score(chains: Sequence[np.ndarray], expected: float, allowance: float = 0.0) -> float:
    """Distance of the mean of some series from its expectation, in errors from the effective draws."""
    values = np.stack(chains).astype(float)
    spread = values.std()
    if spread == 0:
        # Never moved: a visit less often than once in all draws cannot be excluded.
        return 0.0 if abs(values.mean() - expected) < 3 / values.size + allowance else np.inf
    error = spread / np.sqrt(effective_draws(values[None])[0])
    return max(0.0, abs(values.mean() - expected) - allowance) / error


def z_scores(draws: Sequence[Draws], truth: Truth, allowance: float = 0.0) -> dict[str, float]:
    """Largest z by quantity; `allowance` is in probability, and in posterior sds for parameters."""
    found = {"inclusion": 0.0, "mean": 0.0, "square": 0.0, "bias": 0.0}

    def put(name: str, chains: Sequence[np.ndarray], expected: float, slack: float) -> None:
        found[name] = max(found.get(name, 0.0), z_score(chains, expected, slack))

    for clique, probability in enumerate(truth.inclusion):
        columns = [chain.column(clique) for chain in draws]
        put("inclusion", [column != 0 for column in columns], probability, allowance)
        if probability * sum(map(len, columns)) < 100:
            continue
        mean, sd = truth.mean[clique], truth.sd[clique]
        slack = allowance * sd * probability
        put("mean", [np.where(column != 0, column - mean, 0.0) for column in columns], 0.0, slack)
        squares = [np.where(column != 0, (column - mean) ** 2 - sd**2, 0.0) for column in columns]
        put("square", squares, 0.0, 2 * slack * sd)
    for i, (mean, sd) in enumerate(zip(truth.bias_mean, truth.bias_sd)):
        put("bias", [chain.biases[:, i] for chain in draws], mean, allowance * sd)
        squares = [(chain.biases[:, i] - mean) ** 2 for chain in draws]
        put("bias", squares, sd**2, 2 * allowance * sd**2)
    put("edges", [chain.n_edges for chain in draws], truth.n_edges, allowance * truth.n_edges_sd)
    put("p0", [chain.inclusion_rate for chain in draws], truth.p0, allowance * truth.p0_sd)
    put("sigma0", [chain.slab_scale for chain in draws], truth.sigma0, allowance * truth.sigma0_sd)
    return found
