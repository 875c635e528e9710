"""Options that several commands share, each declared once."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli.messages import session

if TYPE_CHECKING:
    pass

DATA, PRIOR, SAMPLING, OUTPUT = "Data", "Prior", "Sampling", "Output"

ENGINES = ("auto", "exact", "particle", "surrogate", "langevin")
PLOT_KINDS = (
    "network",
    "inclusion",
    "evidence",
    "evidence-network",
    "forest",
    "centrality",
    "structures",
    "edge-count",
    "p0",
    "sigma0",
    "trace",
    "rank",
    "predictive",
    "precision-recall",
    "samples",
    "communities",
    "difference-network",
    "difference-forest",
)


class Missing(StrEnum):
    """What to do about blank cells."""

    impute = "impute"
    drop = "drop"
    error = "error"


class Constant(StrEnum):
    """What to do about columns with one level."""

    error = "error"
    keep = "keep"
    drop = "drop"


class Coding(StrEnum):
    """Coding of couplings."""

    binary = "binary"
    ising = "ising"


def parse_duration(text: str) -> float:
    """Seconds in ``90``, ``45s``, ``10m`` or ``1.5h``.

    >>> parse_duration("90"), parse_duration("10m"), parse_duration("1.5 h")
    (90.0, 600.0, 5400.0)
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|sec|m|min|h|d)?\s*", text)
    if not found or float(found[1]) <= 0:
        raise typer.BadParameter(f"{text!r} is not a time; write for instance 90, 45s, 10m or 2h")
    unit = {None: 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
    return float(found[1]) * unit[found[2]]


def parse_target(text: str) -> float | str | None:
    """Effective draws to stop at: a number, ``auto``, or 0 for never.

    >>> parse_target("400"), parse_target("auto"), parse_target("0")
    (400.0, 'auto', None)
    """
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a number of effective draws; write for instance 400, or 0")
    return number or None


def parse_grid(text: str) -> tuple[int, int]:
    """Rows and columns in ``12x9``.

    >>> parse_grid("12x9")
    (12, 9)
    """
    found = re.fullmatch(r"(\d+)\s*[x×,]\s*(\d+)", text)
    if not found:
        raise typer.BadParameter(f"{text!r} is not a grid; write rows x columns, for instance 8x8")
    return int(found[1]), int(found[2])


def parse_names(values: list[str] | None) -> list[str | int] | None:
    """Column names from repeated options, each a list by the rules of CSV; numbers count from 0.

    >>> parse_names(["id,age", '"smith, john"', "3"])
    ['id', 'age', 'smith, john', 3]
    """
    if not values:
        return None
    import csv

    names = [cell for line in csv.reader(values, skipinitialspace=True) for cell in line]
    return [int(name) if re.fullmatch(r"0|[1-9]\d*", name) else name for name in names]


def parse_kinds(
    ordinal: list[str] | None,
    nominal: list[str] | None,
    blume_capel: list[str] | None,
    levels: list[str] | None,
    blank: list[str] | None,
    cut: list[str] | None,
    binarize: str | None,
) -> dict[str, Any]:
    """Arguments of :func:`edgewise.data.read_data` that say what the columns are.

    >>> given = parse_kinds(["a..c"], ["city"], ["d:2"], ["e=low,high"], ["-9,99"], None, None)
    >>> given["kinds"], given["levels"], given["blank"]
    ({'a..c': 'ordinal', 'city': 'nominal', 'd': 'blume-capel:2'}, {'e': ['low', 'high']}, ['-9', '99'])
    """
    kinds: dict[Any, str] = dict.fromkeys(parse_names(ordinal) or [], "ordinal")
    for name in parse_names(nominal) or []:
        if name in kinds:
            raise typer.BadParameter(f"{name!r} is in --ordinal and in --nominal; name it once")
        kinds[name] = "nominal"
    for text in parse_names(blume_capel) or []:
        name, colon, reference = str(text).partition(":")
        kinds[name] = f"blume-capel{colon}{reference}"
    listed: dict[Any, list[str]] = {}
    for text in levels or ():
        name, equals, labels = text.rpartition("=")
        if not (name and equals):
            raise typer.BadParameter(f"--levels takes NAME=A,B,C, for instance mood=low,high; not {text!r}")
        listed[name.strip()] = [str(label) for label in parse_names([labels]) or []]
    blanks = [str(label) for label in parse_names(blank) or []]
    return {
        "kinds": kinds or None,
        "levels": listed or None,
        "blank": blanks or None,
        "cut": cut or None,
        "binarize": binarize,
    }


def checked(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    """A callback that refuses what `parse` refuses, so that the message names the option."""

    def check(value: Any) -> Any:
        if value is not None:
            parse(value)
        return value

    return check


def _set_debug(value: bool) -> bool:
    session.debug = session.debug or value
    return value


def _set_quiet(value: bool) -> bool:
    session.quiet = session.quiet or value
    return value


Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=_set_debug,
        is_eager=True,
        envvar="EDGEWISE_DEBUG",
        help="Show the traceback of errors.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", callback=_set_quiet, help="Say nothing but warnings, errors and the result."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on the Dask cluster with this scheduler: its address, or its scheduler file.",
        show_default=False,
        rich_help_panel=SAMPLING,
    ),
]

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table with one row per case and 2 to 20 levels per column: CSV, TSV (also .gz), npz, npy, "
        "Parquet; - is standard input.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Use only these columns: a,b,c. May be repeated.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
DropColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Use all columns but these: a,b,c. May be repeated.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
MissingCells = Annotated[
    Missing,
    typer.Option(
        help="Blank cells: drawn along with everything else, their rows left out, or an error.",
        rich_help_panel=DATA,
    ),
]
SameMissingCells = Annotated[
    Missing | None,
    typer.Option(
        help="Blank cells of these rows: drawn given the rest, their rows left out, or an error; by default "
        "as in the fit.",
        rich_help_panel=DATA,
    ),
]
ConstantColumns = Annotated[
    Constant, typer.Option(help="Columns with one level: an error, kept or left out.", rich_help_panel=DATA)
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that labels the rows and is not a variable.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
CompareGroups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Compare the groups of this column: which edges are the same in all, and which differ.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
OfGroup = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Of this group only, where groups were compared.", show_default=False),
]
Adjust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Covariates to hold fixed: dependence that is left when they do not vary. May be repeated.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Bins = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=20,
        help="Quantile bins of a covariate that is a number with more values.",
        rich_help_panel=DATA,
        show_default="4",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that says how often each row counts.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Ordinal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="These columns have levels in an order: a,b or item1..item17. Numbers are taken so anyway.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Nominal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="These columns have levels without an order. Words are taken so anyway.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
BlumeCapel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Ordinal with two parameters for all thresholds, counted from the first level or from L: a:L.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=A,B,C",
        help="Levels of a column, lowest first; item1..item17=A,B,C for several. May be repeated.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Blank = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABELS",
        help="Labels that stand for a blank: --blank=-9,99. May be repeated.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Cut = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME>=VALUE",
        help='Cut a column: "item3>=2", "age>=30,50", "age/4" (quarters), "city==Paris". May be repeated.',
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Binarize = Annotated[
    str | None,
    typer.Option(
        metavar="COMPARISON",
        help='Cut every column of more than two levels in two: ">0".',
        rich_help_panel=DATA,
        show_default=False,
    ),
]
CodingOption = Annotated[
    Coding, typer.Option(help="Couplings of 0/1 variables (theta), or of -1/+1 variables (J).")
]
PosteriorPath = Annotated[
    Path,
    typer.Argument(metavar="POSTERIOR", help="Directory of a fit, or its posterior.nc.", show_default=False),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed; the same seed gives the same result.", show_default="random")
]
Top = Annotated[int, typer.Option(min=0, help="Number of edges to show; 0 for all.")]
Grid = Annotated[
    str | None,
    typer.Option(
        metavar="ROWSxCOLUMNS",
        callback=checked(parse_grid),
        help="The variables are pixels of an image of this size.",
        show_default=False,
    ),
]
ColorBy = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Colours of the nodes: a CSV file with the name and the group of every variable.",
        show_default="communities",
    ),
]
Mixture = Annotated[int, typer.Option(min=1, help="Number of posterior draws to average over.")]
