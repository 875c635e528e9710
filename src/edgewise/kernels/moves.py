"""The moves along lines, each written once, over any source of means (docs/method.md, 5 and 7).

A move proposes from the source's cells, computes its log ratio with the source's growth, and decides; only an
accepted one is followed. How exact a move is depends on its source alone: with the table of states each is an
ordinary Metropolis step; with particles the noise of its log ratio is penalised (``lines.penalised``).

All proposals are Student-t around the mode of the line, computed from the base point of the line so that a
move and its reverse see the same proposal.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.kernels.codes import (
    BIRTHS,
    COLD_ACCEPTS,
    COLD_TRIES,
    DEATH_TRIES,
    DEATHS,
    DECISIONS,
    INCLUSION,
    NOISE_COUNT,
    NOISE_SUM,
    TRIES,
)
from edgewise.kernels.compiling import answer, kernel, long, question
from edgewise.kernels.directions import (
    bias_cells_count,
    bias_line,
    clique_cells_count,
    clique_line,
    move_bias,
    shift_biases,
)
from edgewise.kernels.graph import CliqueGraph, PairGraph, activate, deactivate
from edgewise.kernels.hyper import is_free, log_prior_odds, other_common
from edgewise.kernels.lines import (
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    metropolis,
    move_cells,
    penalised,
)
from edgewise.kernels.pairs import any_candidate, candidates_count
from edgewise.kernels.random import below, uniform
from edgewise.kernels.slabs import log_slab, within
from edgewise.kernels.sources import (
    bias_cells,
    bias_growth,
    clique_cells,
    clique_growth,
    follow_bias,
    follow_clique,
    is_noisy,
)
from edgewise.kernels.state import planes

# A birth is previewed as hopeless only where it is this much worse than one accepted for sure, so that the
# noise of the preview seldom makes a promising one pay. Any value leaves the posterior as it is.
HOPELESS_MARGIN = 2.5
# What a visit does. Kernels are given constants as np.int64(...): they are compiled once more for every
# literal they are called with.
REDRAW, FLIP, TALLY = 1, 2, 4
# However noisy a single decision, it should not choose the number of particles alone.
NOISE_CAP = 4.0


@kernel
def tally(a, was_active, accepted, probability, tallies):
    """Count a decision on the indicator of candidate `a` (see ``Engine.edge_sums``)."""
    tallies[TRIES, a] += 1.0
    if was_active:
        tallies[DEATH_TRIES, a] += 1.0
    tallies[INCLUSION, a] += 1.0 - probability if was_active else probability
    if accepted:
        tallies[DEATHS if was_active else BIRTHS, a] += 1.0


@kernel
def count_noise(parameter, noise, probability, counters):
    """Add the noise of a decision, of an indicator or of a `parameter` (0, 1), weighted with its acceptance.

    A hopeless proposal may be arbitrarily noisy; it should not decide how many particles there are.
    """
    counters[NOISE_SUM + parameter] += probability * min(max(noise[0], noise[1]), NOISE_CAP)
    counters[NOISE_COUNT + parameter] += probability
    counters[DECISIONS] += 1.0


@kernel
def log_birth_factor(a, size, log_density, chain, prior):
    """The log ratio of a birth (5.3), but for the line itself.

    `size` is the number of parameters, `log_density` the log of how often these values are proposed.
    """
    others = other_common(a, chain.graph)
    return (
        log_prior_odds(a, others, chain.graph.status, chain.hyper, prior)
        + size * log_slab(prior.slab, a, chain.hyper)
        - log_density
    )


@kernel
def passing(expected):
    """Log probability that a birth which the cells `expected` to have this log ratio passes its preview."""
    return min(0.0, expected + HOPELESS_MARGIN)


@kernel
def turned_down(a, active, tallied, log_pass, chain):
    """Whether the preview turns down a birth, which is then counted as refused.

    A preview by the cells turns hopeless births down before the growth is asked for, with a probability
    that the death corrects for (delayed acceptance).
    """
    if active or metropolis(chain.stream, log_pass):
        return False
    if tallied:
        tally(a, active, active, 0.0, chain.tallies)
    return True


@kernel
def decided(a, log_ratio, tallied, noise, chain):
    """Decide on another indicator of candidate `a` and count the decision; the graph follows. Was it yes?"""
    active = chain.graph.place[a] >= 0
    log_ratio = penalised(log_ratio, noise, chain.stream)
    accepted = metropolis(chain.stream, log_ratio)
    count_noise(np.int64(0), noise, acceptance(log_ratio), chain.counters)
    if tallied:
        tally(a, active, accepted, acceptance(log_ratio), chain.tallies)
    if accepted and active:
        deactivate(a, chain.graph)
    elif accepted:
        activate(a, chain.graph)
    return accepted


@kernel
def line_change(a, value, target, cells, values, S, rows, precision, tilt, chain, source, noise):
    """Change of the log target along the line of candidate `a`, as its source sees it."""
    slope = tilt
    for g in range(S.shape[0]):
        slope += S[g]
    growth = clique_growth(source, a, value, target, cells, values, rows, chain, noise)
    return (target - value) * slope - growth - 0.5 * precision * (target * target - value * value)


@kernel
def go(a, value, target, cells, values, rules, chain, source):
    """An accepted move of candidate `a` along its line; the graph is the caller's business."""
    follow_clique(source, a, value, target, cells, values, rules, chain)
    shift_biases(chain.graph, a, target - value, rules, chain)
    chain.theta[a] = target


@kernel
def redrawn(a, value, cells, values, S, precision, tilt, mode, sd, rules, sums, chain, source, noise):
    """The parameter of the active candidate `a` after it was redrawn: another one, or the same."""
    target = draw_proposal(chain.stream, mode, sd)
    if not within(rules.prior.slab, target):
        return value
    log_ratio = log_proposal(value, mode, sd) - log_proposal(target, mode, sd)
    log_ratio += line_change(
        a, value, target, cells, values, S, sums.rows, precision, tilt, chain, source, noise
    )
    log_ratio = penalised(log_ratio, noise, chain.stream)
    count_noise(np.int64(1), noise, acceptance(log_ratio), chain.counters)
    return target if metropolis(chain.stream, log_ratio) else value


@kernel
def flipped(
    a, value, tallied, log_choice, cells, values, S, precision, tilt, mode, sd, rules, sums, chain, source,
    noise,
):  # fmt: skip
    """The parameter of candidate `a` after its indicator was decided: zero if it is inactive then."""
    active = chain.graph.place[a] >= 0
    target = 0.0 if active else draw_proposal(chain.stream, mode, sd)
    point = value if active else target
    if not within(rules.prior.slab, point):
        if tallied:
            tally(a, active, active, 0.0, chain.tallies)
        return value
    log_density = log_proposal(point, mode, sd)
    log_birth = log_birth_factor(a, 1, log_density, chain, rules.prior) + log_choice
    log_pass = 0.0
    if is_noisy(source):
        log_pass = passing(log_birth + line_value(point, cells, values, S, sums.rows, precision, tilt))
        if turned_down(a, active, tallied, log_pass, chain):
            return value
    log_ratio = log_pass - log_birth if active else log_birth - log_pass
    log_ratio += line_change(
        a, value, target, cells, values, S, sums.rows, precision, tilt, chain, source, noise
    )
    return target if decided(a, log_ratio, tallied, noise, chain) else value


@long
def visit_clique(a, what, log_choice, rules, sums, chain, source, work):
    """Redraw the parameter of candidate `a` if it is active, decide its indicator, or both; did it move?

    Both in one visit is for sources without noise: what is accepted is followed once, at the end, and only
    growths that come from the base cells do not mind. `what` adds up REDRAW, FLIP and TALLY, the last for
    decisions that are tried in both states alike. `log_choice` is the log of how much more often the
    candidate is chosen for a death than for a birth.
    """
    count = clique_cells_count(a, rules, chain.graph)
    cells, values, present = planes(work.lines[0], count)
    S = work.sums[0]
    active = chain.graph.place[a] >= 0
    begun = chain.theta[a]
    precision, tilt = clique_line(chain.graph, a, begun, rules, sums, chain, values, S)
    clique_cells(source, a, begun, chain, present)
    move_cells(present, values, -begun, cells)
    mode, sd = line_mode(cells, values, S, sums.rows, precision, tilt)
    value = begun
    if what & REDRAW and active:
        value = redrawn(
            a, value, cells, values, S, precision, tilt, mode, sd, rules, sums, chain, source, work.noise
        )
    if what & FLIP:
        value = flipped(
            a, value, what & TALLY != 0, log_choice, cells, values, S, precision, tilt, mode, sd, rules, sums,
            chain, source, work.noise,
        )  # fmt: skip
    if value == begun:
        return False
    go(a, begun, value, cells, values, rules, chain, source)
    return True


@question
def visit_candidate(graph, a, what, log_choice, rules, sums, chain, source, work):
    """:func:`visit_clique`, or what does the same for candidate `a` with more than one parameter."""


@answer(visit_candidate, PairGraph, CliqueGraph)
def _one_parameter(graph, a, what, log_choice, rules, sums, chain, source, work):
    return visit_clique(a, what, log_choice, rules, sums, chain, source, work)


@long
def visit_bias(g, i, rules, sums, chain, source, work):
    """Redraw the biases of stratum `g` along their line `i`; did they move?"""
    cells, values, _ = planes(work.lines[0, :, :1], bias_cells_count(chain.graph, i, rules))
    S = work.sums[0, :1]
    rows = sums.rows[g : g + 1]
    bias_cells(source, g, i, cells)
    precision, tilt = bias_line(chain.graph, g, i, rules, sums, chain, values, S)
    mode, sd = line_mode(cells, values, S, rows, precision, tilt)
    t = draw_proposal(chain.stream, mode, sd)
    slope = tilt + S[0]
    log_ratio = (
        t * slope
        - bias_growth(source, g, i, t, cells, values, rows, work.noise)
        - 0.5 * precision * t * t
        + log_proposal(0.0, mode, sd)
        - log_proposal(t, mode, sd)
    )
    if not metropolis(chain.stream, penalised(log_ratio, work.noise, chain.stream)):
        return False
    move_bias(chain.graph, g, i, t, rules, chain)
    follow_bias(source, g, i, t, cells, values, chain)
    return True


@kernel
def visit_cold(is_hot, rules, sums, chain, source, work):
    """A birth of any cold candidate or a death of an active one, equally often; did it happen?

    Few cold candidates are active at a time. Deaths choose among the active ones, so that none stays longer
    than its probability asks for, and births make up for it in their ratio (7.3).
    """
    graph = chain.graph
    count = candidates_count(rules.pair_index, graph)
    birth = uniform(chain.stream) < 0.5
    if birth:
        a = any_candidate(rules.pair_index, sums, chain)
        if a < 0:
            return False
    elif graph.counts[0] > 0:
        a = graph.listed[below(chain.stream, graph.counts[0])]
    else:
        return False
    active = graph.place[a] >= 0
    if active == birth or is_hot[a] or not is_free(graph.status[a]):
        return False
    others = graph.counts[0] - (1 if active else 0)
    log_choice = math.log(count) - math.log(others + 1)
    chain.counters[COLD_TRIES] += 1.0
    moved = visit_candidate(graph, a, np.int64(FLIP), log_choice, rules, sums, chain, source, work)
    if moved:
        chain.counters[COLD_ACCEPTS] += 1.0
    return moved
