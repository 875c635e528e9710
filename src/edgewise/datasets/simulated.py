"""Simulated models with a known truth: Chen & Welling (2012), section 6.1, and larger random graphs.

Each function returns the true :class:`~edgewise.model.MRF` in 0/1 coding. Draw data from it with
:func:`edgewise.exact.sample`, or with :meth:`MRF.gibbs` where the graph is too wide for that.
"""

from __future__ import annotations

import numpy as np

from edgewise.errors import DataError
from edgewise.model.mrf import MRF

COUPLING_SD = 0.5
FIELD_SD = 0.1
KINDS = ("chain", "ring", "tree", "erdos-renyi", "barabasi-albert")

Edges = list[tuple[int, int]]


def block_model(seed: int | np.random.SeedSequence | np.random.Generator) -> MRF:
    """Twelve variables in three groups of four, positively coupled within their group.

    Edges are present with probability 0.8 within a group and 0.1 across groups. In Ising (-1/+1) coding
    couplings are ``|N(0, 0.5^2)|`` within a group and N(0, 0.5^2) across, and fields N(0, 0.1^2).

    Examples
    --------
    >>> model = block_model(seed=1)
    >>> model.n_variables, model.names[:2]
    (12, ('x0', 'x1'))
    """
    rng = np.random.default_rng(seed)
    p, size = 12, 4
    field = rng.normal(0.0, FIELD_SD, p)
    i, j = np.triu_indices(p, 1)
    within = i // size == j // size
    present = rng.random(len(i)) < np.where(within, 0.8, 0.1)
    value = rng.normal(0.0, COUPLING_SD, len(i))
    value = np.where(within, np.abs(value), value)
    coupling = np.zeros((p, p))
    coupling[i, j] = np.where(present, value, 0.0)
    return MRF.from_ising(coupling + coupling.T, field, default_names(p))


def lattice_model(
    seed: int | np.random.SeedSequence | np.random.Generator, rows: int = 10, columns: int = 10
) -> MRF:
    """A `rows` x `columns` grid, each variable coupled with its neighbours left, right, above and below.

    In Ising coding couplings are N(0, 0.5^2) and fields N(0, 0.1^2). Variable ``r * columns + c`` sits in
    row r and column c.

    Examples
    --------
    >>> len(lattice_model(seed=1).cliques)
    180
    """
    if rows < 1 or columns < 1:
        raise DataError(f"A lattice needs at least one row and one column, not {rows} x {columns}.")
    rng = np.random.default_rng(seed)
    site = np.arange(rows * columns).reshape(rows, columns)
    edges = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel()), *zip(site[:-1].ravel(), site[1:].ravel())]
    return _gaussian_ising(rows * columns, [(int(i), int(j)) for i, j in edges], rng, COUPLING_SD, FIELD_SD)


def random_model(
    p: int,
    degree: float = 3.0,
    *,
    kind: str = "erdos-renyi",
    seed: int | np.random.SeedSequence | np.random.Generator = 0,
    coupling_sd: float = COUPLING_SD,
    field_sd: float = FIELD_SD,
) -> MRF:
    """A random sparse model with Gaussian couplings and fields (in Ising coding).

    Chains, rings, trees and sparse graphs have a small treewidth, so that :func:`edgewise.exact.sample`
    works at any `p`. Where it refuses, use ``model.gibbs(n, sweeps, rng)``: with the default couplings and
    mean degrees up to about 4, states further than 200 sweeps from the start are indistinguishable from
    exact draws in our tests; stronger or denser couplings need more.

    Parameters
    ----------
    p : int
        Number of variables.
    degree : float
        Mean number of neighbours of a variable. Used by "erdos-renyi" and, as twice the number of edges of
        each new variable (rounded, at least one), by "barabasi-albert"; the other kinds ignore it.
    kind : {"erdos-renyi", "barabasi-albert", "chain", "ring", "tree"}
        Shape of the graph; "tree" joins every variable with a random earlier one.
    seed : int, SeedSequence or Generator
    coupling_sd, field_sd : float
        Standard deviations of couplings and fields in Ising coding.

    Examples
    --------
    >>> from edgewise import datasets
    >>> model = datasets.random_model(10, seed=1)
    >>> model.n_variables, len(model.cliques)
    (10, 15)
    """
    if kind not in KINDS:
        raise DataError(f"There is no kind of random model {kind!r}; the kinds are {', '.join(KINDS)}.")
    if p < 2:
        raise DataError(f"A random model needs two variables or more, not {p}.")
    if not 0 <= degree <= p - 1:
        raise DataError(f"The mean degree of {p} variables lies between 0 and {p - 1}; {degree} does not.")
    rng = np.random.default_rng(seed)
    return _gaussian_ising(p, _random_edges(p, degree, kind, rng), rng, coupling_sd, field_sd)


def default_names(p: int) -> tuple[str, ...]:
    """Names of unnamed variables: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(p))


def _random_edges(p: int, degree: float, kind: str, rng: np.random.Generator) -> Edges:
    if kind == "chain":
        return [(i, i + 1) for i in range(p - 1)]
    if kind == "ring":
        return [(i, i + 1) for i in range(p - 1)] + ([(0, p - 1)] if p > 2 else [])
    if kind == "tree":
        return [(int(rng.integers(i)), i) for i in range(1, p)]
    if kind == "erdos-renyi":
        i, j = np.triu_indices(p, 1)
        present = rng.random(len(i)) < degree / (p - 1)
        return list(zip(i[present].tolist(), j[present].tolist()))
    return _preferential_attachment(p, max(1, round(degree / 2)), rng)


def _preferential_attachment(p: int, each: int, rng: np.random.Generator) -> Edges:
    """Every new variable is joined with `each` earlier ones, drawn in proportion to their degree."""
    edges: Edges = [(i, j) for j in range(1, min(each + 1, p)) for i in range(j)]
    # Every variable appears here once per edge it has, so a uniform choice is proportional to degree.
    ends = [end for edge in edges for end in edge]
    for new in range(min(each + 1, p), p):
        chosen: set[int] = set()
        while len(chosen) < each:
            chosen.add(ends[int(rng.integers(len(ends)))])
        for old in sorted(chosen):
            edges.append((old, new))
            ends += [old, new]
    return edges


def _gaussian_ising(
    p: int, edges: Edges, rng: np.random.Generator, coupling_sd: float, field_sd: float
) -> MRF:
    field = rng.normal(0.0, field_sd, p)
    value = rng.normal(0.0, coupling_sd, len(edges))
    coupling = np.zeros((p, p))
    for (i, j), weight in zip(edges, value):
        coupling[i, j] = coupling[j, i] = weight
    return MRF.from_ising(coupling, field, default_names(p))
