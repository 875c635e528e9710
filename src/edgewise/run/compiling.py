"""Compiling an engine before the clock of a run starts."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.data import read_data
from edgewise.data.table import BinaryData, Data, LevelData
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.priors import Prior
from edgewise.scales import BINARY_SCALE, Scale, Scales

PREPARING_ITERATIONS = 4

_prepared: set[tuple[str, bool, int, bool, bool]] = set()


def prepare(
    engine_name: str,
    all_pairs: bool,
    max_order: int,
    settings: Mapping[str, Any],
    levels: bool = False,
    blanks: bool = False,
) -> float:
    """Compile an engine's kernels on a problem of three variables; return the seconds it took.

    Numba keeps what it compiled on disk, so this is long at the first use of an installation only.
    """
    key = (engine_name, all_pairs, min(max_order, 3), levels, blanks)
    started = time.monotonic()
    if key not in _prepared:
        tiny = _tiny_levels(all_pairs) if levels else _tiny(all_pairs, max_order)
        tiny = _with_blanks(tiny) if blanks else tiny
        kind, seed = load_engine(engine_name), np.random.SeedSequence(0)
        with _no_collecting():
            chosen = {**settings, "warm_up": PREPARING_ITERATIONS}
            try:
                engine = kind(tiny, chosen, seed)
            except DataError:
                chosen = dict(settings)
                engine = kind(tiny, chosen, seed)  # an engine without that setting, or a wrong one
            engine.advance(min(PREPARING_ITERATIONS, engine.warm_up))
            knowledge = None
            while getattr(engine, "meeting", None) is not None:
                engine.advance(engine.warm_up - engine.iteration)
                knowledge = kind.pool(tiny, chosen, [engine.state()], knowledge)  # type: ignore[attr-defined]
                engine = kind.restore(tiny, chosen, engine.state(), knowledge)  # type: ignore[call-arg]
            if engine.iteration >= engine.warm_up:
                engine.advance(PREPARING_ITERATIONS)
        _prepared.add(key)
    return time.monotonic() - started


def _tiny(all_pairs: bool, order: int) -> Problem:
    if all_pairs:
        small = Features.pairs(3)
    elif order == 2:
        small = Features.listed(3, [(0, 1), (1, 2)])
    else:
        small = Features.up_to(order + 1, order)
    quarter = np.array([4.0 / 2 ** len(small.clique(k)) for k in range(small.n_cliques)])
    statistics = Statistics(4.0, np.full(small.n_variables, 2.0), quarter)
    rows = read_data([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) if all_pairs else None
    return Problem(small, statistics, Prior().resolve(small), rows)


def _tiny_levels(all_pairs: bool) -> Problem:
    """A pair with one parameter, one with a matrix, and thresholds of every kind."""
    ordinal, nominal = Scale("ordinal", (0, 1, 2)), Scale("nominal", (0, 1, 2))
    small = Features.pairs(3) if all_pairs else Features.listed(3, [(0, 1), (1, 2)])
    scales = Scales((ordinal, nominal, BINARY_SCALE))
    return Problem(small, Statistics.none(small, scales), Prior().resolve(small), None, scales)


def _with_blanks(problem: Problem) -> Problem:
    """The same with a few rows in which a cell is blank."""
    p, scales = problem.features.n_variables, problem.scales
    blank = np.packbits(np.array([[1, 0, 0, 0]] + [[0, 0, 0, 0]] * (p - 1), np.uint8), axis=1)
    shared: dict[str, Any] = {
        "names": tuple(f"x{i}" for i in range(p)),
        "n_rows": 4,
        "weights": None,
        "levels": ((0, 1),) * p if scales is None else tuple(scale.labels for scale in scales),
        "unknown": blank,
    }
    rows: Data
    if scales is None:
        rows = BinaryData(packed=np.zeros((p, 1), np.uint8), **shared)
    else:
        rows = LevelData(codes=np.zeros((p, 4), np.uint8), scales=scales, **shared)
    return replace(problem, rows=rows)


def compilations() -> int:
    """How many kernels this process has begun to compile, rather than load."""
    cache = sys.modules.get("edgewise.kernels.cache")
    # Another thread may be in the middle of importing it.
    return len(getattr(cache, "compiled_anew", ()))


@contextmanager
def _no_collecting() -> Iterator[None]:
    """The compiler makes millions of objects that stay; looking for garbage costs a tenth of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
