"""From sums over particles to the surrogate: averages and the regression they make (docs/method.md, 10).

Everything here happens once per round of warm-up, for all chains together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgewise.engines.common import prior_rules
from edgewise.engines.protocol import Problem

# A feature that no particle shows would have no variance: it gets this share of the data's own.
VARIANCE_FLOOR = 0.3
# Keeps the matrix positive definite where particles are few.
RIDGE = 1e-3
# Directions in which the posterior varies this much more than the surrogate are bent, so many at most.
MULTIMODAL = 1.6
MOST_BENT = 12
FEWEST_TO_BEND = 300
VARIES = 0.2
MOST_FLATTENED = 0.7
# How often a position is chosen for a decision of its own, relative to the most uncertain ones.
LOWEST_CHOICE = 0.05
ACTIVE_CHOICE = 0.5
# Rivals: sets of positions that explain the same correlation.
RIVALS_EACH = 4
SET_SIZES = (3, 4, 6)
RIVAL_CORRELATION = 0.1
RIVAL_SHARE = 0.3
SELDOM = 0.01
# What a particle of a snapshot is worth in independent ones; with so many of those for every active parameter
# their covariances stand alone, before they are weighed against those of so many rows.
SNAPSHOT_WORTH, ENOUGH, ROWS_COUNTED = 0.1, 10.0, 16_384
# Sweeps of the walk on a new surrogate that shows which positions are rivals.
REHEARSED = 1000
# A long sweep is rehearsed less often, in so many steps together, but so often at least.
REHEARSED_STEPS, FEWEST_REHEARSED = 1_500_000, 250
# Rivals are looked for among so many positions, the most uncertain ones.
MOST_UNCERTAIN = 1000
REHEARSAL_SEED = 7

Arrays = dict[str, np.ndarray]


def surrogate_arrays(
    problem: Problem,
    candidates: np.ndarray,
    sums: Sequence[Mapping[str, np.ndarray]],
    particles: int,
    counts: int,
    rehearse: bool,
    with_rows: bool = False,
) -> Arrays:
    """The averaged quadratic (10.1) as a regression with the biases integrated out (10.2), (10.3).

    `with_rows`: while particles are few for the parameters, the rows take part in the covariances.
    """
    from threadpoolctl import threadpool_limits

    # On one thread the sums have one order, whatever the machine has to offer.
    with threadpool_limits(1):
        phis, means, covariance, occupied = _averages(sums, particles, counts)
        if with_rows:
            kept = sum(int(part["filled"][1]) for part in sums)
            _add_rows(problem, candidates, covariance, kept * particles, float(occupied.sum()))
        bend(float(problem.statistics.n_rows), phis, means, covariance)
        return _regression(
            problem, candidates, phis.mean(axis=0), means.mean(axis=0), covariance, occupied, rehearse
        )


def _averages(
    sums: Sequence[Mapping[str, np.ndarray]], particles: int, counts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Parameters and means of all draws; posterior averages (10.1) of covariances and indicators."""
    from edgewise.kernels.moments import covariance_of

    draws = sum(int(part["filled"][0]) for part in sums)
    kept = sum(int(part["filled"][1]) for part in sums)
    phi = np.concatenate([part["phi"][: int(part["filled"][0])] for part in sums])
    mean = np.concatenate([part["means"][: int(part["filled"][0])] for part in sums])
    mean = mean / float(particles * counts)
    occupied = np.sum([part["occupied"] for part in sums], axis=0) / draws
    products = sums[0]["products"].copy()
    for part in sums[1:]:
        products += part["products"]
    # Whole numbers below 2^53: exact in any order.
    snapshots = np.concatenate([part["snapshots"][: int(part["filled"][1])] for part in sums]).astype(float)
    covariance = snapshots.T @ snapshots
    covariance_of(products, covariance, float(particles), float(kept), covariance)
    return phi, mean, covariance, occupied


def _add_rows(problem: Problem, candidates: np.ndarray, C: np.ndarray, seen: int, active: float) -> None:
    """Covariances of features over the rows, weighed against those over so many particles (10.12)."""
    from edgewise.engines.start import has_many_rows

    samples = SNAPSHOT_WORTH * seen
    if samples > ENOUGH * active or not has_many_rows(problem):
        return
    found = _covariance_of_rows(problem, candidates)
    if found is None:
        return
    rows, theirs = found
    C *= samples / (samples + rows)
    C += rows / (samples + rows) * theirs


def _covariance_of_rows(problem: Problem, candidates: np.ndarray) -> tuple[int, np.ndarray] | None:
    """How many rows were counted, and covariances of all features over them; None without rows."""
    from edgewise.data.table import BinaryData
    from edgewise.kernels.bits import BITS
    from edgewise.kernels.moments import count_rows, covariance_of

    data = problem.rows
    if not isinstance(data, BinaryData) or problem.blanks is not None:
        return None
    n = min(data.n_rows, ROWS_COUNTED) // BITS * BITS
    rng = np.random.default_rng(REHEARSAL_SEED)
    chance = None if data.weights is None else data.weights / data.weights.sum()
    chosen = np.sort(rng.choice(data.n_rows, n, replace=chance is not None, p=chance))
    X = np.ascontiguousarray(data.values(0, data.n_rows)[chosen].T.astype(np.float32))
    size = problem.features.n_variables + len(candidates)
    counts, products = np.zeros(size, np.int32), np.zeros((size, size), np.int32)
    members = np.ascontiguousarray(problem.features.members[candidates])
    count_rows(X, members, np.zeros((size, n // BITS), np.uint64), counts, products)
    squares = np.outer(counts.astype(float), counts)
    covariance_of(products, squares, float(n), 1.0, squares)
    return n, squares


def bend(rows: float, phis: np.ndarray, means: np.ndarray, C: np.ndarray) -> None:
    """Where the posterior has several modes, take the slope of the means between them (10.2) into C.

    The average covariance is the slope of mu(phi) as far as phi is Gaussian. Directions in which it varies
    more than the surrogate expects are not; there the draws themselves tell the slope.
    """
    draws = len(phis)
    deviation = phis - phis.mean(axis=0)
    spread = deviation.std(axis=0)
    # In play there, with enough draws to say something about every direction.
    varies = spread * np.sqrt(np.maximum(rows * np.diag(C), 1e-12)) > VARIES
    here = np.flatnonzero(varies)
    if draws < FEWEST_TO_BEND or len(here) < 2:
        return
    block = C[np.ix_(here, here)]
    precision = rows * block
    precision[np.diag_indices_from(precision)] *= 1 + 1e-6
    try:
        root = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return
    white = deviation[:, here] @ root
    values, vectors = np.linalg.eigh(white.T @ white / draws)
    chosen = np.flatnonzero(values > MULTIMODAL)[::-1][:MOST_BENT]
    if not len(chosen):
        return
    along = white @ vectors[:, chosen]
    directions = np.linalg.solve(root.T, vectors[:, chosen])
    missing = (means - means.mean(axis=0))[:, here] - deviation[:, here] @ block
    # In units in which the surrogate's own slope is the identity.
    slope = rows * directions.T @ (missing.T @ along) / (along**2).sum(axis=0)
    values, vectors = np.linalg.eigh((slope + slope.T) / 2)
    images = (C[:, here] @ directions) @ vectors
    # Scaled along directions, the matrix stays positive definite.
    C += rows * (images * np.maximum(values, -MOST_FLATTENED)) @ images.T


def _regression(
    problem: Problem,
    candidates: np.ndarray,
    phi: np.ndarray,
    mean: np.ndarray,
    C: np.ndarray,
    occupied: np.ndarray,
    rehearse: bool,
    lines: bool = True,
) -> Arrays:
    from edgewise.engines.bends import along_lines, as_flat_as_possible
    from edgewise.kernels.moments import single_precision

    rows, p = float(problem.statistics.n_rows), problem.features.n_variables
    sums = np.concatenate([problem.statistics.singles, problem.statistics.cliques[candidates]]).astype(float)
    share = (sums + 0.5) / (rows + 1.0)
    diagonal = np.diag(C).copy()
    diagonal += np.maximum(0.0, VARIANCE_FLOOR * share * (1 - share) - diagonal) + RIDGE * diagonal
    np.fill_diagonal(C, diagonal)
    C *= rows
    pull = sums - rows * mean + C @ phi
    bias_precision = C[:p, :p] + np.eye(p) / problem.prior.bias_sd**2
    inverse = np.linalg.inv(bias_precision)
    inverse = (inverse + inverse.T) / 2
    cross = C[p:, :p]
    slope = cross @ inverse
    own = np.diag(C)[p:].copy()
    precision = C[p:, p:]
    precision -= slope @ cross.T
    # What is left of a feature when the biases are taken out may be lost in rounding, but is never negative.
    np.fill_diagonal(precision, np.maximum(np.diag(precision), 1e-6 * own + 1e-12))
    theta_pull = pull[p:] - slope @ pull[:p]
    tilt = np.zeros(len(candidates))
    pairs = np.flatnonzero((problem.features.members[candidates, 2:] < 0).all(axis=1))
    if lines and len(pairs):
        i, j = problem.features.members[candidates[pairs], :2].T
        own_precision = np.diag(precision)[pairs].copy()
        alone = (theta_pull - precision @ phi[p:])[pairs] + own_precision * phi[p:][pairs]
        flat = 1.0 / _typical_hyper(problem, occupied, phi)[1] ** 2

        def line(flatter: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            margins = mean[i], mean[j]
            return along_lines(
                rows, margins, mean[p:][pairs], occupied[pairs], own_precision, alone, flat, flatter
            )

        more = as_flat_as_possible(line, precision, pairs)
        tilt[pairs] = more[0]
        theta_pull[pairs] += more[1]
        precision[pairs, pairs] += more[2]
    single = np.empty(precision.shape, np.float32)
    single_precision(precision, single)
    arrays = {
        "candidates": candidates,
        "precision": single,
        "pull": theta_pull,
        "tilt": tilt,
        "bias_mean": inverse @ pull[:p],
        "bias_slope": slope,
        "bias_root": np.linalg.cholesky(inverse),
        "bias_precision": bias_precision,
        "phi": phi,
        "occupied": occupied,
    }
    return arrays | _choices(problem, arrays, rehearse)


def _choices(problem: Problem, arrays: Arrays, rehearse: bool) -> Arrays:
    """How often each position is decided, and which are decided together.

    They come from the surrogate alone; with `rehearse`, from a walk on it that begins at the empty graph.
    """
    occupied = arrays["occupied"]
    chosen = _choose(occupied, *_by_features(arrays["precision"], occupied))
    if rehearse:
        trace = _rehearse(problem, arrays | chosen)
        occupied = (trace.sum(axis=0) + 0.5) / (len(trace) + 1.0)
        chosen = _choose(occupied, *_by_indicators(trace, occupied))
    return chosen


def _choose(occupied: np.ndarray, uncertain: np.ndarray, correlation: np.ndarray) -> Arrays:
    weight = np.clip(2 * np.sqrt(occupied * (1 - occupied)), LOWEST_CHOICE, 1.0)
    weight = np.maximum(weight, ACTIVE_CHOICE * occupied)
    chance, alias = alias_table(weight)
    rivals, rival_weight = rival_sets(uncertain, correlation, occupied)
    share = RIVAL_SHARE if rival_weight.any() else 0.0
    rival_chance, rival_alias = alias_table(np.maximum(rival_weight, 1e-12))
    return {
        "chance": chance,
        "alias": alias,
        "rivals": rivals,
        "rival_chance": rival_chance,
        "rival_alias": rival_alias,
        "shares": np.array([share]),
        "sweep": np.array([float(weight.sum()) / (1 - share)]),
    }


def _typical_hyper(problem: Problem, occupied: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """p0 and sigma0 of the average graph."""
    prior, active = problem.prior, float(occupied.sum())
    theta = phi[problem.features.n_variables :]
    rate = (prior.beta_a + active) / (prior.beta_a + prior.beta_b + len(occupied))
    scale = np.sqrt((prior.gamma_rate + 0.5 * (theta**2).sum()) / (prior.gamma_shape + 0.5 * active))
    return np.array([prior.p0 if prior.fixed_p0 else rate, prior.sigma0 if prior.fixed_sigma0 else scale])


def _rehearse(problem: Problem, arrays: Arrays) -> np.ndarray:
    """Indicators along a walk on the surrogate with the hyper-parameters of its average graph."""
    from edgewise.kernels.random import scalar_stream
    from edgewise.kernels.surrogate import Surrogate, empty_walker, walk

    prior, candidates = problem.prior, arrays["candidates"]
    hyper = _typical_hyper(problem, arrays["occupied"], arrays["phi"])
    walker = empty_walker(len(candidates), problem.features.n_variables)
    walker.slope[:] = arrays["pull"]
    surrogate = Surrogate(*(arrays[name] for name in Surrogate._fields))
    steps = max(1, round(float(arrays["sweep"][0])))
    rows = int(np.clip(REHEARSED_STEPS // steps, FEWEST_REHEARSED, REHEARSED))
    trace = np.zeros((rows, len(candidates)), np.bool_)
    stream = scalar_stream(np.random.SeedSequence(REHEARSAL_SEED))
    walk(steps, hyper, prior_rules(prior), prior.status, surrogate, walker, stream, trace)
    return trace[rows // 5 :]


def _uncertain(occupied: np.ndarray) -> np.ndarray:
    """Positions whose indicators are open, the most uncertain ones where there are many."""
    found = np.flatnonzero((occupied > SELDOM) & (occupied < 1 - SELDOM))
    order = np.argsort(np.abs(occupied[found] - 0.5), kind="stable")
    return np.sort(found[order[:MOST_UNCERTAIN]])


def _by_features(precision: np.ndarray, occupied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Uncertain positions and how much their features are correlated under the surrogate."""
    uncertain = _uncertain(occupied)
    own = 1 / np.sqrt(np.diag(precision)[uncertain])
    return uncertain, np.abs(precision[np.ix_(uncertain, uncertain)]) * own * own[:, None]


def _by_indicators(trace: np.ndarray, occupied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Uncertain positions and how much their indicators are correlated along a walk."""
    uncertain = _uncertain(occupied)
    return uncertain, np.abs(np.atleast_2d(np.corrcoef(trace[:, uncertain], rowvar=False)))


def alias_table(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's table: a uniform position and one coin choose with probability in proportion to `weight`.

    Examples
    --------
    >>> chance, alias = alias_table(np.array([1.0, 3.0]))
    >>> chance.tolist(), alias.tolist()
    ([0.5, 1.0], [1, 1])
    """
    count = len(weight)
    chance = np.asarray(weight, float) * count / np.sum(weight)
    alias = np.arange(count)
    small = [k for k in range(count) if chance[k] < 1]
    large = [k for k in range(count) if chance[k] >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        chance[high] -= 1 - chance[low]
        if chance[high] < 1:
            small.append(large.pop())
    chance[small + large] = 1.0
    return chance, alias


def rival_sets(
    uncertain: np.ndarray, correlation: np.ndarray, occupied: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sets of positions that are correlated with each other, and how often to decide each.

    Around every uncertain position: its closest rivals one at a time, and sets that grow by whatever is
    closest to any of their members.
    """
    correlation = correlation.copy()
    np.fill_diagonal(correlation, 0.0)
    interest = 4 * occupied[uncertain] * (1 - occupied[uncertain])
    found: set[tuple[int, ...]] = set()
    for row in range(len(uncertain)):
        order = np.argsort(-correlation[row], kind="stable")[:RIVALS_EACH]
        found.update(
            tuple(sorted((row, int(other)))) for other in order if correlation[row, other] > RIVAL_CORRELATION
        )
        members, near = [row], correlation[row].copy()
        while len(members) < max(SET_SIZES):
            near[members] = 0.0
            closest = int(near.argmax())
            if near[closest] < RIVAL_CORRELATION:
                break
            members.append(closest)
            near = np.maximum(near, correlation[closest])
            if len(members) in SET_SIZES:
                found.add(tuple(sorted(members)))
    sets = sorted(found)
    padded = np.full((max(len(sets), 1), max(SET_SIZES)), -1, np.int64)
    weight = np.zeros(len(padded))
    for number, chosen in enumerate(sets):
        padded[number, : len(chosen)] = uncertain[list(chosen)]
        weight[number] = np.exp(np.log(interest[list(chosen)]).mean())
    return padded, weight
