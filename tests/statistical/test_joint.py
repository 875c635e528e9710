"""Geweke's joint test: an engine and a simulator in turns must walk over prior and data together.

Draw data from the parameters, let the engine move the parameters given these data, and so on: parameters and
data then have the joint distribution that drawing models from the prior and data from the models has. Nothing
is fitted to convergence, so that every error of a move adds up over all data sets that are likely; and the
same code both moves and is judged, whatever the data. Means over the two ways are compared in units of
their Monte Carlo error.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from worlds import World

from edgewise.draws.convergence import effective_draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Engine, Problem
from edgewise.engines.stretch import EliminationEngine
from edgewise.features import Statistics

WORLD = World(3, 20)
LIMIT = 4.5
# Names of the sums in the state of a chain.
SUMS = {"langevin": ("single_totals", "totals")}


def quantities(p0: float, sigma0: float, theta: np.ndarray, bias: np.ndarray, data: Statistics) -> np.ndarray:
    """Functions of parameters and data whose means are compared."""
    single, pair = data.singles[0] / data.n_rows, data.cliques[0] / data.n_rows
    edges = np.count_nonzero(theta)
    values = (p0, p0**2, sigma0, sigma0**-2, edges, edges**2, p0 * edges)
    values += (*theta, *theta**2, *bias, *bias**2, theta[0] * theta[1], bias[0] * theta[0])
    return np.array([*values, single, pair, bias[0] * single, theta[0] * pair, (theta[0] != 0) * pair])


def independent(rounds: int) -> np.ndarray:
    """The quantities of models from the prior with data from the models."""
    rng = np.random.default_rng(1)
    models = [WORLD.model(rng) for _ in range(rounds)]
    return np.array([quantities(*model, WORLD.data(*model[2:], rng)) for model in models])


def problem_of(data: Statistics, odds: float = 1.0) -> Problem:
    return Problem(WORLD.features, data, WORLD.prior(odds).resolve(WORLD.features))


def told(engine: Engine, problem: Problem, settings: dict, knowledge: dict | None) -> Engine:
    """The same chain with other data: as it is restored from its state, with other sums in it."""
    state = engine.state()
    singles, sums = SUMS.get(engine.name, ("singles", "sums"))
    state[singles] = np.reshape(problem.statistics.singles, state[singles].shape).astype(float)
    state[sums] = np.reshape(problem.statistics.cliques, state[sums].shape).astype(float)
    if knowledge is None:
        return type(engine).restore(problem, settings, state)
    engine = EliminationEngine.restore(problem, settings, state, knowledge)
    engine._weigh()  # the weight of the present state is of the data before
    return engine


def started(name: str, problem: Problem, settings: dict) -> tuple[Engine, dict | None]:
    """A chain after its warm-up, whose rules are fixed from here on."""
    seed = np.random.SeedSequence(3)
    if name != "elimination":
        engine = load_engine(name)(problem, settings, seed)
        engine.advance(engine.warm_up)
        return engine, None
    knowledge = None
    engine = EliminationEngine(problem, settings, seed)
    while knowledge is None or not knowledge["last"][0]:
        engine.advance(engine.warm_up - engine.iteration)
        state = engine.state()
        knowledge = EliminationEngine.pool(problem, settings, [state], knowledge)
        engine = EliminationEngine.restore(problem, settings, state, knowledge)
    return engine, knowledge


def joint(
    name: str, rounds: int, steps: int, settings: dict, kept: float = 1.0, odds: float = 1.0
) -> np.ndarray:
    """The quantities along the joint chain.

    Negative controls: only a share of the pair sums is `kept`, or the prior odds are wrong.
    """
    rng = np.random.default_rng(2)
    data = WORLD.data(*WORLD.model(rng)[2:], rng)
    engine, knowledge = started(name, problem_of(data, odds), settings)
    found = []
    for _ in range(rounds):
        draws = engine.advance(steps, thin=steps)
        theta = np.array([draws.column(a)[-1] for a in range(WORLD.features.n_cliques)])
        bias = draws.biases[-1]
        # Data of before are with the parameters that were drawn given them.
        found.append(quantities(draws.inclusion_rate[-1], draws.slab_scale[-1], theta, bias, data))
        data = WORLD.data(theta, bias, rng)
        shrunken = Statistics(data.n_rows, data.singles, kept * data.cliques)
        engine = told(engine, problem_of(shrunken, odds), settings, knowledge)
    return np.array(found)


def scores(chain: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Differences of the means in units of their Monte Carlo error."""
    error = chain.std(axis=0) / np.sqrt(effective_draws(chain.T[:, None]))
    difference = chain.mean(axis=0) - reference.mean(axis=0)
    return np.abs(difference) / np.hypot(error, reference.std(axis=0) / math.sqrt(len(reference)))


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    return independent(40_000)


# Rounds, iterations between data sets, settings. Stretches are on the surrogate of the first data set, which
# fits no other, so that walks do most of the work and more of them are needed; Algorithm 1 has steps small
# enough for its error to hide.
ENGINES = {
    "exact": (8000, 3, {"warm_up": 100}),
    "particle": (8000, 3, {"warm_up": 100, "particles": 384}),
    "elimination": (8000, 60, {"warm_up": 40, "particles": 512, "walks": 1.0}),
    "langevin": (
        8000,
        100,
        {"warm_up": 2000, "particles": 200, "step_size": 0.1, "jump_width": 1.0, "thin": 1},
    ),
}


@pytest.mark.parametrize("name", ENGINES)
def test_engine_and_simulator_keep_the_joint_distribution(name, reference):
    assert scores(joint(name, *ENGINES[name]), reference).max() < LIMIT


@pytest.mark.parametrize("fault", [{"kept": 0.95}, {"odds": 1.25}], ids=str)
@pytest.mark.parametrize("name", ENGINES)
def test_small_faults_are_noticed(name, fault, reference):
    """Negative controls: a twentieth of the pair sums is lost; the prior odds are a quarter too high."""
    assert scores(joint(name, *ENGINES[name], **fault), reference).max() > 1.5 * LIMIT


def test_weights_of_other_data_are_noticed(reference, monkeypatch):
    """Negative control: stretches go on with the weight that their state had under the data before.

    Data come often here, and walks, which bring the weight up to date, are few.
    """
    often = (16_000, 5, {"warm_up": 40, "particles": 512, "walks": 0.2})
    assert scores(joint("elimination", *often), reference).max() < LIMIT
    monkeypatch.setattr(EliminationEngine, "_weigh", lambda self: None)
    assert scores(joint("elimination", *often), reference).max() > 1.5 * LIMIT
