"""Whether arrays from a file are the state of a chain: no kernel sees them before.

Kernels trust their arguments; an index out of its range would write into the memory of others. Shapes and
types are compared with those of a new chain of the same problem and settings, so that only ranges and
references need rules here. An array without a rule has to be finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.engines.blanks import check_fillings
from edgewise.engines.common import ChainEngine, is_free
from edgewise.engines.protocol import Engine, Problem
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, MODEL_STATE
from edgewise.scales import root_mean_squares

# Arrays that grow with the number of particles, along their last axis.
_SWARM = ("X", "F", "w", "lanes")
# A table of pairs has the size that it needs; the engine itself looks at what holds it together.
_TABLE = ("members", "status", "log_odds", "sums", "theta", "tallies", "listed", "place", "scan", "adjacent")
# Rivals are as many as warm-up has found, along these axes.
_RIVALS = {"rivals": 0, "rival_rate": 0, "rival_tallies": 1}
_STATES = ("X", "particles")
_STREAMS = ("stream", "lanes")
_PARAMETERS = ("theta", "values")
_LEVEL_DATA = ("feature_singles", "feature_sums")
_DATA = ("rows", "singles", "sums", "totals", "single_totals")
_GRAPH = ("degree", "adjacent", "listed", "place", "counts")
_MAY_BE_LOST = ("tallies", "difference", "rival_tallies", "moments.weights", "point")
_LARGEST = 1e8
_LARGEST_SUM = 1e18
# Its square, and the inverse of that, are numbers.
_SMALLEST_SCALE = 1e-150
_MOST_SITES = 10_000
_LONGEST = 1 << 53


def new_chain(kind: type[Engine], problem: Problem, settings: Mapping[str, Any]) -> Engine:
    """A chain to compare others with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(problem, settings, np.random.SeedSequence(0), "empty")


def check_state(
    new: Engine, problem: Problem, state: Mapping[str, np.ndarray], n_draws: int, thin: int | None
) -> None:
    """Compare the state of a chain that has kept `n_draws` draws with a `new` one and with the problem.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    table = getattr(new, "check_table", None)
    _check_layout(state, new.state(), _TABLE if table is not None else ())
    p, n_cliques = problem.features.n_variables, problem.features.n_cliques
    for name, array in state.items():
        # What an engine of somebody else means by a name is its own affair.
        rule = name if isinstance(new, ChainEngine) else ""
        if rule not in _STATES or problem.all_binary:
            _check_range(rule, array, p, n_cliques, problem.statistics.n_rows)
    if isinstance(new, ChainEngine):
        if "split" in state and not 0 < int(state["split"][0]) < len(state["w"]):
            raise ValueError(f"its particles are split at {int(state['split'][0])} of {len(state['w'])}")
        if "round" in state and int(state["round"][0]) != int(new.state()["round"][0]):
            raise ValueError(
                f"it is in round {int(state['round'][0])} of its warm-up, and what it knows is not"
            )
        if problem.prior.model is not None:
            problem.prior.model.check(state["hyper"][MODEL_STATE:])
        if table is not None:
            table(state)
            members, status = state["members"], state["status"]
            room = np.diff(state["start"])
        else:
            members, status = problem.features.members, problem.prior.status
            room = np.bincount(members[members >= 0], minlength=p)
        _check_graph(members, status, room, state)
        _check_moments(state)
        check_fillings(problem, state)
        if "rivals" in state:
            _check_rivals(members, status, state)
        if "blocks" in state:
            _check_levels(problem, state)
        if "differs" in state:
            _check_groups(state)
    clock = state.get("iteration", state.get("clock"))
    if clock is None:
        return
    iteration = int(np.ravel(clock)[0])
    kept = max(0, iteration - new.warm_up) // thin if thin else 0
    if not 0 <= iteration < _LONGEST or kept != n_draws:
        raise ValueError(f"it is at iteration {iteration} with {n_draws} draws")


def _check_layout(
    state: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], open_ended: Sequence[str]
) -> None:
    lost = [name for name in wanted if name not in state]
    if lost:
        raise ValueError(f"{lost[0]!r} is missing")
    # Only the swarm chooses its size; elsewhere lanes are as many as the settings say.
    swarm = all(name in wanted for name in _SWARM)
    particles = {state[name].shape[-1:] for name in _SWARM if swarm}
    for name, like in wanted.items():
        array, like = state[name], np.asarray(like)
        given, right = array.shape, like.shape
        if name in _SWARM and len(particles) == 1:
            given, right = given[:-1], right[:-1]
        if name in _RIVALS and array.ndim == like.ndim:
            given, right = (tuple(np.delete(shape, _RIVALS[name])) for shape in (given, right))
        if name in open_ended and array.ndim == like.ndim:
            given = right
        if array.dtype != like.dtype or given != right or array.ndim != like.ndim:
            raise ValueError(
                f"{name!r} is {array.dtype} {array.shape} where {like.dtype} {like.shape} is needed"
            )
    if any(len(count) and count[0] < 2 for count in particles):
        raise ValueError("it has no particles")


def _check_range(name: str, array: np.ndarray, p: int, n_cliques: int, n_rows: float) -> None:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name!r} is {array.dtype}")
    # Tallies are read, never used: an acceptance probability that got lost must not cost the chain. The
    # weight of a graph that is too wide in warm-up is not a number.
    if array.dtype.kind == "f" and name not in _MAY_BE_LOST and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds what is no finite number")
    low, high = (-_LARGEST_SUM, _LARGEST_SUM) if array.dtype.kind == "f" else (-np.inf, np.inf)
    if name in _MAY_BE_LOST:
        return
    if name == "table":
        low, high = 0, np.inf
    elif name in (
        "w",
        "watched",
        "jumps",
        "counters",
        "single_variances",
        "variances",
        "precision_sum",
        "difference",
    ):
        low = 0
    elif name in _DATA:
        low, high = 0, n_rows * (1 + 1e-9)
    elif name in _LEVEL_DATA:
        low, high = -n_rows * (1 + 1e-9), n_rows * (1 + 1e-9)
    elif name == "hyper":
        low, high = -(_LARGEST**2), _LARGEST**2
    elif name == "log_odds":
        low, high = -_LARGEST, _LARGEST
    elif name in ("slab_factor", "bias_scale", "scale", "width"):
        low, high = np.finfo(np.float64).tiny, _LARGEST**2
    elif name in ("scan", "rival_rate", "clique_centres", "centres"):
        low, high = 0, 1
    elif name == "rivals":
        low, high = 0, n_cliques - 1
    elif name in ("theta", "blocks", "coupling", "values", "bias", "biases", "momentum", "bias_momentum"):
        low, high = -_LARGEST, _LARGEST
    elif name == "cursor":
        low, high = 0, p - 1
    elif name == "sites":
        low, high = 1, _MOST_SITES
    elif name == "cold_moves":
        low, high = 0, 4 * (p + n_cliques)
    if array.size and not (array.min() >= low and array.max() <= high):
        raise ValueError(f"{name!r} reaches from {array.min()} to {array.max()}")
    if name == "centres" and array.size and not (array.min() > 0 and array.max() < 1):
        raise ValueError("a line is centred on a level that is never left")
    if name == "hyper" and not (array[:2] >= np.finfo(np.float64).tiny).all():
        raise ValueError(f"p0 and sigma0 are {array[0]} and {array[1]}")
    if name == "hyper" and not array[0] < 1:
        raise ValueError(f"p0 is {array[0]}")
    if name == "hyper" and not _SMALLEST_SCALE <= array[1] <= 1 / _SMALLEST_SCALE:
        raise ValueError(f"sigma0 is {array[1]}")
    if name in _STATES and not ((array == 0) | (array == 1)).all():
        raise ValueError(f"{name!r} holds other states than 0 and 1")
    if name in _STREAMS and not (array != 0).any(axis=0).all():
        raise ValueError(f"{name!r} would give the same number for ever")
    if name == "lanes" and len(np.unique(np.ascontiguousarray(array.T).view("V16"))) < array.shape[1]:
        raise ValueError("two particles would see the same random numbers")
    if name == "table" and not array.any():
        raise ValueError("no state has a probability")
    if name == "w" and not array.any():
        raise ValueError("no particle has a weight")


def _check_moments(state: Mapping[str, np.ndarray]) -> None:
    if "moments.filled" in state:
        room = [len(state[f"moments.{name}"]) for name in ("phi", "snapshots", "weights")]
        if any(not 0 <= filled <= most for filled, most in zip(state["moments.filled"], room)):
            raise ValueError("more draws are added up than there is room for")


def _check_rivals(members: np.ndarray, status: np.ndarray, state: Mapping[str, np.ndarray]) -> None:
    pairs = state["rivals"]
    if {state[name].shape[axis] for name, axis in _RIVALS.items()} != {len(pairs)}:
        raise ValueError("its rivals and their rates are not equally many")
    if len(pairs) and pairs.max() >= len(members):
        raise ValueError("a rival does not exist")
    first, second = members[pairs[:, 0]], members[pairs[:, 1]]
    shared = (first[:, :2, None] == second[:, None, :2]).sum(axis=(1, 2))
    if np.any(shared != 1) or np.any(first[:, 2:] >= 0) or np.any(second[:, 2:] >= 0):
        raise ValueError("two rivals are no pairs with one variable in common")
    if not is_free(status[pairs]).all():
        raise ValueError("a rival is forced or forbidden")


def _check_graph(
    members: np.ndarray, status: np.ndarray, room: np.ndarray, state: Mapping[str, np.ndarray]
) -> None:
    p, n_cliques = len(room), len(members)
    degree, adjacent, listed, place, counts = (state[name] for name in _GRAPH)
    count = int(counts[0])
    if not 0 <= count <= n_cliques:
        raise ValueError(f"{count} of {n_cliques} candidates are active")
    active = listed[:count]
    if count and not (active.min() >= 0 and active.max() < n_cliques):
        raise ValueError("a candidate that does not exist is active")
    there = np.full(n_cliques, -1, place.dtype)
    there[active] = np.arange(count)
    if not np.array_equal(there, place) or not np.array_equal(place[active], np.arange(count)):
        raise ValueError("the list of active candidates contradicts itself")
    if np.any(status[active] == FORBIDDEN) or np.any(place[status == FORCED] < 0):
        raise ValueError("a forbidden candidate is active, or a forced one is not")
    if counts[1] != np.count_nonzero(status[active] == COMMON):
        raise ValueError("the active candidates that share p0 are counted wrongly")
    for name in _PARAMETERS:
        if name in state and np.any(state[name][place < 0] != 0):
            raise ValueError("an inactive candidate has a parameter")
    start = np.concatenate([[0], np.cumsum(room)])
    if np.any(degree < 0) or np.any(degree > room):
        raise ValueError("a variable touches more candidates than there are")
    variable = np.repeat(np.arange(p), degree)
    position = np.arange(len(variable)) - np.repeat(np.cumsum(degree) - degree, degree) + start[variable]
    row, column = np.nonzero(members[active] >= 0)
    touched = members[active][row, column]
    found = np.lexsort((adjacent[position], variable)), np.lexsort((active[row], touched))
    if (
        len(found[0]) != len(found[1])
        or np.any(variable[found[0]] != touched[found[1]])
        or np.any(adjacent[position][found[0]] != active[row][found[1]])
    ):
        raise ValueError("the variables and the active candidates contradict each other")


def _check_groups(state: Mapping[str, np.ndarray]) -> None:
    """Couplings of groups are those of active candidates, alike unless these differ; theta is their mean."""
    coupling, differs, place = state["coupling"], state["differs"], state["place"]
    if not ((differs == 0) | (differs == 1)).all() or int(state["parted"][0]) != differs.sum():
        raise ValueError("the candidates that differ between groups are counted wrongly")
    apart = (coupling != coupling[:1]).any(axis=0)
    if np.any(coupling[:, place < 0] != 0) or np.any(differs[place < 0]) or np.any(apart & (differs == 0)):
        raise ValueError("a candidate has couplings in groups that its state does not allow")
    if not np.allclose(coupling.mean(axis=0), state["theta"], rtol=1e-9, atol=1e-9):
        raise ValueError("a parameter is not the mean of those of the groups")
    q0, scale = state["rates"].tolist()
    if not (0 < q0 < 1 and _SMALLEST_SCALE <= scale <= 1 / _SMALLEST_SCALE):
        raise ValueError(f"q0 or sigma_D is out of its range: {q0}, {scale}")


def _check_levels(problem: Problem, state: Mapping[str, np.ndarray]) -> None:
    """Matrices belong to the strengths of their candidates, and lines are centred inside the scales."""
    assert problem.scales is not None
    dimension = problem.scales.dimensions(problem.features.members)
    several = dimension > 1
    strength = root_mean_squares(state["blocks"][: dimension[several].sum()], dimension[several])
    if not np.allclose(strength, state["theta"][several], rtol=1e-9, atol=0.0):
        raise ValueError("the strength of a matrix is not that of its entries")
    if "X" in state:
        start = problem.scales.score_start
        for i, scale in enumerate(problem.scales):
            own = state["X"][start[i] : start[i + 1], None]
            if not (own == scale.scores.T.astype(np.float32)[:, :, None]).all(axis=0).any(axis=0).all():
                raise ValueError("'X' holds what is the score of no level")
    for scale, centre in zip(problem.scales, state["score_centres"]):
        own = centre[: scale.dimension]
        if not ((scale.scores.min(axis=0) < own) & (own < scale.scores.max(axis=0))).all():
            raise ValueError("a line is centred outside the scores of its levels")
