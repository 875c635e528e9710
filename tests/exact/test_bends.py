"""What the surrogate adds along the line of a pair, against the closed form of log Z along it."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.engines import bends, cores
from edgewise.features import Features

ROWS = 400.0
FLAT = 1.0


def line(first: float, second: float, joint: float):
    """log Z along the centred line of a pair, as a function of its parameter."""
    cells = np.array([1 - first - second + joint, second - joint, first - joint, joint])
    F = np.array([first * second, -first * (1 - second), -(1 - first) * second, (1 - first) * (1 - second)])
    return lambda t: np.log((cells * np.exp(t * F)).sum())


def derivative(f, t: float, h: float = 1e-3) -> tuple[float, float]:
    return (f(t + h) - f(t - h)) / (2 * h), (f(t + h) - 2 * f(t) + f(t - h)) / h**2


@pytest.mark.parametrize("excess", [0.02, -0.015, 0.05])
def test_a_pair_that_is_seldom_active_is_expanded_where_it_is(excess):
    first, second = 0.2, 0.3
    K = line(first, second, first * second)
    slope, curve = derivative(K, 0.0)
    own, pull = ROWS * curve, ROWS * (excess - slope)
    one = np.ones(1)
    margins = (first * one, second * one)
    tilt, more_pull, more_own = bends.along_lines(
        ROWS, margins, first * second * one, 0 * one, own * one, pull * one, FLAT
    )
    mode = float((pull + more_pull[0]) / (own + more_own[0] + FLAT))

    def corrected(t: float) -> float:
        return tilt[0] + (pull + more_pull[0]) * t - 0.5 * (own + more_own[0]) * t * t

    def likelihood(t: float) -> float:
        return ROWS * (excess * t - K(t) + K(0.0))

    assert corrected(mode) == pytest.approx(likelihood(mode), abs=0.02)
    found, true = derivative(corrected, mode), derivative(likelihood, mode)
    assert found[0] == pytest.approx(true[0], abs=0.02 * np.sqrt(own))
    assert found[1] == pytest.approx(true[1], rel=0.02)
    # The quadratic at zero is farther off.
    assert abs(pull * mode - 0.5 * own * mode**2 - likelihood(mode)) > 5 * abs(
        corrected(mode) - likelihood(mode)
    )


def test_a_pair_that_is_always_active_is_left_alone():
    one = np.ones(2)
    found = bends.along_lines(ROWS, (0.2 * one, 0.3 * one), 0.08 * one, one, 9 * one, 5 * one, FLAT)
    assert all((part == 0).all() for part in found)


def grid(side: int) -> list[tuple[int, int]]:
    across = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    return across + [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]


def test_the_core_is_narrow():
    """A grid that is always there and long edges that seldom are: the grid is the core."""
    features = Features.pairs(100)
    number = {tuple(pair): k for k, pair in enumerate(features.members.tolist())}
    candidates = np.arange(features.n_cliques)
    certain = [number[pair] for pair in grid(10)]
    occupied = np.full(len(candidates), 0.004)
    occupied[certain] = 1.0
    rng = np.random.default_rng(1)
    thetas = np.zeros((4, len(candidates)))
    thetas[:, certain] = 1.0
    for row in thetas:
        row[rng.choice(len(candidates), 40)] = 0.3
    core, inner, whole = cores.choose_core(features, candidates, occupied, thetas, 1000, 1 << 24)
    assert sorted(np.flatnonzero(core)) == sorted(certain)
    assert inner >= cores.FEWEST
    assert whole > cores.CHEAP
    # Without the long ones there is no need of a core.
    thetas[:, occupied < 1] = 0.0
    core, inner, whole = cores.choose_core(features, candidates, occupied, thetas, 1000, 1 << 24)
    assert inner == 0
    assert whole <= cores.CHEAP
    assert core.all()


def test_lines_are_flattened_as_far_as_the_matrix_stays_definite():
    """Of four features three are nearly parallel; two lines want to be flatter, one hardly."""
    rng = np.random.default_rng(4)
    matrix = np.cov(rng.normal(size=(4, 50)) + 3 * rng.normal(size=50) * np.array([[1], [1], [1], [0]]))
    own = np.diag(matrix)

    def line(flatter):
        wanted = np.array([-0.4, -0.4, -0.001, 0.3]) * own
        change = np.maximum(wanted, -flatter * own)
        return change, change, change

    found = bends.as_flat_as_possible(line, matrix, np.arange(4))[2]
    assert found[3] == 0.3 * own[3]
    # What hardly changes keeps its precision; the others share what the matrix can bear, or have none.
    assert found[2] == 0
    np.testing.assert_allclose(found[:2] / own[:2], found[0] / own[0])
    assert np.linalg.eigvalsh(matrix + np.diag(np.minimum(found, 0))).min() > 0
    shares = [*bends.LESS_FLAT, 0.0]
    larger = shares[shares.index(round(-found[0] / own[0], 3)) - 1]
    assert np.linalg.eigvalsh(matrix - np.diag([larger, larger, 0, 0] * own)).min() < 0
