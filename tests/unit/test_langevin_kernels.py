"""The pieces of Algorithm 1 against plain NumPy, draw for draw or in distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from broken import Exposed
from edgewise.engines.common import prior_rules
from edgewise.features import Features
from edgewise.kernels import algorithm1, codes, jumps, langevin, random
from edgewise.kernels.algorithm1 import Motion, Scratch, Totals, Tuning
from edgewise.kernels.compiling import entry
from edgewise.kernels.gibbs import fresh_sweeps
from edgewise.kernels.graph import empty_graph, place_all
from edgewise.kernels.random import lane_streams, scalar_stream
from edgewise.priors import Prior

K = Exposed(algorithm1, jumps, langevin, random)

MEMBERS = np.array([[0, 1, -1], [0, 2, -1], [1, 2, -1], [2, 3, -1], [0, 1, 3]], np.int32)


def particles(n: int = 50) -> np.ndarray:
    return (np.random.default_rng(4).random((4, n)) < 0.6).astype(np.float32)


def features(x: np.ndarray) -> np.ndarray:
    return np.array([x[row[row >= 0]].prod(axis=0) for row in MEMBERS])


def test_moments():
    x = particles()
    for row, feature in zip(MEMBERS, features(x)):
        mean, variance = K.feature_moments(x, row)
        assert mean == pytest.approx(feature.mean())
        assert variance == pytest.approx(feature.var(ddof=1))
    singles, cliques = np.zeros(4), np.zeros(5)
    K.add_variances(x, MEMBERS, singles, cliques)
    np.testing.assert_allclose(singles, x.var(axis=1, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(cliques, features(x).var(axis=1, ddof=1), rtol=1e-5)


def test_langevin_step_against_numpy():
    """Eqs. 4, 5 and 7 written with arrays, on the same random stream."""
    x = particles()
    rng = np.random.default_rng(6)
    active = np.array([4, 0, 3], np.int32)
    singles, totals, rows = rng.uniform(0, 30, 4), rng.uniform(0, 20, 5), 30.5
    biases, bias_momentum = rng.normal(size=4), rng.normal(size=4)
    values, momentum = rng.normal(size=5), rng.normal(size=5)
    bias_scale, scale = rng.uniform(0.1, 1, 4), rng.uniform(0.1, 1, 5)
    step, retained, bias_precision, old_precision, precision = 0.3, 0.7, 0.01, 0.8, 1.3

    reference = scalar_stream(np.random.SeedSequence(1))
    theta = np.concatenate([biases, values[active]])
    p = np.concatenate([bias_momentum, momentum[active]])
    exact = x.astype(np.float64)
    means = np.concatenate([exact.mean(axis=1), features(exact)[active].mean(axis=1)])
    c = np.concatenate([bias_scale, scale[active]])
    surplus = np.concatenate([singles, totals[active]]) - rows * means
    old = np.concatenate([np.full(4, bias_precision), np.full(3, old_precision)])
    new = np.concatenate([np.full(4, bias_precision), np.full(3, precision)])
    p = p + 0.5 * step * c * (surplus - old * theta)
    p = retained * p + math.sqrt(1 - retained**2) * np.array([K.normal(reference) for _ in range(7)])
    p = p + 0.5 * step * c * (surplus - new * theta)
    theta = theta + step * c * p

    stream = scalar_stream(np.random.SeedSequence(1))
    untouched = values[[1, 2]].copy()
    K.move_parameters(
        x,
        MEMBERS,
        rows,
        singles,
        totals,
        biases,
        bias_momentum,
        values,
        momentum,
        active,
        bias_precision,
        old_precision,
        precision,
        bias_scale,
        scale,
        step,
        retained,
        stream,
    )
    np.testing.assert_allclose(np.concatenate([biases, values[active]]), theta, rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([bias_momentum, momentum[active]]), p, rtol=1e-9)
    np.testing.assert_array_equal(values[[1, 2]], untouched)
    np.testing.assert_array_equal(stream, reference)


@entry(arrays=True)
def harmonic(steps, precision, scale, step_size, retained, halve, stream):
    """Chain on N(0, 1/precision); `halve` drops the second half-kick."""
    values = np.empty(steps)
    value, momentum = 0.0, 0.0
    for t in range(steps):
        gradient = -precision * value
        old = 0.0 if halve else gradient
        value, momentum = langevin.langevin_step(
            value, momentum, old, gradient, scale, step_size, retained, stream
        )
        values[t] = value
    return values


@pytest.mark.parametrize("retained", [0.0, 0.9])
def test_stationary_law_of_the_step(retained):
    steps, thin = 2_000_000, 500
    values = harmonic(steps, 4.0, 0.5, 0.2, retained, False, scalar_stream(np.random.SeedSequence(2)))
    # A leapfrog step inflates the variance by 1 / (1 - eps^2 / 4).
    law = stats.norm(0, 0.5 / math.sqrt(1 - 0.2**2 / 4))
    assert stats.kstest(values[::thin], law.cdf).pvalue > 1e-4
    doubled = harmonic(steps, 8.0, 0.5, 0.2, retained, False, scalar_stream(np.random.SeedSequence(2)))
    assert stats.kstest(doubled[::thin], law.cdf).pvalue < 1e-4
    if retained > 0:  # a momentum that is forgotten at once does not miss its second half-kick
        halved = harmonic(steps, 4.0, 0.5, 0.2, retained, True, scalar_stream(np.random.SeedSequence(2)))
        assert stats.kstest(halved[::thin], law.cdf).pvalue < 1e-4


def test_fresh_sweep_draws_from_the_conditionals():
    """Long run of the sweep against the enumerated model, a triple included."""
    n = 4000
    x = particles(n)
    biases, values = np.array([0.3, -0.5, 0.1, 0.2]), np.array([0.9, 0.0, -1.1, 0.0, 1.4])
    graph = empty_graph(MEMBERS, np.zeros(5, np.int8), 4)
    place_all(np.flatnonzero(values), graph)
    lanes = lane_streams(np.random.SeedSequence(3), n)
    field, scratch = np.empty(n, np.float32), np.empty(n, np.float32)
    total = np.zeros(9)
    for sweep in range(120):
        fresh_sweeps(1, x, lanes, biases, values, graph, field, scratch)
        if sweep >= 20:
            total += np.concatenate([x.mean(axis=1), features(x).mean(axis=1)])
    states = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1)
    table = np.concatenate([states, features(states)])

    def means(values: np.ndarray) -> np.ndarray:
        weights = np.exp(np.concatenate([biases, values]) @ table)
        return table @ weights / weights.sum()

    # 4000 particles x 100 sweeps, autocorrelated over a few sweeps
    error = 0.5 / math.sqrt(n * 100 / 5)
    assert np.abs(total / 100 - means(values)).max() < 4 * error
    assert np.abs(total / 100 - means(values * np.array([1, 1, -1, 1, 1]))).max() > 4 * error


def thinned_births(width: float, log_odds: float, repeats: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies of birth by `jump_all` from a fixed state, its Rao-Blackwell sums, and plain averages."""
    x = particles()
    rows, slab_scale = 30.0, 1.3
    totals = np.array([20.0, 12.0, 5.0, 16.0, 9.0])
    status = np.array([0, 0, 1, 0, 2], np.int8)
    own = np.array([0.0, 0.0, 0.6, 0.0, 0.0])
    widths = width * np.array([1.0, 0.5, 2.0, 1.0, 1.0])
    reach = np.log(2 * widths) + widths * np.maximum(totals, rows - totals)
    log_reach = np.array([reach[status == 0].max(), (reach + own)[status == 1].max()])
    stream = scalar_stream(np.random.SeedSequence(8))
    tallies = np.zeros((codes.TALLIES, 5))
    prior = prior_rules(Prior().resolve(Features.listed(4, [(0, 1)])))._replace(log_odds=own)
    tuning = Tuning(np.ones(4), np.ones(5), widths, log_reach)
    scratch = Scratch(
        np.empty(5, np.int64), np.empty(5, np.int64), np.empty((5, 2)), *np.empty((2, 50), np.float32)
    )
    hyper = np.array([1 / (1 + math.exp(-log_odds)), slab_scale, slab_scale**-2])
    given = Totals(rows, np.zeros(4), totals)
    for _ in range(repeats):
        graph = empty_graph(MEMBERS, status, 4)
        motion = Motion(np.zeros(5), np.zeros(5), np.zeros(4), np.zeros(4), hyper)
        counts = np.zeros(5, np.int64)
        K.jump_all(x, given, 4, 0.1, motion, prior, graph, tuning, tallies, counts, scratch, stream)
        active = graph.counts[0]
        assert active == (graph.place >= 0).sum() == (motion.values != 0).sum() == graph.degree.sum() / 2
    births, inclusion = tallies[codes.BIRTHS], tallies[codes.INCLUSION]
    plain = np.zeros(5)
    for clique in range(4):
        mean, variance = K.feature_moments(x, MEMBERS[clique])
        gradient, precision = K.proposal_at_birth(totals[clique], rows, mean, variance, slab_scale)
        odds = own[clique] if status[clique] == 1 else log_odds
        for _ in range(2000):
            value = K.propose_value(gradient, precision, widths[clique], stream)
            ratio = K.log_ratio_birth(
                value,
                totals[clique],
                rows,
                mean,
                variance,
                x.shape[1],
                odds,
                slab_scale,
                gradient,
                precision,
                widths[clique],
            )
            plain[clique] += math.exp(min(0.0, ratio)) / 2000
    return births / repeats, inclusion / repeats, plain


@pytest.mark.parametrize(("width", "log_odds"), [(0.02, -1.0), (0.6, 1.0)])
def test_skipping_births_keeps_their_law(width, log_odds):
    repeats = 20_000
    births, inclusion, plain = thinned_births(width, log_odds, repeats)
    error = np.sqrt(np.maximum(plain * (1 - plain), 1e-9) / repeats)
    assert births[4] == 0
    assert (np.abs(births - plain) < 4.5 * error + 0.002 * plain).all()
    assert (np.abs(inclusion - plain) < 4.5 * error + 0.002 * plain).all()
    assert (np.abs(births - 2 * plain) > 4.5 * error)[:4].all()
