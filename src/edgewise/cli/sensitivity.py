"""``edgewise sensitivity``: the posterior under other priors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli import opened, options
from edgewise.cli.files import binary_target
from edgewise.cli.messages import in_options, tell
from edgewise.errors import DataError, printable

if TYPE_CHECKING:
    from edgewise.priors import Prior


def sensitivity(
    posterior: options.PosteriorPath,
    prior: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A prior as a JSON or TOML file. May be repeated.", show_default=False
        ),
    ] = None,
    p0: Annotated[
        list[float] | None, typer.Option(help="A fixed p0. May be repeated.", show_default=False)
    ] = None,
    sigma0: Annotated[
        list[float] | None, typer.Option(help="A fixed sigma0. May be repeated.", show_default=False)
    ] = None,
    cauchy: Annotated[
        list[float] | None,
        typer.Option(metavar="SCALE", help="A Cauchy slab. May be repeated.", show_default=False),
    ] = None,
    draw: Annotated[
        bool,
        typer.Option(
            "--draw/--no-draw", help="Draw new chains where a prior is too far for weights, or refuse it."
        ),
    ] = True,
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
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The report with a section on the priors.", show_default=False),
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Ask what the posterior would be under other priors: which edges change their verdict?

    Draws are weighted where the priors are close; where they are not, new chains begin at the posterior.
    Without an option, half a dozen priors that a reviewer may ask for.

    [bold]Examples[/bold]

    edgewise sensitivity votes --plot sensitivity.png

    edgewise sensitivity votes --p0 0.1 --p0 0.5 --sigma0 2 --no-draw

    edgewise sensitivity votes --prior earlier.toml -o edges.csv
    """
    from edgewise.cli.shown import console, write_json

    target = None if plot is None else binary_target(plot)
    found = opened.open_posterior(posterior)
    chosen = _chosen(found.prior, prior, p0, sigma0, cauchy)
    result = found.sensitivity(chosen or None, draw=draw)
    if json:
        write_json(
            {
                "priors": [
                    {**row, "prior_values": p.to_dict()}
                    for row, p in zip(result.table().to_dict("records"), result.priors)
                ],
                "edges": [
                    {"edge": name, "changes": int(result.changes[k]), "inclusion": result.inclusion[:, k],
                     "log10_bf": result.log10_bf[:, k], "evidence": list(result.evidence[:, k])}
                    for k, name in ((k, result.candidates[k]) for k in result.order)
                ],
            }
        )  # fmt: skip
    else:
        out = console()
        out.print(_priors(result))
        out.print()
        table = result.edges("evidence")
        shown = table if top == 0 else table.head(top)
        changing = int((result.changes > 0).sum())
        out.print(f"{changing} of {len(table)} edges change their verdict with the prior.")
        out.print(_edges(result, list(shown.index)))
        if len(table) > len(shown):
            out.print(f"... and {len(table) - len(shown):,} more (--top 0 shows all).")
    if output is not None:
        from edgewise.atomic import replacing

        with replacing(output, "utf-8-sig") as file:
            _everything(result).to_csv(file, index=False)
        tell(f"Written: {output}")
    if target is not None:
        import matplotlib

        matplotlib.use("Agg")
        from edgewise.plots import sensitivity as picture

        target.write_figure(picture(result).get_figure(root=True), 150)
        tell(f"Written: {target}")
    if report is not None:
        from edgewise.report.build import build_report, write_page

        page = build_report(found, sensitivity=result, wording=in_options)
        tell(f"Written: {write_page(page, report)} (open it in a browser)")


def _chosen(
    own: Prior,
    files: list[Path] | None,
    p0: list[float] | None,
    sigma0: list[float] | None,
    cauchy: list[float] | None,
) -> dict[str, Prior]:
    from dataclasses import replace

    from edgewise.priors import CauchySlab, FixedInclusion, FixedSlab, read_prior

    chosen: dict[str, Any] = {}
    try:
        for value in p0 or ():
            chosen[f"p0 = {value:g}"] = replace(own, inclusion=FixedInclusion(value))
        for value in sigma0 or ():
            chosen[f"sigma0 = {value:g}"] = replace(own, slab=FixedSlab(value))
        for value in cauchy or ():
            chosen[f"Cauchy({value:g})"] = replace(own, slab=CauchySlab(value))
    except DataError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    for path in files or ():
        chosen[path.stem] = read_prior(path)
    return chosen


def _priors(result: Any) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("prior", "how", "effective\ndraws", "edges", "present", "absent", "undecided"):
        grid.add_column(name, justify="left" if name in ("prior", "how") else "right")
    for row in result.table().itertuples():
        numbers = (row.effective_draws, row.n_edges, row.present, row.absent, row.undecided)
        cells = ["" if value != value else f"{value:,.0f}" for value in numbers]
        cells[1] = "" if row.n_edges != row.n_edges else f"{row.n_edges:.1f}"
        grid.add_row(printable(str(row.prior), keep=""), row.how, *cells)
    return grid


def _edges(result: Any, names: list[str]) -> Any:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("edge")
    for label in result.labels:
        grid.add_column(printable(label, keep=""), justify="right")
    place = {name: k for k, name in enumerate(result.candidates)}
    for name in names:
        values = result.inclusion[:, place[name]]
        grid.add_row(
            printable(name, keep=""), *("" if value != value else f"{value:.2f}" for value in values)
        )
    return grid


def _everything(result: Any) -> Any:
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
        }
        for k in result.order
        for number, label in enumerate(result.labels)
    ]
    return pandas.DataFrame(rows)
