"""Simulation-based calibration: parameters drawn from the prior, data from them, ranks among the draws.

If an engine samples the posterior, the rank of every true value among thinned draws is uniform. Indicators
are discrete: their posterior probabilities must be calibrated, which is tested by the mean of
(truth - probability), plain and weighted with the probability itself.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, GammaSlab, NormalBias, Prior

P, M, ROWS = 3, 3, 25
PRIOR = Prior(BetaInclusion(2.0, 2.0), GammaSlab(6.0, 6.0), NormalBias(1.0))
FEATURES = Features.pairs(P)
STATES = np.array([[s >> i & 1 for i in range(P)] for s in range(2**P)], float)
PAIRS = STATES[:, FEATURES.members[:, 0]] * STATES[:, FEATURES.members[:, 1]]
RANKS = 31


def simulate(rng: np.random.Generator) -> tuple[dict[str, float], np.ndarray, Statistics]:
    """True values, true indicators and the statistics of data drawn from them."""
    p0 = rng.beta(2.0, 2.0)
    sigma0 = rng.gamma(6.0, 1 / 6.0) ** -0.5
    active = rng.random(M) < p0
    theta = np.where(active, rng.normal(0, sigma0, M), 0.0)
    bias = rng.normal(0, 1.0, P)
    energy = STATES @ bias + PAIRS @ theta
    weight = np.exp(energy - energy.max())
    counts = rng.multinomial(ROWS, weight / weight.sum())
    values = {"p0": p0, "sigma0": sigma0, "edges": active.sum(), "coupling": theta[0]}
    values |= {f"bias{i}": bias[i] for i in range(P)}
    return values, active, Statistics(float(ROWS), counts @ STATES, counts @ PAIRS)


def calibrate(name: str, rounds: int, thin: int, settings: dict, wrong: bool = False) -> dict[str, float]:
    """P-values of uniform ranks by quantity, and z-scores of the indicators."""
    rng = np.random.default_rng(11)
    prior = PRIOR.resolve(FEATURES)
    ranks: dict[str, list[float]] = {}
    indicators = []
    for seed in range(rounds):
        truth, active, statistics = simulate(rng)
        if wrong:
            statistics = Statistics(statistics.n_rows, statistics.singles, 0.7 * statistics.cliques)
        engine = load_engine(name)(
            Problem(FEATURES, statistics, prior), settings, np.random.SeedSequence([7, seed])
        )
        engine.advance(engine.warm_up)
        draws = engine.advance(RANKS * thin, thin=thin)
        series = {
            "p0": draws.inclusion_rate,
            "sigma0": draws.slab_scale,
            "edges": draws.n_edges,
            "coupling": draws.column(0),
        }
        series |= {f"bias{i}": draws.biases[:, i] for i in range(P)}
        for key, values in series.items():
            # Ties, of the edge count and of absent couplings, are broken at random.
            below, equal = np.sum(values < truth[key]), np.sum(values == truth[key])
            ranks.setdefault(key, []).append(
                (below + rng.integers(0, equal + 1) + rng.random()) / (RANKS + 1)
            )
        share = np.mean([draws.column(a) != 0 for a in range(M)], axis=1)
        indicators.append(np.stack([active - share, (active - share) * share]))
    found = {key: float(stats.kstest(values, "uniform").pvalue) for key, values in ranks.items()}
    spread = np.array(indicators).mean(axis=2)
    for k, key in enumerate(("indicators", "weighted indicators")):
        z = spread[:, k].mean() / spread[:, k].std(ddof=1) * math.sqrt(rounds)
        found[key] = float(2 * stats.norm.sf(abs(z)))
    return found


def test_exact_engine_is_calibrated():
    found = calibrate("exact", 400, 4, {"warm_up": 60})
    assert min(found.values()) > 5e-4, found


def test_shrunken_sums_are_noticed():
    """Negative control: the pair sums lose 30 percent on their way to the engine."""
    found = calibrate("exact", 200, 4, {"warm_up": 60}, wrong=True)
    assert min(found.values()) < 5e-4, found


@pytest.mark.slow
def test_particle_engine_is_calibrated():
    found = calibrate("particle", 400, 4, {"warm_up": 60, "particles": 384})
    assert min(found.values()) > 5e-4, found
