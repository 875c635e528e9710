"""Commands that use a posterior: ``predict``, ``sample`` and ``export``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from edgewise.cli import opened, options
from edgewise.cli.files import csv_text, safe_csv, write_text
from edgewise.cli.messages import tell
from edgewise.errors import DataError

FORMATS = ("graphml", "J", "h", "model", "weights", "edges")

TextOutput = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
]


def predict(
    posterior: options.PosteriorPath,
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS",
            help="Table with the columns of the fit, in any order, some cells blank; - is standard input.",
            show_default=False,
        ),
    ],
    output: TextOutput = "-",
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Predict these variables in every row without looking at their cells: a,b.",
            show_default="the blank cells",
        ),
    ] = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="One line per row and one column per variable (and level), known cells as 0 and 1."
        ),
    ] = False,
    mixture: options.Mixture = 100,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Probabilities of the blank cells of new rows, given the cells that are filled in.

    Writes one line per blank cell: the row (counted from 1), the variable, its level and the probability of
    that level, averaged over the posterior. Where variables have more than two levels, one line per level.

    [bold]Examples[/bold]

    edgewise predict votes incomplete.csv

    edgewise predict votes new.csv --target crime,immigration --wide -o crime.csv

    head -5 votes.csv | edgewise predict votes - --json
    """
    import numpy as np

    from edgewise.data import encode_rows
    from edgewise.predict.scores import conditional_probability, level_probabilities
    from edgewise.predict.strata import in_strata

    found = opened.open_posterior(posterior)
    blank = found.info.get("blanks", ())
    cells = encode_rows(rows, found.names, found.levels, allow_missing=True, blank=blank)
    wanted = [_variable(name, found.names) for name in options.parse_names(target) or []]
    if target is None and not (cells < 0).any():
        raise DataError(
            f"{'Standard input' if rows == '-' else rows} has no blank cell to predict; leave cells empty, "
            "or name variables with --target."
        )
    if found.strata is not None and rows == "-":
        raise DataError("The groups and covariates of rows are read from their table once more; give a file.")
    shown = wanted or list(range(len(found.names)))
    asked = np.zeros(cells.shape, bool)
    asked[:, shown] = True if wanted else (cells < 0)[:, shown]
    if found.scales.all_binary:
        ones = in_strata(
            found, rows, cells, None, mixture,
            lambda models, part: conditional_probability(models, part, wanted or None),
        )  # fmt: skip
        # The probability of the one is that of the other.
        probability = {(k, 1): ones[:, place] for place, k in enumerate(shown)}
    else:
        parts = level_probabilities(found.mixture(mixture), cells, wanted or None)
        probability = {
            (k, level): part[:, level] for k, part in zip(shown, parts) for level in range(part.shape[1])
        }
    where = [
        (int(row), int(column), level)
        for row, column in zip(*np.nonzero(asked))
        for level in range(len(found.levels[column]))
        if (column, level) in probability
    ]
    if json:
        from edgewise.cli.shown import write_json

        write_json(
            [
                {
                    "row": row + 1,
                    "variable": found.names[column],
                    "level": found.levels[column][level],
                    "probability": float(probability[column, level][row]),
                }
                for row, column, level in where
            ]
        )
        return
    if wide:
        header = ["row", *(f"P({found.names[k]} = {found.levels[k][level]})" for k, level in probability)]
        lines: Any = (
            [row + 1, *(f"{part[row]:.6g}" for part in probability.values())] for row in range(len(cells))
        )
    else:
        header = ["row", "variable", "level", "probability"]
        lines = (
            [row + 1, found.names[k], found.levels[k][level], f"{probability[k, level][row]:.6g}"]
            for row, k, level in where
        )
    write_text(output, safe_csv(header, lines))
    if output != "-":
        tell(f"Written: {output} ({len(where):,} probabilities)")


def _variable(name: str | int, names: tuple[str, ...]) -> int:
    import difflib

    if str(name) in names:
        return names.index(str(name))
    if isinstance(name, int) and name < len(names):
        return name
    close = difflib.get_close_matches(str(name), names, 3, 0.6)
    known = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the variables are {known}."
    raise DataError(f"--target asks for a variable {name!r}, which is not in the model; {hint}")


def sample(
    posterior: options.PosteriorPath,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of rows.")] = 100,
    seed: options.Seed = None,
    output: TextOutput = "-",
    mixture: options.Mixture = 100,
    of_group: options.OfGroup = None,
    debug: options.Debug = False,
) -> None:
    """Draw new rows from a posterior, as CSV in the labels of the data.

    [bold]Examples[/bold]

    edgewise sample votes -n 1000 --seed 1 -o new.csv

    edgewise sample votes -n 232 | edgewise fit - -o again
    """
    import numpy as np

    from edgewise.predict.strata import new_rows

    found = opened.open_posterior(posterior)
    rng = np.random.default_rng(seed)
    rows = new_rows(found, number, mixture, rng, of_group)
    labelled = ([found.levels[k][cell] for k, cell in enumerate(row)] for row in rows.tolist())
    write_text(output, safe_csv(found.names, labelled))
    if output != "-":
        from edgewise.data.problems import counted

        tell(f"Written: {output} ({counted(number, 'row')})")


def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="graphml (network with probabilities), J or h (Ising couplings or fields, CSV), model "
            "(JSON), weights (0/1 parameters, CSV) or edges (all numbers of all edges, CSV).",
            autocompletion=lambda: list(FORMATS),
            show_default=False,
        ),
    ],
    posterior: options.PosteriorPath,
    output: TextOutput = "-",
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Smallest probability of an edge in graphml.")
    ] = 0.5,
    mean: Annotated[
        bool,
        typer.Option(
            "--mean", help="J and h: posterior means over all graphs instead of the median probability model."
        ),
    ] = False,
    coding: options.CodingOption = options.Coding.binary,
    of_group: options.OfGroup = None,
    debug: options.Debug = False,
) -> None:
    """Write a posterior for other programs.

    graphml has the edges with a probability of at least --threshold. J, h, model and weights are those of the
    median probability model: the edges more probable than not, at their mean strength.

    [bold]Examples[/bold]

    edgewise export graphml votes -o votes.graphml

    edgewise export J votes -o J.csv && edgewise export h votes -o h.csv

    edgewise export edges votes --coding ising | sort -t, -k4 | head
    """
    if what not in FORMATS:
        raise typer.BadParameter(f"There is no format {what!r}; the formats are {', '.join(FORMATS)}")
    found = opened.open_posterior(posterior)
    if of_group is not None:
        found = found.of_group(of_group)
    elif found.groups and what in ("J", "h", "model", "weights"):
        raise DataError(
            f"Each group has a model of its own; say which with --of-group ({', '.join(found.groups)})."
        )
    if what in ("J", "h"):
        text = _ising(found, what, mean)
    elif what == "model":
        text = found.median_model.to_json() + "\n"
    elif what == "graphml":
        text = _graphml(found, threshold)
    else:
        text = _through_file(found, what, coding.value)
    write_text(output, text)
    if output != "-":
        tell(f"Written: {output}")


def _ising(posterior: Any, what: str, mean: bool) -> str:
    from edgewise.model.cells import safe_cell

    if mean:
        coupling, field = posterior.coupling(coding="ising"), posterior.biases("ising").mean(axis=(0, 1))
    else:
        coupling, field = posterior.median_model.to_ising()
    names = [safe_cell(name) for name in posterior.names]
    if what == "h":
        return csv_text(["variable", "h"], zip(names, (repr(float(value)) for value in field)))
    rows = ([name, *(repr(float(value)) for value in line)] for name, line in zip(names, coupling))
    return csv_text(["J", *names], rows)


def _graphml(posterior: Any, threshold: float) -> str:
    import networkx

    from edgewise.model.files import xml_names

    graph = posterior.graph(threshold)
    if posterior.scales.all_binary:
        for name, bias in zip(posterior.names, posterior.biases().mean(axis=(0, 1)).tolist()):
            graph.nodes[name]["bias"] = bias
    else:
        for _, values in graph.nodes(data=True):
            # GraphML has no lists.
            for label, value in zip(values.pop("levels"), values.pop("thresholds")):
                values[f"threshold {label}"] = value
    for _, _, values in graph.edges(data=True):
        for key, value in values.items():
            # GraphML knows Python's own types only.
            values[key] = value.item() if hasattr(value, "item") else value
    graph = networkx.relabel_nodes(graph, dict(zip(posterior.names, xml_names(posterior.names))))
    return "\n".join(networkx.generate_graphml(graph)) + "\n"


def _through_file(posterior: Any, what: str, coding: str) -> str:
    """Text of the formats that are written by functions of their own."""
    import tempfile
    from pathlib import Path

    from edgewise.report.tables import write_edges_csv

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.csv"
        if what == "weights":
            posterior.median_model.to_csv(path)
        else:
            write_edges_csv(posterior, path, coding=coding)
        return path.read_bytes().decode("utf-8-sig")
