"""What a fit will take, before it: memory by counting arrays, time by a trial on the data themselves.

Memory is that of the process with its libraries, of the chains, and of the draws. Of a chain everything is
counted that its state holds, and a second copy that travels to checkpoints; of the draws what the posterior
computes of them, too. Seconds per draw come from one chain that is begun and runs some iterations of warm-up:
no formula knows the data and the machine as well. What cannot be known before is how many draws the target
takes; the time is that of warm-up and `min_draws`, the least that any fit makes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.engines.choose import choose, load_engine, resolve
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.reading import physical_memory
from edgewise.run.compiling import prepare
from edgewise.run.options import RunOptions
from edgewise.run.progress import duration
from edgewise.run.workers import worker_count

PROCESS_BYTES = 200e6
# A state and its copy on the way to a checkpoint; scratch of a chain; draws, and what is computed of them.
STATE_COPIES, DRAW_COPIES = 2.0, 3.0
SCRATCH_BYTES = 20e6
ENTRY_BYTES = 12
# Of candidates that are all laid out: tallies, parameters, lists, the prior and the data's sums.
LAID_OUT_BYTES = 180
TRIAL_SECONDS = 3.0


@dataclass(frozen=True)
class Estimate:
    """What a fit takes.

    Attributes
    ----------
    engine, reason : str
        The engine, and why.
    variables, candidates, chains, lanes : int
        Sizes; `lanes` chains compute at the same time.
    chain_bytes, total_bytes : float
        Memory of one chain, and of the whole fit at its peak.
    machine_bytes : float
        Memory of this machine.
    start_seconds, seconds_per_draw : float
        To begin a chain, and of one iteration (a kept draw is at least one).
    warm_up, draws : int
        Iterations before the first draw, and the fewest draws of each chain.
    """

    engine: str
    reason: str
    variables: int
    candidates: int
    chains: int
    lanes: int
    chain_bytes: float
    total_bytes: float
    machine_bytes: float
    start_seconds: float
    seconds_per_draw: float
    warm_up: int
    draws: int

    @property
    def seconds(self) -> float:
        """Until the fewest draws are made, by the clock; the target may ask for more."""
        each = self.start_seconds + (self.warm_up + self.draws) * self.seconds_per_draw
        return each * math.ceil(self.chains / self.lanes)

    @property
    def fits(self) -> bool:
        """Whether the memory of this machine suffices."""
        return self.total_bytes < self.machine_bytes

    def __str__(self) -> str:
        chains = "the one chain" if self.chains == 1 else f"each of {self.chains} chains"
        lines = [
            f"Engine: {self.engine}. {self.reason}",
            f"Memory: {self.total_bytes / 1e9:.2f} GB in all, {self.chain_bytes / 1e9:.2f} GB of it for "
            f"{chains}; this machine has {self.machine_bytes / 1e9:.1f} GB.",
            f"Time: {duration(self.start_seconds)} to begin a chain, {1000 * self.seconds_per_draw:.3g} ms a "
            f"draw; about {duration(self.seconds)} for the warm-up of {self.warm_up:,} iterations and "
            f"{self.draws:,} draws of every chain, {self.lanes} at a time.",
            "More draws than that are made where the target asks for them.",
        ]
        return "\n".join(lines)


def check_memory(problem: Problem, chains: int) -> None:
    """Refuse, before any work, candidates that would have to be laid out and cannot be."""
    features, memory = problem.features, physical_memory()
    if features.unlisted and problem.all_binary:
        return
    needed = features.n_cliques * LAID_OUT_BYTES * chains + 4.0 * features.n_variables**2 * chains
    if needed > memory:
        fewer = max(1, int(chains * memory / needed))
        way = f"chains={fewer}, " if needed / chains <= memory else ""
        raise DataError(
            f"{chains} chains over {features.n_cliques:,} candidates take about {needed / 1e9:,.0f} GB, "
            f"and this machine has {memory / 1e9:,.0f}: what would fit is {way}fewer columns, or a shorter "
            "list of candidates with features=[...]."
        )


def estimate(problem: Problem, options: RunOptions, trial_seconds: float = TRIAL_SECONDS) -> Estimate:
    """What a fit of this problem takes; a chain is begun and tried for some seconds."""
    check_memory(problem, options.chains)
    name, reason = (options.engine, "You chose it.")
    if name == "auto":
        name, reason = choose(problem, options.settings)
    path = resolve(name, problem, options.settings)
    settings: dict[str, Any] = dict(options.settings or {})
    features = problem.features
    levels, blanks = not problem.all_binary, problem.blanks is not None
    prepare(path, features.all_pairs, features.max_order, settings, levels, blanks)
    begun = time.monotonic()
    chain = load_engine(path)(problem, settings, np.random.SeedSequence(0), options.starts[0])
    start_seconds = time.monotonic() - begun
    begun, done = time.monotonic(), 0
    while done < chain.warm_up and (done < 1 or time.monotonic() - begun < trial_seconds):
        step = min(max(1, done), chain.warm_up - done)
        chain.advance(step)
        done += step
    pace = (time.monotonic() - begun) / max(1, done)
    state_bytes = float(sum(np.asarray(part).nbytes for part in chain.state().values()))
    draw_bytes = ENTRY_BYTES * chain.active() + 8.0 * problem.n_biases + 32
    chain_bytes = STATE_COPIES * state_bytes + SCRATCH_BYTES + DRAW_COPIES * draw_bytes * options.min_draws
    return Estimate(
        name,
        reason,
        features.n_variables,
        features.n_cliques,
        options.chains,
        worker_count(options.n_jobs, options.chains),
        chain_bytes,
        PROCESS_BYTES + options.chains * chain_bytes,
        float(physical_memory()),
        start_seconds,
        pace * max(1, chain.thin),
        chain.warm_up,
        options.min_draws,
    )
