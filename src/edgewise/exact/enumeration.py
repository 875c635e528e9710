"""Exact inference by listing all 2^p states.

State number s has variable i equal to bit i of s. The log-potential of every state is the sum of the
parameters of all cliques inside the state, and the mean of a clique is the sum of the probabilities of all
states that contain it: a subset sum and a superset sum over the same 2^p cells, each O(2^p p) by doubling
(docs/method.md, eqs. 3.1 and 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from edgewise.model.mrf import MRF

# The lowest bits are summed together by one matrix product: NumPy is slow on inner loops of a few cells.
LOW_BITS = 6


def sum_over_subsets(table: np.ndarray) -> None:
    """Replace each cell s by the sum of all cells whose bits are a subset of those of s, in place."""
    _sum_over_order(table, upper=1)


def sum_over_supersets(table: np.ndarray) -> None:
    """Replace each cell s by the sum of all cells whose bits include those of s, in place."""
    _sum_over_order(table, upper=0)


def _sum_over_order(table: np.ndarray, upper: int) -> None:
    bits = len(table).bit_length() - 1
    low = min(LOW_BITS, bits)
    subset = np.ones((1, 1))
    for _ in range(low):
        subset = np.kron([[1.0, 1.0], [0.0, 1.0]], subset)
    blocks = table.reshape(-1, 1 << low)
    blocks[:] = blocks @ (subset if upper else subset.T)
    for bit in range(low, bits):
        halves = table.reshape(-1, 2, 1 << bit)
        halves[:, upper] += halves[:, 1 - upper]


def state_number(clique: Iterable[int]) -> int:
    """Number of the state in which exactly the variables of `clique` are one."""
    return sum(1 << i for i in clique)


def states(count: int) -> np.ndarray:
    """All states of `count` variables in the order of their numbers: uint8 (2^count, count)."""
    return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.uint8)


class Enumeration:
    """All states of a model with their unnormalised log-probabilities."""

    def __init__(self, model: MRF) -> None:
        self.n_variables = model.n_variables
        self.numbers = np.array(
            [1 << i for i in range(model.n_variables)] + [state_number(clique) for clique in model.cliques]
        )
        self.log_potential = np.zeros(1 << model.n_variables)
        self.log_potential[self.numbers] = model.parameters
        sum_over_subsets(self.log_potential)
        self.peak = float(self.log_potential.max())
        # Relative to the most probable state, so that no state overflows and the sum is at least one.
        self.weights = np.exp(self.log_potential - self.peak)
        self.total = float(self.weights.sum())

    def log_partition(self) -> float:
        """Logarithm of the sum over all states."""
        return self.peak + float(np.log(self.total))

    def probabilities(self) -> np.ndarray:
        """Probability of every state."""
        return self.weights / self.total

    def _all_ones(self) -> np.ndarray:
        """Probability, for every set of variables, that all of them are one."""
        table = self.probabilities()
        sum_over_supersets(table)
        return table

    def means(self) -> np.ndarray:
        """Mean of every feature, biases first."""
        return np.asarray(self._all_ones()[self.numbers])

    def second_moments(self) -> np.ndarray:
        """E[f_a f_b] of all features: the mean of the product over the union of the two cliques."""
        return np.asarray(self._all_ones()[self.numbers[:, None] | self.numbers[None, :]])

    def pair_marginals(self) -> np.ndarray:
        """P(x_i = 1, x_j = 1), with P(x_i = 1) on the diagonal."""
        bits = 1 << np.arange(self.n_variables)
        return np.asarray(self._all_ones()[bits[:, None] | bits[None, :]])

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent states by inversion of the cumulative probabilities: uint8 (n, p)."""
        cumulative = np.cumsum(self.weights)
        drawn = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        # Rounding may push the product up to the last cumulative sum, one past the last state.
        np.minimum(drawn, len(cumulative) - 1, out=drawn)
        return unpack(drawn, self.n_variables)


def unpack(numbers: np.ndarray, count: int) -> np.ndarray:
    """States of given numbers: uint8 (n, count)."""
    result = np.empty((len(numbers), count), np.uint8)
    for i in range(count):
        result[:, i] = numbers >> i & 1
    return result


def pack(rows: np.ndarray, variables: Sequence[int]) -> np.ndarray:
    """Number of the state of some variables in each row: int64 (n,)."""
    numbers = np.zeros(len(rows), np.int64)
    for bit, variable in enumerate(variables):
        numbers |= (rows[:, variable] != 0).astype(np.int64) << bit
    return numbers
