"""Candidate cliques and their sums, against brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.data import read_data
from edgewise.errors import DataError
from edgewise.features import Features, Statistics, resolve_features, sufficient_statistics

NAMES = ["sleep", "mood", "work", "rest"]


@pytest.mark.parametrize("p", range(2, 40))
def test_pairs_come_in_the_order_of_triu_indices(p: int) -> None:
    features = Features.pairs(p)
    expected = list(itertools.combinations(range(p), 2))
    assert features.n_cliques == len(expected)
    assert [features.clique(k) for k in range(len(expected))] == expected
    assert [features.index(pair) for pair in expected] == list(range(len(expected)))
    np.testing.assert_array_equal(features.members, np.stack(np.triu_indices(p, 1), axis=1))
    assert features.members.dtype == np.int32


@given(st.integers(2, 10**7).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p * (p - 1) // 2 - 1))))
@settings(max_examples=500)
def test_index_and_clique_are_inverse_for_any_number_of_variables(case: tuple[int, int]) -> None:
    p, index = case
    features = Features.pairs(p)
    i, j = features.clique(index)
    assert 0 <= i < j < p
    assert features.index((j, i)) == index
    assert features.table is None


@pytest.mark.parametrize("order", [3, 4])
def test_all_cliques_up_to_an_order(order: int) -> None:
    features = Features.up_to(6, order)
    expected = [clique for size in range(2, order + 1) for clique in itertools.combinations(range(6), size)]
    assert [features.clique(k) for k in range(features.n_cliques)] == expected
    assert [features.index(clique[::-1]) for clique in expected] == list(range(len(expected)))
    assert features.max_order == order
    assert not features.pairs_only
    assert not features.all_pairs
    assert (features.members[0] == [0, 1, *[-1] * (order - 2)]).all()


def test_listed_cliques_are_sorted_and_found_by_name() -> None:
    features = Features.listed(4, [("rest", "sleep", "mood"), ["work", "mood"], (0, np.int64(3))], NAMES)
    assert [features.clique(k) for k in range(3)] == [(0, 3), (1, 2), (0, 1, 3)]
    assert features.index(["mood", "work"], NAMES) == 1
    assert features.label(2, NAMES) == "sleep -- mood -- rest"
    assert features.label(2) == "0 -- 1 -- 3"
    assert Features.pairs(4).label(0, NAMES) == "sleep -- mood"


def test_what_the_features_argument_may_be() -> None:
    assert resolve_features(None, 4).all_pairs
    assert resolve_features(2, 4).all_pairs
    assert resolve_features(np.int64(3), 4).n_cliques == 6 + 4
    assert resolve_features([("mood", "rest")], 4, NAMES).clique(0) == (1, 3)
    ready = Features.pairs(4)
    assert resolve_features(ready, 4) is ready


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (1, "between 2 and the number of variables (4), not 1"),
        (5, "between 2 and the number of variables (4), not 5"),
        (True, "None, a clique size such as 3, or a list"),
        ("pairs", "not 'pairs'"),
        (2.5, "not 2.5"),
        ([], "is empty"),
        (["ab"], "A clique is a list"),
        ([3], "A clique is a list"),
        ([(0, 0)], "sleep -- sleep must have two or more different variables"),
        ([(0,)], "two or more different variables"),
        ([(0, 4)], "There is no variable 4; the 4 variables are numbered from 0"),
        ([(-1, 2)], "There is no variable -1"),
        ([("mood", "money")], "no variable named 'money'. The variables are: sleep, mood"),
        ([(0, 1.5)], "by its name or number, not 1.5"),
        ([(True, 2)], "not True"),
        ([(0, 1), ("mood", "sleep")], "sleep -- mood is listed twice"),
        (Features.pairs(5), "made for 5 variables and the data have 4"),
    ],
)
def test_features_that_cannot_be(argument: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        resolve_features(argument, 4, NAMES)
    assert words in str(caught.value)


def test_too_many_cliques_are_refused_before_they_are_made() -> None:
    with pytest.raises(DataError, match="166,666,665,000 candidates; list"):
        Features.up_to(10_000, 3)


def test_cliques_that_are_not_candidates() -> None:
    with pytest.raises(DataError, match="candidates are all pairs"):
        Features.pairs(4).index((0, 1, 2))
    with pytest.raises(DataError, match="mood -- work is not among the 1 candidates"):
        Features.listed(4, [(0, 1)]).index(("work", "mood"), NAMES)
    for index in (-1, 6):
        with pytest.raises(IndexError, match="there are 6"):
            Features.pairs(4).clique(index)


def brute_force(bits: np.ndarray, weights: np.ndarray, features: Features) -> list[float]:
    return [
        math.fsum(weight for row, weight in zip(bits, weights) if all(row[i] for i in features.clique(k)))
        for k in range(features.n_cliques)
    ]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["pairs", "triples", "fours", "listed"])
def test_sums_equal_brute_force(kind: str, weighted: bool, rng: np.random.Generator) -> None:
    bits = (rng.random((203, 7)) < 0.6).astype(np.uint8)
    features = {
        "pairs": Features.pairs(7),
        "triples": Features.up_to(7, 3),
        "fours": Features.up_to(7, 4),
        "listed": Features.listed(7, [(0, 3), (1, 2, 4, 6), (2, 5, 6), (3, 4)]),
    }[kind]
    weights = rng.gamma(2.0, size=203) if weighted else np.ones(203)
    data = read_data(bits, sample_weight=weights if weighted else None)
    statistics = sufficient_statistics(data, features)
    np.testing.assert_allclose(statistics.cliques, brute_force(bits, weights, features), rtol=1e-12)
    np.testing.assert_allclose(statistics.singles, weights @ bits, rtol=1e-12)
    assert statistics.n_rows == pytest.approx(weights.sum())
    assert statistics.cliques.dtype == statistics.singles.dtype == np.float64


def test_weights_are_counts_of_repeated_rows(rng: np.random.Generator) -> None:
    bits = rng.integers(0, 2, (50, 5))
    counts = rng.integers(0, 4, 50)
    features = Features.up_to(5, 3)
    weighted = sufficient_statistics(read_data(bits, sample_weight=counts), features)
    repeated = sufficient_statistics(read_data(np.repeat(bits, counts, axis=0)), features)
    np.testing.assert_array_equal(weighted.cliques, repeated.cliques)
    np.testing.assert_array_equal(weighted.singles, repeated.singles)
    assert weighted.n_rows == repeated.n_rows


def test_sums_over_many_blocks_are_exact(rng: np.random.Generator) -> None:
    bits = (rng.random((150_001, 4)) < 0.97).astype(np.uint8)
    features = Features.up_to(4, 3)
    weights = rng.integers(1, 9, len(bits)).astype(float)
    for given_weights in (None, weights):
        statistics = sufficient_statistics(read_data(bits, sample_weight=given_weights), features)
        factor = np.ones(len(bits)) if given_weights is None else weights
        for k in range(features.n_cliques):
            assert statistics.cliques[k] == factor[bits[:, features.clique(k)].all(axis=1)].sum()


def test_statistics_of_no_data() -> None:
    none = Statistics.none(Features.up_to(4, 3))
    assert none.n_rows == 0
    assert none.singles.shape == (4,)
    assert none.cliques.shape == (10,)
    assert not none.cliques.any()
