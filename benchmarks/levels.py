"""Tables with more than two levels: who decided, CPU time, effective draws per CPU second.

    python -m benchmarks.levels            # titanic, cad1, wenchuan and bfi, whole and in part
    python -m benchmarks.levels wenchuan --engine particle   # one of them by one engine
    python -m benchmarks.levels --errors   # particles and surrogate against the exact table, 8 items

Needs the data that EDGEWISE_DATA names. Warm-up is included, compiling is not: a small fit comes first.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from edgewise import exact
from edgewise.data import Data, read_data
from edgewise.datasets import ordinal_model
from edgewise.engines.choose import choose
from edgewise.fitting import answer, pose
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.posterior import Posterior
from edgewise.run.options import RunOptions

UNCERTAIN = 0.02
ITEMS, LEVELS = 8, 5


def tables() -> dict[str, Data]:
    """The tables by name."""
    import pandas

    folder = Path(os.environ["EDGEWISE_DATA"]) / "discrete"
    symptoms, items = (pandas.read_csv(folder / f"{name}.csv.gz") for name in ("wenchuan", "bfi"))
    pain = {"levels": {"AngPec": ["None", "Atypical", "Typical"]}, "kinds": {"AngPec": "nominal"}}
    return {
        "titanic": read_data(folder / "titanic.csv.gz"),
        "cad1": read_data(folder / "cad1.csv.gz", **pain),
        "wenchuan, first 8": read_data(symptoms.iloc[:, :8], missing="drop"),
        "bfi, first 7": read_data(items.iloc[:, :7], missing="drop"),
        "wenchuan": read_data(symptoms, missing="drop"),
        "bfi": read_data(items.iloc[:, :25], missing="drop"),
    }


def fit(data: Data, **options: Any) -> tuple[Posterior, float]:
    """A posterior and the CPU seconds that it took, on one thread."""
    started = time.process_time()
    chosen = {"engine": "auto", "seed": 1, "n_jobs": 1, "progress": False} | options
    posterior, _ = answer(pose(data), RunOptions(**chosen))
    return posterior, time.process_time() - started


def speeds(wanted: list[str], engines: list[str]) -> None:
    """One line per table and engine; what `auto` takes unless engines are named."""
    print(f"{'table':<20}{'rows':>6}{'engine':>11}{'light':>7}{'CPU s':>8}{'ESS/CPU s':>11}{'slowest':>9}")
    every = tables()
    small = every["titanic"]
    for name, data in every.items():
        if wanted and name not in wanted:
            continue
        for engine in engines or (choose(pose(data).problem)[0],):
            if engine == "exact" and data.scales.n_states > 1 << 20:
                continue
            fit(small, engine=engine, min_draws=10, max_draws=10, target_ess=None)
            posterior, seconds = fit(data, engine=engine)
            inclusion, effective = posterior.edge_values("inclusion"), posterior.edge_values("ess_bulk")
            open_ = (inclusion > UNCERTAIN) & (inclusion < 1 - UNCERTAIN)
            rate = effective[open_] / seconds if open_.any() else np.full(1, np.nan)
            light = diagnose(posterior).light
            print(
                f"{name:<20}{data.n_rows:>6}{engine:>11}{light:>7}{seconds:>8.1f}{np.median(rate):>11.1f}"
                f"{rate.min():>9.1f}",
                flush=True,
            )


def errors(engines: list[str]) -> None:
    """PIPs and means of particles, and of the surrogate alone, beside those of the exact table."""
    print(
        f"{'rows':>6}{'data':>6}{'rarest':>8}{'engine':>11}{'PIP rms':>9}{'largest':>9}{'own error':>11}"
        f"{'means, sd':>11}{'CPU s':>8}"
    )
    for rows in (100, 362, 1000):
        for seed in (1, 2, 3):
            model = ordinal_model(ITEMS, levels=LEVELS, degree=2.5, seed=seed)
            sample = exact.sample(model, rows, seed)
            data = read_data(sample, levels={f"x{k}": range(LEVELS) for k in range(ITEMS)})
            rarest = min(np.bincount(column, minlength=LEVELS).min() for column in sample.T)
            sure, _ = fit(data, engine="exact", target_error=0.01, min_draws=2000, max_draws=4000)
            for engine in engines or ["particle", "surrogate"]:
                guess, seconds = fit(data, engine=engine, target_error=0.01)
                apart = guess.edge_values("inclusion") - sure.edge_values("inclusion")
                noise = np.hypot(guess.edge_values("mcse"), sure.edge_values("mcse"))
                spread = np.maximum(sure.edge_values("sd"), 0.02)
                means = (guess.edge_values("mean") - sure.edge_values("mean")) / spread
                print(
                    f"{rows:>6}{seed:>6}{rarest:>8}{engine:>11}{np.sqrt(np.mean(apart**2)):>9.4f}"
                    f"{np.abs(apart).max():>9.3f}{np.sqrt(np.mean(noise**2)):>11.4f}"
                    f"{np.sqrt(np.mean(means**2)):>11.3f}{seconds:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="names of tables; all by default")
    parser.add_argument("--engine", action="append", default=[], help="what auto takes by default")
    parser.add_argument("--errors", action="store_true")
    given = parser.parse_args()
    errors(given.engine) if given.errors else speeds(given.tables, given.engine)
