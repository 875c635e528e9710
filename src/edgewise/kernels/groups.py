"""Pairs in several groups: absent, present and the same, or present and different (docs/method.md, 13).

Symbols: ``coupling[k, a]`` the coupling u_k of candidate a in group k, ``theta[a]`` their mean A over the
groups, ``differs[a]`` whether they differ; G groups, each of one or more strata ``group_of[g]``. A pair that
differs has u ~ N(0, sigma0^2 1 1' + sigma_D^2 (I - 1 1' / G) / 2), which needs no basis for the differences:
the precision is c I + r 1 1', and the difference of any two groups has variance sigma_D^2.

A visit looks at a pair from the model without it. There the strata know nothing of each other, so one
question for their cells is enough to propose and to decide all three states: a Student-t around the mode of
the common line for a pair that is the same (one dimension), one around the joint mode of the groups' lines
for a pair that differs (G dimensions). Two states are compared by their posterior over their proposal, as a
birth (5.3).

A ``GroupChain`` is a chain (``state.py``) with ``coupling``, ``differs``, the number of pairs ``parted[0]``
that differ, and the tallies ``difference`` of :data:`DIFFERENT`, :data:`PARTINGS` and :data:`JOININGS`.
``rates`` are q0 and sigma_D.
"""

from __future__ import annotations

import math
from collections import namedtuple

from edgewise.kernels.codes import (
    BIRTHS,
    DEATH_TRIES,
    DEATHS,
    DIFFERENCE_RATE,
    DIFFERENCE_SCALE,
    FORCED,
    INCLUSION,
    SLAB_SCALE,
    TRIES,
)
from edgewise.kernels.compiling import entry, kernel, long
from edgewise.kernels.directions import pair_in_stratum, shift_in_stratum
from edgewise.kernels.graph import activate, deactivate, pair_of
from edgewise.kernels.hyper import (
    draw_hyper,
    draw_inclusion_rate,
    draw_slab_scale,
    log_prior_odds,
    other_common,
)
from edgewise.kernels.lines import (
    MODE_ACCURACY,
    MODE_STEP_LIMIT,
    TAIL_FREEDOM,
    acceptance,
    draw_proposal,
    line_mode,
    line_value,
    log_proposal,
    log_slab_constant,
    log_z_change,
    metropolis,
    move_cells,
    slope_and_curvature,
)
from edgewise.kernels.moves import visit_bias
from edgewise.kernels.random import gamma_above_one, normal, uniform
from edgewise.kernels.sources import clique_cells, follow_clique, refresh
from edgewise.kernels.state import planes, record, room_left

GroupChain = namedtuple(
    "GroupChain", "theta bias hyper graph stream tallies counters coupling differs rates parted difference"
)
GroupRules = namedtuple(
    "GroupRules", "centres clique_centres levels scores pair_index prior group_of group_prior"
)
# q0 ~ Beta(beta_a, beta_b), sigma_D^-2 ~ Gamma(gamma_shape, gamma_rate), or both as they are in ``rates``.
GroupPrior = namedtuple("GroupPrior", "beta_a beta_b fixed_q0 gamma_shape gamma_rate fixed_scale")
# Beside the lines: precision and tilt of every group, the mode of a pair that differs and its precisions.
GroupWork = namedtuple("GroupWork", "lines sums joint noise groups")
GroupScan = namedtuple("GroupScan", "hot probability")
GroupRecorder = namedtuple("GroupRecorder", "couplings rates")

ABSENT, SAME, DIFFERENT_STATE = 0, 1, 2
# Rows of ``difference``: sum over the tries of the probability that the pair differed afterwards, and how
# often it parted and joined.
DIFFERENT, PARTINGS, JOININGS = 0, 1, 2
# Decisions of a visit: next to the cells of large tables they cost nothing.
FLIPS = 6
JOINT_STEPS = 32
# Rows of ``groups``.
PRECISION, TILT, MODE, CURVATURE, VALUE, PROPOSED, SCRATCH = range(7)


@kernel
def difference_terms(groups, sigma0, sigma_d):
    """The precision c I + r 1 1' of the couplings of a pair that differs: c and r."""
    c = 2.0 / (sigma_d * sigma_d)
    r = (1.0 / (groups * sigma0 * sigma0) - c) / groups
    return c, r


@kernel
def log_difference_density(values, c, r):
    """Log density of the couplings of a pair that differs."""
    groups = values.shape[0]
    total = 0.0
    squares = 0.0
    for k in range(groups):
        total += values[k]
        squares += values[k] * values[k]
    log_determinant = (groups - 1) * math.log(c) + math.log(c + r * groups)
    return 0.5 * (log_determinant - groups * math.log(2.0 * math.pi) - c * squares - r * total * total)


@kernel
def group_lines(a, rules, sums, chain, values, S, groups):
    """Fill the lines of all strata; precision and tilt that priors of biases give each group (5.2)."""
    i, j = pair_of(a, chain.graph)
    for k in range(groups.shape[1]):
        groups[PRECISION, k] = 0.0
        groups[TILT, k] = 0.0
    for g in range(S.shape[0]):
        k = rules.group_of[g]
        own = pair_in_stratum(g, i, j, a, chain.coupling[k, a], rules, sums, chain, values, S)
        groups[PRECISION, k] += own[0]
        groups[TILT, k] += own[1]


@long
def joint_mode(cells, values, S, N, group_of, c, r, groups):
    """Mode of the couplings of a pair that differs, and the precisions of its groups, by damped Newton steps.

    The Hessian is diagonal plus r 1 1', so that no matrix is needed.
    """
    count = groups.shape[1]
    for k in range(count):
        groups[MODE, k] = 0.0
    for _ in range(JOINT_STEPS):
        total = 0.0
        for k in range(count):
            total += groups[MODE, k]
        for k in range(count):
            groups[CURVATURE, k] = groups[PRECISION, k] + c
            groups[SCRATCH, k] = groups[TILT, k] - groups[CURVATURE, k] * groups[MODE, k] - r * total
        for g in range(S.shape[0]):
            k = group_of[g]
            slope, curvature = slope_and_curvature(groups[MODE, k], cells[g], values[g], S[g], N[g])
            groups[SCRATCH, k] += slope
            groups[CURVATURE, k] += curvature
        inverse = 0.0
        pull = 0.0
        for k in range(count):
            inverse += 1.0 / groups[CURVATURE, k]
            pull += groups[SCRATCH, k] / groups[CURVATURE, k]
        pull *= r / (1.0 + r * inverse)
        largest = 0.0
        decrease = 0.0
        for k in range(count):
            step = (groups[SCRATCH, k] - pull) / groups[CURVATURE, k]
            largest = max(largest, abs(step))
            decrease += step * groups[SCRATCH, k]
            groups[SCRATCH, k] = step
        damping = 1.0 if largest <= MODE_STEP_LIMIT else MODE_STEP_LIMIT / largest
        for k in range(count):
            groups[MODE, k] += damping * groups[SCRATCH, k]
        if decrease < MODE_ACCURACY:
            break


@kernel
def draw_joint(stream, r, groups, target):
    """Student-t in all groups around the joint mode, in `target`."""
    count = groups.shape[1]
    chi = 2.0 * gamma_above_one(stream, 0.5 * TAIL_FREEDOM)
    radius = math.sqrt(TAIL_FREEDOM / chi)
    inverse = 0.0
    along = 0.0
    for k in range(count):
        groups[SCRATCH, k] = normal(stream)
        inverse += 1.0 / groups[CURVATURE, k]
        along += groups[SCRATCH, k] / math.sqrt(groups[CURVATURE, k])
    along /= inverse
    shrink = 1.0 / math.sqrt(1.0 + r * inverse) - 1.0
    for k in range(count):
        root = math.sqrt(groups[CURVATURE, k])
        target[k] = groups[MODE, k] + radius * (groups[SCRATCH, k] + shrink * along / root) / root


@kernel
def log_joint_proposal(point, r, groups):
    """Log density of :func:`draw_joint`."""
    count = groups.shape[1]
    inverse = 0.0
    log_determinant = 0.0
    total = 0.0
    squares = 0.0
    for k in range(count):
        away = point[k] - groups[MODE, k]
        inverse += 1.0 / groups[CURVATURE, k]
        log_determinant += math.log(groups[CURVATURE, k])
        total += away
        squares += groups[CURVATURE, k] * away * away
    log_determinant += math.log(1.0 + r * inverse)
    distance = squares + r * total * total
    return (
        math.lgamma(0.5 * (TAIL_FREEDOM + count))
        - math.lgamma(0.5 * TAIL_FREEDOM)
        - 0.5 * count * math.log(TAIL_FREEDOM * math.pi)
        + 0.5 * log_determinant
        - 0.5 * (TAIL_FREEDOM + count) * math.log1p(distance / TAIL_FREEDOM)
    )


@kernel
def joint_value(point, cells, values, S, N, group_of, groups):
    """Log likelihood of all strata and priors of their biases at the couplings `point`, from the base."""
    result = 0.0
    for k in range(groups.shape[1]):
        result += point[k] * groups[TILT, k] - 0.5 * groups[PRECISION, k] * point[k] * point[k]
    for g in range(S.shape[0]):
        t = point[group_of[g]]
        result += t * S[g] - N[g] * log_z_change(t, cells[g], values[g])
    return result


@kernel
def log_state_odds(state, a, others, parted, present, chain, rules):
    """Log prior weight of a state of candidate `a` relative to absent (13.2); absent has none."""
    if state == ABSENT:
        return 0.0
    prior = rules.group_prior
    result = 0.0
    if chain.graph.status[a] != FORCED:
        result = log_prior_odds(a, others, chain.graph.status, chain.hyper, rules.prior)
    if prior.fixed_q0:
        share = chain.rates[DIFFERENCE_RATE]
        return result + math.log(share if state == DIFFERENT_STATE else 1.0 - share)
    count = prior.beta_a + parted if state == DIFFERENT_STATE else prior.beta_b + present - parted
    return result + math.log(count) - math.log(prior.beta_a + prior.beta_b + present)


@kernel
def put(a, state, point, chain):
    """Let candidate `a` be in a state with the couplings `point`."""
    graph = chain.graph
    active = graph.place[a] >= 0
    chain.parted[0] += (1 if state == DIFFERENT_STATE else 0) - chain.differs[a]
    chain.differs[a] = 1 if state == DIFFERENT_STATE else 0
    total = 0.0
    for k in range(chain.coupling.shape[0]):
        chain.coupling[k, a] = point[k]
        total += point[k]
    chain.theta[a] = point[0] if state == SAME else total / chain.coupling.shape[0]
    if state == ABSENT and active:
        deactivate(a, graph)
    elif state != ABSENT and not active:
        activate(a, graph)


@long
def visit_pair(a, flips, rules, sums, chain, source, work):
    """Redraw the couplings of candidate `a`, and decide its state `flips` times; did anything move?"""
    graph = chain.graph
    group_of = rules.group_of
    groups = work.groups
    count = chain.coupling.shape[0]
    cells, values, present = planes(work.lines[0], 4)
    S = work.sums[0]
    N = sums.rows
    value = groups[VALUE]
    target = groups[PROPOSED]
    group_lines(a, rules, sums, chain, values, S, groups)
    clique_cells(source, a, chain.theta[a], chain, present)
    for g in range(S.shape[0]):
        begun = -chain.coupling[group_of[g], a]
        move_cells(present[g : g + 1], values[g : g + 1], begun, cells[g : g + 1])
    sigma0 = chain.hyper[SLAB_SCALE]
    precision = sigma0**-2
    tilt = 0.0
    for k in range(count):
        precision += groups[PRECISION, k]
        tilt += groups[TILT, k]
        value[k] = chain.coupling[k, a]
    mode, sd = line_mode(cells, values, S, N, precision, tilt)
    c, r = difference_terms(count, sigma0, chain.rates[DIFFERENCE_SCALE])
    joint_mode(cells, values, S, N, group_of, c, r, groups)
    active = graph.place[a] >= 0
    others = other_common(a, graph)
    parted = chain.parted[0] - chain.differs[a]
    everyone = graph.counts[0] - (1 if active else 0)
    state = ABSENT
    if active:
        state = DIFFERENT_STATE if chain.differs[a] else SAME
    first = state
    moved = False
    # Log posterior over proposal of the present state, without the prior odds.
    weight = 0.0
    if state == SAME:
        weight = line_value(value[0], cells, values, S, N, precision, tilt) - log_proposal(value[0], mode, sd)
    elif state == DIFFERENT_STATE:
        weight = joint_value(value, cells, values, S, N, group_of, groups) - log_joint_proposal(
            value, r, groups
        )
        weight += log_difference_density(value, c, r)
    if state == SAME:
        weight += log_slab_constant(sigma0)
    free = graph.status[a] != FORCED
    for decision in range(flips + 1):
        # The first decision redraws the couplings of the state as it is.
        proposed = state
        if decision > 0:
            if free:
                proposed = (state + (1 if uniform(chain.stream) < 0.5 else 2)) % 3
            else:
                proposed = DIFFERENT_STATE if state == SAME else SAME
        elif state == ABSENT:
            continue
        new_weight = 0.0
        if proposed == ABSENT:
            for k in range(count):
                target[k] = 0.0
        elif proposed == SAME:
            t = draw_proposal(chain.stream, mode, sd)
            for k in range(count):
                target[k] = t
            new_weight = line_value(t, cells, values, S, N, precision, tilt) + log_slab_constant(sigma0)
            new_weight -= log_proposal(t, mode, sd)
        else:
            draw_joint(chain.stream, r, groups, target)
            new_weight = joint_value(target, cells, values, S, N, group_of, groups)
            new_weight += log_difference_density(target, c, r) - log_joint_proposal(target, r, groups)
        log_ratio = new_weight - weight
        if decision > 0:
            log_ratio += log_state_odds(proposed, a, others, parted, everyone, chain, rules)
            log_ratio -= log_state_odds(state, a, others, parted, everyone, chain, rules)
            chance = acceptance(log_ratio)
            there = (1.0 - chance if state else 0.0) + (chance if proposed else 0.0)
            differs = (1.0 - chance if state == DIFFERENT_STATE else 0.0) + (
                chance if proposed == DIFFERENT_STATE else 0.0
            )
            chain.tallies[TRIES, a] += 1.0
            chain.tallies[INCLUSION, a] += there
            chain.difference[DIFFERENT, a] += differs
            if state:
                chain.tallies[DEATH_TRIES, a] += 1.0
        if metropolis(chain.stream, log_ratio):
            state = proposed
            weight = new_weight
            moved = True
            for k in range(count):
                value[k] = target[k]
    if not moved:
        return False
    if first == ABSENT and state != ABSENT:
        chain.tallies[BIRTHS, a] += 1.0
    elif first != ABSENT and state == ABSENT:
        chain.tallies[DEATHS, a] += 1.0
    if first != DIFFERENT_STATE and state == DIFFERENT_STATE:
        chain.difference[PARTINGS, a] += 1.0
    elif first == DIFFERENT_STATE and state != DIFFERENT_STATE:
        chain.difference[JOININGS, a] += 1.0
    go_apart(a, value, values, present, rules, chain, source)
    put(a, state, value, chain)
    return True


@kernel
def go_apart(a, point, values, present, rules, chain, source):
    """The strata follow, each along its own line, and the biases with them (5.2)."""
    i, j = pair_of(a, chain.graph)
    for g in range(values.shape[0]):
        k = rules.group_of[g]
        t = point[k] - chain.coupling[k, a]
        for c in range(4):
            values[g, c] *= t
        shift_in_stratum(g, i, j, t, rules, chain)
    follow_clique(source, a, 0.0, 1.0, present, values, rules, chain)


@kernel
def draw_group_hyper(rules, chain):
    """Draw p0, sigma0, q0 and sigma_D given the states and couplings, where they are learned."""
    graph = chain.graph
    prior = rules.group_prior
    draw_hyper(chain.hyper, chain.theta, rules.prior, graph, chain.stream)
    if not prior.fixed_q0:
        chain.rates[DIFFERENCE_RATE] = draw_inclusion_rate(
            prior.beta_a, prior.beta_b, chain.parted[0], graph.counts[0], chain.stream
        )
    if not prior.fixed_scale:
        squares = 0.0
        groups = chain.coupling.shape[0]
        for position in range(graph.counts[0]):
            a = graph.listed[position]
            if chain.differs[a]:
                for k in range(groups):
                    away = chain.coupling[k, a] - chain.theta[a]
                    squares += 2.0 * away * away
        chain.rates[DIFFERENCE_SCALE] = draw_slab_scale(
            prior.gamma_shape, prior.gamma_rate, (groups - 1) * chain.parted[0], squares, chain.stream
        )


@kernel
def record_groups(chain, recorder, own):
    """Keep what the draw recorded last has beside a plain one."""
    draw = recorder.filled[0] - 1
    for position in range(recorder.indptr[draw], recorder.indptr[draw + 1]):
        for k in range(chain.coupling.shape[0]):
            own.couplings[position, k] = chain.coupling[k, recorder.indices[position]]
    own.rates[draw, 0] = chain.rates[DIFFERENCE_RATE]
    own.rates[draw, 1] = chain.rates[DIFFERENCE_SCALE]


@entry
def run_groups(rules, sums, chain, source, scan, work, iteration, iterations, thin, recorder, own):
    """As :func:`edgewise.kernels.chain.run_chain`, for pairs in several groups."""
    if iterations == 0:
        refresh(source, 0, chain)
    for step in range(iterations):
        if thin > 0 and not room_left(recorder, chain.graph.place.shape[0]):
            return step
        refresh(source, iteration + step, chain)
        for position in range(scan.hot.shape[0]):
            a = scan.hot[position]
            flips = FLIPS if uniform(chain.stream) < scan.probability[position] else 0
            if flips or chain.graph.place[a] >= 0:
                visit_pair(a, flips, rules, sums, chain, source, work)
        for g in range(rules.centres.shape[0]):
            for i in range(rules.levels.shape[0]):
                visit_bias(g, i, rules, sums, chain, source, work)
        draw_group_hyper(rules, chain)
        if thin > 0 and (iteration + step + 1) % thin == 0:
            record(recorder, chain)
            record_groups(chain, recorder, own)
    return iterations
