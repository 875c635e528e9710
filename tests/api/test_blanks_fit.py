"""Tables with blanks from the door to the report: estimator, command, files, resuming."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from edgewise import NodewiseLasso, SpikeSlabMRF, load_posterior
from edgewise.data import TableError, encode_rows, read_data
from edgewise.errors import DataError, FileError
from edgewise.fitting import pose
from edgewise.posterior import Posterior, storage
from edgewise.posterior.diagnostics import diagnose, predictive_check
from edgewise.report import write_imputed_csv, write_report
from toy_engine import fingerprint

QUICK = {
    "progress": False,
    "random_state": 3,
    "chains": 2,
    "min_draws": 300,
    "max_draws": 300,
    "target_ess": None,
}
NAMES = ["rain", "umbrella", "coat", "mood"]


def answers(levels: int = 2) -> pd.DataFrame:
    """Ninety rows, a seventh of the cells blank; the last row has no answer."""
    rng = np.random.default_rng(2)
    cells = rng.integers(0, levels, (90, 4)).astype(float)
    cells[:, 1] = np.where(rng.random(90) < 0.8, cells[:, 0], cells[:, 1])
    cells[rng.random(cells.shape) < 0.15] = np.nan
    cells[-1] = np.nan
    return pd.DataFrame(cells, columns=NAMES)


@pytest.fixture(scope="module")
def fitted() -> SpikeSlabMRF:
    return SpikeSlabMRF(engine="exact", **QUICK).fit(answers())


@pytest.fixture(scope="module")
def posterior(fitted) -> Posterior:
    return fitted.posterior_


def test_the_door_keeps_blanks():
    table = answers()
    data = read_data(table, missing="impute")
    known = table.notna().to_numpy()[:-1]
    assert data.n_rows == 89
    np.testing.assert_array_equal(data.unknown_cells(), ~known)
    np.testing.assert_array_equal(data.unknown_cells(8, 30), ~known[8:30])
    np.testing.assert_array_equal(data.values()[known], table.to_numpy()[:-1][known])
    assert "1 row without any answer left out" in data.notes
    assert any(note.startswith(f"{(~known).sum()} blank cells imputed: ") for note in data.notes)
    assert data.digest() != read_data(table.fillna(0), missing="impute").digest()
    complete = read_data(table.dropna(), missing="impute")
    assert complete.unknown is None
    assert complete.digest() == read_data(table, missing="drop").digest()
    np.testing.assert_array_equal(encode_rows(data, NAMES, data.levels, allow_missing=True) < 0, ~known)
    with pytest.raises(TableError, match="blank"):
        encode_rows(data, NAMES, data.levels)


def test_weights_of_rows_with_blanks_are_whole():
    table = answers().iloc[:20]
    weights = np.ones(20)
    row = int(np.flatnonzero(table.isna().any(axis=1))[0])
    weights[row] = 1.5
    with pytest.raises(TableError, match=r"sample_weight is 1\.5 at row .*missing='drop'"):
        read_data(table, sample_weight=weights, missing="impute", constant="keep")
    weights[row] = 1e20
    with pytest.raises(TableError, match=r"sample_weight add up to 1e\+20, .*at most 1e\+12"):
        read_data(table, sample_weight=weights, missing="impute", constant="keep")
    weights[row] = 0.0
    assert read_data(table, sample_weight=weights, missing="impute", constant="keep").n_rows == 19
    weights[:] = 2.5
    weights[table.isna().any(axis=1)] = 3
    data = read_data(table, sample_weight=weights, missing="impute", constant="keep")
    assert pose(data).problem.blanks.count.sum() == 3 * table.isna().any(axis=1).sum()


def test_probabilities_of_the_blank_cells(posterior):
    table, imputed = answers().iloc[:-1], posterior.imputed
    places = {(int(row), NAMES[column]) for row, column in np.argwhere(table.isna().to_numpy())}
    found = imputed.table
    assert {(row, name) for row, name in zip(found["row"], found["variable"])} == places
    assert imputed.n_cells == len(places) == sum(imputed.blanks.values())
    total = found.groupby(["row", "variable"])["probability"].sum()
    np.testing.assert_allclose(total, 1.0, atol=1e-9)
    # An umbrella goes with the rain.
    for rain, name in ((1.0, "high"), (0.0, "low")):
        rows = table.index[table["umbrella"].isna() & (table["rain"] == rain)]
        chances = [imputed.chance(row, "umbrella")[1.0] for row in rows]
        assert (np.mean(chances) > 0.6) == (name == "high")
    assert (imputed.errors < 0.1).all()
    assert (imputed.effective > 50).all()
    with pytest.raises(DataError, match="is not blank in 'rain'"):
        imputed.chance(int(table.index[table["rain"].notna()][0]), "rain")


def test_saved_and_loaded(posterior, tmp_path):
    posterior.save(tmp_path / "posterior.nc")
    again = load_posterior(tmp_path / "posterior.nc")
    pd.testing.assert_frame_equal(again.imputed.table, posterior.imputed.table)
    assert diagnose(again).light == diagnose(posterior).light
    contents = storage.read(tmp_path / "posterior.nc")
    forged = vars(contents) | {
        "imputed": type(posterior.imputed)(**(vars_of(posterior.imputed) | {"start": np.array([0, 1])}))
    }
    with pytest.raises((DataError, FileError), match="not a consistent one"):
        storage.write(storage.Contents(**forged), tmp_path / "forged.nc")


def vars_of(imputed) -> dict:
    return {name: getattr(imputed, name) for name in type(imputed).__dataclass_fields__}


def test_report_and_csv(posterior, tmp_path):
    data = read_data(answers(), missing="impute")
    page = write_report(posterior, tmp_path / "report.html", data=data).read_text("utf-8")
    for words in (
        "What was blank",
        "missing at random",
        "without any answer were left out",
        "imputed jointly",
    ):
        assert words in page
    rows = list(csv.reader(write_imputed_csv(posterior, tmp_path / "imputed.csv").open(encoding="utf-8-sig")))
    assert rows[0] == ["row_number", "variable", "level", "probability", "mcse"]
    assert len(rows) == 1 + 2 * posterior.imputed.n_cells
    assert int(rows[1][0]) == posterior.imputed.rows[0] + 1
    assert any("blank cells in" in note for note in diagnose(posterior).notes)
    check = predictive_check(posterior, data, n_models=5)
    assert np.isfinite(check.means.observed).all()
    with pytest.raises(DataError, match="a row with blanks has no log-likelihood"):
        posterior.to_datatree(data=data, log_likelihood=True)


def test_complete_tables_have_nothing_imputed(tmp_path):
    posterior = SpikeSlabMRF(engine="exact", **QUICK).fit(answers().dropna()).posterior_
    assert posterior.imputed is None
    assert write_imputed_csv(posterior, tmp_path / "imputed.csv") is None
    assert "What was blank" not in write_report(posterior, tmp_path / "r.html").read_text("utf-8")


def test_going_on_and_workers_do_not_change_a_draw(fitted, tmp_path):
    table = answers()
    short = {**QUICK, "min_draws": 100, "max_draws": 100}
    longer = SpikeSlabMRF(engine="exact", **short, n_jobs=1, checkpoint=tmp_path / "c").fit(table).extend(200)
    assert fingerprint(longer.posterior_.draws) == fingerprint(fitted.posterior_.draws)
    np.testing.assert_array_equal(longer.posterior_.imputed.sums, fitted.posterior_.imputed.sums)
    resumed = SpikeSlabMRF(engine="exact", **QUICK, checkpoint=tmp_path / "c").fit(table)
    np.testing.assert_array_equal(resumed.posterior_.imputed.sums, fitted.posterior_.imputed.sums)


def test_more_levels():
    posterior = SpikeSlabMRF(engine="exact", **QUICK).fit(answers(3)).posterior_
    assert not posterior.scales.all_binary
    found = posterior.imputed.table
    assert (found.groupby(["row", "variable"]).size() == 3).all()
    np.testing.assert_allclose(found.groupby(["row", "variable"])["probability"].sum(), 1.0, atol=1e-9)


def test_what_takes_complete_tables_only():
    with pytest.raises(DataError, match=r"langevin engine takes complete tables only.*missing='drop'"):
        SpikeSlabMRF(engine="langevin", **QUICK).fit(answers())
    with pytest.raises(DataError, match=r"NodewiseLasso takes complete rows only.*missing='drop'"):
        NodewiseLasso(missing="impute").fit(answers())
    with pytest.raises(TableError, match="blank"):
        SpikeSlabMRF(missing="error", **QUICK).fit(answers())
