"""Slabs with heavier tails, slabs of single edges, communities and attributes against enumeration at p = 4."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import problem_of, run, z_score, z_scores
from inclusion_truth import log_blocks, log_regression
from scipy import special
from test_stretches import SETTINGS, learn
from truth import enumerate_posterior

from edgewise.draws import Draws
from edgewise.engines.protocol import Problem
from edgewise.engines.stretch import EliminationEngine
from edgewise.priors import (
    AttributeInclusion,
    BetaInclusion,
    BlockInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
    NormalBias,
    Prior,
    StudentSlab,
)

LIMIT = 4.5
SUBSCALE = {"0": "a", "1": "a", "2": "b", "3": "b"}
PLACE = {"0": 1.0, "1": 2.0, "2": 4.0, "3": 8.0}
PRIORS = {
    "cauchy": Prior(BetaInclusion(2.0, 2.0), CauchySlab(0.8), NormalBias(3.0)),
    "student": Prior(FixedInclusion(0.4), StudentSlab(4.0, 1.0), NormalBias(3.0)),
    "own slabs": Prior(
        FixedInclusion(0.4),
        GammaSlab(5.0, 5.0),
        NormalBias(3.0),
        edge_slab={(0, 1): (0.9, 0.4), (1, 3): (-0.5, 0.3)},
    ),
    "communities": Prior(
        BlockInclusion(2.0, 1.0, 1.0, 3.0, concentration=1.5, mean_communities=2.5),
        GammaSlab(5.0, 5.0),
        NormalBias(3.0),
        edge_probability={(0, 3): 0.3},
    ),
    "attributes": Prior(
        AttributeInclusion("subscale + distance(place)", {"subscale": SUBSCALE, "place": PLACE}, p0=0.4),
        FixedSlab(1.0),
        NormalBias(3.0),
        edge_probability={(0, 3): 0.3},
    ),
}
ENGINES = {"exact": 20_000, "elimination": 20_000}


def draws_of(problem: Problem, name: str, iterations: int) -> list[Draws]:
    if name != "elimination":
        return run(problem, name, iterations)
    state, knowledge = learn(problem)
    return [EliminationEngine.restore(problem, SETTINGS, state, knowledge).advance(iterations)]


@pytest.fixture(scope="module")
def cases():
    found = {}
    for name, prior in PRIORS.items():
        problem = problem_of(4, prior, rows=60)
        truth = enumerate_posterior(
            problem.features, problem.statistics, problem.prior, target_error=0.003
        )
        found[name] = problem, truth
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRIORS)
def test_against_enumeration(cases, name, engine):
    problem, truth = cases[name]
    draws = draws_of(problem, engine, ENGINES[engine])
    found = z_scores(draws, truth)
    assert max(found.values()) < LIMIT, found
