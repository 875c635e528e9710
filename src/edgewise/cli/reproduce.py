"""``edgewise reproduce``: the figures of the paper; the work is done in ``edgewise.experiments``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli import options
from edgewise.cli.messages import command_line, session
from edgewise.cli.running import cluster


class ProfileName(StrEnum):
    """How much to compute."""

    quick = "quick"
    full = "full"
    smoke = "smoke"


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE|all", help="fig2 to fig11, other, or all.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory to write, or to go on in.")],
    profile: Annotated[
        ProfileName, typer.Option(help="quick: minutes; full: hours; smoke: seconds, for tests.")
    ] = ProfileName.quick,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same one gives the same tables.")] = 1,
    data: Annotated[
        Path | None,
        typer.Option(help="Directory of the original MNIST files; by default that in EDGEWISE_DATA."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what there is to do.")] = False,
    draw: Annotated[bool, typer.Option("--draw", help="Compute nothing; draw what is finished.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Write the page there too, its figures and tables beside it.")
    ] = None,
    scheduler: options.Scheduler = None,
) -> None:
    """Reproduce the experiments of Chen & Welling (2012): tables, figures, claims.

    Run again with the same directory to go on where it stopped.

    [bold]Examples[/bold]

    edgewise reproduce fig5 -o paper

    edgewise reproduce all -o paper --profile full --plan
    """
    from edgewise.experiments.command import run
    from edgewise.paths import as_path

    session.resume = command_line()
    with cluster(scheduler) as client:
        run(
            figure,
            as_path(output, "a directory"),
            profile=profile.value,
            seed=seed,
            jobs=jobs,
            data=data,
            plan_only=plan,
            draw_only=draw,
            page=page,
            executor=client,
        )
