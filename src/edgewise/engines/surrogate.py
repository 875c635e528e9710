"""Stretches taken at their word, and how far off that is (docs/method.md, 10).

The posterior is that of the likelihood to second order. After warm-up the particles go on, to measure what
the surrogate is wrong about (``meter.py``).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from edgewise.engines.blanks import as_made
from edgewise.engines.meter import (
    POINTS,
    Meter,
    shift_of_pairs,
    sparse_centre,
    sums_of,
    whose_terms,
)
from edgewise.engines.stretch import StretchEngine

# Sweeps of the particles before counting, and counted, at each point of the way.
FOLLOW = 4
COUNTS = 8


class SurrogateEngine(StretchEngine):
    """One chain of stretches that nothing decides; see ``engines/protocol.py``."""

    name: ClassVar[str] = "surrogate"
    takes_blanks: ClassVar[bool] = True

    def _start_at_fit(self, n: int, rng: np.random.Generator, most: float) -> np.ndarray | None:
        """Where rows are many for the candidates, start at a fit of all of them."""
        from edgewise.engines.start import dense_fit, has_many_rows

        found = dense_fit(self.problem, n, rng) if has_many_rows(self.problem) else None
        if found is None:
            return super()._start_at_fit(n, rng, most)
        coupling, bias, states = found
        self._start_at(coupling, bias)
        return states

    def _oracle(self) -> Any:
        from edgewise.kernels.oracles import Trust

        return Trust(np.int64(0))

    def _measures(self) -> bool:
        return len(self._candidates) > 0 and self.settings.probes > 0

    def _derive(self) -> None:
        super()._derive()
        self._meter = None
        if "probed" not in self._arrays:
            return
        from edgewise.kernels.graph import empty_graph
        from edgewise.kernels.probing import empty_way

        problem, own, p = self.problem, self._knowledge, self.problem.features.n_variables
        assert own is not None
        # Where cells are blank the sums move; w does not, as the surrogate moves with them.
        made_for = as_made(problem, own).statistics
        theta = sparse_centre(own["phi"][p:], own["occupied"], np.ones(len(self._candidates), int))
        bias = own["bias_mean"] - theta @ own["bias_slope"]
        self._meter = Meter(
            first=np.concatenate([bias, theta]),
            rows=float(made_for.n_rows),
            sums=np.concatenate([made_for.singles, made_for.cliques[self._candidates]]),
            flat=1.0 / problem.prior.bias_sd**2,
            tilt=own["tilt"],
            shift=shift_of_pairs(self._members, self._rules.centres[0]),
            offset=np.arange(len(self._candidates) + 1),
            near=whose_terms(own["near"], self._members, np.arange(p + 1)),
            **{
                name: own[name] for name in ("precision", "pull", "bias_mean", "bias_slope", "bias_precision")
            },
        )
        graph = empty_graph(problem.features.members, problem.prior.status, p)
        sweeps = (FOLLOW, COUNTS)
        n = self.settings.particles
        present = self._arrays["way.bias"], self._arrays["way.theta"]
        self._way = empty_way(graph, self._candidates, (bias, theta), present, n, sweeps, POINTS)

    def _probe(self) -> None:
        """Measure w of the present state."""
        from edgewise.kernels.probing import walk_the_way

        assert self._meter is not None
        arrays, chain = self._arrays, self._chain
        backwards = bool(arrays["probed"][0, 0] % 2)
        walk_the_way(
            backwards, chain.bias, chain.theta, arrays["X"], arrays["lanes"], chain.stream, self._way
        )
        phi = np.concatenate([chain.bias, chain.theta[self._candidates]])
        self._meter.add(arrays["probed"], phi, self._way.means)

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up, and those of the measured error."""
        sums = super().edge_sums()
        if "probed" in self._arrays:
            n_cliques = self.problem.features.n_cliques
            sums |= sums_of(self._arrays["probed"], self._candidates, n_cliques)
        return sums
