"""Pictures of the calibration: ranks with simultaneous bands, and reliability."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from benchmarks.calibration.worlds import DRAWS, KEPT, METHODS, QUANTITIES, World

COLOURS = dict(zip(METHODS, ("#1b6ca8", "#2a9d5c", "#d1495b")))
BINS = 10
Found = Mapping[tuple[World, str], Mapping[str, np.ndarray]]


def distance(ranks: np.ndarray) -> np.ndarray:
    """Share of the ranks up to each possible one, less what it is when all are equally likely."""
    counts = np.apply_along_axis(np.bincount, -1, ranks, minlength=KEPT + 1)
    return counts.cumsum(axis=-1) / ranks.shape[-1] - np.arange(1, KEPT + 2) / (KEPT + 1)


def band(count: int, share: float = 0.95, samples: int = 4000) -> np.ndarray:
    """Half width at each rank of a band that holds the whole curve of uniform ranks with this probability.

    The band has everywhere the same height in standard deviations, which is found by simulation.
    """
    rng = np.random.default_rng(0)
    expected = np.arange(1, KEPT + 2) / (KEPT + 1)
    deviation = np.sqrt(expected * (1 - expected) / count)
    curves = np.abs(distance(rng.integers(0, KEPT + 1, (samples, count))))
    heights = (curves[:, :-1] / deviation[:-1]).max(axis=1)
    return np.quantile(heights, share) * deviation


def outside(ranks: np.ndarray) -> bool:
    """Whether the curve of ranks leaves the simultaneous band."""
    return bool(np.any(np.abs(distance(ranks))[:-1] > band(len(ranks))[:-1]))


def reliability(found: Mapping[str, np.ndarray]) -> list[tuple[float, int, int]]:
    """In each tenth of the stated probabilities: their mean, edges that are there, edges in all."""
    pip, there = found["active"].ravel() / DRAWS, found["there"].ravel()
    tenth = np.minimum((pip * BINS).astype(int), BINS - 1)
    return [
        (
            float(pip[tenth == b].mean()) if (tenth == b).any() else np.nan,
            there[tenth == b].sum(),
            (tenth == b).sum(),
        )
        for b in range(BINS)
    ]


def interval(hits: float, count: float) -> tuple[float, float]:
    """95 % interval of a share (Jeffreys)."""
    low, high = stats.beta.ppf([0.025, 0.975], hits + 0.5, count - hits + 0.5)
    return float(low), float(high)


def draw_ranks(found: Found, worlds: tuple[World, ...], path: Path) -> None:
    """Curves of ranks: one row for each world, one column for each quantity."""
    figure, axes = plt.subplots(
        len(worlds),
        len(QUANTITIES),
        figsize=(12, 1.75 * len(worlds)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    places = np.arange(1, KEPT + 2) / (KEPT + 1)
    for row, world in zip(axes, worlds):
        count = min(len(found[world, method]["ranks"]) for method in METHODS if (world, method) in found)
        height = band(count)
        for k, ax in enumerate(row):
            ax.fill_between(places, -height, height, color="0.88", lw=0)
            for method in METHODS:
                if (world, method) in found:
                    ranks = found[world, method]["ranks"][:count, k]
                    ax.plot(places, distance(ranks), color=COLOURS[method], lw=1.1, label=method)
            ax.set_ylim(-0.25, 0.25)
            ax.tick_params(labelsize=7)
            if world is worlds[0]:
                ax.set_title(QUANTITIES[k], fontsize=9)
        row[0].set_ylabel(world.title, fontsize=8)
    _finish(figure, axes[0, 0], "rank of the true value among the draws", path)


def draw_reliability(found: Found, worlds: tuple[World, ...], path: Path) -> None:
    """Edges that are there against the probability that was stated."""
    figure, axes = plt.subplots(1, len(worlds), figsize=(12, 2.9), sharex=True, sharey=True, squeeze=False)
    for ax, world in zip(axes[0], worlds):
        ax.plot([0, 1], [0, 1], color="0.7", lw=0.8)
        for shift, method in zip((-0.008, 0.0, 0.008), METHODS):
            if (world, method) not in found:
                continue
            cells = [cell for cell in reliability(found[world, method]) if cell[2] >= 20]
            stated, hits, count = (np.array(column, float) for column in zip(*cells))
            ends = np.array([interval(h, c) for h, c in zip(hits, count)])
            ax.vlines(stated + shift, ends[:, 0], ends[:, 1], color=COLOURS[method], lw=1)
            ax.plot(stated + shift, hits / count, "o-", color=COLOURS[method], ms=3, lw=1, label=method)
        ax.set_title(world.title, fontsize=9)
        ax.tick_params(labelsize=7)
    axes[0, 0].set_ylabel("share that is there", fontsize=8)
    _finish(figure, axes[0, 0], "stated probability of an edge", path)


def _finish(figure: Any, first: Any, label: str, path: Path) -> None:
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=3, fontsize=8, frameon=False)
    figure.supxlabel(label, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, dpi=75, metadata={"Software": None})
    plt.close(figure)
