"""The kernels of the particle engine against plain NumPy in double precision, and the penalty in a toy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from broken import Exposed
from edgewise.kernels import gibbs, graph, particles, plain_swarm, random
from edgewise.kernels.compiling import entry
from edgewise.kernels.lines import metropolis, penalised
from edgewise.kernels.random import fast_exp, lane_streams, lane_uniform, normal, scalar_stream

P, N_PARTICLES = 6, 200
K = Exposed(particles, plain_swarm, gibbs, graph, random)
PAIRS = np.array(list(itertools.combinations(range(P), 2)), np.int32)
ORDERS = {
    "pairs": PAIRS,
    "triples": np.array([*([i, j, -1] for i, j in PAIRS), [0, 1, 2], [1, 3, 5]], np.int32),
}


class PlainLanes:
    """xoshiro128+ of one lane in Python integers."""

    def __init__(self, words):
        self.s = [int(word) for word in words]

    def uniform(self):
        s0, s1, s2, s3 = self.s
        result = (s0 + s3) & 0xFFFFFFFF
        t = (s1 << 9) & 0xFFFFFFFF
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = ((s3 << 11) | (s3 >> 21)) & 0xFFFFFFFF
        self.s = [s0, s1, s2, s3]
        return (result >> 8) / 2**24


@entry(arrays=True)
def draw_lanes(lanes, count):
    out = np.empty((count, lanes.shape[1]), np.float32)
    for k in range(count):
        for s in range(lanes.shape[1]):
            out[k, s] = lane_uniform(lanes, s)
    return out


@entry(arrays=True)
def exponentials(x):
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = fast_exp(x[k])
    return out


class Swarm:
    """A small random model with weighted particles, and its fields in double precision."""

    def __init__(self, order="pairs", seed=0, density=0.5):
        rng = np.random.default_rng(seed)
        self.members = ORDERS[order]
        count = len(self.members)
        self.theta = np.where(rng.random(count) < density, rng.normal(0, 1, count), 0.0)
        self.bias = rng.normal(0, 0.7, P)
        self.X = (rng.random((P, N_PARTICLES)) < 0.5).astype(np.float32)
        self.w = rng.gamma(3.0, 1.0, N_PARTICLES).astype(np.float32)
        self.lanes = lane_streams(np.random.SeedSequence(seed), N_PARTICLES)
        self.graph = graph.empty_graph(self.members, np.zeros(count, np.int8), P)
        graph.place_all(np.flatnonzero(self.theta), self.graph)
        self.F = np.empty_like(self.X)
        self.scratch = np.empty(N_PARTICLES, np.float32)
        K.compute_fields(self.X, self.bias, self.theta, self.graph, self.F, self.scratch)

    def clique(self, *variables):
        return [tuple(v for v in row if v >= 0) for row in self.members.tolist()].index(variables)

    def fields(self, X=None, theta=None):
        X = (self.X if X is None else X).astype(float)
        F = np.repeat(self.bias[:, None], X.shape[1], axis=1)
        for value, row in zip(self.theta if theta is None else theta, self.members.tolist()):
            row = [v for v in row if v >= 0]
            for i in row:
                F[i] += value * X[[j for j in row if j != i]].prod(axis=0)
        return F

    def conditional(self, variables):
        """Probabilities (states, particles) of the joint state of some variables given the others."""
        log = []
        for state in itertools.product((0.0, 1.0), repeat=len(variables)):
            X = self.X.astype(float).copy()
            X[list(variables)] = np.array(state[::-1])[:, None]
            energy = self.bias @ X
            for value, row in zip(self.theta, self.members.tolist()):
                energy += value * X[[v for v in row if v >= 0]].prod(axis=0)
            log.append(energy)
        weight = np.exp(np.array(log) - np.max(log, axis=0))
        return weight / weight.sum(axis=0)


def growth_sums(h, w):
    w = w.astype(float)
    return np.array([w.sum(), (w**2).sum(), (w * h).sum(), (w * h * h).sum(), (w / h).sum()])


def test_lanes_are_xoshiro128plus():
    lanes = lane_streams(np.random.SeedSequence(4), 5)
    plain = [PlainLanes(lanes[:, s]) for s in range(5)]
    drawn = draw_lanes(lanes, 50)
    expected = [[lane.uniform() for lane in plain] for _ in range(50)]
    np.testing.assert_array_equal(drawn, np.array(expected, np.float32))
    assert [lane.s for lane in plain] == lanes.T.tolist()


def test_fast_exp():
    x = np.linspace(-85, 85, 20_001).astype(np.float32)
    np.testing.assert_allclose(exponentials(x), np.exp(x.astype(float)), rtol=1e-5)
    small = np.linspace(-10, 10, 20_001).astype(np.float32)
    np.testing.assert_allclose(exponentials(small), np.exp(small.astype(float)), rtol=1.5e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_gibbs_sweep_draw_for_draw(order):
    swarm = Swarm(order, seed=1)
    np.testing.assert_allclose(swarm.F, swarm.fields(), atol=1e-5)
    X = swarm.X.astype(float)
    plain = [PlainLanes(swarm.lanes[:, s]) for s in range(N_PARTICLES)]
    close = 0
    for _ in range(3):
        for i in range(P):
            probability = 1 / (1 + np.exp(-swarm.fields(X)[i]))
            u = np.array([lane.uniform() for lane in plain])
            close += np.count_nonzero(abs(u - probability) < 2e-6)
            X[i] = u < probability
    assert close == 0, "choose another seed: rounding could decide a state"
    change = np.empty(N_PARTICLES, np.float32)
    for _ in range(3):
        gibbs.gibbs_sweep(swarm.X, swarm.F, swarm.lanes, swarm.theta, swarm.graph, change, swarm.scratch)
    np.testing.assert_array_equal(swarm.X, X)
    np.testing.assert_allclose(swarm.F, swarm.fields(), atol=1e-4)


def test_graph_lists():
    swarm = Swarm("triples", seed=2)
    start, degree, adjacent = swarm.graph.start, swarm.graph.degree, swarm.graph.adjacent
    active = set(np.flatnonzero(swarm.theta).tolist())
    for a in list(active)[::2]:
        K.deactivate(a, swarm.graph)
        active.remove(a)
    assert set(swarm.graph.listed[: swarm.graph.counts[0]].tolist()) == active
    assert (swarm.graph.counts == len(active)).all()
    places = swarm.graph.place[swarm.graph.listed[: swarm.graph.counts[0]]]
    np.testing.assert_array_equal(places, np.arange(len(active)))
    assert np.count_nonzero(swarm.graph.place >= 0) == len(active)
    for i in range(P):
        listed = adjacent[start[i] : start[i] + degree[i]].tolist()
        assert sorted(listed) == sorted(a for a in active if i in swarm.members[a])


@pytest.mark.parametrize("pair", [(0, 1), (1, 4), (3, 5)])
def test_pair_kernels(pair):
    swarm = Swarm(seed=3)
    a = swarm.clique(*pair)
    i, j = pair
    begin, end = 30, 170
    # The states of `conditional` count the first variable fastest: 00, 10, 01, 11.
    probability = swarm.conditional(pair)
    rows = (swarm.X[i], swarm.X[j], swarm.F[i], swarm.F[j], swarm.w)
    cells = np.empty(4)
    K.pair_cells(*rows, swarm.theta[a], begin, end, cells)
    w = swarm.w[begin:end].astype(float)
    np.testing.assert_allclose(cells, probability[:, begin:end] @ w / w.sum(), atol=3e-6)
    factors = np.exp([0.2, -0.5, 0.3, 1.1])
    sums = np.empty(5)
    K.pair_growth(*rows, swarm.theta[a], factors, begin, end, sums)
    h = factors @ probability
    np.testing.assert_allclose(sums, growth_sums(h[begin:end], swarm.w[begin:end]), rtol=1e-5)


def test_pair_follow_moves_weights_states_and_fields():
    swarm = Swarm(seed=4)
    i, j = 1, 4
    a = swarm.clique(i, j)
    change, shift_i, shift_j = 0.8, -0.3, -0.5
    factors = np.exp([0.0, shift_i, shift_j, change + shift_i + shift_j])
    before = swarm.conditional((i, j))
    old_weights = swarm.w.astype(float)
    plain = [PlainLanes(swarm.lanes[:, s]) for s in range(N_PARTICLES)]
    changes = np.empty((2, N_PARTICLES), np.float32)
    old = swarm.X.copy()
    K.pair_follow(
        swarm.X[i], swarm.X[j], swarm.F[i], swarm.F[j], swarm.w, swarm.theta[a], change, factors,
        shift_i, shift_j, swarm.lanes, *changes,
    )  # fmt: skip
    np.testing.assert_allclose(swarm.w, old_weights * (factors @ before), rtol=1e-5)
    after = factors[:, None] * before / (factors @ before)
    # One uniform number chooses among the cells in the order 11, 10, 01, 00 of x_i first.
    u = np.array([lane.uniform() for lane in plain])
    x_i = u < after[1] + after[3]
    x_j = np.where(x_i, u < after[3], u - after[1] - after[3] < after[2])
    assert np.mean((swarm.X[i] == x_i) & (swarm.X[j] == x_j)) > 0.99
    np.testing.assert_array_equal(changes[0], swarm.X[i] - old[i])
    np.testing.assert_array_equal(changes[1], swarm.X[j] - old[j])
    swarm.theta[a] += change
    swarm.bias[i] += shift_i
    swarm.bias[j] += shift_j
    np.testing.assert_allclose(swarm.F[[i, j]], swarm.fields()[[i, j]], atol=1e-5)


def test_single_kernels():
    swarm = Swarm(seed=5)
    i, begin, end = 2, 0, 120
    probability = 1 / (1 + np.exp(-swarm.fields()[i]))
    w = swarm.w[begin:end].astype(float)
    assert K.single_mean(swarm.F[i], swarm.w, 1, begin, end) == pytest.approx(
        w @ probability[begin:end] / w.sum(), abs=3e-6
    )
    assert K.single_mean(swarm.F[i], swarm.w, -1, begin, end) == pytest.approx(
        w @ (1 - probability[begin:end]) / w.sum(), abs=3e-6
    )
    outside, inside = math.exp(-0.4), math.exp(0.7)
    sums = np.empty(5)
    K.single_growth(swarm.F[i], swarm.w, outside, inside, begin, end, sums)
    h = outside * (1 - probability) + inside * probability
    np.testing.assert_allclose(sums, growth_sums(h[begin:end], swarm.w[begin:end]), rtol=1e-5)
    plain = [PlainLanes(swarm.lanes[:, s]) for s in range(N_PARTICLES)]
    old_weights = swarm.w.astype(float)
    K.single_follow(swarm.X[i], swarm.F[i], swarm.w, 1.1, outside, inside, swarm.lanes, swarm.scratch)
    np.testing.assert_allclose(swarm.w, old_weights * h, rtol=1e-5)
    u = np.array([lane.uniform() for lane in plain])
    assert np.mean(swarm.X[i] == (u < inside * probability / h)) > 0.99


def test_triple_kernels():
    swarm = Swarm(seed=6)
    i, j, k = 4, 1, 2
    swarm.theta[swarm.clique(2, 4)] = 0.0  # the arriving pair is absent
    swarm.F[:] = swarm.fields()
    ij, jk = swarm.theta[swarm.clique(1, 4)], swarm.theta[swarm.clique(1, 2)]
    probability = swarm.conditional((i, j, k))
    begin, end = 50, 200
    w = swarm.w[begin:end].astype(float)
    cells = np.empty(8)
    K.triple_cells(i, j, k, swarm.X, swarm.F, swarm.w, ij, jk, begin, end, cells)
    np.testing.assert_allclose(cells, probability[:, begin:end] @ w / w.sum(), atol=3e-6)
    factors = np.exp(np.linspace(-0.8, 0.9, 8))
    sums = np.empty(5)
    K.triple_growth(i, j, k, swarm.X, swarm.F, swarm.w, ij, jk, factors, begin, end, sums)
    h = factors @ probability
    np.testing.assert_allclose(sums, growth_sums(h[begin:end], swarm.w[begin:end]), rtol=1e-5)


def test_plain_kernels():
    swarm = Swarm("triples", seed=7)
    state = (swarm.X[0] + 2 * swarm.X[3]).astype(np.float32)
    factors = np.array([0.7, 1.2, 0.4, 2.0])
    sums, cells = np.empty(5), np.empty(4)
    K.plain_growth(state, swarm.w, factors, 10, 150, sums)
    h = factors[state.astype(int)]
    np.testing.assert_allclose(sums, growth_sums(h[10:150], swarm.w[10:150]), rtol=1e-6)
    K.plain_cells(state, swarm.w, 10, 150, cells)
    expected = np.bincount(state[10:150].astype(int), swarm.w[10:150], 4)
    np.testing.assert_allclose(cells, expected / expected.sum(), rtol=1e-5)


def test_reverse_noise_from_the_same_particles():
    """Forward and reverse variance of the growth, the latter against particles of the moved model."""
    rng = np.random.default_rng(8)
    g = rng.random(400_000)
    h = np.exp(0.6 * g)
    w = np.ones_like(g)
    noise = np.empty(2)
    value = K.log_growth(growth_sums(h, w), 10.0, noise)
    count = len(g)
    assert noise[0] == pytest.approx(100 * h.var() / h.mean() ** 2 / count, rel=1e-6)
    moved = rng.choice(g, 400_000, p=h / h.sum())
    back = np.exp(-0.6 * moved)
    assert noise[1] == pytest.approx(100 * back.var() / back.mean() ** 2 / count, rel=0.02)
    assert value == pytest.approx(10 * math.log(h.mean()), rel=1e-5)


def test_resampling_is_systematic_and_unbiased():
    rng = np.random.default_rng(9)
    n, begin, end = 24, 4, 20
    weights = rng.gamma(0.7, 1.0, n).astype(np.float32)
    stream = scalar_stream(np.random.SeedSequence(2))
    expected = weights[begin:end] / weights[begin:end].sum() * (end - begin)
    copies = np.zeros(end - begin)
    rounds = 4000
    for _ in range(rounds):
        X = np.arange(n, dtype=np.float32)[None].repeat(2, axis=0)
        F = -X
        w = weights.copy()
        K.resample(X, F, w, begin, end, stream, *np.zeros((3, n), np.int64))
        assert (w[begin:end] == 1).all()
        np.testing.assert_array_equal(X[0, :begin], np.arange(begin))
        np.testing.assert_array_equal(X[0, end:], np.arange(end, n))
        np.testing.assert_array_equal(w[end:], weights[end:])
        np.testing.assert_array_equal(F, -X)
        count = np.bincount(X[0, begin:end].astype(int), minlength=n)[begin:end]
        assert (abs(count - expected) < 1 + 1e-4).all()
        copies += count
    share = expected % 1
    error = np.sqrt(np.maximum(share * (1 - share), 1e-6) / rounds)
    assert (abs(copies / rounds - expected) / error).max() < 4
    # Negative control: weights forgotten.
    assert (abs(copies / rounds - 1.0) / error).max() > 4


def test_weight_ess():
    w = np.random.default_rng(1).gamma(2.0, 1.0, 100).astype(np.float32)
    part = w[20:90].astype(float)
    share, mean = K.relative_ess(w, 20, 90)
    assert share == pytest.approx(part.sum() ** 2 / (part**2).sum() / 70, rel=1e-5)
    assert mean == pytest.approx(part.mean(), rel=1e-5)


@entry(arrays=True)
def toy_chain(steps, log_odds, sd_birth, sd_death, stream, with_penalty, symmetric):
    """Two states; decisions see their log ratio with Gaussian noise of another size in each direction."""
    state, visits = 0, 0
    noise = np.empty(2)
    for _ in range(steps):
        forward = sd_birth if state == 0 else sd_death
        reverse = sd_death if state == 0 else sd_birth
        ratio = (log_odds if state == 0 else -log_odds) + forward * normal(stream)
        if with_penalty:
            noise[0] = forward**2
            noise[1] = reverse**2 if symmetric else 0.0
            ratio = penalised(ratio, noise, stream)
        if metropolis(stream, ratio):
            state = 1 - state
        visits += state
    return visits / steps


@pytest.mark.parametrize(("sd_birth", "sd_death"), [(0.5, 0.5), (1.2, 0.4), (0.3, 1.5)])
def test_penalty_restores_detailed_balance(sd_birth, sd_death):
    stream = scalar_stream(np.random.SeedSequence(7))
    steps, odds = 400_000, math.log(0.3 / 0.7)
    share = toy_chain(steps, odds, sd_birth, sd_death, stream, True, True)
    # Acceptance rates of a third or more: the effective draws are at least a tenth of the steps.
    error = math.sqrt(0.21 / (0.1 * steps))
    assert abs(share - 0.3) < 4 * error
    if sd_birth != sd_death:
        one_sided = toy_chain(steps, odds, sd_birth, sd_death, stream, True, False)
        assert abs(one_sided - 0.3) > 4 * error
    # Negative control: without the penalty the noise itself is accepted.
    bare = toy_chain(steps, odds, sd_birth, sd_death, stream, False, False)
    if max(sd_birth, sd_death) > 1:
        assert abs(bare - 0.3) > 4 * error


def test_scalar_stream_is_xoshiro256plusplus():
    stream = scalar_stream(np.random.SeedSequence(3))
    mask = (1 << 64) - 1
    s = [int(word) for word in stream]

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    for _ in range(20):
        result = (rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        assert K.uniform(stream) == ((result >> 12) + 0.5) / 2**52
