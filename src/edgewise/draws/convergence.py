"""Effective number of draws and R-hat of many quantities at once, on plain arrays.

Arrays have the shape (quantities, chains, draws). The definitions are those of Vehtari et al. (2021):
chains are split in halves, values are replaced by normal scores of their ranks, and the autocorrelation
is cut where Geyer's initial monotone sequence ends. Everything is vectorised over the quantities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FEWEST_DRAWS = 4
# Batches of this size stay in the processor's cache.
_CELLS_AT_ONCE = 250_000
# Quantities with longer memory than so many pairs of lags go the dense way.
_SPARSE_PAIRS = 30


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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> independent = rng.standard_normal((1, 4, 1000))
    >>> bool(3000 < effective_draws(independent)[0] < 5000)
    True
    >>> bool(effective_draws(independent.cumsum(axis=2))[0] < 100)
    True
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
    span = np.ptp(values.reshape(len(values), -1), axis=1)
    return _scale_reduction(
        values.mean(axis=-1), values.var(axis=-1, ddof=1).mean(axis=1), span, values.shape[-1]
    )


def _scale_reduction(means: np.ndarray, within: np.ndarray, span: np.ndarray, draws: int) -> np.ndarray:
    """R-hat from the means of the chains (quantities, chains) and the mean variance within them."""
    between = draws * means.var(axis=1, ddof=1)
    one_draw = span**2 / (draws * means.shape[1])
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
        return np.asarray(np.minimum(*both))

    return _in_batches(batch, values)


def rank_r_hat(values: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat: the larger one of location (bulk) and scale (folded)."""

    def batch(part: np.ndarray) -> np.ndarray:
        split = split_chains(part)
        folded = abs(split - np.median(split.reshape(len(split), -1), axis=1)[:, None, None])
        both = [potential_scale_reduction(normal_scores(part)) for part in (split, folded)]
        return np.asarray(np.maximum(*both))

    return _in_batches(batch, values)


def indicator_ess(values: np.ndarray) -> np.ndarray:
    """Bulk ESS of 0/1 quantities: ranks of two values are a linear map, so no ranking is needed."""
    return _in_batches(lambda part: _effective_draws(split_chains(part)), values)


def indicator_r_hat(values: np.ndarray) -> np.ndarray:
    """Rank-normalised split R-hat of 0/1 quantities, again without ranking."""
    return _in_batches(lambda part: potential_scale_reduction(split_chains(part)), values)


def split_places(
    owner: np.ndarray, place: np.ndarray, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantity, half chain and step within it of every one of a sparse 0/1 array, as `split_chains` cuts it.

    `owner` and `place` are the quantity and the draw (``chain * draws + draw``), ascending in both.
    """
    draws = shape[2]
    half = draws // 2
    chain, draw = np.divmod(place.astype(np.int64), draws)
    later = draw >= draws - half
    kept = later | (draw < half)
    step = np.where(later, draw - (draws - half), draw)
    return owner[kept].astype(np.int64), (2 * chain + later)[kept], step[kept]


def sparse_indicator_r_hat(owner: np.ndarray, place: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """:func:`indicator_r_hat` from the places of the ones: counts of the half chains are enough."""
    owner, part, _ = split_places(owner, place, shape)
    half, parts = shape[2] // 2, 2 * shape[1]
    mean = np.bincount(owner * parts + part, minlength=shape[0] * parts).reshape(-1, parts) / half
    within = (mean * (1 - mean)).mean(axis=1) * half / (half - 1)
    return _scale_reduction(mean, within, np.ones(shape[0]), half)


def sparse_indicator_ess(owner: np.ndarray, place: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """:func:`indicator_ess` of rare 0/1 quantities from the places of their ones.

    Parameters
    ----------
    owner, place : int arrays
        Quantity and draw (``chain * draws + draw``) of every one, ascending in both.
    shape : (quantities, chains, draws)

    Returns
    -------
    float64 array
        NaN where the autocorrelation is too long for this; use the dense function there.
    """
    quantities, half, parts = shape[0], shape[2] // 2, 2 * shape[1]
    owner, part, step = split_places(owner, place, shape)
    slot = owner * parts + part
    key = slot * (2 * half) + step
    count = np.bincount(slot, minlength=quantities * parts).reshape(quantities, parts)
    mean = count / half
    squares = (mean**2).mean(axis=1)
    variance = mean.mean(axis=1) - squares
    pooled = variance + mean.var(axis=1, ddof=1)

    # Ones at the edges of the half chains, which a product of lag t does not reach.
    by_step = np.argsort(step, kind="stable")
    first = np.searchsorted(step[by_step], np.arange(half + 1))
    share = mean.ravel()[slot] / parts
    missing = np.zeros(quantities)
    running = pooled > 0
    result = np.where(running, np.nan, float(half * parts))
    last = max(0, -(-(half - 2) // 2) - 1)
    total, lowest = np.full(quantities, -1.0), np.full(quantities, np.inf)
    for pair in range(min(last, _SPARSE_PAIRS) + 1):
        correlation = []
        for lag in (2 * pair, 2 * pair + 1):
            if lag:
                edges = np.concatenate([by_step[first[i] : first[i + 1]] for i in (lag - 1, half - lag)])
                missing += np.bincount(owner[edges], share[edges], quantities)
            found = np.minimum(np.searchsorted(key, key + lag), max(0, len(key) - 1))
            hits = np.bincount(owner[key[found] == key + lag], minlength=quantities) / parts
            covariance = (hits + missing - (half + lag) * squares) / half
            with np.errstate(invalid="ignore", divide="ignore"):
                # Within-chain variance and covariance carry the same factor half / (half - 1) as above.
                correlation.append(1 - (variance * half / (half - 1) - covariance) / pooled)
        even, odd = (np.ones(quantities), correlation[1]) if pair == 0 else correlation
        sums = even + odd
        stop = running & ((sums <= 0) | (pair == last))
        tail = np.where((even > 0) | (sums >= 0), even, 0.0)
        time = np.maximum(total + tail, 1 / np.log10(parts * half))
        result[stop] = parts * half / time[stop]
        running &= ~stop
        lowest = np.minimum(lowest, sums)
        total += 2 * lowest
        if not running.any():
            break
        keep = running[owner]
        if keep.mean() < 0.5:
            owner, key, step, share = owner[keep], key[keep], step[keep], share[keep]
            by_step = np.argsort(step, kind="stable")
            first = np.searchsorted(step[by_step], np.arange(half + 1))
    return result
