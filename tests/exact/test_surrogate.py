"""The surrogate: its chain against all its graphs in closed form, moments and oracles against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import z_score
from truth import all_graphs, log_graph_prior

from broken import Exposed
from edgewise import MRF, exact
from edgewise.engines import averages
from edgewise.engines.common import prior_rules
from edgewise.engines.protocol import Problem
from edgewise.engines.stretch import in_play
from edgewise.features import Features, Statistics
from edgewise.kernels import learning, moments, oracles, stretches
from edgewise.kernels import surrogate as surrogates
from edgewise.kernels.codes import FORBIDDEN, FORCED
from edgewise.kernels.compiling import entry
from edgewise.kernels.elimination import elimination_room
from edgewise.kernels.oracles import AllStates, Elimination, Trust, log_partition
from edgewise.kernels.random import scalar_stream
from edgewise.kernels.surrogate import Surrogate, decide_one, draw_biases, empty_walker, stretch
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, Prior

LIMIT = 4.5
K = Exposed(surrogates, stretches, moments, learning)
SIGMA = 0.8
FEATURES = Features.pairs(5)
PRIORS = {
    "learned p0": Prior(BetaInclusion(2.0, 3.0), FixedSlab(SIGMA), forbidden=[(0, 1), (2, 4)]),
    "fixed p0": Prior(FixedInclusion(0.35), FixedSlab(SIGMA), forbidden=[(0, 1), (1, 2)]),
    "own odds": Prior(
        BetaInclusion(1.0, 2.0),
        FixedSlab(SIGMA),
        edge_probability={(0, 2): 0.7, (3, 4): 0.15, (1, 4): 0.5},
        forced=[(0, 3)],
        forbidden=[(0, 1), (2, 4), (2, 3)],
    ),
}
SETS = [[0, 1, 2, 3, 4, 5], [6, 0, 3, -1, -1, -1], [2, -1, -1, -1, -1, -1], [5, 7, 1, 4, -1, -1]]


def made(name: str, shares: float, seed: int = 2) -> tuple[Surrogate, Problem]:
    """A surrogate of moderately correlated positions, about half of them uncertain."""
    rng = np.random.default_rng(seed)
    prior = PRIORS[name].resolve(FEATURES)
    candidates = in_play(Problem(FEATURES, Statistics.none(FEATURES), prior))
    count, p = len(candidates), FEATURES.n_variables
    rows = rng.normal(size=(count + 6, count)) + 0.8 * rng.normal(size=(count + 6, 1))
    precision = (0.4 * rows.T @ rows).astype(np.float32)
    precision = np.tril(precision) + np.tril(precision, -1).T
    root = np.tril(0.1 * rng.normal(size=(p, p)), -1) + np.diag(rng.uniform(0.2, 0.4, p))
    chance, alias = averages.alias_table(rng.uniform(0.3, 1.0, count))
    rivals = np.array([sorted((k if k < count else -1 for k in s), reverse=True) for s in SETS])
    rival_chance, rival_alias = averages.alias_table(np.array([1.0, 2.0, 0.5, 1.5]))
    return Surrogate(
        candidates, precision, precision @ rng.normal(0, 0.5, count) + rng.normal(0, 1.5, count),
        rng.normal(0, 0.7, count),
        rng.normal(size=p), rng.normal(0, 0.3, (count, p)), root, np.linalg.inv(root @ root.T),
        chance, alias, rivals, rival_chance, rival_alias, np.array([shares]),
    ), Problem(FEATURES, Statistics.none(FEATURES), prior)  # fmt: skip


@entry
def trace(steps, hyper, prior, status, surrogate, walker, stream, theta, bias):
    """The walker after each stretch."""
    for row in range(theta.shape[0]):
        stretch(steps, status, hyper, prior, surrogate, walker, stream)
        draw_biases(surrogate, walker, stream)
        for k in range(theta.shape[1]):
            theta[row, k] = walker.theta[k]
        for i in range(bias.shape[1]):
            bias[row, i] = walker.bias[i]


@entry
def count_single(hyper, prior, status, surrogate, walker, stream, sums):
    """Mean of the probabilities that decisions of single positions return."""
    for _ in range(40_000):
        k = surrogates.choose(surrogate.chance, surrogate.alias, stream)
        sums[0, k] += 1.0
        sums[1, k] += decide_one(k, status, hyper, prior, surrogate, walker, stream)


def started(surrogate: Surrogate, problem: Problem):
    """A walker with nothing but the forced candidates, hyper-parameters, and a stream."""
    walker = empty_walker(len(surrogate.candidates), FEATURES.n_variables)
    walker.slope[:] = surrogate.pull
    for k in np.flatnonzero(problem.prior.status[surrogate.candidates] == FORCED):
        K.put(k, True, 0.3, FORCED, surrogate, walker)
    hyper = np.array([problem.prior.p0, SIGMA])
    return walker, hyper, scalar_stream(np.random.SeedSequence(5))


def traced(surrogate: Surrogate, problem: Problem, rows: int, steps: int = 10):
    walker, hyper, stream = started(surrogate, problem)
    theta, bias = np.zeros((rows, len(surrogate.candidates))), np.zeros((rows, FEATURES.n_variables))
    prior = prior_rules(problem.prior)
    trace(steps, hyper, prior, problem.prior.status, surrogate, walker, stream, theta, bias)
    return theta, bias


def enumerated(surrogate: Surrogate, problem: Problem, sigma: float = SIGMA):
    """Inclusion probabilities, and means and second moments of the parameters, over all graphs."""
    graphs = all_graphs(problem.prior)
    log_weight = log_graph_prior(graphs, problem.prior)
    graphs = graphs[:, surrogate.candidates]
    first, second = np.zeros(graphs.shape), np.zeros((*graphs.shape, graphs.shape[1]))
    precision = surrogate.precision.astype(float)
    for number, graph in enumerate(graphs):
        on = np.flatnonzero(graph)
        if len(on):
            joint = precision[np.ix_(on, on)] + np.eye(len(on)) / sigma**2
            mean = np.linalg.solve(joint, surrogate.pull[on])
            log_weight[number] += surrogate.tilt[on].sum() + 0.5 * surrogate.pull[on] @ mean
            log_weight[number] -= 0.5 * np.linalg.slogdet(sigma**2 * joint)[1]
            first[number, on] = mean
            second[number][np.ix_(on, on)] = np.linalg.inv(joint) + np.outer(mean, mean)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return weight @ graphs, weight @ first, np.tensordot(weight, second, 1)


def largest_z(theta: np.ndarray, truth) -> float:
    inclusion, mean, second = truth
    found = []
    for k in range(theta.shape[1]):
        found.append(z_score([theta[:, k] != 0], inclusion[k]))
        found.append(z_score([theta[:, k]], mean[k]))
        found += [z_score([theta[:, k] * theta[:, l]], second[k, l]) for l in range(k + 1)]
    return max(found)


@pytest.mark.parametrize("shares", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", PRIORS)
def test_chain_against_all_graphs(name, shares):
    surrogate, problem = made(name, shares)
    theta, _ = traced(surrogate, problem, 40_000)
    truth = enumerated(surrogate, problem)
    assert 0.05 < np.sort(truth[0])[1] < np.sort(truth[0])[-3] < 0.98
    assert largest_z(theta, truth) < LIMIT
    # Negative controls: a slab a little wider, and a precision off by a tenth.
    assert largest_z(theta, enumerated(surrogate, problem, 1.2 * SIGMA)) > 2 * LIMIT
    other = surrogate._replace(precision=(1.1 * surrogate.precision).astype(np.float32))
    assert largest_z(theta, enumerated(other, problem)) > LIMIT


def test_probabilities_of_single_decisions():
    surrogate, problem = made("own odds", 0.0)
    walker, hyper, stream = started(surrogate, problem)
    sums = np.zeros((2, len(surrogate.candidates)))
    count_single(hyper, prior_rules(problem.prior), problem.prior.status, surrogate, walker, stream, sums)
    inclusion = enumerated(surrogate, problem)[0]
    np.testing.assert_allclose(sums[1] / sums[0], inclusion, atol=0.03)
    forced = problem.prior.status[surrogate.candidates] == FORCED
    assert (sums[1][forced] == sums[0][forced]).all()
    assert not (problem.prior.status[surrogate.candidates] == FORBIDDEN).any()


def test_biases_given_parameters():
    surrogate, problem = made("learned p0", 0.4)
    theta, bias = traced(surrogate, problem, 20_000)
    left = bias - surrogate.bias_mean + theta @ surrogate.bias_slope
    covariance = surrogate.bias_root @ surrogate.bias_root.T
    for i in range(FEATURES.n_variables):
        assert abs(left[:, i].mean()) < LIMIT * math.sqrt(covariance[i, i] / len(left))
        for j in range(i + 1):
            error = math.sqrt((covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2) / len(left))
            assert abs(np.mean(left[:, i] * left[:, j]) - covariance[i, j]) < LIMIT * error
        for k in range(theta.shape[1]):
            error = math.sqrt(covariance[i, i] * np.mean(theta[:, k] ** 2) / len(left))
            assert abs(np.mean(left[:, i] * theta[:, k])) < LIMIT * error
    # The energy that comes with a draw is the one computed from the state.
    walker, _, stream = started(surrogate, problem)
    for _ in range(5):
        energy = K.draw_biases(surrogate, walker, stream)
        assert math.isclose(energy, K.bias_energy(surrogate, walker, np.zeros(5)), rel_tol=1e-10)


@pytest.mark.parametrize("name", PRIORS)
def test_a_stretch_is_taken_back(name):
    surrogate, problem = made(name, 0.4)
    walker, hyper, stream = started(surrogate, problem)
    status, prior = problem.prior.status, prior_rules(problem.prior)
    for _ in range(20):
        K.stretch(30, status, hyper, prior, surrogate, walker, stream)
        K.draw_biases(surrogate, walker, stream)
        K.mark(1, walker)
        before = [np.copy(part) for part in walker]
        assert K.stretch(200, status, hyper, prior, surrogate, walker, stream) > 0
        K.draw_biases(surrogate, walker, stream)
        K.take_back(1, status, surrogate, walker)
        assert (walker.theta == before[0]).all()
        assert (walker.counts[:2] == before[3][:2]).all()
        assert ((walker.place >= 0) == (before[2] >= 0)).all()
        listed = walker.listed[: walker.counts[0]]
        assert (walker.place[listed] == np.arange(len(listed))).all()
        assert (walker.bias == before[4]).all()
        np.testing.assert_allclose(walker.slope, before[5], rtol=0, atol=1e-9)
        slope = surrogate.pull - surrogate.precision.astype(float) @ walker.theta
        np.testing.assert_allclose(walker.slope, slope, rtol=0, atol=1e-9)


def test_long_stretches_against_all_graphs():
    surrogate, problem = made("learned p0", 0.4)
    theta, _ = traced(surrogate, problem, 1500, 12_000)
    assert largest_z(theta, enumerated(surrogate, problem)) < LIMIT


# From averages to the surrogate.


def quadratic():
    """A problem, averages, and the surrogate made of them."""
    rng = np.random.default_rng(9)
    p, rows = 4, 300
    features = Features.pairs(p)
    values = (rng.random((rows, p)) < [0.3, 0.5, 0.6, 0.4]).astype(float)
    pairs = features.members
    seen = np.column_stack([values, values[:, pairs[:, 0]] * values[:, pairs[:, 1]]])
    statistics = Statistics(float(rows), seen[:, :p].sum(axis=0), seen[:, p:].sum(axis=0))
    problem = Problem(features, statistics, Prior(forbidden=[(1, 2)]).resolve(features))
    candidates = in_play(problem)
    chosen = np.concatenate([np.arange(p), p + candidates])
    phi, mean = (
        rng.normal(0, 0.4, len(chosen)),
        seen[:, chosen].mean(axis=0) + rng.normal(0, 0.01, len(chosen)),
    )
    covariance = np.cov(seen[:, chosen].T)
    arrays = averages._regression(
        problem, candidates, phi, mean, covariance.copy(), np.full(len(candidates), 0.5), False, False
    )
    # One and the same matrix everywhere: with its ridge, and no floor as every feature is seen.
    covariance[np.diag_indices_from(covariance)] *= 1 + averages.RIDGE
    return problem, phi, mean, covariance, arrays


def weights_on_the_quadratic(problem, phi, mean, covariance, arrays, states: int = 30) -> np.ndarray:
    """w of random states where log Z is the averaged quadratic itself."""
    from edgewise.kernels.state import Sums

    rng = np.random.default_rng(3)
    surrogate = Surrogate(*(arrays[name] for name in Surrogate._fields))
    statistics, p = problem.statistics, problem.features.n_variables
    cliques = statistics.cliques.astype(float)[None]
    sums = Sums(np.array([statistics.n_rows]), statistics.singles.astype(float)[None], cliques)
    found = []
    for _ in range(states):
        walker = empty_walker(len(surrogate.candidates), p)
        walker.slope[:] = surrogate.pull
        for k in np.flatnonzero(rng.random(len(surrogate.candidates)) < 0.6):
            K.put(k, True, rng.normal(), 0, surrogate, walker)
        walker.bias[:] = rng.normal(size=p)
        away = np.concatenate([walker.bias, walker.theta]) - phi
        log_z = away @ mean + 0.5 * away @ covariance @ away
        energy = K.bias_energy(surrogate, walker, np.zeros(p))
        found.append(K.log_weight(sums, surrogate, walker, log_z, energy, prior_rules(problem.prior)))
    return np.array(found)


def test_the_weight_is_constant_where_the_surrogate_is_right():
    problem, phi, mean, covariance, arrays = quadratic()
    # The precision is kept in single precision: 1e-7 of some hundreds.
    assert np.ptp(weights_on_the_quadratic(problem, phi, mean, covariance, arrays)) < 1e-3
    # Negative controls: the complement forgotten, and the pull without its share of the biases.
    p = problem.features.n_variables
    bare = arrays | {"precision": (problem.statistics.n_rows * covariance[p:, p:]).astype(np.float32)}
    assert np.ptp(weights_on_the_quadratic(problem, phi, mean, covariance, bare)) > 1
    shifted = arrays | {"pull": arrays["pull"] + arrays["bias_slope"] @ arrays["bias_mean"]}
    assert np.ptp(weights_on_the_quadratic(problem, phi, mean, covariance, shifted)) > 1


def test_bending():
    """Draws in two clusters: the slope of the means between them is taken, and the matrix stays definite."""
    rng = np.random.default_rng(4)
    rows, size, draws = 200.0, 6, 4000
    factor = rng.normal(size=(size, size)) / 4
    C = factor @ factor.T + 0.05 * np.eye(size)
    narrow = rng.multivariate_normal(np.zeros(size), np.linalg.inv(rows * C), draws)
    apart = np.linalg.inv(np.linalg.cholesky(rows * C)).T @ np.eye(size)[0] * 3.0
    phis = narrow + np.outer(rng.choice([-1.0, 1.0], draws), apart)
    true_slope = C + 0.8 * rows * np.outer(C @ apart, C @ apart) / 9
    means = phis @ true_slope
    bent = C.copy()
    averages.bend(rows, phis, means, bent)
    np.testing.assert_allclose(bent, true_slope, atol=0.02 * abs(true_slope).max())
    np.testing.assert_allclose(bent, bent.T, rtol=1e-12)
    # However flat the means are there, nothing is taken that is not there.
    for slope in (-0.5, -5.0):
        bent = C.copy()
        averages.bend(rows, phis, phis @ (C + slope * rows * np.outer(C @ apart, C @ apart) / 9), bent)
        assert np.linalg.eigvalsh(bent)[0] > 0
        assert abs(bent - C).max() > 0.01 * abs(C).max()
    # Gaussian draws of the expected spread bend nothing.
    unbent = C.copy()
    averages.bend(rows, narrow, narrow @ true_slope, unbent)
    assert (unbent == C).all()


# Moments.


@pytest.mark.parametrize("order", [2, 3])
def test_moments_against_numpy(order):
    rng = np.random.default_rng(6)
    p, n = 9, 192
    members = Features.up_to(p, order).members
    X = (rng.random((p, n)) < rng.uniform(0.2, 0.9, (p, 1))).astype(np.float32)
    features = np.concatenate([X, [X[[i for i in row if i >= 0]].prod(axis=0) for row in members.tolist()]])
    assert len(features) > moments.TILE
    words = np.zeros((len(features), n // moments.BITS), np.uint64)
    K.pack_features(X, members, words)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert (bits == features).all()
    means = rng.integers(0, 100, len(features)).astype(np.int32)
    expected = means + features.sum(axis=1)
    K.add_means(words, means)
    assert (means == expected).all()
    products = rng.integers(0, 100, (len(features), len(features))).astype(np.int32)
    expected = products + features @ features.T
    K.add_products(words, products)
    assert (np.tril(products) == np.tril(expected)).all()


def test_averages_against_numpy():
    """Sums of two chains become the averages of all their draws and the mean covariance of the snapshots."""
    rng = np.random.default_rng(8)
    p, n, features = 5, 128, Features.pairs(5)
    parts, phis, means, covariances = [], [], [], []
    for draws in (7, 4):
        own = learning.empty_moments(draws, 10, p, n, 3, 1)
        for draw in range(draws):
            X = (rng.random((p, n)) < 0.6).astype(np.float32)
            K.pack_features(X, features.members, own.words)
            K.add_means(own.words, own.means[draw])
            own.phi[draw] = rng.normal(size=p + 10)
            if draw < 3:
                K.add_means(own.words, own.snapshots[draw])
                K.add_products(own.words, own.products)
                seen = np.concatenate([X, X[features.members[:, 0]] * X[features.members[:, 1]]])
                covariances.append(np.cov(seen))
            means.append(own.means[draw] / n)
        own.filled[:] = draws, 3, 0
        phis.append(own.phi)
        parts.append(own._asdict())
    phi, mean, covariance, _ = averages._averages(parts, n, 1)
    np.testing.assert_array_equal(phi, np.concatenate(phis))
    np.testing.assert_allclose(mean, means, rtol=1e-14)
    np.testing.assert_allclose(covariance, np.mean(covariances, axis=0), atol=1e-12)


# Oracles.


@entry
def ask(oracle, bias, theta, listed, count, members):
    return log_partition(oracle, bias, theta, listed, count, members)


@pytest.mark.parametrize("order", [2, 3])
def test_oracles_against_the_partition_function(order):
    rng = np.random.default_rng(7)
    p = 7
    members = Features.up_to(p, order).members
    states = AllStates(np.zeros(1 << p), np.zeros(1 << p))
    room = Elimination(elimination_room(p, len(members), 1 << 12))
    tight = Elimination(elimination_room(p, len(members), 4))
    for active in (0, 1, 6, len(members)):
        listed = rng.permutation(len(members))
        theta, bias = rng.normal(0, 2, len(members)), rng.normal(0, 2, p)
        chosen = listed[:active]
        expected = exact.log_partition(MRF(bias, members[chosen], theta[chosen]))
        for oracle in (states, room):
            answer = ask(oracle, bias, theta, listed, active, members)
            assert math.isclose(answer, expected, rel_tol=1e-12)
    assert math.isnan(ask(tight, bias, theta, listed, len(members), members))
    assert math.isnan(ask(Trust(np.int64(0)), bias, theta, listed, 0, members))


def test_kinds_of_oracles():
    decides = {kind: code(None) for kind, code in oracles.decides.answers.items()}
    assert decides == {AllStates: True, Elimination: True, Trust: False}
