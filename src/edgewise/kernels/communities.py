"""Communities: a stochastic block model as the prior of inclusion (docs/method.md, 2.8-2.10).

Variables fall into communities z, and a pair is active with a probability that belongs to the communities of
its two ends. How many communities there are is learned (a mixture of finite mixtures). Given the graph z is
drawn one variable after the other with the probabilities integrated out, then the probabilities are drawn;
until the next time they are held, and the prior log odds of every pair of the model are known numbers.

``Blocks``: ``inside[a]`` whether candidate a belongs to the model; ``members[a]`` its variables;
``own_a, own_b, other_a, other_b`` the Beta priors within a community and between two; ``concentration`` the
weight that a community has beside its members, and ``log_new[t]`` the log of what a further one has where
there are t. The rest is scratch: ``z`` and ``size[k]``, ``edges[k, l]`` and ``room[k, l]`` the active and all
pairs of two communities, ``linked[i, j]`` 0 where (i, j) is no pair of the model, 1 where it is, 2 if active;
``links[k]`` and ``pairs[k]`` those of one variable, ``weight[k]``, ``odds[k, l]``.

The communities of a chain are kept in ``chain.hyper`` behind p0 and sigma0, one number per variable, and
the log odds in ``PriorRules.log_odds``.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from edgewise.kernels.codes import INCLUSION_RATE, MODEL_STATE
from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import below, draw_log_gamma, uniform

Blocks = namedtuple(
    "Blocks",
    "inside members own_a own_b other_a other_b concentration log_new "
    "z size edges room linked links pairs weight odds",
)
# Variables drawn each time, per variable.
SWEEPS = 2


def empty_blocks(
    inside: np.ndarray, members: np.ndarray, n_variables: int, beta: tuple[float, float, float, float],
    concentration: float, log_new: np.ndarray,
) -> Blocks:  # fmt: skip
    """A model with room for as many communities as variables."""
    p = n_variables
    linked = np.zeros((p, p), np.int8)
    first, second = members[inside, 0], members[inside, 1]
    linked[first, second] = linked[second, first] = 1
    return Blocks(
        np.ascontiguousarray(inside),
        np.ascontiguousarray(members),
        *beta,
        concentration,
        np.ascontiguousarray(log_new, float),
        z=np.zeros(p, np.int64),
        size=np.zeros(p + 1, np.int64),
        edges=np.zeros((p + 1, p + 1), np.int64),
        room=np.zeros((p + 1, p + 1), np.int64),
        linked=linked,
        links=np.zeros(p + 1, np.int64),
        pairs=np.zeros(p + 1, np.int64),
        weight=np.zeros(p + 1),
        odds=np.zeros((p + 1, p + 1)),
    )


@kernel
def log_beta(a, b):
    """Log of the Beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def log_gain(a, b, edges, room, links, pairs):
    """Log of what `pairs` more pairs, `links` of them active, do to the probability of a block (2.9)."""
    if pairs == 0:
        return 0.0
    return log_beta(a + edges + links, b + room - edges + pairs - links) - log_beta(
        a + edges, b + room - edges
    )


@kernel
def count_blocks(model, graph, hyper):
    """Read the communities and count the pairs of every two; returns how many communities there are."""
    p = model.z.shape[0]
    communities = 0
    for i in range(p):
        model.z[i] = np.int64(hyper[MODEL_STATE + i])
        communities = max(communities, model.z[i] + 1)
    for k in range(communities):
        model.size[k] = 0
        for m in range(communities):
            model.edges[k, m] = 0
            model.room[k, m] = 0
    for i in range(p):
        model.size[model.z[i]] += 1
    for a in range(model.inside.shape[0]):
        if model.inside[a]:
            i, j = model.members[a, 0], model.members[a, 1]
            active = 1 if graph.place[a] >= 0 else 0
            model.linked[i, j] = 1 + active
            model.linked[j, i] = 1 + active
            add_pairs(model, model.z[i], model.z[j], active, 1)
    return communities


@kernel
def add_pairs(model, k, m, links, pairs):
    """Count pairs between two communities."""
    model.edges[k, m] += links
    model.room[k, m] += pairs
    if k != m:
        model.edges[m, k] += links
        model.room[m, k] += pairs


@kernel
def count_links(model, i, communities):
    """The pairs of variable `i` with every community, and the active ones of them."""
    for k in range(communities):
        model.links[k] = 0
        model.pairs[k] = 0
    for j in range(model.z.shape[0]):
        if model.linked[i, j] > 0 and j != i:
            model.pairs[model.z[j]] += 1
            model.links[model.z[j]] += model.linked[i, j] - 1


@kernel
def join(model, i, k, communities, sign):
    """Count variable `i`, whose links are known, as a member of community `k` (or no longer, `sign` -1)."""
    for m in range(communities):
        add_pairs(model, k, m, sign * model.links[m], sign * model.pairs[m])
    model.size[k] += sign


@kernel
def drop_empty(model, k, communities):
    """The last community takes the number of the empty one `k`."""
    last = communities - 1
    if k != last:
        for i in range(model.z.shape[0]):
            if model.z[i] == last:
                model.z[i] = k
        model.size[k] = model.size[last]
        model.links[k], model.pairs[k] = model.links[last], model.pairs[last]
        for m in range(last):
            if m != k:
                model.edges[k, m] = model.edges[last, m]
                model.edges[m, k] = model.edges[last, m]
                model.room[k, m] = model.room[last, m]
                model.room[m, k] = model.room[last, m]
        model.edges[k, k] = model.edges[last, last]
        model.room[k, k] = model.room[last, last]
    clear(model, last)


@kernel
def clear(model, k):
    """Nothing is known of community `k`."""
    model.size[k] = 0
    for m in range(model.size.shape[0]):
        model.edges[k, m] = 0
        model.edges[m, k] = 0
        model.room[k, m] = 0
        model.room[m, k] = 0


@kernel
def log_join(model, k, communities):
    """Log probability (2.9), but for a constant, that a variable whose links are counted joins `k`."""
    if model.size[k] > 0:
        total = math.log(model.size[k] + model.concentration)
    else:
        total = math.log(model.concentration) + model.log_new[communities]
    for m in range(communities):
        a, b = (model.own_a, model.own_b) if m == k else (model.other_a, model.other_b)
        total += log_gain(a, b, model.edges[k, m], model.room[k, m], model.links[m], model.pairs[m])
    return total


@kernel
def move_variable(model, i, communities, stream):
    """Draw the community of variable `i` given all others; returns how many there are now."""
    k = model.z[i]
    count_links(model, i, communities)
    join(model, i, k, communities, -1)
    if model.size[k] == 0:
        drop_empty(model, k, communities)
        communities -= 1
    top = -math.inf
    for m in range(communities + 1):
        if m == communities:
            clear(model, m)
            model.links[m] = 0
            model.pairs[m] = 0
        model.weight[m] = log_join(model, m, communities)
        top = max(top, model.weight[m])
    total = 0.0
    for m in range(communities + 1):
        model.weight[m] = math.exp(model.weight[m] - top)
        total += model.weight[m]
    left = uniform(stream) * total
    k = 0
    while k < communities and left >= model.weight[k]:
        left -= model.weight[k]
        k += 1
    if k == communities:
        communities += 1
    model.z[i] = k
    join(model, i, k, communities, 1)
    return communities


@kernel
def draw_odds(model, communities, hyper, log_odds, stream):
    """Draw the inclusion probability of every two communities and lay out its log odds (2.10)."""
    for k in range(communities):
        for m in range(k + 1):
            a, b = (model.own_a, model.own_b) if m == k else (model.other_a, model.other_b)
            edges, room = model.edges[k, m], model.room[k, m]
            odds = draw_log_gamma(a + edges, stream) - draw_log_gamma(b + room - edges, stream)
            model.odds[k, m] = odds
            model.odds[m, k] = odds
    total, count = 0.0, 0
    for a in range(model.inside.shape[0]):
        if model.inside[a]:
            odds = model.odds[model.z[model.members[a, 0]], model.z[model.members[a, 1]]]
            log_odds[a] = odds
            total += 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
            count += 1
    if count > 0:
        hyper[INCLUSION_RATE] = min(max(total / count, 1e-15), 1.0 - 1e-15)


@kernel
def draw_blocks(model, graph, hyper, log_odds, stream):
    """Draw the communities given the graph, then the probabilities given both."""
    communities = count_blocks(model, graph, hyper)
    p = model.z.shape[0]
    for _ in range(SWEEPS * p):
        communities = move_variable(model, below(stream, p), communities, stream)
    draw_odds(model, communities, hyper, log_odds, stream)
    for i in range(p):
        hyper[MODEL_STATE + i] = model.z[i]
