"""Stretches: propose by the surrogate, decide by an oracle (docs/method.md, 10).

A stretch of reversible steps on the surrogate is one proposal. Its ratio is that of the weights w of (10.6)
at its two ends: the prior cancels, and so does everything the surrogate is right about. The decision is exact
whatever the surrogate; a poor one is accepted seldom.

The weight of the present state is kept in ``Decider.point`` and must be that of the state as it is: whoever
moves a bias or a parameter otherwise calls :func:`weigh` before the next stretch. Hyper-parameters do not
enter it.

**Decider**, frozen when warm-up ends but for the point: ``trusting`` while stretches are taken at their word,
as early in warm-up; ``steps`` of a stretch and its ``repeats`` in an iteration; after each of them one of
``short`` steps, whose biases ``keep`` that share of what they are off their mean; probability ``walks`` that
a walk of a single parameter follows it, and the ``scales[k]`` and ``bias_scales[i]`` of its heavy-tailed
proposals; ``members[k]`` the variables of a position; ``point`` w and log Z of the present state; ``walker``
and ``room`` scratch.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.codes import (
    INCLUSION,
    SHORTS,
    SHORTS_ACCEPTED,
    SLAB_SCALE,
    STRETCHES,
    STRETCHES_ACCEPTED,
    TOO_WIDE,
    TRIES,
    WALKS,
    WALKS_ACCEPTED,
    WEIGHT_SQUARES,
)
from edgewise.kernels.compiling import entry, kernel
from edgewise.kernels.graph import is_pair, pair_of
from edgewise.kernels.hyper import draw_hyper, is_free
from edgewise.kernels.lines import metropolis
from edgewise.kernels.oracles import decides, log_partition
from edgewise.kernels.random import below, uniform
from edgewise.kernels.state import record, room_left
from edgewise.kernels.surrogate import (
    bias_residual,
    draw_biases,
    load_walker,
    mark,
    put,
    stir_biases,
    stretch,
    take_back,
    unload_walker,
)

Decider = namedtuple(
    "Decider", "trusting steps repeats short keep walks scales bias_scales members point walker room"
)
WEIGHT, LOG_Z = 0, 1
LARGEST_SQUARE = 400.0


@kernel
def log_data(sums, surrogate, walker, log_z, prior):
    """Log likelihood and prior of the biases at the walker's parameters."""
    total = -sums.rows[0] * log_z
    flat = 1.0 / (prior.bias_sd * prior.bias_sd)
    for i in range(walker.bias.shape[0]):
        total += walker.bias[i] * (sums.singles[0, i] - 0.5 * flat * walker.bias[i])
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        total += sums.cliques[0, surrogate.candidates[k]] * walker.theta[k]
    return total


@kernel
def log_weight(sums, surrogate, walker, log_z, energy, prior):
    """w of (10.6): what the surrogate is wrong about; `energy` is that of the biases given the parameters."""
    total = log_data(sums, surrogate, walker, log_z, prior) + energy
    for position in range(walker.counts[0]):
        k = walker.listed[position]
        total -= 0.5 * walker.theta[k] * (surrogate.pull[k] + walker.slope[k])
    return total


@kernel
def bias_energy(surrogate, walker, room):
    """Half the squared distance of the biases from their mean given the parameters."""
    p = walker.bias.shape[0]
    bias_residual(surrogate, walker, room)
    energy = 0.0
    for i in range(p):
        line = 0.0
        for j in range(p):
            line += surrogate.bias_precision[i, j] * room[j]
        energy += 0.5 * room[i] * line
    return energy


@kernel
def partition_of(oracle, decider):
    """Log Z of the walker's model."""
    walker = decider.walker
    return log_partition(oracle, walker.bias, walker.theta, walker.listed, walker.counts[0], decider.members)


@entry
def weigh(sums, chain, prior, surrogate, oracle, decider):
    """Bring the weight of the present state up to date."""
    load_walker(surrogate, chain, decider.walker)
    energy = bias_energy(surrogate, decider.walker, decider.room)
    log_z = partition_of(oracle, decider)
    decider.point[WEIGHT] = log_weight(sums, surrogate, decider.walker, log_z, energy, prior)
    decider.point[LOG_Z] = log_z


@kernel
def propose_stretch(steps, keep, rules, chain, surrogate, decider):
    """Walk so many steps from the mark on, then move the biases (10.7); their energy there."""
    walker, status = decider.walker, chain.graph.status
    bias_residual(surrogate, walker, decider.room)
    stretch(steps, status, chain.hyper, rules.prior, surrogate, walker, chain.stream)
    if keep > 0.0:
        stir_biases(keep, decider.room, surrogate, walker, chain.stream)
        return bias_energy(surrogate, walker, decider.room)
    return draw_biases(surrogate, walker, chain.stream)


@kernel
def accept_stretch(energy, rules, sums, chain, surrogate, oracle, decider):
    """Whether the oracle accepts where the walker is (10.6), and the change of w; else it is taken back."""
    walker, status = decider.walker, chain.graph.status
    log_z = partition_of(oracle, decider)
    if math.isnan(log_z):
        chain.counters[TOO_WIDE] += 1.0
        take_back(status, surrogate, walker)
        return False, 0.0
    weight = log_weight(sums, surrogate, walker, log_z, energy, rules.prior)
    change = weight - decider.point[WEIGHT]
    # A state that the oracle could not weigh is left for any that it can; there is none after warm-up.
    if not (math.isnan(change) or metropolis(chain.stream, change)):
        take_back(status, surrogate, walker)
        return False, change
    decider.point[WEIGHT] = weight
    decider.point[LOG_Z] = log_z
    return True, change


@kernel
def try_stretch(rules, sums, chain, surrogate, oracle, decider):
    """Propose a stretch from where the walker is, and decide on it."""
    mark(decider.walker)
    energy = propose_stretch(decider.steps, 0.0, rules, chain, surrogate, decider)
    chain.counters[STRETCHES] += 1.0
    if decides(oracle) and not decider.trusting:
        accepted, change = accept_stretch(energy, rules, sums, chain, surrogate, oracle, decider)
        # A state stuck far in the tails would hide what the surrogate is like elsewhere.
        if change * change < LARGEST_SQUARE:
            chain.counters[WEIGHT_SQUARES] += change * change
        if not accepted:
            return
    chain.counters[STRETCHES_ACCEPTED] += 1.0


@kernel
def try_short(rules, sums, chain, surrogate, oracle, decider):
    """Propose a short stretch whose biases keep a share of what they are off their mean, and decide on it."""
    mark(decider.walker)
    energy = propose_stretch(decider.short, decider.keep, rules, chain, surrogate, decider)
    chain.counters[SHORTS] += 1.0
    if accept_stretch(energy, rules, sums, chain, surrogate, oracle, decider)[0]:
        chain.counters[SHORTS_ACCEPTED] += 1.0


@kernel
def heavy(stream):
    """A draw from Student's t with two degrees of freedom."""
    u = 2.0 * uniform(stream) - 1.0
    return u * math.sqrt(2.0 / (1.0 - u * u))


@kernel
def try_walk(rules, sums, chain, surrogate, oracle, decider):
    """Move the walker's one active parameter along its line, or one bias, by a heavy-tailed step.

    Stretches seldom leave a state far in the tails, where the surrogate falls faster than the posterior.
    These moves do not look at the surrogate at all.
    """
    walker, stream, prior = decider.walker, chain.stream, rules.prior
    mark(walker)
    before = log_data(sums, surrogate, walker, decider.point[LOG_Z], prior)
    p = walker.bias.shape[0]
    chosen = below(stream, p + walker.counts[0])
    chain.counters[WALKS] += 1.0
    log_ratio = 0.0
    if chosen < p:
        walker.bias[chosen] += decider.bias_scales[chosen] * heavy(stream)
    else:
        k = walker.listed[chosen - p]
        t = decider.scales[k] * heavy(stream)
        flat = 1.0 / (chain.hyper[SLAB_SCALE] * chain.hyper[SLAB_SCALE])
        log_ratio -= flat * t * (walker.theta[k] + 0.5 * t)
        a = surrogate.candidates[k]
        put(k, True, walker.theta[k] + t, chain.graph.status[a], surrogate, walker)
        if is_pair(chain.graph, a):
            i, j = pair_of(a, chain.graph)
            walker.bias[i] -= t * rules.centres[0, j]
            walker.bias[j] -= t * rules.centres[0, i]
    log_z = partition_of(oracle, decider)
    log_ratio += log_data(sums, surrogate, walker, log_z, prior) - before
    if not metropolis(stream, log_ratio):
        take_back(chain.graph.status, surrogate, walker)
        return
    chain.counters[WALKS_ACCEPTED] += 1.0
    energy = bias_energy(surrogate, walker, decider.room)
    decider.point[WEIGHT] = log_weight(sums, surrogate, walker, log_z, energy, prior)
    decider.point[LOG_Z] = log_z


@kernel
def visit_stretches(rules, sums, chain, surrogate, oracle, decider):
    """Some stretches, each decided, and now and then a walk; the chain is where the last of them ended."""
    load_walker(surrogate, chain, decider.walker)
    for _ in range(decider.repeats):
        try_stretch(rules, sums, chain, surrogate, oracle, decider)
        if decides(oracle) and not decider.trusting:
            if decider.short > 0:
                try_short(rules, sums, chain, surrogate, oracle, decider)
            if uniform(chain.stream) < decider.walks:
                try_walk(rules, sums, chain, surrogate, oracle, decider)
    unload_walker(surrogate, decider.walker, chain)


@kernel
def tally_indicators(surrogate, chain):
    """Count every indicator in play as it is after the decision."""
    for k in range(surrogate.candidates.shape[0]):
        a = surrogate.candidates[k]
        if is_free(chain.graph.status[a]):
            chain.tallies[TRIES, a] += 1.0
            if chain.graph.place[a] >= 0:
                chain.tallies[INCLUSION, a] += 1.0


@entry
def run_stretches(rules, sums, chain, surrogate, oracle, decider, iteration, iterations, thin, recorder):
    """Run up to `iterations` stretches, stopping early when the recorder is full; returns how many ran.

    `iteration` counts from the end of warm-up and decides what is kept; a negative `thin` keeps nothing.
    """
    for step in range(iterations):
        if thin > 0 and not room_left(chain.graph.counts[0], recorder):
            return step
        visit_stretches(rules, sums, chain, surrogate, oracle, decider)
        draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)
        tally_indicators(surrogate, chain)
        if thin > 0 and (iteration + step + 1) % thin == 0:
            record(chain, recorder)
    return iterations
