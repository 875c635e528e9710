"""The exact engine for several groups: a table of states for every stratum (docs/method.md, 13).

Every pair is absent, present and the same in all groups, or present and different (``kernels/groups.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.common import LineEngine, is_free
from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.kernels.codes import FORBIDDEN, FORCED


class GroupEngine(ExactEngine):
    """One exact chain over pairs that may differ between groups; see ``engines/protocol.py``."""

    name: ClassVar[str] = "exact"
    takes_any_prior: ClassVar[bool] = False

    def _prepare(self, problem: Problem, settings: Mapping[str, Any] | None) -> None:
        super()._prepare(problem, settings)
        if problem.features.max_order > 2:
            raise DataError(
                "Groups are compared pair by pair, and the candidates have larger cliques; leave features "
                "out."
            )

    def _beside(self) -> dict[str, np.ndarray]:
        prior, groups = self.problem.prior, self.problem.n_groups
        n_cliques = self.problem.features.n_cliques
        return {
            "rates": np.array([prior.difference.q0, prior.difference.scale]),
            "coupling": np.zeros((groups, n_cliques)),
            "differs": np.zeros(n_cliques, np.int64),
            "parted": np.zeros(1, np.int64),
            "difference": np.zeros((3, n_cliques)),
        }

    def _bind(self) -> None:
        from edgewise.kernels.groups import GroupChain, GroupPrior, GroupRules, GroupWork

        super()._bind()
        difference = self.problem.prior.difference
        self._rules = GroupRules(
            **self._rules._asdict(),
            group_of=np.array(self.problem.group_of or (0,) * len(self.problem.parts), np.int64),
            group_prior=GroupPrior(
                beta_a=float(difference.beta_a),
                beta_b=float(difference.beta_b),
                fixed_q0=difference.fixed_q0,
                gamma_shape=float(difference.gamma_shape),
                gamma_rate=float(difference.gamma_rate),
                fixed_scale=difference.fixed_scale,
            ),
        )
        own = {name: self._arrays[name] for name in ("coupling", "differs", "rates", "parted", "difference")}
        self._chain = GroupChain(**self._chain._asdict(), **own)
        self._work = GroupWork(**self._work._asdict(), groups=np.zeros((7, self.problem.n_groups)))

    def _activate(self, active: np.ndarray, values: np.ndarray) -> None:
        super()._activate(active, values)
        self._chain.coupling[:, active] = values

    def _derive(self) -> None:
        from edgewise.kernels.groups import GroupScan
        from edgewise.kernels.table import GroupTable

        self._source = GroupTable(self._arrays["table"], self._rules.group_of)
        status = self.problem.prior.status
        hot = np.flatnonzero(status != FORBIDDEN)
        self._scan = GroupScan(hot=hot, probability=self._arrays["scan"][hot])

    def _adapt(self) -> None:
        if self.iteration < self.warm_up:
            return
        status, floor = self.problem.prior.status, self.settings.scan_floor
        tries = self._arrays["tallies"][0]
        different = np.divide(
            self._arrays["difference"][0], tries, out=np.full(len(tries), 0.5), where=tries > 0
        )
        # A pair that is there for certain may still be the same or different.
        interest = np.maximum(self._interest(floor), 2 * np.sqrt(4 * different * (1 - different)))
        self._arrays["scan"][:] = np.clip(interest, floor, 1.0) * (is_free(status) | (status == FORCED))
        self._end_warm_up()
        self._arrays["difference"][:] = 0.0
        self._derive()

    def edge_sums(self) -> dict[str, np.ndarray]:
        """Per-candidate totals since warm-up; ``difference`` as ``inclusion``, of being different."""
        names = ("difference", "partings", "joinings")
        own = {name: row.copy() for name, row in zip(names, self._arrays["difference"])}
        return super().edge_sums() | own

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        from edgewise.kernels.groups import GroupRecorder, run_groups

        groups = self.problem.n_groups
        self._recorded = GroupRecorder(
            couplings=np.zeros((len(recorder.indices), groups)), rates=np.zeros((len(recorder.biases), 2))
        )
        return run_groups(
            self._rules, self._sums, self._chain, self._source, self._scan, self._work,
            self._after_warm_up(), iterations, thin, recorder, self._recorded,
        )  # fmt: skip

    def _harvest(self, recorder: Any) -> Draws:
        plain = super()._harvest(recorder)
        count, entries = len(plain), int(plain.indptr[-1])
        draw = np.repeat(np.arange(count), plain.n_edges)
        order = np.lexsort((recorder.indices[:entries], draw))
        couplings, rates = self._recorded.couplings[:entries][order], self._recorded.rates[:count]
        return replace(plain, couplings=couplings, rates=rates.copy())

    @classmethod
    def restore(
        cls, problem: Problem, settings: Mapping[str, Any] | None, state: Mapping[str, np.ndarray]
    ) -> Any:
        """Rebuild a chain from its state."""
        return LineEngine.restore.__func__(cls, problem, settings, state)  # type: ignore[attr-defined]
