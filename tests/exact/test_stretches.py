"""Stretches decided by an oracle against enumeration of all graphs, for good and bad surrogates.

The negative controls break one rule each; the errors that they make show with the bad surrogate, which is far
enough off that every part of the decision matters.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from comparing import problem_of, z_scores
from truth import enumerate_posterior

from broken import altered
from edgewise import MRF, SpikeSlabMRF, exact
from edgewise.draws import Draws
from edgewise.engines.rounds import FIRST_LENIENCE, foreseen_spread, lengths_of_rounds
from edgewise.engines.stretch import EliminationEngine
from edgewise.engines.surrogate import SurrogateEngine
from edgewise.kernels import tasks
from edgewise.kernels.compiling import kernel, whole
from edgewise.kernels.oracles import AllStates
from edgewise.kernels.random import below
from edgewise.kernels.stretches import accept, log_weight, try_in_core, try_walk
from edgewise.kernels.surrogate import decide_one, decide_rivals, take_back
from edgewise.kernels.tasks import perform
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior
from edgewise.run import workers
from toy_engine import fingerprint

LIMIT = 4.5
SETTINGS = {"particles": 512, "warm_up": 40}
FREE = Prior()
FIXED = Prior(FixedInclusion(0.3), FixedSlab(1.5), NormalBias(3.0))
OWN = Prior(
    BetaInclusion(2.0, 3.0),
    GammaSlab(4.0, 6.0),
    edge_probability={(0, 1): 0.8, (1, 2): 0.1},
    forced=[(0, 2)],
    forbidden=[(1, 3)],
)
PAIRS = [(i, j) for i in range(4) for j in range(i + 1, 4)]
ALL = Prior(slab=GammaSlab(4.0, 6.0), forced=PAIRS)
PRIORS = {"free": FREE, "fixed": FIXED, "own odds": OWN}


def learn(problem, settings=None, seed=1, kind=EliminationEngine):
    """State of a chain at its last meeting, and what it has learned."""
    settings = settings or SETTINGS
    engine, knowledge = kind(problem, settings, np.random.SeedSequence([seed, 0])), None
    while True:
        engine.advance(engine.warm_up - engine.iteration)
        state = engine.state()
        knowledge = kind.pool(problem, settings, [state], knowledge)
        if knowledge["last"][0]:
            return state, knowledge
        engine = kind.restore(problem, settings, state, knowledge)


def spoilt(knowledge):
    """A bad surrogate: too narrow, and beside the mark."""
    return dict(knowledge) | {
        "precision": (1.5 * knowledge["precision"]).astype(np.float32),
        "pull": knowledge["pull"] + 0.7 * np.sqrt(np.diag(knowledge["precision"])),
        "bias_mean": knowledge["bias_mean"] + 0.1,
        "tilt": knowledge["tilt"] + 0.5,
    }


class TableEngine(EliminationEngine):
    """The same with log Z from the table of all states, which is sooner compiled in a broken version."""

    def _oracle(self):
        states = 1 << self.problem.features.n_variables
        return AllStates(np.zeros(states), np.zeros(states))


class Case:
    """A problem of four variables, its truth, and chains on a good and a bad surrogate."""

    def __init__(self, prior: Prior, rows: int = 60) -> None:
        self.problem = problem_of(4, prior, rows=rows)
        # With less, the truth's own error shows in the second moments of the biases.
        self.truth = enumerate_posterior(
            self.problem.features, self.problem.statistics, self.problem.prior, target_error=0.0025
        )
        self.state, self.good = learn(self.problem)
        shifted = self.good["pull"] + 0.7 * np.sqrt(np.diag(self.good["precision"]))
        self.surrogates = {
            "good": self.good,
            "bad": spoilt(self.good),
            "shifted": dict(self.good) | {"pull": shifted},
        }

    def chain(self, which: str, kind=EliminationEngine, **changes):
        engine = kind.restore(self.problem, SETTINGS, self.state, self.surrogates[which])
        engine._decider = engine._decider._replace(**changes)
        if "inner" in changes:
            engine._weigh()
        return engine

    def scores(self, draws: int, which: str, kind=TableEngine, **changes) -> dict[str, float]:
        engine = self.chain(which, kind, **changes)
        engine.advance(200)
        return z_scores([engine.advance(draws)], self.truth)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {name: Case(prior) for name, prior in PRIORS.items()}


@pytest.mark.parametrize("which", ["good", "bad"])
@pytest.mark.parametrize("name", PRIORS)
def test_against_enumeration(cases, name, which):
    found = cases[name].scores(60_000 if which == "bad" else 30_000, which, EliminationEngine)
    assert max(found.values()) < LIMIT, found
    engine = cases[name].chain(which)
    engine.advance(2000)
    counters = engine.counters()
    assert counters["stretches"] == counters["shorts"] == 4000
    assert counters["stretches_accepted"] < counters["shorts_accepted"] < 4000
    rate = counters["stretches_accepted"] / counters["stretches"]
    assert (0.05 < rate < 0.6) if which == "bad" else (0.3 < rate < 1), rate
    assert 0 < counters["walks_accepted"] < counters["walks"] < 800
    assert counters["too_wide"] == 0
    sums = engine.edge_sums()
    free = sums["tries"] > 0
    assert (sums["tries"][free] == 2000).all()
    np.testing.assert_allclose((sums["inclusion"] / 2000)[free], cases[name].truth.inclusion[free], atol=0.15)


def test_triples():
    problem = problem_of(3, FREE, 3, rows=60)
    # With less, the truth's own error shows in the second moments of the biases.
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior, target_error=0.002)
    state, knowledge = learn(problem)
    engine = EliminationEngine.restore(problem, SETTINGS, state, knowledge)
    # The tails are long with so few rows, and the chain returns from there seldom.
    found = z_scores([engine.advance(120_000)], truth)
    assert max(found.values()) < LIMIT, found


# Every other candidate is outside the core, so that what it does not know is much. With so few rows the tails
# are long, and only walks return from there soon.
TOURS = {"core": np.arange(6) % 2 == 0, "inner": 3, "repeats": 1, "walks": 0.5}


def tours(case: Case) -> dict:
    return TOURS | {"core": TOURS["core"][: len(case.good["candidates"])]}


@pytest.mark.parametrize("which", ["good", "bad"])
@pytest.mark.parametrize("name", PRIORS)
def test_tours_against_enumeration(cases, name, which):
    case = cases[name]
    # Long, because a bad surrogate holds a chain in the tails now and then.
    found = case.scores(240_000 if which == "bad" else 30_000, which, EliminationEngine, **tours(case))
    assert max(found.values()) < LIMIT, found
    engine = case.chain(which, **tours(case))
    engine.advance(1000)
    counters = engine.counters()
    assert counters["stretches"] == 1000
    assert counters["inner"] == 3000
    assert 0 < counters["inner_accepted"] < 3000
    assert 0 < counters["stretches_accepted"] < 1000
    assert counters["shorts"] == 0


def test_a_core_of_everything_knows_all(cases):
    """Then nothing is left for the whole graph to decide."""
    case = cases["free"]
    everything = np.ones(len(case.good["candidates"]), bool)
    engine = case.chain("bad", core=everything, inner=3, repeats=1, walks=0.3)
    engine.advance(500)
    counters = engine.counters()
    assert counters["stretches_accepted"] == counters["stretches"] == 500
    assert counters["spread"] < 1e-6
    assert counters["walks_accepted"] > 0


@kernel
def no_stretch(rules, sums, chain, surrogate, oracle, decider):
    pass


def test_walks_alone(monkeypatch):
    """With every pair forced, walks of single parameters reach all of the posterior."""
    case = Case(ALL)
    monkeypatch.setattr(tasks, "perform", altered(perform, try_stretch=no_stretch))
    engine = case.chain("bad", TableEngine, walks=1.0, repeats=20, short=0)
    engine.advance(200)
    draws = engine.advance(20_000)
    counters = engine.counters()
    assert counters["stretches"] == 0
    assert 0.1 < counters["walks_accepted"] / counters["walks"] < 0.7
    found = z_scores([draws], case.truth)
    assert max(found.values()) < LIMIT, found


# Negative controls.


@kernel
def stale_walk(rules, sums, chain, surrogate, oracle, decider):
    """A walk after which the weight is that of the state before."""
    weight = decider.point[0]
    try_walk(rules, sums, chain, surrogate, oracle, decider)
    decider.point[0] = weight


@kernel
def ordered(steps, status, hyper, prior, surrogate, walker, stream):
    """One sweep over the positions in their order."""
    for k in range(walker.theta.shape[0]):
        decide_one(k, status, hyper, prior, surrogate, walker, stream)
    return 0


@kernel
def one_way(steps, status, hyper, prior, surrogate, walker, stream):
    """An active position and the one after it decided jointly: the choice looks at the state."""
    rivals = whole(6)
    n = walker.theta.shape[0]
    for _ in range(steps):
        k = below(stream, n)
        if walker.counts[0] > 0:
            k = walker.listed[below(stream, walker.counts[0])]
        rivals[0] = k
        rivals[1] = (k + 1) % n
        for x in range(2, 6):
            rivals[x] = -1
        decide_rivals(rivals, status, hyper, prior, surrogate, walker, stream)
    return 0


@kernel
def both_ways(steps, status, hyper, prior, surrogate, walker, stream):
    """The same with a choice that does not look."""
    rivals = whole(6)
    n = walker.theta.shape[0]
    for _ in range(steps):
        k = below(stream, n)
        rivals[0] = k
        rivals[1] = (k + 1) % n
        for x in range(2, 6):
            rivals[x] = -1
        decide_rivals(rivals, status, hyper, prior, surrogate, walker, stream)
    return 0


@kernel
def floored(sums, surrogate, walker, log_z, energy, prior):
    """w with a diagonal that the stretch does not have."""
    total = log_weight(sums, surrogate, walker, log_z, energy, prior)
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        total -= 0.5 * 0.2 * surrogate.precision[k, k] * walker.theta[k] * walker.theta[k]
    return total


@kernel
def forgetful(which, status, surrogate, walker):
    """A rejection that keeps the biases of what was rejected."""
    for i in range(walker.bias.shape[0]):
        walker.bias_before[which, i] = walker.bias[i]
    take_back(which, status, surrogate, walker)


@kernel
def held_biases(keep, residual, surrogate, walker, stream):
    """Biases that stay where they were while their mean moves with the parameters."""
    for i in range(walker.bias.shape[0]):
        walker.bias[i] = walker.bias_before[0, i]


@kernel
def all_known(energy, known, start, rules, sums, chain, surrogate, oracle, decider):
    """A tour decided by the whole change of w, the core's part of which has been decided already."""
    return accept(energy, 0.0, start, rules, sums, chain, surrogate, oracle, decider)


@kernel
def core_alone(rules, sums, chain, surrogate, oracle, decider):
    """Stretches decided by the core, and nothing by the whole graph."""
    for _ in range(decider.inner):
        try_in_core(rules, sums, chain, surrogate, oracle, decider)


# What is replaced, and the case, surrogate and settings that show it best.
BROKEN = {
    "stale weight": ({"try_walk": stale_walk}, "free", "shifted", {"walks": 1.0, "short": 0}),
    "ordered sweep": ({"stretch": ordered}, "free", "shifted", {}),
    "one-way choice": ({"stretch": one_way}, "fixed", "good", {}),
    "floor in one place": ({"log_weight": floored}, "fixed", "good", {}),
    "wrong complement of held biases": ({"stir_biases": held_biases}, "fixed", "good", {}),
    "the core decides twice": ({"accept": all_known}, "fixed", "bad", TOURS),
    "tours decided by the core alone": ({"try_tour": core_alone}, "fixed", "bad", TOURS),
    "biases not taken back": ({"take_back": forgetful}, "fixed", "good", {}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_it_is_noticed(cases, name, monkeypatch):
    replaced, case, which, changes = BROKEN[name]
    long = {"stale weight": 400_000, "ordered sweep": 120_000, "the core decides twice": 200_000}
    draws = long.get(name, 20_000)
    right = cases[case].scores(20_000, which, **changes)
    assert max(right.values()) < LIMIT, right
    monkeypatch.setattr(tasks, "perform", altered(perform, **replaced))
    wrong = cases[case].scores(draws, which, **changes)
    assert max(wrong.values()) > 2 * LIMIT, wrong


def test_a_choice_that_does_not_look_is_right(cases, monkeypatch):
    """What the one-way choice lacks is all that is wrong with it."""
    monkeypatch.setattr(tasks, "perform", altered(perform, stretch=both_ways))
    found = cases["fixed"].scores(40_000, "good")
    assert max(found.values()) < LIMIT, found


def test_the_surrogate_undecided(cases):
    """Stretches taken at their word are as good as the surrogate: near the truth, or far from it."""
    problem, longer = cases["fixed"].problem, SETTINGS | {"warm_up": 320}
    state, knowledge = learn(problem, longer)
    good = SurrogateEngine.restore(problem, longer, state, knowledge)
    drawn = [good.advance(20_000)]
    near = z_scores(drawn, cases["fixed"].truth, 0.06)
    assert max(near["inclusion"], near["mean"]) < LIMIT, near
    # In posterior standard deviations; with sixty rows second order is off by more in the biases.
    assert z_scores(drawn, cases["fixed"].truth, 0.13)["bias"] < LIMIT
    assert good.counters()["stretches_accepted"] == good.counters()["stretches"] == 40_000
    assert good.counters()["walks"] == 0
    far = cases["fixed"].scores(20_000, "bad", SurrogateEngine)
    assert far["inclusion"] > 2 * LIMIT, far


def test_a_chain_leaves_a_graph_that_is_too_wide():
    # With triples, no variable is held.
    problem = problem_of(4, FIXED, order=3, rows=60)
    settings = SETTINGS | {"cells": 10}
    state, knowledge = learn(problem, settings, seed=0)
    assert knowledge["too_wide"][0] > 0
    assert knowledge["hand_over"][0]
    # Deciding nevertheless, it leaves the graph that it cannot weigh.
    engine = EliminationEngine.restore(problem, settings, state, knowledge | {"lenience": np.array([1.0])})
    engine._weigh()
    draws = engine.advance(500)
    # Ten cells have room for one pair.
    assert (draws.n_edges[100:] <= 1).all()
    assert 0 < engine.counters()["stretches_accepted"] < 1000
    assert np.isfinite(engine.counters()["spread"])


# A round that made things worse.


def far_off(problem, lenience):
    """Largest parameter in a lesson on a first surrogate that is many standard deviations off."""
    engine = EliminationEngine(problem, SETTINGS, np.random.SeedSequence(5))
    engine.advance(engine.warm_up - engine.iteration)
    known = EliminationEngine.pool(problem, SETTINGS, [engine.state()], None)
    assert known["lenience"][0] == FIRST_LENIENCE
    wrong = known["pull"] + 40 * np.sqrt(np.diag(known["precision"]))
    known |= {"pull": wrong, "lenience": np.array([lenience])}
    engine = EliminationEngine.restore(problem, SETTINGS, engine.state(), known)
    engine.advance(engine.warm_up - engine.iteration)
    return np.abs(engine.state()["moments.phi"]).max()


def test_early_rounds_do_not_run_away():
    """A bad first surrogate leads chains and particles away from the data if it is taken at its word."""
    problem = problem_of(4, FREE, rows=200)
    assert far_off(problem, np.inf) > 10
    assert far_off(problem, FIRST_LENIENCE) < 5


def test_a_round_in_which_nothing_moved_is_followed_by_a_more_lenient_one():
    problem = problem_of(4, FREE)
    engine = EliminationEngine(problem, SETTINGS, np.random.SeedSequence(3))
    known = None
    for _ in range(2):
        engine.advance(engine.warm_up - engine.iteration)
        state = engine.state()
        if known is not None:
            state = dict(state) | {"moments.phi": np.ones_like(state["moments.phi"])}
        known = EliminationEngine.pool(problem, SETTINGS, [state], known)
        engine = EliminationEngine.restore(problem, SETTINGS, state, known)
    assert known["lenience"][0] == 4 * FIRST_LENIENCE
    assert not known["last"][0]


def test_a_round_that_made_things_worse_is_undone():
    """The particles of the last round are replaced by others; what they would teach is not taken."""
    problem = problem_of(4, FREE)
    engine, before = EliminationEngine(problem, SETTINGS, np.random.SeedSequence(3)), None
    while before is None or before["lenience"][0] > 1.0:
        engine.advance(engine.warm_up - engine.iteration)
        before = EliminationEngine.pool(problem, SETTINGS, [engine.state()], before)
        engine = EliminationEngine.restore(problem, SETTINGS, engine.state(), before)
    engine.advance(engine.warm_up - engine.iteration)
    state = engine.state()
    after = EliminationEngine.pool(problem, SETTINGS, [state], before)
    assert after["undone"][0] == 0
    assert not np.array_equal(after["pull"], before["pull"])
    wrong = dict(state) | {"moments.means": state["moments.means"] // 2}
    after = EliminationEngine.pool(problem, SETTINGS, [wrong], before)
    assert after["undone"][0] == 1
    assert np.array_equal(after["pull"], before["pull"])
    assert np.array_equal(after["precision"], before["precision"])


def test_the_spread_foreseen_is_that_of_the_weights(cases):
    """What w will be under another surrogate, from the two densities and w under the present one (10.11)."""
    case = cases["own odds"]
    other = case.surrogates["bad"]
    engine, weights, expected, states = case.chain("good"), [], [], []
    for _ in range(30):
        engine.advance(1)
        there = EliminationEngine.restore(case.problem, SETTINGS, engine.state(), other)
        there._weigh()
        weights.append(engine._decider.point[0])
        expected.append(there._decider.point[0])
        states.append(np.concatenate([engine._chain.bias, engine._chain.theta[engine._candidates]]))
    part = {"filled": np.array([30, 0, 30]), "phi": np.array(states), "weights": np.array(weights)}
    assert foreseen_spread(other, case.good, [part]) == pytest.approx(np.std(expected), rel=1e-4)


# The same draws, however they are asked for.


def test_nothing_in_play():
    problem = problem_of(4, Prior(forbidden=PAIRS), rows=60)
    truth = enumerate_posterior(problem.features, problem.statistics, problem.prior, target_error=0.0025)
    state, knowledge = learn(problem)
    engine = EliminationEngine.restore(problem, SETTINGS, state, knowledge)
    found = z_scores([engine.advance(20_000)], truth)
    assert found["bias"] < LIMIT, found


def equal(one: Draws, other: Draws) -> bool:
    return fingerprint([one]) == fingerprint([other])


@pytest.mark.parametrize("kind", [EliminationEngine, SurrogateEngine], ids=["exact", "surrogate"])
def test_blocks_and_restoring_change_nothing(kind):
    problem = problem_of(5, FREE, rows=60)
    settings = SETTINGS | {"warm_up": 20}

    def whole_run(pieces: int, travel: bool) -> Draws:
        knowledge = None
        engines = [kind(problem, settings, np.random.SeedSequence([3, chain])) for chain in range(2)]
        while engines[0].meeting is not None:
            for chain, engine in enumerate(engines):
                end = engine.warm_up
                while engine.iteration < end:
                    engine.advance(min(pieces, end - engine.iteration))
                    if travel:
                        engine = kind.restore(problem, settings, engine.state(), knowledge)
                engines[chain] = engine
            states = [engine.state() for engine in engines]
            knowledge = kind.pool(problem, settings, states, knowledge)
            engines = [kind.restore(problem, settings, state, knowledge) for state in states]
        draws = []
        engine = engines[1]
        for block in [300] if pieces > 100 else [1, 7, 100, 150, 42]:
            draws.append(engine.advance(block, 2))
            if travel:
                engine = kind.restore(problem, settings, engine.state(), knowledge)
        return Draws.concatenate(draws)

    reference = whole_run(1000, False)
    assert len(reference.indptr) == 151
    assert equal(whole_run(7, False), reference)
    assert equal(whole_run(3, True), reference)


def test_a_meeting_is_not_crossed():
    engine = EliminationEngine(problem_of(3, FREE), SETTINGS, np.random.SeedSequence(1))
    assert engine.meeting == engine.warm_up == lengths_of_rounds(40, 0)[-1]
    with pytest.raises(ValueError, match="must not cross a meeting"):
        engine.advance(engine.warm_up + 1)


def chain_graph_rows(p: int = 24, rows: int = 200) -> np.ndarray:
    pairs = [(i, i + 1) for i in range(p - 1)]
    model = MRF(np.full(p, -0.5), pairs, np.full(p - 1, 1.2))
    return exact.sample(model, rows, np.random.default_rng(5))


class Stop(Exception):
    pass


def test_fits_beyond_the_table_of_states(tmp_path, monkeypatch):
    """Threads, one worker, and a run that was interrupted twice, once while it was learning."""
    rows = chain_graph_rows()

    def fit(**options):
        chosen = {
            "engine": "exact", "chains": 2, "min_draws": 50, "max_draws": 50, "target_ess": None, "thin": 1,
            "settings": {"warm_up": 20, "particles": 256}, "random_state": 11, "progress": False,
            "checkpoint_every": 0,
        }  # fmt: skip
        return SpikeSlabMRF(**{**chosen, **options}).fit(rows)

    reference = fingerprint(fit(n_jobs=1).posterior_.draws)
    assert fingerprint(fit(n_jobs=2).posterior_.draws) == reference
    assert fingerprint(fit(n_jobs=1, random_state=12).posterior_.draws) != reference

    # The first round of this warm-up ends at 10, the second and last at 30.
    learn = EliminationEngine._learn

    def interrupted(self, draws):
        if self.iteration > 24:
            raise Stop
        # So slowly that what they know after the first round is saved before they are stopped.
        time.sleep(0.05 if self.iteration > 9 else 0.0)
        learn(self, draws)

    path = tmp_path / "c"
    monkeypatch.setattr(workers, "SLICE_SECONDS", 1e-9)
    monkeypatch.setattr(EliminationEngine, "_learn", interrupted)
    with pytest.raises(Stop):
        fit(n_jobs=2, checkpoint=path)
    monkeypatch.undo()
    part = fit(n_jobs=2, checkpoint=path, min_draws=20, max_draws=20)
    assert 10 < part.posterior_.info["resumed_from_iteration"] < 30
    again = fit(n_jobs=2, checkpoint=path)
    assert again.posterior_.info["resumed_from_iteration"] == 50
    assert fingerprint(again.posterior_.draws) == reference
