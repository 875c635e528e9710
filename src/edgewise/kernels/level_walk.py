"""A chain on the Gaussian surrogate of a posterior with levels, and the particles it is learned from.

As ``surrogate.py`` with matrices: the parameters of a candidate are a block, whose indicator has closed-form
odds (docs/method.md, 11). Nothing decides but the surrogate itself, so that candidates are visited in order.

**LevelSurrogate**, fixed from the end of warm-up on: ``candidates[k]`` have the parameters ``offset[k]`` to
``offset[k + 1]``; ``precision`` and ``pull`` are those of the regression with the thresholds integrated out,
``bias_mean - theta'bias_slope`` the mean of the thresholds given the parameters and ``bias_root`` the root of
their covariance. **Walk** is scratch: the parameters ``theta``, ``slope`` = pull - precision theta, and room
for one block.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.blanks import impute, lean_on
from edgewise.kernels.codes import BIRTHS, DEATHS, INCLUSION, TRIES
from edgewise.kernels.compiling import entry, kernel, loop
from edgewise.kernels.graph import activate, deactivate
from edgewise.kernels.hyper import draw_hyper, is_free, log_prior_odds, other_common
from edgewise.kernels.level_chain import fill_potentials
from edgewise.kernels.random import normal, uniform
from edgewise.kernels.slabs import slab_mean, slab_precision
from edgewise.kernels.state import record, room_left

LevelSurrogate = namedtuple(
    "LevelSurrogate", "candidates offset precision pull bias_mean bias_slope bias_root"
)
Walk = namedtuple("Walk", "theta slope root half values")


@loop
def take_scaled(target, scale, values):
    """target -= scale * values."""
    for k in range(target.shape[0]):
        target[k] -= scale * values[k]


@kernel
def load_walk(rules, chain, surrogate, walk):
    """Parameters and slopes of the present state of the chain."""
    for q in range(walk.theta.shape[0]):
        walk.theta[q] = 0.0
        walk.slope[q] = surrogate.pull[q]
    for k in range(surrogate.candidates.shape[0]):
        a = surrogate.candidates[k]
        if chain.graph.place[a] < 0:
            continue
        begin, size = surrogate.offset[k], surrogate.offset[k + 1] - surrogate.offset[k]
        for x in range(size):
            value = chain.theta[a] if size == 1 else chain.blocks[rules.block_start[a] + x]
            walk.theta[begin + x] = value
            take_scaled(walk.slope, value, surrogate.precision[begin + x])


@kernel
def solve_block(begin, size, flat, push, surrogate, walk):
    """Root of the precision of a block and half of its solution; energy and log determinant of (11.9).

    `flat` is the precision of the slab, and `push` that times its mean.
    """
    root, half = walk.root, walk.half
    energy, log_volume = 0.0, 0.0
    for x in range(size):
        g = walk.slope[begin + x] + push
        for y in range(size):
            g += surrogate.precision[begin + x, begin + y] * walk.theta[begin + y]
        for y in range(x + 1):
            value = surrogate.precision[begin + x, begin + y] + (flat if x == y else 0.0)
            for m in range(y):
                value -= root[x, m] * root[y, m]
            root[x, y] = math.sqrt(max(value, 1e-3 * flat)) if x == y else value / root[y, y]
        for y in range(x):
            g -= root[x, y] * half[y]
        half[x] = g / root[x, x]
        energy += half[x] * half[x]
        log_volume += 2.0 * math.log(root[x, x])
    return energy, log_volume


@kernel
def decide_block(k, rules, chain, surrogate, walk):
    """Draw the indicator and the parameters of a candidate given all others; the probability of one."""
    a = surrogate.candidates[k]
    graph, stream = chain.graph, chain.stream
    begin, size = surrogate.offset[k], surrogate.offset[k + 1] - surrogate.offset[k]
    flat = slab_precision(rules.prior.slab, a, chain.hyper)
    mean = slab_mean(rules.prior.slab, a)
    energy, log_volume = solve_block(begin, size, flat, flat * mean, surrogate, walk)
    probability = 1.0
    if is_free(graph.status[a]):
        log_odds = (
            log_prior_odds(a, other_common(a, graph), graph.status, chain.hyper, rules.prior)
            + 0.5 * (energy - flat * mean * mean)
            - 0.5 * (log_volume - size * math.log(flat))
        )
        probability = 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0
    on = uniform(stream) < probability
    if not on and graph.place[a] < 0:
        return probability
    squares = 0.0
    for x in range(size - 1, -1, -1):
        value = 0.0
        if on:
            value = walk.half[x] + normal(stream)
            for later in range(x + 1, size):
                value -= walk.root[later, x] * walk.values[later]
            value /= walk.root[x, x]
        walk.values[x] = value
        squares += value * value
    for x in range(size):
        take_scaled(walk.slope, walk.values[x] - walk.theta[begin + x], surrogate.precision[begin + x])
        walk.theta[begin + x] = walk.values[x]
        if size > 1:
            chain.blocks[rules.block_start[a] + x] = walk.values[x]
    chain.theta[a] = walk.values[0] if size == 1 else math.sqrt(squares / size)
    if on and graph.place[a] < 0:
        activate(a, graph)
        chain.tallies[BIRTHS, a] += 1.0
    elif not on and graph.place[a] >= 0:
        deactivate(a, graph)
        chain.tallies[DEATHS, a] += 1.0
    return probability


@kernel
def draw_thresholds(chain, surrogate, walk):
    """Draw the threshold coordinates given the parameters."""
    bias = chain.bias
    for i in range(bias.shape[0]):
        bias[i] = surrogate.bias_mean[i]
    for q in range(walk.theta.shape[0]):
        if walk.theta[q] != 0.0:
            take_scaled(bias, walk.theta[q], surrogate.bias_slope[q])
    for j in range(bias.shape[0]):
        z = normal(chain.stream)
        for i in range(j, bias.shape[0]):
            bias[i] += surrogate.bias_root[i, j] * z


@kernel
def visit_all(sweeps, rules, chain, surrogate, walk):
    """Decide every candidate so many times, then draw thresholds and hyper-parameters."""
    for _ in range(sweeps):
        for k in range(surrogate.candidates.shape[0]):
            a = surrogate.candidates[k]
            probability = decide_block(k, rules, chain, surrogate, walk)
            if is_free(chain.graph.status[a]):
                chain.tallies[TRIES, a] += 1.0
                chain.tallies[INCLUSION, a] += probability
        draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)
    draw_thresholds(chain, surrogate, walk)


@entry
def walk_levels(sweeps, rules, chain, surrogate, walk, blanks, iteration, iterations, thin, recorder):
    """Iterations on the surrogate, stopping early when the recorder is full; returns how many ran."""
    for step in range(iterations):
        if thin > 0 and not room_left(recorder, chain.graph.place.shape[0]):
            return step
        impute(blanks, chain, thin > 0)
        lean_on(blanks, surrogate)
        # Anew in every iteration, so that rounding does not depend on how they are divided into calls.
        load_walk(rules, chain, surrogate, walk)
        visit_all(sweeps, rules, chain, surrogate, walk)
        if thin > 0 and (iteration + step + 1) % thin == 0:
            record(recorder, chain)
    return iterations


@kernel
def answer_anew(i, count, levels, potentials, answers, stream, weight):
    """Draw the level of variable `i` given the others, in every particle."""
    mine = levels[i]
    n = answers.shape[1]
    for s in range(n):
        for c in range(mine):
            weight[s, c] = potentials.thresholds[i, c]
    for k in range(count):
        first, second = potentials.pairs[k, 0], potentials.pairs[k, 1]
        table = potentials.tables[k]
        if first == i:
            for s in range(n):
                base = mine * answers[second, s]
                for c in range(mine):
                    weight[s, c] += table[base + c]
        elif second == i:
            wide = levels[first]
            for s in range(n):
                base = answers[first, s]
                for c in range(mine):
                    weight[s, c] += table[base + wide * c]
    for s in range(n):
        top = weight[s, 0]
        for c in range(1, mine):
            top = max(top, weight[s, c])
        total = 0.0
        for c in range(mine):
            total += math.exp(weight[s, c] - top)
            weight[s, c] = total
        drawn = uniform(stream) * total
        level = 0
        while level < mine - 1 and drawn >= weight[s, level]:
            level += 1
        answers[i, s] = level


@entry
def follow(sweeps, rules, basis, chain, potentials, answers, weight):
    """Gibbs sweeps of particles (variables, particles) at the present parameters."""
    count = fill_potentials(rules, basis, chain, potentials)
    for _ in range(sweeps):
        for i in range(answers.shape[0]):
            answer_anew(i, count, rules.levels, potentials, answers, chain.stream, weight)
