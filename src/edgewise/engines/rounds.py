"""Whether a round of learning made things better, and how far it may go (docs/method.md, 10.11, 10.13).

The spread of w over states of the posterior says how good a surrogate is. Along a round whose stretches were
decided w is known for some states under the surrogate that the chains walked on; what it is there under the
one that the round has made follows from the two densities alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

# A round is undone if the spread under its surrogate is more than this, and so many times that under the one
# before. A little more spread is no harm: a surrogate that knows of another mode has it, and gets there.
TOO_SPREAD = 3.0
WORSE = 2.0
# Where nothing decides, a round may move the slopes by so many standard deviations (root mean square) at
# most, and the rounds end when one has moved them by less than this.
LARGEST_STEP, SETTLED = 1.0, 0.1
# Positions active in so few draws are not asked.
SELDOM = 0.05
# Of so few states nothing is concluded.
FEWEST_WEIGHED = 16

Arrays = Mapping[str, np.ndarray]


def log_surrogate(arrays: Arrays, bias: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Log density of a surrogate, but for the prior and a constant, at states given row by row."""
    quadratic = np.einsum("dk,dk->d", theta @ arrays["precision"].astype(float), theta)
    total: np.ndarray = theta @ arrays["pull"] - 0.5 * quadratic + (theta != 0) @ arrays["tilt"]
    residual = bias - arrays["bias_mean"] + theta @ arrays["bias_slope"]
    return total - 0.5 * np.einsum("di,di->d", residual @ arrays["bias_precision"], residual)


def is_worse(made: Arrays, before: Arrays | None, sums: Sequence[Arrays], spread: float) -> bool:
    """Whether a round is to be undone: stretches were decided in it, and what it made is clearly worse."""
    if before is None or before["lenience"][0] > 1.0:
        return False
    foreseen = foreseen_spread(made, before, sums)
    return foreseen > TOO_SPREAD and foreseen > WORSE * spread


def foreseen_spread(made: Arrays, before: Arrays, sums: Sequence[Arrays]) -> float:
    """Standard deviation of w (10.11) under the surrogate just made, over states of a round before it.

    Not a number where too few of the states could be weighed.
    """
    weights, states = [], []
    for part in sums:
        kept = int(part["filled"][2])
        every = max(1, len(part["phi"]) // len(part["weights"]))
        weights.append(part["weights"][:kept])
        states.append(part["phi"][: kept * every : every])
    w, phi = np.concatenate(weights), np.concatenate(states)
    known = np.isfinite(w)
    if np.count_nonzero(known) < FEWEST_WEIGHED:
        return float("nan")
    w, phi = w[known], phi[known]
    p = len(made["bias_mean"])
    bias, theta = phi[:, :p], phi[:, p:]
    return float(np.std(w + log_surrogate(before, bias, theta) - log_surrogate(made, bias, theta)))


def step_of(made: Arrays, before: Arrays) -> float:
    """How far a round has moved the slopes of the surrogate at the average of its draws (10.13)."""
    theta = made["phi"][len(made["bias_mean"]) :]
    asked = np.flatnonzero(made["occupied"] > SELDOM)
    if not len(asked):
        return 0.0
    after, earlier = (
        part["pull"][asked] - part["precision"][asked].astype(float) @ theta for part in (made, before)
    )
    return float(np.sqrt(np.mean((after - earlier) ** 2 / np.diag(made["precision"])[asked])))


def shortened(made: Arrays, before: Arrays, step: float) -> dict[str, np.ndarray]:
    """What a round has made, or what is between it and the one before if that is too long a step (10.13)."""
    if not step > LARGEST_STEP:
        return dict(made)
    share = LARGEST_STEP / step
    between = {
        name: ((1 - share) * before[name].astype(float) + share * made[name]).astype(made[name].dtype)
        for name in ("precision", "pull", "tilt", "bias_mean", "bias_slope", "bias_precision")
    }
    inverse = np.linalg.inv(between["bias_precision"])
    return dict(made) | between | {"bias_root": np.linalg.cholesky((inverse + inverse.T) / 2)}
