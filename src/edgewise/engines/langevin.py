"""Algorithm 1 of Chen & Welling (2012), as published, with the settings of its section 6.2 as defaults.

Every iteration draws the hyper-parameters (eq. 14), runs Gibbs sweeps over the persistent particles
(section 3.1), takes one preconditioned Langevin step (eqs. 4-7), and tries the birth of every inactive and
the death of every small active clique from the same particles (eqs. 8-13, section 4.3). There is no
accept/reject of the Langevin step and the particles lag behind the parameters: the chain is right in the
limit of small steps only. The engine is here to reproduce the paper and to be measured against.

Where the print is incomplete:

* Delta = 0.01 / sqrt(N Var f) and the preconditioner use Var f averaged over warm-up for *all* candidates
  and frozen afterwards, because a width that depends on the state breaks reversibility. A mean is never
  taken to be below half a row, and N Var f never below the prior's sigma0^-2, so that a feature that the
  data never show, or no data at all, has a finite width.
* "Initialize randomly" is: hyper-parameters, graph (at most about four cliques per variable) and active
  parameters from the prior, momenta from N(0, 1), biases near the logits of the data's frequencies,
  particles from independent margins and then some sweeps.
* Candidates with an inclusion probability of their own keep those odds in eq. 8 and do not inform p0;
  forced and forbidden ones are never tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.common import ChainEngine, is_free, prior_rules
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.kernels import codes
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE


@dataclass(frozen=True)
class LangevinSettings:
    """Every constant of Algorithm 1.

    Attributes
    ----------
    particles : int
        Number n of persistent state samples.
    gibbs_sweeps : int
        Gibbs sweeps N_Gibbs per iteration.
    step_size : float
        Langevin step eps, in posterior standard deviations when preconditioned.
    momentum_retained : float
        Share alpha of the momentum kept by the partial refreshment (eq. 7).
    jump_width : float
        The c of Delta = c / sqrt(N Var f).
    thin, warm_up : int
        Iterations between kept draws, and before the first.
    partial_refreshment : bool
        False draws the momentum anew in every iteration (alpha = 0).
    preconditioning : bool
        False sets C = 1.
    parallel_proposals : bool
        False tries one random candidate per iteration rather than all (section 4.3).
    start_sweeps : int
        Gibbs sweeps that bring the first particles to the first parameters.
    moment_stride : int
        Iterations between the variances averaged during warm-up.
    """

    particles: int = 100
    gibbs_sweeps: int = 1
    step_size: float = 1e-3
    momentum_retained: float = 0.9
    jump_width: float = 0.01
    thin: int = 1000
    warm_up: int = 1_000_000
    partial_refreshment: bool = True
    preconditioning: bool = True
    parallel_proposals: bool = True
    start_sweeps: int = 50
    moment_stride: int = 20

    def __post_init__(self) -> None:
        for name, least in (
            ("particles", 2),
            ("gibbs_sweeps", 1),
            ("thin", 1),
            ("warm_up", 0),
            ("start_sweeps", 0),
            ("moment_stride", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise DataError(
                    f"The langevin engine's {name} must be an integer of at least {least}, not {value!r}."
                )
        for name in ("step_size", "jump_width"):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
                raise DataError(f"The langevin engine's {name} must be a positive number, not {value!r}.")
        if not 0 <= self.momentum_retained < 1:
            raise DataError(
                "The langevin engine's momentum_retained must be at least 0 and below 1, "
                f"not {self.momentum_retained!r}."
            )


# The data's own variances count as much as this many averages over the particles.
GUESS_WEIGHT = 5.0

# Arrays that make up the chain. `rows` and `clock` have one entry; `clock` counts iterations.
_PARTS = (
    "clock",
    "rows",
    "single_totals",
    "totals",
    "hyper",
    "biases",
    "bias_momentum",
    "values",
    "momentum",
    "listed",
    "place",
    "counts",
    "degree",
    "adjacent",
    "particles",
    "lanes",
    "stream",
    "bias_scale",
    "scale",
    "width",
    "single_variances",
    "variances",
    "precision_sum",
    "tallies",
    "jumps",
)


class LangevinEngine(ChainEngine):
    """One chain of Algorithm 1; keeps ``engines/protocol.py``."""

    name: ClassVar[str] = "langevin"
    Settings: ClassVar[type] = LangevinSettings
    takes_any_prior: ClassVar[bool] = False

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        self._members = np.ascontiguousarray(problem.features.members, np.int32)
        self._status = np.ascontiguousarray(problem.prior.status, np.int8)
        self._log_odds = np.ascontiguousarray(problem.prior.log_odds, np.float64)
        self._free = is_free(self._status)
        self._adapt_every = max(1, self.warm_up // 50)

    def _create(self, seeds: Sequence[np.random.SeedSequence], start: str) -> None:
        start = "random" if start == "default" else start
        from edgewise.kernels.gibbs import fresh_sweeps
        from edgewise.kernels.graph import empty_graph, place_all
        from edgewise.kernels.random import lane_streams, scalar_stream

        rng = np.random.default_rng(seeds[0])
        prior, statistics = self.problem.prior, self.problem.statistics
        p, n_cliques = self.problem.features.n_variables, self.problem.features.n_cliques
        self._clock = np.zeros(1, np.int64)
        self._rows = np.array([statistics.n_rows], np.float64)
        self._single_totals = np.array(statistics.singles, np.float64)
        self._totals = np.array(statistics.cliques, np.float64)
        self._single_variances, self._variances = np.zeros(p), np.zeros(n_cliques)
        self._precision_sum = np.zeros(2)
        self._adapt()

        p0 = prior.p0 if prior.fixed_p0 else rng.beta(prior.beta_a, prior.beta_b)
        sigma0 = prior.sigma0
        if not prior.fixed_sigma0:
            sigma0 = (rng.gamma(prior.gamma_shape) / prior.gamma_rate) ** -0.5
        self._hyper = np.array([p0, sigma0, sigma0**-2])
        probability = np.where(self._status == SEPARATE, 1 / (1 + np.exp(-self._log_odds)), p0)
        # A prior draw of thousands of couplings would be a spin glass: at most about four per variable.
        probability = np.minimum(probability, 2.0 * p / max(n_cliques, 1))
        if start != "random":
            probability = np.full(n_cliques, 1.0 if start == "full" else 0.0)
        chosen = rng.random(n_cliques) < probability
        chosen |= self._status == FORCED
        chosen &= self._status != FORBIDDEN
        active = np.flatnonzero(chosen)
        size = np.minimum(sigma0, self._posterior_scale[active]) if start == "full" else sigma0
        self._values, self._momentum = np.zeros(n_cliques), np.zeros(n_cliques)
        self._values[active] = size * rng.standard_normal(len(active))
        self._momentum[active] = rng.standard_normal(len(active))
        graph = empty_graph(self._members, self._status, p)
        self._listed, self._place, self._counts = graph.listed, graph.place, graph.counts
        self._degree, self._adjacent = graph.degree, graph.adjacent
        place_all(active, graph)

        frequency = (self._single_totals + 0.5) / (self._rows[0] + 1)
        spread = self._posterior_bias_scale * rng.standard_normal(p)
        self._biases = np.log(frequency) - np.log1p(-frequency) + spread
        self._bias_momentum = rng.standard_normal(p)
        self._tallies = np.zeros((codes.TALLIES, n_cliques))
        self._jumps = np.zeros(5, np.int64)
        self._stream = scalar_stream(seeds[1])
        n = int(self.settings.particles)
        self._lanes = lane_streams(seeds[2], n)
        self._particles = (rng.random((p, n)) < frequency[:, None]).astype(np.float32)
        fresh_sweeps(
            self.settings.start_sweeps,
            self._particles,
            self._lanes,
            self._biases,
            self._values,
            graph,
            *np.empty((2, n), np.float32),
        )

    def _graph(self) -> Any:
        """The graph as kernels read it."""
        from edgewise.kernels.graph import empty_graph

        graph = empty_graph(self._members, self._status, self.problem.features.n_variables)
        moving = ("listed", "place", "counts", "degree", "adjacent")
        return graph._replace(**{name: getattr(self, f"_{name}") for name in moving})

    @property
    def iteration(self) -> int:
        """Iterations run so far, warm-up included."""
        return int(self._clock[0])

    def _adapt(self) -> None:
        """Set preconditioner (6.2) and jump widths from the variances averaged so far (section 3.2, 6.2)."""
        prior, rows = self.problem.prior, self._rows[0]
        floor = 0.5 / (rows + 1)
        count = self._precision_sum[0]

        def averaged(totals: np.ndarray, sums: np.ndarray) -> np.ndarray:
            # The data's own frequencies stand in for the first few averages.
            frequency = (totals + 0.5) / (rows + 1)
            guess = frequency * (1 - frequency)
            return np.maximum((GUESS_WEIGHT * guess + sums) / (GUESS_WEIGHT + count), floor * (1 - floor))

        single = rows * averaged(self._single_totals, self._single_variances)
        information = rows * averaged(self._totals, self._variances)
        guess = prior.sigma0**-2
        slab_precision = (GUESS_WEIGHT * guess + self._precision_sum[1]) / (GUESS_WEIGHT + count)
        self._posterior_bias_scale = (single + prior.bias_sd**-2) ** -0.5
        self._posterior_scale = (information + slab_precision) ** -0.5
        self._width = self.settings.jump_width * np.maximum(information, guess) ** -0.5
        if self.settings.preconditioning:
            self._bias_scale, self._scale = self._posterior_bias_scale, self._posterior_scale
        else:
            self._bias_scale, self._scale = np.ones_like(single), np.ones_like(information)

    def _log_reach(self) -> np.ndarray:
        """Largest bounds of births that `jump_all` skips by, given the present statistics."""
        largest_gradient = np.maximum(self._totals, self._rows[0] - self._totals)
        reach = np.log(2 * self._width) + self._width * largest_gradient
        separate = reach + self._log_odds
        return np.array(
            [
                reach[self._status == COMMON].max(initial=-np.inf),
                separate[self._status == SEPARATE].max(initial=-np.inf),
            ]
        )

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Run; return the draws kept: every `thin`-th iteration counted from the end of warm-up."""
        begin, end = self.iteration, self.iteration + int(iterations)
        if begin < self.warm_up < end:
            raise ValueError(
                f"advance({iterations}) from iteration {begin} would cross the end of warm-up at "
                f"{self.warm_up}; stop there first"
            )
        warm = begin < self.warm_up
        log_reach = self._log_reach()
        kept: list[tuple[np.ndarray, ...]] = []
        while self.iteration < end:
            stride = self._adapt_every if warm else int(thin)
            since = self.iteration if warm else self.iteration - self.warm_up
            target = min(end, self.iteration + stride - since % stride)
            self._run(target - self.iteration, warm, log_reach)
            if warm and (self.iteration % stride == 0 or self.iteration == self.warm_up):
                self._adapt()
                log_reach = self._log_reach()
            if not warm and (self.iteration - self.warm_up) % stride == 0:
                kept.append(self._snapshot())
        if warm and self.iteration == self.warm_up:
            self._tallies[:] = 0
            self._jumps[:] = 0
        if not kept:
            return Draws.empty(self.problem.features.n_variables)
        indices, values, biases, hyper = zip(*kept)
        hyper = np.array(hyper)
        return Draws(
            indptr=np.concatenate([[0], np.cumsum([len(part) for part in indices])]).astype(np.int64),
            indices=np.concatenate(indices).astype(np.int32),
            values=np.concatenate(values),
            biases=np.array(biases),
            inclusion_rate=hyper[:, 0].copy(),
            slab_scale=hyper[:, 1].copy(),
        )

    def _snapshot(self) -> tuple[np.ndarray, ...]:
        indices = np.sort(self._listed[: self._counts[0]])
        return indices, self._values[indices], self._biases.copy(), self._hyper.copy()

    def _run(self, iterations: int, warm: bool, log_reach: np.ndarray) -> None:
        from edgewise.kernels.algorithm1 import Motion, Scratch, Totals, Tuning, run_iterations

        settings = self.settings
        n_cliques = len(self._values)
        run_iterations(
            iterations,
            self._clock,
            int(settings.moment_stride) if warm else 0,
            int(settings.gibbs_sweeps),
            float(settings.step_size),
            float(settings.momentum_retained) if settings.partial_refreshment else 0.0,
            bool(settings.parallel_proposals),
            int(self._free.sum()),
            Totals(float(self._rows[0]), self._single_totals, self._totals),
            prior_rules(self.problem.prior),
            Motion(self._values, self._momentum, self._biases, self._bias_momentum, self._hyper),
            self._graph(),
            Tuning(self._bias_scale, self._scale, self._width, log_reach),
            self._particles,
            self._lanes,
            self._stream,
            self._tallies,
            self._jumps,
            (self._single_variances, self._variances, self._precision_sum),
            Scratch(
                np.empty(n_cliques, np.int64),
                np.empty(n_cliques, np.int64),
                np.empty((n_cliques, 2)),
                *np.empty((2, self._particles.shape[1]), np.float32),
            ),
        )

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up; with parallel proposals every iteration is a try."""
        names = ("tries", "inclusion", "births", "deaths")
        found = {name: row.copy() for name, row in zip(names, self._tallies)}
        if self.settings.parallel_proposals:
            found["tries"] = np.where(self._free, float(max(0, self.iteration - self.warm_up)), 0.0)
        return found

    def counters(self) -> dict[str, float]:
        """Running totals since warm-up."""
        names = ("birth_tries", "birth_accepts", "death_tries", "death_accepts", "site_updates")
        return {
            "iterations": float(max(0, self.iteration - self.warm_up)),
            **{name: float(self._jumps[k]) for k, name in enumerate(names)},
            "particles": float(self.settings.particles),
            "sweeps_per_iteration": float(self.settings.gibbs_sweeps),
        }

    def active(self) -> int:
        """Number of active candidates now."""
        return int(self._counts[0])

    def state(self) -> dict[str, np.ndarray]:
        """The whole chain as plain arrays."""
        return {name: getattr(self, f"_{name}").copy() for name in _PARTS}

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> LangevinEngine:
        """Rebuild a chain from :meth:`state`."""
        engine = cls.__new__(cls)
        engine._prepare(problem, settings)
        missing = [name for name in _PARTS if name not in state]
        if missing:
            raise DataError(f"This is not a state of the langevin engine: it lacks {missing[0]!r}.")
        p, n_cliques = problem.features.n_variables, problem.features.n_cliques
        shapes = {"biases": (p,), "values": (n_cliques,), "particles": (p, engine.settings.particles)}
        for name, shape in shapes.items():
            if state[name].shape != shape:
                raise DataError(
                    f"The state does not belong to this problem and these settings: its {name} have shape "
                    f"{state[name].shape} where {shape} is needed."
                )
        for name in _PARTS:
            setattr(engine, f"_{name}", np.array(state[name], order="C"))
        return engine
