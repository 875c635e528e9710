"""How far a run is, from its draws alone: its slowest quantity, and whether the chains agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.draws import Draws

# An edge outside this range of frequencies is as good as decided; its few flips say little about mixing.
UNCERTAIN = (0.05, 0.95)
EDGE_COUNT, INCLUSION_RATE, SLAB_SCALE, MODEL = -1, -2, -3, -4
# Where groups are compared, the same of their differences; that of a candidate follows after all candidates.
DIFFERENCE_COUNT, DIFFERENCE_RATE, DIFFERENCE_SCALE = -5, -6, -7
# An edge seen in one visit has an error of its frequency, or a little more where the visit is long.
_ERROR_PER_SHARE = 1.25
_CELLS_AT_ONCE = 4_000_000


class StoppingStatistics(NamedTuple):
    """The state of a run, from its draws alone.

    Attributes
    ----------
    min_bulk_ess : float
        Effective number of draws of the slowest quantity: uncertain edges, number of edges, p0, sigma0.
    max_rhat : float
        Largest R-hat of the same quantities.
    slowest_index : int
        The slowest quantity: a candidate, or EDGE_COUNT (-1), INCLUSION_RATE (-2), SLAB_SCALE (-3) or MODEL
        (-4), what a model of inclusion has learned. Where groups are compared M and more are the differences
        of the M candidates, and -5 to -7 their number, q0 and sigma_D.
    n_uncertain : int
        Number of candidates that are active in 5 to 95 % of the draws.
    max_error : float
        Largest Monte Carlo standard error of an inclusion probability, over all candidates that were active
        in some draws and not in all.
    widest_index : int
        The candidate with that error; EDGE_COUNT where no candidate varies.
    furthest_index : int
        The quantity with the largest R-hat, named as the slowest one is.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import stopping_statistics
    >>> found = stopping_statistics(model.posterior_.draws, model.posterior_.n_cliques)
    >>> found.min_bulk_ess > 400
    True
    """

    min_bulk_ess: float
    max_rhat: float
    slowest_index: int
    n_uncertain: int
    max_error: float = 0.0
    widest_index: int = EDGE_COUNT
    furthest_index: int = EDGE_COUNT


def stopping_statistics(draws: Sequence[Draws], n_cliques: int) -> StoppingStatistics:
    """Effective draws and R-hat of the slowest quantity of all chains.

    Chains may differ in length; the common first part is used. With fewer than four draws nothing can be
    said: no effective draws and an infinite R-hat. A quantity that never changes does not count.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import stopping_statistics
    >>> stopping_statistics(model.posterior_.draws, model.posterior_.n_cliques).max_rhat < 1.01
    True
    """
    if draws and all(chain.couplings is not None for chain in draws):
        shared = stopping_statistics([replace(chain, couplings=None) for chain in draws], n_cliques)
        return _both(
            shared, stopping_statistics([chain.differences() for chain in draws], n_cliques), n_cliques
        )
    length = min((len(chain) for chain in draws), default=0)
    if length < convergence.FEWEST_DRAWS:
        return StoppingStatistics(0.0, np.inf, EDGE_COUNT, 0, np.inf)
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
            *_learned(chains),
        ],
        float,
    )
    moving = np.flatnonzero(np.ptp(common.reshape(len(common), -1), axis=1) > 0)
    index = np.array([EDGE_COUNT, INCLUSION_RATE, SLAB_SCALE] + [MODEL] * (len(common) - 3))[moving]
    ess = convergence.bulk_ess(common[moving])
    r_hat = convergence.rank_r_hat(common[moving])
    error, widest = 0.0, EDGE_COUNT
    if len(uncertain):
        indicators = _indicators(chains, uncertain, n_cliques)
        index = np.concatenate([uncertain, index])
        indicator_ess = convergence.indicator_ess(indicators)
        ess = np.concatenate([indicator_ess, ess])
        r_hat = np.concatenate([convergence.indicator_r_hat(indicators), r_hat])
        errors = standard_error(frequency[uncertain], indicator_ess, length * len(chains))
        error, widest = float(errors.max()), int(uncertain[errors.argmax()])
    error, widest = _among_decided(chains, frequency, error, widest)
    if not len(index):
        # Nothing moves at all: every draw repeats the first one, and agreement is all there is to see.
        return StoppingStatistics(float(length * len(chains)), 1.0, EDGE_COUNT, 0, error, widest)
    slowest = int(np.argmin(ess))
    return StoppingStatistics(
        float(ess[slowest]),
        float(r_hat.max()),
        int(index[slowest]),
        len(uncertain),
        error,
        widest,
        int(index[np.argmax(r_hat)]),
    )


def _learned(chains: Sequence[Draws]) -> list[list[np.ndarray]]:
    """What a model of inclusion has learned: the number of communities, or every coefficient."""
    states = [chain.model_state for chain in chains if chain.model_state is not None]
    if len(states) < len(chains):
        return []
    if states[0].dtype.kind == "i":
        return [[state.max(axis=1) for state in states]]
    return [[state[:, k] for state in states] for k in range(states[0].shape[1])]


def _both(shared: StoppingStatistics, apart: StoppingStatistics, n_cliques: int) -> StoppingStatistics:
    """The worse of what is said of the candidates and of their differences."""

    def moved(index: int) -> int:
        return index + n_cliques if index >= 0 else index + DIFFERENCE_COUNT - EDGE_COUNT

    slow, far, wide = (
        apart.min_bulk_ess < shared.min_bulk_ess,
        apart.max_rhat > shared.max_rhat,
        apart.max_error > shared.max_error,
    )
    return StoppingStatistics(
        min(shared.min_bulk_ess, apart.min_bulk_ess),
        max(shared.max_rhat, apart.max_rhat),
        moved(apart.slowest_index) if slow else shared.slowest_index,
        shared.n_uncertain + apart.n_uncertain,
        max(shared.max_error, apart.max_error),
        moved(apart.widest_index) if wide else shared.widest_index,
        moved(apart.furthest_index) if far else shared.furthest_index,
    )


def standard_error(frequency: np.ndarray, ess: np.ndarray, total: int) -> np.ndarray:
    """Monte Carlo standard error of frequencies among `total` draws that are worth `ess` independent ones."""
    result: np.ndarray = np.sqrt(frequency * (1 - frequency) * total / max(1, total - 1) / ess)
    return result


def _among_decided(
    chains: Sequence[Draws], frequency: np.ndarray, error: float, widest: int
) -> tuple[float, int]:
    """The largest error when the edges outside the uncertain range are looked at as well.

    Only those with a larger share of rare draws than could explain the `error` found so far are computed.
    """
    share = np.minimum(frequency, 1 - frequency)
    total = len(chains) * len(chains[0])
    rare = np.flatnonzero((share * _ERROR_PER_SHARE > error) & (share > 0) & (frequency < UNCERTAIN[0]))
    ess = np.full(len(frequency), np.nan)
    if len(rare):
        ess[rare] = convergence.sparse_indicator_ess(*_places(chains, rare, len(frequency)))
    left = (share * _ERROR_PER_SHARE > error) & (share > 0) & (share < UNCERTAIN[0]) & np.isnan(ess)
    cliques = np.flatnonzero(left)
    step = max(1, _CELLS_AT_ONCE // total)
    for start in range(0, len(cliques), step):
        batch = cliques[start : start + step]
        ess[batch] = convergence.indicator_ess(_indicators(chains, batch, len(frequency)))
    known = np.flatnonzero(~np.isnan(ess))
    if len(known):
        errors = standard_error(frequency[known], ess[known], total)
        if errors.max() > error:
            return float(errors.max()), int(known[errors.argmax()])
    return error, widest


def _places(
    chains: Sequence[Draws], cliques: np.ndarray, n_cliques: int
) -> tuple[np.ndarray, np.ndarray, tuple[int, int, int]]:
    """Where some cliques are active: row among them and draw, ascending in both, and the dense shape."""
    row = np.full(n_cliques, -1)
    row[cliques] = np.arange(len(cliques))
    length = len(chains[0])
    owners, places = [], []
    for number, chain in enumerate(chains):
        where = row[chain.indices]
        wanted = where >= 0
        owners.append(where[wanted])
        places.append(np.repeat(np.arange(length) + number * length, chain.n_edges)[wanted])
    owner, place = np.concatenate(owners), np.concatenate(places)
    order = np.argsort(owner, kind="stable")
    return owner[order], place[order], (len(cliques), len(chains), length)


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
