"""The options of a run: one place for every default, and nothing wrong gets in."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

from edgewise.cli.fit import fit
from edgewise.cli.running import limits
from edgewise.errors import DataError
from edgewise.estimators import SpikeSlabMRF
from edgewise.run.options import RunOptions

DEFAULTS = {field.name: field.default for field in fields(RunOptions)}


def test_the_estimator_has_the_defaults_of_the_options() -> None:
    found = {
        name: parameter.default for name, parameter in inspect.signature(SpikeSlabMRF).parameters.items()
    }
    found["seed"] = found["random_state"]
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS


def test_the_command_has_the_defaults_of_the_options() -> None:
    found = {name: parameter.default for name, parameter in inspect.signature(fit).parameters.items()}
    for name in ("engine", "chains", "target_ess", "seed", "max_time", "checkpoint"):
        assert found[name] == DEFAULTS[name]
    assert found["checkpoint_every"] == f"{DEFAULTS['checkpoint_every']}s"
    assert limits(None, None) == (DEFAULTS["min_draws"], DEFAULTS["max_draws"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [((None, 500), (500, 500)), ((50_000, None), (50_000, 50_000)), ((10, 100), (10, 100))],
)
def test_one_limit_of_the_draws_moves_the_other(given, expected) -> None:
    assert limits(*given) == expected


def test_options_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        RunOptions().chains = 2  # type: ignore[misc]


def test_options_are_checked_when_they_are_made() -> None:
    with pytest.raises(DataError, match="chains must be a whole number of at least 1, not 0"):
        RunOptions(chains=0)
    with pytest.raises(DataError, match="--draws 9 is more than --max-draws 8"):
        limits(9, 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": None}, "engine must be the name of an engine.*'auto'.*not None"),
        ({"engine": 3}, "engine must be the name of an engine"),
        ({"settings": 5}, "settings must be a mapping.*not 5"),
        ({"settings": [("a", 1)]}, "settings must be a mapping"),
        ({"settings": {3: 1}}, "settings must be a mapping"),
        ({"checkpoint": 5}, "checkpoint must be the path of a directory.*not 5"),
        ({"checkpoint": True}, "checkpoint must be the path of a directory"),
        ({"executor": 5}, "executor must be a concurrent.futures.Executor.*not 5"),
        ({"executor": "threads"}, "executor must be a concurrent.futures.Executor"),
        ({"callback": 5}, "callback must be a function.*not 5"),
        ({"start": 5}, "start must be one of"),
    ],
)
def test_options_of_the_wrong_kind(options, words):
    with pytest.raises(DataError, match=words):
        RunOptions(**options)
