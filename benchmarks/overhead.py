"""What watching and saving cost: ``python -m benchmarks.overhead [SECONDS]``.

Progress and checkpoints add up what they take while they take it, so that each share comes from one run and
is not blurred by the noise between runs. A saved run always pays for one save at its beginning and one at its
end. Between them the share counts the CPU time of the thread that writes, not its waiting for the disk.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time

import numpy as np

from edgewise import exact
from edgewise.data import read_data
from edgewise.datasets import block_model, lattice_model
from edgewise.engines.protocol import Problem
from edgewise.features import Features, sufficient_statistics
from edgewise.model import MRF
from edgewise.priors import Prior
from edgewise.run.chains import RunResult, run
from edgewise.run.options import RunOptions
from edgewise.run.progress import Terminal


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
    made = RunOptions(
        engine=engine,
        chains=2,
        min_draws=draws,
        max_draws=draws,
        max_time=seconds,
        target_ess=None,
        seed=1,
        settings={"warm_up": 50},
        **options,
    )
    return run(problem, made)


def watched(*arguments, **options) -> RunResult:
    """A run with the live table, wherever this is started."""
    from edgewise.run import chains

    opened = chains.open_display
    chains.open_display = lambda progress, callback=None: OnPaper()
    try:
        return timed(*arguments, progress=True, **options)
    finally:
        chains.open_display = opened


def draws_in(problem: Problem, engine: str, seconds: float) -> int:
    """Number of draws that a run of about `seconds` makes after its start."""
    for patience in (1, 3, 9):
        result = timed(problem, engine, 10**7, patience * seconds, progress=False)
        if not result.info["warm_up_unfinished"]:
            return len(result.draws[0])
    raise SystemExit(f"The {engine} engine makes no draw in {9 * seconds:g} s here; allow more.")


def measure(label: str, problem: Problem, engine: str, seconds: float) -> None:
    draws = draws_in(problem, engine, seconds)
    shares: dict[str, list[float]] = {"progress": [], "every 60 s": [], "every 5 s": []}
    length = []
    for _ in range(3):
        info = watched(problem, engine, draws).info
        length.append(info["seconds"])
        shares["progress"].append(info["progress_seconds"] / info["seconds"])
        for every in (60, 5):
            with tempfile.TemporaryDirectory() as path:
                options = {"progress": False, "checkpoint": f"{path}/c", "checkpoint_every": every}
                info = timed(problem, engine, draws, **options).info
            shares[f"every {every} s"].append(info["checkpoint_seconds"] / info["seconds"])
    cells = [f"{100 * statistics.median(share):.3f} %" for share in shares.values()]
    facts = f"{label:24s} {engine:9s} {draws:8,d} {statistics.median(length):6.1f} s"
    print(facts + "".join(f"{cell:>14s}" for cell in cells), flush=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    started = time.monotonic()
    print("Two chains; medians of three runs. Shares of the run time:")
    headings = ("progress", "saved (60 s)", "saved (5 s)")
    facts = f"{'data':24s} {'engine':9s} {'draws':>8s} {'run':>8s}"
    print(facts + "".join(f"{heading:>14s}" for heading in headings))
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
