"""What the data door must not get wrong in silence: which column, which cell is blank, which number."""

from __future__ import annotations

import gc
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from edgewise import NodewiseLasso, PseudoLikelihoodLasso, SpikeSlabMRF
from edgewise.data import encode_rows, read_data
from edgewise.errors import DataError, FileError

GOOD = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
MASK = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]], bool)


# Columns of Parquet files.


def parquet(names: list[str], path: Path) -> Path:
    columns = [pa.array(values) for values in ([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0])]
    pyarrow.parquet.write_table(pa.Table.from_arrays(columns, names=names), path)
    return path


@pytest.mark.parametrize("names", [["a", "a", "b"], ["b", "a", "b"], ["a", "a.b", "c"], ["a.b", "a", "c"]])
@pytest.mark.parametrize("columns", [[1, 2], [0, 1], [2, 1]])
def test_parquet_columns_by_number_are_those_columns(names: list[str], columns: list[int], tmp_path: Path):
    wanted = [[[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]][column] for column in columns]
    path = parquet(names, tmp_path / "t.parquet")
    if len({names[column] for column in columns}) < 2:
        with pytest.raises(DataError, match="must differ"):
            read_data(path, columns=columns)
        return
    data = read_data(path, columns=columns)
    assert data.names == tuple(names[column] for column in columns)
    assert data.values().T.tolist() == wanted


@pytest.mark.filterwarnings("error")
def test_a_parquet_file_is_closed_again(tmp_path: Path) -> None:
    path = parquet(["a", "b", "b"], tmp_path / "t.parquet")
    with pytest.raises(DataError, match="must differ"):
        read_data(path)
    read_data(path, columns=[0, 1])
    gc.collect()


# Masks.


class Wrapped:
    """An object that NumPy takes for an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array


MASKED = np.ma.array(GOOD, mask=MASK)
MASKED_SOURCES = {
    "array": MASKED,
    "rows": list(MASKED),
    "rows and lists": [GOOD[0].tolist(), *MASKED[1:]],
    "words": [np.ma.array(row, mask=mask) for row, mask in zip(np.array(["n", "y"])[GOOD], MASK)],
    "cells": [[0, 1, 0], [1, np.ma.masked, 0], [1, 1, 1], [0, 0, 1]],
    "word cells": [["n", "y", "n"], ["y", np.ma.masked, "n"], ["y", "y", "y"], ["n", "n", "y"]],
    "object": Wrapped(MASKED),
    "rows of objects": [Wrapped(row) for row in MASKED],
    "mapping": {"x0": MASKED[:, 0], "x1": MASKED[:, 1], "x2": MASKED[:, 2]},
    "structured": np.ma.array(
        [tuple(row) for row in GOOD.tolist()],
        dtype=[("x0", int), ("x1", int), ("x2", int)],
        mask=[tuple(row) for row in MASK.tolist()],
    ),
}


@pytest.mark.parametrize("kind", MASKED_SOURCES)
@pytest.mark.filterwarnings("error")
def test_masked_cells_are_blank(kind: str) -> None:
    source = MASKED_SOURCES[kind]
    with pytest.raises(DataError, match=r"1 cell in 1 row is blank, most in 'x1' \(1\)"):
        read_data(source)
    assert read_data(source, missing="drop").values().tolist() == GOOD[[0, 2, 3]].tolist()
    levels = [("n", "y")] * 3 if "word" in kind else [(0, 1)] * 3
    blank = encode_rows(source, ["x0", "x1", "x2"], levels, allow_missing=True) < 0
    assert blank.tolist() == MASK.tolist()


@pytest.mark.parametrize(
    "weights",
    [
        np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 0, 1, 0]),
        Wrapped(np.ma.array([1, 2, 3, 4], mask=[0, 0, 1, 0])),
        [1.0, 2.0, np.ma.masked, 4.0],
    ],
)
@pytest.mark.filterwarnings("error")
def test_masked_weights_are_refused(weights: Any) -> None:
    with pytest.raises(DataError, match="sample_weight is masked at row 2"):
        read_data(GOOD, sample_weight=weights)


def test_a_masked_column_of_weights_is_refused() -> None:
    array = np.ma.array(np.column_stack([GOOD, [1, 2, 3, 4]]), mask=False)
    array[2, 3] = np.ma.masked
    with pytest.raises(DataError, match=r"sample_weight is (masked|nan) at row 2"):
        read_data(array, sample_weight="x3")


# Weights that would be lost.


@pytest.mark.parametrize("estimator", [NodewiseLasso(), PseudoLikelihoodLasso(), SpikeSlabMRF()])
@pytest.mark.parametrize("own", [None, [1, 2, 1, 2]])
def test_weights_beside_data_that_have_been_read_are_refused(estimator: Any, own: Any) -> None:
    data = read_data(GOOD, sample_weight=own)
    with pytest.raises(DataError, match="have been read already; give names, sample_weight"):
        estimator.fit(data, sample_weight=[1, 0, 0, 1])


# Numbers that floats cannot tell apart.

LARGE = 2**53
TEXTS = {
    "plain": "id,b\n{0},0\n{1},1\n{2},0\n",
    "quoted": 'id,b\n"{0}",0\n"{1}","1"\n{2},0\n\n',
    "blank": 'id,b\n{0},0\n{1},"1"\n\n{2},0\n,1\n',
    "point": 'id,b\n{0}.0,0\n{1}.0,"1"\n\n{2}.0,0\n,1\n',
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("first", [LARGE, -LARGE - 2, 2**64, 10**30])
def test_large_integers_in_text_stay_apart(kind: str, first: int) -> None:
    text = TEXTS[kind].format(first, first + 1, first + 2)
    with pytest.raises(DataError, match=rf"'id' has 3 levels.*{first + 2}"):
        read_data(io.StringIO(text), missing="drop")


def test_two_large_integers_are_two_levels() -> None:
    data = read_data(io.StringIO(f"id,b\n{LARGE},0\n{LARGE + 1},1\n{LARGE + 1},0\n"))
    assert data.levels[0] == (LARGE, LARGE + 1)
    assert data.column(0).tolist() == [0, 1, 1]


def test_large_integers_with_blanks_elsewhere_stay_apart(tmp_path: Path) -> None:
    ids = [LARGE, LARGE + 1, LARGE + 2, None]
    table = pa.table({"id": pa.array(ids, pa.int64()), "b": [0, 1, 0, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table, [[i, j] for i, j in zip(ids[:3], [0, 1.0, 0])]):
        with pytest.raises(DataError, match=r"'(id|x0)' has 3 levels"):
            read_data(source, missing="drop")


def test_numbers_spelled_in_several_ways_are_one_level() -> None:
    data = read_data(io.StringIO("a,b\n1,0\n1.0,1\n+1,0\n1e0,1\n01,0\n0,1\n"))
    assert data.levels == ((0, 1), (0, 1))


# Sparse matrices.


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "bsr"])
@pytest.mark.parametrize("wrong", [-1, 7])
def test_sparse_indices_outside_the_matrix_are_refused(kind: str, wrong: int) -> None:
    matrix = scipy.sparse.csr_array(GOOD).asformat(kind)
    if kind == "coo":
        matrix.coords[0][1] = wrong
    elif kind == "lil":
        matrix.rows[2][0] = wrong
    else:
        matrix.indices[0] = wrong
    with pytest.raises(DataError, match=r"index.*outside the matrix.*build it anew"):
        read_data(matrix)


def test_sparse_pointers_outside_the_matrix_are_refused() -> None:
    matrix = scipy.sparse.csr_array(GOOD)
    matrix.indptr[1] = 100
    with pytest.raises(DataError, match="an index pointer points outside"):
        read_data(matrix)


def test_a_sparse_matrix_is_left_as_it_is() -> None:
    matrix = scipy.sparse.csr_array(GOOD)
    indices, pointers = matrix.indices.copy(), matrix.indptr.copy()
    assert read_data(matrix).values().tolist() == GOOD.tolist()
    assert matrix.indices.tolist() == indices.tolist()
    assert matrix.indptr.tolist() == pointers.tolist()


# Archives.


def test_a_shifted_array_in_an_archive_is_noticed(tmp_path: Path, rng: np.random.Generator) -> None:
    np.savez(tmp_path / "t.npz", x=rng.integers(0, 2, (400, 5)))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[content.find(b"\x93NUMPY") + 8] -= 16
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        read_data(tmp_path / "t.npz")


def test_blanks_of_pandas_stay_blank() -> None:
    frame = pd.DataFrame({"a": pd.array([0, 1, None, 1], "Int64"), "b": [0, 1, 1, 0]})
    assert read_data(frame, missing="drop").n_rows == 3
