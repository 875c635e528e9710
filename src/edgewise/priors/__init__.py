"""Priors of eq. 3: which cliques are active (inclusion), how strong they are (slab), and the biases."""

from edgewise.priors.attributes import AttributeInclusion
from edgewise.priors.communities import BlockInclusion
from edgewise.priors.files import read_prior
from edgewise.priors.networks import Expectation, expect, networks
from edgewise.priors.parts import (
    BetaInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
    NormalBias,
    StudentSlab,
)
from edgewise.priors.prior import Prior
from edgewise.priors.resolved import ResolvedPrior

__all__ = [
    "AttributeInclusion",
    "BetaInclusion",
    "BlockInclusion",
    "CauchySlab",
    "Expectation",
    "FixedInclusion",
    "FixedSlab",
    "GammaSlab",
    "NormalBias",
    "Prior",
    "ResolvedPrior",
    "StudentSlab",
    "expect",
    "networks",
    "read_prior",
]
