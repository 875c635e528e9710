"""Means of the features along the way from one model to another, by particles (docs/method.md, 10.10).

The way leads from a fixed model to the present state of a chain. At a few points of it the features are
counted. From one point to the next the particles are weighted by what the models differ by and drawn anew
in proportion, so that they do not lag behind however few the Gibbs sweeps that follow. Only features of
candidates that are active at one end are needed: the parameters of all others do not change on the way.

**Way**: biases ``first_bias`` and parameters ``first_theta`` of the fixed end, by position; the
``candidates`` of the positions; ``bias`` and ``theta`` (by candidate) of the model that the particles are at,
and its ``graph``; ``points`` between 0 and 1; ``follow`` sweeps before counting, and sweeps counted at each
point; ``words`` of the variables, ``joined`` one of the features, ``field``, ``scratch``, ``weight`` and
``marks`` working space; ``means`` the result.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from edgewise.kernels.bits import BITS
from edgewise.kernels.compiling import entry, kernel, loop
from edgewise.kernels.gibbs import fresh_sweep, others_product
from edgewise.kernels.graph import activate
from edgewise.kernels.moments import count_ones, join, pack
from edgewise.kernels.particles import resample

Way = namedtuple(
    "Way",
    "first_bias first_theta candidates bias theta graph points follow counts words joined field scratch "
    "weight marks means",
)


def empty_way(
    graph: Any,
    candidates: np.ndarray,
    first: tuple[np.ndarray, np.ndarray],
    present: tuple[np.ndarray, np.ndarray],
    particles: int,
    sweeps: tuple[int, int],
    points: tuple[float, ...],
) -> Way:
    """A way from a fixed model, the particles being at a present one; `graph` is an empty one.

    Models are biases and parameters, those of the fixed one by position, of the present one by candidate.
    """
    p = len(first[0])
    return Way(
        first_bias=np.ascontiguousarray(first[0], np.float64),
        first_theta=np.ascontiguousarray(first[1], np.float64),
        candidates=candidates,
        bias=present[0],
        theta=present[1],
        graph=graph,
        points=np.array(points),
        follow=sweeps[0],
        counts=sweeps[1],
        words=np.zeros((p, particles // BITS), np.uint64),
        joined=np.zeros(particles // BITS, np.uint64),
        field=np.zeros(particles, np.float32),
        scratch=np.zeros(particles, np.float32),
        weight=np.zeros(particles),
        marks=np.zeros((3, particles), np.int64),
        means=np.zeros(p + len(candidates)),
    )


@loop
def add_where(target, amount, values):
    """target += amount * values, the target in double precision."""
    for s in range(target.shape[0]):
        target[s] += amount * values[s]


@kernel
def lay_out(theta, way):
    """Make the graph that of both ends together with that of the present point.

    Anew every time, so that the order of the sums does not depend on where the chain was before.
    """
    graph = way.graph
    for i in range(graph.degree.shape[0]):
        graph.degree[i] = 0
    for position in range(graph.counts[0]):
        graph.place[graph.listed[position]] = -1
    graph.counts[0] = 0
    graph.counts[1] = 0
    for k in range(way.candidates.shape[0]):
        a = way.candidates[k]
        if theta[a] != 0.0 or way.first_theta[k] != 0.0 or way.theta[a] != 0.0:
            activate(a, graph)


@kernel
def go_to(t, bias, theta, X, way):
    """Make the model that of the point `t` of the way; the logs of what it weighs each particle by."""
    weight, product = way.weight, way.scratch
    for s in range(weight.shape[0]):
        weight[s] = 0.0
    for i in range(bias.shape[0]):
        value = way.first_bias[i] + t * (bias[i] - way.first_bias[i])
        add_where(weight, value - way.bias[i], X[i])
        way.bias[i] = value
    for k in range(way.candidates.shape[0]):
        a = way.candidates[k]
        if way.graph.place[a] < 0:
            continue
        value = way.first_theta[k] + t * (theta[a] - way.first_theta[k])
        others_product(a, -1, -1, X, way.graph.members, product)
        add_where(weight, value - way.theta[a], product)
        way.theta[a] = value


@kernel
def draw_anew(X, stream, way):
    """Draw the particles in proportion to their weights."""
    weight = way.weight
    top = weight[0]
    for s in range(1, weight.shape[0]):
        top = max(top, weight[s])
    for s in range(weight.shape[0]):
        weight[s] = math.exp(weight[s] - top)
    resample(
        X, X, weight, np.int64(0), np.int64(X.shape[1]), stream, way.marks[0], way.marks[1], way.marks[2]
    )


@kernel
def count_features(X, share, way):
    """Add to the means how many particles show each variable, and each active candidate."""
    p = X.shape[0]
    members = way.graph.members
    for i in range(p):
        pack(X[i], way.words[i])
        way.means[i] += share * count_ones(way.words[i])
    for k in range(way.candidates.shape[0]):
        a = way.candidates[k]
        if way.graph.place[a] < 0:
            continue
        first = way.words[members[a, 0]]
        for w in range(first.shape[0]):
            way.joined[w] = first[w]
        for m in range(1, members.shape[1]):
            if members[a, m] >= 0:
                join(way.joined, way.words[members[a, m]])
        way.means[p + k] += share * count_ones(way.joined)


@entry
def walk_the_way(backwards, bias, theta, X, lanes, stream, way):
    """Average the features over the points of the way to this state, into ``way.means``.

    Going there and back in turns spares the particles the longest step. ``way.bias`` and ``way.theta`` have
    to be what the particles are at.
    """
    lay_out(theta, way)
    for f in range(way.means.shape[0]):
        way.means[f] = 0.0
    points = way.points.shape[0]
    share = 1.0 / (points * way.counts * X.shape[1])
    for number in range(points):
        go_to(way.points[points - 1 - number if backwards else number], bias, theta, X, way)
        draw_anew(X, stream, way)
        for _ in range(way.follow):
            fresh_sweep(X, lanes, way.bias, way.theta, way.graph, way.field, way.scratch)
        for _ in range(way.counts):
            fresh_sweep(X, lanes, way.bias, way.theta, way.graph, way.field, way.scratch)
            count_features(X, share, way)
