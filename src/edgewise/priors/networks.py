"""What a prior says before any data: networks drawn from it, and its numbers in odds ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.model.mrf import MRF
from edgewise.priors.attributes import AttributeInclusion
from edgewise.priors.prior import Prior
from edgewise.priors.resolved import ResolvedPrior

# Odds ratios below which a link would hardly be noticed, and above which nobody could miss it.
SLIGHT, STRONG = 1.5, 10.0
# Odds ratios beyond this are only said to be beyond.
VISIBLE = 100.0
DRAWS, FEWEST_DRAWS = 4000, 200
# Pairs that are drawn one by one, over all draws; couplings kept of all draws together.
MOST_CELLS, MOST_COUPLINGS = 1e8, 200_000
VARIABLES = 15


def networks(
    prior: Prior | None = None,
    n_variables: int | None = None,
    n: int = 6,
    seed: int | None = None,
    names: Sequence[str] | None = None,
) -> list[MRF]:
    """Draw networks of pairs from a prior.

    Parameters
    ----------
    prior : Prior, optional
        The default one if left out.
    n_variables : int, optional
        Number of variables; by default 15, or those that the prior names.
    n : int
        Number of networks.
    seed : int, optional
        The same seed gives the same networks.
    names : sequence of str, optional
        Names of the variables; by default those that the prior has, followed by x0, x1 and so on.

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
    features, resolved = _laid_out(prior, n_variables, names)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        active, values = resolved.draw(rng)
        biases = resolved.bias_sd * rng.standard_normal(features.n_variables)
        found.append(MRF(biases, features.members[active], values))
    return found


def variables_of(prior: Prior, n_variables: int | None, names: Sequence[str] | None) -> list[str]:
    """Names of so many variables, among them all that the prior names.

    Examples
    --------
    >>> variables_of(Prior(edge_slab={("mood", "sleep"): (0.8, 0.3)}), 4, None)
    ['mood', 'sleep', 'x2', 'x3']
    """
    if names is not None:
        found = [str(name) for name in names]
        if len(set(found)) < len(found):
            twice = next(name for name in found if found.count(name) > 1)
            raise DataError(f"The variable {twice!r} is named twice; name each once.")
        if n_variables is not None and n_variables != len(found):
            raise DataError(
                f"There are {len(found)} names for {n_variables} variables; leave one of them out."
            )
    else:
        found, complete = _named(prior)
        matrix = prior.edge_probability if isinstance(prior.edge_probability, np.ndarray) else None
        if n_variables is None:
            few = len(found) if matrix is None else len(matrix)
            n_variables = few if complete or matrix is not None else max(few, VARIABLES)
        if n_variables < len(found) or (complete and n_variables > len(found)):
            raise DataError(
                f"The prior names {len(found)} variables, {_listing(found)}, and these are {n_variables}; "
                f"draw {len(found)}."
            )
        free = (f"x{k}" for k in range(len(found), 10**9) if f"x{k}" not in found)
        found += [next(free) for _ in range(n_variables - len(found))]
    if len(found) < 2:
        raise DataError(f"A network needs at least two variables, not {len(found)}.")
    return found


def _named(prior: Prior) -> tuple[list[str], bool]:
    """The variables that a prior names, and whether these are all there can be."""
    if isinstance(prior.inclusion, AttributeInclusion):
        columns = prior.inclusion.to_dict()["table"].values()
        return list(dict.fromkeys(name for column in columns for name in column)), True
    single = [*prior.forced, *prior.forbidden, *(prior.edge_slab or ())]
    if prior.edge_probability is not None and not isinstance(prior.edge_probability, np.ndarray):
        single += list(prior.edge_probability)
    return list(dict.fromkeys(name for clique in single for name in clique if isinstance(name, str))), False


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _laid_out(
    prior: Prior | None, n_variables: int | None, names: Sequence[str] | None
) -> tuple[Features, ResolvedPrior]:
    prior = prior or Prior()
    named = variables_of(prior, n_variables, names)
    features = Features.pairs(len(named))
    return features, prior.resolve(features, named)


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
        The couplings of the edges of all draws, or of some of them at random if they are very many; in log
        odds.

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
        if not len(self.couplings):
            return math.nan
        with np.errstate(over="ignore"):
            return float(np.exp(np.quantile(np.abs(self.couplings), share)))

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
        if not len(self.couplings):
            return math.nan
        with np.errstate(over="ignore"):
            evidence = np.exp(-0.5 * self.couplings**2 / variance).mean()
        return float(1 / evidence) if evidence > 0 else math.inf

    @property
    def words(self) -> list[str]:
        """The expectation in a few sentences."""
        low, high = np.quantile(self.edges, [0.025, 0.975]).astype(int)
        plural = "s" * (self.n_pairs != 1)
        text = [
            f"{self.n_variables} variables, {self.n_pairs:,} pair{plural}: {self.edges.mean():,.0f} links on "
            f"average, {low:,} to {high:,} in 95 of 100 networks."
        ]
        if not len(self.couplings):
            return text
        half, most = self.odds_ratio(0.5), self.odds_ratio(0.95)
        middle = (
            f"Half of the links have an odds ratio below {half:.2g} (or above its inverse)"
            if half < VISIBLE
            else f"More than half of the links have an odds ratio above {VISIBLE:g} (or below its inverse)"
        )
        beyond = 1 - self.share_below(VISIBLE)
        tail = (
            f"95 of 100 below {most:,.3g}"
            if most < VISIBLE
            else f"{beyond:.0%} lie above {VISIBLE:g}, more than data usually show"
        )
        text.append(f"{middle}, {tail}." if half < VISIBLE else f"{middle}: {tail}.")
        text.append(
            f"{self.share_below(SLIGHT):.0%} are slight (below {SLIGHT:g}), "
            f"{1 - self.share_below(STRONG):.0%} strong (above {STRONG:g})."
        )
        return text

    def words_on_absence(self, rows: float) -> str:
        """What so many rows could say against a link, in a sentence."""
        return (
            f"With {rows:,.6g} rows, data without a trace of a link reach a Bayes factor of at most "
            f"{self.reach(rows):.2g} against it."
        )


def expect(
    prior: Prior | None = None,
    n_variables: int | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> Expectation:
    """What a prior expects of a network of `n_variables` variables, by many draws from it.

    Number and names of the variables are as of :func:`networks`.

    Examples
    --------
    >>> found = expect(n_variables=15)
    >>> round(found.odds_ratio(0.5), 1)
    2.0
    """
    features, resolved = _laid_out(prior, n_variables, names)
    special, alike = _kinds(resolved)
    draws = int(np.clip(MOST_CELLS // max(len(special), 1), FEWEST_DRAWS, DRAWS))
    rng = np.random.default_rng(seed)
    expected = max(1.0, draws * float(_mean_links(resolved)))
    kept = min(1.0, MOST_COUPLINGS / expected)
    edges, couplings = np.empty(draws, int), []
    for draw in range(draws):
        edges[draw], values = _one(resolved, special, alike, kept, rng)
        couplings.append(values)
    return Expectation(features.n_variables, features.n_cliques, edges, np.concatenate(couplings))


def _kinds(resolved: ResolvedPrior) -> tuple[np.ndarray, int]:
    """The pairs that must be drawn one by one, and how many others there are, which are all alike."""
    one_by_one = (resolved.status == SEPARATE) | (resolved.status == FORCED)
    if resolved.own_sd is not None:
        one_by_one |= resolved.own_sd > 0
    alike = ~one_by_one & (resolved.status == COMMON)
    return np.flatnonzero(one_by_one & (resolved.status != FORBIDDEN)), int(alike.sum())


def _mean_links(resolved: ResolvedPrior) -> float:
    """Number of links that the prior expects."""
    odds = resolved.prior_odds()
    with np.errstate(invalid="ignore"):
        return float(np.where(np.isinf(odds), 1.0, odds / (1 + odds)).sum())


def _one(
    resolved: ResolvedPrior, special: np.ndarray, alike: int, kept: float, rng: np.random.Generator
) -> tuple[int, np.ndarray]:
    """The number of links of a network, and the couplings of a share `kept` of them."""
    rate = resolved.p0 if resolved.fixed_p0 else rng.beta(resolved.beta_a, resolved.beta_b)
    count = int(rng.binomial(alike, rate))
    status = resolved.status[special]
    probability = np.full(len(special), rate)
    own = status == SEPARATE
    probability[own] = 1 / (1 + np.exp(-resolved.log_odds[special[own]]))
    if resolved.model is not None:
        inside = resolved.model.inside[special]
        probability[inside] = resolved.model.draw(rng)[special[inside]]
    probability[status == FORCED] = 1.0
    active = special[rng.random(len(special)) < probability]
    edges = count + len(active)
    if kept < 1:
        count, active = int(rng.binomial(count, kept)), active[rng.random(len(active)) < kept]
    sigma0 = resolved.sigma0
    if not resolved.fixed_sigma0:
        sigma0 = rng.gamma(resolved.gamma_shape, 1 / resolved.gamma_rate) ** -0.5
    values = sigma0 * rng.standard_normal(count + len(active))
    if resolved.freedom:
        values = resolved.heavier(values, sigma0, rng)
    if resolved.own_sd is not None and resolved.own_mean is not None:
        mean, sd = resolved.own_mean[active], resolved.own_sd[active]
        values[count:] = np.where(sd > 0, mean + sd * rng.standard_normal(len(active)), values[count:])
    return edges, values
