"""Rivals: pairs that explain the same correlation, found in warm-up, and how often they are swapped.

Two pairs (i, j) and (i, k) compete where j and k are correlated. Which do follows from the correlations of
the variables over the particles; how often each is worth a try from how slowly their indicators move and
from how often the swap was accepted. All of it is frozen when warm-up ends (docs/method.md, 7).
"""

from __future__ import annotations

import numpy as np

# Variables j and k correlated less than this hardly stand in for each other; so many k for every j at most.
LEAST_CORRELATION = 0.2
RIVALS_EACH = 5
# Pairs seldomer active than this in warm-up have no rivals of their own, but may be one.
SELDOM_ACTIVE = 0.05
# How often a swap is tried in an iteration: at least so often, more between slow indicators, a tenth where
# warm-up saw (nearly) no chance of it.
LOWEST_RATE, SLOW_RATE, HOPELESS_SHARE = 0.15, 0.75, 0.1
HOPELESS = 0.002
# Autocorrelations that count as none and as slow; those of an indicator that hardly varied say nothing.
FAST, SLOW = 0.2, 0.7
HARDLY_VARIED = 0.02
# Swaps tried per decision of an indicator, at most; with few candidates flips find their way without them.
MOST_TRIED, MOST_OF_FEW = 0.25, 0.03


def rival_pairs(
    share: np.ndarray, free: np.ndarray, correlation: np.ndarray, members: np.ndarray, pair_index: np.ndarray
) -> np.ndarray:
    """Candidates that compete, two in a row, the smaller number first.

    `share` is how often each candidate was active, `free` whether its indicator is decided.

    Examples
    --------
    Of the pairs of three variables 01 is active, and 1 follows 2 more closely than 0 does:

    >>> members = np.array([[0, 1], [0, 2], [1, 2]])
    >>> index = np.array([[-1, 0, 1], [0, -1, 2], [1, 2, -1]])
    >>> correlation = np.array([[1, 0.1, 0.1], [0.1, 1, 0.8], [0.1, 0.8, 1]])
    >>> rival_pairs(np.array([0.9, 0, 0]), np.ones(3, bool), correlation, members, index).tolist()
    [[0, 1]]
    """
    strength = np.abs(correlation)
    np.fill_diagonal(strength, 0.0)
    nearest = np.argsort(-strength, axis=1, kind="stable")[:, :RIVALS_EACH]
    close = np.take_along_axis(strength, nearest, axis=1) > LEAST_CORRELATION
    own = np.flatnonzero((share > SELDOM_ACTIVE) & free)
    found = []
    for stays, leaves in ((0, 1), (1, 0)):
        i, j = members[own, stays], members[own, leaves]
        other = pair_index[i[:, None], nearest[j]]
        wanted = close[j] & (nearest[j] != i[:, None]) & (other >= 0)
        row, column = np.nonzero(wanted)
        both = np.column_stack([own[row], other[row, column]]).astype(np.int64)
        found.append(np.sort(both[free[both[:, 1]]], axis=1))
    return np.unique(np.concatenate(found), axis=0)


def lingering(share: np.ndarray, again: np.ndarray) -> np.ndarray:
    """Autocorrelation of indicators over a fixed number of iterations (7.5); zero where they hardly varied.

    `share` is how often each was active, `again` how often it was at both ends of the interval.
    """
    spread = share * (1.0 - share)
    varied = (share > HARDLY_VARIED) & (share < 1.0 - HARDLY_VARIED)
    return np.divide(again - share * share, spread, out=np.zeros(len(share)), where=varied)


def rival_rates(
    pairs: np.ndarray,
    share: np.ndarray,
    decisions: float,
    slowness: np.ndarray | None = None,
    tallies: np.ndarray | None = None,
    most: float = MOST_TRIED,
) -> np.ndarray:
    """How often a swap between two rivals is tried in an iteration of so many `decisions` (7.4).

    `slowness` are autocorrelations and `tallies` the tries in warm-up with the sum of their acceptance
    probabilities, where these are known; `most` swaps are tried per decision.
    """
    rate = np.full(len(pairs), LOWEST_RATE)
    if slowness is not None:
        slow = np.clip((slowness - FAST) / (SLOW - FAST), 0.0, 1.0)
        rate += (SLOW_RATE - LOWEST_RATE) * slow[pairs].max(axis=1, initial=0.0)
    if tallies is not None:
        rate[tallies[1] < HOPELESS * tallies[0]] *= HOPELESS_SHARE
    first, second = share[pairs].T
    expected = float(rate @ (first * (1.0 - second) + second * (1.0 - first)))
    return rate * min(1.0, most * decisions / max(expected, 1e-9))
