"""Whether arrays from a file are draws: no loop and no kernel sees them before."""

from __future__ import annotations

import numpy as np

from edgewise.draws.draws import Draws


def check_draws(draws: Draws, n_variables: int | None = None, n_cliques: int | None = None) -> None:
    """Compare shapes, types, ranges and references of draws with what :class:`Draws` promises.

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
    if n_variables is not None and count and draws.biases.shape[1] != n_variables:
        raise ValueError(f"there are {n_variables} variables and {draws.biases.shape[1]} biases")
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
