"""How far off probabilities are where the likelihood is approximated, as far as that was measured.

Engines that decide nothing add up, for every candidate, what the log densities of the posterior and the
surrogate differ by (``engines/meter.py``). Its covariance with the candidate's indicator is the error of the
probability to first order (docs/method.md, 10.10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior

# Candidates active in so many of the draws are those whose probability is a question.
OPEN = (0.02, 0.98)
# An error that is larger anywhere keeps the light from being green, or makes it red.
TOLERATED, INTOLERABLE = 0.02, 0.1
# Measured more coarsely than this, small errors cannot be claimed.
FINE_ENOUGH = 0.01


@dataclass(frozen=True, eq=False)
class Approximation:
    """The measured error of the probabilities of a posterior whose likelihood is approximated.

    Attributes
    ----------
    typical : float
        Root mean square error of the probabilities that are a question, the noise of measuring taken out.
    largest, where : float, int
        The largest error, and of which candidate; -1 if there is none.
    resolution : float
        Standard error of the measured error of a single probability (root mean square).
    shifts, errors : arrays (M,)
        To first order, what the probability of each candidate would be under the posterior less what it is
        here; and the standard error of that.
    probes : float
        Draws at which it was measured.
    """

    typical: float
    largest: float
    where: int
    resolution: float
    shifts: np.ndarray
    errors: np.ndarray
    probes: float

    @property
    def fine(self) -> bool:
        """Whether it was measured finely enough to say that errors are small."""
        return self.resolution <= FINE_ENOUGH

    def words(self, name: Callable[[int], str]) -> str:
        """What was measured, in half a sentence; `name` gives the name of a candidate."""
        if self.where < 0:
            return "no probability is open enough for the error of that to matter"
        typical = f"measured error of a probability: {_decimals(self.typical)}"
        noise = f" (known to {_decimals(self.resolution)})"
        if self.largest <= 2 * self.typical:
            return typical + noise
        return f"{typical}{noise}, at most {_decimals(self.largest)}, for {name(self.where)}"


def sentence(posterior: Posterior) -> str:
    """What was approximated and how far off that is; empty where nothing was approximated or measured."""
    found = posterior._approximation
    if found is None:
        return ""
    return f"The likelihood is approximated to second order; {found.words(posterior._candidate_name)}."


def _decimals(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if value >= 0.0005 else "below .001"


def approximation_of(posterior: Posterior) -> Approximation | None:
    """The measured error of a posterior; None where nothing was approximated or measured."""
    sums = posterior._edge_sums
    if "probes" not in sums or not sums["probes"].any():
        return None
    names = ("probes", "probes_on", "probe_weight", "probe_square", "probe_weight_on", "probe_square_on")
    count, on, weight, square, weight_on, square_on = (sums[name] for name in names)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, middle = on / count, weight / count
        shift = weight_on / count - share * middle
        # Of the product of both deviations, the indicator being its own square.
        above = (square_on - 2 * middle * weight_on + middle**2 * on) / count
        variance = (1 - 2 * share) * above + share**2 * (square / count - middle**2) - shift**2
        part = count / count.sum(axis=0)
        shifts = np.nan_to_num(np.nansum(part * shift, axis=0))
        squares = np.nan_to_num(np.nansum(part**2 * np.maximum(variance, 0.0) / count, axis=0))
    # Probes are draws, and not independent where these are not.
    draws = posterior.n_chains * posterior.n_draws
    effective = np.clip(np.nan_to_num(posterior._quality.ess / draws, nan=1.0), 1.0 / draws, 1.0)
    errors = np.sqrt(squares / effective)
    probes = float(count.max(axis=1).sum())
    frequency = posterior.edge_values("frequency")
    asked = (frequency >= OPEN[0]) & (frequency <= OPEN[1]) & (count.sum(axis=0) > 0)
    if not asked.any():
        return Approximation(0.0, 0.0, -1, 0.0, shifts, errors, probes)
    resolution = math.sqrt(float(np.mean(errors[asked] ** 2)))
    typical = math.sqrt(max(0.0, float(np.mean(shifts[asked] ** 2 - errors[asked] ** 2))))
    # First order exaggerates, but no probability is off by more than it could be.
    room = np.where(shifts > 0, 1.0 - frequency, frequency)
    sizes = np.minimum(_without_noise(shifts, errors, typical, int(asked.sum())), room)
    where = int(sizes.argmax())
    largest = float(sizes[where])
    return Approximation(min(typical, largest), largest, where, resolution, shifts, errors, probes)


def _without_noise(shifts: np.ndarray, errors: np.ndarray, typical: float, count: int) -> np.ndarray:
    """Sizes of the errors: those beyond what noise does as measured, the others shrunk to what is typical."""
    noise = math.sqrt(2 * math.log(max(count, 2))) + 1.0
    sizes = np.abs(shifts)
    with np.errstate(invalid="ignore", divide="ignore"):
        shrunk = np.nan_to_num(sizes * typical**2 / (typical**2 + errors**2))
    result: np.ndarray = np.where(sizes > noise * errors, sizes, shrunk)
    return result
