"""Communities of variables as a prior of inclusion (2.8): as the user gives it, and for one problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from edgewise.errors import DataError
from edgewise.priors.parts import _positive

# Communities beyond these have no visible prior probability, whatever the mean.
MOST_MORE = 400
LARGEST_MEAN = 100.0
# Keeps prior odds finite.
SMALLEST_RATE = 1e-12


@dataclass(frozen=True)
class BlockInclusion:
    """A stochastic block model: variables fall into communities, which decide how likely two are linked.

    The number of communities is one more than a Poisson variable (a mixture of finite mixtures, Miller &
    Harrison 2018; Geng, Bhattacharya & Pati 2019), and learned with the rest. Every two communities have an
    inclusion probability of their own, and so has every one within.

    Parameters
    ----------
    a, b : float
        Beta prior of the inclusion probability within a community.
    between_a, between_b : float, optional
        The same between two communities; as within if left out.
    concentration : float
        Parameter of the Dirichlet prior of the shares of the communities: smaller ones make them uneven.
    mean_communities : float
        Prior mean of the number of communities, above one.

    Examples
    --------
    >>> from edgewise.priors import BlockInclusion, Prior
    >>> Prior(inclusion=BlockInclusion(a=2, b=1, between_a=1, between_b=4)).inclusion.between_b
    4
    """

    a: float = 1.0
    b: float = 1.0
    between_a: float | None = None
    between_b: float | None = None
    concentration: float = 1.0
    mean_communities: float = 2.0

    def __post_init__(self) -> None:
        for name in ("a", "b", "between_a", "between_b", "concentration"):
            value = getattr(self, name)
            if value is not None or not name.startswith("between"):
                _positive(value, f"BlockInclusion's {name}", 1e-3)
        _positive(self.mean_communities, "BlockInclusion's mean_communities")
        if not 1 < self.mean_communities <= LARGEST_MEAN:
            raise DataError(
                f"BlockInclusion's mean_communities must lie above 1 and at most at {LARGEST_MEAN:g}, not "
                f"{self.mean_communities!r}."
            )

    @property
    def beta(self) -> tuple[float, float, float, float]:
        """The Beta priors within and between."""
        other = (self.a if self.between_a is None else self.between_a,
                 self.b if self.between_b is None else self.between_b)  # fmt: skip
        return float(self.a), float(self.b), float(other[0]), float(other[1])


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """A block model over the variables of one problem.

    Attributes
    ----------
    inclusion : BlockInclusion
        What the user has given.
    inside : bool array (M,)
        The candidates that belong to the model; others have a probability of their own.
    members : int array (M, 2)
        Variables of the candidates.
    n_variables : int
        Number of variables.
    """

    inclusion: BlockInclusion
    inside: np.ndarray
    members: np.ndarray
    n_variables: int

    state_kind: ClassVar[type] = np.int16

    @property
    def state_size(self) -> int:
        """How many numbers a draw of the model has: one per variable."""
        return self.n_variables

    @cached_property
    def log_weights(self) -> np.ndarray:
        """log V_n(t) of (2.8) for t = 0 to n: what a partition into t communities weighs."""
        return log_partition_weights(
            self.n_variables, self.inclusion.concentration, self.inclusion.mean_communities
        )

    def rules(self) -> Any:
        """The model as kernels read it."""
        from edgewise.kernels.communities import empty_blocks

        weights = self.log_weights
        log_new = np.concatenate([np.diff(weights), [-np.inf]])
        return empty_blocks(
            self.inside, self.members, self.n_variables, self.inclusion.beta,
            float(self.inclusion.concentration), log_new,
        )  # fmt: skip

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Communities for a chain to start with, all in one or in a few at random."""
        count = int(rng.integers(1, min(6, self.n_variables) + 1))
        return first_labels(rng.integers(0, count, self.n_variables)).astype(float)

    def check(self, state: np.ndarray) -> None:
        """Refuse numbers that are no communities.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        whole = state.astype(int)
        if not np.array_equal(whole, state) or whole.min() < 0 or whole.max() >= self.n_variables:
            raise ValueError("a community is no whole number below the number of variables")
        if len(np.unique(whole)) != whole.max() + 1:
            raise ValueError("a community has no members")

    def check_all(self, states: np.ndarray) -> None:
        """The same of many draws (draws, p)."""
        if states.size and not (states.min() >= 0 and states.max() < self.n_variables):
            raise ValueError("a community is no whole number below the number of variables")

    def marginal(self) -> np.ndarray:
        """Prior probability of every candidate, all else integrated out: (M,)."""
        a, b, other_a, other_b = self.inclusion.beta
        together = self.prior_together
        probability = together * a / (a + b) + (1 - together) * other_a / (other_a + other_b)
        return np.full(len(self.inside), np.clip(probability, SMALLEST_RATE, 1 - SMALLEST_RATE))

    @cached_property
    def prior_together(self) -> float:
        """Prior probability that two variables are in the same community."""
        from scipy import special

        more = np.arange(MOST_MORE)
        rate, gamma = self.inclusion.mean_communities - 1, self.inclusion.concentration
        share = np.exp(more * math.log(rate) - rate - special.gammaln(more + 1))
        return float((share * (gamma + 1) / (gamma * (more + 1) + 1)).sum())

    @cached_property
    def prior_number(self) -> np.ndarray:
        """Prior probability of t communities with members, t = 0 to n: (n + 1,)."""
        log_count = log_partition_counts(self.n_variables, self.inclusion.concentration)
        found = np.exp(self.log_weights + log_count)
        result: np.ndarray = found / found.sum()
        return result

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Inclusion probabilities of all candidates, drawn from the prior."""
        a, b, other_a, other_b = self.inclusion.beta
        count = 1 + int(rng.poisson(self.inclusion.mean_communities - 1))
        shares = rng.dirichlet(np.full(count, self.inclusion.concentration))
        z = rng.choice(count, self.n_variables, p=shares)
        own, other = rng.beta(a, b, count), rng.beta(other_a, other_b, (count, count))
        table = np.triu(other, 1) + np.triu(other, 1).T + np.diag(own)
        result: np.ndarray = table[z[self.members[:, 0]], z[self.members[:, 1]]]
        return result

    def numbers(self) -> np.ndarray:
        """All that the model depends on, for digests."""
        given = self.inclusion
        return np.array([*given.beta, given.concentration, given.mean_communities, *self.inside])


def first_labels(labels: np.ndarray) -> np.ndarray:
    """The same partition with communities numbered in the order in which they appear.

    Examples
    --------
    >>> first_labels(np.array([4, 4, 1, 4, 0])).tolist()
    [0, 0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    result: np.ndarray = order[inverse]
    return result


def log_partition_weights(n: int, concentration: float, mean: float) -> np.ndarray:
    """log V_n(t), t = 0 to n, of a mixture of finite mixtures with one more than Poisson components (2.8).

    Examples
    --------
    >>> weights = np.exp(log_partition_weights(2, 1.0, 2.0))
    >>> round(float(weights[1] * 2 + weights[2]), 6)  # both partitions of two; one community counts 1 * 2
    1.0
    """
    from scipy import special

    k = np.arange(1.0, n + MOST_MORE)
    rate = mean - 1
    log_share = (k - 1) * math.log(rate) - rate - special.gammaln(k)
    log_rising = special.gammaln(concentration * k + n) - special.gammaln(concentration * k)
    result = np.full(n + 1, -np.inf)
    for t in range(1, n + 1):
        log_falling = special.gammaln(k + 1) - special.gammaln(np.where(k >= t, k - t + 1, 1.0))
        terms = np.where(k >= t, log_share + log_falling - log_rising, -np.inf)
        result[t] = special.logsumexp(terms)
    return result


def log_partition_counts(n: int, concentration: float) -> np.ndarray:
    """Log of the sum over all partitions of n into t blocks of the product of their rising factorials."""
    from scipy import special

    size = np.arange(1, n + 1)
    log_block = special.gammaln(concentration + size) - special.gammaln(concentration)
    table = np.full((n + 1, n + 1), -np.inf)
    table[0, 0] = 0.0
    for total in range(1, n + 1):
        own = np.arange(1, total + 1)
        choose = special.gammaln(total) - special.gammaln(own) - special.gammaln(total - own + 1)
        terms = (choose + log_block[:total])[:, None] + table[total - own]
        table[total, 1:] = special.logsumexp(terms, axis=0)[:-1]
    result: np.ndarray = table[n]
    return result
