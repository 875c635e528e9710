"""The posterior: draws of all chains -> probabilities, Bayes factors, summaries, graphs, files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from edgewise.errors import DataError, EdgewiseWarning, FileError
from edgewise.features import Clique
from edgewise.posterior import (
    columns,
    communities,
    diagnostics,
    groups,
    levels,
    renamed,
    reweighting,
    sensitivity,
    storage,
    structure,
    tables,
    trees,
)
from edgewise.posterior.basis import Basis
from edgewise.priors import FixedInclusion

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse
    import xarray

    from edgewise.model.mrf import MRF
    from edgewise.priors import Prior


class Posterior(Basis):
    """What the data say about the graph and its parameters.

    Made by :meth:`SpikeSlabMRF.fit <edgewise.SpikeSlabMRF.fit>` and :func:`load_posterior`; the constructor
    is for engines and tests. A posterior does not change, and what it has computed it keeps: the draws by
    candidate, inclusion probabilities, Bayes factors, R-hat and effective draws, moments and intervals, the
    prior laid out over the candidates, the median model, and what
    :func:`~edgewise.posterior.diagnostics.diagnose` has found.

    The rule of the names:

    - What takes no option has no parentheses (`names`, `n_draws`, `inclusion`, `slab_scale`); what takes an
      option is a method (`coupling`, `biases`, `summary`, `graph`), also when the option is left out.
    - Draws come with the axes (chains, draws) in front: `draws_of`, `biases`, `inclusion_rate` (p0),
      `slab_scale` (sigma0), `n_edges`. Their mean is ``.mean(axis=(0, 1))``.
    - Over the candidates: `edge_values` gives any column of `summary` as a vector (M,), in the order of
      `candidates`. Over the pairs of variables: `pair_values` gives the same as a matrix (p, p); `inclusion`
      and `coupling` are the two matrices that one wants most.
    - By name: `summary`, `bias_summary`, `threshold_summary`, `coupling_matrix`, `graph`, `graphs`,
      `neighbourhood` and `centrality` give tables and graphs.

    Parameters
    ----------
    draws : sequence of Draws
        The kept draws of each chain, equally many in all.
    features : Features
        The candidate cliques.
    names : sequence of str
        Names of the variables.
    levels : sequence of tuples, optional
        The user's labels of the levels of each variable; of 0 and 1 where there are two.
    statistics : Statistics, optional
        What the likelihood knows of the data; none by default.
    prior : Prior, optional
        The prior the draws were made with.
    info : mapping
        How the draws were made (engine, settings, seed, versions ...); plain values as in JSON.
    edge_sums : EdgeSums or sequence of mappings
        What the engine of each chain has added up for every candidate; may be empty.
    counters : sequence of mappings
        What else the engines report of each chain; may be empty.
    scales : sequence of Scale, optional
        Kind and levels of each variable, where some have more than two.
    imputed : Imputed, optional
        The cells that were blank, with the probability of each level; None where the table was complete.

    Attributes
    ----------
    draws, features, names, levels, statistics, prior, info, scales, imputed
        As given.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> posterior = model.posterior_
    >>> posterior.names
    ('age', 'body mass', 'HDL', 'progression')
    >>> posterior.summary()["evidence"].value_counts().index[0]
    'strong presence'
    >>> posterior.draws_of(("body mass", "progression")).shape == (posterior.n_chains, posterior.n_draws)
    True
    >>> bool(posterior.probability(lambda graph: graph.has_edge("body mass", "progression")) > 0.9)
    True
    """

    _OLD: ClassVar[renamed.Old] = renamed.POSTERIOR

    # Over pairs and candidates

    @property
    def inclusion(self) -> np.ndarray:
        """Posterior inclusion probability of every pair: (p, p), zero on the diagonal and where left out.

        The mean probability of being active after each of the engine's decisions (Rao-Blackwell) where the
        engine reports it, and the frequency among the draws otherwise; all chains count equally. Everything
        that speaks of inclusion uses these numbers.
        """
        return self.pair_values("inclusion")

    def coupling(
        self,
        statistic: str = "mean",
        *,
        given_inclusion: bool = False,
        coding: str = "binary",
        probability: float = 0.95,
    ) -> np.ndarray:
        """A statistic of the pair parameters as a symmetric matrix (p, p).

        Where a variable of a pair is nominal, this is the strength of its matrix, which has no sign;
        :meth:`coupling_matrix` has the matrix.

        Parameters
        ----------
        statistic : {"mean", "sd", "median", "hdi_low", "hdi_high"}
            What to report; the interval is the shortest one that holds `probability`.
        given_inclusion : bool
            Over the draws in which the pair is active (NaN if there is none) rather than over all draws.
        coding : {"binary", "ising"}
            0/1 parameters theta, or J = theta / 4 of the -1/+1 coding.
        """
        if statistic not in columns.STATISTICS:
            known = ", ".join(columns.STATISTICS)
            raise DataError(f"There is no statistic {statistic!r}; choose one of {known}.")
        name = f"{statistic}{columns.GIVEN}" if given_inclusion else statistic
        return self.pair_values(name, coding=coding, probability=probability)

    def coupling_matrix(
        self,
        first: str | int,
        second: str | int,
        statistic: str = "mean",
        *,
        given_inclusion: bool = False,
        probability: float = 0.95,
    ) -> pandas.DataFrame:
        """What the levels of two variables add to the log-probability of a row: one cell per pair of levels.

        Rows and columns are centred, so that everything is zero where nothing depends, and positive where
        two levels go together more often than they would without the edge. The log odds ratio of four
        cells is their alternating sum.

        Parameters
        ----------
        first, second : str or int
            The variables, by name or number; the first has the rows.
        statistic : {"mean", "sd", "median", "hdi_low", "hdi_high"}
            What to report; the interval is the shortest one that holds `probability`.
        given_inclusion : bool
            Over the draws in which the pair is active (NaN if there is none) rather than over all draws.

        Returns
        -------
        DataFrame (levels of the first, levels of the second)
        """
        if statistic not in columns.STATISTICS:
            known = ", ".join(columns.STATISTICS)
            raise DataError(f"There is no statistic {statistic!r}; choose one of {known}.")
        i, j = tables.variable_index(self, first), tables.variable_index(self, second)
        return levels.coupling_table(
            self, i, j, statistic, given_inclusion, columns.checked_share(probability)
        )

    def edge_values(
        self,
        column: str,
        *,
        coding: str = "binary",
        thresholds: tuple[float, float] = (3, 10),
        probability: float = 0.95,
    ) -> np.ndarray:
        """One value of every candidate: (M,), in the order of :attr:`candidates`.

        Parameters
        ----------
        column : str
            A column of :meth:`summary`: inclusion, mcse, log10_bf, bf_bound, evidence, mean, sd, median,
            hdi_low, hdi_high, mean_if_included, sd_if_included, r_hat, ess_bulk, flips or note. Also
            median_if_included, hdi_low_if_included, hdi_high_if_included, and frequency, the share of the
            draws in which the candidate is active.
        coding, thresholds, probability
            As of :meth:`summary`, for the columns that depend on them.
        """
        return columns.edge_column(self, column, coding, thresholds, probability)

    def pair_values(
        self,
        column: str,
        *,
        coding: str = "binary",
        thresholds: tuple[float, float] = (3, 10),
        probability: float = 0.95,
    ) -> np.ndarray:
        """One value of every pair of variables: a symmetric matrix (p, p), zero (or "") where there is none.

        Parameters
        ----------
        column : str
            As of :meth:`edge_values`, for the candidates that are pairs; or ``"adjacency"``, the probability
            that the two have an active clique of any size in common.
        coding, thresholds, probability
            As of :meth:`summary`, for the columns that depend on them.
        """
        if column == "adjacency" and not self.features.pairs_only:
            return structure.shared_clique_frequency(self._joined, self.features)
        name = "inclusion" if column == "adjacency" else column
        return columns.pair_matrix(
            self, self.edge_values(name, coding=coding, thresholds=thresholds, probability=probability)
        )

    def sparse_pair_values(
        self,
        column: str,
        *,
        coding: str = "binary",
        thresholds: tuple[float, float] = (3, 10),
        probability: float = 0.95,
    ) -> scipy.sparse.csr_array:
        """As :meth:`pair_values`, as a sparse symmetric matrix with an entry for every candidate.

        Where the candidates are more pairs than have a row each (:attr:`n_unlisted`), those that were never
        active have no entry.

        Examples
        --------
        >>> from edgewise import SpikeSlabMRF, datasets
        >>> people = datasets.diabetes()[["age", "body mass", "HDL"]]
        >>> posterior = SpikeSlabMRF(random_state=1, progress=False).fit(people).posterior_
        >>> posterior.sparse_pair_values("inclusion").shape
        (3, 3)
        """
        values = self.edge_values(column, coding=coding, thresholds=thresholds, probability=probability)
        if values.dtype == object:
            raise DataError(f"{column!r} holds words; a sparse matrix holds numbers. Use edge_values.")
        return columns.sparse_matrix(self, values)

    def reweighted_inclusion(self, p0: float) -> reweighting.ReweightedInclusion:
        """PIPs if the prior inclusion probability were fixed at `p0`, by weighting the draws.

        Cliques with a probability of their own keep it. The result tells how many draws carry the weight;
        below 100 a warning says so. :meth:`sensitivity` does the same for any prior.
        """
        if not 0 < p0 < 1:
            raise DataError(f"p0 must lie strictly between 0 and 1, not {p0!r}.")
        found = reweighting.weights(self, replace(self.prior, inclusion=FixedInclusion(p0)))
        if found is None:
            raise DataError(
                "The inclusion prior of this fit is a model, not a single p0, so that its draws cannot be "
                "weighted; use sensitivity()."
            )
        probability, effective = reweighting.frequency(self._table, found), found.effective
        if effective < min(100, self._table.total / 2):
            warnings.warn(
                f"At p0 = {p0:g} the weights rest on {effective:.0f} of {self._table.total:,} draws; "
                f"fit again with FixedInclusion({p0:g}) for reliable numbers.",
                EdgewiseWarning,
                stacklevel=2,
            )
        return reweighting.ReweightedInclusion(
            p0, columns.pair_matrix(self, probability), probability, effective
        )

    def sensitivity(
        self,
        priors: Mapping[str, Prior] | Sequence[Prior] | None = None,
        *,
        draw: bool = True,
        thresholds: tuple[float, float] = (3, 10),
        fewest: float = sensitivity.FEWEST,
        **options: Any,
    ) -> sensitivity.Sensitivity:
        """The posterior under other priors: by weights where they are close, else by new chains.

        Parameters
        ----------
        priors : mapping from names to priors, or sequence of Prior, optional
            By default half a dozen that a reviewer may ask for: other prior numbers of edges, a narrower, a
            wider and a heavier slab.
        draw : bool
            Whether to draw new chains where a prior is too far for weights; otherwise it is refused.
        thresholds : pair of float
            Bayes factors from which evidence counts, and counts as strong.
        fewest : float
            Effective draws that the weights have to leave of the slowest quantity.
        **options
            How to run new chains, as of :class:`SpikeSlabMRF <edgewise.SpikeSlabMRF>` (``max_time``,
            ``n_jobs`` ...). Their ``target_error`` is 0.05 unless given: enough for verdicts.

        Examples
        --------
        >>> from edgewise import SpikeSlabMRF, datasets
        >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
        >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
        >>> found = model.posterior_.sensitivity(draw=False)
        >>> found.labels[0], found.edges().shape[0]
        ('as fitted', 6)
        """
        return sensitivity.sensitivity(
            self,
            priors,
            draw=draw,
            thresholds=thresholds,
            fewest=fewest,
            options=options,
            result=self._result,
        )

    # Draws

    def biases(self, coding: str = "binary") -> np.ndarray:
        """Draws of the biases: (chains, draws, p); in Ising coding h = theta_i / 2 + sum_j J_ij.

        With more than two levels, :meth:`thresholds` has those of one variable.
        """
        levels.only_binary(self, "A bias", "thresholds(variable) or threshold_summary()")
        values = self._biases_of()
        if columns.coding_scale(self, coding) == 1.0:
            return values
        influence = structure.node_totals(self._joined, self.features, "expected influence")
        return values / 2 + influence.reshape(values.shape) / 4

    def thresholds(self, variable: str | int) -> np.ndarray:
        """Draws of the thresholds of a variable: (chains, draws, levels); only their differences matter.

        Those of ordinal and nominal variables add up to zero; that of the first of two levels, and of the
        reference of a Blume-Capel variable, is zero.
        """
        return levels.threshold_draws(self, tables.variable_index(self, variable))

    def draws_of(self, edge: Clique, coding: str = "binary") -> np.ndarray:
        """Parameter of one clique in every draw, zero where absent: (chains, draws).

        The strength of the matrix where a variable of a pair is nominal.
        """
        scale = columns.coding_scale(self, coding)
        result: np.ndarray = scale * self._table.dense(np.array([self.features.index(edge, self.names)]))[0]
        return result

    # Tables and graphs

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
        return tables.edge_table(self, coding, thresholds, columns.checked_share(probability))

    def bias_summary(self, coding: str = "binary", probability: float = 0.95) -> pandas.DataFrame:
        """One row per variable: its bias and the quality of the numbers."""
        levels.only_binary(self, "A bias", "threshold_summary()")
        return tables.bias_table(self, coding, columns.checked_share(probability))

    def threshold_summary(self, probability: float = 0.95) -> pandas.DataFrame:
        """One row per level of every variable: its threshold (see :meth:`thresholds`) and the quality.

        A threshold that is zero by definition has no R-hat and no effective draws.
        """
        return levels.threshold_table(self, columns.checked_share(probability))

    def communities(self) -> communities.Communities:
        """Communities of the variables, where the prior of inclusion is a block model.

        The posterior of the partition and of the number of communities, with its Bayes factors; who belongs
        together how probably; and the one partition that is closest to all draws.
        """
        found = self._kept_communities or communities.communities(self)
        self._kept_communities = found
        return found

    def attribute_summary(self, probability: float = 0.95) -> pandas.DataFrame:
        """One row per attribute of the prior of inclusion: its coefficient and the quality of the numbers.

        A coefficient is the log odds ratio of inclusion between pairs that have the attribute and pairs that
        have not, or that differ by a standard deviation of the distance; ``prior_sd`` is what it was before
        the data.
        """
        return tables.attribute_table(self, columns.checked_share(probability))

    def graph(self, threshold: float = 0.5) -> networkx.Graph:
        """Graph of the pairs with a PIP of at least `threshold`, nodes by name.

        Edges carry ``inclusion``, ``log10_bf``, ``evidence``, ``coupling`` (posterior mean) and
        ``coupling_if_included``, nodes their ``bias``. With larger cliques the edges join variables that
        share an active clique with at least that probability, and carry that probability only. With more
        than two levels nodes carry ``kind``, ``levels`` and ``thresholds`` instead, and edges ``measure``,
        which says whether their numbers are couplings or strengths.
        """
        return tables.posterior_graph(self, threshold)

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
        return structure.centrality_table(self, kind, columns.checked_share(probability), max_draws)

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

    # Groups and strata

    def of_group(self, group: Any) -> Posterior:
        """The posterior of one of the groups that were compared: its network, couplings and biases.

        With covariates held fixed its biases are means over its strata, weighted by their rows.
        """
        return groups.of_group(self, group)

    def of_stratum(self, stratum: int) -> Posterior:
        """The posterior of one stratum, by its number in :attr:`strata`: one model for its rows."""
        return groups.of_stratum(self, stratum)

    def group_summary(
        self, thresholds: tuple[float, float] = (3, 10), probability: float = 0.95
    ) -> pandas.DataFrame:
        """How the groups differ: one row per candidate and pair of groups (13.3).

        Parameters
        ----------
        thresholds : pair of float
            Bayes factors from which evidence counts, and counts as strong.
        probability : float
            Content of the intervals.

        Returns
        -------
        DataFrame
            ``absent``, ``same`` and ``different`` are the probabilities of the three states of the pair, over
            all groups; ``log10_bf_...`` the Bayes factor of each against the better of the other two;
            ``answer`` that of difference in words. ``coupling_1`` and ``coupling_2`` are posterior means in
            the two groups, and ``difference`` is the second less the first, zero where the pair does not
            differ, with its interval.
        """
        return groups.group_table(self, thresholds, columns.checked_share(probability))

    def group_bias_summary(self, probability: float = 0.95) -> pandas.DataFrame:
        """Differences of the biases: one row per variable and pair of groups."""
        return groups.bias_table(self, columns.checked_share(probability))

    # Models

    @cached_property
    def median_model(self) -> MRF:
        """The "Bayes PM" model: cliques with PIP >= 0.5 at E[A | active], and the mean biases."""
        from edgewise.model.mrf import MRF

        mean = self._moments(given_inclusion=True)[0]
        kept = np.flatnonzero((self._edge_inclusion >= 0.5) & np.isfinite(mean))
        if self.scales.all_binary:
            return MRF(self._bias, self.features.members[kept], mean[kept], self.names)
        weights = levels.mean_parameters(self, kept)
        return MRF(self._bias, self.features.members[kept], weights, self.names, self.scales)

    def model(self, position: int) -> MRF:
        """The model of one draw; draws are counted through all chains."""
        from edgewise.model.mrf import MRF

        members = self.features.members[self._joined.active(position)[0]]
        weights = self._joined.parameters(position, self._dimension)
        scales = None if self.scales.all_binary else self.scales
        if self.strata is not None and self.strata.n_strata > 1:
            raise DataError(
                "The strata have models of their own; ask of_group(...) or of_stratum(...) for them."
            )
        return MRF(self._joined.biases[position], members, weights, self.names, scales)

    def mixture(self, n: int = 100, seed: int = 0) -> list[MRF]:
        """The "Bayes" mixture: `n` draws chosen at random without repetition (all if there are fewer)."""
        total = self.n_chains * self.n_draws
        chosen = np.random.default_rng(seed).permutation(total)[: min(n, total)]
        return [self.model(int(position)) for position in chosen]

    # Elsewhere

    def to_datatree(
        self,
        edges: Sequence[Clique] | None = None,
        *,
        data: Any = None,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
        max_draws: int | None = 1000,
        seed: int = 0,
    ) -> xarray.DataTree:
        """The draws for ArviZ: theta, indicator, bias, inclusion_rate, slab_scale and n_edges.

        Parameters
        ----------
        edges : sequence of cliques, optional
            Selected edges; all of them by default, where that is at most 20 million numbers.
        data : BinaryData or rows in the coding of the fit, optional
            The data of the fit, which become the group ``observed_data``.
        log_likelihood : bool
            Add the log-probability of every row of `data` in every draw, for ``arviz_stats.loo``. It needs
            log Z of every draw: it is refused where neither the states can be listed nor the variables
            eliminated.
        posterior_predictive : bool
            Add a data set of the size of `data` from every draw.
        max_draws : int or None
            With one of these, the tree has at most so many evenly spaced draws; None keeps all.
        seed : int
            Of the replicated data.

        Returns
        -------
        xarray.DataTree
        """
        return trees.datatree(self, edges, data, log_likelihood, posterior_predictive, max_draws, seed)

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
            self._edge_sums,
            self._counters,
            None if self.scales.all_binary else self.scales,
            self.imputed,
        )
        storage.write(contents, path)

    def __repr__(self) -> str:
        chains = f"{self.n_chains} chain{'s' * (self.n_chains != 1)}"
        unfinished = " of an unfinished warm-up" if self.info.get("warm_up_unfinished") else ""
        return (
            f"Posterior({self.n_variables} variables, {self.n_cliques:,} candidates, "
            f"{chains} x {self.n_draws:,} draws{unfinished}, {self.n_edges.mean():.1f} active on average)"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the light, what was learned, and the ten most probable edges."""
        from edgewise.posterior.verdict import as_html

        return as_html(self)

    @cached_property
    def _examination(self) -> diagnostics.Examination:
        return diagnostics.examine(self)


def load_posterior(path: str | PathLike[str]) -> Posterior:
    """Read a posterior written by :meth:`Posterior.save` of this version of edgewise or an earlier one.

    Raises
    ------
    FileError
        If the file is missing, truncated, damaged, not a posterior, or written by a later version.

    Examples
    --------
    >>> import tempfile
    >>> from edgewise import SpikeSlabMRF, datasets, load_posterior
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     model.posterior_.save(f"{directory}/posterior.nc")
    ...     again = load_posterior(f"{directory}/posterior.nc")
    >>> bool((again.inclusion == model.inclusion_).all())
    True
    """
    contents = storage.read(path)
    try:
        return Posterior(**vars(contents))
    except DataError as error:
        raise FileError(f"{path} is a posterior but not a consistent one: {error}") from error
