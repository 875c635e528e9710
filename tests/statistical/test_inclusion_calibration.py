"""Calibration of models of inclusion: who belongs together, and the coefficients of attributes.

Models are drawn from the prior and data from the models; what the posterior then says of the truth must be
right on average. A fit with another prior is the negative control.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import AttributeInclusion, BlockInclusion, FixedSlab, NormalBias, Prior
from edgewise.priors.communities import BlockLayout

P, ROWS, SETS, DRAWS = 5, 60, 250, 400
FEATURES = Features.pairs(P)
STATES = ((np.arange(2**P)[:, None] >> np.arange(P)) & 1).astype(float)
PAIRS = STATES[:, FEATURES.members[:, 0]] * STATES[:, FEATURES.members[:, 1]]
SCALE = {str(i): "ab"[i % 2] for i in range(P)}
BLOCKS = BlockInclusion(3.0, 1.0, 1.0, 5.0, mean_communities=2.0)


def prior_of(inclusion) -> Prior:
    return Prior(inclusion, FixedSlab(1.5), NormalBias(1.0))


def data_of(active: np.ndarray, rng: np.random.Generator) -> Statistics:
    theta = np.where(active, rng.normal(0, 1.5, len(active)), 0.0)
    energy = STATES @ rng.normal(0, 1.0, P) + PAIRS @ theta
    weight = np.exp(energy - energy.max())
    counts = rng.multinomial(ROWS, weight / weight.sum())
    return Statistics(float(ROWS), counts @ STATES, counts @ PAIRS)


def states_of(problem: Problem, seed: int) -> np.ndarray:
    engine = ExactEngine(problem, {"warm_up": 60}, np.random.SeedSequence(seed))
    engine.advance(engine.warm_up)
    found = engine.advance(5 * DRAWS, 5).model_state
    assert found is not None
    return found


def together_score(fitted: BlockInclusion) -> float:
    """How far off the probabilities of being together are in all, in standard errors."""
    rng = np.random.default_rng(3)
    layout = prior_of(BLOCKS).resolve(FEATURES).model
    assert isinstance(layout, BlockLayout)
    excess, variance = 0.0, 0.0
    for seed in range(SETS):
        count = 1 + rng.poisson(BLOCKS.mean_communities - 1)
        z = rng.choice(count, P, p=rng.dirichlet(np.ones(count)))
        own, other = rng.beta(3.0, 1.0, count), rng.beta(1.0, 5.0, (count, count))
        table = np.triu(other, 1) + np.triu(other, 1).T + np.diag(own)
        first, second = FEATURES.members[:, 0], FEATURES.members[:, 1]
        active = rng.random(len(first)) < table[z[first], z[second]]
        problem = Problem(FEATURES, data_of(active, rng), prior_of(fitted).resolve(FEATURES))
        states = states_of(problem, seed)
        # One pair of variables of each data set: those of one set are not independent.
        i, j = rng.choice(P, 2, replace=False)
        share = float((states[:, i] == states[:, j]).mean())
        excess += float(z[i] == z[j]) - share
        variance += share * (1 - share)
    return excess / math.sqrt(variance)


@pytest.mark.slow
def test_probabilities_of_being_together_are_calibrated():
    assert abs(together_score(BLOCKS)) < 3
    # Negative control: communities are expected to be many.
    assert abs(together_score(BlockInclusion(3.0, 1.0, 1.0, 5.0, mean_communities=8.0))) > 3


def rank_chi(effect_sd: float) -> float:
    """Chi-square of the ranks of the true coefficients, in ten bins."""
    rng = np.random.default_rng(4)
    truth = prior_of(AttributeInclusion("scale", {"scale": SCALE})).resolve(FEATURES, list(SCALE)).model
    assert truth is not None
    ranks = []
    fitted = prior_of(AttributeInclusion("scale", {"scale": SCALE}, effect_sd=effect_sd))
    for seed in range(SETS):
        beta = truth.start(rng)
        probability = 1 / (1 + np.exp(-truth.design @ beta))  # type: ignore[union-attr]
        active = rng.random(len(probability)) < probability
        problem = Problem(FEATURES, data_of(active, rng), fitted.resolve(FEATURES, list(SCALE)))
        ranks.append((states_of(problem, seed)[:, 1] < beta[1]).mean())
    counts = np.bincount(np.minimum((10 * np.array(ranks)).astype(int), 9), minlength=10)
    return float(((counts - SETS / 10) ** 2).sum() / (SETS / 10))


@pytest.mark.slow
def test_ranks_of_coefficients_are_uniform():
    # The 0.001 quantile of chi-square with nine degrees of freedom is 27.9.
    assert rank_chi(1.0) < 27.9
    assert rank_chi(0.2) > 27.9
