"""Which pairs may take each other's place, and the bookkeeping of such a swap (docs/method.md, 5).

A swap deletes an active pair (i, j) and adds (i, k) in one proposal: edges that explain the same correlation
compete, and a chain of single births and deaths would have to pass through the unlikely graph with neither.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.chain import is_pair
from edgewise.kernels.compiling import kernel
from edgewise.kernels.gibbs import fill
from edgewise.kernels.random import below, uniform


@kernel
def choose_swap(given, chain, pair_index):
    """Pick an active pair (i, j) and a pair (i, k) to take its place.

    Returns (leaving, arriving, i, j, k, log proposal ratio); `leaving` is -1 when there is nothing to swap.
    Half the time k is any other variable, half the time a neighbour of j, where the two edges compete.
    """
    if chain.counts[0] == 0:
        return -1, -1, 0, 0, 0, 0.0
    leaving = chain.listed[below(chain.stream, chain.counts[0])]
    by_neighbour = uniform(chain.stream) < 0.5
    turn = uniform(chain.stream) < 0.5
    if not is_pair(leaving, given) or given.status[leaving] > 1:
        return -1, -1, 0, 0, 0, 0.0
    i = given.members[leaving, 0]
    j = given.members[leaving, 1]
    if turn:
        i, j = j, i
    log_choice = 0.0
    if by_neighbour:
        through = chain.adjacent[chain.start[j] + below(chain.stream, chain.degree[j])]
        if not is_pair(through, given):
            return -1, -1, 0, 0, 0, 0.0
        k = given.members[through, 0] + given.members[through, 1] - j
        log_choice = math.log(chain.degree[j]) - math.log(chain.degree[k] + 1)
    else:
        k = np.int32(below(chain.stream, chain.bias.shape[0]))
    if k in (i, j):
        return -1, -1, 0, 0, 0, 0.0
    arriving = pair_index[i, k]
    if arriving < 0 or chain.place[arriving] >= 0 or given.status[arriving] > 1:
        return -1, -1, 0, 0, 0, 0.0
    return leaving, arriving, i, j, k, log_choice


@kernel
def swap_cells(eight, first, second):
    """Pair cells of (i, j) and of (i, k), smaller index first in each, from the eight of (i, j, k)."""
    fill(first, 0.0)
    fill(second, 0.0)
    for c in range(8):
        x_i = c & 1
        x_j = (c >> 1) & 1
        x_k = (c >> 2) & 1
        first[x_i + 2 * x_j] += eight[c]
        second[x_i + 2 * x_k] += eight[c]


@kernel
def oriented(values, i, j):
    """Values of a pair's direction with the cells ordered x_i + 2 x_j also when i > j."""
    if i > j:
        values[1], values[2] = values[2], values[1]


@kernel
def log_prior_change(leaving, arriving, given, chain):
    """Log prior odds of the arriving pair less those of the leaving one, the others being as they are."""
    others = chain.counts[1] - (1 if given.status[leaving] == 0 else 0)
    log_common = (
        math.log(chain.hyper[0]) - math.log1p(-chain.hyper[0])
        if given.fixed_p0
        else math.log(given.beta_a + others) - math.log(given.beta_b + given.n_common - 1 - others)
    )
    gain = log_common if given.status[arriving] == 0 else given.log_odds[arriving]
    loss = log_common if given.status[leaving] == 0 else given.log_odds[leaving]
    return gain - loss
