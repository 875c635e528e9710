"""A prior laid out over the candidates of a problem, as the engines read it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from edgewise.errors import DataError
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors.attributes import AttributeLayout
from edgewise.priors.communities import BlockLayout
from edgewise.priors.parts import (
    BetaInclusion,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
)

# Where a slab with heavier tails is cut off, as in `kernels/slabs.py`.
LARGEST_PARAMETER = 100.0


@dataclass(frozen=True)
class ResolvedDifference:
    """The prior of differences between groups, as the engines read it; NaN where something is fixed.

    Attributes
    ----------
    beta_a, beta_b, q0 : float
        Of the probability q0 that a pair which is present differs: its Beta prior, and the fixed value or the
        prior mean.
    gamma_shape, gamma_rate, scale : float
        Of the standard deviation sigma_D of the difference of two groups: the Gamma prior of sigma_D^-2, and
        the fixed value or the square root of rate / shape.
    """

    beta_a: float = 5.0
    beta_b: float = 5.0
    q0: float = 0.5
    gamma_shape: float = 5.0
    gamma_rate: float = 5.0
    scale: float = 1.0

    @classmethod
    def of(cls, inclusion: BetaInclusion | FixedInclusion, slab: GammaSlab | FixedSlab) -> ResolvedDifference:
        """Lay out the two parts."""
        free, learned = isinstance(inclusion, BetaInclusion), isinstance(slab, GammaSlab)
        return cls(
            inclusion.a if isinstance(inclusion, BetaInclusion) else math.nan,
            inclusion.b if isinstance(inclusion, BetaInclusion) else math.nan,
            inclusion.a / (inclusion.a + inclusion.b) if free else inclusion.p0,  # type: ignore[union-attr]
            slab.shape if isinstance(slab, GammaSlab) else math.nan,
            slab.rate if isinstance(slab, GammaSlab) else math.nan,
            math.sqrt(slab.rate / slab.shape) if learned else slab.sigma0,  # type: ignore[union-attr]
        )

    @property
    def fixed_q0(self) -> bool:
        """Whether q0 is given rather than learned."""
        return math.isnan(self.beta_a)

    @property
    def fixed_scale(self) -> bool:
        """Whether sigma_D is given rather than learned."""
        return math.isnan(self.gamma_shape)

    def draw(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw q0 and sigma_D."""
        q0 = self.q0 if self.fixed_q0 else rng.beta(self.beta_a, self.beta_b)
        scale = self.scale if self.fixed_scale else rng.gamma(self.gamma_shape, 1 / self.gamma_rate) ** -0.5
        return float(q0), float(scale)


@dataclass(frozen=True, eq=False)
class ResolvedPrior:
    """A prior laid out over the candidate cliques of one problem, as the engines read it.

    Attributes
    ----------
    beta_a, beta_b : float
        Beta prior of p0 (both NaN when p0 is fixed).
    p0 : float
        Fixed p0, or the prior mean when it is learned.
    gamma_shape, gamma_rate : float
        Gamma prior of sigma0^-2 (both NaN when sigma0 is fixed).
    sigma0 : float
        Fixed sigma0, or the square root of rate / shape when it is learned.
    bias_sd : float
        Standard deviation of the biases.
    status : int8 array (M,)
        COMMON (shares p0), SEPARATE (probability of its own), FORCED or FORBIDDEN.
    log_odds : float64 array (M,)
        Prior log odds of SEPARATE cliques; zero elsewhere. Of those that belong to a model the marginal ones.
    freedom : float
        Degrees of freedom of a slab with Student's t distribution; zero for a normal one.
    own_mean, own_sd : float64 arrays (M,), optional
        Mean and standard deviation of the cliques that have a slab of their own; an sd of zero elsewhere.
    model : BlockLayout or AttributeLayout, optional
        What is behind the log odds of the cliques that belong to it; they are SEPARATE.
        Prior log odds of SEPARATE cliques; zero elsewhere.
    difference : ResolvedDifference
        Of differences between groups, where groups are compared.
    listed : int64 array, optional
        Of more candidates than can be laid out, those that `status` and `log_odds` are about: all others are
        COMMON.

    Examples
    --------
    >>> from edgewise.features import Features
    >>> from edgewise.priors import FixedInclusion, Prior
    >>> found = Prior(inclusion=FixedInclusion(0.2)).resolve(Features.pairs(4))
    >>> found.fixed_p0, found.p0, len(found.status)
    (True, 0.2, 6)
    """

    beta_a: float
    beta_b: float
    p0: float
    gamma_shape: float
    gamma_rate: float
    sigma0: float
    bias_sd: float
    status: np.ndarray
    log_odds: np.ndarray
    freedom: float = 0.0
    own_mean: np.ndarray | None = None
    own_sd: np.ndarray | None = None
    model: BlockLayout | AttributeLayout | None = None
    listed: np.ndarray | None = None

    @property
    def plain(self) -> bool:
        """Whether there is one normal slab for all and no model of inclusion."""
        return self.freedom == 0 and self.own_sd is None and self.model is None

    difference: ResolvedDifference = field(default_factory=ResolvedDifference)

    def n_common(self, n_cliques: int) -> int:
        """How many of so many candidates share p0."""
        special = len(self.status) - int(np.count_nonzero(self.status == COMMON))
        return n_cliques - special

    def condensed(self) -> ResolvedPrior:
        """The same prior, with the special candidates alone listed; a plain one only."""
        if not self.plain:
            raise DataError(
                "Slabs with heavier tails or of single edges, communities and attributes need every pair "
                "laid out, and these are too many: take at most a thousand variables, list the pairs you are "
                "interested in with features=[...], or keep to a plain prior."
            )
        special = np.flatnonzero(self.status != COMMON)
        return replace(self, status=self.status[special], log_odds=self.log_odds[special], listed=special)

    @property
    def fixed_p0(self) -> bool:
        """Whether p0 is given rather than learned."""
        return math.isnan(self.beta_a)

    @property
    def fixed_sigma0(self) -> bool:
        """Whether sigma0 is given rather than learned."""
        return math.isnan(self.gamma_shape)

    def prior_odds(self) -> np.ndarray:
        """Marginal prior odds of every clique, as in (2.5); inf where forced, 0 where forbidden."""
        common = self.p0 / (1 - self.p0) if self.fixed_p0 else self.beta_a / self.beta_b
        odds = np.full(len(self.status), common)
        odds[self.status == SEPARATE] = np.exp(self.log_odds[self.status == SEPARATE])
        odds[self.status == FORCED] = np.inf
        odds[self.status == FORBIDDEN] = 0.0
        return odds

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw a graph and its parameters: the active cliques, and their values."""
        p0 = self.p0 if self.fixed_p0 else rng.beta(self.beta_a, self.beta_b)
        probability = np.full(len(self.status), p0)
        probability[self.status == SEPARATE] = 1 / (1 + np.exp(-self.log_odds[self.status == SEPARATE]))
        if self.model is not None:
            probability[self.model.inside] = self.model.draw(rng)[self.model.inside]
        probability[self.status == FORCED] = 1.0
        probability[self.status == FORBIDDEN] = 0.0
        active = np.flatnonzero(rng.random(len(self.status)) < probability)
        sigma0 = (
            self.sigma0 if self.fixed_sigma0 else rng.gamma(self.gamma_shape, 1 / self.gamma_rate) ** -0.5
        )
        values = sigma0 * rng.standard_normal(len(active))
        if self.freedom:
            values = self.heavier(values, sigma0, rng)
        if self.own_sd is not None and self.own_mean is not None:
            own = self.own_sd[active] > 0
            mean, sd = self.own_mean[active][own], self.own_sd[active][own]
            values[own] = mean + sd * rng.standard_normal(int(own.sum()))
        return active, values

    def heavier(self, values: np.ndarray, sigma0: float, rng: np.random.Generator) -> np.ndarray:
        """Normal numbers of standard deviation `sigma0` made ones of the slab with heavier tails (2.6)."""
        values = values / np.sqrt(rng.chisquare(self.freedom, len(values)) / self.freedom)
        while len(beyond := np.flatnonzero(~(np.abs(values) <= LARGEST_PARAMETER))):
            factor = rng.chisquare(self.freedom, len(beyond)) / self.freedom
            values[beyond] = sigma0 * rng.standard_normal(len(beyond)) / np.sqrt(factor)
        return values
