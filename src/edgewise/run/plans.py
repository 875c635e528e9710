"""What all chains of a run share, and how it reaches other processes: once each, not with every slice.

A slice that leaves the process carries a ticket with the plan's token. A process that has not seen the plan
answers :class:`Unknown`, and the slice is sent again with the plan in its ticket. That works for any
executor, any number of workers, and workers that die and are replaced.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from edgewise.engines.choose import load_engine, resolve
from edgewise.engines.protocol import Engine, Problem

MOST_KEPT = 4

_kept: dict[str, Plan] = {}
_problems: dict[str, Problem] = {}
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Parcel:
    """Something heavy on a journey: a token for it and, where the other side may not know it, its bytes."""

    token: str
    content: bytes | None = None

    @classmethod
    def of(cls, thing: Any) -> Parcel:
        """Pack a thing; equal bytes have equal tokens."""
        content = pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
        return cls(hashlib.sha256(content).hexdigest(), content)

    def sealed(self) -> Parcel:
        """The token alone."""
        return Parcel(self.token)


@dataclass(frozen=True, eq=False)
class Plan:
    """What all chains of a run share; `knowledge` is what they learned together in warm-up."""

    problem: Problem
    engine: str
    settings: Mapping[str, Any]
    knowledge: Mapping[str, np.ndarray] | None = None

    @cached_property
    def packed(self) -> Parcel:
        """All but the problem for the journey, made once."""
        return Parcel.of((self.engine, dict(self.settings), self.knowledge))

    @property
    def packed_problem(self) -> Parcel:
        """The problem for the journey, made once however often the chains meet."""
        parcel = _packed_problems.get(self.problem)
        if parcel is None:
            parcel = _packed_problems[self.problem] = Parcel.of(self.problem)
        return parcel

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
        """What travels with a slice: the tokens, or the `whole` plan too."""
        ticket = Ticket(self.packed_problem, self.packed)
        return ticket if whole else Ticket(ticket.problem.sealed(), ticket.rest.sealed())


@dataclass(frozen=True, eq=False)
class Ticket:
    """A plan on a journey, in two parcels: the problem stays the same when the chains have met."""

    problem: Parcel
    rest: Parcel

    @property
    def token(self) -> str:
        """Stands for the plan where it is known."""
        return f"{self.problem.token} {self.rest.token}"

    def plan(self) -> Plan | None:
        """The plan, if this process has or gets it."""
        with _lock:
            problem = _keep(_problems, self.problem.token, lambda: _unpacked(self.problem))
            plan: Plan | None = _keep(_kept, self.token, lambda: _made(problem, self.rest))
            return plan


@dataclass(frozen=True)
class Unknown:
    """The answer of a process that has not seen a plan yet."""

    token: str


def _unpacked(parcel: Parcel) -> Any:
    return None if parcel.content is None else pickle.loads(parcel.content)


def _made(problem: Problem | None, rest: Parcel) -> Plan | None:
    if problem is None or rest.content is None:
        return None
    return Plan(problem, *_unpacked(rest))


def _keep(store: dict[str, Any], token: str, make: Callable[[], Any]) -> Any:
    """What the token stands for, now the newest of a few."""
    found = store.pop(token, None)
    if found is None:
        found = make()
    if found is not None:
        store[token] = found
        while len(store) > MOST_KEPT:
            del store[next(iter(store))]
    return found


_packed_problems: WeakKeyDictionary[Problem, Parcel] = WeakKeyDictionary()
