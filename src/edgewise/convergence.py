"""Effective number of draws and R-hat of many quantities at once, on plain arrays.

Arrays have the shape (quantities, chains, draws). The definitions are those of Vehtari et al. (2021):
chains are split in halves, values are replaced by normal scores of their ranks, and the autocorrelation
is cut where Geyer's initial monotone sequence ends. Everything is vectorised over the quantities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FEWEST_DRAWS = 4
_CELLS_AT_ONCE = 4_000_000


def split_chains(values: np.ndarray) -> np.ndarray:
    """Cut every chain into its first and last half (an odd middle draw is left out)."""
    half = values.shape[-1] // 2
    return np.concatenate([values[..., :half], values[..., values.shape[-1] - half :]], axis=-2)


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Replace the values of each quantity by normal scores of their ranks over all chains."""
    from scipy.special import ndtri

    flat = values.reshape(len(values), -1)
    return ndtri((_average_ranks(flat) - 0.375) / (flat.shape[1] + 0.25)).reshape(values.shape)


def _average_ranks(rows: np.ndarray) -> np.ndarray:
    """Ranks from 1 within each row, ties sharing their mean (scipy.stats takes a second to import)."""
    count = rows.shape[1]
    order = rows.argsort(axis=1)
    ordered = np.take_along_axis(rows, order, 1)
    place = np.arange(count)
    opens = np.ones(rows.shape, bool)
    opens[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    closes = np.ones(rows.shape, bool)
    closes[:, :-1] = opens[:, 1:]
    first = np.maximum.accumulate(np.where(opens, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, place, count)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, 1)
    return ranks


def _in_batches(function: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
    step = max(1, _CELLS_AT_ONCE // max(1, int(np.prod(values.shape[1:]))))
    parts = [function(values[start : start + step]) for start in range(0, len(values), step)]
    return np.concatenate(parts) if parts else np.zeros(0)


def effective_draws(values: np.ndarray) -> np.ndarray:
    """Effective number of draws for the mean of each quantity; chains are taken as they are.

    Parameters
    ----------
    values : array (quantities, chains, draws)
        At least four draws. A constant quantity gets the plain number of draws.
    """
    return _in_batches(_effective_draws, values)


def _effective_draws(values: np.ndarray) -> np.ndarray:
    from scipy.fft import irfft, next_fast_len, rfft

    values = np.asarray(values, float)
    quantities, chains, draws = values.shape
    total = chains * draws
    centred = values - values.mean(axis=-1, keepdims=True)
    length = next_fast_len(2 * draws, real=True)
    spectrum = rfft(centred, n=length, axis=-1)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariance = irfft(power, n=length, axis=-1)[:, :draws] / draws
    within = covariance[:, :1] * draws / (draws - 1)
    pooled = within * (draws - 1) / draws
    if chains > 1:
        pooled = pooled + values.mean(axis=-1).var(axis=1, ddof=1)[:, None]
    constant = np.ptp(values.reshape(quantities, -1), axis=1) < 1e-15
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = 1 - (within - covariance) / pooled
    correlation[:, 0] = 1.0

    # Pairs of neighbouring lags: Geyer's sums are positive up to the lag where noise takes over.
    last = max(0, -(-(draws - 2) // 2) - 1)
    even = correlation[:, 0 : 2 * last + 1 : 2]
    sums = even + correlation[:, 1 : 2 * last + 2 : 2]
    stops = sums <= 0
    stops[:, -1] = True
    stop = stops.argmax(axis=1)
    falling = np.minimum.accumulate(sums, axis=1)
    before = np.arange(sums.shape[1]) < stop[:, None]
    row = np.arange(quantities)
    tail = even[row, stop]
    tail = np.where((tail > 0) | (sums[row, stop] >= 0), tail, 0.0)
    time = -1 + 2 * np.where(before, falling, 0.0).sum(axis=1) + tail
    time = np.maximum(time, 1 / np.log10(total))
    return np.where(constant, float(total), total / time)


def potential_scale_reduction(values: np.ndarray) -> np.ndarray:
    """R-hat of each quantity; chains are taken as they are.

    Chains that stand still at different values would give infinity; they are treated as if one draw of
    all had differed, which keeps the number finite and very large. A constant quantity gets 1.
    """
    values = np.asarray(values, float)
    chains, draws = values.shape[1:]
    means = values.mean(axis=-1)
    between = draws * means.var(axis=1, ddof=1)
    within = values.var(axis=-1, ddof=1).mean(axis=1)
    one_draw = np.ptp(values.reshape(len(values), -1), axis=1) ** 2 / (draws * chains)
    within = np.where((within <= 1e-30) & (between > 0), one_draw, within)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.sqrt((between / within + draws - 1) / draws)
    return np.where((within > 0) | (between > 0), result, 1.0)


def bulk_ess(values: np.ndarray) -> np.ndarray:
    """Bulk effective sample size (rank-normalised, split) of continuous quantities."""
    return _in_batches(lambda part: _effective_draws(normal_scores(split_chains(part))), values)


def tail_ess(values: np.ndarray, probability: float = 0.1) -> np.ndarray:
    """Tail effective sample size: the smaller one of the two quantile indicators."""

    def batch(part: np.ndarray) -> np.ndarray:
        flat = part.reshape(len(part), -1)
        both = [
            _effective_draws(split_chains(part <= np.quantile(flat, q, axis=1)[:, None, None]))
            for q in (probability, 1 - probability)
        ]
        return np.minimum(*both)

    return _in_batches(batch, values)


def rank_r_hat(values: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat: the larger one of location (bulk) and scale (folded)."""

    def batch(part: np.ndarray) -> np.ndarray:
        split = split_chains(part)
        folded = abs(split - np.median(split.reshape(len(split), -1), axis=1)[:, None, None])
        return np.maximum(
            potential_scale_reduction(normal_scores(split)), potential_scale_reduction(normal_scores(folded))
        )

    return _in_batches(batch, values)


def indicator_ess(values: np.ndarray) -> np.ndarray:
    """Bulk ESS of 0/1 quantities: ranks of two values are a linear map, so no ranking is needed."""
    return _in_batches(lambda part: _effective_draws(split_chains(part)), values)


def indicator_r_hat(values: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat of 0/1 quantities, again without ranking."""
    return _in_batches(lambda part: potential_scale_reduction(split_chains(part)), values)
