"""Simulation-based calibration: parameters drawn from the prior, data from them, ranks among the draws.

If an engine samples the posterior, the rank of every true value among thinned draws is uniform. Indicators
are discrete: their posterior probabilities must be calibrated, which is tested by the mean of
(truth - probability), plain and weighted with the probability itself.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from worlds import World

from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Statistics

RANKS = 31
LIMIT = 5e-4


def calibrate(
    name: str, world: World, rounds: int, thin: int, settings: dict, kept: float = 1.0, odds: float = 1.0
) -> dict[str, float]:
    """P-values of uniform ranks by quantity, and of the z-scores of the indicators.

    Negative controls: only a share of the pair sums is `kept`, or the prior odds are wrong.
    """
    rng = np.random.default_rng(11)
    prior = world.prior(odds).resolve(world.features)
    ranks: dict[str, list[float]] = {}
    indicators = []
    for seed in range(rounds):
        truth, active, statistics = world.simulate(rng)
        statistics = Statistics(statistics.n_rows, statistics.singles, kept * statistics.cliques)
        engine = load_engine(name)(
            Problem(world.features, statistics, prior), settings, np.random.SeedSequence([7, seed])
        )
        engine.advance(engine.warm_up)
        draws = engine.advance(RANKS * thin, thin=thin)
        series = {
            "p0": draws.inclusion_rate,
            "sigma0": draws.slab_scale,
            "edges": draws.n_edges,
            "coupling": draws.column(0),
        }
        series |= {f"bias{i}": draws.biases[:, i] for i in range(world.p)}
        for key, values in series.items():
            # Ties, of the edge count and of absent couplings, are broken at random.
            below, equal = np.sum(values < truth[key]), np.sum(values == truth[key])
            ranks.setdefault(key, []).append(
                (below + rng.integers(0, equal + 1) + rng.random()) / (RANKS + 1)
            )
        share = np.mean([draws.column(a) != 0 for a in range(len(active))], axis=1)
        indicators.append(np.stack([active - share, (active - share) * share]))
    found = {key: float(stats.kstest(values, "uniform").pvalue) for key, values in ranks.items()}
    spread = np.array(indicators).mean(axis=2)
    for k, key in enumerate(("indicators", "weighted indicators")):
        z = spread[:, k].mean() / spread[:, k].std(ddof=1) * math.sqrt(rounds)
        found[key] = float(2 * stats.norm.sf(abs(z)))
    return found


SMALL = World(3, 25)
# As many variables as make decisions share noise, and rows enough for strong opinions.
LARGER = World(6, 100, (2.0, 6.0))


def test_exact_engine_is_calibrated():
    found = calibrate("exact", SMALL, 400, 4, {"warm_up": 60})
    assert min(found.values()) > LIMIT, found


def test_shrunken_sums_are_noticed():
    """Negative control: the pair sums lose 30 percent on their way to the engine."""
    found = calibrate("exact", SMALL, 200, 4, {"warm_up": 60}, kept=0.7)
    assert min(found.values()) < LIMIT, found


def test_particle_engine_is_calibrated():
    found = calibrate("particle", SMALL, 400, 4, {"warm_up": 60, "particles": 384})
    assert min(found.values()) > LIMIT, found


def test_particle_engine_is_calibrated_with_particles_of_its_own_choice():
    found = calibrate("particle", LARGER, 120, 4, {"warm_up": 100})
    assert min(found.values()) > LIMIT, found


def test_small_faults_of_the_particle_engine_are_noticed():
    """Negative controls: the pair sums lose a tenth; the prior odds are three times too high."""
    found = calibrate("particle", SMALL, 200, 4, {"warm_up": 60, "particles": 384}, kept=0.9)
    assert min(found.values()) < LIMIT, found
    found = calibrate("particle", SMALL, 400, 4, {"warm_up": 60, "particles": 384}, odds=3.0)
    assert found["indicators"] < LIMIT, found
    assert found["edges"] < LIMIT, found
