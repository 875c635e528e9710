"""Growth: time per iteration and per effective draw with the number of variables, degree and N constant."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import compile_kernels, kept_result, median_ess, table_of, values_of
from benchmarks.problems import problem_of, random_rows
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine

SIZES = (50, 100, 200, 400, 800, 1600)
ROWS = 300
CPU_SECONDS = 12.0


def measure(p: int) -> dict[str, Any]:
    problem = problem_of(random_rows(p, ROWS))
    compile_kernels("particle")
    begin = time.process_time()
    engine = load_engine("particle")(problem, {"warm_up": 200}, np.random.SeedSequence(1))
    started = time.process_time() - begin
    engine.advance(engine.warm_up)
    warm = time.process_time() - begin - started
    begin = time.process_time()
    pieces: list[Draws] = []
    while time.process_time() - begin < CPU_SECONDS * max(1.0, p / 400) or len(pieces) < 5:
        pieces.append(engine.advance(20))
    seconds = time.process_time() - begin
    draws = Draws.concatenate(pieces)
    seen = np.unique(draws.indices)
    short = Draws(
        draws.indptr,
        np.searchsorted(seen, draws.indices),
        draws.values,
        draws.biases,
        draws.inclusion_rate,
        draws.slab_scale,
    )
    ess = median_ess((values_of([short], len(seen)) != 0).astype(float))
    return {
        "start_seconds": started,
        "warm_up_seconds": warm,
        "ms_per_iteration": 1000 * seconds / len(draws),
        "ms_per_effective_draw": 1000 * seconds / ess,
        "edges": float(draws.n_edges.mean()),
        "particles": engine.counters()["particles"],
    }


def main(arguments: argparse.Namespace) -> None:
    rows, kept = [], []
    for p in SIZES:
        case = f"p{p}"
        compute = (
            (lambda p=p: measure(p)) if not arguments.stored and arguments.only in case else lambda: None
        )
        found = kept_result("growth", case, compute, arguments.fresh and arguments.only in case)
        if found:
            kept.append((p, found))
            rows.append([p, *(float(value) for value in found.values())])
            print(f"{case}: {found['ms_per_iteration']:.2f} ms per iteration", flush=True)
    header = ["p", "start, s", "warm-up (200), s", "ms/iteration", "ms/effective draw", "E", "particles"]
    print("\n" + table_of(header, rows))
    if len(kept) > 2:
        size = np.log([p for p, _ in kept])
        for key in ("ms_per_iteration", "ms_per_effective_draw"):
            slope = np.polyfit(size, np.log([found[key] for _, found in kept]), 1)[0]
            print(f"{key} grows as p^{slope:.2f}")
