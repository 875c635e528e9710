"""What watching and saving cost: ``python -m benchmarks.overhead [SECONDS]``.

Progress and checkpoints add up the time they take while they take it, so that both shares come from one run
and are not blurred by the noise between runs. A plain run, a watched run and a saved run of the same
draws are compared in CPU time as well (other work on the machine does not count there), for whoever does
not trust that.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time

import numpy as np

from edgewise import exact
from edgewise.chains import RunResult, run
from edgewise.data import read_data
from edgewise.datasets import block_model, lattice_model
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.model import MRF
from edgewise.priors import Prior
from edgewise.progress import Terminal


def problem_of(model: MRF, n_rows: int) -> Problem:
    data = read_data(exact.sample(model, n_rows, np.random.default_rng(0)), constant="keep")
    features = Features.pairs(data.n_variables)
    return Problem(features, sufficient_statistics(data, features), Prior().resolve(features))


class OnPaper(Terminal):
    """The terminal's live table, drawn as in a terminal but into memory."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self.live.stop()
        self.console = Console(file=io.StringIO(), force_terminal=True, width=120)
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.live.start()


def timed(problem: Problem, engine: str, draws: int, seconds: float | None = None, **options) -> RunResult:
    return run(
        problem,
        engine,
        chains=2,
        min_draws=draws,
        max_draws=draws,
        max_time=seconds,
        target_ess=None,
        seed=1,
        settings={"warm_up": 50},
        **options,
    )


def watched(*arguments, **options) -> RunResult:
    """A run with the live table, wherever this is started."""
    from edgewise import chains

    opened = chains.open_display
    chains.open_display = lambda progress, callback=None: OnPaper()
    try:
        return timed(*arguments, progress=True, **options)
    finally:
        chains.open_display = opened


def with_cost(function, *arguments, **options) -> tuple[dict, float]:
    """Facts of a run, and its CPU seconds."""
    before = time.process_time()
    result = function(*arguments, **options)
    return result.info, time.process_time() - before


def measure(label: str, problem: Problem, engine: str, seconds: float) -> None:
    pilot = timed(problem, engine, 10**7, seconds, progress=False)
    draws = len(pilot.draws[0])
    shares: dict[str, list[float]] = {"progress": [], "every 60 s": [], "every 5 s": []}
    costs: dict[str, list[float]] = {"plain": [], "watched": [], "saved": []}
    for _ in range(3):
        _, cost = with_cost(timed, problem, engine, draws, progress=False)
        costs["plain"].append(cost)
        info, cost = with_cost(watched, problem, engine, draws)
        costs["watched"].append(cost)
        shares["progress"].append(info["progress_seconds"] / info["seconds"])
        for every in (60, 5):
            with tempfile.TemporaryDirectory() as path:
                options = {"progress": False, "checkpoint": f"{path}/c", "checkpoint_every": every}
                info, cost = with_cost(timed, problem, engine, draws, **options)
            shares[f"every {every} s"].append(info["checkpoint_seconds"] / info["seconds"])
        costs["saved"].append(cost)
    plain = statistics.median(costs["plain"])
    cells = [f"{100 * statistics.median(share):.3f} %" for share in shares.values()]
    cells += [f"{100 * (statistics.median(costs[name]) / plain - 1):+.1f} %" for name in ("watched", "saved")]
    print(f"{label:24s} {engine:9s} {draws:8,d}" + "".join(f"{cell:>13s}" for cell in cells), flush=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    started = time.monotonic()
    print(f"Two chains, runs of about {seconds:g} s, medians of three rounds; shares of the run time.")
    headings = ("progress", "saved, 60 s", "saved, 5 s", "watched", "saved, 5 s")
    print(f"{'':43s}{'measured inside the run':>39s}{'CPU against plain':>26s}")
    print(f"{'data':24s} {'engine':9s} {'draws':>8s}" + "".join(f"{heading:>13s}" for heading in headings))
    cases = [
        ("block, N = 100", block_model(0), 100, "exact"),
        ("block, N = 1000", block_model(0), 1000, "exact"),
        ("lattice 10x10, N = 100", lattice_model(0), 100, "particle"),
        ("lattice 10x10, N = 1000", lattice_model(0), 1000, "particle"),
    ]
    for label, model, rows, engine in cases:
        measure(label, problem_of(model, rows), engine, seconds)
    print(f"({time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    main()
