"""The exact engine with more than two levels, against the enumeration of all graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from comparing import inclusion_and_error, z_score
from truth import Truth, enumerate_posterior, owners

from edgewise import MRF, exact
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.engines.exact import ExactEngine
from edgewise.engines.levels import LevelEngine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics, level_statistics
from edgewise.kernels.windows import windows_of
from edgewise.priors import BetaInclusion, FixedInclusion, GammaSlab, NormalBias, Prior
from edgewise.scales import BINARY_SCALE, Scale, Scales

ORDINAL = Scale("ordinal", (0, 1, 2))
NOMINAL = Scale("nominal", ("a", "b", "c"))
CAPEL = Scale("blume-capel", (0, 1, 2, 3), (), 1)
TABLES = {
    "ordinal": (ORDINAL,) * 3,
    "nominal": (NOMINAL,) * 3,
    "mixed": (ORDINAL, NOMINAL, BINARY_SCALE),
    "capel": (CAPEL, BINARY_SCALE, ORDINAL),
    "four ordinal": (ORDINAL,) * 4,
    "four mixed": (ORDINAL, BINARY_SCALE, NOMINAL, BINARY_SCALE),
}
PRIOR = Prior(bias=NormalBias(2.0))
LIMIT = 3.8
MOMENTS = ("inclusion", "mean", "sd", "bias_mean", "bias_sd")


def rows_of(scales: Scales, count: int = 60, seed: int = 3) -> np.ndarray:
    """Rows of a chain of strong pairs."""
    rng = np.random.default_rng(seed)
    members = np.array([(i, i + 1) for i in range(len(scales) - 1)])
    weights = rng.normal(0, 1.5, int(scales.dimensions(members).sum()))
    model = MRF(rng.normal(0, 0.7, scales.n_biases), members, weights, None, scales)
    return exact.sample(model, count, rng).astype(int)


def problem_of(scales: Scales, rows: np.ndarray, prior: Prior = PRIOR) -> Problem:
    features = Features.pairs(len(scales))
    statistics = level_statistics(rows, None, scales, features)
    return Problem(features, statistics, prior.resolve(features), None, scales)


def run(problem: Problem, iterations: int = 20_000, seed: int = 1) -> list[Draws]:
    result = []
    for chain in range(2):
        engine = load_engine("exact")(problem, {"warm_up": 200}, np.random.SeedSequence([seed, chain]))
        engine.advance(engine.warm_up)
        result.append(engine.advance(iterations))
    return result


def parameters(draws: Draws, features: Features, scales: Scales) -> np.ndarray:
    """All parameters of every draw, zero where inactive: (draws, parameters)."""
    start = scales.weight_start(features.members)
    size = np.diff(start)
    result = np.zeros((len(draws), start[-1]))
    for draw in range(len(draws)):
        indices, values = draws.active(draw)
        at = 0 if draws.block_indptr is None else draws.block_indptr[draw]
        for a, value in zip(indices, values):
            if size[a] == 1:
                result[draw, start[a]] = value
            else:
                result[draw, start[a] : start[a + 1]] = draws.blocks[at : at + size[a]]
                assert value == pytest.approx(np.sqrt(np.mean(draws.blocks[at : at + size[a]] ** 2)))
                at += size[a]
    return result


def z_scores(draws: Sequence[Draws], truths: Sequence[Truth], problem: Problem) -> dict[str, float]:
    """Largest z by quantity.

    Moments of matrices by enumeration have errors as large as those of the draws (up to 1.7 %
    of a variance): several scramblings are averaged, and two of their standard errors allowed for.
    """
    scales, features = problem.scales, problem.features
    found: dict[str, float] = {}
    averaged = {name: np.mean([getattr(truth, name) for truth in truths], axis=0) for name in MOMENTS}
    truth = replace(truths[0], **averaged)
    allowed = {
        name: 2 * np.std([getattr(truth, name) for truth in truths], axis=0, ddof=1) / len(truths) ** 0.5
        for name in MOMENTS
    }

    def put(name: str, chains: Sequence[np.ndarray], expected: float, slack: float = 0.0) -> None:
        found[name] = max(found.get(name, 0.0), z_score(chains, expected, slack))

    for a, probability in enumerate(truth.inclusion):
        put("inclusion", [chain.column(a) != 0 for chain in draws], probability)
    every = [parameters(chain, features, scales) for chain in draws]
    for k, a in enumerate(owners(features, scales)):
        mean, sd = truth.mean[k], truth.sd[k]
        columns = [(part[:, k], chain.column(a) != 0) for part, chain in zip(every, draws)]
        share = truth.inclusion[a]
        slack = allowed["mean"][k] * share
        put("mean", [np.where(active, value - mean, 0.0) for value, active in columns], 0.0, slack)
        squares = [np.where(active, (value - mean) ** 2 - sd**2, 0.0) for value, active in columns]
        put("square", squares, 0.0, 2 * sd * allowed["sd"][k] * share)
    for i, (mean, sd) in enumerate(zip(truth.bias_mean, truth.bias_sd)):
        put("bias", [chain.biases[:, i] for chain in draws], mean, allowed["bias_mean"][i])
        squares = [(chain.biases[:, i] - mean) ** 2 for chain in draws]
        put("bias square", squares, sd**2, 2 * sd * allowed["bias_sd"][i])
    put("edges", [chain.n_edges for chain in draws], truth.n_edges)
    put("p0", [chain.inclusion_rate for chain in draws], truth.p0)
    put("sigma0", [chain.slab_scale for chain in draws], truth.sigma0)
    return found


def truth_of(problem: Problem) -> list[Truth]:
    features, statistics, prior, scales = problem.features, problem.statistics, problem.prior, problem.scales
    return [
        enumerate_posterior(features, statistics, prior, scales=scales, target_error=0.005, seed=seed)
        for seed in range(6)
    ]


@pytest.mark.parametrize("table", TABLES)
def test_engine_meets_the_enumeration(table):
    scales = Scales(TABLES[table])
    problem = problem_of(scales, rows_of(scales))
    found = z_scores(run(problem), truth_of(problem), problem)
    assert max(found.values()) < LIMIT, found


@pytest.mark.parametrize("table", ["ordinal", "nominal"])
def test_wrong_targets_are_noticed(table):
    """Negative controls: other prior odds, another scale of the thresholds, sums that lost a tenth."""
    scales = Scales(TABLES[table])
    problem = problem_of(scales, rows_of(scales))
    truth = truth_of(problem)
    s = problem.statistics
    shrunk = Statistics(s.n_rows, s.singles, 0.9 * s.cliques)
    features = problem.features
    for wrong, quantity in (
        (
            replace(problem, prior=Prior(BetaInclusion(8, 5), bias=NormalBias(2.0)).resolve(features)),
            "inclusion",
        ),
        (replace(problem, prior=Prior(bias=NormalBias(1.6)).resolve(features)), "bias square"),
        (replace(problem, statistics=shrunk), "mean"),
    ):
        found = z_scores(run(wrong), truth, problem)
        assert found[quantity] > LIMIT, (quantity, found)


@pytest.mark.parametrize("table", ["ordinal", "nominal", "mixed"])
def test_no_data_give_the_prior(table):
    scales = Scales(TABLES[table])
    features = Features.pairs(3)
    prior = Prior(FixedInclusion(0.3), GammaSlab(5, 5), NormalBias(1.5))
    problem = Problem(features, Statistics.none(features, scales), prior.resolve(features), None, scales)
    draws = run(problem)
    for a in range(3):
        assert z_score([chain.column(a) != 0 for chain in draws], 0.3) < LIMIT
    for i in range(scales.n_biases):
        assert z_score([chain.biases[:, i] for chain in draws], 0.0) < LIMIT
        assert z_score([chain.biases[:, i] ** 2 for chain in draws], 1.5**2) < LIMIT
    assert z_score([chain.slab_scale**2 for chain in draws], 5 / 4) < LIMIT


def difference(first: Sequence[Draws], second: Sequence[Draws]) -> np.ndarray:
    """Differences of all inclusion probabilities in units of their errors."""
    (one, error), (other, other_error) = (inclusion_and_error(draws, 6) for draws in (first, second))
    return np.abs(one - other) / np.maximum(np.hypot(error, other_error), 1e-4)


def test_order_of_nominal_levels_means_nothing():
    scales = Scales((NOMINAL, NOMINAL, ORDINAL, ORDINAL))
    rows = rows_of(scales)
    straight = run(problem_of(scales, rows))
    turned = rows.copy()
    turned[:, 0] = np.array([2, 0, 1])[rows[:, 0]]
    assert difference(straight, run(problem_of(scales, turned))).max() < LIMIT
    # A control: one nominal level merged into another is another posterior.
    merged = np.where(rows == 2, 1, rows)
    assert difference(straight, run(problem_of(scales, merged))).max() > LIMIT


def test_direction_of_ordinal_scales_means_nothing_where_thresholds_are_free():
    """Scores count from 0, so that a narrow prior of the thresholds does know a direction (a control)."""
    scales = Scales((NOMINAL, NOMINAL, ORDINAL, ORDINAL))
    rows = rows_of(scales)
    both, one = rows.copy(), rows.copy()
    both[:, 2:] = 2 - rows[:, 2:]
    one[:, 2] = 2 - rows[:, 2]
    wide = Prior(bias=NormalBias(100.0))
    straight, back, other = (run(problem_of(scales, table, wide)) for table in (rows, both, one))
    assert difference(straight, back).max() < LIMIT
    assert difference(straight, other).max() < LIMIT
    couplings = [
        [chain.column(5)[chain.column(5) != 0] for chain in draws] for draws in (straight, back, other)
    ]
    means = [np.concatenate(chains).mean() for chains in couplings]
    assert means[0] == pytest.approx(means[1], abs=0.1)
    assert means[0] == pytest.approx(-means[2], abs=0.1)
    assert difference(run(problem_of(scales, rows)), run(problem_of(scales, both))).max() > LIMIT


def test_a_saved_chain_goes_on_as_if_never_stopped():
    scales = Scales(TABLES["four mixed"])
    problem = problem_of(scales, rows_of(scales))
    whole = ExactEngine(problem, {"warm_up": 60}, np.random.SeedSequence(4))
    assert isinstance(whole, LevelEngine)
    whole.advance(60)
    first = whole.advance(70)
    state = {name: array.copy() for name, array in whole.state().items()}
    rest = whole.advance(50)
    again = ExactEngine.restore(problem, {"warm_up": 60}, state).advance(50)
    for name in ("indptr", "indices", "values", "biases", "blocks", "block_indptr", "slab_scale"):
        np.testing.assert_array_equal(getattr(rest, name), getattr(again, name))
    straight = ExactEngine(problem, {"warm_up": 60}, np.random.SeedSequence(4))
    straight.advance(60)
    np.testing.assert_array_equal(straight.advance(120)[70:].blocks, rest.blocks)
    joined = Draws.concatenate([first, rest])
    np.testing.assert_array_equal(joined[70:].blocks, rest.blocks)


@pytest.mark.parametrize("start", ["empty", "random", "full"])
def test_starts(start):
    scales = Scales(TABLES["four mixed"])
    engine = ExactEngine(
        problem_of(scales, rows_of(scales)), {"warm_up": 50}, np.random.SeedSequence(4), start
    )
    engine.advance(50)
    draws = engine.advance(20)
    assert len(draws) == 20
    table = engine._arrays["table"]
    assert table.sum() == pytest.approx(1)


@pytest.mark.parametrize("levels", [[5] * 8, [2, 20, 20, 3], [3, 3], [6] * 7])
def test_windows_hold_every_pair(levels):
    place = windows_of(np.array(levels), 4096)
    held = sum(np.outer(window, window) for window in place)
    assert (held > 0).all()
    assert (np.where(place, levels, 1).prod(axis=1) <= max(4096, 400)).all()


@pytest.mark.parametrize("name", ["langevin", "surrogate"])
def test_other_engines_refuse_by_name(name):
    scales = Scales(TABLES["ordinal"])
    with pytest.raises(DataError, match=f"The {name} engine takes variables with two levels only"):
        load_engine(name)(problem_of(scales, rows_of(scales)))


def test_too_many_states_are_refused_with_their_number():
    scales = Scales((Scale("ordinal", tuple(range(5))),) * 9)
    features = Features.pairs(9)
    problem = Problem(features, Statistics.none(features, scales), PRIOR.resolve(features), None, scales)
    with pytest.raises(DataError, match=r"1,953,125 joint states.*limited to 1,048,576"):
        ExactEngine(problem)
