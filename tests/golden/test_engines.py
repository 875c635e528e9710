"""Same seed, same draws: however a run is divided, saved and restored; and the very bytes of a tiny run.

The bytes depend on the compiler's rounding, so they are compared only with the versions they were made with;
CI fails with versions for which there are none. A change of them is allowed when the algorithm changes:
``python tests/golden/test_engines.py`` renews them, and CHANGES says why.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import Prior

ENGINES = ("exact", "particle")
GOLDEN = (*ENGINES, "langevin")
FIELDS = ("indptr", "indices", "values", "biases", "inclusion_rate", "slab_scale")
STORED = Path(__file__).with_name("engines.json")
CHANGES = (
    "first version",
    "particle: the start no longer depends on the number of BLAS threads",
    "exact, particle: no fast mathematics, so that freshly compiled and cached code agree",
    "particle: noise weighed by acceptance, measured stirring, resampling in place, weights kept near one",
    "particle: births and deaths of cold candidates, stirring by the number of independent directions",
    "particle: parameters are redrawn in a fresh random order",
    "exact, particle: one set of moves for both engines, and swaps come first in an iteration of either",
    "particle: swaps between rivals found in warm-up, and fewer of any pair",
)


def problem(order: int = 2) -> Problem:
    rng = np.random.default_rng(0)
    rows = (rng.random((80, 5)) < [0.3, 0.5, 0.6, 0.4, 0.5]).astype(float)
    rows[:, 1] = np.where(rng.random(80) < 0.7, rows[:, 0], rows[:, 1])
    features = Features.up_to(5, order)
    sums = [rows[:, [i for i in row if i >= 0]].prod(axis=1).sum() for row in features.members]
    return Problem(features, Statistics(80.0, rows.sum(axis=0), np.array(sums)), Prior().resolve(features))


def start(name: str, order: int, **settings: int):
    return load_engine(name)(problem(order), {"warm_up": 130} | settings, np.random.SeedSequence(9))


def saved_and_restored(name: str, order: int, engine, **settings: int):
    """The chain after a trip through a file."""
    file = io.BytesIO()
    np.savez(file, **engine.state())
    file.seek(0)
    with np.load(file) as stored:
        return load_engine(name).restore(problem(order), {"warm_up": 130} | settings, dict(stored))


def assert_same(first: Draws, second: Draws) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field), err_msg=field)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("name", ENGINES)
def test_draws_do_not_depend_on_division_or_saving(name, order):
    whole = start(name, order)
    whole.advance(130)
    expected = whole.advance(300, thin=3)
    assert len(expected) == 100
    for through_file in (False, True):
        pieces = start(name, order)
        parts = []
        for length in (1, 48, 2, 60, 19, 1, 2, 7, 90, 200):
            if through_file:
                pieces = saved_and_restored(name, order, pieces)
            parts.append(pieces.advance(length, thin=3))
        joined = Draws.concatenate(parts)
        assert_same(joined, expected)
        for key, value in whole.state().items():
            np.testing.assert_array_equal(pieces.state()[key], value, err_msg=key)
        for key, value in whole.edge_sums().items():
            np.testing.assert_array_equal(pieces.edge_sums()[key], value, err_msg=key)
        assert pieces.counters() == whole.counters()


@pytest.mark.parametrize("name", ENGINES)
def test_chosen_particles_survive_saving(name):
    """A chain that chose its own budget in warm-up is restored with it, not with the first guess."""
    engine = start(name, 2)
    engine.advance(130)
    again = saved_and_restored(name, 2, engine)
    shapes = {key: value.shape for key, value in engine.state().items()}
    assert {key: value.shape for key, value in again.state().items()} == shapes


@pytest.mark.parametrize("name", ENGINES)
def test_other_seed_other_draws(name):
    draws = []
    for seed in (1, 1, 2):
        engine = load_engine(name)(problem(), {"warm_up": 50}, np.random.SeedSequence(seed))
        engine.advance(50)
        draws.append(engine.advance(40))
    assert_same(draws[0], draws[1])
    assert not np.array_equal(draws[0].biases, draws[2].biases)


@pytest.mark.parametrize("name", ENGINES)
def test_a_block_must_not_cross_the_end_of_warm_up(name):
    engine = start(name, 2)
    with pytest.raises(ValueError, match="end of warm-up"):
        engine.advance(131)


def fingerprint(name: str) -> str:
    engine = start(name, 2)
    engine.advance(130)
    draws = engine.advance(60)
    digest = hashlib.sha256()
    for field in FIELDS:
        digest.update(np.ascontiguousarray(getattr(draws, field)).tobytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    return {"numpy": np.__version__, "numba": numba.__version__, "machine": platform.machine()}


def golden(stored: dict[str, Any], name: str) -> str:
    """The stored digest if it holds for these versions; else a failure in CI and a skip elsewhere."""
    if versions() in stored["made_with"]:
        return str(stored[name])
    message = (
        f"no golden runs were made with {versions()}; when the draws are right with them, add the versions "
        f"with python tests/golden/{Path(__file__).name}"
    )
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_run(name):
    expected = golden(json.loads(STORED.read_text("utf-8")), name)
    assert fingerprint(name) == expected, f"if this is meant, renew {STORED.name} and say why in CHANGES"


def test_other_versions_are_a_failure_in_ci_alone(monkeypatch):
    other = {"made_with": [versions() | {"numpy": "0.0"}], "exact": "0"}
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no golden runs were made with"):
        golden(other, "exact")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no golden runs were made with"):
        golden(other, "exact")


if __name__ == "__main__":
    found = {name: fingerprint(name) for name in GOLDEN}
    before = json.loads(STORED.read_text("utf-8"))
    others = before.pop("made_with")
    # Versions that gave other draws gave those of another algorithm.
    others = others if before == found else []
    made_with = [*(record for record in others if record != versions()), versions()]
    STORED.write_text(json.dumps({"made_with": made_with} | found, indent=1) + "\n")
