"""What a benchmark wants to know of draws: estimates with their Monte Carlo errors, and speed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.draws import Draws
from edgewise.draws.convergence import effective_draws, indicator_ess, indicator_r_hat, split_chains
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem

RESULTS = Path(__file__).parent / "results"


def run_engine(
    problem: Problem,
    name: str,
    seed: int,
    *,
    iterations: int | None = None,
    cpu_seconds: float | None = None,
    start: str = "default",
    settings: Mapping[str, Any] | None = None,
    block: int = 100,
    thin: int = 1,
) -> tuple[Draws, dict[str, float], Any]:
    """Warm up and run one chain; returns draws, costs and the engine.

    Costs are CPU seconds of warm-up (start included) and of the run after it, and site updates.
    """
    compile_kernels(name)
    begin = time.process_time()
    engine = load_engine(name)(problem, settings, np.random.SeedSequence(seed), start)
    engine.advance(engine.warm_up)
    middle = time.process_time()
    pieces: list[Draws] = []
    done = 0
    while (iterations is None or done < iterations) and (
        cpu_seconds is None or time.process_time() - middle < cpu_seconds
    ):
        step = block if iterations is None else min(block, iterations - done)
        pieces.append(engine.advance(step, thin))
        done += step
    costs = {
        "warm_up": middle - begin,
        "run": time.process_time() - middle,
        "iterations": float(done),
        "site_updates": engine.counters().get("site_updates", 0.0),
    }
    return Draws.concatenate(pieces), costs, engine


_compiled: set[str] = set()


def compile_kernels(name: str) -> None:
    """Run an engine once on a toy, so that compiling or loading the kernels is not timed."""
    if name in _compiled:
        return
    from edgewise.features import Features, Statistics
    from edgewise.priors import Prior

    features = Features.pairs(3)
    statistics = Statistics(20.0, np.array([9.0, 11.0, 10.0]), np.array([6.0, 5.0, 5.0]))
    engine = load_engine(name)(
        Problem(features, statistics, Prior().resolve(features)), {"warm_up": 50}, np.random.SeedSequence(0)
    )
    engine.advance(50)
    engine.advance(20)
    _compiled.add(name)


def values_of(chains: Sequence[Draws], n_cliques: int) -> np.ndarray:
    """Dense parameters (cliques, chains, draws), zero where absent."""
    length = min(len(chain) for chain in chains)
    dense = np.zeros((n_cliques, len(chains), length))
    for c, chain in enumerate(chains):
        kept = chain[:length]
        draw = np.repeat(np.arange(length), kept.n_edges)
        dense[kept.indices, c, draw] = kept.values
    return dense


def summarise(chains: Sequence[Draws], n_cliques: int) -> dict[str, Any]:
    """Estimates and their Monte Carlo errors from chains of equal length."""
    values = values_of(chains, n_cliques)
    active = (values != 0).astype(float)
    share = active.mean(axis=(1, 2))
    total = values.shape[1] * values.shape[2]
    ess = np.minimum(indicator_ess(active), total)
    # An indicator that never moved is uncertain by about one visit per effective draw.
    error = np.sqrt(np.maximum(share * (1 - share), 0.5 / total) / ess)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.mean(axis=(1, 2)) / share
        sd = np.sqrt((values**2).mean(axis=(1, 2)) / share - mean**2)
    deviation = np.where(active > 0, values - np.nan_to_num(mean)[:, None, None], 0.0)
    mean_error = _ratio_error(deviation, share)
    square = np.where(active > 0, deviation**2 - np.nan_to_num(sd)[:, None, None] ** 2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd_error = _ratio_error(square, share) / (2 * sd)
    scalars = np.stack(
        [
            np.stack([series(chain)[: values.shape[2]] for chain in chains])
            for series in (
                lambda chain: chain.inclusion_rate,
                lambda chain: chain.slab_scale,
                lambda chain: chain.n_edges.astype(float),
            )
        ]
    )
    scalar_error = scalars.std(axis=(1, 2)) / np.sqrt(effective_draws(split_chains(scalars)))
    halves = np.zeros(n_cliques)
    if len(chains) > 1:
        halves = active.mean(axis=2).std(axis=1, ddof=1) / math.sqrt(len(chains))
    summary: dict[str, Any] = {
        "pip": share,
        "pip_error": error,
        "mean": mean,
        "mean_error": mean_error,
        "sd": sd,
        "sd_error": sd_error,
    }
    summary = {name: [_short(value) for value in array] for name, array in summary.items()}
    for k, name in enumerate(("p0", "sigma0", "edges")):
        summary[name] = [_short(scalars[k].mean()), _short(scalar_error[k])]
    summary["rms_error"] = _short(math.sqrt(np.mean(error**2)))
    summary["rms_half_difference"] = _short(math.sqrt(np.mean(halves**2)))
    summary["draws"] = [values.shape[1], values.shape[2]]
    summary["median_ess"] = _short(median_ess(active))
    return summary


def _ratio_error(series: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Error of the mean of a quantity over the draws in which its clique is active."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return series.std(axis=(1, 2)) / share / np.sqrt(effective_draws(split_chains(series)))


def median_ess(active: np.ndarray) -> float:
    """Median effective draws of the indicators with inclusion probability in [0.05, 0.95]."""
    share = active.mean(axis=(1, 2))
    uncertain = (share >= 0.05) & (share <= 0.95)
    return float(np.median(indicator_ess(active[uncertain]))) if uncertain.any() else math.nan


def r_hat_share(active: np.ndarray, limit: float) -> tuple[float, float, int]:
    """Share of uncertain edges below the limit, the 95 % quantile of R-hat, and how many there are."""
    share = active.mean(axis=(1, 2))
    uncertain = (share >= 0.05) & (share <= 0.95)
    if not uncertain.any():
        return 1.0, 1.0, 0
    values = indicator_r_hat(active[uncertain])
    return float(np.mean(values < limit)), float(np.quantile(values, 0.95)), int(uncertain.sum())


def _short(value: float) -> float | None:
    return None if not math.isfinite(value) else float(f"{value:.5g}")


def kept_result(table: str, case: str, compute: Any, fresh: bool = False) -> dict[str, Any]:
    """The stored result of a case, computed and stored when there is none."""
    path = RESULTS / table / f"{case}.json"
    if path.exists() and not fresh:
        return json.loads(path.read_text())
    result = compute()
    if result is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, separators=(",", ":")) + "\n")
    return result


def table_of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(value) for value in row) + " |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            return "-"
        if value and abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.3g}" if abs(value) >= 1 or value == 0 else f"{value:.4f}".rstrip("0")
    return str(value)
