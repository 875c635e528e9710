"""Running a fit for the command line: its directory, what it says, the files it leaves, and how to go on."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from edgewise.cli.messages import DONE, WRONG, as_list, command_line, in_options, say, session, tell
from edgewise.errors import DataError, FileError, printable
from edgewise.paths import as_path
from edgewise.run.options import TARGET_ESS, RunOptions

if TYPE_CHECKING:
    from edgewise.data import Data
    from edgewise.posterior.diagnostics import Diagnostics
    from edgewise.posterior.posterior import Posterior
    from edgewise.priors import Prior

CHECKPOINT = "checkpoint"
IMPUTED = "imputed.csv"


@dataclass(frozen=True)
class Request:
    """Everything but the data that makes a fit and its files."""

    directory: Path
    options: RunOptions
    prior: Prior | None = None
    features: Any = None
    resume: bool = False
    overwrite: bool = False
    coding: str = "binary"
    json: bool = False
    grid: tuple[int, int] | None = None
    title: str | None = None
    scheduler: str | None = None
    dry_run: bool = False

    @property
    def checkpoint(self) -> Path:
        """Where the chains are saved on the way."""
        return as_path(self.options.checkpoint or self.directory / CHECKPOINT, "a directory")


def limits(draws: int | None, max_draws: int | None) -> tuple[int, int]:
    """Fewest and most draws per chain, where the user may have given one of them."""
    most = max_draws or max(RunOptions.max_draws, draws or 0)
    least = draws or min(RunOptions.min_draws, most)
    if least > most:
        raise DataError(f"--draws {least:,} is more than --max-draws {most:,}; lower one or raise the other.")
    return least, most


@contextlib.contextmanager
def cluster(scheduler: str | None) -> Iterator[Any]:
    """A client of the Dask cluster with this scheduler; None where there is none."""
    if scheduler is None:
        yield None
        return
    from edgewise.run.cluster import connect

    client: Any = connect(scheduler)
    try:
        yield client
    finally:
        client.close(timeout=2)


def check_directory(request: Request) -> None:
    """Protect what is in the directory of the results."""
    directory, checkpoint = request.directory, request.checkpoint
    if directory.exists() and not directory.is_dir():
        raise FileError(
            f"{directory} is a file; -o takes a directory for posterior.nc, edges.csv and report.html."
        )
    finished = (directory / "posterior.nc").exists()
    begun = checkpoint.is_dir() and any(checkpoint.glob("generation-*.npz"))
    if request.resume and finished and not begun:
        raise FileError(
            f"{directory} holds a posterior but no checkpoint ({checkpoint}) to go on from; fit anew with "
            "--overwrite, or into another directory with -o."
        )
    if request.resume and not begun:
        tell(f"There is nothing in {directory} to go on from yet; this is a new fit.")
    if (finished or begun) and not (request.resume or request.overwrite):
        what = "the results of an earlier fit" if finished else "a fit that was stopped on the way"
        raise FileError(
            f"{directory} holds {what}. Go on with it with --resume, replace it with --overwrite, or choose "
            "another directory with -o."
        )


def make_directory(request: Request) -> None:
    """Make the directory of the results, and forget the earlier fit that is to be replaced."""
    directory = request.directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"{directory} cannot be made: {error.strerror}; choose another directory with -o."
        ) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise FileError(f"{directory} cannot be written to; choose another directory with -o.")
    if request.overwrite and not request.resume and request.checkpoint.is_dir():
        from edgewise.run.checkpoint import forget

        forget(request.checkpoint)


def introduce(data: Data, origin: str, *, chosen: bool) -> None:
    """Say what was read, what was done to it, and which text columns have become variables."""
    from edgewise.data.notes import label_columns
    from edgewise.data.problems import counted

    size = f"{counted(data.n_rows, 'row')}, {counted(data.n_variables, 'variable')}"
    tell(f"{printable(origin, keep='')}: {size}.")

    words = {name: labels for name, labels in zip(data.names, data.levels) if len(labels) == 2}
    odd = [] if chosen else [(name, *words[name]) for name in label_columns([*words], [*words.values()])]
    said_below = tuple(
        f"1 text column is a variable with {zero!r} as 0 and {one!r} as 1: {name}"
        for name, zero, one in odd[:5]
    )
    for note in data.notes:
        # Identical columns have been warned of.
        if not note.startswith("identical columns") and note not in said_below:
            tell(f"  {printable(in_options(note), keep='')}.")
    if data.strata is not None:
        layout = data.strata.layout
        if layout.compares:
            sizes = zip(layout.groups, layout.rows_of_groups)
            listed = ", ".join(f"{label} {rows:,g}" for label, rows in sizes)
            tell(printable(f"  The groups of {layout.group_name} are compared: {listed}.", keep=""))
        if layout.covariates:
            fixed = ", ".join(layout.covariates)
            tell(printable(f"  {fixed} held fixed: {layout.n_strata} strata.", keep=""))
    if data.group_name is not None and data.group is not None:
        sizes = {label: data.group.count(label) for label in sorted(set(data.group))}
        listed = ", ".join(f"{label or '(blank)'} {count:,}" for label, count in list(sizes.items())[:10])
        labels = f"  {data.group_name} labels the rows and is not a variable: {listed}."
        tell(printable(labels, keep=""))
    for name, zero, one in odd[:5]:
        say(
            f"the text column {name!r} is used as a variable, {zero!r} as 0 and {one!r} as 1; "
            f"if it only labels the rows, stop and use --group {shlex.quote(name)}, or leave it out with "
            f"--drop-columns {shlex.quote(as_list([name]))}.",
            "Note",
        )
    if len(odd) > 5:
        say(f"the same holds for {len(odd) - 5:,} more text columns.", "Note")


def run(data: Data, request: Request) -> tuple[Posterior, Diagnostics]:
    """Draw, judge the draws, and write everything that there is to write; after Ctrl-C too."""
    from edgewise.engines.choose import load_engine
    from edgewise.fitting import answer, pose, time_left
    from edgewise.posterior.diagnostics import diagnose
    from edgewise.report.build import build_report, write_page
    from edgewise.report.tables import write_edges_csv, write_groups_csv, write_imputed_csv

    # What is wrong with engine, candidates or prior is better known before anything is written.
    started = time.monotonic()
    question = pose(data, request.prior, request.features)
    options = replace(request.options, checkpoint=request.checkpoint, progress=not session.quiet)
    if options.engine != "auto":
        load_engine(options.engine)
    if request.dry_run:
        from edgewise.run.estimate import estimate

        say(str(estimate(question.problem, options)))
        raise typer.Exit(DONE)
    with cluster(request.scheduler) as client:
        options = replace(options, executor=client)
        make_directory(request)
        session.resume = command_line(flags=("--resume", "--overwrite"), add=["--resume"])
        # Whether the draws suffice is said with the result, together with the command that goes on.
        posterior, _ = answer(question, time_left(options, started))
    posterior.info["command"] = _reproducing(posterior)
    tell("Writing the results ...")
    posterior.save(request.directory / "posterior.nc")
    write_edges_csv(posterior, request.directory / "edges.csv", coding=request.coding)
    if posterior.groups:
        write_groups_csv(posterior, request.directory / "groups.csv")
    if write_imputed_csv(posterior, request.directory / IMPUTED) is None:
        (request.directory / IMPUTED).unlink(missing_ok=True)  # of the fit that this one replaces
    asked = options.target_ess
    found = diagnose(posterior, asked if isinstance(asked, float | int) else TARGET_ESS)
    page = build_report(
        posterior, data=data, grid=request.grid, title=request.title, found=found, wording=in_options
    )
    write_page(page, request.directory / "report.html")
    return posterior, found


def _reproducing(posterior: Posterior) -> str:
    """The command that makes this posterior again: with the seed it was made with."""
    seed = posterior.info.get("seed")
    return command_line(
        without=("--seed",),
        flags=("--resume", "--overwrite", "--quiet", "-q", "--json"),
        add=["--seed", str(seed)] if isinstance(seed, int) else [],
    )


def finish(posterior: Posterior, found: Diagnostics, request: Request) -> None:
    """Show the result, say where it is and how to go on."""
    from edgewise.cli import shown

    directory = request.directory
    written = [
        "posterior.nc",
        "edges.csv",
        *(["groups.csv"] if posterior.groups else []),
        *([IMPUTED] if posterior.imputed else []),
        "report.html",
    ]
    files = {name: str(directory / name) for name in written}
    if request.json:
        result = shown.posterior_as_dict(posterior, found, request.coding)
        shown.write_json({"files": files, "resume": session.resume, **result})
    else:
        shown.show_posterior(posterior, found, coding=request.coding, rest=f"see {files['edges.csv']}")
    listed = f"{', '.join(written[:-1])} and {written[-1]}"
    tell(f"\nWritten to {directory}: {listed} (open it in a browser).")
    if posterior.info.get("interrupted"):
        if found.warm_up_unfinished:
            say("warm-up was not finished; the files show where the chains were.", "Stopped")
        else:
            say("the files hold what was drawn so far.", "Stopped")
        say(f"To go on where it stopped: {session.resume}")
        raise typer.Exit(WRONG)
    if found.warm_up_unfinished:
        tell(f"To go on where it stopped: {session.resume}")
    elif found.more_draws_help:
        more = []
        if posterior.info.get("stop_reason") == "max_draws":
            more = ["--max-draws", str(max(RunOptions.max_draws, 4 * posterior.n_draws))]
        command = command_line(without=more[:1], flags=("--resume", "--overwrite"), add=["--resume", *more])
        tell(f"For more precision: {command}")
