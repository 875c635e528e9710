"""Options that several commands share, each declared once."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli.messages import session
from edgewise.errors import DataError, FileError

if TYPE_CHECKING:
    from edgewise.data import BinaryData
    from edgewise.data.problems import TableError
    from edgewise.posterior.posterior import Posterior

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
)


class Missing(StrEnum):
    """What to do about blank cells."""

    error = "error"
    drop = "drop"


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

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table with one row per case and two levels per column: CSV, TSV (also .gz), npz, npy, Parquet; "
        "- is standard input.",
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
    Missing, typer.Option(help="Rows with blank cells: an error, or left out.", rich_help_panel=DATA)
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
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that says how often each row counts.",
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


def find_posterior(path: Path) -> Path:
    """The file meant by the path of a fit's directory or of the file itself."""
    if path.is_dir():
        file = path / "posterior.nc"
        if not file.exists():
            hint = (
                f" It holds a fit that was stopped before there was anything to show; go on with: "
                f"edgewise fit DATA -o {path} --resume"
                if (path / "checkpoint").is_dir()
                else " Give the directory that edgewise fit made, or a posterior.nc."
            )
            raise FileError(f"There is no posterior.nc in {str(path)!r}.{hint}")
        return file
    return path


def open_posterior(path: Path) -> Posterior:
    """Load the posterior of a fit's directory or file."""
    from edgewise.posterior.posterior import load_posterior

    return load_posterior(find_posterior(path))


def read_same_data(
    source: str,
    posterior: Posterior,
    missing: Missing = Missing.error,
    group: str | None = None,
    weights: str | None = None,
) -> BinaryData:
    """Read the table of a fit again: the posterior's own columns, and a word if the rows are others."""
    from edgewise.cli.messages import say
    from edgewise.data import read_data
    from edgewise.data.problems import TableError

    try:
        data = read_data(
            source,
            columns=list(posterior.names),
            group=group,
            sample_weight=weights,
            missing=missing.value,
            constant="keep",
        )
    except TableError as error:
        raise _of_the_fit(error) from None
    digest = posterior.info.get("data_digest")
    if digest and digest != data.digest():
        rows = posterior.info.get("n_rows", data.n_rows)
        others = "other cells" if rows == data.n_rows else f"{data.n_rows:,} rows"
        say(
            f"{source} is not the table of the fit: it has {others} where the fit had {rows:,} rows of its "
            "own; what follows compares the posterior with these rows.",
            "Note",
        )
    return data


def _of_the_fit(error: TableError) -> DataError:
    """What is wrong with a table whose columns are those of a fit: none of them can be left out."""
    from edgewise.data.problems import listing

    asked = [
        re.match(r"columns asks for a column ('.*?'|\".*?\"), which", part.text) for part in error.problems
    ]
    absent = [found[1] for found in asked if found]
    if absent:
        return DataError(
            f"{error.origin} does not have all variables of the fit; there is no column {listing(absent)}."
        )
    text = str(error).partition("\nTo go on without")[0]
    changed = DataError(re.sub(r"[;,]?( or)?[^;,:]* with drop_columns=\[[^\]]*\]", "", text))
    if set(error.remedy) == {"missing"}:
        vars(changed).update(remedy=error.remedy, rows_left=error.rows_left, columns_left=error.columns_left)
    return changed
