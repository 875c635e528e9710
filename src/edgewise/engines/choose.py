"""Which engine: the registry, and the rule behind ``engine="auto"``.

The rule counts operations; it never looks at a clock, so that the same problem always gets the same engine.
"""

from __future__ import annotations

import importlib
from typing import Any

from edgewise.engines.protocol import Problem
from edgewise.errors import DataError

ENGINES = {
    "exact": "edgewise.engines.exact:ExactEngine",
    "langevin": "edgewise.engines.langevin:LangevinEngine",
    "particle": "edgewise.engines.particle:ParticleEngine",
}


def load_engine(name: str) -> Any:
    """Class of an engine: one of :data:`ENGINES`, or ``"module:Class"`` for an engine of your own."""
    path = ENGINES.get(name, name)
    module, separator, attribute = path.partition(":")
    if not separator:
        known = ", ".join(repr(known) for known in ("auto", *ENGINES))
        raise DataError(
            f"There is no engine {name!r}; choose one of {known}, or 'module:Class' for your own."
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        raise DataError(f"The engine {name!r} cannot be found: there is no module {module!r}.") from None
    except AttributeError:
        raise DataError(f"The engine {name!r} cannot be found in the module {module!r}.") from None


def choose(problem: Problem) -> tuple[str, str]:
    """Engine for ``"auto"`` and the reason, as a sentence.

    A sweep of the exact engine costs about M 2^p operations whatever the number of rows; the particle
    engine needs as many particles as there are rows for the same accuracy, about M N operations.
    """
    p = problem.features.n_variables
    rows = problem.statistics.n_rows
    states = 2**p
    if p <= 12:
        return "exact", f"With {p} variables all {states:,} states can be summed exactly."
    if p <= 16 and rows * 32 >= states:
        return "exact", (
            f"With {p} variables and {rows:,.0f} rows, summing all {states:,} states exactly is cheaper than "
            "as many particles as the rows call for."
        )
    if p <= 16:
        return "particle", (
            f"With {p} variables and only {rows:,.0f} rows, particles are cheaper than summing all "
            f"{states:,} states."
        )
    return (
        "particle",
        f"With {p} variables the 2^{p} states are too many to sum; particles stand for them.",
    )
