"""The cells that were blank and what the data say of them: P(level | data), drawn along with the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.blanks import Patterns
from edgewise.errors import DataError
from edgewise.features import Features
from edgewise.posterior.checks import integers, numbers
from edgewise.scales import Scales

if TYPE_CHECKING:
    import pandas

# Sums over the iterations: of the probability of a level, of its square, of its product with the one before.
SUMS = 3
# Chains differ in a probability where their means are further apart than this, as a Monte Carlo error.
POOR_ERROR = 0.02
POOR_R_HAT = 1.05


@dataclass(frozen=True, eq=False)
class Imputed:
    """Blank cells that were imputed.

    Rows with the same answers and the same blanks have the same probabilities. In every iteration the
    probability of each level given the parameters and the row's answers is known; their mean over all
    iterations after warm-up is P(level | data), with less noise than a count of what was drawn.

    Attributes
    ----------
    rows : int array (R,)
        The rows with blanks, numbered from 0 as in the source of the fit.
    pattern : int array (R,)
        Which pattern of answers and blanks each has.
    start, variables : int arrays (G + 1,) and (cells,)
        ``variables[start[g] : start[g + 1]]`` are the blank ones of pattern g.
    sums : float array (chains, 3, cells, levels)
        Per cell of a pattern and level, summed over the iterations: the probability, its square, and its
        product with that of the iteration before.
    ticks : float array (chains,)
        Number of iterations.
    names, levels : tuples
        Of the variables of the posterior.

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF, datasets
    >>> people = datasets.diabetes()[["age", "body mass", "HDL", "progression"]].astype(object)
    >>> people.loc[3, "progression"] = None
    >>> model = SpikeSlabMRF(missing="impute", random_state=1, progress=False).fit(people)
    >>> model.posterior_.imputed
    Imputed(1 cell of 1 row)
    >>> found = model.posterior_.imputed.table
    >>> found[["row", "variable"]].drop_duplicates().values.tolist()
    [[3, 'progression']]
    >>> sorted(model.posterior_.imputed.chance(3, "progression"))
    [0, 1]
    """

    rows: np.ndarray
    pattern: np.ndarray
    start: np.ndarray
    variables: np.ndarray
    sums: np.ndarray
    ticks: np.ndarray
    names: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(
        cls,
        patterns: Patterns,
        places: np.ndarray | None,
        states: Sequence[Mapping[str, np.ndarray]],
        names: Sequence[str],
        levels: Sequence[tuple[Any, ...]],
    ) -> Imputed | None:
        """What the chains in these states have found; None while they are in warm-up."""
        if not all("blanks.ticks" in state and state["blanks.ticks"][0] > 0 for state in states):
            return None
        return cls(
            patterns.rows if places is None else places[patterns.rows],
            patterns.pattern,
            patterns.start,
            patterns.variables,
            np.stack([state["blanks.tracks"][:SUMS] for state in states]),
            np.array([float(state["blanks.ticks"][0]) for state in states]),
            tuple(names),
            tuple(levels),
        )

    @cached_property
    def n_cells(self) -> int:
        """Number of blank cells, all rows counted."""
        return int(np.diff(self.start)[self.pattern].sum())

    @property
    def n_rows(self) -> int:
        """Number of rows with blanks."""
        return len(self.rows)

    @cached_property
    def _means(self) -> np.ndarray:
        """Probabilities by chain: (chains, cells, levels)."""
        return np.asarray(self.sums[:, 0] / self.ticks[:, None, None])

    @cached_property
    def probabilities(self) -> np.ndarray:
        """P(level | data) of every cell of a pattern: (cells, levels)."""
        return np.asarray(self._means.mean(axis=0))

    @cached_property
    def _within(self) -> np.ndarray:
        """Variance of the probabilities within the chains."""
        square = self.sums[:, 1] / self.ticks[:, None, None]
        return np.asarray(np.maximum(square - self._means**2, 0.0).mean(axis=0))

    @cached_property
    def _between(self) -> np.ndarray:
        """Variance of the chains' means."""
        return np.asarray(self._means.var(axis=0, ddof=1)) if len(self.ticks) > 1 else 0.0 * self._within

    @cached_property
    def effective(self) -> np.ndarray:
        """Effective draws of every probability, by its correlation from one iteration to the next."""
        steps = np.maximum(self.ticks - 1, 1.0)[:, None, None]
        lagged = (self.sums[:, 2] / steps - self._means**2).mean(axis=0)
        rho = np.divide(lagged, self._within, out=np.zeros_like(lagged), where=self._within > 1e-12)
        rho = np.clip(rho, 0.0, 1.0 - 1.0 / max(self.ticks.min(), 2.0))
        return np.asarray(self.ticks.sum() * (1 - rho) / (1 + rho))

    @cached_property
    def errors(self) -> np.ndarray:
        """Monte Carlo error of every probability: within the chains or between them, what is larger."""
        return np.asarray(np.sqrt(np.maximum(self._within / self.effective, self._between / len(self.ticks))))

    @cached_property
    def r_hat(self) -> np.ndarray:
        """Agreement of the chains on every probability; 1 where it hardly moves."""
        moves = self._within > 1e-12
        ratio = np.divide(self._between, self._within, out=np.zeros_like(self._within), where=moves)
        return np.asarray(np.sqrt(1.0 + ratio))

    @property
    def blanks(self) -> dict[str, int]:
        """Number of imputed cells of every variable that has any."""
        count = np.zeros(len(self.names), np.int64)
        times = np.bincount(self.pattern, minlength=len(self.start) - 1)
        np.add.at(count, self.variables, np.repeat(times, np.diff(self.start)))
        return {name: int(n) for name, n in zip(self.names, count) if n}

    @cached_property
    def slowest(self) -> tuple[int, int]:
        """The cell of a pattern, and its level, whose probability has the largest Monte Carlo error."""
        cell, level = np.unravel_index(int(self.errors.argmax()), self.errors.shape)
        return int(cell), int(level)

    @cached_property
    def mixing(self) -> str:
        """How well the chains know the probabilities, in a sentence."""
        cell, level = self.slowest
        variable = int(self.variables[cell])
        return (
            f"The Monte Carlo error of P(level) is at most {self.errors[cell, level]:.3f} "
            f"({self.names[variable]!r} = {str(self.levels[variable][level])!r}; {self.effective.min():,.0f} "
            "effective draws of the slowest cell)."
        )

    def _cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and cell of a pattern of every blank, in the order of the rows."""
        size = np.diff(self.start)[self.pattern]
        row = np.repeat(self.rows, size)
        first = np.repeat(self.start[self.pattern], size)
        within = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
        return row, first + within

    def lines(self) -> list[tuple[int, str, Any, float, float]]:
        """Row, variable, level, probability and its error, for every level of every blank cell."""
        found = []
        for row, cell in zip(*(part.tolist() for part in self._cells())):
            variable = int(self.variables[cell])
            for c, label in enumerate(self.levels[variable]):
                chance, error = float(self.probabilities[cell, c]), float(self.errors[cell, c])
                found.append((row, self.names[variable], label, chance, error))
        return found

    @cached_property
    def table(self) -> pandas.DataFrame:
        """One line per level of every blank cell: row (from 0), variable, level, probability, mcse."""
        import pandas

        return pandas.DataFrame(self.lines(), columns=["row", "variable", "level", "probability", "mcse"])

    def chance(self, row: int, variable: str) -> dict[Any, float]:
        """P(level | data) of one blank cell, by label."""
        for found, cell in zip(*self._cells()):
            if found == row and self.names[self.variables[cell]] == variable:
                labels = self.levels[self.variables[cell]]
                return {label: float(self.probabilities[cell, c]) for c, label in enumerate(labels)}
        raise DataError(f"Row {row} is not blank in {variable!r}; the table lists the cells that are.")

    def to_arrays(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """What a file of the posterior holds of it, with the names of the axes."""
        return {
            "imputed_row": (("imputed_line",), self.rows.astype(np.int32)),
            "imputed_pattern": (("imputed_line",), self.pattern.astype(np.int32)),
            "imputed_start": (("imputed_pattern_edge",), self.start.astype(np.int32)),
            "imputed_variable": (("imputed_cell",), self.variables.astype(np.int32)),
            "imputed_sums": (("chain", "moment", "imputed_cell", "level"), self.sums.astype(np.float64)),
            "imputed_ticks": (("chain",), self.ticks.astype(np.float64)),
        }

    @classmethod
    def checked(
        cls,
        arrays: Mapping[str, np.ndarray],
        chains: int,
        features: Features,
        scales: Scales | None,
        names: Sequence[str],
        levels: Sequence[tuple[Any, ...]],
    ) -> Imputed | None:
        """What a file holds, if it is that; None where it holds nothing of the kind.

        Raises
        ------
        ValueError, TypeError, KeyError
            With what is wrong.
        """
        if "imputed_row" not in arrays:
            return None
        parts = ("imputed_row", "imputed_pattern", "imputed_start", "imputed_variable")
        rows, pattern, start, variables = (integers(arrays, name, 1) for name in parts)
        sums, ticks = numbers(arrays, "imputed_sums", 4), numbers(arrays, "imputed_ticks", 1)
        width = 2 if scales is None else int(scales.levels.max())
        if len(start) < 2 or start[0] != 0 or (np.diff(start) < 1).any() or start[-1] != len(variables):
            raise ValueError("the blank cells of its rows are not in order")
        if variables.min() < 0 or variables.max() >= features.n_variables:
            raise ValueError("a variable with blanks does not exist")
        within = np.ones(len(variables), bool)
        within[start[:-1]] = False
        if (np.diff(variables, prepend=-1)[within] < 1).any():
            raise ValueError("the blank cells of a row are not in the order of the variables")
        if len(rows) < 1 or len(rows) != len(pattern) or rows.min() < 0:
            raise ValueError(f"it has {len(rows)} rows with blanks and the patterns of {len(pattern)}")
        if (np.diff(rows) < 1).any():
            raise ValueError("its rows with blanks are not in order")
        if pattern.min() < 0 or pattern.max() >= len(start) - 1:
            raise ValueError("a row with blanks has a pattern that does not exist")
        if sums.shape != (chains, SUMS, len(variables), width) or ticks.shape != (chains,):
            raise ValueError(f"the sums of its blank cells have the shape {sums.shape}")
        if not (np.isfinite(ticks).all() and (ticks >= 1).all()):
            raise ValueError("the iterations that drew its blank cells are counted wrongly")
        if not ((sums >= 0) & (sums <= (ticks * (1 + 1e-9))[:, None, None, None])).all():
            raise ValueError("a probability of a blank cell is none")
        own = np.full(len(variables), 2) if scales is None else scales.levels[variables]
        total = sums[:, 0].sum(axis=2)
        beyond = sums[:, :, np.arange(width) >= own[:, None]]
        if beyond.any() or (np.abs(total - ticks[:, None]) > 1e-6 * ticks[:, None]).any():
            raise ValueError("the probabilities of a blank cell are not those of its levels")
        return cls(rows, pattern, start, variables, sums, ticks, tuple(names), tuple(levels))

    def __repr__(self) -> str:
        cells = f"{self.n_cells:,} cell{'s' * (self.n_cells != 1)}"
        return f"Imputed({cells} of {self.n_rows:,} row{'s' * (self.n_rows != 1)})"


Finding = tuple[int, str, str]


def judged(imputed: Imputed | None) -> Finding:
    """Whether the probabilities of the blank cells can be quoted (as in ``diagnostics.py``)."""
    if imputed is None:
        return 0, "", ""
    error = float(imputed.errors.max())
    apart = imputed._between / len(imputed.ticks) > POOR_ERROR**2
    r_hat = float(np.where(apart, imputed.r_hat, 1.0).max())
    if error <= POOR_ERROR or r_hat < POOR_R_HAT:
        return 0, "", ""
    return (
        1,
        "the blank cells are not settled",
        f"The probabilities of the levels of some blank cells have Monte Carlo errors of up to {error:.3f} "
        f"(R-hat {r_hat:.2f}); draw more before quoting single ones.",
    )
