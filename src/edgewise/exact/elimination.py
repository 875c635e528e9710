"""Exact inference by eliminating one variable after another on a sparse graph.

Eliminating variable v joins it with its remaining neighbours in one *bag*: a table over their joint states,
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.exact.orders import Order
from edgewise.model.energies import draw_levels, softmax
from edgewise.model.mrf import MRF
from edgewise.scales import BINARY, BLUME_CAPEL

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
        levels = model.scales.levels
        self.parent = [position[bag[1]] if len(bag) > 1 else -1 for bag in order.bags]
        self.message_shape: list[tuple[int, ...]] = []
        self.summed_axes: list[tuple[int, ...]] = []
        for bag, parent in zip(order.bags, self.parent):
            receiver = order.bags[parent] if parent >= 0 else ()
            self.message_shape.append(
                tuple(int(levels[variable]) if variable in bag else 1 for variable in receiver)
            )
            self.summed_axes.append(tuple(k for k, variable in enumerate(receiver) if variable not in bag))
        self.placed: list[list[tuple[int, tuple[int | slice, ...]]]] = [[] for _ in order.bags]
        self.unplaced: list[int] = []
        for number, clique in enumerate(model.cliques):
            home = min(position[i] for i in clique)
            if set(clique) <= set(order.bags[home]):
                index = tuple(1 if variable in clique else slice(None) for variable in order.bags[home])
                self.placed[home].append((number, index))
            else:
                assert model.strengths[number] == 0.0
                self.unplaced.append(number)
        self.potentials = None if model.scales.all_binary else self._pair_potentials()

    def _pair_potentials(self) -> list[np.ndarray]:
        """For every pair of a model with levels, what it adds to the bag that it is placed in."""
        found: list[np.ndarray] = [np.zeros(0)] * len(self.model.cliques)
        for bag, placed in zip(self.order.bags, self.placed):
            for number, _ in placed:
                i, j = self.model.cliques[number]
                table = self.model.pair_potential(number)
                table = table if bag.index(i) < bag.index(j) else table.T
                found[number] = table.reshape(self._shape(bag, (i, j)))
        return found

    def _shape(self, bag: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
        levels = self.model.scales.levels
        return tuple(int(levels[variable]) if variable in chosen else 1 for variable in bag)

    def collect(self, held: Mapping[int, int] | None = None) -> Collected:
        """First pass (3.3), (3.4), from the first variable eliminated to the last.

        Variables in `held` are held at the level given there.
        """
        weights, thresholds, held = self.model.weights, self.model.thresholds, held or {}
        inbox: list[list[np.ndarray]] = [[] for _ in self.order.bags]
        tables, messages = [], []
        log_partition = 0.0
        for k, (variable, bag) in enumerate(zip(self.order.variables, self.order.bags)):
            table = np.zeros(self._shape(bag, bag))
            table.T[:] = thresholds[variable]
            for number, index in self.placed[k]:
                if self.potentials is None:
                    table[index] += weights[number]
                else:
                    table += self.potentials[number]
            for message in inbox[k]:
                table += message
            inbox[k].clear()
            if variable in held:
                table[np.arange(len(table)) != held[variable]] = IMPOSSIBLE
            message = np.logaddexp.reduce(table, axis=0)
            if self.parent[k] < 0:
                log_partition += float(message)
            else:
                inbox[self.parent[k]].append(message.reshape(self.message_shape[k]))
            tables.append(table)
            messages.append(message)
        return Collected(tables, messages, log_partition)

    def _distribute(self, collected: Collected) -> np.ndarray:
        """Second pass (3.5): the mean of every feature that fits into a bag; NaN for the others."""
        model, start = self.model, self.model.scales.bias_start
        p, first = model.n_variables, model.scales.n_biases
        means = np.full(first + len(model.weights), np.nan)
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
            variable, bag = self.order.variables[k], self.order.bags[k]
            if self.potentials is None:
                means[variable] = belief[1].sum()
                for number, index in self.placed[k]:
                    means[p + number] = belief[index].sum()
                continue
            own = belief.sum(axis=tuple(range(1, belief.ndim)))
            means[start[variable] : start[variable + 1]] = own @ model.scales[variable].basis
            for number, _ in self.placed[k]:
                i, j = model.cliques[number]
                others = tuple(axis for axis, other in enumerate(bag) if other not in (i, j))
                joint = belief.sum(axis=others)
                joint = joint if bag.index(i) < bag.index(j) else joint.T
                part = slice(first + model.weight_start[number], first + model.weight_start[number + 1])
                means[part] = (model.scales[i].scores.T @ joint @ model.scales[j].scores).ravel()
        return means

    def level_marginals(self, held: Mapping[int, int] | None = None) -> list[np.ndarray]:
        """Probability of every level of every variable, given those held."""
        collected = self.collect(held)
        means = self._distribute(collected)
        found = []
        for i, scale in enumerate(self.model.scales):
            part = means[self.model.scales.bias_start[i] : self.model.scales.bias_start[i + 1]]
            if scale.kind == BINARY:
                found.append(np.array([1.0 - part[0], part[0]]))
            elif scale.kind == BLUME_CAPEL:
                found.append(self._counted(i, held))
            else:
                # The contrasts are orthogonal with squares of one half.
                found.append(1.0 / scale.n_levels + 2.0 * scale.basis @ part)
        return found

    def _counted(self, variable: int, held: Mapping[int, int] | None) -> np.ndarray:
        """Probability of every level of one variable, level by level."""
        base = self.collect(held).log_partition
        if held and variable in held:
            return np.asarray(np.arange(self.model.scales[variable].n_levels) == held[variable], float)
        count = self.model.scales[variable].n_levels
        log_parts = [self.collect({**(held or {}), variable: c}).log_partition for c in range(count)]
        return np.exp(np.array(log_parts) - base)

    def log_partition(self) -> float:
        """Logarithm of the sum over all states."""
        return self.collect().log_partition

    def means(self) -> np.ndarray:
        """Mean of every feature, biases first."""
        return self._means_given({})[1]

    def _means_given(self, held: Mapping[int, int]) -> tuple[float, np.ndarray]:
        """Log Z with some variables held, and the mean of every feature under that condition (3.7)."""
        collected = self.collect(held)
        means = self._distribute(collected)
        model, offset = self.model, self.model.scales.n_biases
        waiting: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number in self.unplaced:
            waiting[tuple(model.cliques[number][:-1])].append(number)
        for first, numbers in waiting.items():
            # With two levels the feature is one only where all of them are one.
            scales = [model.scales[i] for i in first]
            top = range(1, 2) if model.scales.all_binary else range(scales[0].n_levels)
            for level in top:
                both = {**held, **dict.fromkeys(first, level)}
                if any(held.get(i, level) != level for i in first):
                    continue
                conditioned = self.collect(both)
                probability = np.exp(conditioned.log_partition - collected.log_partition)
                singles = self._distribute(conditioned)
                for number in numbers:
                    last = model.cliques[number][-1]
                    part = slice(offset + model.weight_start[number], offset + model.weight_start[number + 1])
                    own = singles[model.scales.bias_start[last] : model.scales.bias_start[last + 1]]
                    if model.scales.all_binary:
                        means[part] = probability * own
                        continue
                    added = np.outer(scales[0].scores[level], self._mean_scores(last, own, both)).ravel()
                    means[part] = np.nan_to_num(means[part]) + probability * added
        return collected.log_partition, means

    def _mean_scores(self, variable: int, means: np.ndarray, held: Mapping[int, int]) -> np.ndarray:
        """Means of the scores of a variable, from those of its threshold features."""
        scale = self.model.scales[variable]
        if variable in held:
            return np.asarray(scale.scores[held[variable]])
        constant = scale.scores.mean(axis=0) - scale.basis.mean(axis=0) @ scale.projection
        return np.asarray(means @ scale.projection + constant)

    def second_moments(self) -> np.ndarray:
        """E[f_a f_b] of all features: the sum over the states of a of P(state) f_a E[f_b | state]."""
        model, base = self.model, self.log_partition()
        features = [(i,) for i in range(model.n_variables)] + list(model.cliques)
        size = model.scales.n_biases + len(model.weights)
        result = np.zeros((size, size))
        row = 0
        for clique in features:
            for state, values in self._states_of(clique):
                log_partition, means = self._means_given(state)
                share = np.exp(log_partition - base)
                result[row : row + len(values)] += share * np.outer(values, means)
            row += len(values)
        return (result + result.T) / 2

    def _states_of(self, clique: Sequence[int]) -> list[tuple[dict[int, int], np.ndarray]]:
        """States of a clique in which its features are not all zero, and the features there."""
        scales = self.model.scales
        if scales.all_binary:
            return [(dict.fromkeys(clique, 1), np.ones(1))]
        if len(clique) == 1:
            return [({clique[0]: c}, row) for c, row in enumerate(scales[clique[0]].basis)]
        i, j = clique
        return [
            ({i: c, j: d}, np.outer(u, v).ravel())
            for c, u in enumerate(scales[i].scores)
            for d, v in enumerate(scales[j].scores)
        ]

    def pair_marginals(self) -> np.ndarray:
        """P(x_i = 1, x_j = 1), with P(x_i = 1) on the diagonal; of variables with two levels."""
        p = self.model.n_variables
        base = self.log_partition()
        result = np.empty((p, p))
        for i in range(p):
            collected = self.collect({i: 1})
            result[i] = np.exp(collected.log_partition - base) * self._distribute(collected)[:p]
        return (result + result.T) / 2

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent states, drawn variable by variable from the last eliminated to the first (3.6)."""
        tables = self.collect().tables
        states = np.zeros((self.model.n_variables, n), np.uint8)
        for k in range(self.model.n_variables - 1, -1, -1):
            variable, *others = self.order.bags[k]
            number = np.zeros(n, np.intp)
            for other in others:
                number *= self.model.scales[other].n_levels
                number += states[other]
            if self.model.scales[variable].n_levels > 2:
                table = tables[k].reshape(len(tables[k]), -1).T
                states[variable] = draw_levels(softmax(table)[number], rng)
                continue
            with np.errstate(over="ignore"):
                probability = (1.0 / (1.0 + np.exp(tables[k][0] - tables[k][1]))).ravel()
            states[variable] = rng.random(n) < probability[number]
        return np.ascontiguousarray(states.T)
