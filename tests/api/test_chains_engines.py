"""Every engine under the conductor: the draws depend on the seed alone, and the chain survives travelling."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from edgewise.run import workers
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from toy_engine import fingerprint, toy_problem

ENGINES = ["exact", "particle", "langevin"]


def short_run(engine, **options):
    defaults = {"chains": 3, "min_draws": 60, "max_draws": 60, "thin": 2, "target_ess": None, "seed": 7}
    settings = {"warm_up": 60}
    merged = {"engine": engine, "progress": False, "settings": settings, **defaults, **options}
    return run(toy_problem(80, 5), RunOptions(**merged))


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def reference(engine):
    return short_run(engine, n_jobs=1)


def same(one, other):
    sums = zip(one.edge_sums, other.edge_sums)
    return fingerprint(one.draws) == fingerprint(other.draws) and all(
        np.array_equal(a[key], b[key]) for a, b in sums for key in a
    )


@pytest.mark.parametrize("n_jobs", [2, 8])
def test_the_number_of_workers_changes_nothing(engine, reference, n_jobs):
    assert same(short_run(engine, n_jobs=n_jobs), reference)
    assert not same(short_run(engine, n_jobs=n_jobs, seed=8), reference)


@pytest.mark.parametrize("seconds", [1e-9, 1.0])
def test_the_length_of_the_slices_changes_nothing(engine, reference, monkeypatch, seconds):
    monkeypatch.setattr(workers, "SLICE_SECONDS", seconds)
    assert same(short_run(engine), reference)


def test_travelling_between_processes_changes_nothing(engine, reference, monkeypatch):
    monkeypatch.setattr(workers, "SLICE_SECONDS", 1e-3)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert same(short_run(engine, executor=pool), reference)


def test_a_checkpoint_goes_on_to_the_same_draws(engine, reference, tmp_path):
    short_run(engine, checkpoint=tmp_path / "c", min_draws=20, max_draws=20)
    rest = short_run(engine, checkpoint=tmp_path / "c")
    assert rest.info["resumed_from_iteration"] == 100
    assert same(rest, reference)
