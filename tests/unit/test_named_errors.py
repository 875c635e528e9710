"""What used to end in an exception of somebody else's: each is a DataError or FileError with the way out."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from edgewise import SpikeSlabMRF
from edgewise.data import body, encode_rows, memory, read_data
from edgewise.data.selection import select
from edgewise.engines.common import read_settings
from edgewise.engines.particle import ParticleSettings
from edgewise.errors import DataError, EdgewiseWarning, FileError, printable
from edgewise.features import resolve_features
from edgewise.priors import BetaInclusion, FixedSlab, GammaSlab, NormalBias
from edgewise.run.options import RunOptions

GOOD = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
LONG = "x" * 200_000
LISTS = pa.array([[0], [1], [0], [1]])
STRUCTS = pa.array([{"k": 0}, {"k": 1}, {"k": 0}, {"k": 1}])


# Text.


@pytest.mark.parametrize(
    "text",
    [
        f"a,{LONG}\n0,1\n1,0\n",
        f'a,"{LONG}"\n0,1\n1,0\n',
        f'a,b\n0,"{LONG}"\n1,0\n',
        f'a,b\n0,1\n1,"{LONG}"\n1,0,0\n',
    ],
)
def test_very_long_fields_are_read_or_refused_by_name(text: str) -> None:
    with pytest.raises((DataError, FileError)) as caught:
        read_data(io.StringIO(text), columns=["a", "b"])
    assert len(str(caught.value)) < 2000
    assert "csv" not in type(caught.value).__module__


def test_a_very_long_name_is_a_name() -> None:
    assert read_data(io.StringIO(f"a,{LONG}\n0,1\n1,0\n1,1\n")).names == ("a", LONG)


def peak(call: Any) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("start", "line", "words"),
    [
        (b"", b",", "has a line of 64,000,002 columns or more at its beginning, which take 128 GB or more"),
        (b"", b"0", "a line at its beginning has more than 64 MB"),
        (b"", b'"', "a line at its beginning has more than 64 MB"),
        (b"a,b\n", b"0,1,", "has a line of 32,000,001 columns or more"),
        (b"a,b\n" + b"0,1\n" * 20_000, b"0,1,", r"line 20002 has \d+ or more fields .* names 2 columns"),
        (b"a,b\n" + b"0,1\n" * 20_000, b"0", "line 20002 has more than 64 MB"),
        (b'a,b\n"0",1\n' + b"0,1\n" * 20_000, b"0,1,", r"line 20003 has 1\d+ or more fields"),
    ],
    ids=["commas", "zeros", "quotes", "second", "below", "below-zeros", "below-quotes"],
)
def test_a_line_of_200_megabytes(start: bytes, line: bytes, words: str, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "t.csv.gz", "wb", 1) as file:
        file.write(start)
        for _ in range(20):
            file.write(line * (10_000_000 // len(line)))

    def refused() -> None:
        with pytest.raises((DataError, FileError), match=words):
            read_data(tmp_path / "t.csv.gz")

    assert peak(refused) < 300e6


def test_wide_tables_and_long_cells_are_no_lines_without_end() -> None:
    names = ",".join(f"n{k}" for k in range(200_000))
    rows = ["0,1," * 99_999 + "1,0", "1,0," * 99_999 + "1,1", "1,1," * 99_999 + "0,1"]
    wide = "\n".join([names, *rows, ""])
    assert read_data(io.StringIO(wide), columns=["n0", "n1", "n199998"]).n_rows == 3
    text = "a,b,c\n" + f'0,1,"{"x," * 200_000}"\n1,0,"y"\n0,0,"y"\n'
    assert read_data(io.StringIO(text), columns=["a", "b"]).n_rows == 3


# Streams.


class Failing(io.RawIOBase):
    name = "wire.csv"

    def read(self, size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


class Odd:
    def read(self) -> int:
        return 3


def closed() -> io.StringIO:
    stream = io.StringIO("a,b\n0,1\n1,0\n")
    stream.close()
    return stream


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (closed, "is closed; open it"),
        (Failing, r"wire.csv cannot be read \(Input/output error\)"),
        (Odd, "gives int instead of text or bytes"),
        (lambda: io.StringIO("a\ud800,b\n0,1\n"), "halves of characters"),
    ],
)
def test_streams_that_cannot_be_read(stream: Any, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read_data(stream())


def test_a_stream_that_only_writes(tmp_path: Path) -> None:
    with open(tmp_path / "t.csv", "w") as stream, pytest.raises(FileError, match=r"t.csv cannot be read"):
        read_data(stream)


def test_an_unknown_home() -> None:
    with pytest.raises(FileError, match=r"~nosuchuser/x.csv.*no user"):
        read_data("~nosuchuser/x.csv")


# Names and columns.


def test_halves_of_characters_in_names() -> None:
    with pytest.raises(DataError, match=r"'a\\ud800'.*half a character.*rename"):
        read_data(GOOD, names=["a\ud800", "b", "c"])


@pytest.mark.parametrize("cells", [LISTS, STRUCTS])
def test_nested_arrow_columns(cells: Any, tmp_path: Path) -> None:
    table = pa.table({"a": cells, "b": [0, 1, 1, 0], "c": [1, 1, 0, 0]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for source in (tmp_path / "t.parquet", table, frame):
        with pytest.raises(DataError, match="column 'a' holds lists or other containers"):
            read_data(source)
        with pytest.raises(DataError, match="column 'a' holds lists or other containers"):
            encode_rows(source, ["a", "b"], [(0, 1), (0, 1)])
        assert read_data(source, drop_columns=["a"]).names == ("b", "c")


@pytest.mark.parametrize("argument", ["columns", "drop_columns"])
@pytest.mark.parametrize(
    "value", [slice(0, 2), True, False, 1.5, [True, False, True], [slice(0, 2)], [None], [[0]]]
)
def test_columns_that_are_neither_names_nor_numbers(argument: str, value: Any) -> None:
    with pytest.raises(DataError, match=rf"{argument} (takes|asks for).*name"):
        read_data(GOOD, **{argument: value})


@pytest.mark.parametrize("argument", ["group", "sample_weight"])
def test_a_group_that_is_neither_name_nor_number(argument: str) -> None:
    with pytest.raises(DataError, match=argument):
        read_data(GOOD, **{argument: slice(0, 2)})


def test_halves_of_characters_in_mappings_and_records() -> None:
    for source in ({"\ud800": [0, 1], "b": [1, 0]}, {"a": ["\ud800", "x"], "b": [1, 0]}):
        with pytest.raises(DataError, match="half a character"):
            read_data(source)
        with pytest.raises(DataError, match="half a character"):
            read_data([dict(zip(source, cells)) for cells in zip(*source.values())])


def test_messages_can_always_be_printed() -> None:
    for name, shown in (("a\ud800", r"a\ud800"), ("a\x1b[31m", r"a\x1b[31m"), ("a\u202e", r"a\u202e")):
        with pytest.raises(DataError) as caught:
            read_data(GOOD, names=[name, "b", "c"], columns=["zz"])
        assert f"the columns are {shown}," in str(caught.value)
        assert printable(str(FileError(name))) == str(FileError(name)) == shown
        assert str(EdgewiseWarning(name)) == shown


def test_lazy_frames_that_fail() -> None:
    frame = polars.DataFrame({"a": ["x", "y"], "b": [0, 1]}).lazy()
    for failing in (frame.with_columns(polars.col("a").cast(polars.Int64)), frame.select("zz", "b")):
        with pytest.raises(DataError, match=r"LazyFrame is to do fails .*collect"):
            read_data(failing)


# Sizes.


class Claim:
    """Says that it is large, and cannot be read."""

    ndim, dtype = 2, np.dtype("u1")

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise AssertionError("it was read")


def test_tables_beyond_the_memory_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "physical_memory", lambda: 1 << 30)
    monkeypatch.setattr(body, "physical_memory", lambda: 1 << 30)
    empty = scipy.sparse.coo_array(([1], ([0], [0])), shape=(10**9, 50))
    wide = np.broadcast_to(np.zeros(50, np.uint8), (10**9, 50))
    for source in (Claim(10**9, 50), empty, wide):
        with pytest.raises(DataError, match=r"1,000,000,000 x 50 cells take \d+ GB.*machine has 1;"):
            read_data(source)


def test_more_pairs_than_memory_are_refused_before_anything_is_read() -> None:
    with pytest.raises(
        DataError, match=r"499,999,500,000 candidates, and those of 65,536 variables.*features="
    ):
        SpikeSlabMRF(progress=False).fit(Claim(10, 10**6))
    with pytest.raises(DataError, match="499,999,500,000 candidates"):
        resolve_features(None, 10**6)
    assert resolve_features([(0, 1)], 10**6).n_cliques == 1


# Settings.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"settings": {"warm_up": "x"}}, r"warm_up of the exact engine must be a whole number from 0.*'x'"),
        ({"settings": {"warm_up": -5}}, r"warm_up of the exact engine must be a whole number"),
        ({"settings": {"warm_up": 2.5}}, r"warm_up .*whole number"),
        ({"settings": {"warm_up": True}}, r"warm_up .*whole number"),
        ({"settings": {"warm_up": float("inf")}}, r"warm_up .*whole number"),
        (
            {"engine": "particle", "settings": {"noise": float("nan")}},
            "noise of the particle engine .*finite",
        ),
        ({"engine": "langevin", "settings": {"preconditioning": 2}}, "preconditioning .*True or False"),
        ({"engine": "surrogate", "settings": {"warm_up": 0}}, "warm_up must be at least 1"),
        ({"checkpoint": "a\0b"}, "checkpoint must be the path"),
        ({"checkpoint": 5}, "checkpoint must be the path"),
        ({"engine": None}, "engine must be"),
        ({"settings": 5}, "settings must be"),
        ({"executor": 5}, "executor must be"),
    ],
    ids=str,
)
def test_settings_of_the_wrong_kind(options: dict[str, Any], words: str) -> None:
    model = SpikeSlabMRF(**{"engine": "exact", "chains": 1, "progress": False, **options})
    with pytest.raises(DataError, match=words):
        model.fit(GOOD)


def test_settings_may_be_numbers_of_any_type() -> None:
    assert read_settings(ParticleSettings, "particle", {"warm_up": 20.0, "noise": np.float32(0.5)}) == (
        ParticleSettings(warm_up=20, noise=0.5)
    )


@pytest.mark.parametrize(
    "prior",
    [
        lambda: NormalBias(1e-300),
        lambda: FixedSlab(1e-300),
        lambda: FixedSlab(1e300),
        lambda: GammaSlab(1e-6, 1.0),
        lambda: GammaSlab(5, 1e-200),
        lambda: BetaInclusion(1e300, 1),
    ],
)
def test_scales_whose_squares_are_no_numbers(prior: Any) -> None:
    with pytest.raises(DataError, match="must lie between"):
        prior()


# Many columns.


def test_many_columns_cost_as_much_as_they_are() -> None:
    """Counted, not timed: how often a name is compared."""

    class Name(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"n{k}") for k in range(600)]
    problems: list[Any] = []
    select(names, None, names[::2], None, None, problems)
    assert not problems
    assert Name.compared < 3 * len(names)


# Weights, groups and columns beside the table.

ROWS = np.random.default_rng(4).integers(0, 2, (30, 4))


@pytest.mark.parametrize("weight", [1e308, 1e300, 1e15])
def test_weights_beyond_any_number_of_rows(weight: float) -> None:
    with pytest.raises(DataError, match=r"sample_weight add up to .*divide them by a number"):
        read_data(ROWS, sample_weight=[weight] * 30)
    assert read_data(ROWS, sample_weight=[3e10] * 30).total == 9e11


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.ma.array([0, 1] * 15, mask=[0, 0, 1] * 10), r"'group' is blank in 10 rows \(first in row 2\)"),
        ([[0], [1]] * 15, "takes one label per row.*row 0 has '\\[0\\]'"),
        (np.ones((30, 2)), "takes one label per row"),
        (np.ma.masked, "takes one label per row"),
        (np.array(1), "takes one label per row"),
        ([{"a": 1}] * 30, "takes one label per row"),
    ],
    ids=["masked", "lists", "matrix", "mask", "scalar", "mappings"],
)
def test_groups_that_are_no_labels(groups: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_data(ROWS, groups=groups)


@pytest.mark.parametrize("labels", [[0, 1] * 15, np.array([0, 1] * 15), pd.Series(["a", "b"] * 15)], ids=type)
def test_labels_to_adjust_for_need_a_name(labels: Any) -> None:
    with pytest.raises(DataError, match=r"30 were given where it has 4.*adjust=\{'site': labels\}"):
        read_data(ROWS, adjust=labels)
    assert read_data(ROWS, adjust={"site": labels}).strata is not None


@pytest.mark.parametrize("bins", ["x", 0, True, 2.5])
def test_bins_are_checked_where_nothing_is_cut(bins: Any) -> None:
    with pytest.raises(DataError, match="bins must be a whole number from 2 to 20, not"):
        read_data(ROWS, bins=bins)


def test_unions_of_arrow() -> None:
    kinds = pa.array([0, 1, 0], pa.int8())
    union = pa.UnionArray.from_sparse(kinds, [pa.array([1, 2, 3]), pa.array([1.0, 2.0, 3.0])])
    with pytest.raises(DataError, match=r"no levels can be made of its columns 'a' \(sparse_union"):
        read_data(pa.table({"a": union, "b": [0, 1, 1], "c": [1, 1, 0]}))


def test_thousands_of_bad_columns_make_a_short_message(rng: np.random.Generator) -> None:
    cells = rng.integers(0, 2, (10, 3000)).astype(object)
    cells[0, ::3] = "x"
    with pytest.raises(DataError) as caught:
        read_data(cells)
    assert len(str(caught.value)) < 5000
    assert "'x57', ... and 980 more, all of them in the error's `remedy`]" in str(caught.value)
    assert len(caught.value.remedy["drop_columns"]) == 1000  # type: ignore[attr-defined]


def test_the_way_out_counts_the_rows_it_leaves(rng: np.random.Generator) -> None:
    frame = pd.DataFrame({"a": rng.integers(0, 2, 120), "b": rng.integers(0, 2, 120)})
    frame["c"] = rng.choice(["?", "x", "y"], 120)
    with pytest.raises(DataError) as caught:
        read_data(frame)
    error: Any = caught.value
    data = read_data(frame, **error.remedy)
    assert (data.n_rows, data.n_variables) == (error.rows_left, error.columns_left) == (120, 2)


def test_a_number_that_was_cut_is_no_label_of_rows(rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.integers(0, 2, (40, 4)), columns=list("abcd"))
    frame["stars"] = rng.integers(1, 6, 40)
    frame["fixed"] = 1
    with pytest.raises(DataError) as caught:
        read_data(frame, binarize=">=3")
    assert caught.value.remedy == {"constant": "drop"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thin": 10**20}, "thin must be 'auto' or a whole number of at most 1,000,000,000"),
        ({"thin": 10**5000}, "thousands of digits"),
        ({"chains": 10**9}, "chains must be a whole number of at most 100,000"),
        ({"max_draws": 10**30}, "max_draws must be a whole number of at most"),
        ({"min_draws": 10**30, "max_draws": 10**31}, "min_draws must be a whole number of at most"),
        ({"n_jobs": 10**20}, "n_jobs must be a number of workers"),
        ({"max_time": 10**400}, "max_time must be a positive number"),
        ({"target_error": 10**400}, "target_error must be"),
        ({"checkpoint_every": 10**400}, "checkpoint_every must be"),
        ({"progress": "x"}, "progress must be True, False or 'lines'; not 'x'"),
        ({"progress": 5}, "progress must be True, False or 'lines'; not 5"),
        ({"checkpoint": ""}, "checkpoint must be the path of a directory, or None. '' is not a path"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:20],
)
def test_options_beyond_all_bounds(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        RunOptions(**options)
    assert len(str(caught.value)) < 400
