"""Words for variables of every kind: how many there are, what their couplings mean, how they are modelled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgewise.posterior.levels import STRENGTH, measures
from edgewise.scales import BINARY, BLUME_CAPEL, KINDS, NOMINAL, ORDINAL

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

WORDS = {BINARY: "binary", ORDINAL: "ordinal", NOMINAL: "nominal", BLUME_CAPEL: "Blume-Capel"}


def variables(posterior: Posterior) -> str:
    """How many variables of which kinds, for instance ``12 binary variables``."""
    count = {kind: sum(scale.kind == kind for scale in posterior.scales) for kind in KINDS}
    parts = [f"{count[kind]:,} {WORDS[kind]}" for kind in KINDS if count[kind]]
    total = posterior.n_variables
    noun = "variable" if total == 1 else "variables"
    return f"{parts[0]} {noun}" if len(parts) == 1 else f"{total:,} {noun} ({', '.join(parts)})"


def level_range(posterior: Posterior) -> str:
    """How many levels the variables have, for instance ``of 2 to 5 levels``; nothing where all have two."""
    if posterior.scales.all_binary:
        return ""
    few, many = int(posterior.scales.levels.min()), int(posterior.scales.levels.max())
    return f" of {few} levels" if few == many else f" of {few} to {many} levels"


def unit(posterior: Posterior) -> str:
    """What a coupling of 1 means."""
    if posterior.scales.all_binary:
        return (
            "A coupling of 1 multiplies the odds of one variable by e = 2.7 when the other one switches from "
            "0 to 1 and nothing else changes."
        )
    text = (
        "A coupling is the log odds between the ends of two scales: a step up the whole scale of one "
        "variable multiplies the odds of the highest level of the other against its lowest by e = 2.7 for a "
        "coupling of 1, when nothing else changes."
    )
    return text + (f" {strength(posterior)}" if has_matrices(posterior) else "")


def strength(posterior: Posterior) -> str:
    """What the number of a pair with a nominal variable is."""
    return (
        "Where a variable is nominal, the number is the strength of the whole matrix of the pair, the root "
        "mean square of its log odds ratios; it has no sign."
    )


def has_matrices(posterior: Posterior) -> bool:
    """Whether some pair has a matrix of parameters."""
    return bool((measures(posterior) == STRENGTH).any())


def reading(posterior: Posterior, clique: int, value: float) -> str:
    """One candidate in plain words, at a value of its coupling or strength."""
    names, scales, levels = posterior.names, posterior.scales, posterior.levels
    members = posterior.features.clique(clique)
    if len(members) != 2:
        return ""
    i, j = members
    if measures(posterior)[clique] == STRENGTH:
        return f"log odds ratios of {names[i]} and {names[j]} of about {abs(value):.2f} either way"

    def ends(k: int) -> str:
        return f"{levels[k][-1]!s} rather than {levels[k][0]!s} in {names[k]}"

    step = "a step up the whole scale of" if scales[i].n_levels > 2 else f"{levels[i][-1]!s} in"
    return f"{step} {names[i]} multiplies the odds of {ends(j)} by {math.exp(value):.3g}"


def model(posterior: Posterior) -> str:
    """The model in a formula and words, for the methods paragraph: HTML."""
    kinds = {scale.kind for scale in posterior.scales}
    parts = []
    if ORDINAL in kinds or BLUME_CAPEL in kinds:
        parts.append("ordinal variables have scores equally spaced from 0 to 1, one coupling per pair")
    if BINARY in kinds:
        parts.append("binary variables the scores 0 and 1")
    if NOMINAL in kinds:
        parts.append(
            "nominal variables orthogonal contrasts, and pairs with one a matrix of parameters that is "
            "included as a whole"
        )
    if BLUME_CAPEL in kinds:
        parts.append(
            "thresholds of Blume-Capel variables are quadratic in the distance from a reference level"
        )
    return (
        "P(x) ∝ exp(Σ b<sub>i</sub>(x<sub>i</sub>) + Σ u<sub>i</sub>(x<sub>i</sub>)ᵀ A<sub>ij</sub> "
        f"u<sub>j</sub>(x<sub>j</sub>)), in which {'; '.join(parts)}"
    )


def level_shares(posterior: Posterior) -> list[list[tuple[str, float]] | None]:
    """Labels and shares of the levels of every variable in the data; None where they are not known."""
    n_rows, scales = float(posterior.statistics.n_rows), posterior.scales
    result: list[list[tuple[str, float]] | None] = []
    for i, (labels, scale) in enumerate(zip(posterior.levels, scales)):
        own = posterior.statistics.singles[scales.bias_start[i] : scales.bias_start[i + 1]]
        if n_rows <= 0 or scale.kind == BLUME_CAPEL:
            result.append(None)
            continue
        if scale.kind == BINARY:
            share = np.array([1.0 - own[0] / n_rows, own[0] / n_rows])
        else:
            share = 1.0 / scale.n_levels + 2.0 * scale.basis @ own / n_rows
        result.append([(str(label), float(part)) for label, part in zip(labels, share)])
    return result
