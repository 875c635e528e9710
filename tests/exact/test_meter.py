"""The measured error of a surrogate: its terms against exact means, its particles, and what it comes to."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import problem_of

from edgewise import SpikeSlabMRF, exact, load_posterior
from edgewise.draws.draws import Draws
from edgewise.engines import meter as meters
from edgewise.engines.meter import SUMS, is_probed, nearest
from edgewise.engines.stretch import EliminationEngine
from edgewise.engines.surrogate import SurrogateEngine
from edgewise.kernels.graph import empty_graph
from edgewise.kernels.probing import empty_way, walk_the_way
from edgewise.kernels.random import lane_streams, scalar_stream
from edgewise.model import MRF
from edgewise.posterior.approximation import approximation_of
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.posterior import Posterior
from edgewise.priors import Prior
from toy_engine import fingerprint

SETTINGS = {"particles": 512, "warm_up": 40}


def chain_of(problem, seed=1, change=None):
    """A chain after warm-up; `change` is made to what it has learned."""
    engine, knowledge = SurrogateEngine(problem, SETTINGS, np.random.SeedSequence([seed, 0])), None
    while engine.meeting is not None:
        engine.advance(engine.warm_up - engine.iteration)
        state = engine.state()
        knowledge = SurrogateEngine.pool(problem, SETTINGS, [state], knowledge)
        if change is not None and knowledge["last"][0]:
            knowledge |= change(knowledge)
        engine = SurrogateEngine.restore(problem, SETTINGS, state, knowledge)
    return engine, state, knowledge


@pytest.fixture(scope="module")
def problem():
    return problem_of(4, Prior(), rows=400)


def shifted(knowledge):
    """A surrogate beside the mark, so that there is something to measure."""
    return {"pull": knowledge["pull"] + 0.25 * np.sqrt(np.diag(knowledge["precision"]))}


@pytest.fixture(scope="module")
def learned(problem):
    return chain_of(problem, change=shifted)


def exact_means(problem, bias, theta):
    model = MRF(bias, [tuple(c) for c in problem.features.members], theta)
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    weight = np.exp(states @ bias + np.prod(states[:, problem.features.members], axis=2) @ theta)
    weight /= weight.sum()
    assert np.isfinite(exact.log_partition(model))
    features = np.hstack([states, np.prod(states[:, problem.features.members], axis=2)])
    return weight @ features


def log_z(problem, bias, theta):
    return exact.log_partition(MRF(bias, [tuple(c) for c in problem.features.members], theta))


def exact_weight(problem, own, bias, theta):
    """w of (10.6)."""
    rows, flat = problem.statistics.n_rows, 1 / problem.prior.bias_sd**2
    residual = bias - own["bias_mean"] + theta @ own["bias_slope"]
    log_q = own["pull"] @ theta - 0.5 * theta @ own["precision"].astype(float) @ theta
    log_q += own["tilt"] @ (theta != 0) - 0.5 * residual @ own["bias_precision"] @ residual
    data = bias @ problem.statistics.singles + theta @ problem.statistics.cliques
    return data - rows * log_z(problem, bias, theta) - 0.5 * flat * bias @ bias - log_q


def apart(problem, learned, meter) -> float:
    """How far the sum of the terms, with exact means, is from w."""
    engine, _, own = learned
    differences = []
    for _ in range(12):
        engine.advance(3)
        bias = engine._chain.bias.copy()
        theta = engine._chain.theta.copy()
        phi = np.concatenate([bias, theta])
        means = np.zeros(10)
        for t in meters.POINTS:
            at = meter.first + t * (phi - meter.first)
            means += 0.5 * exact_means(problem, at[:4], at[4:])
        differences.append(meter.terms(phi, means).sum() - exact_weight(problem, own, bias, theta))
    return float(np.std(differences))


def test_terms_add_up_to_the_weight(problem, learned):
    """Two Gauss points leave out what is beyond the fourth order."""
    assert apart(problem, learned, learned[0]._meter) < 0.02


@pytest.mark.parametrize("part", ["tilt", "flat", "bias_slope", "pull"])
def test_a_part_that_is_wrong_shows(problem, learned, part):
    meter = learned[0]._meter
    broken = {
        "tilt": meter.tilt + 0.3,
        "flat": meter.flat + 1.0,
        "bias_slope": 1.1 * meter.bias_slope,
        "pull": meter.pull + 2.0,
    }
    changed = meters.Meter(**{**vars(meter), part: broken[part]})
    assert apart(problem, learned, changed) > 0.04


def both_after(weighted: bool) -> float:
    """Share of particles with both of two variables that hold each other, a step after both were rare."""
    n = 1 << 15
    rng = np.random.default_rng(1)
    X = (rng.random((2, n)) < 0.2).astype(np.float32)
    graph = empty_graph(np.array([[0, 1]], np.int32), np.zeros(1, np.int8), 2)
    present = (np.full(2, np.log(0.25)), np.zeros(1)) if weighted else (np.full(2, -3.0), np.full(1, 6.0))
    first = np.zeros(2), np.zeros(1)
    way = empty_way(graph, np.zeros(1, np.int64), first, present, n, (0, 1), (1.0,))
    seed = np.random.SeedSequence(2)
    walk_the_way(False, np.full(2, -3.0), np.full(1, 6.0), X, lane_streams(seed, n), scalar_stream(seed), way)
    return float(way.means[2])


def test_particles_do_not_lag():
    truth = 1 / (2 + 2 * np.exp(-3.0))
    assert abs(both_after(weighted=True) - truth) < 4 * 1.5 / np.sqrt(1 << 15)


def test_particles_without_weights_lag():
    truth = 1 / (2 + 2 * np.exp(-3.0))
    assert abs(both_after(weighted=False) - truth) > 4 * 1.5 / np.sqrt(1 << 15)


def posterior_of(problem, chains):
    draws = [chain.advance(3000) for chain in chains]
    sums = [chain.edge_sums() for chain in chains]
    info = {"engine": "surrogate"}
    return Posterior(
        draws, problem.features, "abcd", statistics=problem.statistics, info=info, edge_sums=sums
    )


def test_it_tells_the_distance_to_the_exact_posterior(problem, learned):
    _, state, knowledge = learned
    decided = EliminationEngine.restore(
        problem, SETTINGS, state, knowledge | {"lenience": np.array([1.0])}
    ).advance(20_000)
    # Two chains with their own noise.
    chains = [SurrogateEngine.restore(problem, SETTINGS, state, knowledge) for _ in range(2)]
    chains[1]._chain.stream[:] += np.uint64(977)
    posterior = posterior_of(problem, chains)
    found = approximation_of(posterior)
    truth = np.bincount(decided.indices, minlength=6) / len(decided)
    difference = truth - posterior.edge_values("frequency")
    assert np.abs(difference).max() > 0.1
    # To first order: signs and sizes, not the last digit of errors as large as that.
    np.testing.assert_allclose(found.shifts, difference, atol=0.08)
    assert np.corrcoef(found.shifts, difference)[0, 1] > 0.9
    on, weights = [], []
    for _ in range(4000):
        chains[0].advance(1)
        bias, theta = chains[0]._chain.bias, chains[0]._chain.theta
        on.append(theta != 0)
        weights.append(exact_weight(problem, knowledge, bias, theta))
    covariance = (np.array(on) - np.mean(on, axis=0)).T @ (weights - np.mean(weights)) / len(on)
    np.testing.assert_allclose(found.shifts, covariance, atol=0.04)
    assert found.largest > 0.1
    assert found.resolution < 0.01
    told = diagnose(posterior)
    assert told.light == "red"
    assert "measured error of a probability" in " ".join(told.messages)


def test_nearest_and_schedule():
    precision = np.array([[4.0, 0.0, 1.0], [0.0, 1.0, 0.05], [1.0, 0.05, 4.0]])
    near = nearest(precision, np.arange(4))
    assert [sorted(row[row >= 0].tolist()) for row in near] == [[0, 2], [1], [0, 2]]
    blocks = nearest(precision, np.array([0, 2, 3]))
    assert [sorted(row[row >= 0].tolist()) for row in blocks] == [[0, 1], [0, 1]]
    assert nearest(precision, np.arange(4), wanted=False).shape == (3, 0)
    assert sum(is_probed(n, 1) for n in range(1, 3001)) == 2100


def test_draws_and_measurements_do_not_depend_on_how_a_chain_is_divided(problem, learned):
    _, state, knowledge = learned
    whole = SurrogateEngine.restore(problem, SETTINGS, state, knowledge)
    drawn = whole.advance(30)
    parts, pieces = SurrogateEngine.restore(problem, SETTINGS, state, knowledge), []
    for _ in range(10):
        pieces.append(parts.advance(3))
        parts = SurrogateEngine.restore(problem, SETTINGS, parts.state(), knowledge)
    assert fingerprint([drawn]) == fingerprint([Draws.concatenate(pieces)])
    for name in SUMS:
        np.testing.assert_array_equal(whole.edge_sums()[name], parts.edge_sums()[name])


def test_a_fit_can_be_green_and_says_what_was_measured(tmp_path):
    model = MRF(np.zeros(5), [(0, 1), (1, 2), (3, 4)], [2.0, -2.0, 1.5])
    rows = exact.sample(model, 1000, 3)
    settings = {"particles": 1024, "warm_up": 160}
    fitted = SpikeSlabMRF(
        engine="surrogate", random_state=1, progress=False, settings=settings, max_draws=1500
    ).fit(rows)
    posterior = fitted.posterior_
    found = approximation_of(posterior)
    assert found.typical < 0.02
    assert found.resolution < 0.01
    assert diagnose(posterior).light == "green", diagnose(posterior).messages
    assert any("approximated to second order; measured error" in note for note in diagnose(posterior).notes)
    posterior.save(tmp_path / "fit.nc")
    assert approximation_of(load_posterior(tmp_path / "fit.nc")).typical == found.typical
    unmeasured = replace(posterior, edge_sums=())
    assert approximation_of(unmeasured) is None
    assert diagnose(unmeasured).light == "amber"


def replace(posterior, edge_sums):
    return Posterior(
        posterior.draws,
        posterior.features,
        posterior.names,
        statistics=posterior.statistics,
        info=posterior.info,
        edge_sums=edge_sums,
    )
