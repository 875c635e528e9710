"""Simulation-based calibration with a fifth of the cells blank, imputed cells included.

Models are drawn from the prior and rows from them. Ranks of the parameters must be uniform, indicators
calibrated, and the probabilities of the levels of blank cells reliable: the mean of (truth - probability) is
zero, plain and weighted with the probability. A table whose blanks are taken for their columns' means must be
noticed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from worlds import World

from edgewise.blanks import statistics_of
from edgewise.data.table import BinaryData
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem

WORLD = World(4, 40)
SHARE = 0.2
RANKS = 31
THIN = 3
LIMIT = 5e-4


def simulate(rng: np.random.Generator):
    """True values, true indicators, rows and which of their cells are blank."""
    p0, sigma0, theta, bias = WORLD.model(rng)
    energy = WORLD.states @ bias + WORLD.pairs @ theta
    weight = np.exp(energy - energy.max())
    rows = WORLD.states[rng.choice(len(weight), WORLD.rows, p=weight / weight.sum())].astype(np.uint8)
    blank = rng.random(rows.shape) < SHARE
    told = ~blank.all(axis=1)
    values = {"p0": p0, "sigma0": sigma0, "edges": (theta != 0).sum(), "coupling": theta[0], "bias": bias[0]}
    return values, theta != 0, rows[told], blank[told]


def calibrate(name: str, rounds: int, settings: dict, drawn: bool = True) -> dict[str, float]:
    """P-values of uniform ranks, and of the z-scores of the indicators and the blank cells.

    Negative control: the blanks are not `drawn`.
    """
    rng = np.random.default_rng(13)
    prior = WORLD.prior().resolve(WORLD.features)
    ranks: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for seed in range(rounds):
        truth, active, rows, blank = simulate(rng)
        data = BinaryData(
            names=tuple("abcd"), n_rows=len(rows), weights=None, levels=((0, 1),) * 4,
            packed=np.packbits(np.where(blank, 0, rows).T, axis=1), unknown=np.packbits(blank.T, axis=1),
        )  # fmt: skip
        problem = Problem(WORLD.features, statistics_of(data, WORLD.features), prior, data if drawn else None)
        engine = load_engine(name)(problem, settings, np.random.SeedSequence([7, seed]))
        engine.advance(engine.warm_up)
        draws = engine.advance(RANKS * THIN, thin=THIN)
        series = {
            "p0": draws.inclusion_rate, "sigma0": draws.slab_scale, "edges": draws.n_edges,
            "coupling": draws.column(0), "bias": draws.biases[:, 0],
        }  # fmt: skip
        for key, values in series.items():
            below, equal = np.sum(values < truth[key]), np.sum(values == truth[key])
            rank = (below + rng.integers(0, equal + 1) + rng.random()) / (RANKS + 1)
            ranks.setdefault(key, []).append(rank)
        share = np.mean([draws.column(a) != 0 for a in range(len(active))], axis=1)
        put(errors, "indicators", active, share)
        if drawn and problem.blanks is not None:
            patterns = problem.blanks
            found = engine._arrays["blanks.tracks"][0, :, 1] / engine._arrays["blanks.ticks"][0]
            size = patterns.n_blanks[patterns.pattern]
            row = np.repeat(patterns.rows, size)
            cell = np.concatenate(
                [np.arange(patterns.start[g], patterns.start[g + 1]) for g in patterns.pattern]
            )
            put(errors, "cells", rows[row, patterns.variables[cell]], found[cell])
    result = {key: float(stats.kstest(values, "uniform").pvalue) for key, values in ranks.items()}
    for key, values in errors.items():
        z = np.mean(values) / np.std(values, ddof=1) * math.sqrt(len(values))
        result[key] = float(2 * stats.norm.sf(abs(z)))
    return result


def put(errors: dict[str, list[float]], name: str, truth: np.ndarray, chance: np.ndarray) -> None:
    """Mean error of some probabilities, plain and weighted with them."""
    errors.setdefault(name, []).append(float(np.mean(truth - chance)))
    errors.setdefault(f"weighted {name}", []).append(float(np.mean((truth - chance) * chance)))


def test_exact_engine_is_calibrated():
    found = calibrate("exact", 300, {"warm_up": 60})
    assert min(found.values()) > LIMIT, found


@pytest.mark.slow
def test_particle_engine_is_calibrated():
    found = calibrate("particle", 300, {"warm_up": 60, "particles": 384})
    assert min(found.values()) > LIMIT, found


def test_blanks_taken_for_means_are_noticed():
    found = calibrate("exact", 300, {"warm_up": 60}, drawn=False)
    assert min(found.values()) < LIMIT, found
