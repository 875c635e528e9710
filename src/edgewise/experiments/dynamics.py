"""Sampling on the true graph of the block model: momentum, step size, rejections, ratios of jumps.

The graph is fixed (every true edge forced in, no other candidate), so that only the parameters move, as in
section 3 of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.experiments.data import case, true_model
from edgewise.experiments.methods import Found, place
from edgewise.experiments.profiles import Profile
from edgewise.experiments.runner import Task

if TYPE_CHECKING:
    from edgewise.model.mrf import MRF

ALPHAS = (0.0, 0.5, 0.9, 0.99)
STEPS = (0.01, 0.03, 0.1, 0.3)
PUBLISHED = 1e-3
# A step at which the profile's iterations say something about means and standard deviations.
MEASURED = 0.04
LEAPFROG_STEPS = (0.05, 0.1, 0.2, 0.4, 0.8)
LAGS = 60
# Jumps (in posterior sds of a coupling at 100 rows; the first is the published range), and how many rows and
# particles decide about them.
JUMPS = (0.01, 0.03, 0.1)
JUMP_ROWS = 100
RATIOS = ((100, 100), (1000, 100), (1000, 10_000))
TRUE_ODDS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.5)


def fixed_graph(
    seed: int,
    rows: int,
    engine: str,
    draws: int,
    thin: int,
    warm_up: int,
    place: dict[str, Any],
    step: float | None = None,
    alpha: float | None = None,
) -> Found:
    """Draw the parameters of the true graph: means, standard deviations and autocorrelations."""
    from edgewise.draws.convergence import effective_draws

    posterior = _posterior(seed, rows, engine, draws, thin, warm_up, place, step, alpha)
    values = np.stack([posterior.draws_of(tuple(clique)) for clique in posterior.features.members])
    lags = np.unique(np.round(np.geomspace(1, draws // 3, LAGS)).astype(int))
    arrays = {
        "mean": values.mean(axis=(1, 2)),
        "sd": values.std(axis=(1, 2)),
        "ess": effective_draws(values),
        "lags": lags * thin,
        "autocorrelation": autocorrelation(values[:, 0], lags).astype(np.float32),
    }
    return {"cliques": posterior.features.members.tolist()}, arrays


def _posterior(
    seed: int,
    rows: int,
    engine: str,
    draws: int,
    thin: int,
    warm_up: int,
    place: dict[str, Any],
    step: float | None = None,
    alpha: float | None = None,
) -> Any:
    from edgewise.estimators import SpikeSlabMRF
    from edgewise.priors import Prior

    truth = true_model("block", seed, 10)
    settings: dict[str, Any] = {"warm_up": warm_up}
    if engine == "langevin":
        settings |= {"step_size": step, "momentum_retained": alpha}
    return (
        SpikeSlabMRF(
            engine,
            chains=1,
            min_draws=draws,
            max_draws=draws,
            thin=thin,
            target_ess=None,
            prior=Prior(forced=truth.cliques),
            features=list(truth.cliques),
            settings=settings,
            n_jobs=1,
            random_state=seed,
            progress=False,
            constant="keep",
        )
        .fit(case("block", rows, 0, seed, **place).train)
        .posterior_
    )


def autocorrelation(values: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Autocorrelation of every row at the given lags: float64 (rows, lags)."""
    centred = values - values.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1)
    result = np.empty((len(values), len(lags)))
    for k, lag in enumerate(lags):
        result[:, k] = (centred[:, lag:] * centred[:, :-lag]).sum(axis=1) / values.shape[1] / variance
    return result


def leapfrog(
    seed: int, rows: int, points: int, steps: list[float], draws: int, place: dict[str, Any]
) -> Found:
    """Rejection rate of one preconditioned leapfrog step with the exact gradient (eq. 4).

    Started from posterior draws of the exact engine with fresh momenta, the mean of 1 - min(1, exp(-dH)) is
    the rate at which an accept/reject step would refuse.
    """
    from edgewise import exact
    from edgewise.draws import Draws

    posterior = _posterior(seed, rows, "exact", draws, 1, min(500, draws), place)
    here = case("block", rows, 0, seed, **place)
    states = exact.states(posterior.n_variables).astype(np.float64)
    members = posterior.features.members
    features = np.concatenate([states, states[:, members[:, 0]] * states[:, members[:, 1]]], axis=1)
    train = here.train.astype(np.float64)
    sums = np.concatenate([train, train[:, members[:, 0]] * train[:, members[:, 1]]], axis=1).sum(axis=0)
    rng = np.random.default_rng([seed, 7])
    chosen = rng.permutation(draws)[:points]
    joined = Draws.concatenate(posterior.draws)
    values = np.stack([posterior.draws_of(tuple(clique))[0] for clique in members], axis=1)
    theta = np.concatenate([joined.biases, values], axis=1)[chosen]
    p = posterior.n_variables
    precision = np.full(theta.shape, 1e-2)
    precision[:, p:] = (joined.slab_scale[chosen] ** -2)[:, None]
    mean_point = np.concatenate([joined.biases, values], axis=1).mean(axis=0)
    _, moments = _log_density(mean_point[None], features, sums, rows, np.zeros((1, len(sums))))
    frequency = (sums - moments[0]) / rows
    scale = (rows * frequency * (1 - frequency) + precision.mean(axis=0)) ** -0.5
    result = []
    momentum = rng.standard_normal(theta.shape)
    before, gradient = _log_density(theta, features, sums, rows, precision)
    for step in steps:
        half = momentum + 0.5 * step * scale * gradient
        moved = theta + step * scale * half
        after, new_gradient = _log_density(moved, features, sums, rows, precision)
        last = half + 0.5 * step * scale * new_gradient
        change = after - before - 0.5 * (last**2).sum(axis=1) + 0.5 * (momentum**2).sum(axis=1)
        refused = -np.expm1(np.minimum(change, 0.0))
        result.append(
            {
                "step": step,
                "rejection": float(refused.mean()),
                "standard_error": float(refused.std(ddof=1) / np.sqrt(len(refused))),
            }
        )
    return {"table": result}, {}


def _log_density(
    theta: np.ndarray, features: np.ndarray, sums: np.ndarray, rows: int, precision: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log posterior density of each row of parameters up to a constant, and its gradient (eq. 5)."""
    energy = theta @ features.T
    top = energy.max(axis=1, keepdims=True)
    weight = np.exp(energy - top)
    total = weight.sum(axis=1, keepdims=True)
    means = weight @ features / total
    log_z = top[:, 0] + np.log(total[:, 0])
    value = theta @ sums - rows * log_z - 0.5 * (precision * theta**2).sum(axis=1)
    return value, sums - rows * means - precision * theta


def jump_ratios(seed: int) -> list[dict[str, float]]:
    """The estimated ratio of a jump against the exact one, for every pair of the block model."""
    means = _means_without(true_model("block", seed, 10))
    return [
        {"rows": rows, "particles": particles, "jump": jump} | ratio_errors(means, rows, particles, jump)
        for rows, particles in RATIOS
        for jump in JUMPS
    ]


def ratio_errors(means: np.ndarray, rows: int, particles: int, jump: float) -> dict[str, float]:
    """Errors of the estimated ratio of a jump (eqs. 9-11) for features of these means without the pair.

    Under independent particles the sum of a feature is binomial, so that expectations are sums and no
    simulation is needed. ``bias_plain`` is that of exp(-N a f - N a^2 S^2 / 2), ``bias`` that of the
    corrected estimate, relative to the true ratio; ``acceptance_error`` is the largest error of the
    probability of acceptance over several true odds. Means over features and signs of absolute values.
    """
    from scipy.stats import binom

    count = np.arange(particles + 1)
    frequency = count / particles
    variance = frequency * (1 - frequency) * particles / (particles - 1)
    chance = binom.pmf(count, particles, means[:, None])
    parts = []
    for sign in (1, -1):
        size = sign * jump / np.sqrt(JUMP_ROWS * means * (1 - means))
        a = size[:, None]
        plain = -rows * (a * frequency + a**2 / 2 * variance) + rows * np.log1p(means[:, None] * np.expm1(a))
        corrected = plain - np.log1p((rows * a) ** 2 * variance / (2 * particles))
        ratio = np.exp(corrected)
        centre = (chance * ratio).sum(axis=1, keepdims=True)
        accepted = [
            np.abs((chance * np.minimum(1, odds * ratio)).sum(axis=1) - min(1, odds)) for odds in TRUE_ODDS
        ]
        parts.append(
            [
                np.abs((chance * np.expm1(plain)).sum(axis=1)).mean(),
                np.abs((chance * np.expm1(corrected)).sum(axis=1)).mean(),
                (chance * (ratio - centre) ** 2).sum(axis=1).mean(),
                ((rows * size) ** 2 * means * (1 - means) / particles).mean(),
                np.max(accepted, axis=0).mean(),
            ]
        )
    names = ("bias_plain", "bias", "variance", "variance_formula", "acceptance_error")
    return dict(zip(names, np.mean(parts, axis=0).tolist()))


def _means_without(truth: MRF) -> np.ndarray:
    """Mean of the feature of every pair in the model without that pair."""
    from edgewise import exact
    from edgewise.model.mrf import MRF

    found = []
    for i, j in zip(*np.triu_indices(truth.n_variables, 1)):
        coupling = truth.coupling.copy()
        coupling[i, j] = coupling[j, i] = 0.0
        found.append(exact.pair_marginals(MRF.from_coupling(truth.biases, coupling))[i, j])
    return np.array(found)


def fixed_graph_task(
    profile: Profile,
    seed: int,
    engine: str,
    step: float | None = None,
    alpha: float | None = None,
    share: float = 1.0,
) -> Task:
    """The task of one chain on the fixed graph; `share` of the profile's iterations."""
    arguments: dict[str, Any] = {
        "seed": seed,
        "rows": profile.rows,
        "engine": engine,
        "place": place(profile, "block", None),
    }
    if engine == "exact":
        total = 2 * profile.exact_draws
        arguments |= {"draws": total, "thin": 1, "warm_up": min(500, total)}
        return Task("graph-exact", "dynamics:fixed_graph", arguments, total * 0.3e-3)
    iterations = int(profile.refreshment_iterations * share)
    draws = min(10_000, iterations // 10)
    arguments |= {
        "draws": draws,
        "thin": iterations // draws,
        "warm_up": iterations // 10,
        "step": step,
        "alpha": alpha,
    }
    return Task(
        f"graph-langevin-step{step:g}-alpha{alpha:g}", "dynamics:fixed_graph", arguments, iterations * 6e-6
    )


def leapfrog_task(profile: Profile, seed: int) -> Task:
    """The task of the rejection rates."""
    arguments = {
        "seed": seed,
        "rows": profile.rows,
        "points": profile.leapfrog_points,
        "steps": list(LEAPFROG_STEPS),
        "draws": max(profile.leapfrog_points, profile.exact_draws),
        "place": place(profile, "block", None),
    }
    return Task("graph-leapfrog", "dynamics:leapfrog", arguments, 30.0 * profile.leapfrog_points / 400)
