"""What the counters of the engines say of the draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgewise.kernels.codes import SEPARATE
from edgewise.posterior.approximation import FINE_ENOUGH, INTOLERABLE, TOLERATED, sentence
from edgewise.run.forecast import rounded_up

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

# Share of active candidates, and standard errors from the table, beyond which an approximation ran away.
FULL, MOST_APART = 0.9, 1.0
# Worth of the weights of the particles below which the answers may be biased.
WEIGHT_ESS_POOR = 0.3
# A candidate whose probability is this near zero or one need never have moved.
CERTAIN = 1e-3

# How bad it is (0 fine, 1 amber, 2 red), in a few words, and in sentences with the remedy.
Finding = tuple[int, str, str]
FINE: Finding = (0, "", "")


def engine_rates(posterior: Posterior) -> dict[str, float]:
    """Rates of all chains together from the engines' counters, those that were reported.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]]
    >>> model = SpikeSlabMRF(random_state=1, progress=False).fit(people)
    >>> from edgewise.posterior.diagnostics import engine_rates
    >>> type(engine_rates(model.posterior_)).__name__
    'dict'
    """
    counters = posterior._counters
    totals: dict[str, float] = {}
    for part in counters:
        for key, value in part.items():
            totals[key] = totals.get(key, 0.0) + float(value)
    rates = {}
    for move in ("birth", "death", "swap"):
        tries = totals.get(f"{move}_tries", 0.0)
        if tries > 0:
            rates[f"{move}_acceptance"] = totals.get(f"{move}_accepts", 0.0) / tries
    if totals.get("stretches", 0.0) > 0:
        rates["stretch_acceptance"] = totals.get("stretches_accepted", 0.0) / totals["stretches"]
    if "weight_ess" in totals:
        rates["weight_ess"] = totals["weight_ess"] / len(counters)
    if "resamplings" in totals and totals.get("iterations", 0.0) > 0:
        rates["resamplings_per_iteration"] = totals["resamplings"] / totals["iterations"]
    return rates


def engine_health(posterior: Posterior, rates: dict[str, float]) -> Finding:
    """What the counters of the engine say against its draws."""
    lowest = min(
        (float(part["weight_ess"]) for part in posterior._counters if "weight_ess" in part), default=1.0
    )
    if lowest < WEIGHT_ESS_POOR:
        return (
            1,
            "the particles lag behind the parameters",
            f"The particles lag behind the parameters: their weights are worth {lowest:.0%} of their number "
            f"in the worst chain (above {WEIGHT_ESS_POOR:.0%} wanted), so probabilities may be biased; "
            "use more particles or more sweeps per iteration.",
        )
    wide = sum(float(part.get("too_wide", 0.0)) for part in posterior._counters)
    stretches = sum(float(part.get("stretches", 0.0)) for part in posterior._counters)
    if posterior.info.get("engine") == "surrogate":
        allowed = max(int((posterior._resolved_prior.status <= SEPARATE).sum()), 1)
        active = np.mean([chain.n_edges.mean() for chain in posterior.draws if len(chain)] or [0.0])
        several = not posterior.scales.all_binary
        instead = "choose fewer variables" if several else "use engine='particle'"
        apart = max((float(part.get("mismatch", 0.0)) for part in posterior._counters), default=0.0)
        if apart > MOST_APART:
            return (
                2,
                "the approximation of the likelihood has run away",
                f"Data made by the posterior are {apart:.1f} standard errors from the table on average: the "
                "approximation of the likelihood has run away, and nothing here can be trusted; "
                f"{instead}.",
            )
        if active > FULL * allowed:
            return (
                2,
                "the approximation of the likelihood has run away",
                f"{active / allowed:.0%} of all candidates are active on average: the approximation of the "
                "likelihood has run away, and nothing here can be trusted; "
                f"{instead}.",
            )
        return _approximated(posterior)
    if wide:
        return (
            (2 if wide > 0.02 * stretches else 1),
            "graphs that are too wide were left out",
            f"The graphs of {wide / stretches:.1%} of the proposals were too wide to sum exactly and were "
            "left out, so the posterior is that of the narrower graphs; engine='particle' has no such limit.",
        )
    if stretches and not any(part.get("stretches_accepted") for part in posterior._counters):
        return (
            2,
            "no stretch was ever accepted",
            "No stretch was ever accepted, so the draws know only the graph they started from; use "
            "engine='particle'.",
        )
    moves = [rates[key] for key in ("birth_acceptance", "death_acceptance") if key in rates]
    if moves and max(moves) == 0 and not _is_certain(posterior):
        return (
            2,
            "no edge was ever added or removed",
            "No edge was ever added or removed (0 % of the proposals were accepted), so the draws know only "
            "the graph they started from; run longer, or use another engine.",
        )
    return FINE


def _is_certain(posterior: Posterior) -> bool:
    """Whether the odds of all decisions say that hardly any edge could have been added or removed.

    Langevin's births are not made where an edge would be, so that their odds say nothing.
    """
    free = posterior._resolved_prior.status <= SEPARATE
    if not free.any():
        return True
    tries, inclusion = (posterior._edge_sums.get(name) for name in ("tries", "inclusion"))
    if tries is None or inclusion is None or posterior.info.get("engine") == "langevin":
        return False
    decided = tries.sum(axis=0)[free]
    share = inclusion.sum(axis=0)[free] / np.maximum(decided, 1.0)
    return bool((decided > 0).all() and (np.minimum(share, 1 - share) < CERTAIN).all())


def _approximated(posterior: Posterior) -> Finding:
    """Whether the error of a likelihood to second order was measured, and is small."""
    found = posterior._approximation
    if found is None:
        several = not posterior.scales.all_binary
        return (
            1,
            "the likelihood is approximated",
            "The likelihood is approximated to second order, and the error of that was not measured. It is "
            "small where there are many rows for every edge; compare with "
            + (
                "engine='exact' on a few of the variables." if several else "engine='particle' where you can."
            ),
        )
    said = sentence(posterior)
    if found.largest > TOLERATED:
        return (
            2 if found.largest > INTOLERABLE else 1,
            f"the likelihood is approximated, with errors up to {found.largest:.2f}",
            f"{said} That is more than {TOLERATED:g}; more draws do not make it smaller. Compare with "
            "engine='particle' where you can.",
        )
    if not found.fine:
        more = rounded_up(posterior.n_draws * ((found.resolution / FINE_ENOUGH) ** 2 - 1))
        return (
            1,
            "the error of the approximation is not known well",
            f"{said} To know it to {FINE_ENOUGH:g}, continue with extend(draws={more}).",
        )
    return FINE
