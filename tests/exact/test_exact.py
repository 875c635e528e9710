"""Exact inference against sums over all states in plain Python, and its methods against each other."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import MRF, datasets, exact
from edgewise.errors import DataError
from edgewise.exact.elimination import Elimination
from edgewise.exact.enumeration import Enumeration
from edgewise.exact.inference import cheapest_order
from edgewise.exact.orders import elimination_orders

TOLERANCE = 1e-10

parameter = st.one_of(
    st.sampled_from([0.0, 30.0, -30.0]), st.floats(-3.0, 3.0, allow_nan=False, allow_subnormal=False)
)


@st.composite
def models(draw, max_variables: int = 8, max_order: int = 4) -> MRF:
    """Random cliques of two to four variables: often disconnected, often with isolated variables."""
    p = draw(st.integers(1, max_variables))
    possible = [c for size in range(2, min(max_order, p) + 1) for c in itertools.combinations(range(p), size)]
    cliques = draw(st.lists(st.sampled_from(possible), unique=True, max_size=12)) if possible else []
    biases = draw(st.lists(parameter, min_size=p, max_size=p))
    weights = draw(st.lists(parameter, min_size=len(cliques), max_size=len(cliques)))
    return MRF(biases, cliques, weights)


def eliminate(model: MRF) -> Elimination:
    return Elimination(model, cheapest_order(model))


def potential(model: MRF, state: tuple[int, ...]) -> float:
    terms = [b * x for b, x in zip(model.biases.tolist(), state)]
    terms += [w * math.prod(state[i] for i in c) for c, w in zip(model.cliques, model.weights.tolist())]
    return math.fsum(terms)


def brute_force(model: MRF) -> tuple[float, list[float]]:
    """Log Z and the means of all features, state by state."""
    states = list(itertools.product((0, 1), repeat=model.n_variables))
    potentials = [potential(model, state) for state in states]
    peak = max(potentials)
    weights = [math.exp(value - peak) for value in potentials]
    total = math.fsum(weights)
    features = [(i,) for i in range(model.n_variables)] + list(model.cliques)
    means = [
        math.fsum(weight for state, weight in zip(states, weights) if all(state[i] for i in clique)) / total
        for clique in features
    ]
    return peak + math.log(total), means


@settings(max_examples=300, deadline=None, derandomize=True)
@given(models(max_variables=4))
def test_both_methods_agree_with_plain_python(model):
    log_z, means = brute_force(model)
    for solver in (Enumeration(model), eliminate(model)):
        assert solver.log_partition() == pytest.approx(log_z, abs=TOLERANCE)
        np.testing.assert_allclose(solver.means(), means, rtol=0, atol=TOLERANCE)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(models(max_variables=9))
def test_elimination_agrees_with_enumeration(model):
    listed, eliminated = Enumeration(model), eliminate(model)
    assert eliminated.log_partition() == pytest.approx(listed.log_partition(), abs=TOLERANCE)
    for quantity in ("means", "pair_marginals", "second_moments"):
        np.testing.assert_allclose(
            getattr(eliminated, quantity)(), getattr(listed, quantity)(), rtol=0, atol=TOLERANCE
        )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(models(max_variables=7), st.data())
def test_conditionals_agree_with_both_methods(model, data):
    p = model.n_variables
    group = data.draw(st.lists(st.integers(0, p - 1), min_size=1, max_size=p, unique=True))
    row = np.array(data.draw(st.lists(st.integers(0, 1), min_size=p, max_size=p)))
    table = exact.conditional(model, group, row[None])[0]

    candidates = np.repeat(row[None], 1 << len(group), axis=0)
    candidates[:, group] = exact.states(len(group))
    joint = Enumeration(model).log_potential[candidates @ (1 << np.arange(p))]
    by_enumeration = joint - joint.max() - math.log(np.exp(joint - joint.max()).sum())
    np.testing.assert_allclose(table, by_enumeration, rtol=0, atol=TOLERANCE)

    reduced = condition(model, group, row)
    by_elimination = reduced.log_potential(exact.states(len(group))) - eliminate(reduced).log_partition()
    np.testing.assert_allclose(table, by_elimination, rtol=0, atol=TOLERANCE)

    own_state = int(row[group] @ (1 << np.arange(len(group))))
    alone = exact.conditional_log_probability(model, group, row[None])[0]
    assert alone == pytest.approx(table[own_state], abs=TOLERANCE)
    if p <= 4:
        potentials = [potential(model, tuple(candidate)) for candidate in candidates.tolist()]
        peak = max(potentials)
        log_sum = peak + math.log(math.fsum(math.exp(value - peak) for value in potentials))
        np.testing.assert_allclose(table, np.array(potentials) - log_sum, rtol=0, atol=TOLERANCE)


def condition(model: MRF, group: list[int], row: np.ndarray) -> MRF:
    """The model of a group with all other variables fixed as in the row."""
    terms: dict[tuple[int, ...], float] = {(j,): model.biases[i] for j, i in enumerate(group)}
    for clique, weight in zip(model.cliques, model.weights):
        inside = tuple(sorted(group.index(i) for i in clique if i in group))
        if inside and all(row[i] for i in clique if i not in group):
            terms[inside] = terms.get(inside, 0.0) + weight
    larger = [clique for clique in terms if len(clique) > 1]
    return MRF([terms[(j,)] for j in range(len(group))], larger, [terms[clique] for clique in larger])


def test_lattice_of_twenty_variables_by_both_methods():
    model = datasets.lattice_model(seed=3, rows=4, columns=5)
    listed, eliminated = Enumeration(model), eliminate(model)
    assert eliminated.log_partition() == pytest.approx(listed.log_partition(), abs=TOLERANCE)
    np.testing.assert_allclose(eliminated.means(), listed.means(), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(
        exact.covariance(model)[:20, :20].diagonal(),
        listed.means()[:20] * (1 - listed.means()[:20]),
        atol=TOLERANCE,
    )


def test_the_ten_by_ten_lattice_gives_the_same_in_every_order():
    model = datasets.lattice_model(seed=4)
    assert exact.elimination_width(model) == 10
    results = [Elimination(model, order) for order in elimination_orders(100, model.cliques)]
    assert len(results) == 3
    for other in results[1:]:
        assert other.log_partition() == pytest.approx(results[0].log_partition(), abs=TOLERANCE)
        np.testing.assert_allclose(other.means(), results[0].means(), rtol=0, atol=TOLERANCE)


def test_means_are_the_gradient_and_covariance_the_hessian_of_log_z():
    rng = np.random.default_rng(5)
    model = MRF(rng.normal(size=5), [(0, 1), (1, 2, 3), (0, 4), (2, 3)], rng.normal(size=4))
    step = 1e-4
    gradient = np.empty(9)
    hessian = np.empty((9, 9))
    for k in range(9):
        ahead, behind = (
            MRF((theta := model.parameters + sign * step * np.eye(9)[k])[:5], model.cliques, theta[5:])
            for sign in (1, -1)
        )
        gradient[k] = (exact.log_partition(ahead) - exact.log_partition(behind)) / (2 * step)
        hessian[k] = (exact.means(ahead) - exact.means(behind)) / (2 * step)
    np.testing.assert_allclose(exact.means(model), gradient, atol=1e-8)
    np.testing.assert_allclose(exact.covariance(model), hessian, atol=1e-8)


@pytest.mark.parametrize("change", [-40.0, -1.5, 0.3, 12.0])
@pytest.mark.parametrize("feature", [2, 6])
def test_change_of_one_parameter_moves_log_z_and_its_mean_exactly(feature, change):
    """docs/method.md, eqs. 4.1 and 4.2: no expansion, for any size of the change."""
    rng = np.random.default_rng(6)
    model = MRF(rng.normal(size=5), [(0, 1), (1, 2, 3), (3, 4)], rng.normal(size=3))
    moved = model.parameters.copy()
    moved[feature] += change
    after = MRF(moved[:5], model.cliques, moved[5:])
    mean = exact.means(model)[feature]
    difference = exact.log_partition(after) - exact.log_partition(model)
    assert difference == pytest.approx(math.log1p(math.expm1(change) * mean), rel=1e-9)
    expected = mean * math.exp(change) / (1 - mean + mean * math.exp(change))
    assert exact.means(after)[feature] == pytest.approx(expected, rel=1e-9)


def test_change_along_a_direction_needs_only_the_cells_of_its_features():
    """docs/method.md, eqs. 4.3 and 4.5: an edge is exchanged for another in one step."""
    rng = np.random.default_rng(12)
    model = MRF(rng.normal(size=4), [(0, 1), (0, 2), (2, 3)], [1.7, 0.0, -0.6])
    value, removed = -2.3, 1.7
    after = MRF(model.biases, model.cliques, [0.0, value, -0.6])
    states, probability = exact.states(4), exact.probabilities(model)
    deleted, added = states[:, [0, 1]].all(axis=1), states[:, [0, 2]].all(axis=1)
    cells = [probability[(deleted == d) & (added == a)].sum() for d, a in ((0, 0), (1, 0), (0, 1), (1, 1))]
    growth = np.exp([0.0, -removed, value, value - removed])
    difference = exact.log_partition(after) - exact.log_partition(model)
    assert difference == pytest.approx(math.log(cells @ growth), abs=1e-12)
    moved = exact.probabilities(after)[deleted & added].sum()
    assert moved == pytest.approx(cells[3] * growth[3] / (cells @ growth), abs=1e-12)


def test_zero_weights_do_not_widen_the_graph_but_have_means():
    lattice = datasets.lattice_model(seed=7, rows=3, columns=9)
    i, j = np.triu_indices(27, 1)
    full = MRF(lattice.biases, np.stack([i, j], axis=1), lattice.coupling[i, j])
    assert exact.elimination_width(full) == exact.elimination_width(lattice) == 3
    assert exact.log_partition(full) == pytest.approx(exact.log_partition(lattice), abs=TOLERANCE)
    np.testing.assert_allclose(
        exact.means(full)[27:], exact.pair_marginals(lattice)[i, j], rtol=0, atol=TOLERANCE
    )


def test_a_long_chain_agrees_with_its_transfer_matrices():
    model = datasets.random_model(500, kind="chain", seed=8)
    assert exact.elimination_width(model) == 1
    vector, log_scale = np.array([1.0, math.exp(model.biases[0])]), 0.0
    for i in range(1, 500):
        coupling = model.coupling[i - 1, i]
        transfer = np.array([[1.0, math.exp(model.biases[i])], [1.0, math.exp(model.biases[i] + coupling)]])
        vector = vector @ transfer
        log_scale += math.log(vector.sum())
        vector /= vector.sum()
    assert exact.log_partition(model) == pytest.approx(log_scale, abs=1e-9)


def test_too_wide_a_graph_is_refused_before_memory_is_spent():
    model = datasets.random_model(200, 8, seed=9)
    assert not exact.feasible(model)
    tracemalloc.start()
    try:
        for ask in (
            exact.log_partition,
            exact.means,
            exact.covariance,
            exact.pair_marginals,
            lambda wide: exact.sample(wide, 10, 0),
        ):
            with pytest.raises(DataError) as caught:
                ask(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(caught.value)
    width = int(text.split("(width ")[1].split(")")[0])
    assert width >= exact.elimination_width(model) > 25
    assert "200 variables" in text
    assert " bytes of memory; the limit is 2 GB" in text
    assert "ais_log_partition" in text
    assert "gibbs" in text
    assert peak < 20_000_000


def test_a_complete_graph_is_refused_at_once():
    rng = np.random.default_rng(10)
    p = 60
    i, j = np.triu_indices(p, 1)
    model = MRF(np.zeros(p), np.stack([i, j], axis=1), rng.normal(size=len(i)))
    assert exact.elimination_width(model) == p - 1
    with pytest.raises(DataError, match=r"\(width 59\)"):
        exact.log_partition(model)


def test_probabilities_sum_to_one_and_are_numbered_by_bits():
    model = MRF([0.0, 1.0, -2.0], [(0, 1)], [0.5])
    table = exact.probabilities(model)
    assert table.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(exact.states(3)[[1, 6]], [[1, 0, 0], [0, 1, 1]])
    np.testing.assert_allclose(
        np.log(table), model.log_potential(exact.states(3)) - exact.log_partition(model)
    )
    np.testing.assert_allclose(exact.marginals(model), table @ exact.states(3))
    with pytest.raises(DataError, match="at most 22 variables"):
        exact.probabilities(datasets.lattice_model(1))


@pytest.mark.parametrize(
    ("group", "rows", "message"),
    [
        ([], [[0, 1, 0]], "one or more different variables"),
        ([1, 1], [[0, 1, 0]], "one or more different variables"),
        (["z"], [[0, 1, 0]], "no variable named 'z'"),
        ([3], [[0, 1, 0]], "There is no variable 3"),
        ([-1], [[0, 1, 0]], "There is no variable -1"),
        ([0], [0, 1, 0], r"shape \(n, 3\)"),
        ([0], [[0, 1]], r"shape \(n, 3\)"),
        (["a"], [[0, 1, 0], [7, 0, 2]], "row 1 has 2 for variable c"),
    ],
)
def test_conditional_names_what_is_wrong(group, rows, message):
    model = MRF([0.0, 1.0, -2.0], [(0, 1)], [0.5], names=["a", "b", "c"])
    with pytest.raises(DataError, match=message):
        exact.conditional(model, group, rows)


def test_conditional_ignores_the_columns_of_the_group_and_takes_names():
    model = MRF([0.0, 1.0, -2.0], [(0, 1), (1, 2)], [0.5, 1.0], names=["a", "b", "c"])
    np.testing.assert_array_equal(
        exact.conditional(model, ["b"], [[1, -1, 0]]), exact.conditional(model, [1], [[1, 1, 0]])
    )
    with pytest.raises(DataError, match="0 or 1 in the columns of the group"):
        exact.conditional_log_probability(model, ["b"], [[1, -1, 0]])
    lattice = datasets.lattice_model(1)
    with pytest.raises(DataError, match="at most 16"):
        exact.conditional(lattice, range(17), np.zeros((1, 100)))
    with pytest.raises(
        DataError, match=r"16 variables for 5,000 rows would need 5.24 GB.* the limit is 2 GB"
    ):
        exact.conditional(lattice, range(16), np.zeros((5000, 100), np.uint8))


def test_a_group_of_all_variables_gives_the_log_likelihood():
    model = datasets.block_model(seed=11)
    rows = exact.sample(model, 50, 1)
    np.testing.assert_allclose(
        exact.conditional_log_probability(model, range(12), rows),
        model.log_potential(rows) - exact.log_partition(model),
        atol=TOLERANCE,
    )
