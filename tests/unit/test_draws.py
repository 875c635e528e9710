"""The sparse store of draws, against a dense table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgewise.draws import Draws


def make(dense: np.ndarray, rng: np.random.Generator) -> Draws:
    rows, columns = np.nonzero(dense)
    return Draws(
        np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int64),
        columns.astype(np.int32),
        dense[rows, columns],
        rng.normal(size=(len(dense), 4)),
        rng.random(len(dense)),
        rng.random(len(dense)),
    )


@pytest.fixture
def dense(rng: np.random.Generator) -> np.ndarray:
    table = rng.normal(size=(11, 6)) * (rng.random((11, 6)) < 0.4)
    table[3] = 0
    table[:, 5] = 0
    table[0, 4] = 1.5
    return table


def same(first: Draws, second: Draws) -> None:
    for name in ("indptr", "indices", "values", "biases", "inclusion_rate", "slab_scale"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_reading_draws_and_columns(dense: np.ndarray, rng: np.random.Generator) -> None:
    draws = make(dense, rng)
    assert len(draws) == 11
    np.testing.assert_array_equal(draws.n_edges, (dense != 0).sum(axis=1))
    for clique in range(6):
        np.testing.assert_array_equal(draws.column(clique), dense[:, clique])
    for draw in range(11):
        indices, values = draws.active(draw)
        np.testing.assert_array_equal(indices, np.flatnonzero(dense[draw]))
        np.testing.assert_array_equal(values, dense[draw][dense[draw] != 0])


@pytest.mark.parametrize(
    "part", [slice(None), slice(2, 7), slice(3, 4), slice(-3, None), slice(5, 5), slice(7, 2)]
)
def test_slices(part: slice, dense: np.ndarray, rng: np.random.Generator) -> None:
    draws = make(dense, rng)
    cut = draws[part]
    assert len(cut) == len(dense[part])
    for clique in range(6):
        np.testing.assert_array_equal(cut.column(clique), dense[part][:, clique])
    np.testing.assert_array_equal(cut.biases, draws.biases[part])
    np.testing.assert_array_equal(cut.slab_scale, draws.slab_scale[part])


def test_only_consecutive_draws_can_be_cut_out(dense: np.ndarray, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="step 1"):
        make(dense, rng)[::2]


@pytest.mark.parametrize("cuts", [[0, 4, 11], [0, 0, 3, 3, 4, 11], [0, 11]])
def test_pieces_join_to_the_whole(cuts: list[int], dense: np.ndarray, rng: np.random.Generator) -> None:
    draws = make(dense, rng)
    pieces = [draws[start:stop] for start, stop in itertools.pairwise(cuts)]
    same(Draws.concatenate(pieces), draws)
    same(Draws.concatenate([Draws.empty(4), *pieces, Draws.empty(4)]), draws)


def test_no_draws() -> None:
    empty = Draws.empty(4)
    assert len(empty) == 0
    assert empty.column(2).shape == (0,)
    same(Draws.concatenate([empty, empty]), empty)
