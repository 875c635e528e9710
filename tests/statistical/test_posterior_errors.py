"""The errors that a posterior quotes, against the errors that it makes."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.features import Features
from edgewise.posterior import Posterior
from helpers import sparse_draws

P, CHAINS, DRAWS, MEMORY = 25, 4, 600, 0.85


@pytest.fixture(scope="module")
def truth_and_posterior() -> tuple[np.ndarray, Posterior]:
    """300 independent two-state Markov chains with known inclusion probabilities."""
    rng = np.random.default_rng(11)
    features = Features.pairs(P)
    truth = rng.uniform(0.05, 0.95, features.n_cliques)
    draws = []
    for _ in range(CHAINS):
        state = rng.random(len(truth)) < truth
        active = np.zeros((DRAWS, len(truth)))
        for t in range(DRAWS):
            state = np.where(rng.random(len(truth)) < MEMORY, state, rng.random(len(truth)) < truth)
            active[t] = state
        draws.append(sparse_draws(active, np.zeros((DRAWS, P))))
    return truth, Posterior(draws, features, [f"x{i}" for i in range(P)])


def test_inclusion_probabilities_miss_by_their_error(truth_and_posterior):
    truth, posterior = truth_and_posterior
    z = (posterior.edge_values("inclusion") - truth) / posterior._quality.mcse
    # 300 standard normal values: their sd is 1 +/- 0.04, and an estimated error widens it a little.
    assert 0.85 < z.std() < 1.2
    assert abs(z.mean()) < 4 / np.sqrt(len(z))


def test_errors_that_ignore_the_memory_fail_the_same_test(truth_and_posterior):
    truth, posterior = truth_and_posterior
    naive = np.sqrt(truth * (1 - truth) / (CHAINS * DRAWS))
    assert ((posterior.edge_values("inclusion") - truth) / naive).std() > 2


def test_effective_draws_of_known_memory(truth_and_posterior):
    _, posterior = truth_and_posterior
    expected = CHAINS * DRAWS * (1 - MEMORY) / (1 + MEMORY)
    assert 0.85 < np.median(posterior._quality.ess) / expected < 1.15


def test_answers_to_questions_miss_by_their_error(truth_and_posterior):
    truth, posterior = truth_and_posterior
    answers = [
        posterior.probability(lambda graph, j=j: graph.has_edge("x0", f"x{j}"), max_draws=400)
        for j in range(1, P)
    ]
    z = np.array([(float(a) - truth[k]) / a.mcse for k, a in enumerate(answers)])
    assert 0.6 < np.sqrt((z**2).mean()) < 1.5
