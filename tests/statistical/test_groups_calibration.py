"""Calibration of comparing groups: all that is compared is drawn from the prior, and the answers must fit.

Over many simulated worlds the true state of a pair must be as frequent as its probability says, and the true
couplings must be spread like the posterior. Two groups cut at random from one table must seldom differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from edgewise.engines.groups import GroupEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, FixedInclusion, GammaSlab, NormalBias, Prior

PAIRS = Features.pairs(3)
STATES = ((np.arange(8)[:, None] >> np.arange(3)) & 1).astype(float)
PRODUCTS = STATES[:, PAIRS.members[:, 0]] * STATES[:, PAIRS.members[:, 1]]
ROWS = (60, 25)
PRIOR = Prior(
    BetaInclusion(2.0, 2.0),
    GammaSlab(6.0, 6.0),
    NormalBias(1.0),
    difference=BetaInclusion(2.0, 2.0),
    difference_slab=GammaSlab(6.0, 6.0),
)
WORLDS = 150


@dataclass(frozen=True)
class Simulated:
    states: np.ndarray
    couplings: np.ndarray
    problem: Problem


def statistics(coupling, bias, rows, rng):
    energy = STATES @ bias + PRODUCTS @ coupling
    weight = np.exp(energy - energy.max())
    counts = rng.multinomial(rows, weight / weight.sum())
    return Statistics(float(rows), counts @ STATES, counts @ PRODUCTS)


def problem_of(parts, prior=PRIOR):
    total = Statistics(
        sum(part.n_rows for part in parts),
        sum(part.singles for part in parts),
        sum(part.cliques for part in parts),
    )
    return Problem(PAIRS, total, prior.resolve(PAIRS), strata=tuple(parts), group_of=(0, 1))


def simulate(rng):
    p0, q0 = rng.beta(2, 2, 2)
    sigma0, sigma_d = rng.gamma(6.0, 1 / 6.0, 2) ** -0.5
    there = rng.random(3) < p0
    apart = there & (rng.random(3) < q0)
    mean, difference = rng.normal(0, sigma0, 3) * there, rng.normal(0, sigma_d, 3) * apart
    couplings = mean + np.array([-0.5, 0.5])[:, None] * difference
    parts = [statistics(own, rng.normal(0, 1.0, 3), rows, rng) for own, rows in zip(couplings, ROWS)]
    return Simulated(there.astype(int) + apart, couplings, problem_of(parts))


def fitted(problem, seed, draws=400):
    engine = GroupEngine(problem, {"warm_up": 60}, np.random.SeedSequence(seed))
    engine.advance(60)
    kept = engine.advance(draws)
    sums = engine.edge_sums()
    present, different = sums["inclusion"] / sums["tries"], sums["difference"] / sums["tries"]
    return np.stack([1 - present, present - different, different], axis=1), kept


@pytest.fixture(scope="module")
def worlds():
    rng = np.random.default_rng(5)
    return [simulate(rng) for _ in range(WORLDS)]


@pytest.fixture(scope="module")
def answers(worlds):
    return [fitted(world.problem, seed) for seed, world in enumerate(worlds)]


def z_of_states(worlds, probabilities):
    """Distance of the number of each true state from its expectation, in standard deviations."""
    truth = np.stack([np.eye(3)[world.states] for world in worlds]).reshape(-1, 3)
    stated = np.concatenate(probabilities)
    return (truth - stated).sum(axis=0) / np.sqrt((stated * (1 - stated)).sum(axis=0))


def test_states_are_as_frequent_as_stated(worlds, answers):
    stated = [probabilities for probabilities, _ in answers]
    assert np.abs(z_of_states(worlds, stated)).max() < 3.5
    # Where a difference is called likely it is, and where unlikely it is not.
    truth = np.concatenate([world.states == 2 for world in worlds])
    chance = np.concatenate([part[:, 2] for part in stated])
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0)):
        chosen = (chance >= low) & (chance < high)
        error = np.sqrt((chance[chosen] * (1 - chance[chosen])).sum())
        assert abs((truth[chosen] - chance[chosen]).sum()) < 3.5 * error


def test_couplings_are_spread_like_the_posterior(worlds, answers):
    ranks = []
    for number, (world, (_, draws)) in enumerate(zip(worlds, answers)):
        drawn = np.zeros((len(draws), 2, 3))
        draw = np.repeat(np.arange(len(draws)), draws.n_edges)
        drawn[draw, :, draws.indices] = draws.couplings
        sample = drawn[:: len(draws) // 40, :, number % 3]
        own = world.couplings[:, number % 3]
        for truth, values in ((own[0], sample[:, 0]), (own[1] - own[0], sample[:, 1] - sample[:, 0])):
            below, tied = (values < truth).mean(), (values == truth).mean()
            ranks.append(below + np.random.default_rng(number).random() * tied)
    for part in (np.array(ranks[::2]), np.array(ranks[1::2])):
        z = (np.sort(part) - (np.arange(len(part)) + 0.5) / len(part)) * np.sqrt(len(part))
        assert np.abs(z).max() < 1.95  # Kolmogorov's bound at 0.1 %


def test_another_rate_of_differences_is_noticed(worlds):
    """Negative control: answers under the belief that one pair in twenty differs."""
    wrong = replace(PRIOR, difference=FixedInclusion(0.05))
    stated = []
    for seed, world in enumerate(worlds[:100]):
        problem = replace(world.problem, prior=wrong.resolve(PAIRS))
        stated.append(fitted(problem, seed, 150)[0])
    assert np.abs(z_of_states(worlds[:100], stated)).max() > 5


def test_groups_cut_at_random_seldom_differ():
    rng = np.random.default_rng(7)
    called, factors = 0, []
    for number in range(40):
        coupling, bias = np.array([1.5, 0.0, -1.0]), np.array([-0.5, 0.0, 0.5])
        parts = [statistics(coupling, bias, 100, rng) for _ in range(2)]
        probabilities, _ = fitted(problem_of(parts, Prior()), number, 200)
        weight = probabilities / np.array([0.5, 0.25, 0.25])
        called += int((weight[:, 2] > 3 * weight[:, :2].max(axis=1)).sum())
        factors.append(np.log10(weight[[0, 2], 2] / weight[[0, 2], 1]))
    # Of 120 pairs none differs. By chance a Bayes factor of three is reached every third time at most, here
    # every tenth; and on average the data speak against a difference of the pairs that are there.
    assert called <= 12
    assert np.mean(factors) < -0.1
