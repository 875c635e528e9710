"""What variables with more than two levels add: the matrix of a pair, the thresholds of levels (11).

Everything else treats the strength of a matrix as it treats a coupling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.draws import convergence
from edgewise.errors import DataError
from edgewise.posterior import summaries

if TYPE_CHECKING:
    import pandas

    from edgewise.posterior.basis import Basis
    from edgewise.posterior.posterior import Posterior

COUPLING, STRENGTH = "coupling", "strength"


def measures(posterior: Basis) -> np.ndarray:
    """What the one number of every candidate is: its coupling, or the strength of its matrix (11.3)."""
    return np.where(posterior._dimension > 1, STRENGTH, COUPLING).astype(object)


def parameters_of(posterior: Basis, clique: int) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of one candidate in the draws that have it, and which draws of all chains these are.

    Returns
    -------
    values : float64 array (active draws, parameters)
    position : int array (active draws,)
    """
    draws = posterior._joined
    entries = np.flatnonzero(draws.indices == clique)
    position = np.searchsorted(draws.indptr, entries, side="right") - 1
    size = int(posterior._dimension[clique])
    if size == 1 or draws.blocks is None:
        return draws.values[entries, None], position
    return draws.blocks[posterior._block_offset[entries, None] + np.arange(size)], position


def mean_parameters(posterior: Basis, cliques: np.ndarray) -> np.ndarray:
    """Mean over the draws that include each of some candidates, one after the other, as models want them."""
    return np.concatenate([np.zeros(0), *(parameters_of(posterior, k)[0].mean(axis=0) for k in cliques)])


def matrix_draws(posterior: Posterior, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """What the levels of two variables add to the log-potential, rows and columns centred.

    Returns
    -------
    tables : float64 array (active draws, levels of the first, levels of the second)
    position : int array (active draws,)
    """
    i, j = sorted((first, second))
    values, position = parameters_of(posterior, posterior.features.index((i, j)))
    left, right = (posterior.scales[k].scores for k in (i, j))
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    matrices = values.reshape(-1, left.shape[1], right.shape[1])
    tables = np.einsum("ak,tkl,bl->tab", left, matrices, right)
    return (tables if i == first else tables.swapaxes(1, 2)), position


def coupling_table(
    posterior: Posterior, first: int, second: int, statistic: str, given_inclusion: bool, probability: float
) -> pandas.DataFrame:
    """See :meth:`edgewise.Posterior.coupling_matrix`."""
    import pandas

    tables, position = matrix_draws(posterior, first, second)
    if not given_inclusion:
        every = np.zeros((posterior._table.total, *tables.shape[1:]))
        every[position] = tables
        tables = every
    names = posterior.names
    return pandas.DataFrame(
        _statistic(tables, statistic, probability),
        index=pandas.Index(posterior.levels[first], name=names[first]),
        columns=pandas.Index(posterior.levels[second], name=names[second]),
    )


def _statistic(values: np.ndarray, name: str, probability: float) -> np.ndarray:
    """A statistic along the first axis; NaN where there is nothing to take it of."""
    if len(values) < (2 if name == "sd" else 1):
        return np.full(values.shape[1:], np.nan)
    if name == "mean":
        return np.asarray(values.mean(axis=0))
    if name == "sd":
        return np.asarray(values.std(axis=0, ddof=1))
    if name == "median":
        return np.asarray(np.median(values, axis=0))
    interval = summaries.shortest_interval(np.sort(np.moveaxis(values, 0, -1), axis=-1), probability)
    return interval[name == "hdi_high"]


def threshold_draws(posterior: Basis, variable: int) -> np.ndarray:
    """Draws of the thresholds of one variable: (chains, draws, levels)."""
    start = posterior.scales.bias_start
    own = slice(start[variable], start[variable + 1])
    coordinates = np.stack([chain.biases[:, own] for chain in posterior.draws])
    return np.asarray(coordinates @ posterior.scales[variable].basis.T)


def threshold_table(posterior: Posterior, probability: float) -> pandas.DataFrame:
    """One row per level of every variable; see :meth:`edgewise.Posterior.threshold_summary`."""
    import pandas

    parts: list[dict[str, Any]] = []
    for i, (name, labels) in enumerate(zip(posterior.names, posterior.levels)):
        columns = {"variable": [name] * len(labels), "level": list(labels)}
        values = np.moveaxis(threshold_draws(posterior, i), 2, 0)
        parts.append({**columns, **described(values, probability)})
    return pandas.DataFrame({key: _joined([part[key] for part in parts]) for key in parts[0]})


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return np.concatenate(parts)


def described(values: np.ndarray, probability: float) -> dict[str, np.ndarray]:
    """Mean, sd, median, interval and the quality of the draws of some quantities (k, chains, draws)."""
    flat = values.reshape(len(values), -1)
    ordered = np.sort(flat, axis=1)
    low, high = summaries.shortest_interval(ordered, probability)
    # A level that counts as zero never moves, and has no draws to judge.
    moving = (ordered[:, 0] < ordered[:, -1]) & (values.shape[2] >= convergence.FEWEST_DRAWS)

    def quality(measure: Any) -> np.ndarray:
        result = np.full(len(values), np.nan)
        if moving.any():
            result[moving] = measure(values[moving])
        return result

    return {
        "mean": flat.mean(axis=1),
        "sd": flat.std(axis=1, ddof=1) if flat.shape[1] > 1 else np.zeros(len(flat)),
        "median": np.median(ordered, axis=1),
        "hdi_low": low,
        "hdi_high": high,
        "r_hat": quality(convergence.rank_r_hat),
        "ess_bulk": quality(convergence.bulk_ess),
        "ess_tail": quality(convergence.tail_ess),
    }


def only_binary(posterior: Basis, what: str, instead: str) -> None:
    """Refuse what only variables with two levels have."""
    if not posterior.scales.all_binary:
        several = next(i for i, scale in enumerate(posterior.scales) if scale.kind != "binary")
        raise DataError(
            f"{what} is for variables with two levels, and {posterior.names[several]!r} has "
            f"{posterior.scales[several].n_levels}; use {instead}."
        )
