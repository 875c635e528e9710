"""Stretches: propose by the surrogate, decide by an oracle (docs/method.md, 10).

A stretch of reversible steps on the surrogate is one proposal. Its ratio is that of the weights w of (10.6)
at its two ends: the prior cancels, and so does everything the surrogate is right about. The decision is exact
whatever the surrogate; a poor one is accepted seldom.

Where log Z of whole graphs is dear, a *tour* of several stretches is decided twice: each of its stretches by
the weight of the *core*, the state without the candidates that are seldom active (10.9), whose graph is
narrow; the tour as a whole by what the core does not know.

The weights of the present state are kept in ``Decider.point`` and must be those of the state as it is:
whoever moves a bias or a parameter otherwise calls :func:`weigh` before the next stretch. Hyper-parameters do
not enter them.

**Decider**, frozen when warm-up ends but for the point: ``lenience`` what changes of w are divided by, one
but early in warm-up, infinite where stretches are taken at their word; ``steps`` of a stretch and its
``repeats`` in an iteration; after each of them one of ``short`` steps, whose biases ``keep`` that share of
what they are off their mean; ``inner`` stretches of a tour, zero where every stretch is decided by whole
graphs; probability ``walks`` that a walk of a single parameter follows, and the ``scales[k]`` and
``bias_scales[i]`` of its heavy-tailed proposals; ``members[k]`` the variables of a position, ``core[k]``
whether it belongs to the core; ``point`` w, log Z and w of the core of the present state; ``walker``,
``room``, ``core_bias``, ``core_listed`` and ``taken`` scratch.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.blanks import Blanks, Complete, impute, lean_on
from edgewise.kernels.codes import (
    INCLUSION,
    INNER,
    INNER_ACCEPTED,
    SHORTS,
    SHORTS_ACCEPTED,
    STRETCHES,
    STRETCHES_ACCEPTED,
    TOO_WIDE,
    TRIES,
    WALKS,
    WALKS_ACCEPTED,
    WEIGHT_SQUARES,
)
from edgewise.kernels.compiling import answer, kernel, long, question
from edgewise.kernels.graph import is_pair, pair_of
from edgewise.kernels.hyper import draw_hyper, is_free
from edgewise.kernels.lines import metropolis
from edgewise.kernels.oracles import decides, log_partition
from edgewise.kernels.random import below, uniform
from edgewise.kernels.slabs import slab_mean, slab_precision, within
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
    "Decider",
    "lenience steps repeats short keep inner walks scales bias_scales members core point walker room "
    "core_bias core_listed taken",
)
WEIGHT, LOG_Z, CORE = 0, 1, 2
# Marks of the walker: where a stretch began, and a tour.
HERE, TOUR = 0, 1
# Share of the stretches of a tour that are long.
LONG = 0.5
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
        total -= surrogate.tilt[k] + 0.5 * walker.theta[k] * (surrogate.pull[k] + walker.slope[k])
    return total


@kernel
def residual_energy(surrogate, residual):
    """Half the squared distance of biases that are so far off their mean given the parameters."""
    energy = 0.0
    for i in range(residual.shape[0]):
        line = 0.0
        for j in range(residual.shape[0]):
            line += surrogate.bias_precision[i, j] * residual[j]
        energy += 0.5 * residual[i] * line
    return energy


@kernel
def bias_energy(surrogate, walker, room):
    """:func:`residual_energy` of the walker."""
    bias_residual(surrogate, walker, room)
    return residual_energy(surrogate, room)


@kernel
def partition_of(oracle, decider):
    """Log Z of the walker's model."""
    walker = decider.walker
    return log_partition(oracle, walker.bias, walker.theta, walker.listed, walker.counts[0], decider.members)


@kernel
def leave_core(rules, surrogate, decider):
    """Biases and positions of the core: what is outside is taken away along its line (5.2).

    The positions outside follow those inside on the list; returns how many are inside.
    """
    walker, bias, listed = decider.walker, decider.core_bias, decider.core_listed
    for i in range(bias.shape[0]):
        bias[i] = walker.bias[i]
    inside, total = 0, walker.counts[0]
    outside = total
    for position in range(total):
        k = walker.listed[position]
        if decider.core[k]:
            listed[inside] = k
            inside += 1
            continue
        outside -= 1
        listed[outside] = k
        if decider.members.shape[1] == 2 or decider.members[k, 2] < 0:
            i, j = decider.members[k, 0], decider.members[k, 1]
            bias[i] += walker.theta[k] * rules.centres[0, j]
            bias[j] += walker.theta[k] * rules.centres[0, i]
    return inside


@kernel
def core_weight(rules, sums, surrogate, oracle, decider):
    """w of the walker's state without what is outside the core (10.9)."""
    walker, bias, listed, taken = decider.walker, decider.core_bias, decider.core_listed, decider.taken
    inside = leave_core(rules, surrogate, decider)
    log_z = log_partition(oracle, bias, walker.theta, listed, inside, decider.members)
    p = bias.shape[0]
    total = -sums.rows[0] * log_z
    flat = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    residual = decider.room
    for i in range(p):
        total += bias[i] * (sums.singles[0, i] - 0.5 * flat * bias[i])
        residual[i] = bias[i] - surrogate.bias_mean[i]
    for n in range(inside):
        k = listed[n]
        # What all active positions take of the pull, less what those outside take.
        taken[n] = surrogate.pull[k] - walker.slope[k]
    for n in range(inside, walker.counts[0]):
        row, theta = surrogate.precision[listed[n]], walker.theta[listed[n]]
        for m in range(inside):
            taken[m] -= theta * row[listed[m]]
    for n in range(inside):
        k = listed[n]
        theta = walker.theta[k]
        total += theta * (sums.cliques[0, surrogate.candidates[k]] - surrogate.pull[k] + 0.5 * taken[n])
        total -= surrogate.tilt[k]
        for i in range(p):
            residual[i] += theta * surrogate.bias_slope[k, i]
    return total + residual_energy(surrogate, residual)


@long
def weigh(rules, sums, chain, surrogate, oracle, decider, blanks):
    """Bring the weights of the present state up to date."""
    lean_on(blanks, surrogate)
    load_walker(surrogate, chain, decider.walker)
    energy = bias_energy(surrogate, decider.walker, decider.room)
    log_z = partition_of(oracle, decider)
    decider.point[WEIGHT] = log_weight(sums, surrogate, decider.walker, log_z, energy, rules.prior)
    decider.point[LOG_Z] = log_z
    if decider.inner > 0:
        decider.point[CORE] = core_weight(rules, sums, surrogate, oracle, decider)


@question
def weigh_sums(blanks, sums, surrogate, oracle, decider, prior):
    """Bring the weights of the walker's state to sums that have moved; log Z stays what it is (12.3)."""


@answer(weigh_sums, Complete)
def _never_moved(blanks, sums, surrogate, oracle, decider, prior):
    pass


@answer(weigh_sums, Blanks)
def _moved(blanks, sums, surrogate, oracle, decider, prior):
    if not decides(oracle) or math.isinf(decider.lenience):
        return
    energy = bias_energy(surrogate, decider.walker, decider.room)
    weight = log_weight(sums, surrogate, decider.walker, decider.point[LOG_Z], energy, prior)
    # What the sums add is the same for the core.
    decider.point[CORE] += weight - decider.point[WEIGHT]
    decider.point[WEIGHT] = weight


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
def accept(energy, known, start, rules, sums, chain, surrogate, oracle, decider):
    """Whether the oracle accepts where the walker is (10.6), and the change of w; else it returns to `start`.

    `known` is what earlier decisions have accounted for of the change.
    """
    walker, status = decider.walker, chain.graph.status
    log_z = partition_of(oracle, decider)
    if math.isnan(log_z) and decider.lenience <= 1.0:
        chain.counters[TOO_WIDE] += 1.0
        take_back(start, status, surrogate, walker)
        return False, 0.0
    weight = log_weight(sums, surrogate, walker, log_z, energy, rules.prior)
    change = weight - decider.point[WEIGHT] - known
    # A state that the oracle could not weigh is left for any that it can; there is none after warm-up.
    if not (math.isnan(change) or metropolis(chain.stream, change / decider.lenience)):
        take_back(start, status, surrogate, walker)
        return False, change
    decider.point[WEIGHT] = weight
    decider.point[LOG_Z] = log_z
    return True, change


@kernel
def count_decision(accepted, change, chain):
    """Count a stretch or a tour that whole graphs have decided."""
    chain.counters[STRETCHES] += 1.0
    chain.counters[STRETCHES_ACCEPTED] += 1.0 if accepted else 0.0
    # A state stuck far in the tails would hide what the surrogate is like elsewhere.
    if change * change < LARGEST_SQUARE:
        chain.counters[WEIGHT_SQUARES] += change * change


@kernel
def try_stretch(rules, sums, chain, surrogate, oracle, decider):
    """Propose a stretch from where the walker is, and decide on it."""
    mark(HERE, decider.walker)
    energy = propose_stretch(decider.steps, 0.0, rules, chain, surrogate, decider)
    if decides(oracle) and not math.isinf(decider.lenience):
        accepted, change = accept(energy, 0.0, HERE, rules, sums, chain, surrogate, oracle, decider)
        count_decision(accepted, change, chain)
    else:
        count_decision(True, 0.0, chain)


@kernel
def try_short(rules, sums, chain, surrogate, oracle, decider):
    """Propose a short stretch whose biases keep a share of what they are off their mean, and decide on it."""
    mark(HERE, decider.walker)
    energy = propose_stretch(decider.short, decider.keep, rules, chain, surrogate, decider)
    chain.counters[SHORTS] += 1.0
    if accept(energy, 0.0, HERE, rules, sums, chain, surrogate, oracle, decider)[0]:
        chain.counters[SHORTS_ACCEPTED] += 1.0


@kernel
def try_in_core(rules, sums, chain, surrogate, oracle, decider):
    """Propose a stretch, long or short by chance, and decide on it by the core (10.9)."""
    walker = decider.walker
    mark(HERE, walker)
    if uniform(chain.stream) < LONG:
        propose_stretch(decider.steps, 0.0, rules, chain, surrogate, decider)
    else:
        propose_stretch(decider.short, decider.keep, rules, chain, surrogate, decider)
    weight = core_weight(rules, sums, surrogate, oracle, decider)
    change = weight - decider.point[CORE]
    chain.counters[INNER] += 1.0
    if math.isnan(weight) or not (math.isnan(change) or metropolis(chain.stream, change)):
        take_back(HERE, chain.graph.status, surrogate, walker)
        return
    chain.counters[INNER_ACCEPTED] += 1.0
    decider.point[CORE] = weight


@kernel
def try_tour(rules, sums, chain, surrogate, oracle, decider):
    """Stretches decided by the core, and all of them together by what it does not know (10.9).

    Each is chosen without looking at the state and reversible for the surrogate with the weight of the core,
    hence so are all of them in a row.
    """
    walker = decider.walker
    mark(TOUR, walker)
    start = decider.point[CORE]
    for _ in range(decider.inner):
        try_in_core(rules, sums, chain, surrogate, oracle, decider)
    energy = bias_energy(surrogate, walker, decider.room)
    known = decider.point[CORE] - start
    accepted, change = accept(energy, known, TOUR, rules, sums, chain, surrogate, oracle, decider)
    if not accepted:
        decider.point[CORE] = start
    count_decision(accepted, change, chain)


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
    mark(HERE, walker)
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
        a = surrogate.candidates[k]
        if not within(prior.slab, walker.theta[k] + t):
            return
        flat = slab_precision(prior.slab, a, chain.hyper)
        log_ratio -= flat * t * (walker.theta[k] - slab_mean(prior.slab, a) + 0.5 * t)
        put(k, True, walker.theta[k] + t, chain.graph.status[a], surrogate, walker)
        if is_pair(chain.graph, a):
            i, j = pair_of(a, chain.graph)
            walker.bias[i] -= t * rules.centres[0, j]
            walker.bias[j] -= t * rules.centres[0, i]
    log_z = partition_of(oracle, decider)
    log_ratio += log_data(sums, surrogate, walker, log_z, prior) - before
    if not metropolis(stream, log_ratio):
        take_back(HERE, chain.graph.status, surrogate, walker)
        return
    chain.counters[WALKS_ACCEPTED] += 1.0
    energy = bias_energy(surrogate, walker, decider.room)
    decider.point[WEIGHT] = log_weight(sums, surrogate, walker, log_z, energy, prior)
    decider.point[LOG_Z] = log_z
    if decider.inner > 0:
        decider.point[CORE] = core_weight(rules, sums, surrogate, oracle, decider)


@kernel
def visit_stretches(rules, sums, chain, surrogate, oracle, decider, blanks):
    """Some stretches or tours, each decided, and now and then a walk; the chain is where the last ended."""
    load_walker(surrogate, chain, decider.walker)
    weigh_sums(blanks, sums, surrogate, oracle, decider, rules.prior)
    for _ in range(decider.repeats):
        if decider.inner > 0 and decides(oracle) and decider.lenience <= 1.0:
            try_tour(rules, sums, chain, surrogate, oracle, decider)
        else:
            try_stretch(rules, sums, chain, surrogate, oracle, decider)
        if decides(oracle) and not math.isinf(decider.lenience):
            if decider.short > 0 and decider.inner == 0:
                try_short(rules, sums, chain, surrogate, oracle, decider)
            if decider.lenience <= 1.0 and uniform(chain.stream) < decider.walks:
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


@long
def run_stretches(
    rules, sums, chain, surrogate, oracle, decider, blanks, iteration, iterations, thin, recorder
):
    """Run up to `iterations` stretches, stopping early when the recorder is full; returns how many ran.

    `iteration` counts from the end of warm-up and decides what is kept; a negative `thin` keeps nothing.
    """
    for step in range(iterations):
        # Whatever the iteration makes of the graph has to fit.
        if thin > 0 and not room_left(recorder, chain.graph.place.shape[0]):
            return step
        impute(blanks, chain, thin > 0)
        lean_on(blanks, surrogate)
        visit_stretches(rules, sums, chain, surrogate, oracle, decider, blanks)
        draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)
        tally_indicators(surrogate, chain)
        if thin > 0 and (iteration + step + 1) % thin == 0:
            record(recorder, chain)
    return iterations
