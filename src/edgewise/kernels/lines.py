"""One line in parameter space: the posterior along it, its mode, and a proposal from it (docs/method.md, 4).

Along a direction d the features enter only through the probabilities ``cells[c]`` of a few joint states c
and the value ``values[c]`` of the direction in each, so with t the distance from the base point

    log target(t) = t S - N log(sum_c cells[c] exp(t values[c])) - precision t^2 / 2 + tilt t

holds with no expansion and for any t; S is the direction's sum over the data, and precision and tilt
collect the Gaussian priors. The log target is concave.

The line of a pair (i, j) moves its coupling by t and its two biases by -t m_j and -t m_i, m being the data
means: its feature is (x_i - m_i)(x_j - m_j), which leaves the margins nearly alone and is nearly orthogonal
to the biases. The shift is fixed by the data, so birth and death remain each other's reverse with Jacobian
1.
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import uniform

MODE_STEPS = 16
MODE_STEP_LIMIT = 1.5
TAIL_FREEDOM = 8.0
LOG_TAIL_CONSTANT = (
    math.lgamma((TAIL_FREEDOM + 1) / 2)
    - math.lgamma(TAIL_FREEDOM / 2)
    - 0.5 * math.log(TAIL_FREEDOM * math.pi)
)
LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


@kernel
def line_value(t, cells, values, S, N, precision, tilt):
    """Log target at `t` relative to the base point."""
    growth = 0.0
    for c in range(cells.shape[0]):
        growth += cells[c] * math.expm1(t * values[c])
    return t * (S + tilt) - N * math.log1p(growth) - 0.5 * precision * t * t


@kernel
def line_mode(cells, values, S, N, precision, tilt):
    """Mode of the line and the standard deviation of its Laplace approximation, by damped Newton steps."""
    t = 0.0
    curvature = precision
    for _ in range(MODE_STEPS):
        total = 0.0
        first = 0.0
        second = 0.0
        for c in range(cells.shape[0]):
            weight = cells[c] * math.exp(t * values[c])
            total += weight
            first += weight * values[c]
            second += weight * values[c] * values[c]
        first /= total
        spread = second / total - first * first
        curvature = N * (spread if spread > 0.0 else 0.0) + precision
        step = (S + tilt - N * first - precision * t) / curvature
        step = min(max(step, -MODE_STEP_LIMIT), MODE_STEP_LIMIT)
        t += step
        if step * step * curvature < 1e-6:
            break
    return t, 1.0 / math.sqrt(curvature)


@kernel
def draw_proposal(stream, mode, sd):
    """Student-t around the mode (Bailey 1994): heavier in the tails than the line itself."""
    radius = math.sqrt(TAIL_FREEDOM * (uniform(stream) ** (-2.0 / TAIL_FREEDOM) - 1.0))
    return mode + sd * radius * math.cos(2.0 * math.pi * uniform(stream))


@kernel
def log_proposal(t, mode, sd):
    """Log density of :func:`draw_proposal`."""
    z = (t - mode) / sd
    return LOG_TAIL_CONSTANT - math.log(sd) - 0.5 * (TAIL_FREEDOM + 1.0) * math.log1p(z * z / TAIL_FREEDOM)


@kernel
def log_slab_constant(sigma0):
    """Log density of N(0, sigma0^2) at zero; its quadratic part is in the line's precision."""
    return -LOG_ROOT_TWO_PI - math.log(sigma0)


@kernel
def pair_values(mean_i, mean_j, values):
    """Direction of a pair in the cells (x_i, x_j) = 00, 10, 01, 11."""
    values[0] = mean_i * mean_j
    values[1] = -(1.0 - mean_i) * mean_j
    values[2] = -mean_i * (1.0 - mean_j)
    values[3] = (1.0 - mean_i) * (1.0 - mean_j)


@kernel
def pair_sum(s_ij, s_i, s_j, mean_i, mean_j, N):
    """Sum over the data of a pair's direction."""
    return s_ij - mean_j * s_i - mean_i * s_j + N * mean_i * mean_j


@kernel
def move_cells(cells, values, t, moved):
    """Cell probabilities after a move by `t` along the line."""
    total = 0.0
    for c in range(cells.shape[0]):
        moved[c] = cells[c] * math.exp(t * values[c])
        total += moved[c]
    for c in range(cells.shape[0]):
        moved[c] /= total


@kernel
def metropolis(stream, log_ratio):
    """Accept with probability min(1, exp(log_ratio))."""
    return log_ratio >= 0.0 or math.log(uniform(stream)) < log_ratio


@kernel
def acceptance(log_ratio):
    """min(1, exp(log_ratio))."""
    return 1.0 if log_ratio >= 0.0 else math.exp(log_ratio)
