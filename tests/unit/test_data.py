"""The data door on good input: every kind of source gives the same table, coded predictably."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edgewise.data import BinaryData, TableError, encode_rows, read_data
from edgewise.errors import DataError, EdgewiseWarning

# Tables of a few rows often have identical columns; one test below is about that warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*identical columns:edgewise.errors.EdgewiseWarning")

NAMES = ["a", "b", "c"]
BITS = np.array([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]], np.uint8)
FRAME = pd.DataFrame(BITS, columns=NAMES)


def text(frame: pd.DataFrame, separator: str = ",") -> str:
    return frame.to_csv(index=False, sep=separator, lineterminator="\n")


def save(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


SOURCES = {
    "uint8": lambda _: BITS,
    "Fortran order": lambda _: np.asfortranarray(BITS),
    "strided": lambda _: np.repeat(BITS, 2, axis=1)[:, ::2],
    "booleans": lambda _: BITS.astype(bool),
    "float32": lambda _: BITS.astype(np.float32),
    "signs": lambda _: 2 * BITS.astype(np.int8) - 1,
    "objects": lambda _: BITS.astype(object),
    "words": lambda _: np.where(BITS, "yes", "no"),
    "matrix": lambda _: np.asmatrix(BITS),
    "nested lists": lambda _: BITS.tolist(),
    "tuples of words": lambda _: tuple(map(tuple, np.where(BITS, "y", "n").tolist())),
    "list of arrays": lambda _: list(BITS),
    "mapping": lambda _: {name: BITS[:, k].tolist() for k, name in enumerate(NAMES)},
    "records": lambda _: FRAME.to_dict("records"),
    "structured array": lambda _: FRAME.to_records(index=False),
    "pandas": lambda _: FRAME,
    "pandas words": lambda _: FRAME.replace({0: "absent", 1: "present"}),
    "pandas categories": lambda _: FRAME.replace({0: "lo", 1: "up"}).astype("category"),
    "pandas nullable": lambda _: FRAME.astype("Int8"),
    "pandas nullable booleans": lambda _: FRAME.astype("boolean"),
    "pandas sparse": lambda _: FRAME.astype(pd.SparseDtype(int, 0)),
    "polars": lambda _: pl.DataFrame(FRAME),
    "polars words": lambda _: pl.DataFrame(FRAME.replace({0: "no", 1: "yes"})),
    "polars booleans": lambda _: pl.DataFrame(FRAME.astype(bool)),
    "polars lazy": lambda _: pl.LazyFrame(FRAME),
    "pyarrow": lambda _: __import__("pyarrow").Table.from_pandas(FRAME),
    "csr matrix": lambda _: scipy.sparse.csr_matrix(BITS),
    "coo array with repeats": lambda _: scipy.sparse.coo_array(
        (np.full(2 * BITS.sum(), 0.5), [np.repeat(index, 2) for index in np.nonzero(BITS)]), BITS.shape
    ),
    "csv": lambda d: save(d / "t.csv", text(FRAME)),
    "csv as a string": lambda d: str(save(d / "t.csv", text(FRAME))),
    "csv without a last newline": lambda d: save(d / "t.csv", text(FRAME).rstrip()),
    "csv with a byte order mark": lambda d: save(d / "t.csv", "\ufeff" + text(FRAME)),
    "csv of Windows": lambda d: save(d / "t.csv", text(FRAME).replace("\n", "\r\n")),
    "csv with blank lines": lambda d: save(d / "t.csv", "\n" + text(FRAME).replace("\n", "\n\n")),
    "csv with spaces": lambda d: save(d / "t.csv", text(FRAME).replace(",", " , ")),
    "csv with quotes": lambda d: save(
        d / "t.csv", FRAME.replace({0: "no", 1: "yes"}).to_csv(index=False, quoting=2)
    ),
    "csv with separators in quotes": lambda d: save(
        d / "t.csv", FRAME.replace({0: "no, never", 1: "yes, of course"}).to_csv(index=False)
    ),
    "csv of long words": lambda d: save(
        d / "t.csv", text(FRAME.replace({0: "never at all", 1: "Present always"}))
    ),
    "csv of one and 1.0": lambda d: save(d / "t.csv", text(FRAME).replace("1,1,1", "1.0,1, 1.00")),
    "csv of truth values": lambda d: save(d / "t.csv", text(FRAME.astype(bool)).replace("True", "TRUE", 2)),
    "csv with semicolons": lambda d: save(d / "t.csv", text(FRAME, ";")),
    "tsv": lambda d: save(d / "t.tsv", text(FRAME, "\t")),
    "csv.gz": lambda d: save(d / "t.csv.gz", text(FRAME)),
    "tsv.gz": lambda d: save(d / "t.tsv.gz", text(FRAME, "\t")),
    "text stream": lambda _: io.StringIO(text(FRAME)),
    "byte stream": lambda _: io.BytesIO(text(FRAME).encode()),
    "gzipped stream": lambda _: io.BytesIO(gzip.compress(text(FRAME).encode())),
    "open file": lambda d: save(d / "t.csv", text(FRAME)).open(),
    "npy": lambda d: np.save(d / "t.npy", BITS) or d / "t.npy",
    "npz": lambda d: np.savez(d / "t.npz", BITS) or d / "t.npz",
    "npz with names": lambda d: np.savez(d / "t.npz", X=BITS, names=np.array(NAMES)) or d / "t.npz",
    "npz with labels": lambda d: np.savez(d / "t.npz", X=BITS, y=BITS[:, 0]) or d / "t.npz",
    "npz with several": lambda d: np.savez(d / "t.npz", train=BITS, test=BITS[:2]) or f"{d}/t.npz:train",
    "parquet": lambda d: FRAME.to_parquet(d / "t.parquet") or d / "t.parquet",
    "parquet of words": lambda d: (
        FRAME.replace({0: "n", 1: "y"}).set_index(pd.Index(list("uvwxy"))).to_parquet(d / "t.parquet")
        or d / "t.parquet"
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_table(kind: str, tmp_path: Path) -> None:
    data = read_data(SOURCES[kind](tmp_path))
    np.testing.assert_array_equal(data.values(), BITS)
    assert data.values().dtype == np.uint8
    assert data.names in (tuple(NAMES), ("x0", "x1", "x2"))
    assert (data.n_rows, data.n_variables, data.total) == (5, 3, 5.0)


def test_names_are_kept_or_invented() -> None:
    assert read_data(BITS).names == ("x0", "x1", "x2")
    assert read_data(BITS, names=["u", "v", "w"]).names == ("u", "v", "w")
    assert read_data(pd.DataFrame(BITS)).names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        ([0, 1, 1], (0, 1)),
        ([-1, 1, 1], (-1, 1)),
        ([2, 1, 1], (1, 2)),
        ([1.0, 0.0, 1.0], (0, 1)),
        ([0.5, 1.5, 1.5], (0.5, 1.5)),
        ([True, False, True], (False, True)),
        (["y", "n", "y"], ("n", "y")),
        (["yes", "zero", "yes"], ("zero", "yes")),
        (["TRUE", "wrong", "TRUE"], ("wrong", "TRUE")),
        (["present", "unseen", "unseen"], ("unseen", "present")),
        (["rep", "dem", "rep"], ("dem", "rep")),
        (["b", "A", "b"], ("A", "b")),
        (["1", "0", "1"], (0, 1)),
        (["+1", "-1", "1"], (-1, 1)),
        ([" no", "yes ", "no"], ("no", "yes")),
        (["größer", "kleiner", "kleiner"], ("größer", "kleiner")),
    ],
)
def test_which_level_becomes_one(cells: list[Any], levels: tuple[Any, Any], tmp_path: Path) -> None:
    for order in (cells, cells[::-1]):
        frame = pd.DataFrame({"q": order, "other": [0, 1, 0]})
        data = read_data(frame)
        assert data.levels[0] == levels
        assert [type(label) for label in data.levels[0]] == [type(label) for label in levels]
        spelled = [levels[bit] for bit in data.column(0)]
        assert [str(cell).strip().lstrip("+") for cell in spelled] == [
            str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip().lstrip("+")
            for cell in order
        ]
        from_file = read_data(save(tmp_path / "t.csv", text(frame)))
        np.testing.assert_array_equal(from_file.values(), data.values())


def test_the_level_of_a_constant_column_is_completed() -> None:
    columns = {
        "a": [1, 1],
        "b": [-1, -1],
        "c": ["No", "No"],
        "d": ["Y", "Y"],
        "e": ["red", "red"],
        "f": [7, 7],
    }
    columns["g"] = [0, 1]
    columns["h"] = pd.Categorical(["low", "low"], categories=["high", "low"])
    with pytest.warns(EdgewiseWarning):
        data = read_data(columns, constant="keep")
    assert data.levels[:6] == ((0, 1), (-1, 1), ("No", "Yes"), ("N", "Y"), ("red", "not red"), (7, "not 7"))
    assert data.levels[7] == ("high", "low")
    assert data.values()[0].tolist() == [1, 0, 0, 1, 0, 0, 0, 1]
    assert "constant columns kept: a, b, c, d, e, f and h" in data.notes


def test_constant_columns_can_be_left_out() -> None:
    data = read_data(FRAME.assign(d=1), constant="drop")
    assert data.names == tuple(NAMES)
    assert "constant columns left out: d" in data.notes


def test_incomplete_rows_can_be_left_out(tmp_path: Path) -> None:
    frame = FRAME.astype(object)
    frame.iloc[1, 1] = None
    frame.iloc[4, 0] = "NA"
    for source in (frame, save(tmp_path / "t.csv", text(frame))):
        data = read_data(source, missing="drop", sample_weight=[1, 2, 3, 4, 5])
        np.testing.assert_array_equal(data.values(), BITS[[0, 2, 3]])
        assert data.weights is not None
        assert data.weights.tolist() == [1, 3, 4]
        assert data.notes[0] == "3 of 5 rows are complete and stay"


@pytest.mark.parametrize("blank", ["", "NA", "N/A", "NaN", "null", "None", "?", ".", " "])
def test_blanks_in_text(blank: str, tmp_path: Path) -> None:
    path = save(tmp_path / "t.csv", f"a,b,c\ny,n,n\n{blank},n,y\nn,y,y\n")
    data = read_data(path, missing="drop")
    assert data.n_rows == 2
    assert data.levels[0] == ("n", "y")


def test_columns_group_and_weights(tmp_path: Path) -> None:
    frame = FRAME.assign(party=["r", "d", "r", None, "d"], count=[1, 2, 0, 4, 5])
    for source in (frame, pl.DataFrame(frame), save(tmp_path / "t.csv", text(frame))):
        data = read_data(source, group="party", sample_weight="count", drop_columns=["b"])
        assert data.names == ("a", "c")
        assert data.group == ("r", "d", "", "d")
        assert data.group_name == "party"
        assert data.weights is not None
        assert data.weights.tolist() == [1, 2, 4, 5]
        assert data.total == 12
        assert "1 row of weight zero left out" in data.notes
    picked = read_data(frame, columns=["c", 0])
    assert picked.names == ("c", "a")
    np.testing.assert_array_equal(picked.values(), BITS[:, [2, 0]])
    assert picked.group is None
    assert picked.weights is None


def test_unnamed_row_numbers_can_be_dropped_by_position(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path)
    assert read_data(path, drop_columns=[0]).names == tuple(NAMES)


def test_columns_named_by_number_win_over_positions() -> None:
    frame = pd.DataFrame(BITS, columns=[2, 1, 0])
    np.testing.assert_array_equal(read_data(frame, columns=[0, 1]).values(), BITS[:, [2, 1]])


def test_text_columns_are_pointed_out() -> None:
    data = read_data(FRAME.assign(party=["r", "d", "r", "r", "d"]))
    assert data.text_columns == ("party",)
    assert data.notes == ("1 text column is a variable with 'd' as 0 and 'r' as 1: party",)
    assert read_data(FRAME).notes == ()
    votes = read_data(FRAME.replace({0: "n", 1: "y"}))
    assert votes.notes == ("3 text columns are variables with 'n' as 0 and 'y' as 1: a, b and c",)
    assert read_data(2 * BITS.astype(int) - 1).notes == (
        "3 columns are variables with -1 as 0 and 1 as 1: x0, x1 and x2",
    )


def test_identical_columns_are_legal_and_warned_of() -> None:
    with pytest.warns(
        EdgewiseWarning, match=r"identical columns: 'a' = 'd' and 'e' \(turned round\)"
    ) as caught:
        data = read_data(FRAME.assign(d=BITS[:, 0], e=1 - BITS[:, 0]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert data.n_variables == 5
    assert any(note.startswith("identical columns") for note in data.notes)


def test_digest_tells_tables_apart() -> None:
    base = read_data(FRAME).digest()
    assert base == read_data(FRAME.to_dict("list")).digest()
    others = [
        read_data(FRAME, names=["a", "b", "d"]),
        read_data(FRAME.iloc[::-1]),
        read_data(FRAME, sample_weight=np.ones(5)),
        read_data(FRAME.replace({0: "n", 1: "y"})),
        read_data(FRAME.astype(bool)),
    ]
    assert len({base, *(data.digest() for data in others)}) == 6


def test_digest_is_the_same_everywhere() -> None:
    assert read_data(FRAME).digest() == "ecc5ac02436b57e95612504ce8b6bd2faa7171f3eccb7434fcbb29f86563542a"


@given(
    bits=hnp.arrays(np.uint8, st.tuples(st.integers(1, 70), st.integers(2, 5)), elements=st.integers(0, 1)),
    cut=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
@settings(max_examples=60)
def test_packing_round_trip(bits: np.ndarray, cut: tuple[int, int]) -> None:
    data = read_data(bits, constant="keep")
    np.testing.assert_array_equal(data.values(), bits)
    np.testing.assert_array_equal(data.values(*cut), bits[slice(*cut)])
    np.testing.assert_array_equal(data.column(1), bits[:, 1])
    assert data.packed.shape == (bits.shape[1], (len(bits) + 7) // 8)


cell = st.sampled_from(
    ["0", "1", "1.0", "yes", "no", "", "NA", "?", "maybe so", " 1", "0 ", "long words", "é"]
)


@given(
    st.integers(2, 4).flatmap(
        lambda p: st.lists(st.lists(cell, min_size=p, max_size=p), min_size=1, max_size=12)
    )
)
@settings(max_examples=150)
def test_the_fast_and_the_general_reader_agree(rows: list[list[str]]) -> None:
    body = "".join(",".join(row) + "\n" for row in rows)
    header = ",".join(f"q{k}" for k in range(len(rows[0]))) + "\n"

    def outcome(content: str) -> Any:
        try:
            data = read_data(io.StringIO(content), constant="keep", missing="drop")
        except DataError as error:
            return str(error)
        return data.names, data.levels, data.values().tolist(), data.notes

    assert outcome(header + body) == outcome(header + body + "\n\n")


def test_a_file_larger_than_one_block(tmp_path: Path, rng: np.random.Generator) -> None:
    bits = rng.integers(0, 2, (40_000, 12))
    words = np.where(bits == 1, "yes", "no").astype(object)
    words[-1, 3] = "a rather long word"
    words[30_000:, 5] = np.where(bits[30_000:, 5] == 1, "YES", "no")
    frame = pd.DataFrame(words, columns=[f"q{k}" for k in range(12)])
    path = save(tmp_path / "t.csv.gz", text(frame))
    with pytest.raises(TableError) as caught:
        read_data(path)
    assert "'a rather long word' (1 row, first at line 40001)" in str(caught.value)
    data = read_data(path, drop_columns=["q3"])
    np.testing.assert_array_equal(data.values(), np.delete(bits, 3, axis=1))
    assert f"'YES' ({int(bits[30_000:, 5].sum()):,} rows) as 'yes'" in data.notes[0]


def test_words_in_other_capitals_are_the_same_word() -> None:
    frame = pd.DataFrame({"q": ["no", "No", "yes", "no", "YES", "yes"], "a": [0, 1, 1, 0, 0, 1]})
    data = read_data(frame)
    assert data.levels[0] == ("no", "yes")
    np.testing.assert_array_equal(data.values()[:, 0], [0, 0, 1, 0, 1, 1])
    assert "column 'q' is read with 'No' (1 row) as 'no', 'YES' (1 row) as 'yes'" in data.notes
    again = pd.DataFrame({"q": ["NO", "Yes"], "a": [1, 0]})
    np.testing.assert_array_equal(encode_rows(again, data.names, data.levels), [[0, 1], [1, 0]])
    # Where capitals are all that tells two levels apart, somebody must say what is meant.
    with pytest.raises(TableError, match="spells one level in two ways"):
        read_data(pd.DataFrame({"q": ["a", "A", "a"], "b": [0, 1, 1]}))
    with pytest.raises(TableError, match="the model knows 'a' and 'A'"):
        encode_rows([["á"]], ["q"], [("a", "A")])


def test_the_remedy_does_not_keep_a_label_of_the_rows_as_a_variable() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.where(rng.random((40, 3)) < 0.5, "y", "n"), columns=["tax", "roads", "schools"])
    frame.insert(0, "party", np.where(rng.random(40) < 0.5, "left", "right"))
    frame.loc[3, "tax"] = None
    with pytest.raises(TableError) as caught:
        read_data(frame)
    error = caught.value
    assert (error.remedy, error.label) == ({"drop_columns": ["party"], "missing": "drop"}, "party")
    assert "'party' seems to label the rows" in str(error)
    data = read_data(frame, **error.remedy)
    assert (data.n_rows, data.n_variables) == (error.rows_left, error.columns_left) == (39, 3)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text(FRAME).encode())))
    np.testing.assert_array_equal(read_data("-").values(), BITS)
    with pytest.raises(TableError, match=r"^standard input: column 'b' has 3 levels"):
        read_data(io.StringIO("a,b\n0,1\n1,2\n0,0\n"))


def test_data_pass_through_unchanged() -> None:
    data = read_data(FRAME)
    assert read_data(data) is data
    assert isinstance(data, BinaryData)
    assert repr(data) == "BinaryData(5 rows x 3 variables)"


def test_new_rows_in_the_same_coding(tmp_path: Path) -> None:
    votes = FRAME.replace({0: "n", 1: "y"})
    data = read_data(votes)
    arguments = (data.names, data.levels)
    np.testing.assert_array_equal(encode_rows(votes, *arguments), BITS)
    np.testing.assert_array_equal(encode_rows(votes[["c", "a", "b"]], *arguments), BITS)
    np.testing.assert_array_equal(encode_rows(votes.assign(extra=range(5)), *arguments), BITS)
    np.testing.assert_array_equal(encode_rows(votes.to_numpy(), *arguments), BITS)
    np.testing.assert_array_equal(encode_rows(save(tmp_path / "t.csv", text(votes)), *arguments), BITS)
    np.testing.assert_array_equal(encode_rows(data, *arguments), BITS)
    assert encode_rows(votes.iloc[:0], *arguments).shape == (0, 3)
    assert encode_rows([["n", "n", "n"]], *arguments).dtype == np.int8


def test_new_rows_may_be_incomplete() -> None:
    arguments = (("a", "b"), ((-1, 1), (0, 1)))
    rows = [[-1.0, np.nan], [1.0, 1.0]]
    np.testing.assert_array_equal(encode_rows(rows, *arguments, allow_missing=True), [[0, -1], [1, 1]])
    only_b = pd.DataFrame({"b": [True, False]})
    np.testing.assert_array_equal(encode_rows(only_b, *arguments, allow_missing=True), [[-1, 1], [-1, 0]])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["n", "maybe", "y"]], "column 'b' has 'maybe' (row 0); the model knows 'n' and 'y'"),
        ([["n", None, "y"]], "1 cell blank, the first in column 'b' at row 0"),
        ([["n", "y"]], "2 columns and the model has 3 variables"),
        (pd.DataFrame({"a": ["y"], "b": ["n"]}), "variables of the model are not there: c"),
        (pd.DataFrame([["y", "y", "n", "n"]], columns=list("abca")), "must differ"),
        (read_data(BITS), "columns must be a, b and c"),
    ],
)
def test_new_rows_that_do_not_fit(rows: Any, words: str) -> None:
    with pytest.raises(TableError) as caught:
        encode_rows(rows, ("a", "b", "c"), (("n", "y"),) * 3)
    assert words in str(caught.value)


def test_votes_and_senate(real_data: Path) -> None:
    votes = pd.read_csv(real_data / "binary" / "house_votes_84.csv.gz")
    labelled = votes.replace({0.0: "n", 1.0: "y"})
    data = read_data(labelled, group="party", missing="drop")
    assert (data.n_rows, data.n_variables) == (232, 16)
    assert data.notes[0] == "232 of 435 rows are complete and stay"
    assert set(data.group or ()) == {"democrat", "republican"}
    path = real_data / "binary" / "senate109.csv.gz"
    with pytest.raises(TableError) as caught:
        read_data(path)
    message = str(caught.value)
    assert "no row is complete" in message
    assert "'CORZINE (D NJ)' (415), 'MENENDEZ (D NJ)' (379)" in message
    remedy = caught.value.remedy
    assert remedy == {"drop_columns": ["rollcall", "CORZINE (D NJ)", "MENENDEZ (D NJ)"], "missing": "drop"}
    senate = read_data(path, **remedy)
    assert (senate.n_rows, senate.n_variables) == (160, 99)


@pytest.mark.slow
def test_memory_of_a_large_array() -> None:
    from benchmarks.data import extra_memory

    assert extra_memory(1_000_000, 200) < 500e6


def test_a_gzipped_table_is_closed_again(tmp_path):
    import gzip
    import warnings

    path = tmp_path / "table.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("a,b\n0,1\n1,0\n1,1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        assert read_data(path).n_rows == 3
        import gc

        gc.collect()
