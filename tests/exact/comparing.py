"""Draws of an engine beside the enumerated truth, in units of Monte Carlo error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from truth import Truth

from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.draws import Draws
from edgewise.draws.convergence import effective_draws, indicator_ess
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.priors import Prior


def problem_of(p: int, prior: Prior, order: int = 2, rows: int = 40, weights: bool = False) -> Problem:
    """Rows of a small ring, as a problem with all cliques up to `order`."""
    model = datasets.random_model(p, 2.0, kind="ring", seed=4, coupling_sd=0.4, field_sd=0.4)
    values = exact.sample(model, rows, np.random.default_rng(4))
    features = Features.up_to(p, order)
    weight = np.random.default_rng(5).gamma(2.0, 0.5, rows) if weights else None
    data = read_data(values, sample_weight=weight, constant="keep")
    return Problem(features, sufficient_statistics(data, features), prior.resolve(features))


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


def inclusion_and_error(draws: Sequence[Draws], n_cliques: int) -> tuple[np.ndarray, np.ndarray]:
    """Share of draws in which each clique is active, and its Monte Carlo error."""
    active = np.stack([[chain.column(a) != 0 for chain in draws] for a in range(n_cliques)]).astype(float)
    share = active.mean(axis=(1, 2))
    return share, np.sqrt(share * (1 - share) / indicator_ess(active))


def z_score(chains: Sequence[np.ndarray], expected: float, allowance: float = 0.0) -> float:
    """Distance of the mean of some series from its expectation, in errors from the effective draws."""
    values = np.stack(chains).astype(float)
    spread = values.std()
    if spread <= 1e-12 * abs(values.mean()):
        # Never moved: a visit less often than once in all draws cannot be excluded.
        return 0.0 if abs(values.mean() - expected) < 3 / values.size + allowance + 1e-12 else np.inf
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
