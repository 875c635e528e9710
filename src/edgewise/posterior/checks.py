"""Whether what a file holds is a posterior: shapes, types, ranges and references, before anything uses them.

Whoever made the file, only what passes here reaches a loop or a kernel. The functions raise ValueError,
TypeError or KeyError with what is wrong; ``storage.py`` adds the name of the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data.strata import Layout
from edgewise.draws.checks import check_draws
from edgewise.draws.draws import Draws, block_starts
from edgewise.features import Features, Statistics
from edgewise.model.checks import checked_names
from edgewise.posterior.sums import AXES, EdgeSums
from edgewise.priors import BetaInclusion, FixedInclusion, Prior
from edgewise.scales import MOST_LEVELS, Scale, Scales

MOST_CHAINS = 100_000


def checked_draws(
    arrays: Mapping[str, np.ndarray],
    features: Features,
    scales: Scales | None = None,
    strata: Layout | None = None,
) -> list[Draws]:
    """The ragged draws of a file, one chain after the other."""
    size = integers(arrays, "row_size", 2)
    chains, count = size.shape
    if not 0 < chains <= MOST_CHAINS or count < 1:
        raise ValueError(f"it has {chains} chains of {count} draws")
    if size.min() < 0 or size.max() > features.n_cliques:
        raise ValueError(f"a draw has {size.min()} or {size.max()} of {features.n_cliques} candidates")
    indices, values = integers(arrays, "clique_index", 1), numbers(arrays, "coupling", 1)
    ends = np.concatenate([[0], np.cumsum(size.sum(axis=1, dtype=np.int64))])
    if not ends[-1] == len(indices) == len(values):
        raise ValueError(f"its draws want {ends[-1]} entries and there are {len(indices)}, {len(values)}")
    biases = numbers(arrays, "bias", 3)
    hyper = [numbers(arrays, name, 2) for name in ("inclusion_rate", "slab_scale")]
    for name, array in zip(("bias", "inclusion_rate", "slab_scale"), (biases, *hyper)):
        if array.shape[:2] != size.shape:
            raise ValueError(f"{name} has the shape {array.shape}")
    draws = []
    for chain, (start, stop) in enumerate(itertools.pairwise(ends.tolist())):
        draws.append(
            Draws(
                np.concatenate([[0], np.cumsum(size[chain], dtype=np.int64)]),
                indices[start:stop],
                values[start:stop],
                biases[chain],
                hyper[0][chain],
                hyper[1][chain],
            )
        )
    n_biases = features.n_variables if scales is None else scales.n_biases
    n_biases *= 1 if strata is None else strata.n_strata
    dimension = None if scales is None else scales.dimensions(features.members)
    if "matrix" in arrays or (dimension is not None and (dimension > 1).any()):
        if dimension is None or (indices.size and not 0 <= indices.min() <= indices.max() < len(dimension)):
            raise ValueError("its matrices are those of candidates that do not exist")
        draws = _with_matrices(draws, numbers(arrays, "matrix", 1), dimension)
    if "model_state" in arrays:
        states = arrays["model_state"]
        if states.ndim != 3 or states.shape[:2] != size.shape or states.dtype.kind not in "if":
            raise ValueError(f"what its model of inclusion keeps is {states.dtype} {states.shape}")
        draws = [replace(part, model_state=own) for part, own in zip(draws, states)]
    if strata is not None and strata.compares:
        draws = _with_groups(draws, arrays, ends, len(strata.groups))
    for part in draws:
        check_draws(part, n_biases, features.n_cliques, dimension)
    return draws


def check_prior(prior: Prior, features: Features, names: Sequence[str], draws: Sequence[Draws]) -> None:
    """Whether the prior speaks of these candidates, and its model of inclusion of these draws."""
    plain = isinstance(prior.inclusion, BetaInclusion | FixedInclusion) and not prior.edge_slab
    if any(part.model_state is not None for part in draws) and plain:
        raise ValueError("its draws are not those of its prior of inclusion")
    if plain and prior.edge_probability is None and not len(prior.forced) and not len(prior.forbidden):
        return
    model = prior.resolve(features, names).model
    for part in draws:
        state = part.model_state
        if (state is None) != (model is None):
            raise ValueError("its draws are not those of its prior of inclusion")
        if model is not None and state is not None:
            if state.shape[1] != model.state_size or state.dtype != model.state_kind:
                raise ValueError(f"what its model of inclusion keeps is {state.dtype} {state.shape}")
            model.check_all(state)


def _with_groups(
    draws: list[Draws], arrays: Mapping[str, np.ndarray], ends: np.ndarray, groups: int
) -> list[Draws]:
    """Hand the couplings of the groups out to the chains."""
    couplings, rates = numbers(arrays, "group_coupling", 2), numbers(arrays, "difference_rates", 3)
    if couplings.shape != (ends[-1], groups) or rates.shape != (len(draws), len(draws[0]), 2):
        raise ValueError(f"the couplings of its {groups} groups have the shape {couplings.shape}")
    return [
        replace(part, couplings=couplings[ends[k] : ends[k + 1]], rates=rates[k])
        for k, part in enumerate(draws)
    ]


def checked_strata(info: Mapping[str, Any]) -> Layout | None:
    """The strata that the facts of a run tell of."""
    return None if info.get("strata") is None else Layout.from_dict(info["strata"])


def _with_matrices(draws: list[Draws], matrix: np.ndarray, dimension: np.ndarray) -> list[Draws]:
    """Hand the entries of all matrices out to the chains; whether they fit is for others to say."""
    starts = [block_starts(part.indptr, part.indices, dimension) for part in draws]
    ends = np.concatenate([[0], np.cumsum([start[-1] for start in starts])])
    if ends[-1] != len(matrix):
        raise ValueError(f"its matrices want {ends[-1]} entries and there are {len(matrix)}")
    return [
        part.with_blocks(matrix[ends[k] : ends[k + 1]], start)
        for k, (part, start) in enumerate(zip(draws, starts))
    ]


def checked_features(arrays: Mapping[str, np.ndarray], n_variables: int) -> Features:
    """The candidates of a file, which may be all pairs."""
    if "clique_members" not in arrays:
        return Features(n_variables)
    table = integers(arrays, "clique_members", 2)
    if not len(table) or not 2 <= table.shape[1] <= n_variables:
        raise ValueError(f"its table of candidates has the shape {table.shape}")
    if table.min() < -1 or table.max() >= n_variables:
        raise ValueError(f"a candidate has the variables {table.min()} to {table.max()} of {n_variables}")
    later = (table[:, 1:] > table[:, :-1]) | (table[:, 1:] == -1)
    later[:, 1:] &= (table[:, 1:-1] != -1) | (table[:, 2:] == -1)
    if table[:, :2].min() < 0 or not later.all():
        raise ValueError("the variables of a candidate are not in ascending order")
    sizes = (table >= 0).sum(axis=1)
    order = np.lexsort((*table.T[::-1], sizes))
    if not np.array_equal(order, np.arange(len(table))) or (table[1:] == table[:-1]).all(axis=1).any():
        raise ValueError("its candidates are not in order, or one is listed twice")
    return Features(n_variables, table)


def checked_statistics(
    arrays: Mapping[str, np.ndarray], n_rows: Any, features: Features, scales: Scales | None = None
) -> Statistics:
    """What the data said."""
    total = number(n_rows, "the number of rows")
    singles, cliques = numbers(arrays, "data_singles", 1), numbers(arrays, "data_cliques", 1)
    wanted, least = (features.n_variables, features.n_cliques), 0.0
    if scales is not None:
        # Contrasts have signs, and no feature is larger than one.
        wanted, least = (scales.n_biases, int(scales.dimensions(features.members).sum())), -total
    if (len(singles), len(cliques)) != wanted:
        raise ValueError(
            f"it has sums of {len(singles)} variables and {len(cliques)} candidates; there are "
            f"{wanted[0]} and {wanted[1]}"
        )
    for sums in (singles, cliques):
        # A sum of weights has rounding errors of its own.
        if len(sums) and not (sums.min() >= least * (1 + 1e-9) and sums.max() <= total * (1 + 1e-9)):
            raise ValueError(f"a sum over {total:g} rows is {sums.min():g} or {sums.max():g}")
    return Statistics(total, singles, cliques)


def checked_sums(arrays: Mapping[str, np.ndarray], axes: Any, chains: int, features: Features) -> EdgeSums:
    """What the engines added up for every candidate."""
    if not isinstance(axes, Mapping):
        raise TypeError("the axes of its sums are not named")
    found = {
        name: tuple(text(axis, "an axis") for axis in _list(given, name)) for name, given in axes.items()
    }
    sums = {}
    for name, named in found.items():
        values = numbers(arrays, f"sum_{name}", len(named))
        if values.shape[: len(AXES)] != (chains, features.n_cliques) or not np.isfinite(values).all():
            raise ValueError(f"sum_{name} has the shape {values.shape} or holds what is no number")
        sums[name] = values
    return EdgeSums(sums, found)


def checked_record(record: Any) -> Mapping[str, Any]:
    """The record of how a posterior was made, as JSON had it; what no code relies on may be anything."""
    if not isinstance(record, Mapping):
        raise TypeError("its metadata are not a mapping")
    given = [text(name, "a name") for name in _list(record["names"], "names")]
    names = list(checked_names(given, len(given)) or ())
    scales = None if record["scales"] is None else _scales(record["scales"], len(names))
    levels = [_list(pair, "a pair of levels") for pair in _list(record["levels"], "levels")]
    for pair in levels:
        if (scales is None and len(pair) != 2) or not all(isinstance(level, _LABEL) for level in pair):
            raise TypeError(f"{str(pair)[:60]} is not a pair of levels")
    counters = _list(record["counters"], "counters")
    for counted in counters:
        if not isinstance(counted, Mapping):
            raise TypeError("the counters of a chain are not a mapping")
        for name, value in counted.items():
            number(value, f"the counter {name!r}", finite=False)
    return {
        **record,
        "names": names,
        "levels": [tuple(labels) for labels in levels],
        "scales": scales,
        "prior": Prior.from_dict(record["prior"]),
        "info": _info(record["info"]),
        "counters": counters,
    }


def _scales(given: Any, n_variables: int) -> Scales:
    """Kinds and levels of all variables, of which at least one has more than two."""
    found = []
    for values in _list(given, "scales"):
        if not isinstance(values, Mapping):
            raise TypeError("a scale is not a mapping")
        labels, places = _list(values["labels"], "labels"), _list(values["positions"], "positions")
        if len(labels) > MOST_LEVELS or not all(isinstance(label, _LABEL) for label in labels):
            raise TypeError(f"{str(labels)[:60]} are not the labels of a scale")
        reference = values.get("reference")
        if not all(
            type(k) is int and 0 <= k < 2**31 for k in (*places, 0 if reference is None else reference)
        ):
            raise TypeError("the positions of a scale are not whole numbers")
        text(values["kind"], "the kind of a scale")
        found.append(Scale.from_dict(values))
    scales = Scales(tuple(found))
    if len(scales) != n_variables or scales.all_binary:
        raise ValueError(f"it has {len(scales)} scales for {n_variables} variables, or needs none")
    return scales


_LABEL = (str, bool, int, float, type(None))
_WORDS = (
    "engine", "engine_reason", "stop_reason", "stop_message", "data_digest", "created", "command",
)  # fmt: skip


def _info(info: Any) -> dict[str, Any]:
    """The facts of a run: those that reports compute with have to be of their kind."""
    if not isinstance(info, Mapping):
        raise TypeError("the facts of its run are not a mapping")
    for name in _WORDS:
        if info.get(name) is not None:
            text(info[name], name)
    for name in ("seconds", "compile_seconds", "n_rows", "warm_up", "thin"):
        if info.get(name) is not None:
            number(info[name], name)
    for name in ("settings", "versions"):
        if info.get(name) is not None and not isinstance(info[name], Mapping):
            raise TypeError(f"its {name} are not a mapping")
    for note in _list(info.get("notes", []), "notes"):
        text(note, "a note")
    return dict(info)


def integers(arrays: Mapping[str, np.ndarray], name: str, dimensions: int) -> np.ndarray:
    """An array of 32-bit integers."""
    array = arrays[name]
    if array.dtype.kind not in "iu" or array.ndim != dimensions:
        raise TypeError(f"{name} is {array.dtype} with {array.ndim} axes")
    if array.dtype == np.int32:
        return array
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise ValueError(f"{name} reaches from {array.min()} to {array.max()}")
    return array.astype(np.int32)


def numbers(arrays: Mapping[str, np.ndarray], name: str, dimensions: int) -> np.ndarray:
    """An array of doubles."""
    array = arrays[name]
    if array.dtype.kind != "f" or array.dtype.itemsize != 8 or array.ndim != dimensions:
        raise TypeError(f"{name} is {array.dtype} with {array.ndim} axes")
    return array.astype(np.float64, copy=False)


def number(value: Any, what: str, finite: bool = True) -> float:
    """A number that is not negative; NaN and infinity only where they are allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what} is {str(value)[:60]!r}")
    if finite and not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{what} is {value}")
    return float(value)


def text(value: Any, what: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {str(value)[:60]!r}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{what} is {str(value)[:60]!r}")
    return list(value)
