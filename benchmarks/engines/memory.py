"""Memory of one chain with many variables, in a fresh process."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from benchmarks.chains_of_draws import kept_result, table_of

SIZES = (500, 2000)
SCRIPT = """
import resource, sys
import numpy as np
from benchmarks.chains_of_draws import compile_kernels
from benchmarks.problems import problem_of, random_rows
from edgewise.engines.choose import load_engine
problem = problem_of(random_rows({p}, 300))
problem.features.members
compile_kernels("particle")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
engine = load_engine("particle")(problem, {{"warm_up": 20}}, np.random.SeedSequence(1))
engine.advance(20)
engine.advance(5)
state = sum(array.nbytes for array in engine.state().values())
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, state)
"""


def measure(p: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(p=p)], capture_output=True, text=True, check=True
    )
    before, after, state = map(float, done.stdout.split())
    scale = (1 if sys.platform == "darwin" else 1024) / 1e6
    return {"extra_mb": (after - before) * scale, "process_mb": after * scale, "state_mb": state / 1e6}


def main(arguments: argparse.Namespace) -> None:
    rows = []
    for p in SIZES:
        case = f"p{p}"
        compute = (
            (lambda p=p: measure(p)) if not arguments.stored and arguments.only in case else lambda: None
        )
        found = kept_result("memory", case, compute, arguments.fresh and arguments.only in case)
        if found:
            rows.append([p, found["extra_mb"], found["process_mb"], found["state_mb"]])
    header = ["p", "MB of one chain at its peak", "MB of the whole process", "MB of a saved state"]
    print(table_of(header, rows))
