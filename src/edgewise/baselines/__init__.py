"""The L1 baselines: node-wise and pseudo-likelihood lasso, with their solver."""

from edgewise.baselines.lassos import NodewiseLasso, PseudoLikelihoodLasso

__all__ = ["NodewiseLasso", "PseudoLikelihoodLasso"]
