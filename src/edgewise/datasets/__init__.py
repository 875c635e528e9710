"""Models with a known truth and real binary data that are always at hand."""

from __future__ import annotations

from edgewise.datasets.simulated import block_model, lattice_model, random_model

__all__ = ["block_model", "lattice_model", "random_model"]
