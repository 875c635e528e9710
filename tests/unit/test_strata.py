"""Columns that divide the rows: labels, bins, combinations with few rows, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from edgewise.data import read_data
from edgewise.data.strata import Layout
from edgewise.errors import DataError
from edgewise.features import Features, sufficient_statistics


def table(n=40, seed=0, **more):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 2, n) for name in "abc"}
    return pd.DataFrame({**columns, **more})


def test_a_column_or_labels_of_ones_own_say_the_same():
    sex = np.repeat(["f", "m"], [15, 25])
    by_column = read_data(table(sex=sex), groups="sex")
    by_labels = read_data(table(), groups=sex)
    assert by_column.names == by_labels.names == ("a", "b", "c")
    assert by_column.strata.layout.groups == ("f", "m")
    assert by_column.strata.layout.rows == (15.0, 25.0)
    np.testing.assert_array_equal(by_column.strata.of_row, by_labels.strata.of_row)
    assert by_column.strata.layout.group_name == "sex"
    assert by_labels.strata.layout.group_name == "group"
    assert read_data(table()).digest() != by_column.digest()


def test_the_parts_are_the_rows_of_each_stratum():
    data = read_data(
        table(sex=np.tile(["f", "m"], 20), weight=np.arange(40.0)), groups="sex", sample_weight="weight"
    )
    features = Features.pairs(3)
    parts = [sufficient_statistics(part, features) for part in data.parts()]
    whole = sufficient_statistics(data, features)
    np.testing.assert_allclose(sum(part.cliques for part in parts), whole.cliques)
    assert tuple(part.n_rows for part in parts) == data.strata.layout.rows
    assert data.parts()[0].values().tolist() == data.values()[data.strata.of_row == 0].tolist()


def test_numbers_are_cut_at_their_quantiles_and_said_to_be():
    ages = np.arange(40)
    data = read_data(table(age=ages), adjust="age", bins=4)
    assert data.strata.layout.edges == ((9.0, 19.0, 29.0),)
    assert data.strata.layout.rows == (10.0,) * 4
    assert data.strata.layout.names == ("<= 9", "> 9 to 19", "> 19 to 29", "> 29")
    assert "age cut into 4 bins at 9, 19 and 29" in data.notes
    few = read_data(table(age=ages % 3), adjust="age", bins=4)
    assert few.strata.layout.edges == (None,)
    assert few.strata.layout.names == ("0", "1", "2")
    assert read_data(table(age=ages), adjust=["age"]).strata.layout.n_strata == 4


def test_combinations_with_few_rows_are_put_together_by_name():
    site = np.array(["A"] * 30 + ["B"] * 7 + ["C"] * 2 + ["D"])
    data = read_data(table(site=site), adjust=["site"])
    # C and D are three together: B, the smallest of the others, takes them in.
    assert data.strata.layout.names == ("A", "C + D + B") or data.strata.layout.names == ("A", "B + C + D")
    assert data.strata.layout.rows == (30.0, 10.0)
    note = next(note for note in data.notes if "fewer than 5 rows" in note)
    assert note == "2 combinations of site with fewer than 5 rows put with B: C (2) and D (1)"


def test_combinations_that_would_not_be_held_fixed_are_refused_by_name():
    site = np.array(["A"] * 16 + [f"s{k}" for k in range(8)] * 3)
    with pytest.raises(DataError, match=r"8 of the 9 combinations of site have .* rows, and together 60%"):
        read_data(table(site=site), adjust=["site"])


def test_groups_and_covariates_together():
    data = read_data(
        table(sex=np.repeat(["f", "m"], 20), site=np.tile(["x", "y"], 20)), groups="sex", adjust=["site"]
    )
    layout = data.strata.layout
    assert layout.names == ("f, x", "f, y", "m, x", "m, y")
    assert layout.group_of == (0, 0, 1, 1)
    assert layout.rows_of_groups == (20.0, 20.0)
    assert Layout.from_dict(layout.to_dict()).to_dict() == layout.to_dict()
    found = layout.strata_of(["m", "f"], {"site": ["x", "y"]})
    assert found.tolist() == [2, 1]
    with pytest.raises(DataError, match="which no row of the fit had"):
        layout.strata_of(["m"], {"site": ["z"]})
    with pytest.raises(DataError, match="no group 'x'; the groups are 'f', 'm'"):
        layout.group("x")


def test_blanks_that_divide_are_an_error_or_left_out():
    sex = np.array(["f", "m"] * 20, object)
    sex[[3, 7]] = None
    with pytest.raises(DataError, match=r"the group 'sex' is blank in 2 rows \(first in row 3"):
        read_data(table(sex=sex), groups="sex")
    data = read_data(table(sex=sex), groups="sex", missing="drop")
    assert data.n_rows == 38
    assert "2 rows without 'sex' left out" in data.notes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"groups": np.zeros(40)}, "one label only"),
        ({"groups": np.arange(40)}, "40 labels in the rows that count; two to 12"),
        ({"groups": ["f"] * 38 + ["m"] * 2}, r"fewer than 5 rows cannot be compared: 'm' \(2\)"),
        ({"groups": ["f", "m"]}, "2 labels; give one for each of the 40 rows"),
        ({"groups": "sexx"}, "no column 'sexx'|asks for a column 'sexx'"),
        ({"adjust": {"site": ["A"] * 40}}, "always 'A'"),
        ({"adjust": {"name": [f"n{k}" for k in range(40)] * 1}, "bins": 1}, "bins must be a whole number"),
        ({"groups": 3.5}, "takes a column, or one label per row"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(DataError, match=words):
        read_data(table(), **arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"groups": ["f", "f"]},
        {"group_of": [0, 2]},
        {"rows": [1.0]},
        {"combinations": [[0, [], 0]]},
        {"combinations": [[0, [], 1], [1, [], 0]]},
        {"edges": [None]},
        {"group_name": 3},
        {"bins": 99},
    ],
)
def test_a_forged_layout_is_refused(change):
    layout = read_data(table(), groups=np.repeat([0, 1], 20)).strata.layout.to_dict()
    assert Layout.from_dict(layout).groups == ("0", "1")
    with pytest.raises((ValueError, KeyError, TypeError)):
        Layout.from_dict(layout | change)
