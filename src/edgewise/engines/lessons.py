"""Chains that learn in rounds: what engines on a surrogate share (docs/method.md, 10).

At the end of a round the chains meet; each is then rebuilt with what all know together, and goes on to its
next lesson or, after the last one, to its draws. Where nothing decides, particles go on with the draws and
measure how far the surrogate is off (``meter.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from edgewise.engines.common import LineEngine
from edgewise.engines.meter import Meter, empty_totals, is_probed
from edgewise.engines.protocol import Problem


class RoundsEngine(LineEngine):
    """One chain that learns in rounds; see ``engines/protocol.py``.

    The array ``round`` counts the lessons that it has finished, and the names of those of the present one
    begin with `lesson`; those of its particles are `of_particles`.
    """

    lesson: ClassVar[str]
    of_particles: ClassVar[tuple[str, ...]]
    _knowledge: Mapping[str, np.ndarray] | None = None
    _meter: Meter | None = None
    _candidates: np.ndarray

    @property
    def meeting(self) -> int | None:
        """The iteration at which the chains meet next."""
        return self.warm_up if self._knowledge is None or not self._knowledge["last"][0] else None

    def _learn_anew(self) -> None:
        """Empty sums for the next round."""
        raise NotImplementedError

    def _walk_on(self, first: int, iterations: int, thin: int, recorder: Any) -> int:
        """Iterations, the first of them counted from the end of warm-up; how many there was room for."""
        raise NotImplementedError

    def _measures(self) -> bool:
        """Whether it measures how far its surrogate is off."""
        return False

    def _probe(self) -> None:
        """Measure w of the present state."""
        raise NotImplementedError

    def _run(self, iterations: int, thin: int, recorder: Any) -> int:
        first = self._after_warm_up()
        if self._meter is None:
            return self._walk_on(first, iterations, thin, recorder)
        for done in range(first, first + iterations):
            if not self._walk_on(done, 1, thin, recorder):
                return done - first
            if is_probed(done + 1, self.settings.probes):
                self._probe()
        return iterations

    @classmethod
    def restore(
        cls,
        problem: Problem,
        settings: Mapping[str, Any] | None,
        state: Mapping[str, np.ndarray],
        knowledge: Mapping[str, np.ndarray] | None = None,
    ) -> Any:
        """Rebuild a chain from :meth:`state` and what the chains know together."""
        self = cls._unpacked(problem, settings, state)
        self._knowledge = knowledge
        fresh = knowledge is not None and int(knowledge["round"][0]) > int(state["round"][0])
        if fresh:
            assert knowledge is not None
            self._arrays["round"] = np.array(knowledge["round"])
        self._bind()
        self._derive()
        if fresh:
            self._go_on()
        return self

    def _go_on(self) -> None:
        """After a meeting: to the next lesson or, after the last one, to the draws."""
        if self.iteration < self.warm_up:
            self._learn_anew()
            return
        learning = [name for name in self._arrays if name.startswith(self.lesson)]
        for name in learning if self._measures() else (*self.of_particles, *learning):
            del self._arrays[name]
        self._end_warm_up()
        if self._measures():
            self._arrays["probed"] = empty_totals(len(self._candidates))
            self._begin_measuring()
            self._derive()

    def _begin_measuring(self) -> None:
        """Note what the measurement starts from."""
