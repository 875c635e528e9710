"""Lines in parameter space: their log target, mode and proposal, and that a move and its reverse cancel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from broken import Exposed
from edgewise.data import read_data
from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.kernels import lines
from edgewise.kernels.compiling import entry
from edgewise.kernels.directions import clique_line
from edgewise.kernels.graph import activate
from edgewise.kernels.moves import go, log_birth_factor
from edgewise.kernels.random import scalar_stream
from edgewise.kernels.sources import clique_cells
from edgewise.priors import FixedInclusion, FixedSlab, NormalBias, Prior

K = Exposed(lines)

CASES = [
    # cells, values, S, N, precision, tilt
    ([0.2, 0.3, 0.1, 0.4], [0.15, -0.35, -0.15, 0.35], 4.0, 80.0, 0.7, 0.1),
    ([0.9, 0.05, 0.049, 0.001], [0.002, -0.05, -0.04, 0.9], 12.0, 1000.0, 1.0, -0.3),
    ([0.6, 0.4], [-0.4, 0.6], -9.0, 300.0, 0.01, 0.02),
    ([0.25, 0.25, 0.25, 0.25], [0.25, -0.25, -0.25, 0.25], 0.0, 0.0, 1.3, 0.0),
]


def arrays(case):
    """The case as a line of one stratum, and as one of two strata that halve its rows and sums."""
    cells, values, S, N, precision, tilt = case
    one = np.array([cells]), np.array([values]), np.array([S]), np.array([N]), precision, tilt
    two = (*(np.repeat(part, 2, axis=0) for part in one[:2]), *(np.full(2, x / 2) for x in (S, N)))
    return one, (*two, precision, tilt)


def brute_value(t, case):
    cells, values, S, N, precision, tilt = case
    growth = special.logsumexp(t * np.array(values), b=cells)
    return t * (S + tilt) - N * growth - 0.5 * precision * t * t


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("t", [-3.0, -0.1, 1e-9, 0.7, 4.0])
def test_value_is_the_log_target(case, t):
    for line in arrays(case):
        assert K.line_value(t, *line) == pytest.approx(brute_value(t, case), rel=1e-10, abs=1e-10)


def test_a_long_way_back_stays_finite():
    """Far from a point where one cell has nearly all the mass, the growth rounds to minus one."""
    values = np.array([-0.02, 0.98])
    for cells in ([1e-18, 1.0], [0.0, 1.0], [1e-3, 0.999]):
        for t in (-30.0, -60.0, -400.0):
            expected = special.logsumexp(t * values, b=cells)
            assert K.log_z_change(t, np.array(cells), values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_mode_and_width(case):
    best = optimize.minimize_scalar(lambda t: -brute_value(t, case), bounds=(-20, 20), method="bounded")
    for line in arrays(case):
        mode, sd = K.line_mode(*line)
        assert mode == pytest.approx(best.x, abs=2e-3 * sd + 1e-5)
        step = 1e-3 * sd
        around = [brute_value(mode + k * step, case) for k in (-1, 0, 1)]
        assert sd == pytest.approx((step**2 / (2 * around[1] - around[0] - around[2])) ** 0.5, rel=5e-3)


@pytest.mark.parametrize(("mode", "sd"), [(0.0, 1.0), (-2.0, 0.05), (5.0, 3.0)])
def test_proposal_density_matches_its_samples(mode, sd):
    total, _ = integrate.quad(
        lambda z: sd * math.exp(K.log_proposal(mode + sd * z, mode, sd)), -np.inf, np.inf, epsabs=1e-10
    )
    assert total == pytest.approx(1.0, abs=1e-7)
    stream = scalar_stream(np.random.SeedSequence(1))
    sample = np.array([K.draw_proposal(stream, mode, sd) for _ in range(20_000)])
    points = np.sort(sample)
    density = np.exp([K.log_proposal(t, mode, sd) for t in points])
    cumulative = integrate.cumulative_trapezoid(density, points, initial=0.0)
    cumulative += (1 - cumulative[-1]) / 2
    assert stats.kstest(cumulative, "uniform").pvalue > 1e-3
    # Negative control: the same density with a width wrong by fifteen percent.
    wrong = np.exp([K.log_proposal(t, mode, 1.15 * sd) for t in points])
    cumulative = integrate.cumulative_trapezoid(wrong, points, initial=0.0)
    cumulative += (1 - cumulative[-1]) / 2
    assert stats.kstest(cumulative, "uniform").pvalue < 1e-3


def test_small_helpers():
    assert K.acceptance(2.0) == 1.0
    assert K.acceptance(math.log(0.3)) == pytest.approx(0.3)
    assert K.log_slab_constant(1.7) == pytest.approx(stats.norm.logpdf(0.0, 0.0, 1.7))
    cells = np.array([[0.2, 0.3, 0.1, 0.4], [0.25, 0.25, 0.25, 0.25]])
    values = np.array([[0.1, -0.2, -0.3, 0.4], [0.5, 0.1, -0.7, 0.2]])
    moved = np.empty((2, 4))
    K.move_cells(cells, values, 1.3, moved)
    np.testing.assert_allclose(moved, special.softmax(np.log(cells) + 1.3 * values, axis=1), rtol=1e-12)


def log_joint(bias, theta, members, singles, sums, N, sigma0, bias_sd):
    """Log likelihood and log prior of the parameters, by enumeration; the graph's own prior is left out."""
    p = len(bias)
    states = np.array(list(itertools.product((0.0, 1.0), repeat=p)))
    active = theta != 0
    energy = states @ bias + states[:, members[:, 0]] * states[:, members[:, 1]] @ theta
    result = singles @ bias + sums @ theta - N * special.logsumexp(energy)
    result += stats.norm.logpdf(bias, 0, bias_sd).sum()
    return result + stats.norm.logpdf(theta[active], 0, sigma0).sum()


@entry(arrays=True)
def look(a, point, rules, sums, chain, source, work):
    """Mode, width, log target at `point` and log ratio of a birth of candidate `a` there (5.3)."""
    cells, values, present = work.lines[0, 0], work.lines[0, 1], work.lines[0, 2]
    S = work.sums[0]
    value = chain.theta[a]
    precision, tilt = clique_line(chain.graph, a, value, rules, sums, chain, values, S)
    clique_cells(source, a, value, chain, present)
    lines.move_cells(present, values, -value, cells)
    mode, sd = lines.line_mode(cells, values, S, sums.rows, precision, tilt)
    if math.isnan(point):
        point = mode + 1.7 * sd
    target = lines.line_value(point, cells, values, S, sums.rows, precision, tilt)
    return (
        point,
        mode,
        sd,
        target + log_birth_factor(a, 1, lines.log_proposal(point, mode, sd), chain, rules.prior),
    )


@entry(arrays=True)
def be_born(a, point, rules, chain, source, work):
    """Carry out a birth that has just been looked at."""
    go(a, 0.0, point, work.lines[0, 0], work.lines[0, 1], rules, chain, source)
    activate(a, chain.graph)


@pytest.fixture
def engine():
    """An exact chain of four variables with three of six pairs active, and its rows."""
    rng = np.random.default_rng(3)
    rows = (rng.random((60, 4)) < 0.4).astype(np.uint8)
    features = Features.pairs(4)
    prior = Prior(FixedInclusion(0.3), FixedSlab(1.3), NormalBias(2.0)).resolve(features)
    problem = Problem(features, sufficient_statistics(read_data(rows), features), prior)
    engine = ExactEngine(problem, None, np.random.SeedSequence(1), "empty")
    engine._activate(np.array([1, 2, 4]), np.array([0.7, -1.1, 0.4]))
    engine._chain.bias[:] = rng.normal(0, 1, 4)
    engine._renew()
    return engine, rows.astype(float)


def test_pair_direction_is_the_centred_product(engine):
    engine, rows = engine
    m = engine._rules.centres[0]
    np.testing.assert_allclose(m, (rows.sum(axis=0) + 0.5) / 61)
    for a, (i, j) in enumerate(itertools.combinations(range(4), 2)):
        look(a, 0.1, engine._rules, engine._sums, engine._chain, engine._source, engine._work)
        expected = ((rows[:, i] - m[i]) * (rows[:, j] - m[j])).sum()
        assert engine._work.sums[0, 0] == pytest.approx(expected, abs=1e-12)
        states = [(0, 0), (1, 0), (0, 1), (1, 1)]
        values = [(x - m[i]) * (y - m[j]) for x, y in states]
        np.testing.assert_allclose(engine._work.lines[0, 1, 0], values, atol=1e-15)


@pytest.mark.parametrize("clique", [0, 3, 5])
def test_birth_and_death_cancel_with_exact_means(engine, clique):
    """The log ratio of a birth, of its death from the new table, and of enumeration agree."""
    engine, rows = engine
    given = (engine._rules, engine._sums, engine._chain, engine._source, engine._work)
    chain, table = engine._chain, engine._source.states
    members = engine.problem.features.members
    singles, sums = rows.sum(axis=0), (rows.T @ rows)[members[:, 0], members[:, 1]]
    truth = (members, singles, sums, 60.0, 1.3, 2.0)
    before = log_joint(chain.bias, chain.theta, *truth)
    a, mode, sd, birth = look(clique, math.nan, *given)
    be_born(clique, a, engine._rules, chain, engine._source, engine._work)
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    followed = table.copy()
    engine._renew()
    np.testing.assert_allclose(followed, table, rtol=1e-10)
    _, again, width, back = look(clique, a, *given)
    assert (again, width) == (pytest.approx(mode, abs=1e-9), pytest.approx(sd, rel=1e-9))
    assert back == pytest.approx(birth, abs=1e-10)
    change = log_joint(chain.bias, chain.theta, *truth) - before
    odds = math.log(0.3 / 0.7)
    assert birth == pytest.approx(change + odds - K.log_proposal(a, mode, sd), abs=1e-9)
