"""The pairs that were ever active among more than can be listed: what a posterior over them is about.

The others have no row of their own. All that is known of each is that no draw had it, and what is common to
them (:attr:`Posterior.n_unlisted <edgewise.Posterior.n_unlisted>`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics, sufficient_statistics

PER_CANDIDATE = ("tries", "inclusion", "births", "deaths")


@dataclass(frozen=True, eq=False)
class Listing:
    """Draws and sums over listed pairs, and how many there are besides.

    Attributes
    ----------
    features, statistics
        The pairs, and their sums over the data.
    draws, edge_sums : list
        Of each chain.
    notes : mapping
        ``candidates``, the number of all pairs, and ``rest_inclusion``, the mean probability that deciding a
        pair which has no row left it active.
    """

    features: Features
    statistics: Statistics
    draws: list[Draws]
    edge_sums: Sequence[Mapping[str, np.ndarray]]
    notes: dict[str, Any]


def listed(
    problem: Problem, draws: Sequence[Draws], edge_sums: Sequence[Mapping[str, np.ndarray]]
) -> Listing:
    """The pairs that are active in some draw, or of which the prior says something of their own."""
    assert problem.rows is not None
    special = problem.prior.listed if problem.prior.listed is not None else np.zeros(0, np.int64)
    numbers = np.unique(np.concatenate([special, *(np.unique(chain.indices) for chain in draws)]))
    numbers = numbers.astype(np.int64)
    if not len(numbers):
        numbers = np.zeros(1, np.int64)  # a posterior is about some candidate
    features = Features(problem.features.n_variables, variables_of(numbers, problem.features.n_variables))
    renumbered = [
        replace(chain, indices=np.searchsorted(numbers, chain.indices).astype(np.int32)) for chain in draws
    ]
    sums, left = [], np.zeros(2)
    for chain in edge_sums:
        at = np.minimum(np.searchsorted(numbers, chain["candidates"]), len(numbers) - 1)
        found = numbers[at] == chain["candidates"]
        own = {name: np.zeros(len(numbers)) for name in PER_CANDIDATE}
        for name, values in own.items():
            values[at[found]] = chain[name][found]
        sums.append(own)
        left += chain["rest"] + [chain["tries"][~found].sum(), chain["inclusion"][~found].sum()]
    notes = {
        "candidates": problem.features.n_cliques,
        "rest_inclusion": float(left[1] / left[0]) if left[0] > 0 else 0.0,
    }
    return Listing(features, sufficient_statistics(problem.rows, features), renumbered, sums, notes)


def variables_of(numbers: np.ndarray, n_variables: int) -> np.ndarray:
    """Variables of pairs given by their numbers among all pairs: int32 (count, 2).

    Examples
    --------
    >>> variables_of(np.arange(6), 4).tolist()
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    """
    firsts = np.arange(n_variables, dtype=np.int64)
    begins = firsts * n_variables - firsts * (firsts + 1) // 2
    i = np.searchsorted(begins, numbers, side="right") - 1
    # The last variable begins no pair; its begin is the end of all.
    i = np.minimum(i, n_variables - 2)
    return np.stack([i, numbers - begins[i] + i + 1], axis=1).astype(np.int32)
