"""The particle chain with its particles replaced by the table of all states: no noise, so it must be exact.

What is wrong here is wrong with the moves themselves, however many particles there are. Two checks: the
gradient of the log posterior has mean zero over its draws, within every graph (integration by parts), and
the exact engine includes every pair as often.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from comparing import inclusion_and_error, run, z_score
from numba import njit
from truth import state_features

from edgewise.data import read_data
from edgewise.draws import Draws
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.kernels import particle_chain
from edgewise.kernels.compiling import kernel
from edgewise.kernels.gibbs import compute_fields
from edgewise.priors import Prior

P = 6
LIMIT = 4.5
REBUILT = ("visit_clique", "visit_bias", "visit_swap", "visit_cold", "run_particles")


@kernel
def noiseless_growth(sums, N, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    return N * math.log(sums[2] / sums[0])


@kernel
def refill_table(moved, given, chain, swarm, counters):
    """Weight every state by the present model; either group of particles is one table."""
    if not moved:
        return
    for s in range(swarm.w.shape[0]):
        state = s % swarm.split
        energy = 0.0
        for i in range(swarm.X.shape[0]):
            x = (state >> i) & 1
            swarm.X[i, s] = np.float32(x)
            energy += chain.bias[i] * x
        for position in range(chain.counts[0]):
            a = chain.listed[position]
            both = (state >> given.members[a, 0]) & (state >> given.members[a, 1]) & 1
            energy += chain.theta[a] * both
        swarm.w[s] = np.float32(math.exp(energy))
    graph = (chain.theta, given.members, chain.start, chain.degree, chain.adjacent)
    compute_fields(swarm.X, chain.bias, *graph, swarm.F, swarm.product)


@kernel
def keep_order(chain):
    pass


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Columns that follow one hidden cause, more or less closely."""
    rng = np.random.default_rng(1)
    cause = rng.random((500, 1)) < 0.3
    follows = rng.random((500, P)) < np.linspace(0.7, 0.97, P)
    rows = np.where(follows, cause, rng.random((500, P)) < 0.4).astype(np.uint8)
    features = Features.pairs(P)
    data = read_data(rows, constant="keep")
    return Problem(features, sufficient_statistics(data, features), Prior().resolve(features))


def table_draws(problem: Problem, iterations: int, monkeypatch: pytest.MonkeyPatch, **replaced: Any) -> Draws:
    """Draws of the chain with its own moves, but means from the table."""
    engine = ParticleEngine(problem, {"warm_up": 40}, np.random.SeedSequence(3))
    engine.advance(40)
    arrays = engine._arrays
    arrays["split"][0] = 2**P
    arrays["X"] = np.zeros((P, 2 * 2**P), np.float32)
    arrays["F"] = np.zeros_like(arrays["X"])
    arrays["w"] = np.ones(2 * 2**P, np.float32)
    engine._derive()
    refill_table(True, engine._given, engine._chain, engine._swarm, arrays["counters"])
    scope = vars(particle_chain) | {"log_growth": noiseless_growth, "after_visit": refill_table} | replaced
    for name in REBUILT:
        code = getattr(particle_chain, name).py_func.__code__
        scope[name] = njit(nogil=True, _nrt=False)(FunctionType(code, scope, name))
    monkeypatch.setattr(particle_chain, "run_particles", scope["run_particles"])
    return engine.advance(iterations)


def gradient_z(draws: Draws, problem: Problem) -> float:
    """How far the mean gradient of the log posterior is from zero: the largest z over all parameters."""
    table = state_features(problem.features)
    theta = np.stack([draws.column(a) for a in range(problem.features.n_cliques)], axis=1)
    parameters = np.column_stack([draws.biases, theta])
    weight = np.exp(parameters @ table.T)
    weight /= weight.sum(axis=1, keepdims=True)
    found = problem.statistics
    slope = np.concatenate([found.singles, found.cliques]) - found.n_rows * weight @ table
    slope[:, :P] -= draws.biases / problem.prior.bias_sd**2
    slope[:, P:] -= theta / draws.slab_scale[:, None] ** 2
    slope[:, P:][theta == 0] = 0.0
    return max(z_score([values], 0.0) for values in slope.T)


def test_moves_are_exact_when_means_are(problem, monkeypatch):
    draws = table_draws(problem, 30_000, monkeypatch)
    assert gradient_z(draws, problem) < LIMIT
    count = problem.features.n_cliques
    expected, error = inclusion_and_error(run(problem, "exact", 60_000), count)
    found, own_error = inclusion_and_error([draws], count)
    # A pair that is hardly ever absent has no error of its own: a few draws in all are allowed for.
    assert (abs(found - expected) < LIMIT * np.hypot(error, own_error) + 1e-4).all()


def test_order_of_arrival_is_noticed(problem, monkeypatch):
    """Negative control: parameters redrawn in the order in which they became active."""
    draws = table_draws(problem, 15_000, monkeypatch, shuffle_active=keep_order)
    assert gradient_z(draws, problem) > 1.5 * LIMIT
