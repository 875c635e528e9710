"""Simulated models of variables with several levels, with a known truth: questionnaires and registries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.datasets.simulated import KINDS, _random_edges, default_names
from edgewise.errors import DataError
from edgewise.model.mrf import MRF
from edgewise.scales import BINARY_SCALE, NOMINAL, ORDINAL, Scale

COUPLING_SD = 1.5
THRESHOLD_SD = 0.7

Seed = int | np.random.SeedSequence | np.random.Generator


def ordinal_model(
    p: int,
    levels: int | Sequence[int] = 5,
    degree: float = 3.0,
    *,
    kind: str = "erdos-renyi",
    seed: Seed = 0,
    coupling_sd: float = COUPLING_SD,
    threshold_sd: float = THRESHOLD_SD,
) -> MRF:
    """A random sparse model of ordinal variables with Gaussian couplings and thresholds.

    Parameters
    ----------
    p : int
        Number of variables.
    levels : int or sequence of int
        Number of levels of all variables or of each; variables with two are binary.
    degree, kind : float, str
        Shape of the graph, as for :func:`random_model`.
    seed : int, SeedSequence or Generator
    coupling_sd : float
        Standard deviation of the couplings, which are log odds ratios between the ends of both scales.
    threshold_sd : float
        Standard deviation of the differences of two thresholds of a variable.

    Returns
    -------
    MRF
        The truth; draw rows of level numbers from it with :func:`edgewise.exact.sample` or
        :meth:`MRF.gibbs`.

    Examples
    --------
    >>> model = ordinal_model(4, levels=3, kind="ring", seed=1)
    >>> model, model.scales[0].kind
    (MRF(4 variables of 3 levels, 4 pairs), 'ordinal')
    """
    return _random_levels(p, levels, ORDINAL, degree, kind, seed, coupling_sd, threshold_sd)


def nominal_model(
    p: int,
    levels: int | Sequence[int] = 3,
    degree: float = 2.0,
    *,
    kind: str = "erdos-renyi",
    seed: Seed = 0,
    coupling_sd: float = COUPLING_SD,
    threshold_sd: float = THRESHOLD_SD,
) -> MRF:
    """A random sparse model of nominal variables, whose log odds ratios all are N(0, coupling_sd^2).

    The arguments are those of :func:`ordinal_model`. ``model.coupling_matrix(i, j)`` shows what two variables
    have to do with each other, level by level.

    Examples
    --------
    >>> nominal_model(3, levels=[3, 4, 2], kind="chain", seed=1).weights.shape
    (9,)
    """
    return _random_levels(p, levels, NOMINAL, degree, kind, seed, coupling_sd, threshold_sd)


def _random_levels(
    p: int,
    levels: int | Sequence[int],
    scale: str,
    degree: float,
    kind: str,
    seed: Seed,
    coupling_sd: float,
    threshold_sd: float,
) -> MRF:
    if kind not in KINDS:
        raise DataError(f"There is no kind of random model {kind!r}; the kinds are {', '.join(KINDS)}.")
    if p < 2:
        raise DataError(f"A random model needs two variables or more, not {p}.")
    counts = [levels] * p if isinstance(levels, int | np.integer) else [int(count) for count in levels]
    if len(counts) != p:
        raise DataError(f"There are {len(counts)} numbers of levels for {p} variables; give one for each.")
    rng = np.random.default_rng(seed)
    scales = [
        BINARY_SCALE if count == 2 else Scale(scale, tuple(range(1, int(count) + 1))) for count in counts
    ]
    edges = np.array(_random_edges(p, degree, kind, rng), np.int64).reshape(-1, 2)
    biases = rng.normal(0.0, threshold_sd, sum(part.n_thresholds for part in scales))
    size = sum(scales[i].dimension * scales[j].dimension for i, j in edges)
    return MRF(biases, edges, rng.normal(0.0, coupling_sd, size), default_names(p), scales)
