"""Questions about the graph as a whole: probable graphs, neighbourhoods, centrality, any yes-or-no question.

Functions take the draws of all chains joined to one :class:`Draws`, or a :class:`Posterior` where they
need its names; they are reached through the methods of the posterior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.draws import Draws
from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.posterior import summaries

if TYPE_CHECKING:
    import networkx
    import pandas

    from edgewise.posterior.posterior import Posterior

FAST_CENTRALITY = ("strength", "expected influence", "degree")
SLOW_CENTRALITY = ("betweenness", "closeness", "eigenvector")


class Estimate(float):
    """A number from draws: behaves as a float and knows its Monte Carlo error.

    Attributes
    ----------
    mcse : float
        Monte Carlo standard error.
    n_draws : int
        Number of draws that were asked.

    Examples
    --------
    >>> answer = Estimate(0.25, mcse=0.02, n_draws=1000)
    >>> answer
    0.25 +/- 0.02
    >>> answer < 0.5
    True
    """

    mcse: float
    n_draws: int

    def __new__(cls, value: float, mcse: float, n_draws: int) -> Estimate:
        """Attach an error to a number."""
        result = super().__new__(cls, value)
        result.mcse = mcse
        result.n_draws = n_draws
        return result

    def __repr__(self) -> str:
        return f"{float(self):.4g} +/- {self.mcse:.2g}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimate, (float(self), self.mcse, self.n_draws)


def draw_of_entry(draws: Draws) -> np.ndarray:
    """Draw to which each entry belongs."""
    return np.repeat(np.arange(len(draws)), draws.n_edges)


def common_graphs(draws: Draws) -> list[tuple[int, np.ndarray]]:
    """Different graphs among the draws with the number of draws that have them, most frequent first."""
    pointer = draws.indptr
    keys = Counter(draws.indices[pointer[t] : pointer[t + 1]].tobytes() for t in range(len(draws)))
    return [(count, np.frombuffer(key, draws.indices.dtype)) for key, count in keys.most_common()]


def pair_members(features: Features) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every pair inside every candidate: candidate, first and second variable."""
    members = features.members
    width = members.shape[1]
    parts = []
    for a in range(width):
        for b in range(a + 1, width):
            inside = np.flatnonzero(members[:, b] >= 0)
            parts.append((inside, members[inside, a], members[inside, b]))
    return tuple(np.concatenate(column) for column in zip(*parts))  # type: ignore[return-value]


def adjacent_pairs(draws: Draws, features: Features) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that share an active clique, once per draw: draw, first and second variable."""
    draw = draw_of_entry(draws)
    if features.pairs_only:
        members = features.members[draws.indices]
        return draw, members[:, 0], members[:, 1]
    candidate, first, second = pair_members(features)
    order = np.argsort(candidate, kind="stable")
    per_candidate = np.bincount(candidate, minlength=features.n_cliques)
    start = np.concatenate([[0], np.cumsum(per_candidate)])
    repeats = per_candidate[draws.indices]
    offset = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    entry = order[np.repeat(start[draws.indices], repeats) + offset]
    p = features.n_variables
    flat = (np.repeat(draw, repeats).astype(np.int64) * p + first[entry]) * p + second[entry]
    flat = np.unique(flat)
    return flat // (p * p), flat // p % p, flat % p


def shared_clique_frequency(draws: Draws, features: Features) -> np.ndarray:
    """Share of the draws in which two variables have an active clique in common: (p, p)."""
    p = features.n_variables
    total = np.zeros(p * p)
    for start in range(0, len(draws), 2000):
        _, first, second = adjacent_pairs(draws[start : start + 2000], features)
        total += np.bincount(first.astype(np.int64) * p + second, minlength=p * p)
    matrix = total.reshape(p, p) / len(draws)
    return matrix + matrix.T


def neighbourhoods(draws: Draws, features: Features, variable: int) -> list[tuple[int, tuple[int, ...]]]:
    """Different sets of neighbours of a variable with their numbers of draws, most frequent first."""
    draw, first, second = adjacent_pairs(draws, features)
    here = (first == variable) | (second == variable)
    other = np.where(first[here] == variable, second[here], first[here])
    draw = draw[here]
    order = np.lexsort((other, draw))
    other, draw = other[order], draw[order]
    ends = np.searchsorted(draw, np.arange(len(draws) + 1))
    keys = Counter(tuple(other[ends[t] : ends[t + 1]].tolist()) for t in range(len(draws)))
    return [(count, key) for key, count in keys.most_common()]


def node_totals(draws: Draws, features: Features, kind: str) -> np.ndarray:
    """Strength, expected influence or degree of every variable in every draw: (draws, p)."""
    p, count = features.n_variables, len(draws)
    if kind == "degree":
        draw, first, second = adjacent_pairs(draws, features)
        draw = draw.astype(np.int64)
        flat = np.concatenate([draw * p + first, draw * p + second])
        return np.bincount(flat, minlength=count * p).reshape(count, p).astype(float)
    draw = draw_of_entry(draws).astype(np.int64)
    weight = np.abs(draws.values) if kind == "strength" else draws.values
    result = np.zeros(count * p)
    members = features.members[draws.indices]
    for column in members.T:
        inside = column >= 0
        result += np.bincount(draw[inside] * p + column[inside], weight[inside], minlength=count * p)
    return result.reshape(count, p)


def thinned(n_chains: int, n_draws: int, max_draws: int | None) -> np.ndarray:
    """Evenly spaced draws, equally many of each chain: positions (chains, kept) among all draws.

    Examples
    --------
    >>> thinned(2, 100, 6)
    array([[  0,  50,  99],
           [100, 150, 199]])
    """
    if max_draws is not None and max_draws < 1:
        raise DataError(f"max_draws must be a positive number or None (all draws), not {max_draws!r}.")
    kept = n_draws if max_draws is None else min(n_draws, max(1, max_draws // n_chains))
    within = np.linspace(0, n_draws - 1, kept).round().astype(int)
    result: np.ndarray = np.arange(n_chains)[:, None] * n_draws + within
    return result


def draw_graph(draws: Draws, features: Features, names: tuple[str, ...], position: int) -> networkx.Graph:
    """The graph of one draw: nodes by name, edges with `coupling` and `distance` (one over its size).

    Variables that share a larger clique are joined too; where several cliques join a pair, the sizes of
    their parameters add up.
    """
    import networkx

    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(names)
    indices, values = draws.active(position)
    if features.pairs_only:
        members = features.members[indices].tolist()
        graph.add_edges_from(
            (names[i], names[j], {"coupling": value, "distance": 1 / abs(value)})
            for (i, j), value in zip(members, values.tolist())
        )
        return graph
    sizes: dict[tuple[int, int], float] = {}
    for index, value in zip(indices.tolist(), values.tolist()):
        clique = features.clique(index)
        for a, i in enumerate(clique):
            for j in clique[a + 1 :]:
                sizes[i, j] = sizes.get((i, j), 0.0) + abs(value)
    graph.add_edges_from(
        (names[i], names[j], {"coupling": size, "distance": 1 / size}) for (i, j), size in sizes.items()
    )
    return graph


def ask(posterior: Posterior, question: Callable[[networkx.Graph], Any], max_draws: int | None) -> Estimate:
    """Probability that the answer to a question about the graph is yes."""
    positions = thinned(posterior.n_chains, posterior.n_draws, max_draws)
    graphs = (
        draw_graph(posterior._joined, posterior.features, posterior.names, position)
        for position in positions.ravel().tolist()
    )
    answers = np.array([bool(question(graph)) for graph in graphs], float).reshape(positions.shape)
    mean = float(answers.mean())
    count = answers.size
    enough = positions.shape[1] >= convergence.FEWEST_DRAWS
    ess = convergence.indicator_ess(answers[None])[0] if enough else float(posterior.n_chains)
    spread = mean * (1 - mean) if 0 < mean < 1 else 1 / (ess + 2) * (1 - 1 / (ess + 2))
    return Estimate(mean, float(np.sqrt(spread / ess)), count)


def centrality_table(
    posterior: Posterior, kind: str, probability: float, max_draws: int | None
) -> pandas.DataFrame:
    """Centrality of every variable: mean, sd, median and shortest interval over the draws."""
    import pandas

    if kind == "expected influence" and (posterior._dimension > 1).any():
        raise DataError(
            "The strength of a pair with a nominal variable has no sign, so that there is no expected "
            "influence; use kind='strength'."
        )
    if kind in FAST_CENTRALITY:
        values = node_totals(posterior._joined, posterior.features, kind)
    elif kind in SLOW_CENTRALITY:
        values = _slow_centrality(posterior, kind, max_draws)
    else:
        known = ", ".join(FAST_CENTRALITY + SLOW_CENTRALITY)
        raise DataError(f"There is no centrality {kind!r}; choose one of {known}.")
    ordered = np.sort(values.T, axis=1)
    low, high = summaries.shortest_interval(ordered, probability)
    return pandas.DataFrame(
        {
            "variable": posterior.names,
            "mean": values.mean(axis=0),
            "sd": values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(posterior.names)),
            "median": np.median(ordered, axis=1),
            "low": low,
            "high": high,
        }
    )


def _slow_centrality(posterior: Posterior, kind: str, max_draws: int | None) -> np.ndarray:
    import networkx

    positions = thinned(posterior.n_chains, posterior.n_draws, max_draws).ravel()
    names = posterior.names
    values = np.zeros((len(positions), len(names)))
    for row, position in enumerate(positions):
        graph = draw_graph(posterior._joined, posterior.features, names, int(position))
        if kind == "eigenvector":
            values[row] = _eigenvector(graph, names)
            continue
        if kind == "betweenness":
            found = networkx.betweenness_centrality(graph, weight="distance")
        else:
            found = networkx.closeness_centrality(graph, distance="distance")
        values[row] = [found[name] for name in names]
    return values


def _eigenvector(graph: networkx.Graph, names: tuple[str, ...]) -> np.ndarray:
    # By hand: the package's iteration fails on graphs without edges or with several components.
    import networkx
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import eigsh

    if graph.number_of_edges() == 0:
        return np.zeros(len(names))
    if len(names) < 3:
        return np.full(len(names), np.sqrt(1 / len(names)))
    matrix = abs(networkx.to_scipy_sparse_array(graph, nodelist=list(names), weight="coupling"))
    # Adding a multiple of the identity tells the largest eigenvalue from minus itself (bipartite graphs).
    matrix = matrix + matrix.sum(axis=0).max() * eye_array(len(names))
    result: np.ndarray = np.abs(eigsh(matrix, k=1, v0=np.ones(len(names)))[1][:, 0])
    return result
