"""How soon a fit with defaults is green, and how fast its slowest edge mixes.

    python -m benchmarks.mixing [case ...] [--before /path/to/other/bin/python] [--limit 300] [--stored]

prints for every case, of this version and of another one beside it: the engine, effective draws per CPU
second of the slowest, the 5 % quantile and the median uncertain indicator, acceptance of stretches and the
standard deviation of w where there are any, and CPU seconds until the light is green. Compiling is apart; a
fit ends after `limit` CPU seconds, and is then not green if its draws so far are not. Results are stored, and
computed once.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
from benchmarks.problems import data_directory
from edgewise.draws.convergence import indicator_ess

# Runs in the other environment too: only what both versions know by the same name.
FIT = """
import signal, sys, time, warnings
import numpy as np
from edgewise import SpikeSlabMRF
try:
    from edgewise.posterior.diagnostics import diagnose
except ImportError:
    from edgewise.diagnostics import diagnose
warnings.simplefilter("ignore")
source, target, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
rows = np.load(source)["rows"]
begin, ended = [None], []
signal.signal(signal.SIGINT, signal.default_int_handler)
def watch(view):
    # The first view comes when everything is compiled.
    begin[0] = begin[0] if begin[0] is not None else time.process_time()
    if time.process_time() - begin[0] > limit and not ended:
        # Once: a fit in its draws ends in good order, one in its warm-up without any.
        ended.append(True)
        signal.raise_signal(signal.SIGINT)
try:
    fit = SpikeSlabMRF(random_state=1, progress=False, callback=watch, constant="keep").fit(rows)
except KeyboardInterrupt:
    np.savez(target, engine="", seconds=limit, light="in warm-up")
    raise SystemExit
spent = time.process_time() - begin[0]
posterior = fit.posterior_
count = min(len(part.indptr) - 1 for part in posterior.draws)
active = np.zeros((posterior.n_cliques, len(posterior.draws), count), np.bool_)
for c, part in enumerate(posterior.draws):
    entries = int(part.indptr[count])
    active[part.indices[:entries], c, np.repeat(np.arange(count), np.diff(part.indptr[: count + 1]))] = True
frequency = active.mean(axis=(1, 2))
uncertain = (frequency > 0.05) & (frequency < 0.95)
counters = getattr(posterior, "_counters", None) or [{}]
light = diagnose(posterior).light
light = "not green" if ended and light != "green" else light
np.savez(target, engine=fit.engine_, seconds=spent, light=light,
         active=active[uncertain], accepted=sum(part.get("stretches_accepted", 0.0) for part in counters)
         / max(sum(part.get("stretches", 0.0) for part in counters), 1.0),
         spread=np.mean([part.get("spread", np.nan) for part in counters]))
"""


def lattice(side: int, rows: int, seed: int) -> np.ndarray:
    from edgewise import datasets, exact

    model = datasets.lattice_model(seed, side, side)
    return np.asarray(exact.sample(model, rows, np.random.default_rng(seed + 1)), np.uint8)


def block(rows: int) -> np.ndarray:
    from edgewise import datasets, exact

    return np.asarray(exact.sample(datasets.block_model(seed=1), rows, np.random.default_rng(1)), np.uint8)


def shared(name: str) -> np.ndarray:
    with np.load(data_directory() / "debd" / f"{name}.npz") as stored:
        return np.asarray(stored["train"], np.uint8)


def table(name: str, last: int) -> np.ndarray:
    """The columns after the first one of a table, in the rows without blanks."""
    options = {"columns": list(range(1, last + 1)), "missing": "drop"}
    return rows_of(data_directory() / "binary" / f"{name}.csv.gz", **options)


def rows_of(source: Any, **options: Any) -> np.ndarray:
    from edgewise.data import read_data

    data = read_data(source, constant="keep", **options)
    return np.asarray(data.values(0, data.n_rows), np.uint8)


def votes() -> np.ndarray:
    """Roll calls in which the 99 senators who hardly ever missed one all voted."""
    left_out = ["rollcall", "CORZINE (D NJ)", "MENENDEZ (D NJ)"]
    return rows_of(data_directory() / "binary" / "senate109.csv.gz", missing="drop", drop_columns=left_out)


def pixels(rows: int) -> np.ndarray:
    from edgewise import datasets

    return np.asarray(datasets.digits()[:rows], np.uint8)


def patch(rows: int) -> np.ndarray:
    from edgewise import datasets

    return np.asarray(datasets.mnist_patch(data_directory() / "mnist")[:rows], np.uint8)


def random_graph() -> np.ndarray:
    """1,000 rows of 300 variables with three neighbours each."""
    from edgewise import datasets

    rng = np.random.default_rng(1)
    return np.asarray(datasets.random_model(300, degree=3, seed=1).gibbs(1000, 300, rng), np.uint8)


COLUMNS = ("engine", "light", "seconds", "slowest", "5 %", "median", "accepted", "spread")
CASES: dict[str, Any] = {
    f"lattice {side} x {side}, N={rows:,}, seed {seed}": lambda s=side, n=rows, k=seed: lattice(s, n, k)
    for side in (7, 10)
    for rows in (100, 1000, 10_000)
    for seed in ((11, 12, 13) if rows < 10_000 else (11,))
}
CASES |= {f"block, N={rows:,}": lambda n=rows: block(n) for rows in (100, 1000, 100_000)}
CASES |= {"adhd": lambda: table("adhd", 14), "votes": lambda: table("house_votes_84", 16)}
CASES |= {f"digits, N={rows:,}": lambda n=rows: pixels(n) for rows in (400, 1797)}
CASES |= {"senate109": votes}
CASES |= {"amgut1": lambda: rows_of(data_directory() / "binary" / "amgut1_presence.csv.gz")}
CASES |= {f"MNIST patch, N={rows:,}": lambda n=rows: patch(n) for rows in (100, 1000, 60_000)}
CASES |= {name: lambda n=name: shared(n) for name in ("nltcs", "plants", "accidents", "bnetflix", "dna")}
CASES |= {"random graph, p=300": random_graph}


def measure(python: str, rows: np.ndarray, limit: float) -> dict[str, Any]:
    """One fit with defaults in an environment."""
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as room:
        source, target = Path(room) / "rows.npz", Path(room) / "result.npz"
        np.savez(source, rows=rows)
        env = (os.environ if python == sys.executable else plain) | {"OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([python, "-c", FIT, source, target, str(limit)], check=True, env=env, cwd=room)
        with np.load(target) as found:
            result = {key: found[key] for key in found.files}
    light, seconds = str(result["light"]), float(result["seconds"])
    told = {"engine": str(result["engine"]), "light": light, "seconds": round(seconds, 1)}
    if light == "in warm-up" or not len(result["active"]):
        return told
    speed = indicator_ess(result["active"].astype(float)) / seconds
    return told | {
        "slowest": round(float(speed.min()), 3),
        "5 %": round(float(np.quantile(speed, 0.05)), 2),
        "median": round(float(np.median(speed)), 1),
        "accepted": round(float(result["accepted"]), 2),
        "spread": round(float(result["spread"]), 2),
    }


def chosen_parts() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing", description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--before", help="Python of the environment to compare with")
    parser.add_argument("--limit", type=float, default=300.0, help="CPU seconds after which a fit ends")
    parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
    parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
    return parser.parse_args()


def main(arguments: argparse.Namespace | None = None) -> None:
    arguments = arguments or chosen_parts()
    before = getattr(arguments, "before", None)
    pythons = {"now": sys.executable} | ({"before": before or ""} if before or arguments.stored else {})
    lines = []
    cases = getattr(arguments, "cases", [])
    for name, make in CASES.items():
        if cases and not any(part in name for part in cases):
            continue
        for version, python in pythons.items():
            key = f"{name} {version}".replace(",", "").replace("=", "").replace(" ", "_")
            found = kept_result(
                "mixing",
                key,
                lambda python=python, make=make: (
                    None if arguments.stored else measure(python, make(), arguments.limit)
                ),
                fresh=arguments.fresh and not arguments.stored,
            )
            if found is not None:
                lines.append([name, version, *(found.get(column, math.nan) for column in COLUMNS)])
                if not arguments.stored:
                    print(*lines[-1], flush=True)
    print(table_of(["data", "version", *COLUMNS], lines))


if __name__ == "__main__":
    main()
