"""The enumeration itself, against brute-force quadrature that shares none of its shortcuts."""

from __future__ import annotations

import gzip
import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from truth import all_graphs, enumerate_posterior, log_graph_prior, state_features

from edgewise.features import Features, Statistics
from edgewise.priors import BetaInclusion, FixedInclusion, FixedSlab, GammaSlab, NormalBias, Prior


def grid(low: float, high: float, points: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return 0.5 * (high - low) * (nodes + 1) + low, 0.5 * (high - low) * weights


def quadrature_of_one_clique(
    features: Features, statistics: Statistics, sigma0: float, bias_sd: float, points: int
) -> dict[str, float]:
    """Evidence, E[A] and E[A^2] of the graph whose only candidate is active, by a tensor grid."""
    p = features.n_variables
    axes = [grid(-6 * bias_sd, 6 * bias_sd, points)] * p + [grid(-7 * sigma0, 7 * sigma0, points)]
    table = state_features(features)
    bias_nodes = np.array(list(itertools.product(*(axis[0] for axis in axes[:p]))))
    bias_weights = np.array(list(itertools.product(*(axis[1] for axis in axes[:p])))).prod(axis=1)
    bias_density = stats.norm(0, bias_sd).pdf(bias_nodes).prod(axis=1) * bias_weights
    total = np.zeros(3)
    for value, weight in zip(*axes[p]):
        theta = np.column_stack([bias_nodes, np.full(len(bias_nodes), value)])
        log_z = special.logsumexp(theta @ table.T, axis=1)
        sums = np.append(statistics.singles, statistics.cliques)
        likelihood = np.exp(theta @ sums - statistics.n_rows * log_z)
        mass = (likelihood * bias_density).sum() * weight * stats.norm(0, sigma0).pdf(value)
        total += mass * np.array([1.0, value, value**2])
    return {"evidence": total[0], "mean": total[1] / total[0], "square": total[2] / total[0]}


PAIR = Features.pairs(2)
PAIR_SUMS = Statistics(12.5, np.array([7.0, 5.5]), np.array([4.5]))
TRIPLE = Features.listed(3, [(0, 1, 2)])
TRIPLE_SUMS = Statistics(9.0, np.array([6.0, 5.0, 6.0]), np.array([4.0]))


@pytest.mark.parametrize(
    ("features", "statistics", "points"), [(PAIR, PAIR_SUMS, 60), (TRIPLE, TRIPLE_SUMS, 26)]
)
def test_fixed_hyperparameters_against_quadrature(features, statistics, points):
    prior = Prior(FixedInclusion(0.3), FixedSlab(1.3), NormalBias(1.2)).resolve(features)
    truth = enumerate_posterior(features, statistics, prior, target_error=0.001)
    assert np.nanmax(truth.standard_error) < 0.001
    found = quadrature_of_one_clique(features, statistics, 1.3, 1.2, points)
    error = truth.standard_error[1]
    assert abs(truth.log_evidence[1] - math.log(found["evidence"])) < 4 * error
    assert truth.mean[0] == pytest.approx(found["mean"], abs=0.004)
    assert truth.sd[0] == pytest.approx(math.sqrt(found["square"] - found["mean"] ** 2), abs=0.004)
    # A slab of another width is visible at this tolerance: the check can fail.
    other = quadrature_of_one_clique(features, statistics, 1.3 * 1.05, 1.2, points)
    assert abs(truth.log_evidence[1] - math.log(other["evidence"])) > 4 * error


def test_free_hyperparameters_against_quadrature():
    prior = Prior(BetaInclusion(2.0, 3.0), GammaSlab(3.0, 2.0), NormalBias(1.2))
    truth = enumerate_posterior(PAIR, PAIR_SUMS, prior.resolve(PAIR), target_error=0.001)
    nodes, weights = grid(-4.5, 3.5, 40)  # log precision
    density = stats.gamma(3.0, scale=1 / 2.0).pdf(np.exp(nodes)) * np.exp(nodes) * weights
    pieces = [quadrature_of_one_clique(PAIR, PAIR_SUMS, sigma, 1.2, 50) for sigma in np.exp(-0.5 * nodes)]
    evidence = np.array([piece["evidence"] for piece in pieces]) * density
    mean = np.array([piece["mean"] for piece in pieces]) @ evidence / evidence.sum()
    square = np.array([piece["square"] for piece in pieces]) @ evidence / evidence.sum()
    sigma = np.exp(-0.5 * nodes) @ evidence / evidence.sum()
    assert abs(truth.log_evidence[1] - math.log(evidence.sum())) < 4 * truth.standard_error[1] + 1e-4
    assert truth.mean[0] == pytest.approx(mean, abs=0.005)
    assert truth.sd[0] == pytest.approx(math.sqrt(square - mean**2), abs=0.005)
    inclusion = 1 / (1 + math.exp(truth.log_evidence[0] - math.log(evidence.sum())) * 3 / 2)
    assert truth.inclusion[0] == pytest.approx(inclusion, abs=0.001)
    assert truth.p0 == pytest.approx((2 + inclusion) / 6, abs=0.001)
    without = stats.gamma(3.0, scale=1 / 2.0).expect(lambda precision: precision**-0.5)
    expected = inclusion * sigma + (1 - inclusion) * without
    assert truth.sigma0 == pytest.approx(expected, abs=0.003)


def test_no_data_returns_the_prior():
    features = Features.up_to(3, 3)
    prior = Prior(edge_probability={(0, 1): 0.9}, forced=[(0, 2)], forbidden=[(0, 1, 2)])
    truth = enumerate_posterior(features, Statistics.none(features), prior.resolve(features))
    np.testing.assert_allclose(truth.log_evidence, 0.0, atol=0.02)
    np.testing.assert_allclose(truth.inclusion, [0.9, 1.0, 0.5, 0.0], atol=0.004)
    assert truth.p0 == pytest.approx(0.5, abs=0.003)
    assert truth.sigma0 == pytest.approx(math.sqrt(5) * special.gamma(4.5) / special.gamma(5), rel=0.01)
    assert truth.sd[0] == pytest.approx(math.sqrt(5 / 4), rel=0.03)


def test_prior_of_graphs_sums_to_one():
    features = Features.pairs(4)
    prior = Prior(edge_probability={(0, 1): 0.9, (1, 2): 0.2}, forced=[(0, 2)]).resolve(features)
    graphs = all_graphs(prior)
    assert len(graphs) == 32
    assert np.exp(log_graph_prior(graphs, prior)).sum() == pytest.approx(1.0, abs=1e-12)


def test_five_variables_all_1024_graphs():
    features = Features.pairs(5)
    rng = np.random.default_rng(7)
    table = state_features(features)
    theta = np.concatenate([np.full(5, -0.5), [1.5, 0, 0, 0, 1.0, 0, 0, -1.5, 0, 0]])
    sums = table[rng.choice(32, size=200, p=special.softmax(table @ theta))].sum(axis=0)
    statistics = Statistics(200.0, sums[:5], sums[5:])
    truth = enumerate_posterior(features, statistics, Prior().resolve(features))
    assert truth.graphs.shape == (1024, 10)
    assert truth.standard_error.max() < 0.005
    assert truth.inclusion_error.max() < 0.001
    assert (truth.inclusion[[0, 7]] > 0.8).all()
    # The errors must be honest: another scrambling agrees within them.
    again = enumerate_posterior(
        features, statistics, Prior().resolve(features), target_error=0.02, start_points=16, seed=1
    )
    error = np.hypot(truth.standard_error, again.standard_error)
    scores = (truth.log_evidence - again.log_evidence) / error
    assert 0.3 < scores.std() < 2.5
    assert abs(truth.inclusion - again.inclusion).max() < 5 * again.inclusion_error.max()


@pytest.mark.slow
def test_reinis_all_32768_graphs():
    directory = os.environ.get("EDGEWISE_DATA")
    if not directory:
        pytest.skip("set EDGEWISE_DATA to the directory that holds binary/reinis.csv.gz")
    with gzip.open(Path(directory) / "binary" / "reinis.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
    features = Features.pairs(6)
    pairs = features.members
    sums = (rows[:, pairs[:, 0]] * rows[:, pairs[:, 1]]).sum(axis=0)
    statistics = Statistics(float(len(rows)), rows.sum(axis=0), sums)
    truth = enumerate_posterior(
        features, statistics, Prior().resolve(features), neglect=16.0, target_error=0.02, start_points=16
    )
    assert len(truth.graphs) == 32768
    sampled = np.isfinite(truth.standard_error)
    assert truth.probability[~sampled].sum() < 1e-3
    assert truth.inclusion_error.max() < 0.002
