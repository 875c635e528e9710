"""The same calibration for variables with more than two levels, of every kind, by the exact engine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration import worlds
from benchmarks.calibration.worlds import DRAWS, NOWHERE, THIN, WARM_UP, place, ranks_among
from benchmarks.chains_of_draws import values_of
from edgewise import MRF, exact
from edgewise.draws.convergence import effective_draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, level_statistics
from edgewise.priors import NormalBias, Prior
from edgewise.scales import BINARY_SCALE, Scale, Scales

METHOD, REPLICATES = "exact", 300
SCALES = Scales(
    (
        Scale("ordinal", (0, 1, 2)),
        Scale("nominal", ("a", "b", "c")),
        Scale("blume-capel", (1, 2, 3, 4), (), 1),
        BINARY_SCALE,
        Scale("ordinal", (0, 1, 2, 3)),
    )
)
FEATURES = Features.pairs(len(SCALES))
PRIOR = Prior(bias=NormalBias(1.0))


@dataclass(frozen=True)
class LevelWorld:
    """Five variables of two to four levels: two ordinal, one nominal, one Blume-Capel, one binary."""

    rows: int

    @property
    def name(self) -> str:
        """As files are named."""
        return f"levels-n{self.rows}"

    @property
    def title(self) -> str:
        """As tables name it."""
        return f"5 variables of 2 to 4 levels, N = {self.rows}"


WORLDS = (LevelWorld(100), LevelWorld(500))


def replicate(method: str, world: LevelWorld, number: int) -> dict[str, np.ndarray]:
    """What one data set says; couplings of pairs with a matrix are the strengths of the matrices."""
    rng = np.random.default_rng([5, world.rows, number])
    prior = PRIOR.inclusion, PRIOR.slab
    p0 = rng.beta(prior[0].a, prior[0].b)  # type: ignore[union-attr]
    sigma0 = (rng.gamma(prior[1].shape) / prior[1].rate) ** -0.5  # type: ignore[union-attr]
    there = rng.random(FEATURES.n_cliques) < p0
    size = SCALES.dimensions(FEATURES.members)
    values = [rng.normal(0, sigma0, count) for count in size]
    biases = rng.normal(0, 1, SCALES.n_biases)
    strength = np.array([v[0] if len(v) == 1 else math.sqrt(np.mean(v**2)) for v in values])
    weights = np.concatenate([np.zeros(0), *(values[a] for a in np.flatnonzero(there))])
    model = MRF(biases, FEATURES.members[there], weights, None, SCALES)
    rows = exact.sample(model, world.rows, rng).astype(int)
    problem = Problem(
        FEATURES, level_statistics(rows, None, SCALES, FEATURES), PRIOR.resolve(FEATURES), None, SCALES
    )
    started = time.process_time()
    engine = load_engine(method)(problem, {"warm_up": WARM_UP}, np.random.SeedSequence([6, number]))
    engine.advance(WARM_UP)
    draws = engine.advance(2 * DRAWS, 2)
    seconds = time.process_time() - started
    theta = values_of([draws], FEATURES.n_cliques)[:, 0]
    series = np.stack(
        [
            *(draws.inclusion_rate, draws.slab_scale, draws.n_edges),
            *(theta[0] != 0, theta[1], draws.biases[:, 0]),
        ]
    ).astype(float)
    truth = [p0, sigma0, there.sum(), there[0], strength[1] * there[1], biases[0]]
    return {
        "ranks": ranks_among(series[:, THIN - 1 :: THIN], np.array(truth, float), rng),
        "effective": np.minimum(effective_draws(series[:, None]), 65535).astype(np.uint16),
        "active": (theta != 0).sum(axis=1).astype(np.uint16),
        "there": there,
        "coupling_place": np.where(there, place(theta, strength, theta != 0), NOWHERE),
        "bias_place": place(draws.biases.T, biases, np.ones(draws.biases.T.shape, bool)),
        "seconds": np.float32(seconds),
    }


def grow(end: float) -> bool:
    """More replicates, a batch of each world in turn."""
    return worlds.grow(end, WORLDS, (METHOD,), REPLICATES, replicate)
