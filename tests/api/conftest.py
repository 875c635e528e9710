"""A small messy table and its fit, for the tests of the command line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from command import FAST, edgewise


@pytest.fixture(scope="session")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty rows of y and n with a party, two ids and some blanks, as somebody would type them."""
    rng = np.random.default_rng(3)
    left = rng.random(80) < 0.5
    path = tmp_path_factory.mktemp("data") / "votes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["party", "tax", "roads", "schools"])
        for row, party in enumerate(left):
            answers = ["y" if (rng.random() < 0.8) == party else "n" for _ in range(3)]
            if row % 16 == 5:
                answers[row // 16 % 3] = ""
            writer.writerow(["left" if party else "right", *answers])
    return path


@pytest.fixture(scope="session")
def fitted(votes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results") / "votes"
    edgewise("fit", votes, "--group", "party", "--missing", "drop", "-o", directory, *FAST)
    return directory
