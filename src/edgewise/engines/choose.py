"""Which engine: the registry, and the rule behind ``engine="auto"``.

The rule counts operations; it never looks at a clock, so that the same problem always gets the same engine.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from edgewise.engines.protocol import Engine, Problem
from edgewise.errors import DataError

MOST_SUMMED = 16
FEWEST_PARTICLES = 384
PARTICLES_PER_ROW = 3.0
STATES_PER_PARTICLE = 30.0
# Edges of a rough fit per row up to which the surrogate is good enough for stretches to be accepted.
EDGES_PER_ROW = 0.2
FEWEST_ROWS = 250
# Most cells of the tables of an elimination along the rough fit; draws of the posterior have more.
WIDEST_FIT = 1 << 18

SPARSE = "edgewise.engines.sparse:SparseParticleEngine"
LEVEL_SURROGATE = "edgewise.engines.level_surrogate:LevelSurrogateEngine"
LEVEL_PARTICLE = "edgewise.engines.level_particle:LevelParticleEngine"
ELIMINATION = "edgewise.engines.stretch:EliminationEngine"
GROUPS = "edgewise.engines.groups:GroupEngine"
# Most variables whose states are summed one by one.
LARGEST_TABLE = 20
# With so many variables and rows, stretches mix faster than lines, however dense the graphs: 2 to 47 times
# measured on tables of 12 to 16 variables, equal with 100 rows, slower below 9 variables.
FEWEST_IN_STRETCHES = 10
FEWEST_ROWS_IN_STRETCHES = 200
# Where more of the cells are blank, those that are drawn and a surrogate learned from them could run away
# together: a third of them does it, a tenth does no harm. Lines are decided one by one, and cannot.
MOST_BLANK = 0.1

ENGINES = {
    "exact": "edgewise.engines.exact:ExactEngine",
    "langevin": "edgewise.engines.langevin:LangevinEngine",
    "particle": "edgewise.engines.particle:ParticleEngine",
    "surrogate": "edgewise.engines.surrogate:SurrogateEngine",
}


def resolve(name: str, problem: Problem, settings: Mapping[str, Any] | None = None) -> str:
    """Where the class of an engine is found: the exact one moves by stretches or line by line.

    Settings that only one of the two has choose it.
    """
    if name == "surrogate" and _often_blank(problem):
        raise DataError(_TOO_BLANK.format(name, blank_share(problem)))
    if not problem.all_binary:
        return {"surrogate": LEVEL_SURROGATE, "particle": LEVEL_PARTICLE}.get(name, name)
    if problem.features.unlisted and name in ENGINES:
        if name != "particle":
            raise DataError(
                f"{problem.features.n_cliques:,} pairs are too many for engine={name!r}; engine='particle' "
                "takes them."
            )
        return SPARSE
    if name != "exact":
        return name
    if problem.strata:
        return GROUPS if problem.n_groups > 1 else name
    p = problem.features.n_variables
    if p > LARGEST_TABLE and _often_blank(problem):
        raise DataError(_TOO_BLANK.format(name, blank_share(problem)))
    if p > LARGEST_TABLE or _few_enough_for_stretches(problem, settings or {}):
        return ELIMINATION
    return name


_TOO_BLANK = (
    "engine={0!r} learns a surrogate of the posterior, which {1:.0%} blank cells would spoil (at most "
    f"{MOST_BLANK:.0%}); use engine='particle'."
)


def blank_share(problem: Problem) -> float:
    """Which share of the cells is blank."""
    patterns = problem.blanks
    if patterns is None:
        return 0.0
    cells = float(problem.statistics.n_rows) * problem.features.n_variables
    return float(patterns.count @ patterns.n_blanks) / max(cells, 1.0)


def _often_blank(problem: Problem) -> bool:
    return blank_share(problem) > MOST_BLANK


def _few_enough_for_stretches(problem: Problem, settings: Mapping[str, Any]) -> bool:
    """Whether stretches are the better way to move where any graph can be eliminated."""
    return (
        FEWEST_IN_STRETCHES <= problem.features.n_variables <= LARGEST_TABLE
        and problem.statistics.n_rows >= FEWEST_ROWS_IN_STRETCHES
        and problem.features.max_order <= 2
        and problem.all_binary
        and _knows(settings)
        and not _often_blank(problem)
    )


def _knows(settings: Mapping[str, Any]) -> bool:
    """Whether engines of stretches have all these settings."""
    from edgewise.engines.stretch import StretchSettings

    return set(settings) <= {field.name for field in fields(StretchSettings)}


def load_engine(name: str) -> type[Engine]:
    """Class of an engine: one of :data:`ENGINES`, or ``"module:Class"`` for an engine of your own."""
    path = ENGINES.get(name, name)
    module, separator, attribute = path.partition(":")
    if not separator:
        known = ", ".join(repr(known) for known in ("auto", *ENGINES))
        raise DataError(
            f"There is no engine {name!r}; choose one of {known}, or 'module:Class' for your own."
        )
    try:
        found: type[Engine] = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        raise DataError(f"The engine {name!r} cannot be found: there is no module {module!r}.") from None
    except AttributeError:
        raise DataError(f"The engine {name!r} cannot be found in the module {module!r}.") from None
    return found


def _suits_stretches(problem: Problem, settings: Mapping[str, Any]) -> bool:
    """Whether rows are many enough for a Gaussian surrogate, by a rough fit of the edges."""
    from edgewise.engines.stretch import fits_in_memory

    features, statistics = problem.features, problem.statistics
    if features.unlisted or _often_blank(problem):
        return False
    few = statistics.n_rows < FEWEST_ROWS
    if few or not fits_in_memory(problem) or not _knows(settings) or features.max_order > 2:
        return False
    from edgewise.engines.start import rough_edges
    from edgewise.exact.orders import elimination_orders

    edges = rough_edges(problem)
    if len(edges) > EDGES_PER_ROW * statistics.n_rows:
        return False
    orders = elimination_orders(features.n_variables, tuple(edges))
    return min(order.cells for order in orders) <= WIDEST_FIT


def _suits_surrogate(problem: Problem, settings: Mapping[str, Any]) -> bool:
    """Whether rows are so many for the candidates that a quadratic knows all couplings together."""
    from edgewise.engines.start import has_many_rows
    from edgewise.engines.stretch import fits_in_memory

    plain = not problem.features.unlisted and problem.features.max_order <= 2 and not problem.strata
    plain = plain and not _often_blank(problem)
    return plain and _knows(settings) and has_many_rows(problem) and fits_in_memory(problem)


def choose(problem: Problem, settings: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """Engine for ``"auto"`` and the reason, as a sentence.

    Beyond the table of states, stretches on a surrogate decided by elimination are best where the rows are
    many for the edges that a rough fit finds; the surrogate alone where graphs are dense and rows more than
    candidates; particles where they are few. Settings that only the particle engine has choose it.

    A decision of the exact engine passes over the 2^p states, one of the particle engine over about three
    particles per row (never fewer than a few hundred). Measured per effective draw, a particle costs as much
    as about thirty states.
    """
    p = problem.features.n_variables
    rows = problem.statistics.n_rows
    if problem.scales is not None and not problem.all_binary:
        from edgewise.engines.levels import MOST_STATES

        if problem.scales.n_states > MOST_STATES and _often_blank(problem):
            return "particle", (
                f"The {p} variables have more joint states than can be summed, and of their cells "
                f"{blank_share(problem):.0%} are blank, too many for a surrogate; particles stand for them."
            )
        if problem.scales.n_states > MOST_STATES:
            return "surrogate", (
                f"The {p} variables have more joint states than can be summed; a Gaussian surrogate of the "
                "posterior, learned from particles, stands for them (the likelihood to second order)."
            )
        return "exact", (
            f"The levels of the {p} variables make {problem.scales.n_states:,} joint states, which are all "
            "summed."
        )
    states = 2**p
    if problem.strata:
        return "exact", (
            f"With {p} variables all {states:,} states can be summed in each of {len(problem.strata)} strata."
        )
    particles = max(FEWEST_PARTICLES, PARTICLES_PER_ROW * rows)
    if _few_enough_for_stretches(problem, settings or {}):
        return "exact", (
            f"With {p} variables the sum over all {states:,} states can be taken one variable after another, "
            f"and {rows:,.0f} rows are enough for a Gaussian surrogate to propose what it decides."
        )
    if p > MOST_SUMMED:
        if _suits_stretches(problem, settings or {}):
            return "exact", (
                f"With {p} variables the 2^{p} states are too many to sum one by one, but with {rows:,.0f} "
                "rows for few edges the sum can be taken along the graph, one variable after another."
            )
        if _suits_surrogate(problem, settings or {}):
            return "surrogate", (
                f"With {p} variables the 2^{p} states are too many to sum and the graphs too dense to take "
                f"the sum along them, but {rows:,.0f} rows do for a Gaussian surrogate of the posterior "
                "(the likelihood to second order, its error measured)."
            )
        return "particle", (
            f"With {p} variables the 2^{p} states are too many to sum; particles stand for them."
        )
    if states <= STATES_PER_PARTICLE * particles:
        return "exact", (
            f"With {p} variables and {rows:,.0f} rows, summing all {states:,} states exactly is cheaper than "
            "as many particles as the rows call for."
        )
    return "particle", (
        f"With {p} variables and only {rows:,.0f} rows, particles are cheaper than summing all {states:,} "
        "states."
    )
