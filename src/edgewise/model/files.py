"""Reading and writing an MRF: JSON, networkx, GraphML, CSV. Readers return the arguments of the model."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.atomic import beside
from edgewise.errors import DataError, FileError, printable
from edgewise.model.cells import plain_cell, safe_cell
from edgewise.paths import as_path
from edgewise.scales import Scale, Scales

if TYPE_CHECKING:
    import networkx

    from edgewise.model.mrf import MRF

Parts = tuple[list[float], list[Any], list[float], list[str] | None, Sequence[Scale] | None]

FORMAT = "edgewise-mrf"
FORMAT_VERSION = 1
LEVELS_VERSION = 2
"""Format of models with other levels than 0 and 1; those are written as ever."""

LARGER = "larger_cliques"
UNNAMED = "unnamed"
NAMES = "names"
MODEL = "model"
LEVEL_COLUMNS = ["variable_1", "level_1", "variable_2", "level_2", "weight", "kind"]


def to_json(model: MRF) -> str:
    """See :meth:`MRF.to_json`."""
    binary = model.scales == Scales.binary(model.n_variables)
    values = {
        "format": FORMAT,
        "version": FORMAT_VERSION if binary else LEVELS_VERSION,
        "names": model.names,
        "biases": model.biases.tolist(),
        "cliques": model.cliques,
        "weights": model.weights.tolist(),
    }
    return json.dumps(values if binary else values | {"scales": [scale.to_dict() for scale in model.scales]})


def from_json(text: str) -> Parts:
    """See :meth:`MRF.from_json`."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(f"This is not the JSON text of a model: {error}.") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FileError(f"This JSON text is not a model: it lacks the format mark {FORMAT!r}.")
    if values.get("version") not in (FORMAT_VERSION, LEVELS_VERSION):
        raise FileError(
            f"The model has format version {values.get('version')!r}; this edgewise reads versions "
            f"{FORMAT_VERSION} and {LEVELS_VERSION}. Install a newer edgewise."
        )
    wanted = ["biases", "cliques", "weights"] + ["scales"] * (values["version"] == LEVELS_VERSION)
    missing = [key for key in wanted if key not in values]
    if missing:
        raise FileError(f"The JSON text of the model lacks {', '.join(missing)}; it may be truncated.")
    scales = None
    if values["version"] == LEVELS_VERSION:
        try:
            scales = [Scale.from_dict(part) for part in values["scales"]]
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"The JSON text of the model has unreadable levels: {error}.") from None
    return values["biases"], values["cliques"], values["weights"], values.get("names"), scales


def to_networkx(model: MRF) -> networkx.Graph:
    """See :meth:`MRF.to_networkx`."""
    import networkx

    labels: Any = model.names if model.names is not None else range(model.n_variables)
    graph: networkx.Graph = networkx.Graph()
    if not model.scales.all_binary:
        for label, scale, threshold in zip(labels, model.scales, model.thresholds):
            levels = [str(level) for level in scale.labels]
            graph.add_node(label, kind=scale.kind, levels=levels, thresholds=threshold.tolist())
        for k, (i, j) in enumerate(model.cliques):
            weight, parameters = float(model.strengths[k]), model.matrix(k).tolist()
            graph.add_edge(labels[i], labels[j], weight=weight, parameters=parameters)
        return graph
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

    path = as_path(path)
    graph = to_networkx(model)
    if model.names is not None:
        spelled = xml_names(model.names)
        if spelled != list(model.names):
            graph = networkx.relabel_nodes(graph, dict(zip(model.names, spelled)))
            graph.graph[NAMES] = json.dumps(model.names)
    # GraphML holds plain values only: lists go in as JSON text, and what has levels as the whole model.
    if not model.scales.all_binary:
        graph.graph[MODEL] = to_json(model)
        for *_, values in [*graph.nodes(data=True), *graph.edges(data=True)]:
            values |= {key: json.dumps(value) for key, value in values.items() if isinstance(value, list)}
    if graph.graph.pop("cliques", None):
        positions = [[list(clique), weight] for clique, weight in model._larger]
        graph.graph[LARGER] = json.dumps(positions)
    if model.names is None:
        graph.graph[UNNAMED] = True
    try:
        # networkx reads what is packed by the ending of the name.
        packers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
        pack = packers.get(path.suffix, open)
        with beside(path) as draft, pack(draft, "wb") as file:
            networkx.write_graphml_xml(graph, file)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None


def read_graphml(path: str | PathLike[str]) -> Parts:
    """See :meth:`MRF.from_graphml`."""
    import xml.etree.ElementTree

    import networkx

    path = _existing(path)
    try:
        graph = networkx.read_graphml(path)
    except (xml.etree.ElementTree.ParseError, networkx.NetworkXError, UnicodeDecodeError, KeyError) as error:
        raise FileError(f"{path} is not a GraphML file: {error}.") from None
    if MODEL in graph.graph:
        return from_json(graph.graph[MODEL])
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
        None,
    )


def write_csv(model: MRF, path: str | PathLike[str]) -> None:
    """See :meth:`MRF.to_csv`."""
    names = model.names or tuple(f"x{i}" for i in range(model.n_variables))
    width = model.members.shape[1]
    try:
        with beside(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if not model.scales.all_binary:
                writer.writerows(_level_lines(model, names))
                return
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
    path = _existing(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *lines = [line for line in csv.reader(file) if line] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None
    if header == LEVEL_COLUMNS:
        return _read_level_lines(path, lines)
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
    return biases, cliques, weights, names, None


def _level_lines(model: MRF, names: Sequence[str]) -> list[list[str]]:
    """A line for the threshold of every level and for every two levels of a pair."""
    labels = [[safe_cell(label) for label in scale.labels] for scale in model.scales]
    lines = [LEVEL_COLUMNS]
    for i, (scale, threshold) in enumerate(zip(model.scales, model.thresholds)):
        kind = scale.kind if scale.reference is None else f"{scale.kind} {scale.reference}"
        for place, label, value in zip(scale.positions, labels[i], threshold.tolist()):
            lines.append([safe_cell(names[i]), label, "", "", repr(value), f"{kind} at {place}"])
    for k, (i, j) in enumerate(model.cliques):
        for label, row in zip(labels[i], model.pair_potential(k).tolist()):
            for other, value in zip(labels[j], row):
                lines.append([safe_cell(names[i]), label, safe_cell(names[j]), other, repr(value), ""])
    return lines


def _read_level_lines(path: str | PathLike[str], lines: Sequence[Sequence[str]]) -> Parts:
    """Parts of a model with levels; labels that spell numbers are numbers."""
    from edgewise.model.energies import pair_parameters, threshold_coordinates

    levels: dict[str, list[tuple[str, str, float]]] = {}
    tables: dict[tuple[str, str], list[float]] = {}
    for number, line in enumerate(lines, start=2):
        try:
            first, label, second, _, weight, kind = (plain_cell(cell) for cell in line)
            if second:
                tables.setdefault((first, second), []).append(float(weight))
            else:
                levels.setdefault(first, []).append((label, kind, float(weight)))
        except ValueError:
            raise FileError(f"{path}, line {number}: expected 6 fields with a number in the fifth.") from None
    names = list(levels)
    scales = []
    for name, entries in levels.items():
        kind, _, _ = entries[0][1].partition(" at ")
        kind, _, reference = kind.partition(" ")
        try:
            places = tuple(int(entry[1].rpartition(" at ")[2]) for entry in entries)
            own = tuple(_number(entry[0]) for entry in entries)
            scales.append(Scale(kind, own, places, int(reference) if reference else None))
        except (ValueError, DataError) as error:
            raise FileError(f"{path}: the levels of {name!r} cannot be read: {error}") from None
    by_name = dict(zip(names, scales))
    shaped = []
    for (first, second), values in tables.items():
        if first not in by_name or second not in by_name:
            raise FileError(f"{path}: a pair names {first!r} or {second!r}, which has no thresholds.")
        shape = by_name[first].n_levels, by_name[second].n_levels
        if len(values) != shape[0] * shape[1]:
            raise FileError(f"{path}: {first!r} and {second!r} need {shape[0] * shape[1]} lines.")
        shaped.append(np.reshape(values, shape))
    each, pairs = Scales.of(scales), list(tables)
    try:
        weights = pair_parameters(each, pairs, shaped, names)
        biases = threshold_coordinates(each, [[entry[2] for entry in levels[name]] for name in names])
    except DataError as error:
        raise FileError(f"{path}: {error}") from None
    return biases.tolist(), pairs, weights.tolist(), names, each


def _number(label: str) -> Any:
    for kind in (int, float):
        try:
            return kind(label)
        except ValueError:
            continue
    return label


def _existing(path: str | PathLike[str]) -> Path:
    found = as_path(path, "a model")
    if not found.is_file():
        raise FileError(f"There is no file {found}.")
    return found
