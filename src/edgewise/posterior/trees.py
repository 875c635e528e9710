"""A posterior for ArviZ: its draws, the data, the log-likelihood of every row, and replicated data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Clique
from edgewise.posterior import levels, structure

if TYPE_CHECKING:
    import xarray

    from edgewise.model.mrf import MRF
    from edgewise.posterior.posterior import Posterior

# Numbers that one variable of the tree may have.
CELLS = 20_000_000
# Cells of the tables of one draw up to which its log Z is summed.
MOST_STATES = 1 << 22


def datatree(
    posterior: Posterior,
    edges: Sequence[Clique] | None,
    data: Any,
    log_likelihood: bool,
    posterior_predictive: bool,
    max_draws: int | None,
    seed: int,
) -> xarray.DataTree:
    """The draws for ArviZ; see :meth:`edgewise.Posterior.to_datatree`."""
    from arviz_base import from_dict

    by_row = log_likelihood or posterior_predictive
    if by_row and data is None:
        raise DataError("The log-likelihood and replicated data are of rows: give them with data=.")
    kept = structure.thinned(posterior.n_chains, posterior.n_draws, max_draws if by_row else None)
    groups: dict[str, dict[str, np.ndarray]] = {}
    groups["posterior"], coords, dims = _draws(posterior, edges, kept)
    if data is not None:
        rows = _all_rows(posterior, data)
        groups["observed_data"] = {"x": rows}
        coords["row"] = np.arange(len(rows))
        coords["variable"] = list(posterior.names)
        dims["x"] = ["row", "variable"]
        if log_likelihood:
            _check_size(kept.size * len(rows), "log-likelihoods of the rows")
            groups["log_likelihood"] = {"x": _row_log_likelihood(posterior, rows, kept)}
        if posterior_predictive:
            _check_size(kept.size * rows.size, "replicated cells")
            groups["posterior_predictive"] = {"x": _replicated(posterior, rows, kept, seed)}
    tree: xarray.DataTree = from_dict(
        {name: values for name, values in groups.items() if name != "log_likelihood"},
        coords=coords,
        dims=dims,
    )
    if "log_likelihood" in groups:
        # A row has one log-likelihood, whatever its number of variables.
        extra = from_dict(
            {"log_likelihood": groups["log_likelihood"]}, coords={"row": coords["row"]}, dims={"x": ["row"]}
        )
        tree["log_likelihood"] = extra["log_likelihood"]
    tree.attrs["edgewise_info"] = json.dumps(posterior.info)
    return tree


def _draws(
    posterior: Posterior, edges: Sequence[Clique] | None, kept: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, list[str]]]:
    """The parameters of the kept draws, with the names of their axes."""
    if edges is None:
        cells = posterior.n_cliques * kept.size
        if cells > CELLS:
            raise DataError(
                f"All {posterior.n_cliques:,} candidates in {kept.size:,} draws are {cells:,} "
                f"numbers; choose edges, for instance edges=[{posterior.names[:2]!r}]."
            )
        chosen = np.arange(posterior.n_cliques)
    else:
        chosen = np.array([posterior.features.index(edge, posterior.names) for edge in edges], int)
    if posterior.scales.all_binary:
        bias, axis, places = posterior.biases(), "variable", list(posterior.names)
    else:
        every = [levels.threshold_draws(posterior, i) for i in range(posterior.n_variables)]
        bias, axis = np.concatenate(every, axis=2), "level"
        labelled = zip(posterior.names, posterior.levels)
        places = [f"{name} = {label}" for name, labels in labelled for label in labels]
    within = kept[0]
    theta = np.moveaxis(posterior._table.dense(chosen), 0, 2)[:, within]
    values = {
        "theta": theta,
        "indicator": (theta != 0).astype(np.int8),
        "bias": bias[:, within],
        "inclusion_rate": posterior.inclusion_rate[:, within],
        "slab_scale": posterior.slab_scale[:, within],
        "n_edges": posterior.n_edges[:, within],
    }
    coords = {"edge": posterior.candidates[chosen].astype(str), axis: places}
    return values, coords, {"theta": ["edge"], "indicator": ["edge"], "bias": [axis]}


def _all_rows(posterior: Posterior, data: Any) -> np.ndarray:
    """The rows in the coding of the model, as often as they count."""
    from edgewise.posterior.predictive import rows_of

    if getattr(data, "unknown", None) is not None:
        raise DataError(
            "The rows have blanks, and a row with blanks has no log-likelihood of its own here; give rows "
            "that are complete, such as those of read_data(..., missing='drop')."
        )
    rows, weights = rows_of(posterior, data)
    if weights is None:
        return rows
    times = np.rint(weights).astype(int)
    if not np.array_equal(times, weights):
        raise DataError(
            "Rows with weights that are no whole numbers cannot be listed one by one; give the rows without "
            "their weights."
        )
    return np.repeat(rows, times, axis=0)


def _check_size(count: int, what: str) -> None:
    if count > CELLS:
        raise DataError(
            f"There would be {count:,} {what}, more than {CELLS:,}; lower max_draws or give fewer rows."
        )


def _row_log_likelihood(posterior: Posterior, rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Log-probability of every row in every kept draw: (chains, draws, rows)."""
    from edgewise import exact

    different, which = np.unique(rows, axis=0, return_inverse=True)
    values = np.empty((*kept.shape, len(different)))
    for place, position in np.ndenumerate(kept):
        model = posterior.model(int(position))
        _check_width(model)
        values[place] = model.log_potential(different) - exact.log_partition(model)
    result: np.ndarray = values[:, :, which.ravel()]
    return result


def _check_width(model: MRF) -> None:
    from edgewise.exact.inference import cells, cheapest_order

    if model.scales.n_states <= MOST_STATES:
        return
    order = cheapest_order(model)
    if cells(model, order) > MOST_STATES:
        raise DataError(
            f"The log-likelihood of a row needs log Z in every draw, and the graphs of these draws "
            f"({model.n_variables} variables, joined {order.width + 1} at a time) are too wide to sum it. "
            "SpikeSlabMRF.score_samples(X) has log scores of every row that need no Z, and with "
            "kind='likelihood' an estimate by annealing."
        )


def _replicated(posterior: Posterior, rows: np.ndarray, kept: np.ndarray, seed: int) -> np.ndarray:
    """A data set of the same size from the model of every kept draw: (chains, draws, rows, variables)."""
    from edgewise.posterior.predictive import sample_model

    rng = np.random.default_rng(seed)
    result = np.empty((*kept.shape, *rows.shape), rows.dtype)
    for place, position in np.ndenumerate(kept):
        result[place] = sample_model(posterior.model(int(position)), len(rows), 100, rng)[0]
    return result
