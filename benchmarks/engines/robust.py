"""Robustness: hard real data from empty and random starts; no run-away graphs, no NaN, no collapse."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import compile_kernels, kept_result, r_hat_share, table_of, values_of
from benchmarks.problems import LARGE, has_real_data, load
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine

STARTS = ("empty", "random")
CPU_SECONDS = 50.0
# Of 20 draws each, however slow.
FEWEST_BLOCKS = 25


def measure(name: str) -> dict[str, Any]:
    problem = load(name)
    compile_kernels("particle")
    chains, weights, finite, biggest = [], [], True, 0.0
    for number, start in enumerate(STARTS):
        begin = time.process_time()
        engine = load_engine("particle")(problem, None, np.random.SeedSequence([5, number]), start)
        engine.advance(engine.warm_up)
        pieces = []
        while time.process_time() - begin < CPU_SECONDS or len(pieces) < FEWEST_BLOCKS:
            pieces.append(engine.advance(20))
        draws = Draws.concatenate(pieces)
        finite &= bool(np.isfinite(draws.values).all() and np.isfinite(draws.biases).all())
        biggest = max(biggest, float(np.max(np.abs(draws.values), initial=0.0)))
        counters = engine.counters()
        weights.append(counters["weight_ess"])
        chains.append(draws)
        print(
            f"  {name} from {start}: E {draws.n_edges[:5].mean():.0f} -> {draws.n_edges[-5:].mean():.0f}, "
            f"{len(draws)} draws, n {counters['particles']:.0f}, weight ESS {counters['weight_ess']:.2f}",
            flush=True,
        )
    halves = [chain[len(chain) // 2 :] for chain in chains]
    values = values_of(halves, problem.features.n_cliques)
    share, quantile, count = r_hat_share((values != 0).astype(float), 1.1)
    return {
        "variables": problem.features.n_variables,
        "rows": problem.statistics.n_rows,
        "edges": [round(float(chain.n_edges.mean()), 1) for chain in halves],
        "finite": finite,
        "largest": biggest,
        "weight_ess": min(weights),
        "uncertain": count,
        "share_below_1.1": share,
        "r_hat_95": quantile,
        "draws": int(values.shape[2]),
    }


def main(arguments: argparse.Namespace) -> None:
    rows = []
    for name in LARGE if arguments.stored or has_real_data() else ():
        if arguments.only not in name:
            continue
        compute = (lambda: None) if arguments.stored else lambda name=name: measure(name)
        found = kept_result("robust", name, compute, arguments.fresh)
        if found:
            edges = " / ".join(f"{value:.0f}" for value in found["edges"])
            rows.append(
                [
                    *(name, found["variables"], found["rows"], edges, "yes" if found["finite"] else "NO"),
                    *(found["largest"], found["weight_ess"], found["uncertain"], found["share_below_1.1"]),
                ]
            )
    header = ["data", "p", "N", "E from " + " / ".join(STARTS), "finite", "largest coupling"]
    print(table_of([*header, "weight ESS", "uncertain edges", "share with R-hat < 1.1"], rows))
