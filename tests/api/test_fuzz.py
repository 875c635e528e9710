"""The fuzz harness: inputs that once broke something stay tried, and each target passes a short round."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fuzz.outcome import Escaped, tried
from benchmarks.fuzz.targets import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st

CORPUS = sorted((Path(__file__).parents[1] / "fuzz").glob("*-*"))
ROUNDS = {
    "door": 150,
    "memory": 100,
    "posterior": 60,
    "levels": 30,
    "communities": 30,
    "attributes": 30,
    "checkpoint": 15,
    "engines": 10,
    "command": 25,
}


@pytest.fixture(scope="module")
def targets():
    made = {}

    def target(name):
        if name not in made:
            made[name] = TARGETS[name]()
        return made[name]

    return target


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_once_broke_something_breaks_nothing(targets, path):
    assert tried(targets(path.name.partition("-")[0]), path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_round(targets, name):
    target = targets(name)

    @settings(max_examples=ROUNDS[name], database=None)
    @given(st.binary(min_size=24, max_size=120))
    def one(data):
        assert tried(target, data)

    one()


def test_what_escapes_is_noticed():
    def broken(data):
        raise IndexError("list index out of range")

    with pytest.raises(Escaped, match="IndexError"):
        tried(broken, b"")
