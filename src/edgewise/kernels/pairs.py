"""Which candidate is the pair (i, j): looked up in a matrix, or in a table that makes it up.

Up to a thousand variables every pair is a candidate with a number, and ``rules.pair_index`` is the matrix of
them. Beyond, it is a ``PairTable`` (docs/method.md, 14): only pairs that matter have a *slot*, and slots take
the place of candidates everywhere in a chain. A pair without one is made up when it is visited: the first
free slot gets its variables and its sum over the data, counted from bit-packed columns, and is kept only if
it becomes active.

``keys, slots``    open addressing: the slot of every key i p + j, i < j; -1 where nothing is
``used[0]``        number of slots that are kept; the one behind them is scratch
``start[i]``       where the active pairs of variable i begin, as in the graph
``hot[i]``         number of hot pairs of variable i, for which there is always room
``words[i, w]``    the rows of the data in which variable i is one, as bits
``weights``        of the rows, in the order of the bits; empty where each counts once
``rest``           tries, and sum of probabilities, of pairs that were visited and never became active
``count``          number M of all pairs
``visits``         most pairs that an iteration may make up
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from edgewise.kernels.bits import BITS, lowest_one, popcount, without_lowest
from edgewise.kernels.codes import COMMON, INCLUSION, TALLIES, TRIES
from edgewise.kernels.compiling import answer, entry, kernel, long, question
from edgewise.kernels.random import below

PairTable = namedtuple("PairTable", "keys slots used start hot words weights rest count visits")
MATRIX = None  # what a plain array answers as

# Births of cold pairs of one variable in one iteration for which there is room.
SPARE = 12


@question
def candidate_of(table, i, k, sums, chain):
    """The pair of `i` and `k` as a candidate to visit; -1 if there is none."""


@question
def known_pair(table, j, k, graph):
    """The pair of `j` and `k` if it is a candidate that may be active; -1 otherwise."""


@question
def any_candidate(table, sums, chain):
    """One of all candidates, each as likely as the others; -1 if it cannot be visited now."""


@question
def candidates_count(table, graph):
    """Number of all candidates."""


@question
def has_room(table, chain):
    """Whether there is room for all that an iteration may bring."""


@question
def keep_new(table, chain):
    """After an iteration: candidates made up in it that are active stay what they are."""


@answer(candidate_of, MATRIX)
def _in_matrix(table, i, k, sums, chain):
    return np.int64(table[i, k])


@answer(known_pair, MATRIX)
def _known_in_matrix(table, j, k, graph):
    return np.int64(table[j, k])


@answer(any_candidate, MATRIX)
def _any_number(table, sums, chain):
    return below(chain.stream, chain.graph.place.shape[0])


@answer(candidates_count, MATRIX)
def _all_numbers(table, graph):
    return np.int64(graph.place.shape[0])


@answer(has_room, MATRIX)
def _always(table, chain):
    return True


@answer(keep_new, MATRIX)
def _nothing_new(table, chain):
    pass


@kernel
def place_of(key, keys):
    """Where a key is in the table, or would be put."""
    mask = np.uint64(keys.shape[0] - 1)
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@kernel
def key_of(i, j, p):
    """Key of the pair of `i` and `j` in either order."""
    return i * p + j if i < j else j * p + i


@entry
def fill_table(p, members, keys, slots):
    """Enter the pairs (int64) of all slots into an empty table."""
    for a in range(members.shape[0]):
        key = key_of(members[a, 0], members[a, 1], p)
        at = place_of(key, keys)
        keys[at] = key
        slots[at] = a


@long
def sum_together(i, j, words, weights):
    """Sum over the data of the feature of a pair (14.1)."""
    first, second = words[i], words[j]
    if weights.shape[0] == 0:
        count = np.int64(0)
        for w in range(first.shape[0]):
            count += popcount(first[w] & second[w])
        return np.float64(count)
    total = 0.0
    for w in range(first.shape[0]):
        both = first[w] & second[w]
        while both:
            total += weights[BITS * w + lowest_one(both)]
            both = without_lowest(both)
    return total


@entry
def sums_together(pairs, words, weights, sums):
    """Sums over the data of many pairs (int64)."""
    for a in range(pairs.shape[0]):
        sums[a] = sum_together(pairs[a, 0], pairs[a, 1], words, weights)


@answer(keep_new, PairTable)
def _keep_scratch(table, chain):
    graph, a = chain.graph, table.used[0]
    if graph.place[a] >= 0:
        p = np.int64(chain.bias.shape[0])
        key = key_of(np.int64(graph.members[a, 0]), np.int64(graph.members[a, 1]), p)
        at = place_of(key, table.keys)
        table.keys[at] = key
        table.slots[at] = a
        table.used[0] = a + 1


@answer(known_pair, PairTable)
def _known_in_table(table, j, k, graph):
    p = np.int64(table.words.shape[0])
    at = place_of(key_of(j, k, p), table.keys)
    if table.keys[at] >= 0:
        return np.int64(table.slots[at])
    a = table.used[0]
    low, high = (j, k) if j < k else (k, j)
    if graph.place[a] >= 0 and graph.members[a, 0] == low and graph.members[a, 1] == high:
        return a
    return np.int64(-1)


@kernel
def crowded(i, table, graph):
    """Whether one more active pair of variable `i` might not leave room for its hot ones."""
    return graph.degree[i] + table.hot[i] + 1 >= table.start[i + 1] - table.start[i]


@long
def make_up(i, j, table, sums, chain):
    """The pair of i < j in the scratch slot, inactive."""
    keep_new(table, chain)
    graph, a, tallies = chain.graph, table.used[0], chain.tallies
    table.rest[0] += tallies[TRIES, a]
    table.rest[1] += tallies[INCLUSION, a]
    for row in range(TALLIES):
        tallies[row, a] = 0.0
    if crowded(i, table, graph) or crowded(j, table, graph):
        return np.int64(-1)
    graph.members[a, 0] = i
    graph.members[a, 1] = j
    graph.status[a] = COMMON
    sums.cliques[0, a] = sum_together(i, j, table.words, table.weights)
    return a


@answer(candidate_of, PairTable)
def _in_table(table, i, k, sums, chain):
    if i == k:
        return np.int64(-1)
    known = known_pair(table, i, k, chain.graph)
    if known >= 0:
        return known
    return make_up(i, k, table, sums, chain) if i < k else make_up(k, i, table, sums, chain)


@answer(any_candidate, PairTable)
def _any_two(table, sums, chain):
    p = np.int64(table.words.shape[0])
    i = below(chain.stream, p)
    j = below(chain.stream, p - 1)
    return candidate_of(table, i, j + 1 if j >= i else j, sums, chain)


@answer(candidates_count, PairTable)
def _all_pairs(table, graph):
    return np.int64(table.count)


@answer(has_room, PairTable)
def _room_for_new(table, chain):
    graph = chain.graph
    if table.used[0] + table.visits + 1 >= graph.place.shape[0]:
        return False
    for i in range(graph.degree.shape[0]):
        if graph.degree[i] + table.hot[i] + SPARE >= table.start[i + 1] - table.start[i]:
            return False
    return True


@kernel
def visible(joint, m_i, m_j, rows):
    """How clearly two variables are correlated in the data, in standard errors."""
    spread = m_i * (1.0 - m_i) * m_j * (1.0 - m_j)
    share = (joint + 0.5 * m_i * m_j) / (rows + 0.5)
    return abs(share - m_i * m_j) * np.sqrt(rows / spread)


@entry
def screen_counts(means, rows, words, weights, step, counts):
    """How many pairs are so clearly correlated: a histogram in units of `step`, its last bin open."""
    last = counts.shape[0] - 1
    for i in range(means.shape[0]):
        for j in range(i + 1, means.shape[0]):
            z = visible(sum_together(i, j, words, weights), means[i], means[j], rows) / step
            counts[np.int64(z) if z < last else last] += 1


@entry
def screen_pairs(means, rows, words, weights, least, found):
    """The pairs more clearly correlated than `least`, as many as there is room for; returns their number."""
    filled = 0
    for i in range(means.shape[0]):
        for j in range(i + 1, means.shape[0]):
            if visible(sum_together(i, j, words, weights), means[i], means[j], rows) > least:
                if filled == found.shape[0]:
                    return filled
                found[filled, 0] = i
                found[filled, 1] = j
                filled += 1
    return filled
