"""Rows divided into strata: the groups that are compared, and the combinations of covariates adjusted for.

Columns that divide are no variables. Every combination of their labels is a stratum; a number with many
values is cut into quantile bins first, and combinations with few rows are put together with others of their
group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.data.labels import is_blank, level_key, number_of
from edgewise.data.problems import NAMES, SHAPE, Fault, counted, listing
from edgewise.data.selection import find
from edgewise.errors import DataError

BINS = 4
FEWEST_ROWS = 5
MOST_GROUPS = 12
MOST_STRATA = 64
# More labels of words than this are names rather than kinds.
MOST_LABELS = 50

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
            columns.append(_labels(covariates[name], cuts))
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
                raise DataError(f"Row {row} has the combination {words}, which no row of the fit had.")
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


def _label(value: Any) -> str:
    """A label as text: the same for 1, 1.0 and '1'."""
    key = level_key(value)
    if isinstance(key, tuple):
        return str(bool(key[1]))
    if isinstance(key, float | np.floating) and float(key).is_integer():
        return str(int(key))
    return str(key)


def _labels(values: Sequence[Any] | np.ndarray, cuts: Sequence[float] | None) -> list[str]:
    if cuts is None:
        return [_label(value) for value in values]
    bounds = [f"{cut:g}" for cut in cuts]
    names = [f"<= {bounds[0]}"]
    names += [f"> {low} to {high}" for low, high in itertools.pairwise(bounds)] + [f"> {bounds[-1]}"]
    places = np.searchsorted(np.array(cuts), [float(number_of(value)) for value in values], side="left")
    return [names[place] for place in places.tolist()]


@dataclass
class _Column:
    """A column that divides the rows: in the table, or given beside it."""

    name: str
    place: int | None
    values: Any
    is_group: bool
    blank: frozenset[Any] = frozenset()


class Division:
    """What the user wants the rows to be divided by.

    `groups` is a column or one label per row; `adjust` some columns, or a mapping or DataFrame with one
    label per row in each; `bins` the number of quantile bins of a covariate that is a number.
    """

    def __init__(
        self, names: Sequence[str], groups: Any, adjust: Any, bins: int, problems: list[Fault]
    ) -> None:
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 2 <= bins <= 20:
            raise DataError(f"bins must be a whole number from 2 to 20, not {bins!r}.")
        self.bins = int(bins)
        self.columns: list[_Column] = []
        if groups is not None:
            self._add(names, groups, "groups", True, problems)
        if isinstance(adjust, str | int | np.integer):
            adjust = [adjust]
        if isinstance(adjust, Mapping) or hasattr(adjust, "columns"):
            for name in adjust.keys() if isinstance(adjust, Mapping) else adjust.columns:
                self.columns.append(_Column(str(name), None, adjust[name], False))
        elif adjust is not None:
            for column in adjust:
                self._add(names, column, "adjust", False, problems)
        given = [column.name for column in self.columns]
        for name in {name for name in given if given.count(name) > 1}:
            problems.append(Fault(NAMES, f"{name!r} divides the rows twice; name it once."))

    def _add(
        self, names: Sequence[str], given: Any, argument: str, is_group: bool, problems: list[Fault]
    ) -> None:
        if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
            place = find(names, given if isinstance(given, str) else int(given), argument, problems)
            if place is not None:
                self.columns.append(_Column(names[place], place, None, is_group))
            return
        if not isinstance(given, Iterable):
            raise DataError(f"{argument} takes a column, or one label per row; not {given!r}.")
        name = getattr(given, "name", None)
        self.columns.append(_Column(str(name) if name is not None else "group", None, given, is_group))

    @property
    def places(self) -> list[int]:
        """Positions in the table of the columns that divide it."""
        return [column.place for column in self.columns if column.place is not None]

    def read(self, table: Any, wishes: Any, problems: list[Fault]) -> None:
        """Take the labels of all rows; what is wrong with them goes to `problems`."""
        self.cells: list[np.ndarray] = []
        self.blanks: list[np.ndarray] = []
        for column in self.columns:
            raw = column.values if column.place is None else table.raw(column.place)
            cells = np.empty(len(raw), object)
            cells[:] = [value.item() if isinstance(value, np.generic) else value for value in raw]
            if len(cells) != table.n_rows:
                problems.append(
                    Fault(
                        SHAPE,
                        f"{column.name!r} has {counted(len(cells), 'label')}; give one for each of the "
                        f"{table.n_rows:,} rows.",
                    )
                )
                cells = np.full(table.n_rows, "", object)
            said = wishes.of(column.place).blank if column.place is not None else frozenset()
            self.cells.append(cells)
            self.blanks.append(np.array([is_blank(cell) or level_key(cell) in said for cell in cells], bool))

    def incomplete(
        self, table: Any, dropping: bool, problems: list[Fault], notes: list[str]
    ) -> np.ndarray | None:
        """Rows without a label of their own: an error, or the rows to leave out."""
        missing = np.zeros(table.n_rows, bool)
        for column, blank in zip(self.columns, self.blanks):
            if not blank.any():
                continue
            count, first = int(blank.sum()), table.where(int(np.flatnonzero(blank)[0]))
            what = "group" if column.is_group else "covariate"
            if dropping and not blank.all():
                notes.append(f"{counted(count, 'row')} without {column.name!r} left out")
                missing |= blank
            else:
                problems.append(
                    Fault(
                        SHAPE,
                        f"the {what} {column.name!r} is blank in {counted(count, 'row')} (first in "
                        f"{first}): to "
                        "which stratum these belong is not known; leave them out with missing='drop', or "
                        "fill "
                        "them in.",
                    )
                )
        return missing if missing.any() else None

    def strata(self, keep: np.ndarray | None, weights: np.ndarray | None, notes: list[str]) -> Strata:
        """Divide the rows that count."""
        rows = np.arange(len(self.cells[0])) if keep is None else np.flatnonzero(keep)
        share = np.ones(len(rows)) if weights is None else weights[rows]
        groups, group_name, index = ("",), "", np.zeros(len(rows), np.int64)
        covariates, edges, columns = [], [], []
        for column, cells in zip(self.columns, self.cells):
            cells = cells[rows]
            if column.is_group:
                groups, index = self._groups(column.name, cells, share)
                group_name = column.name
                continue
            cuts = self._cuts(cells)
            labels = _labels(cells, cuts)
            known = sorted(set(labels))
            if len(known) < 2:
                raise DataError(
                    f"The covariate {column.name!r} is always {known[0]!r} in the rows that count; there is "
                    "nothing to adjust for."
                )
            if len(known) > MOST_LABELS:
                raise DataError(
                    f"The covariate {column.name!r} has {len(known):,} labels, such as {known[0]!r}; "
                    f"adjust for "
                    "columns with few, and merge labels beforehand."
                )
            if cuts is not None:
                notes.append(
                    f"{column.name} cut into {len(cuts) + 1} bins at {listing([f'{cut:g}' for cut in cuts])}"
                )
            covariates.append(column.name)
            edges.append(cuts)
            columns.append(labels)
        combinations = self._combinations(index, columns, share, groups, covariates, notes)
        found = np.array(
            [combinations[int(k), tuple(c[row] for c in columns)] for row, k in enumerate(index)], np.int64
        )
        count = max(combinations.values()) + 1
        if count > MOST_STRATA:
            raise DataError(
                f"{listing([*([group_name] if group_name else []), *covariates])} divide the rows into "
                f"{count:,} "
                f"strata; at most {MOST_STRATA} are possible. Adjust for fewer columns, or use fewer bins."
            )
        group_of = [0] * count
        for (group, _), stratum in combinations.items():
            group_of[stratum] = group
        total = np.bincount(found, weights=share, minlength=count)
        layout = Layout(
            group_name=group_name,
            groups=groups,
            covariates=tuple(covariates),
            edges=tuple(edges),
            combinations=combinations,
            group_of=tuple(group_of),
            rows=tuple(total.tolist()),
            bins=self.bins,
        )
        return Strata(layout, found)

    def _groups(self, name: str, cells: np.ndarray, share: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        labels = [_label(cell) for cell in cells]
        known = _ordered(set(labels))
        if not 2 <= len(known) <= MOST_GROUPS:
            what = f"one label only ({known[0]!r})" if len(known) < 2 else f"{len(known):,} labels"
            raise DataError(
                f"{name!r} has {what} in the rows that count; two to {MOST_GROUPS} groups can be compared."
            )
        place = {label: k for k, label in enumerate(known)}
        index = np.array([place[label] for label in labels], np.int64)
        sizes = np.bincount(index, weights=share, minlength=len(known))
        small = [f"{known[k]!r} ({sizes[k]:g})" for k in np.flatnonzero(sizes < FEWEST_ROWS)]
        if small:
            raise DataError(
                f"Groups of {name!r} with fewer than {FEWEST_ROWS} rows cannot be compared: "
                f"{listing(small)}; "
                "leave their rows out, or merge groups."
            )
        return tuple(known), index

    def _cuts(self, cells: np.ndarray) -> tuple[float, ...] | None:
        """Bounds of the quantile bins of a number with more values than bins."""
        numbers = [number_of(cell) for cell in cells]
        if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
            return None
        values = np.array(numbers, float)
        if len(np.unique(values)) <= self.bins:
            return None
        cuts = np.unique(np.quantile(values, np.arange(1, self.bins) / self.bins, method="lower"))
        return tuple(float(cut) for cut in cuts if cut < values.max())

    def _combinations(
        self,
        index: np.ndarray,
        columns: list[list[str]],
        share: np.ndarray,
        groups: Sequence[str],
        covariates: Sequence[str],
        notes: list[str],
    ) -> dict[Combination, int]:
        """Strata of the combinations that occur, those with few rows put together within their group."""
        sizes: dict[Combination, float] = {}
        for row, group in enumerate(index.tolist()):
            key = group, tuple(column[row] for column in columns)
            sizes[key] = sizes.get(key, 0.0) + float(share[row])
        found: dict[Combination, int] = {}
        count = 0
        for group in range(len(groups)):
            own = sorted((key for key in sizes if key[0] == group), key=lambda key: _orders(key[1]))
            few = [key for key in own if sizes[key] < FEWEST_ROWS]
            many = [key for key in own if sizes[key] >= FEWEST_ROWS]
            if few and many and sum(sizes[key] for key in few) < FEWEST_ROWS:
                # Together they are still few: the smallest of the others takes them in.
                few.append(many.pop(min(range(len(many)), key=lambda k: sizes[many[k]])))
            for key in many:
                found[key] = count
                count += 1
            if few:
                found |= dict.fromkeys(few, count)
                count += 1
            if len(few) > 1:
                words = [f"{', '.join(labels)} ({sizes[group, labels]:g})" for _, labels in few]
                within = f" of {groups[group]!r}" if len(groups) > 1 else ""
                notes.append(
                    f"combinations of {listing(covariates)}{within} with fewer than {FEWEST_ROWS} rows put "
                    f"together: {'; '.join(words)}"
                )
        return found


def _orders(labels: Iterable[str]) -> list[tuple[int, float, str]]:
    """Numbers by size, before words by letters."""
    result = []
    for label in labels:
        number = number_of(label.removeprefix("<= ").removeprefix("> ").split(" to ")[0])
        numeric = isinstance(number, int | float) and not isinstance(number, bool)
        extra = 0.5 if " to " in label else 0.75 if label.startswith("> ") else 0.0
        result.append((0, float(number) + 1e-9 * extra, label) if numeric else (1, 0.0, label))
    return result


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: _orders([label]))
