"""This version beside another one, installed in an environment of its own, in one run.

    python -m benchmarks.side_by_side /path/to/other/bin/python

prints, for both: effective draws of the uncertain indicators per CPU second (median and slowest) and
milliseconds per iteration of one chain after warm-up, the runs of the two taking turns; CPU seconds of a
small fit from a cold and a warm cache of compiled code; and CPU seconds from the start of a process to the
first iteration.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
from edgewise.draws.convergence import indicator_ess

Case = tuple[str, int, str, int]
CASES: tuple[Case, ...] = (
    ("block", 100, "exact", 4000),
    ("block", 1000, "exact", 4000),
    ("block", 100, "particle", 1500),
    ("block", 1000, "particle", 700),
    ("lattice", 100, "particle", 1000),
)
# Runs in the other environment too: only what both versions know by the same name.
CHAIN = """
import sys, time, warnings
import numpy as np
from edgewise import datasets, exact
from edgewise.data import read_data
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.priors import Prior
warnings.simplefilter("ignore")
kind, rows, engine, iterations, seed, target = sys.argv[1:]
model = datasets.block_model(seed=1) if kind == "block" else datasets.lattice_model(1, 10, 10)
data = read_data(exact.sample(model, int(rows), np.random.default_rng(1)), constant="keep")
features = Features.pairs(data.n_variables)
problem = Problem(features, sufficient_statistics(data, features), Prior().resolve(features))
chain = load_engine(engine)(problem, None, np.random.SeedSequence(int(seed)))
chain.advance(chain.warm_up)
begin = time.process_time()
draws = chain.advance(int(iterations))
seconds = time.process_time() - begin
active = np.zeros((features.n_cliques, int(iterations)), np.uint8)
active[draws.indices, np.repeat(np.arange(int(iterations)), draws.n_edges)] = 1
np.savez(target, seconds=seconds, active=active)
"""
# As the command fits: no scikit-learn is needed for it.
FIT = """
import time
import numpy as np
from edgewise.data import read_data
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.priors import Prior
data = read_data((np.random.default_rng(1).random((100, 12)) < 0.5).astype(np.uint8))
features = Features.pairs(12)
problem = Problem(features, sufficient_statistics(data, features), Prior().resolve(features))
begun = []
def watch(view):
    if not begun and any(chain.iteration for chain in view.chains):
        begun.append(time.process_time())
options = dict(n_jobs=1, chains=1, min_draws=100, max_draws=100, target_ess=None, seed=1, progress=False,
               callback=watch)
try:
    from edgewise.run.chains import run
    from edgewise.run.options import RunOptions
except ImportError:
    from edgewise.chains import run
    run(problem, {engine!r}, **options)
else:
    run(problem, RunOptions(engine={engine!r}, **options))
print(begun[0], time.process_time())
"""


def environment(cache: str) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return plain | {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}


def chain(python: str, case: Case, seed: int, cache: str) -> tuple[float, np.ndarray]:
    """CPU seconds and indicators (candidates, draws) of one chain after warm-up."""
    target = Path(cache) / "draws.npz"
    command = [python, "-c", CHAIN, *map(str, case), str(seed), str(target)]
    subprocess.run(command, check=True, env=environment(cache), cwd=cache)
    with np.load(target) as found:
        return float(found["seconds"]), found["active"]


def speed(pythons: dict[str, str], case: Case, repeats: int, caches: dict[str, str]) -> dict[str, Any]:
    """Effective draws per CPU second of both, from chains that take turns."""
    seconds = {name: [] for name in pythons}
    drawn = {name: [] for name in pythons}
    for seed in range(repeats):
        for name, python in pythons.items():
            spent, active = chain(python, case, seed, caches[name])
            seconds[name].append(spent)
            drawn[name].append(active)
    everything = np.stack([np.stack(chains, axis=1) for chains in drawn.values()])
    frequency = everything.mean(axis=(0, 2, 3))
    uncertain = (frequency > 0.05) & (frequency < 0.95)
    result = {}
    for name in pythons:
        ess = indicator_ess(np.stack(drawn[name], axis=1)[uncertain])
        spent = sum(seconds[name])
        result[name] = {
            "median": float(np.median(ess) / spent),
            "slowest": float(ess.min() / spent),
            # The quietest of the runs: the machine is not always ours alone.
            "ms": 1000 * min(seconds[name]) / case[3],
        }
    return result


def compiling(python: str, engine: str, repeats: int) -> dict[str, float]:
    """CPU seconds of a small fit, cold and warm, and to the first iteration when warm."""
    cold, warm, first = [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for total in (cold, warm):
                command = [python, "-c", FIT.format(engine=engine)]
                run = subprocess.run(
                    command, check=True, env=environment(cache), cwd=cache, capture_output=True, text=True
                )
                begun, ended = map(float, run.stdout.split())
                total.append(ended)
            first.append(begun)
    return {"cold minus warm": min(cold) - min(warm), "to the first iteration": min(first)}


def main(arguments: argparse.Namespace | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("other", help="Python of the environment of the other version")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
    arguments = arguments or parser.parse_args()
    pythons = {"before": arguments.other, "now": sys.executable}
    rows = []
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        caches = {"before": first, "now": second}
        for case in CASES:
            name = f"{case[0]}_n{case[1]}_{case[2]}"
            found = kept_result(
                "side_by_side",
                name,
                lambda c=case: speed(pythons, c, arguments.repeats, caches),
                arguments.fresh,
            )
            old, new = found["before"], found["now"]
            ratios = [new["median"] / old["median"], new["slowest"] / old["slowest"], old["ms"] / new["ms"]]
            rows.append([name, old["median"], new["median"], old["ms"], new["ms"], *ratios])
            print(name, *(f"{ratio:.3f}" for ratio in ratios), flush=True)
    header = ["chain", "ESS/CPU s before", "now", "ms/iteration before", "now"]
    print(table_of([*header, "median ESS/s: ratio", "slowest", "iterations/s"], rows) + "\n")
    rows = []
    for engine in ("exact", "particle"):
        found = kept_result(
            "side_by_side",
            f"compiling_{engine}",
            lambda e=engine: {name: compiling(python, e, 2) for name, python in pythons.items()},
            arguments.fresh,
        )
        rows += [[engine, what, found["before"][what], found["now"][what]] for what in found["now"]]
    print(table_of(["engine", "CPU s", "before", "now"], rows))


if __name__ == "__main__":
    main()
