"""Commands that make their own data: ``simulate`` and ``demo``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli import options
from edgewise.cli.files import csv_text, replace_bytes, write_text
from edgewise.cli.messages import WRONG, say, tell
from edgewise.paths import as_path

if TYPE_CHECKING:
    import numpy as np

    from edgewise.cli.running import Request
    from edgewise.data import Data
    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior

DEMO_OUTCOME = "progression"
# Probabilities that count as found, as likely and as hardly likely.
FOUND, LIKELY, UNLIKELY = 0.9, 0.75, 0.25
# Standard errors of a plain association that catches the eye, and of one that does not.
SEEN, UNSEEN = 3.0, 1.0
KINDS = ("survey", "block", "lattice", "chain", "ring", "tree", "erdos-renyi", "barabasi-albert")


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
        int, typer.Option("--variables", "-p", min=2, help="Number of variables; survey and block have 12.")
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

    edgewise simulate survey -o survey.csv

    edgewise fit survey.csv --group region --missing drop -o survey

    edgewise simulate lattice --size 5x5 -n 500 --seed 1 -o data.csv --truth truth.json

    edgewise fit data.csv -o fit && edgewise compare fit truth.json

    edgewise simulate tree -p 30 | edgewise fit - -o tree
    """
    import numpy as np

    from edgewise import datasets
    from edgewise.datasets.survey import as_answered
    from edgewise.predict.mixtures import sample_rows

    if kind not in KINDS:
        raise typer.BadParameter(f"There is no kind {kind!r}; the kinds are {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    if kind == "survey":
        model = datasets.survey_model()
    elif kind == "block":
        model = datasets.block_model(rng)
    elif kind == "lattice":
        model = datasets.lattice_model(rng, *options.parse_grid(size))
    else:
        model = datasets.random_model(variables, degree, kind=kind, seed=rng)
    rows = sample_rows([model], number, rng)
    names: Sequence[str] = model.names or tuple(f"x{k}" for k in range(model.n_variables))
    cells: list[list[Any]] = rows.tolist()
    if kind == "survey":
        names, cells = as_answered(rows, rng)
    if truth is not None:
        replace_bytes(truth, (model.to_json() + "\n").encode())
    write_text(output, csv_text(names, cells))
    if output != "-":
        from edgewise.data.problems import counted

        shape = f"{counted(number, 'row')}, {counted(model.n_variables, 'variable')}"
        tell(f"Written: {output} ({shape}, {len(model.cliques)} true edges)")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results.")
    ] = Path("edgewise-demo"),
    max_time: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=options.checked(options.parse_duration),
            help="Most time for drawing; seconds are enough.",
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
    """Learn which measurements of people with diabetes depend on each other, in less than a minute.

    442 people, ten measurements and how far the disease had gone a year later, from the data that come with
    scikit-learn. Which measurements tell something of their own, and which only repeat the others?

    [bold]Examples[/bold]

    edgewise demo

    edgewise demo -o diabetes --seed 7
    """
    from edgewise.cli import running
    from edgewise.data import read_data
    from edgewise.datasets import diabetes
    from edgewise.run.options import RunOptions

    output = as_path(output, "a directory")
    request = running.Request(
        directory=output,
        options=RunOptions(seed=seed, max_time=options.parse_duration(max_time), n_jobs=jobs),
        resume=resume,
        overwrite=not resume,
        title="What goes with the progress of diabetes directly?",
    )
    _refuse_foreign(output)
    running.check_directory(request)
    people = diabetes()
    tell(
        f"{len(people):,} people with diabetes: {people.shape[1] - 1} measurements, each above its median or "
        "not, and how far the disease had gone a year later."
    )
    posterior, found = _run_patiently(read_data(people), request)
    replace_bytes(output / "demo.json", (json.dumps({"made by": "edgewise demo"}) + "\n").encode())
    _draw(posterior, output)
    _show(posterior, found, output, told(posterior, people.to_numpy(), DEMO_OUTCOME))
    if posterior.info.get("interrupted"):
        raise typer.Exit(WRONG)


def _run_patiently(data: Data, request: Request) -> tuple[Posterior, Diagnostics]:
    """Give a busy machine the same time again until there is something to show."""
    from edgewise.cli import running

    for _ in range(9):
        posterior, found = running.run(data, request)
        if not found.warm_up_unfinished or posterior.info["interrupted"]:
            break
        tell("This machine is slow or busy: there is nothing to show yet. Going on ...")
        request = dataclasses.replace(request, resume=True)
    return posterior, found


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
    from edgewise.plots import network

    binary_target(str(output / "network.png")).write_figure(network(posterior).figure, 150)


def _show(posterior: Posterior, found: Diagnostics, output: Path, words: list[str]) -> None:
    """Show what was found, and say honestly how good it is."""
    from edgewise.cli.shown import console, show_posterior

    show_posterior(posterior, found, top=8, rest=f"see {output}/edges.csv")
    out = console()
    out.print("\nIn words")
    for sentence in words:
        out.print(f"  {sentence}")
    if found.more_draws_help:
        other = "" if str(output) == "edgewise-demo" else f" -o {output}"
        say(
            "the time was too short for every probability to settle: trust the whole, not single edges. A "
            f"longer demo: edgewise demo --resume --max-time 10m{other}",
            "Note",
        )
    say(f"Picture: {output}/network.png; everything: {output}/report.html (open it in a browser)")


def told(posterior: Posterior, rows: np.ndarray, outcome: str) -> list[str]:
    """What is linked to a variable directly, what only seems to be, and what is seen only given the rest."""
    names = posterior.names
    index = names.index(outcome)
    others = [k for k in range(len(names)) if k != index]
    probability, coupling = posterior.inclusion[index], posterior.coupling()[index]
    alone = {k: association(rows[:, k], rows[:, index]) for k in others}

    def shares(k: int) -> list[str]:
        return [f"{rows[rows[:, k] == side, index].mean():.0%}" for side in (0, 1)]

    linked = sorted((k for k in others if probability[k] >= FOUND), key=lambda k: -abs(coupling[k]))
    if not linked:
        return [f"Nothing is linked directly to {outcome} with a probability of {FOUND} or more."]
    sides = {
        word: [names[k] for k in linked if (coupling[k] > 0) == rises]
        for word, rises in (("more", True), ("less", False))
    }
    listed = "; ".join(f"{enumerated(found)} (with {word} of it)" for word, found in sides.items() if found)
    sentences = [f"Linked directly to {outcome}, with a probability of {FOUND} or more: {listed}."]
    seeming = [k for k in others if abs(alone[k]) >= SEEN and probability[k] < UNLIKELY]
    seeming.sort(key=lambda k: -abs(alone[k]))
    if seeming:
        first, *more = seeming
        low, high = shares(first)
        sentences.append(
            f"What goes along with it need not be linked to it: {names[first]} looks telling, for {outcome} "
            f"is high for {high} of those where it is, and {low} of the others. But the other measurements "
            f"tell as much; a link of its own has the probability {probability[first]:.2f}."
        )
        if more:
            sentences.append(f"The same holds for {enumerated([names[k] for k in more])}.")
    hidden = [k for k in others if abs(alone[k]) < UNSEEN and probability[k] >= LIKELY]
    if hidden:
        first = hidden[0]
        low, high = shares(first)
        sentences.append(
            f"And {names[first]} seems not to matter, for {outcome} is high for {high} of one group and "
            f"{low} of the other. Among people who are alike in the rest it does: a link has the probability "
            f"{probability[first]:.2f}."
        )
    return sentences


def association(one: np.ndarray, two: np.ndarray) -> float:
    """Log odds ratio of two binary columns in units of its standard error; half a case more in every cell."""
    import numpy as np

    counts = np.array([[np.sum((one == a) & (two == b)) for b in (0, 1)] for a in (0, 1)]) + 0.5
    log_odds = np.log(counts[0, 0] * counts[1, 1] / (counts[0, 1] * counts[1, 0]))
    return float(log_odds / np.sqrt((1 / counts).sum()))


def enumerated(words: list[str]) -> str:
    """Words in a sentence.

    >>> enumerated(["HDL"]), enumerated(["HDL", "LDL", "age"])
    ('HDL', 'HDL, LDL and age')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
