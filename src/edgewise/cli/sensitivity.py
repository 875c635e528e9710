"""``edgewise sensitivity``: the posterior under other priors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli import opened, options
from edgewise.cli.files import binary_target
from edgewise.cli.messages import in_options, say, tell
from edgewise.cli.options import PRIOR, SAMPLING
from edgewise.errors import DataError, printable

if TYPE_CHECKING:
    from edgewise.posterior.sensitivity import Sensitivity
    from edgewise.priors import Prior


class Question(StrEnum):
    """What the picture shows of every prior."""

    evidence = "evidence"
    inclusion = "inclusion"
    edges = "edges"


def parse_pair(text: str) -> tuple[float, float]:
    """Two numbers in one word, so that the option may be repeated.

    >>> parse_pair("1,9"), parse_pair("2.5 1")
    ((1.0, 9.0), (2.5, 1.0))
    """
    try:
        first, second = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a pair of numbers; write them with a comma, such as 1,9"
        ) from None
    return first, second


def _checked_pairs(values: list[str] | None) -> list[str] | None:
    for value in values or ():
        parse_pair(value)
    return values


def sensitivity(
    posterior: options.PosteriorPath,
    prior: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A whole prior as a JSON or TOML file: what it leaves out is the default of edgewise, not "
            "that of the fit. May be repeated, as all of these.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    p0: Annotated[
        list[float] | None,
        typer.Option(
            help="A fixed p0; the rest of the prior is that of the fit.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    beta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            callback=_checked_pairs,
            help="A prior Beta(A, B) of p0; the rest as in the fit.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    sigma0: Annotated[
        list[float] | None,
        typer.Option(
            help="A fixed sigma0; the rest as in the fit.", show_default=False, rich_help_panel=PRIOR
        ),
    ] = None,
    slab: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE,RATE",
            callback=_checked_pairs,
            help="A prior Gamma(SHAPE, RATE) of 1/sigma0^2; the rest as in the fit.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    cauchy: Annotated[
        list[float] | None,
        typer.Option(
            metavar="SCALE",
            help="A Cauchy slab; the rest as in the fit.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    student: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FREEDOM,SCALE",
            callback=_checked_pairs,
            help="A slab with Student's t distribution; the rest as in the fit.",
            show_default=False,
            rich_help_panel=PRIOR,
        ),
    ] = None,
    draw: Annotated[
        bool,
        typer.Option(
            "--draw/--no-draw",
            help="Draw new chains where a prior is too far for weights, or refuse it.",
            rich_help_panel=SAMPLING,
        ),
    ] = True,
    max_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=options.checked(options.parse_duration),
            help="At most so long for the new chains of each prior: 90, 10m, 2h.",
            show_default="none",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed of new chains.", show_default="that of the fit", rich_help_panel=SAMPLING
        ),
    ] = None,
    top: options.Top = 15,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="All edges under all priors, as CSV.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The picture: PNG, SVG or PDF by its ending.", show_default=False),
    ] = None,
    question: Annotated[
        Question,
        typer.Option(
            help="What --plot draws: Bayes factors, inclusion probabilities, or the expected number of edges."
        ),
    ] = Question.evidence,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The report with a section on the priors.", show_default=False),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Ask what the posterior would be under other priors: which edges change their verdict?

    Draws are weighted where the priors are close; where they are not, new chains begin at the posterior.
    Without an option, some priors that a reviewer may ask for. A verdict counts as changed if the category of
    evidence differs and the probabilities are more than two Monte Carlo errors apart.

    [bold]Examples[/bold]

    edgewise sensitivity votes --plot sensitivity.png

    edgewise sensitivity votes --p0 0.1 --p0 0.5 --sigma0 2 --no-draw

    edgewise sensitivity votes --beta 1,9 --student 4,1 --max-time 5m --plot p.png --question inclusion

    edgewise sensitivity votes --prior earlier.toml -o edges.csv
    """
    from edgewise.cli.shown import console, write_json

    target = None if plot is None else binary_target(plot)
    found = opened.open_posterior(posterior)
    values: dict[str, Any] = {"p0": p0, "sigma0": sigma0, "cauchy": cauchy}
    for name, pairs in (("beta", beta), ("slab", slab), ("student", student)):
        values[name] = [parse_pair(pair) for pair in pairs or ()]
    chosen = _chosen(found.prior, values, prior)
    limits: dict[str, Any] = {} if seed is None else {"seed": seed}
    if max_time is not None:
        limits["max_time"] = options.parse_duration(max_time)
    result = found.sensitivity(chosen or None, draw=draw, **limits)
    if json:
        write_json(_as_json(result))
    else:
        out = console()
        out.print(_priors(result))
        out.print()
        for label, reason in zip(result.labels, result.reason):
            if reason:
                say(f"{printable(label, keep='')}: {_in_options(reason)}", "Note")
        out.print(printable(_in_options(result.headline()), keep=""), markup=False, highlight=False)
        changing = [k for k in result.order if result.changes[k] > 0]
        shown = len(result.order) if top == 0 else top
        if changing:
            out.print(_verdicts(result, changing[:shown]))
            out.print()
        if len(result.known) > 1:
            out.print("Inclusion probabilities:")
            out.print(_edges(result, list(result.order[:shown])))
            if len(result.order) > shown:
                out.print(f"... and {len(result.order) - shown:,} more (--top 0 shows all).")
    if output is not None:
        from edgewise.atomic import replacing

        with replacing(output, "utf-8-sig") as file:
            _everything(result).to_csv(file, index=False)
        tell(f"Written: {output}")
    if target is not None:
        import matplotlib

        matplotlib.use("Agg")
        from edgewise.plots import sensitivity as picture

        target.write_figure(
            picture(result, question=question.value, wording=_in_options).get_figure(root=True), 150
        )
        tell(f"Written: {target}")
    if report is not None:
        from edgewise.report.build import build_report, write_page

        page = build_report(found, sensitivity=result, wording=_in_options)
        tell(f"Written: {write_page(page, report)} (open it in a browser)")


def _in_options(text: str) -> str:
    """Say in options of this command what a message says in arguments of Python."""
    return in_options(text).replace("draw=False", "--no-draw")


def _chosen(own: Prior, given: Mapping[str, Any], files: list[Path] | None) -> dict[str, Prior]:
    """The priors of the options, each under a name of its own."""
    from dataclasses import replace

    from edgewise.posterior.sensitivity import OWN
    from edgewise.priors import (
        BetaInclusion,
        CauchySlab,
        FixedInclusion,
        FixedSlab,
        GammaSlab,
        StudentSlab,
        read_prior,
    )

    kinds: dict[str, tuple[str, Any, str]] = {
        "p0": ("inclusion", FixedInclusion, "p0 = {}"),
        "beta": ("inclusion", BetaInclusion, "p0 ~ Beta({}, {})"),
        "sigma0": ("slab", FixedSlab, "sigma0 = {}"),
        "slab": ("slab", GammaSlab, "1/sigma0^2 ~ Gamma({}, {})"),
        "cauchy": ("slab", CauchySlab, "Cauchy({})"),
        "student": ("slab", StudentSlab, "Student({}, {})"),
    }
    chosen: dict[str, Prior] = {}
    try:
        for option, values in given.items():
            part, kind, label = kinds[option]
            for value in values or ():
                numbers = value if isinstance(value, tuple) else (value,)
                name = label.format(*(f"{number:.12g}" for number in numbers))
                chosen[name] = replace(own, **{part: kind(*numbers)})
    except DataError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    paths = list(dict.fromkeys(files or ()))
    stems = [path.stem for path in paths]
    for path, stem in zip(paths, stems):
        taken = stem in chosen or stem == OWN or stems.count(stem) > 1
        chosen[str(path) if taken else stem] = read_prior(path)
    return chosen


def _as_json(result: Sensitivity) -> dict[str, Any]:
    rows = result.table().to_dict("records")
    values = ("inclusion", "mcse", "log10_bf", "mean", "evidence")
    return {
        "headline": _in_options(result.headline()),
        "priors": [
            {**row, "reason": _in_options(str(row["reason"])), "prior_values": prior.to_dict()}
            for row, prior in zip(rows, result.priors)
        ],
        "edges": [
            {
                "edge": result.candidates[k],
                "changes": int(result.changes[k]),
                **{name: list(getattr(result, name)[:, k]) for name in values},
            }
            for k in result.order
        ],
    }


def _priors(result: Sensitivity) -> Any:
    from rich.markup import escape
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("prior", "how", "effective\ndraws", "edges", "present", "absent", "undecided"):
        grid.add_column(name, justify="left" if name in ("prior", "how") else "right")
    table: Any = result.table()
    for row in table.itertuples():
        numbers = (row.effective_draws, row.n_edges, row.present, row.absent, row.undecided)
        cells = ["" if value != value else f"{value:,.0f}" for value in numbers]
        cells[1] = "" if row.n_edges != row.n_edges else f"{row.n_edges:.1f}"
        grid.add_row(escape(printable(str(row.prior), keep="")), row.how, *cells)
    return grid


def _verdicts(result: Sensitivity, edges: list[int]) -> Any:
    """The edges that change their verdict: what it is, and under which priors."""
    from rich.markup import escape
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("edge that changes", "verdict", "under"):
        grid.add_column(name)
    for k in edges:
        under: dict[str, list[str]] = {}
        for number in result.known:
            under.setdefault(str(result.evidence[number, k]), []).append(result.labels[number])
        for row, (word, labels) in enumerate(under.items()):
            edge = printable(str(result.candidates[k]), keep="") if row == 0 else ""
            grid.add_row(*(escape(cell) for cell in (edge, word, printable("; ".join(labels), keep=""))))
    return grid


def _edges(result: Sensitivity, edges: list[int]) -> Any:
    """Inclusion probabilities under the priors that were not refused."""
    from rich.markup import escape
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("edge")
    for number in result.known:
        grid.add_column(escape(printable(result.labels[number], keep="")), justify="right")
    for k in edges:
        values = (f"{result.inclusion[number, k]:.2f}" for number in result.known)
        grid.add_row(escape(printable(str(result.candidates[k]), keep="")), *values)
    return grid


def _everything(result: Sensitivity) -> Any:
    import pandas

    from edgewise.model.cells import safe_cell

    rows = [
        {
            "edge": safe_cell(str(result.candidates[k])),
            "prior": safe_cell(label),
            "how": result.how[number],
            "inclusion": result.inclusion[number, k],
            "mcse": result.mcse[number, k],
            "log10_bf": result.log10_bf[number, k],
            "evidence": result.evidence[number, k],
            "mean": result.mean[number, k],
            "reason": _in_options(result.reason[number]),
        }
        for k in result.order
        for number, label in enumerate(result.labels)
    ]
    return pandas.DataFrame(rows)
