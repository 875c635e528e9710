"""Blank cells of the data, drawn given everything else (docs/method.md, 12).

The likelihood of a row with blanks is (12.1); it is never computed.

Rows with the same answers and the same blanks are one pattern: given the parameters their blanks are drawn
independently from one distribution. Where a pattern can be filled in few ways all of them are listed, and how
many of its rows are filled in each way is one multinomial draw, which owes nothing to what was there before.
Where the ways are too many, every row keeps its own filling and its cells are drawn one after the other.

The sums of the completed rows are those of the known cells, ``base_singles`` and ``base_cliques``, plus
whatever contains a blank; they are made anew from these in every iteration, so that nothing adds up.

``known[g, i]``    levels of pattern g, -1 where blank; ``count[g]`` its rows
``start[g]``       its blanks are ``variables[start[g] : start[g + 1]]``, ascending
``ways[g]``        number of its fillings where they are listed, 0 where its rows keep their own, which are
                   ``filled[first[g] : first[g] + count[g] * blanks]``, row after row
``touching[reach[i] : reach[i + 1]]``  all candidates that contain variable i
``levels, scores, basis, bias_start, dims, weight_start, block_start``  what levels mean (``blocks.py``); for
                   two levels the scores, and the basis of the threshold, are 0 and 1
``singles, cliques``  the sums that move: views of those of the chain
``thresholds, now, weight, chance``  scratch: thresholds of the levels, the row at hand, probabilities of its
                   fillings, those of every cell's levels in this iteration
``tracks``         per cell and level, over the iterations after warm-up: sums of that probability, of its
                   square, of its product with the one before, and the one before; ``ticks`` counts them

``lean``           what a surrogate was made for, if there is one: **Lean** has the sums of then (those of its
                   parameters, which lie at ``places``), and ``pull`` and ``bias_mean`` as they were

A ``Complete`` table has no blanks, and nothing is drawn or compiled for it.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.compiling import answer, kernel, long, question, whole
from edgewise.kernels.graph import CliqueGraph, LevelGraph, PairGraph
from edgewise.kernels.potentials import level_potentials, normalise
from edgewise.kernels.random import binomial, uniform

Complete = namedtuple("Complete", "nothing")
Blanks = namedtuple(
    "Blanks",
    "known count start variables ways first filled reach touching levels scores basis bias_start dims "
    "weight_start block_start base_singles base_cliques singles cliques thresholds now weight chance tracks "
    "ticks lean",
)
Lean = namedtuple("Lean", "singles cliques places pull bias_mean change rotated constant")

SWEEPS = 2


@question
def impute(blanks, chain, keep):
    """Draw the blanks anew and move the sums; `keep` adds up what was learned of each cell."""


@answer(impute, Complete)
def _nothing_to_draw(blanks, chain, keep):
    pass


@answer(impute, Blanks)
def _draw_all(blanks, chain, keep):
    prepare(blanks, chain)
    for g in range(blanks.count.shape[0]):
        for i in range(blanks.now.shape[0]):
            blanks.now[i] = blanks.known[g, i]
        if blanks.ways[g] > 0:
            draw_listed(g, blanks, chain)
        else:
            draw_in_turn(g, blanks, chain)
    if keep:
        keep_chances(blanks)


@kernel
def prepare(blanks, chain):
    """Thresholds of all levels, sums of the known cells alone, and no chances yet."""
    level_potentials(blanks.levels, blanks.basis, blanks.bias_start, chain.bias, blanks.thresholds)
    for k in range(blanks.singles.shape[0]):
        blanks.singles[k] = blanks.base_singles[k]
    for k in range(blanks.cliques.shape[0]):
        blanks.cliques[k] = blanks.base_cliques[k]
    for cell in range(blanks.chance.shape[0]):
        for c in range(blanks.chance.shape[1]):
            blanks.chance[cell, c] = 0.0


@question
def energy_change(graph, a, i, level, blanks, chain):
    """Change of the log potential of candidate `a` when its variable `i` goes to `level`, others as now."""


@answer(energy_change, PairGraph)
def _of_pair(graph, a, i, level, blanks, chain):
    other = graph.members[a, 0] + graph.members[a, 1] - i
    return chain.theta[a] * ((level - blanks.now[i]) * blanks.now[other])


@answer(energy_change, CliqueGraph)
def _of_clique(graph, a, i, level, blanks, chain):
    product = level - blanks.now[i]
    for k in range(graph.members.shape[1]):
        other = graph.members[a, k]
        if other >= 0 and other != i:
            product *= blanks.now[other]
    return chain.theta[a] * product


@answer(energy_change, LevelGraph)
def _of_levels(graph, a, i, level, blanks, chain):
    first, second = graph.members[a, 0], graph.members[a, 1]
    other = first + second - i
    old, there = blanks.now[i], blanks.now[other]
    if graph.dimension[a] == 1:
        step = blanks.scores[i, level, 0] - blanks.scores[i, old, 0]
        return chain.theta[a] * step * blanks.scores[other, there, 0]
    total = 0.0
    for k in range(blanks.dims[i]):
        step = blanks.scores[i, level, k] - blanks.scores[i, old, k]
        for n in range(blanks.dims[other]):
            place = k * blanks.dims[second] + n if i == first else n * blanks.dims[second] + k
            total += step * chain.blocks[blanks.block_start[a] + place] * blanks.scores[other, there, n]
    return total


@kernel
def change_of(i, level, blanks, chain):
    """Change of the log potential of the row at hand when variable `i` goes to `level`."""
    graph = chain.graph
    total = blanks.thresholds[i, level] - blanks.thresholds[i, blanks.now[i]]
    for position in range(graph.start[i], graph.start[i] + graph.degree[i]):
        total += energy_change(graph, graph.adjacent[position], i, level, blanks, chain)
    return total


@question
def add_candidates(graph, g, i, n, blanks):
    """Add `n` times the features of the candidates whose first blank in pattern `g` is `i`."""


@answer(add_candidates, PairGraph)
def _of_pairs(graph, g, i, n, blanks):
    if blanks.now[i] == 0:
        return
    for position in range(blanks.reach[i], blanks.reach[i + 1]):
        a = blanks.touching[position]
        j = graph.members[a, 0] + graph.members[a, 1] - i
        if blanks.now[j] != 0 and (j > i or blanks.known[g, j] >= 0):
            blanks.cliques[a] += n


@answer(add_candidates, CliqueGraph)
def _of_cliques(graph, g, i, n, blanks):
    for position in range(blanks.reach[i], blanks.reach[i + 1]):
        a = blanks.touching[position]
        counts = True
        for k in range(graph.members.shape[1]):
            j = graph.members[a, k]
            if j >= 0 and (blanks.now[j] == 0 or (j < i and blanks.known[g, j] < 0)):
                counts = False
        if counts:
            blanks.cliques[a] += n


@answer(add_candidates, LevelGraph)
def _of_level_pairs(graph, g, i, n, blanks):
    for position in range(blanks.reach[i], blanks.reach[i + 1]):
        a = blanks.touching[position]
        first, second = graph.members[a, 0], graph.members[a, 1]
        j = first + second - i
        if j < i and blanks.known[g, j] < 0:
            continue
        place = blanks.weight_start[a]
        for k in range(blanks.dims[first]):
            score = n * blanks.scores[first, blanks.now[first], k]
            for m in range(blanks.dims[second]):
                blanks.cliques[place] += score * blanks.scores[second, blanks.now[second], m]
                place += 1


@kernel
def add_row(g, n, blanks, chain):
    """Add `n` rows of pattern `g`, filled as the row at hand, to the sums."""
    for cell in range(blanks.start[g], blanks.start[g + 1]):
        i = blanks.variables[cell]
        begin = blanks.bias_start[i]
        for t in range(blanks.bias_start[i + 1] - begin):
            blanks.singles[begin + t] += n * blanks.basis[i, blanks.now[i], t]
        add_candidates(chain.graph, g, i, n, blanks)


@long
def weigh_ways(g, blanks, chain):
    """Probabilities (12.2) of all fillings of pattern `g`, in mixed radix, its first blank running fastest.

    One cell changes by one level at a time (Knuth, 7.2.1.1, algorithm H).
    """
    begin, width = blanks.start[g], blanks.start[g + 1] - blanks.start[g]
    focus, direction, stride = whole(20), whole(20), whole(20)
    size = 1
    for k in range(width):
        blanks.now[blanks.variables[begin + k]] = 0
        focus[k] = k
        direction[k] = 1
        stride[k] = size
        size *= blanks.levels[blanks.variables[begin + k]]
    focus[width] = width
    weight = blanks.weight
    index = 0
    value = 0.0
    weight[0] = 0.0
    while True:
        k = focus[0]
        focus[0] = 0
        if k == width:
            break
        i = blanks.variables[begin + k]
        level = blanks.now[i] + direction[k]
        value += change_of(i, level, blanks, chain)
        blanks.now[i] = level
        index += direction[k] * stride[k]
        weight[index] = value
        if level == 0 or level == blanks.levels[i] - 1:
            direction[k] = -direction[k]
            focus[k] = focus[k + 1]
            focus[k + 1] = k + 1
    normalise(weight, size)


@kernel
def fill_as(s, g, blanks):
    """Make the row at hand the filling with number `s`."""
    left = s
    for cell in range(blanks.start[g], blanks.start[g + 1]):
        i = blanks.variables[cell]
        blanks.now[i] = left % blanks.levels[i]
        left //= blanks.levels[i]


@kernel
def draw_listed(g, blanks, chain):
    """Draw how many rows of pattern `g` are filled in each way."""
    weigh_ways(g, blanks, chain)
    weight, size = blanks.weight, blanks.ways[g]
    for s in range(size):
        left = s
        for cell in range(blanks.start[g], blanks.start[g + 1]):
            i = blanks.variables[cell]
            blanks.chance[cell, left % blanks.levels[i]] += weight[s]
            left //= blanks.levels[i]
    rest, remaining = 1.0, blanks.count[g]
    if remaining == 1:
        drawn = uniform(chain.stream)
        s = 0
        while s < size - 1 and drawn >= weight[s]:
            drawn -= weight[s]
            s += 1
        fill_as(s, g, blanks)
        add_row(g, 1.0, blanks, chain)
        return
    for s in range(size):
        if remaining == 0:
            break
        n = remaining
        if s < size - 1:
            n = binomial(chain.stream, remaining, weight[s] / rest) if weight[s] < rest else remaining
        rest -= weight[s]
        remaining -= n
        if n > 0:
            fill_as(s, g, blanks)
            add_row(g, float(n), blanks, chain)


@kernel
def draw_in_turn(g, blanks, chain):
    """Draw the blanks of every row of pattern `g` one after the other, given the others of that row."""
    begin, width = blanks.start[g], blanks.start[g + 1] - blanks.start[g]
    share = 1.0 / blanks.count[g]
    weight = blanks.weight
    for row in range(blanks.count[g]):
        place = blanks.first[g] + row * width
        for k in range(width):
            blanks.now[blanks.variables[begin + k]] = blanks.filled[place + k]
        for sweep in range(SWEEPS):
            for k in range(width):
                i = blanks.variables[begin + k]
                top = 0.0
                for c in range(blanks.levels[i]):
                    weight[c] = change_of(i, c, blanks, chain)
                    top = max(top, weight[c])
                total = 0.0
                for c in range(blanks.levels[i]):
                    weight[c] = math.exp(weight[c] - top)
                    total += weight[c]
                if sweep == SWEEPS - 1:
                    for c in range(blanks.levels[i]):
                        blanks.chance[begin + k, c] += share * weight[c] / total
                drawn = uniform(chain.stream) * total
                level = 0
                while level < blanks.levels[i] - 1 and drawn >= weight[level]:
                    drawn -= weight[level]
                    level += 1
                blanks.now[i] = level
        for k in range(width):
            blanks.filled[place + k] = blanks.now[blanks.variables[begin + k]]
        add_row(g, 1.0, blanks, chain)


@kernel
def keep_chances(blanks):
    """Add this iteration's probabilities of the levels of every cell to the tracks."""
    tracks = blanks.tracks
    for cell in range(blanks.chance.shape[0]):
        for c in range(blanks.chance.shape[1]):
            chance = blanks.chance[cell, c]
            tracks[0, cell, c] += chance
            tracks[1, cell, c] += chance * chance
            tracks[2, cell, c] += chance * tracks[3, cell, c]
            tracks[3, cell, c] = chance
    blanks.ticks[0] += 1


@question
def lean_on(blanks, surrogate):
    """Bring the pull and the mean biases of a surrogate to the present sums (12.3)."""


@answer(lean_on, Complete)
def _stands(blanks, surrogate):
    pass


@answer(lean_on, Blanks)
def _leans(blanks, surrogate):
    lean, root, slope = blanks.lean, surrogate.bias_root, surrogate.bias_slope
    change, rotated = lean.change, lean.rotated
    for i in range(change.shape[0]):
        change[i] = blanks.singles[i] - lean.singles[i]
    constant = 0.0
    for j in range(change.shape[0]):
        total = 0.0
        for i in range(j, change.shape[0]):
            total += root[i, j] * change[i]
        rotated[j] = total
        constant += lean.bias_mean[j] * change[j] + 0.5 * total * total
    lean.constant[0] = constant
    for i in range(change.shape[0]):
        total = lean.bias_mean[i]
        for j in range(i + 1):
            total += root[i, j] * rotated[j]
        surrogate.bias_mean[i] = total
    for k in range(lean.places.shape[0]):
        total = lean.pull[k] + (blanks.cliques[lean.places[k]] - lean.cliques[k])
        for i in range(change.shape[0]):
            total -= slope[k, i] * change[i]
        surrogate.pull[k] = total


@question
def leaning(blanks):
    """By how much the sums, and not the parameters, have changed the weight of a state (12.3)."""


@answer(leaning, Complete)
def _not_at_all(blanks):
    return 0.0


@answer(leaning, Blanks)
def _by_the_sums(blanks):
    return blanks.lean.constant[0]
