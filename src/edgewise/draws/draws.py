"""Posterior draws of one chain, stored sparsely: the active cliques of every draw and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Draws:
    """Kept draws of one chain.

    Attributes
    ----------
    indptr : int64 array (draws + 1,)
        Draw ``t`` owns the entries ``indptr[t]:indptr[t + 1]`` of ``indices`` and ``values``.
    indices : int32 array
        Indices of the active candidate cliques of each draw, ascending within a draw.
    values : float64 array
        Their parameters ``A`` in 0/1 coding (never exactly zero).
    biases : float64 array (draws, p)
        Biases in 0/1 coding.
    inclusion_rate : float64 array (draws,)
        The prior inclusion probability p0.
    slab_scale : float64 array (draws,)
        The slab's standard deviation sigma0.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    biases: np.ndarray
    inclusion_rate: np.ndarray
    slab_scale: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def empty(cls, n_variables: int) -> Draws:
        """No draws of a model with `n_variables` variables."""
        return cls(
            np.zeros(1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0),
            np.zeros((0, n_variables)),
            np.zeros(0),
            np.zeros(0),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Draws]) -> Draws:
        """Join consecutive pieces of one chain."""
        starts = np.cumsum([0] + [part.indptr[-1] for part in parts])
        return cls(
            np.concatenate([[0]] + [part.indptr[1:] + start for part, start in zip(parts, starts)]).astype(
                np.int64
            ),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.biases for part in parts]),
            np.concatenate([part.inclusion_rate for part in parts]),
            np.concatenate([part.slab_scale for part in parts]),
        )

    def __getitem__(self, rows: slice) -> Draws:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("draws can be sliced with step 1 only")
        stop = max(start, stop)
        low, high = self.indptr[start], self.indptr[stop]
        return Draws(
            self.indptr[start : stop + 1] - low,
            self.indices[low:high],
            self.values[low:high],
            self.biases[start:stop],
            self.inclusion_rate[start:stop],
            self.slab_scale[start:stop],
        )

    @property
    def n_edges(self) -> np.ndarray:
        """Number of active cliques of each draw."""
        return np.diff(self.indptr)

    def active(self, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and values of the active cliques of one draw."""
        part = slice(self.indptr[draw], self.indptr[draw + 1])
        return self.indices[part], self.values[part]

    def column(self, clique: int) -> np.ndarray:
        """Parameter of one clique in every draw, zero where it is absent."""
        result = np.zeros(len(self))
        hits = np.flatnonzero(self.indices == clique)
        result[np.searchsorted(self.indptr, hits, side="right") - 1] = self.values[hits]
        return result
