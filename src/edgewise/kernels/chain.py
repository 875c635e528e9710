"""One iteration of a chain on lines, and many of them (docs/method.md, 5 and 7)."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.blanks import impute
from edgewise.kernels.codes import LAG, LINGERED, OCCUPIED, SEEN
from edgewise.kernels.compiling import answer, entry, kernel, question
from edgewise.kernels.graph import shuffle_active
from edgewise.kernels.hyper import draw_hyper, is_free
from edgewise.kernels.moves import FLIP, REDRAW, TALLY, visit_bias, visit_candidate, visit_cold
from edgewise.kernels.pairs import any_candidate, has_room, keep_new
from edgewise.kernels.random import uniform
from edgewise.kernels.sources import refresh, settle
from edgewise.kernels.state import FullScan, LineScan, Scan, record, room_left
from edgewise.kernels.swaps import visit_rivals, visit_swap


@question
def redraws_at_once(scan):
    """Whether a visit that decides an indicator redraws the parameter too."""


@answer(redraws_at_once, FullScan)
def _at_once(scan):
    return True


@answer(redraws_at_once, Scan, LineScan)
def _later(scan):
    return False


@kernel
def visit_hot(scan, rules, sums, chain, source, work):
    """Decide the indicators of the hot candidates whose coins say so, in the order of the scan."""
    for position in range(scan.hot.shape[0]):
        a = scan.hot[position]
        what = np.int64(0)
        if uniform(chain.stream) < scan.probability[position]:
            what |= FLIP | TALLY
        if redraws_at_once(scan) and chain.graph.place[a] >= 0:
            what |= REDRAW
        if what:
            moved = visit_candidate(chain.graph, a, what, 0.0, rules, sums, chain, source, work)
            settle(source, moved, chain)


@question
def visit_swaps(scan, rules, sums, chain, source, work):
    """The swaps of a scan: of any pairs, then between the rivals that it knows."""


@answer(visit_swaps, LineScan)
def _no_swaps(scan, rules, sums, chain, source, work):
    pass


@answer(visit_swaps, FullScan)
def _any_swaps(scan, rules, sums, chain, source, work):
    for _ in range(scan.swaps):
        settle(source, visit_swap(rules, sums, chain, source, work), chain)


@answer(visit_swaps, Scan)
def _known_rivals(scan, rules, sums, chain, source, work):
    for _ in range(scan.swaps):
        settle(source, visit_swap(rules, sums, chain, source, work), chain)
    for number in range(scan.rivals.rate.shape[0]):
        if uniform(chain.stream) < scan.rivals.rate[number]:
            moved = visit_rivals(number, scan.rivals, rules, sums, chain, source, work)
            settle(source, moved, chain)


@question
def visit_others(scan, rules, sums, chain, source, work):
    """What a scan leaves for after its hot candidates."""


@answer(visit_others, FullScan)
def _nothing(scan, rules, sums, chain, source, work):
    pass


@answer(visit_others, Scan, LineScan)
def _cold_ones_and_parameters(scan, rules, sums, chain, source, work):
    for _ in range(scan.cold_flips):
        a = any_candidate(rules.pair_index, sums, chain)
        if a >= 0 and not scan.is_hot[a] and is_free(chain.graph.status[a]):
            what = np.int64(FLIP | TALLY)
            moved = visit_candidate(chain.graph, a, what, 0.0, rules, sums, chain, source, work)
            if moved:
                settle(source, moved, chain)
    for _ in range(scan.cold_moves):
        moved = visit_cold(scan.is_hot, rules, sums, chain, source, work)
        if moved:
            settle(source, moved, chain)
    shuffle_active(chain.graph, chain.stream)
    for position in range(chain.graph.counts[0]):
        a = chain.graph.listed[position]
        moved = visit_candidate(chain.graph, a, np.int64(REDRAW), 0.0, rules, sums, chain, source, work)
        settle(source, moved, chain)


@question
def visit_biases(scan, rules, sums, chain, source, work):
    """The biases along all of their lines."""


@answer(visit_biases, FullScan, Scan)
def _one_line_each(scan, rules, sums, chain, source, work):
    for g in range(rules.centres.shape[0]):
        for i in range(rules.levels.shape[0]):
            settle(source, visit_bias(g, i, rules, sums, chain, source, work), chain)


@answer(visit_biases, LineScan)
def _lines_of_thresholds(scan, rules, sums, chain, source, work):
    for position in range(scan.lines.shape[0]):
        settle(source, visit_bias(np.int64(0), scan.lines[position], rules, sums, chain, source, work), chain)


@kernel
def iterate(scan, rules, sums, chain, source, work):
    """Swaps, indicators, active parameters, biases, hyper-parameters."""
    visit_swaps(scan, rules, sums, chain, source, work)
    visit_hot(scan, rules, sums, chain, source, work)
    visit_others(scan, rules, sums, chain, source, work)
    visit_biases(scan, rules, sums, chain, source, work)
    draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)


@kernel
def watch(iteration, graph, tallies):
    """Count which candidates are active, and at fixed iterations which of them were at the last such one."""
    for position in range(graph.counts[0]):
        tallies[OCCUPIED, graph.listed[position]] += 1.0
    if iteration % LAG == 0:
        for a in range(graph.place.shape[0]):
            active = graph.place[a] >= 0
            if active and tallies[SEEN, a] > 0.0:
                tallies[LINGERED, a] += 1.0
            tallies[SEEN, a] = 1.0 if active else 0.0


@entry
def run_chain(rules, sums, chain, source, scan, work, blanks, iteration, iterations, thin, recorder):
    """Run up to `iterations` iterations, stopping early when the recorder is full; returns how many ran.

    A table of pairs that is full stops it too.

    `iteration` counts from the end of warm-up and decides what is kept; a negative `thin` keeps nothing and
    counts which candidates are active instead. With no iterations to run, the source is brought to the
    present parameters, whatever it was made for.
    """
    if iterations == 0:
        refresh(source, 0, chain)
    for step in range(iterations):
        if thin > 0 and not room_left(recorder, chain.graph.place.shape[0]):
            return step
        if not has_room(rules.pair_index, chain):
            return step
        impute(blanks, chain, thin > 0)
        refresh(source, iteration + step, chain)
        iterate(scan, rules, sums, chain, source, work)
        keep_new(rules.pair_index, chain)
        if thin < 0:
            watch(iteration + step + 1, chain.graph, chain.tallies)
        elif (iteration + step + 1) % thin == 0:
            record(recorder, chain)
    return iterations
