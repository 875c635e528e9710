"""Kernel: Gibbs site updates beside NumPy's, and where the time of a particle chain goes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import compile_kernels, kept_result, table_of, values_of
from benchmarks.problems import problem_of
from edgewise import datasets, exact
from edgewise.engines.choose import load_engine

SIDE, PARTICLES = 10, 256
CALLS = 200


def cpu_time(function: Callable[[], object], least: float = 0.4, repeats: int = 5) -> float:
    """Smallest CPU seconds per call of several rounds."""
    function()
    best = np.inf
    for _ in range(repeats):
        calls = 0
        begin = time.process_time()
        while time.process_time() - begin < least / repeats:
            function()
            calls += 1
        best = min(best, (time.process_time() - begin) / calls)
    return float(best)


def sweeps() -> dict[str, Any]:
    """Nanoseconds per site update of the kernel, of NumPy site by site and of a NumPy checkerboard."""
    from edgewise.kernels.compiling import exposed
    from edgewise.kernels.gibbs import compute_fields, gibbs_sweep
    from edgewise.kernels.graph import empty_graph, place_all
    from edgewise.kernels.random import lane_streams

    model = datasets.lattice_model(1, SIDE, SIDE)
    p, n = model.n_variables, PARTICLES
    rng = np.random.default_rng(0)
    members = np.array(model.cliques, np.int32)
    theta = np.array(model.weights)
    graph = empty_graph(members, np.zeros(len(members), np.int8), p)
    place_all(np.arange(len(members)), graph)
    X = (rng.random((p, n)) < 0.5).astype(np.float32)
    F = np.empty_like(X)
    lanes = lane_streams(np.random.SeedSequence(0), n)
    change, product = np.empty(n, np.float32), np.empty(n, np.float32)
    exposed(compute_fields)(X, model.biases, theta, graph, F, product)

    def kernel() -> None:
        gibbs_sweep(X, F, lanes, theta, graph, change, product)

    coupling = model.coupling.astype(np.float32)
    bias = model.biases.astype(np.float32)
    neighbours = [np.flatnonzero(coupling[i]) for i in range(p)]
    strengths = [coupling[i, near] for i, near in enumerate(neighbours)]
    Y = X.copy()

    def site_by_site() -> None:
        for i in range(p):
            field = bias[i] + strengths[i] @ Y[neighbours[i]]
            Y[i] = rng.random(n, np.float32) < 1 / (1 + np.exp(-field))

    row, column = np.divmod(np.arange(p), SIDE)
    colours = [np.flatnonzero((row + column) % 2 == c) for c in (0, 1)]
    parts = [(mine, coupling[np.ix_(mine, colours[1 - c])], colours[1 - c]) for c, mine in enumerate(colours)]
    Z = X.copy()

    def checkerboard() -> None:
        for mine, block, others in parts:
            field = bias[mine, None] + block @ Z[others]
            Z[mine] = rng.random((len(mine), n), np.float32) < 1 / (1 + np.exp(-field))

    times = {"kernel": kernel, "NumPy site by site": site_by_site, "NumPy checkerboard": checkerboard}
    return {name: 1e9 * cpu_time(function) / (p * n) for name, function in times.items()}


def shares() -> dict[str, Any]:
    """Share of a particle chain's time per kernel: times of single calls multiplied by their numbers."""
    from edgewise.kernels.codes import DECISIONS
    from edgewise.kernels.compiling import entry
    from edgewise.kernels.particles import pair_cells, pair_growth, single_follow
    from edgewise.kernels.sources import follow_clique
    from edgewise.kernels.swarm import stir

    rows = exact.sample(datasets.lattice_model(1, SIDE, SIDE), 100, np.random.default_rng(1001))
    compile_kernels("particle")
    engine = load_engine("particle")(problem_of(rows), {"warm_up": 200}, np.random.SeedSequence(1))
    engine.advance(200)
    iterations = 200
    begin = time.process_time()
    draws = engine.advance(iterations)
    total = time.process_time() - begin
    counters = changes = engine.counters()
    decisions = float(engine._arrays["counters"][DECISIONS])
    swarm, chain, rules = engine._source, engine._chain, engine._rules
    n = int(counters["particles"])
    cells, sums, factors, zeros = np.empty(4), np.empty(5), np.ones(4), np.zeros((1, 4))
    pair = (swarm.X[0], swarm.X[1], swarm.F[0], swarm.F[1], swarm.w, 0.1)
    split = swarm.split

    @entry(arrays=True)
    def repeat(part: int, pair, rules, chain, swarm, cells, sums, factors, zeros):
        xi, xj, fi, fj, w, theta = pair
        for _ in range(CALLS):
            if part == 0:
                pair_cells(xi, xj, fi, fj, w, theta, 0, split, cells)
            elif part == 1:
                pair_growth(xi, xj, fi, fj, w, theta, factors, split, n, sums)
            elif part == 2:
                follow_clique(swarm, 0, chain.theta[0], chain.theta[0], zeros, zeros, rules, chain)
            elif part == 3:
                stir(swarm, 1, 0, n, chain)
            else:
                single_follow(xi, fi, w, 0.0, 1.0, 1.0, swarm.lanes, swarm.change_i)

    def timed(part: int) -> float:
        return cpu_time(lambda: repeat(part, pair, rules, chain, swarm, cells, sums, factors, zeros)) / CALLS

    unit = {
        "Gibbs sites (stirring)": timed(3),
        "cells of a line (proposals)": timed(0),
        "growth along a line (decisions)": timed(1),
        "following a pair's move": timed(2),
        "following a bias's move": timed(4),
    }
    flips = changes["birth_accepts"] + changes["death_accepts"]
    edges = float(draws.n_edges.mean())
    values = values_of([draws], engine.problem.features.n_cliques)[:, 0]
    both = (values[:, 1:] != 0) & (values[:, :-1] != 0)
    redrawn = float(np.count_nonzero(both & (np.diff(values) != 0)))
    tries = changes["birth_tries"] + changes["death_tries"]
    p = len(chain.bias)
    calls = {
        "Gibbs sites (stirring)": changes["site_updates"] / n,
        "cells of a line (proposals)": tries + iterations * edges,
        "growth along a line (decisions)": decisions,
        "following a pair's move": flips + redrawn,
        "following a bias's move": iterations * p * redrawn / max(1.0, float(both.sum())),
    }
    result = {name: unit[name] * calls[name] / total for name in unit}
    result["the rest (modes, random numbers, memory)"] = 1.0 - sum(result.values())
    return result | {"particles": n, "ms_per_iteration": 1000 * total / iterations}


def main(arguments: argparse.Namespace) -> None:
    def stored(case: str, compute: Any) -> Any:
        return kept_result("kernel", case, (lambda: None) if arguments.stored else compute, arguments.fresh)

    found = stored("sweeps", sweeps)
    if found:
        rows = [[name, value, value / found["kernel"]] for name, value in found.items()]
        print(f"Gibbs updates, {SIDE} x {SIDE} lattice, {PARTICLES} particles\n")
        print(table_of(["method", "ns per site update", "times the kernel"], rows) + "\n")
    found = stored("shares", shares)
    if found:
        rows = [
            [name, value] for name, value in found.items() if name not in ("particles", "ms_per_iteration")
        ]
        print(table_of(["part of a particle chain (lattice, N = 100)", "share of time (estimate)"], rows))
