"""The problems of the engine benchmarks: simulated block and lattice data and real tables.

Real tables are read from the directory that the environment variable EDGEWISE_DATA names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.model import MRF
from edgewise.priors import Prior

BLOCK_ROWS = (50, 100, 300, 1000)
BLOCK_SEEDS = (1, 2, 3, 4, 5)
REAL = ("reinis", "lsat", "mobility", "adhd", "maxent_spikes", "house_votes_84", "nltcs")
LARGE = ("mnist_patch_100", "mnist_patch_1000", "digits", "amgut1", "dna")


def data_directory() -> Path:
    """Where the real tables are; a clear message where they are not."""
    place = os.environ.get("EDGEWISE_DATA")
    if not place:
        raise SystemExit("The real data are not here: set EDGEWISE_DATA to their directory.")
    return Path(place)


def has_real_data() -> bool:
    return bool(os.environ.get("EDGEWISE_DATA"))


def problem_of(source: Any, **options: Any) -> Problem:
    """A problem with all pairs and the default prior from any table."""
    data = read_data(source, constant="keep", **options)
    features = Features.pairs(data.n_variables)
    return Problem(features, sufficient_statistics(data, features), Prior().resolve(features))


def block_rows(seed: int, rows: int) -> np.ndarray:
    return exact.sample(datasets.block_model(seed), rows, np.random.default_rng(1000 + seed))


def lattice_truth_and_rows(seed: int, rows: int, side: int = 10) -> tuple[MRF, np.ndarray]:
    model = datasets.lattice_model(seed, side, side)
    return model, exact.sample(model, rows, np.random.default_rng(1000 + seed))


def random_rows(p: int, rows: int, seed: int = 0) -> np.ndarray:
    """Rows of a random tree, whose exact samples are cheap at any size."""
    model = datasets.random_model(p, kind="tree", seed=seed)
    return exact.sample(model, rows, np.random.default_rng(seed))


def _csv(name: str, **options: Any) -> Problem:
    return problem_of(data_directory() / "binary" / f"{name}.csv.gz", **options)


def _npz(path: str, key: str, rows: int | None = None) -> Problem:
    with np.load(data_directory() / path) as stored:
        return problem_of(stored[key][:rows])


def _mnist(rows: int) -> Problem:
    return problem_of(datasets.mnist_patch(data_directory() / "mnist", split="train")[:rows])


_REAL: dict[str, Callable[[], Problem]] = {
    "reinis": lambda: _csv("reinis"),
    "lsat": lambda: _csv("lsat"),
    "mobility": lambda: _csv("mobility"),
    "adhd": lambda: _csv("adhd", columns=list(range(1, 15)), missing="drop"),
    "house_votes_84": lambda: _csv("house_votes_84", columns=list(range(1, 17)), missing="drop"),
    "maxent_spikes": lambda: _npz("binary/maxent_spikes.npz", "spikes15", 1000),
    "nltcs": lambda: _npz("debd/nltcs.npz", "train", 1000),
    "amgut1": lambda: _csv("amgut1_presence"),
    "dna": lambda: _npz("debd/dna.npz", "train"),
    "digits": lambda: problem_of(datasets.digits()),
    "mnist_patch_100": lambda: _mnist(100),
    "mnist_patch_1000": lambda: _mnist(1000),
}


def reference_names(everything: bool = False) -> list[str]:
    """Names of the problems with exact references, cheapest first."""
    small, large = list(REAL[:3]), list(REAL[3:])
    block = [f"block_n{rows}_s{seed}" for seed in BLOCK_SEEDS for rows in BLOCK_ROWS]
    real = everything or has_real_data()
    return (small if real else []) + block + (large if real else [])


def load(name: str) -> Problem:
    """A problem by name: ``block_n100_s1``, ``lattice_n100_s1`` or a real table."""
    if name in _REAL:
        return _REAL[name]()
    kind, rows, seed = name.split("_")
    if kind == "block":
        return problem_of(block_rows(int(seed[1:]), int(rows[1:])))
    return problem_of(lattice_truth_and_rows(int(seed[1:]), int(rows[1:]))[1])
