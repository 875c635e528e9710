"""Tables and graphs of a posterior by name: what users read, plot and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.posterior import levels, structure
from edgewise.posterior.columns import SUMMARY, edge_column
from edgewise.priors.attributes import AttributeLayout

if TYPE_CHECKING:
    import networkx
    import pandas

    from edgewise.posterior.posterior import Posterior


def edge_table(
    posterior: Posterior, coding: str, thresholds: tuple[float, float], probability: float
) -> pandas.DataFrame:
    """One row per candidate; see :meth:`edgewise.Posterior.summary`."""
    import pandas

    names = np.array(posterior.names, object)
    members = posterior.features.members
    columns: dict[str, Any] = {"edge": posterior.candidates}
    if posterior.features.pairs_only:
        columns["variable_1"] = names[members[:, 0]]
        columns["variable_2"] = names[members[:, 1]]
    else:
        columns["variables"] = [tuple(names[row[row >= 0]]) for row in members]
    if not posterior.scales.all_binary:
        columns["measure"] = levels.measures(posterior)
    for name in SUMMARY:
        columns[name] = edge_column(posterior, name, coding, thresholds, probability)
    return pandas.DataFrame(columns)


def bias_table(posterior: Posterior, coding: str, probability: float) -> pandas.DataFrame:
    """One row per variable; see :meth:`edgewise.Posterior.bias_summary`."""
    import pandas

    values = np.moveaxis(posterior.biases(coding), 2, 0)
    return pandas.DataFrame({"variable": posterior.names, **levels.described(values, probability)})


def attribute_table(posterior: Posterior, probability: float) -> pandas.DataFrame:
    """One row per attribute; see :meth:`edgewise.Posterior.attribute_summary`."""
    import pandas

    model = posterior._resolved_prior.model
    if not isinstance(model, AttributeLayout):
        raise DataError(
            "This posterior knows no attributes of variables: fit with "
            "Prior(inclusion=AttributeInclusion(...)), on the command line --attributes."
        )
    states = [chain.model_state for chain in posterior.draws if chain.model_state is not None]
    values = np.moveaxis(np.stack(states), 2, 0)
    columns = {"attribute": model.labels, **levels.described(values, probability)}
    positive = (values > 0).mean(axis=(1, 2))
    return pandas.DataFrame({**columns, "positive": positive, "prior_sd": model.sd})


def posterior_graph(posterior: Posterior, threshold: float) -> networkx.Graph:
    """Graph of probable pairs; see :meth:`edgewise.Posterior.graph`."""
    import networkx

    if not 0 <= threshold <= 1:
        raise DataError(f"threshold must lie between 0 and 1, not {threshold!r}.")
    names = posterior.names
    graph: networkx.Graph = networkx.Graph(threshold=threshold)
    graph.add_nodes_from(zip(names, _node_values(posterior)))
    if not posterior.features.pairs_only:
        shared = posterior.pair_values("adjacency")
        for i, j in zip(*np.nonzero(np.triu(shared >= threshold, 1))):
            graph.add_edge(names[i], names[j], inclusion=float(shared[i, j]))
        return graph
    inclusion, factors, evidence, mean, mean_if = (
        posterior.edge_values(name)
        for name in ("inclusion", "log10_bf", "evidence", "mean", "mean_if_included")
    )
    measure = levels.measures(posterior)
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
        if not posterior.scales.all_binary:
            graph.edges[names[i], names[j]]["measure"] = str(measure[k])
    return graph


def _node_values(posterior: Posterior) -> list[dict[str, Any]]:
    """What the nodes of a graph carry."""
    if posterior.scales.all_binary:
        return [{"bias": float(bias)} for bias in posterior._bias]
    thresholds = posterior.scales.thresholds(posterior._bias)
    return [
        {"kind": scale.kind, "levels": [str(label) for label in scale.labels], "thresholds": found.tolist()}
        for scale, found in zip(posterior.scales, thresholds)
    ]


def graph_table(posterior: Posterior, n: int) -> pandas.DataFrame:
    """The most frequent graphs; see :meth:`edgewise.Posterior.graphs`."""
    import pandas

    found = structure.common_graphs(posterior._joined)
    names = posterior.names
    rows = [
        {
            "probability": count / posterior._table.total,
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
    found = structure.neighbourhoods(posterior._joined, posterior.features, variable)
    rows = [
        {
            "probability": count / posterior._table.total,
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
