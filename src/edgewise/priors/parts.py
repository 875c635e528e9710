"""The parts of a prior: how many cliques are active (inclusion), how strong they are (slab), the biases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgewise.errors import DataError

# Beyond these squares, their inverses and products with sums over rows are no numbers any more.
LARGEST, SMALLEST = 1e100, 1e-100
# With less, draws of sigma0 without any active clique overflow.
SMALLEST_SHAPE = 0.05
# With less, draws of the factors of a scale mixture leave the range of a float.
SMALLEST_FREEDOM = 0.5


def _positive(value: float, what: str, least: float = SMALLEST) -> None:
    if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
        raise DataError(f"{what} must be a positive number, not {value!r}.")
    if not least <= value <= LARGEST:
        raise DataError(f"{what} must lie between {least:g} and {LARGEST:g}, not {value!r}.")


@dataclass(frozen=True)
class BetaInclusion:
    """Hierarchical sparsity: p0 ~ Beta(a, b), learned from the data (2.2).

    Examples
    --------
    >>> from edgewise.priors import BetaInclusion, Prior
    >>> Prior(inclusion=BetaInclusion(1, 9)).inclusion  # about one pair in ten
    BetaInclusion(a=1, b=9)
    """

    a: float = 5.0
    b: float = 5.0

    def __post_init__(self) -> None:
        _positive(self.a, "BetaInclusion's a")
        _positive(self.b, "BetaInclusion's b")


@dataclass(frozen=True)
class FixedInclusion:
    """Every clique is active with the same fixed prior probability p0.

    Examples
    --------
    >>> from edgewise.priors import FixedInclusion, Prior
    >>> Prior(inclusion=FixedInclusion(0.1)).inclusion.p0
    0.1
    """

    p0: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.p0, int | float | np.number) and 0 < self.p0 < 1):
            raise DataError(f"FixedInclusion's p0 must lie strictly between 0 and 1, not {self.p0!r}.")


@dataclass(frozen=True)
class GammaSlab:
    """Hierarchical strength: sigma0^-2 ~ Gamma(shape, rate), learned from the active cliques (2.2).

    Examples
    --------
    >>> from edgewise.priors import GammaSlab, Prior
    >>> Prior(slab=GammaSlab(5, 5)).slab
    GammaSlab(shape=5, rate=5)
    """

    shape: float = 5.0
    rate: float = 5.0

    def __post_init__(self) -> None:
        _positive(self.shape, "GammaSlab's shape", SMALLEST_SHAPE)
        _positive(self.rate, "GammaSlab's rate")


@dataclass(frozen=True)
class FixedSlab:
    """Active parameters are N(0, sigma0^2) with a fixed sigma0.

    Examples
    --------
    >>> from edgewise.priors import FixedSlab, Prior
    >>> Prior(slab=FixedSlab(1.0)).slab
    FixedSlab(sigma0=1.0)
    """

    sigma0: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.sigma0, "FixedSlab's sigma0")


@dataclass(frozen=True)
class NormalBias:
    """Biases are N(0, sd^2).

    Examples
    --------
    >>> from edgewise.priors import NormalBias, Prior
    >>> Prior(bias=NormalBias(2.0)).bias.sd
    2.0
    """

    sd: float = 10.0

    def __post_init__(self) -> None:
        _positive(self.sd, "NormalBias's sd")


@dataclass(frozen=True)
class StudentSlab:
    """Active parameters have Student's t distribution with a fixed scale (2.6): heavier in the tails.

    Beyond 100 in either direction it is cut off: no data tell an odds ratio of e^100 from a larger one.

    Examples
    --------
    >>> from edgewise.priors import Prior, StudentSlab
    >>> Prior(slab=StudentSlab(freedom=4, scale=1)).slab
    StudentSlab(freedom=4, scale=1)
    """

    freedom: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.freedom, "StudentSlab's freedom", SMALLEST_FREEDOM)
        _positive(self.scale, "StudentSlab's scale")


@dataclass(frozen=True)
class CauchySlab:
    """Active parameters have a Cauchy distribution with a fixed scale: half of them are within the scale.

    It is :class:`StudentSlab` with one degree of freedom.

    Examples
    --------
    >>> from edgewise.priors import CauchySlab, Prior
    >>> Prior(slab=CauchySlab(scale=1)).slab
    CauchySlab(scale=1)
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.scale, "CauchySlab's scale")
