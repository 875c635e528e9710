"""edgewise: which binary variables depend on each other directly, and how sure we are.

Bayesian structure learning for Markov random fields with a spike-and-slab prior. Start with
:class:`SpikeSlabMRF`; everything public is loaded when it is first used, so that importing the
package costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from edgewise import _moved  # noqa: F401 - old addresses of modules
from edgewise._version import __version__

if TYPE_CHECKING:
    from edgewise import datasets as datasets
    from edgewise import exact as exact
    from edgewise.baselines import NodewiseLasso as NodewiseLasso
    from edgewise.baselines import PseudoLikelihoodLasso as PseudoLikelihoodLasso
    from edgewise.estimators import SpikeSlabMRF as SpikeSlabMRF
    from edgewise.model import MRF as MRF
    from edgewise.posterior import Posterior as Posterior
    from edgewise.posterior import load_posterior as load_posterior

_HOME = {
    "SpikeSlabMRF": "edgewise.estimators",
    "NodewiseLasso": "edgewise.baselines",
    "PseudoLikelihoodLasso": "edgewise.baselines",
    "MRF": "edgewise.model",
    "Posterior": "edgewise.posterior",
    "load_posterior": "edgewise.posterior",
}
_MODULES = (
    "baselines",
    "data",
    "datasets",
    "errors",
    "evaluate",
    "exact",
    "features",
    "model",
    "plots",
    "posterior",
    "predict",
    "priors",
    "report",
    "run",
)
# What the documentation speaks of inside a folder that does not load it by itself.
_PARTS = {"run": "progress"}

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        if name in _PARTS:
            importlib.import_module(f"edgewise.{name}.{_PARTS[name]}")
        return importlib.import_module(f"edgewise.{name}")
    raise AttributeError(f"module 'edgewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
