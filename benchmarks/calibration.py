"""Calibration of the engines, and of the pseudo-likelihood on the same data: writes docs/calibration.md.

    python -m benchmarks.calibration --seconds 3600      an hour more, from where it stopped, and the page
    python -m benchmarks.calibration --seconds 0         the page alone

A replicate draws a model from the default prior and data from the model, and fits them. If the draws are
those of the posterior, the rank of a true value among them is uniform, of the edges given probability .7
seven in ten are there, and a 90 % interval holds nine true values in ten. The default prior of the biases is
wide, so that many data sets have columns that are constant or nearly so. Replicates are kept in batches under
``benchmarks/results/calibration``.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks import pseudo_posterior
from edgewise.atomic import replacing
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Features, Statistics
from edgewise.priors import Prior

FOLDER = Path(__file__).parent / "results" / "calibration"
PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
METHODS = ("exact", "particle", "pseudo-likelihood")
WORLDS = ((6, 50), (6, 300), (10, 50), (10, 300))
REPLICATES, BATCH = 500, 10
KEPT, THIN, WARM_UP = 99, 10, 300
LEVELS = (0.5, 0.9, 0.95)
QUANTITIES = ("p0", "sigma0", "number of edges", "coupling", "bias")
BINS = 10


def simulate(p: int, rows: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A model from the default prior, and rows from the model by enumeration."""
    prior, features = Prior(), Features.pairs(p)
    p0 = rng.beta(prior.inclusion.a, prior.inclusion.b)  # type: ignore[union-attr]
    sigma0 = (rng.gamma(prior.slab.shape) / prior.slab.rate) ** -0.5  # type: ignore[union-attr]
    theta = np.where(rng.random(features.n_cliques) < p0, rng.normal(0, sigma0, features.n_cliques), 0.0)
    bias = rng.normal(0, prior.bias.sd, p)
    states = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(float)
    members = features.members
    energy = states @ bias + (states[:, members[:, 0]] * states[:, members[:, 1]]) @ theta
    weight = np.exp(energy - energy.max())
    data = states[rng.choice(len(states), rows, p=weight / weight.sum())]
    return {"p0": p0, "sigma0": sigma0, "theta": theta, "bias": bias}, data


def replicate(method: str, p: int, n_rows: int, number: int) -> dict[str, np.ndarray]:
    """Ranks, probabilities with truths, and coverage of one data set; the same data for every method."""
    rng = np.random.default_rng([p, n_rows, number])
    truth, rows = simulate(p, n_rows, rng)
    features = Features.pairs(p)
    members, prior = features.members, Prior().resolve(features)
    if method == "pseudo-likelihood":
        draws = pseudo_posterior.sample(rows, members, prior, KEPT, THIN, WARM_UP, number)
    else:
        sums = (rows[:, members[:, 0]] * rows[:, members[:, 1]]).sum(axis=0)
        problem = Problem(features, Statistics(float(n_rows), rows.sum(axis=0), sums), prior)
        seed = np.random.SeedSequence([number, zlib.crc32(method.encode())])
        engine = load_engine(method)(problem, {"warm_up": WARM_UP}, seed)
        engine.advance(WARM_UP)
        draws = engine.advance(KEPT * THIN, thin=THIN)
    theta = np.stack([draws.column(a) for a in range(len(members))], axis=1)
    series = [
        (draws.inclusion_rate, truth["p0"]),
        (draws.slab_scale, truth["sigma0"]),
        (draws.n_edges, np.count_nonzero(truth["theta"])),
        (theta[:, 0], truth["theta"][0]),
        (draws.biases[:, 0], truth["bias"][0]),
    ]
    ranks = []
    for values, value in series:  # ties are broken at random
        below, equal = np.sum(values < value), np.sum(values == value)
        ranks.append((below + rng.integers(0, equal + 1) + rng.random()) / (KEPT + 1))
    covered = []
    for values, values_true in ((theta, truth["theta"]), (draws.biases, truth["bias"])):
        # Of couplings those that are there in truth and in half of the draws: others are intervals around 0.
        shown = (values_true != 0) & ((values != 0).mean(axis=0) >= 0.5)
        for level in LEVELS:
            hits = []
            for k in np.flatnonzero(shown):
                sample = values[values[:, k] != 0, k]
                low, high = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2])
                hits.append(low <= values_true[k] <= high)
            covered.append((sum(hits), len(hits)))
    return {
        "ranks": np.array(ranks),
        "pip": (theta != 0).mean(axis=0),
        "there": truth["theta"] != 0,
        "covered": np.array(covered, float),
    }


def path_of(method: str, p: int, n_rows: int, batch: int) -> Path:
    return FOLDER / f"{method}-p{p}-n{n_rows}" / f"{batch:03d}.npz"


def compute(seconds: float) -> None:
    """Batches in turn, as many of each method and size, until the time is over."""
    end = time.monotonic() + seconds
    for batch in range(REPLICATES // BATCH):
        for p, n_rows in WORLDS:
            for method in METHODS:
                path = path_of(method, p, n_rows, batch)
                if path.exists():
                    continue
                if time.monotonic() >= end:
                    return
                numbers = range(batch * BATCH, (batch + 1) * BATCH)
                started = time.process_time()
                found = [replicate(method, p, n_rows, number) for number in numbers]
                path.parent.mkdir(parents=True, exist_ok=True)
                stacked = {key: np.stack([part[key] for part in found]) for key in found[0]}
                with replacing(path) as file:
                    np.savez(file, seconds=time.process_time() - started, **stacked)


def gathered(method: str, p: int, n_rows: int) -> dict[str, np.ndarray] | None:
    """All replicates of a method so far."""
    files = sorted((FOLDER / f"{method}-p{p}-n{n_rows}").glob("*.npz"))
    if not files:
        return None
    parts = []
    for file in files:
        with np.load(file) as stored:
            parts.append(dict(stored))
    found = {key: np.concatenate([part[key] for part in parts]) for key in parts[0] if key != "seconds"}
    return found | {"seconds": np.array([part["seconds"] for part in parts])}


def interval(hits: float, count: float) -> str:
    """A share with its 95 % interval (Jeffreys)."""
    if not count:
        return ""
    low, high = stats.beta.ppf([0.025, 0.975], hits + 0.5, count - hits + 0.5)
    return f"{hits / count:.2f} ({low:.2f}-{high:.2f})"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def page() -> str:
    """The page, from what has been computed."""
    ranks, reliability, coverage, cost = [], [], [], []
    for p, n_rows in WORLDS:
        for method in METHODS:
            found = gathered(method, p, n_rows)
            if found is None:
                continue
            count, size = len(found["ranks"]), [f"{p}", f"{n_rows}", method]
            values = [stats.kstest(found["ranks"][:, k], "uniform").pvalue for k in range(len(QUANTITIES))]
            ranks.append([*size, f"{count}", *(f"{value:.3f}" for value in values)])
            pip, there = found["pip"].ravel(), found["there"].ravel()
            place = np.minimum((pip * BINS).astype(int), BINS - 1)
            cells = [interval(there[place == b].sum(), (place == b).sum()) for b in range(BINS)]
            reliability.append([*size, *cells])
            totals = found["covered"].sum(axis=0)
            coverage.append([*size, *(interval(hits, among) for hits, among in totals)])
            cost.append(float(found["seconds"].sum()))
    bins = [f".{b}-{'1' if b == BINS - 1 else f'.{b + 1}'}" for b in range(BINS)]
    levels = [f"{what} {level:.0%}" for what in ("couplings", "biases") for level in LEVELS]
    limit = 0.05 / max(1, len(QUANTITIES) * len(ranks))
    return f"""# Calibration

Models drawn from the default prior, data drawn from the models, and the posterior of each data set by the two
engines. Beside them, on the same data, stands the posterior under the pseudo-likelihood with the same prior
(`benchmarks/pseudo_posterior.py`): the product of all conditional probabilities in the place of the
likelihood. `python -m benchmarks.calibration` computes more replicates and writes this page
({sum(cost):,.0f} CPU seconds so far).

## Ranks of true values

If draws come from the posterior, the rank of the true value among {KEPT} of them is uniform. The numbers are
p-values of that (Kolmogorov and Smirnov). With so many of them, one below {limit:.1g} speaks against
calibration.

{table(["p", "N", "method", "data sets", *QUANTITIES], ranks)}

## Reliability of inclusion probabilities

Of the edges with a probability in each tenth, the share that is there in truth, with its 95 % interval. Edges
of one data set are not independent, so the intervals are somewhat too short.

{table(["p", "N", "method", *bins], reliability)}

## Coverage of intervals

How often central intervals hold the true value: couplings that are there, given that at least half of the
draws have them, and biases.

{table(["p", "N", "method", *levels], coverage)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibration of the engines.")
    parser.add_argument("--seconds", type=float, default=math.inf)
    compute(parser.parse_args().seconds)
    with replacing(PAGE, "utf-8") as file:
        file.write(page())


if __name__ == "__main__":
    main()
