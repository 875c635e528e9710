"""Posteriors on disk: everything comes back, and bad files are refused with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import xarray

import edgewise
from edgewise.draws import Draws
from edgewise.errors import DataError, FileError
from edgewise.features import Features
from edgewise.posterior import Posterior, formats, storage
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import BetaInclusion, Prior
from fixtures.write import numbers
from helpers import fake_posterior, sparse_draws

FIXTURES = Path(__file__).parents[1] / "fixtures"
WORDS = ("edges", "levels")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "posterior.nc"
    fake_posterior(6, 3, 80, seed=2).save(path)
    return path


def h5_end(content: bytes) -> int:
    """Where the HDF5 file ends and the index begins."""
    return len(content) - 56 - int.from_bytes(content[-56:-48], "little")


def assert_same(one: Posterior, other: Posterior) -> None:
    assert one.names == other.names
    assert one.levels == other.levels
    assert one.scales == other.scales
    assert one.info == other.info
    assert one._counters == other._counters
    assert one.prior == other.prior
    np.testing.assert_array_equal(one.features.members, other.features.members)
    assert one.statistics.n_rows == other.statistics.n_rows
    np.testing.assert_array_equal(one.statistics.singles, other.statistics.singles)
    np.testing.assert_array_equal(one.statistics.cliques, other.statistics.cliques)
    assert len(one.draws) == len(other.draws)
    for a, b in zip(one.draws, other.draws):
        for field in (part.name for part in fields(Draws)):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
            assert getattr(getattr(a, field), "dtype", None) == getattr(getattr(b, field), "dtype", None)
    assert one._edge_sums.axes == other._edge_sums.axes
    for key in one._edge_sums:
        np.testing.assert_array_equal(one._edge_sums[key], other._edge_sums[key])


@pytest.mark.parametrize(
    "made",
    [
        {},
        {"order": 3, "rao_blackwell": False},
        {"chains": 1, "draws": 1, "n_rows": 0},
        {"names": ["<script>", "ü", "=1+1", "a b", "c'", '"d"'], "levels": [("n", "y")] * 5 + [(-1, 1)]},
        {"prior": Prior(inclusion=BetaInclusion(1, 9), edge_probability={("x0", "x1"): 0.9})},
    ],
)
def test_everything_comes_back(tmp_path, made):
    posterior = fake_posterior(**made)
    posterior.save(tmp_path / "posterior.nc")
    again = edgewise.load_posterior(tmp_path / "posterior.nc")
    assert_same(posterior, again)
    assert again.summary().equals(posterior.summary())
    assert [entry.name for entry in tmp_path.iterdir()] == ["posterior.nc"]


def test_a_posterior_without_any_edge(tmp_path):
    draws = [sparse_draws(np.zeros((5, 3)), np.ones((5, 3)))]
    posterior = Posterior(draws, Features.pairs(3), ["a", "b", "c"])
    posterior.save(tmp_path / "empty.nc")
    assert_same(posterior, edgewise.load_posterior(str(tmp_path / "empty.nc")))


def test_other_programs_can_read_the_file(saved):
    with xarray.open_dataset(saved, engine="h5netcdf") as opened:
        assert opened.attrs["data_digest"] == "0" * 64
        assert opened.attrs["seed"] == "2"
        assert json.loads(opened.attrs["settings"]) == {"particles": 512}
        assert "numpy" in json.loads(opened.attrs["versions"])
        assert opened.bias.dims == ("chain", "draw", "variable")
        assert int(opened.row_size.sum()) == opened.sizes["entry"]


def test_long_names_and_settings_fit(tmp_path):
    names = [f"{'long name ' * 400}{i}" for i in range(40)]
    posterior = fake_posterior(40, 1, 3, names=names, info={"settings": {"text": "x" * 200_000}})
    posterior.save(tmp_path / "long.nc")
    assert_same(posterior, edgewise.load_posterior(tmp_path / "long.nc"))


def test_a_file_cut_anywhere_is_refused(saved, tmp_path):
    content = saved.read_bytes()
    cut = tmp_path / "cut.nc"
    end = h5_end(content)
    for keep in np.linspace(0, end - 1, 25).astype(int):
        cut.write_bytes(content[:keep])
        with pytest.raises(FileError, match=r"cut\.nc is (truncated|empty|not a NetCDF|damaged)"):
            edgewise.load_posterior(cut)


def test_a_file_that_lost_its_index_is_read_through_hdf5(saved, tmp_path):
    content = saved.read_bytes()
    original = edgewise.load_posterior(saved)
    cut = tmp_path / "cut.nc"
    for keep in (h5_end(content), h5_end(content) + 10, len(content) - 1):
        cut.write_bytes(content[:keep])
        assert_same(original, edgewise.load_posterior(cut))


def test_changed_bytes_are_refused_or_harmless(saved, tmp_path):
    content = saved.read_bytes()
    original = edgewise.load_posterior(saved)
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.integers(8, len(content), 60):
        changed = bytearray(content)
        changed[position] ^= 0x5A
        path = tmp_path / "changed.nc"
        path.write_bytes(changed)
        try:
            again = edgewise.load_posterior(path)
        except FileError:
            refused += 1
        else:
            # Padding between the objects of the file belongs to nobody.
            assert_same(original, again)
    assert refused > 20


def test_foreign_files_are_named(tmp_path):
    text = tmp_path / "edges.csv"
    text.write_text("a,b\n0,1\n")
    with pytest.raises(FileError, match=r"edges\.csv is not a NetCDF file"):
        edgewise.load_posterior(text)
    old = tmp_path / "old.nc"
    old.write_bytes(b"CDF\x01" + bytes(100))
    with pytest.raises(FileError, match="version 3"):
        edgewise.load_posterior(old)
    foreign = tmp_path / "foreign.nc"
    xarray.Dataset({"x": ("t", [1.0, 2.0])}, attrs={"title": "weather"}).to_netcdf(foreign, engine="h5netcdf")
    with pytest.raises(FileError, match=r"not a posterior written by edgewise .*'weather'"):
        edgewise.load_posterior(foreign)
    with pytest.raises(FileError, match="There is no file"):
        edgewise.load_posterior(tmp_path / "nothing.nc")
    with pytest.raises(FileError, match="is a directory"):
        edgewise.load_posterior(tmp_path)


def test_a_newer_format_is_named_with_its_writer_and_the_remedy(saved):
    with h5netcdf.File(saved, "a") as file:
        file.attrs["format_version"] = 99
        file.attrs["edgewise_version"] = "7.1.0"
    with pytest.raises(FileError, match=r"format 99 .* edgewise 7\.1\.0; .*pip install --upgrade"):
        edgewise.load_posterior(saved)


def test_a_format_that_never_was(saved):
    with h5netcdf.File(saved, "a") as file:
        file.attrs["format_version"] = 0
    with pytest.raises(FileError, match="damaged: it claims format 0"):
        edgewise.load_posterior(saved)


def test_every_earlier_format_has_a_step_and_a_file():
    earlier = set(range(1, formats.FORMAT_VERSION))
    assert set(formats.UPGRADES) == earlier
    found = set()
    for path in FIXTURES.glob("*.nc"):
        with h5netcdf.File(path) as file:
            found.add(int(file.attrs["format_version"]))
    assert earlier <= found


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.nc")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_open_with_their_numbers(path, tmp_path):
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
    posterior = edgewise.load_posterior(path)
    found = numbers(posterior)
    # These runs are short, and their Bayes factors are bounded by the draws they have since 0.3.0.
    factors, bounded = np.array(expected.pop("log10_bayes_factor")), np.array(found.pop("log10_bayes_factor"))
    bound = posterior.edge_values("bf_bound") != ""
    np.testing.assert_allclose(bounded[~bound], factors[~bound], rtol=1e-12)
    assert (np.abs(bounded[bound]) <= np.abs(factors[bound]) + 1e-12).all()
    assert found == {
        key: pytest.approx(value, rel=1e-12) if isinstance(value, list) and key not in WORDS else value
        for key, value in expected.items()
        if key != "version"
    }
    posterior.save(tmp_path / "again.nc")
    with h5netcdf.File(tmp_path / "again.nc") as file:
        assert int(file.attrs["format_version"]) == formats.FORMAT_VERSION
    assert_same(posterior, edgewise.load_posterior(tmp_path / "again.nc"))


def test_sums_with_axes_of_their_own_need_no_new_format(tmp_path):
    made = fake_posterior(4, 2, 10)
    levels = np.arange(2 * 6 * 3.0).reshape(2, 6, 3)
    sums = EdgeSums({"level_tries": levels}, {"level_tries": ("chain", "clique", "level")})
    posterior = Posterior(made.draws, made.features, made.names, edge_sums=sums)
    posterior.save(tmp_path / "levels.nc")
    assert_same(posterior, edgewise.load_posterior(tmp_path / "levels.nc"))
    with xarray.open_dataset(tmp_path / "levels.nc", engine="h5netcdf") as opened:
        assert opened.sum_level_tries.dims == ("chain", "clique", "level")


def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path):
    made = fake_posterior(4, 2, 10)
    contents = storage.Contents(
        made.draws,
        made.features,
        made.names,
        made.levels[:3],
        made.statistics,
        made.prior,
        made.info,
        EdgeSums(),
        [],
    )
    storage.write(contents, tmp_path / "odd.nc")
    with pytest.raises(
        FileError, match=r"odd\.nc is a posterior but not a consistent one: .*3 pairs of levels"
    ):
        edgewise.load_posterior(tmp_path / "odd.nc")


def test_sums_of_other_sizes_are_refused():
    made = fake_posterior(4, 2, 10)
    with pytest.raises(
        DataError, match=r"'tries' has the shape \(2, 5\); there are 2 chains and 6 candidates"
    ):
        Posterior(made.draws, made.features, made.names, edge_sums=[{"tries": np.ones(5)}] * 2)


def test_sums_whose_axes_have_no_names_are_refused():
    with pytest.raises(DataError, match=r"'tries' has 2 axes and the names chain"):
        EdgeSums({"tries": np.zeros((2, 3))}, {"tries": ("chain",)})
    with pytest.raises(DataError, match="needs an array and the names"):
        EdgeSums({"tries": np.zeros((2, 3))}, {})


def test_saving_where_nothing_can_be_written(tmp_path):
    posterior = fake_posterior(4, 1, 5)
    with pytest.raises(FileError, match="cannot be written"):
        posterior.save(tmp_path / "missing" / "posterior.nc")
    with pytest.raises(FileError, match="is a directory"):
        posterior.save(tmp_path)


def test_a_failure_while_writing_leaves_the_earlier_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "_checksum", full)
    with pytest.raises(FileError, match=r"No space left.*untouched"):
        fake_posterior(5, 1, 20).save(saved)
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]


def test_info_that_is_not_json(tmp_path):
    with pytest.raises(DataError, match="JSON"):
        fake_posterior(4, 1, 5, info={"settings": object()}).save(tmp_path / "posterior.nc")


def test_numpy_numbers_in_info(tmp_path):
    info = {"seed": np.int64(3), "settings": {"width": np.float64(0.5), "list": np.arange(2)}}
    fake_posterior(4, 1, 5, info=info).save(tmp_path / "posterior.nc")
    again = edgewise.load_posterior(tmp_path / "posterior.nc")
    assert again.info["seed"] == 3
    assert again.info["settings"] == {"width": 0.5, "list": [0, 1]}


def test_a_saved_posterior_opens_without_numba(saved):
    code = (
        "import sys\n"
        "sys.modules['numba'] = None\n"
        "import edgewise\n"
        "from edgewise.posterior.diagnostics import diagnose\n"
        f"posterior = edgewise.load_posterior({str(saved)!r})\n"
        "posterior.summary(), posterior.graph(), posterior.median_model, diagnose(posterior)\n"
        "print(repr(posterior))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Posterior(6 variables")
