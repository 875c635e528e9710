"""What all chains of a run share, and how it reaches other processes: once each, not with every slice.

A slice that leaves the process carries a ticket with the plan's token. A process that has not seen the plan
answers :class:`Unknown`, and the slice is sent again with the plan in its ticket. That works for any
executor, any number of workers, and workers that die and are replaced.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from edgewise.engines.choose import load_engine, resolve
from edgewise.engines.protocol import Engine, Problem

MOST_KEPT = 4

_kept: dict[str, Plan] = {}
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Plan:
    """What all chains of a run share; `knowledge` is what they learned together in warm-up."""

    problem: Problem
    engine: str
    settings: Mapping[str, Any]
    knowledge: Mapping[str, np.ndarray] | None = None

    @cached_property
    def packed(self) -> bytes:
        """The plan for the journey, made once."""
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @cached_property
    def token(self) -> str:
        """Stands for the plan where it is known."""
        return hashlib.sha256(self.packed).hexdigest()

    def kind(self) -> type[Engine]:
        """Class of the engine."""
        return load_engine(self.path)

    @property
    def path(self) -> str:
        """Where the class of the engine is found."""
        return resolve(self.engine, self.problem, self.settings)

    def restore(self, state: Mapping[str, np.ndarray]) -> Engine:
        """Rebuild a chain from its state."""
        if self.knowledge is None:
            return self.kind().restore(self.problem, self.settings, state)
        return self.kind().restore(self.problem, self.settings, state, self.knowledge)  # type: ignore[call-arg]

    def after_meeting(self, states: Sequence[Mapping[str, np.ndarray]]) -> Plan:
        """The plan with what the chains, met in these states, know together."""
        pooled = self.kind().pool(self.problem, self.settings, states, self.knowledge)  # type: ignore[attr-defined]
        return replace(self, knowledge=pooled)

    def ticket(self, whole: bool = False) -> Ticket:
        """What travels with a slice: the token, or the `whole` plan too."""
        return Ticket(self.token, self.packed if whole else None)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class Ticket:
    """A plan on a journey: its token and, where the other side may not know it, the plan itself."""

    token: str
    packed: bytes | None

    def plan(self) -> Plan | None:
        """The plan, if this process has or gets it."""
        with _lock:
            plan = _kept.pop(self.token, None)
            if plan is None and self.packed is not None:
                plan = pickle.loads(self.packed)
            if plan is not None:
                _kept[self.token] = plan  # the newest last
                while len(_kept) > MOST_KEPT:
                    del _kept[next(iter(_kept))]
            return plan


@dataclass(frozen=True)
class Unknown:
    """The answer of a process that has not seen a plan yet."""

    token: str
