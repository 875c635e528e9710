"""The engine without an array over all pairs: its answers, and what it looks up, counts and keeps."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.engines import particle, sparse
from edgewise.engines.exact import ExactEngine
from edgewise.engines.listed import correlations, listed_fit, packed_rows
from edgewise.engines.protocol import Problem
from edgewise.engines.sparse import SparseParticleEngine
from edgewise.engines.states import check_state, new_chain
from edgewise.features import Features, sufficient_statistics
from edgewise.kernels import codes
from edgewise.kernels.pairs import sums_together
from edgewise.priors import Prior
from toy_engine import fingerprint

P = 6
PAIRS = Features.pairs(P)


def data_of(weights=None):
    truth = datasets.random_model(P, kind="tree", seed=1)
    return read_data(exact.sample(truth, 100, np.random.default_rng(1)), sample_weight=weights)


def problem(prior=None, weights=None, condensed=False):
    data = data_of(weights)
    resolved = (prior or Prior()).resolve(PAIRS)
    if condensed:
        resolved = resolved.condensed()
    return Problem(PAIRS, sufficient_statistics(data, PAIRS), resolved, data)


def frequency(engine, draws):
    engine.advance(engine.warm_up)
    found = engine.advance(draws)
    return np.bincount(found.indices, minlength=PAIRS.n_cliques) / len(found), found


@pytest.fixture(scope="module")
def truth():
    return frequency(ExactEngine(problem(), {}, np.random.SeedSequence(3)), 20_000)[0]


@pytest.fixture
def all_cold(monkeypatch):
    """No pair begins with a slot, and none is ever worth one."""
    monkeypatch.setattr(sparse, "LEAST_VISIBLE", 100.0)
    monkeypatch.setattr(particle, "ALL_HOT", 0)
    monkeypatch.setattr(particle, "LOWEST_RATE", 3.0)


SMALL = {"particles": 512, "sites": 6}
# Monte Carlo error of both chains and the noise of 512 particles; wrong odds of a cold birth are beyond it.
LIMIT = 0.05


def test_pairs_that_have_to_be_made_up_get_their_probabilities(truth, all_cold):
    engine = SparseParticleEngine(problem(), {**SMALL, "warm_up": 150}, np.random.SeedSequence(5))
    assert engine._arrays["used"][0] < PAIRS.n_cliques
    found, _ = frequency(engine, 2000)
    assert np.abs(found - truth).max() < LIMIT


def test_births_with_wrong_odds_would_be_seen(truth, all_cold):
    engine = SparseParticleEngine(problem(), {**SMALL, "warm_up": 150}, np.random.SeedSequence(5))
    bind = engine._bind

    def bind_wrong():
        bind()
        table = engine._rules.pair_index._replace(count=2 * PAIRS.n_cliques)
        engine._rules = engine._rules._replace(pair_index=table)

    engine._bind = bind_wrong
    engine._derive()
    found, _ = frequency(engine, 2000)
    assert np.abs(found - truth).max() > LIMIT


def test_special_pairs_keep_their_status_and_weights_count(all_cold):
    weights = np.random.default_rng(0).integers(0, 3, 100).astype(float)
    prior = Prior(forced=[(0, 3)], forbidden=[(4, 5)], edge_probability={(1, 2): 0.9})
    asked = problem(prior, weights, condensed=True)
    assert len(asked.prior.status) == 3
    assert asked.prior.n_common(PAIRS.n_cliques) == 12
    engine = SparseParticleEngine(asked, {**SMALL, "warm_up": 60}, np.random.SeedSequence(5))
    found, draws = frequency(engine, 100)
    assert found[PAIRS.index((0, 3))] == 1
    assert found[PAIRS.index((4, 5))] == 0
    sums = engine.edge_sums()
    assert np.all(np.diff(sums["candidates"]) > 0)
    kept = int(engine._arrays["used"][0])
    numbers = engine._numbers()
    assert np.array_equal(engine._arrays["sums"][0, :kept], asked.statistics.cliques[numbers])
    assert draws.indices.max() < PAIRS.n_cliques


def test_the_same_draws_however_divided_saved_and_grown(all_cold, monkeypatch):
    def chain():
        return SparseParticleEngine(problem(), {**SMALL, "warm_up": 60}, np.random.SeedSequence(7))

    monkeypatch.setattr(sparse, "ROOM", 1.0)
    whole = chain()
    _, reference = frequency(whole, 60)
    size = len(chain()._arrays["theta"])
    engine, pieces = chain(), []
    engine.advance(30)
    engine = SparseParticleEngine.restore(engine.problem, engine.settings.__dict__, engine.state())
    engine.advance(30)
    for _ in range(12):
        pieces.append(engine.advance(5))
        state = engine.state()
        new = new_chain(SparseParticleEngine, engine.problem, engine.settings.__dict__)
        check_state(new, engine.problem, state, sum(map(len, pieces)), 1)
        engine = SparseParticleEngine.restore(engine.problem, engine.settings.__dict__, state)
    assert fingerprint([type(pieces[0]).concatenate(pieces)]) == fingerprint([reference])
    assert len(engine._arrays["theta"]) >= size


@pytest.mark.parametrize(
    ("name", "value"),
    [("used", 10**6), ("members", 99), ("start", 5), ("status", 9), ("listed", 10**6), ("adjacent", 10**6)],
)
def test_forged_tables_are_refused(name, value, monkeypatch):
    monkeypatch.setattr(sparse, "LEAST_VISIBLE", 0.0)
    engine = SparseParticleEngine(problem(), {**SMALL, "warm_up": 60}, np.random.SeedSequence(7), "full")
    assert engine.active()
    assert engine._arrays["degree"][0]
    new = new_chain(SparseParticleEngine, engine.problem, engine.settings.__dict__)
    state = engine.state()
    check_state(new, engine.problem, state, 0, None)
    state[name].ravel()[0] = value
    with pytest.raises((ValueError, IndexError)):
        check_state(new, engine.problem, state, 0, None)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_counted_from_bits(weighted, rng):
    rows = rng.integers(0, 2, (131, 5))
    weights = rng.integers(0, 4, 131).astype(float) if weighted else None
    features = Features.pairs(5)
    data = read_data(rows, sample_weight=weights)
    words, share = packed_rows(data)
    sums = np.empty(features.n_cliques)
    sums_together(features.members.astype(np.int64), words, share, sums)
    assert np.array_equal(sums, sufficient_statistics(data, features).cliques)
    X = rows.T[:, :128].astype(np.float32)
    found = correlations(X, features.members.astype(np.int64))
    assert np.allclose(found, np.corrcoef(X)[np.triu_indices(5, 1)])


def test_the_rough_fit_finds_the_strong_couplings(rng):
    truth = datasets.random_model(12, kind="chain", seed=3, coupling_sd=0.8)
    rows = exact.sample(truth, 2000, rng)
    features = Features.pairs(12)
    sums = sufficient_statistics(read_data(rows), features)
    found, bias, states = listed_fit(2000.0, sums.singles, features.members, sums.cliques, 4.0, 256, rng)
    strong = {tuple(c) for c, w in zip(truth.cliques, truth.weights) if abs(w) > 1}
    assert strong <= {features.clique(int(k)) for k in np.flatnonzero(found)}
    assert np.abs(states.mean(axis=1) - rows.mean(axis=0)).max() < 0.15
    assert np.isfinite(bias).all()


def test_tallies_of_pairs_that_were_given_up_are_not_lost(all_cold):
    engine = SparseParticleEngine(problem(), {**SMALL, "warm_up": 60}, np.random.SeedSequence(9))
    engine.advance(60)
    engine.advance(50)
    tries = engine._arrays["tallies"][codes.TRIES].sum() + engine._arrays["rest"][0]
    assert tries >= 0.9 * 50 * P  # as many flips of cold pairs as variables in every iteration
