"""The posterior: draws of all chains -> probabilities, Bayes factors, summaries, graphs, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgewise import summaries
from edgewise.draws import Draws
from edgewise.errors import DataError
from edgewise.features import Clique, Features, Statistics
from edgewise.priors import Prior, ResolvedPrior

if TYPE_CHECKING:
    import networkx
    import pandas
    import xarray

    from edgewise.model import MRF

CODINGS = ("binary", "ising")
# Rao-Blackwellised probabilities closer than this to 0 or 1 drown in the rounding of their sums.
_ROUNDING = 1e-12


class Density(NamedTuple):
    """Share of active candidates: its mean and standard deviation over the draws."""

    mean: float
    sd: float


class Posterior:
    """What the data say about the graph and its parameters.

    Made by :meth:`SpikeSlabMRF.fit <edgewise.SpikeSlabMRF.fit>` and :func:`load_posterior`; the constructor
    is for engines and tests.

    Parameters
    ----------
    draws : sequence of Draws
        The kept draws of each chain, equally many in all.
    features : Features
        The candidate cliques.
    names : sequence of str
        Names of the variables.
    levels : sequence of pairs, optional
        The user's labels of 0 and 1 of each variable.
    statistics : Statistics, optional
        What the likelihood knows of the data; none by default.
    prior : Prior, optional
        The prior the draws were made with.
    info : mapping
        How the draws were made (engine, settings, seed, versions ...); plain values as in JSON.
    edge_sums, counters : sequences of mappings
        What the engines report of each chain; may be empty.

    Attributes
    ----------
    draws, features, names, levels, statistics, prior, info, edge_sums, counters
        As given.
    """

    def __init__(
        self,
        draws: Sequence[Draws],
        features: Features,
        names: Sequence[str],
        levels: Sequence[tuple[Any, Any]] | None = None,
        statistics: Statistics | None = None,
        prior: Prior | None = None,
        info: Mapping[str, Any] | None = None,
        edge_sums: Sequence[Mapping[str, np.ndarray]] = (),
        counters: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.draws = list(draws)
        self.features = features
        self.names = tuple(str(name) for name in names)
        self.levels = ((0, 1),) * len(self.names) if levels is None else tuple((a, b) for a, b in levels)
        self.statistics = Statistics.none(features) if statistics is None else statistics
        self.prior = Prior() if prior is None else prior
        self.info = dict(info or {})
        self.edge_sums = [dict(part) for part in edge_sums]
        self.counters = [dict(part) for part in counters]
        self._check()

    def _check(self) -> None:
        p = self.features.n_variables
        if len(self.names) != p or len(self.levels) != p:
            raise DataError(
                f"There are {p} variables, {len(self.names)} names and {len(self.levels)} pairs of levels; "
                "give one name and one pair of levels per variable."
            )
        lengths = [len(chain) for chain in self.draws]
        if not lengths or min(lengths) < 1:
            raise DataError("A posterior needs at least one chain with at least one draw.")
        if len(set(lengths)) > 1:
            raise DataError(
                f"The chains have {', '.join(map(str, lengths))} draws; cut them to the same number."
            )
        for what, parts in (("edge_sums", self.edge_sums), ("counters", self.counters)):
            if parts and len(parts) != len(lengths):
                raise DataError(f"There are {len(lengths)} chains but {what} of {len(parts)}.")

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.draws)

    @property
    def n_draws(self) -> int:
        """Number of kept draws of each chain."""
        return len(self.draws[0])

    @property
    def n_variables(self) -> int:
        """Number of variables p."""
        return self.features.n_variables

    @property
    def n_cliques(self) -> int:
        """Number of candidate cliques M."""
        return self.features.n_cliques
