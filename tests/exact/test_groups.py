"""Strata and groups against complete enumeration, in units of Monte Carlo error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import z_score
from group_truth import enumerate_groups

from edgewise import MRF, exact
from edgewise.data import read_data
from edgewise.engines.exact import ExactEngine
from edgewise.engines.groups import GroupEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics, sufficient_statistics
from edgewise.priors import BetaInclusion, GammaSlab, Prior

PAIRS = Features.pairs(3)
LIMIT = 4.5
UNEVEN = Prior(
    BetaInclusion(2.0, 3.0),
    GammaSlab(4.0, 6.0),
    difference=BetaInclusion(2.0, 4.0),
    difference_slab=GammaSlab(6.0, 3.0),
)


def strata(sizes, seed=0):
    """Statistics of rows of models that differ in their first pair and in their biases."""
    rng = np.random.default_rng(seed)
    parts = []
    for k, n in enumerate(sizes):
        model = MRF([0.8 * k - 0.5, 0.6 - 0.7 * k, 0.1], PAIRS.members, [1.2 - 1.4 * k, 0.0, 0.9])
        rows = read_data(exact.sample(model, n, rng), constant="keep")
        parts.append(sufficient_statistics(rows, PAIRS))
    return tuple(parts)


def problem_of(parts, group_of, prior=None):
    total = Statistics(
        sum(part.n_rows for part in parts),
        sum(part.singles for part in parts),
        sum(part.cliques for part in parts),
    )
    return Problem(PAIRS, total, (prior or Prior()).resolve(PAIRS), strata=parts, group_of=group_of)


def draws_of(kind, problem, iterations, seed=1):
    engine = kind(problem, None, np.random.SeedSequence(seed))
    engine.advance(engine.warm_up)
    return engine.advance(iterations)


def group_columns(draws, a):
    """Couplings of a pair in every group and draw (zero where absent), and its state."""
    groups = draws.couplings.shape[1]
    found, state = np.zeros((len(draws), groups)), np.zeros(len(draws), int)
    hits = np.flatnonzero(draws.indices == a)
    where = np.searchsorted(draws.indptr, hits, side="right") - 1
    found[where] = draws.couplings[hits]
    state[where] = 1 + (draws.couplings[hits] != draws.couplings[hits][:, :1]).any(axis=1)
    return found, state


def largest_z(draws, truth):
    found = {}
    for a in range(3):
        couplings, state = group_columns(draws, a)
        for s in range(3):
            found[f"state {s} of {a}"] = z_score([state == s], truth.states[a, s])
        for k in range(couplings.shape[1]):
            found[f"mean {a} {k}"] = z_score([couplings[:, k]], truth.couplings[a, k])
            found[f"square {a} {k}"] = z_score([couplings[:, k] ** 2], truth.squares[a, k])
    for i, mean in enumerate(truth.biases):
        found[f"bias {i}"] = z_score([draws.biases[:, i]], mean)
    return max(found.values()), max(found, key=found.get)


CASES = {
    "two groups": ((40, 25), (0, 1), Prior()),
    "very unequal": ((90, 8), (0, 1), UNEVEN),
    "three groups": ((30, 25, 20), (0, 1, 2), Prior()),
    "two groups, each in two strata": ((30, 10, 12, 25), (0, 0, 1, 1), UNEVEN),
}


@pytest.mark.parametrize("name", CASES)
def test_groups_against_enumeration(name):
    sizes, group_of, prior = CASES[name]
    parts = strata(sizes)
    settings = {}
    if prior is UNEVEN:
        settings = {"beta": (2.0, 3.0), "gamma": (4.0, 6.0)}
        settings |= {"difference_beta": (2.0, 4.0), "difference_gamma": (6.0, 3.0)}
    # More dimensions ask for more points: with fewer, the truth's own error would show.
    points = 1 << (15 if len(sizes) > 2 else 13)
    truth = enumerate_groups(PAIRS, parts, group_of, points=points, **settings)
    assert truth.error < 0.02
    draws = draws_of(GroupEngine, problem_of(parts, group_of, prior), 40_000)
    worst, where = largest_z(draws, truth)
    assert worst < LIMIT, (worst, where)


def test_wrong_odds_and_forgotten_contrasts_are_noticed():
    """Negative controls: other priors of q0 and sigma_D, and contrasts of the wrong sign."""
    parts = strata((40, 25))
    draws = draws_of(GroupEngine, problem_of(parts, (0, 1)), 40_000)
    for wrong in (
        {"difference_beta": (5.0, 8.0)},
        {"difference_gamma": (5.0, 10.0)},
    ):
        assert largest_z(draws, enumerate_groups(PAIRS, parts, (0, 1), **wrong))[0] > 2 * LIMIT
    assert largest_z(draws, enumerate_groups(PAIRS, parts[::-1], (0, 1)))[0] > 2 * LIMIT


def test_adjusting_against_enumeration():
    """Biases free in each stratum, couplings shared; ignoring the strata is noticed."""
    parts = strata((40, 25, 30))
    truth = enumerate_groups(PAIRS, parts, (0, 0, 0))
    draws = draws_of(ExactEngine, problem_of(parts, (0, 0, 0)), 40_000)
    shared = replace(draws, couplings=draws.values[:, None])
    worst, where = largest_z(shared, truth)
    assert worst < LIMIT, (worst, where)
    pooled = problem_of(parts, (0, 0, 0))
    pooled = replace(pooled, strata=())
    ignoring = draws_of(ExactEngine, pooled, 40_000)
    ignoring = replace(ignoring, couplings=ignoring.values[:, None], biases=np.tile(ignoring.biases, 3))
    assert largest_z(ignoring, truth)[0] > 2 * LIMIT
