"""Tables and graphs of a posterior by name: what users read, plot and export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.draws import convergence
from edgewise.errors import DataError
from edgewise.features import Clique, Features
from edgewise.posterior import structure, summaries
from edgewise.priors import FORBIDDEN, FORCED

if TYPE_CHECKING:
    import networkx
    import pandas
    import xarray

    from edgewise.posterior.posterior import Posterior

_DATATREE_CELLS = 20_000_000


def clique_labels(features: Features, names: Sequence[str]) -> np.ndarray:
    """Readable names of all candidates at once."""
    known = np.array([*names, ""], object)
    members = features.members
    labels = known[members[:, 0]] + " -- " + known[members[:, 1]]
    for column in members.T[2:]:
        labels = labels + np.where(column >= 0, " -- ", "").astype(object) + known[column]
    return labels


def edge_table(
    posterior: Posterior, coding: str, thresholds: tuple[float, float], probability: float
) -> pandas.DataFrame:
    """One row per candidate; see :meth:`edgewise.Posterior.summary`."""
    import pandas

    scale = posterior._scale(coding)
    table, quality = posterior.table, posterior.quality
    names = np.array(posterior.names, object)
    members = posterior.features.members
    columns: dict[str, Any] = {"edge": clique_labels(posterior.features, posterior.names)}
    if posterior.features.pairs_only:
        columns["variable_1"] = names[members[:, 0]]
        columns["variable_2"] = names[members[:, 1]]
    else:
        columns["variables"] = [tuple(names[row[row >= 0]]) for row in members]
    mean, sd = summaries.moments(table, given_inclusion=False)
    mean_if, sd_if = summaries.moments(table, given_inclusion=True)
    median, low, high = summaries.quantities_of_order(table, probability, given_inclusion=False)
    ups, downs = summaries.transitions(table)
    columns |= {
        "inclusion": posterior.inclusion_probability,
        "mcse": quality.mcse,
        "log10_bf": posterior.log10_bayes_factor,
        "bf_bound": posterior.bayes_factor_bound,
        "evidence": posterior.evidence(thresholds),
        "mean": scale * mean,
        "sd": scale * sd,
        "median": scale * median,
        "hdi_low": scale * low,
        "hdi_high": scale * high,
        "mean_if_included": scale * mean_if,
        "sd_if_included": scale * sd_if,
        "r_hat": quality.r_hat,
        "ess_bulk": quality.ess,
        "flips": ups + downs,
        "note": indicator_notes(posterior),
    }
    return pandas.DataFrame(columns)


def indicator_notes(posterior: Posterior) -> np.ndarray:
    """In words, what R-hat and ESS cannot say of each indicator; empty where they say it all."""
    table = posterior.table
    counts = table.counts
    ups, downs = summaries.transitions(table)
    total = f"{table.total:,} draw{'s' * (table.total != 1)}"
    notes = np.full(table.n_cliques, "", object)
    notes[counts == 0] = f"never active in {total}: no flips, so R-hat does not apply"
    notes[counts == table.total] = f"active in all {total}: no flips, so R-hat does not apply"
    stuck = np.flatnonzero((ups + downs == 0) & (counts > 0) & (counts < table.total))
    for clique in stuck:
        notes[clique] = (
            f"never flips within a chain: active in {counts[clique] // table.n_draws} of {table.n_chains} "
            "chains and absent in the others, so the chains disagree"
        )
    if table.n_draws < convergence.FEWEST_DRAWS:
        notes[(counts > 0) & (counts < table.total)] = f"too few draws for R-hat ({table.n_draws} per chain)"
    status = posterior.resolved_prior.status
    notes[status == FORCED] = "forced by the prior"
    notes[status == FORBIDDEN] = "forbidden by the prior"
    return notes


def bias_table(posterior: Posterior, coding: str, probability: float) -> pandas.DataFrame:
    """One row per variable; see :meth:`edgewise.Posterior.bias_summary`."""
    import pandas

    values = np.moveaxis(posterior.biases(coding), 2, 0)
    flat = values.reshape(len(values), -1)
    ordered = np.sort(flat, axis=1)
    low, high = summaries.shortest_interval(ordered, probability)
    unknown = np.full(len(values), np.nan)
    enough = posterior.n_draws >= convergence.FEWEST_DRAWS
    return pandas.DataFrame(
        {
            "variable": posterior.names,
            "mean": flat.mean(axis=1),
            "sd": flat.std(axis=1, ddof=1) if flat.shape[1] > 1 else np.zeros(len(flat)),
            "median": np.median(ordered, axis=1),
            "hdi_low": low,
            "hdi_high": high,
            "r_hat": convergence.rank_r_hat(values) if enough else unknown,
            "ess_bulk": convergence.bulk_ess(values) if enough else unknown,
            "ess_tail": convergence.tail_ess(values) if enough else unknown,
        }
    )


def posterior_graph(posterior: Posterior, threshold: float) -> networkx.Graph:
    """Graph of probable pairs; see :meth:`edgewise.Posterior.graph`."""
    import networkx

    if not 0 <= threshold <= 1:
        raise DataError(f"threshold must lie between 0 and 1, not {threshold!r}.")
    names = posterior.names
    graph: networkx.Graph = networkx.Graph(threshold=threshold)
    graph.add_nodes_from((name, {"bias": float(bias)}) for name, bias in zip(names, posterior.bias))
    if not posterior.features.pairs_only:
        shared = posterior.shared_clique_probability()
        for i, j in zip(*np.nonzero(np.triu(shared >= threshold, 1))):
            graph.add_edge(names[i], names[j], inclusion=float(shared[i, j]))
        return graph
    inclusion = posterior.inclusion_probability
    factors, evidence = posterior.log10_bayes_factor, posterior.evidence()
    mean = summaries.moments(posterior.table, given_inclusion=False)[0]
    mean_if = summaries.moments(posterior.table, given_inclusion=True)[0]
    for k in np.flatnonzero(inclusion >= threshold).tolist():
        i, j = posterior.features.members[k]
        graph.add_edge(
            names[i],
            names[j],
            inclusion=float(inclusion[k]),
            log10_bf=float(factors[k]),
            evidence=str(evidence[k]),
            coupling=float(mean[k]),
            coupling_if_included=float(mean_if[k]) if np.isfinite(mean_if[k]) else 0.0,
        )
    return graph


def graph_table(posterior: Posterior, n: int) -> pandas.DataFrame:
    """The most frequent graphs; see :meth:`edgewise.Posterior.graphs`."""
    import pandas

    found = structure.common_graphs(posterior.joined)
    names = posterior.names
    rows = [
        {
            "probability": count / posterior.table.total,
            "draws": count,
            "n_edges": len(indices),
            "edges": tuple(
                tuple(names[i] for i in posterior.features.clique(int(k))) for k in indices.tolist()
            ),
        }
        for count, indices in found[:n]
    ]
    result = pandas.DataFrame(rows, columns=["probability", "draws", "n_edges", "edges"])
    result.attrs["n_different"] = len(found)
    return result


def neighbourhood_table(posterior: Posterior, name: str | int, n: int) -> pandas.DataFrame:
    """The most frequent neighbour sets; see :meth:`edgewise.Posterior.neighbourhood`."""
    import pandas

    variable = variable_index(posterior, name)
    found = structure.neighbourhoods(posterior.joined, posterior.features, variable)
    rows = [
        {
            "probability": count / posterior.table.total,
            "draws": count,
            "n_neighbours": len(members),
            "neighbours": tuple(posterior.names[i] for i in members),
        }
        for count, members in found[:n]
    ]
    result = pandas.DataFrame(rows, columns=["probability", "draws", "n_neighbours", "neighbours"])
    result.attrs["n_different"] = len(found)
    return result


def variable_index(posterior: Posterior, name: str | int) -> int:
    """Number of a variable given by name or number."""
    if isinstance(name, str):
        if name not in posterior.names:
            known = ", ".join(posterior.names[:10])
            raise DataError(f"There is no variable named {name!r}. The variables are: {known}")
        return posterior.names.index(name)
    if not 0 <= name < posterior.n_variables:
        raise DataError(
            f"There is no variable {name}; the {posterior.n_variables} variables are numbered from 0."
        )
    return int(name)


def datatree(posterior: Posterior, edges: Sequence[Clique] | None) -> xarray.DataTree:
    """The draws for ArviZ; see :meth:`edgewise.Posterior.to_datatree`."""
    from arviz_base import from_dict

    if edges is None:
        cells = posterior.n_cliques * posterior.table.total
        if cells > _DATATREE_CELLS:
            raise DataError(
                f"All {posterior.n_cliques:,} candidates in {posterior.table.total:,} draws are {cells:,} "
                f"numbers; choose edges, for instance edges=[{posterior.names[:2]!r}]."
            )
        chosen = np.arange(posterior.n_cliques)
    else:
        chosen = np.array([posterior.features.index(edge, posterior.names) for edge in edges], int)
    theta = np.moveaxis(posterior.table.dense(chosen), 0, 2)
    tree = from_dict(
        {
            "posterior": {
                "theta": theta,
                "indicator": (theta != 0).astype(np.int8),
                "bias": posterior.biases(),
                "p0": posterior.inclusion_rate,
                "sigma0": posterior.slab_scale,
                "edge_count": posterior.edge_count(),
            }
        },
        coords={
            "edge": clique_labels(posterior.features, posterior.names)[chosen].astype(str),
            "variable": list(posterior.names),
        },
        dims={"theta": ["edge"], "indicator": ["edge"], "bias": ["variable"]},
    )
    tree.attrs["edgewise_info"] = json.dumps(posterior.info)
    return tree
