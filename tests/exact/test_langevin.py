"""The langevin engine: against the enumerated posterior, and equal draws however a run is divided.

The accuracy runs are short, so they take larger steps and wider jumps than the paper does, with more
particles and sweeps to keep up; 0.01 in probability is allowed for what the lag of the particles leaves.
"""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from truth import Truth, enumerate_posterior

from edgewise.draws import Draws
from edgewise.engines.langevin import LangevinEngine, LangevinSettings
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.priors import FixedInclusion, FixedSlab, Prior

PAIRS = Features.pairs(3)
PAIR_SUMS = Statistics(60.0, np.array([28.0, 33.0, 22.0]), np.array([21.0, 11.0, 15.0]))
TRIPLES = Features.up_to(3, 3)
TRIPLE_SUMS = Statistics(45.5, np.array([22.0, 25.5, 19.0]), np.array([14.0, 12.0, 9.5, 8.0]))
FAST = {
    "particles": 256,
    "gibbs_sweeps": 2,
    "step_size": 0.1,
    "jump_width": 0.5,
    "warm_up": 10_000,
}


def run(problem: Problem, iterations: int, seed: int = 3, **settings: object) -> tuple[Draws, LangevinEngine]:
    engine = LangevinEngine(problem, FAST | settings, np.random.SeedSequence(seed))
    engine.advance(engine.warm_up)
    return engine.advance(iterations, thin=20), engine


def scores(draws: Draws, truth: Truth, allowance: float = 0.01) -> dict[str, float]:
    """Worst distance from the truth beyond the allowance, in batch-means errors, by quantity."""

    def score(series: np.ndarray, slack: float) -> float:
        batches = series[: len(series) // 40 * 40].reshape(40, -1).mean(axis=1)
        error = batches.std(ddof=1) / math.sqrt(40)
        return max(0.0, abs(series.mean()) - slack) / error if error > 0 else 0.0

    found = {"inclusion": 0.0, "mean": 0.0, "square": 0.0}
    for clique, probability in enumerate(truth.inclusion):
        column = draws.column(clique)
        active = column != 0
        found["inclusion"] = max(found["inclusion"], score(active - probability, allowance))
        mean, sd = truth.mean[clique], truth.sd[clique]
        slack = 0.05 * sd * probability
        found["mean"] = max(found["mean"], score(np.where(active, column - mean, 0.0), slack))
        square = np.where(active, column**2 - mean**2 - sd**2, 0.0)
        found["square"] = max(found["square"], score(square, slack * sd + 2 * abs(mean) * slack))
    found["p0"] = score(draws.inclusion_rate - truth.p0, allowance)
    found["sigma0"] = score(draws.slab_scale - truth.sigma0, allowance)
    found["bias"] = max(
        score(draws.biases[:, i] - mean, 0.05 * sd)
        for i, (mean, sd) in enumerate(zip(truth.bias_mean, truth.bias_sd))
    )
    return found


def test_accuracy_with_free_hyperparameters():
    prior = Prior().resolve(PAIRS)
    draws, engine = run(Problem(PAIRS, PAIR_SUMS, prior), 400_000)
    truth = enumerate_posterior(PAIRS, PAIR_SUMS, prior)
    assert max(scores(draws, truth).values()) < 4, scores(draws, truth)
    # The running sums tell the same inclusion probabilities, with less noise.
    sums = engine.edge_sums()
    active = np.mean([draws.column(clique) != 0 for clique in range(3)], axis=1)
    np.testing.assert_allclose(sums["inclusion"] / sums["tries"], active, atol=0.02)
    # Negative controls: the sign of the data's pull, and prior odds wrong by a factor of two.
    wrong = Statistics(60.0, PAIR_SUMS.singles, np.array([10.0, 11.0, 15.0]))
    assert scores(draws, enumerate_posterior(PAIRS, wrong, prior))["mean"] > 4
    skewed = Prior(edge_probability=np.full((3, 3), 2 / 3)).resolve(PAIRS)
    assert scores(draws, enumerate_posterior(PAIRS, PAIR_SUMS, skewed))["inclusion"] > 4


def test_accuracy_with_triples_weights_and_single_priors():
    prior = Prior(
        FixedInclusion(0.4), FixedSlab(1.2), edge_probability={(0, 1): 0.8}, forced=[(0, 2)]
    ).resolve(TRIPLES)
    draws, _ = run(Problem(TRIPLES, TRIPLE_SUMS, prior), 400_000)
    truth = enumerate_posterior(TRIPLES, TRIPLE_SUMS, prior)
    assert max(scores(draws, truth).values()) < 4, scores(draws, truth)
    # Negative control: the triple's data sum left out of the gradient and the ratio.
    blind = Statistics(45.5, TRIPLE_SUMS.singles, np.array([14.0, 12.0, 9.5, 2.0]))
    found = scores(draws, enumerate_posterior(TRIPLES, blind, prior))
    assert max(found["inclusion"], found["mean"]) > 4


@pytest.mark.parametrize("settings", [{}, {"parallel_proposals": False}])
def test_draws_do_not_depend_on_the_division(settings):
    problem = Problem(PAIRS, PAIR_SUMS, Prior().resolve(PAIRS))
    settings = FAST | {"warm_up": 300, "particles": 20} | settings

    def start() -> LangevinEngine:
        return LangevinEngine(problem, settings, np.random.SeedSequence(9))

    whole = start()
    whole.advance(300)
    expected = whole.advance(500, thin=7)
    assert len(expected) == 500 // 7
    pieces = start()
    for length in (1, 6, 100, 193):
        assert len(pieces.advance(length, thin=7)) == 0
    parts = []
    for length in (3, 4, 6, 50, 437):
        file = io.BytesIO()
        np.savez(file, **pieces.state())
        file.seek(0)
        with np.load(file) as stored:
            pieces = LangevinEngine.restore(problem, settings, dict(stored))
        parts.append(pieces.advance(length, thin=7))
    found = Draws.concatenate(parts)
    for name in ("indptr", "indices", "values", "biases", "inclusion_rate", "slab_scale"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, pieces.state()[name], err_msg=name)
    assert whole.counters() == pieces.counters()
    other = LangevinEngine(problem, settings, np.random.SeedSequence(10))
    other.advance(300)
    assert not np.array_equal(other.advance(500, thin=7).biases, expected.biases)


def test_restore_in_warm_up():
    problem = Problem(PAIRS, PAIR_SUMS, Prior().resolve(PAIRS))
    settings = FAST | {"warm_up": 300, "particles": 20}
    first = LangevinEngine(problem, settings, np.random.SeedSequence(9))
    first.advance(123)
    second = LangevinEngine.restore(problem, settings, first.state())
    for engine in (first, second):
        engine.advance(177)
        engine.advance(50)
    for name, array in first.state().items():
        np.testing.assert_array_equal(array, second.state()[name], err_msg=name)


def test_warm_up_freezes_widths_and_preconditioner():
    problem = Problem(PAIRS, PAIR_SUMS, Prior().resolve(PAIRS))
    engine = LangevinEngine(problem, FAST | {"warm_up": 400}, np.random.SeedSequence(9))
    with pytest.raises(ValueError, match="cross the end of warm-up"):
        engine.advance(401)
    before = engine.state()
    engine.advance(400)
    frozen = engine.state()
    assert not np.array_equal(before["width"], frozen["width"])
    assert engine.counters()["iterations"] == 0
    assert frozen["jumps"].sum() == 0
    engine.advance(200)
    for name in ("width", "scale", "bias_scale", "variances"):
        np.testing.assert_array_equal(engine.state()[name], frozen[name])
    # Delta = c / sqrt(N v) with a variance near the data's own
    frequency = PAIR_SUMS.cliques / 60
    near = 0.5 / np.sqrt(60 * frequency * (1 - frequency))
    np.testing.assert_allclose(frozen["width"], near, rtol=0.3)


@pytest.mark.parametrize(("start", "edges"), [("empty", 1), ("full", 5)])
def test_starts(start, edges):
    features = Features.pairs(4)
    prior = Prior(forced=[(0, 1)], forbidden=[(2, 3)]).resolve(features)
    problem = Problem(features, Statistics(50.0, np.full(4, 20.0), np.full(6, 8.0)), prior)
    engine = LangevinEngine(problem, {"warm_up": 0}, np.random.SeedSequence(1), start)
    assert engine.active() == edges
    draws = engine.advance(2000, thin=100)
    assert np.isfinite(draws.biases).all()
    assert (draws.column(0) != 0).all()
    assert (draws.column(5) == 0).all()


def test_refusals():
    problem = Problem(PAIRS, PAIR_SUMS, Prior().resolve(PAIRS))
    with pytest.raises(DataError, match="has no setting 'steps'; its settings are particles"):
        LangevinEngine(problem, {"steps": 1})
    with pytest.raises(DataError, match="cannot start from"):
        LangevinEngine(problem, None, None, "warm")
    for settings in ({"particles": 1}, {"step_size": 0.0}, {"momentum_retained": 1.0}, {"thin": 1.5}):
        with pytest.raises(DataError, match=next(iter(settings))):
            LangevinEngine(problem, settings)
    engine = LangevinEngine(problem, {"warm_up": 0}, np.random.SeedSequence(1))
    state = engine.state()
    with pytest.raises(DataError, match="does not belong"):
        LangevinEngine.restore(problem, {"particles": 50}, state)
    del state["hyper"]
    with pytest.raises(DataError, match="lacks 'hyper'"):
        LangevinEngine.restore(problem, None, state)


def test_defaults_are_those_of_section_6_2():
    settings = LangevinSettings()
    assert (settings.particles, settings.gibbs_sweeps, settings.step_size) == (100, 1, 1e-3)
    assert (settings.momentum_retained, settings.jump_width, settings.thin) == (0.9, 0.01, 1000)
