"""What the exact and the particle engine share: start, state, recording (mathematics: ``kernels``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.protocol import STARTS, Problem
from edgewise.errors import DataError
from edgewise.priors import COMMON, FORBIDDEN, FORCED

RECORDER_ENTRIES = 1 << 18
RECORDER_DRAWS = 1024
# Room for the counters of either kernel and for the tallies of each candidate; `kernels/particle_chain.py`
# and `kernels/chain.py` number them.
COUNTERS = 13
TALLIES = 6


def read_settings(cls: type, engine: str, given: Mapping[str, Any] | None) -> Any:
    """Build a settings dataclass; an unknown name is refused with the list of known ones."""
    given = dict(given or {})
    known = [field.name for field in fields(cls)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise DataError(
            f"The {engine} engine has no setting {unknown[0]!r}; its settings are {', '.join(known)}."
        )
    return cls(**given)


class LineEngine:
    """A chain that moves along lines: one candidate or bias at a time (``kernels/lines.py``).

    A subclass runs its kernel in `_run`, adapts in `_adapt` between blocks of warm-up, adds
    its own arrays to the state in `_begin`, and rebuilds what can be derived in `_derive`.
    """

    name: ClassVar[str]
    Settings: ClassVar[type]
    adapt_every: ClassVar[int] = 50

    def __init__(
        self,
        problem: Problem,
        settings: Mapping[str, Any] | None = None,
        seed: np.random.SeedSequence | None = None,
        start: str = "default",
    ) -> None:
        if start not in STARTS:
            raise DataError(f"A chain cannot start from {start!r}; choose one of {', '.join(STARTS)}.")
        self._prepare(problem, settings)
        seed = np.random.SeedSequence() if seed is None else seed
        stream_seed, start_seed, own_seed = _children(seed, 3)
        statistics = problem.statistics
        n_cliques = problem.features.n_cliques
        p = problem.features.n_variables
        self.iteration = 0
        self._arrays = {
            "rows": np.array([statistics.n_rows], float),
            "singles": np.array(statistics.singles, float),
            "sums": np.array(statistics.cliques, float),
            "theta": np.zeros(n_cliques),
            "bias": np.zeros(p),
            "hyper": np.array([problem.prior.p0, problem.prior.sigma0]),
            "listed": np.full(n_cliques, -1, np.int64),
            "place": np.full(n_cliques, -1, np.int64),
            "counts": np.zeros(2, np.int64),
            "stream": _scalar_stream(stream_seed),
            "tallies": np.zeros((TALLIES, n_cliques)),
            "counters": np.zeros(COUNTERS),
        }
        from edgewise.kernels.gibbs import graph_arrays

        start_of, degree, adjacent = graph_arrays(problem.features.members, p)
        self._arrays |= {"start": start_of, "degree": degree, "adjacent": adjacent}
        self._bind()
        self._place_start(start, np.random.default_rng(start_seed))
        self._begin(own_seed, start)
        self._derive()

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        self.problem = problem
        self.settings = read_settings(self.Settings, self.name, settings)
        self.warm_up = self._warm_up_length()
        self.thin = self.settings.thin

    def _bind(self) -> None:
        """Hand the arrays to the kernels as named tuples."""
        from edgewise.kernels.chain import Chain, Given

        prior = self.problem.prior
        arrays = self._arrays
        rows = float(arrays["rows"][0])
        self._given = Given(
            N=rows,
            singles=arrays["singles"],
            sums=arrays["sums"],
            members=self.problem.features.members,
            means=(arrays["singles"] + 0.5) / (rows + 1.0),
            status=prior.status,
            log_odds=prior.log_odds,
            beta_a=float(prior.beta_a),
            beta_b=float(prior.beta_b),
            fixed_p0=prior.fixed_p0,
            n_common=int(np.count_nonzero(prior.status == COMMON)),
            gamma_shape=float(prior.gamma_shape),
            gamma_rate=float(prior.gamma_rate),
            fixed_sigma0=prior.fixed_sigma0,
            bias_sd=float(prior.bias_sd),
        )
        self._chain = Chain(**{name: arrays[name] for name in Chain._fields})
        p = self.problem.features.n_variables
        self._pair_index = np.full((p, p), -1, np.int32)
        members = self.problem.features.members
        pairs = np.flatnonzero(members[:, 2] < 0) if members.shape[1] > 2 else np.arange(len(members))
        self._pair_index[members[pairs, 0], members[pairs, 1]] = pairs
        self._pair_index[members[pairs, 1], members[pairs, 0]] = pairs

    def _place_start(self, start: str, rng: np.random.Generator) -> None:
        from edgewise.kernels.chain import activate

        means = self._given.means
        self._chain.bias[:] = np.log(means) - np.log1p(-means)
        status = self.problem.prior.status
        p = self.problem.features.n_variables
        chosen = status == FORCED
        if start == "random":
            chosen = chosen | (rng.random(len(status)) < min(0.5, 2.0 * p / max(len(status), 1)))
        elif start == "full":
            chosen = chosen | True
        spread = 0.05 if start == "full" else 0.5
        for a in np.flatnonzero(chosen & (status != FORBIDDEN)):
            activate(int(a), spread * rng.standard_normal(), self._given, self._chain)

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Run; return the draws kept: every `thin`-th iteration counted from the end of warm-up."""
        p = self.problem.features.n_variables
        end = self.iteration + iterations
        if self.iteration < self.warm_up:
            if end > self.warm_up:
                raise ValueError("a block of iterations must not cross the end of warm-up")
            while self.iteration < end:
                boundary = min(end, (self.iteration // self.adapt_every + 1) * self.adapt_every)
                self._run(boundary - self.iteration, -1, self._recorder(0, 0))
                self.iteration = boundary
                if self.iteration == self.warm_up or self.iteration % self.adapt_every == 0:
                    self._adapt()
            return Draws.empty(p)
        pieces = []
        while self.iteration < end:
            kept = end // thin - self.iteration // thin + 1
            recorder = self._recorder(
                min(RECORDER_DRAWS, kept), max(RECORDER_ENTRIES, 2 * self.problem.features.n_cliques)
            )
            self.iteration += self._run(end - self.iteration, thin, recorder)
            count = int(recorder.filled[0])
            entries = int(recorder.indptr[count])
            indptr = recorder.indptr[: count + 1].copy()
            draw = np.repeat(np.arange(count), np.diff(indptr))
            ordered = np.lexsort((recorder.indices[:entries], draw))
            pieces.append(
                Draws(
                    indptr,
                    recorder.indices[:entries][ordered],
                    recorder.values[:entries][ordered],
                    recorder.biases[:count].copy(),
                    recorder.inclusion_rate[:count].copy(),
                    recorder.slab_scale[:count].copy(),
                )
            )
        return Draws.concatenate(pieces) if pieces else Draws.empty(p)

    def _recorder(self, draws: int, entries: int) -> Any:
        from edgewise.kernels.chain import Recorder

        return Recorder(
            indptr=np.zeros(draws + 1, np.int64),
            indices=np.empty(entries, np.int32),
            values=np.empty(entries),
            biases=np.empty((draws, self.problem.features.n_variables)),
            inclusion_rate=np.empty(draws),
            slab_scale=np.empty(draws),
            filled=np.zeros(1, np.int64),
        )

    def _after_warm_up(self) -> int:
        return self.iteration - self.warm_up

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up."""
        names = ("tries", "inclusion", "births", "deaths")
        return {name: row.copy() for name, row in zip(names, self._arrays["tallies"])}

    def active(self) -> int:
        """Number of active candidates now."""
        return int(self._arrays["counts"][0])

    def _flip_counters(self) -> dict[str, float]:
        tries, _, births, deaths, death_tries = self._arrays["tallies"][:5].sum(axis=1)
        counters = self._arrays["counters"]
        return {
            "iterations": float(max(0, self._after_warm_up())),
            "birth_tries": float(tries - death_tries),
            "birth_accepts": float(births),
            "death_tries": float(death_tries),
            "death_accepts": float(deaths),
            "swap_tries": float(counters[0]),
            "swap_accepts": float(counters[1]),
        }

    def _end_warm_up(self) -> None:
        self._arrays["tallies"][:] = 0.0
        self._arrays["counters"][:] = 0.0

    def state(self) -> dict[str, np.ndarray]:
        """The whole chain as plain arrays."""
        return {"iteration": np.array(self.iteration)} | {
            name: array.copy() for name, array in self._arrays.items()
        }

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> Any:
        """Rebuild a chain from :meth:`state`."""
        self = cls.__new__(cls)
        self._prepare(problem, settings)
        self.iteration = int(state["iteration"])
        self._arrays = {
            name: np.array(array, copy=True, order="C")
            for name, array in state.items()
            if name != "iteration"
        }
        self._bind()
        self._derive()
        return self

    def _warm_up_length(self) -> int:
        raise NotImplementedError

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        """Add the engine's own arrays to the state."""
        raise NotImplementedError

    def _derive(self) -> None:
        """Rebuild what follows from the state."""

    def _adapt(self) -> None:
        """Learn from the warm-up so far; called at fixed iterations of warm-up and at its end."""
        raise NotImplementedError

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        raise NotImplementedError


def _children(seed: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """Children by key: unlike spawn(), the same ones when asked again."""
    return [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k)) for k in range(count)]


def _scalar_stream(seed: np.random.SeedSequence) -> np.ndarray:
    from edgewise.kernels.random import scalar_stream

    return scalar_stream(seed)
