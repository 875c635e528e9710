"""What a fit will take is said before it, and what cannot fit is refused before any work."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from command import edgewise
from edgewise import SpikeSlabMRF
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.priors import Prior
from edgewise.run import estimate
from edgewise.run.options import RunOptions
from toy_engine import TOY, toy_problem, toy_rows


def test_a_trial_counts_what_is_there_and_takes_no_longer_than_asked():
    options = RunOptions(engine=TOY, chains=3, n_jobs=2, min_draws=100, settings={"delay": 0.002})
    found = estimate.estimate(toy_problem(), options, 0.05)
    assert (found.variables, found.candidates, found.chains, found.draws) == (4, 6, 3, 100)
    assert found.seconds_per_draw >= 0.002
    # Three chains on two lanes take two turns.
    assert found.seconds == pytest.approx(2 * (found.start_seconds + 120 * found.seconds_per_draw))
    assert found.total_bytes == pytest.approx(estimate.PROCESS_BYTES + 3 * found.chain_bytes)
    text = str(found)
    assert "Memory: " in text
    assert "100 draws of every chain, 2 at a time" in text
    assert not dataclasses.replace(found, machine_bytes=1.0).fits


def test_the_estimator_says_it_and_fits_nothing():
    model = SpikeSlabMRF(engine=TOY)
    assert model.estimate(toy_rows()).candidates == 6
    assert not hasattr(model, "posterior_")


def test_the_command_says_it_and_writes_nothing(votes, tmp_path):
    words = ["fit", votes, "--group", "party", "--missing", "drop", "--engine", TOY]
    said = edgewise(*words, "-o", tmp_path / "fit", "--dry-run")
    assert "Memory: " in said.stderr
    assert not (tmp_path / "fit").exists()


def test_what_cannot_be_laid_out_is_refused_with_what_would_fit(monkeypatch):
    i, j = np.indices((300, 600), np.int32)
    features = Features(900, np.stack([i.ravel(), 300 + j.ravel()], axis=1))
    problem = Problem(features, Statistics.none(features), Prior().resolve(features))
    one = features.n_cliques * estimate.LAID_OUT_BYTES + 4 * 900**2
    monkeypatch.setattr(estimate, "physical_memory", lambda: int(2.5 * one))
    estimate.check_memory(problem, 2)
    with pytest.raises(DataError, match=r"4 chains over 180,000 candidates take .* chains=2, fewer columns"):
        estimate.check_memory(problem, 4)
    monkeypatch.setattr(estimate, "physical_memory", lambda: one // 2)
    with pytest.raises(DataError, match="what would fit is fewer columns"):
        estimate.check_memory(problem, 1)
