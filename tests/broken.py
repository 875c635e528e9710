"""Kernels seen from Python, and broken versions of them for negative controls."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

from edgewise.kernels.compiling import CALLABLE, LINKED, exposed, question


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

    def plain(code: Any) -> Any:
        """A plain function with the kernels and questions that it uses rebuilt; itself where none changed."""
        scope = dict(code.__globals__)
        for name in code.__code__.co_names:
            if name in replaced:
                scope[name] = replaced[name]
            elif name in scope:
                scope[name] = rebuild(scope[name])
        if all(scope[name] is code.__globals__[name] for name in scope):
            return code
        return FunctionType(code.__code__, scope, code.__name__)

    def rebuild(used: Any) -> Any:
        if isinstance(used, Dispatcher):
            if used not in made:
                changed = plain(used.py_func)
                # Compiled like any other, but never kept on disk.
                chosen = used.targetoptions
                kind = LINKED if chosen.get("no_cpython_wrapper") else CALLABLE
                options = {key: chosen[key] for key in ("_nrt", "fastmath", "error_model") if key in chosen}
                made[used] = used if changed is used.py_func else njit(**kind, **options)(changed)
            return made[used]
        if isinstance(used, FunctionType) and hasattr(used, "answers"):
            if used not in made:
                answers = {kind: plain(code) for kind, code in used.answers.items()}
                made[used] = used
                if any(answers[kind] is not used.answers[kind] for kind in answers):
                    made[used] = question(FunctionType(used.__code__, used.__globals__, used.__name__))
                    made[used].answers.update(answers)
            return made[used]
        return used

    changed = rebuild(function)
    assert changed is not function, f"{function} does not use {', '.join(replaced)}"
    return changed
