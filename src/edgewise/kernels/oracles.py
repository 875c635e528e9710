"""Oracles: who knows log Z at a point, to decide a stretch on the surrogate (docs/method.md, 10).

An oracle answers two questions: whether it decides at all, and log Z of a model given by its biases and its
active candidates. ``AllStates`` by the table of states and ``Elimination`` along the graph are exact;
``Trust`` takes the surrogate's word. An answer that is not a number means that the graph is too wide.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.compiling import answer, question
from edgewise.kernels.elimination import log_partition_by_elimination

AllStates = namedtuple("AllStates", "potentials added")
Elimination = namedtuple("Elimination", "room")
Trust = namedtuple("Trust", "nothing")


@question
def decides(oracle):
    """Whether a stretch is decided rather than taken as it is."""


@question
def log_partition(oracle, bias, theta, listed, count, members):
    """Log Z of the model with these biases and the parameters of the `count` active candidates listed."""


@answer(decides, AllStates, Elimination)
def _decides(oracle):
    return True


@answer(decides, Trust)
def _trusts(oracle):
    return False


@answer(log_partition, AllStates)
def _by_states(oracle, bias, theta, listed, count, members):
    """Sum over all states (3.1); potentials by doubling, one addition for each state and active candidate."""
    u = oracle.potentials
    added = oracle.added
    u[0] = 0.0
    for i in range(bias.shape[0]):
        half = 1 << i
        for s in range(half):
            added[s] = bias[i]
        for position in range(count):
            a = listed[position]
            mask = 0
            highest = -1
            for k in range(members.shape[1]):
                if members[a, k] >= 0:
                    mask |= 1 << members[a, k]
                    highest = max(highest, members[a, k])
            if highest == i:
                mask ^= half
                for s in range(half):
                    if s & mask == mask:
                        added[s] += theta[a]
        for s in range(half):
            u[half + s] = u[s] + added[s]
    top = u[0]
    for s in range(1, u.shape[0]):
        top = u[s] if u[s] > top else top
    total = 0.0
    for s in range(u.shape[0]):
        total += math.exp(u[s] - top)
    return top + math.log(total)


@answer(log_partition, Elimination)
def _by_elimination(oracle, bias, theta, listed, count, members):
    return log_partition_by_elimination(bias, theta, listed, count, members, oracle.room)[0]


@answer(log_partition, Trust)
def _unknown(oracle, bias, theta, listed, count, members):
    return math.nan
