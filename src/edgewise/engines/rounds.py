"""The rounds of learning: how many and how long, what they taught, how far they go (docs/method.md, 10).

The spread of w over states of the posterior says how good a surrogate is. Along a round whose stretches were
decided w is known for some states under the surrogate that the chains walked on; what it is there under the
one that the round has made follows from the two densities alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

# Draws of a chain in the first rounds of warm-up; later ones double.
FIRST_ROUNDS = (10, 20, 30, 60)
FEWEST_ROUNDS, FEWEST_SETTLED = 6, 4
# After so many rounds stretches are decided as they are, if the surrogate is good enough for that
# (TOO_SPREAD). Until then they are decided leniently: by w over its spread, over this at first.
TRUSTED_ROUNDS = 3
FIRST_LENIENCE = 20.0
# Where fewer of the draws of a round moved, nothing was learned; the next is so much more lenient.
FEWEST_MOVED, MORE_LENIENT = 0.1, 4.0
# The round whose surrogate is this good, or this little better than the one before, is the last.
GOOD_SPREAD = 0.6
WORTH_IT = 0.75
# Of the draws of a round, those whose particles are counted for every two features: the dearest part of it.
FEWEST_SNAPSHOTS = 6
SNAPSHOT_EVERY = 6
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


def lengths_of_rounds(longest: int, finished: int) -> list[int]:
    """Draws of each of the finished rounds, and of the one after them.

    Examples
    --------
    >>> lengths_of_rounds(60, 5)
    [10, 20, 30, 60, 60, 60]
    """
    lengths = [min(longest, length) for length in FIRST_ROUNDS]
    while len(lengths) <= finished:
        lengths.append(min(longest, 2 * lengths[-1]))
    return lengths[: finished + 1]


def is_last(spreads: Sequence[float], rounds: int, longest: int, step: float, stuck: bool) -> bool:
    """Whether warm-up ends after so many rounds: it was as long as allowed, or more is not worth it.

    `step` is how far the last round went where nothing decides, infinite where something does; in a round
    that was `stuck` nothing was learned.
    """
    if lengths_of_rounds(longest, rounds - 1)[-1] >= longest:
        return True
    if rounds >= FEWEST_SETTLED and step < SETTLED:
        return True
    if stuck or rounds < FEWEST_ROUNDS or len(spreads) < 2:
        return False
    return spreads[-1] < GOOD_SPREAD or spreads[-1] > WORTH_IT * spreads[-2]


def next_lenience(early: bool, spread: float, stuck: bool, before: Mapping[str, np.ndarray] | None) -> float:
    """What changes of w are divided by before they decide: one, or early the spread that they have so far.

    Early surrogates are far off, and decided as they are hardly a stretch would be accepted; taken at their
    word they can lead the chains, and with them the particles that the next ones are learned from, away from
    the data for good.

    Examples
    --------
    >>> next_lenience(True, float("nan"), False, None), next_lenience(True, 8.0, False, None)
    (20.0, 8.0)
    >>> next_lenience(True, 0.1, True, {"lenience": np.array([20.0])})
    80.0
    >>> next_lenience(False, 2.0, False, None)
    1.0
    """
    if not early:
        return 1.0
    if stuck and before is not None:
        return MORE_LENIENT * float(before["lenience"][0])
    return min(max(1.0, spread), FIRST_LENIENCE) if math.isfinite(spread) else FIRST_LENIENCE


def moved_share(contributions: Sequence[Mapping[str, np.ndarray]]) -> float:
    """In how many of the draws of a round a chain is not where it was in the draw before.

    Examples
    --------
    >>> still = {"phi": np.ones((3, 2)), "filled": np.array([3, 0, 0])}
    >>> moved_share([still, {"phi": np.array([[0.0, 1], [1, 1], [1, 1]]), "filled": np.array([3, 0, 0])}])
    0.25
    """
    moved = [
        (np.diff(part["phi"][: int(part["filled"][0])], axis=0) != 0).any(axis=1) for part in contributions
    ]
    together = np.concatenate(moved)
    return float(together.mean()) if len(together) else 0.0


def snapshots_of(draws: int) -> int:
    """How many of the draws of a round have the products of their features counted.

    Examples
    --------
    >>> snapshots_of(4), snapshots_of(20), snapshots_of(240)
    (4, 6, 40)
    """
    return max(min(draws, FEWEST_SNAPSHOTS), draws // SNAPSHOT_EVERY)
