"""Worlds of simulated models and data, for tests of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, GammaSlab, NormalBias, Prior


@dataclass(frozen=True)
class World:
    """Models of `p` variables and data of `rows` rows, drawn from a prior that is easy to draw from."""

    p: int
    rows: int
    beta: tuple[float, float] = (2.0, 2.0)

    @cached_property
    def features(self) -> Features:
        return Features.pairs(self.p)

    @cached_property
    def states(self) -> np.ndarray:
        return ((np.arange(2**self.p)[:, None] >> np.arange(self.p)) & 1).astype(float)

    @cached_property
    def pairs(self) -> np.ndarray:
        members = self.features.members
        return self.states[:, members[:, 0]] * self.states[:, members[:, 1]]

    def prior(self, odds: float = 1.0) -> Prior:
        """The prior of the world, or one with other prior odds."""
        a, b = self.beta
        return Prior(BetaInclusion(a * odds, b), GammaSlab(6.0, 6.0), NormalBias(1.0))

    def model(self, rng: np.random.Generator) -> tuple[float, float, np.ndarray, np.ndarray]:
        """p0, sigma0, couplings and biases drawn from the prior."""
        p0 = rng.beta(*self.beta)
        sigma0 = rng.gamma(6.0, 1 / 6.0) ** -0.5
        active = rng.random(self.features.n_cliques) < p0
        theta = np.where(active, rng.normal(0, sigma0, len(active)), 0.0)
        return p0, sigma0, theta, rng.normal(0, 1.0, self.p)

    def data(self, theta: np.ndarray, bias: np.ndarray, rng: np.random.Generator) -> Statistics:
        """The statistics of rows drawn from a model."""
        energy = self.states @ bias + self.pairs @ theta
        weight = np.exp(energy - energy.max())
        counts = rng.multinomial(self.rows, weight / weight.sum())
        return Statistics(float(self.rows), counts @ self.states, counts @ self.pairs)

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], np.ndarray, Statistics]:
        """True values, true indicators and the statistics of data drawn from them."""
        p0, sigma0, theta, bias = self.model(rng)
        active = theta != 0
        values = {"p0": p0, "sigma0": sigma0, "edges": active.sum(), "coupling": theta[0]}
        values |= {f"bias{i}": bias[i] for i in range(self.p)}
        return values, active, self.data(theta, bias, rng)
