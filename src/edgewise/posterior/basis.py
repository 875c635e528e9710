"""What a posterior was given, and what is computed from it once and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from edgewise.data.strata import Layout
from edgewise.draws.draws import Draws
from edgewise.draws.statistics import StoppingStatistics, stopping_statistics
from edgewise.errors import DataError, printable
from edgewise.features import Features, Statistics
from edgewise.posterior import communities, summaries
from edgewise.posterior.approximation import Approximation, approximation_of
from edgewise.posterior.imputed import Imputed
from edgewise.posterior.renamed import OldNames
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import Prior, ResolvedPrior
from edgewise.run.options import TARGET_ESS
from edgewise.run.stopping import R_HAT_LIMIT
from edgewise.scales import BINARY, Scale, Scales, check_cliques


class Basis(OldNames):
    """The lower half of :class:`~edgewise.Posterior`, which says what the arguments are.

    Nothing here changes after the constructor, so that every number needs computing only once. The private
    names are for the modules of this folder.
    """

    def __init__(
        self,
        draws: Sequence[Draws],
        features: Features,
        names: Sequence[str],
        levels: Sequence[tuple[Any, ...]] | None = None,
        statistics: Statistics | None = None,
        prior: Prior | None = None,
        info: Mapping[str, Any] | None = None,
        edge_sums: EdgeSums | Sequence[Mapping[str, np.ndarray]] = (),
        counters: Sequence[Mapping[str, float]] = (),
        scales: Sequence[Scale] | None = None,
        imputed: Imputed | None = None,
    ) -> None:
        self.draws = list(draws)
        self.features = features
        self.names = tuple(str(name) for name in names)
        self.scales = Scales.binary(features.n_variables) if scales is None else Scales.of(scales)
        self.levels = self._labels() if levels is None else tuple(map(tuple, levels))
        self._check_levels()
        self.statistics = Statistics.none(features, self.scales) if statistics is None else statistics
        self.prior = Prior() if prior is None else prior
        self.info = dict(info or {})
        self.imputed = imputed
        if not isinstance(edge_sums, EdgeSums):
            self._check_chains("edge_sums", len(edge_sums))
            edge_sums = EdgeSums.of(edge_sums)
        for name, values in edge_sums.items():
            if values.shape[:2] != (len(self.draws), features.n_cliques):
                raise DataError(
                    f"The edge sum {name!r} has the shape {values.shape}; there are {len(self.draws)} chains "
                    f"and {features.n_cliques} candidates."
                )
        self._edge_sums = edge_sums
        self._counters = [dict(part) for part in counters]
        self._check_chains("counters", len(self._counters))
        self._kept_moments: dict[bool, tuple[np.ndarray, np.ndarray]] = {}
        self._kept_intervals: dict[tuple[bool, float], summaries.Intervals] = {}
        self._kept_communities: communities.Communities | None = None
        # The run behind the draws, where it is at hand: new chains under another prior go on from it.
        self._result: Any = None
        self._check()

    def _labels(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(scale.labels for scale in self.scales)

    def _check_levels(self) -> None:
        p = self.features.n_variables
        if not len(self.names) == len(self.levels) == len(self.scales) == p:
            raise DataError(
                f"There are {p} variables, {len(self.names)} names, {len(self.levels)} pairs of levels and "
                f"{len(self.scales)} scales; give one name and one pair of levels per variable."
            )
        for name, labels, scale in zip(self.names, self.levels, self.scales):
            if len(labels) != scale.n_levels or (scale.kind != BINARY and labels != scale.labels):
                raise DataError(
                    f"The variable {name!r} has {scale.n_levels} levels, and its labels are {labels!r}."
                )
        check_cliques(self.scales, self.features.members, self.names)

    def _check(self) -> None:
        lengths = [len(chain) for chain in self.draws]
        if not lengths or min(lengths) < 1:
            raise DataError("A posterior needs at least one chain with at least one draw.")
        if len(set(lengths)) > 1:
            raise DataError(
                f"The chains have {', '.join(map(str, lengths))} draws; cut them to the same number."
            )

    def _check_chains(self, what: str, count: int) -> None:
        if count not in (0, len(self.draws)):
            raise DataError(f"There are {len(self.draws)} chains but {what} of {count}.")

    @cached_property
    def _dimension(self) -> np.ndarray:
        """Number of parameters of every candidate: (M,)."""
        return self.scales.dimensions(self.features.members)

    @cached_property
    def _block_offset(self) -> np.ndarray:
        """Where the matrix of every entry of the joined draws begins."""
        size = np.where(self._dimension > 1, self._dimension, 0)[self._joined.indices]
        return np.asarray(np.cumsum(size) - size)

    @cached_property
    def strata(self) -> Layout | None:
        """The groups that were compared and the covariates that were held fixed; None without any."""
        return None if self.info.get("strata") is None else Layout.from_dict(self.info["strata"])

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of the groups that were compared; none without any."""
        return self.strata.groups if self.strata is not None and self.strata.compares else ()

    def _biases_of(self, chosen: Sequence[int] | None = None) -> np.ndarray:
        """Draws of the biases (chains, draws, n): their mean over strata, all or some, weighted by rows."""
        drawn = np.stack([chain.biases for chain in self.draws])
        if self.strata is None:
            return drawn
        each = drawn.reshape(*drawn.shape[:2], self.strata.n_strata, -1)
        places = list(range(self.strata.n_strata) if chosen is None else chosen)
        rows = np.array(self.strata.rows)[places]
        return np.asarray(np.einsum("cdsv,s->cdv", each[:, :, places], rows / rows.sum()))

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

    @property
    def n_unlisted(self) -> int:
        """Number of further pairs that were never active, where these are too many for a row each."""
        return max(0, int(self.info.get("candidates", self.n_cliques)) - self.n_cliques)

    @property
    def n_candidates(self) -> int:
        """Number of all candidates, with and without a row."""
        return self.n_cliques + self.n_unlisted

    @cached_property
    def candidates(self) -> np.ndarray:
        """Readable name of every candidate, for instance ``sleep -- mood``: (M,), the order of vectors."""
        known = np.array([*self.names, ""], object)
        members = self.features.members
        labels: np.ndarray = known[members[:, 0]] + " -- " + known[members[:, 1]]
        for column in members.T[2:]:
            labels = labels + np.where(column >= 0, " -- ", "").astype(object) + known[column]
        labels.flags.writeable = False
        return labels

    @property
    def inclusion_rate(self) -> np.ndarray:
        """Draws of p0: (chains, draws)."""
        return np.stack([chain.inclusion_rate for chain in self.draws])

    @property
    def slab_scale(self) -> np.ndarray:
        """Draws of sigma0: (chains, draws)."""
        return np.stack([chain.slab_scale for chain in self.draws])

    @property
    def n_edges(self) -> np.ndarray:
        """Number of active candidates of every draw: (chains, draws)."""
        return np.stack([chain.n_edges for chain in self.draws])

    @cached_property
    def _resolved_prior(self) -> ResolvedPrior:
        """The prior laid out over the candidates."""
        return self.prior.resolve(self.features, self.names)

    @cached_property
    def _table(self) -> summaries.CliqueDraws:
        """The draws of all chains, ordered by clique."""
        return summaries.CliqueDraws.of(self.draws, self.n_cliques)

    @cached_property
    def _joined(self) -> Draws:
        """The draws of all chains, one after the other."""
        return Draws.concatenate(self.draws)

    @cached_property
    def _quality(self) -> summaries.IndicatorQuality:
        """R-hat, effective draws and Monte Carlo error of every indicator."""
        return summaries.indicator_quality(self._table, np.stack([self.inclusion_rate, self.slab_scale]))

    @cached_property
    def _edge_inclusion(self) -> np.ndarray:
        sums = self._edge_sums
        return summaries.combine_inclusion(
            summaries.chain_frequency(self._table), sums.get("tries"), sums.get("inclusion")
        )

    @cached_property
    def _seen(self) -> StoppingStatistics:
        """The slowest quantity of the draws, and how far the chains agree."""
        return stopping_statistics(self.draws, self.n_cliques)

    @cached_property
    def _approximation(self) -> Approximation | None:
        """How far off the probabilities are where the likelihood is approximated, if that was measured."""
        return approximation_of(self)  # type: ignore[arg-type]

    def _candidate_name(self, index: int) -> str:
        """The name of a candidate, fit for a terminal."""
        return printable(self.features.label(index, self.names), keep="")

    @property
    def _settled(self) -> bool:
        """Whether the chains agree and every uncertain quantity has draws enough, whatever else may be."""
        seen = self._seen
        return (
            not self.info.get("warm_up_unfinished")
            and seen.min_bulk_ess >= TARGET_ESS
            and not seen.max_rhat >= R_HAT_LIMIT
        )

    @cached_property
    def _bayes_factors(self) -> tuple[np.ndarray, np.ndarray]:
        effective, settled = self._quality.ess, self._settled
        if not settled:
            known = 1.0 if self.info.get("warm_up_unfinished") else self._seen.min_bulk_ess
            effective = np.minimum(effective, known)
        return summaries.log10_bayes_factors(
            self._edge_inclusion, self._resolved_prior.prior_odds(), effective, settled
        )

    def _moments(self, given_inclusion: bool) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every parameter, over all draws or those that include it."""
        if given_inclusion not in self._kept_moments:
            self._kept_moments[given_inclusion] = summaries.moments(self._table, given_inclusion)
        return self._kept_moments[given_inclusion]

    def _intervals(self, given_inclusion: bool, probability: float) -> summaries.Intervals:
        """Median and shortest interval of every parameter, over all draws or those that include it."""
        key = given_inclusion, probability
        if key not in self._kept_intervals:
            found = summaries.quantities_of_order(self._table, probability, given_inclusion)
            self._kept_intervals[key] = found
        return self._kept_intervals[key]

    @cached_property
    def _bias(self) -> np.ndarray:
        """Posterior mean of the biases in 0/1 coding, or of all threshold coordinates."""
        result: np.ndarray = self._biases_of().mean(axis=(0, 1))
        return result
