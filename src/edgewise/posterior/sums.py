"""What engines add up for every candidate while they run, by name and with named axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgewise.errors import DataError

AXES = ("chain", "clique")


@dataclass(frozen=True, eq=False)
class EdgeSums(Mapping[str, np.ndarray]):
    """Totals per chain and candidate: a mapping from the name of a quantity to its array.

    The quantities that today's engines report: ``tries``, the times the candidate's indicator was decided;
    ``inclusion``, the sum over the tries of the probability that it was active afterwards (Rao-Blackwell);
    ``births`` and ``deaths``, the accepted ones. Others may join them without a new file format, with axes of
    their own behind the common two.

    Attributes
    ----------
    arrays : mapping of str to array
        One array per quantity.
    axes : mapping of str to tuple of str
        The names of its axes; the first two are always ``chain`` and ``clique``.

    Examples
    --------
    >>> sums = EdgeSums.of([{"tries": np.array([4.0, 2.0])}, {"tries": np.array([3.0, 5.0])}])
    >>> sums["tries"].sum(axis=0), sums.axes["tries"]
    (array([7., 7.]), ('chain', 'clique'))
    """

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.arrays.keys() != self.axes.keys():
            raise DataError("Every quantity of the edge sums needs an array and the names of its axes.")
        for name, values in self.arrays.items():
            axes = self.axes[name]
            if axes[: len(AXES)] != AXES or len(axes) != values.ndim:
                raise DataError(
                    f"The edge sum {name!r} has {values.ndim} axes and the names {', '.join(axes)}; "
                    f"give one name per axis, beginning with {' and '.join(AXES)}."
                )

    @classmethod
    def of(cls, chains: Sequence[Mapping[str, np.ndarray]]) -> EdgeSums:
        """Stack what the engine of each chain reports: arrays (M,); quantities of all chains are kept."""
        names = [name for name in chains[0] if all(name in chain for chain in chains)] if chains else []
        values = {name: np.array([chain[name] for chain in chains], np.float64) for name in names}
        return cls(values, dict.fromkeys(names, AXES))

    def by_chain(self) -> list[dict[str, np.ndarray]]:
        """The quantities of each chain, as :meth:`of` takes them."""
        count = len(next(iter(self.arrays.values()))) if self.arrays else 0
        return [{name: values[chain] for name, values in self.arrays.items()} for chain in range(count)]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)
