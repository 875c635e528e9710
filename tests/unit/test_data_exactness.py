"""What the data door must not get wrong in silence: which column, which cell is blank, which number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from edgewise.data import read_data
from edgewise.errors import DataError

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
