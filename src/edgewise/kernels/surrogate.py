"""The Gaussian surrogate of the posterior and a chain on it (docs/method.md, 10).

With log Z replaced by a quadratic, the posterior of the biases and the parameters in play is that of a
spike-and-slab linear regression. The biases are integrated out, so that a decision on an indicator is a
comparison of two numbers, and a swap, or any choice among a few candidates at once, has closed-form odds.

**Surrogate**, fixed from the end of warm-up on; a position k stands for the candidate ``candidates[k]``:

``precision[k, l]``  Q of (10.3), the rows of the regression, biases integrated out; symmetric to the last bit
``pull[k]``          r of (10.3)
``tilt[k]``          what an active k adds to the log density besides, (10.8)
``bias_mean[i]``, ``bias_slope[k, i]``  mean of the biases given the parameters: bias_mean - theta'bias_slope
``bias_root[i, j]``  lower triangle R with R R' their covariance, ``bias_precision`` the inverse of that
``chance[k], alias[k]``  Walker's table of how often a position is chosen for a decision of its own
``rivals[r]``        sets of a few positions (padded with -1) that are decided together, chosen by the table
                     ``rival_chance[r], rival_alias[r]``
``shares``           probability that a step decides a set of rivals rather than a single position

**Walker** is a light copy of a chain in terms of positions: ``theta``, ``listed``, ``place``, ``counts`` as
in ``graph.py``, ``bias``, and ``slope[k]``, the pull less what the present parameters take of it,
r - Q theta. ``theta_before[n]`` and ``bias_before[n]`` are those at the n-th :func:`mark`, so that what
followed can be taken back.

A step chooses what to decide without looking at the state, and draws it from its conditional distribution:
each step is reversible, and so is a stretch of steps chosen at random, for the surrogate as it is stored.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.codes import BIRTHS, COMMON, DEATHS
from edgewise.kernels.compiling import entry, kernel, loop, small, whole
from edgewise.kernels.graph import activate, deactivate
from edgewise.kernels.hyper import is_free, log_prior_odds
from edgewise.kernels.random import below, normal, uniform
from edgewise.kernels.slabs import slab_mean, slab_precision, within

# States that a walker remembers.
MARKS = 2
# A set of rivals has at most so many positions; all its subsets are compared.
LARGEST_SET = 6
# A conditional precision of a set is never below this share of the slab's: rounding could make it negative.
SMALLEST_SHARE = 1e-3

Surrogate = namedtuple(
    "Surrogate",
    "candidates precision pull tilt bias_mean bias_slope bias_root bias_precision "
    "chance alias rivals rival_chance rival_alias shares",
)
Walker = namedtuple("Walker", "theta listed place counts bias slope theta_before bias_before")


def empty_walker(positions: int, n_variables: int) -> Walker:
    """Room for a copy of a chain."""
    return Walker(
        theta=np.zeros(positions),
        listed=np.full(positions, -1, np.int64),
        place=np.full(positions, -1, np.int64),
        counts=np.zeros(2, np.int64),
        bias=np.zeros(n_variables),
        slope=np.zeros(positions),
        theta_before=np.zeros((MARKS, positions)),
        bias_before=np.zeros((MARKS, n_variables)),
    )


@loop
def subtract_scaled(target, scale, values):
    """target -= scale * values, the values in single precision."""
    for k in range(target.shape[0]):
        target[k] -= scale * values[k]


@kernel
def load_walker(surrogate, chain, walker):
    """Make the walker a copy of the chain; candidates that are not in play stay behind."""
    for k in range(walker.theta.shape[0]):
        walker.theta[k] = 0.0
        walker.place[k] = -1
        walker.slope[k] = surrogate.pull[k]
    walker.counts[0] = 0
    walker.counts[1] = chain.graph.counts[1]
    for k in range(walker.theta.shape[0]):
        a = surrogate.candidates[k]
        if chain.graph.place[a] >= 0:
            enlist(k, walker)
            walker.theta[k] = chain.theta[a]
            subtract_scaled(walker.slope, chain.theta[a], surrogate.precision[k])
    for i in range(walker.bias.shape[0]):
        walker.bias[i] = chain.bias[i]


@kernel
def unload_walker(surrogate, walker, chain):
    """Make the chain what the walker is."""
    graph = chain.graph
    for k in range(walker.theta.shape[0]):
        a = surrogate.candidates[k]
        if walker.place[k] < 0 and graph.place[a] >= 0:
            deactivate(a, graph)
            chain.tallies[DEATHS, a] += 1.0
        elif walker.place[k] >= 0 and graph.place[a] < 0:
            activate(a, graph)
            chain.tallies[BIRTHS, a] += 1.0
        chain.theta[a] = walker.theta[k]
    for i in range(walker.bias.shape[0]):
        chain.bias[i] = walker.bias[i]


@kernel
def enlist(k, walker):
    """Put position `k` on the list of active ones."""
    walker.place[k] = walker.counts[0]
    walker.listed[walker.counts[0]] = k
    walker.counts[0] += 1


@kernel
def put(k, on, value, status, surrogate, walker):
    """Set position `k`: its indicator, its parameter and what that takes from the slopes."""
    if on != (walker.place[k] >= 0):
        common = 1 if status == COMMON else 0
        if on:
            enlist(k, walker)
            walker.counts[1] += common
        else:
            walker.counts[0] -= 1
            last = walker.listed[walker.counts[0]]
            walker.listed[walker.place[k]] = last
            walker.place[last] = walker.place[k]
            walker.place[k] = -1
            walker.counts[1] -= common
    if value != walker.theta[k]:
        subtract_scaled(walker.slope, value - walker.theta[k], surrogate.precision[k])
        walker.theta[k] = value


@kernel
def mark(which, walker):
    """Remember the present state as mark `which`: :func:`take_back` returns to it."""
    for k in range(walker.theta.shape[0]):
        walker.theta_before[which, k] = walker.theta[k]
    for i in range(walker.bias.shape[0]):
        walker.bias_before[which, i] = walker.bias[i]


@kernel
def take_back(which, status, surrogate, walker):
    """Undo all that happened since mark `which`."""
    for k in range(walker.theta.shape[0]):
        value = walker.theta_before[which, k]
        if value != walker.theta[k]:
            put(k, value != 0.0, value, status[surrogate.candidates[k]], surrogate, walker)
    for i in range(walker.bias.shape[0]):
        walker.bias[i] = walker.bias_before[which, i]


@kernel
def decide_one(k, status, hyper, prior, surrogate, walker, stream):
    """Draw indicator and parameter of position `k` given all others (10.4); the probability of one."""
    a = surrogate.candidates[k]
    own = np.float64(surrogate.precision[k, k])
    flat, mean = slab_precision(prior.slab, a, hyper), slab_mean(prior.slab, a)
    g = walker.slope[k] + own * walker.theta[k] + flat * mean
    precision = own + flat
    probability = 1.0
    if is_free(status[a]):
        active = walker.place[k] >= 0 and status[a] == COMMON
        others = walker.counts[1] - (1 if active else 0)
        log_odds = (
            log_prior_odds(a, others, status, hyper, prior)
            + surrogate.tilt[k]
            + 0.5 * g * g / precision
            - 0.5 * flat * mean * mean
            - 0.5 * math.log(precision / flat)
        )
        probability = 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0
    on = uniform(stream) < probability
    value = g / precision + normal(stream) / math.sqrt(precision) if on else 0.0
    if within(prior.slab, value):
        put(k, on, value, status[a], surrogate, walker)
    return probability


@kernel
def add_row(x, size, chosen, Q, g, flat, root, half):
    """Append position `x` of a set to the `size` ones chosen so far; returns its conditional precision.

    ``root`` is the Cholesky root of their joint precision, ``half`` its solution for ``g``; ``flat`` are the
    precisions of their slabs.
    """
    for row in range(size):
        value = Q[LARGEST_SET * x + chosen[row]]
        for m in range(row):
            value -= root[LARGEST_SET * size + m] * root[LARGEST_SET * row + m]
        root[LARGEST_SET * size + row] = value / root[LARGEST_SET * row + row]
    pivot = Q[LARGEST_SET * x + x] + flat[x]
    solved = g[x]
    for m in range(size):
        pivot -= root[LARGEST_SET * size + m] * root[LARGEST_SET * size + m]
        solved -= root[LARGEST_SET * size + m] * half[m]
    pivot = max(pivot, SMALLEST_SHARE * flat[x])
    root[LARGEST_SET * size + size] = math.sqrt(pivot)
    half[size] = solved / root[LARGEST_SET * size + size]
    chosen[size] = x
    return pivot


@kernel
def weigh_subsets(count, must, fixed, common, ladder, Q, g, flat, root, half, chosen, weight):
    """Log probabilities (10.5), but for a constant, of all subsets of a set of positions.

    `fixed[x]` is the tilt of position x, with the prior's part where it does not share p0, `ladder[n]` that
    of the first n which do; `must` has the bits of those that are always active. Returns the largest.
    """
    energy, volume = small(7), small(7)
    energy[0] = 0.0
    volume[0] = 1.0
    members, shared, size, x = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    log_fixed = 0.0
    weight[0] = -math.inf if must else 0.0
    top = weight[0]
    while True:
        if x < count:
            pivot = add_row(x, size, chosen, Q, g, flat, root, half)
            energy[size + 1] = energy[size] + half[size] * half[size]
            volume[size + 1] = volume[size] * flat[x] / pivot
            size += 1
            members |= 1 << x
            shared += common >> x & 1
            log_fixed += fixed[x]
            if members & must == must:
                value = 0.5 * (energy[size] + math.log(volume[size])) + log_fixed + ladder[shared]
            else:
                value = -math.inf
            weight[members] = value
            top = max(top, value)
        elif size == 0:
            return top
        else:
            size -= 1
            x = np.int64(chosen[size])
            members ^= 1 << x
            shared -= common >> x & 1
            log_fixed -= fixed[x]
        x += 1


@kernel
def decide_rivals(rivals, status, hyper, prior, surrogate, walker, stream):
    """Draw the indicators and parameters of a few positions jointly, given all others (10.5)."""
    count = 0
    while count < LARGEST_SET and rivals[count] >= 0:
        count += 1
    Q, root = small(36), small(36)
    g, half, values, fixed, flat = small(6), small(6), small(6), small(6), small(6)
    ladder, weight, chosen = small(7), small(64), whole(6)
    others = walker.counts[1]
    must, common = np.int64(0), np.int64(0)
    first = np.int64(-1)
    for x in range(count):
        k = rivals[x]
        a = surrogate.candidates[k]
        g[x] = walker.slope[k]
        for y in range(count):
            Q[LARGEST_SET * x + y] = surrogate.precision[k, rivals[y]]
            g[x] += Q[LARGEST_SET * x + y] * walker.theta[rivals[y]]
        flat[x] = slab_precision(prior.slab, a, hyper)
        push = flat[x] * slab_mean(prior.slab, a)
        g[x] += push
        fixed[x] = surrogate.tilt[k] - 0.5 * push * slab_mean(prior.slab, a)
        if not is_free(status[a]):
            must |= 1 << x
        elif status[a] == COMMON:
            common |= 1 << x
            first = a
            others -= 1 if walker.place[k] >= 0 else 0
        else:
            fixed[x] += log_prior_odds(a, others, status, hyper, prior)
    ladder[0] = 0.0
    for n in range(count):
        ladder[n + 1] = ladder[n] + (
            log_prior_odds(first, others + n, status, hyper, prior) if first >= 0 else 0.0
        )
    top = weigh_subsets(count, must, fixed, common, ladder, Q, g, flat, root, half, chosen, weight)
    total = 0.0
    for subset in range(1 << count):
        weight[subset] = math.exp(weight[subset] - top)
        total += weight[subset]
    left = uniform(stream) * total
    subset = np.int64(0)
    while subset < (1 << count) - 1 and left >= weight[subset]:
        left -= weight[subset]
        subset += 1
    size = 0
    for x in range(count):
        if subset >> x & 1:
            add_row(x, size, chosen, Q, g, flat, root, half)
            size += 1
    for m in range(size - 1, -1, -1):
        value = half[m] + normal(stream)
        for later in range(m + 1, size):
            value -= root[LARGEST_SET * later + m] * values[later]
        values[m] = value / root[LARGEST_SET * m + m]
        if not within(prior.slab, values[m]):
            return
    size = 0
    for x in range(count):
        on = subset >> x & 1 == 1
        value = values[size] if on else 0.0
        size += 1 if on else 0
        put(rivals[x], on, value, status[surrogate.candidates[rivals[x]]], surrogate, walker)


@kernel
def draw_biases(surrogate, walker, stream):
    """Draw the biases given the parameters (10.3); half the sum of squares of the normal numbers used."""
    p = walker.bias.shape[0]
    for i in range(p):
        walker.bias[i] = surrogate.bias_mean[i]
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        for i in range(p):
            walker.bias[i] -= walker.theta[k] * surrogate.bias_slope[k, i]
    energy = 0.0
    for j in range(p):
        z = normal(stream)
        energy += 0.5 * z * z
        for i in range(j, p):
            walker.bias[i] += surrogate.bias_root[i, j] * z
    return energy


@kernel
def bias_residual(surrogate, walker, residual):
    """How far the biases are from their mean given the parameters."""
    p = walker.bias.shape[0]
    for i in range(p):
        residual[i] = walker.bias[i] - surrogate.bias_mean[i]
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        for i in range(p):
            residual[i] += walker.theta[k] * surrogate.bias_slope[k, i]


@kernel
def stir_biases(keep, residual, surrogate, walker, stream):
    """Move the biases given the parameters, keeping the share `keep` of their old residual (10.7)."""
    draw_biases(surrogate, walker, stream)
    fresh = math.sqrt(1.0 - keep * keep)
    p = walker.bias.shape[0]
    for i in range(p):
        walker.bias[i] = fresh * walker.bias[i] + (1.0 - fresh) * surrogate.bias_mean[i] + keep * residual[i]
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        for i in range(p):
            walker.bias[i] -= (1.0 - fresh) * walker.theta[k] * surrogate.bias_slope[k, i]


@kernel
def choose(chance, alias, stream):
    """A random entry of Walker's table."""
    k = below(stream, chance.shape[0])
    return k if uniform(stream) < chance[k] else alias[k]


@kernel
def stretch(steps, status, hyper, prior, surrogate, walker, stream):
    """So many steps chosen at random; returns how many of them changed the graph."""
    changed = 0
    for _ in range(steps if walker.theta.shape[0] > 0 else 0):
        before = walker.counts[0]
        if uniform(stream) < surrogate.shares[0]:
            r = choose(surrogate.rival_chance, surrogate.rival_alias, stream)
            decide_rivals(surrogate.rivals[r], status, hyper, prior, surrogate, walker, stream)
        else:
            k = choose(surrogate.chance, surrogate.alias, stream)
            decide_one(k, status, hyper, prior, surrogate, walker, stream)
        changed += 1 if walker.counts[0] != before else 0
    return changed


@entry
def walk(steps, hyper, prior, status, surrogate, walker, stream, trace):
    """Stretches with fixed hyper-parameters; the indicators after each into a row of `trace`."""
    for row in range(trace.shape[0]):
        stretch(steps, status, hyper, prior, surrogate, walker, stream)
        for position in range(walker.counts[0]):
            trace[row, walker.listed[position]] = True
