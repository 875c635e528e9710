"""Damaged files of every kind: the door gives data or one of its own errors, never anything else."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.data import Data, read_data
from edgewise.errors import DataError, FileError

TABLE = pd.DataFrame(np.random.default_rng(3).integers(0, 2, (30, 4)), columns=["a", "b", "c", "d"])
WORDS = TABLE.replace({0: "no, never", 1: "yes"})


def _bytes_of(kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "npz":
        np.savez_compressed(buffer, X=TABLE.to_numpy(), names=np.array(list(TABLE)))
    elif kind == "npy":
        np.save(buffer, TABLE.to_numpy())
    elif kind == "parquet":
        WORDS.to_parquet(buffer)
    elif kind == "csv.gz":
        buffer.write(gzip.compress(TABLE.to_csv(index=False).encode()))
    else:
        buffer.write((TABLE if kind == "csv" else WORDS).to_csv(index=False).encode())
    return buffer.getvalue()


GOOD = {kind: _bytes_of(kind) for kind in ("csv", "quoted csv", "csv.gz", "npz", "npy", "parquet")}


def outcome(content: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = read_data(io.BytesIO(content), missing="drop", constant="keep")
        except (DataError, FileError):
            return "refused"
    assert isinstance(data, Data)
    assert (data.values() < data.scales.levels).all()
    return "read"


@pytest.mark.parametrize("kind", GOOD)
def test_the_undamaged_file_is_read(kind: str) -> None:
    assert outcome(GOOD[kind]) == "read"


@pytest.mark.parametrize("kind", GOOD)
@given(
    damage=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=3),
    end=st.none() | st.floats(0, 1),
)
@settings(max_examples=60)
def test_damage_never_escapes(kind: str, damage: list[tuple[float, bytes]], end: float | None) -> None:
    content = bytearray(GOOD[kind])
    for place, patch in damage:
        start = int(place * len(content))
        content[start : start + len(patch)] = patch
    outcome(bytes(content) if end is None else bytes(content[: int(end * len(content))]))


@given(st.text(alphabet='01,;\t\n\r" yn.-NA?é\0', max_size=60))
@settings(max_examples=400)
def test_any_text_is_read_or_refused(text: str) -> None:
    outcome(text.encode())
