"""Posterior draws of one chain, stored sparsely: the active cliques of every draw and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        Biases in 0/1 coding; with more levels, the coordinates of all thresholds.
    inclusion_rate : float64 array (draws,)
        The prior inclusion probability p0.
    slab_scale : float64 array (draws,)
        The slab's standard deviation sigma0.
    blocks, block_indptr : arrays, optional
        Of candidates with several parameters, whose ``values`` are strengths: their matrices one after the
        other in the order of ``indices``, and where those of each draw begin.
    model_state : array (draws, k), optional
        What a model of inclusion keeps of each draw: the communities of the variables (int16), or the
        coefficients of their attributes (float64).
    couplings : float64 array (entries, groups), optional
        Where groups are compared: the parameters of each active candidate in every group, alike where it is
        the same in all of them; ``values`` are their means.
    rates : float64 array (draws, 2), optional
        Where groups are compared: the probability q0 that a pair which is present differs, and the standard
        deviation sigma_D of the difference of two groups.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    biases: np.ndarray
    inclusion_rate: np.ndarray
    slab_scale: np.ndarray
    blocks: np.ndarray | None = None
    block_indptr: np.ndarray | None = None
    model_state: np.ndarray | None = None
    couplings: np.ndarray | None = None
    rates: np.ndarray | None = None

    def with_blocks(self, blocks: np.ndarray, block_indptr: np.ndarray) -> Draws:
        """The same draws with the matrices of their candidates."""
        return replace(self, blocks=blocks, block_indptr=block_indptr)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def empty(cls, n_biases: int) -> Draws:
        """No draws of a model with so many biases."""
        return cls(
            np.zeros(1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0),
            np.zeros((0, n_biases)),
            np.zeros(0),
            np.zeros(0),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Draws]) -> Draws:
        """Join consecutive pieces of one chain."""
        starts = np.cumsum([0] + [part.indptr[-1] for part in parts])
        plain = cls(
            np.concatenate([[0]] + [part.indptr[1:] + start for part, start in zip(parts, starts)]).astype(
                np.int64
            ),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.biases for part in parts]),
            np.concatenate([part.inclusion_rate for part in parts]),
            np.concatenate([part.slab_scale for part in parts]),
            model_state=_joined_states(parts),
        )
        couplings = [part.couplings for part in parts if part.couplings is not None]
        if couplings:
            rates = [part.rates for part in parts if part.rates is not None]
            plain = replace(plain, couplings=np.concatenate(couplings), rates=np.concatenate(rates))
        blocks = [part.blocks for part in parts if part.blocks is not None]
        if not blocks:
            return plain
        starts = [part.block_indptr for part in parts if part.block_indptr is not None]
        ends = np.cumsum([0] + [int(start[-1]) for start in starts])
        indptr = np.concatenate([[0]] + [start[1:] + end for start, end in zip(starts, ends)])
        return plain.with_blocks(np.concatenate(blocks), indptr.astype(np.int64))

    def __getitem__(self, rows: slice) -> Draws:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("draws can be sliced with step 1 only")
        stop = max(start, stop)
        low, high = self.indptr[start], self.indptr[stop]
        part = Draws(
            self.indptr[start : stop + 1] - low,
            self.indices[low:high],
            self.values[low:high],
            self.biases[start:stop],
            self.inclusion_rate[start:stop],
            self.slab_scale[start:stop],
            model_state=None if self.model_state is None else self.model_state[start:stop],
            couplings=None if self.couplings is None else self.couplings[low:high],
            rates=None if self.rates is None else self.rates[start:stop],
        )
        if self.blocks is None or self.block_indptr is None:
            return part
        first, last = self.block_indptr[start], self.block_indptr[stop]
        return part.with_blocks(self.blocks[first:last], self.block_indptr[start : stop + 1] - first)

    def of_group(self, group: int) -> Draws:
        """The draws of one group: its parameters in the place of the means, and the same biases."""
        assert self.couplings is not None
        values = np.ascontiguousarray(self.couplings[:, group])
        return replace(self, values=values, couplings=None, rates=None)

    def differences(self, first: int = 0, second: int = 1) -> Draws:
        """What the groups do not share: the candidates that differ, by how much `second` exceeds `first`.

        q0 and sigma_D stand in the places of p0 and sigma0.
        """
        assert self.couplings is not None
        assert self.rates is not None
        apart = (self.couplings != self.couplings[:, :1]).any(axis=1)
        return Draws(
            np.concatenate([[0], np.cumsum(apart)])[self.indptr].astype(np.int64),
            self.indices[apart],
            self.couplings[apart, second] - self.couplings[apart, first],
            self.biases[:, :0],
            self.rates[:, 0],
            self.rates[:, 1],
        )

    @property
    def n_edges(self) -> np.ndarray:
        """Number of active cliques of each draw."""
        return np.diff(self.indptr)

    def active(self, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and values of the active cliques of one draw."""
        part = slice(self.indptr[draw], self.indptr[draw + 1])
        return self.indices[part], self.values[part]

    def parameters(self, draw: int, dimension: np.ndarray) -> np.ndarray:
        """All parameters of the active cliques of one draw, one clique after the other, as models want them.

        `dimension` is the number of parameters of every candidate.
        """
        indices, values = self.active(draw)
        if self.blocks is None or self.block_indptr is None:
            return values
        size = dimension[indices]
        result = np.repeat(values, size)
        result[np.repeat(size > 1, size)] = self.blocks[self.block_indptr[draw] : self.block_indptr[draw + 1]]
        return result

    def column(self, clique: int) -> np.ndarray:
        """Parameter of one clique in every draw, zero where it is absent."""
        result = np.zeros(len(self))
        hits = np.flatnonzero(self.indices == clique)
        result[np.searchsorted(self.indptr, hits, side="right") - 1] = self.values[hits]
        return result


def _joined_states(parts: Sequence[Draws]) -> np.ndarray | None:
    """The states of all parts, if those that have draws have them."""
    known = [part.model_state for part in parts if part.model_state is not None]
    return np.concatenate(known) if known else None


def block_starts(indptr: np.ndarray, indices: np.ndarray, dimension: np.ndarray) -> np.ndarray:
    """Where the matrices of every draw begin, and where the last end: int64 (draws + 1,).

    `dimension` is the number of parameters of every candidate.
    """
    size = np.where(dimension > 1, dimension, 0)[indices]
    return np.asarray(np.concatenate([[0], np.cumsum(size)])[indptr], np.int64)
