"""Strata of rows: the groups that are compared, and the combinations of covariates adjusted for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.data.labels import level_key, number_of
from edgewise.errors import DataError

BINS = 4
MOST_STRATA = 64

Combination = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Which strata there are, without the rows.

    Attributes
    ----------
    group_name : str
        Name of the column that tells the groups apart; empty where none are compared.
    groups : tuple of str
        Labels of the groups; one that is empty where none are compared.
    covariates : tuple of str
        Names of the columns that are adjusted for.
    edges : tuple
        For every covariate that was cut into bins the values between them, for others None.
    combinations : mapping
        Number of the stratum of every combination of a group and labels of the covariates.
    group_of : tuple of int
        Group of every stratum.
    rows : tuple of float
        Rows, or sums of their weights, of every stratum.
    bins : int
        Quantile bins that were asked for.

    Examples
    --------
    >>> from edgewise.data import read_data
    >>> table = {"a": [0, 1] * 10, "b": [0, 1, 1, 0] * 5, "sex": ["f"] * 10 + ["m"] * 10}
    >>> layout = read_data(table, groups="sex").strata.layout
    >>> layout.groups, layout.rows, layout.names
    (('f', 'm'), (10.0, 10.0), ('f', 'm'))
    """

    group_name: str = ""
    groups: tuple[str, ...] = ("",)
    covariates: tuple[str, ...] = ()
    edges: tuple[tuple[float, ...] | None, ...] = ()
    combinations: Mapping[Combination, int] = field(default_factory=dict)
    group_of: tuple[int, ...] = (0,)
    rows: tuple[float, ...] = ()
    bins: int = BINS

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return len(self.group_of)

    @property
    def compares(self) -> bool:
        """Whether there are groups to compare."""
        return len(self.groups) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """A name for every stratum."""
        found: list[list[str]] = [[] for _ in self.group_of]
        for (group, labels), stratum in self.combinations.items():
            found[stratum].append(", ".join(([self.groups[group]] if self.compares else []) + list(labels)))
        return tuple(" + ".join(parts) for parts in found)

    @property
    def rows_of_groups(self) -> tuple[float, ...]:
        """Rows of every group."""
        groups = np.array(self.group_of)
        return tuple(float(np.array(self.rows)[groups == k].sum()) for k in range(len(self.groups)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; :meth:`from_dict` reads them back."""
        return {
            "group_name": self.group_name,
            "groups": list(self.groups),
            "covariates": list(self.covariates),
            "edges": [None if cuts is None else list(cuts) for cuts in self.edges],
            "combinations": [[group, list(labels), k] for (group, labels), k in self.combinations.items()],
            "group_of": list(self.group_of),
            "rows": list(self.rows),
            "bins": self.bins,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Layout:
        """Rebuild from plain values, which may come from anywhere: ValueError says what is wrong."""
        groups, covariates = _texts(values["groups"]), _texts(values["covariates"])
        group_of = tuple(_whole(k, len(groups)) for k in values["group_of"])
        edges = tuple(
            None if cuts is None else tuple(_number(cut) for cut in cuts) for cuts in values["edges"]
        )
        combinations: dict[Combination, int] = {}
        for group, labels, stratum in values["combinations"]:
            key = _whole(group, len(groups)), _texts(labels)
            if len(key[1]) != len(covariates) or key in combinations:
                raise ValueError("a combination of covariates is of another length, or listed twice")
            combinations[key] = _whole(stratum, len(group_of))
            if group_of[combinations[key]] != key[0]:
                raise ValueError("a combination belongs to another group than its stratum")
        rows = tuple(_number(count) for count in values["rows"])
        whole = set(combinations.values()) == set(range(len(group_of)))
        if not whole or set(group_of) != set(range(len(groups))) or len(edges) != len(covariates):
            raise ValueError("strata and combinations contradict each other")
        if len(rows) != len(group_of) or min(rows, default=0.0) < 0 or len(set(groups)) < len(groups):
            raise ValueError("the rows of the strata make no sense, or two groups have one name")
        name = values["group_name"]
        if not isinstance(name, str) or not 1 <= len(group_of) <= MOST_STRATA:
            raise ValueError("the groups have no name, or the strata are too many")
        return cls(
            group_name=name,
            groups=groups,
            covariates=covariates,
            edges=edges,
            combinations=combinations,
            group_of=group_of,
            rows=rows,
            bins=_whole(values["bins"], 21),
        )

    def group(self, label: Any) -> int:
        """Number of a group given by its label, or by its number."""
        if not self.compares:
            raise DataError("No groups were compared; fit with groups=..., or --compare-groups, to do so.")
        known = [level_key(name) for name in self.groups]
        if level_key(label) in known:
            return known.index(level_key(label))
        raise DataError(f"There is no group {label!r}; the groups are {', '.join(map(repr, self.groups))}.")

    def strata_of(self, groups: Sequence[Any] | None, covariates: Mapping[str, Sequence[Any]]) -> np.ndarray:
        """Number of the stratum of every row, given its group and its covariates; refuses what is unknown."""
        columns = []
        for name, cuts in zip(self.covariates, self.edges):
            columns.append(labels_of(covariates[name], cuts))
        if self.compares:
            if groups is None:
                raise DataError(
                    f"The model differs between the groups of {self.group_name!r}; say with groups= which "
                    f"one "
                    "each row belongs to."
                )
            index = [self.group(label) for label in groups]
        else:
            index = [0] * (len(columns[0]) if columns else 0)
        found = np.empty(len(index), np.int64)
        for row, group in enumerate(index):
            labels = tuple(column[row] for column in columns)
            stratum = self.combinations.get((group, labels))
            if stratum is None:
                words = ", ".join(f"{name} {label}" for name, label in zip(self.covariates, labels))
                raise DataError(
                    f"Row number {row + 1} (counted from 1) has the combination {words}, which no row of the "
                    "fit had."
                )
            found[row] = stratum
        return found


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata with the number of the stratum of every row."""

    layout: Layout
    of_row: np.ndarray

    def __post_init__(self) -> None:
        self.of_row.flags.writeable = False


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of words is none")
    return tuple(values)


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value < most:
        raise ValueError(f"{str(value)[:40]} is not one of {most}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]} is not a number")
    return float(value)


def label_of(value: Any) -> str:
    """A label as text: the same for 1, 1.0 and '1'."""
    key = level_key(value)
    if isinstance(key, tuple):
        return str(bool(key[1]))
    if isinstance(key, float | np.floating) and float(key).is_integer():
        return str(int(key))
    return str(key)


def labels_of(values: Sequence[Any] | np.ndarray, cuts: Sequence[float] | None) -> list[str]:
    """Labels of values: of the bins that they are in, where these are cut."""
    if cuts is None:
        return [label_of(value) for value in values]
    bounds = [f"{cut:g}" for cut in cuts]
    names = [f"<= {bounds[0]}"]
    names += [f"> {low} to {high}" for low, high in itertools.pairwise(bounds)] + [f"> {bounds[-1]}"]
    places = np.searchsorted(np.array(cuts), [float(number_of(value)) for value in values], side="left")
    return [names[place] for place in places.tolist()]
