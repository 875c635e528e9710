"""Priors of eq. 3: which cliques are active (inclusion), how strong they are (slab), and the biases."""

from edgewise.priors.networks import Expectation, expect, networks
from edgewise.priors.parts import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias
from edgewise.priors.prior import Prior, ResolvedPrior

__all__ = [
    "BetaInclusion",
    "Expectation",
    "FixedInclusion",
    "FixedSlab",
    "GammaSlab",
    "NormalBias",
    "Prior",
    "ResolvedPrior",
    "expect",
    "networks",
]
