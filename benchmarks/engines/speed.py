"""Speed: effective draws of uncertain edges per CPU second and per million site updates; chains that meet."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import (
    compile_kernels,
    kept_result,
    median_ess,
    r_hat_share,
    run_engine,
    table_of,
    values_of,
)
from benchmarks.problems import load
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine

BLOCKS = ("block_n100_s1", "block_n1000_s1")
LANGEVIN_ESS = 50.0
LANGEVIN_CPU = 900.0
LANGEVIN_THIN = 1000
LATTICE_CPU = {"lattice_n100_s1": 180.0, "lattice_n1000_s1": 300.0}
# CPU seconds a chain between two looks at R-hat.
ROUND = 30.0
MEETING_STARTS = ("default", "default", "default", "default", "empty", "empty", "random", "random")


def line_engine(name: str, problem_name: str, cpu_seconds: float = 8.0) -> dict[str, Any]:
    """Speed of the exact or the particle engine, from one chain."""
    problem = load(problem_name)
    draws, costs, engine = run_engine(problem, name, 1, cpu_seconds=cpu_seconds)
    active = values_of([draws], problem.features.n_cliques) != 0
    ess = median_ess(active.astype(float))
    return costs | {
        "ess": ess,
        "per_second": ess / costs["run"],
        "per_million": ess / costs["site_updates"] * 1e6 if costs["site_updates"] else None,
        "particles": engine.counters().get("particles"),
        "ms_per_iteration": 1000 * costs["run"] / costs["iterations"],
    }


def langevin(problem_name: str) -> dict[str, Any]:
    """Algorithm 1 at the paper's settings until its median ESS is 50 or the CPU limit is reached."""
    problem = load(problem_name)
    compile_kernels("langevin")
    engine = load_engine("langevin")(problem, None, np.random.SeedSequence(1))
    begin = time.process_time()
    engine.advance(engine.warm_up)
    warm = time.process_time() - begin
    pieces: list[Draws] = []
    ess, updates = 0.0, 0.0
    begin = time.process_time()
    seconds = 0.0
    while ess < LANGEVIN_ESS and seconds < LANGEVIN_CPU:
        pieces.append(engine.advance(500 * LANGEVIN_THIN, LANGEVIN_THIN))
        seconds = time.process_time() - begin
        pieces = [Draws.concatenate(pieces)]
        active = values_of(pieces, problem.features.n_cliques) != 0
        ess = median_ess(active.astype(float))
        print(f"  langevin {problem_name}: ESS {ess:.1f} after {seconds:.0f} CPU s", flush=True)
    counters = engine.counters()
    iterations = len(pieces[0]) * LANGEVIN_THIN
    updates = counters.get("site_updates", 0.0)
    return {
        "warm_up": warm,
        "run": seconds,
        "iterations": iterations,
        "site_updates": updates,
        "ess": ess,
        "per_second": ess / seconds,
        "per_million": ess / updates * 1e6 if updates else None,
        "particles": counters.get("particles"),
        "ms_per_iteration": 1000 * seconds / iterations,
    }


def meeting(problem_name: str, starts: tuple[str, ...], cpu_seconds: float, limit: float) -> dict[str, Any]:
    """R-hat of the uncertain edges over chains from several starts, until 95 % of them are below the limit.

    All chains get the same CPU time, warm-up included, in rounds up to `cpu_seconds`; memory is saved by
    keeping the candidates that were ever active.
    """
    problem = load(problem_name)
    compile_kernels("particle")
    engines, warm = [], []
    chains = [Draws.empty(problem.features.n_variables) for _ in starts]
    for number, start in enumerate(starts):
        begin = time.process_time()
        engines.append(load_engine("particle")(problem, None, np.random.SeedSequence([3, number]), start))
        engines[-1].advance(engines[-1].warm_up)
        warm.append(time.process_time() - begin)
    spent = list(warm)
    while True:
        for number, engine in enumerate(engines):
            begin, goal = time.process_time(), min(cpu_seconds, max(spent[number], max(warm)) + ROUND)
            while spent[number] + time.process_time() - begin < goal:
                chains[number] = Draws.concatenate([chains[number], engine.advance(50)])
            spent[number] += time.process_time() - begin
        active = (values_of(chains, problem.features.n_cliques) != 0).astype(np.float32)
        active = active[active.any(axis=(1, 2))].astype(float)
        share, quantile, count = r_hat_share(active, limit)
        print(
            f"  {problem_name}: {max(spent):.0f} CPU s a chain, {active.shape[2]} draws, E "
            + " ".join(f"{chain.n_edges.mean():.0f}" for chain in chains)
            + f"; {share:.3f} of {count} below {limit}, 95 % quantile {quantile:.4f}",
            flush=True,
        )
        if share >= 0.95 or max(spent) >= cpu_seconds - 1:
            break
    length = active.shape[2]
    seconds = sum((spent[k] - warm[k]) * length / len(chains[k]) for k in range(len(chains)))
    ess = median_ess(active)
    return {
        "chains": len(chains),
        "draws": length,
        "uncertain": count,
        "share_below": share,
        "limit": limit,
        "r_hat_95": quantile,
        "ess": ess,
        "per_second": ess / seconds,
        "warm_up": float(np.mean(warm)),
        "cpu_seconds_a_chain": max(spent),
        "particles": [engine.counters()["particles"] for engine in engines],
        "edges": [round(float(chain.n_edges.mean()), 1) for chain in chains],
    }


def main(arguments: argparse.Namespace) -> None:
    rows = []

    def stored(case: str, compute: Any) -> dict[str, Any] | None:
        if arguments.only not in case:
            return kept_result("speed", case, lambda: None)
        return kept_result("speed", case, (lambda: None) if arguments.stored else compute, arguments.fresh)

    for problem in BLOCKS:
        results = {
            "exact": stored(f"{problem}_exact", lambda p=problem: line_engine("exact", p)),
            "particle": stored(f"{problem}_particle", lambda p=problem: line_engine("particle", p)),
            "langevin": stored(f"{problem}_langevin", lambda p=problem: langevin(p)),
        }
        slow = results["langevin"]
        for name, result in results.items():
            if result:
                ratio = result["per_second"] / slow["per_second"] if slow else float("nan")
                rows.append(
                    [
                        *(problem, name, result["per_second"], result["per_million"] or float("nan")),
                        *(result["ms_per_iteration"], result["particles"] or "", ratio),
                    ]
                )
    header = ["data", "engine", "ESS/CPU s", "ESS/million site updates", "ms/iteration", "particles"]
    print(table_of([*header, "times langevin"], rows) + "\n")
    rows = []
    for problem, seconds in LATTICE_CPU.items():
        small = problem == "lattice_n100_s1"
        starts = ("default",) * 4 if small else MEETING_STARTS
        limit = 1.01 if small else 1.05
        result = stored(
            f"{problem}_meeting",
            lambda p=problem, t=seconds, s=starts, m=limit: meeting(p, s, t, m),
        )
        if result:
            rows.append(
                [
                    *(problem, result["chains"], result["cpu_seconds_a_chain"], result["per_second"]),
                    *(result["uncertain"], result["share_below"], f"< {limit}", result["r_hat_95"]),
                ]
            )
    header = ["data", "chains", "CPU s a chain", "ESS/CPU s", "uncertain edges", "share with R-hat", "limit"]
    print(table_of([*header, "95 % quantile of R-hat"], rows))
