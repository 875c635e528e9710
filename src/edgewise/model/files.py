"""Reading and writing an MRF: networkx, GraphML and CSV. Readers return the arguments that make the model."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.atomic import beside
from edgewise.errors import FileError, printable
from edgewise.model.cells import plain_cell, safe_cell

if TYPE_CHECKING:
    import networkx

    from edgewise.model.mrf import MRF

Parts = tuple[list[float], list[Any], list[float], list[str] | None]

LARGER = "larger_cliques"
UNNAMED = "unnamed"
NAMES = "names"


def to_networkx(model: MRF) -> networkx.Graph:
    """See :meth:`MRF.to_networkx`."""
    import networkx

    labels: Any = model.names if model.names is not None else range(model.n_variables)
    graph: networkx.Graph = networkx.Graph()
    for label, bias in zip(labels, model.biases.tolist()):
        graph.add_node(label, bias=bias)
    larger = []
    for clique, weight in zip(model.cliques, model.weights.tolist()):
        if len(clique) == 2:
            graph.add_edge(labels[clique[0]], labels[clique[1]], weight=weight)
            continue
        larger.append((tuple(labels[i] for i in clique), weight))
        for position, i in enumerate(clique):
            graph.add_edges_from((labels[i], labels[j]) for j in clique[position + 1 :])
    if larger:
        graph.graph["cliques"] = larger
    return graph


def xml_names(names: Sequence[str]) -> list[str]:
    """Names that XML can hold, control characters spelled out, all different.

    >>> xml_names(["plain", "a\\x1b"])
    ['plain', 'a\\\\x1b']
    """
    taken = set(names)
    spelled = []
    for name in names:
        word = printable(name, keep="")
        while word != name and word in taken:
            word += "_"
        taken.add(word)
        spelled.append(word)
    return spelled


def write_graphml(model: MRF, path: str | PathLike[str]) -> None:
    """See :meth:`MRF.to_graphml`."""
    import networkx

    graph = to_networkx(model)
    if model.names is not None:
        spelled = xml_names(model.names)
        if spelled != list(model.names):
            graph = networkx.relabel_nodes(graph, dict(zip(model.names, spelled)))
            graph.graph[NAMES] = json.dumps(model.names)
    # GraphML holds plain values only: the larger cliques go in as JSON text.
    if graph.graph.pop("cliques", None):
        positions = [[list(clique), weight] for clique, weight in model._larger]
        graph.graph[LARGER] = json.dumps(positions)
    if model.names is None:
        graph.graph[UNNAMED] = True
    try:
        # networkx reads what is packed by the ending of the name.
        packers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
        pack = packers.get(Path(path).suffix, open)
        with beside(path) as draft, pack(draft, "wb") as file:
            networkx.write_graphml_xml(graph, file)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None


def read_graphml(path: str | PathLike[str]) -> Parts:
    """See :meth:`MRF.from_graphml`."""
    import xml.etree.ElementTree

    import networkx

    _must_exist(path)
    try:
        graph = networkx.read_graphml(path)
    except (xml.etree.ElementTree.ParseError, networkx.NetworkXError, UnicodeDecodeError, KeyError) as error:
        raise FileError(f"{path} is not a GraphML file: {error}.") from None
    names = [str(node) for node in graph.nodes]
    number = {name: i for i, name in enumerate(names)}
    lacking = [name for name in names if "bias" not in graph.nodes[name]]
    if lacking or not names:
        what = f"node {lacking[0]!r} has no attribute 'bias'" if lacking else "it has no nodes"
        raise FileError(f"{path} is not a model written by edgewise: {what}.")
    entries = [
        (tuple(sorted((number[a], number[b]))), float(values["weight"]))
        for a, b, values in graph.edges(data=True)
        if "weight" in values
    ]
    try:
        entries += [(tuple(clique), weight) for clique, weight in json.loads(graph.graph.get(LARGER, "[]"))]
        written = [str(name) for name in json.loads(graph.graph.get(NAMES, "[]"))]
    except (json.JSONDecodeError, TypeError, ValueError):
        raise FileError(f"{path} has an unreadable list of larger cliques or of names.") from None
    entries.sort(key=lambda entry: (len(entry[0]), entry[0]))
    return (
        [graph.nodes[name]["bias"] for name in names],
        [clique for clique, _ in entries],
        [weight for _, weight in entries],
        None if graph.graph.get(UNNAMED) else written if len(written) == len(names) else names,
    )


def write_csv(model: MRF, path: str | PathLike[str]) -> None:
    """See :meth:`MRF.to_csv`."""
    names = model.names or tuple(f"x{i}" for i in range(model.n_variables))
    width = model.members.shape[1]
    try:
        with beside(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"variable_{k + 1}" for k in range(width)), "weight"])
            singles = [(i,) for i in range(model.n_variables)]
            for clique, weight in zip([*singles, *model.cliques], model.parameters.tolist()):
                writer.writerow(
                    [
                        *(safe_cell(names[i]) for i in clique),
                        *("" for _ in range(width - len(clique))),
                        repr(weight),
                    ]
                )
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None


def read_csv(path: str | PathLike[str]) -> Parts:
    """See :meth:`MRF.from_csv`."""
    _must_exist(path)
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            header, *lines = [line for line in csv.reader(file) if line] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None
    if len(header) < 3 or header[-1] != "weight" or header[0] != "variable_1":
        raise FileError(
            f"{path} is not a model written by edgewise: its first line should be "
            f"'variable_1,variable_2,weight' and is {','.join(header)[:60]!r}."
        )
    names: list[str] = []
    biases, cliques, weights = [], [], []
    for number, line in enumerate(lines, start=2):
        variables = [plain_cell(name) for name in line[:-1] if name]
        try:
            weight = float(line[-1])
        except ValueError:
            raise FileError(f"{path}, line {number}: {line[-1]!r} is not a number.") from None
        if len(line) != len(header) or not variables:
            raise FileError(f"{path}, line {number}: expected {len(header)} fields with a variable first.")
        if len(variables) == 1:
            names.append(variables[0])
            biases.append(weight)
        else:
            cliques.append(variables)
            weights.append(weight)
    return biases, cliques, weights, names


def _must_exist(path: str | PathLike[str]) -> None:
    if not Path(path).is_file():
        raise FileError(f"There is no file {path}.")
