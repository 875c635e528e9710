"""Rivals: swaps between pairs that compete, alone over the table of all states, and how they are found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from comparing import problem_of, z_scores
from truth import enumerate_posterior

from broken import altered
from edgewise.data import read_data
from edgewise.draws import Draws
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.engines.rivals import (
    HOPELESS_SHARE,
    LOWEST_RATE,
    MOST_TRIED,
    SLOW_RATE,
    lingering,
    rival_pairs,
    rival_rates,
)
from edgewise.engines.states import check_state, new_chain
from edgewise.features import Features, sufficient_statistics
from edgewise.kernels import chain, swaps
from edgewise.kernels.compiling import kernel
from edgewise.kernels.state import empty_recorder
from edgewise.kernels.table import Table
from edgewise.priors import BetaInclusion, GammaSlab, Prior

P = 4
LIMIT = 4.5
exchange, visit_rivals = swaps.exchange, swaps.visit_rivals


@kernel
def one_way(number, rivals, rules, sums, chain, source, work):
    """Rivals whose second may take the place of the first, but not the other way round."""
    if chain.graph.place[rivals.pairs[number, 0]] < 0:
        return False
    return visit_rivals(number, rivals, rules, sums, chain, source, work)


@kernel
def favoured(leaving, arriving, i, j, k, log_choice, rules, sums, chain, source, work):
    """Swaps that are chosen more often in one direction, and do not make up for it."""
    unequal = 1.0 if arriving < leaving else -1.0
    return exchange(leaving, arriving, i, j, k, log_choice + unequal, rules, sums, chain, source, work)


def all_rivals(problem: Problem) -> np.ndarray:
    members = problem.features.members
    both = combinations(range(len(members)), 2)
    return np.array([(a, b) for a, b in both if len({*members[a], *members[b]}) == 3], np.int64)


def table_draws(problem: Problem, iterations: int) -> list[Draws]:
    """Draws of a chain that exchanges rivals and hardly decides indicators; means from the table."""
    engine = ParticleEngine(problem, {"warm_up": 40}, np.random.SeedSequence(3))
    engine.advance(40)
    engine._set_rivals(all_rivals(problem))
    engine._arrays["rival_rate"][:] = 0.7
    engine._arrays["scan"][:] *= 0.3
    engine._derive()
    engine._scan = engine._scan._replace(swaps=0, cold_flips=0, cold_moves=0)
    engine._source = Table(np.zeros((1, 2**P)))
    engine._renew()
    draws = engine.advance(iterations)
    counters, tallies = engine.counters(), engine._arrays["rival_tallies"]
    assert 0 < counters["swap_accepts"] < counters["swap_tries"] == tallies[0].sum()
    assert tallies[1].sum() == pytest.approx(counters["swap_accepts"], rel=0.05)
    return [draws]


OWN = Prior(BetaInclusion(2.0, 3.0), GammaSlab(4.0, 6.0), edge_probability={(0, 1): 0.8, (1, 2): 0.1})


@pytest.mark.parametrize("prior", [Prior(), OWN], ids=["shared", "own"])
def test_rivals_against_enumeration(prior, monkeypatch):
    problem = problem_of(P, prior, rows=60)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior)
    found = z_scores(table_draws(problem, 40_000), truth)
    assert max(found.values()) < LIMIT, found
    # Negative controls: lists that lead one way only, and a choice that is not made up for.
    for name, broken in (("visit_rivals", one_way), ("exchange", favoured)):
        with monkeypatch.context() as patch:
            patch.setattr(chain, "run_chain", altered(chain.run_chain, **{name: broken}))
            wrong = z_scores(table_draws(problem, 15_000), truth)
        assert wrong["inclusion"] > 1.5 * LIMIT, (name, wrong)


def test_rivals_share_a_variable_and_have_partners_that_are_correlated():
    members = np.array(list(combinations(range(5), 2)))
    index = np.full((5, 5), -1)
    index[members[:, 0], members[:, 1]] = index[members[:, 1], members[:, 0]] = range(10)
    correlation = np.eye(5)
    correlation[1, 2] = correlation[2, 1] = -0.6
    correlation[3, 4] = correlation[4, 3] = 0.1
    free = np.ones(10, bool)
    share = np.zeros(10)
    share[index[0, 1]] = 0.5
    # 1 and 2 stand in for each other: 01 competes with 02, and 3 with 4 is too weak to matter.
    assert rival_pairs(share, free, correlation, members, index).tolist() == [[index[0, 1], index[0, 2]]]
    share[:] = 0.5
    found = {tuple(row) for row in rival_pairs(share, free, correlation, members, index).tolist()}
    assert found == {(index[1, k], index[2, k]) for k in (3, 4)} | {(index[0, 1], index[0, 2])}
    free[index[0, 2]] = False
    assert [index[0, 1], index[0, 2]] not in rival_pairs(share, free, correlation, members, index).tolist()
    assert rival_pairs(np.zeros(10), free, correlation, members, index).shape == (0, 2)


def test_slow_indicators_are_told_from_fast_ones():
    rng = np.random.default_rng(1)
    fast = rng.random(4000) < 0.3
    slow = np.repeat(rng.random(40) < 0.3, 100)
    both = np.stack([fast, slow, np.zeros(4000, bool)])
    found = lingering(both.mean(axis=1), (both[:, 10:] & both[:, :-10]).mean(axis=1))
    assert abs(found[0]) < 0.06
    assert found[1] > 0.75
    assert found[2] == 0


def test_rates_follow_need_and_chance_within_a_budget():
    pairs = np.array([[0, 1], [1, 2], [2, 3]])
    share = np.array([0.5, 0.5, 0.9, 0.1])
    assert rival_rates(pairs, share, 1e6) == pytest.approx([LOWEST_RATE] * 3)
    rate = rival_rates(pairs, share, 1e6, np.array([1.0, 0, 0, 0]), np.array([[9, 9, 9.0], [1, 0, 1]]))
    assert rate == pytest.approx([SLOW_RATE, HOPELESS_SHARE * LOWEST_RATE, LOWEST_RATE])
    tight = rival_rates(pairs, share, 1.0)
    assert tight @ [0.5, 0.5, 0.82] == pytest.approx(MOST_TRIED)
    assert len(rival_rates(np.zeros((0, 2), int), share, 1.0, share)) == 0


def competing(rows: int = 120) -> np.ndarray:
    """Nine columns: 0 follows 1, and 1 has a twin, 2, that is wrong now and then."""
    rng = np.random.default_rng(2)
    values = rng.random((rows, 9)) < 0.5
    values[:, 2] = np.where(rng.random(rows) < 0.9, values[:, 1], values[:, 2])
    values[:, 0] = np.where(rng.random(rows) < 0.7, values[:, 1], values[:, 0])
    return values.astype(np.uint8)


def engine_of(rows: np.ndarray, prior: Prior | None = None, **settings: int) -> ParticleEngine:
    data = read_data(rows, constant="keep")
    features = Features.pairs(data.n_variables)
    statistics = sufficient_statistics(data, features)
    problem = Problem(features, statistics, (prior or Prior()).resolve(features))
    return ParticleEngine(problem, settings, np.random.SeedSequence(5))


def test_warm_up_finds_rivals_and_then_they_stay():
    engine = engine_of(competing(), warm_up=200)
    engine.advance(200)
    pairs, rate = engine._arrays["rivals"].copy(), engine._arrays["rival_rate"].copy()
    index = engine._rules.pair_index
    assert sorted((index[0, 1], index[0, 2])) in pairs.tolist()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (rate > 0).all()
    assert (rate <= SLOW_RATE).all()
    engine.advance(100)
    np.testing.assert_array_equal(engine._arrays["rivals"], pairs)
    np.testing.assert_array_equal(engine._arrays["rival_rate"], rate)
    forced = engine_of(competing(), Prior(forced=[(0, 1)], forbidden=[(0, 2)]), warm_up=200)
    forced.advance(200)
    assert not np.isin(forced._arrays["rivals"], [index[0, 1], index[0, 2]]).any()


def test_states_with_impossible_rivals_are_refused():
    engine = engine_of(competing(), warm_up=200)
    engine.advance(200)
    problem = engine.problem
    new = new_chain(ParticleEngine, problem, {"warm_up": 200})
    state = engine.state()
    check_state(new, problem, state, 0, 1)
    index = engine._rules.pair_index
    count = len(state["rivals"])
    apart = np.array([[index[0, 1], index[2, 3]]] * count)
    for change in (
        {"rivals": apart},
        {"rivals": np.full((count, 2), index[0, 1], np.int64)},
        {"rivals": np.full((count, 2), problem.features.n_cliques)},
        {"rivals": state["rivals"][1:]},
        {"rivals": state["rivals"][:, :1]},
        {"rival_rate": state["rival_rate"] + 1.0},
        {"rival_tallies": state["rival_tallies"][:, 1:]},
    ):
        with pytest.raises(ValueError):
            check_state(new, problem, state | {k: v.astype(state[k].dtype) for k, v in change.items()}, 0, 1)


def test_draws_never_leave_the_room_of_the_recorder():
    """However many candidates become active within one iteration."""
    engine = engine_of(competing(40), warm_up=2)
    engine.advance(2)
    count = engine.problem.features.n_cliques
    room = np.full(20 * count, -7, np.int32)
    recorder = empty_recorder(1000, 0, 9)._replace(
        indices=room[: 6 * count], values=np.full(20 * count, -7.0)[: 6 * count]
    )
    for start in ("empty", "full"):
        engine = ParticleEngine(engine.problem, {"warm_up": 2}, np.random.SeedSequence(1), start)
        engine.advance(2)
        recorder.filled[0] = 0
        done = engine._run(1000, 1, recorder)
        assert 5 <= done == recorder.filled[0] < 1000
        assert recorder.indptr[done] <= 6 * count
    assert (room[6 * count :] == -7).all()
