"""How well a run foresees its end: ``python -m benchmarks.time_left [NAME ...]``.

Each fit runs with its defaults and one chain at a time, and a callback notes what the display would have
said. The table shows the seconds that were foreseen over the seconds that were left, at a quarter, a half
and three quarters of the run, and the same of iterations; between 0.5 and 2 is what is wanted.

Names are adhd, votes (real data, in the directory that EDGEWISE_DATA names) and lattice (7 x 7, 100 rows),
each with ``-exact`` or ``-particle``; another seed with ``-2``, for instance ``adhd-exact-2``. With ``--keep
FILE``, what was noted is written as JSON lines.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from typing import Any

from benchmarks import problems
from edgewise.engines.protocol import Problem
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from edgewise.run.progress import View

CASES = ("adhd-exact", "adhd-particle", "votes-exact", "votes-particle", "lattice-particle")
TABLES = {"adhd": "adhd", "votes": "house_votes_84"}
MOMENTS = (0.25, 0.5, 0.75)


def problem(name: str) -> Problem:
    if name == "lattice":
        return problems.problem_of(problems.lattice_truth_and_rows(1, 100, side=7)[1])
    return problems.load(TABLES[name])


def watch(name: str) -> dict[str, Any]:
    """Run one case; all that was foreseen, with the times."""
    table, engine, *seed = name.split("-")
    views: list[dict[str, Any]] = []

    def note(view: View) -> None:
        views.append(
            {
                "phase": view.phase,
                "elapsed": view.elapsed,
                "remaining": view.remaining,
                "draws": view.draws,
                "expected_draws": view.expected_draws,
                "made": sum(chain.iteration for chain in view.chains) / len(view.chains),
                "iteration": min(chain.iteration for chain in view.chains),
                "warm_up": max(chain.warm_up for chain in view.chains),
                "look": None if view.look is None else asdict(view.look),
            }
        )

    options = RunOptions(
        engine=engine, n_jobs=1, seed=int(seed[0]) if seed else 1, progress=False, callback=note
    )
    result = run(problem(table), options)
    info = result.info
    return {"name": name, "stop": info["stop_message"], "thin": info["thin"], "views": views}


def ratios(views: list[dict[str, Any]], thin: int) -> tuple[list[float], list[float]]:
    """Seconds and iterations foreseen over those that were left, at the moments.

    Seconds are blurred by whatever else the machine does meanwhile, iterations are not.
    """
    end, last = views[-1]["elapsed"], views[-1]["made"]
    seconds, iterations = [], []
    for moment in MOMENTS:
        before = [view for view in views if view["elapsed"] <= moment * end] or views[:1]
        # The display counts down between two views.
        ago = moment * end - before[-1]["elapsed"]
        seconds.append((before[-1]["remaining"] - ago) / (end - moment * end))
        view = ([view for view in views if view["made"] <= moment * last] or views[:1])[-1]
        foreseen = view["warm_up"] + view["expected_draws"] * thin - view["made"]
        iterations.append(foreseen / (last - view["made"]))
    return seconds, iterations


def main() -> None:
    words = sys.argv[1:]
    keep = None
    if "--keep" in words:
        place = words.index("--keep")
        keep = words[place + 1]
        del words[place : place + 2]
    moments = "".join(f"{moment:>7.0%}" for moment in MOMENTS)
    print(f"{'':38s}{'seconds':>21s} {'iterations':>21s}")
    print(f"{'fit':20s} {'seconds':>8s} {'warm-up':>8s}{moments} {moments}  end")
    for name in words or CASES:
        started = time.monotonic()
        seen = watch(name)
        views = seen["views"]
        warm = max((view["elapsed"] for view in views if view["phase"] == "warm-up"), default=0.0)
        share = warm / views[-1]["elapsed"]
        both = ratios(views, seen["thin"] or 1)
        cells = " ".join("".join(f"{ratio:7.2f}" for ratio in part) for part in both)
        print(f"{name:20s} {views[-1]['elapsed']:8.1f} {share:8.0%}{cells}  {seen['stop']}", flush=True)
        if keep is not None:
            with open(keep, "a", encoding="utf-8") as file:
                file.write(json.dumps({**seen, "wall": time.monotonic() - started}) + "\n")


if __name__ == "__main__":
    main()
