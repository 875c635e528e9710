"""The posterior: draws of all chains -> probabilities, Bayes factors, summaries, graphs, files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.draws.draws import Draws
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.features import Clique, Features, Statistics
from edgewise.posterior import storage, structure, summaries, tables
from edgewise.posterior.sums import EdgeSums
from edgewise.priors import COMMON, Prior, ResolvedPrior

if TYPE_CHECKING:
    import networkx
    import pandas
    import xarray

    from edgewise.model.mrf import MRF

CODINGS = ("binary", "ising")


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
        edge_sums: EdgeSums | Sequence[Mapping[str, np.ndarray]] = (),
        counters: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.draws = list(draws)
        self.features = features
        self.names = tuple(str(name) for name in names)
        self.levels = ((0, 1),) * len(self.names) if levels is None else tuple((a, b) for a, b in levels)
        self.statistics = Statistics.none(features) if statistics is None else statistics
        self.prior = Prior() if prior is None else prior
        self.info = dict(info or {})
        if not isinstance(edge_sums, EdgeSums):
            self._check_chains("edge_sums", len(edge_sums))
            edge_sums = EdgeSums.of(edge_sums)
        self.edge_sums = edge_sums
        self.counters = [dict(part) for part in counters]
        self._check_chains("counters", len(self.counters))
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

    def _check_chains(self, what: str, count: int) -> None:
        if count not in (0, len(self.draws)):
            raise DataError(f"There are {len(self.draws)} chains but {what} of {count}.")

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

    @cached_property
    def resolved_prior(self) -> ResolvedPrior:
        """The prior laid out over the candidates."""
        return self.prior.resolve(self.features, self.names)

    @cached_property
    def table(self) -> summaries.CliqueDraws:
        """The draws of all chains, ordered by clique."""
        return summaries.CliqueDraws.of(self.draws, self.n_cliques)

    @cached_property
    def joined(self) -> Draws:
        """The draws of all chains, one after the other."""
        return Draws.concatenate(self.draws)

    @cached_property
    def quality(self) -> summaries.IndicatorQuality:
        """R-hat, effective draws and Monte Carlo error of every indicator."""
        return summaries.indicator_quality(self.table, np.stack([self.inclusion_rate, self.slab_scale]))

    # Inclusion

    @cached_property
    def inclusion_probability(self) -> np.ndarray:
        """Posterior inclusion probability (PIP) of every candidate: (M,).

        The mean probability of being active after each of the engine's decisions (Rao-Blackwell) where
        the engine reports it, and the frequency among the draws otherwise; all chains count equally.
        Every other method of this class that speaks of inclusion uses these numbers.
        """
        sums = self.edge_sums
        return summaries.combine_inclusion(
            summaries.chain_frequency(self.table), sums.get("tries"), sums.get("inclusion")
        )

    @property
    def inclusion_frequency(self) -> np.ndarray:
        """Share of the draws in which each candidate is active: (M,)."""
        return self.table.counts / self.table.total

    @property
    def inclusion(self) -> np.ndarray:
        """PIPs of the pairs as a symmetric matrix (p, p), zero on the diagonal and for pairs left out."""
        return self.pair_matrix(self.inclusion_probability)

    def pair_matrix(self, values: np.ndarray) -> np.ndarray:
        """Lay values of the candidates (M,) out as a symmetric matrix; larger cliques are left out."""
        members = self.features.members
        pairs = slice(None) if self.features.pairs_only else members[:, 2] < 0
        matrix = np.zeros((self.n_variables, self.n_variables))
        matrix[members[pairs, 0], members[pairs, 1]] = values[pairs]
        return matrix + matrix.T

    @cached_property
    def _bayes_factors(self) -> tuple[np.ndarray, np.ndarray]:
        return summaries.log10_bayes_factors(
            self.inclusion_probability, self.resolved_prior.prior_odds(), self.quality.ess
        )

    @property
    def log10_bayes_factor(self) -> np.ndarray:
        """Log10 Bayes factor of presence against absence of every candidate: (M,), always finite.

        Posterior odds over the prior odds actually used. Where no draw and no decision ever disagreed the
        number is a bound from the effective number of draws, and :attr:`bayes_factor_bound` says so.
        """
        return self._bayes_factors[0]

    @property
    def bayes_factor_bound(self) -> np.ndarray:
        """``">"`` or ``"<"`` where the Bayes factor is beyond the number given, ``"prior"`` or ``""``."""
        return self._bayes_factors[1]

    def evidence(self, thresholds: tuple[float, float] = (3, 10)) -> np.ndarray:
        """Evidence category of every candidate: strong absence, absence, inconclusive, presence, ...

        `thresholds` are the Bayes factors from which evidence counts, and counts as strong.
        """
        weak, strong = thresholds
        if not 1 < weak <= strong < np.inf:
            raise DataError(f"thresholds must be two ascending Bayes factors above 1, not {thresholds!r}.")
        return summaries.evidence_category(self.log10_bayes_factor, (weak, strong))

    def reweighted_inclusion(self, p0: float) -> summaries.ReweightedInclusion:
        """PIPs if the prior inclusion probability were fixed at `p0`, by weighting the draws.

        Cliques with a probability of their own keep it. The result tells how many draws carry the weight;
        below 100 a warning says so.
        """
        if not 0 < p0 < 1:
            raise DataError(f"p0 must lie strictly between 0 and 1, not {p0!r}.")
        prior = self.resolved_prior
        probability, effective = summaries.reweighted_frequency(
            self.table,
            prior.status == COMMON,
            p0,
            None if prior.fixed_p0 else (prior.beta_a, prior.beta_b),
            prior.p0,
        )
        if effective < min(100, self.table.total / 2):
            warnings.warn(
                f"At p0 = {p0:g} the weights rest on {effective:.0f} of {self.table.total:,} draws; "
                f"fit again with FixedInclusion({p0:g}) for reliable numbers.",
                EdgewiseWarning,
                stacklevel=2,
            )
        return summaries.ReweightedInclusion(p0, probability, self.pair_matrix(probability), effective)

    # Parameters

    def _scale(self, coding: str) -> float:
        if coding not in CODINGS:
            raise DataError(f"coding must be 'binary' (0/1) or 'ising' (-1/+1), not {coding!r}.")
        if coding == "ising" and not self.features.pairs_only:
            raise DataError(
                "The Ising coding exists for pairs only: a clique of three in 0/1 coding spreads over its "
                "pairs and single variables in -1/+1 coding, so that even the graph would differ. "
                "Use coding='binary'."
            )
        return 1.0 if coding == "binary" else 0.25

    def coupling(
        self,
        statistic: str = "mean",
        *,
        given_inclusion: bool = False,
        coding: str = "binary",
        probability: float = 0.95,
    ) -> np.ndarray:
        """A statistic of the pair parameters as a symmetric matrix (p, p).

        Parameters
        ----------
        statistic : {"mean", "sd", "median", "hdi_low", "hdi_high"}
            What to report; the interval is the shortest one that holds `probability`.
        given_inclusion : bool
            Over the draws in which the pair is active (NaN if there is none) rather than over all draws.
        coding : {"binary", "ising"}
            0/1 parameters theta, or J = theta / 4 of the -1/+1 coding.
        """
        return self.pair_matrix(self.clique_statistic(statistic, given_inclusion, coding, probability))

    def clique_statistic(
        self,
        statistic: str,
        given_inclusion: bool = False,
        coding: str = "binary",
        probability: float = 0.95,
    ) -> np.ndarray:
        """A statistic of every candidate's parameter: (M,); see :meth:`coupling`."""
        return self._scale(coding) * summaries.statistic(
            self.table, statistic, given_inclusion, _share(probability)
        )

    def biases(self, coding: str = "binary") -> np.ndarray:
        """Draws of the biases: (chains, draws, p); in Ising coding h = theta_i / 2 + sum_j J_ij."""
        values = np.stack([chain.biases for chain in self.draws])
        if self._scale(coding) == 1.0:
            return values
        influence = structure.node_totals(self.joined, self.features, "expected influence")
        return values / 2 + influence.reshape(values.shape) / 4

    @property
    def bias(self) -> np.ndarray:
        """Posterior mean of the biases in 0/1 coding: (p,)."""
        return self.biases().mean(axis=(0, 1))

    def draws_of(self, edge: Clique, coding: str = "binary") -> np.ndarray:
        """Parameter of one clique in every draw, zero where absent: (chains, draws)."""
        scale = self._scale(coding)
        return scale * self.table.dense(np.array([self.features.index(edge, self.names)]))[0]

    @property
    def inclusion_rate(self) -> np.ndarray:
        """Draws of p0: (chains, draws)."""
        return np.stack([chain.inclusion_rate for chain in self.draws])

    @property
    def slab_scale(self) -> np.ndarray:
        """Draws of sigma0: (chains, draws)."""
        return np.stack([chain.slab_scale for chain in self.draws])

    # Tables

    def labels(self) -> np.ndarray:
        """Readable name of every candidate, for instance ``sleep -- mood``."""
        return tables.clique_labels(self.features, self.names)

    def summary(
        self, coding: str = "binary", thresholds: tuple[float, float] = (3, 10), probability: float = 0.95
    ) -> pandas.DataFrame:
        """One row per candidate: inclusion, evidence, parameter and the quality of the numbers.

        Parameters
        ----------
        coding : {"binary", "ising"}
            Coding of the parameters.
        thresholds : pair of float
            Bayes factors from which evidence counts, and counts as strong.
        probability : float
            Content of the intervals ``hdi_low`` to ``hdi_high``.

        Returns
        -------
        DataFrame
            ``note`` says in words what a number cannot: an indicator that never flips, a clique that the
            prior decides.
        """
        return tables.edge_table(self, coding, thresholds, _share(probability))

    def bias_summary(self, coding: str = "binary", probability: float = 0.95) -> pandas.DataFrame:
        """One row per variable: its bias and the quality of the numbers."""
        return tables.bias_table(self, coding, _share(probability))

    def transitions(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of 0 -> 1 and 1 -> 0 steps of every indicator between neighbouring draws."""
        return summaries.transitions(self.table)

    # Graphs and models

    def graph(self, threshold: float = 0.5) -> networkx.Graph:
        """Graph of the pairs with a PIP of at least `threshold`, nodes by name.

        Edges carry ``inclusion``, ``log10_bf``, ``evidence``, ``coupling`` (posterior mean) and
        ``coupling_if_included``. With larger cliques the edges join variables that share an active clique
        with at least that probability, and carry that probability only.
        """
        return tables.posterior_graph(self, threshold)

    def shared_clique_probability(self) -> np.ndarray:
        """Probability that two variables have an active clique in common: (p, p)."""
        if self.features.pairs_only:
            return self.inclusion
        return structure.shared_clique_frequency(self.joined, self.features)

    @cached_property
    def median_model(self) -> MRF:
        """The "Bayes PM" model: cliques with PIP >= 0.5 at E[A | active], and the mean biases."""
        from edgewise.model.mrf import MRF

        mean = summaries.moments(self.table, given_inclusion=True)[0]
        kept = np.flatnonzero((self.inclusion_probability >= 0.5) & np.isfinite(mean))
        return MRF(self.bias, self.features.members[kept], mean[kept], self.names)

    def model(self, position: int) -> MRF:
        """The model of one draw; draws are counted through all chains."""
        from edgewise.model.mrf import MRF

        indices, values = self.joined.active(position)
        return MRF(self.joined.biases[position], self.features.members[indices], values, self.names)

    def mixture(self, n: int = 100, seed: int = 0) -> list[MRF]:
        """The "Bayes" mixture: `n` draws chosen at random without repetition (all if there are fewer)."""
        total = self.n_chains * self.n_draws
        chosen = np.random.default_rng(seed).permutation(total)[: min(n, total)]
        return [self.model(int(position)) for position in chosen]

    def edge_count(self) -> np.ndarray:
        """Number of active cliques of every draw: (chains, draws)."""
        return np.stack([chain.n_edges for chain in self.draws])

    def edge_count_probability(self) -> pandas.Series:
        """Posterior of the number of active cliques: probability by number."""
        import pandas

        number, count = np.unique(self.edge_count(), return_counts=True)
        index = pandas.Index(number, name="edges")
        return pandas.Series(count / count.sum(), index, name="probability")

    def density(self) -> summaries.Density:
        """Share of active candidates: mean and standard deviation over the draws."""
        share = self.edge_count() / max(1, self.n_cliques)
        return summaries.Density(float(share.mean()), float(share.std(ddof=1)) if share.size > 1 else 0.0)

    def graphs(self, n: int = 10) -> pandas.DataFrame:
        """The `n` most frequent graphs: ``probability``, ``draws``, ``n_edges`` and ``edges`` by name."""
        return tables.graph_table(self, n)

    def neighbourhood(self, name: str | int, n: int = 10) -> pandas.DataFrame:
        """The `n` most frequent sets of neighbours of a variable, with their probabilities."""
        return tables.neighbourhood_table(self, name, n)

    def centrality(
        self, kind: str = "strength", probability: float = 0.95, max_draws: int | None = 100
    ) -> pandas.DataFrame:
        """Centrality of every variable with credible intervals.

        Parameters
        ----------
        kind : str
            "strength" (sum of absolute parameters), "expected influence" (signed sum) and "degree" use all
            draws; "betweenness", "closeness" (paths of length one over the size of the parameter) and
            "eigenvector" use at most `max_draws` evenly spaced ones (None for all).
        """
        return structure.centrality_table(self, kind, _share(probability), max_draws)

    def probability(
        self, question: Callable[[networkx.Graph], Any], max_draws: int | None = 1000
    ) -> structure.Estimate:
        """Probability that the graph has a property.

        Parameters
        ----------
        question : callable
            Takes the networkx graph of a draw (nodes by name, edges with ``coupling`` and ``distance``),
            returns true or false.
        max_draws : int or None
            At most so many evenly spaced draws are asked; None asks all.

        Returns
        -------
        Estimate
            A float with its Monte Carlo error in ``.mcse``.
        """
        return structure.ask(self, question, max_draws)

    # Elsewhere

    def to_datatree(self, edges: Sequence[Clique] | None = None) -> xarray.DataTree:
        """The draws for ArviZ: ``theta``, ``indicator``, ``bias``, ``p0``, ``sigma0`` and ``edge_count``.

        Selected `edges`, or all of them where that is at most 20 million numbers.
        """
        return tables.datatree(self, edges)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the posterior as NetCDF; an existing file is replaced in one step."""
        contents = storage.Contents(
            self.draws,
            self.features,
            self.names,
            self.levels,
            self.statistics,
            self.prior,
            self.info,
            self.edge_sums,
            self.counters,
        )
        storage.write(contents, path)

    def __repr__(self) -> str:
        chains = f"{self.n_chains} chain{'s' * (self.n_chains != 1)}"
        return (
            f"Posterior({self.n_variables} variables, {self.n_cliques:,} candidates, "
            f"{chains} x {self.n_draws:,} draws, {self.edge_count().mean():.1f} active on average)"
        )


def load_posterior(path: str | PathLike[str]) -> Posterior:
    """Read a posterior written by :meth:`Posterior.save` of this version of edgewise or an earlier one.

    Raises
    ------
    FileError
        If the file is missing, truncated, damaged, not a posterior, or written by a later version.
    """
    return Posterior(**vars(storage.read(path)))


def _share(probability: float) -> float:
    if not 0 < probability < 1:
        raise DataError(f"probability must lie strictly between 0 and 1, not {probability!r}.")
    return probability
