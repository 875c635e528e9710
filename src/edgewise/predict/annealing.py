"""Estimates where exact inference is out of reach: log Z by annealing, marginals by Gibbs sampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgewise.errors import DataError, EdgewiseWarning
from edgewise.model.mrf import MRF
from edgewise.predict import levels

PILOT_PARTICLES = 100
PILOT_SWEEPS = 50
FEWEST_TEMPERATURES = 32
MOST_TEMPERATURES = 1 << 15
# With this variance of the log-weights the weights' relative ESS is about e^-0.25 = 0.78, and the error of
# their mean is close to normal.
LOG_WEIGHT_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class SiteTerms:
    """The cliques of a model listed by site, as the kernels want them."""

    first: np.ndarray
    others: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, model: MRF) -> SiteTerms:
        """List every clique of nonzero weight once under each of its variables."""
        members = model.members[model.weights != 0]
        weights = model.weights[model.weights != 0]
        width = members.shape[1]
        parts = []
        for k in range(width):
            rest = np.delete(members, k, axis=1)
            parts.append((members[:, k], np.sort(rest, axis=1)[:, ::-1], weights))
        sites = np.concatenate([part[0] for part in parts])
        others = np.concatenate([part[1] for part in parts])
        every = np.concatenate([part[2] for part in parts])
        order = np.argsort(sites, kind="stable")
        order = order[sites[order] >= 0]
        first = np.searchsorted(sites[order], np.arange(model.n_variables + 1))
        return cls(first.astype(np.int64), np.ascontiguousarray(others[order], np.int64), every[order])


def ais_log_partition(
    model: MRF,
    *,
    particles: int = 500,
    temperatures: int | None = None,
    seed: int | np.random.Generator | None = 0,
) -> tuple[float, float]:
    """Estimate log Z by annealed importance sampling.

    Particles move from an independent model to this one through `temperatures` intermediate ones, a Gibbs
    sweep at each (Neal 2001).

    Parameters
    ----------
    model : MRF
    particles : int
        Number of independent particles.
    temperatures : int, optional
        By default doubled in pilot runs until the variance of the log-weights is below 0.25; the estimate
        itself comes from a fresh run.
    seed : int or numpy.random.Generator
        The default gives the same answer every time.

    Returns
    -------
    estimate, standard_error : float
        The error is that of the mean weight; ``estimate +- 1.96 standard_error`` covers log Z in about 95 %
        of runs. A model with modes that the particles never find is underestimated without notice.

    Examples
    --------
    >>> from edgewise import MRF, exact, predict
    >>> model = MRF([0.0, 0.0, 0.0], [(0, 1), (1, 2)], [1.0, 2.0])
    >>> estimate, error = predict.ais_log_partition(model)
    >>> bool(abs(estimate - exact.log_partition(model)) < 5 * error)
    True
    """
    if particles < 2:
        raise DataError(f"An error bar needs two or more particles, not {particles}.")
    if temperatures is not None and temperatures < 1:
        raise DataError(f"The number of temperatures must be one or more, not {temperatures}.")
    rng = np.random.default_rng(seed)
    start, weigh = _annealer(model, rng)
    if temperatures is None:
        temperatures = FEWEST_TEMPERATURES
        while temperatures < MOST_TEMPERATURES:
            pilot = weigh(PILOT_PARTICLES, temperatures)
            # The variance falls as 1 / temperatures, so one pilot can save several doublings.
            excess = pilot.var(ddof=1) / LOG_WEIGHT_VARIANCE
            if excess <= 1:
                break
            temperatures = min(temperatures * (2 if excess <= 4 else 4), MOST_TEMPERATURES)
    log_weights = weigh(particles, temperatures)
    peak = log_weights.max()
    relative = np.exp(log_weights - peak)
    mean = relative.mean()
    ess = relative.sum() ** 2 / (relative**2).sum() / particles
    if ess < 0.1:
        warnings.warn(
            f"The weights of annealed importance sampling are worth only {ess:.1%} of the particles, so the "
            f"error bar of log Z may be too small. Use more than {temperatures} temperatures.",
            EdgewiseWarning,
            stacklevel=2,
        )
    estimate = start + peak + np.log(mean)
    error = relative.std(ddof=1) / mean / np.sqrt(particles)
    return float(estimate), float(error)


def _annealer(model: MRF, rng: np.random.Generator) -> tuple[float, Callable[[int, int], np.ndarray]]:
    """Log Z of an independent model, and the log-weights of particles that come from there."""
    if not model.scales.all_binary:
        independent = levels.independent(model, PILOT_PARTICLES, PILOT_SWEEPS, rng)
        log_z = sum(float(np.logaddexp.reduce(part)) for part in independent.thresholds)
        return log_z, lambda particles, steps: levels.anneal(model, independent, particles, steps, rng)
    terms = SiteTerms.of(model)
    base = _base_biases(model, terms, rng)
    start = float(np.logaddexp(0.0, base).sum())
    return start, lambda particles, steps: _log_weights(model, terms, base, particles, steps, rng)


def _log_weights(
    model: MRF,
    terms: SiteTerms,
    base: np.ndarray,
    particles: int,
    temperatures: int,
    rng: np.random.Generator,
) -> np.ndarray:
    from edgewise.kernels.annealing import anneal

    state = (rng.random((len(base), particles)) < _logistic(base)[:, None]).astype(np.float64)
    betas = np.linspace(0.0, 1.0, temperatures + 1)
    offset = model.biases - base
    return np.asarray(anneal(state, terms.first, terms.others, terms.weights, offset, base, betas, rng))


def _base_biases(model: MRF, terms: SiteTerms, rng: np.random.Generator) -> np.ndarray:
    """Biases of an independent model with margins like those of short Gibbs chains from fair coins."""
    from edgewise.kernels.annealing import clamped_means

    p = model.n_variables
    state = (rng.random((p, PILOT_PARTICLES)) < 0.5).astype(np.float64)
    half = PILOT_SWEEPS // 2
    totals = clamped_means(
        state, np.arange(p), terms.first, terms.others, terms.weights, model.biases, half, half, rng
    )
    # One added case of each value keeps the base wider than the model.
    means = (totals.sum(axis=1) + 1.0) / (PILOT_PARTICLES + 2.0)
    return np.asarray(np.log(means) - np.log1p(-means))


def gibbs_marginals(
    model: MRF, rows: np.ndarray, unseen: np.ndarray, sweeps: int, chains: int, rng: np.random.Generator
) -> np.ndarray:
    """P(x_i = 1 | seen) of the unseen variables of every row by Gibbs sampling: float64 (n, unseen)."""
    from edgewise.kernels.annealing import clamped_means

    terms = SiteTerms.of(model)
    state = np.repeat(rows.T.astype(np.float64), chains, axis=1)
    state[unseen] = rng.random((len(unseen), state.shape[1])) < 0.5
    totals = clamped_means(
        np.ascontiguousarray(state),
        np.asarray(unseen, np.int64),
        terms.first,
        terms.others,
        terms.weights,
        model.biases,
        max(sweeps // 2, 1),
        sweeps,
        rng,
    )
    return np.asarray(totals.reshape(len(unseen), len(rows), chains).mean(axis=2).T)


def _logistic(field: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * field)
