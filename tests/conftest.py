"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, so that a failure means a change of the code; no time limits.
settings.register_profile(
    "edgewise", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("edgewise")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """All usable cores; for tests asked for by name this process, sooner done than workers are started."""
    if any("::" in argument for argument in config.args):
        config.option.dist = "no"
        return 0
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20120626)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Directory of the real data sets, or a skip that says how to provide it."""
    directory = os.environ.get("EDGEWISE_DATA")
    if not directory or not Path(directory).is_dir():
        pytest.skip("set EDGEWISE_DATA to the directory of the real data sets to run this test")
    return Path(directory)
