"""The particle chain with its particles replaced by the table of all states: no noise, so it must be exact.

What is wrong here is wrong with the moves themselves, however many particles there are. Two checks: the
gradient of the log posterior has mean zero over its draws, within every graph (integration by parts), and
the exact engine includes every pair as often.
"""

from __future__ import annotations

import numpy as np
import pytest
from comparing import inclusion_and_error, run, z_score
from truth import state_features

from broken import altered
from edgewise.data import read_data
from edgewise.draws import Draws
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.kernels import chain
from edgewise.kernels.compiling import kernel
from edgewise.kernels.table import Table
from edgewise.priors import Prior

P = 6
LIMIT = 4.5


@kernel
def keep_order(graph, stream):
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


def table_draws(problem: Problem, iterations: int) -> Draws:
    """Draws of the particle chain, with its own scan and moves, but means from the table."""
    engine = ParticleEngine(problem, {"warm_up": 40}, np.random.SeedSequence(3))
    engine.advance(40)
    engine._source = Table(np.zeros((1, 2**P)))
    engine._renew()
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


def test_moves_are_exact_when_means_are(problem):
    draws = table_draws(problem, 30_000)
    assert gradient_z(draws, problem) < LIMIT
    count = problem.features.n_cliques
    expected, error = inclusion_and_error(run(problem, "exact", 60_000), count)
    found, own_error = inclusion_and_error([draws], count)
    # A pair that is hardly ever absent has no error of its own: a few draws in all are allowed for.
    assert (abs(found - expected) < LIMIT * np.hypot(error, own_error) + 1e-4).all()


def test_order_of_arrival_is_noticed(problem, monkeypatch):
    """Negative control: parameters redrawn in the order in which they became active."""
    monkeypatch.setattr(chain, "run_chain", altered(chain.run_chain, shuffle_active=keep_order))
    draws = table_draws(problem, 15_000)
    assert gradient_z(draws, problem) > 1.5 * LIMIT
