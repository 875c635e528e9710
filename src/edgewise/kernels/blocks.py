"""Moves of matrices: a pair with a nominal variable moves as a whole (docs/method.md, 11.6).

As ``moves.py`` for one parameter: proposals are multivariate Student-t around the mode of the block, computed
from its base point (``block_lines.py``), and the source of means says what they are worth. Beside what the
proposal needs, ``LevelWork.vectors`` hold a change (5), the present value (6) and the other one (7).
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.block_lines import (
    block_log_z,
    block_mode,
    block_prior,
    copy,
    draw_block,
    exponent,
    fill_block,
    log_block_proposal,
)
from edgewise.kernels.compiling import answer, kernel, long
from edgewise.kernels.graph import LevelGraph, pair_of
from edgewise.kernels.level_lines import shift_thresholds
from edgewise.kernels.lines import acceptance, metropolis, penalised
from edgewise.kernels.moves import (
    FLIP,
    REDRAW,
    TALLY,
    count_noise,
    decided,
    log_birth_factor,
    passing,
    turned_down,
    visit_candidate,
    visit_clique,
)
from edgewise.kernels.sources import block_growth, clique_cells, follow_block, is_noisy
from edgewise.kernels.state import planes


@kernel
def go_block(a, size, value, cells, rules, chain, source, work):
    """The block of candidate `a` moves to `value`; the graph is the caller's business."""
    i, j = pair_of(a, chain.graph)
    change, begun = work.vectors[5], rules.block_start[a]
    squares = 0.0
    for q in range(size):
        change[q] = value[q] - chain.blocks[begun + q]
        squares += value[q] * value[q]
    follow_block(source, a, change, cells, work.features, rules, chain)
    copy(value, chain.blocks[begun : begun + size], size)
    chain.theta[a] = math.sqrt(squares / size)
    d_i, d_j = rules.dims[i], rules.dims[j]
    for k in range(d_i):
        for n in range(d_j):
            shift_thresholds(i, k, -change[k * d_j + n] * rules.centres[j, n], rules, chain)
            shift_thresholds(j, n, -change[k * d_j + n] * rules.centres[i, k], rules, chain)


@kernel
def block_change(a, size, value, target, cells, rows, chain, source, work):
    """Change of the log target when the block moves from `value` to `target`, as its source sees it."""
    growth = block_growth(source, a, value, target, cells, work.features, rows, chain, work.noise)
    return block_prior(target, size, work) - block_prior(value, size, work) - growth


@kernel
def redraw_block(a, size, value, target, cells, rows, chain, source, work):
    """Redraw the matrix of an active candidate; whether `value` has become another."""
    draw_block(chain.stream, size, work, target)
    log_ratio = log_block_proposal(size, work, value) - log_block_proposal(size, work, target)
    log_ratio += block_change(a, size, value, target, cells, rows, chain, source, work)
    log_ratio = penalised(log_ratio, work.noise, chain.stream)
    count_noise(np.int64(1), work.noise, acceptance(log_ratio), chain.counters)
    if not metropolis(chain.stream, log_ratio):
        return False
    copy(target, value, size)
    return True


@kernel
def flip_block(a, size, tallied, log_choice, value, target, cells, rules, rows, chain, source, work):
    """Decide the indicator of a candidate whose matrix is `value`; whether that has become another."""
    active = chain.graph.place[a] >= 0
    for q in range(size):
        target[q] = 0.0
    if not active:
        draw_block(chain.stream, size, work, target)
    point = value if active else target
    log_density = log_block_proposal(size, work, point)
    log_birth = log_birth_factor(a, size, log_density, chain, rules.prior) + log_choice
    log_pass = 0.0
    if is_noisy(source):
        expected = log_birth + block_prior(point, size, work)
        log_pass = passing(expected - rows[0] * block_log_z(point, size, cells, work.features))
        if turned_down(a, active, tallied, log_pass, chain):
            return False
    log_ratio = log_pass - log_birth if active else log_birth - log_pass
    log_ratio += block_change(a, size, value, target, cells, rows, chain, source, work)
    if not decided(a, log_ratio, tallied, work.noise, chain):
        return False
    copy(target, value, size)
    return True


@long
def visit_block(a, what, log_choice, rules, sums, chain, source, work):
    """As ``moves.visit_clique`` for a candidate with more than one parameter."""
    size = chain.graph.dimension[a]
    i, j = pair_of(a, chain.graph)
    cells, _, present = planes(work.lines[0], rules.levels[i] * rules.levels[j])
    active = chain.graph.place[a] >= 0
    begun = chain.blocks[rules.block_start[a] : rules.block_start[a] + size]
    value, target = work.vectors[6], work.vectors[7]
    fill_block(a, size, rules, sums, chain, work)
    clique_cells(source, a, chain.theta[a], chain, present)
    total = 0.0
    for c in range(cells.shape[1]):
        cells[0, c] = present[0, c] * math.exp(-exponent(begun, size, work.features, c))
        total += cells[0, c]
    for c in range(cells.shape[1]):
        cells[0, c] /= total
    block_mode(size, cells[0], sums.rows[0], work)
    copy(begun, value, size)
    moved = False
    if what & REDRAW and active:
        moved = redraw_block(a, size, value, target, cells[0], sums.rows, chain, source, work)
    if what & FLIP:
        tallied = what & TALLY != 0
        if flip_block(
            a, size, tallied, log_choice, value, target, cells[0], rules, sums.rows, chain, source, work
        ):
            moved = True
    if moved:
        go_block(a, size, value, cells[0], rules, chain, source, work)
    return moved


@answer(visit_candidate, LevelGraph)
def _any_size(graph, a, what, log_choice, rules, sums, chain, source, work):
    if graph.dimension[a] > 1:
        return visit_block(a, what, log_choice, rules, sums, chain, source, work)
    return visit_clique(a, what, log_choice, rules, sums, chain, source, work)
