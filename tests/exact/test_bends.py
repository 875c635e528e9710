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
    core, inner = cores.choose_core(features, candidates, occupied, thetas, 1000, 1 << 24)
    assert sorted(np.flatnonzero(core)) == sorted(certain)
    assert inner >= cores.FEWEST
    # Without the long ones there is no need of a core.
    thetas[:, occupied < 1] = 0.0
    core, inner = cores.choose_core(features, candidates, occupied, thetas, 1000, 1 << 24)
    assert inner == 0
    assert core.all()
