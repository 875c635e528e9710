"""Log-potentials of a group of variables given the others, and the checks of groups and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.exact.enumeration import pack, state_number, states, sum_over_subsets
from edgewise.features.candidates import label_of
from edgewise.model.mrf import MRF

MOST_STATES = 1 << 16
"""Most joint states of a group that are listed."""


def group_table(model: MRF, members: list[int]) -> GroupTable | LevelGroupTable:
    """The table of a group of variables."""
    return GroupTable(model, members) if model.scales.all_binary else LevelGroupTable(model, members)


class GroupTable:
    """Log-potentials of a group's states as a function of the variables around it.

    Every clique that touches the group is split into its inside and its outside. Cliques with the same
    inside differ only in a row-dependent factor, so one number per row and inside is enough, and the
    potential of a state is the sum of the numbers of all insides contained in the state (docs/method.md,
    eq. 3.8).
    """

    def __init__(self, model: MRF, members: list[int]) -> None:
        self.members = members
        place = {variable: j for j, variable in enumerate(members)}
        constant = np.zeros(1 << len(members))
        constant[[1 << j for j in range(len(members))]] = model.biases[members]
        varying: dict[int, list[tuple[list[int], float]]] = {}
        for clique, weight in zip(model.cliques, model.weights.tolist()):
            inside = state_number(place[i] for i in clique if i in place)
            outside = [i for i in clique if i not in place]
            if not inside or weight == 0.0:
                continue
            if outside:
                varying.setdefault(inside, []).append((outside, weight))
            else:
                constant[inside] += weight
        numbers = np.arange(1 << len(members))
        insides = np.array(list(varying), np.int64)
        self.contains = ((numbers & insides[:, None]) == insides[:, None]).astype(np.float64)
        self.varying = list(varying.values())
        sum_over_subsets(constant)
        self.constant = constant

    def log_potential(self, rows: np.ndarray) -> np.ndarray:
        """Of every state of the group, up to a constant: float64 (n, states)."""
        factors = np.zeros((len(rows), len(self.varying)))
        for column, terms in enumerate(self.varying):
            for outside, weight in terms:
                factors[:, column] += weight * rows[:, outside].prod(axis=1)
        return np.asarray(factors @ self.contains + self.constant)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Number of the state of the group in each row."""
        return pack(rows, self.members)


class LevelGroupTable:
    """The same for variables with any levels: fields from outside and the couplings inside."""

    def __init__(self, model: MRF, members: list[int]) -> None:
        self.model, self.members = model, members
        self.levels = model.scales.levels[members]
        self.states = states(self.levels.tolist())
        place = {variable: k for k, variable in enumerate(members)}
        self.constant = np.zeros(len(self.states))
        for number, (i, j) in enumerate(model.cliques):
            if i in place and j in place:
                table = model.pair_potential(number)
                self.constant += table[self.states[:, place[i]], self.states[:, place[j]]]
        start = model.scales.score_start
        self.own = [np.arange(start[i], start[i + 1]) for i in members]
        self.inside = np.concatenate(self.own)

    def log_potential(self, rows: np.ndarray) -> np.ndarray:
        """Of every state of the group, up to a constant: float64 (n, states)."""
        outside = rows.astype(np.int64)
        outside[:, self.members] = 0
        scored = self.model.scales.scored(outside)
        scored[:, self.inside] = 0.0
        result = np.tile(self.constant, (len(rows), 1))
        for k, variable in enumerate(self.members):
            scale = self.model.scales[variable]
            field = scored @ self.model.score_coupling[:, self.own[k]]
            levels = self.model.thresholds[variable] + field @ scale.scores.T
            result += levels[:, self.states[:, k]]
        return result

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Number of the state of the group in each row."""
        numbers = np.zeros(len(rows), np.int64)
        for k in range(len(self.members) - 1, -1, -1):
            numbers = numbers * self.levels[k] + rows[:, self.members[k]].astype(np.int64)
        return numbers


def check_conditional(model: MRF, group: Sequence[int | str], rows: Any) -> tuple[list[int], np.ndarray]:
    """Numbers of the variables of a group, and the rows as an array."""
    members = []
    for variable in group:
        if isinstance(variable, str):
            if model.names is None or variable not in model.names:
                raise DataError(f"The model has no variable named {variable!r}.")
            members.append(model.names.index(variable))
        elif 0 <= variable < model.n_variables:
            members.append(int(variable))
        else:
            raise DataError(
                f"There is no variable {variable}; the {model.n_variables} variables are numbered from 0."
            )
    if not members or len(set(members)) != len(members):
        raise DataError("The group must be one or more different variables.")
    count = int(np.prod(model.scales.levels[members], dtype=object))
    if count > MOST_STATES:
        most = MOST_STATES.bit_length() - 1
        if model.scales.all_binary:
            words = f"2^{len(members)} states; at most {most} variables are possible"
        else:
            words = f"{count:,} states; at most {MOST_STATES:,} are possible"
        raise DataError(f"The group has {len(members)} variables and {words}. Use smaller groups.")
    table = np.asarray(rows)
    if table.ndim != 2 or table.shape[1] != model.n_variables:
        raise DataError(
            f"The given values must have shape (n, {model.n_variables}), one column per variable; these have "
            f"shape {table.shape}."
        )
    others = np.delete(np.arange(model.n_variables), members)
    around = table[:, others]
    levels = model.scales.levels[others]
    bad = ~((around >= 0) & (around < levels) & (around == np.floor(around)))
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        known = "0 or 1" if levels[column] == 2 else f"0 to {levels[column] - 1}"
        raise DataError(
            f"Given values are {known}, but row {row} has {around[row, column]} for variable "
            f"{label_of((int(others[column]),), model.names)}, which is not in the group."
        )
    return members, table
