"""What the exact and the particle engine share: start, state, recording (mathematics: ``kernels``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.blanks import bind_blanks, check_blanks, first_fillings
from edgewise.engines.protocol import STARTS, Problem
from edgewise.errors import DataError
from edgewise.kernels import codes
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors import ResolvedPrior
from edgewise.priors.attributes import AttributeLayout
from edgewise.priors.communities import BlockLayout

# What a recorder holds before its draws are handed over: some megabytes.
RECORDER_ENTRIES = 1 << 18
RECORDER_DRAWS = 1024
# Of the seed from which the first fillings of blanks are drawn.
BLANKS_KEY = 17


def read_settings(cls: type, engine: str, given: Mapping[str, Any] | None) -> Any:
    """Build a settings dataclass; an unknown name is refused with the list of known ones."""
    given = dict(given or {})
    known = [field.name for field in fields(cls)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise DataError(
            f"The {engine} engine has no setting {unknown[0]!r}; its settings are {', '.join(known)}."
        )
    for field in fields(cls):
        if field.name in given:
            given[field.name] = _setting(engine, field.name, given[field.name], field.default)
    return cls(**given)


def _setting(engine: str, name: str, value: Any, default: Any) -> Any:
    """A value of the kind that the default has."""
    flag = isinstance(value, bool | np.bool_)
    least = min(0, default)  # only those that mean something by it are negative
    number = isinstance(value, Real) and not flag and least <= value < math.inf
    if isinstance(default, bool):
        fits, kind, words = flag, bool, "True or False"
    elif isinstance(default, int):
        fits, kind, words = number and value == value // 1 < 2**62, int, f"a whole number from {least}"
    else:
        fits, kind, words = number, float, f"a finite number from {least:g}"
    if not fits:
        raise DataError(f"{name} of the {engine} engine must be {words}, such as {default!r}; not {value!r}.")
    return kind(value)


def is_free(status: np.ndarray) -> np.ndarray:
    """Which candidates have their indicators decided rather than given."""
    return status <= SEPARATE


def prior_state(prior: ResolvedPrior, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of a chain that belong to its prior: hyper-parameters, and what only some priors have."""
    hyper = [np.array([prior.p0, prior.sigma0])]
    arrays: dict[str, np.ndarray] = {}
    if prior.freedom:
        arrays["slab_factor"] = np.ones(len(prior.status))
    if prior.model is not None:
        arrays["log_odds"] = np.array(prior.log_odds, np.float64)
        hyper.append(prior.model.start(rng))
    return {"hyper": np.concatenate(hyper), **arrays}


def prior_rules(prior: ResolvedPrior, state: Mapping[str, np.ndarray] | None = None) -> Any:
    """The prior as kernels read it; what moves with a chain is in its `state`."""
    from edgewise.kernels.hyper import Plain, PriorRules
    from edgewise.kernels.slabs import OneSlab, OwnSlab

    state, count = state or {}, len(prior.status)
    slab: Any = OneSlab(0)
    model: Any = Plain(0)
    if not prior.plain:
        none = np.zeros(count)
        slab = OwnSlab(
            mean=none if prior.own_mean is None else prior.own_mean,
            sd=none if prior.own_sd is None else prior.own_sd,
            factor=state.get("slab_factor", np.ones(count)),
            freedom=float(prior.freedom),
        )
        model = _model_rules(prior.model)
    return PriorRules(
        log_odds=state.get("log_odds", np.ascontiguousarray(prior.log_odds, np.float64)),
        beta_a=float(prior.beta_a),
        beta_b=float(prior.beta_b),
        fixed_p0=prior.fixed_p0,
        n_common=int(np.count_nonzero(prior.status == COMMON)),
        gamma_shape=float(prior.gamma_shape),
        gamma_rate=float(prior.gamma_rate),
        fixed_sigma0=prior.fixed_sigma0,
        bias_sd=float(prior.bias_sd),
        slab=slab,
        model=model,
    )


def _model_rules(layout: BlockLayout | AttributeLayout | None) -> Any:
    """A model of inclusion as kernels read it; of the kind that it is not there is an empty one."""
    from edgewise.kernels.attributes import empty_regression
    from edgewise.kernels.communities import empty_blocks
    from edgewise.kernels.hyper import Model

    none, no_members = np.zeros(0, bool), np.zeros((0, 2), np.int64)
    blocks = empty_blocks(none, no_members, 1, (1.0, 1.0, 1.0, 1.0), 1.0, np.zeros(2))
    regression = empty_regression(none, np.zeros((0, 1)), np.zeros(1), np.ones(1))
    kind = codes.NO_MODEL
    if isinstance(layout, BlockLayout):
        kind, blocks = codes.COMMUNITIES, layout.rules()
    elif layout is not None:
        kind, regression = codes.ATTRIBUTES, layout.rules()
    return Model(kind, blocks, regression)


class ChainEngine:
    """The first steps of every engine: check, prepare, and begin with seeds of its own."""

    name: ClassVar[str]
    Settings: ClassVar[type]
    takes_levels: ClassVar[bool] = False
    takes_any_prior: ClassVar[bool] = True
    takes_strata: ClassVar[bool] = False
    # An engine that draws blank cells says so for itself: its kernels have to do it.
    takes_blanks: ClassVar[bool] = False

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
        self._create(children(np.random.SeedSequence() if seed is None else seed, 3), start)

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        """Read what does not move: called for a new chain and for a restored one."""
        if not problem.all_binary and not self.takes_levels:
            raise DataError(
                f"The {self.name} engine takes variables with two levels only, and some of these have more: "
                "use engine='exact', 'particle' or 'surrogate', which take any levels, or cut the levels in "
                "two with binarize or cut."
            )
        if not problem.prior.plain and not self.takes_any_prior:
            raise DataError(
                f"The {self.name} engine knows normal slabs and one inclusion probability only; for "
                "communities, attributes, heavier tails and slabs of single edges use engine='auto'."
            )
        if problem.strata and not self.takes_strata:
            raise DataError(
                f"The {self.name} engine neither compares groups nor adjusts; use engine='exact' or "
                "'auto', with at most 20 variables."
            )
        check_blanks(type(self), problem)
        self.problem = problem
        self.settings = read_settings(self.Settings, self.name, settings)
        self.warm_up = int(self.settings.warm_up)
        self.thin = int(self.settings.thin)

    def _create(self, seeds: Sequence[np.random.SeedSequence], start: str) -> None:
        """Make the state of a new chain."""
        raise NotImplementedError


class LineEngine(ChainEngine):
    """A chain that moves along lines: one candidate or bias at a time (``kernels/moves.py``).

    ``_arrays`` is the whole state, by name: what the data say (rows, singles, sums), the rules that must not
    be computed anew (centres), what moves, and what the subclass adds. Everything else is derived from it and
    from the problem.

    A subclass names its source of means in `_derive`, adapts in `_adapt` between blocks of warm-up, and adds
    its own arrays to the state in `_begin`.
    """

    adapt_every: ClassVar[int] = 50
    _rules: Any
    _chain: Any
    _blanks: Any
    _work: Any
    _source: Any
    _scan: Any

    def _create(self, seeds: Sequence[np.random.SeedSequence], start: str) -> None:
        from edgewise.kernels.graph import empty_graph
        from edgewise.kernels.random import scalar_stream

        stream_seed, start_seed, own_seed = seeds
        problem = self.problem
        members = problem.features.members
        n_cliques = problem.features.n_cliques
        p = problem.features.n_variables
        parts = problem.parts
        rows = np.array([float(part.n_rows) for part in parts])
        singles = np.stack([np.asarray(part.singles, float) for part in parts])
        sums = np.stack([np.asarray(part.cliques, float) for part in parts])
        larger = n_cliques if members.shape[1] > 2 else 0
        graph = empty_graph(members, problem.prior.status, p)
        self.iteration = 0
        self._arrays = {
            "rows": rows,
            "singles": singles,
            "sums": sums,
            "centres": (singles + 0.5) / (rows[:, None] + 1.0),
            "clique_centres": np.divide(
                sums[:, :larger],
                rows[:, None],
                out=np.full((len(rows), larger), 0.5),
                where=rows[:, None] > 0,
            ),
            "theta": np.zeros(n_cliques),
            "bias": np.zeros(problem.n_biases),
            **prior_state(problem.prior, np.random.default_rng(children(start_seed, 1)[0])),
            "degree": graph.degree,
            "adjacent": graph.adjacent,
            "listed": graph.listed,
            "place": graph.place,
            "counts": graph.counts,
            "stream": scalar_stream(stream_seed),
            "tallies": np.zeros((codes.TALLIES, n_cliques)),
            "counters": np.zeros(codes.COUNTERS),
            **first_fillings(problem, np.random.default_rng(child(own_seed, BLANKS_KEY))),
        }
        self._arrays |= self._beside()
        self._bind()
        self._place_start(start, np.random.default_rng(start_seed))
        self._begin(own_seed, start)
        self._derive()
        self._renew()

    def _beside(self) -> dict[str, np.ndarray]:
        """Arrays that a subclass binds beside these, or in their place."""
        return {}

    def _bind(self) -> None:
        """Hand the arrays to the kernels as named tuples (``kernels/state.py``)."""
        from edgewise.kernels.graph import empty_graph
        from edgewise.kernels.state import Chain, Rules, Sums, working_space

        arrays, features = self._arrays, self.problem.features
        p, members = features.n_variables, features.members
        pair_index = np.full((p, p), -1, np.int32)
        pairs = np.flatnonzero(members[:, 2] < 0) if members.shape[1] > 2 else np.arange(len(members))
        pair_index[members[pairs, 0], members[pairs, 1]] = pairs
        pair_index[members[pairs, 1], members[pairs, 0]] = pairs
        levels = np.full(p, 2, np.int64)
        self._rules = Rules(
            centres=arrays["centres"],
            clique_centres=arrays["clique_centres"],
            levels=levels,
            scores=np.tile([0.0, 1.0], (p, 1)),
            pair_index=pair_index,
            prior=prior_rules(self.problem.prior, arrays),
        )
        self._sums = Sums(arrays["rows"], arrays["singles"], arrays["sums"])
        self._blanks = bind_blanks(self.problem, arrays, arrays["singles"][0], arrays["sums"][0])
        graph = empty_graph(members, self.problem.prior.status, p)
        moving = ("degree", "adjacent", "listed", "place", "counts")
        graph = graph._replace(**{name: arrays[name] for name in moving})
        own = {name: arrays[name] for name in Chain._fields if name != "graph"}
        self._chain = Chain(graph=graph, **own)
        self._work = working_space(levels, len(arrays["rows"]))

    def _place_start(self, start: str, rng: np.random.Generator) -> None:
        means = self._rules.centres.ravel()
        self._chain.bias[:] = np.log(means) - np.log1p(-means)
        self._start_graph(start, rng)

    def _start_graph(self, start: str, rng: np.random.Generator) -> None:
        """Activate the candidates that a chain starts with."""
        status = self.problem.prior.status
        p = self.problem.features.n_variables
        chosen = status == FORCED
        if start == "random":
            chosen = chosen | (rng.random(len(status)) < min(0.5, 2.0 * p / max(len(status), 1)))
        elif start == "full":
            chosen = chosen | True
        # A full graph of strong couplings would be a spin glass.
        spread = 0.05 if start == "full" else 0.5
        active = np.flatnonzero(chosen & (status != FORBIDDEN))
        self._activate(active, spread * rng.standard_normal(len(active)))

    def _activate(self, active: np.ndarray, values: np.ndarray) -> None:
        """Put inactive candidates into the graph."""
        from edgewise.kernels.graph import place_all

        place_all(np.asarray(active, np.int64), self._chain.graph)
        self._chain.theta[active] = values

    def _start_at_fit(self, n: int, rng: np.random.Generator, most: float) -> np.ndarray | None:
        """Start at a rough sparse fit, of another sparsity in every chain; returns its `n` particles.

        Where the fit has more than `most` pairs per variable it has run away (strongly dependent variables),
        and the empty graph is the better place to begin: then nothing is done and None returned.
        """
        from edgewise.engines.start import REACH, rough_fit

        coupling, bias, states = rough_fit(self.problem, rng.uniform(*REACH), n, rng)
        if np.count_nonzero(coupling) > 2 * most * len(bias):
            return None
        self._start_at(coupling, bias)
        return states

    def _start_at(self, coupling: np.ndarray, bias: np.ndarray) -> None:
        """Make the couplings (p, p) that are not zero, and the biases, those of the chain."""
        found = np.nonzero(np.triu(coupling, 1))
        self._activate(self._rules.pair_index[found], coupling[found])
        self._chain.bias[:] = bias

    def _renew(self) -> None:
        """Bring the source of means to the present parameters."""
        self._run(0, 1, self._recorder(0, 0))

    def advance(self, iterations: int, thin: int = 1) -> Draws:
        """Run; return the draws kept: every `thin`-th iteration counted from the end of warm-up."""
        p = len(self._arrays["bias"])
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
                min(RECORDER_DRAWS, kept), max(RECORDER_ENTRIES, 2 * len(self._chain.theta))
            )
            self.iteration += self._run(end - self.iteration, thin, recorder)
            pieces.append(self._harvest(recorder))
        return Draws.concatenate(pieces) if pieces else Draws.empty(p)

    def _harvest(self, recorder: Any) -> Draws:
        """The draws of a recorder, the candidates of each in order."""
        model = self.problem.prior.model
        count = int(recorder.filled[0])
        entries = int(recorder.indptr[count])
        indptr = recorder.indptr[: count + 1].copy()
        draw = np.repeat(np.arange(count), np.diff(indptr))
        ordered = np.lexsort((recorder.indices[:entries], draw))
        return Draws(
            indptr,
            recorder.indices[:entries][ordered],
            recorder.values[:entries][ordered],
            recorder.biases[:count].copy(),
            recorder.inclusion_rate[:count].copy(),
            recorder.slab_scale[:count].copy(),
            model_state=None if model is None else recorder.model_state[:count].astype(model.state_kind),
        )

    def _recorder(self, draws: int, entries: int) -> Any:
        from edgewise.kernels.state import empty_recorder

        model = self.problem.prior.model
        size = 0 if model is None else model.state_size
        return empty_recorder(draws, entries, len(self._arrays["bias"]), size)

    def _interest(self, floor: float) -> np.ndarray:
        """How often the indicator of each candidate is worth deciding, by the tallies of warm-up."""
        tries, inclusion = self._arrays["tallies"][:2]
        share = np.divide(inclusion, tries, out=np.full(len(tries), 0.5), where=tries > 0)
        return np.clip(2 * np.sqrt(4 * share * (1 - share)), floor, 1.0)

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.chain import run_chain

        return run_chain(
            self._rules,
            self._sums,
            self._chain,
            self._source,
            self._scan,
            self._work,
            self._blanks,
            self._after_warm_up(),
            iterations,
            thin,
            recorder,
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
            "swap_tries": float(counters[codes.SWAP_TRIES]),
            "swap_accepts": float(counters[codes.SWAP_ACCEPTS]),
        }

    def _end_warm_up(self) -> None:
        for name in ("tallies", "counters", "blanks.tracks", "blanks.ticks"):
            if name in self._arrays:
                self._arrays[name][:] = 0

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
        self = cls._unpacked(problem, settings, state)
        self._bind()
        self._derive()
        return self

    @classmethod
    def _unpacked(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> Any:
        """A chain with its arrays, but nothing that is made of them."""
        self = cls.__new__(cls)
        self._prepare(problem, settings)
        self.iteration = int(state["iteration"])
        self._arrays = {
            name: np.array(array, copy=True, order="C")
            for name, array in state.items()
            if name != "iteration"
        }
        return self

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        """Add the engine's own arrays to the state."""
        raise NotImplementedError

    def _derive(self) -> None:
        """Make the source of means and the scan from the state."""
        raise NotImplementedError

    def _adapt(self) -> None:
        """Learn from the warm-up so far; called at fixed iterations of warm-up and at its end."""
        raise NotImplementedError


def children(seed: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """Children by key: unlike spawn(), the same ones when asked again."""
    return [child(seed, key) for key in range(count)]


def child(seed: np.random.SeedSequence, key: int) -> np.random.SeedSequence:
    """One child by its key."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, key))
