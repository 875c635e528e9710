"""A fit of more pairs than can be listed, from the table to the report and back."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise import SpikeSlabMRF, load_posterior
from edgewise.errors import DataError
from edgewise.features import candidates as limits
from edgewise.posterior import columns
from edgewise.priors import Prior, StudentSlab
from edgewise.run import stopping
from edgewise.run.unfinished import since
from toy_engine import fingerprint

P = 14
BRIEF = {"engine": "particle", "chains": 2, "progress": False, "random_state": 5, "target_ess": None}
SETTINGS = {"warm_up": 60, "particles": 128, "sites": 2}


@pytest.fixture
def unlisted(monkeypatch):
    monkeypatch.setattr(limits, "MOST_LISTED", 20)
    monkeypatch.setattr(stopping, "MOST_LISTED", 20)


def table():
    rng = np.random.default_rng(2)
    rows = (rng.random((150, P)) < 0.5).astype(int)
    rows[:, 1::2] = np.where(rng.random((150, P // 2)) < 0.9, rows[:, ::2], rows[:, 1::2])
    return rows


def model(draws=20, **options):
    return SpikeSlabMRF(**BRIEF, settings=SETTINGS, min_draws=draws, max_draws=draws, **options)


def test_a_posterior_lists_what_was_ever_active(unlisted, tmp_path):
    found = model(prior=Prior(forced=[(0, 2)])).fit(table())
    posterior = found.posterior_
    assert posterior.n_candidates == P * (P - 1) // 2
    assert 0 < posterior.n_cliques < posterior.n_candidates
    assert posterior.n_unlisted == posterior.n_candidates - posterior.n_cliques
    counts = sum(np.bincount(chain.indices, minlength=posterior.n_cliques) for chain in posterior.draws)
    assert counts.min() > 0
    assert [tuple(edge) for edge in posterior.features.members[counts == counts.max()]]
    for k in range(0, P, 2):
        assert found.inclusion_[k, k + 1] > 0.9
    assert found.inclusion_[0, 2] == 1
    sparse = posterior.sparse_pair_values("inclusion").toarray()
    assert np.array_equal(sparse, found.inclusion_)
    rows = table()
    i, j = posterior.features.members.T
    assert np.array_equal(posterior.statistics.cliques, (rows[:, i] * rows[:, j]).sum(axis=0))
    posterior.save(tmp_path / "p.nc")
    again = load_posterior(tmp_path / "p.nc")
    assert again.n_unlisted == posterior.n_unlisted
    assert np.array_equal(again.inclusion, posterior.inclusion)


def test_interrupted_resumed_and_extended_it_is_the_same(unlisted, tmp_path):
    whole = model(draws=24).fit(table())
    first = model(draws=12, checkpoint=tmp_path / "c").fit(table())
    resumed = model(draws=24, checkpoint=tmp_path / "c").fit(table())
    assert resumed.posterior_.info["resumed_from_iteration"] == 72
    assert fingerprint(resumed.posterior_.draws) == fingerprint(whole.posterior_.draws)
    assert fingerprint(first.extend(12).posterior_.draws) == fingerprint(whole.posterior_.draws)


def test_a_look_sees_what_it_sees_of_listed_pairs(unlisted, monkeypatch):
    found = model(draws=40).fit(table())
    draws = found._result.draws
    seen = stopping.look(draws, P * (P - 1) // 2)
    monkeypatch.setattr(stopping, "MOST_LISTED", 10**6)
    assert seen == stopping.look(draws, P * (P - 1) // 2)


def test_what_cannot_be_done_is_refused(unlisted, monkeypatch):
    with pytest.raises(DataError, match="too many for engine='langevin'"):
        SpikeSlabMRF(**{**BRIEF, "engine": "langevin"}).fit(table())
    with pytest.raises(DataError, match="need every pair laid out"):
        model(prior=Prior(slab=StudentSlab())).fit(table())
    found = model().fit(table())
    monkeypatch.setattr(columns, "physical_memory", lambda: 100)
    with pytest.raises(DataError, match="sparse_pair_values"):
        found.inclusion_  # noqa: B018
    with pytest.raises(DataError, match="holds words"):
        found.posterior_.sparse_pair_values("evidence")


def test_sums_since_a_moment():
    before = {"candidates": np.array([3]), "tries": np.array([5.0]), "rest": np.array([1.0, 0.5])}
    after = {"candidates": np.array([2, 3]), "tries": np.array([1.0, 6.0]), "rest": np.array([4.0, 1.0])}
    assert {name: part.tolist() for name, part in since(before, after).items()} == {
        "candidates": [2, 3],
        "tries": [1.0, 1.0],
        "rest": [3.0, 0.5],
    }
