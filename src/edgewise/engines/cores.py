"""The core: candidates whose graphs are narrow enough to be weighed at every stretch (docs/method.md, 10.9).

What makes the graphs of a posterior wide is the many candidates that are seldom active, a few of them at any
time. Without them log Z is cheap, and what they add is nearly all known to the surrogate. So stretches are
decided by the core, and a tour of several of them by the whole graph.
"""

from __future__ import annotations

import numpy as np

from edgewise.features import Features

# Graphs of so many cells are weighed as fast as a stretch is made: they need no core.
CHEAP = 1 << 19
# Cells of the core: so many at most, and this share of the whole at most.
MOST_CELLS = 1 << 17
SHARE = 1 / 4
# Candidates active in at least this share of the draws are tried as the core, the largest first.
LEAST_ACTIVE = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4)
LOOKED_AT = 24
# Costs in nanoseconds: of a cell, of a step, and of the rest of a decision by the core.
CELL, STEP, REST = 0.8, 150.0, 40_000.0
FEWEST, MOST = 6, 10


def choose_core(
    features: Features,
    candidates: np.ndarray,
    occupied: np.ndarray,
    thetas: np.ndarray,
    steps: float,
    cells: int,
) -> tuple[np.ndarray, int, float]:
    """Which positions belong to the core, how many stretches make a tour, and the cells of whole graphs.

    A tour of no stretches: all are decided whole.

    Parameters
    ----------
    features, candidates : Features, array
        The candidates in play.
    occupied : array
        How often each is active.
    thetas : array (draws, positions)
        Parameters of some draws, zero where inactive.
    steps : float
        Steps of a stretch.
    cells : int
        Most cells of an elimination.
    """
    everything = np.ones(len(candidates), bool)
    members = np.ascontiguousarray(features.members[candidates])
    drawn = thetas[np.linspace(0, len(thetas) - 1, min(LOOKED_AT, len(thetas))).astype(int)] != 0
    whole = _mean_cells(features.n_variables, members, drawn, cells)
    if whole <= CHEAP:
        return everything, 0, whole
    for least in LEAST_ACTIVE:
        core = occupied >= least
        some = _mean_cells(features.n_variables, members, drawn & core, cells)
        if some <= min(MOST_CELLS, SHARE * whole):
            inner = CELL * whole / (CELL * some + STEP * steps + REST)
            return core, int(np.clip(round(inner), FEWEST, MOST)), whole
    return everything, 0, whole


def _mean_cells(p: int, members: np.ndarray, drawn: np.ndarray, cells: int) -> float:
    """Cells of an elimination, averaged over graphs; one that is too wide counts with the limit."""
    from edgewise.kernels.elimination import elimination_room
    from edgewise.kernels.ordering import count_cells

    room = elimination_room(p, 1, 2)._replace(limit=cells)
    listed = np.full(drawn.shape[1], -1, np.int64)
    total = 0.0
    for active in drawn:
        found = np.flatnonzero(active)
        listed[: len(found)] = found
        total += min(count_cells(listed, len(found), members, room), cells)
    return total / max(len(drawn), 1)
