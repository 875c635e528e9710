"""Markov random fields: biases, cliques and weights; energies, conditionals, codings, files."""

from edgewise.model.mrf import MRF

__all__ = ["MRF"]
