"""Lines in parameter space: their log target, mode and proposal, and that a move and its reverse cancel."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from edgewise.kernels.lines import (
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    log_slab_constant,
    move_cells,
    pair_sum,
    pair_values,
)
from edgewise.kernels.random import scalar_stream
from edgewise.kernels.table import build_table, move_factors, pair_cells, scale_pair

CASES = [
    # cells, values, S, N, precision, tilt
    ([0.2, 0.3, 0.1, 0.4], [0.15, -0.35, -0.15, 0.35], 4.0, 80.0, 0.7, 0.1),
    ([0.9, 0.05, 0.049, 0.001], [0.002, -0.05, -0.04, 0.9], 12.0, 1000.0, 1.0, -0.3),
    ([0.6, 0.4], [-0.4, 0.6], -9.0, 300.0, 0.01, 0.02),
    ([0.25, 0.25, 0.25, 0.25], [0.25, -0.25, -0.25, 0.25], 0.0, 0.0, 1.3, 0.0),
]


def arrays(case):
    cells, values, *rest = case
    return np.array(cells), np.array(values), *rest


def brute_value(t, cells, values, S, N, precision, tilt):
    return t * (S + tilt) - N * special.logsumexp(t * values, b=cells) - 0.5 * precision * t * t


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("t", [-3.0, -0.1, 1e-9, 0.7, 4.0])
def test_value_is_the_log_target(case, t):
    line = arrays(case)
    assert line_value(t, *line) == pytest.approx(brute_value(t, *line), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_mode_and_width(case):
    line = arrays(case)
    mode, sd = line_mode(*line)
    best = optimize.minimize_scalar(lambda t: -brute_value(t, *line), bounds=(-20, 20), method="bounded")
    assert mode == pytest.approx(best.x, abs=2e-3 * sd + 1e-5)
    step = 1e-3 * sd
    curvature = -sum(w * brute_value(mode + k * step, *line) for k, w in ((-1, 1), (0, -2), (1, 1))) / step**2
    assert sd == pytest.approx(curvature**-0.5, rel=5e-3)


@pytest.mark.parametrize(("mode", "sd"), [(0.0, 1.0), (-2.0, 0.05), (5.0, 3.0)])
def test_proposal_density_matches_its_samples(mode, sd):
    total, _ = integrate.quad(
        lambda z: sd * math.exp(log_proposal(mode + sd * z, mode, sd)), -np.inf, np.inf, epsabs=1e-10
    )
    assert total == pytest.approx(1.0, abs=1e-7)
    stream = scalar_stream(np.random.SeedSequence(1))
    sample = np.array([draw_proposal(stream, mode, sd) for _ in range(20_000)])
    points = np.sort(sample)
    density = np.exp([log_proposal(t, mode, sd) for t in points])
    cumulative = integrate.cumulative_trapezoid(density, points, initial=0.0)
    cumulative += (1 - cumulative[-1]) / 2
    assert stats.kstest(cumulative, "uniform").pvalue > 1e-3
    # Negative control: the same density with a width wrong by fifteen percent.
    wrong = np.exp([log_proposal(t, mode, 1.15 * sd) for t in points])
    cumulative = integrate.cumulative_trapezoid(wrong, points, initial=0.0)
    cumulative += (1 - cumulative[-1]) / 2
    assert stats.kstest(cumulative, "uniform").pvalue < 1e-3


def test_pair_direction_is_the_centred_product():
    rng = np.random.default_rng(2)
    rows = (rng.random((50, 2)) < [0.3, 0.6]).astype(float)
    m = np.array([0.35, 0.55])
    centred = rows - m
    expected = (centred[:, 0] * centred[:, 1]).sum()
    s_i, s_j = rows.sum(axis=0)
    assert pair_sum(rows.prod(axis=1).sum(), s_i, s_j, *m, 50.0) == pytest.approx(expected, abs=1e-12)
    values = np.empty(4)
    pair_values(*m, values)
    states = [(0, 0), (1, 0), (0, 1), (1, 1)]
    np.testing.assert_allclose(values, [(i - m[0]) * (j - m[1]) for i, j in states], atol=1e-15)


def test_small_helpers():
    assert acceptance(2.0) == 1.0
    assert acceptance(math.log(0.3)) == pytest.approx(0.3)
    assert log_slab_constant(1.7) == pytest.approx(stats.norm.logpdf(0.0, 0.0, 1.7))
    cells = np.array([0.2, 0.3, 0.1, 0.4])
    values = np.array([0.1, -0.2, -0.3, 0.4])
    moved = np.empty(4)
    move_cells(cells, values, 1.3, moved)
    np.testing.assert_allclose(moved, special.softmax(np.log(cells) + 1.3 * values), rtol=1e-12)


def log_joint(bias, theta, members, singles, sums, N, sigma0, bias_sd):
    """Log likelihood and log prior of the parameters, by enumeration; the graph's own prior is left out."""
    p = len(bias)
    states = np.array(list(itertools.product((0.0, 1.0), repeat=p)))
    active = theta != 0
    energy = states @ bias + states[:, members[:, 0]] * states[:, members[:, 1]] @ theta
    result = singles @ bias + sums @ theta - N * special.logsumexp(energy)
    result += stats.norm.logpdf(bias, 0, bias_sd).sum()
    return result + stats.norm.logpdf(theta[active], 0, sigma0).sum()


@pytest.mark.parametrize("clique", [0, 3, 5])
def test_birth_and_death_cancel_with_exact_means(clique):
    """The log ratio of a birth, of its death from the new table, and of enumeration agree."""
    rng = np.random.default_rng(3 + clique)
    p, N, sigma0, bias_sd = 4, 60.0, 1.3, 2.0
    members = np.array(list(itertools.combinations(range(p), 2)), np.int32)
    rows = (rng.random((int(N), p)) < 0.4).astype(float)
    singles, sums = rows.sum(axis=0), (rows.T @ rows)[members[:, 0], members[:, 1]]
    means = (singles + 0.5) / (N + 1.0)
    bias, theta = rng.normal(0, 1, p), rng.normal(0, 1, len(members))
    theta[clique] = 0.0
    listed = np.flatnonzero(theta)
    table = np.empty(2**p)
    build_table(bias, theta, listed, len(listed), members, table)
    i, j = members[clique]
    values = np.empty(4)
    pair_values(means[i], means[j], values)
    S = pair_sum(sums[clique], singles[i], singles[j], means[i], means[j], N)
    precision = (means[i] ** 2 + means[j] ** 2) / bias_sd**2 + sigma0**-2

    def line(table, bias, value):
        """Base cells, mode, width and log target at `value`, seen from a table that holds `value`."""
        present, base = np.empty(4), np.empty(4)
        pair_cells(table, i, j, present)
        move_cells(present, values, -value, base)
        tilt = (
            (bias[i] + value * means[j]) * means[j] + (bias[j] + value * means[i]) * means[i]
        ) / bias_sd**2
        mode, sd = line_mode(base, values, S, N, precision, tilt)
        return present, mode, sd, lambda t: line_value(t, base, values, S, N, precision, tilt)

    present, mode, sd, target = line(table, bias, 0.0)
    a = mode + 1.7 * sd
    birth = log_slab_constant(sigma0) + target(a) - log_proposal(a, mode, sd)
    factors = np.empty(4)
    move_factors(present, values, a, factors)
    scale_pair(table, i, j, factors)
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    new_bias, new_theta = bias.copy(), theta.copy()
    new_bias[i] -= a * means[j]
    new_bias[j] -= a * means[i]
    new_theta[clique] = a
    _, mode, sd, target = line(table, new_bias, a)
    death = -(log_slab_constant(sigma0) + target(a) - log_proposal(a, mode, sd))
    assert birth + death == pytest.approx(0.0, abs=1e-10)
    given = (members, singles, sums, N, sigma0, bias_sd)
    change = log_joint(new_bias, new_theta, *given) - log_joint(bias, theta, *given)
    assert birth == pytest.approx(change - log_proposal(a, mode, sd), abs=1e-9)
