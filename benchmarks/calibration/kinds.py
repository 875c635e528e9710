"""The same calibration for tables with blanks, and for two groups that are compared."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.calibration import worlds
from benchmarks.calibration.worlds import DRAWS, WARM_UP, World, recorded
from benchmarks.chains_of_draws import values_of
from edgewise.blanks import statistics_of
from edgewise.data.table import BinaryData
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.engines.groups import GroupEngine
from edgewise.engines.protocol import Problem
from edgewise.features import Statistics
from edgewise.priors import BetaInclusion, GammaSlab, NormalBias, Prior

METHODS = ("exact", "particle")
REPLICATES, PARTICLE_REPLICATES = 500, 200


@dataclass(frozen=True)
class BlankWorld(World):
    """A fifth of the cells are blank."""

    share: float = 0.2

    @property
    def name(self) -> str:
        """As files are named."""
        return f"blanks-{super().name}"

    @property
    def title(self) -> str:
        """As tables name it."""
        return f"{super().title}, {self.share:.0%} blank"


@dataclass(frozen=True)
class GroupWorld(World):
    """The second group has half as many rows; a pair that is present may differ."""

    @property
    def name(self) -> str:
        """As files are named."""
        return f"groups-{super().name}"

    @property
    def title(self) -> str:
        """As tables name it."""
        return f"p = {self.p}, groups of {self.rows} and {self.rows // 2}"

    @property
    def prior(self) -> Prior:
        """The default one of a comparison, but for the biases."""
        return Prior(
            bias=NormalBias(self.sd), difference=BetaInclusion(5.0, 5.0), difference_slab=GammaSlab(5.0, 5.0)
        )


BLANKS = (BlankWorld(6, 50), BlankWorld(6, 300))
GROUPS = (GroupWorld(5, 100), GroupWorld(5, 500))
WORLDS = (*BLANKS, *GROUPS)


def methods_of(world: World) -> tuple[str, ...]:
    """Who can fit it."""
    return METHODS if isinstance(world, BlankWorld) else METHODS[:1]


def seeds_of(method: str, number: int) -> np.random.SeedSequence:
    """The seeds of a chain."""
    return np.random.SeedSequence([number, zlib.crc32(method.encode())])


def blank_replicate(method: str, world: Any, number: int) -> dict[str, np.ndarray]:
    """What one data set with blanks says."""
    rng = np.random.default_rng([8, world.p, world.rows, number])
    truth, rows = world.simulate(rng)
    blank = rng.random(rows.shape) < world.share
    told = ~blank.all(axis=1)
    rows, blank = rows[told].astype(np.uint8), blank[told]
    data = BinaryData(
        names=tuple(f"x{k}" for k in range(world.p)),
        n_rows=len(rows),
        weights=None,
        levels=((0, 1),) * world.p,
        packed=np.packbits(np.where(blank, 0, rows).T, axis=1),
        unknown=np.packbits(blank.T, axis=1),
    )
    started = time.process_time()
    problem = Problem(
        world.features, statistics_of(data, world.features), world.prior.resolve(world.features), data
    )
    engine = load_engine(method)(problem, {"warm_up": WARM_UP}, seeds_of(method, number))
    engine.advance(WARM_UP)
    draws = engine.advance(2 * DRAWS, 2)
    seconds = time.process_time() - started
    theta = values_of([draws], world.features.n_cliques)[:, 0]
    return recorded(draws, theta, truth, rng, seconds)


def simulated_groups(world: GroupWorld, rng: np.random.Generator) -> tuple[dict[str, Any], list[Statistics]]:
    """A model of two groups from the prior, and the sums of their rows."""
    count = world.features.n_cliques
    p0, q0 = rng.beta(5, 5, 2)
    sigma0, apart = (rng.gamma(5.0, 1 / 5.0, 2)) ** -0.5
    there = rng.random(count) < p0
    mean = rng.normal(0, sigma0, count) * there
    difference = rng.normal(0, apart, count) * (there & (rng.random(count) < q0))
    sums, first_bias = [], None
    for sign, size in ((-0.5, world.rows), (0.5, world.rows // 2)):
        theta, bias = mean + sign * difference, rng.normal(0, world.sd, world.p)
        energy = world.states @ np.concatenate([bias, theta])
        weight = np.exp(energy - energy.max())
        total = rng.multinomial(size, weight / weight.sum()) @ world.states
        sums.append(Statistics(float(size), total[: world.p], total[world.p :]))
        first_bias = bias if first_bias is None else first_bias
    truth = {"p0": p0, "sigma0": sigma0, "theta": mean - 0.5 * difference, "bias": first_bias}
    return truth | {"difference": difference}, sums


def group_replicate(method: str, world: Any, number: int) -> dict[str, np.ndarray]:
    """What two groups say: of the couplings of the first of them, and of what differs."""
    rng = np.random.default_rng([9, world.p, world.rows, number])
    truth, parts = simulated_groups(world, rng)
    total = Statistics(
        sum(part.n_rows for part in parts),
        sum(part.singles for part in parts),
        sum(part.cliques for part in parts),
    )
    resolved = world.prior.resolve(world.features)
    started = time.process_time()
    problem = Problem(world.features, total, resolved, strata=tuple(parts), group_of=(0, 1))
    engine = GroupEngine(problem, {"warm_up": WARM_UP}, seeds_of(method, number))
    engine.advance(WARM_UP)
    draws = engine.advance(2 * DRAWS, 2)
    seconds = time.process_time() - started
    count, p = world.features.n_cliques, world.p
    own: Draws = draws.of_group(0)
    theta = values_of([own], count)[:, 0]
    apart = values_of([draws.differences()], count)[:, 0]
    found = recorded(own, theta, truth, rng, seconds, own.biases[:, :p])
    differs = truth["difference"] != 0
    return found | {
        "active": np.concatenate([found["active"], (apart != 0).sum(axis=1).astype(np.uint16)]),
        "there": np.concatenate([found["there"], differs]),
        "coupling_place": np.concatenate(
            [
                found["coupling_place"],
                np.where(differs, worlds.place(apart, truth["difference"], apart != 0), worlds.NOWHERE),
            ]
        ),
    }


def grow(end: float) -> bool:
    """More replicates, a batch of each world in turn."""
    exact, particle = METHODS[:1], METHODS[1:]
    return (
        worlds.grow(end, GROUPS, exact, REPLICATES, group_replicate)
        and worlds.grow(end, BLANKS, exact, REPLICATES, blank_replicate)
        and worlds.grow(end, BLANKS, particle, PARTICLE_REPLICATES, blank_replicate)
    )
