"""Iterations of a chain over variables with any levels: window after window, then the hyper-parameters."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

import edgewise.kernels.blocks  # noqa: F401 (matrices are visited, too)
from edgewise.kernels.blanks import impute
from edgewise.kernels.codes import OCCUPIED
from edgewise.kernels.compiling import entry, kernel, long
from edgewise.kernels.directions import bias_line, move_bias
from edgewise.kernels.graph import pair_of
from edgewise.kernels.hyper import draw_hyper
from edgewise.kernels.lines import (
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    log_z_change,
    metropolis,
    move_cells,
)
from edgewise.kernels.moves import FLIP, REDRAW, TALLY, visit_candidate
from edgewise.kernels.potentials import level_potentials
from edgewise.kernels.random import uniform
from edgewise.kernels.state import planes, record, room_left
from edgewise.kernels.windows import REBUILD_EVERY, build, enter, leave, level_cells, scale_levels

# Candidates with the probability that their indicators are decided, rounds within a window, low variables.
LevelScan = namedtuple("LevelScan", "hot probability rounds split")
# Room for the potentials from which the table is built.
Potentials = namedtuple("Potentials", "thresholds tables pairs")


@kernel
def fill_potentials(rules, basis, chain, potentials):
    """Potentials of the levels and of the active pairs, from the parameters; the number of pairs."""
    level_potentials(rules.levels, basis, rules.bias_start, chain.bias, potentials.thresholds)
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
        if what:
            visit_candidate(chain.graph, a, what, 0.0, rules, sums, chain, source, work)
    for i in range(place.shape[0]):
        if place[i]:
            visit_thresholds(i, rules, sums, chain, source, work)


@long
def visit_thresholds(i, rules, sums, chain, source, work):
    """Redraw the thresholds of variable i along its lines, all on the marginal of its levels (11.7)."""
    cells, values, moved = planes(work.lines[0], rules.levels[i])
    S, log_scale = work.sums[0], work.vectors[0]
    level_cells(source, i, cells[0])
    for c in range(rules.levels[i]):
        log_scale[c] = 0.0
    for n in range(rules.line_start[i], rules.line_start[i + 1]):
        precision, tilt = bias_line(chain.graph, 0, n, rules, sums, chain, values, S)
        mode, sd = line_mode(cells, values, S, sums.rows, precision, tilt)
        t_new = draw_proposal(chain.stream, mode, sd)
        log_ratio = line_value(t_new, cells, values, S, sums.rows, precision, tilt)
        log_ratio += log_proposal(0.0, mode, sd) - log_proposal(t_new, mode, sd)
        if metropolis(chain.stream, log_ratio):
            normaliser = log_z_change(t_new, cells[0], values[0])
            move_cells(cells, values, t_new, moved)
            for c in range(rules.levels[i]):
                cells[0, c] = moved[0, c]
                log_scale[c] += t_new * values[0, c] - normaliser
            move_bias(chain.graph, 0, n, t_new, rules, chain)
    for c in range(rules.levels[i]):
        source.scale[c] = math.exp(log_scale[c])
    scale_levels(source, i, source.scale)


@entry
def run_levels(
    rules, basis, sums, chain, source, scan, work, potentials, blanks, iteration, iterations, thin, recorder
):
    """As :func:`edgewise.kernels.chain.run_chain`, for variables with any levels."""
    if iterations == 0:
        rebuild(rules, basis, chain, source, potentials)
    for step in range(iterations):
        if thin > 0 and not room_left(recorder, chain.graph.place.shape[0]):
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
            record(recorder, chain)
    return iterations
