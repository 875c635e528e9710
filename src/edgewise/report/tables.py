"""The edges of a posterior as a CSV file that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.atomic import replacing
from edgewise.model.cells import safe_cell
from edgewise.paths import as_path

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior


def write_edges_csv(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    coding: str = "binary",
    thresholds: tuple[float, float] = (3, 10),
) -> Path:
    """Write one line per candidate edge: the columns of ``posterior.summary()``, most probable first.

    The file is UTF-8 with a byte-order mark, so that spreadsheets read the names rightly. A name that would
    run as a formula gets a leading apostrophe (see
    :func:`edgewise.model.cells.safe_cell`); take it off when reading the names back with a program.

    Parameters
    ----------
    posterior : Posterior
        What to write.
    path : path
        The file; an existing one is replaced in one step.
    coding : {"binary", "ising"}
        Coding of the couplings.
    thresholds : pair of float
        Bayes factors from which evidence counts, and counts as strong.

    Examples
    --------
    >>> import tempfile
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.report import write_edges_csv
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = write_edges_csv(model.posterior_, f"{directory}/edges.csv")
    ...     print(path.read_text("utf-8-sig")[:32])
    edge,variable_1,variable_2,inclu
    """
    table = posterior.summary(coding=coding, thresholds=thresholds)
    order = np.lexsort((-table["mean"].abs().to_numpy(), -table["inclusion"].to_numpy()))
    table = table.iloc[order]
    if "variables" in table:
        table = table.assign(variables=[" -- ".join(members) for members in table["variables"]])
    return _write(table, path)


def write_groups_csv(
    posterior: Posterior, path: str | os.PathLike[str], *, thresholds: tuple[float, float] = (3, 10)
) -> Path:
    """Write one line per candidate and pair of groups: ``posterior.group_summary()``, differences first."""
    table = posterior.group_summary(thresholds=thresholds)
    order = np.lexsort((-table["difference"].abs().to_numpy(), -table["different"].to_numpy()))
    return _write(table.iloc[order], path)


def _write(table: Any, path: str | os.PathLike[str]) -> Path:
    """A DataFrame as a file that spreadsheets read rightly."""
    rows = zip(*(_cells(table[column].tolist()) for column in table))
    with replacing(path, "utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(rows)
    return as_path(path)


def write_imputed_csv(posterior: Posterior, path: str | os.PathLike[str]) -> Path | None:
    """Write one line per level of every cell that was blank; nothing where none was.

    Parameters
    ----------
    posterior : Posterior
        What to write. Rows are numbered from 1 below the heading, as they stand in the table of the fit;
        ``posterior.imputed.table`` counts them from 0, as NumPy and pandas do.
    path : path
        The file; an existing one is replaced in one step.

    Returns
    -------
    Path or None
        The file, if there is one.

    Examples
    --------
    >>> import tempfile
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]].astype(object)
    >>> people.loc[3, "progression"] = None
    >>> model = SpikeSlabMRF(missing="impute", random_state=1, progress=False).fit(people)
    >>> from edgewise.report import write_imputed_csv
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = write_imputed_csv(model.posterior_, f"{directory}/imputed.csv")
    ...     print(path.read_text("utf-8-sig").splitlines()[0])
    row_number,variable,level,probability,mcse
    """
    if posterior.imputed is None:
        return None
    with replacing(path, "utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["row_number", "variable", "level", "probability", "mcse"])
        for row, variable, level, chance, error in posterior.imputed.lines():
            writer.writerow([row + 1, safe_cell(variable), *_cells([level, chance, error])])
    return as_path(path)


def _cells(values: list[Any]) -> list[str]:
    return [safe_cell(value) if isinstance(value, str) else _number(value) for value in values]


def _number(value: float | int) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if value != value else f"{value:.6g}"
