"""What chains of stretches know together, as arrays: what there is at first, and whether a file has it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgewise.engines.averages import SET_SIZES
from edgewise.engines.meter import MOST_NEAR

MOST_ROUNDS = 64
# Nothing that chains know is larger; their rows are fewer than this.
LARGEST = 1e18


def first_surrogate(candidates: np.ndarray, p: int) -> dict[str, np.ndarray]:
    """A stand-in of the right types for the first round, in which nothing moves."""
    count = len(candidates)
    return {
        "candidates": candidates,
        "precision": np.zeros((count, count), np.float32),
        "pull": np.zeros(count),
        "tilt": np.zeros(count),
        "bias_mean": np.zeros(p),
        "bias_slope": np.zeros((count, p)),
        "bias_root": np.eye(p),
        "bias_precision": np.eye(p),
        "chance": np.ones(count),
        "alias": np.arange(count),
        "rivals": np.full((1, max(SET_SIZES)), -1, np.int64),
        "rival_chance": np.ones(1),
        "rival_alias": np.zeros(1, np.int64),
        "shares": np.zeros(1),
        "sweep": np.ones(1),
    }


def check_knowledge(
    knowledge: Mapping[str, np.ndarray], candidates: np.ndarray, p: int, more: Mapping[str, np.ndarray]
) -> None:
    """Whether arrays are what chains with these candidates and so many variables can know together.

    `more` are stand-ins for what they know besides.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    wanted = first_surrogate(candidates, p) | {
        "phi": np.zeros(p + len(candidates)),
        "occupied": np.zeros(len(candidates)),
        "round": np.zeros(1, np.int64),
        "end": np.zeros(1, np.int64),
        "last": np.zeros(1, bool),
        "lenience": np.zeros(1),
        "hand_over": np.zeros(1, bool),
        "too_wide": np.zeros(1),
        "core": np.zeros(len(candidates), bool),
        "inner": np.zeros(1, np.int64),
        "repeats": np.zeros(1, np.int64),
        "undone": np.zeros(1, np.int64),
        "near": np.zeros((len(candidates), 0), np.int32),
        **more,
    }
    sets = len(knowledge["rivals"])
    for name, like in wanted.items():
        shape = (sets, *like.shape[1:]) if name.startswith("rival") else like.shape
        if name == "near" and knowledge[name].ndim == 2:
            shape = (len(candidates), min(knowledge[name].shape[1], MOST_NEAR))
        if knowledge[name].dtype != like.dtype or knowledge[name].shape != shape:
            raise ValueError(f"{name!r} is {knowledge[name].dtype} {knowledge[name].shape}")
        endless = name == "lenience" and float(knowledge[name][0]) == np.inf
        if not (np.isfinite(knowledge[name]).all() or endless):
            raise ValueError(f"{name!r} holds what is no finite number")
    ranges = {
        "alias": (0, len(candidates)),
        "rivals": (-1, len(candidates)),
        "near": (-1, len(candidates)),
        "rival_alias": (0, sets),
        "round": (1, MOST_ROUNDS),
        "end": (0, 1 << 40),
        "inner": (0, 1 << 10),
        "repeats": (1, 1 << 10),
        "undone": (0, MOST_ROUNDS),
        "sweep": (0, 100 * (len(candidates) + 100)),
    }
    for name, (low, end) in ranges.items():
        if knowledge[name].size and not (low <= knowledge[name].min() and knowledge[name].max() < end):
            raise ValueError(f"{name!r} is out of its range")
    if not float(knowledge["lenience"][0]) >= 1.0:
        raise ValueError("'lenience' is out of its range")
    for name in wanted:
        numbers = knowledge[name].dtype.kind == "f" and name != "lenience"
        if numbers and np.abs(knowledge[name]).max(initial=0.0) > LARGEST:
            raise ValueError(f"{name!r} is out of its range")
    for name in ("precision", "bias_precision"):
        own = np.sqrt(np.clip(np.diag(knowledge[name]), 0.0, None).astype(float))
        near = 1e-3 * np.outer(own, own)
        # Lines that were flattened (10.8) may leave less on the diagonal.
        if not (own > 0).all() or (np.abs(knowledge[name]) > 2 * np.outer(own, own) + near).any():
            raise ValueError(f"{name!r} is no precision")
        if (np.abs(knowledge[name] - knowledge[name].T) > near).any():
            raise ValueError(f"{name!r} is not symmetric")
    if not np.array_equal(knowledge["candidates"], candidates):
        raise ValueError("its candidates are others")
    if float(knowledge["shares"][0]) > 0 and (knowledge["rivals"][:, 0] < 0).any():
        raise ValueError("a set of rivals is empty")
