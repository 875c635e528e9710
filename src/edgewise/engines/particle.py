"""The particle engine, the workhorse: any number of variables, the true likelihood (docs/method.md, 7).

Nothing needs tuning. ``noise`` states how much variance the log ratio of a decision may carry on average, and
``stirring`` how well the particles are mixed between decisions; warm-up measures both and sets the number of
particles and of the variables redrawn after a move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine, is_free
from edgewise.engines.rivals import MOST_OF_FEW, MOST_TRIED, lingering, rival_pairs, rival_rates
from edgewise.kernels import codes

PROPOSING_SHARE = 0.25
FEWEST_PARTICLES = 384
# With few variables most decisions share some, and particles are cheap.
FEWEST_STATES = 12_288
LANE_BLOCK = 64
MEMORY_LIMIT = 400e6
# Active pairs per variable.
MOST_AT_START = 3
MOST_PER_ROW = 10.0
BUDGET_AT = 0.6
# With so few candidates all are hot.
ALL_HOT = 600
LOWEST_RATE = 0.15
# Variables redrawn after a move, per sweep of mixing time and over the independent directions; and the
# most that is spent on it, in units of one pass over the particles.
STIRRING_RATE = 60.0
DEAREST_STIRRING = 90.0


@dataclass(frozen=True)
class ParticleSettings:
    """Settings of the particle engine; nobody needs to touch them.

    Attributes
    ----------
    noise : float
        Tolerated variance of the log ratio of a decision, averaged over what is accepted.
    stirring : float
        How long the particles are stirred after a move, relative to what their measured mixing asks for.
    particles : int
        Number of particles; 0 chooses it from `noise`.
    sites : int
        Variables redrawn after every move; 0 chooses it from `stirring`.
    warm_up : int
        Iterations before the first kept draw.
    thin : int
        Iterations between kept draws.
    swaps : int
        Swaps of any pair tried per iteration, beside those of known rivals; -1 is one for every eight
        variables.
    """

    noise: float = 0.3
    stirring: float = 1.0
    particles: int = 0
    sites: int = 0
    warm_up: int = 400
    thin: int = 1
    swaps: int = -1


class ParticleEngine(LineEngine):
    """One particle chain; see ``engines/protocol.py``."""

    name: ClassVar[str] = "particle"
    Settings: ClassVar[type] = ParticleSettings
    takes_blanks: ClassVar[bool] = True

    def _rounded(self, n: float) -> int:
        p = self._rows_of_states()
        most = MEMORY_LIMIT / (8 * p)
        fewest = max(FEWEST_PARTICLES, FEWEST_STATES / p) if self.settings.particles == 0 else 8
        n = max(min(n, most), fewest)
        return int(math.ceil(n / LANE_BLOCK) * LANE_BLOCK) if n > LANE_BLOCK else int(n)

    def _rows_of_states(self) -> int:
        """Numbers that a particle consists of."""
        return self.problem.features.n_variables

    def _begin(self, seed: np.random.SeedSequence, start: str) -> None:
        rows = float(self._arrays["rows"][0])
        self._arrays["seed"] = seed.generate_state(4, np.uint32)
        self._arrays["sites"] = np.array([self.settings.sites or 6])
        self._arrays["cursor"] = np.zeros(1, np.int64)
        n = self._rounded(self.settings.particles or 1.5 * rows)
        rng = np.random.default_rng(seed)
        self._arrays["X"] = self._first_states(n, rng, start == "default" and rows > 0)
        self._fit_swarm(n)
        self._arrays["scan"] = np.zeros(len(self._chain.theta))
        self._arrays["watched"] = np.zeros(1)
        self._screen()
        self._choose_cold_moves()
        self._set_rivals(np.zeros((0, 2), np.int64))

    def _first_states(self, n: int, rng: np.random.Generator, fitted: bool) -> np.ndarray:
        """The first particles: of independent variables, or of a rough fit to which the chain is brought."""
        means = self._rules.centres[0]
        states = (rng.random((len(means), n)) < means[:, None]).astype(np.float32)
        found = self._start_at_fit(n, rng, MOST_AT_START) if fitted else None
        return states if found is None else found

    def _fit_swarm(self, n: int) -> None:
        """Give the swarm `n` particles, repeating or leaving out present ones."""
        from edgewise.kernels.random import lane_streams

        arrays = self._arrays
        present = arrays["X"].shape[1]
        if present != n or "w" not in arrays:
            chosen = np.arange(n) % present
            split = int(PROPOSING_SHARE * n)
            if "split" in arrays and present != n:
                # Proposing particles descend from proposing ones only: the groups never mix.
                old = int(arrays["split"][0])
                chosen[:split] = np.arange(split) % old
                chosen[split:] = old + np.arange(n - split) % (present - old)
            arrays["X"] = np.ascontiguousarray(arrays["X"][:, chosen])
            arrays["split"] = np.array([split])
            arrays["w"] = np.ones(n, np.float32)
            arrays["F"] = np.zeros_like(arrays["X"])
            entropy = [int(word) for word in arrays["seed"]] + [n]
            arrays["lanes"] = lane_streams(np.random.SeedSequence(entropy), n)

    def _derive(self) -> None:
        arrays = self._arrays
        self._source = self._swarm(arrays["X"].shape[1])
        rate = arrays["scan"]
        # Neighbouring decisions should not share variables: their noise would be correlated.
        order = np.random.default_rng(arrays["seed"]).permutation(len(rate))
        hot = order[rate[order] > 0]
        p = self.problem.features.n_variables
        self._scan = self._scan_of(
            hot=hot,
            probability=rate[hot],
            is_hot=rate > 0,
            cold_flips=min(p, self._n_candidates() - len(hot)),
            cold_moves=int(arrays["cold_moves"][0]),
        )

    def _swarm(self, n: int) -> Any:
        """The particles as a source of means."""
        from edgewise.kernels.plain_swarm import PlainSwarm
        from edgewise.kernels.swarm import Swarm

        arrays = self._arrays
        kind: Any = Swarm if self._chain.graph.members.shape[1] == 2 else PlainSwarm
        return kind(
            X=arrays["X"],
            F=arrays["F"],
            w=arrays["w"],
            lanes=arrays["lanes"],
            split=int(arrays["split"][0]),
            cursor=arrays["cursor"],
            sites=int(arrays["sites"][0]),
            change_i=np.zeros(n, np.float32),
            change_j=np.zeros(n, np.float32),
            product=np.zeros(n, np.float32),
            slots=tuple(np.zeros((3, n), np.int64)),
        )

    def _scan_of(self, **visited: Any) -> Any:
        """What an iteration visits, the swaps included."""
        from edgewise.kernels.state import Rivals, Scan

        arrays = self._arrays
        pairs_only = self._chain.graph.members.shape[1] == 2
        swaps = self.settings.swaps
        swaps = swaps if swaps >= 0 else max(1, self.problem.features.n_variables // 8)
        return Scan(
            **visited,
            swaps=swaps if pairs_only else 0,
            rivals=Rivals(arrays["rivals"], arrays["rival_rate"], arrays["rival_tallies"]),
        )

    def _n_candidates(self) -> int:
        """Number of all candidates."""
        return self.problem.features.n_cliques

    def _screen(self) -> None:
        """First scan: the candidates whose variables are visibly correlated in the data."""
        rows = max(self._sums.rows[0], 1.0)
        rate = self._arrays["scan"]
        if len(rate) <= ALL_HOT:
            rate[:] = 1.0
        else:
            z = self._z_scores(rows)
            most = min(len(z), 20 * self.problem.features.n_variables)
            rate[z > max(2.5, np.partition(z, -most)[-most])] = 1.0
        rate[~is_free(self.problem.prior.status)] = 0.0

    def _z_scores(self, rows: float) -> np.ndarray:
        """How many standard errors from zero the correlation of each pair is in the data."""
        members = self.problem.features.members
        i, j = members[:, 0], members[:, 1]
        m = self._rules.centres[0]
        joint = (self._sums.cliques[0] + 0.5 * m[i] * m[j]) / (rows + 0.5)
        spread = m[i] * (1 - m[i]) * m[j] * (1 - m[j])
        z: np.ndarray = np.abs(joint - m[i] * m[j]) * np.sqrt(rows / spread)
        if members.shape[1] > 2:
            z[members[:, 2] >= 0] = 0.0
        return z

    def _adapt(self) -> None:
        arrays = self._arrays
        # The last stretch of warm-up may be a shorter one.
        arrays["watched"] += (self.iteration - 1) % self.adapt_every + 1
        if self.iteration >= 2 * self.adapt_every:
            self._choose_scan()
            self._choose_rivals()
        if self.iteration < BUDGET_AT * self.warm_up:
            seen = arrays["tallies"][codes.SEEN].copy()
            for name in ("tallies", "watched"):
                arrays[name] *= 0.3
            arrays["tallies"][codes.SEEN] = seen
        elif self.iteration < self.warm_up:
            self._choose_budget()
        self._choose_sites()
        if self.iteration == self.warm_up:
            self._end_warm_up()
        else:
            arrays["counters"][:] = 0.0
        self._derive()
        self._renew()

    def _share(self) -> np.ndarray:
        """How often each candidate has been active in warm-up."""
        tallies = self._arrays["tallies"]
        tries, found = tallies[codes.TRIES], tallies[codes.INCLUSION] + tallies[codes.OCCUPIED]
        share: np.ndarray = found / (tries + self._arrays["watched"])
        return share

    def _choose_scan(self) -> None:
        """Hot are the candidates that have been active for a share of the warm-up worth a visit."""
        share = self._share()
        rate = np.clip(8.0 * share * (1 - share), LOWEST_RATE, 1.0)
        if len(rate) > ALL_HOT:
            rate[8.0 * share < LOWEST_RATE] = 0.0
        rate[~is_free(self._chain.graph.status)] = 0.0
        self._arrays["scan"][:] = rate
        self._choose_cold_moves()

    def _choose_rivals(self) -> None:
        """Who competes with whom, as long as warm-up is young; then how often they are swapped."""
        arrays, share = self._arrays, self._share()
        decisions, most = float(arrays["scan"].sum()), MOST_TRIED if len(share) > ALL_HOT else MOST_OF_FEW
        if self.iteration <= max(BUDGET_AT * self.warm_up, 2 * self.adapt_every):
            if self._chain.graph.members.shape[1] > 2:
                return
            pairs = self._find_rivals(share)
            # Swaps that follow each other should not share variables.
            pairs = np.random.default_rng(arrays["seed"]).permutation(pairs)
            self._set_rivals(pairs)
            arrays["rival_rate"] = rival_rates(pairs, share, decisions, most=most)
        elif self.iteration == self.warm_up:
            occupied, lingered = arrays["tallies"][[codes.OCCUPIED, codes.LINGERED]] / arrays["watched"]
            slowness = lingering(occupied, codes.LAG * lingered)
            arrays["rival_rate"] = rival_rates(
                arrays["rivals"], share, decisions, slowness, arrays["rival_tallies"], most
            )

    def _find_rivals(self, share: np.ndarray) -> np.ndarray:
        """Candidates that compete, two in a row."""
        members, free = self.problem.features.members, is_free(self.problem.prior.status)
        return rival_pairs(share, free, self._correlations(), members, self._rules.pair_index)

    def _set_rivals(self, pairs: np.ndarray) -> None:
        self._arrays["rivals"] = pairs
        self._arrays["rival_rate"] = np.zeros(len(pairs))
        self._arrays["rival_tallies"] = np.zeros((2, len(pairs)))

    def _choose_cold_moves(self) -> None:
        """As many births of cold candidates, and deaths, as there are active ones."""
        p = self.problem.features.n_variables
        some_cold = bool(((self._arrays["scan"] == 0) & is_free(self._chain.graph.status)).any())
        self._arrays["cold_moves"] = np.array([2 * max(p, self.active()) if some_cold else 0])

    def _choose_budget(self) -> None:
        """Particles from the measured noise of the decisions."""
        if self.settings.particles:
            return
        excess = self._noise() / self.settings.noise
        if "budgeted" not in self._arrays or excess > 1.1:
            rows = float(self._arrays["rows"][0])
            n = self._arrays["X"].shape[1] * excess
            self._fit_swarm(self._rounded(min(n, MOST_PER_ROW * rows)))
            self._arrays["budgeted"] = np.ones(1)

    def _noise(self) -> float:
        """Measured noise of the decisions: of indicators or of redrawn parameters, whichever is larger."""
        sums, counts = (self._arrays["counters"][k : k + 2] for k in (codes.NOISE_SUM, codes.NOISE_COUNT))
        return float(np.max(np.divide(sums, counts, out=np.zeros(2), where=counts > 0)))

    def _directions(self) -> float:
        """How many independent variables the model is worth: p if all are independent, 1 if they are one.

        The participation ratio of their correlations, tr(R)^2 / tr(R^2), less what is noise in R.
        """
        p, squares = self._squared_correlations()
        w = self._source.w
        squares -= p * (p - 1) * float((w / w.sum()) @ (w / w.sum()))
        return p * p / max(squares, p) if p else 1.0

    def _squared_correlations(self) -> tuple[int, float]:
        """Number of variables that vary, and the sum of all their squared correlations."""
        R = self._correlations()
        return int(np.count_nonzero(np.diag(R))), float((R**2).sum())

    def _correlations(self) -> np.ndarray:
        """Correlations of the variables over the particles; zero where a variable does not vary."""
        centred = self._standardised()
        found: np.ndarray = centred @ centred.T
        return found

    def _standardised(self) -> np.ndarray:
        """Variables over the particles, centred, of length one; zero where a variable does not vary."""
        X, w = self._source.X, self._source.w
        share = w / w.sum()
        centred = (X - (X @ share)[:, None]) * np.sqrt(share)
        spread = np.sqrt((centred**2).sum(axis=1))
        centred /= np.where(spread > 0, spread, 1.0)[:, None]
        return np.asarray(centred)

    def _mixing_time(self) -> float:
        """Sweeps of Gibbs sampling after which the variables have forgotten their states, on average."""
        swarm = self._source
        moved = self._swept_states()
        share = swarm.w / swarm.w.sum()
        (before, first), (after, second) = (self._moments(states, share) for states in (swarm.X, moved))
        together = (swarm.X * moved) @ share - before * after
        spread = np.sqrt(first * second).sum()
        correlation = min(0.9, max(0.0, float(together.sum() / max(spread, 1e-9))))
        return (1 + correlation) / (1 - correlation)

    def _moments(self, states: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted means and variances of the variables."""
        means = np.clip(states @ share, 0, 1)
        return means, means * (1 - means)

    def _swept_states(self) -> np.ndarray:
        """What the particles would be after one sweep of Gibbs sampling."""
        from edgewise.kernels.gibbs import gibbs_sweep

        swarm, chain = self._source, self._chain
        moved, fields, lanes = swarm.X.copy(), swarm.F.copy(), swarm.lanes.copy()
        gibbs_sweep(moved, fields, lanes, chain.theta, chain.graph, swarm.change_i, swarm.product)
        return moved

    def _choose_sites(self) -> None:
        """Variables redrawn after a move: more where decisions share their noise, fewer where it is dear."""
        if self.settings.sites == 0:
            degree = float(self._arrays["degree"].mean())
            wanted = STIRRING_RATE * self.settings.stirring * self._mixing_time() / self._directions()
            affordable = DEAREST_STIRRING / (self._cost_of_a_draw() + 0.15 * degree)
            self._arrays["sites"][0] = round(max(1.0, max(2.0, min(wanted, affordable)) - self._swept()))

    def _cost_of_a_draw(self) -> float:
        """What redrawing a variable without neighbours takes, in passes over the particles."""
        return 1.5

    def _swept(self) -> float:
        """Variables redrawn per decision by the sweeps that follow resampling."""
        counters = self._arrays["counters"]
        # Of two groups one is swept at a time.
        swept = 0.5 * counters[codes.RESAMPLINGS] * self.problem.features.n_variables
        return float(swept / max(counters[codes.DECISIONS], 1.0))

    def counters(self) -> dict[str, float]:
        """Running totals and rates since warm-up."""
        counters = self._arrays["counters"]
        return self._flip_counters() | {
            "cold_tries": float(counters[codes.COLD_TRIES]),
            "cold_accepts": float(counters[codes.COLD_ACCEPTS]),
            "resamplings": float(counters[codes.RESAMPLINGS]),
            "noise": self._noise(),
            "site_updates": float(counters[codes.SITE_UPDATES]),
            "weight_ess": float(counters[codes.ESS_SUM] / max(counters[codes.ESS_COUNT], 1.0)),
            "particles": float(self._arrays["X"].shape[1]),
            "sites": float(self._arrays["sites"][0]),
            "rivals": float(len(self._arrays["rivals"])),
        }
