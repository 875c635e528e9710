"""Commands that make their own data: ``simulate`` and ``demo``."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli import options
from edgewise.cli.files import csv_text, replace_bytes, write_text
from edgewise.cli.messages import WRONG, say, tell
from edgewise.errors import DataError

if TYPE_CHECKING:
    from edgewise.cli.running import Request
    from edgewise.data import BinaryData
    from edgewise.posterior.posterior import Posterior

DEMO_ROWS = 400
DEMO_WARM_UP = 60
DEMO_P0 = 0.1
KINDS = ("block", "lattice", "chain", "ring", "tree", "erdos-renyi", "barabasi-albert")


def simulate(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="One of: " + ", ".join(KINDS) + ".",
            autocompletion=lambda: list(KINDS),
            show_default=False,
        ),
    ],
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of rows.")] = 1000,
    variables: Annotated[
        int, typer.Option("--variables", "-p", min=2, help="Number of variables; block has 12.")
    ] = 20,
    size: Annotated[
        str,
        typer.Option(
            metavar="ROWSxCOLUMNS",
            callback=options.checked(options.parse_grid),
            help="For lattice: rows and columns of the grid.",
        ),
    ] = "10x10",
    degree: Annotated[
        float, typer.Option(min=0, help="For erdos-renyi and barabasi-albert: mean number of neighbours.")
    ] = 3.0,
    seed: options.Seed = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The table, CSV; - is standard output.")
    ] = "-",
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the true model here as JSON.", show_default=False),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Make data of which the truth is known, to try things out.

    [bold]Examples[/bold]

    edgewise simulate lattice --size 5x5 -n 500 --seed 1 -o data.csv --truth truth.json

    edgewise fit data.csv -o fit && edgewise compare fit truth.json

    edgewise simulate tree -p 30 | edgewise fit - -o tree
    """
    import numpy as np

    from edgewise import datasets
    from edgewise.predict.mixtures import sample_rows

    if kind not in KINDS:
        raise typer.BadParameter(f"There is no kind {kind!r}; the kinds are {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    if kind == "block":
        model = datasets.block_model(rng)
    elif kind == "lattice":
        model = datasets.lattice_model(rng, *options.parse_grid(size))
    else:
        model = datasets.random_model(variables, degree, kind=kind, seed=rng)
    rows = sample_rows([model], number, rng)
    names = model.names or tuple(f"x{k}" for k in range(model.n_variables))
    if truth is not None:
        replace_bytes(truth, (model.to_json() + "\n").encode())
    write_text(output, csv_text(names, rows.tolist()))
    if output != "-":
        shape = f"{number:,} rows, {model.n_variables} variables"
        tell(f"Written: {output} ({shape}, {len(model.cliques)} true edges)")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results.")
    ] = Path("edgewise-demo"),
    max_time: Annotated[
        str,
        typer.Option(
            metavar="TIME", callback=options.checked(options.parse_duration), help="Time for drawing."
        ),
    ] = "45s",
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Chains computed at once.", show_default="all cores")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an earlier demo.")] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn which pixels of handwritten digits depend on each other, in about a minute.

    400 images of 8 x 8 pixels that come with scikit-learn. The learned graph is drawn over the pixel grid:
    nobody told the model which pixels are neighbours.

    [bold]Examples[/bold]

    edgewise demo

    edgewise demo --max-time 10m -o digits
    """
    import warnings

    from edgewise.cli import running
    from edgewise.data import read_data
    from edgewise.datasets import DIGITS_SHAPE, digits
    from edgewise.priors import FixedInclusion, Prior

    height, width = DIGITS_SHAPE
    names = [f"r{row}c{column}" for row in range(height) for column in range(width)]
    images = digits()
    images = images[:: max(1, len(images) // DEMO_ROWS)][:DEMO_ROWS]
    # Some pixels at the border are never inked: they stay for the picture and have no candidate edges.
    inked = [pixel for pixel, share in enumerate(images.mean(axis=0)) if 0 < share < 1]
    request = running.Request(
        directory=output,
        chains=2,
        seed=seed,
        max_time=options.parse_duration(max_time),
        jobs=jobs,
        features=list(itertools.combinations(inked, 2)),
        settings={"warm_up": DEMO_WARM_UP},
        prior=Prior(inclusion=FixedInclusion(DEMO_P0)),
        resume=resume,
        overwrite=not resume,
        grid=DIGITS_SHAPE,
        title="Which pixels of handwritten digits depend on each other directly?",
    )
    _refuse_foreign(output)
    running.check_directory(request)
    tell(
        f"{len(images):,} handwritten digits of {height} x {width} pixels, ink or no ink; r3c4 is "
        "the pixel in row 3 and column 4, counted from 0. Before seeing them, every edge has the probability "
        f"{DEMO_P0:g}."
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the array has identical columns")
        data = read_data(images, names=names, constant="keep")
    posterior = _run_patiently(data, request)
    replace_bytes(output / "demo.json", (json.dumps({"made by": "edgewise demo"}) + "\n").encode())
    _draw(posterior, output)
    _show(posterior, output)
    if posterior.info.get("interrupted"):
        raise typer.Exit(WRONG)


def _run_patiently(data: BinaryData, request: Request) -> Posterior:
    """Give a busy machine the same time again until there is something to show."""
    from edgewise.cli import running

    for _ in range(9):
        try:
            return running.run(data, request)
        except DataError as error:
            if "before there was anything to show" not in str(error):
                raise
            tell("This machine is slow or busy: there is nothing to show yet. Going on ...")
            request = dataclasses.replace(request, resume=True)
    return running.run(data, request)


def _refuse_foreign(output: Path) -> None:
    """The demo replaces an earlier demo, and nothing else."""
    if (output / "posterior.nc").exists() and not (output / "demo.json").exists():
        raise typer.BadParameter(
            f"{output} holds the results of a fit; give the demo a directory of its own with -o"
        )


def _draw(posterior: Posterior, output: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from edgewise.cli.files import binary_target
    from edgewise.datasets import DIGITS_SHAPE
    from edgewise.plots import network, samples

    pictures: dict[str, Any] = {
        "network.png": network(posterior, grid=DIGITS_SHAPE, threshold=0.9),
        "samples.png": samples(posterior, shape=DIGITS_SHAPE),
    }
    for name, axes in pictures.items():
        binary_target(str(output / name)).write_figure(axes.figure, 150)


def _show(posterior: Posterior, output: Path) -> None:
    """Show what was found, and say honestly how good it is."""
    from edgewise.cli.shown import console, show_posterior
    from edgewise.datasets import DIGITS_SHAPE
    from edgewise.posterior.diagnostics import diagnose

    found = diagnose(posterior)
    show_posterior(posterior, found, top=5, rest=f"see {output}/edges.csv")
    out = console()
    out.print()
    out.print(drawing(posterior, DIGITS_SHAPE))
    near, far = neighbour_shares(posterior, DIGITS_SHAPE)
    out.print()
    out.print(
        "A dot is a pixel that is inked now and then. A line joins two that touch and make each other more "
        f"likely, with probability 0.5 or more. {near:.0%} of the pairs that touch have an edge, and "
        f"{far:.0%} of those further apart."
    )
    if found.light != "green":
        other = "" if str(output) == "edgewise-demo" else f" -o {output}"
        say(
            "the time was too short for every probability to settle: trust the drawing as a whole, not "
            f"single edges. A longer demo: edgewise demo --resume --max-time 10m{other}",
            "Note",
        )
    say(f"Pictures: {output}/network.png and {output}/samples.png; everything: {output}/report.html")


def drawing(posterior: Posterior, shape: tuple[int, int], threshold: float = 0.5) -> str:
    """The graph between touching pixels, drawn with letters."""
    height, width = shape
    strength = posterior.coupling() * (posterior.inclusion >= threshold)
    ones = posterior.statistics.singles
    canvas = [[" "] * (4 * width - 3) for _ in range(2 * height - 1)]
    for row in range(height):
        for column in range(width):
            here = row * width + column
            canvas[2 * row][4 * column] = "·" if 0 < ones[here] < posterior.statistics.n_rows else " "
            if column + 1 < width and strength[here, here + 1] > 0:
                canvas[2 * row][4 * column + 1 : 4 * column + 4] = "---"
            if row + 1 < height and strength[here, here + width] > 0:
                canvas[2 * row + 1][4 * column] = "|"
            if row + 1 < height and column + 1 < width:
                falling = strength[here, here + width + 1] > 0
                rising = strength[here + 1, here + width] > 0
                mark = "X" if falling and rising else "\\" if falling else "/" if rising else " "
                canvas[2 * row + 1][4 * column + 2] = mark
    return "\n".join("  " + "".join(line).rstrip() for line in canvas)


def neighbour_shares(
    posterior: Posterior, shape: tuple[int, int], threshold: float = 0.5
) -> tuple[float, float]:
    """Share of included edges among pairs of touching pixels, and among the others."""
    import numpy as np

    p = shape[0] * shape[1]
    row, column = np.divmod(np.arange(p), shape[1])
    members = posterior.features.members
    i, j = members[np.sum(members >= 0, axis=1) == 2, :2].T
    touching = np.maximum(np.abs(row[i] - row[j]), np.abs(column[i] - column[j])) == 1
    there = posterior.inclusion[i, j] >= threshold
    return float(there[touching].mean()), float(there[~touching].mean())
