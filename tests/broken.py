"""Kernels seen from Python, and broken versions of them for negative controls."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

from edgewise.kernels.compiling import exposed


class Exposed:
    """A module of kernels, or several, whose functions can be called from Python."""

    def __init__(self, *modules: Any) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        found = next(getattr(module, name) for module in self._modules if hasattr(module, name))
        if isinstance(found, Dispatcher) and found.targetoptions.get("no_cpython_wrapper"):
            found = exposed(found)
        setattr(self, name, found)
        return found


def altered(function: Any, **replaced: Any) -> Any:
    """An entry kernel compiled anew with some of the kernels below it replaced, by name: a broken version."""
    made: dict[Any, Any] = {}

    def rebuild(kernel: Any) -> Any:
        plain = kernel.py_func
        if plain not in made:
            scope = dict(plain.__globals__)
            for name in plain.__code__.co_names:
                if name in replaced:
                    scope[name] = replaced[name]
                elif isinstance(scope.get(name), Dispatcher):
                    scope[name] = rebuild(scope[name])
            if all(scope[name] is plain.__globals__[name] for name in scope):
                made[plain] = kernel
            else:
                # Plain njit: what is altered must never be kept on disk.
                made[plain] = njit(**kernel.targetoptions)(
                    FunctionType(plain.__code__, scope, plain.__name__)
                )
        return made[plain]

    changed = rebuild(function)
    assert changed is not function, f"{function} does not use {', '.join(replaced)}"
    return changed
