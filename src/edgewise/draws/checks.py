"""Whether arrays from a file are draws: no loop and no kernel sees them before."""

from __future__ import annotations

import numpy as np

from edgewise.draws.draws import Draws, block_starts
from edgewise.scales import root_mean_squares


def check_draws(
    draws: Draws,
    n_biases: int | None = None,
    n_cliques: int | None = None,
    dimension: np.ndarray | None = None,
) -> None:
    """Compare shapes, types, ranges and references of draws with what :class:`Draws` promises.

    `dimension` is the number of parameters of every candidate, where some have several.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    starts, indices, values = draws.indptr, draws.indices, draws.values
    for name, array, kind, dimensions in (
        ("indptr", starts, "i", 1),
        ("indices", indices, "i", 1),
        ("values", values, "f", 1),
        ("biases", draws.biases, "f", 2),
        ("inclusion_rate", draws.inclusion_rate, "f", 1),
        ("slab_scale", draws.slab_scale, "f", 1),
    ):
        if array.dtype.kind != kind or array.ndim != dimensions:
            raise ValueError(f"{name} is {array.dtype} with {array.ndim} axes")
    if len(starts) == 0 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise ValueError("the sizes of the draws make no sense")
    if not starts[-1] == len(indices) == len(values):
        raise ValueError(f"the draws want {starts[-1]} entries and there are {len(indices)}, {len(values)}")
    count = len(starts) - 1
    if not count == len(draws.biases) == len(draws.inclusion_rate) == len(draws.slab_scale):
        raise ValueError(f"there are {count} draws, and other numbers of biases or hyper-parameters")
    if n_biases is not None and count and draws.biases.shape[1] != n_biases:
        raise ValueError(f"there are {draws.biases.shape[1]} biases instead of {n_biases}")
    if len(indices):
        if indices.min() < 0 or (n_cliques is not None and indices.max() >= n_cliques):
            raise ValueError(
                f"candidates are numbered {indices.min()} to {indices.max()} and there are {n_cliques}"
            )
        rises = indices[1:] > indices[:-1]
        ends = starts[1:-1]
        rises[ends[(ends > 0) & (ends < len(indices))] - 1] = True
        if not rises.all():
            raise ValueError("the candidates of a draw are not in ascending order")
    if not (np.isfinite(values).all() and np.isfinite(draws.biases).all()):
        raise ValueError("a parameter is not a finite number")
    if not np.all((draws.inclusion_rate >= 0) & (draws.inclusion_rate <= 1)):
        raise ValueError("an inclusion probability does not lie between 0 and 1")
    if not np.all((draws.slab_scale > 0) & (draws.slab_scale < np.inf)):
        raise ValueError("a slab scale is not a positive number")
    state = draws.model_state
    if state is not None and not (
        state.dtype.kind in "if" and state.ndim == 2 and len(state) == count and np.isfinite(state).all()
    ):
        raise ValueError("what a model of inclusion keeps of each draw is no table of numbers")
    _check_blocks(draws, dimension)
    _check_groups(draws)


def _check_groups(draws: Draws) -> None:
    """Couplings of groups are there for every entry, and their means are its values."""
    couplings, rates = draws.couplings, draws.rates
    if (couplings is None) != (rates is None):
        raise ValueError("couplings of groups and their rates come together")
    if couplings is None or rates is None:
        return
    for array in (couplings, rates):
        if array.dtype.str[1:] != "f8" or array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError("the couplings of groups are no table of finite numbers")
    if len(couplings) != len(draws.values) or rates.shape != (len(draws), 2) or couplings.shape[1] < 2:
        raise ValueError(f"the couplings of groups have the shape {couplings.shape}, rates {rates.shape}")
    if len(couplings) and not np.allclose(couplings.mean(axis=1), draws.values, rtol=1e-9, atol=1e-9):
        raise ValueError("a parameter is not the mean of those of the groups")
    if not (np.all(rates >= 0) and np.all(rates[:, 0] <= 1) and np.all(rates[:, 1] > 0)):
        raise ValueError("q0 or sigma_D is out of its range")


def _check_blocks(draws: Draws, dimension: np.ndarray | None) -> None:
    """Matrices are there where candidates have them, as long as they are to be, and give the strengths."""
    blocks, starts = draws.blocks, draws.block_indptr
    if (blocks is None) != (starts is None):
        raise ValueError("matrices and their places come together")
    if dimension is None or not (dimension > 1).any():
        if blocks is not None:
            raise ValueError("there are matrices, and no candidate has one")
        return
    if blocks is None or starts is None:
        if len(draws):
            raise ValueError("the matrices are missing")
        return
    if (blocks.dtype.str[1:], blocks.ndim, starts.dtype.str[1:], starts.ndim) != ("f8", 1, "i8", 1):
        raise ValueError(f"the matrices are {blocks.dtype} with places {starts.dtype}")
    if not np.array_equal(starts, block_starts(draws.indptr, draws.indices, dimension)):
        raise ValueError("the places of the matrices are not those of their candidates")
    if starts[-1] != len(blocks) or not np.isfinite(blocks).all():
        raise ValueError("the matrices are of another length, or hold what is no finite number")
    size = dimension[draws.indices]
    found = root_mean_squares(blocks, size[size > 1])
    if not np.allclose(found, draws.values[size > 1], rtol=1e-9, atol=0.0):
        raise ValueError("the strength of a matrix is not that of its entries")
