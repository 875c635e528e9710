"""Blank cells as an engine keeps them: what of them is state, and how kernels read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgewise.blanks import states_of
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Statistics

# Fillings that are listed: so many of a pattern at most, and of all patterns together.
MOST_WAYS = 1024
MOST_LISTED = 1 << 16
# Cells that are kept one by one.
MOST_FILLED = 50_000_000
PREFIX = "blanks."


def check_blanks(kind: type[Any], problem: Problem) -> None:
    """Refuse a table with blanks where the kernels of an engine do not draw them.

    Every class says so for itself, and one that is derived from it says so again.
    """
    if problem.blanks is not None and not vars(kind).get("takes_blanks", False):
        raise DataError(
            f"The {kind.name} engine takes complete tables only, and cells of this one are blank: leave "
            "their rows out with missing='drop', or use another engine."
        )


def ways_of(problem: Problem) -> np.ndarray:
    """Number of fillings of every pattern, 0 where they are not listed: a fixed function of the data.

    Patterns with the fewest fillings are listed, as long as all of them together are not too many.
    """
    assert problem.blanks is not None
    states = states_of(problem.scales_or_binary, problem.blanks)
    order = np.argsort(states, kind="stable")
    listed = np.zeros(len(states), bool)
    listed[order] = (states[order] <= MOST_WAYS) & (np.cumsum(states[order]) <= MOST_LISTED)
    return np.where(listed, states, 0.0).astype(np.int64)


def first_fillings(problem: Problem, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The arrays that blank cells add to the state of a chain; none for a complete table."""
    patterns, scales = problem.blanks, problem.scales_or_binary
    if patterns is None:
        return {}
    kept = np.where(ways_of(problem) == 0, patterns.count * patterns.n_blanks, 0)
    if kept.sum() > MOST_FILLED:
        raise DataError(
            f"Rows with very many blanks have {int(kept.sum()):,} blank cells, counted with weights; at most "
            f" {MOST_FILLED:,} can be drawn one by one. Leave such rows out with missing='drop'."
        )
    levels = scales.levels[_variables_of_filled(problem)]
    return {
        f"{PREFIX}filled": (rng.random(len(levels)) * levels).astype(np.int64),
        f"{PREFIX}tracks": np.zeros((4, patterns.cells, int(scales.levels.max(initial=2)))),
        f"{PREFIX}ticks": np.zeros(1, np.int64),
    }


def _variables_of_filled(problem: Problem) -> np.ndarray:
    """The variable of every cell that is kept one by one."""
    patterns = problem.blanks
    assert patterns is not None
    parts = [np.zeros(0, np.int64)]
    for g in np.flatnonzero(ways_of(problem) == 0):
        own = patterns.variables[patterns.start[g] : patterns.start[g + 1]]
        parts.append(np.tile(own, int(patterns.count[g])))
    return np.concatenate(parts)


def bind_blanks(problem: Problem, arrays: Mapping[str, np.ndarray], singles: Any, cliques: Any) -> Any:
    """The blanks as kernels read them; `singles` and `cliques` are views of the sums that move."""
    from edgewise.kernels.blanks import Blanks, Complete

    patterns, scales = problem.blanks, problem.scales_or_binary
    if patterns is None:
        return Complete(np.int64(0))
    p, members = problem.features.n_variables, problem.features.members
    most = int(scales.levels.max())
    scores = np.zeros((p, most, max(scale.dimension for scale in scales)))
    basis = np.zeros((p, most, max(scale.n_thresholds for scale in scales)))
    for i, scale in enumerate(scales):
        scores[i, : scale.n_levels, : scale.dimension] = scale.scores
        basis[i, : scale.n_levels, : scale.n_thresholds] = scale.basis
    candidate, place = np.nonzero(members >= 0)
    owner = members[candidate, place]
    order = np.lexsort((candidate, owner))
    ways = ways_of(problem)
    kept = np.where(ways == 0, patterns.count * patterns.n_blanks, 0)
    dimension = scales.dimensions(members)
    base = problem.known_sums
    assert base is not None
    return Blanks(
        known=patterns.known,
        count=patterns.count,
        start=patterns.start,
        variables=patterns.variables,
        ways=ways,
        first=np.cumsum(kept) - kept,
        filled=arrays[f"{PREFIX}filled"],
        reach=np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=p))]).astype(np.int64),
        touching=candidate[order].astype(np.int64),
        levels=scales.levels.copy(),
        scores=scores,
        basis=basis,
        bias_start=scales.bias_start.astype(np.int64),
        dims=np.array([scale.dimension for scale in scales], np.int64),
        weight_start=scales.weight_start(members).astype(np.int64),
        block_start=np.concatenate([[0], np.cumsum(np.where(dimension > 1, dimension, 0))]).astype(np.int64),
        base_singles=np.array(base.singles, float),
        base_cliques=np.array(base.cliques, float),
        singles=singles,
        cliques=cliques,
        thresholds=np.zeros((p, most)),
        now=np.zeros(p, np.int64),
        weight=np.zeros(max(int(ways.max(initial=0)), most)),
        chance=np.zeros((patterns.cells, most)),
        tracks=arrays[f"{PREFIX}tracks"],
        ticks=arrays[f"{PREFIX}ticks"],
        lean=Complete(np.int64(0)),
    )


def lean_blanks(blanks: Any, problem: Problem, surrogate: Any, made: Mapping[str, Any], places: Any) -> Any:
    """The blanks and a surrogate of this chain's own, whose pull follows the sums.

    `made` is what the surrogate was made of, and `places` where the sums of its parameters lie.
    """
    from edgewise.kernels.blanks import Lean

    if problem.blanks is None:
        return blanks, surrogate
    singles = made.get("base_singles", problem.statistics.singles)
    cliques = made.get("base_cliques", problem.statistics.cliques)
    lean = Lean(
        singles=np.array(singles, float),
        cliques=np.array(cliques, float)[places],
        places=np.ascontiguousarray(places, np.int64),
        pull=np.array(surrogate.pull),
        bias_mean=np.array(surrogate.bias_mean),
        change=np.zeros(len(singles)),
        rotated=np.zeros(len(singles)),
        constant=np.zeros(1),
    )
    own = surrogate._replace(pull=lean.pull.copy(), bias_mean=lean.bias_mean.copy())
    return blanks._replace(lean=lean), own


def typical_sums(
    problem: Problem, states: Sequence[Mapping[str, np.ndarray]], singles: str, cliques: str
) -> tuple[Problem, dict[str, np.ndarray]]:
    """The problem with the completed sums of some chains, on average, and these for the others to know."""
    if problem.blanks is None:
        return problem, {}
    mean = {
        "base_singles": np.mean([np.ravel(state[singles]) for state in states], axis=0),
        "base_cliques": np.mean([np.ravel(state[cliques]) for state in states], axis=0),
    }
    statistics = Statistics(problem.statistics.n_rows, mean["base_singles"], mean["base_cliques"])
    return replace(problem, statistics=statistics), mean


def as_made(problem: Problem, made: Mapping[str, Any]) -> Problem:
    """The problem with the sums that a surrogate was made for; itself where there are no blanks."""
    if problem.blanks is None:
        return problem
    statistics = Statistics(problem.statistics.n_rows, made["base_singles"], made["base_cliques"])
    return replace(problem, statistics=statistics)


def wanted_sums(problem: Problem) -> dict[str, np.ndarray]:
    """Stand-ins for what :func:`typical_sums` adds to what chains know together."""
    if problem.blanks is None:
        return {}
    return {
        "base_singles": np.zeros(len(problem.statistics.singles)),
        "base_cliques": np.zeros(len(problem.statistics.cliques)),
    }


def check_fillings(problem: Problem, state: Mapping[str, np.ndarray]) -> None:
    """Whether the arrays of the blanks are what a chain can have.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if problem.blanks is None:
        return
    filled, levels = state[f"{PREFIX}filled"], problem.scales_or_binary.levels
    if ((filled < 0) | (filled >= levels[_variables_of_filled(problem)])).any():
        raise ValueError("a blank is filled with a level that does not exist")
    if not 0 <= int(state[f"{PREFIX}ticks"][0]) < 1 << 53:
        raise ValueError("the iterations that drew blanks are counted wrongly")
