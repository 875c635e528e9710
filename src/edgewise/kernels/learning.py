"""Learning the averages of the surrogate (docs/method.md, 10): the walker goes, particles follow, sums grow.

**Moments** are of the draws of a round: ``phi`` the biases and the parameters in play of each, ``means`` the
features counted over its particles; ``occupied`` sums of the indicators, ``products`` of every two features
over the draws of which ``snapshots`` keeps the counts; ``weights`` of some draws where there is an oracle;
``filled`` (draws, snapshots, weights). ``words`` is scratch.

**School** is what a round needs: particles ``X`` with their streams ``lanes``, the ``lesson``, the
``moments``, and ``field`` and ``scratch`` for sweeps.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from edgewise.kernels.bits import BITS
from edgewise.kernels.blanks import impute, lean_on, leaning
from edgewise.kernels.compiling import kernel, long
from edgewise.kernels.gibbs import fresh_sweep
from edgewise.kernels.hyper import draw_hyper
from edgewise.kernels.moments import add_means, add_products, pack_features
from edgewise.kernels.oracles import decides
from edgewise.kernels.stretches import bias_energy, log_weight, partition_of, visit_stretches
from edgewise.kernels.surrogate import load_walker

Moments = namedtuple("Moments", "phi means occupied products snapshots weights filled words")
DRAWS, SNAPSHOTS, WEIGHTS = 0, 1, 2
Lesson = namedtuple("Lesson", "moves follow counts snapshot_every weigh_every")
School = namedtuple("School", "X lanes lesson moments field scratch")


@kernel
def add_parameters(candidates, chain, phi, occupied):
    """Keep the present biases and the parameters in play; add the indicators."""
    p = chain.bias.shape[0]
    for i in range(p):
        phi[i] = chain.bias[i]
    for k in range(candidates.shape[0]):
        phi[p + k] = chain.theta[candidates[k]]
        occupied[k] += 1.0 if chain.graph.place[candidates[k]] >= 0 else 0.0


@kernel
def add_weight(sums, chain, prior, surrogate, oracle, decider, blanks, moments):
    """Keep w of the present state; not a number where the graph is too wide."""
    load_walker(surrogate, chain, decider.walker)
    energy = bias_energy(surrogate, decider.walker, decider.room)
    log_z = partition_of(oracle, decider)
    filled = moments.filled[WEIGHTS]
    weight = log_weight(sums, surrogate, decider.walker, log_z, energy, prior)
    moments.weights[filled] = weight - leaning(blanks)
    moments.filled[WEIGHTS] = filled + 1


@long
def learn(rules, sums, chain, surrogate, oracle, decider, blanks, school, iterations):
    """So many draws of a round: the lesson says whether the walker moves and what is added up when."""
    X, lanes, lesson, moments = school.X, school.lanes, school.lesson, school.moments
    field, scratch = school.field, school.scratch
    for _ in range(iterations):
        impute(blanks, chain, False)
        if lesson.moves:
            lean_on(blanks, surrogate)
            visit_stretches(rules, sums, chain, surrogate, oracle, decider, blanks)
            draw_hyper(chain.hyper, chain.theta, rules.prior, chain.graph, chain.stream)
        draw = moments.filled[DRAWS]
        room = moments.filled[WEIGHTS] < moments.weights.shape[0]
        if decides(oracle) and lesson.moves and room and draw % lesson.weigh_every == 0:
            add_weight(sums, chain, rules.prior, surrogate, oracle, decider, blanks, moments)
        for _ in range(lesson.follow):
            fresh_sweep(X, lanes, chain.bias, chain.theta, chain.graph, field, scratch)
        for _ in range(lesson.counts):
            fresh_sweep(X, lanes, chain.bias, chain.theta, chain.graph, field, scratch)
            pack_features(X, decider.members, moments.words)
            add_means(moments.words, moments.means[draw])
        add_parameters(surrogate.candidates, chain, moments.phi[draw], moments.occupied)
        kept = moments.filled[SNAPSHOTS]
        if draw % lesson.snapshot_every == 0 and kept < moments.snapshots.shape[0]:
            add_means(moments.words, moments.snapshots[kept])
            add_products(moments.words, moments.products)
            moments.filled[SNAPSHOTS] = kept + 1
        moments.filled[DRAWS] = draw + 1


def empty_moments(
    draws: int, positions: int, n_variables: int, particles: int, snapshots: int, weights: int
) -> Moments:
    """Nothing added up yet."""
    features = n_variables + positions
    return Moments(
        phi=np.zeros((draws, features)),
        means=np.zeros((draws, features), np.int32),
        occupied=np.zeros(positions),
        products=np.zeros((features, features), np.int32),
        snapshots=np.zeros((snapshots, features), np.int32),
        weights=np.zeros(weights),
        filled=np.zeros(3, np.int64),
        words=np.zeros((features, particles // BITS), np.uint64),
    )
