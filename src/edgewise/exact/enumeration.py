"""Exact inference by listing all 2^p states.

State number s has variable i equal to bit i of s. The log-potential of every state is the sum of the
parameters of all cliques inside the state, and the mean of a clique is the sum of the probabilities of all
states that contain it: a subset sum and a superset sum over the same 2^p cells, each O(2^p p) by doubling
(docs/method.md, eqs. 3.1 and 3.2).

With more levels states are numbered in mixed radix, the first variable running fastest, and the potentials
are added along the axes of one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from edgewise.model.mrf import MRF

# The lowest bits are summed together by one matrix product: NumPy is slow on inner loops of a few cells.
LOW_BITS = 6
FEATURE_ROWS = 1 << 14


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


def states(count: int | Sequence[int]) -> np.ndarray:
    """All states of `count` variables in the order of their numbers: uint8 (2^count, count).

    A sequence says the number of levels of each variable instead; there are as many states as their product.

    Examples
    --------
    >>> states([3, 2]).tolist()
    [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    """
    if isinstance(count, int | np.integer):
        return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.uint8)
    levels = np.array(count, np.int64)
    return unpack_levels(np.arange(int(levels.prod())), levels)


def unpack_levels(numbers: np.ndarray, levels: Sequence[int] | np.ndarray) -> np.ndarray:
    """States of given numbers in mixed radix: uint8 (n, count)."""
    result = np.empty((len(numbers), len(levels)), np.uint8)
    for i, count in enumerate(levels):
        result[:, i] = numbers % count
        numbers = numbers // count
    return result


class LevelEnumeration:
    """All states of a model with levels, in mixed radix, with their unnormalised log-probabilities."""

    def __init__(self, model: MRF) -> None:
        self.model = model
        self.levels = model.scales.levels
        p = model.n_variables
        # The first variable runs fastest, so that it has the last axis.
        table = np.zeros(tuple(int(count) for count in self.levels[::-1]))
        for i, threshold in enumerate(model.thresholds):
            table += threshold.reshape(-1, *(1,) * i)
        for k, (i, j) in enumerate(model.cliques):
            shape = [1] * p
            shape[p - 1 - j], shape[p - 1 - i] = (int(self.levels[j]), int(self.levels[i]))
            table += model.pair_potential(k).T.reshape(shape)
        self.log_potential = table.ravel()
        self.peak = float(self.log_potential.max())
        self.weights = np.exp(self.log_potential - self.peak)
        self.total = float(self.weights.sum())

    def log_partition(self) -> float:
        """Logarithm of the sum over all states."""
        return self.peak + float(np.log(self.total))

    def probabilities(self) -> np.ndarray:
        """Probability of every state."""
        return self.weights / self.total

    def _features(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Probabilities and features of blocks of states."""
        scales, probability = self.model.scales, self.probabilities()
        i, j = self.model.members[:, :2].T
        for start in range(0, len(probability), FEATURE_ROWS):
            rows = unpack_levels(np.arange(start, min(start + FEATURE_ROWS, len(probability))), self.levels)
            scored = [scale.scores[rows[:, k]] for k, scale in enumerate(scales)]
            pairs = [
                (scored[a][:, :, None] * scored[b][:, None, :]).reshape(len(rows), -1) for a, b in zip(i, j)
            ]
            yield (
                probability[start : start + len(rows)],
                np.concatenate([scales.thresholded(rows), *pairs], axis=1),
            )

    def means(self) -> np.ndarray:
        """Mean of every feature, thresholds first."""
        return np.asarray(sum(share @ values for share, values in self._features()))

    def second_moments(self) -> np.ndarray:
        """E[f_a f_b] of all features."""
        return np.asarray(sum((values * share[:, None]).T @ values for share, values in self._features()))

    def level_marginals(self) -> list[np.ndarray]:
        """Probability of every level of every variable."""
        table = self.probabilities().reshape(tuple(self.levels[::-1]))
        axes = range(table.ndim)
        return [table.sum(axis=tuple(axis for axis in axes if axis != table.ndim - 1 - i)) for i in axes]

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent states: uint8 (n, p)."""
        return unpack_levels(draw_numbers(self.weights, n, rng), self.levels)


class Enumeration:
    """All states of a model with two levels, with their unnormalised log-probabilities."""

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
        return unpack(draw_numbers(self.weights, n, rng), self.n_variables)

    def level_marginals(self) -> list[np.ndarray]:
        """Probability of both levels of every variable."""
        ones = np.diag(self.pair_marginals())
        return [np.array([1.0 - one, one]) for one in ones]


def draw_numbers(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of states in proportion to their weights, by inversion of the cumulative sums."""
    cumulative = np.cumsum(weights)
    drawn = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
    # Rounding may push the product up to the last cumulative sum, one past the last state.
    return np.asarray(np.minimum(drawn, len(cumulative) - 1))


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
