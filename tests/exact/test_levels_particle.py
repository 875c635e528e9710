"""The particle engine with more than two levels, beside the exact table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import z_score
from test_levels_engine import TABLES, parameters, problem_of, rows_of

from edgewise.engines.choose import LEVEL_PARTICLE, load_engine, resolve
from edgewise.engines.level_particle import LevelParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.priors import NormalBias, Prior
from edgewise.scales import Scales

LIMIT = 4.0
ALLOWANCE = 0.004


def draws_of(kind: type, problem: Problem, iterations: int, **settings) -> list:
    result = []
    for chain in range(2):
        engine = kind(problem, {"warm_up": 150, **settings}, np.random.SeedSequence([2, chain]))
        engine.advance(engine.warm_up)
        result.append(engine.advance(iterations))
    return result


def moments(draws: list, problem: Problem) -> dict[str, list[list[np.ndarray]]]:
    """Series of every chain whose means are compared: indicators, parameters, thresholds, their squares."""
    every = [parameters(chain, problem.features, problem.scales) for chain in draws]
    count = problem.features.n_cliques
    biases = [chain.biases for chain in draws]
    return {
        "inclusion": [[chain.column(a) != 0 for chain in draws] for a in range(count)],
        "parameter": [[part[:, k] for part in every] for k in range(every[0].shape[1])],
        "square": [[part[:, k] ** 2 for part in every] for k in range(every[0].shape[1])],
        "threshold": [[part[:, k] for part in biases] for k in range(biases[0].shape[1])],
        "threshold square": [[part[:, k] ** 2 for part in biases] for k in range(biases[0].shape[1])],
        "sigma0": [[chain.slab_scale for chain in draws]],
    }


def apart(found: dict, expected: dict) -> dict[str, float]:
    """Largest z of each kind, a share of what varies being allowed for the noise of the particles."""
    result = {}
    for name, series in found.items():
        scores = []
        for one, other in zip(series, expected[name]):
            mean = np.mean([chain.mean() for chain in other])
            spread = np.concatenate(other).std()
            error = spread / (abs(z_score(other, mean - spread)) or np.inf) if spread > 0 else 0.0
            scores.append(z_score(one, mean, 2 * error + ALLOWANCE * spread))
        result[name] = max(scores)
    return result


@pytest.fixture(scope="module")
def problem() -> Problem:
    scales = Scales(TABLES["four mixed"])
    return problem_of(scales, rows_of(scales))


@pytest.fixture(scope="module")
def truth(problem) -> dict:
    return moments(draws_of(load_engine("exact"), problem, 20_000), problem)


def test_particles_meet_the_table(problem, truth):
    draws = draws_of(LevelParticleEngine, problem, 2500, particles=768, sites=6)
    found = apart(moments(draws, problem), truth)
    assert max(found.values()) < LIMIT, found


@pytest.mark.slow
def test_other_targets_are_noticed(problem, truth):
    """Negative controls: a narrower prior of the thresholds, sums that lost a tenth."""
    s = problem.statistics
    for wrong, quantity in (
        (replace(problem, prior=Prior(bias=NormalBias(1.4)).resolve(problem.features)), "threshold square"),
        (replace(problem, statistics=replace(s, cliques=0.9 * s.cliques)), "parameter"),
    ):
        draws = draws_of(LevelParticleEngine, wrong, 1200, particles=512, sites=6)
        found = apart(moments(draws, wrong), truth)
        assert found[quantity] > LIMIT, (quantity, found)


def test_fields_and_weights_follow_every_move(problem):
    """After many moves of every kind fields are those of the parameters, and so are means by the weights."""
    engine = LevelParticleEngine(problem, {"warm_up": 40, "particles": 8192}, np.random.SeedSequence(3))
    engine.advance(40)
    engine.advance(7)
    swarm = engine._source
    fields, thresholds = swarm.F.copy(), swarm.thresholds.copy()
    engine._renew()
    np.testing.assert_allclose(fields, swarm.F, atol=1e-4)
    for i, count in enumerate(swarm.levels):
        change = (thresholds - swarm.thresholds)[i, :count]
        np.testing.assert_allclose(change, change[0], atol=1e-6)
    # The same model by the table of its states.
    exact = load_engine("exact")(problem, {"warm_up": 2}, np.random.SeedSequence(1), "empty")
    for name in ("theta", "bias", "blocks", "degree", "adjacent", "listed", "place", "counts"):
        exact._arrays[name][:] = engine._arrays[name]
    exact._renew()
    states = np.stack(np.unravel_index(np.arange(problem.scales.n_states), problem.scales.levels[::-1]))[::-1]
    expected = problem.scales.scored(states.T).T @ exact._arrays["table"]
    found = swarm.X @ swarm.w / swarm.w.sum()
    spread = np.sqrt(swarm.X.var(axis=1) / len(swarm.w))
    assert (abs(found - expected) / spread).max() < 5


def test_a_saved_chain_goes_on_as_if_never_stopped(problem):
    settings = {"warm_up": 60}
    whole = LevelParticleEngine(problem, settings, np.random.SeedSequence(4))
    whole.advance(60)
    whole.advance(25)
    state = {name: array.copy() for name, array in whole.state().items()}
    rest = whole.advance(20)
    again = LevelParticleEngine.restore(problem, settings, state).advance(20)
    for name in ("indptr", "indices", "values", "biases", "blocks", "block_indptr", "slab_scale"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(again, name))


def test_the_name_finds_it(problem):
    assert resolve("particle", problem) == LEVEL_PARTICLE
