"""Energies and conditionals of models with more than two levels (docs/method.md, 11).

With u the scores of all variables side by side and C the matrix of all couplings, the log-potential of a row
is the sum of its thresholds and of u'Cu / 2, and the field of a variable is its part of u'C (11.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Clique
from edgewise.features.candidates import label_of, resolve_clique
from edgewise.scales import Scales

if TYPE_CHECKING:
    from edgewise.model.mrf import MRF

CELLS = 4_000_000


def score_coupling(model: MRF) -> np.ndarray:
    """The couplings of all pairs in one symmetric matrix over the scores of all variables."""
    start = model.scales.score_start
    result = np.zeros((start[-1], start[-1]))
    for k, (i, j) in enumerate(model.cliques):
        block = model.matrix(k)
        result[start[i] : start[i + 1], start[j] : start[j + 1]] = block
        result[start[j] : start[j + 1], start[i] : start[i + 1]] = block.T
    return result


def blocks(rows: np.ndarray) -> Any:
    """Parts of the rows that fit into memory, with the number of their first."""
    size = max(1, CELLS // rows.shape[1])
    return ((start, rows[start : start + size]) for start in range(0, len(rows), size))


def log_potential(model: MRF, rows: np.ndarray) -> np.ndarray:
    """Unnormalised log-probability of every row of level numbers."""
    result = np.zeros(len(rows))
    thresholds = model.thresholds
    for start, block in blocks(rows):
        part = result[start : start + len(block)]
        for i, threshold in enumerate(thresholds):
            part += threshold[block[:, i]]
        scored = model.scales.scored(block)
        part += 0.5 * ((scored @ model.score_coupling) * scored).sum(axis=1)
    return result


def conditional_log_potential(model: MRF, rows: np.ndarray) -> list[np.ndarray]:
    """b_i(c) + U_i(c)'h_i of every level of every variable: arrays (n, levels), up to constants of a row."""
    field = model.scales.scored(rows) @ model.score_coupling
    start = model.scales.score_start
    return [
        threshold + field[:, start[i] : start[i + 1]] @ scale.scores.T
        for i, (threshold, scale) in enumerate(zip(model.thresholds, model.scales))
    ]


def softmax(values: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis."""
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def gibbs(model: MRF, state: np.ndarray, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Sweeps of `state` (n, p), in place."""
    scales, start = model.scales, model.scales.score_start
    scored = scales.scored(state)
    for _ in range(sweeps):
        for i, scale in enumerate(scales):
            own = slice(start[i], start[i + 1])
            potential = model.thresholds[i] + (scored @ model.score_coupling[:, own]) @ scale.scores.T
            state[:, i] = draw_levels(softmax(potential), rng)
            scored[:, own] = scale.scores[state[:, i]]
    return state


def draw_levels(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One level for every row of probabilities (n, levels)."""
    above = np.cumsum(probabilities[:, :0:-1], axis=1)
    drawn = rng.random(len(probabilities))[:, None]
    return np.asarray((drawn < above).sum(axis=1))


def checked_levels(model: MRF, x: Any) -> np.ndarray:
    """Rows of level numbers as int64 (n, p)."""
    rows = np.asarray(x)
    if rows.ndim != 2 or rows.shape[1] != model.n_variables:
        raise DataError(
            f"The states must have shape (n, {model.n_variables}), one column per variable; "
            f"these have shape {rows.shape}."
        )
    if rows.dtype.kind not in "biuf":
        raise DataError(f"States are the numbers of levels, from 0; these are of type {rows.dtype}.")
    wrong = ~((rows >= 0) & (rows < model.scales.levels) & (rows == np.floor(rows)))
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        raise DataError(
            f"States are the numbers of levels, 0 to {model.scales[column].n_levels - 1} for variable "
            f"{label_of((column,), model.names)}, but row {row} has {rows[row, column]:g}."
        )
    return rows.astype(np.int64)


def ordered_pair(pair: Clique, n_variables: int, names: Sequence[str] | None) -> tuple[tuple[int, int], bool]:
    """Numbers of two variables, ascending, and whether they were given the other way round."""
    i, j = resolve_clique(pair, n_variables, names)
    first = pair[0]
    place = list(names or ()).index(first) if isinstance(first, str) else int(first)
    return (i, j), place != i


def pair_parameters(
    scales: Scales, pairs: Sequence[Clique], couplings: Sequence[Any], names: Sequence[str] | None
) -> np.ndarray:
    """Parameters of all pairs, one after the other."""
    parts = [np.zeros(0)]
    for pair, coupling in zip(pairs, couplings):
        (i, j), turned = ordered_pair(pair, len(scales), names)
        given = np.transpose(coupling) if turned else coupling
        parts.append(coupling_parameters(scales, i, j, given, label_of((i, j), names)))
    return np.concatenate(parts)


def coupling_parameters(scales: Scales, i: int, j: int, given: Any, label: str) -> np.ndarray:
    """Parameters of a pair (11.1), from one number, its matrix, or a table over the levels of both."""
    first, second = scales[i], scales[j]
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"The coupling of {label} must be numbers.") from None
    shape = (first.dimension, second.dimension)
    if values.ndim == 0 and shape == (1, 1):
        return values.reshape(1)
    if values.shape == shape:
        return values.ravel()
    if values.shape == (first.n_levels, second.n_levels):
        left, right = np.linalg.pinv(_centred(first.scores)), np.linalg.pinv(_centred(second.scores))
        found = left @ values @ right.T
        rest = _double_centred(values) - _centred(first.scores) @ found @ _centred(second.scores).T
        if np.abs(rest).max() > 1e-9 * max(1.0, np.abs(values).max()):
            raise DataError(
                f"The table of {label} is not one that its scores can make; an ordinal variable has one "
                "coupling for all its levels. Call it nominal, or give that coupling."
            )
        return np.asarray(found.ravel())
    wanted = "one number" if shape == (1, 1) else f"a matrix of shape {shape}"
    raise DataError(
        f"The coupling of {label} must be {wanted} or a table of shape "
        f"({first.n_levels}, {second.n_levels}) over the levels; it has shape {values.shape}."
    )


def _centred(values: np.ndarray) -> np.ndarray:
    return np.asarray(values - values.mean(axis=0))


def _double_centred(table: np.ndarray) -> np.ndarray:
    return _centred(_centred(table).T).T


def threshold_coordinates(scales: Scales, thresholds: Sequence[Any]) -> np.ndarray:
    """Coordinates of thresholds that are given level by level."""
    if len(thresholds) != len(scales):
        raise DataError(f"There are {len(thresholds)} rows of thresholds for {len(scales)} variables.")
    parts = []
    for i, (scale, given) in enumerate(zip(scales, thresholds)):
        values = np.array(given, np.float64)
        if values.shape != (scale.n_levels,):
            raise DataError(
                f"Variable {i} has {scale.n_levels} levels; give one threshold for each, not {values.size}."
            )
        found = scale.coordinates(values)
        if np.abs(_centred(scale.basis @ found) - _centred(values)).max() > 1e-9 * max(
            1, np.abs(values).max()
        ):
            raise DataError(f"The thresholds of variable {i} are not of the form that its kind allows.")
        parts.append(found)
    return np.concatenate(parts)
