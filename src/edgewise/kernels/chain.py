"""What the exact and the particle chain share: graph and parameters, hyper-parameters, recording.

``Given`` is all that stays fixed after warm-up, ``Chain`` all that moves (arrays changed in place).
``hyper`` is (p0, sigma0), ``counts`` (active cliques, active cliques that share p0), ``listed[:counts[0]]``
the active cliques in no particular order and ``place[a]`` the position of clique a there, or -1.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.compiling import kernel
from edgewise.kernels.gibbs import connect, disconnect
from edgewise.kernels.hyper import draw_inclusion_rate, draw_slab_scale
from edgewise.kernels.lines import log_slab_constant, pair_sum, pair_values
from edgewise.kernels.random import below

COMMON, SEPARATE, FORCED, FORBIDDEN = 0, 1, 2, 3

Given = namedtuple(
    "Given",
    "N singles sums members means status log_odds beta_a beta_b fixed_p0 n_common gamma_shape gamma_rate "
    "fixed_sigma0 bias_sd",
)
Chain = namedtuple("Chain", "theta bias hyper start degree adjacent listed place counts stream tallies")
Recorder = namedtuple("Recorder", "indptr indices values biases inclusion_rate slab_scale filled")

# Rows of `tallies`: the last counts the iterations in which a clique was active, during warm-up.
TRIES, INCLUSION, BIRTHS, DEATHS, DEATH_TRIES, OCCUPIED = range(6)


@kernel
def activate(a, value, given, chain):
    """Put clique `a` into the model with the given parameter."""
    chain.theta[a] = value
    chain.listed[chain.counts[0]] = a
    chain.place[a] = chain.counts[0]
    chain.counts[0] += 1
    if given.status[a] == COMMON:
        chain.counts[1] += 1
    connect(a, given.members, chain.start, chain.degree, chain.adjacent)


@kernel
def deactivate(a, given, chain):
    """Take clique `a` out of the model."""
    chain.theta[a] = 0.0
    last = chain.listed[chain.counts[0] - 1]
    chain.listed[chain.place[a]] = last
    chain.place[last] = chain.place[a]
    chain.place[a] = -1
    chain.counts[0] -= 1
    if given.status[a] == COMMON:
        chain.counts[1] -= 1
    disconnect(a, given.members, chain.start, chain.degree, chain.adjacent)


@kernel
def set_clique(a, was_active, is_active, value, given, chain):
    """Bring clique `a` to its new state."""
    if is_active:
        if was_active:
            chain.theta[a] = value
        else:
            activate(a, value, given, chain)
    elif was_active:
        deactivate(a, given, chain)


@kernel
def shuffle_active(chain):
    """Put the active cliques into a fresh random order.

    The list remembers who came last, and that says something about the parameters: visited in the order of
    the list, they would be drawn from a distribution that is slightly off.
    """
    for last in range(chain.counts[0] - 1, 0, -1):
        other = below(chain.stream, last + 1)
        a = chain.listed[last]
        b = chain.listed[other]
        chain.listed[last] = b
        chain.listed[other] = a
        chain.place[b] = last
        chain.place[a] = other


@kernel
def is_pair(a, given):
    """Whether clique `a` has two variables."""
    return given.members.shape[1] == 2 or given.members[a, 2] < 0


@kernel
def pair_line(a, value, given, chain, values):
    """The line of pair `a` from its base point (the pair absent): fills `values`, returns S, precision, tilt.

    `value` is the pair's present parameter, zero when it is absent.
    """
    i = given.members[a, 0]
    j = given.members[a, 1]
    mean_i = given.means[i]
    mean_j = given.means[j]
    pair_values(mean_i, mean_j, values)
    S = pair_sum(given.sums[a], given.singles[i], given.singles[j], mean_i, mean_j, given.N)
    bias_precision = 1.0 / (given.bias_sd * given.bias_sd)
    base_i = chain.bias[i] + value * mean_j
    base_j = chain.bias[j] + value * mean_i
    precision = (mean_i * mean_i + mean_j * mean_j) * bias_precision + chain.hyper[1] ** -2
    tilt = (base_i * mean_j + base_j * mean_i) * bias_precision
    return S, precision, tilt


@kernel
def clique_line(a, given, chain, values):
    """The line of a clique of three or more: its own feature alone, about the data mean."""
    mean = given.sums[a] / given.N if given.N > 0 else 0.5
    values[0] = -mean
    values[1] = 1.0 - mean
    values[2] = 0.0
    values[3] = 0.0
    return given.sums[a] - mean * given.N, chain.hyper[1] ** -2, 0.0


@kernel
def bias_line(i, given, chain, values):
    """The line of bias `i` from its present value; returns S, precision, tilt."""
    mean = given.means[i]
    values[0] = -mean
    values[1] = 1.0 - mean
    precision = 1.0 / (given.bias_sd * given.bias_sd)
    return given.singles[i] - mean * given.N, precision, -chain.bias[i] * precision


@kernel
def shift_biases(a, t, given, chain):
    """Biases of a pair follow its coupling's change by `t`."""
    i = given.members[a, 0]
    j = given.members[a, 1]
    chain.bias[i] -= t * given.means[j]
    chain.bias[j] -= t * given.means[i]


@kernel
def tally(a, was_active, accepted, probability, chain):
    """Count a decision on the indicator of clique `a` (see ``Engine.edge_sums``)."""
    chain.tallies[TRIES, a] += 1.0
    if was_active:
        chain.tallies[DEATH_TRIES, a] += 1.0
    chain.tallies[INCLUSION, a] += 1.0 - probability if was_active else probability
    if accepted:
        chain.tallies[DEATHS if was_active else BIRTHS, a] += 1.0


@kernel
def watch(chain):
    """Count the cliques that are active now."""
    for position in range(chain.counts[0]):
        chain.tallies[OCCUPIED, chain.listed[position]] += 1.0


@kernel
def draw_hyper(given, chain):
    """Draw p0 and sigma0 given the graph and the active parameters (eq. 14)."""
    if not given.fixed_p0:
        chain.hyper[0] = draw_inclusion_rate(
            given.beta_a, given.beta_b, chain.counts[1], given.n_common, chain.stream
        )
    if not given.fixed_sigma0:
        squares = 0.0
        for position in range(chain.counts[0]):
            value = chain.theta[chain.listed[position]]
            squares += value * value
        chain.hyper[1] = draw_slab_scale(
            given.gamma_shape, given.gamma_rate, chain.counts[0], squares, chain.stream
        )


@kernel
def base_odds(a, is_active, given, chain):
    """Prior log odds of clique `a` times the slab's constant: what a birth gains beyond its line."""
    slab = log_slab_constant(chain.hyper[1])
    if given.status[a] == SEPARATE:
        return given.log_odds[a] + slab
    if given.fixed_p0:
        p0 = chain.hyper[0]
        return math.log(p0) - math.log1p(-p0) + slab
    others = chain.counts[1] - (1 if is_active else 0)
    return math.log(given.beta_a + others) - math.log(given.beta_b + given.n_common - 1 - others) + slab


@kernel
def room_left(chain, recorder):
    """Whether one more draw fits into the recorder."""
    filled = recorder.filled[0]
    return (
        filled < recorder.biases.shape[0]
        and recorder.indptr[filled] + chain.counts[0] <= recorder.indices.shape[0]
    )


@kernel
def record(chain, recorder):
    """Keep the present state as a draw; its active cliques in no particular order."""
    filled = recorder.filled[0]
    begin = recorder.indptr[filled]
    count = chain.counts[0]
    for k in range(count):
        recorder.indices[begin + k] = chain.listed[k]
        recorder.values[begin + k] = chain.theta[chain.listed[k]]
    for i in range(chain.bias.shape[0]):
        recorder.biases[filled, i] = chain.bias[i]
    recorder.inclusion_rate[filled] = chain.hyper[0]
    recorder.slab_scale[filled] = chain.hyper[1]
    recorder.indptr[filled + 1] = begin + count
    recorder.filled[0] = filled + 1
