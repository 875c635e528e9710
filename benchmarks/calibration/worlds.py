"""Simulation-based calibration: models drawn from the prior, data from the models, posteriors of the data.

If the draws are those of the posterior, the rank of a true value among them is uniform, of the edges given
probability .7 seven in ten are there, and a 90 % interval holds nine true values in ten. Every replicate is
fitted by all methods, so that they are compared on the same data.

Replicates are kept in one small file for each method and world, under ``benchmarks/results/calibration``, and
grow by batches.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks import pseudo_posterior
from benchmarks.chains_of_draws import RESULTS, values_of
from edgewise.atomic import replacing
from edgewise.draws import Draws
from edgewise.draws.convergence import effective_draws
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import NormalBias, Prior

FOLDER = RESULTS / "calibration"
METHODS = ("exact", "particle", "pseudo-likelihood")
PSEUDO = METHODS[2]
REPLICATES, BATCH = 500, 10
# Ranks are among every THIN-th draw; everything else is of all draws.
KEPT, THIN, WARM_UP = 99, 10, 300
DRAWS = KEPT * THIN
QUANTITIES = ("p0", "sigma0", "number of edges", "indicator", "coupling", "bias", "log likelihood")
# Where the truth lies among the draws, in thousandths; nothing where too few draws have the edge.
FEWEST = 100
NOWHERE = np.uint16(65535)


@dataclass(frozen=True)
class World:
    """`p` variables and `rows` rows; biases from N(0, `sd`^2), everything else from the default prior."""

    p: int
    rows: int
    sd: float = 1.0

    @property
    def name(self) -> str:
        """As files are named."""
        return f"p{self.p}-n{self.rows}" + ("" if self.sd == 1 else f"-sd{self.sd:g}")

    @property
    def title(self) -> str:
        """As tables name it."""
        return f"p = {self.p}, N = {self.rows}" + (", wide biases" if self.sd > 1 else "")

    @property
    def prior(self) -> Prior:
        """What models are drawn from, and what every method is told."""
        return Prior(bias=NormalBias(self.sd))

    @cached_property
    def features(self) -> Features:
        """All pairs."""
        return Features.pairs(self.p)

    @cached_property
    def states(self) -> np.ndarray:
        """All states, and the pairs that are on in each."""
        states = ((np.arange(2**self.p)[:, None] >> np.arange(self.p)) & 1).astype(float)
        members = self.features.members
        return np.hstack([states, states[:, members[:, 0]] * states[:, members[:, 1]]])

    def log_z(self, parameters: np.ndarray) -> np.ndarray:
        """Log Z of biases and couplings, one model a row."""
        energies = parameters @ self.states.T
        top = energies.max(axis=1)
        return top + np.log(np.exp(energies - top[:, None]).sum(axis=1))

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """A model from the prior, and rows from the model by enumeration."""
        prior, count = self.prior, self.features.n_cliques
        p0 = rng.beta(prior.inclusion.a, prior.inclusion.b)  # type: ignore[union-attr]
        sigma0 = (rng.gamma(prior.slab.shape) / prior.slab.rate) ** -0.5  # type: ignore[union-attr]
        theta = np.where(rng.random(count) < p0, rng.normal(0, sigma0, count), 0.0)
        bias = rng.normal(0, self.sd, self.p)
        energy = self.states @ np.concatenate([bias, theta])
        weight = np.exp(energy - energy.max())
        rows = self.states[rng.choice(len(weight), self.rows, p=weight / weight.sum()), : self.p]
        return {"p0": p0, "sigma0": sigma0, "theta": theta, "bias": bias}, rows

    def totals(self, rows: np.ndarray) -> np.ndarray:
        """How often each variable and each pair is on."""
        members = self.features.members
        return np.concatenate(
            [rows.sum(axis=0), (rows[:, members[:, 0]] * rows[:, members[:, 1]]).sum(axis=0)]
        )


# The last has the prior that a fit has by default: biases so wide that many columns hardly vary.
WORLDS = (World(6, 50), World(6, 300), World(10, 50), World(10, 300), World(6, 300, 10.0))


def stride(method: str, world: World) -> int:
    """Iterations between draws, so that about as many draws as are ranked are independent."""
    if method == "exact":
        return 8 if world.sd > 1 else 1
    if method == PSEUDO:
        return 2 if world.sd > 1 else 3 if world.rows < 100 else 1
    return 6 if world.sd > 1 else 1


def draws_of(method: str, world: World, rows: np.ndarray, seed: int) -> Draws:
    """One chain of a method on the rows."""
    features, prior, every = world.features, world.prior.resolve(world.features), stride(method, world)
    if method == PSEUDO:
        return pseudo_posterior.sample(rows, features.members, prior, DRAWS, every, WARM_UP, seed)
    totals = world.totals(rows)
    statistics = Statistics(float(len(rows)), totals[: world.p], totals[world.p :])
    seeds = np.random.SeedSequence([seed, zlib.crc32(method.encode())])
    engine = load_engine(method)(Problem(features, statistics, prior), {"warm_up": WARM_UP}, seeds)
    engine.advance(WARM_UP)
    return engine.advance(DRAWS * every, every)


def place(values: np.ndarray, truth: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Share of the counted draws (quantities, draws) below the truth, in thousandths."""
    among = counted.sum(axis=1)
    below = ((values < truth[:, None]) & counted).sum(axis=1)
    found = np.full(len(truth), NOWHERE)
    enough = among >= FEWEST
    found[enough] = np.round(1000 * below[enough] / among[enough])
    return found


def ranks_among(ranked: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ranks of true values among the draws of each quantity; ties are broken at random."""
    below = (ranked < truth[:, None]).sum(axis=1)
    equal = (ranked == truth[:, None]).sum(axis=1)
    return (below + rng.integers(0, equal + 1)).astype(np.uint8)


def replicate(method: str, world: World, number: int) -> dict[str, np.ndarray]:
    """What one data set says of a method; the same data for every method."""
    rng = np.random.default_rng([world.p, world.rows, round(world.sd), number])
    truth, rows = world.simulate(rng)
    started = time.process_time()
    draws = draws_of(method, world, rows, number)
    seconds = time.process_time() - started
    theta = values_of([draws], world.features.n_cliques)[:, 0]
    both = np.concatenate([draws.biases.T, theta])
    true_both = np.concatenate([truth["bias"], truth["theta"]])
    totals = world.totals(rows)

    def log_likelihood(parameters: np.ndarray) -> np.ndarray:
        return parameters @ totals - world.rows * world.log_z(parameters)

    likelihoods = log_likelihood(both.T), log_likelihood(true_both[None])[0]
    return recorded(draws, theta, truth, rng, seconds, draws.biases, likelihoods)


def recorded(
    draws: Draws,
    theta: np.ndarray,
    truth: Mapping[str, Any],
    rng: np.random.Generator,
    seconds: float,
    biases: np.ndarray | None = None,
    likelihoods: tuple[np.ndarray, float] | None = None,
) -> dict[str, np.ndarray]:
    """What is kept of a replicate; `likelihoods` are those of the draws and of the truth."""
    biases = draws.biases if biases is None else biases
    there = truth["theta"] != 0
    series = [draws.inclusion_rate, draws.slab_scale, draws.n_edges, theta[0] != 0, theta[0], biases[:, 0]]
    values = [truth["p0"], truth["sigma0"], np.count_nonzero(there), there[0], truth["theta"][0]]
    values += [truth["bias"][0]]
    if likelihoods is not None:
        series.append(likelihoods[0])
        values.append(likelihoods[1])
    together = np.stack(series).astype(float)
    return {
        "ranks": ranks_among(together[:, THIN - 1 :: THIN], np.array(values, float), rng),
        "effective": np.minimum(effective_draws(together[:, None]), 65535).astype(np.uint16),
        "active": (theta != 0).sum(axis=1).astype(np.uint16),
        "there": there,
        "coupling_place": np.where(there, place(theta, truth["theta"], theta != 0), NOWHERE),
        "bias_place": place(biases.T, truth["bias"], np.ones(biases.T.shape, bool)),
        "seconds": np.float32(seconds),
    }


def gathered(method: str, world: Any) -> dict[str, np.ndarray] | None:
    """All replicates of a method so far, one a row."""
    path = FOLDER / f"{method}-{world.name}.npz"
    if not path.exists():
        return None
    with np.load(path) as stored:
        return dict(stored)


def grow(
    end: float,
    worlds: Sequence[Any] = WORLDS,
    methods: Sequence[str] = METHODS,
    replicates: int = REPLICATES,
    replicate: Callable[[str, Any, int], dict[str, np.ndarray]] = replicate,
) -> bool:
    """More replicates, a batch of each world and method in turn; whether all are there at the end."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for batch in range(replicates // BATCH):
        for world in worlds:
            for method in methods:
                found = gathered(method, world)
                done = 0 if found is None else len(found["seconds"])
                if done > batch * BATCH:
                    continue
                if time.monotonic() >= end:
                    return False
                new = [replicate(method, world, number) for number in range(done, done + BATCH)]
                stacked = {key: np.stack([part[key] for part in new]) for key in new[0]}
                if found is not None:
                    stacked = {key: np.concatenate([found[key], stacked[key]]) for key in stacked}
                with replacing(FOLDER / f"{method}-{world.name}.npz") as file:
                    np.savez_compressed(file, **stacked)
    return True
