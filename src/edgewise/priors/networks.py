"""What a prior says before any data: networks drawn from it, and its numbers in odds ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.model.mrf import MRF
from edgewise.priors.prior import Prior

# Odds ratios below which a link would hardly be noticed, and above which nobody could miss it.
SLIGHT, STRONG = 1.5, 10.0
DRAWS = 4000


def networks(
    prior: Prior | None = None, n_variables: int = 15, n: int = 6, seed: int | None = None
) -> list[MRF]:
    """Draw networks of pairs from a prior.

    Parameters
    ----------
    prior : Prior, optional
        The default one if left out.
    n_variables : int
        Number of variables.
    n : int
        Number of networks.
    seed : int, optional
        The same seed gives the same networks.

    Returns
    -------
    list of MRF

    Examples
    --------
    >>> from edgewise.priors import FixedInclusion, FixedSlab, Prior
    >>> [one] = networks(Prior(FixedInclusion(0.2), FixedSlab(1.0)), n_variables=10, n=1, seed=0)
    >>> one.n_variables, len(one.cliques)
    (10, 8)
    """
    features = _pairs(n_variables)
    resolved = (prior or Prior()).resolve(features)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        active, values = resolved.draw(rng)
        biases = resolved.bias_sd * rng.standard_normal(n_variables)
        found.append(MRF(biases, features.members[active], values))
    return found


def _pairs(n_variables: int) -> Features:
    if n_variables < 2:
        raise DataError(f"A network needs at least two variables, not {n_variables}.")
    return Features.pairs(n_variables)


@dataclass(frozen=True, eq=False)
class Expectation:
    """What a prior expects of a network of so many variables, from draws.

    Attributes
    ----------
    n_variables, n_pairs : int
        The network.
    edges : int array
        Number of edges of every draw.
    couplings : float array
        The couplings of all edges of all draws, in log odds.

    Examples
    --------
    >>> from edgewise.priors import expect
    >>> found = expect(n_variables=10)
    >>> found.n_pairs, len(found.edges) > 100
    (45, True)
    """

    n_variables: int
    n_pairs: int
    edges: np.ndarray
    couplings: np.ndarray

    def odds_ratio(self, share: float) -> float:
        """The odds ratio (or its inverse, if smaller than one) that this share of the links stays below."""
        return float(np.exp(np.quantile(np.abs(self.couplings), share))) if len(self.couplings) else math.nan

    def share_below(self, odds_ratio: float) -> float:
        """The share of the links with an odds ratio below this one, in either direction."""
        return float((np.abs(self.couplings) < math.log(odds_ratio)).mean()) if len(self.couplings) else 0.0

    def reach(self, rows: float) -> float:
        """Largest Bayes factor against a link that so many rows can give (8.4), p0 as the prior has it.

        For two variables that are one in half of the rows: the log odds ratio has the variance 16 / rows
        then, and no pair is measured better.
        """
        variance = 16 / rows
        # The density of the slab at zero, and that of the couplings measured as zero: N(0, variance).
        evidence = np.exp(-0.5 * self.couplings**2 / variance).mean() if len(self.couplings) else math.nan
        return float(1 / evidence)

    @property
    def words(self) -> list[str]:
        """The expectation in a few sentences."""
        low, high = np.quantile(self.edges, [0.025, 0.975]).astype(int)
        return [
            f"{self.n_variables} variables, {self.n_pairs:,} pairs: {self.edges.mean():,.0f} links on "
            f"average, {low:,} to {high:,} in 95 of 100 networks.",
            f"Half of the links have an odds ratio below {self.odds_ratio(0.5):.2g} (or above its inverse), "
            f"95 of 100 below {self.odds_ratio(0.95):,.3g}.",
            f"{self.share_below(SLIGHT):.0%} are slight (below {SLIGHT:g}), "
            f"{1 - self.share_below(STRONG):.0%} strong (above {STRONG:g}).",
        ]

    def words_on_absence(self, rows: float) -> str:
        """What so many rows could say against a link, in a sentence."""
        return (
            f"With {rows:,.6g} rows, data without a trace of a link reach a Bayes factor of at most "
            f"{self.reach(rows):.2g} against it."
        )


def expect(prior: Prior | None = None, n_variables: int = 15, seed: int = 0) -> Expectation:
    """What a prior expects of a network of `n_variables` variables, by many draws from it.

    Examples
    --------
    >>> found = expect(n_variables=15)
    >>> round(found.odds_ratio(0.5), 1)
    2.0
    """
    features = _pairs(n_variables)
    resolved = (prior or Prior()).resolve(features)
    rng = np.random.default_rng(seed)
    drawn = [resolved.draw(rng) for _ in range(DRAWS)]
    return Expectation(
        n_variables,
        features.n_cliques,
        np.array([len(active) for active, _ in drawn]),
        np.concatenate([values for _, values in drawn]),
    )
