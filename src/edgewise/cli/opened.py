"""What a command opens: a posterior, and the table of its fit once more."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.cli.options import Missing
from edgewise.errors import DataError, FileError
from edgewise.paths import as_path

if TYPE_CHECKING:
    from edgewise.data.problems import TableError
    from edgewise.data.table import Data as TableData
    from edgewise.posterior.posterior import Posterior


def find_posterior(path: Path) -> Path:
    """The file meant by the path of a fit's directory or of the file itself."""
    path = as_path(path, "a saved posterior")
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
    missing: Missing | None = None,
    group: str | None = None,
    weights: str | None = None,
) -> TableData:
    """Read the table of a fit again: the posterior's own columns, and a word if the rows are others."""
    from edgewise.cli.messages import say
    from edgewise.data import LevelData, read_data
    from edgewise.data.problems import TableError

    try:
        data = read_data(
            source,
            columns=list(posterior.names),
            group=group,
            sample_weight=weights,
            missing=(_missing_in(posterior) if missing is None else missing).value,
            constant="keep",
            **_as_in_the_fit(posterior),
        )
    except TableError as error:
        raise _of_the_fit(error) from None
    if isinstance(data, LevelData) and not posterior.scales.all_binary:
        # The places of levels on their scales are those of the fit, whatever else these rows have.
        data = replace(data, scales=posterior.scales)
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


def _missing_in(posterior: Posterior) -> Missing:
    """What the fit did about blank cells, as far as it met any."""
    dropped = any("are complete and stay" in str(note) for note in posterior.info.get("notes", ()))
    return Missing.drop if dropped else Missing.impute


def _as_in_the_fit(posterior: Posterior) -> dict[str, Any]:
    """What the columns of a fit are, as arguments of the door."""
    from edgewise.data.cuts import cut_behind
    from edgewise.data.labels import order_levels

    kinds, levels, cuts = {}, {}, {}
    for name, labels, scale in zip(posterior.names, posterior.levels, posterior.scales):
        cut = cut_behind(labels)
        if cut is not None:
            cuts[name] = f"{cut.operator}{','.join(map(str, cut.points))}"
        elif scale.n_levels > 2:
            kind = scale.kind if scale.reference is None else f"{scale.kind}:{labels[scale.reference]}"
            kinds[name], levels[name] = kind, list(labels)
        elif order_levels(labels) != tuple(labels):
            levels[name] = list(labels)
    blank = posterior.info.get("blanks")
    strata = posterior.strata
    divided: dict[str, Any] = {}
    if strata is not None:
        adjust, groups = list(strata.covariates) or None, strata.group_name or None
        divided = {"groups": groups, "adjust": adjust, "bins": strata.bins}
    return {
        "kinds": kinds or None,
        "levels": levels or None,
        "cut": cuts or None,
        "blank": blank or None,
        **divided,
    }


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
