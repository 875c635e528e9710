"""Questions about whole graphs, against loops over the draws."""

from __future__ import annotations

import pickle
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from edgewise.errors import DataError
from edgewise.posterior import structure
from helpers import fake_posterior


@pytest.fixture(scope="module", params=[2, 3])
def posterior(request):
    return fake_posterior(6, 3, 150, seed=5, order=request.param)


def adjacency(posterior) -> list[set[frozenset[int]]]:
    """Pairs that share an active clique, draw by draw."""
    result = []
    for chain in posterior.draws:
        for t in range(len(chain)):
            cliques = [posterior.features.clique(int(k)) for k in chain.active(t)[0]]
            result.append({frozenset((i, j)) for clique in cliques for i in clique for j in clique if i < j})
    return result


def test_shared_cliques(posterior):
    draws = adjacency(posterior)
    counts = Counter(pair for pairs in draws for pair in pairs)
    frequency = structure.shared_clique_frequency(posterior._joined, posterior.features)
    np.testing.assert_array_equal(frequency, frequency.T)
    for i in range(6):
        for j in range(i):
            assert frequency[i, j] == counts[frozenset((i, j))] / len(draws)
    if posterior.features.pairs_only:
        np.testing.assert_array_equal(posterior.pair_values("adjacency"), posterior.inclusion)
    else:
        np.testing.assert_array_equal(posterior.pair_values("adjacency"), frequency)
        assert (frequency >= posterior.pair_values("frequency") - 1e-12).all()


def test_graph(posterior):
    graph = posterior.graph(0.4)
    expected = posterior.pair_values("adjacency")
    assert list(graph) == list(posterior.names)
    found = {frozenset((posterior.names.index(u), posterior.names.index(v))) for u, v in graph.edges}
    assert found == {frozenset((i, j)) for i in range(6) for j in range(i) if expected[i, j] >= 0.4}
    assert found
    for u, v, values in graph.edges(data=True):
        i, j = posterior.names.index(u), posterior.names.index(v)
        assert values["inclusion"] == expected[i, j]
        if posterior.features.pairs_only:
            np.testing.assert_allclose(values["coupling"], posterior.coupling()[i, j])
    with pytest.raises(DataError, match="threshold"):
        posterior.graph(2)


def test_the_graph_can_be_written(posterior, tmp_path):
    nx.write_graphml(posterior.graph(0), tmp_path / "graph.graphml")
    assert nx.read_graphml(tmp_path / "graph.graphml").number_of_nodes() == 6


def test_most_probable_graphs(posterior):
    counts = Counter(
        tuple(chain.active(t)[0].tolist()) for chain in posterior.draws for t in range(len(chain))
    )
    table = posterior.graphs(1000)
    assert len(table) == len(counts) == table.attrs["n_different"]
    assert sorted(table.draws, reverse=True) == table.draws.tolist()
    np.testing.assert_allclose(table.probability.sum(), 1)
    best = tuple(posterior.features.index(clique, posterior.names) for clique in table.edges[0])
    assert counts[best] == table.draws[0]
    assert len(best) == table.n_edges[0]
    assert len(posterior.graphs(2)) == 2


def test_neighbourhoods(posterior):
    draws = adjacency(posterior)
    sets = Counter(tuple(sorted(j for pair in pairs if 2 in pair for j in pair - {2})) for pairs in draws)
    table = posterior.neighbourhood("x2", 1000)
    assert len(table) == len(sets)
    for row in table.itertuples():
        members = tuple(posterior.names.index(name) for name in row.neighbours)
        assert sets[members] == row.draws
    assert posterior.neighbourhood(2, 3).equals(posterior.neighbourhood("x2", 3))
    with pytest.raises(DataError, match="no variable named 'y'"):
        posterior.neighbourhood("y")
    with pytest.raises(DataError, match="no variable 6"):
        posterior.neighbourhood(6)


def test_degree_and_strength(posterior):
    draws = adjacency(posterior)
    degree = np.array([[sum(i in pair for pair in pairs) for i in range(6)] for pairs in draws])
    np.testing.assert_array_equal(
        structure.node_totals(posterior._joined, posterior.features, "degree"), degree
    )
    strength, influence = np.zeros((2, len(draws), 6))
    for t in range(len(draws)):
        for k, value in zip(*posterior._joined.active(t)):
            for i in posterior.features.clique(int(k)):
                strength[t, i] += abs(value)
                influence[t, i] += value
    table = posterior.centrality("strength")
    np.testing.assert_allclose(table["mean"], strength.mean(axis=0))
    np.testing.assert_allclose(table["sd"], strength.std(axis=0, ddof=1))
    np.testing.assert_allclose(posterior.centrality("expected influence")["mean"], influence.mean(axis=0))
    assert ((table.low <= table["median"]) & (table["median"] <= table.high)).all()
    inside = (strength >= table.low.to_numpy() - 1e-9) & (strength <= table.high.to_numpy() + 1e-9)
    assert (inside.mean(axis=0) >= 0.95).all()


def test_slow_centralities():
    posterior = fake_posterior(6, 2, 40, seed=1)
    position = int(structure.thinned(2, 40, 1)[0, 0])
    graph = structure.draw_graph(posterior._joined, posterior.features, posterior.names, position)
    expected = {
        "betweenness": nx.betweenness_centrality(graph, weight="distance"),
        "closeness": nx.closeness_centrality(graph, distance="distance"),
    }
    one = type(posterior)([posterior.draws[0][:1]], posterior.features, posterior.names)
    for kind, values in expected.items():
        np.testing.assert_allclose(one.centrality(kind)["mean"], [values[name] for name in one.names])
    matrix = np.abs(nx.to_numpy_array(graph, nodelist=posterior.names, weight="coupling"))
    centrality = one.centrality("eigenvector")["mean"].to_numpy()
    np.testing.assert_allclose(matrix @ centrality, np.linalg.eigvalsh(matrix)[-1] * centrality, atol=1e-8)
    with pytest.raises(DataError, match="choose one of strength"):
        posterior.centrality("fame")


def test_probability_of_a_question(posterior):
    draws = adjacency(posterior)
    truth = np.array([frozenset((0, 1)) in pairs or frozenset((1, 2)) in pairs for pairs in draws])

    def question(graph):
        assert isinstance(graph, nx.Graph)
        assert len(graph) == 6
        return graph.has_edge("x0", "x1") or graph.has_edge("x1", "x2")

    answer = posterior.probability(question, max_draws=None)
    assert answer == truth.mean()
    assert answer.n_draws == 450
    assert 0 < answer.mcse < 0.2
    thinned = posterior.probability(question, max_draws=90)
    assert thinned.n_draws == 90
    assert thinned == truth.reshape(3, 150)[:, np.linspace(0, 149, 30).round().astype(int)].mean()
    assert "+/-" in str(answer)
    assert pickle.loads(pickle.dumps(answer)).mcse == answer.mcse


def test_a_certain_answer_still_has_an_error(posterior):
    answer = posterior.probability(lambda graph: False)
    assert answer == 0
    assert 0 < answer.mcse < 0.05


def test_thinning():
    np.testing.assert_array_equal(structure.thinned(2, 4, None), [[0, 1, 2, 3], [4, 5, 6, 7]])
    np.testing.assert_array_equal(structure.thinned(2, 5, 4), [[0, 4], [5, 9]])
    np.testing.assert_array_equal(structure.thinned(4, 5, 1), [[0], [5], [10], [15]])
    with pytest.raises(DataError, match="max_draws"):
        structure.thinned(2, 5, 0)


def test_graphs_of_draws_carry_couplings():
    posterior = fake_posterior(5, 1, 3, seed=2)
    graph = structure.draw_graph(posterior._joined, posterior.features, posterior.names, 1)
    for u, v, values in graph.edges(data=True):
        assert values["coupling"] == posterior.draws_of((u, v))[0, 1]
        np.testing.assert_allclose(values["distance"] * abs(values["coupling"]), 1)
    assert graph.number_of_edges() == posterior.n_edges[0, 1]
