"""The truth for few variables: the posterior over all graphs by complete enumeration.

Every graph's evidence is an integral over the biases and the active parameters. The hyper-parameters need
no grid: p0 integrates in closed form over the graphs, and sigma0^-2 ~ Gamma(c, d) integrates to a
multivariate t density of the active parameters A,

    Gamma(c + E/2) / Gamma(c) * d^c / (2 pi)^(E/2) * (d + |A|^2 / 2)^-(c + E/2).

What is left is done by importance sampling around the mode: a multivariate t proposal with the curvature
at the mode, driven by scrambled Sobol points. Independent scramblings ("replicates") give the standard
error. Nothing here is shared with the package except the containers of candidates, sums, prior and scales.

Rows with blanks are likely to the extent of all the states that fit their answers, summed.

With more levels than two a candidate may have several parameters, all active or none: `mean` and `sd` are
then those of the parameters, in the order of a model's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from inclusion_truth import log_model_prior, rates
from scipy import special, stats
from scipy.stats import qmc

from edgewise.features import Features, Statistics
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors import ResolvedPrior
from edgewise.scales import Scales

REPLICATES = 16
DEGREES_OF_FREEDOM = 10.0


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact posterior (up to the stated errors).

    `inclusion` are the P(Y = 1 | D) of the M candidates with their numerical standard errors
    `inclusion_error`; `mean` and `sd` are those of A given inclusion (NaN where never included); `graphs`
    (G, M) are the enumerated graphs with their `probability`, `log_evidence` and `standard_error` of the
    log evidence (NaN where only Laplace's approximation was used). `cells` are the probabilities of the
    levels of the blank cells of every partial row, one after the other.
    """

    inclusion: np.ndarray
    inclusion_error: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    bias_mean: np.ndarray
    bias_sd: np.ndarray
    p0: float
    p0_sd: float
    sigma0: float
    sigma0_sd: float
    n_edges: float
    n_edges_sd: float
    graphs: np.ndarray
    probability: np.ndarray
    log_evidence: np.ndarray
    standard_error: np.ndarray
    cells: np.ndarray = field(default_factory=lambda: np.zeros(0))


def state_features(features: Features, scales: Scales | None = None) -> np.ndarray:
    """Values of all features (biases, then candidates) in all 2^p states: float64 (2^p, p + M)."""
    p = features.n_variables
    if scales is not None:
        return level_features(features, scales)
    states = np.array(list(itertools.product((0.0, 1.0), repeat=p)))
    columns = [states[:, [i for i in row if i >= 0]].prod(axis=1) for row in features.members.tolist()]
    return np.column_stack([states, *columns])


def level_features(features: Features, scales: Scales) -> np.ndarray:
    """Values of all features (thresholds, then products of scores) in all states."""
    states = list(itertools.product(*(range(scale.n_levels) for scale in scales)))
    rows = []
    for state in states:
        row = [value for scale, level in zip(scales, state) for value in scale.basis[level]]
        for i, j in features.members.tolist():
            row += [u * v for u in scales[i].scores[state[i]] for v in scales[j].scores[state[j]]]
        rows.append(row)
    return np.array(rows)


def owners(features: Features, scales: Scales | None) -> np.ndarray:
    """The candidate that each parameter belongs to."""
    if scales is None:
        return np.arange(features.n_cliques)
    sizes = [scales[i].dimension * scales[j].dimension for i, j in features.members.tolist()]
    return np.repeat(np.arange(features.n_cliques), sizes)


def all_graphs(prior: ResolvedPrior) -> np.ndarray:
    """All graphs that the prior allows: bool (G, M)."""
    free = np.flatnonzero((prior.status != FORCED) & (prior.status != FORBIDDEN))
    graphs = np.zeros((2 ** len(free), len(prior.status)), bool)
    graphs[:, prior.status == FORCED] = True
    codes = np.arange(2 ** len(free))
    for position, clique in enumerate(free):
        graphs[:, clique] = codes >> position & 1
    return graphs


def log_graph_prior(graphs: np.ndarray, prior: ResolvedPrior) -> np.ndarray:
    """Log prior probability of every graph with p0 integrated out."""
    common = prior.status == COMMON
    active, candidates = graphs[:, common].sum(axis=1), int(common.sum())
    if prior.fixed_p0:
        result = active * math.log(prior.p0) + (candidates - active) * math.log1p(-prior.p0)
    else:
        result = special.betaln(prior.beta_a + active, prior.beta_b + candidates - active)
        result = result - special.betaln(prior.beta_a, prior.beta_b)
    separate = prior.status == SEPARATE
    if prior.model is not None:
        separate &= ~prior.model.inside
        result = result + log_model_prior(graphs, prior.model)
    odds = prior.log_odds[separate]
    return result + graphs[:, separate] @ odds - np.logaddexp(0.0, odds).sum()


@dataclass
class _Target:
    """Log joint density of data and parameters given a graph, as a function of all p + M parameters."""

    features: Features
    statistics: Statistics
    prior: ResolvedPrior
    scales: Scales | None = None
    partial: Sequence[tuple[float, Sequence[int]]] = ()
    table: np.ndarray = field(init=False)
    sums: np.ndarray = field(init=False)
    first: int = field(init=False)

    def __post_init__(self) -> None:
        self.table = state_features(self.features, self.scales)
        self.first = self.features.n_variables if self.scales is None else self.scales.n_biases
        self.sums = np.concatenate([self.statistics.singles, self.statistics.cliques])
        levels = [2] * self.features.n_variables if self.scales is None else self.scales.levels
        states = np.array(list(itertools.product(*map(range, levels))))
        # Which states fit each partial row, and have each level of each of its blank cells.
        fits, with_level, row_of_cell = [], [], []
        for number, (_, row) in enumerate(self.partial):
            blank = np.array(row) < 0
            fits.append(((states == row) | blank).all(axis=1))
            for i in np.flatnonzero(blank):
                with_level += [fits[-1] & (states[:, i] == c) for c in range(levels[i])]
                row_of_cell += [number] * int(levels[i])
        size = len(states)
        self.fits = np.array(fits, float).reshape(-1, size).T
        self.counts = np.array([count for count, _ in self.partial], float)
        self.with_level = np.array(with_level, float).reshape(-1, size).T
        self.row_of_cell = np.array(row_of_cell, int)

    def seen(self, logits: np.ndarray) -> np.ndarray:
        """Log sums over the states that fit the partial rows."""
        top = logits.max(axis=1)
        fitting = np.exp(logits - top[:, None]) @ self.fits
        return np.log(np.maximum(fitting, 1e-300)) @ self.counts + top * self.counts.sum()

    def expected(self, logits: np.ndarray) -> np.ndarray:
        """Sums of the features over the complete rows, and what they are expected to be in the others."""
        weight = np.exp(logits - logits.max(axis=1)[:, None])
        share = self.counts / np.maximum(weight @ self.fits, 1e-300)
        return self.sums + (weight * (share @ self.fits.T)) @ self.table

    def cell_chances(self, theta: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Probabilities of the levels of all blank cells, for rows of parameters."""
        logits = theta @ self.table[:, columns].T
        weight = np.exp(logits - logits.max(axis=1)[:, None])
        fitting = np.maximum(weight @ self.fits, 1e-300)
        return (weight @ self.with_level) / fitting[:, self.row_of_cell]

    def log_density(self, biases: np.ndarray, values: np.ndarray, active: np.ndarray) -> np.ndarray:
        """For rows of `biases` and of the `values` of the cliques `active`."""
        p = self.first
        columns = np.concatenate([np.arange(p), p + active])
        theta = np.concatenate([biases, values], axis=1)
        logits = theta @ self.table[:, columns].T
        top = logits.max(axis=1)
        log_z = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        likelihood = theta @ self.sums[columns] - self.statistics.n_rows * log_z + self.seen(logits)
        sd = self.prior.bias_sd
        bias = -0.5 * (biases**2).sum(axis=1) / sd**2 - p * math.log(sd * math.sqrt(2 * math.pi))
        return likelihood + bias + self.log_slab(values, active)

    def own(self, active: np.ndarray) -> np.ndarray:
        """Standard deviations of the slabs that some parameters have of their own, zero elsewhere."""
        sd = self.prior.own_sd
        return np.zeros(len(active)) if sd is None else sd[active]

    def centre(self, active: np.ndarray) -> np.ndarray:
        """Means of the slabs."""
        mean = self.prior.own_mean
        return np.zeros(len(active)) if mean is None else mean[active]

    def log_slab(self, values: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Log prior density of the values (rows, k) of the parameters `active`."""
        sd, mean = self.own(active), self.centre(active)
        own = sd > 0
        result = stats.norm.logpdf(values[:, own], mean[own], sd[own]).sum(axis=1)
        if self.prior.freedom:
            # Cut off at 100.
            density = stats.t(self.prior.freedom, scale=self.prior.sigma0)
            return result + density.logpdf(values[:, ~own]).sum(axis=1)
        return result + self.log_shared((values[:, ~own] ** 2).sum(axis=1), int((~own).sum()))

    def log_shared(self, squares: np.ndarray, count: int) -> np.ndarray:
        """Log prior density of `count` parameters that share sigma0, whose sum of squares is `squares`."""
        half = 0.5 * count
        if self.prior.fixed_sigma0:
            variance = self.prior.sigma0**2
            return -0.5 * squares / variance - half * math.log(2 * math.pi * variance)
        c, d = self.prior.gamma_shape, self.prior.gamma_rate
        constant = special.gammaln(c + half) - special.gammaln(c) + c * math.log(d)
        return constant - half * math.log(2 * math.pi) - (c + half) * np.log(d + 0.5 * squares)

    def slab_precision(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Conditional mean of the precision of every parameter (rows, k), active where `mask`."""
        everyone = np.arange(values.shape[1])
        sd = self.own(everyone)
        shared = mask & (sd == 0)
        squares = (np.where(shared, values, 0.0) ** 2).sum(axis=1)
        if self.prior.freedom:
            freedom, scale = self.prior.freedom, self.prior.sigma0
            result = (freedom + 1) / (freedom * scale**2 + values**2)
        elif self.prior.fixed_sigma0:
            result = np.full(values.shape, self.prior.sigma0**-2)
        else:
            precision = (self.prior.gamma_shape + 0.5 * shared.sum(axis=1)) / (
                self.prior.gamma_rate + 0.5 * squares
            )
            result = np.repeat(precision[:, None], values.shape[1], axis=1)
        with np.errstate(divide="ignore"):
            return np.where(sd > 0, sd**-2.0, result)

    def shared_terms(self, values: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, int]:
        """Sum of squares and number of the parameters that share sigma0."""
        shared = self.own(active) == 0
        return (values[:, shared] ** 2).sum(axis=1), int(shared.sum())

    def scale_moments(self, squares: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """E[sigma0 | A] and E[sigma0^2 | A]."""
        if self.prior.fixed_sigma0:
            sigma = self.prior.sigma0
            return np.full(np.shape(squares), sigma), np.full(np.shape(squares), sigma**2)
        shape = self.prior.gamma_shape + 0.5 * count
        rate = self.prior.gamma_rate + 0.5 * squares
        first = np.sqrt(rate) * math.exp(special.gammaln(shape - 0.5) - special.gammaln(shape))
        return first, rate / (shape - 1)


def _modes(target: _Target, graphs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior modes (B, p + M) and curvatures (B, p + M, p + M) of a batch of graphs.

    Inactive coordinates stay at zero with unit curvature. Newton steps use the slab's curvature at its
    conditional precision, which bounds the true one, so that halving always ends.
    """
    table, sums, rows = target.table, target.sums, target.statistics.n_rows
    p = target.first
    graphs = graphs[:, owners(target.features, target.scales)]
    size = table.shape[1]
    batch = len(graphs)
    mask = np.concatenate([np.ones((batch, p), bool), graphs], axis=1)
    diagonal = np.arange(size)

    def value(theta: np.ndarray) -> np.ndarray:
        logits = theta @ table.T
        slab = np.array(
            [target.log_slab(row[None, p:][:, on], np.flatnonzero(on))[0] for row, on in zip(theta, graphs)]
        )
        bias = -0.5 * (theta[:, :p] ** 2).sum(axis=1) / target.prior.bias_sd**2
        return theta @ sums - rows * special.logsumexp(logits, axis=1) + target.seen(logits) + bias + slab

    def slopes(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        probability = special.softmax(theta @ table.T, axis=1)
        means = probability @ table
        covariance = np.matmul(table.T[None] * probability[:, None, :], table)
        covariance -= means[:, :, None] * means[:, None, :]
        slab = target.slab_precision(theta[:, p:], graphs)
        precision = np.empty_like(theta)
        precision[:, :p] = target.prior.bias_sd**-2
        precision[:, p:] = slab
        centre = np.zeros(size)
        centre[p:] = target.centre(np.arange(size - p))
        curvature = rows * covariance
        # The curvature stays that of complete rows, which is larger: steps are shorter, and end.
        expected = target.expected(theta @ table.T)
        curvature[:, diagonal, diagonal] += precision
        curvature *= mask[:, :, None] & mask[:, None, :]
        curvature[:, diagonal, diagonal] += ~mask
        return (expected - rows * means - precision * (theta - centre)) * mask, curvature, slab

    theta = np.zeros((batch, size))
    current = value(theta)
    for _ in range(200):
        gradient, curvature, _ = slopes(theta)
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        if np.abs((step * gradient).sum(axis=1)).max() < 1e-12:
            break
        scale = np.ones(batch)
        for _ in range(40):
            proposal = theta + scale[:, None] * step
            found = value(proposal)
            worse = found < current - 1e-9
            if not worse.any():
                break
            scale[worse] *= 0.5
        theta, current = proposal, found
    _, curvature, slab = slopes(theta)
    if not target.prior.fixed_sigma0 and target.prior.own_sd is None:
        # The mixture over sigma0 makes the slab's curvature smaller along A; keep it where it stays safe.
        active_values = np.where(mask, theta, 0.0)
        active_values[:, :p] = 0.0
        rate = target.prior.gamma_rate + 0.5 * (active_values**2).sum(axis=1)
        softer = curvature - (slab[:, 0] / rate)[:, None, None] * (
            active_values[:, :, None] * active_values[:, None, :]
        )
        safe = np.linalg.eigvalsh(softer)[:, 0] > 0.2 * np.linalg.eigvalsh(curvature)[:, 0]
        curvature[safe] = softer[safe]
    return theta, curvature


class _Points:
    """Replicated scrambled Sobol points of the standard multivariate t, made once per dimension."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}

    def get(self, dimension: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Points (REPLICATES * size, dimension) and their log densities."""
        if (dimension, size) not in self.known:
            parts = []
            for replicate in range(REPLICATES):
                engine = qmc.Sobol(
                    dimension + 1, rng=np.random.default_rng([self.seed, dimension, replicate])
                )
                parts.append(engine.random(size))
            uniform = np.clip(np.concatenate(parts), 1e-12, 1 - 1e-12)
            normal = special.ndtri(uniform[:, 1:])
            degrees = DEGREES_OF_FREEDOM
            points = normal / np.sqrt(stats.chi2.ppf(uniform[:, 0], degrees) / degrees)[:, None]
            density = (
                special.gammaln(0.5 * (degrees + dimension))
                - special.gammaln(0.5 * degrees)
                - 0.5 * dimension * math.log(degrees * math.pi)
                - 0.5 * (degrees + dimension) * np.log1p((points**2).sum(axis=1) / degrees)
            )
            self.known[dimension, size] = (points, density)
        return self.known[dimension, size]


def enumerate_posterior(
    features: Features,
    statistics: Statistics,
    prior: ResolvedPrior,
    *,
    target_error: float = 0.005,
    start_points: int = 64,
    max_points: int = 65_536,
    neglect: float | None = None,
    seed: int = 0,
    scales: Scales | None = None,
    partial: Sequence[tuple[float, Sequence[int]]] = (),
) -> Truth:
    """Enumerate all graphs over at most about 15 free candidates.

    Parameters
    ----------
    features, statistics, prior
        The problem, as the engines are given it; any cliques, any row weights, p0 and sigma0 free or fixed.
    target_error : float
        Standard error of each graph's log evidence; the points per replicate are doubled from
        `start_points` until it is reached, and not reaching it with `max_points` is an error.
    neglect : float, optional
        Graphs whose posterior log probability by Laplace's approximation lies this far below the best keep
        that approximation: with 2^15 graphs most need no sampling.
    seed : int
        Seed of the scramblings.
    partial : sequence of (count, levels)
        Rows with blanks, which are -1: `statistics` then has the sums of the other rows, but counts all.
    """
    target = _Target(features, statistics, prior, scales, partial)
    owner = owners(features, scales)
    p, n_parameters = target.first, len(owner)
    graphs = all_graphs(prior)
    log_prior = log_graph_prior(graphs, prior)
    points = _Points(seed)
    count = len(graphs)
    evidence = np.empty((count, REPLICATES))
    error = np.full(count, np.nan)
    first = np.zeros((count, p + n_parameters))
    second = np.zeros((count, p + n_parameters))
    scale = np.empty((count, 2))
    chances = np.zeros((count, len(target.row_of_cell)))
    laplace = np.empty(count)
    modes, factors = [], []
    for start in range(0, count, 512):
        batch = slice(start, start + 512)
        theta, curvature = _modes(target, graphs[batch])
        chosen = [np.concatenate([np.arange(p), p + np.flatnonzero(graph[owner])]) for graph in graphs[batch]]
        for row, columns in enumerate(chosen):
            factor = np.linalg.cholesky(np.linalg.inv(curvature[row][np.ix_(columns, columns)]))
            if partial:
                # Less is known than with complete rows.
                factor *= math.sqrt(1.5)
            mode = theta[row, columns]
            peak = target.log_density(mode[None, :p], mode[None, p:], columns[p:] - p)[0]
            laplace[start + row] = (
                peak + 0.5 * len(columns) * math.log(2 * math.pi) + np.log(np.diag(factor)).sum()
            )
            modes.append(mode)
            factors.append(factor)
    worth = np.ones(count, bool)
    if neglect is not None:
        total = laplace + log_prior
        worth = total > total.max() - neglect
    for graph in range(count):
        active = np.flatnonzero(graphs[graph][owner])
        columns = np.concatenate([np.arange(p), p + active])
        mode, factor = modes[graph], factors[graph]
        if not worth[graph]:
            evidence[graph] = laplace[graph]
            variance = (factor**2).sum(axis=1)
            first[graph, columns], second[graph, columns] = mode, mode**2 + variance
            moments = target.scale_moments(*target.shared_terms(mode[None, p:], active))
            scale[graph] = [moment[0] for moment in moments]
            continue
        size = start_points
        while True:
            standard, density = points.get(len(columns), size)
            theta = mode + standard @ factor.T
            log_weight = target.log_density(theta[:, :p], theta[:, p:], active)
            log_weight -= density - np.log(np.diag(factor)).sum()
            top = log_weight.max()
            weight = np.exp(log_weight - top)
            means = weight.reshape(REPLICATES, size).mean(axis=1)
            error[graph] = means.std(ddof=1) / means.mean() / math.sqrt(REPLICATES)
            if error[graph] < 0.8 * target_error:
                break
            if 2 * size > max_points:
                raise RuntimeError(
                    f"log evidence of graph {active.tolist()} has standard error {error[graph]:.4f} with "
                    f"{REPLICATES} x {size} points; allow more or weaken target_error"
                )
            size *= 2
        evidence[graph] = top + np.log(means)
        weight /= weight.sum()
        first[graph, columns], second[graph, columns] = weight @ theta, weight @ theta**2
        if partial:
            chances[graph] = weight @ target.cell_chances(theta, columns)
        moments = target.scale_moments(*target.shared_terms(theta[:, p:], active))
        scale[graph] = [weight @ moment for moment in moments]
    found = _summarise(p, owner, prior, graphs, log_prior, evidence, error, first, second, scale)
    return replace(found, cells=found.probability @ chances)


def _summarise(
    p: int,
    owner: np.ndarray,
    prior: ResolvedPrior,
    graphs: np.ndarray,
    log_prior: np.ndarray,
    evidence: np.ndarray,
    error: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scale: np.ndarray,
) -> Truth:
    by_replicate = special.softmax(log_prior[:, None] + evidence, axis=0)
    log_evidence = special.logsumexp(evidence, axis=1) - math.log(evidence.shape[1])
    probability = special.softmax(log_prior + log_evidence)
    inclusion = probability @ graphs
    inclusion_error = (by_replicate.T @ graphs).std(axis=0, ddof=1) / math.sqrt(evidence.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = probability @ first[:, p:] / inclusion[owner]
        variance = probability @ second[:, p:] / inclusion[owner] - mean**2
    bias_mean = probability @ first[:, :p]
    bias_variance = probability @ second[:, :p] - bias_mean**2
    common = prior.status == COMMON
    active = graphs[:, common].sum(axis=1)
    if prior.model is not None:
        # The mean rate; its square is not needed but for an allowance.
        p0 = float(probability @ rates(graphs, prior.model))
        p0_square = p0**2
    elif prior.fixed_p0:
        p0, p0_square = prior.p0, prior.p0**2
    else:
        total = prior.beta_a + prior.beta_b + common.sum()
        given = (prior.beta_a + active) / total
        p0 = probability @ given
        p0_square = probability @ (given * (prior.beta_a + active + 1) / (total + 1))
    edges = graphs.sum(axis=1)
    n_edges = probability @ edges
    sigma0, sigma0_square = probability @ scale
    return Truth(
        inclusion=inclusion,
        inclusion_error=inclusion_error,
        mean=mean,
        sd=np.sqrt(variance),
        bias_mean=bias_mean,
        bias_sd=np.sqrt(bias_variance),
        p0=float(p0),
        p0_sd=math.sqrt(max(0.0, p0_square - p0**2)),
        sigma0=float(sigma0),
        sigma0_sd=math.sqrt(max(0.0, sigma0_square - sigma0**2)),
        n_edges=float(n_edges),
        n_edges_sd=math.sqrt(max(0.0, probability @ edges**2 - n_edges**2)),
        graphs=graphs,
        probability=probability,
        log_evidence=log_evidence,
        standard_error=error,
    )
