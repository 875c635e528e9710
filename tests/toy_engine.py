"""A cheap engine for fast tests: plain NumPy, exact likelihood from the 2^p table, few variables.

Births propose from the slab itself, so the acceptance ratio is the likelihood ratio times the prior odds.
It is selected with ``engine="toy_engine:ToyEngine"`` when this directory is on the path.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from edgewise.draws import Draws
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors import Prior

DEFAULTS = {"warm_up": 20, "thin": 1, "delay": 0.0, "fail_at": -1}


class ToyEngine:
    """One chain over graphs of a handful of variables."""

    name: ClassVar[str] = "toy"

    def __init__(
        self,
        problem: Problem,
        settings: Mapping[str, Any] | None = None,
        seed: np.random.SeedSequence | None = None,
        start: str = "default",
    ) -> None:
        self._lay_out(problem, settings)
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.iteration = 0
        status = problem.prior.status
        self.on = status == FORCED
        free = (status == COMMON) | (status == SEPARATE)
        if start == "full":
            self.on |= free
        elif start == "random":
            self.on |= free & (self.rng.random(len(status)) < 0.5)
        p = problem.features.n_variables
        self.theta = np.zeros(p + len(status))
        self.theta[p:][self.on] = 0.1
        self.p0 = problem.prior.p0
        self.sigma0 = problem.prior.sigma0
        self.log_z = self._log_partition(self.theta)
        self.sums = np.zeros((4, len(status)))

    def _lay_out(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        unknown = set(settings or {}) - set(DEFAULTS)
        if unknown:
            raise DataError(f"The toy engine has no setting {sorted(unknown)}; it has {sorted(DEFAULTS)}.")
        chosen = {**DEFAULTS, **(settings or {})}
        self.problem = problem
        self.warm_up, self.thin = int(chosen["warm_up"]), int(chosen["thin"])
        self.delay, self.fail_at = float(chosen["delay"]), int(chosen["fail_at"])
        p = problem.features.n_variables
        if p > 10:
            raise DataError(f"The toy engine takes 10 variables at most, not {p}.")
        rows = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
        columns = [rows.astype(bool)] + [
            rows[:, problem.features.clique(k)].all(axis=1, keepdims=True)
            for k in range(problem.features.n_cliques)
        ]
        self.table = np.concatenate(columns, axis=1).astype(float)
        self.data_sums = np.concatenate([problem.statistics.singles, problem.statistics.cliques])

    def _log_partition(self, theta: np.ndarray) -> float:
        energies = self.table @ theta
        top = energies.max()
        return float(top + np.log(np.exp(energies - top).sum()))

    def _move(self, index: int, value: float, log_prior_ratio: float) -> tuple[float, bool]:
        """Metropolis step to `value` of one parameter: its acceptance probability and what happened."""
        theta = self.theta.copy()
        theta[index] = value
        log_z = self._log_partition(theta)
        change = (value - self.theta[index]) * self.data_sums[index]
        change -= self.problem.statistics.n_rows * (log_z - self.log_z)
        accept = float(np.exp(min(0.0, change + log_prior_ratio)))
        accepted = bool(self.rng.random() < accept)
        if accepted:
            self.theta, self.log_z = theta, log_z
        return accept, accepted

    def _one_iteration(self) -> None:
        prior, p = self.problem.prior, self.problem.features.n_variables
        for index in range(len(self.theta)):
            if index < p or self.on[index - p]:
                scale = prior.bias_sd if index < p else self.sigma0
                old = self.theta[index]
                new = old + self.rng.normal() * 0.5
                self._move(index, new, (old**2 - new**2) / (2 * scale**2))
        for k in self.rng.integers(len(self.on), size=min(4, len(self.on))):
            if prior.status[k] in (FORCED, FORBIDDEN):
                continue
            common = np.log(self.p0) - np.log1p(-self.p0)
            log_odds = common if prior.status[k] == COMMON else prior.log_odds[k]
            birth = not self.on[k]
            value = self.rng.normal() * self.sigma0 if birth else 0.0
            accept, accepted = self._move(p + k, value, log_odds if birth else -log_odds)
            self.on[k] ^= accepted
            if self.iteration >= self.warm_up:
                self.sums[:, k] += (
                    1,
                    accept if birth else 1 - accept,
                    accepted and birth,
                    accepted and not birth,
                )
        shared = prior.status == COMMON
        if not prior.fixed_p0:
            active = (self.on & shared).sum()
            self.p0 = self.rng.beta(prior.beta_a + active, prior.beta_b + shared.sum() - active)
        if not prior.fixed_sigma0:
            values = self.theta[p:][self.on]
            rate = prior.gamma_rate + (values**2).sum() / 2
            self.sigma0 = self.rng.gamma(prior.gamma_shape + len(values) / 2, 1 / rate) ** -0.5

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        assert not self.iteration < self.warm_up < self.iteration + iterations, "crosses the end of warm-up"
        p = self.problem.features.n_variables
        kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, float, float]] = []
        for _ in range(iterations):
            if self.delay:
                time.sleep(self.delay)
            if self.iteration == self.fail_at:
                raise FloatingPointError("the toy engine was told to fail")
            self._one_iteration()
            self.iteration += 1
            if self.iteration > self.warm_up and (self.iteration - self.warm_up) % thin == 0:
                active = np.flatnonzero(self.on)
                kept.append((active, self.theta[p + active], self.theta[:p], self.p0, self.sigma0))
        if not kept:
            return Draws.empty(p)
        return Draws(
            np.concatenate([[0], np.cumsum([len(k[0]) for k in kept])]).astype(np.int64),
            np.concatenate([k[0] for k in kept]).astype(np.int32),
            np.concatenate([k[1] for k in kept]),
            np.array([k[2] for k in kept]),
            np.array([k[3] for k in kept]),
            np.array([k[4] for k in kept]),
        )

    def edge_sums(self) -> dict[str, np.ndarray]:
        return dict(zip(("tries", "inclusion", "births", "deaths"), self.sums.copy()))

    def counters(self) -> dict[str, float]:
        tries = self.sums[0].sum()
        return {
            "iterations": float(max(0, self.iteration - self.warm_up)),
            "birth_tries": float(tries / 2),
            "birth_accepts": float(self.sums[2].sum()),
            "death_tries": float(tries / 2),
            "death_accepts": float(self.sums[3].sum()),
        }

    def active(self) -> int:
        return int(self.on.sum())

    def state(self) -> dict[str, np.ndarray]:
        rng = self.rng.bit_generator.state
        words = [(rng["state"][key] >> shift) & (2**64 - 1) for key in ("state", "inc") for shift in (0, 64)]
        # Live arrays on purpose: whoever keeps a state while the chain goes on must copy it.
        return {
            "on": self.on,
            "theta": self.theta,
            "sums": self.sums,
            "numbers": np.array([self.p0, self.sigma0, self.log_z]),
            "iteration": np.array(self.iteration),
            "rng": np.array(words, np.uint64),
            "rng_spare": np.array([rng["has_uint32"], rng["uinteger"]], np.uint64),
        }

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> ToyEngine:
        engine = cls.__new__(cls)
        engine._lay_out(problem, settings)
        engine.on, engine.theta = state["on"].copy(), state["theta"].copy()
        engine.sums = state["sums"].copy()
        engine.p0, engine.sigma0, engine.log_z = (float(v) for v in state["numbers"])
        engine.iteration = int(state["iteration"])
        words = [int(v) for v in state["rng"]]
        spare = [int(v) for v in state["rng_spare"]]
        engine.rng = np.random.Generator(np.random.PCG64())
        engine.rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[0] | words[1] << 64, "inc": words[2] | words[3] << 64},
            "has_uint32": spare[0],
            "uinteger": spare[1],
        }
        return engine


TOY = "toy_engine:ToyEngine"


def toy_problem(n_rows: int = 60, n_variables: int = 4, seed: int = 0) -> Problem:
    """A few variables of which the first two depend on each other."""
    rows = toy_rows(n_rows, n_variables, seed)
    features = Features.pairs(n_variables)
    left, right = np.triu_indices(n_variables, 1)
    statistics = Statistics(
        float(n_rows), rows.sum(axis=0).astype(float), (rows.T @ rows)[left, right].astype(float)
    )
    return Problem(features, statistics, Prior().resolve(features))


def toy_rows(n_rows: int = 60, n_variables: int = 4, seed: int = 0) -> np.ndarray:
    """Rows of zeros and ones of which the first two columns mostly agree."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((n_rows, n_variables)) < 0.5).astype(int)
    rows[:, 1] = np.where(rng.random(n_rows) < 0.8, rows[:, 0], rows[:, 1])
    return rows


def fingerprint(draws: list[Draws]) -> str:
    """Digest of every byte of the draws of all chains."""
    digest = hashlib.sha256()
    for chain in draws:
        for part in dataclasses.fields(chain):
            array = getattr(chain, part.name)
            if array is None:
                continue
            digest.update(f"{part.name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
