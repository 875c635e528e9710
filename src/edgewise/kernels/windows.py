"""The table of all states of variables with any levels, seen through windows of a few variables.

A move that touches the variables of a window W multiplies the table by a function of x_W, and the cells of
its line are sums of the marginal table of W. So the marginal is taken once, all moves inside the window are
made on it, exactly and at its small size, and the table follows once when the window is left (docs/method.md,
11). Windows that together hold every pair make a sweep.

States are numbered in mixed radix, the first variable running fastest. ``states`` is the whole table, kept
normalised; ``inner[: size[0]]`` the marginal of the present window, ``factor`` what it has been multiplied by
since the window was entered, ``digits[i, s]`` the level of variable i in its state s. ``place`` says which
variables each window holds. Low and high digits of a state are translated apart: ``low`` and ``high`` are the
parts of the number in the window of the low and high digits of the whole.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels import sources
from edgewise.kernels.block_lines import block_log_z, exponent
from edgewise.kernels.compiling import answer, kernel, long
from edgewise.kernels.graph import pair_of
from edgewise.kernels.lines import log_z_change
from edgewise.kernels.potentials import normalise

Window = namedtuple("Window", "states inner factor digits low high place levels size scale")

REBUILD_EVERY = 64


@kernel
def part_numbers(place, levels, first, last, stride, numbers):
    """Numbers in the window of all states of the variables `first` to `last`; returns the next stride."""
    count = 1
    numbers[0] = 0
    for i in range(first, last):
        for c in range(1, levels[i]):
            for s in range(count):
                numbers[c * count + s] = numbers[s] + (c * stride if place[i] else 0)
        count *= levels[i]
        if place[i]:
            stride *= levels[i]
    return stride


@long
def enter(source, w, split):
    """Take the marginal table of window `w`; `split` variables are the low ones."""
    place = source.place[w]
    levels = source.levels
    stride = part_numbers(place, levels, 0, split, 1, source.low)
    size = part_numbers(place, levels, split, levels.shape[0], stride, source.high)
    source.size[0] = size
    width = 1
    for i in range(levels.shape[0]):
        if place[i]:
            for s in range(size):
                source.digits[i, s] = (s // width) % levels[i]
            width *= levels[i]
    for s in range(size):
        source.inner[s] = 0.0
        source.factor[s] = 1.0
    low = source.low.shape[0]
    for h in range(source.high.shape[0]):
        base = source.high[h]
        row = source.states[h * low : (h + 1) * low]
        for k in range(low):
            source.inner[base + source.low[k]] += row[k]


@long
def leave(source):
    """Let the whole table follow the moves made in the window."""
    low = source.low.shape[0]
    for h in range(source.high.shape[0]):
        base = source.high[h]
        row = source.states[h * low : (h + 1) * low]
        for k in range(low):
            row[k] *= source.factor[base + source.low[k]]


@long
def build(thresholds, potentials, pairs, source):
    """Fill the whole table from the potentials of the levels and of the active pairs, and normalise it.

    `thresholds[i, c]` and `potentials[k]`, the table of the k-th of the `pairs`, in the order c_i + L_i c_j.
    """
    states, levels = source.states, source.levels
    count = 1
    states[0] = 0.0
    for i in range(levels.shape[0]):
        for c in range(levels[i] - 1, -1, -1):
            for s in range(count):
                states[c * count + s] = states[s] + thresholds[i, c]
        count *= levels[i]
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        step_i = 1
        for v in range(i):
            step_i *= levels[v]
        step_j = step_i
        for v in range(i, j):
            step_j *= levels[v]
        for s in range(count):
            states[s] += potentials[k, (s // step_i) % levels[i] + levels[i] * ((s // step_j) % levels[j])]
    normalise(states, count)


@kernel
def pair_cells(source, i, j, cells):
    """Probabilities of the joint levels of (i, j), in the order c_i + L_i c_j."""
    levels = source.levels[i]
    for c in range(cells.shape[0]):
        cells[c] = 0.0
    for s in range(source.size[0]):
        cells[source.digits[i, s] + levels * source.digits[j, s]] += source.inner[s]


@kernel
def scale_pair(source, i, j, factors):
    """Multiply the states of every joint level of (i, j) by its factor."""
    levels = source.levels[i]
    for s in range(source.size[0]):
        f = factors[source.digits[i, s] + levels * source.digits[j, s]]
        source.inner[s] *= f
        source.factor[s] *= f


@kernel
def level_cells(source, i, cells):
    """Probabilities of the levels of variable i."""
    for c in range(cells.shape[0]):
        cells[c] = 0.0
    for s in range(source.size[0]):
        cells[source.digits[i, s]] += source.inner[s]


@kernel
def scale_levels(source, i, factors):
    """Multiply the states of every level of variable i by its factor."""
    for s in range(source.size[0]):
        f = factors[source.digits[i, s]]
        source.inner[s] *= f
        source.factor[s] *= f


@answer(sources.is_noisy, Window)
def _is_noisy(source):
    return False


@answer(sources.clique_cells, Window)
def _clique_cells(source, a, value, chain, cells):
    i, j = pair_of(a, chain.graph)
    pair_cells(source, i, j, cells[0])


@answer(sources.clique_growth, Window)
def _clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    return rows[0] * (log_z_change(target, cells[0], values[0]) - log_z_change(value, cells[0], values[0]))


@answer(sources.follow_clique, Window)
def _follow_clique(source, a, value, target, cells, values, rules, chain):
    change = target - value
    normaliser = log_z_change(target, cells[0], values[0]) - log_z_change(value, cells[0], values[0])
    i, j = pair_of(a, chain.graph)
    for c in range(cells.shape[1]):
        source.scale[c] = math.exp(change * values[0, c] - normaliser)
    scale_pair(source, i, j, source.scale)


@answer(sources.block_growth, Window)
def _block_growth(source, a, value, target, cells, features, rows, chain, noise):
    noise[0] = 0.0
    noise[1] = 0.0
    size = chain.graph.dimension[a]
    growth = block_log_z(target, size, cells, features) - block_log_z(value, size, cells, features)
    return rows[0] * growth


@answer(sources.follow_block, Window)
def _follow_block(source, a, change, cells, features, rules, chain):
    i, j = pair_of(a, chain.graph)
    size = chain.graph.dimension[a]
    begun = chain.blocks[rules.block_start[a] : rules.block_start[a] + size]
    before, after = 0.0, 0.0
    for c in range(cells.shape[0]):
        present = cells[c] * math.exp(exponent(begun, size, features, c))
        source.scale[c] = math.exp(exponent(change, size, features, c))
        before += present
        after += present * source.scale[c]
    for c in range(cells.shape[0]):
        source.scale[c] *= before / after
    scale_pair(source, i, j, source.scale)


def windows_of(levels: np.ndarray, largest: int) -> np.ndarray:
    """Windows of at most `largest` joint states, or of two variables, that together hold every pair.

    Greedy: each window begins with a pair that none holds yet and takes in the variable with most such pairs.
    """
    p = len(levels)
    if p == 1:
        return np.ones((1, 1), np.bool_)
    open_pairs = ~np.eye(p, dtype=bool)
    found = []
    while open_pairs.any():
        first = int(np.argmax(open_pairs.sum(axis=1)))
        inside = [first, int(np.argmax(open_pairs[first]))]
        while len(inside) < p:
            room = largest // int(np.prod(levels[inside]))
            gain = np.where(levels <= room, open_pairs[:, inside].sum(axis=1), -1)
            gain[inside] = -1
            best = int(gain.argmax())
            if gain[best] < 0:
                break
            inside.append(best)
        chosen = np.zeros(p, np.bool_)
        chosen[inside] = True
        open_pairs[np.ix_(chosen, chosen)] = False
        found.append(chosen)
    return np.array(found)
