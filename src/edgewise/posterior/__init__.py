"""Draws of all chains -> probabilities, Bayes factors, summaries, diagnostics, files."""

from edgewise.posterior.posterior import Posterior, load_posterior

__all__ = ["Posterior", "load_posterior"]
