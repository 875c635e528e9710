"""How far off the probabilities of a surrogate are, measured along with its draws (docs/method.md, 10.10).

Where nothing decides, draws come from the surrogate q instead of the posterior. With w the log of what their
densities differ by, the probability of a candidate is off by Cov_q(Y_a, w) to first order. Up to a constant,
w(phi) is an integral along the way from a fixed model phi0 to phi,

    w = sum_j (phi_j - phi0_j) e_j,    e = s - N mu - grad log L_q, averaged over the way,

and particles say what mu is at two Gauss points of it. The sum has a term for every coordinate. Those that
have nothing to do with a candidate add noise to its covariance and nothing else, so each candidate has a sum
of its own, over itself, its variables and the candidates that the surrogate knows to be correlated with it.
Pairs count along their lines (5.2), so that a change of a coupling does not show in the terms of its biases.

An engine that wants its error measured

1. makes a :class:`Meter` when its averages are frozen, and keeps ``empty_totals`` in its state;
2. after some of its draws (all, if they are cheap; independent ones tell most) takes its particles to the
   models ``meter.first + t * (phi - meter.first)`` for the two ``t`` in :data:`POINTS`, forth and back in
   turns, and averages their features over both points: `means`;
3. calls ``meter.add(totals, phi, means)``;
4. adds ``sums_of(totals, ...)`` to its ``edge_sums``.

``edgewise.posterior.approximation`` makes the measured error of that, whatever the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

POINTS = (0.5 - 0.5 / math.sqrt(3.0), 0.5 + 0.5 / math.sqrt(3.0))
# Candidates whose features are correlated this much, biases taken out, have to do with each other.
NEAR = 0.1
MOST_NEAR = 80
# What is added up for every candidate: probes, those in which it is active, its own w and its square, and
# both where it is active.
SUMS = ("probes", "probes_on", "probe_weight", "probe_square", "probe_weight_on", "probe_square_on")
ROWS_AT_ONCE = 256
# Iterations that are all probed; of later ones, one in so many.
PLENTY, SELDOM = 2000, 10


def empty_totals(candidates: int) -> np.ndarray:
    """Nothing added up yet."""
    return np.zeros((len(SUMS), candidates))


def sums_of(totals: np.ndarray, candidates: np.ndarray, n_cliques: int) -> dict[str, np.ndarray]:
    """The totals by name, for all candidates there are; zero for those that are not in play."""
    result = {}
    for name, values in zip(SUMS, totals):
        result[name] = np.zeros(n_cliques)
        result[name][candidates] = values
    return result


@dataclass(frozen=True, eq=False)
class Meter:
    """What w of (10.10) is made of; coordinates are biases, then parameters of the candidates in play.

    Attributes
    ----------
    first : array
        The fixed model phi0, with few active candidates.
    rows, sums : float, array
        The number of rows and the sums of the features over them.
    flat : float
        Precision of the prior of the biases, 1 / sigma_b^2.
    precision, pull, bias_mean, bias_slope, bias_precision : arrays
        The surrogate with the biases integrated out (10.3).
    tilt : array or None
        What an active parameter adds to its log density besides (10.8).
    shift : sparse matrix (parameters, biases)
        How the biases move when a parameter does, along its line: by minus its row.
    offset : array
        Where the parameters of every candidate begin, and the last end.
    near : sparse matrix (candidates, biases + candidates)
        Whose terms count for whom.
    """

    first: np.ndarray
    rows: float
    sums: np.ndarray
    flat: float
    precision: np.ndarray
    pull: np.ndarray
    bias_mean: np.ndarray
    bias_slope: np.ndarray
    bias_precision: np.ndarray
    tilt: np.ndarray | None
    shift: sparse.csr_array
    offset: np.ndarray
    near: sparse.csr_array

    def terms(self, phi: np.ndarray, means: np.ndarray) -> np.ndarray:
        """The terms of w, one for every coordinate; `means` are averages over the way to `phi`."""
        nb = len(self.bias_mean)
        here = np.flatnonzero((phi != 0) | (self.first != 0))
        here = here[here >= nb] - nb
        middle, away = (phi + self.first) / 2, phi - self.first
        active = np.flatnonzero(middle[nb:])
        theta = middle[nb:][active]
        residual = self.bias_precision @ (middle[:nb] - self.bias_mean + theta @ self.bias_slope[active])
        slope = self.pull[here] - self.precision[np.ix_(here, active)] @ theta
        gradient = np.concatenate(
            [self.flat * middle[:nb] - residual, slope - self.bias_slope[here] @ residual]
        )
        every = np.concatenate([np.arange(nb), nb + here])
        error = self.sums[every] - self.rows * means[every] - gradient
        shift = self.shift[here]
        distance = away[every]
        distance[:nb] += shift.T @ distance[nb:]
        error[nb:] -= shift @ error[:nb]
        result = np.zeros(len(phi))
        result[every] = distance * error
        if self.tilt is not None:
            result[nb:] -= np.where(phi[nb:] != 0, self.tilt, 0.0)
        return result

    def add(self, totals: np.ndarray, phi: np.ndarray, means: np.ndarray) -> None:
        """Add one draw to the totals."""
        nb, terms = len(self.bias_mean), self.terms(phi, means)
        size = np.diff(self.offset)
        if len(size) and size.max() == 1:
            on, own = phi[nb:] != 0, terms
        else:
            on = np.add.reduceat(phi[nb:] != 0, self.offset[:-1]) > 0 if len(size) else np.zeros(0, bool)
            own = np.concatenate([terms[:nb], np.add.reduceat(terms[nb:], self.offset[:-1])])
        weight = self.near @ own
        for row, value in zip(totals, (1.0, on, weight, weight**2, on * weight, on * weight**2)):
            row += value


def nearest(precision: np.ndarray, offset: np.ndarray, wanted: bool = True) -> np.ndarray:
    """The candidates that each has to do with, itself among them, padded with -1; none if not `wanted`.

    Parameters
    ----------
    precision : array
        The surrogate's, biases integrated out.
    offset : array
        Where the parameters of every candidate begin, and the last end.
    wanted : bool
        Whether anybody is going to need them.
    """
    count = len(offset) - 1
    most = min(MOST_NEAR, count) if wanted else 0
    found = np.full((count, most), -1, np.int32)
    own = 1.0 / np.sqrt(np.maximum(np.diag(precision).astype(float), 1e-300))
    for begin in range(0, count if most else 0, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, count)
        part = slice(int(offset[begin]), int(offset[end]))
        # Blocks by their largest entry.
        strength = np.abs(precision[part] * own) * own[part, None]
        strength = np.maximum.reduceat(strength, offset[:-1], axis=1)
        strength = np.maximum.reduceat(strength, offset[begin:end] - offset[begin], axis=0)
        strength[np.arange(end - begin), np.arange(begin, end)] = np.inf
        chosen = np.argpartition(-strength, most - 1, axis=1)[:, :most]
        found[begin:end] = np.where(np.take_along_axis(strength, chosen, axis=1) > NEAR, chosen, -1)
    return found


def whose_terms(near: np.ndarray, members: np.ndarray, bias_start: np.ndarray) -> sparse.csr_array:
    """Whose terms count for whom: those of the nearest, and of the biases of the candidate's variables.

    Parameters
    ----------
    near : array (candidates, most)
        What :func:`nearest` found.
    members : array (candidates, largest size)
        The variables of each candidate, padded with -1.
    bias_start : array
        Where the biases of every variable begin, and the last end.
    """
    count, p = len(members), len(bias_start) - 1
    row, place = np.nonzero(near >= 0)
    close = sparse.csr_array((np.ones(len(row)), (row, near[row, place])), shape=(count, count))
    at, place = np.nonzero(members >= 0)
    among = sparse.csr_array((np.ones(len(at)), (at, members[at, place])), shape=(count, p))
    variable = np.repeat(np.arange(p), np.diff(bias_start))
    touched = sparse.csr_array(
        (np.ones(len(variable)), (variable, np.arange(len(variable)))), shape=(p, len(variable))
    )
    return sparse.csr_array(sparse.hstack([among @ touched, close], format="csr"))


def shift_of_pairs(members: np.ndarray, centres: np.ndarray) -> sparse.csr_array:
    """How far the biases of binary variables move along the lines of pairs; larger cliques move none."""
    pairs = np.flatnonzero((members[:, 2:] < 0).all(axis=1))
    i, j = members[pairs, 0], members[pairs, 1]
    values = np.concatenate([centres[j], centres[i]])
    place = (np.concatenate([pairs, pairs]), np.concatenate([i, j]))
    return sparse.csr_array((values, place), shape=(len(members), len(centres)))


def sparse_centre(phi: np.ndarray, occupied: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Parameters of the candidates that are active in most draws, at their mean where they are."""
    share = np.repeat(occupied, size)
    return np.where(share > 0.5, phi / np.maximum(share, 0.5), 0.0)


def is_probed(iteration: int, every: int) -> bool:
    """Whether the error is measured after this iteration, counted from one; seldom once there is plenty.

    Examples
    --------
    >>> [n for n in range(1, 10) if is_probed(n, 3)]
    [3, 6, 9]
    """
    return iteration % (every if iteration <= PLENTY * every else SELDOM * every) == 0
