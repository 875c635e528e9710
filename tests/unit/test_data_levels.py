"""Columns with more than two levels: what they are taken for, what is asked, and every kind of bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from edgewise.cli.messages import in_options
from edgewise.data import BinaryData, LevelData, TableError, encode_rows, read_data
from edgewise.errors import DataError
from edgewise.scales import Scale

RNG = np.random.default_rng(0)
N = 60
ITEM = RNG.integers(1, 6, N)
WORDS = np.array(["never", "sometimes", "often"])[RNG.integers(0, 3, N)]
CITY = np.array(["Rome", "Paris", "Oslo", "Bonn"])[RNG.integers(0, 4, N)]
BIT = RNG.integers(0, 2, N)
OTHER = RNG.permutation(BIT)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": BIT, "b": OTHER, **columns})


def several(values: Any, more: dict[int, Any]) -> np.ndarray:
    """Cells with some of them replaced."""
    cells = np.array(values, object)
    for row, value in more.items():
        cells[row] = value
    return cells


def test_every_source_gives_the_same_levels(tmp_path: Path) -> None:
    table = pd.DataFrame({"item": ITEM, "city": CITY, "bit": BIT})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "t.parquet")
    sources = [table, pl.DataFrame(table.to_dict("list")), table.to_dict("list"), table.to_dict("records")]
    sources += [tmp_path / name for name in ("t.csv", "t.csv.gz", "t.tsv", "t.parquet")]
    sources += [
        table.astype({"item": float}),
        table.astype({"item": "Int64"}),
        table.astype({"city": "category"}),
    ]
    found = [read_data(source) for source in sources]
    found.append(read_data(table.to_numpy(), names=list(table)))
    for data in found:
        assert isinstance(data, LevelData)
        assert data.digest() == found[0].digest()
        assert data.notes == found[0].notes
    data = found[0]
    assert [scale.kind for scale in data.scales] == ["ordinal", "nominal", "binary"]
    assert data.levels == ((1, 2, 3, 4, 5), ("Bonn", "Oslo", "Paris", "Rome"), (0, 1))
    assert (np.array(data.levels[0])[data.column(0)] == ITEM).all()
    assert (np.array(data.levels[1])[data.column(1)] == CITY).all()
    assert any("nominal with 4 levels" in note and "levels={'city': [...]}" in note for note in data.notes)
    assert repr(data) == "LevelData(60 rows x 3 variables)"


def test_numbers_are_matched_by_value() -> None:
    cells = several(
        ITEM, {k: str(ITEM[k]) for k in range(0, 20)} | {k: float(ITEM[k]) for k in range(20, 40)}
    )
    assert read_data(frame(item=cells)).digest() == read_data(frame(item=ITEM)).digest()


def test_the_order_of_words() -> None:
    order = ["never", "sometimes", "often"]
    ordered = pd.Categorical(WORDS, categories=order, ordered=True)
    enumerated = pl.DataFrame({"a": BIT, "w": pl.Series(WORDS.tolist(), dtype=pl.Enum(order))})
    for data in (
        read_data(frame(w=ordered)),
        read_data(frame(w=WORDS), levels={"w": order}),
        read_data(enumerated),
        read_data(frame(w=np.char.upper(WORDS)), levels={"w": order}),
    ):
        place = data.names.index("w")
        assert data.scales[place] == Scale("ordinal", tuple(order))
        assert (np.array(order)[data.column(place)] == WORDS).all()
    assert read_data(frame(w=WORDS)).scales[2].kind == "nominal"
    assert read_data(frame(w=ordered), kinds={"w": "nominal"}).scales[2].kind == "nominal"
    numbered = np.array(["10 always", "2 often", "1 never"])[RNG.integers(0, 3, N)]
    data = read_data(frame(w=numbered), kinds={"w": "ordinal"})
    assert data.levels[2] == ("1 never", "2 often", "10 always")


def test_levels_that_never_occur() -> None:
    unused = pd.Categorical(WORDS, ["never", "rarely", "sometimes", "often", "always"], ordered=True)
    data = read_data(frame(w=unused))
    assert data.scales[2] == Scale("ordinal", ("never", "sometimes", "often"), (0, 2, 3))
    assert any("'rarely' and 'always' never occur and are dropped" in note for note in data.notes)
    kept = read_data(frame(w=unused), levels={"w": list(unused.categories)})
    assert kept.levels[2] == tuple(unused.categories)
    assert not any("dropped" in note for note in kept.notes)
    gap = np.where(ITEM == 3, 4, ITEM)
    data = read_data(frame(x=gap))
    assert data.scales[2] == Scale("ordinal", (1, 2, 4, 5), (0, 1, 3, 4))
    assert any("has no 3 between 1 and 5" in note for note in data.notes)
    uneven = read_data(frame(x=np.array([1, 2, 50, 200])[ITEM % 4]))
    assert uneven.scales[2].positions == (0, 1, 2, 3)
    assert any("steps of equal width" in note for note in uneven.notes)
    # A level that goes with the incomplete rows is gone too, and two that are left are a binary variable.
    words = several(WORDS, {})
    other = np.where(WORDS == "never", np.nan, BIT)
    data = read_data(frame(w=words, x=other), missing="drop")
    assert isinstance(data, BinaryData)
    assert data.levels[2] == ("often", "sometimes")


def test_ranges_and_kinds() -> None:
    table = pd.DataFrame({f"item{k}": RNG.integers(1, 5, N) for k in range(1, 5)})
    table["item1-item2"] = RNG.integers(0, 3, N)
    for wanted in ("item2..item4", "item2-item4"):
        data = read_data(table, kinds={wanted: "nominal"})
        assert [scale.kind for scale in data.scales] == ["ordinal", *["nominal"] * 3, "ordinal"]
    assert [s.kind for s in read_data(table, kinds={"item1-item2": "nominal"}).scales][-1] == "nominal"
    assert read_data(table, columns=["item1..item3"]).names == ("item1", "item2", "item3")
    assert read_data(table, drop_columns=["item1..item3"]).names == ("item4", "item1-item2")
    assert {scale.kind for scale in read_data(table, kinds="nominal").scales} == {"nominal"}
    capel = read_data(table, kinds={"item1": "blume-capel:3", "item2": "blume-capel"})
    assert [scale.reference for scale in capel.scales[:2]] == [2, 0]


def test_two_levels_are_binary_whatever_they_are_called() -> None:
    plain = read_data(frame())
    for kind in ("ordinal", "nominal", "binary"):
        assert read_data(frame(), kinds=kind).digest() != ""
    assert [scale.kind for scale in plain.scales] == ["binary", "binary"]
    turned = read_data(frame(), levels={"a": [1, 0]})
    assert turned.levels[0] == (1, 0)
    assert (turned.column(0) == 1 - plain.column(0)).all()


def test_cutting(tmp_path: Path) -> None:
    age = RNG.uniform(18, 90, 400).round(3)
    table = pd.DataFrame({"age": age, "city": np.resize(CITY, 400), "item": np.resize(ITEM, 400)})
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    for source in (table, path):
        data = read_data(source, cut=["age>=30,50", "city==Paris", "item > 3"])
        assert data.levels == (("<30", ">=30", ">=50"), ("!=Paris", "==Paris"), ("<=3", ">3"))
        assert (data.column(0) == (age >= 30).astype(int) + (age >= 50)).all()
        assert (data.column(1) == (table["city"] == "Paris")).all()
        quarters = read_data(source, cut={"age": 4})
        assert quarters.scales[0].kind == "ordinal"
        assert np.bincount(quarters.column(0)).tolist() == [100] * 4
        # New rows are cut where the old ones were.
        new = pd.DataFrame(
            {"age": [19.0, 40, 80, np.nan], "city": ["Oslo", "Paris", "Bonn", "x"], "item": [1, 4, 3, 5]}
        )
        codes = encode_rows(new, data.names, data.levels, allow_missing=True)
        assert codes.tolist() == [[0, 0, 0], [1, 1, 1], [2, 0, 0], [-1, 0, 1]]
    binary = read_data(table.drop(columns="age"), binarize=">2", cut="city!=Rome")
    assert isinstance(binary, BinaryData)
    assert binary.levels == (("==Rome", "!=Rome"), ("<=2", ">2"))


def test_blanks_that_are_named() -> None:
    item = np.where(RNG.random(N) < 0.2, -9, ITEM)
    item[:2] = 99
    data = read_data(frame(item=item), blank=[-9, 99], missing="drop")
    assert data.levels[2] == (1, 2, 3, 4, 5)
    assert data.n_rows == (item < 6).sum() - (item == -9).sum()
    assert data.blanks == (-9, 99)
    same = read_data(frame(item=item), blank={"item": ["-9", 99.0]}, missing="drop")
    assert same.digest() == data.digest()
    codes = encode_rows([[0, 1, -9]], data.names, data.levels, allow_missing=True, blank=data.blanks)
    assert codes.tolist() == [[0, 1, -1]]
    pain = np.array(["None", "Typical", "Atypical"])[RNG.integers(0, 3, N)]
    listed = read_data(frame(pain=pain), levels={"pain": ["None", "Atypical", "Typical"]})
    assert listed.levels[2] == ("None", "Atypical", "Typical")
    dropped = read_data(frame(pain=pain), blank="None", missing="drop")
    assert dropped.levels[2] == ("Atypical", "Typical")
    # Beside numbers and an ordinary yes and no a blank word is a blank.
    assert read_data(frame(x=several(ITEM, {0: "NA"})), missing="drop").n_rows == N - 1
    assert read_data(frame(x=several(np.where(BIT, "y", "n"), {0: "NA"})), missing="drop").n_rows == N - 1


def test_a_scale_may_have_numbers_that_are_codes_elsewhere() -> None:
    for levels in ([1, 2, 3, 4, 5, 6, 7, 8, 9], [-2, -1, 0, 1, 2], [-1, 0, 1], [0, 33, 66, 99], [7, 8, 9]):
        data = read_data(frame(x=np.resize(levels, N)))
        assert data.levels[2] == tuple(levels)


# name: (columns beside a and b, arguments, words the message must have)
BAD: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, Any], list[str]]] = {
    "a level once beside a pair": (
        lambda: {"x": several(BIT, {7: 2})},
        {},
        ["besides 0 and 1", "2 (1 row, first at row 7)", "kinds={'x': 'ordinal'}"],
    ),
    "a word once beside a pair": (
        lambda: {"x": several(np.where(BIT, "yes", "no"), {3: "perhaps"})},
        {},
        ["besides 'yes' and 'no'", "'perhaps' (1 row, first at row 3)", "kinds={'x': 'nominal'}"],
    ),
    "None among words": (
        lambda: {"pain": several(CITY, dict.fromkeys(range(9), "None"))},
        {},
        [
            "'pain' has 'None' (9 rows, first at row 0): a blank or a level?",
            "blank=['None']",
            "levels={'pain'",
        ],
    ),
    "NA among words": (
        lambda: {"x": several(CITY, {4: "NA"})},
        {},
        ["'NA' (1 row, first at row 4)", "blank="],
    ),
    "null among words": (lambda: {"x": several(CITY, {4: "null"})}, {}, ["'null' (1 row"]),
    "a dash among words": (
        lambda: {"x": several(CITY, {4: "-", 5: "-"})},
        {},
        ["'-' (2 rows", "blank=['-']"],
    ),
    "unknown among words": (lambda: {"x": several(CITY, {4: "unknown"})}, {}, ["'unknown' (1 row"]),
    "None in two levels": (
        lambda: {"x": np.where(BIT, "None", "Some")},
        {},
        ["'None' (", "a blank or a level?"],
    ),
    "-9": (
        lambda: {"item": several(ITEM, {2: -9, 5: -9})},
        {},
        ["-9 (2 rows, first at row 2)", "blank=[-9]", "levels={'item': [-9, 1, 2, 3, 4, 5]}"],
    ),
    "99": (lambda: {"item": several(ITEM, {2: 99})}, {}, ["99 (1 row, first at row 2)", "blank=[99]"]),
    "98 and 99": (lambda: {"item": several(ITEM, {2: 98, 3: 99})}, {}, ["99 (1 row", "98 (1 row"]),
    "9 above a scale of seven": (
        lambda: {"item": several(RNG.integers(1, 8, N), {0: 9})},
        {},
        ["9 (1 row, first at row 0)"],
    ),
    "8 above a scale of five": (lambda: {"item": several(ITEM, {0: 8})}, {}, ["8 (1 row"]),
    "a negative code": (lambda: {"item": several(ITEM, {0: -1})}, {}, ["-1 (1 row", "blank=[-1]"]),
    "a negative code below zero": (
        lambda: {"item": several(ITEM - 1, {0: -1, 1: -1})},
        {},
        ["-1 (2 rows, first at row 0)"],
    ),
    "two negative codes": (lambda: {"item": several(ITEM, {0: -8, 1: -9})}, {}, ["-9 (1 row", "-8 (1 row"]),
    "999 as text": (lambda: {"item": several(ITEM.astype(str), {0: "999"})}, {}, ["999 (1 row"]),
    "-99 declared ordinal": (
        lambda: {"item": several(ITEM, {0: -99})},
        {"kinds": {"item": "ordinal"}},
        ["-99 (1 row", "a blank or a level?"],
    ),
    "numbers and words": (
        lambda: {"x": several(ITEM, {0: "five", 1: "six"})},
        {},
        ["'x' mixes numbers and words: 1, 2, 3", "'five' (1 row, first at row 0) and 1 more word", "blank="],
    ),
    "an identifier": (
        lambda: {"x": np.arange(N)},
        {},
        ["'x' has 60 different values", "cut='x/4'", "drop_columns=['x']"],
    ),
    "names": (
        lambda: {"x": [f"p{k}" for k in range(N)]},
        {},
        ["60 different values", "identifier or a text"],
    ),
    "free text": (
        lambda: {"x": [f"The patient said {k}" for k in range(N)]},
        {},
        ["an identifier or a text, not levels (at most 20)"],
    ),
    "measurements": (
        lambda: {"x": RNG.normal(size=N)},
        {},
        ["counts or measurements", "quarters", "cut='x>=...'"],
    ),
    "21 levels": (lambda: {"x": np.resize(np.arange(21), N)}, {}, ["21 different values"]),
    "rows numbered in a small table": (
        lambda: {"x": np.concatenate([np.arange(1, 13), np.full(N - 12, np.nan)])},
        {"missing": "drop"},
        ["12 levels in as many rows (1, 2, 3, ...)", "numbers or names them"],
    ),
    "lists": (lambda: {"x": [[k % 3] for k in range(N)]}, {}, ["holds lists or other containers"]),
    "dates": (
        lambda: {"x": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"] * 20)},
        {},
        ["Timestamp"],
    ),
    "infinity": (
        lambda: {"x": several(ITEM.astype(float), {0: np.inf}).astype(float)},
        {},
        ["infinite value"],
    ),
    "ordinal words without an order": (
        lambda: {"x": WORDS},
        {"kinds": {"x": "ordinal"}},
        ["is to be ordinal and its levels are words", "levels={'x': ['never', 'often', 'sometimes']}"],
    ),
    "a scale called binary": (
        lambda: {"x": ITEM},
        {"kinds": {"x": "binary"}},
        ["'x' is to be binary and has 5 levels", "cut='x>=...'"],
    ),
    "a kind that does not exist": (
        lambda: {"x": ITEM},
        {"kinds": {"x": "interval"}},
        ["'interval'", "ordinal"],
    ),
    "kinds that are a list": (lambda: {"x": ITEM}, {"kinds": ["ordinal"]}, ["kinds takes a mapping"]),
    "a kind for no column": (
        lambda: {"item": ITEM},
        {"kinds": {"itm": "ordinal"}},
        ["kinds asks for a column 'itm'", "did you mean 'item'?"],
    ),
    "a range backwards": (
        lambda: {"x": ITEM, "y": ITEM},
        {"kinds": {"y..x": "ordinal"}},
        ["kinds asks for 'y..x'", "'x' stands before 'y'"],
    ),
    "a reference that is no level": (
        lambda: {"x": ITEM},
        {"kinds": {"x": "blume-capel:7"}},
        ["is to count from", "none of its levels (1, 2, 3, 4 and 5)"],
    ),
    "a level that is not listed": (
        lambda: {"x": WORDS},
        {"levels": {"x": ["never", "often"]}},
        ["'sometimes' (", "which levels does not list", "blank=['sometimes']"],
    ),
    "levels that are a word": (
        lambda: {"x": WORDS},
        {"levels": {"x": "never"}},
        ["a list of labels for 'x'"],
    ),
    "a level listed twice": (
        lambda: {"x": ITEM},
        {"levels": {"x": [1, 2, 3, 4, 5, "1"]}},
        ["levels lists 1 twice" if False else "twice for 'x'"],
    ),
    "one level listed": (lambda: {"x": ITEM}, {"levels": {"x": [1]}}, ["lists 1 level for", "2 to 20"]),
    "too many levels listed": (lambda: {"x": ITEM}, {"levels": {"x": range(21)}}, ["lists 21 levels"]),
    "levels for no column": (
        lambda: {"x": ITEM},
        {"levels": {"z": [1, 2]}},
        ["levels asks for a column 'z'"],
    ),
    "a cut that says nothing": (
        lambda: {"x": ITEM},
        {"cut": "x"},
        ["the cut 'x' cannot be read", "'item3>=2'"],
    ),
    "a cut of no column": (lambda: {"x": ITEM}, {"cut": "z>=2"}, ["cut asks for a column 'z'"]),
    "a cut at no number": (lambda: {"x": ITEM}, {"cut": "x>=two"}, ["cannot be read"]),
    "cuts that descend": (lambda: {"x": ITEM}, {"cut": "x>=4,2"}, ["cannot be read"]),
    "a cut of words by numbers": (
        lambda: {"x": CITY},
        {"cut": "x>=2"},
        ["'x' cannot be cut by numbers", "cut='x==...'"],
    ),
    "a cut that leaves one side empty": (
        lambda: {"x": ITEM},
        {"cut": "x>=20"},
        ["one level only", "'x' (always '<20')"],
    ),
    "quarters of a constant": (lambda: {"x": np.ones(N)}, {"cut": "x/4"}, ["one value only"]),
    "a cut and levels": (
        lambda: {"x": ITEM},
        {"cut": "x>=2", "levels": {"x": [1, 2, 3, 4, 5]}},
        ["'x' has both a cut and levels"],
    ),
    "binarize without a comparison": (
        lambda: {"x": ITEM},
        {"binarize": "high"},
        ["binarize takes one comparison"],
    ),
    "binarize words": (lambda: {"x": CITY}, {"binarize": ">0"}, ["'x' cannot be cut by numbers"]),
    "a blank for no column": (lambda: {"x": ITEM}, {"blank": {"z": [9]}}, ["blank asks for a column 'z'"]),
    "everything blank": (lambda: {"x": several(["u"] * N, {})}, {"blank": ["u"]}, ["blank in every row"]),
    "blanks among levels": (
        lambda: {"x": several(ITEM, {3: None}), "y": several(CITY, {4: None})},
        {},
        ["2 cells in 2 rows are blank", "missing='drop'"],
    ),
    "a scale of one level once rows are dropped": (
        lambda: {"x": ITEM, "y": np.where(ITEM == 3, BIT, np.nan)},
        {"missing": "drop"},
        ["once the incomplete rows are left out", "'x' (always 3)"],
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_levels(kind: str) -> None:
    columns, arguments, words = BAD[kind]
    with pytest.raises(DataError) as caught:
        read_data(frame(**columns()), **arguments)
    for word in words:
        assert word in str(caught.value)


def test_there_are_forty_kinds_and_the_command_says_them_in_options() -> None:
    assert len(BAD) >= 40
    with pytest.raises(TableError) as caught:
        read_data(frame(item=several(ITEM, {2: -9, 5: -9}), x=several(CITY, {4: "None"})))
    said = in_options(str(caught.value))
    for words in ("--blank=-9", "--levels item=-9,1,2,3,4,5", "--blank=None", "--nominal x"):
        assert words in said


def test_unseen_levels_at_prediction() -> None:
    levels = [(1, 2, 3), ("Bonn", "Oslo", "Rome")]
    names = ["item", "city"]
    assert encode_rows([["1.0", "oslo"], [3, None]], names, levels, allow_missing=True).tolist() == [
        [0, 1],
        [2, -1],
    ]
    with pytest.raises(TableError, match=r"column 'item' has 4 \(row 0\); the model knows 1, 2 and 3"):
        encode_rows([[4, "Oslo"]], names, levels)
    with pytest.raises(TableError, match=r"column 'city' has 'Paris' .* knows 'Bonn', 'Oslo' and 'Rome'"):
        encode_rows([[1, "Paris"]], names, levels)
    with pytest.raises(TableError, match="fill them in"):
        encode_rows([[1, None]], names, levels)
    assert encode_rows([["None"]], ["pain"], [("None", "Some", "Much")]).tolist() == [[0]]
    other = read_data({"item": ITEM, "city": CITY})
    with pytest.raises(TableError, match="the levels are not those of the model"):
        encode_rows(other, names, levels)
