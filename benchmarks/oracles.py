"""What each way to decide costs, and how far off the surrogate is, against rows and variables.

    python -m benchmarks.oracles [growth] [grid] [--stored] [--fresh]   # draws docs/images/oracles.png

`growth`: lattices of 7 x 7 with 1,000 to 1,000,000 rows, decided by elimination: CPU milliseconds per
effective draw of the median uncertain indicator, and the posterior sd of strong couplings times the root of
N, relative to 10,000 rows. `grid`: square lattices with several numbers of rows, by each engine: the same
cost, for the slowest indicator too, and for the surrogate its own measured error beside the root mean square
distance of its inclusion probabilities from the exact engine's. Warm-up is left out of the costs. Results
are stored, and computed once.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
from benchmarks.mixing import lattice
from edgewise import SpikeSlabMRF
from edgewise.draws.convergence import indicator_ess
from edgewise.run.progress import View

DRAWS, SEED = 600, 11
GROWTH = (1000, 10_000, 100_000, 1_000_000)
STRONG = 0.5
GRID = [(side, rows) for side in (5, 7, 10) for rows in (100, 1000, 10_000)]
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "oracles.png"


def measure(side: int, rows: int, engine: str) -> dict[str, Any]:
    """One fit of so many draws of each chain, on one thread."""
    drawing: list[float] = []

    def watch(view: View) -> None:
        if view.phase == "sampling":
            drawing.append(time.process_time())

    model = SpikeSlabMRF(
        engine=engine, random_state=1, progress=False, callback=watch, n_jobs=1,
        min_draws=DRAWS, max_draws=DRAWS, target_ess=None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.fit(lattice(side, rows, SEED)).posterior_
    seconds = time.process_time() - drawing[0]
    active = np.zeros((posterior.n_cliques, len(posterior.draws), DRAWS), np.bool_)
    for c, part in enumerate(posterior.draws):
        active[part.indices, c, np.repeat(np.arange(len(part)), np.diff(part.indptr))] = True
    share = active.mean(axis=(1, 2))
    open_ = (share > 0.05) & (share < 0.95)
    speed = indicator_ess(active[open_].astype(float)) / seconds if open_.any() else np.full(1, math.nan)
    mean, sd = posterior.edge_values("mean"), posterior.edge_values("sd")
    found = {
        "median": 1e3 / float(np.median(speed)),
        "slowest": 1e3 / float(speed.min()),
        "inclusion": [round(float(value), 4) for value in posterior.edge_values("inclusion")],
        "sds": {str(k): float(sd[k]) for k in np.flatnonzero((np.abs(mean) > STRONG) & (share > 0.999))},
    }
    if posterior._approximation is not None:
        found["measured"] = posterior._approximation.typical
    return found


def kept(side: int, rows: int, engine: str, chosen: argparse.Namespace) -> dict[str, Any] | None:
    return kept_result(
        "oracles",
        f"{side}x{side}_N{rows}_{engine}",
        lambda: None if chosen.stored else measure(side, rows, engine),
        fresh=chosen.fresh and not chosen.stored,
    )


def growth(chosen: argparse.Namespace) -> None:
    found = {rows: kept(7, rows, "exact", chosen) for rows in GROWTH}
    present = {rows: part for rows, part in found.items() if part}
    lines, base = [], present.get(10_000)
    for rows, part in present.items():
        common = sorted(set(part["sds"]) & set(base["sds"])) if base else []
        ratio = [part["sds"][k] * math.sqrt(rows) / (base["sds"][k] * 100.0) for k in common]
        lines.append([rows, part["median"], np.median(ratio) if ratio else math.nan, len(ratio)])
    print(table_of(["rows", "ms per effective draw, median", "sd x root N, relative", "couplings"], lines))
    if len(lines) > 1:
        x, y = np.log([line[0] for line in lines]), np.log([line[1] for line in lines])
        print(f"Exponent of the cost: {np.polyfit(x, y, 1)[0]:.2f}")


def grid(chosen: argparse.Namespace) -> None:
    lines = []
    for side, rows in GRID:
        sure = kept(side, rows, "exact", chosen) if rows >= 1000 else None
        parts = {"exact": sure, "surrogate": kept(side, rows, "surrogate", chosen) if rows >= 1000 else None}
        if rows <= 1000:
            parts["particle"] = kept(side, rows, "particle", chosen)
        for engine, part in parts.items():
            if not part:
                continue
            apart = math.nan
            if engine != "exact" and sure:
                apart = float(
                    np.sqrt(np.mean((np.array(part["inclusion"]) - np.array(sure["inclusion"])) ** 2))
                )
            lines.append(
                [
                    side * side,
                    rows,
                    engine,
                    part["median"],
                    part["slowest"],
                    part.get("measured", math.nan),
                    apart,
                ]
            )
    header = ["variables", "rows", "engine", "ms per effective draw, median", "slowest", "measured error"]
    print(table_of([*header, "PIP apart from exact, rms"], lines))
    if lines and not chosen.stored:
        draw(lines)


def draw(lines: list[list[Any]]) -> None:
    """The picture: cost against variables and rows, and the surrogate's error."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shades = {"exact": "#2b6cb0", "surrogate": "#c05621", "particle": "#6b46c1"}
    marks = {100: "o", 1000: "s", 10_000: "^"}
    figure, (cost, error) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")

    def plot(ax: Any, engine: str, rows: int, column: int, style: str, told: str) -> None:
        part = [line for line in lines if line[2] == engine and line[1] == rows]
        if part:
            label = f"{engine}, N = {rows:,}{told}"
            ax.plot([x[0] for x in part], [x[column] for x in part], style, color=shades[engine], label=label)

    for engine in shades:
        for rows, mark in marks.items():
            plot(cost, engine, rows, 4, f"{mark}-", "")
    for rows, mark in marks.items():
        plot(error, "surrogate", rows, 5, f"{mark}-", ": measured")
        plot(error, "surrogate", rows, 6, f"{mark}:", ": beside exact")
    cost.set(xscale="log", yscale="log", title="What an independent draw costs")
    cost.set_ylabel("CPU ms per effective draw, slowest edge")
    error.set(ylim=(0, None), title="The surrogate alone", ylabel="error of a probability (rms)")
    sides = sorted({line[0] for line in lines})
    cost.set_xticks(sides, labels=[str(side) for side in sides])
    cost.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    for ax in (cost, error):
        ax.set_xlabel("variables of a square lattice")
        ax.legend(fontsize="small", frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


def main(chosen: argparse.Namespace | None = None) -> None:
    if chosen is None:
        parser = argparse.ArgumentParser(
            prog="python -m benchmarks.oracles", description=__doc__.split("\n")[0]
        )
        parser.add_argument("parts", nargs="*", default=["growth", "grid"])
        parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
        parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
        chosen = parser.parse_args()
    wanted = getattr(chosen, "parts", ["growth", "grid"])
    if "growth" in wanted:
        growth(chosen)
    if "grid" in wanted:
        grid(chosen)


if __name__ == "__main__":
    main()
