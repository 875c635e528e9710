"""Accuracy: the particle engine against exact references, after subtracting Monte Carlo error."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, run_engine, summarise, table_of
from benchmarks.problems import load, reference_names
from benchmarks.references import DIRECTORY
from edgewise.draws import Draws

CHAINS = 2
# A run ends when its own error in the inclusion probabilities is this small, or at the limit.
TARGET_ERROR = 0.005
CPU_LIMIT = 200.0
LIMITS = {"pip_rms": 0.01, "pip_max": 0.04, "mean": 0.05, "sd": 0.03, "p0": 0.02, "sigma0": 0.02}


def measure(name: str, settings: dict[str, Any] | None = None, limit: float = CPU_LIMIT) -> dict[str, Any]:
    """Run two particle chains and compare them with the reference."""
    problem = load(name)
    count = problem.features.n_cliques
    chains: list[Draws] = []
    engines, seconds = [], 0.0
    for chain in range(CHAINS):
        draws, costs, engine = run_engine(
            problem, "particle", 100 + chain, iterations=1000, settings=settings
        )
        chains.append(draws)
        engines.append(engine)
        seconds += costs["run"]
    import time

    while True:
        summary = summarise(chains, count)
        error = max(summary["rms_error"], summary["rms_half_difference"])
        if error < TARGET_ERROR or seconds > limit:
            break
        begin = time.process_time()
        for c, engine in enumerate(engines):
            chains[c] = Draws.concatenate([chains[c], engine.advance(1000)])
        seconds += time.process_time() - begin
    counters = engines[0].counters()
    result = compare(json.loads((DIRECTORY / f"{name}.json").read_text()), summary)
    return result | {
        "cpu_seconds": round(seconds, 1),
        "ess_per_second": summary["median_ess"] / seconds if summary["median_ess"] else None,
        "particles": counters["particles"],
        "noise": counters["noise"],
        "weight_ess": counters["weight_ess"],
        "draws": summary["draws"],
    }


def compare(reference: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Differences from a reference beyond the Monte Carlo errors of both."""

    def array(summary: dict[str, Any], key: str) -> np.ndarray:
        return np.array([math.nan if v is None else v for v in summary[key]], float)

    difference = array(found, "pip") - array(reference, "pip")
    variance = array(found, "pip_error") ** 2 + array(reference, "pip_error") ** 2
    active = array(reference, "pip") >= 0.5
    sd = array(reference, "sd")[active]
    shift = (array(found, "mean") - array(reference, "mean"))[active] / sd
    shift_variance = (array(found, "mean_error") ** 2 + array(reference, "mean_error") ** 2)[active] / sd**2
    ratio = np.log(array(found, "sd")[active] / sd)
    ratio_variance = (array(found, "sd_error") ** 2 + array(reference, "sd_error") ** 2)[active] / sd**2
    result = {
        "pip_rms": beyond(np.mean(difference**2), np.mean(variance)),
        "pip_rms_raw": math.sqrt(np.mean(difference**2)),
        "pip_rms_error": math.sqrt(np.mean(variance)),
        "pip_max": float(np.max(np.maximum(0.0, abs(difference) - 2 * np.sqrt(variance)))),
        "pip_max_raw": float(np.max(abs(difference))),
        "mean": beyond(np.mean(shift**2), np.mean(shift_variance)),
        "mean_raw": math.sqrt(np.mean(shift**2)),
        # The ratio of the sds is one number, averaged over the edges, in which a common heating shows.
        "sd": max(0.0, abs(ratio.mean()) - math.sqrt(ratio_variance.mean() / len(ratio))),
        "sd_raw": float(ratio.mean()),
    }
    for key in ("p0", "sigma0", "edges"):
        shift = found[key][0] / reference[key][0] - 1
        error = math.hypot(found[key][1], reference[key][1]) / reference[key][0]
        result[key] = max(0.0, abs(shift) - error)
        result[f"{key}_raw"] = shift
    return {key: float(f"{value:.4g}") for key, value in result.items()}


def beyond(total: float, noise: float) -> float:
    return math.sqrt(max(0.0, total - noise))


def main(arguments: argparse.Namespace) -> None:
    rows = []
    worst = dict.fromkeys(LIMITS, 0.0)
    for name in reference_names(arguments.stored):
        if arguments.only not in name or not (DIRECTORY / f"{name}.json").exists():
            continue
        result = kept_result(
            "accuracy", name, lambda name=name: None if arguments.stored else measure(name), arguments.fresh
        )
        if result is None:
            continue
        for key in LIMITS:
            worst[key] = max(worst[key], result[key])
        rows.append(
            [name]
            + [result[key] for key in LIMITS]
            + [result[key] for key in ("pip_rms_raw", "pip_rms_error", "edges_raw", "ess_per_second")]
            + [int(result["particles"])]
        )
        print(
            f"{name}: pip rms {result['pip_rms']:.4f} max {result['pip_max']:.3f} mean {result['mean']:.3f} "
            f"sd {result['sd_raw']:+.3f} p0 {result['p0_raw']:+.3f} sigma0 {result['sigma0_raw']:+.3f} "
            f"({result['cpu_seconds']} CPU s, n {result['particles']:.0f})",
            flush=True,
        )
    rows.append(["worst", *worst.values(), "", "", "", "", ""])
    rows.append(["limit", *LIMITS.values(), "", "", "", "", ""])
    header = ["data", "PIP rms", "PIP max", "mean (sd)", "sd ratio - 1", "p0", "sigma0"]
    header += ["raw PIP rms", "Monte Carlo error", "raw E difference", "ESS/CPU s", "particles"]
    print("\n" + table_of(header, rows))
