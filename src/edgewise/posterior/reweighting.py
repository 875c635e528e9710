"""Another prior from the same draws: importance weights (docs/method.md, 8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from edgewise.draws import convergence
from edgewise.draws.draws import Draws
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.posterior.renamed import REWEIGHTED, Old, OldNames
from edgewise.posterior.summaries import ROUNDING, CliqueDraws, IndicatorQuality
from edgewise.priors import Prior, ResolvedPrior

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior


@dataclass(frozen=True, eq=False)
class ReweightedInclusion(OldNames):
    """Inclusion under another p0: by pair (p, p), by candidate (M,), and the draws that carry the weight."""

    _OLD: ClassVar[Old] = REWEIGHTED

    p0: float
    inclusion: np.ndarray
    edge_inclusion: np.ndarray
    effective_draws: float


@dataclass(frozen=True, eq=False)
class Weights:
    """What every draw of a posterior weighs under another prior.

    Attributes
    ----------
    draw : float array
        Weights of the draws of all chains, one after the other; they add up to one.
    effective : float
        Draws that carry the weight, (sum w)^2 / sum w^2.
    share : float
        The same as a share of all draws.
    tail : float
        Shape k of the generalised Pareto distribution of the largest weights.
    """

    draw: np.ndarray
    effective: float
    share: float
    tail: float


def weights(posterior: Posterior, prior: Prior) -> Weights | None:
    """Weights of the draws under another prior (8.7), of which (8.3) is the case of another p0.

    None where weights cannot lead from one to the other. Of a model of inclusion the probability of a graph
    has no closed form; where both priors have the same model, it cancels.
    """
    old = posterior._resolved_prior
    new = prior.resolve(posterior.features, posterior.names)
    if not _same_model(old, new):
        return None
    # Where the old prior knows a candidate for sure, no draw tells of the other case.
    sure = np.isin(old.status, (FORCED, FORBIDDEN))
    if (sure & (old.status != new.status)).any():
        return None
    count, unlisted = posterior._dimension, posterior.n_unlisted
    log_weight = log_prior(new, posterior._joined, count, unlisted)
    log_weight -= log_prior(old, posterior._joined, count, unlisted)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = float(1 / (weight**2).sum())
    return Weights(weight, effective, effective / len(weight), tail_shape(log_weight))


def _same_model(old: ResolvedPrior, new: ResolvedPrior) -> bool:
    """Whether the graph has the same model of inclusion under both priors, or none under either."""
    if old.model is None or new.model is None:
        return old.model is new.model
    return type(old.model) is type(new.model) and np.array_equal(old.model.numbers(), new.model.numbers())


def frequency(table: CliqueDraws, found: Weights) -> np.ndarray:
    """Weighted inclusion frequencies (M,)."""
    weighted = np.bincount(table.owner, found.draw[table.position], table.n_cliques)
    return np.asarray(np.clip(weighted, 0, 1))


def errors(table: CliqueDraws, found: Weights, quality: IndicatorQuality) -> np.ndarray:
    """Monte Carlo errors of :func:`frequency` (M,).

    The error of a weighted mean is that of the sum of w_t (y_t - p), whose terms go along with the weights
    and so are as slow as these: it is their own effective draws that count.
    """
    inclusion = frequency(table, found)
    weight = found.draw[table.position]
    spread = np.bincount(table.owner, weight**2, table.n_cliques) * (1 - 2 * inclusion)
    spread += inclusion**2 * float((found.draw**2).sum())
    error: np.ndarray = np.sqrt(np.maximum(spread, 0) * table.total / np.maximum(quality.ess, 1))
    # Edges that are in all draws or in none are not known without error either.
    constant = np.minimum(inclusion, 1 - inclusion) < ROUNDING
    error[constant] = quality.mcse[constant] / math.sqrt(found.share)
    if table.n_draws < 2 * convergence.FEWEST_DRAWS:
        return error
    by_draw = found.draw.reshape(table.n_chains, table.n_draws)
    for cliques in table.batches(np.flatnonzero(quality.varies & ~constant)):
        terms = by_draw * (table.dense(cliques, indicator=True) - inclusion[cliques, None, None])
        ess = convergence.effective_draws(convergence.split_chains(terms))
        error[cliques] = table.total * terms.std(axis=(1, 2)) / np.sqrt(ess)
    return error


def log_prior(prior: ResolvedPrior, draws: Draws, dimension: np.ndarray, unlisted: int = 0) -> np.ndarray:
    """Log density of graph and parameters of every draw; p0, sigma0 and factors are integrated out.

    `unlisted` candidates share p0 beside those that are laid out, and are in no draw. A candidate of a
    model of inclusion counts with its marginal probability, as if it were alone: the same in all priors with
    the same model.
    """
    from scipy.special import betaln, gammaln

    count, owner = len(draws), np.repeat(np.arange(len(draws)), draws.n_edges)

    def by_draw(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return np.bincount(owner[chosen], values[chosen], minlength=count)

    status = prior.status[draws.indices]
    common, size = status == COMMON, int((prior.status == COMMON).sum()) + unlisted
    active = by_draw(np.ones(len(status)), common)
    if prior.fixed_p0:
        total = active * math.log(prior.p0) + (size - active) * math.log1p(-prior.p0)
    else:
        total = betaln(prior.beta_a + active, prior.beta_b + size - active) - betaln(
            prior.beta_a, prior.beta_b
        )
    separate = prior.status == SEPARATE
    total = total + by_draw(prior.log_odds[draws.indices], status == SEPARATE)
    total -= np.logaddexp(0, prior.log_odds[separate]).sum()
    impossible = by_draw(np.ones(len(status)), status == FORBIDDEN) > 0
    forced = int((prior.status == FORCED).sum())
    impossible |= by_draw(np.ones(len(status)), status == FORCED) < forced
    parameters = dimension[draws.indices]
    squares = parameters * draws.values**2
    own = np.zeros(len(status), bool)
    if prior.own_sd is not None and prior.own_mean is not None:
        sd, mean = prior.own_sd[draws.indices], prior.own_mean[draws.indices]
        own = sd > 0
        safe = np.where(own, sd, 1.0)
        density = -0.5 * ((draws.values - mean) / safe) ** 2 - np.log(safe) - 0.5 * math.log(2 * math.pi)
        total += by_draw(density, own)
    if prior.freedom:
        nu, scale = prior.freedom, prior.sigma0
        half = 0.5 * (nu + parameters)
        density = gammaln(half) - gammaln(0.5 * nu) - half * np.log1p(squares / (nu * scale**2))
        density -= 0.5 * parameters * math.log(nu * math.pi * scale**2)
        total += by_draw(density, ~own)
    else:
        number, sums = by_draw(parameters.astype(float), ~own), by_draw(squares, ~own)
        if prior.fixed_sigma0:
            variance = prior.sigma0**2
            total += -0.5 * sums / variance - 0.5 * number * math.log(2 * math.pi * variance)
        else:
            c, d = prior.gamma_shape, prior.gamma_rate
            total += gammaln(c + 0.5 * number) - gammaln(c) + c * math.log(d)
            total -= 0.5 * number * math.log(2 * math.pi) + (c + 0.5 * number) * np.log(d + 0.5 * sums)
    variance = prior.bias_sd**2
    total -= 0.5 * (draws.biases**2).sum(axis=1) / variance
    total -= 0.5 * draws.biases.shape[1] * math.log(2 * math.pi * variance)
    return np.where(impossible, -np.inf, total)


def _spread(log_weight: np.ndarray) -> np.ndarray:
    """Log weights in order; equal ones, as those of graphs of one size, spread up to the next larger value.

    Examples
    --------
    >>> _spread(np.array([1.0, 0.0, 0.0, 3.0]))
    array([0. , 0.5, 1. , 3. ])
    """
    values, count = np.unique(np.round(log_weight, 9), return_counts=True)
    if not np.isfinite(values).all() or len(values) == len(log_weight):
        return np.sort(log_weight)
    gap = np.append(np.diff(values), values[-1] - values[-2] if len(values) > 1 else 0.0)
    place = np.arange(len(log_weight)) - np.repeat(np.cumsum(count) - count, count)
    result: np.ndarray = np.repeat(values, count) + np.repeat(gap / count, count) * place
    return result


def tail_shape(log_weight: np.ndarray) -> float:
    """Shape of the tail of importance weights, by the estimator of Zhang & Stephens (2009).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tail_shape(0.5 * rng.standard_normal(4000)) < 0.5
    True
    >>> tail_shape(1.2 * rng.standard_exponential(4000)) > 0.8
    True
    """
    ordered = _spread(log_weight)
    count = len(ordered)
    size = int(min(0.2 * count, 3 * math.sqrt(count)))
    if size < 5:
        return math.inf
    weight = np.exp(ordered - ordered[-1])
    tail = weight[-size:] - weight[-size - 1]
    if tail[-1] <= 1e-12 or weight[-size - 1] > 1 - 1e-9:
        return 0.0  # all weights are alike
    tail = np.maximum(tail, 1e-12 * tail[-1])
    grid = 30 + int(math.sqrt(size))
    quarter = tail[int(size / 4 + 0.5) - 1]
    b = 1 / tail[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quarter)
    k = np.log1p(-b[:, None] * tail).mean(axis=1)
    score = size * (np.log(-b / k) - k - 1)
    share = np.exp(score - score.max())
    share /= share.sum()
    best = float(b @ share)
    shape = float(np.log1p(-best * tail).mean())
    return (size * shape + 5) / (size + 10)  # drawn a little to one half, as few weights ask for
