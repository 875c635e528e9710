"""Scales: what their scores and thresholds promise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgewise.errors import DataError
from edgewise.scales import BINARY_SCALE, MOST_LEVELS, Scale, Scales, check_cliques, contrasts


@pytest.mark.parametrize("levels", [2, 3, 5, 20])
def test_every_difference_of_two_thresholds_has_variance_one(levels):
    basis = contrasts(levels)
    assert basis.shape == (levels, levels - 1)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)
    for a, b in itertools.combinations(range(levels), 2):
        assert ((basis[a] - basis[b]) ** 2).sum() == pytest.approx(1)


@pytest.mark.parametrize("first", [2, 3, 4])
@pytest.mark.parametrize("second", [3, 5])
def test_every_log_odds_ratio_has_the_variance_of_the_slab(first, second):
    u, v = contrasts(first), contrasts(second)
    for a, b in itertools.combinations(range(first), 2):
        for c, d in itertools.combinations(range(second), 2):
            # Var of (u_a - u_b)' A (v_c - v_d) with independent entries of variance one.
            assert (np.outer(u[a] - u[b], v[c] - v[d]) ** 2).sum() == pytest.approx(1)


def test_the_thresholds_of_a_binary_variable_are_its_bias():
    assert BINARY_SCALE.basis.ravel().tolist() == [0, 1]
    assert BINARY_SCALE.scores.ravel().tolist() == [0, 1]
    spread = Scale("nominal", ("a", "b")).basis.ravel()
    assert spread[1] - spread[0] == pytest.approx(1)


def test_scores_stay_where_a_level_never_occurs():
    assert Scale("ordinal", (1, 2, 4, 5), (0, 1, 3, 4)).scores.ravel().tolist() == [0, 0.25, 0.75, 1]


@pytest.mark.parametrize(
    "scale",
    [
        BINARY_SCALE,
        Scale("ordinal", (1, 2, 4), (0, 1, 3)),
        Scale("nominal", ("a", "b", "c", "d")),
        Scale("blume-capel", (0, 1, 2, 3), (), 2),
    ],
)
def test_scores_are_thresholds_up_to_a_constant(scale):
    rest = scale.scores - scale.basis @ scale.projection
    np.testing.assert_allclose(rest, np.broadcast_to(rest[0], rest.shape), atol=1e-12)
    assert Scale.from_dict(scale.to_dict()) == scale


def test_blume_capel_thresholds_count_from_the_reference():
    scale = Scale("blume-capel", (0, 1, 2), (), 1)
    assert scale.basis.tolist() == [[-0.5, 0.25], [0, 0], [0.5, 0.25]]
    assert scale.n_thresholds == 2


def test_places_of_parameters():
    scales = Scales((Scale("ordinal", (0, 1, 2)), Scale("nominal", tuple("abcd")), BINARY_SCALE))
    members = np.array([[0, 1], [0, 2], [1, 2]])
    assert scales.weight_start(members).tolist() == [0, 3, 4, 7]
    assert scales.bias_start.tolist() == [0, 2, 5, 6]
    assert scales.n_states == 24
    assert not scales.all_binary
    assert Scales.binary(3).all_binary


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rank", (0, 1)), "no kind of variable 'rank'; the kinds are binary, ordinal"),
        (("binary", (0, 1, 2)), "has 2 levels, not 3"),
        (("ordinal", (0,)), f"has 2 to {MOST_LEVELS} levels, not 1"),
        (("nominal", tuple(range(21))), f"has 2 to {MOST_LEVELS} levels, not 21"),
        (("nominal", ("a", "a")), "'a', 'a' must differ"),
        (("ordinal", (1, 2, 3), (0, 2, 1)), "3 ascending numbers"),
        (("ordinal", (1, 2, 3), (), 1), "has no reference level"),
        (("blume-capel", (1, 2, 3), (), 3), "reference of 3 levels lies between 0 and 2"),
        (("blume-capel", (1, 2)), "three levels or more"),
    ],
)
def test_refused(arguments, words):
    with pytest.raises(DataError, match=words):
        Scale(*arguments)


def test_larger_cliques_and_large_matrices_are_refused_by_name():
    big = Scale("nominal", tuple(range(12)))
    scales = Scales((big, big, Scale("ordinal", (0, 1, 2))))
    with pytest.raises(DataError, match=r"'a' \(12 levels\) and 'b' \(12 levels\).*121.*Merge levels"):
        check_cliques(scales, np.array([[0, 1], [0, 2]]), ["a", "b", "c"])
    with pytest.raises(DataError, match="three and more variables are for variables with two levels; 'a'"):
        check_cliques(scales, np.array([[0, 1, 2]]), ["a", "b", "c"])
