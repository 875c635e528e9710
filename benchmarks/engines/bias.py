"""Bias against the budget of particles: a picture (docs/images/bias.png)."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.chains_of_draws import kept_result, table_of
from benchmarks.engines.accuracy import measure
from benchmarks.references import DIRECTORY

BUDGETS = (32, 64, 128, 256, 512, 1024)
PROBLEMS = ("block_n100_s1", "block_n1000_s1")
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "bias.png"


def main(arguments: argparse.Namespace) -> None:
    rows, lines = [], {}
    for name in PROBLEMS:
        if not (DIRECTORY / f"{name}.json").exists():
            continue
        for n in BUDGETS:
            case = f"{name}_n{n}"
            compute = (
                (lambda name=name, n=n: measure(name, {"particles": n}, 12.0))
                if (not arguments.stored and arguments.only in case)
                else (lambda: None)
            )
            found = kept_result("bias", case, compute, arguments.fresh and arguments.only in case)
            if found:
                rows.append(
                    [name, n, found["noise"], found["pip_rms"], found["pip_rms_error"], found["edges_raw"]]
                )
                lines.setdefault(name, []).append((n, found["pip_rms"], found["pip_rms_error"]))
                print(f"{case}: bias {found['pip_rms']:.4f}, E {found['edges_raw']:+.3f}", flush=True)
    header = [
        "data",
        "particles",
        "mean noise variance",
        "PIP bias (rms)",
        "Monte Carlo error",
        "raw E difference",
    ]
    print("\n" + table_of(header, rows))
    if lines:
        draw(lines)


def draw(lines: dict[str, list[tuple[int, float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for name, points in lines.items():
        n, bias, error = zip(*points)
        rows = name.split("_")[1][1:]
        (line,) = axes.loglog(n, [max(b, 5e-4) for b in bias], "o-", label=f"block data, N = {rows}")
        axes.loglog(n, error, ":", color=line.get_color(), label="its Monte Carlo error")
    axes.axhline(0.01, color="0.6", linewidth=0.8)
    axes.set_xlabel("particles")
    axes.set_ylabel("rms bias of inclusion probabilities")
    axes.legend(frameon=False, fontsize=8)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)
