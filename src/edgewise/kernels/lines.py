"""One line in parameter space: the posterior along it, its mode, a proposal from it (docs/method.md, 4-5).

Along a direction d the features enter only through the probabilities ``cells[g, c]`` of a few joint states
(cells) c and the value ``values[g, c]`` of the direction in each. The data may fall into strata g with cells,
values, sums ``S[g]`` and rows ``N[g]`` of their own (there is one stratum so far); their log likelihoods add
up. With t the distance from the base point, (5.1) holds with no expansion and for any t; ``precision`` and
``tilt`` collect the Gaussian priors (5.2). The log target is concave.
"""

from __future__ import annotations

import math

from edgewise.kernels.compiling import kernel, long
from edgewise.kernels.random import normal, uniform

# Newton's method on a concave line; steps are damped so that a flat start cannot throw it far, and end where
# a step is below a thousandth of the line's own width.
MODE_STEPS = 16
MODE_STEP_LIMIT = 1.5
MODE_ACCURACY = 1e-6
# Degrees of freedom of the proposals: heavier in the tails than any line, close to a Gaussian otherwise.
TAIL_FREEDOM = 8.0
LOG_TAIL_CONSTANT = (
    math.lgamma((TAIL_FREEDOM + 1) / 2)
    - math.lgamma(TAIL_FREEDOM / 2)
    - 0.5 * math.log(TAIL_FREEDOM * math.pi)
)
LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


@long
def log_z_change(t, cells, values):
    """Change of log Z by a move of `t` along a line, from the cells at its beginning (4.3).

    With the two cells of one feature it is (4.1), with the joint ones of a swap (4.5).
    """
    growth = 0.0
    for c in range(cells.shape[0]):
        growth += cells[c] * math.expm1(t * values[c])
    if growth > -0.5:
        return math.log1p(growth)
    # Nearly all mass shrinks: then the sum itself is accurate, taken relative to its largest term.
    top = -math.inf
    for c in range(cells.shape[0]):
        if cells[c] > 0.0:
            top = max(top, t * values[c])
    total = 0.0
    for c in range(cells.shape[0]):
        total += cells[c] * math.exp(t * values[c] - top) if cells[c] > 0.0 else 0.0
    return top + math.log(total)


@kernel
def line_value(t, cells, values, S, N, precision, tilt):
    """Log target at `t` relative to the base point (5.1), that is (4.4) with its priors."""
    result = t * tilt - 0.5 * precision * t * t
    for g in range(cells.shape[0]):
        result += t * S[g] - N[g] * log_z_change(t, cells[g], values[g])
    return result


@kernel
def slope_and_curvature(t, cells, values, S, N):
    """First derivative of the log likelihood of one stratum along its line, and minus the second."""
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
    return S - N * first, N * (spread if spread > 0.0 else 0.0)


@long
def line_mode(cells, values, S, N, precision, tilt):
    """Mode of the line and the standard deviation of its Laplace approximation, by damped Newton steps."""
    t = 0.0
    curvature = precision
    for _ in range(MODE_STEPS):
        gradient = tilt - precision * t
        curvature = precision
        for g in range(cells.shape[0]):
            slope, spread = slope_and_curvature(t, cells[g], values[g], S[g], N[g])
            gradient += slope
            curvature += spread
        step = min(max(gradient / curvature, -MODE_STEP_LIMIT), MODE_STEP_LIMIT)
        t += step
        if step * step * curvature < MODE_ACCURACY:
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


@long
def move_cells(cells, values, t, moved):
    """Cell probabilities of every stratum after a move by `t` along the line, as (4.2) for one feature."""
    for g in range(cells.shape[0]):
        total = 0.0
        for c in range(cells.shape[1]):
            moved[g, c] = cells[g, c] * math.exp(t * values[g, c])
            total += moved[g, c]
        for c in range(cells.shape[1]):
            moved[g, c] /= total


@kernel
def penalised(log_ratio, noise, stream):
    """The log ratio with the noise of both directions made equal and its penalty taken off (7.2).

    ``noise`` holds the variances of the log ratio forwards and in reverse; where both are zero nothing
    happens and nothing is drawn.
    """
    variance = noise[0]
    if noise[1] > variance:
        variance = noise[1]
        log_ratio += math.sqrt(variance - noise[0]) * normal(stream)
    return log_ratio - 0.5 * variance


@kernel
def metropolis(stream, log_ratio):
    """Accept with probability min(1, exp(log_ratio))."""
    return log_ratio >= 0.0 or math.log(uniform(stream)) < log_ratio


@kernel
def acceptance(log_ratio):
    """min(1, exp(log_ratio))."""
    return 1.0 if log_ratio >= 0.0 else math.exp(log_ratio)
