"""Simulation-based calibration of the exact and the particle engine with three to five levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgewise import MRF, exact
from edgewise.engines.exact import ExactEngine
from edgewise.engines.level_particle import LevelParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics, level_statistics
from edgewise.priors import BetaInclusion, GammaSlab, NormalBias, Prior
from edgewise.scales import BINARY_SCALE, Scale, Scales

SCALES = Scales(
    (
        Scale("ordinal", (0, 1, 2)),
        Scale("nominal", ("a", "b", "c")),
        Scale("ordinal", (0, 1, 2, 3, 4)),
        BINARY_SCALE,
        Scale("ordinal", (0, 1, 2, 3)),
    )
)
FEATURES = Features.pairs(5)
PRIOR = Prior(BetaInclusion(2.0, 4.0), GammaSlab(5.0, 5.0), NormalBias(1.0))
DRAWS, THIN, ROWS = 63, 3, 60
LIMIT = 1e-3


def simulate(rng: np.random.Generator) -> tuple[dict[str, float], np.ndarray, Statistics]:
    """Parameters from the prior and rows from them."""
    p0, sigma0 = rng.beta(2, 4), 1 / math.sqrt(rng.gamma(5) / 5)
    active = rng.random(FEATURES.n_cliques) < p0
    size = SCALES.dimensions(FEATURES.members)
    values = [rng.normal(0, sigma0, count) for count in size]
    biases = rng.normal(0, 1, SCALES.n_biases)
    chosen = np.flatnonzero(active)
    weights = np.concatenate([np.zeros(0), *(values[a] for a in chosen)])
    model = MRF(biases, FEATURES.members[chosen], weights, None, SCALES)
    rows = exact.sample(model, ROWS, rng).astype(int)
    truth = {"p0": p0, "sigma0": sigma0, "edges": active.sum()}
    truth |= {f"bias{i}": bias for i, bias in enumerate(biases)}
    for a in (0, 1, 4):
        strength = values[a][0] if size[a] == 1 else math.sqrt(np.mean(values[a] ** 2))
        truth[f"pair{a}"] = strength if active[a] else 0.0
    return truth, active, level_statistics(rows, None, SCALES, FEATURES)


def calibrate(rounds: int, kept: float = 1.0, kind: type = ExactEngine, **settings) -> dict[str, float]:
    """P-values of uniform ranks by quantity, and of the z-scores of the indicators."""
    rng = np.random.default_rng(8)
    ranks: dict[str, list[float]] = {}
    errors = []
    prior = PRIOR.resolve(FEATURES)
    for seed in range(rounds):
        truth, active, sums = simulate(rng)
        sums = Statistics(sums.n_rows, sums.singles, kept * sums.cliques)
        problem = Problem(FEATURES, sums, prior, None, SCALES)
        engine = kind(problem, {"warm_up": 60, **settings}, np.random.SeedSequence([3, seed]))
        engine.advance(60)
        draws = engine.advance(DRAWS * THIN, thin=THIN)
        series = {"p0": draws.inclusion_rate, "sigma0": draws.slab_scale, "edges": draws.n_edges}
        series |= {f"bias{i}": column for i, column in enumerate(draws.biases.T)}
        series |= {f"pair{a}": draws.column(a) for a in (0, 1, 4)}
        for key, values in series.items():
            below, equal = np.sum(values < truth[key]), np.sum(values == truth[key])
            place = below + rng.integers(0, equal + 1) + rng.random()
            ranks.setdefault(key, []).append(place / (DRAWS + 1))
        share = np.mean([draws.column(a) != 0 for a in range(len(active))], axis=1)
        errors.append((active - share).mean())
    found = {key: float(stats.kstest(values, "uniform").pvalue) for key, values in ranks.items()}
    z = np.mean(errors) / np.std(errors, ddof=1) * math.sqrt(rounds)
    return found | {"indicators": float(2 * stats.norm.sf(abs(z)))}


def test_exact_engine_with_levels_is_calibrated():
    found = calibrate(200)
    assert min(found.values()) > LIMIT, found


def test_shrunken_sums_are_noticed():
    """Negative control: the products of scores lose 30 percent on their way to the engine."""
    found = calibrate(100, kept=0.7)
    assert min(found.values()) < LIMIT, found


@pytest.mark.slow
def test_particle_engine_with_levels_is_calibrated():
    found = calibrate(150, kind=LevelParticleEngine, particles=384, sites=5)
    assert min(found.values()) > LIMIT, found
    # Negative control: as above.
    found = calibrate(100, 0.7, LevelParticleEngine, particles=384, sites=5)
    assert min(found.values()) < LIMIT, found
