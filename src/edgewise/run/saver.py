"""When a running fit is saved: photographs of the chains between slices, written by a thread of its own.

Chains need not be at the same iteration in a checkpoint, so none ever waits for another one's photograph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.run.checkpoint import Checkpoint
from edgewise.run.workers import RunningChain

Photograph = tuple[Mapping[str, np.ndarray], Draws]


class Saver:
    """Saves the chains into `store` every `every` seconds; does nothing without a store.

    Attributes
    ----------
    seconds : float
        What saving has cost: the time the conductor was held up, and the CPU time of the thread that writes
        (while that waits for the disk, the chains go on).
    """

    def __init__(self, store: Checkpoint | None, every: float) -> None:
        self.store, self.every = store, every
        self.seconds = 0.0
        self._writer = ThreadPoolExecutor(1, "edgewise-checkpoint") if store is not None else None
        self._writing: Future[None] | None = None
        self._last = time.monotonic()
        self._round: dict[int, Photograph] | None = None

    def serve(
        self, chains: Sequence[RunningChain], idle: Iterable[RunningChain], notes: Callable[[], Any]
    ) -> None:
        """Photograph the idle chains when it is time, and write when every chain has been."""
        if self.store is None or self._writer is None:
            return
        if self._writing is not None:
            if not self._writing.done():
                return
            self._writing.result()
            self._writing = None
        if self._round is None:
            if time.monotonic() - self._last < self.every:
                return
            self._round = {}
        for chain in idle:
            if chain.index not in self._round:
                self._round[chain.index] = self._photograph(chain)
        if len(self._round) == len(chains):
            pictures = [self._round[chain.index] for chain in chains]
            self._round = None
            self._last = time.monotonic()
            self._writing = self._writer.submit(self._write, pictures, notes(), time.thread_time)

    def finish(self, chains: Sequence[RunningChain], notes: Mapping[str, Any]) -> None:
        """Save the end of the run."""
        if self.store is None:
            return
        if self._writing is not None:
            self._writing.result()
            self._writing = None
        begun, self._round = self._round or {}, None
        pictures = []
        for chain in chains:
            state, draws = self._photograph(chain)
            if chain.index in begun:
                draws = Draws.concatenate([begun[chain.index][1], draws])
            pictures.append((state, draws))
        self._write(pictures, notes, time.monotonic)

    def share(self, knowledge: Mapping[str, np.ndarray] | None) -> None:
        """Save what the chains learned together when they met; photographs from before are of no use."""
        if self.store is None or knowledge is None:
            return
        if self._writing is not None:
            self._writing.result()
            self._writing = None
        started = time.monotonic()
        self._round = None
        self.store.share(knowledge)
        self.seconds += time.monotonic() - started

    def close(self) -> None:
        """Wait for the last write and release the checkpoint."""
        if self._writer is not None:
            self._writer.shutdown(wait=True)
        if self.store is not None:
            self.store.close()

    def _photograph(self, chain: RunningChain) -> Photograph:
        started = time.monotonic()
        pieces, chain.unsaved = chain.unsaved, []
        empty = Draws.empty(chain.plan.problem.n_biases)
        picture = chain.state(), Draws.concatenate(pieces) if pieces else empty
        self.seconds += time.monotonic() - started
        return picture

    def _write(
        self, pictures: Sequence[Photograph], notes: Mapping[str, Any], clock: Callable[[], float]
    ) -> None:
        started = clock()
        assert self.store is not None
        self.store.save(pictures, notes)
        self.seconds += clock() - started
