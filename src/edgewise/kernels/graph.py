"""The graph of a chain: which candidates are active, and which of them touch a variable.

A graph is one of three types with the same fields, so that code for larger cliques and for more levels is
compiled only where there are any: a ``PairGraph`` has pairs of binary variables alone, a ``CliqueGraph``
cliques of any size, a ``LevelGraph`` pairs of variables with any levels. The last has one field more:
``dimension[a]``, the number of parameters of candidate a.

``members[a]``   variables of candidate a, padded with -1
``status[a]``    what the prior says of it (``codes.py``)
``adjacent[start[i] : start[i] + degree[i]]``  the active candidates that touch variable i
``listed[: counts[0]]``  the active candidates, in no particular order
``place[a]``     the position of a in that list, or -1
``counts``       (active candidates, active candidates that share p0)

:func:`activate` and :func:`deactivate` keep all of them in step; nothing else writes to them but
:func:`shuffle_active`.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from edgewise.kernels.codes import COMMON
from edgewise.kernels.compiling import answer, kernel, question
from edgewise.kernels.random import below

FIELDS = "members status start degree adjacent listed place counts"
PairGraph = namedtuple("PairGraph", FIELDS)
CliqueGraph = namedtuple("CliqueGraph", FIELDS)
LevelGraph = namedtuple("LevelGraph", "members status start degree adjacent listed place counts dimension")


def empty_graph(members: np.ndarray, status: np.ndarray, n_variables: int) -> Any:
    """A graph without active candidates, with room for all of them."""
    count = len(members)
    degrees = np.bincount(members[members >= 0], minlength=n_variables)
    start = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    kind = PairGraph if members.shape[1] == 2 else CliqueGraph
    return kind(
        members=members,
        status=status,
        start=start,
        degree=np.zeros(n_variables, np.int64),
        adjacent=np.full(start[-1], -1, np.int32),
        listed=np.full(count, -1, np.int64),
        place=np.full(count, -1, np.int64),
        counts=np.zeros(2, np.int64),
    )


@question
def is_pair(graph, a):
    """Whether candidate `a` has two variables."""


@answer(is_pair, PairGraph, LevelGraph)
def _always(graph, a):
    return True


@answer(is_pair, CliqueGraph)
def _look(graph, a):
    return graph.members[a, 2] < 0


@question
def slab_terms(graph, theta):
    """Number of active parameters and the sum of their squares."""


@answer(slab_terms, PairGraph, CliqueGraph)
def _one_each(graph, theta):
    squares = 0.0
    for position in range(graph.counts[0]):
        value = theta[graph.listed[position]]
        squares += value * value
    return graph.counts[0], squares


@answer(slab_terms, LevelGraph)
def _several_each(graph, theta):
    count = np.int64(0)
    squares = 0.0
    for position in range(graph.counts[0]):
        a = graph.listed[position]
        count += graph.dimension[a]
        squares += graph.dimension[a] * theta[a] * theta[a]
    return count, squares


@question
def parameters_of(graph, a):
    """Number of parameters of candidate `a`."""


@answer(parameters_of, PairGraph, CliqueGraph)
def _one(graph, a):
    return 1


@answer(parameters_of, LevelGraph)
def _as_many(graph, a):
    return graph.dimension[a]


@kernel
def pair_of(a, graph):
    """The two variables of a pair, smaller first."""
    return np.int64(graph.members[a, 0]), np.int64(graph.members[a, 1])


@kernel
def activate(a, graph):
    """Put candidate `a` into the graph."""
    graph.place[a] = graph.counts[0]
    graph.listed[graph.counts[0]] = a
    graph.counts[0] += 1
    if graph.status[a] == COMMON:
        graph.counts[1] += 1
    for k in range(graph.members.shape[1]):
        i = graph.members[a, k]
        if i >= 0:
            graph.adjacent[graph.start[i] + graph.degree[i]] = a
            graph.degree[i] += 1


@kernel
def deactivate(a, graph):
    """Take candidate `a` out of the graph; the last of each list moves into its place."""
    graph.counts[0] -= 1
    last = graph.listed[graph.counts[0]]
    graph.listed[graph.place[a]] = last
    graph.place[last] = graph.place[a]
    graph.place[a] = -1
    if graph.status[a] == COMMON:
        graph.counts[1] -= 1
    for k in range(graph.members.shape[1]):
        i = graph.members[a, k]
        if i >= 0:
            final = graph.start[i] + graph.degree[i] - 1
            position = graph.start[i]
            while graph.adjacent[position] != a:
                position += 1
            graph.adjacent[position] = graph.adjacent[final]
            graph.adjacent[final] = -1
            graph.degree[i] -= 1


def place_all(active: np.ndarray, graph: Any) -> None:
    """Activate the candidates of an array; done once in a chain, and soon done without compiling."""
    put = getattr(activate, "py_func", activate)
    for a in active:
        put(a, graph)


@kernel
def shuffle_active(graph, stream):
    """Put the active candidates into a fresh random order.

    The list remembers who came last, and that says something about the parameters: visited in the order of
    the list, they would be drawn from a distribution that is slightly off.
    """
    for last in range(graph.counts[0] - 1, 0, -1):
        other = below(stream, last + 1)
        a = graph.listed[last]
        b = graph.listed[other]
        graph.listed[last] = b
        graph.listed[other] = a
        graph.place[b] = last
        graph.place[a] = other
