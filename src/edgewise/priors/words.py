"""A prior in words, for methods sections: each part says what it assumes."""

from __future__ import annotations

from edgewise.priors.attributes import parsed_terms
from edgewise.priors.communities import BlockInclusion
from edgewise.priors.parts import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, StudentSlab
from edgewise.priors.prior import Inclusion, Slab


def inclusion_words(part: Inclusion, noun: str) -> str:
    """The prior of inclusion, as HTML.

    Examples
    --------
    >>> inclusion_words(FixedInclusion(0.2), "edge")
    'each edge was included with prior probability 0.2'
    """
    if isinstance(part, BetaInclusion):
        return (
            f"each {noun} was included with probability p<sub>0</sub>, "
            f"p<sub>0</sub> ~ Beta({part.a:g}, {part.b:g})"
        )
    if isinstance(part, FixedInclusion):
        return f"each {noun} was included with prior probability {part.p0:g}"
    if isinstance(part, BlockInclusion):
        a, b, other_a, other_b = part.beta
        return (
            f"the inclusion of {noun}s followed a stochastic block model: variables fell into communities, "
            f"their number one more than a Poisson variable of mean {part.mean_communities - 1:g} and their "
            f"shares Dirichlet({part.concentration:g}), and {noun}s were included with a probability of "
            f"their own for every community, Beta({a:g}, {b:g}), and each two, Beta({other_a:g}, {other_b:g})"
        )
    terms = [f"{kind or 'same or distance of'} {name}" for kind, name in parsed_terms(part.terms)]
    return (
        f"the log odds of the inclusion of {noun}s were a linear function of {' and '.join(terms)}, with "
        f"coefficients N(0, {part.effect_sd:g}<sup>2</sup>) and an average of N(logit {part.p0:g}, "
        f"{part.p0_sd:g}<sup>2</sup>)"
    )


def slab_words(part: Slab) -> str:
    """The prior of the active parameters, as HTML.

    Examples
    --------
    >>> from edgewise.priors import CauchySlab
    >>> slab_words(CauchySlab(0.5))
    'included parameters had a Cauchy distribution of scale 0.5'
    """
    if isinstance(part, GammaSlab):
        return (
            "included parameters were N(0, σ<sub>0</sub><sup>2</sup>) with σ<sub>0</sub><sup>−2</sup> ~ "
            f"Gamma(shape {part.shape:g}, rate {part.rate:g})"
        )
    if isinstance(part, FixedSlab):
        return f"included parameters were N(0, {part.sigma0:g}<sup>2</sup>)"
    if isinstance(part, StudentSlab):
        return (
            f"included parameters had Student's t distribution with {part.freedom:g} degrees of freedom and "
            f"scale {part.scale:g}"
        )
    return f"included parameters had a Cauchy distribution of scale {part.scale:g}"
