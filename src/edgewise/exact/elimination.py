"""Exact inference by eliminating one variable after another on a sparse graph.

Eliminating variable v joins it with its remaining neighbours in one *bag*: a table over the 2^|bag| states,
holding the parameters of which v is the first variable eliminated and the messages of earlier bags. Summing
v out gives a message to the bag of the variable of this bag that is eliminated next (docs/method.md, eqs.
3.3 and 3.4). A second pass in reverse order gives the probabilities of every bag (eq. 3.5), and drawing in
reverse order gives independent states (eq. 3.6). All sums of potentials stay in log space.

Every bag lists its variables in the order of their elimination (:mod:`edgewise.exact.orders`). Messages
then have their axes in the same order as the receiving bag: they are aligned by inserting axes of length
one and are never transposed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.exact.orders import Order
from edgewise.model.mrf import MRF

# In place of minus infinity, whose difference with itself is not a number.
IMPOSSIBLE = -1e300

BYTES_PER_CELL = 24
"""Peak memory of a bag's cell: its log-potential, its probability and its share of messages and scratch."""


@dataclass(frozen=True)
class Collected:
    """The first pass: log-potentials and outgoing message of every bag, in order of elimination."""

    tables: list[np.ndarray]
    messages: list[np.ndarray]
    log_partition: float


class Elimination:
    """A model laid out over the bags of an elimination order.

    Cliques of weight zero need not fit into a bag; their means come from runs with all but one of their
    variables fixed at one (eq. 3.7).
    """

    def __init__(self, model: MRF, order: Order) -> None:
        self.model = model
        self.order = order
        position = {variable: k for k, variable in enumerate(order.variables)}
        self.parent = [position[bag[1]] if len(bag) > 1 else -1 for bag in order.bags]
        self.message_shape: list[tuple[int, ...]] = []
        self.summed_axes: list[tuple[int, ...]] = []
        for bag, parent in zip(order.bags, self.parent):
            receiver = order.bags[parent] if parent >= 0 else ()
            self.message_shape.append(tuple(2 if variable in bag else 1 for variable in receiver))
            self.summed_axes.append(tuple(k for k, variable in enumerate(receiver) if variable not in bag))
        self.placed: list[list[tuple[int, tuple[int | slice, ...]]]] = [[] for _ in order.bags]
        self.unplaced: list[int] = []
        for number, clique in enumerate(model.cliques):
            home = min(position[i] for i in clique)
            if set(clique) <= set(order.bags[home]):
                index = tuple(1 if variable in clique else slice(None) for variable in order.bags[home])
                self.placed[home].append((number, index))
            else:
                assert model.weights[number] == 0.0
                self.unplaced.append(number)

    def collect(self, ones: Sequence[int] = ()) -> Collected:
        """First pass (3.3), (3.4), from the first variable eliminated to the last; `ones` are held at one."""
        biases, weights = self.model.biases, self.model.weights
        inbox: list[list[np.ndarray]] = [[] for _ in self.order.bags]
        tables, messages = [], []
        log_partition = 0.0
        for k, (variable, bag) in enumerate(zip(self.order.variables, self.order.bags)):
            table = np.zeros((2,) * len(bag))
            table[1] = biases[variable]
            for number, index in self.placed[k]:
                table[index] += weights[number]
            for message in inbox[k]:
                table += message
            inbox[k].clear()
            if variable in ones:
                table[0] = IMPOSSIBLE
            message = np.logaddexp(table[0], table[1])
            if self.parent[k] < 0:
                log_partition += float(message)
            else:
                inbox[self.parent[k]].append(message.reshape(self.message_shape[k]))
            tables.append(table)
            messages.append(message)
        return Collected(tables, messages, log_partition)

    def _distribute(self, collected: Collected) -> np.ndarray:
        """Second pass (3.5): the mean of every feature that fits into a bag; NaN for the others."""
        p = self.model.n_variables
        means = np.full(p + len(self.model.cliques), np.nan)
        children = np.bincount([k for k in self.parent if k >= 0], minlength=p)
        beliefs: dict[int, np.ndarray] = {}
        for k in range(p - 1, -1, -1):
            belief = np.exp(collected.tables[k] - collected.messages[k])
            parent = self.parent[k]
            if parent >= 0:
                belief *= beliefs[parent].sum(axis=self.summed_axes[k])
                children[parent] -= 1
                if not children[parent]:
                    del beliefs[parent]
            if children[k]:
                beliefs[k] = belief
            means[self.order.variables[k]] = belief[1].sum()
            for number, index in self.placed[k]:
                means[p + number] = belief[index].sum()
        return means

    def log_partition(self) -> float:
        """Logarithm of the sum over all states."""
        return self.collect().log_partition

    def means(self) -> np.ndarray:
        """Mean of every feature, biases first."""
        return self._means_given(())[1]

    def _means_given(self, ones: Sequence[int]) -> tuple[float, np.ndarray]:
        """Log Z with some variables held at one, and the mean of every feature under that condition (3.7)."""
        collected = self.collect(ones)
        means = self._distribute(collected)
        p = self.model.n_variables
        waiting: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        for number in self.unplaced:
            *first, last = self.model.cliques[number]
            waiting[tuple(first)].append((p + number, last))
        for first, targets in waiting.items():
            conditioned = self.collect((*ones, *first))
            probability = np.exp(conditioned.log_partition - collected.log_partition)
            singles = self._distribute(conditioned)
            for feature, last in targets:
                means[feature] = probability * singles[last]
        return collected.log_partition, means

    def second_moments(self) -> np.ndarray:
        """E[f_a f_b] of all features: P(f_a = 1) times the mean of f_b given f_a = 1."""
        base = self.log_partition()
        features = [(i,) for i in range(self.model.n_variables)] + list(self.model.cliques)
        result = np.empty((len(features), len(features)))
        for row, clique in zip(result, features):
            log_partition, means = self._means_given(clique)
            row[:] = np.exp(log_partition - base) * means
        return (result + result.T) / 2

    def pair_marginals(self) -> np.ndarray:
        """P(x_i = 1, x_j = 1), with P(x_i = 1) on the diagonal."""
        p = self.model.n_variables
        base = self.log_partition()
        result = np.empty((p, p))
        for i in range(p):
            collected = self.collect((i,))
            result[i] = np.exp(collected.log_partition - base) * self._distribute(collected)[:p]
        return (result + result.T) / 2

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent states, drawn variable by variable from the last eliminated to the first (3.6)."""
        tables = self.collect().tables
        states = np.zeros((self.model.n_variables, n), np.uint8)
        for k in range(self.model.n_variables - 1, -1, -1):
            variable, *others = self.order.bags[k]
            with np.errstate(over="ignore"):
                probability = (1.0 / (1.0 + np.exp(tables[k][0] - tables[k][1]))).ravel()
            number = np.zeros(n, np.intp)
            for other in others:
                number += number
                number += states[other]
            states[variable] = rng.random(n) < probability[number]
        return np.ascontiguousarray(states.T)
