"""Gibbs sampling of the particles, vectorised across particles (Chen & Welling 2012, section 3.1).

Symbols: ``X[i, s]`` state of variable i in particle s (float32 0/1), ``F[i, s]`` its field
``theta_i + sum_a theta_a prod_{j in a, j != i} x_j`` over the active cliques a that contain i, so that
``P(x_i = 1 | rest) = 1 / (1 + exp(-F[i, s]))``. Fields are kept up to date when a state changes, so that
every other kernel can read them. ``theta[a]`` holds all candidates, ``members[a]`` their variables (padded
with -1), and the graph lists, per variable i, the active cliques
``adjacent[start[i] : start[i] + degree[i]]``.

No kernel that draws uses fast mathematics: what it computes would depend on how the compiler happened to
optimise it, and the same seed would not always give the same draws.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.compiling import kernel
from edgewise.kernels.random import fast_exp, lane_uniform


def graph_arrays(members: np.ndarray, n_variables: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An empty graph with room for every candidate: start, degree, adjacent."""
    counts = np.bincount(members[members >= 0], minlength=n_variables)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return start, np.zeros(n_variables, np.int64), np.full(start[-1], -1, np.int32)


@kernel
def connect(a, members, start, degree, adjacent):
    """Make clique `a` active in the graph."""
    for k in range(members.shape[1]):
        i = members[a, k]
        if i >= 0:
            adjacent[start[i] + degree[i]] = a
            degree[i] += 1


@kernel
def disconnect(a, members, start, degree, adjacent):
    """Take clique `a` out of the graph."""
    for k in range(members.shape[1]):
        i = members[a, k]
        if i >= 0:
            last = start[i] + degree[i] - 1
            position = start[i]
            while adjacent[position] != a:
                position += 1
            adjacent[position] = adjacent[last]
            adjacent[last] = -1
            degree[i] -= 1


@kernel
def add_scaled(target, scale, values):
    """target += scale * values."""
    for s in range(target.shape[0]):
        target[s] += scale * values[s]


@kernel
def fill(target, value):
    """target = value."""
    for s in range(target.shape[0]):
        target[s] = value


@kernel
def copy_to(target, values):
    """target = values, element by element."""
    for s in range(target.shape[0]):
        target[s] = values[s]


@kernel
def multiply(target, values):
    """target *= values."""
    for s in range(target.shape[0]):
        target[s] *= values[s]


@kernel
def spread_change(i, change, X, F, theta, members, start, degree, adjacent, product, begin, end):
    """Fields of particles `begin` to `end` after variable `i` changed by `change`; `product` is scratch."""
    order = members.shape[1]
    part = change[begin:end]
    for position in range(start[i], start[i] + degree[i]):
        a = adjacent[position]
        weight = np.float32(theta[a])
        if order == 2 or members[a, 2] < 0:
            add_scaled(F[members[a, 0] + members[a, 1] - i, begin:end], weight, part)
            continue
        for k in range(order):
            j = members[a, k]
            if j < 0 or j == i:
                continue
            copy_to(product, change)
            for l in range(order):
                other = members[a, l]
                if other >= 0 and other != i and other != j:
                    multiply(product, X[other])
            add_scaled(F[j, begin:end], weight, product[begin:end])


@kernel
def compute_fields(X, bias, theta, members, start, degree, adjacent, F, product):
    """Fields from scratch."""
    order = members.shape[1]
    for i in range(X.shape[0]):
        fill(F[i], np.float32(bias[i]))
        for position in range(start[i], start[i] + degree[i]):
            a = adjacent[position]
            weight = np.float32(theta[a])
            if order == 2 or members[a, 2] < 0:
                add_scaled(F[i], weight, X[members[a, 0] + members[a, 1] - i])
                continue
            fill(product, np.float32(1.0))
            for k in range(order):
                j = members[a, k]
                if j >= 0 and j != i:
                    multiply(product, X[j])
            add_scaled(F[i], weight, product)


@kernel
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


@kernel
def gibbs_sweep(X, F, lanes, theta, members, start, degree, adjacent, change, product):
    """One systematic sweep over the variables of all particles; fields stay up to date."""
    n = X.shape[1]
    for i in range(X.shape[0]):
        redraw_variable(X[i], F[i], lanes, change, 0, n)
        spread_change(i, change, X, F, theta, members, start, degree, adjacent, product, 0, n)


@kernel
def dense_sweep(X, lanes, coupling, bias, field, change):
    """One sweep over a model of pairs given by its coupling matrix; `field` and `change` are scratch."""
    for i in range(X.shape[0]):
        fill(field, np.float32(bias[i]))
        for j in range(X.shape[0]):
            if coupling[i, j] != 0.0:
                add_scaled(field, np.float32(coupling[i, j]), X[j])
        redraw_variable(X[i], field, lanes, change, 0, X.shape[1])
