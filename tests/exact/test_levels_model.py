"""Models with more than two levels: energies, conditionals and exact inference against brute force."""

from __future__ import annotations

import itertools
import pickle

import networkx
import numpy as np
import pytest

from edgewise import MRF, exact
from edgewise.datasets import nominal_model, ordinal_model, random_model
from edgewise.errors import DataError, FileError
from edgewise.exact.elimination import Elimination
from edgewise.exact.inference import cheapest_order
from edgewise.scales import BINARY_SCALE, Scale

ORDINAL = Scale("ordinal", ("never", "sometimes", "often"))
GAPPED = Scale("ordinal", (1, 2, 4), (0, 1, 3))
NOMINAL = Scale("nominal", ("A", "B", "C"))
CAPEL = Scale("blume-capel", (0, 1, 2, 3), (), 1)


def mixed(seed: int = 0) -> MRF:
    """Every kind of variable and of pair, one pair of weight zero."""
    rng = np.random.default_rng(seed)
    scales = [ORDINAL, NOMINAL, BINARY_SCALE, CAPEL, NOMINAL, GAPPED]
    pairs = [(0, 1), (1, 4), (2, 3), (3, 4), (0, 5), (2, 4)]
    sizes = [scales[i].dimension * scales[j].dimension for i, j in pairs]
    weights = [rng.normal(0, 1, size) for size in sizes]
    weights[-1][:] = 0
    biases = rng.normal(0, 0.7, sum(scale.n_thresholds for scale in scales))
    return MRF(biases, pairs, np.concatenate(weights), list("abcdef"), scales)


def brute(model: MRF) -> tuple[np.ndarray, np.ndarray]:
    """All states, slowly, with their log-potentials by the definition."""
    states = np.array(list(itertools.product(*(range(scale.n_levels) for scale in model.scales))))
    energy = np.zeros(len(states))
    for k, state in enumerate(states):
        for i, scale in enumerate(model.scales):
            own = model.biases[model.scales.bias_start[i] : model.scales.bias_start[i + 1]]
            energy[k] += sum(float(own[t] * scale.basis[state[i], t]) for t in range(scale.n_thresholds))
        for number, (i, j) in enumerate(model.cliques):
            u, v = model.scales[i].scores[state[i]], model.scales[j].scores[state[j]]
            energy[k] += u @ model.matrix(number) @ v
    return states, energy


def solvers(model: MRF):
    yield exact.inference._enumeration(model)
    yield Elimination(model, cheapest_order(model))


def features_of(model: MRF, states: np.ndarray) -> np.ndarray:
    columns = [model.scales.thresholded(states)]
    for i, j in model.cliques:
        u, v = model.scales[i].scores[states[:, i]], model.scales[j].scores[states[:, j]]
        columns.append((u[:, :, None] * v[:, None, :]).reshape(len(states), -1))
    return np.concatenate(columns, axis=1)


def test_energies_and_conditionals():
    model = mixed()
    states, energy = brute(model)
    np.testing.assert_allclose(model.log_potential(states), energy, atol=1e-12)
    probability = np.exp(energy) / np.exp(energy).sum()
    found = model.conditional_levels(states[:50])
    for row, state in enumerate(states[:50]):
        for i, scale in enumerate(model.scales):
            others = np.delete(np.arange(model.n_variables), i)
            same = (states[:, others] == state[others]).all(axis=1)
            want = np.array([probability[same & (states[:, i] == c)].sum() for c in range(scale.n_levels)])
            np.testing.assert_allclose(found[i][row], want / want.sum(), atol=1e-12)


def test_exact_inference_in_both_ways():
    model = mixed()
    states, energy = brute(model)
    probability = np.exp(energy) / np.exp(energy).sum()
    features = features_of(model, states)
    second = (features * probability[:, None]).T @ features
    for solver in solvers(model):
        assert solver.log_partition() == pytest.approx(np.logaddexp.reduce(energy))
        np.testing.assert_allclose(solver.means(), probability @ features, atol=1e-12)
        np.testing.assert_allclose(solver.second_moments(), second, atol=1e-12)
        for i, found in enumerate(solver.level_marginals()):
            want = [probability[states[:, i] == c].sum() for c in range(len(found))]
            np.testing.assert_allclose(found, want, atol=1e-12)
    np.testing.assert_allclose(exact.probabilities(model), probability[np.lexsort(states.T)], atol=1e-14)
    np.testing.assert_allclose(exact.covariance(model), second - np.outer(*[probability @ features] * 2))


def test_covariance_is_the_derivative_of_the_means():
    model = mixed(3)
    step = 1e-6
    for k in (0, 3, len(model.biases) + 2, len(model.parameters) - 1):
        moved = model.parameters.copy()
        moved[k] += step
        split = len(model.biases)
        other = MRF(moved[:split], model.members, moved[split:], model.names, model.scales)
        slope = (exact.means(other) - exact.means(model)) / step
        np.testing.assert_allclose(exact.covariance(model)[k], slope, atol=1e-5)


@pytest.mark.parametrize("group", [[1], ["e", "a"], [5, 0, 2]])
def test_conditionals_of_groups(group):
    model = mixed()
    states, _energy = brute(model)
    members = [model.names.index(v) if isinstance(v, str) else v for v in group]
    rows = states[[0, 17, 200]]
    found = exact.conditional(model, group, rows)
    listed = exact.states([model.scales[i].n_levels for i in members])
    for row, log_probability in zip(rows, found):
        full = np.tile(row, (len(listed), 1))
        full[:, members] = listed
        want = model.log_potential(full)
        np.testing.assert_allclose(log_probability, want - np.logaddexp.reduce(want), atol=1e-12)
    own = exact.conditional_log_probability(model, group, rows)
    for k, row in enumerate(rows):
        place = np.flatnonzero((listed == row[members]).all(axis=1))[0]
        assert own[k] == pytest.approx(found[k, place])


@pytest.mark.parametrize("method", ["enumeration", "elimination", "gibbs"])
def test_samples(method):
    model = mixed(1)
    n, rng = 60_000, np.random.default_rng(5)
    if method == "gibbs":
        rows = model.gibbs(n, 60, rng)
    else:
        solver = list(solvers(model))[method == "elimination"]
        rows = solver.sample(n, rng)
    states, energy = brute(model)
    probability = np.exp(energy) / np.exp(energy).sum()
    features = features_of(model, rows.astype(int))
    mean, sd = probability @ features_of(model, states), features.std(axis=0)
    z = (features.mean(axis=0) - mean) / (sd / np.sqrt(n))
    assert np.abs(z).max() < 4
    wrong = MRF(model.biases + 0.1, model.members, model.weights, model.names, model.scales)
    # A control: a slightly different model is noticed.
    assert np.abs((features.mean(axis=0) - exact.means(wrong)) / (sd / np.sqrt(n))).max() > 4


def test_large_sparse_models_are_eliminated():
    model = ordinal_model(40, levels=5, kind="tree", seed=2)
    assert exact.feasible(model)
    rows = exact.sample(model, 4000, 1)
    assert rows.shape == (4000, 40)
    assert rows.max() == 4
    means = exact.means(model)
    assert np.abs(features_of(model, rows.astype(int)).mean(axis=0) - means).max() < 0.05


def test_binary_models_are_what_they_were():
    """A variable with two levels in a model with levels is the binary variable."""
    plain = random_model(6, 3.0, seed=3)
    scales = [BINARY_SCALE] * 6 + [ORDINAL]
    beside = MRF([*plain.biases, 0.3, -0.2], plain.members, plain.weights, scales=scales)
    assert not beside.scales.all_binary
    alone = exact.log_partition(MRF([0.3, -0.2], [], [], scales=[ORDINAL]))
    assert exact.log_partition(beside) == pytest.approx(exact.log_partition(plain) + alone)
    np.testing.assert_allclose(exact.means(beside)[:6], exact.means(plain)[:6])
    assert plain.to_json().count("version") == 1
    assert '"version": 1' in plain.to_json()


@pytest.mark.parametrize("suffix", ["graphml", "csv", "json", "pickle"])
def test_files_give_the_model_back(tmp_path, suffix):
    model = mixed()
    path = tmp_path / f"model.{suffix}"
    if suffix == "json":
        other = MRF.from_json(model.to_json())
    elif suffix == "pickle":
        other = pickle.loads(pickle.dumps(model))
    else:
        getattr(model, f"to_{suffix}")(path)
        other = getattr(MRF, f"from_{suffix}")(path)
    assert other.scales == model.scales
    assert other.names == model.names
    assert other.cliques == model.cliques
    np.testing.assert_allclose(other.parameters, model.parameters, atol=1e-14)
    if suffix != "csv":
        assert other == model
        assert hash(other) == hash(model)


def test_graph_carries_labels_and_thresholds():
    graph = mixed().to_networkx()
    assert graph.nodes["a"]["levels"] == ["never", "sometimes", "often"]
    assert graph.nodes["b"]["kind"] == "nominal"
    assert len(graph.edges["a", "b"]["parameters"][0]) == 2
    assert isinstance(graph, networkx.Graph)


def test_coupling_matrix_holds_the_log_odds_ratios():
    model = mixed()
    table = model.coupling_matrix("b", "e")
    np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(model.coupling_matrix("e", "b"), table.T)
    assert not model.coupling_matrix("a", "c").any()
    # The strength is the root mean square of all log odds ratios.
    ratios = [
        table[a, c] - table[b, c] - table[a, d] + table[b, d]
        for a, b in itertools.combinations(range(3), 2)
        for c, d in itertools.combinations(range(3), 2)
    ]
    assert model.coupling[1, 4] == pytest.approx(np.sqrt(np.mean(np.square(ratios))))
    # A table over the levels, whatever is added to its rows and columns, makes the same model.
    again = MRF.from_levels([NOMINAL] * 2, [[0, 0, 0]] * 2, [(1, 0)], [table.T + 3 + np.arange(3)])
    np.testing.assert_allclose(again.coupling_matrix(0, 1), table, atol=1e-12)


def test_order_of_nominal_levels_means_nothing():
    model = nominal_model(4, levels=3, kind="ring", seed=3)
    turn = np.array([2, 0, 1])
    tables = [model.coupling_matrix(i, j) for i, j in model.cliques]
    turned = [table[turn] if i == 0 else table for (i, _), table in zip(model.cliques, tables)]
    thresholds = [model.thresholds[0][turn], *model.thresholds[1:]]
    other = MRF.from_levels(model.scales, thresholds, model.cliques, turned)
    np.testing.assert_allclose(
        exact.level_marginals(other)[0], exact.level_marginals(model)[0][turn], atol=1e-12
    )
    assert other.coupling == pytest.approx(model.coupling)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: MRF([0.0, 0.0], [], [], scales=[ORDINAL] * 2),
            "2 biases; the levels of 2 variables ask for 4",
        ),
        (lambda: MRF([0.0] * 4, [(0, 1)], [1.0], scales=[NOMINAL] * 2), "1 cliques and 1 weights; give 4"),
        (lambda: MRF([0.0] * 4, [(0, 1)], [np.nan], scales=[ORDINAL] * 2), "weight of clique 0 -- 1 is nan"),
        (lambda: MRF([0.0, 0, np.inf, 0], [], [], scales=[ORDINAL] * 2), "bias of variable 1 is inf"),
        (lambda: mixed().log_potential([[0, 0, 2, 0, 0, 0]]), "0 to 1 for variable c, but row 0 has 2"),
        (lambda: mixed().log_potential([[0.5, 0, 0, 0, 0, 0]]), "0 to 2 for variable a, but row 0 has 0.5"),
        (lambda: mixed().log_potential([["never"] * 6]), "numbers of levels"),
        (lambda: mixed().log_potential([[0, 1]]), "shape"),
        (lambda: mixed().conditional_probability([[0] * 6]), "conditional_levels"),
        (lambda: mixed().to_ising(), "two levels have an Ising form"),
        (lambda: exact.marginals(mixed()), "level_marginals"),
        (lambda: exact.pair_marginals(mixed()), "more than two levels"),
        (lambda: mixed().gibbs(2, 1, np.random.default_rng(0), np.zeros((3, 6))), "3 rows for 2 chains"),
        (lambda: MRF.from_levels([ORDINAL] * 2, [[0, 0]] * 2, [], []), "3 levels; give one threshold"),
        (lambda: MRF.from_levels([CAPEL], [[0, 1, 0, 1]], [], []), "not of the form that its kind allows"),
        (lambda: MRF.from_levels([ORDINAL], [[0, 1, 0]] * 2, [], []), "2 rows of thresholds for 1"),
        (
            lambda: MRF.from_levels([ORDINAL] * 2, [[0] * 3] * 2, [(0, 1)], [np.eye(3)]),
            "one coupling for all",
        ),
        (lambda: MRF.from_levels([ORDINAL] * 2, [[0] * 3] * 2, [(0, 1)], [[1, 2]]), "must be one number"),
        (lambda: MRF.from_levels([ORDINAL] * 2, [[0] * 3] * 2, [(0, 1)], ["x"]), "must be numbers"),
        (lambda: MRF.from_levels([ORDINAL] * 2, [[0] * 3] * 2, [(0, 1)], []), "1 pairs and 0 couplings"),
        (lambda: ordinal_model(3, levels=[3, 3]), "2 numbers of levels for 3"),
        (lambda: nominal_model(1), "two variables or more"),
    ],
)
def test_refused_in_words(call, words):
    with pytest.raises(DataError, match=words):
        call()


def test_damaged_files_are_refused():
    text = mixed().to_json()
    with pytest.raises(FileError, match="versions 1 and 2"):
        MRF.from_json(text.replace('"version": 2', '"version": 3'))
    with pytest.raises(FileError, match="lacks scales"):
        MRF.from_json(text.replace('"scales"', '"other"'))
    with pytest.raises(FileError, match="unreadable levels"):
        MRF.from_json(text.replace('"positions"', '"places"'))


def test_damaged_tables_are_refused(tmp_path):
    path = tmp_path / "model.csv"
    mixed().to_csv(path)
    text = path.read_text("utf-8")
    for old, new, words in (
        ("nominal at 0", "nominal at", "levels of 'b' cannot be read"),
        ("a,never,,", "z,never,,", "levels of 'z'|has no thresholds|levels of 'a'"),
        ("f,1,,,", "f,1,,,x", "expected 6 fields with a number"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(FileError, match=words):
            MRF.from_csv(path)
