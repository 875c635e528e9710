"""The lines of candidates and biases: their values in the cells, sums over the data, and priors (5.2).

The line of a pair (i, j) moves its coupling by t and its two biases by -t m_j and -t m_i, m being the centres
of the rules: its feature is (u_i - m_i)(u_j - m_j), u the scores, which leaves the margins nearly alone and
is nearly orthogonal to the biases. The shift does not depend on the state, so birth and death remain each
other's reverse with Jacobian 1. The lines of a bias and of a clique of three or more are their own features
about their centres. The base point of a candidate's line is the model without it.
"""

from __future__ import annotations

from edgewise.kernels.compiling import answer, kernel, question
from edgewise.kernels.graph import CliqueGraph, PairGraph, is_pair, pair_of
from edgewise.kernels.slabs import slab_mean, slab_precision


@question
def clique_line(graph, a, value, rules, sums, chain, values, S):
    """Fill `values` and `S` of the line of candidate `a`; returns its precision and tilt (5.2).

    `value` is the candidate's present parameter, zero when it is absent.
    """


@kernel
def pair_in_stratum(g, i, j, a, value, rules, sums, chain, values, S):
    """Values and sum of the line of the pair `a` = (i, j) in stratum `g`; what its biases add to (5.2)."""
    bias_precision = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    p = rules.levels.shape[0]
    m_i = rules.centres[g, i]
    m_j = rules.centres[g, j]
    for c_j in range(rules.levels[j]):
        for c_i in range(rules.levels[i]):
            cell = c_i + rules.levels[i] * c_j
            values[g, cell] = (rules.scores[i, c_i] - m_i) * (rules.scores[j, c_j] - m_j)
    singles = sums.singles[g]
    S[g] = sums.cliques[g, a] - m_j * singles[i] - m_i * singles[j] + sums.rows[g] * m_i * m_j
    bias_i = chain.bias[g * p + i] + value * m_j
    bias_j = chain.bias[g * p + j] + value * m_i
    return (m_i * m_i + m_j * m_j) * bias_precision, (bias_i * m_j + bias_j * m_i) * bias_precision


@kernel
def pair_line(a, value, rules, sums, chain, values, S):
    """The line of a pair."""
    i, j = pair_of(a, chain.graph)
    precision = slab_precision(rules.prior.slab, a, chain.hyper)
    tilt = precision * slab_mean(rules.prior.slab, a)
    for g in range(S.shape[0]):
        own = pair_in_stratum(g, i, j, a, value, rules, sums, chain, values, S)
        precision += own[0]
        tilt += own[1]
    return precision, tilt


@answer(clique_line, PairGraph)
def _pairs_only(graph, a, value, rules, sums, chain, values, S):
    return pair_line(a, value, rules, sums, chain, values, S)


@answer(clique_line, CliqueGraph)
def _any_size(graph, a, value, rules, sums, chain, values, S):
    if is_pair(graph, a):
        return pair_line(a, value, rules, sums, chain, values, S)
    for g in range(S.shape[0]):
        centre = rules.clique_centres[g, a]
        values[g, 0] = -centre
        values[g, 1] = 1.0 - centre
        S[g] = sums.cliques[g, a] - centre * sums.rows[g]
    precision = slab_precision(rules.prior.slab, a, chain.hyper)
    return precision, precision * slab_mean(rules.prior.slab, a)


@kernel
def clique_cells_count(a, rules, graph):
    """Number of cells of the line of candidate `a`."""
    if is_pair(graph, a):
        return rules.levels[graph.members[a, 0]] * rules.levels[graph.members[a, 1]]
    return 2


@question
def bias_line(graph, g, i, rules, sums, chain, values, S):
    """Fill line `i` of the biases of stratum `g` from where they are; returns its precision and tilt."""


@question
def bias_cells_count(graph, i, rules):
    """Number of cells of line `i` of the biases."""


@question
def move_bias(graph, g, i, t, rules, chain):
    """Move the biases of stratum `g` by `t` along their line `i`."""


@answer(bias_line, PairGraph, CliqueGraph)
def _own_bias(graph, g, i, rules, sums, chain, values, S):
    centre = rules.centres[g, i]
    for c in range(rules.levels[i]):
        values[0, c] = rules.scores[i, c] - centre
    S[0] = sums.singles[g, i] - centre * sums.rows[g]
    precision = 1.0 / (rules.prior.bias_sd * rules.prior.bias_sd)
    return precision, -chain.bias[g * rules.levels.shape[0] + i] * precision


@answer(bias_cells_count, PairGraph, CliqueGraph)
def _own_levels(graph, i, rules):
    return rules.levels[i]


@answer(move_bias, PairGraph, CliqueGraph)
def _move_own(graph, g, i, t, rules, chain):
    chain.bias[g * rules.levels.shape[0] + i] += t


@kernel
def shift_in_stratum(g, i, j, t, rules, chain):
    """The biases of the pair (i, j) in stratum `g` follow its coupling's change by `t`."""
    p = rules.levels.shape[0]
    chain.bias[g * p + i] -= t * rules.centres[g, j]
    chain.bias[g * p + j] -= t * rules.centres[g, i]


@question
def shift_biases(graph, a, t, rules, chain):
    """The biases of a pair follow its coupling's change by `t`; those of a larger clique stay."""


@answer(shift_biases, PairGraph, CliqueGraph)
def _shift_two(graph, a, t, rules, chain):
    if is_pair(graph, a):
        i, j = pair_of(a, graph)
        for g in range(rules.centres.shape[0]):
            shift_in_stratum(g, i, j, t, rules, chain)
