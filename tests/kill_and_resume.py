"""Kill a checkpointed run again and again, and finish it; a script of its own because it forks.

Usage: kill_and_resume.py DIRECTORY KILLS ENGINE; prints one JSON line. The fork happens before any
thread exists, so that every child starts clean and at once.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np

from edgewise.engines.protocol import Problem
from edgewise.run import workers
from edgewise.run.chains import run
from edgewise.run.compiling import prepare
from edgewise.run.options import RunOptions
from edgewise.run.versions import versions
from toy_engine import TOY, fingerprint, toy_problem


def options(engine: str, problem: Problem) -> tuple[dict, float]:
    """Arguments of the run, and the longest time until a kill."""
    common = {"engine": engine, "chains": 2, "target_ess": None, "seed": 5, "n_jobs": 2, "thin": 1}
    if engine == TOY:
        # Four milliseconds of sleep per iteration: the run cannot end before all kills have happened.
        settings = {"delay": 0.004, "warm_up": 50}
        return {**common, "min_draws": 1500, "max_draws": 1500, "settings": settings}, 0.6
    # As many draws as twelve seconds allow, and no life of a child longer than a sixteenth of that.
    common["settings"] = {"warm_up": 200}
    long = RunOptions(min_draws=10**7, max_draws=10**7, max_time=12, progress=False, **common)
    pilot = run(problem, long)
    draws = len(pilot.draws[0])
    return {**common, "min_draws": draws, "max_draws": draws}, 12 / 16


def main(directory: str, kills: int, engine: str) -> None:
    workers.SLICE_SECONDS = 0.02  # many saves, so that many kills meet one
    problem = toy_problem(n_variables=3) if engine == TOY else toy_problem(200, 8, 1)
    # All that is slow the first time is done before the fork.
    versions()
    prepare(engine, problem.features.all_pairs, problem.features.max_order, {})
    arguments, longest = options(engine, problem)
    log, saved = Path(directory) / "log", Path(directory) / "checkpoint"
    moments = random.Random(12)
    done = 0
    while done < kills:
        child = os.fork()
        if child == 0:
            with open(log, "a") as file:
                os.dup2(file.fileno(), 2)
            run(problem, RunOptions(checkpoint=saved, checkpoint_every=0.03, progress="lines", **arguments))
            os._exit(0)
        time.sleep(moments.uniform(0.01, longest))
        finished, _ = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        done += 1
    result = run(problem, RunOptions(checkpoint=saved, checkpoint_every=0.05, progress=False, **arguments))
    if engine == TOY:
        arguments["settings"] = {"warm_up": 50}  # the same draws without the sleep
    undisturbed = run(problem, RunOptions(progress=False, **arguments))
    sums = zip(result.edge_sums, undisturbed.edge_sums)
    print(
        json.dumps(
            {
                "kills": done,
                "resumed": [
                    int(text.replace(",", "")) for text in re.findall(r"iteration ([\d,]+)", log.read_text())
                ],
                "last_resumed": result.info["resumed_from_iteration"],
                "same_draws": fingerprint(result.draws) == fingerprint(undisturbed.draws),
                "same_sums": all(np.array_equal(a[key], b[key]) for a, b in sums for key in b),
                "draws": len(result.draws[0]),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
