"""The MRF: what it computes, that it cannot be changed, its files and its error messages."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import MRF, datasets, exact
from edgewise.errors import DataError, FileError

NAMES = ("sleep", "mood, low", 'the "drive"', "Ünrest", "e")


def triple_model(names=NAMES) -> MRF:
    return MRF([0.1, -1 / 3, 2.0, 1e-17, -7.5], [(3, 0), (1, 2, 4), (1, 2)], [1.25, -2.0, np.pi], names)


@pytest.fixture(params=["pairs", "triples", "unnamed", "no cliques", "large"])
def model(request) -> MRF:
    return {
        "pairs": datasets.block_model(1),
        "triples": MRF(
            [0.1, -1 / 3, 2.0, 1e-17, -7.5], [(0, 3), (1, 2), (1, 2, 4)], [1.25, np.pi, -2.0], NAMES
        ),
        "unnamed": MRF([0.5, 1.5, -0.1], [(0, 2)], [0.3]),
        "no cliques": MRF([0.5, 1.5], [], [], ["a", "b"]),
        "large": datasets.random_model(300, 3, seed=2),
    }[request.param]


def slow_potential(model: MRF, row: np.ndarray) -> float:
    total = sum(b for b, x in zip(model.biases, row) if x)
    return total + sum(w for clique, w in zip(model.cliques, model.weights) if all(row[i] for i in clique))


def test_log_potential_and_conditionals_follow_the_definition(model):
    rng = np.random.default_rng(3)
    rows = (rng.random((6, model.n_variables)) < 0.6).astype(np.uint8)
    np.testing.assert_allclose(model.log_potential(rows), [slow_potential(model, row) for row in rows])
    conditional = model.conditional_probability(rows)
    for r, i in itertools.product(range(3), range(min(model.n_variables, 12))):
        on, off = rows[r].copy(), rows[r].copy()
        on[i], off[i] = 1, 0
        odds = np.exp(slow_potential(model, on) - slow_potential(model, off))
        assert conditional[r, i] == pytest.approx(odds / (1 + odds), abs=1e-12)


def test_conditionals_stay_finite_at_huge_parameters():
    model = MRF([3000.0, -3000.0], [(0, 1)], [-2000.0])
    np.testing.assert_array_equal(model.conditional_probability([[1, 0], [0, 1]]), [[1, 0], [1, 0]])


def test_cliques_are_sorted_inside_and_keep_their_order():
    model = triple_model()
    assert model.cliques == ((0, 3), (1, 2, 4), (1, 2))
    np.testing.assert_array_equal(model.members, [[0, 3, -1], [1, 2, 4], [1, 2, -1]])
    np.testing.assert_array_equal(model.parameters, [0.1, -1 / 3, 2.0, 1e-17, -7.5, 1.25, -2.0, np.pi])
    assert not model.pairs_only
    assert repr(model) == "MRF(5 variables, 2 pairs, 1 larger clique)"


def test_an_array_of_members_means_the_same_as_a_list():
    padded = np.array([[0, 3, -1], [1, 2, 4], [2, 1, -1]], np.int32)
    assert MRF(triple_model().biases, padded, triple_model().weights, NAMES) == triple_model()
    assert MRF([0, 0], np.zeros((0, 2), int), []) == MRF([0, 0], [], [])
    assert MRF([0, 0, 0], np.array([[2, 0, -1]]), [1.0]).pairs_only


def test_coupling_and_density_tell_of_pairs():
    model = triple_model()
    assert model.coupling[0, 3] == model.coupling[3, 0] == 1.25
    assert np.count_nonzero(model.coupling) == 4
    assert model.density == pytest.approx(2 / 10)
    assert MRF([0, 0, 0], [(0, 1), (1, 2)], [0.0, 1.0]).density == pytest.approx(1 / 3)
    assert MRF([1.0], [], []).density == 0.0


def test_nothing_can_be_changed():
    given_biases = np.zeros(3)
    model = MRF(given_biases, [(0, 1)], [1.0])
    given_biases[0] = 9.0
    assert model.biases[0] == 0.0
    for name in ("biases", "weights", "names", "members", "cliques", "anything"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(model, name, None)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del model.biases
    for again in (model, pickle.loads(pickle.dumps(model))):
        for array in (again.biases, again.weights, again.members, again.parameters, again.coupling):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0


def test_equality_and_hash():
    model = triple_model()
    assert model == triple_model()
    assert hash(model) == hash(triple_model())
    assert model != triple_model(names=None)
    assert model != MRF(model.biases, model.cliques[::-1], model.weights[::-1], NAMES)
    assert model != MRF(model.biases + 1e-12, model.cliques, model.weights, NAMES)
    assert model != "a model"
    zero, minus_zero = MRF([0.0], [], []), MRF([-0.0], [], [])
    assert zero == minus_zero
    assert hash(zero) == hash(minus_zero)


def test_json_gives_back_an_equal_model(model):
    again = MRF.from_json(model.to_json())
    assert again == model
    np.testing.assert_array_equal(again.parameters, model.parameters)


def test_pickle_gives_back_an_equal_model(model):
    assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize("name", ["model.graphml", "model.graphml.gz", "model.graphml.bz2"])
def test_graphml_gives_back_an_equal_model(model, tmp_path, name):
    model.to_graphml(tmp_path / name)
    assert MRF.from_graphml(tmp_path / name) == model


def test_csv_gives_back_an_equal_model(model, tmp_path):
    model.to_csv(tmp_path / "model.csv")
    named = model.names or tuple(f"x{i}" for i in range(model.n_variables))
    assert MRF.from_csv(tmp_path / "model.csv") == MRF(model.biases, model.members, model.weights, named)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.text(min_size=1), min_size=2, max_size=4, unique=True), st.floats(-1e6, 1e6))
def test_json_keeps_any_name_and_number(names, number):
    model = MRF([number] * len(names), [(0, 1)], [number], names)
    assert MRF.from_json(model.to_json()) == model


def test_networkx_graph_has_biases_weights_and_larger_cliques():
    graph = triple_model().to_networkx()
    assert list(graph.nodes) == list(NAMES)
    assert graph.nodes["sleep"]["bias"] == 0.1
    assert graph.edges["sleep", "Ünrest"]["weight"] == 1.25
    assert "weight" not in graph.edges["mood, low", "e"]
    assert graph.graph["cliques"] == [(("mood, low", 'the "drive"', "e"), -2.0)]
    assert list(MRF([0, 0], [(0, 1)], [1.0]).to_networkx().edges(data="weight")) == [(0, 1, 1.0)]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_ising_and_boltzmann_forms_are_the_same_distribution(p, seed):
    rng = np.random.default_rng(seed)
    coupling = np.triu(rng.normal(size=(p, p)) * (rng.random((p, p)) < 0.6), 1)
    coupling += coupling.T
    field = rng.normal(size=p)
    model = MRF.from_ising(coupling, field)

    spins = 2.0 * exact.states(p) - 1.0
    log_weight = 0.5 * np.einsum("si,ij,sj->s", spins, coupling, spins) + spins @ field
    weight = np.exp(log_weight - log_weight.max())
    np.testing.assert_allclose(exact.probabilities(model), weight / weight.sum(), atol=1e-13)

    again, field_again = model.to_ising()
    np.testing.assert_allclose(again, coupling, atol=1e-15)
    np.testing.assert_allclose(field_again, field, atol=1e-13)


def test_from_coupling_reads_zeros_as_absent_edges():
    model = MRF.from_coupling([1.0, 2.0, 3.0], [[0, 0.5, 0], [0.5, 0, -1], [0, -1, 0]], list("abc"))
    assert model == MRF([1.0, 2.0, 3.0], [(0, 1), (1, 2)], [0.5, -1.0], list("abc"))


def test_gibbs_keeps_its_start_without_sweeps_and_its_stream():
    model = triple_model()
    start = np.array([[1, 0, 1, 0, 1], [0, 0, 0, 1, 1]], np.uint8)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(model.gibbs(2, 0, rng, start), start)
    before = start.copy()
    first = model.gibbs(2, 3, np.random.default_rng(1), start)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_array_equal(first, model.gibbs(2, 3, np.random.default_rng(1), start))
    assert first.dtype == np.uint8
    with pytest.raises(DataError, match="2 rows for 3 chains"):
        model.gibbs(3, 1, rng, start)


def test_gibbs_does_not_write_into_a_float_start():
    start = np.zeros((4, 5))
    MRF([9.0] * 5, [], []).gibbs(4, 1, np.random.default_rng(0), start)
    assert not start.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "at least one variable"),
        (([[0.0, 1.0]], [], []), "one row of numbers"),
        ((["x", "y"], [], []), "biases must be numbers"),
        (([0, np.nan], [], []), "bias of variable 1 is nan"),
        (([0, 0], [(0, 1)], [np.inf]), "weight of clique 0 -- 1 is inf"),
        (([0, 0], [(0, 1)], [np.inf], ["a", "b"]), "weight of clique a -- b is inf"),
        (([0, 0], [(0, 1)], []), "1 cliques and 0 weights"),
        (([0, 0], [(0, 2)], [1.0]), "There is no variable 2"),
        (([0, 0], [(0, -1)], [1.0]), "There is no variable -1"),
        (([0, 0], [(0,)], [1.0]), "two or more different variables"),
        (([0, 0], [(1, 1)], [1.0]), "two or more different variables"),
        (([0, 0], ["ab"], [1.0]), "A clique is a list"),
        (([0, 0], [("a", "c")], [1.0], ["a", "b"]), "no variable named 'c'"),
        (([0, 0], [(0, 1), (1, 0)], [1.0, 2.0]), "0 -- 1 is listed twice"),
        (([0, 0, 0], [(0, 1, 2), (0, 1), (2, 1, 0)], [1.0, 2.0, 3.0]), "0 -- 1 -- 2 is listed twice"),
        (([0, 0], np.array([[0, 1], [1, 0]]), [1.0, 2.0]), "0 -- 1 is listed twice"),
        (([0, 0], np.array([[0, 5]]), [1.0]), "There is no variable 5"),
        (([0, 0], np.array([[1, 1]]), [1.0]), "two or more different variables"),
        (([0, 0], np.array([[1, -1]]), [1.0]), "two or more different variables"),
        (([0, 0], [], [], ["a"]), "1 names for 2 variables"),
        (([0, 0], [], [], ["a", "a"]), "Two variables are named 'a'"),
        (([0, 0], [], [], ["a", ""]), "Variable 1 has an empty name"),
    ],
)
def test_a_bad_model_is_refused_by_name(arguments, message):
    with pytest.raises(DataError, match=message):
        MRF(*arguments)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 1], r"shape \(n, 2\)"),
        ([[0, 1, 1]], r"shape \(n, 2\)"),
        ([[0, 1], [0, 2]], "row 1 has 2 for variable b"),
        ([[-1, 1]], "row 0 has -1 for variable a"),
        ([[0, np.nan]], "row 0 has nan for variable b"),
    ],
)
def test_bad_states_are_refused_by_name(rows, message):
    model = MRF([0, 0], [(0, 1)], [1.0], ["a", "b"])
    with pytest.raises(DataError, match=message):
        model.log_potential(rows)


@pytest.mark.parametrize(
    ("coupling", "field", "message"),
    [
        ([[0, 1]], [0, 0], "square matrix"),
        ([[0, 1], [2, 0]], [0, 0], r"entries \(0, 1\) and \(1, 0\) differ"),
        ([[1, 0], [0, 0]], [0, 0], "zero diagonal"),
        ([[0, 1], [1, 0]], [0], "2 variables and the field for 1"),
    ],
)
def test_a_bad_ising_model_is_refused(coupling, field, message):
    with pytest.raises(DataError, match=message):
        MRF.from_ising(coupling, field)


def test_larger_cliques_have_no_ising_form():
    with pytest.raises(DataError, match='mood, low -- the "drive" -- e'):
        triple_model().to_ising()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "not the JSON text of a model"),
        ("[1, 2]", "lacks the format mark"),
        ('{"format": "edgewise-mrf", "version": 99}', "version 99"),
        ('{"format": "edgewise-mrf", "version": 1, "biases": [0]}', "lacks cliques, weights"),
    ],
)
def test_bad_json_is_refused(text, message):
    with pytest.raises(FileError, match=message):
        MRF.from_json(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "first line should be"),
        ("a,b\n1,2\n", "first line should be"),
        ("variable_1,variable_2,weight\na,,x\n", "line 2: 'x' is not a number"),
        ("variable_1,variable_2,weight\na,,1\n,,1\n", "line 3: expected 3 fields"),
        ("variable_1,variable_2,weight\na,,1\na,b,1\n", "no variable named 'b'"),
    ],
)
def test_bad_csv_is_refused_with_its_name(tmp_path, content, message):
    path = tmp_path / "model.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=message) as caught:
        MRF.from_csv(path)
    assert "model.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<graphml", "not a GraphML file"),
        ("plain text", "not a GraphML file"),
        (
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
            '<node id="a"/></graph></graphml>',
            "node 'a' has no attribute 'bias'",
        ),
    ],
)
def test_bad_graphml_is_refused_with_its_name(tmp_path, content, message):
    path = tmp_path / "model.graphml"
    path.write_text(content)
    with pytest.raises(FileError, match=message) as caught:
        MRF.from_graphml(path)
    assert "model.graphml" in str(caught.value)


def test_missing_files_and_folders_are_named(tmp_path):
    for read in (MRF.from_csv, MRF.from_graphml):
        with pytest.raises(FileError, match="There is no file"):
            read(tmp_path / "absent")
    for write in (triple_model().to_csv, triple_model().to_graphml):
        with pytest.raises(FileError, match="Cannot write"):
            write(tmp_path / "no folder" / "model")


def test_models_and_datasets_load_without_numba():
    code = (
        "import sys; from edgewise import MRF, datasets, exact; exact.means(datasets.block_model(1)); "
        "found = [m for m in ('numba', 'pandas', 'sklearn', 'networkx', 'scipy') if m in sys.modules]; "
        "sys.exit(' '.join(found) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
