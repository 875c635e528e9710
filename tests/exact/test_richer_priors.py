"""Heavier tails, slabs of single edges, communities and attributes against enumeration of all graphs."""

from __future__ import annotations

import itertools
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
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
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
    ResolvedPrior,
    StudentSlab,
)
from edgewise.priors.communities import BlockLayout

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


def draws_of(problem: Problem, name: str, iterations: int) -> list[Draws]:
    if name != "elimination":
        return run(problem, name, iterations)
    state, knowledge = learn(problem)
    return [EliminationEngine.restore(problem, SETTINGS, state, knowledge).advance(iterations)]


class Case:
    """A problem with its truth, by the name of its prior."""

    def __init__(self, name: str) -> None:
        self.problem = problem_of(4, PRIORS[name])
        self.truth = enumerate_posterior(
            self.problem.features, self.problem.statistics, self.problem.prior, target_error=0.006, neglect=7
        )


@pytest.fixture(scope="module")
def cases():
    return {name: Case(name) for name in PRIORS}


def model_scores(case: Case, draws: list[Draws]) -> float:
    """Largest z-score of what the model of inclusion has learned: who is together, or the coefficients."""
    model, truth = case.problem.prior.model, case.truth
    states = [chain.model_state for chain in draws]
    found = []
    if isinstance(model, BlockLayout):
        known, joint = log_blocks(truth.graphs, model)
        share = truth.probability @ special.softmax(joint, axis=1)
        for i, j in itertools.combinations(range(4), 2):
            together = float(share @ (known[:, i] == known[:, j]))
            found.append(z_score([state[:, i] == state[:, j] for state in states], together))
        for t in range(1, 5):
            expected = float(share @ (known.max(axis=1) + 1 == t))
            found.append(z_score([state.max(axis=1) + 1 == t for state in states], expected))
    else:
        points, joint = log_regression(truth.graphs, model)
        share = truth.probability @ special.softmax(joint, axis=1)
        for k in range(points.shape[1]):
            mean = float(share @ points[:, k])
            found.append(z_score([state[:, k] for state in states], mean))
            spread = float(share @ (points[:, k] - mean) ** 2)
            found.append(z_score([(state[:, k] - mean) ** 2 for state in states], spread))
    return max(found)


@pytest.mark.parametrize("name", PRIORS)
def test_table_against_enumeration(cases, name):
    case = cases[name]
    draws = draws_of(case.problem, "exact", 30_000)
    found = z_scores(draws, case.truth)
    assert max(found.values()) < LIMIT, found
    if case.problem.prior.model is not None:
        assert model_scores(case, draws) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["elimination", "particle"])
@pytest.mark.parametrize("name", PRIORS)
def test_other_engines_against_enumeration(cases, name, engine):
    case = cases[name]
    draws = draws_of(case.problem, engine, 20_000)
    # Particles are allowed their bias.
    found = z_scores(draws, case.truth, 0.02 if engine == "particle" else 0.0)
    assert max(found.values()) < LIMIT, found


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("cauchy", Prior(BetaInclusion(2.0, 2.0), FixedSlab(0.8), NormalBias(3.0))),
        ("student", Prior(FixedInclusion(0.4), FixedSlab(1.0), NormalBias(3.0))),
        ("communities", Prior(BetaInclusion(1.0, 1.0), GammaSlab(5.0, 5.0), NormalBias(3.0))),
        ("attributes", Prior(FixedInclusion(0.4), FixedSlab(1.0), NormalBias(3.0))),
        (
            "own slabs",
            replace(PRIORS["own slabs"], edge_slab={(0, 1): (0.9, 0.4), (1, 3): (-0.3, 0.3)}),
        ),
    ],
)
def test_another_prior_is_noticed(cases, name, other):
    """Negative controls: the truth of a prior that is not the one of the chain."""
    case = cases[name]
    draws = draws_of(case.problem, "exact", 30_000)
    truth = enumerate_posterior(
        case.problem.features,
        case.problem.statistics,
        other.resolve(case.problem.features),
        target_error=0.006,
        neglect=7,
    )
    found = z_scores(draws, truth)
    assert max(found["inclusion"], found["mean"]) > 2 * LIMIT, found


def own_slab(resolved: ResolvedPrior, candidate: int) -> tuple[float, float]:
    """Mean and standard deviation of a candidate's own slab, zeros without one."""
    if resolved.own_mean is None or resolved.own_sd is None:
        return 0.0, 0.0
    return float(resolved.own_mean[candidate]), float(resolved.own_sd[candidate])


@pytest.mark.parametrize("name", PRIORS)
def test_without_data_the_prior_returns(name):
    features = Features.pairs(4)
    resolved = PRIORS[name].resolve(features)
    problem = Problem(features, Statistics.none(features), resolved)
    [draws] = draws_of(problem, "exact", 30_000)
    expected = resolved.prior_odds() / (1 + resolved.prior_odds())
    for a in range(6):
        value = draws.column(a)
        assert z_score([value != 0], expected[a]) < LIMIT
        mean, sd = own_slab(resolved, a)
        above = 0.5 if mean == 0 else special.ndtr(mean / sd)
        assert z_score([value > 0], expected[a] * above) < LIMIT
        if name == "cauchy":
            # Cut off at 100, half of the density lies within the scale still.
            inside = np.arctan(1.0) / np.arctan(100 / 0.8)
            assert z_score([(np.abs(value) < 0.8) & (value != 0)], expected[a] * inside) < LIMIT
            assert z_score([(np.abs(value) < 0.6745 * 0.8 * 1.2) & (value != 0)], expected[a] / 2) > LIMIT
        if name == "student":
            for width in (3.0, 1.0, 0.5):
                near = (np.abs(value) < width) & (value != 0)
                assert z_score([near], expected[a] * (2 * special.stdtr(4.0, width) - 1)) < LIMIT
            # Negative control: a normal slab of the same variance.
            assert z_score([near], expected[a] * (2 * special.ndtr(0.5 / 2**0.5) - 1)) > LIMIT
        if sd > 0:
            near = (np.abs(value - mean) < sd) & (value != 0)
            assert z_score([near], expected[a] * (2 * special.ndtr(1.0) - 1)) < LIMIT
            # Negative control: the slab of the others, around zero.
            assert z_score([value > 0], expected[a] / 2) > LIMIT
    model = resolved.model
    if isinstance(model, BlockLayout):
        state = draws.model_state
        assert z_score([state[:, 0] == state[:, 3]], model.prior_together) < LIMIT
        for t in range(1, 5):
            assert z_score([state.max(axis=1) + 1 == t], model.prior_number[t]) < LIMIT
        # Negative control: a Dirichlet prior with other shares.
        other = replace(model.inclusion, concentration=0.5)
        wrong = BlockLayout(other, model.inside, model.members, 4).prior_together
        assert z_score([state[:, 0] == state[:, 3]], wrong) > LIMIT
    elif model is not None:
        for k in range(3):
            assert z_score([draws.model_state[:, k]], model.mean[k]) < LIMIT
            assert z_score([(draws.model_state[:, k] - model.mean[k]) ** 2], model.sd[k] ** 2) < LIMIT


def test_langevin_refuses_by_name():
    with pytest.raises(DataError, match="langevin engine knows normal slabs"):
        run(problem_of(3, Prior(slab=CauchySlab())), "langevin", 1)
