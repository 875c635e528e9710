"""A small questionnaire with variables of every kind, for the tests of everything that knows levels."""

from __future__ import annotations

import numpy as np

from edgewise.engines.protocol import Problem
from edgewise.features import Features, level_statistics
from edgewise.posterior import Posterior
from edgewise.priors import Prior
from edgewise.run.chains import RunResult, run
from edgewise.run.options import RunOptions
from edgewise.scales import Scale, Scales

NAMES = ("mood", "city", "smoker", "job", "sleep")
SCALES = Scales(
    (
        Scale("ordinal", ("low", "middle", "high")),
        Scale("nominal", ("Ulm", "Bern", "Graz")),
        Scale("binary", ("no", "yes")),
        Scale("nominal", ("none", "part", "full", "own")),
        Scale("blume-capel", (1, 2, 3, 4), (), 1),
    )
)


def level_rows(count: int = 120, seed: int = 0) -> np.ndarray:
    """Level numbers: mood goes with sleep, job with city, and smoker with nothing."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, scale.n_levels, count) for scale in SCALES], axis=1)
    rows[:, 3] = np.where(rng.random(count) < 0.6, rows[:, 1], rows[:, 3])
    rows[:, 4] = np.where(rng.random(count) < 0.5, rows[:, 0] + (rows[:, 0] == 2), rows[:, 4])
    return rows


def level_problem(prior: Prior | None = None, rows: np.ndarray | None = None) -> Problem:
    """All pairs of the questionnaire."""
    features = Features.pairs(len(SCALES))
    statistics = level_statistics(level_rows() if rows is None else rows, None, SCALES, features)
    return Problem(features, statistics, (prior or Prior()).resolve(features, NAMES), None, SCALES)


def level_run(
    draws: int = 60, problem: Problem | None = None, previous: RunResult | None = None, **options
) -> RunResult:
    """Two short chains."""
    given = {
        "engine": "exact", "settings": {"warm_up": 40}, "chains": 2, "min_draws": draws, "max_draws": draws,
        "target_ess": None, "seed": 5, "progress": False, "n_jobs": 1,
    }  # fmt: skip
    return run(problem or level_problem(), RunOptions(**{**given, **options}), previous=previous)


def level_posterior(draws: int = 60, **options) -> Posterior:
    """The posterior of such a run."""
    problem = level_problem()
    result = level_run(draws, problem, **options)
    info = {**result.info, "n_rows": 120, "notes": [], "data_digest": "0" * 64}
    return Posterior(
        result.draws, problem.features, NAMES, None, problem.statistics, Prior(), info, result.edge_sums,
        result.counters, SCALES,
    )  # fmt: skip
