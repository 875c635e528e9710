"""Predictions and new rows where the rows of a fit were divided into strata: each by models of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.data.rows import labels_in
from edgewise.errors import DataError
from edgewise.predict.mixtures import sample_rows

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

Answer = Callable[[Any, np.ndarray], Any]


def in_strata(
    posterior: Posterior, source: Any, rows: np.ndarray, groups: Any, mixture: int, answer: Answer
) -> Any:
    """What `answer` says of rows by the models of the stratum of each: an array, or a list of them.

    Labels of groups and covariates are looked for in `source`, but for `groups` where these are given.
    """
    layout = posterior.strata
    if layout is None:
        if groups is not None:
            raise DataError("No groups were compared in this fit; leave groups out.")
        return answer(posterior.mixture(mixture), rows)
    labels, covariates = labels_in(source, layout, groups)
    index = layout.strata_of(labels, covariates)
    if len(index) != len(rows):
        raise DataError(f"There are {len(index):,} labels for {len(rows):,} rows; give one for each.")
    whole: list[np.ndarray] | None = None
    several = False
    for k in np.unique(index).tolist():
        own = index == k
        found = answer(posterior.of_stratum(k).mixture(mixture), rows[own])
        several = isinstance(found, list)
        parts = found if several else [found]
        if whole is None:
            whole = [np.zeros((len(rows), *part.shape[1:]), part.dtype) for part in parts]
        for place, part in zip(whole, parts):
            place[own] = part
    if whole is None:
        return answer(posterior.of_stratum(0).mixture(mixture), rows)
    return whole if several else whole[0]


def new_rows(
    posterior: Posterior, n: int, mixture: int, rng: np.random.Generator, group: Any = None
) -> np.ndarray:
    """`n` rows from the mixture of models: of one group, or with strata as frequent as among the data."""
    choice, layout = int(rng.integers(2**31)), posterior.strata
    if layout is None:
        if group is not None:
            raise DataError("No groups were compared in this fit; leave the group out.")
        return sample_rows(posterior.mixture(mixture, seed=choice), n, rng)
    share = np.array(layout.rows)
    if group is not None:
        share = share * (np.array(layout.group_of) == layout.group(group))
    strata = rng.choice(len(share), n, p=share / share.sum())
    parts = []
    for k, count in zip(*np.unique(strata, return_counts=True)):
        models = posterior.of_stratum(int(k)).mixture(mixture, seed=choice)
        parts.append(sample_rows(models, int(count), rng))
    return np.asarray(np.concatenate(parts)[rng.permutation(n)])
