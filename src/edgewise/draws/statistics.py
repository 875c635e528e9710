"""How far a run is, from its draws alone: its slowest quantity, and whether the chains agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.draws import Draws

# An edge outside this range of frequencies is as good as decided; its few flips say little about mixing.
UNCERTAIN = (0.05, 0.95)
EDGE_COUNT, INCLUSION_RATE, SLAB_SCALE = -1, -2, -3


class StoppingStatistics(NamedTuple):
    """The state of a run, from its draws alone.

    Attributes
    ----------
    min_bulk_ess : float
        Effective number of draws of the slowest quantity: uncertain edges, number of edges, p0, sigma0.
    max_rhat : float
        Largest R-hat of the same quantities.
    slowest_index : int
        The slowest quantity: a candidate, or EDGE_COUNT (-1), INCLUSION_RATE (-2) or SLAB_SCALE (-3).
    n_uncertain : int
        Number of candidates that are active in 5 to 95 % of the draws.
    """

    min_bulk_ess: float
    max_rhat: float
    slowest_index: int
    n_uncertain: int


def stopping_statistics(draws: Sequence[Draws], n_cliques: int) -> StoppingStatistics:
    """Effective draws and R-hat of the slowest quantity of all chains.

    Chains may differ in length; the common first part is used. With fewer than four draws nothing can be
    said: no effective draws and an infinite R-hat. A quantity that never changes does not count.
    """
    length = min((len(chain) for chain in draws), default=0)
    if length < convergence.FEWEST_DRAWS:
        return StoppingStatistics(0.0, np.inf, EDGE_COUNT, 0)
    chains = [chain if len(chain) == length else chain[:length] for chain in draws]
    counts = np.zeros(n_cliques, np.int64)
    for chain in chains:
        counts += np.bincount(chain.indices, minlength=n_cliques)
    frequency = counts / (length * len(chains))
    uncertain = np.flatnonzero((frequency >= UNCERTAIN[0]) & (frequency <= UNCERTAIN[1]))

    common = np.array(
        [
            [chain.n_edges for chain in chains],
            [chain.inclusion_rate for chain in chains],
            [chain.slab_scale for chain in chains],
        ],
        float,
    )
    moving = np.flatnonzero(np.ptp(common.reshape(3, -1), axis=1) > 0)
    index = np.array([EDGE_COUNT, INCLUSION_RATE, SLAB_SCALE])[moving]
    ess = convergence.bulk_ess(common[moving])
    r_hat = convergence.rank_r_hat(common[moving])
    if len(uncertain):
        indicators = _indicators(chains, uncertain, n_cliques)
        index = np.concatenate([uncertain, index])
        ess = np.concatenate([convergence.indicator_ess(indicators), ess])
        r_hat = np.concatenate([convergence.indicator_r_hat(indicators), r_hat])
    if not len(index):
        # Nothing moves at all: every draw repeats the first one, and agreement is all there is to see.
        return StoppingStatistics(float(length * len(chains)), 1.0, EDGE_COUNT, 0)
    slowest = int(np.argmin(ess))
    return StoppingStatistics(float(ess[slowest]), float(r_hat.max()), int(index[slowest]), len(uncertain))


def _indicators(chains: Sequence[Draws], cliques: np.ndarray, n_cliques: int) -> np.ndarray:
    """0/1 values of some cliques: uint8 (cliques, chains, draws)."""
    row = np.full(n_cliques, -1)
    row[cliques] = np.arange(len(cliques))
    result = np.zeros((len(cliques), len(chains), len(chains[0])), np.uint8)
    for number, chain in enumerate(chains):
        where = row[chain.indices]
        draw = np.repeat(np.arange(len(chain)), chain.n_edges)
        wanted = where >= 0
        result[where[wanted], number, draw[wanted]] = 1
    return result
