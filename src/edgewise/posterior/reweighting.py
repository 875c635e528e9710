"""Another prior inclusion probability, from the same draws: importance weights on the number of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgewise.posterior.renamed import REWEIGHTED, Old, OldNames
from edgewise.posterior.summaries import CliqueDraws


@dataclass(frozen=True, eq=False)
class ReweightedInclusion(OldNames):
    """Inclusion under another p0: by pair (p, p), by candidate (M,), and the draws that carry the weight."""

    _OLD: ClassVar[Old] = REWEIGHTED

    p0: float
    inclusion: np.ndarray
    edge_inclusion: np.ndarray
    effective_draws: float


def reweighted_frequency(
    table: CliqueDraws, common: np.ndarray, p0: float, beta: tuple[float, float] | None, old_p0: float
) -> tuple[np.ndarray, float]:
    """Inclusion frequencies under a fixed `p0` from draws under another prior, and their weight ESS (8.3).

    The two posteriors differ by the prior of the graph alone, and that depends on the graph through the
    number of active common cliques E (of `common`, a mask): the weight of a draw is the ratio of
    p0^E (1 - p0)^(M - E) to the same with `old_p0`, or with p0 integrated over its Beta prior.
    """
    from scipy.special import betaln

    size = int(common.sum())
    active = np.bincount(table.position[common[table.owner]], minlength=table.total)
    log_weight = active * np.log(p0) + (size - active) * np.log1p(-p0)
    if beta is None:
        log_weight -= active * np.log(old_p0) + (size - active) * np.log1p(-old_p0)
    else:
        log_weight -= betaln(beta[0] + active, beta[1] + size - active)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    frequency = np.bincount(table.owner, weight[table.position], minlength=table.n_cliques)
    return np.clip(frequency, 0, 1), float(1 / (weight**2).sum())
