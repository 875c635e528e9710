"""Blank cells drawn in the chain, against the likelihood of the answers summed over all fillings.

All graphs are enumerated. Each control breaks one rule of the drawing, and the same comparison must show it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import z_score, z_scores
from scipy import stats
from truth import Truth, enumerate_posterior

from broken import Exposed, altered
from edgewise import datasets, exact
from edgewise.blanks import Patterns, filled_statistics, patterns_of, statistics_of
from edgewise.data import read_data
from edgewise.data.table import BinaryData, Data, LevelData
from edgewise.engines import blanks as keeping
from edgewise.engines.choose import ELIMINATION, blank_share, choose, resolve
from edgewise.engines.exact import ExactEngine
from edgewise.engines.level_surrogate import LevelSurrogateEngine
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.engines.stretch import EliminationEngine
from edgewise.engines.surrogate import SurrogateEngine
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.fitting import answer, pose
from edgewise.kernels import chain as chains
from edgewise.kernels import random, tasks
from edgewise.kernels.compiling import kernel
from edgewise.kernels.oracles import AllStates
from edgewise.priors import FixedInclusion, FixedSlab, NormalBias, Prior
from edgewise.run.options import RunOptions
from edgewise.scales import Scale, Scales
from toy_engine import fingerprint

LIMIT = 4.5
FIXED = Prior(FixedInclusion(0.3), FixedSlab(1.5), NormalBias(3.0))
THREE = ("low", "middle", "high")


def table(values: np.ndarray, blank: np.ndarray, scales: Scales | None = None, **more: Any) -> Data:
    """A table with these cells blank."""
    n, p = values.shape
    values = np.where(blank, 0, values).astype(np.uint8)
    shared = {
        "names": tuple(f"x{i}" for i in range(p)), "n_rows": n, "weights": None,
        "unknown": np.packbits(blank.T, axis=1), **more,
    }  # fmt: skip
    if scales is None:
        return BinaryData(packed=np.packbits(values.T, axis=1), levels=((0, 1),) * p, **shared)
    levels = tuple(scale.labels for scale in scales)
    return LevelData(codes=np.ascontiguousarray(values.T), scales=scales, levels=levels, **shared)


def blanks_of(shape: tuple[int, int], share: float, seed: int = 4) -> np.ndarray:
    blank = np.random.default_rng(seed).random(shape) < share
    blank[blank.all(axis=1)] = False
    return blank


def problem_of(data: Data, prior: Prior, order: int = 2) -> Problem:
    features = Features.up_to(data.n_variables, order)
    scales = None if data.scales.all_binary else data.scales
    return Problem(features, statistics_of(data, features), prior.resolve(features), data, scales)


def two_levels(p: int, prior: Prior, order: int = 2, rows: int = 60, weights: bool = False) -> Problem:
    """Rows of a ring, three cells of ten blank."""
    model = datasets.random_model(p, 2.0, kind="ring", seed=4, coupling_sd=0.8, field_sd=0.4)
    values = exact.sample(model, rows, np.random.default_rng(4))
    blank = blanks_of(values.shape, 0.3)
    weight = np.random.default_rng(5).integers(1, 3, rows).astype(float) if weights else None
    return problem_of(table(values, blank, weights=weight), prior, order)


def three_levels(*kinds: str, rows: int = 60) -> Problem:
    """The same with three levels of these kinds."""
    scales = Scales(tuple(Scale(kind, THREE, (), 1 if kind == "blume-capel" else None) for kind in kinds))
    rng = np.random.default_rng(3)
    values = rng.integers(0, 3, (rows, len(kinds)))
    values[:, 1] = np.where(rng.random(rows) < 0.5, values[:, 0], values[:, 1])
    return problem_of(table(values, blanks_of(values.shape, 0.3), scales), Prior(bias=NormalBias(3.0)))


def truth_of(problem: Problem, **options: Any) -> Truth:
    """All graphs, the rows with blanks summed over all that fits their answers."""
    data, features = problem.rows, problem.features
    whole = ~data.unknown_cells().any(axis=1)
    values = data.values()[whole]
    weights = np.ones(whole.sum()) if data.weights is None else data.weights[whole]
    complete = table(values, np.zeros(values.shape, bool), problem.scales)
    statistics = filled_statistics(replace(complete, weights=weights), features, mean=False)
    statistics = Statistics(data.total, statistics.singles, statistics.cliques)
    partial = [(int(n), tuple(row)) for n, row in zip(problem.blanks.count, problem.blanks.known)]
    return enumerate_posterior(
        features, statistics, problem.prior, scales=problem.scales, partial=partial, **options
    )


class TableEngine(EliminationEngine):
    """Stretches with log Z from the table of all states, which is sooner compiled."""

    takes_blanks = True

    def _oracle(self):
        states = 1 << self.problem.features.n_variables
        return AllStates(np.zeros(states), np.zeros(states))


def drawn(kind: type, problem: Problem, iterations: int, **settings: Any):
    """A chain after its warm-up and so many draws, and these."""
    engine, knowledge = kind(problem, settings, np.random.SeedSequence(1)), None
    while getattr(engine, "meeting", None) is not None:
        engine.advance(engine.warm_up - engine.iteration)
        knowledge = kind.pool(problem, settings, [engine.state()], knowledge)
        engine = kind.restore(problem, settings, engine.state(), knowledge)
    engine.advance(engine.warm_up - engine.iteration)
    return engine, engine.advance(iterations)


def chances(engine) -> np.ndarray:
    """P(level) of every blank cell of every pattern."""
    patterns, levels = engine.problem.blanks, engine.problem.scales_or_binary.levels
    found = engine._arrays["blanks.tracks"][0] / engine._arrays["blanks.ticks"][0]
    return np.concatenate([found[k, : levels[i]] for k, i in enumerate(patterns.variables)])


def scores(kind: type, problem: Problem, iterations: int, truth: Truth, **settings: Any) -> dict[str, float]:
    engine, draws = drawn(kind, problem, iterations, **settings)
    found = z_scores([draws], truth)
    assert abs(chances(engine) - truth.cells).max() < 0.02
    return found


@pytest.fixture(scope="module")
def small() -> tuple[Problem, Truth]:
    problem = two_levels(3, Prior(), rows=40)
    return problem, truth_of(problem)


@pytest.fixture(scope="module")
def free() -> tuple[Problem, Truth]:
    problem = two_levels(4, Prior())
    return problem, truth_of(problem)


@pytest.fixture(params=["listed", "in turn"])
def way(request, monkeypatch) -> str:
    """Fillings listed, or cells drawn one after the other."""
    if request.param == "in turn":
        monkeypatch.setattr(keeping, "MOST_WAYS", 1)
    return request.param


CASES = {
    "p3": lambda: two_levels(3, Prior(), rows=40),
    "p3 triple": lambda: two_levels(3, FIXED, 3, 40),
    "p4 weighted": lambda: two_levels(4, FIXED, weights=True),
}
LONG = pytest.mark.slow


@pytest.mark.parametrize(
    "name", ["p3", pytest.param("p3 triple", marks=LONG), pytest.param("p4 weighted", marks=LONG)]
)
def test_two_levels(name, way):
    problem = CASES[name]()
    found = scores(ExactEngine, problem, 30_000, truth_of(problem))
    assert max(found.values()) < LIMIT, found


@pytest.mark.slow
def test_four_variables_by_lines_and_by_stretches(free, way):
    problem, truth = free
    found = scores(ExactEngine, problem, 30_000, truth)
    assert max(found.values()) < LIMIT, found
    found = scores(TableEngine, problem, 20_000, truth, particles=512, warm_up=40)
    assert max(found.values()) < LIMIT, found


@pytest.mark.slow
def test_particles_and_the_surrogate_alone(free):
    """Neither is exact: what is allowed is what they are off without blanks."""
    problem, truth = free
    engine, draws = drawn(ParticleEngine, problem, 4000)
    found = z_scores([draws], truth, 0.02)
    assert max(found.values()) < LIMIT, found
    assert abs(chances(engine) - truth.cells).max() < 0.02
    engine, draws = drawn(SurrogateEngine, problem, 4000, particles=2048)
    share = np.array([(draws.column(a) != 0).mean() for a in range(6)])
    assert abs(share - truth.inclusion).max() < 0.08
    assert abs(chances(engine) - truth.cells).max() < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("ordinal",) * 3, ("nominal", "ordinal", "blume-capel")], ids="-".join)
def test_three_levels(kinds, way):
    problem = three_levels(*kinds)
    truth = truth_of(problem, target_error=0.01)
    engine, draws = drawn(ExactEngine, problem, 8000)
    for a, expected in enumerate(truth.inclusion):
        assert z_score([draws.column(a) != 0], expected, 2 * truth.inclusion_error[a]) < LIMIT
    for i, (mean, sd) in enumerate(zip(truth.bias_mean, truth.bias_sd)):
        assert z_score([draws.biases[:, i]], mean, 0.03 * sd) < LIMIT
    assert abs(chances(engine) - truth.cells).max() < 0.02


@pytest.mark.slow
def test_the_surrogate_with_levels():
    problem = three_levels("ordinal", "nominal", "ordinal", rows=150)
    truth = truth_of(problem, target_error=0.01)
    engine, draws = drawn(LevelSurrogateEngine, problem, 2000)
    share = np.array([(draws.column(a) != 0).mean() for a in range(3)])
    assert abs(share - truth.inclusion).max() < 0.08
    assert abs(chances(engine) - truth.cells).max() < 0.05


@kernel
def by_margins(i, level, blanks, chain):
    """The margin of the variable, whatever the others of the row are."""
    return blanks.thresholds[i, level] - blanks.thresholds[i, blanks.now[i]]


@kernel
def add_nothing(g, n, blanks, chain):
    """Drawn, but the sums stay those of the known cells."""


@kernel
def forget(blanks, sums, surrogate, oracle, decider, prior):
    """Keep the weight that the state had with the sums before."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "replacement"), [("change_of", by_margins), ("add_row", add_nothing)])
def test_cells_drawn_from_margins_and_sums_that_stay_are_noticed(free, monkeypatch, name, replacement):
    problem, truth = free
    monkeypatch.setattr(chains, "run_chain", altered(chains.run_chain, **{name: replacement}))
    _, draws = drawn(ExactEngine, problem, 10_000)
    assert max(z_scores([draws], truth).values()) > 2 * LIMIT


def test_blanks_drawn_once(small):
    """Control: fillings that stay what they were at first."""
    problem, truth = small
    engine = ExactEngine(problem, None, np.random.SeedSequence(1))
    engine.advance(engine.warm_up)
    state = engine.state()
    frozen = Problem(
        problem.features,
        Statistics(problem.statistics.n_rows, state["singles"][0], state["sums"][0]),
        problem.prior,
    )
    _, draws = drawn(ExactEngine, frozen, 10_000)
    assert max(z_scores([draws], truth).values()) > 2 * LIMIT


@pytest.mark.slow
def test_a_weight_of_other_sums_is_noticed(free, monkeypatch):
    problem, truth = free
    monkeypatch.setattr(tasks, "perform", altered(tasks.perform, weigh_sums=forget))
    _, draws = drawn(TableEngine, problem, 10_000, particles=512, warm_up=40)
    assert max(z_scores([draws], truth).values()) > 2 * LIMIT


@pytest.mark.parametrize(
    "kind",
    [ExactEngine, pytest.param(ParticleEngine, marks=LONG), pytest.param(TableEngine, marks=LONG)],
)
def test_same_draws_however_divided(kind, way):
    problem = two_levels(3, Prior(), rows=40)
    settings = {"particles": 128, "warm_up": 20} if kind is TableEngine else {"warm_up": 60}
    engine, whole = drawn(kind, problem, 40, **settings)
    assert "blanks.filled" in engine.state()
    again, first = drawn(kind, problem, 15, **settings)
    more = {"knowledge": again._knowledge} if kind is TableEngine else {}
    restored = kind.restore(problem, settings, again.state(), **more)
    rest = restored.advance(25)
    assert fingerprint([whole]) == fingerprint([type(whole).concatenate([first, rest])])
    np.testing.assert_array_equal(chances(engine), chances(restored))


def test_sums_are_those_of_the_filled_rows(way):
    """In the end the sums belong to some complete table, and keep what is known."""
    for problem in (two_levels(4, Prior()), three_levels("nominal", "ordinal", "blume-capel")):
        engine, _ = drawn(ExactEngine, problem, 20)
        blanks = engine._blanks
        known = problem.known_sums
        more = blanks.singles - known.singles
        features = problem.features
        if problem.all_binary:
            n_blank = problem.rows.unknown_cells().sum(axis=0)
            assert ((more >= 0) & (more <= n_blank) & (more % 1 == 0)).all()
            assert (blanks.cliques - known.cliques >= 0).all()
            assert (blanks.cliques <= blanks.singles[features.members].min(axis=1)).all()
        if way == "in turn":
            rows = problem.rows.values().astype(int)
            patterns = problem.blanks
            for g in range(len(patterns.count)):
                own = patterns.variables[patterns.start[g] : patterns.start[g + 1]]
                for n, row in enumerate(patterns.rows[patterns.pattern == g]):
                    begin = blanks.first[g] + n * len(own)
                    rows[row, own] = blanks.filled[begin : begin + len(own)]
            full = table(rows, np.zeros(rows.shape, bool), problem.scales)
            expected = filled_statistics(full, features, mean=False)
            np.testing.assert_allclose(blanks.singles, expected.singles, atol=1e-9)
            np.testing.assert_allclose(blanks.cliques, expected.cliques, atol=1e-9)


@pytest.mark.slow
def test_weights_of_a_state_move_alike(free):
    """(12.3): other sums change w by the same amount everywhere."""
    problem, _ = free
    engine, _ = drawn(TableEngine, problem, 5, particles=512, warm_up=40)
    found = []
    for pull in (0, 1):
        engine._sums.singles[0] += 2.0 * pull
        engine._sums.cliques[0] += np.arange(6.0) * pull
        values = []
        for theta in (0.0, 0.7):
            engine._chain.bias[:] = [0.3, -0.2, theta, 1.0]
            engine._weigh()
            values.append(engine._decider.point[0] - engine._blanks.lean.constant[0])
        found.append(values)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-9)


def test_binomial():
    draw = Exposed(random).binomial
    stream = random.scalar_stream(np.random.SeedSequence(3))
    for n, p in ((1, 0.3), (7, 0.9), (60, 0.2), (60, 0.5), (5000, 0.01), (5000, 0.4), (10**7, 0.7)):
        found = np.array([draw(stream, n, p) for _ in range(20_000)])
        assert 0 <= found.min() <= found.max() <= n
        sd = np.sqrt(n * p * (1 - p))
        assert abs(found.mean() - n * p) < 4.5 * sd / np.sqrt(20_000)
        assert abs(found.var() / sd**2 - 1) < 4.5 * np.sqrt((2 + (1 - 6 * p * (1 - p)) / sd**2) / 20_000)
        if n == 60:
            seen, expected = np.bincount(found, minlength=61), 20_000 * stats.binom.pmf(np.arange(61), n, p)
            common = expected > 5
            chi = ((seen - expected)[common] ** 2 / expected[common]).sum()
            assert stats.chi2.sf(chi, common.sum() - 1) > 1e-4
    assert (draw(stream, 5, 0.0), draw(stream, 5, 1.0)) == (0, 5)


def test_patterns_and_refusals():
    blank = np.array([[0, 1], [0, 0], [0, 1], [1, 0]], bool)
    data = table(np.array([[1, 0], [0, 1], [1, 1], [0, 0]]), blank, weights=np.array([2.0, 0.5, 1.0, 3.0]))
    found = patterns_of(data)
    assert isinstance(found, Patterns)
    assert (found.known.tolist(), found.count.tolist()) == ([[-1, 0], [1, -1]], [3, 3])
    assert (found.rows.tolist(), found.pattern.tolist()) == ([0, 2, 3], [1, 1, 0])
    with pytest.raises(DataError, match=r"Row 4 has the weight 1\.5 and a blank in column 'x0'"):
        patterns_of(replace(data, weights=np.array([2.0, 0.5, 1.0, 1.5])))
    assert patterns_of(replace(data, unknown=None)) is None


def test_an_engine_that_does_not_draw_blanks_refuses():
    class Other(ExactEngine):
        pass

    with pytest.raises(DataError, match="takes complete tables only"):
        Other(two_levels(3, Prior(), rows=40))


def test_many_blanks_are_left_to_lines():
    """A surrogate that learns from the cells it draws would run away with them."""
    rows = exact.sample(datasets.block_model(seed=1), 400, np.random.default_rng(3))
    blank = blanks_of(rows.shape, 0.3)
    question = pose(table(rows, blank))
    problem = question.problem
    assert blank_share(problem) == pytest.approx(0.3, abs=0.02)
    assert choose(problem)[0] == "exact"
    assert resolve("exact", problem) == "exact"
    assert resolve("exact", pose(table(rows, blanks_of(rows.shape, 0.05))).problem) == ELIMINATION
    with pytest.raises(DataError, match="30% blank cells would spoil"):
        resolve("surrogate", problem)
    options = RunOptions(seed=1, progress=False, min_draws=400, max_draws=400, target_ess=None)
    found, whole = (answer(part, options)[0] for part in (question, pose(read_data(rows))))
    assert np.abs(found.edge_values("mean") - whole.edge_values("mean")).max() < 1.5
    wide = np.tile(rows, (1, 2))[:, :22] ^ (np.random.default_rng(1).random((400, 22)) < 0.3)
    assert choose(pose(table(wide, blanks_of(wide.shape, 0.3))).problem)[0] == "particle"
    with pytest.raises(DataError, match="engine='particle'"):
        resolve("exact", pose(table(wide, blanks_of(wide.shape, 0.3))).problem)
