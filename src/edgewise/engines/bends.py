"""What a quadratic misses along the line of a single pair, and how the surrogate makes up for it.

The averages of the surrogate are taken over states most of which lack a pair that is seldom active, so that
its curvature is the one at zero, while it matters at the value that the pair has when it is active. Along the
line of one pair log Z is known in closed form from the four cells of its two variables (4.3); where the pair
is active, that is expanded around its own mode instead (docs/method.md, 10.8).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Line = tuple[np.ndarray, np.ndarray, np.ndarray]

# A pair that is nearly always active has its averages where it is.
MOSTLY = 0.9
ROUNDS = 4
# No expansion flattens a line by more than this share of its precision, or steepens it by more. Where many
# lines are nearly parallel even less can make the whole matrix indefinite: then the next share is tried.
FLATTER, STEEPER = 0.5, 3.0
LESS_FLAT = (FLATTER, 0.2, 0.05)
# Lines that lose less of their precision keep it: there are thousands of them, and together they could make
# the matrix indefinite.
HARDLY = 0.01
# Keeps the matrix definite in single precision.
JITTER = 1e-5
SMALLEST_CELL = 1e-6
# How far a correction may go, in units of the log odds.
LARGEST_TILT = 4.0


def _cumulants(cells: np.ndarray, F: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, slope and curvature of log sum_c pi_c exp(t F_c), for every line."""
    exponent = t * F
    top = exponent.max(axis=0)
    weight = cells * np.exp(exponent - top)
    total = weight.sum(axis=0)
    weight /= total
    slope = (weight * F).sum(axis=0)
    return top + np.log(total), slope, (weight * F * F).sum(axis=0) - slope**2


def along_lines(
    rows: float,
    margins: tuple[np.ndarray, np.ndarray],
    joint: np.ndarray,
    share: np.ndarray,
    own: np.ndarray,
    pull: np.ndarray,
    flat: float,
    flatter: float | np.ndarray = FLATTER,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tilt, change of the pull and of the precision of every pair when it is active (10.8).

    Parameters
    ----------
    rows : float
        Number of rows N.
    margins, joint : arrays
        Average probabilities of the two variables of each pair, and of both together.
    share : array
        How often each pair is active.
    own, pull : arrays
        Precision of each pair, and the slope of the log density at zero given the average of all others.
    flat : float
        Precision of the slab.
    flatter : float or array
        The largest share of its precision that a line may lose.
    """
    first, second = margins
    share = np.clip(share, 0.0, 1.0)
    F = np.stack([first * second, -first * (1 - second), -(1 - first) * second, (1 - first) * (1 - second)])

    def cells_of(both: np.ndarray) -> np.ndarray:
        cells = np.stack([1 - first - second + both, second - both, first - both, both])
        cells = np.maximum(cells, SMALLEST_CELL)
        # Cells in the order of F: 00, 01, 10, 11.
        return cells / cells.sum(axis=0)

    tilt, more_pull, more_own = np.zeros_like(own), np.zeros_like(own), np.zeros_like(own)
    for _ in range(ROUNDS):
        mode = (pull + more_pull) / (own + more_own + flat)
        mode = np.clip(mode, -6.0, 6.0)
        inactive = joint.copy()
        for _ in range(2):
            # What both have in common without the pair, from the average over states with and without it.
            cells = cells_of(inactive)
            _, slope, _ = _cumulants(cells, F, mode)
            active = slope + first * second
            inactive = np.where(
                share < MOSTLY, (joint - share * active) / np.maximum(1 - share, 1 - MOSTLY), joint
            )
            inactive = np.clip(inactive, np.maximum(0.0, first + second - 1), np.minimum(first, second))
        cells = cells_of(inactive)
        _, slope0, curve0 = _cumulants(cells, F, np.zeros_like(mode))
        value, slope, curve = _cumulants(cells, F, mode)
        mean_slope = (1 - share) * slope0 + share * slope
        mean_curve = (1 - share) * curve0 + share * curve
        middle = share * mode
        missing = value - mode * mean_slope - 0.5 * mean_curve * ((mode - middle) ** 2 - middle**2)
        missing_slope = slope - mean_slope - mean_curve * (mode - middle)
        missing_curve = curve - mean_curve
        more_own = np.clip(rows * missing_curve, -flatter * own, STEEPER * own)
        more_pull = -rows * missing_slope + more_own * mode
        tilt = -rows * missing + rows * missing_slope * mode - 0.5 * more_own * mode**2
    bad = (share >= MOSTLY) | ~np.isfinite(tilt) | ~np.isfinite(more_pull)
    # The whole correction at the mode is what counts.
    total = tilt + more_pull * mode - 0.5 * more_own * mode**2
    bad |= np.abs(total) > LARGEST_TILT
    return tuple(np.where(bad, 0.0, part) for part in (tilt, more_pull, more_own))  # type: ignore[return-value]


def as_flat_as_possible(line: Callable[[np.ndarray], Line], matrix: np.ndarray, where: np.ndarray) -> Line:
    """The corrections `line(flatter)` with the largest shares that leave the matrix positive definite.

    `where` are the positions of the pairs in the matrix.
    """
    own = np.diag(matrix)[where]
    nowhere = np.zeros(len(where))
    found = line(np.full(len(where), FLATTER))
    bent = found[2] < -HARDLY * own
    if not bent.any():
        return line(nowhere)
    rest = Lowered(matrix, where[bent])
    for flatter in LESS_FLAT:
        found = line(np.where(bent, flatter, nowhere))
        if rest.is_definite(found[2][bent]):
            return found
    return line(nowhere)


class Lowered:
    """A positive definite matrix with some of its diagonal lowered: is it still definite?

    The other rows are eliminated once, in single precision as the matrix is going to be used.

    Examples
    --------
    >>> square = Lowered(np.array([[1.0, 0.9], [0.9, 1.0]]), np.arange(2))
    >>> square.is_definite(np.zeros(2)), square.is_definite(np.full(2, -0.2))
    (True, False)
    >>> one = Lowered(np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1]))
    >>> one.is_definite(np.array([-0.15])), one.is_definite(np.array([-0.2]))
    (True, False)
    """

    def __init__(self, matrix: np.ndarray, where: np.ndarray) -> None:
        from scipy.linalg import solve_triangular

        others = np.setdiff1d(np.arange(len(matrix)), where)
        scale = (1 / np.sqrt(np.diag(matrix))).astype(np.float32)

        def block(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            part = matrix[np.ix_(rows, columns)].astype(np.float32)
            part *= scale[rows][:, None]
            part *= scale[columns]
            return part

        self._scale = scale[where].astype(float)
        self._left: np.ndarray | None = block(where, where)
        np.fill_diagonal(self._left, 1.0 + JITTER)
        if not len(others):
            return
        remaining = block(others, others)
        np.fill_diagonal(remaining, 1.0 + JITTER)
        try:
            root = np.linalg.cholesky(remaining)
        except np.linalg.LinAlgError:
            self._left = None
            return
        taken = solve_triangular(root, block(others, where), lower=True, check_finite=False)
        self._left -= taken.T @ taken

    def is_definite(self, more: np.ndarray) -> bool:
        """Whether it is, with so much added to the chosen part of its diagonal."""
        if self._left is None:
            return False
        changed = self._left.copy()
        changed[np.diag_indices_from(changed)] += (more * self._scale**2).astype(np.float32)
        try:
            np.linalg.cholesky(changed)
        except np.linalg.LinAlgError:
            return False
        return True
