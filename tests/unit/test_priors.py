"""Priors: what they say about every candidate, what they refuse, and how they are written down."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior

NAMES = ["a", "b", "c", "d"]
PAIRS = Features.pairs(4)


def test_defaults_are_those_of_the_paper() -> None:
    resolved = Prior().resolve(PAIRS)
    assert (resolved.beta_a, resolved.beta_b) == (5, 5)
    assert (resolved.gamma_shape, resolved.gamma_rate) == (5, 5)
    assert (resolved.bias_sd, resolved.p0, resolved.sigma0) == (10, 0.5, 1)
    assert not resolved.fixed_p0
    assert not resolved.fixed_sigma0
    assert (resolved.status == COMMON).all()
    np.testing.assert_array_equal(resolved.prior_odds(), np.ones(6))


def test_fixed_values() -> None:
    prior = Prior(inclusion=FixedInclusion(0.2), slab=FixedSlab(0.7), bias=NormalBias(3))
    resolved = prior.resolve(PAIRS)
    assert resolved.fixed_p0
    assert resolved.fixed_sigma0
    assert (resolved.p0, resolved.sigma0, resolved.bias_sd) == (0.2, 0.7, 3)
    assert math.isnan(resolved.gamma_rate)
    np.testing.assert_allclose(resolved.prior_odds(), 0.25)


def test_learned_values_start_from_the_prior() -> None:
    resolved = Prior(BetaInclusion(1, 3), GammaSlab(2, 8)).resolve(PAIRS)
    assert resolved.p0 == 0.25
    assert resolved.sigma0 == 2
    np.testing.assert_allclose(resolved.prior_odds(), 1 / 3)


def test_single_cliques_by_name_number_and_matrix() -> None:
    matrix = np.full((4, 4), np.nan)
    matrix[0, 1] = matrix[1, 0] = 0.9
    matrix[2, 3] = matrix[3, 2] = 0
    matrix[0, 2] = matrix[2, 0] = 1
    for given in ({("b", "a"): 0.9, (2, 3): 0, ("a", "c"): 1}, matrix):
        resolved = Prior(edge_probability=given).resolve(PAIRS, NAMES)
        expected = [SEPARATE, FORCED, COMMON, COMMON, COMMON, FORBIDDEN]
        assert resolved.status.tolist() == expected
        np.testing.assert_allclose(resolved.log_odds, [math.log(9), 0, 0, 0, 0, 0])
        np.testing.assert_allclose(resolved.prior_odds(), [9, np.inf, 1, 1, 1, 0])


def test_forced_and_forbidden_cliques_of_any_size() -> None:
    features = Features.up_to(4, 3)
    prior = Prior(forced=[("a", "b", "c"), (0, 1)], forbidden=[("c", "d")], edge_probability={(0, 1): 1.0})
    resolved = prior.resolve(features, NAMES)
    assert np.flatnonzero(resolved.status == FORCED).tolist() == [0, 6]
    assert np.flatnonzero(resolved.status == FORBIDDEN).tolist() == [5]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BetaInclusion(0, 1), "BetaInclusion's a must be a positive number, not 0"),
        (lambda: BetaInclusion(1, math.inf), "BetaInclusion's b"),
        (lambda: FixedInclusion(1), "strictly between 0 and 1, not 1"),
        (lambda: FixedInclusion("half"), "strictly between 0 and 1, not 'half'"),  # type: ignore[arg-type]
        (lambda: GammaSlab(shape=-1), "GammaSlab's shape"),
        (lambda: GammaSlab(rate=math.nan), "GammaSlab's rate"),
        (lambda: FixedSlab("wide"), "FixedSlab's sigma0"),  # type: ignore[arg-type]
        (lambda: NormalBias(0), "NormalBias's sd"),
        (
            lambda: Prior(inclusion=0.5),
            "FixedInclusion(...), BlockInclusion(...) or AttributeInclusion(...), not 0.5",
        ),  # type: ignore[arg-type]
        (lambda: Prior(slab=BetaInclusion()), "slab must be GammaSlab"),  # type: ignore[arg-type]
        (lambda: Prior(bias=10), "bias must be NormalBias"),  # type: ignore[arg-type]
    ],
)
def test_parts_that_cannot_be(make: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (Prior(edge_probability={("a", "b"): 1.5}), "clique a -- b is 1.5"),
        (Prior(edge_probability={("a", "b"): math.nan}), "clique a -- b is nan"),
        (Prior(edge_probability={("a", "b"): "high"}), "clique a -- b is 'high'"),  # type: ignore[dict-item]
        (Prior(edge_probability={("a", "b"): 0.1, ("b", "a"): 0.2}), "names clique a -- b twice"),
        (Prior(edge_probability={("a", "z"): 0.5}), "no variable named 'z'"),
        (Prior(edge_probability=np.full((3, 3), 0.5)), "symmetric 4 x 4 matrix"),
        (Prior(edge_probability=np.triu(np.full((4, 4), 0.5))), "symmetric 4 x 4 matrix"),
        (Prior(edge_probability=np.full((4, 4), -0.5)), "clique a -- b is -0.5"),
        (Prior(forced=[("a", "b")], forbidden=[("b", "a")]), "two different things about clique a -- b"),
        (Prior(forced=[("a", "b")], edge_probability={("a", "b"): 0.3}), "two different things"),
        (Prior(forced=[("a", "b", "c")]), "candidates are all pairs"),
    ],
)
def test_contradictions_are_refused_by_name(prior: Prior, words: str) -> None:
    with pytest.raises(DataError) as caught:
        prior.resolve(PAIRS, NAMES)
    assert words in str(caught.value)


PRIORS = [
    Prior(),
    Prior(FixedInclusion(0.1), FixedSlab(2), NormalBias(1)),
    Prior(
        edge_probability={("a", "b"): 0.9, (np.int64(2), 3): 0.25}, forced=[("a", "c")], forbidden=[(1, 2)]
    ),
    Prior(edge_probability=np.where(np.eye(4) == 1, np.nan, 0.3)),
]


@pytest.mark.parametrize("prior", PRIORS)
def test_a_prior_survives_being_written_down(prior: Prior) -> None:
    again = Prior.from_dict(json.loads(json.dumps(prior.to_dict())))
    assert again == prior
    assert hash(again) == hash(prior)
    first, second = prior.resolve(PAIRS, NAMES), again.resolve(PAIRS, NAMES)
    np.testing.assert_array_equal(first.status, second.status)
    np.testing.assert_array_equal(first.log_odds, second.log_odds)
    assert (first.beta_a, first.p0, first.sigma0) == pytest.approx(
        (second.beta_a, second.p0, second.sigma0), nan_ok=True
    )


def test_different_priors_differ() -> None:
    assert len(set(PRIORS)) == len(PRIORS)
    assert Prior() != "Prior()"
