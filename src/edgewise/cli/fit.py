"""``edgewise fit``: from a table to a posterior, a table of edges and a report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from edgewise.cli import options, priors, running
from edgewise.cli.messages import as_list
from edgewise.cli.options import OUTPUT, PRIOR, SAMPLING
from edgewise.paths import as_path
from edgewise.run.options import MINIMUM_DRAWS, RunOptions


def fit(
    data: options.Data,
    columns: options.Columns = None,
    drop_columns: options.DropColumns = None,
    group: options.Group = None,
    compare_groups: options.CompareGroups = None,
    adjust: options.Adjust = None,
    bins: options.Bins = None,
    missing: options.MissingCells = options.Missing.impute,
    constant: options.ConstantColumns = options.Constant.error,
    weights: options.Weights = None,
    ordinal: options.Ordinal = None,
    nominal: options.Nominal = None,
    blume_capel: options.BlumeCapel = None,
    levels: options.Levels = None,
    blank: options.Blank = None,
    cut: options.Cut = None,
    binarize: options.Binarize = None,
    engine: Annotated[
        str,
        typer.Option(
            help="How to draw: auto, exact, particle, surrogate or langevin.",
            autocompletion=lambda: list(options.ENGINES),
            rich_help_panel=SAMPLING,
        ),
    ] = RunOptions.engine,
    chains: Annotated[
        int, typer.Option(min=1, help="Independent chains.", rich_help_panel=SAMPLING)
    ] = RunOptions.chains,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="The same seed gives the same draws.", show_default="random", rich_help_panel=SAMPLING
        ),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=options.checked(options.parse_duration),
            help="Stop after this time: 90, 10m, 2h.",
            show_default="none",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draw at least so often per chain.",
            show_default=str(RunOptions.min_draws),
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    max_draws: Annotated[
        int | None,
        typer.Option(
            min=MINIMUM_DRAWS,
            help="Draw at most so often per chain.",
            show_default=str(RunOptions.max_draws),
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    target_error: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=0.5,
            help="Stop when the Monte Carlo error of every edge probability is at most this.",
            rich_help_panel=SAMPLING,
        ),
    ] = RunOptions.target_error,
    target_ess: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            callback=options.checked(options.parse_target),
            help="Stop instead when the slowest uncertain edge has so many effective draws; 0: never.",
            show_default="by --target-error",
            rich_help_panel=SAMPLING,
        ),
    ] = "auto",
    jobs: Annotated[
        int | None,
        typer.Option(help="Chains computed at once.", show_default="all cores", rich_help_panel=SAMPLING),
    ] = None,
    scheduler: options.Scheduler = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what memory and time the fit would take, and fit nothing.",
            rich_help_panel=SAMPLING,
        ),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the engine, for instance particles=2000. May be repeated.",
            rich_help_panel=SAMPLING,
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        int,
        typer.Option(min=2, help="Largest cliques: 2 for pairs, 3 for triples too.", rich_help_panel=PRIOR),
    ] = 2,
    p0: priors.P0 = None,
    beta: priors.Beta = None,
    sigma0: priors.Sigma0 = None,
    slab: priors.Slab = None,
    bias_sd: priors.BiasSd = None,
    cauchy: priors.Cauchy = None,
    student: priors.Student = None,
    communities: priors.Communities = False,
    attributes: priors.Attributes = None,
    attribute_table: priors.AttributeTable = None,
    prior_file: priors.PriorFile = None,
    forced: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="An edge that is always there. May be repeated.",
            rich_help_panel=PRIOR,
            show_default=False,
        ),
    ] = None,
    forbidden: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="An edge that is never there. May be repeated.",
            rich_help_panel=PRIOR,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Directory for the results.",
            show_default="DATA's name with -edgewise",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where a fit in the same directory stopped.", rich_help_panel=OUTPUT
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the results of an earlier fit.", rich_help_panel=OUTPUT),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to save the chains on the way.",
            show_default="checkpoint in the output directory",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint_every: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=options.checked(options.parse_duration),
            help="How often to save the chains.",
            rich_help_panel=OUTPUT,
        ),
    ] = f"{RunOptions.checkpoint_every:g}s",
    coding: Annotated[
        options.Coding,
        typer.Option(
            help="Show couplings of 0/1 variables (theta), or of -1/+1 variables (J).", rich_help_panel=OUTPUT
        ),
    ] = options.Coding.binary,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="ROWSxCOLUMNS",
            callback=options.checked(options.parse_grid),
            help="The variables are pixels of an image of this size.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn which variables depend on each other directly, from a table of answers.

    Columns with two levels are binary, numbers and scales of up to twenty levels ordinal, words nominal.

    Writes posterior.nc, edges.csv and report.html into a directory and prints a summary. Ctrl-C stops in good
    order: what was drawn is written, and --resume goes on later.

    [bold]Examples[/bold]

    edgewise fit votes.csv

    edgewise fit votes.csv --group party --missing drop -o votes

    edgewise fit survey.csv --drop-columns id,age --max-time 10m --target-error 0.01 --seed 1

    edgewise fit scale.csv --ordinal item1..item17 --nominal city --blank=-9 --missing drop

    edgewise fit votes.csv --compare-groups party --missing drop -o parties

    edgewise fit survey.csv --adjust site,age --bins 3

    edgewise fit scale.csv --levels mood=never,sometimes,often --cut age/4

    edgewise fit scale.csv --communities --cauchy 1

    zcat big.csv.gz | edgewise fit - -o big --json > big.json

    edgewise fit votes.csv --group party --missing drop -o votes --resume
    """
    directory = default_directory(data) if output is None else as_path(output, "a directory")
    given = (p0, beta, sigma0, slab, bias_sd, cauchy, student, communities, attributes, attribute_table)
    prior = priors.make_prior(priors.Given(*given, prior_file=prior_file))
    least, most = running.limits(draws, max_draws)
    request = running.Request(
        directory=directory,
        options=RunOptions(
            engine=engine,
            chains=chains,
            min_draws=least,
            max_draws=most,
            target_error=target_error,
            target_ess=options.parse_target(target_ess),
            max_time=None if max_time is None else options.parse_duration(max_time),
            settings=parse_settings(set_),
            seed=seed,
            n_jobs=jobs,
            checkpoint=checkpoint,
            checkpoint_every=options.parse_duration(checkpoint_every),
        ),
        features=None if features == 2 else features,
        resume=resume,
        overwrite=overwrite,
        coding=coding.value,
        json=json,
        grid=None if grid is None else options.parse_grid(grid),
        scheduler=scheduler,
        dry_run=dry_run,
    )
    running.check_directory(request)
    from edgewise.data import read_data

    wanted = options.parse_names(columns)
    table = read_data(
        data,
        columns=wanted,
        drop_columns=options.parse_names(drop_columns),
        group=_number_or_name(group),
        groups=_number_or_name(compare_groups),
        adjust=options.parse_names(adjust),
        bins=bins,
        sample_weight=weights,
        missing=missing.value,
        constant=constant.value,
        **options.parse_kinds(ordinal, nominal, blume_capel, levels, blank, cut, binarize),
    )
    running.introduce(table, "standard input" if data == "-" else data, chosen=wanted is not None)
    if request.grid is not None:
        from edgewise.plots import layout

        layout.grid(*request.grid, table.n_variables)  # better before the fit than after it
    cliques = parse_cliques(forced, table.names), parse_cliques(forbidden, table.names)
    prior = replace(prior, forced=[*prior.forced, *cliques[0]], forbidden=[*prior.forbidden, *cliques[1]])
    request = replace(request, prior=prior)
    posterior, found = running.run(table, request)
    running.finish(posterior, found, request)


def default_directory(data: str) -> Path:
    """A directory named after the data, in the current one.

    >>> str(default_directory("tables/votes.csv.gz")), str(default_directory("-"))
    ('votes-edgewise', 'stdin-edgewise')
    """
    if data == "-":
        return Path("stdin-edgewise")
    name = re.sub(r"\.npz:", "-", Path(data).name)
    stem = re.sub(r"(\.(csv|tsv|txt|gz|npz|npy|parquet))+$", "", name, flags=re.IGNORECASE)
    return Path(f"{stem.lstrip('~') or 'data'}-edgewise")  # no home of anybody


def parse_settings(values: list[str] | None) -> dict[str, Any] | None:
    """Settings of an engine from NAME=VALUE.

    >>> parse_settings(["particles=2000", "thin=1", "share=0.5"])
    {'particles': 2000, 'thin': 1, 'share': 0.5}
    """
    import ast

    settings: dict[str, Any] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"--set takes NAME=VALUE, for instance particles=2000; not {text!r}")
        try:
            settings[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            settings[name.strip()] = value.strip()
    return settings or None


def parse_cliques(values: list[str] | None, names: tuple[str, ...]) -> tuple[tuple[str | int, ...], ...]:
    """Cliques from ``a,b`` or ``a -- b``, the way the tables write them.

    >>> parse_cliques(["sleep,mood", "mood -- 2"], ("sleep", "mood", "energy"))
    (('sleep', 'mood'), ('mood', 2))
    """
    cliques = []
    for text in values or ():
        parts: list[Any] = [part.strip() for part in text.split(" -- ")] if " -- " in text else []
        parts = parts or options.parse_names([text]) or []
        members = []
        for part in parts:
            word = str(part)
            members.append(int(word) if word not in names and word.isdigit() else word)
        cliques.append(tuple(members))
    return tuple(cliques)


def _number_or_name(column: str | None) -> str | int | None:
    """A single column by its name, or by its number from 0."""
    return column if column is None else (options.parse_names([as_list([column])]) or [column])[0]
