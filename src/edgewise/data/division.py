"""Dividing the rows of a table into strata, by columns of it or by labels beside it.

Columns that divide are no variables. Every combination of their labels is a stratum; a number with many
values is cut into quantile bins first, and combinations with few rows are put together with others of their
group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.labels import is_blank, level_key, number_of
from edgewise.data.problems import NAMES, SHAPE, Fault, counted, listing
from edgewise.data.selection import find
from edgewise.data.strata import MOST_STRATA, Combination, Layout, Strata, label_of, labels_of
from edgewise.errors import DataError

FEWEST_ROWS = 5
# Combinations with few rows that together have more of the rows than this would not be held fixed at all.
MOST_TOGETHER = 0.2
MOST_GROUPS = 12
# More labels of words than this are names rather than kinds.
MOST_LABELS = 50


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
        check_bins(bins)
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
            for column in _columns_of(adjust, len(names)):
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
            cells = labels_given(raw, column.name)
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
            labels = labels_of(cells, cuts)
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
        labels = [label_of(cell) for cell in cells]
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

    def _refuse_most(
        self,
        few: Sequence[Combination],
        own: Sequence[Combination],
        sizes: Mapping[Combination, float],
        group: str,
        covariates: Sequence[str],
    ) -> None:
        """An error where combinations with few rows have too many of the rows of a group together."""
        share = sum(sizes[key] for key in few) / max(sum(sizes[key] for key in own), 1e-9)
        if len(few) < 2 or share <= MOST_TOGETHER:
            return
        within = f" of {group!r}" if group else ""
        raise DataError(
            f"{len(few):,} of the {counted(len(own), 'combination')} of {listing(covariates)}{within} have "
            f"fewer than {FEWEST_ROWS} rows, and together {share:.0%} of all. Put together they would not be "
            "held fixed; adjust for fewer columns, merge labels, or use fewer bins."
        )

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
            self._refuse_most(few, own, sizes, groups[group], covariates)
            host = []
            if few and many and sum(sizes[key] for key in few) < FEWEST_ROWS:
                # Together they are still few: the smallest of the others takes them in.
                host = [many.pop(min(range(len(many)), key=lambda k: sizes[many[k]]))]
            for key in many:
                found[key] = count
                count += 1
            if few:
                found |= dict.fromkeys([*few, *host], count)
                count += 1
            if len(few) + len(host) > 1:
                words = [f"{', '.join(labels)} ({sizes[group, labels]:g})" for _, labels in few]
                within = f" of {groups[group]!r}" if len(groups) > 1 else ""
                joined = f" with {', '.join(host[0][1])}" if host else " together"
                notes.append(
                    f"{counted(len(few), 'combination')} of {listing(covariates)}{within} with fewer than "
                    f"{FEWEST_ROWS} rows put{joined}: {listing(words)}"
                )
        return found


def check_bins(bins: Any) -> None:
    """Refuse what is no number of quantile bins."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 2 <= bins <= 20:
        raise DataError(f"bins must be a whole number from 2 to 20, not {repr(bins)[:60]}.")


def labels_given(given: Any, name: str) -> np.ndarray:
    """One label per row, None where it is masked."""
    try:
        listed = list(given)
    except TypeError:
        raise DataError(f"{name!r} takes one label per row; not {str(given)[:60]!r}.") from None
    cells = np.empty(len(listed), object)
    for row, value in enumerate(listed):
        if value is np.ma.masked:
            continue
        plain = value.item() if isinstance(value, np.generic) else value
        if hasattr(plain, "__len__") and not isinstance(plain, str | bytes):
            raise DataError(
                f"{name!r} takes one label per row, a word or a number; row {row} has {str(plain)[:60]!r}."
            )
        cells[row] = plain
    return cells


def _columns_of(adjust: Any, n_columns: int) -> list[Any]:
    """The columns to adjust for; one label per row is refused, for it would have no name."""
    try:
        listed = list(adjust)
    except TypeError:
        raise DataError(f"adjust takes columns, or labels by name; not {str(adjust)[:60]!r}.") from None
    repeated = hasattr(adjust, "dtype") and len(set(map(str, listed))) < len(listed)
    if len(listed) > n_columns or repeated:
        raise DataError(
            f"adjust takes columns of the table, and {len(listed):,} were given where it has {n_columns:,}. "
            "Labels beside the table, one per row, need a name: adjust={'site': labels}."
        )
    return listed


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
