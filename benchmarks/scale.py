"""Many variables: random graphs of degree 3 with 1,000 rows, beside the node-wise lasso.

`python -m benchmarks.scale 1000 10000 --seconds 600` fits each size in a process of its own, for so many CPU
seconds of two chains, stores what it measured under ``results/scale`` and prints the table. What is stored is
not computed again (``--fresh`` does); ``--stored`` only prints.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import table_of

RESULTS = Path(__file__).parent / "results" / "scale"
ROWS, SWEEPS, LASSO_NODES = 1000, 200, 500


def world(p: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a random graph with 1.5 p edges, J ~ N(0, 0.5^2), and rows drawn by Gibbs sampling."""
    from edgewise.kernels.gibbs import listed_sweep

    rng = np.random.default_rng(seed)
    keys: set[tuple[int, int]] = set()
    while len(keys) < round(1.5 * p):
        i, j = sorted(rng.integers(p, size=2).tolist())
        if i != j:
            keys.add((i, j))
    pairs = np.array(sorted(keys), np.int64)
    coupling, bias = rng.normal(0, 0.5, len(pairs)), 2 * rng.normal(0, 0.1, p)
    for ends in pairs.T:
        np.subtract.at(bias, ends, 2 * coupling)
    both = np.concatenate(list(pairs.T))
    order = np.argsort(both, kind="stable")
    start = np.searchsorted(both[order], np.arange(p + 1))
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])[order]
    own = np.tile(np.arange(len(pairs)), 2)[order]
    X = (rng.random((p, ROWS), np.float32) < 0.5).astype(np.float32)
    lanes = rng.integers(0, 2**32, (4, ROWS), np.uint32)
    field, change = np.empty((2, ROWS), np.float32)
    for _ in range(SWEEPS):
        listed_sweep(X, lanes, start, other, own, 4 * coupling, bias, field, change)
    return pairs, np.ascontiguousarray(X.T.astype(np.uint8))


def judged(truth: np.ndarray, found: np.ndarray, probability: np.ndarray, p: int) -> dict[str, float]:
    """F1 at one half, average precision, and Brier score summed over all pairs per true edge."""
    keys = set((truth @ [p, 1]).tolist())
    hit = np.array([key in keys for key in (found @ [p, 1]).tolist()], bool)
    kept = probability >= 0.5
    right = float((hit & kept).sum())
    order = np.argsort(-probability, kind="stable")
    precision = np.cumsum(hit[order]) / np.arange(1, len(hit) + 1)
    missed = len(truth) - hit.sum()
    return {
        "f1": 2 * right / max(1.0, kept.sum() + len(truth)),
        "average_precision": float(precision[hit[order]].sum() / len(truth)),
        "brier_per_edge": float((((probability - hit) ** 2).sum() + missed) / len(truth)),
    }


def fit(p: int, seconds: float, warm_up: int) -> dict[str, Any]:
    """Two chains one after the other in this process, for about so many CPU seconds together."""
    from edgewise.data import read_data
    from edgewise.draws import Draws
    from edgewise.draws.statistics import stopping_statistics
    from edgewise.engines.choose import load_engine, resolve
    from edgewise.fitting import pose
    from edgewise.posterior.listing import variables_of

    truth, rows = world(p)
    data = read_data(rows, constant="keep")
    del rows
    problem = pose(data).problem
    kind = load_engine(resolve("particle", problem))
    found: dict[str, Any] = {"p": p, "warm_up": warm_up}
    chains, pace = [], []
    for seed in range(2):
        begun = time.process_time()
        chain = kind(problem, {"warm_up": warm_up}, np.random.SeedSequence(seed))
        if seed == 0:
            found["start_seconds"] = time.process_time() - begun
            members = chain._chain.graph.members[chain._chain.graph.listed[: chain.active()]]
            found["f1_at_start"] = judged(truth, np.asarray(members, int), np.ones(len(members)), p)["f1"]
        chain.advance(warm_up)
        warmed, pieces = time.process_time(), []
        while time.process_time() - begun < seconds / 2 or len(pieces) < 4:
            pieces.append(chain.advance(1))
        pace.append((time.process_time() - warmed) / len(pieces))
        chains.append(Draws.concatenate(pieces))
        found[f"cpu_seconds_{seed}"] = time.process_time() - begun
        found["particles"] = chain.counters()["particles"]
        del chain
    least = min(map(len, chains))
    numbers = np.unique(np.concatenate([chain.indices for chain in chains]))
    counts = [
        np.bincount(np.searchsorted(numbers, c[:least].indices), minlength=len(numbers)) for c in chains
    ]
    share = np.array(counts) / least
    pairs = variables_of(numbers.astype(np.int64), p).astype(np.int64)
    own = [
        Draws(
            c.indptr, np.searchsorted(numbers, c.indices), c.values, c.biases, c.inclusion_rate, c.slab_scale
        )
        for c in chains
    ]
    seen = stopping_statistics(own, len(numbers))
    found |= judged(truth, pairs, share.mean(axis=0), p)
    found |= {
        "draws": least,
        "seconds_per_iteration": float(np.mean(pace)),
        "chains_differ_rms": float(np.sqrt(((share[0] - share[1]) ** 2).sum() / len(truth))),
        "r_hat": float(seen.max_rhat),
        "ever_active": len(numbers),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }
    return found


def lasso(p: int) -> dict[str, Any]:
    """Node-wise lasso with EBIC; of many variables a random part of the nodes, judged on their pairs."""
    from edgewise import NodewiseLasso

    truth, rows = world(p)
    if p > 1000:
        return {}
    begun = time.process_time()
    model = NodewiseLasso().fit(rows)
    i, j = np.nonzero(np.triu(model.coupling_, 1))
    found = judged(truth, np.stack([i, j], axis=1), np.ones(len(i)), p)
    return {"f1": found["f1"], "cpu_seconds": time.process_time() - begun}


def measured(name: str, fresh: bool, stored: bool, arguments: list[str]) -> dict[str, Any]:
    """What is stored under a name, or else computed in a process of its own."""
    path = RESULTS / f"{name}.json"
    if path.exists() and not fresh:
        return json.loads(path.read_text("utf-8"))
    if stored:
        return {}
    command = [sys.executable, "-m", "benchmarks.scale", "--one", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(done.stdout.splitlines()[-1] + "\n", "utf-8")
    return json.loads(path.read_text("utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--seconds", type=float, default=600, help="CPU seconds of both chains")
    parser.add_argument("--warm-up", type=int, default=400)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--one", choices=["fit", "lasso"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        p = chosen.sizes[0]
        found = fit(p, chosen.seconds, chosen.warm_up) if chosen.one == "fit" else lasso(p)
        print(json.dumps(found))
        return
    rows = []
    for p in chosen.sizes:
        words = ["--seconds", str(chosen.seconds), "--warm-up", str(chosen.warm_up)]
        found = measured(f"fit-{p}", chosen.fresh, chosen.stored, ["fit", str(p), *words])
        beside = measured(f"lasso-{p}", chosen.fresh, chosen.stored, ["lasso", str(p)])
        if found:
            names = ("peak_mb", "start_seconds", "seconds_per_iteration", "warm_up", "draws", "r_hat")
            names += ("chains_differ_rms", "f1_at_start", "f1", "average_precision", "brier_per_edge")
            rows.append([p, *(found[name] for name in names), beside.get("f1", float("nan"))])
    header = ["p", "peak MB", "start s", "s per iteration", "warm-up", "draws", "R-hat", "chains differ, rms"]
    print(table_of([*header, "F1 at start", "F1", "average precision", "Brier", "F1 of lasso"], rows))
    if len(rows) > 1:
        large = [(row[0], row[3]) for row in rows if row[0] >= 1000]
        if len(large) > 1:
            slope = np.polyfit(*np.log(np.array(large)).T, 1)[0]
            print(f"Exponent of seconds per iteration from 1,000 variables on: {slope:.2f}")


if __name__ == "__main__":
    main()
