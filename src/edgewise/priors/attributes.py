"""Attributes of variables as a prior of inclusion (2.11): as the user gives it, and for one problem."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edgewise.errors import DataError, FileError
from edgewise.priors.parts import _positive

Table = Mapping[str, Any] | str | PathLike[str]
_TERM = re.compile(r"(?:(same|distance)\s*\(\s*(.+?)\s*\)|(.+))")
MOST_TERMS = 8
LARGEST_DISTANCE = 1e100
# Correlations closer to one than this are rounding.
SAME = 1e-10
_BLANK = ("", "na", "nan", "null", "none", ".")


@dataclass(frozen=True, eq=False)
class AttributeInclusion:
    """What is known of the variables says how likely two are linked: a logistic regression (2.11).

    Parameters
    ----------
    terms : str
        Attributes of a pair, joined by ``+``: ``same(subscale)`` is one where both variables have the same
        label, ``distance(position)`` how far apart two numbers are. A bare name is the first for labels
        and the second for numbers.
    table : mapping, DataFrame or path of a CSV file
        The attributes of the variables: a CSV file with a header whose first column names the variable, a
        DataFrame with the variables as its index, ``{"mood": "affect", ...}`` for a single attribute or
        ``{"subscale": {"mood": "affect", ...}, "position": {...}}``.
    p0 : float
        Prior mean (on the scale of log odds) of the inclusion probability of an average pair.
    p0_sd : float
        Prior standard deviation of its log odds.
    effect_sd : float
        Prior standard deviation of every coefficient: the log odds ratio between pairs that have the
        attribute and pairs that do not, or that differ by one standard deviation of the distance.

    Examples
    --------
    >>> from edgewise.priors import AttributeInclusion, Prior
    >>> scales = {"sad": "mood", "tired": "body", "tense": "mood"}
    >>> Prior(inclusion=AttributeInclusion("subscale", {"subscale": scales})).inclusion.terms
    'subscale'
    """

    terms: str
    table: Any
    p0: float = 0.5
    p0_sd: float = 1.0
    effect_sd: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.terms, str) and self.terms.strip()):
            raise DataError(
                "AttributeInclusion needs the attributes of a pair, for instance "
                f"'same(subscale) + distance(position)'; not {self.terms!r}."
            )
        if not (isinstance(self.p0, int | float | np.number) and 0 < self.p0 < 1):
            raise DataError(f"AttributeInclusion's p0 must lie strictly between 0 and 1, not {self.p0!r}.")
        _positive(self.p0_sd, "AttributeInclusion's p0_sd", 1e-3)
        _positive(self.effect_sd, "AttributeInclusion's effect_sd", 1e-3)

    def columns(self) -> dict[str, dict[str, Any]]:
        """The table: what every attribute is for every variable."""
        found = _read_table(self.table)
        if found and not isinstance(next(iter(found.values())), Mapping):
            names = [name for _, name in parsed_terms(self.terms)]
            if len(set(names)) != 1:
                raise DataError(
                    f"The attributes {', '.join(map(repr, dict.fromkeys(names)))} need a table of each: give "
                    "AttributeInclusion a mapping from attributes to mappings from variables to values."
                )
            found = {names[0]: found}
        return {
            str(attribute): {str(name): _plain(value) for name, value in values.items()}
            for attribute, values in found.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the attributes themselves, wherever they came from."""
        wanted = {name for _, name in parsed_terms(self.terms)}
        table = {name: values for name, values in self.columns().items() if name in wanted}
        return {"terms": self.terms, "table": table, "p0": float(self.p0), "p0_sd": float(self.p0_sd),
                "effect_sd": float(self.effect_sd)}  # fmt: skip

    def design(self, members: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Values of the terms for every pair of variables, neither centred nor scaled, and their names."""
        columns = self.columns()
        made, labels = [], []
        for kind, name in parsed_terms(self.terms):
            if name not in columns:
                known = ", ".join(map(repr, columns)) or "none"
                raise DataError(f"There is no attribute {name!r} in the table; its attributes are {known}.")
            values = _values(name, columns[name], names)
            numbers = _numbers(values)
            if kind == "distance" and numbers is None:
                raise DataError(
                    f"The attribute {name!r} has labels such as {str(values[0])!r}, not numbers, so that "
                    f"there is no distance; use same({name})."
                )
            first, second = members[:, 0], members[:, 1]
            if kind == "distance" or (kind is None and numbers is not None):
                assert numbers is not None
                with np.errstate(over="ignore"):
                    made.append(np.abs(numbers[first] - numbers[second]))
                if not (made[-1] < LARGEST_DISTANCE).all():
                    raise DataError(
                        f"The attribute {name!r} has numbers too far apart for a distance; use other units."
                    )
                labels.append(f"distance of {name}")
            else:
                text = np.array([str(value) for value in values])
                made.append((text[first] == text[second]).astype(float))
                labels.append(f"same {name}")
        if len(set(labels)) < len(labels):
            raise DataError(f"The terms {self.terms!r} name the same twice; name each once.")
        return np.column_stack(made), labels


def parsed_terms(terms: str) -> list[tuple[str | None, str]]:
    """Kinds and attributes of the terms.

    Examples
    --------
    >>> parsed_terms("same(subscale) + distance( position )+ age")
    [('same', 'subscale'), ('distance', 'position'), (None, 'age')]
    """
    result: list[tuple[str | None, str]] = []
    for part in terms.split("+"):
        found = _TERM.fullmatch(part.strip())
        name = found and (found[2] or found[3])
        if not found or not name or (found[3] and re.search(r"[()]", name)):
            raise DataError(
                f"{part.strip()!r} is no attribute of a pair; write same(NAME), distance(NAME) or a name, "
                "joined by +."
            )
        result.append((found[1], name))
    if len(result) > MOST_TERMS:
        raise DataError(f"There are {len(result)} attributes; at most {MOST_TERMS} are possible.")
    return result


def _read_table(table: Any) -> Mapping[str, Any]:
    if isinstance(table, Mapping):
        return table
    if isinstance(table, str | PathLike):
        return _read_csv(Path(table))
    if hasattr(table, "to_dict") and hasattr(table, "index"):
        if hasattr(table, "columns"):
            return {str(name): dict(zip(table.index, table[name])) for name in table.columns}
        return dict(zip(table.index, table))
    raise DataError(
        "The table of attributes must be a mapping, a DataFrame or the path of a CSV file, not "
        f"{type(table).__name__}."
    )


def _read_csv(path: Path) -> dict[str, dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FileError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as a table of attributes: {error}.") from None
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if any(row)]
    if len(rows) < 2 or len(rows[0]) < 2:
        raise FileError(
            f"{path} is no table of attributes: it needs a header, a column with the names of the variables "
            "and a column for each attribute."
        )
    header = [name.strip() for name in rows[0]]
    result: dict[str, dict[str, str]] = {name: {} for name in header[1:]}
    if len(result) < len(header) - 1:
        raise FileError(f"{path} has two columns of the same name; rename one.")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise FileError(f"{path}, row {number}: {len(row)} cells where the header has {len(header)}.")
        variable = row[0].strip()
        if variable in result[header[1]]:
            raise FileError(f"{path}, row {number}: the variable {variable!r} is there twice.")
        for name, value in zip(header[1:], row[1:]):
            result[name][variable] = value.strip()
    return result


def _values(attribute: str, given: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """What the attribute is for every variable; blanks, strangers and a single level are errors."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise DataError(
            f"The attribute {attribute!r} is given for {_listing(unknown)}, and there is no such variable. "
            f"The variables are {_listing(names)}."
        )
    blank = [name for name in names if name not in given or _is_blank(given[name])]
    if blank:
        raise DataError(
            f"The attribute {attribute!r} is blank for {_listing(blank)}; every variable needs one."
        )
    values = [given[name] for name in names]
    if len({str(value) for value in values}) < 2:
        raise DataError(
            f"The attribute {attribute!r} is {str(values[0])!r} for all variables, so that it tells no pair "
            "from another; leave it out."
        )
    return values


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _is_blank(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in _BLANK


def _numbers(values: Sequence[Any]) -> np.ndarray | None:
    """The values as numbers, if all of them are."""
    try:
        found = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None


def _independent(columns: np.ndarray, labels: Sequence[str]) -> None:
    """Refuse attributes of which one says what others say already."""
    if columns.shape[1] < 2:
        return
    columns = columns / np.sqrt((columns**2).sum(axis=0))
    values, directions = np.linalg.eigh(columns.T @ columns)
    if values[0] > SAME * values[-1]:
        return
    # An eigenvector of zero is a sum of the columns that vanishes: those in it depend on each other.
    together = [repr(label) for label, share in zip(labels, directions[:, 0]) if abs(share) > SAME**0.5]
    *several, last = together
    tail = "tell the same pairs apart" if len(together) == 2 else "depend on each other over these pairs"
    raise DataError(
        f"The attributes {', '.join(several)} and {last} {tail}, so that nobody can know which of them "
        "matters; leave one of them out."
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class AttributeLayout:
    """A regression of inclusion over the candidates of one problem.

    Attributes
    ----------
    inclusion : AttributeInclusion
        What the user has given.
    inside : bool array (M,)
        The candidates that belong to the model; others have a probability of their own.
    design : float array (M, k)
        A column of ones, then the terms, each centred over the candidates of the model and distances in
        standard deviations.
    labels : tuple of str
        What the columns are.
    """

    inclusion: AttributeInclusion
    inside: np.ndarray
    design: np.ndarray
    labels: tuple[str, ...]

    @classmethod
    def of(
        cls, inclusion: AttributeInclusion, inside: np.ndarray, members: np.ndarray, names: Sequence[str]
    ) -> AttributeLayout:
        """Lay a regression out over the candidates."""
        plain, labels = inclusion.design(members, names)
        own = plain[inside]
        columns = [np.ones(len(plain))]
        for k, label in enumerate(labels):
            spread = float(own[:, k].std()) if len(own) else 0.0
            if spread == 0.0:
                raise DataError(
                    f"The attribute '{label}' is the same for all pairs to be told apart; leave it out."
                )
            scale = spread if label.startswith("distance") else 1.0
            columns.append((plain[:, k] - own[:, k].mean()) / scale)
        _independent(np.column_stack(columns[1:])[inside], labels)
        return cls(inclusion, inside, np.column_stack(columns), ("average pair", *labels))

    state_kind: ClassVar[type] = np.float64

    @property
    def state_size(self) -> int:
        """How many numbers a draw of the model has: one per coefficient."""
        return len(self.labels)

    @property
    def mean(self) -> np.ndarray:
        """Prior means of the coefficients."""
        from scipy import special

        result = np.zeros(len(self.labels))
        result[0] = special.logit(self.inclusion.p0)
        return result

    @property
    def sd(self) -> np.ndarray:
        """Prior standard deviations of the coefficients."""
        result = np.full(len(self.labels), float(self.inclusion.effect_sd))
        result[0] = self.inclusion.p0_sd
        return result

    def rules(self) -> Any:
        """The model as kernels read it."""
        from edgewise.kernels.attributes import empty_regression

        return empty_regression(self.inside, self.design, self.mean, self.sd)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Coefficients for a chain to start with."""
        return np.asarray(self.mean + self.sd * rng.standard_normal(len(self.labels)))

    def check(self, state: np.ndarray) -> None:
        """Refuse numbers that are no coefficients.

        Raises
        ------
        ValueError
            With what is wrong.
        """
        if not (np.abs(state) < 1e6).all():
            raise ValueError("a coefficient of an attribute is out of its range")

    def check_all(self, states: np.ndarray) -> None:
        """The same of many draws (draws, k)."""
        self.check(states)

    def marginal(self) -> np.ndarray:
        """Prior probability of every candidate, the coefficients integrated out: (M,)."""
        from scipy import special

        places, weights = np.polynomial.hermite_e.hermegauss(60)
        centre = self.design @ self.mean
        spread = np.sqrt(self.design**2 @ self.sd**2)
        weights = weights / weights.sum()
        result: np.ndarray = special.expit(centre[:, None] + spread[:, None] * places) @ weights
        return result

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Inclusion probabilities of all candidates, drawn from the prior."""
        from scipy import special

        return np.asarray(special.expit(self.design @ self.start(rng)))

    def numbers(self) -> np.ndarray:
        """All that the model depends on, for digests."""
        return np.concatenate([self.mean, self.sd, self.inside, self.design.ravel()])
