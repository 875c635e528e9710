"""Particle chains over more pairs than can be listed (docs/method.md, 14): no array has an entry for each.

Everything else is the particle engine: the same moves, the same scan, the same adaptation. What differs is
that candidates are slots of a table (``kernels/pairs.py``). Pairs that are clearly correlated in the data
begin in it; others enter when they become active, and leave at the next adaptation of warm-up unless they
stay worth a visit. Births go on reaching every pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from edgewise.data.table import BinaryData
from edgewise.draws.draws import Draws
from edgewise.engines.blanks import bind_blanks
from edgewise.engines.common import is_free, prior_rules
from edgewise.engines.listed import listed_fit, packed_rows
from edgewise.engines.particle import ParticleEngine
from edgewise.engines.protocol import Problem
from edgewise.engines.rivals import LEAST_CORRELATION, RIVALS_EACH, SELDOM_ACTIVE
from edgewise.engines.start import REACH
from edgewise.errors import DataError
from edgewise.kernels import codes
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED

# Hot pairs per variable at the beginning, and how clearly correlated they are at least.
MOST_HOT = 20
LEAST_VISIBLE = 2.5
# Resolution and range of the histogram that finds how clear that is.
STEP, BINS = 0.01, 1 << 16
# Arrays with an entry for every slot.
TABLE: tuple[str, ...] = (
    "members",
    "status",
    "log_odds",
    "sums",
    "theta",
    "tallies",
    "listed",
    "place",
    "scan",
)
# Room for births beside what has a slot, in units of what an iteration may bring.
ROOM = 2.0


class SparseParticleEngine(ParticleEngine):
    """One particle chain over all pairs of very many variables; see ``engines/protocol.py``."""

    name: ClassVar[str] = "particle"
    takes_any_prior: ClassVar[bool] = False
    takes_blanks: ClassVar[bool] = False

    def _prepare(self, problem: Problem, settings: Any) -> None:
        super()._prepare(problem, settings)
        if not problem.features.all_pairs or not isinstance(problem.rows, BinaryData):
            raise DataError("So many candidates have to be all pairs of the variables of a binary table.")
        self._words, self._row_weights = packed_rows(problem.rows)

    # The table of slots

    def _create(self, seeds: Sequence[np.random.SeedSequence], start: str) -> None:
        from edgewise.kernels.random import scalar_stream

        stream_seed, start_seed, own_seed = seeds
        statistics, prior = self.problem.statistics, self.problem.prior
        rows, singles = float(statistics.n_rows), np.array(statistics.singles, float)
        p = len(singles)
        self.iteration = 0
        self._arrays = {
            "rows": np.array([rows]),
            "singles": singles[None],
            "centres": ((singles + 0.5) / (rows + 1.0))[None],
            "clique_centres": np.zeros((1, 0)),
            "bias": np.zeros(p),
            "hyper": np.array([prior.p0, prior.sigma0]),
            "stream": scalar_stream(stream_seed),
            "counters": np.zeros(codes.COUNTERS),
            "rest": np.zeros(2),
            "scan": np.zeros(0),
            "rivals": np.zeros((0, 2), np.int64),
        }
        self._lay_out(*self._first_pairs())
        self._place_start(start, np.random.default_rng(start_seed))
        self._begin(own_seed, start)
        self._derive()
        self._renew()

    def _first_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs that begin with a slot, with their status and prior log odds: special and visible ones."""
        from edgewise.kernels.pairs import screen_counts, screen_pairs

        p = self.problem.features.n_variables
        means, rows = self._arrays["centres"][0], max(float(self._arrays["rows"][0]), 1.0)
        counts = np.zeros(BINS, np.int64)
        screen_counts(means, rows, self._words, self._row_weights, STEP, counts)
        above = np.cumsum(counts[::-1])[::-1]
        fitting = np.flatnonzero(above <= MOST_HOT * p)
        least = max(LEAST_VISIBLE, STEP * float(fitting[0]) if len(fitting) else LEAST_VISIBLE)
        found = np.empty((MOST_HOT * p, 2), np.int64)
        count = screen_pairs(means, rows, self._words, self._row_weights, least, found)
        special, kinds, odds = special_pairs(self.problem)
        keys = found[:count] @ [p, 1]
        visible = found[:count][~np.isin(keys, special @ [p, 1])]
        pairs = np.concatenate([special, visible])
        status = np.concatenate([kinds, np.full(len(visible), COMMON, np.int8)])
        return pairs, status, np.concatenate([odds, np.zeros(len(visible))])

    def _lay_out(self, pairs: np.ndarray, status: np.ndarray, log_odds: np.ndarray) -> None:
        """A table with these pairs, none of them active, and room for more."""
        arrays, kept = self._arrays, len(pairs)
        size = self._size(kept)
        arrays["members"] = np.zeros((size, 2), np.int32)
        arrays["members"][:kept] = pairs
        arrays["status"] = np.full(size, COMMON, np.int8)
        arrays["status"][:kept] = status
        arrays["log_odds"] = np.zeros(size)
        arrays["log_odds"][:kept] = log_odds
        arrays["sums"] = np.zeros((1, size))
        arrays["sums"][0, :kept] = self._sum_up(pairs)
        arrays["used"] = np.array([kept])
        arrays["theta"] = np.zeros(size)
        arrays["tallies"] = np.zeros((codes.TALLIES, size))
        arrays["listed"] = np.full(size, -1, np.int64)
        arrays["place"] = np.full(size, -1, np.int64)
        arrays["counts"] = np.zeros(2, np.int64)
        arrays["degree"] = np.zeros(len(arrays["bias"]), np.int64)
        arrays["scan"] = np.concatenate([arrays["scan"][:kept], np.zeros(size - len(arrays["scan"][:kept]))])
        self._lay_out_neighbours()
        self._bind()

    def _lay_out_neighbours(self) -> None:
        """Room for the active pairs of every variable: hot ones, those that are active, and some more."""
        from edgewise.kernels.pairs import SPARE

        arrays = self._arrays
        degree, old_start, old = arrays["degree"], arrays.get("start"), arrays.get("adjacent")
        room = self._hot_each() + degree + 2 * SPARE
        start = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
        adjacent = np.full(start[-1], -1, np.int32)
        if degree.any():
            assert old_start is not None
            assert old is not None
            within = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
            adjacent[np.repeat(start[:-1], degree) + within] = old[np.repeat(old_start[:-1], degree) + within]
        arrays["start"], arrays["adjacent"] = start, adjacent

    def _hot_each(self) -> np.ndarray:
        """Number of hot pairs of every variable; before the first scan all pairs with a slot are hot."""
        arrays, p = self._arrays, len(self._arrays["bias"])
        kept = int(arrays["used"][0])
        hot = arrays["scan"][:kept] > 0
        chosen = arrays["members"][:kept][hot] if hot.any() else arrays["members"][:kept]
        return np.bincount(chosen.ravel(), minlength=p)

    def _size(self, kept: int) -> int:
        return kept + int(ROOM * self._visits()) + 2

    def _visits(self) -> int:
        """Most pairs that an iteration may make up: flips, births and swaps."""
        p = len(self._arrays["bias"])
        births = int(self._arrays["cold_moves"][0]) if "cold_moves" in self._arrays else 2 * p
        return p + births + max(self.settings.swaps, p // 8 + 1)

    def _sum_up(self, pairs: np.ndarray) -> np.ndarray:
        from edgewise.kernels.pairs import sums_together

        sums = np.empty(len(pairs))
        sums_together(np.ascontiguousarray(pairs, np.int64), self._words, self._row_weights, sums)
        return sums

    def _bind(self) -> None:
        from edgewise.kernels.graph import PairGraph
        from edgewise.kernels.pairs import PairTable, fill_table
        from edgewise.kernels.state import Chain, Rules, Sums, working_space

        arrays, p = self._arrays, len(self._arrays["bias"])
        kept, size = int(arrays["used"][0]), len(arrays["theta"])
        keys = np.full(1 << int(math.ceil(math.log2(2 * size))), -1, np.int64)
        slots = np.zeros(len(keys), np.int32)
        fill_table(p, arrays["members"][:kept].astype(np.int64), keys, slots)
        levels = np.full(p, 2, np.int64)
        table = PairTable(
            keys=keys,
            slots=slots,
            used=arrays["used"],
            start=arrays["start"],
            hot=self._hot_each(),
            words=self._words,
            weights=self._row_weights,
            rest=arrays["rest"],
            count=self.problem.features.n_cliques,
            visits=self._visits(),
        )
        n_common = self.problem.prior.n_common(self.problem.features.n_cliques)
        prior = prior_rules(self.problem.prior, arrays)._replace(n_common=n_common)
        self._rules = Rules(
            centres=arrays["centres"],
            clique_centres=arrays["clique_centres"],
            levels=levels,
            scores=np.tile([0.0, 1.0], (p, 1)),
            pair_index=table,
            prior=prior,
        )
        self._sums = Sums(arrays["rows"], arrays["singles"], arrays["sums"])
        parts: tuple[str, ...] = PairGraph._fields
        graph = PairGraph(**{part: arrays[part] for part in parts})
        own = {name: arrays[name] for name in Chain._fields if name != "graph"}
        self._chain = Chain(graph=graph, **own)
        self._work = working_space(levels)
        self._blanks = bind_blanks(self.problem, arrays, arrays["singles"][0], arrays["sums"][0])

    def _grow(self) -> None:
        """More room, for pairs and for neighbours; everything stays where it is."""
        arrays = self._arrays
        size = max(self._size(int(arrays["used"][0])), len(arrays["theta"]))
        fills: dict[str, int] = {"listed": -1, "place": -1}
        for key in TABLE:
            axis = 0 if key == "members" else -1
            more = list(arrays[key].shape)
            more[axis] = size - more[axis]
            block = np.full(more, fills.get(key, 0), arrays[key].dtype)
            arrays[key] = np.concatenate([arrays[key], block], axis=axis)
        self._lay_out_neighbours()
        self._bind()
        self._derive()

    def _compact(self) -> None:
        """Give up the slots of pairs that are neither hot nor active nor rivals; fold their tallies."""
        from edgewise.kernels.graph import place_all

        arrays, kept = self._arrays, int(self._arrays["used"][0])
        stays = (
            (arrays["scan"][:kept] > 0) | (arrays["place"][:kept] >= 0) | (arrays["status"][:kept] != COMMON)
        )
        stays |= arrays["tallies"][codes.OCCUPIED, :kept] > 0
        stays[arrays["rivals"].ravel()] = True
        slots = np.flatnonzero(stays)
        place = np.full(kept, -1, np.int64)
        place[slots] = np.arange(len(slots))
        arrays["rivals"] = place[arrays["rivals"]]
        active, tallies = arrays["listed"][: arrays["counts"][0]], arrays["tallies"][:, slots]
        values = arrays["theta"][active]
        arrays["scan"] = arrays["scan"][slots]
        self._lay_out(arrays["members"][slots], arrays["status"][slots], arrays["log_odds"][slots])
        arrays["tallies"][:, : len(slots)] = tallies
        place_all(place[active], self._chain.graph)
        self._chain.theta[place[active]] = values

    # The start

    def _start_graph(self, start: str, rng: np.random.Generator) -> None:
        """Activate the pairs that a chain starts with, among those that have a slot."""
        kept = int(self._arrays["used"][0])
        status, p = self._chain.graph.status[:kept], len(self._arrays["bias"])
        chosen = status == FORCED
        if start == "random":
            chosen = chosen | (rng.random(kept) < min(0.5, 2.0 * p / max(kept, 1)))
        elif start == "full":
            chosen = chosen | True
        spread = 0.05 if start == "full" else 0.5
        active = np.flatnonzero(chosen & (status != FORBIDDEN))
        self._activate(active, spread * rng.standard_normal(len(active)))

    def _start_at_fit(self, n: int, rng: np.random.Generator, most: float) -> np.ndarray | None:
        arrays, kept = self._arrays, int(self._arrays["used"][0])
        free = np.flatnonzero(is_free(arrays["status"][:kept]))
        coupling, bias, states = listed_fit(
            float(arrays["rows"][0]),
            arrays["singles"][0],
            arrays["members"][free],
            arrays["sums"][0, free],
            rng.uniform(*REACH),
            n,
            rng,
        )
        found = np.flatnonzero(coupling)
        if len(found) > most * len(bias):
            return None
        self._activate(free[found], coupling[found])
        self._chain.bias[:] = bias
        return states

    def _derive(self) -> None:
        self._bind()  # an iteration may bring more than before
        super()._derive()

    def _screen(self) -> None:
        kept = int(self._arrays["used"][0])
        self._arrays["scan"] = np.zeros(len(self._chain.theta))
        self._arrays["scan"][:kept] = is_free(self._chain.graph.status[:kept])

    # Adaptation

    def _choose_scan(self) -> None:
        super()._choose_scan()
        # What has no slot has no rate.
        self._arrays["scan"][int(self._arrays["used"][0]) :] = 0.0

    def _choose_rivals(self) -> None:
        super()._choose_rivals()
        self._compact()

    def _find_rivals(self, share: np.ndarray) -> np.ndarray:
        """As :func:`~edgewise.engines.rivals.rival_pairs`, among variables that share a slot."""
        from edgewise.engines.listed import correlations

        arrays, p, kept = self._arrays, len(self._arrays["bias"]), int(self._arrays["used"][0])
        members = arrays["members"][:kept].astype(np.int64)
        free = is_free(arrays["status"][:kept])
        strength = np.abs(correlations(self._source.X, members))
        near = np.flatnonzero(strength > LEAST_CORRELATION)
        ends = np.concatenate([members[near], members[near][:, ::-1]])
        order = np.lexsort((ends[:, 1], -np.concatenate([strength[near]] * 2), ends[:, 0]))
        ends = ends[order]
        first = np.searchsorted(ends[:, 0], np.arange(p + 1))
        ends = ends[np.arange(len(ends)) - first[ends[:, 0]] < RIVALS_EACH]
        first = np.searchsorted(ends[:, 0], np.arange(p + 1))
        own = np.flatnonzero((share[:kept] > SELDOM_ACTIVE) & free)
        found = []
        for stays, leaves in ((0, 1), (1, 0)):
            i, j = members[own, stays], members[own, leaves]
            count = first[j + 1] - first[j]
            row = np.repeat(np.arange(len(own)), count)
            within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            k = ends[first[j][row] + within, 1]
            fits = k != i[row]
            pair = np.sort(np.column_stack([i[row], k])[fits], axis=1)
            found.append(np.column_stack([own[row][fits], pair]))
        wanted = np.concatenate(found)
        keys = wanted[:, 1] * p + wanted[:, 2]
        have = members @ [p, 1]
        order = np.argsort(have)
        at = np.minimum(np.searchsorted(have, keys, sorter=order), kept - 1)
        known = have[order[at]] == keys
        # A rival without a slot stays without: it is cold, and births reach it.
        both = np.column_stack([wanted[known, 0], order[at][known]])
        return np.unique(np.sort(both[free[both[:, 1]]], axis=1), axis=0).astype(np.int64)

    def _squared_correlations(self) -> tuple[int, float]:
        """By the particles where these are fewer than the variables: both products have one trace."""
        centred = self._standardised()
        varying = int(np.count_nonzero(centred.any(axis=1)))
        small = centred.T @ centred if centred.shape[1] < len(centred) else centred @ centred.T
        return varying, float((small**2).sum())

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        done = super()._run(iterations, thin, recorder)
        while done < iterations and not self._has_room():
            self._grow()
            self.iteration += done
            more = super()._run(iterations - done, thin, recorder)
            self.iteration -= done
            done += more
        return done

    def _end_warm_up(self) -> None:
        super()._end_warm_up()
        self._arrays["rest"][:] = 0.0

    def _has_room(self) -> bool:
        """Whether it is for want of a larger recorder, and not of slots, that iterations were left over."""
        from edgewise.kernels.pairs import SPARE

        arrays, table = self._arrays, self._rules.pair_index
        slots = int(arrays["used"][0]) + table.visits + 1 < len(arrays["theta"])
        return slots and bool((arrays["degree"] + table.hot + SPARE < np.diff(arrays["start"])).all())

    # What comes out

    def check_table(self, state: Mapping[str, np.ndarray]) -> None:
        """Whether arrays from a file are a table of pairs; what it holds is checked as for any chain.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        p, size = self.problem.features.n_variables, len(state["theta"])
        lengths = {name: state[name].shape[0 if name == "members" else -1] for name in TABLE}
        if len(set(lengths.values())) > 1 or state["start"].shape != (p + 1,):
            raise ValueError("the arrays of its pairs differ in length")
        used, start = int(state["used"][0]), state["start"]
        if not 0 <= used < size:
            raise ValueError(f"it has {used} pairs in a table for {size}")
        pairs = state["members"][:used].astype(np.int64)
        if used and not (pairs.min() >= 0 and pairs.max() < p and (pairs[:, 0] < pairs[:, 1]).all()):
            raise ValueError("it has pairs of variables that do not exist")
        if len(np.unique(pairs @ [p, 1])) < used:
            raise ValueError("it has a pair twice")
        if start[0] != 0 or np.any(np.diff(start) < 0) or start[-1] != len(state["adjacent"]):
            raise ValueError("the room of its variables is not what it has")
        if np.any(state["degree"] > np.diff(start)) or np.any(state["listed"][: state["counts"][0]] >= used):
            raise ValueError("it has more active pairs than there is room for")
        if np.any((state["status"] < COMMON) | (state["status"] > FORBIDDEN)):
            raise ValueError("it has pairs of which the prior says nothing")

    def _numbers(self) -> np.ndarray:
        """Number of the pair of every slot among all pairs."""
        p = self.problem.features.n_variables
        i, j = self._arrays["members"][: int(self._arrays["used"][0])].T.astype(np.int64)
        return np.asarray(i * p - i * (i + 1) // 2 + j - i - 1)

    def _harvest(self, recorder: Any) -> Draws:
        entries = int(recorder.indptr[int(recorder.filled[0])])
        recorder.indices[:entries] = self._numbers()[recorder.indices[:entries]]
        return super()._harvest(recorder)

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Totals since warm-up of the pairs that have a slot, which `candidates` names."""
        kept = int(self._arrays["used"][0])
        numbers = self._numbers()
        order = np.argsort(numbers)
        found = {name: row[:kept][order] for name, row in super().edge_sums().items()}
        return {**found, "candidates": numbers[order], "rest": self._arrays["rest"].copy()}


def special_pairs(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of which the prior says something of their own: variables, status and log odds."""
    prior, features = problem.prior, problem.features
    where = prior.listed if prior.listed is not None else np.flatnonzero(prior.status != COMMON)
    pairs = np.array([features.clique(int(k)) for k in where], np.int64).reshape(-1, 2)
    if prior.listed is not None:
        return pairs, prior.status, prior.log_odds
    return pairs, prior.status[where], prior.log_odds[where]
