"""What probabilities are worth when the model is wrong: hidden causes, repeated and chosen rows.

Models of eight variables are drawn as in ``worlds``; what is done to their data is said by each case. Edges
count as there if the model that the data began with has them.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.calibration.worlds import DRAWS, World, values_of
from benchmarks.chains_of_draws import kept_result
from edgewise.engines.choose import load_engine
from edgewise.engines.protocol import Problem
from edgewise.features import Statistics

P, ROWS, COPIES = 8, 400, 4
DATA_SETS = 200
WORLD = World(P, ROWS)
# The hidden cause acts on so many variables, this strongly.
CHILDREN, STRENGTH = 4, 2.5
# Rows with both of the first two variables on are so many times as likely to be asked.
ASKED = 6.0


def from_states(world: World, theta: np.ndarray, bias: np.ndarray, rng: np.random.Generator, count: int):
    energy = world.states @ np.concatenate([bias, theta])
    weight = np.exp(energy - energy.max())
    return world.states[rng.choice(len(weight), count, p=weight / weight.sum()), : world.p]


def plain(rng):
    """Nothing is wrong."""
    truth, rows = WORLD.simulate(rng)
    return truth["theta"], rows, np.ones(ROWS)


def hidden_cause(rng):
    """A ninth variable, never seen, drives four of the eight."""
    larger = World(P + 1, ROWS)
    truth, _ = WORLD.simulate(rng)
    theta, bias = np.zeros(larger.features.n_cliques), np.append(truth["bias"], 0.0)
    members = larger.features.members
    theta[(members < P).all(axis=1)] = truth["theta"]
    driven = (members[:, 1] == P) & (members[:, 0] < CHILDREN)
    theta[driven] = STRENGTH
    bias[:CHILDREN] -= STRENGTH / 2
    return truth["theta"], from_states(larger, theta, bias, rng, ROWS)[:, :P], np.ones(ROWS)


def repeated_rows(rng):
    """Every row stands four times: as many answers of one person, taken for answers of four."""
    truth, rows = WORLD.simulate(rng)
    return truth["theta"], np.repeat(rows[: ROWS // COPIES], COPIES, axis=0), np.ones(ROWS)


def repeated_rows_counted_once(rng):
    """The same with weights of a quarter."""
    theta, rows, weights = repeated_rows(rng)
    return theta, rows, weights / COPIES


def survey(rng):
    """People with both of the first two traits are six times as likely to be asked; no weights."""
    truth, _ = WORLD.simulate(rng)
    people = from_states(WORLD, truth["theta"], truth["bias"], rng, 20 * ROWS)
    chance = np.where(people[:, 0] * people[:, 1] > 0, ASKED, 1.0)
    asked = rng.choice(len(people), ROWS, replace=False, p=chance / chance.sum())
    return truth["theta"], people[asked], np.ones(ROWS)


def survey_weighted(rng):
    """The same with weights that undo it, scaled to sum to the number of rows."""
    theta, rows, _ = survey(rng)
    weights = np.where(rows[:, 0] * rows[:, 1] > 0, 1 / ASKED, 1.0)
    return theta, rows, weights * len(rows) / weights.sum()


def survey_rescaled(rng):
    """Weights scaled to sum to the effective number of rows, (sum w)^2 / sum w^2."""
    theta, rows, weights = survey_weighted(rng)
    return theta, rows, weights * weights.sum() / (weights**2).sum()


CASES = {
    "nothing wrong": plain,
    "a hidden common cause of four": hidden_cause,
    "every row four times": repeated_rows,
    "every row four times, weight 1/4": repeated_rows_counted_once,
    "chosen rows, no weights": survey,
    "chosen rows, weights sum to N": survey_weighted,
    "chosen rows, weights sum to the effective N": survey_rescaled,
}


def measure(case: str) -> dict[str, list[int]]:
    """Hits and numbers of edges: those stated .5-.9 and .9-1, intervals, false ones, and of the affected."""
    names = ("stated .5-.9", "stated .9-1", "95 % intervals", "absent edges above .5")
    found = {name: [0, 0] for name in (*names, "affected absent edges above .5")}
    members, prior = WORLD.features.members, WORLD.prior.resolve(WORLD.features)
    affected = (members < CHILDREN).all(axis=1) if "hidden" in case else (members == [0, 1]).all(axis=1)
    for number in range(DATA_SETS):
        theta, rows, weights = CASES[case](np.random.default_rng([8, number]))
        totals = WORLD.totals(rows * weights[:, None] ** 0.5)
        totals[:P] = weights @ rows
        statistics = Statistics(float(weights.sum()), totals[:P], totals[P:])
        engine = load_engine("exact")(
            Problem(WORLD.features, statistics, prior), {"warm_up": 300}, np.random.SeedSequence(number)
        )
        engine.advance(300)
        values = values_of([engine.advance(DRAWS)], len(members))[:, 0]
        pip, there = (values != 0).mean(axis=1), theta != 0

        def count(name: str, among: np.ndarray, hits: np.ndarray) -> None:
            found[name][0] += int((among & hits).sum())
            found[name][1] += int(among.sum())

        count("stated .5-.9", (pip >= 0.5) & (pip < 0.9), there)
        count("stated .9-1", pip >= 0.9, there)
        count("absent edges above .5", ~there, pip > 0.5)
        count("affected absent edges above .5", ~there & affected, pip > 0.5)
        shown = there & (pip >= 0.1)
        inside = np.zeros(len(there), bool)
        for k in np.flatnonzero(shown):
            low, high = np.quantile(values[k, values[k] != 0], [0.025, 0.975])
            inside[k] = low <= theta[k] <= high
        count("95 % intervals", shown, inside)
    return found


def grow(end: float) -> bool:
    """All cases; they take a minute."""
    for case in CASES if time.monotonic() < end else ():
        kept_result(
            "calibration/wrong", case.replace(" ", "_").replace("/", "_"), lambda case=case: measure(case)
        )
    return True


def results() -> dict[str, dict[str, list[int]]]:
    """What is stored."""
    stored = {
        case: kept_result("calibration/wrong", case.replace(" ", "_").replace("/", "_"), lambda: None)
        for case in CASES
    }
    return {case: found for case, found in stored.items() if found}
