"""Iterations of a chain over variables with any levels: window after window, then the hyper-parameters."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from edgewise.kernels.blanks import impute
from edgewise.kernels.blocks import visit_block, visit_thresholds
from edgewise.kernels.codes import OCCUPIED
from edgewise.kernels.compiling import entry, kernel
from edgewise.kernels.graph import pair_of
from edgewise.kernels.hyper import draw_hyper
from edgewise.kernels.moves import FLIP, REDRAW, TALLY, visit_clique
from edgewise.kernels.random import uniform
from edgewise.kernels.state import record, room_left
from edgewise.kernels.windows import REBUILD_EVERY, build, enter, leave

# Candidates with the probability that their indicators are decided, rounds within a window, low variables.
LevelScan = namedtuple("LevelScan", "hot probability rounds split")
# Matrices of the active candidates of the draws, and where those of each draw begin.
BlockRecorder = namedtuple("BlockRecorder", "indptr values")
# Room for the potentials from which the table is built.
Potentials = namedtuple("Potentials", "thresholds tables pairs")


@kernel
def fill_potentials(rules, basis, chain, potentials):
    """Potentials of the levels and of the active pairs, from the parameters; the number of pairs."""
    for i in range(rules.levels.shape[0]):
        for c in range(rules.levels[i]):
            total = 0.0
            for t in range(rules.bias_start[i + 1] - rules.bias_start[i]):
                total += basis[i, c, t] * chain.bias[rules.bias_start[i] + t]
            potentials.thresholds[i, c] = total
    count = chain.graph.counts[0]
    for position in range(count):
        a = chain.graph.listed[position]
        i, j = pair_of(a, chain.graph)
        potentials.pairs[position, 0] = i
        potentials.pairs[position, 1] = j
        for c_j in range(rules.levels[j]):
            for c_i in range(rules.levels[i]):
                total = 0.0
                for k in range(rules.dims[i]):
                    for n in range(rules.dims[j]):
                        parameter = chain.theta[a]
                        if chain.graph.dimension[a] > 1:
                            parameter = chain.blocks[rules.block_start[a] + k * rules.dims[j] + n]
                        total += rules.scores[i, c_i, k] * parameter * rules.scores[j, c_j, n]
                potentials.tables[position, c_i + rules.levels[i] * c_j] = total
    return count


@kernel
def rebuild(rules, basis, chain, source, potentials):
    """Fill the table of all states from the parameters."""
    count = fill_potentials(rules, basis, chain, potentials)
    build(potentials.thresholds, potentials.tables, potentials.pairs[:count], source)


@kernel
def visit_window(w, scan, rules, sums, chain, source, work):
    """Decide and redraw all candidates inside window `w`, and the thresholds of its variables."""
    place = source.place[w]
    for position in range(scan.hot.shape[0]):
        a = scan.hot[position]
        i, j = pair_of(a, chain.graph)
        if not (place[i] and place[j]):
            continue
        what = np.int64(0)
        if uniform(chain.stream) < scan.probability[position]:
            what |= FLIP | TALLY
        if chain.graph.place[a] >= 0:
            what |= REDRAW
        if what and chain.graph.dimension[a] > 1:
            visit_block(a, what, rules, sums, chain, source, work)
        elif what:
            visit_clique(a, what, 0.0, rules, sums, chain, source, work)
    for i in range(place.shape[0]):
        if place[i]:
            visit_thresholds(i, rules, sums, chain, source, work)


@kernel
def record_blocks(rules, chain, recorder, blocks):
    """Keep the matrices of the draw that was recorded last, in the order of its candidates."""
    draw = recorder.filled[0] - 1
    end = blocks.indptr[draw]
    for position in range(recorder.indptr[draw], recorder.indptr[draw + 1]):
        a = recorder.indices[position]
        if chain.graph.dimension[a] > 1:
            for q in range(chain.graph.dimension[a]):
                blocks.values[end + q] = chain.blocks[rules.block_start[a] + q]
            end += chain.graph.dimension[a]
    blocks.indptr[draw + 1] = end


@entry
def run_levels(
    rules,
    basis,
    sums,
    chain,
    source,
    scan,
    work,
    potentials,
    blanks,
    iteration,
    iterations,
    thin,
    recorder,
    blocks,
):
    """As :func:`edgewise.kernels.chain.run_chain`, for variables with any levels."""
    if iterations == 0:
        rebuild(rules, basis, chain, source, potentials)
    for step in range(iterations):
        if thin > 0:
            filled = recorder.filled[0]
            room = blocks.indptr[filled] + chain.blocks.shape[0] <= blocks.values.shape[0]
            if not room or not room_left(chain.graph.place.shape[0], recorder):
                return step
        if (iteration + step) % REBUILD_EVERY == 0:
            rebuild(rules, basis, chain, source, potentials)
        impute(blanks, chain, thin > 0)
        for w in range(source.place.shape[0]):
            enter(source, w, scan.split)
            for _ in range(scan.rounds):
                visit_window(w, scan, rules, sums, chain, source, work)
            leave(source)
        draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)
        if thin < 0:
            for position in range(chain.graph.counts[0]):
                chain.tallies[OCCUPIED, chain.graph.listed[position]] += 1.0
        elif (iteration + step + 1) % thin == 0:
            record(chain, recorder)
            record_blocks(rules, chain, recorder, blocks)
    return iterations
