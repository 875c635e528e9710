"""Runs over variables with any levels: the same draws however they are divided, saved and computed."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from edgewise.draws.checks import check_draws
from edgewise.engines.protocol import Problem
from edgewise.errors import FileError
from edgewise.features import Features, level_statistics
from edgewise.priors import Prior
from edgewise.run import workers
from edgewise.scales import Scale, Scales
from levels import SCALES, level_problem, level_run
from toy_engine import fingerprint


@pytest.fixture(scope="module")
def reference():
    return level_run()


def test_draws_hold_matrices_and_all_thresholds(reference):
    problem = level_problem()
    assert problem.n_biases == 2 + 2 + 1 + 3 + 2
    for chain in reference.draws:
        assert chain.biases.shape == (60, problem.n_biases)
        check_draws(chain, problem.n_biases, problem.features.n_cliques, problem.dimension)
        assert len(chain.blocks) > 0
    with pytest.raises(ValueError, match="instead of 5"):
        check_draws(chain, 5, problem.features.n_cliques, problem.dimension)
    with pytest.raises(ValueError, match="no candidate has one"):
        check_draws(chain, problem.n_biases, problem.features.n_cliques)


def test_workers_and_slices_change_nothing(reference, monkeypatch):
    assert fingerprint(level_run(n_jobs=2).draws) == fingerprint(reference.draws)
    monkeypatch.setattr(workers, "SLICE_SECONDS", 1e-4)
    assert fingerprint(level_run().draws) == fingerprint(reference.draws)


def test_processes_change_nothing(reference):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert fingerprint(level_run(executor=pool).draws) == fingerprint(reference.draws)


def test_a_run_goes_on_from_its_checkpoint_and_from_memory(reference, tmp_path):
    first = level_run(25, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert fingerprint([chain[:25] for chain in reference.draws]) == fingerprint(first.draws)
    whole = level_run(checkpoint=tmp_path / "c", checkpoint_every=0)
    assert whole.info["resumed_from_iteration"] == 65
    assert fingerprint(whole.draws) == fingerprint(reference.draws)
    longer = level_run(previous=first)
    assert fingerprint(longer.draws) == fingerprint(reference.draws)


@pytest.mark.filterwarnings("ignore:Warm-up will take")
def test_time_that_ends_in_warm_up_leads_to_the_same_draws(reference, tmp_path):
    long = {"settings": {"warm_up": 2000}, "checkpoint": tmp_path / "c"}
    short = level_run(max_time=0.05, **long)
    assert short.info["warm_up_unfinished"]
    assert all(chain.blocks is not None for chain in short.draws)
    assert fingerprint(level_run(**long).draws) == fingerprint(level_run(settings={"warm_up": 2000}).draws)


def test_a_checkpoint_of_other_labels_is_another_fit(tmp_path):
    level_run(10, checkpoint=tmp_path / "c")
    problem = level_problem()
    renamed = Scales((Scale("ordinal", ("a", "b", "c")), *SCALES[1:]))
    other = Problem(problem.features, problem.statistics, problem.prior, None, renamed)
    with pytest.raises(FileError, match="belongs to another fit"):
        level_run(10, other, checkpoint=tmp_path / "c")


def test_auto_takes_the_table_of_joint_states():
    result = level_run(10, engine="auto")
    assert result.info["engine"] == "exact"
    assert "288 joint states" in result.info["engine_reason"]


def test_ordinal_variables_alone_have_no_matrices(tmp_path):
    scales = Scales((Scale("ordinal", (0, 1, 2)),) * 3)
    features = Features.pairs(3)
    rows = np.random.default_rng(0).integers(0, 3, (30, 3))
    statistics = level_statistics(rows, None, scales, features)
    problem = Problem(features, statistics, Prior().resolve(features), None, scales)
    level_run(10, problem, checkpoint=tmp_path / "c")
    result = level_run(20, problem, checkpoint=tmp_path / "c")
    assert all(chain.blocks is None for chain in result.draws)
    assert fingerprint(result.draws) == fingerprint(level_run(20, problem).draws)
