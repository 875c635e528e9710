"""What the particle engine measures in warm-up, where it starts, and that hard data do not upset it."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.engines.particle import FEWEST_PARTICLES, ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.model import MRF
from edgewise.priors import Prior


def engine_of(rows: np.ndarray, start: str = "default", **settings: float) -> ParticleEngine:
    data = read_data(rows, constant="keep")
    features = Features.pairs(data.n_variables)
    problem = Problem(features, sufficient_statistics(data, features), Prior().resolve(features))
    return ParticleEngine(problem, settings, np.random.SeedSequence(3), start)


def one_factor(p: int, rows: int, loyalty: float) -> np.ndarray:
    """Columns that all copy one coin, but for some mistakes."""
    rng = np.random.default_rng(1)
    coin = rng.random((rows, 1)) < 0.5
    return np.where(rng.random((rows, p)) < loyalty, coin, ~coin).astype(np.uint8)


def ring(p: int, coupling: float) -> MRF:
    matrix = np.zeros((p, p))
    for i in range(p):
        matrix[i, (i + 1) % p] = matrix[(i + 1) % p, i] = coupling
    return MRF.from_coupling(np.full(p, -coupling), matrix)


def test_a_fit_that_runs_away_is_no_start():
    rows = one_factor(40, 1000, 0.97)
    engine = engine_of(rows, warm_up=60)
    assert engine.active() <= 3 * 40
    engine.advance(60)
    draws = engine.advance(10)
    assert np.isfinite(draws.values).all()
    assert np.abs(draws.values).max() < 12
    # The start is the empty one, and a random graph comes to the same place: means over 40 draws have an
    # error of about 30 of 580 edges.
    empty = engine_of(rows, start="empty", warm_up=60)
    empty.advance(60)
    assert np.array_equal(empty.advance(10).values, draws.values)
    other = engine_of(rows, start="random", warm_up=60)
    other.advance(60)
    other.advance(20)
    assert other.advance(40).n_edges.mean() == pytest.approx(engine.advance(40).n_edges.mean(), rel=0.12)


def test_weights_stay_in_range():
    engine = engine_of(one_factor(12, 3000, 0.9), start="empty", warm_up=60, particles=512)
    for _ in range(12):
        engine.advance(5)
        weights = engine._source.w.astype(float)
        assert 1e-4 < weights.mean() < 1e4
        assert (weights > 0).all()


def test_mixing_time_tells_slow_models_from_fast_ones():
    times = []
    for coupling in (0.0, 3.5):
        rows = exact.sample(ring(10, coupling), 400, np.random.default_rng(2))
        engine = engine_of(rows, warm_up=60)
        engine.advance(60)
        times.append(engine._mixing_time())
    assert 1.0 <= times[0] < 1.4
    assert times[1] > 2.0


def test_directions_count_what_is_independent():
    rng = np.random.default_rng(3)
    apart = engine_of(
        (rng.random((400, 30)) < 0.4).astype(np.uint8), start="empty", warm_up=60, particles=2048
    )
    assert apart._directions() == pytest.approx(30, rel=0.05)
    # Particles that all follow one coin, two of them constant.
    together = engine_of(one_factor(12, 400, 0.9), start="empty", warm_up=60, particles=2048)
    states = one_factor(12, 2048, 0.97).T.astype(np.float32)
    states[:2] = 1.0
    together._source.X[:] = states
    assert 1.0 <= together._directions() < 2.0


def test_strongly_dependent_data_are_stirred_more():
    sites = []
    for loyalty in (0.6, 0.9):
        engine = engine_of(one_factor(14, 400, loyalty), warm_up=100)
        engine.advance(100)
        sites.append(engine.counters()["sites"])
    assert sites[1] > 1.5 * sites[0] >= 3


def test_candidates_never_met_are_cold():
    model = datasets.random_model(60, kind="tree", seed=1)
    engine = engine_of(exact.sample(model, 300, np.random.default_rng(1)), warm_up=200)
    for _ in range(4):
        engine.advance(50)
        scan = engine._scan
        assert len(scan.hot) < 900 < engine.problem.features.n_cliques
        assert scan.cold_moves >= 2 * 60
    draws = engine.advance(200)
    # What is nearly always active is hot, and cold ones come and go.
    active = np.bincount(draws.indices, minlength=len(scan.is_hot)) / len(draws)
    assert scan.is_hot[active > 0.5].all()
    assert active[~scan.is_hot].max() < 0.3
    assert engine.counters()["cold_accepts"] > 200


def test_particles_follow_the_tolerated_noise():
    rows = exact.sample(datasets.block_model(1), 1000, np.random.default_rng(5))
    found = {}
    for noise in (0.1, 0.3):
        engine = engine_of(rows, warm_up=200, noise=noise)
        engine.advance(200)
        engine.advance(100)
        found[noise] = engine.counters()
        assert found[noise]["noise"] < 2 * noise
    assert found[0.1]["particles"] > 1.8 * found[0.3]["particles"] > 1.8 * FEWEST_PARTICLES


def test_few_variables_get_more_particles():
    rows = exact.sample(ring(6, 0.5), 50, np.random.default_rng(2))
    assert engine_of(rows)._arrays["X"].shape[1] == 2048


def test_parameters_are_redrawn_in_an_order_that_knows_nothing_of_them():
    """In the order in which they became active, couplings of dependent data come out too strong."""
    from edgewise.kernels.compiling import exposed
    from edgewise.kernels.graph import shuffle_active

    shuffle = exposed(shuffle_active)
    engine = engine_of(exact.sample(ring(3, 2.0), 400, np.random.default_rng(2)), warm_up=40)
    engine.advance(40)
    graph = engine._chain.graph
    assert graph.counts[0] == 3
    orders = np.zeros((6000, 3), int)
    for order in orders:
        graph.listed[:3] = graph.place[graph.listed[:3]] = [0, 1, 2]
        shuffle(graph, engine._chain.stream)
        order[:] = graph.listed[:3]
        assert (graph.place[order] == [0, 1, 2]).all()
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    # And it is done: the last newcomer does not stay last.
    last = []
    for _ in range(30):
        graph.listed[:3] = graph.place[graph.listed[:3]] = [0, 1, 2]
        engine.advance(1)
        last.append(graph.listed[graph.counts[0] - 1])
    assert len(set(last)) == 3
