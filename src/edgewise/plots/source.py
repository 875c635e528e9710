"""One view of everything that has edges: a posterior, an estimator, a single model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.posterior.verdict import categories

if TYPE_CHECKING:
    from edgewise.posterior.posterior import Posterior


@dataclass(frozen=True, eq=False)
class EdgeView:
    """The pairs of a model as the plots need them.

    Attributes
    ----------
    names : tuple of str
        Names of the variables.
    pairs : int array (K, 2)
        Ends of the pairs that are candidates.
    inclusion : float array (K,)
        Inclusion probability; one for every edge of a single model.
    strength : float array (K,)
        Coupling in 0/1 coding: the posterior mean given inclusion, or the parameter of a single model.
    evidence : str array (K,) or None
        Evidence category; None for a single model, which has none.
    """

    names: tuple[str, ...]
    pairs: np.ndarray
    inclusion: np.ndarray
    strength: np.ndarray
    evidence: np.ndarray | None

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """Symmetric (p, p) matrix of one value per pair, zero elsewhere."""
        result = np.zeros((len(self.names), len(self.names)))
        result[self.pairs[:, 0], self.pairs[:, 1]] = values
        return result + result.T


def as_posterior(source: Any) -> Posterior:
    """Return the posterior in `source`: a posterior, or a fitted estimator that carries one."""
    found: Posterior = getattr(source, "posterior_", source)
    if not hasattr(found, "edge_values"):
        raise DataError(
            f"This plot needs a posterior (or a fitted SpikeSlabMRF) and was given {type(source).__name__}."
        )
    return found


def edge_view(source: Any, thresholds: tuple[float, float] = (3, 10)) -> EdgeView:
    """Make the view of a posterior, a fitted estimator or an :class:`~edgewise.MRF`."""
    if hasattr(source, "posterior_") or hasattr(source, "edge_values"):
        return _posterior_view(as_posterior(source), thresholds)
    model = getattr(source, "model_", source)
    if not hasattr(model, "cliques"):
        raise DataError(
            "This plot needs a posterior, a fitted estimator or an MRF and was given "
            f"{type(source).__name__}."
        )
    kept = [k for k, clique in enumerate(model.cliques) if len(clique) == 2 and model.weights[k] != 0]
    names = model.names or tuple(f"x{i}" for i in range(model.n_variables))
    return EdgeView(
        tuple(map(str, names)),
        np.array([model.cliques[k] for k in kept], int).reshape(-1, 2),
        np.ones(len(kept)),
        np.asarray(model.weights, float)[kept],
        None,
    )


def _posterior_view(posterior: Posterior, thresholds: tuple[float, float]) -> EdgeView:
    members = posterior.features.members
    pair = np.ones(len(members), bool) if posterior.features.pairs_only else members[:, 2] < 0
    return EdgeView(
        tuple(map(str, posterior.names)),
        members[pair][:, :2].astype(int),
        posterior.edge_values("inclusion")[pair],
        conditional_means(posterior)[pair],
        categories(posterior, thresholds)[pair],
    )


def conditional_means(posterior: Posterior) -> np.ndarray:
    """Posterior mean of every candidate's parameter given that it is included; zero where it never was."""
    means: np.ndarray = np.nan_to_num(posterior.edge_values("mean_if_included"))
    return means
