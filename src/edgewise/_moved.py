"""Old addresses of modules: importing one warns and gives the module at its new address."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = {
    "run": "chains conductor workers stopping interrupt checkpoint progress",
    "draws": "convergence",
    "posterior": "summaries structure tables storage diagnostics predictive",
    "predict": "mixtures",
}
MOVED = {
    f"edgewise.{name}": f"edgewise.{room}.{name}" for room, names in _ROOMS.items() for name in names.split()
} | {"edgewise.recorder": "edgewise.run.saver"}


class MovedFinder(MetaPathFinder, Loader):
    """Finds the modules of :data:`MOVED`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for moved modules only."""
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module at its new address in the place of the empty one."""
        name = module.__name__
        warnings.warn(f"{name} is now {MOVED[name]}.", DeprecationWarning, stacklevel=2)
        sys.modules[name] = importlib.import_module(MOVED[name])


sys.meta_path.append(MovedFinder())
