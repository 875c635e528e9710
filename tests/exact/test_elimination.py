"""Log Z by elimination in kernels, against the elimination in log space and against all states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from broken import Exposed, altered
from edgewise import exact
from edgewise.kernels import bits, elimination, ordering
from edgewise.kernels.compiling import kernel
from edgewise.model import MRF

kernels = Exposed(bits, ordering, elimination)
ROOMY = 1 << 22

Cliques = Sequence[tuple[int, ...]]


def lattice(n: int) -> list[tuple[int, ...]]:
    along = [(n * r + c, n * r + c + 1) for r in range(n) for c in range(n - 1)]
    return along + [(n * r + c, n * r + c + n) for r in range(n - 1) for c in range(n)]


def with_extra(cliques: Cliques, p: int, extra: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    others = sorted(set(itertools.combinations(range(p), 2)) - set(cliques))
    return [*cliques, *(others[k] for k in rng.permutation(len(others))[:extra])]


def table_of(cliques: Cliques) -> np.ndarray:
    members = np.full((len(cliques), max([2, *map(len, cliques)])), -1, np.int32)
    for row, clique in zip(members, cliques):
        row[: len(clique)] = clique
    return members


def eliminated(bias, cliques, theta, limit=ROOMY, order=None, function=elimination.log_partition_of):
    members = table_of(cliques)
    listed = np.arange(len(cliques)) if order is None else order
    room = elimination.elimination_room(len(bias), len(cliques), limit)
    return function(bias, theta, listed, len(listed), members, room)


def drawn(p: int, cliques: Cliques, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(-0.5, 1.0, p), rng.normal(0.2, 1.0, len(cliques))


def counted(p: int, cliques: Cliques, limit: float) -> int:
    """Cells of the better of two orders, from their definition: nothing is kept from step to step."""
    graph: list[set[int]] = [set() for _ in range(p)]
    for clique in cliques:
        for i in clique:
            graph[i] |= set(clique) - {i}

    def go_on(left: set[int], cells: int, cost, up_to: int) -> int:
        near = {v: set(graph[v]) for v in left}
        while left:
            v = min(left, key=lambda v: cost(v, near))
            if len(near[v]) > up_to:
                break
            cells += 2 ** min(len(near[v]) + 1, 60)
            if cells > limit:
                break
            left.remove(v)
            for u in near[v]:
                near[u] = (near[u] | near[v]) - {u, v}
        for v in left:
            graph[v] = near[v]
        return cells

    def by_degree(v, near):
        return len(near[v]), v

    def by_fill(v, near):
        return sum(b not in near[a] for a, b in itertools.combinations(near[v], 2)), len(near[v]), v

    left = set(range(p))
    cells = go_on(left, 0, by_degree, 2)
    if not left or cells > limit:
        return cells
    start = [set(near) for near in graph]
    found = []
    for cost in (by_degree, by_fill):
        graph[:] = [set(near) for near in start]
        found.append(go_on(set(left), cells, cost, p))
    return min(found)


def graphs() -> dict[str, tuple[int, list[tuple[int, ...]]]]:
    rng = np.random.default_rng(4)
    triples = [tuple(sorted(rng.choice(20, 3, replace=False).tolist())) for _ in range(12)]
    fours = [tuple(sorted(rng.choice(20, 4, replace=False).tolist())) for _ in range(4)]
    return {
        "one variable": (1, []),
        "two variables": (2, [(0, 1)]),
        "empty": (9, []),
        "tree": (60, [(int(rng.integers(i)), i) for i in range(1, 60)]),
        "star": (90, [(0, i) for i in range(1, 90)]),
        "cycle": (64, [*((i, i + 1) for i in range(63)), (0, 63)]),
        "chain over three words": (130, [(i, i + 1) for i in range(129)]),
        "pairs far apart": (130, with_extra([], 130, 100, rng)),
        "lattice of 7": (49, lattice(7)),
        "lattice of 7 and more": (49, with_extra(lattice(7), 49, 12, rng)),
        "lattice of 10": (100, lattice(10)),
        "lattice of 10 and more": (100, with_extra(lattice(10)[20:], 100, 15, rng)),
        "complete": (12, list(itertools.combinations(range(12), 2))),
        "cliques": (20, [*dict.fromkeys(triples + fours), (0, 1), (2, 19), (5, 6)]),
    }


GRAPHS = graphs()


@pytest.mark.parametrize("name", GRAPHS)
def test_same_as_in_log_space(name, rng):
    p, cliques = GRAPHS[name]
    for _ in range(3):
        bias, theta = drawn(p, cliques, rng)
        log_z, cells = eliminated(bias, cliques, theta)
        assert log_z == pytest.approx(exact.log_partition(MRF(bias, cliques, theta)), rel=1e-12, abs=1e-12)
        assert cells == counted(p, cliques, math.inf)


def test_same_as_all_states(rng):
    p = 9
    for size in (0, 5, 12, 30):
        pool = [c for k in (2, 3, 4, 5) for c in itertools.combinations(range(p), k)]
        cliques = [pool[k] for k in rng.permutation(len(pool))[:size]]
        bias, theta = drawn(p, cliques, rng)
        states = np.array(list(itertools.product((0, 1), repeat=p)))
        energy = states @ bias
        for clique, value in zip(cliques, theta):
            energy = energy + value * states[:, clique].all(axis=1)
        assert eliminated(bias, cliques, theta)[0] == pytest.approx(np.logaddexp.reduce(energy), rel=1e-13)


def test_random_graphs(rng):
    for _ in range(60):
        p = int(rng.integers(1, 80))
        cliques = with_extra([], p, int(rng.integers(0, 1 + 5 * p // 4)), rng)
        bias, theta = drawn(p, cliques, rng)
        log_z, cells = eliminated(bias, cliques, theta)
        assert log_z == pytest.approx(exact.log_partition(MRF(bias, cliques, theta)), rel=1e-12)
        assert cells == counted(p, cliques, math.inf)


@pytest.mark.parametrize("strength", [30.0, 120.0, 1000.0])
@pytest.mark.parametrize("name", ["star", "lattice of 7", "lattice of 7 and more", "complete", "cliques"])
def test_extreme_parameters(name, strength, rng):
    p, cliques = GRAPHS[name]
    touched = np.bincount([i for clique in cliques for i in clique], minlength=p)
    signs = rng.choice([-1.0, 1.0], len(cliques))
    for bias, theta in (
        (rng.choice([-40.0, 40.0], p), strength * signs),
        (np.full(p, 40.0), np.full(len(cliques), -strength)),
        # All zeros and all ones weigh the same, and biases come late to balance the couplings.
        (-strength * touched / 2, np.full(len(cliques), strength)),
    ):
        truth = exact.log_partition(MRF(bias, cliques, theta))
        assert eliminated(bias, cliques, theta)[0] == pytest.approx(truth, rel=1e-10, abs=1e-10)


def test_extreme_parameters_need_log_space():
    """Negative control: products alone do not reach so far."""

    @kernel
    def always(bias, theta, listed, members, order, room):
        return True

    careless = altered(elimination.log_partition_of, products_are_safe=always)
    bias, cliques, theta = np.full(2, -400.0), [(0, 1)], np.full(1, 800.0)
    assert eliminated(bias, cliques, theta)[0] == pytest.approx(math.log(2.0), rel=1e-10)
    assert eliminated(bias, cliques, theta, function=careless)[0] != pytest.approx(math.log(2.0), rel=1e-10)


def test_log_space_gives_the_same(rng):
    @kernel
    def never(bias, theta, listed, members, order, room):
        return False

    careful = altered(elimination.log_partition_of, products_are_safe=never)
    for p, cliques in GRAPHS.values():
        bias, theta = drawn(p, cliques, rng)
        in_logs = eliminated(bias, cliques, theta, function=careful)
        assert in_logs == pytest.approx(eliminated(bias, cliques, theta), rel=1e-12)


@pytest.mark.parametrize("name", ["tree", "lattice of 7 and more", "lattice of 10", "complete", "cliques"])
def test_the_listing_does_not_matter(name, rng):
    p, cliques = GRAPHS[name]
    bias, theta = drawn(p, cliques, rng)
    log_z, cells = eliminated(bias, cliques, theta)
    for _ in range(5):
        other = eliminated(bias, cliques, theta, order=rng.permutation(len(cliques)))
        assert other == (pytest.approx(log_z, rel=1e-12), cells)


def test_only_listed_candidates_count(rng):
    p, cliques = GRAPHS["lattice of 7"]
    bias, theta = drawn(p, cliques, rng)
    some = rng.permutation(len(cliques))[:50]
    model = MRF(bias, [cliques[a] for a in some], theta[some])
    assert eliminated(bias, cliques, theta, order=some)[0] == pytest.approx(exact.log_partition(model))


def with_room_for_triples(function):
    """Candidates of three variables or fewer: none of their variables are ever held."""

    def padded(bias, theta, listed, count, members, room):
        nobody = np.full((len(members), 1), -1, members.dtype)
        return function(bias, theta, listed, count, np.concatenate([members, nobody], axis=1), room)

    return padded


@pytest.mark.parametrize("name", ["tree", "lattice of 7 and more", "lattice of 10", "complete", "cliques"])
def test_too_wide_is_a_matter_of_the_graph(name, rng):
    p, cliques = GRAPHS[name]
    bias, theta = drawn(p, cliques, rng)
    needed = counted(p, cliques, math.inf)
    plain = with_room_for_triples(elimination.log_partition_of)
    assert math.isfinite(eliminated(bias, cliques, theta, needed)[0])
    for limit in (needed - 1, needed // 3, 2 * p + 1, 2):
        expected = counted(p, cliques, limit)
        assert expected > limit
        for scale in (0.0, 1.0, 1e6):
            order = rng.permutation(len(cliques))
            log_z, cells = eliminated(bias * scale, cliques, theta * scale, limit, order, plain)
            assert math.isnan(log_z)
            assert cells == expected


@pytest.mark.parametrize("name", ["tree", "lattice of 7 and more", "lattice of 10", "complete"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_busy_variables_are_held_where_a_graph_is_too_wide(name, scale, rng):
    p, cliques = GRAPHS[name]
    bias, theta = drawn(p, cliques, rng)
    whole, needed = eliminated(bias * scale, cliques, theta * scale)
    apart = 0
    for limit in (needed - 1, needed // 2 + 2 * p, needed // 3 + 2 * p, needed // 5 + 2 * p, 2):
        log_z, cells = eliminated(bias * scale, cliques, theta * scale, limit, rng.permutation(len(cliques)))
        if math.isnan(log_z):
            assert cells > limit
            continue
        apart += 1
        assert log_z == pytest.approx(whole, rel=1e-9)
        assert cells <= limit << elimination.MOST_HELD
    assert apart >= 1


def test_a_field_that_is_forgotten_is_noticed(rng):
    """Negative control: held variables that leave the others as they are."""

    @kernel
    def aloof(state, held, bias, theta, inside, count, members, room):
        for i in range(bias.shape[0]):
            room.field[i] = bias[i]
        return -math.log(2.0) * held

    p, cliques = GRAPHS["lattice of 7 and more"]
    bias, theta = drawn(p, cliques, rng)
    whole, needed = eliminated(bias, cliques, theta)
    wrong = altered(elimination.log_partition_of, field_of=aloof)
    assert abs(eliminated(bias, cliques, theta, needed - 1, function=wrong)[0] - whole) > 0.1


def test_a_hopeless_graph_is_refused():
    cliques = list(itertools.combinations(range(100), 2))
    log_z, cells = eliminated(np.zeros(100), cliques, np.zeros(len(cliques)))
    assert math.isnan(log_z)
    assert cells >= 2**60


def test_a_room_is_used_again(rng):
    """What one graph leaves in the room makes no difference to the next."""
    p = 49
    cliques = with_extra(lattice(7), p, 30, rng)
    members = table_of(cliques)
    room = elimination.elimination_room(p, len(cliques), 1 << 16)
    for _ in range(30):
        listed = rng.permutation(len(cliques))[: rng.integers(len(cliques))]
        bias, theta = drawn(p, cliques, rng)
        again = elimination.log_partition_of(bias, theta, listed, len(listed), members, room)
        fresh = eliminated(bias, cliques, theta, 1 << 16, listed)
        np.testing.assert_equal(again, fresh)


def test_no_number_stays_none(rng):
    p, cliques = GRAPHS["lattice of 7"]
    for place in (0, 30):
        bias, theta = drawn(p, cliques, rng)
        bias[place] = np.nan
        log_z, cells = eliminated(bias, cliques, theta)
        assert math.isnan(log_z)
        assert cells == counted(p, cliques, math.inf)


def test_costs_that_do_not_follow_edges_are_noticed(rng):
    """Negative control: a key that misses an edge gives another order than the definition."""

    @kernel
    def forgetful(u, w, rows, degree, keys, per_fill, per_degree):
        degree[u] += 1
        degree[w] += 1
        rows[u, w >> 6] |= np.uint64(1) << np.uint64(w & 63)
        rows[w, u >> 6] |= np.uint64(1) << np.uint64(u & 63)

    p, cliques = GRAPHS["lattice of 10"]
    broken = altered(elimination.log_partition_of, join=forgetful)
    bias, theta = drawn(p, cliques, rng)
    assert eliminated(bias, cliques, theta, function=broken)[1] != counted(p, cliques, math.inf)


def test_bits_of_a_word():
    for i in (0, 1, 31, 63):
        assert kernels.without_lowest(np.uint64(1 << i)) == 0
        assert kernels.count_degree(np.array([1 << i, (1 << 64) - 1], np.uint64)) == 65


def test_wide_graphs_are_worth_more_orders():
    """Never more cells than the better of two orders, often fewer, and the same for the same graph."""
    rng, fewer = np.random.default_rng(8), 0
    for _ in range(8):
        cliques = with_extra(lattice(10), 100, 40, rng)
        members = table_of(cliques)
        room = elimination.elimination_room(100, len(cliques), 1 << 10)._replace(limit=1 << 50)
        cells = ordering.count_cells(np.arange(len(cliques)), len(cliques), members, room)
        two = counted(100, cliques, math.inf)
        assert cells <= two
        fewer += cells < 0.8 * two
        shuffled = rng.permutation(len(cliques))
        assert ordering.count_cells(shuffled, len(cliques), members, room) == cells
    assert fewer >= 3


def test_log_z_with_another_order(rng):
    cliques = with_extra(lattice(10), 100, 18, np.random.default_rng(3))
    bias, theta = drawn(100, cliques, rng)
    log_z, cells = eliminated(bias, cliques, theta)
    assert 2 * cells < ordering.WORTH_MORE < counted(100, cliques, math.inf)
    assert log_z == pytest.approx(exact.log_partition(MRF(bias, cliques, theta)), rel=1e-11)
