"""Made-up posteriors for the tests of everything that reads one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.draws import Draws
from edgewise.features import Features, Statistics
from edgewise.posterior import Posterior
from edgewise.priors import Prior


def sparse_draws(
    coupling: np.ndarray,
    biases: np.ndarray,
    inclusion_rate: np.ndarray | None = None,
    slab_scale: np.ndarray | None = None,
) -> Draws:
    """Draws of one chain from a dense array (draws, M), zero where a clique is absent."""
    row, column = np.nonzero(coupling)
    count = len(coupling)
    return Draws(
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))]).astype(np.int64),
        column.astype(np.int32),
        coupling[row, column],
        np.asarray(biases, float),
        np.full(count, 0.5) if inclusion_rate is None else np.asarray(inclusion_rate, float),
        np.full(count, 1.0) if slab_scale is None else np.asarray(slab_scale, float),
    )


def fake_posterior(
    p: int = 6,
    chains: int = 4,
    draws: int = 200,
    seed: int = 0,
    *,
    order: int = 2,
    names: Sequence[str] | None = None,
    prior: Prior | None = None,
    rao_blackwell: bool = True,
    persistence: float = 0.7,
    n_rows: int = 500,
    info: dict[str, Any] | None = None,
    **other: Any,
) -> Posterior:
    """A posterior whose indicators are two-state Markov chains around random inclusion probabilities.

    Up to p = 12 about one candidate in eight is surely there, one in six is uncertain and the rest is nearly
    or surely absent; with more variables the expected number of neighbours stays the same.
    `persistence` is the autocorrelation of the indicators; `other` goes to :class:`Posterior`.
    """
    rng = np.random.default_rng(seed)
    features = Features.pairs(p) if order == 2 else Features.up_to(p, order)
    count = features.n_cliques
    kind = rng.random(count) * max(1, p / 12)
    inclusion = np.where(kind < 0.12, 1.0, np.where(kind < 0.3, rng.uniform(0.05, 0.95, count), 0.0))
    inclusion = np.where((kind >= 0.3) & (kind < 0.5), rng.uniform(0, 0.02, count), inclusion)
    centre = rng.normal(0, 1.2, count)
    made, sums, counters = [], [], []
    for _ in range(chains):
        state = rng.random(count) < inclusion
        coupling = np.zeros((draws, count))
        values = centre + 0.3 * rng.normal(size=count)
        births = deaths = 0
        for t in range(draws):
            fresh = np.where(rng.random(count) < persistence, state, rng.random(count) < inclusion)
            births += (fresh & ~state).astype(int)
            deaths += (~fresh & state).astype(int)
            state = fresh
            values = centre + 0.5 * (values - centre) + 0.25 * rng.normal(size=count)
            coupling[t] = np.where(state, values, 0.0)
        active = (coupling != 0).sum(axis=1)
        rate = rng.beta(5 + active, 5 + count - active)
        scale = np.sqrt((5 + (coupling**2).sum(axis=1) / 2) / rng.gamma(5 + active / 2))
        made.append(sparse_draws(coupling, -0.5 + 0.2 * rng.normal(size=(draws, p)), rate, scale))
        tries = rng.integers(draws // 2 + 1, 2 * draws + 2, count).astype(float)
        noisy = np.clip(
            inclusion + 0.02 * rng.normal(size=count) * np.sqrt(inclusion * (1 - inclusion)), 0, 1
        )
        sums.append(
            {"tries": tries, "inclusion": tries * noisy, "births": births * 1.0, "deaths": deaths * 1.0}
        )
        counters.append(
            {
                "iterations": 5.0 * draws,
                "birth_tries": 20.0 * draws,
                "birth_accepts": float(np.sum(births)),
                "death_tries": 10.0 * draws,
                "death_accepts": float(np.sum(deaths)),
                "weight_ess": 0.8,
                "resamplings": 3.0,
                "particles": 512.0,
            }
        )
    singles = rng.integers(1, max(2, n_rows), p).astype(float) if n_rows else np.zeros(p)
    smallest = np.array([min(singles[i] for i in features.clique(k)) for k in range(count)])
    standard_info: dict[str, Any] = {
        "engine": "particle",
        "engine_reason": "a made-up posterior",
        "settings": {"particles": 512},
        "seed": seed,
        "start": "default",
        "thin": 5,
        "warm_up": 1000,
        "stop_reason": "the target of 400 effective draws was reached",
        "interrupted": False,
        "data_digest": "0" * 64,
        "n_rows": n_rows,
        "notes": [],
        "versions": {"edgewise": "0.0", "numpy": np.__version__},
        "created": "2024-01-01T00:00:00+00:00",
        "seconds": 1.5,
    }
    return Posterior(
        made,
        features,
        [f"x{i}" for i in range(p)] if names is None else names,
        statistics=Statistics(float(n_rows), singles, np.floor(smallest * rng.random(count))),
        prior=prior,
        info=standard_info | (info or {}),
        edge_sums=sums if rao_blackwell else (),
        counters=counters,
        **other,
    )
