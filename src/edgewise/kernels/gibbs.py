"""Gibbs sampling of the particles, vectorised across particles (Chen & Welling 2012, section 3.1).

Symbols: ``X[i, s]`` state of variable i in particle s (float32 0/1), ``F[i, s]`` its field
``theta_i + sum_a theta_a prod_{j in a, j != i} x_j`` over the active cliques a that contain i, so that
``P(x_i = 1 | rest) = 1 / (1 + exp(-F[i, s]))``. Fields are kept up to date when a state changes, so that
every other kernel can read them; they are valid for the present parameters whenever no move is under way.
``theta[a]`` holds all candidates, ``graph`` (``graph.py``) says which of them are active.

No kernel that draws uses fast mathematics: what it computes would depend on how the compiler happened to
optimise it, and the same seed would not always give the same draws.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.compiling import answer, entry, loop, question
from edgewise.kernels.graph import CliqueGraph, PairGraph
from edgewise.kernels.random import fast_exp, lane_uniform


@loop
def add_scaled(target, scale, values):
    """target += scale * values."""
    for s in range(target.shape[0]):
        target[s] += scale * values[s]


@loop
def fill(target, value):
    """target = value."""
    for s in range(target.shape[0]):
        target[s] = value


@loop
def multiply(target, values):
    """target *= values."""
    for s in range(target.shape[0]):
        target[s] *= values[s]


@question
def add_clique_field(graph, a, i, theta, X, field, product):
    """Add what candidate `a` contributes to the field of its variable `i`; `product` is scratch."""


@answer(add_clique_field, PairGraph)
def _add_pair_field(graph, a, i, theta, X, field, product):
    add_scaled(field, np.float32(theta[a]), X[graph.members[a, 0] + graph.members[a, 1] - i])


@answer(add_clique_field, CliqueGraph)
def _add_any_field(graph, a, i, theta, X, field, product):
    others_product(a, i, -1, X, graph.members, product)
    add_scaled(field, np.float32(theta[a]), product)


@loop
def others_product(a, i, j, X, members, product):
    """Product of the variables of clique `a` other than `i` and `j`, in every particle."""
    fill(product, np.float32(1.0))
    for k in range(members.shape[1]):
        other = members[a, k]
        if other >= 0 and other != i and other != j:
            multiply(product, X[other])


@question
def spread_clique_change(graph, a, i, theta, change, X, F, product, begin, end):
    """Fields of the other variables of candidate `a` in particles `begin` to `end` after `i` changed."""


@answer(spread_clique_change, PairGraph)
def _spread_pair_change(graph, a, i, theta, change, X, F, product, begin, end):
    other = graph.members[a, 0] + graph.members[a, 1] - i
    add_scaled(F[other, begin:end], np.float32(theta[a]), change[begin:end])


@answer(spread_clique_change, CliqueGraph)
def _spread_any_change(graph, a, i, theta, change, X, F, product, begin, end):
    for k in range(graph.members.shape[1]):
        j = graph.members[a, k]
        if j >= 0 and j != i:
            others_product(a, i, j, X, graph.members, product)
            multiply(product, change)
            add_scaled(F[j, begin:end], np.float32(theta[a]), product[begin:end])


@loop
def spread_change(i, change, X, F, theta, graph, product, begin, end):
    """Fields of particles `begin` to `end` after variable `i` changed by `change`; `product` is scratch."""
    for position in range(graph.start[i], graph.start[i] + graph.degree[i]):
        a = graph.adjacent[position]
        spread_clique_change(graph, a, i, theta, change, X, F, product, begin, end)


@loop
def field_of(i, bias, theta, graph, X, field, product):
    """The field of variable `i` from scratch, into `field`; `product` is scratch."""
    fill(field, np.float32(bias[i]))
    for position in range(graph.start[i], graph.start[i] + graph.degree[i]):
        add_clique_field(graph, graph.adjacent[position], i, theta, X, field, product)


@loop
def compute_fields(X, bias, theta, graph, F, product):
    """All fields from scratch."""
    for i in range(X.shape[0]):
        field_of(i, bias, theta, graph, X, F[i], product)


@loop
def redraw_variable(x, field, lanes, change, begin, end):
    """Draw a variable of particles `begin` to `end` from its conditional; `change` receives new minus old."""
    one = np.float32(1.0)
    zero = np.float32(0.0)
    # Unsigned: an index that could be negative would keep the loop from being vectorised.
    for s in range(np.uintp(begin), np.uintp(end)):
        u = lane_uniform(lanes, s)
        new = one if u * (one + fast_exp(-field[s])) < one else zero
        change[s] = new - x[s]
        x[s] = new


@entry
def gibbs_sweep(X, F, lanes, theta, graph, change, product):
    """One systematic sweep over the variables of all particles; fields stay up to date."""
    n = X.shape[1]
    for i in range(X.shape[0]):
        redraw_variable(X[i], F[i], lanes, change, np.int64(0), n)
        spread_change(i, change, X, F, theta, graph, product, np.int64(0), n)


@loop
def fresh_sweep(X, lanes, bias, theta, graph, field, scratch):
    """One sweep with each variable's field summed from scratch; `field` and `scratch` (n,) are working space.

    For parameters that all move in every iteration, so that fields carried along would have to be computed
    anyway.
    """
    for i in range(X.shape[0]):
        field_of(i, bias, theta, graph, X, field, scratch)
        redraw_variable(X[i], field, lanes, scratch, np.int64(0), X.shape[1])


@entry
def fresh_sweeps(count, X, lanes, bias, theta, graph, field, scratch):
    """Several sweeps of that kind."""
    for _ in range(count):
        fresh_sweep(X, lanes, bias, theta, graph, field, scratch)


@entry
def dense_sweep(X, lanes, coupling, bias, field, change):
    """One sweep over a model of pairs given by its coupling matrix; `field` and `change` are scratch."""
    for i in range(X.shape[0]):
        fill(field, np.float32(bias[i]))
        for j in range(X.shape[0]):
            if coupling[i, j] != 0.0:
                add_scaled(field, np.float32(coupling[i, j]), X[j])
        redraw_variable(X[i], field, lanes, change, np.int64(0), X.shape[1])


@entry
def listed_sweep(X, lanes, start, other, own, coupling, bias, field, change):
    """One sweep over a model of listed pairs; `field` and `change` are scratch.

    Variable i is coupled with ``other[k]`` by ``coupling[own[k]]``, k from ``start[i]`` to ``start[i + 1]``.
    """
    for i in range(X.shape[0]):
        fill(field, np.float32(bias[i]))
        for k in range(start[i], start[i + 1]):
            if coupling[own[k]] != 0.0:
                add_scaled(field, np.float32(coupling[own[k]]), X[other[k]])
        redraw_variable(X[i], field, lanes, change, np.int64(0), X.shape[1])
