"""All triples of nine variables: whether the particle engine agrees with the exact one on larger cliques."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, values_of
from edgewise import MRF, exact
from edgewise.draws import Draws
from edgewise.draws.convergence import effective_draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import NormalBias, Prior

P, ROWS = 9, 1500
EXACT_DRAWS = 20_000
# Iterations of the particle engine, of which the first are left out.
LENGTH, LEFT_OUT = 12_000, 4_000
STORED = "calibration/triples"


def problem(seed: int) -> Problem:
    """Rows of a model with a third of the pairs and a tenth of the triples."""
    rng = np.random.default_rng([9, seed])
    features = Features.up_to(P, 3)
    order = (features.members >= 0).sum(axis=1)
    there = rng.random(features.n_cliques) < np.where(order == 2, 0.3, 0.1)
    model = MRF(rng.normal(0, 0.7, P), features.members[there], rng.normal(0, 0.8, there.sum()))
    rows = exact.sample(model, ROWS, rng).astype(float)
    sums = np.array([rows[:, clique[clique >= 0]].prod(axis=1).sum() for clique in features.members])
    prior = Prior(bias=NormalBias(2.0)).resolve(features)
    return Problem(features, Statistics(float(ROWS), rows.sum(axis=0), sums), prior)


def chain(name: str, seed: int, length: int, left_out: int) -> tuple[Draws, Draws, float, float]:
    """Draws of the two halves of what is kept, CPU milliseconds of an iteration, and particles."""
    engine = load_engine(name)(problem(seed), None, np.random.SeedSequence([seed, 7]))
    engine.advance(engine.warm_up)
    engine.advance(left_out)
    started = time.process_time()
    first, second = engine.advance(length // 2), engine.advance(length // 2)
    each = 1000 * (time.process_time() - started) / (2 * (length // 2))
    particles = engine.state().get("w", np.zeros(0))
    return first, second, each, float(len(particles))


def compare(seed: int) -> dict[str, Any]:
    """Probabilities and means of both engines, with their Monte Carlo errors."""
    found: dict[str, Any] = {}
    shares, errors = [], []
    for name, length, left_out in (("exact", EXACT_DRAWS, 2000), ("particle", LENGTH - LEFT_OUT, LEFT_OUT)):
        first, second, each, particles = chain(name, seed, length, left_out)
        values = values_of([Draws.concatenate([first, second])], problem(seed).features.n_cliques)
        on = (values != 0).astype(float)
        share = on.mean(axis=(1, 2))
        shares.append(share)
        errors.append(np.sqrt(share * (1 - share) / np.maximum(effective_draws(on), 1.0)))
        found[name] = {
            "milliseconds": each,
            "particles": particles,
            "edges": [float(first.n_edges.mean()), float(second.n_edges.mean())],
        }
    error = np.hypot(*errors)
    uncertain = error > 0
    z = (shares[1] - shares[0])[uncertain] / error[uncertain]
    return found | {
        "rms": float(math.sqrt(np.mean((shares[1] - shares[0]) ** 2))),
        "error": float(math.sqrt(np.mean(error**2))),
        "largest": float(np.abs(shares[1] - shares[0]).max()),
        "z_rms": float(math.sqrt(np.mean(z**2))),
        "z_mean": float(z.mean()),
    }


def grow(end: float) -> bool:
    """Two models."""
    for seed in (1, 2):
        if (
            kept_result(
                STORED, f"s{seed}", lambda seed=seed: compare(seed) if time.monotonic() < end else None
            )
            is None
        ):
            return False
    return True


def results() -> list[dict[str, Any]]:
    """What is stored."""
    return [found for seed in (1, 2) if (found := kept_result(STORED, f"s{seed}", lambda: None))]
