"""Commands that look at a posterior: ``summary``, ``plot``, ``report`` and ``compare``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from edgewise.cli import opened, options
from edgewise.cli.files import binary_target
from edgewise.cli.messages import in_options, say, tell
from edgewise.errors import DataError


def summary(
    posterior: options.PosteriorPath,
    top: options.Top = 15,
    coding: options.CodingOption = options.Coding.binary,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show the answer, the quality of the draws and the most probable edges of a fit.

    [bold]Examples[/bold]

    edgewise summary votes

    edgewise summary votes/posterior.nc --top 0 --coding ising

    edgewise summary votes --json | jq '.edges[] | select(.inclusion > 0.9) | .edge'
    """
    from edgewise.cli import shown
    from edgewise.posterior.diagnostics import diagnose

    found = opened.open_posterior(posterior)
    if json:
        shown.write_json(shown.posterior_as_dict(found, diagnose(found), coding.value))
    else:
        shown.show_posterior(found, diagnose(found), coding=coding.value, top=top)


def plot(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="One of: " + ", ".join(options.PLOT_KINDS) + ".",
            autocompletion=lambda: list(options.PLOT_KINDS),
            show_default=False,
        ),
    ],
    posterior: options.PosteriorPath,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="PNG, SVG or PDF by its ending; - is standard output (PNG).",
            show_default="KIND.png",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Smallest probability of a drawn edge.", show_default="by kind"),
    ] = None,
    grid: options.Grid = None,
    color_by: options.ColorBy = None,
    parameter: Annotated[
        str | None,
        typer.Option(
            help="For trace and rank: edge_count, p0, sigma0 or an edge 'a -- b'.", show_default="edge_count"
        ),
    ] = None,
    edges: Annotated[
        int | None, typer.Option(min=1, help="For forests: number of edges.", show_default="30")
    ] = None,
    coding: Annotated[
        options.Coding | None, typer.Option(help="For forest: coding of couplings.", show_default="binary")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="For differences: the two groups.",
            show_default="the first two",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="For centrality: strength, 'expected influence', degree, betweenness, closeness or "
            "eigenvector.",
            show_default="strength",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="For predictive: the table to compare with.", show_default=False)
    ] = None,
    missing: options.SameMissingCells = None,
    check: Annotated[
        str | None,
        typer.Option(help="For predictive: pairs, means, triples or ones.", show_default="pairs"),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="For precision-recall: the true model, a JSON file.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the plot.", show_default=False)] = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a PNG.")] = 150,
    debug: options.Debug = False,
) -> None:
    """Draw one picture of a posterior.

    [bold]Examples[/bold]

    edgewise plot network votes

    edgewise plot network votes --color-by topics.csv -o network.svg

    edgewise plot forest votes --coding ising -o couplings.pdf

    edgewise plot centrality votes --measure degree

    edgewise plot trace votes --parameter "crime -- immigration"

    edgewise plot difference-network parties

    edgewise plot predictive votes --data votes.csv --missing drop

    edgewise plot network digits --grid 8x8 -o - > network.png
    """
    import matplotlib

    matplotlib.use("Agg")
    from edgewise.plots import PLOTS

    if kind not in PLOTS:
        import difflib

        close = difflib.get_close_matches(kind, PLOTS, 2)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the kinds are {', '.join(PLOTS)}."
        raise typer.BadParameter(f"There is no plot {kind!r}; {hint}")
    shape = None if grid is None else options.parse_grid(grid)
    given: dict[str, tuple[str, Any]] = {
        "threshold": ("--threshold", threshold),
        "grid": ("--grid", shape),
        "shape": ("--grid", shape),
        "parameter": ("--parameter", parameter),
        "edges": ("--edges", edges),
        "coding": ("--coding", None if coding is None else coding.value),
        "measure": ("--measure", measure),
        "between": ("--between", None if between is None else options.parse_names([between])),
        "groups": ("--color-by", color_by),
        "data": ("--data", data),
        "kind": ("--check", check),
        "truth": ("--truth", truth),
        "title": ("--title", title),
    }
    chosen = _accepted(kind, PLOTS[kind], given)
    target = binary_target(output or f"{kind}.png")
    found = opened.open_posterior(posterior)
    if kind == "predictive":
        if data is None:
            raise typer.BadParameter("The predictive check compares with a table; give it with --data FILE")
        chosen["data"] = opened.read_same_data(data, found, missing)
    if kind == "precision-recall":
        if truth is None:
            raise typer.BadParameter("Precision and recall need the truth; give a model with --truth FILE")
        from edgewise.cli.sources import read_model

        chosen["truth"] = read_model(truth)
    if color_by is not None:
        from edgewise.cli.sources import read_groups

        chosen["groups"] = read_groups(color_by, found.names)
    axes = PLOTS[kind](found, **chosen)
    target.write_figure(axes.figure, dpi)
    tell(f"Written: {target}")


def _accepted(kind: str, function: Any, given: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """The options that were given, all of which the plot must understand."""
    parameters = inspect.signature(function).parameters
    known = set(parameters) | {"title"}
    chosen = {name: value for name, (_, value) in given.items() if value is not None and name in known}
    understood = {given[name][0] for name in given if name in known}
    wrong = {option for option, value in given.values() if value is not None} - understood
    if wrong:
        takes = ", ".join(sorted(understood))
        raise typer.BadParameter(f"plot {kind} does not take {', '.join(sorted(wrong))}; it takes {takes}")
    return chosen


def report(
    posterior: options.PosteriorPath,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page; - is standard output.",
            show_default="report.html beside the posterior",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="The table of the fit; adds the predictive check and groups.", show_default=False),
    ] = None,
    group: options.Group = None,
    missing: options.SameMissingCells = None,
    weights: options.Weights = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.", show_default=False)] = None,
    grid: options.Grid = None,
    color_by: options.ColorBy = None,
    debug: options.Debug = False,
) -> None:
    """Write the report of a posterior: one HTML file that opens anywhere.

    [bold]Examples[/bold]

    edgewise report votes

    edgewise report votes --data votes.csv --group party --missing drop --title "Votes of 1984" -o votes.html
    """
    from edgewise.report.build import build_report, write_page

    found = opened.open_posterior(posterior)
    rows = None if data is None else opened.read_same_data(data, found, missing, group, weights)
    settings: dict[str, Any] = {
        "data": rows,
        "title": title,
        "grid": None if grid is None else options.parse_grid(grid),
    }
    if color_by is not None:
        from edgewise.cli.sources import read_groups

        settings["groups"] = read_groups(color_by, found.names)
    page = build_report(found, **settings, wording=in_options)
    if output == "-":
        import sys

        sys.stdout.buffer.write(page.encode())
        return
    path = Path(output) if output is not None else opened.find_posterior(posterior).with_name("report.html")
    tell(f"Written: {write_page(page, path)} (open it in a browser)")


def compare(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="POSTERIOR", help="Directory of a fit, or its posterior.nc.", show_default=False
        ),
    ],
    second: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER]",
            help="Another posterior, or a model as a JSON file (of simulate or export).",
            show_default=False,
        ),
    ] = None,
    lasso: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Compare with a lasso fitted to this table.", show_default=False),
    ] = None,
    method: Annotated[
        str, typer.Option(help="Which lasso: nodewise (extended BIC) or pseudo-likelihood (cross-validated).")
    ] = "nodewise",
    missing: options.MissingCells = options.Missing.error,
    truth: Annotated[
        Path | None,
        typer.Option(help="The true model, a JSON file; adds the scores of both.", show_default=False),
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Probability from which an edge counts as there.")
    ] = 0.5,
    top: options.Top = 10,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compare two computations: two posteriors, or a posterior with a lasso or with a known model.

    It says where two answers to one question agree. It does not compare populations: two fits of two groups
    differ by chance alone. To compare groups, put them into one table and use fit --compare-groups.

    [bold]Examples[/bold]

    edgewise compare votes votes-other-seed

    edgewise compare votes --lasso votes.csv --missing drop

    edgewise compare fit truth.json
    """
    from edgewise.cli import shown
    from edgewise.cli.sources import compare_sources, read_model, read_source, show_comparison

    if (second is None) == (lasso is None):
        raise typer.BadParameter(
            "Give one thing to compare with: another posterior or model, or --lasso DATA for a lasso"
        )
    posterior = opened.open_posterior(first)
    if lasso is not None:
        other, name = _fit_lasso(lasso, posterior, method, missing), "lasso"
    else:
        assert second is not None
        other, name = read_source(second), str(second)
    result = compare_sources(posterior, other, (str(first), name), threshold)
    if truth is not None:
        result.add_truth(read_model(truth))
    if json:
        shown.write_json(result.as_dict())
    else:
        show_comparison(result, top)
    if other_rows(posterior, other):
        say(
            "the two were fitted to different rows, and this compares computations, not populations: "
            "differences may be chance. To ask whether groups differ, put the rows into one table and use "
            "edgewise fit TABLE --compare-groups COLUMN.",
            "Note",
        )
    if result.only:
        say(f"variables of one side alone were left out: {', '.join(result.only[:10])}.", "Note")


def other_rows(posterior: Any, other: Any) -> bool:
    """Whether another posterior was made from other data."""
    digests = [getattr(each, "info", {}).get("data_digest") for each in (posterior, other)]
    return None not in digests and digests[0] != digests[1]


def _fit_lasso(source: str, posterior: Any, method: str, missing: options.Missing) -> Any:
    from edgewise.baselines.lassos import NodewiseLasso, PseudoLikelihoodLasso

    data = opened.read_same_data(source, posterior, missing)
    if method == "nodewise":
        return NodewiseLasso().fit(data)
    if method == "pseudo-likelihood":
        return PseudoLikelihoodLasso().fit(data)
    raise DataError(f"--method must be nodewise or pseudo-likelihood, not {method!r}.")
