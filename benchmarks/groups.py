"""Comparing groups and adjusting: what is found, what is called by mistake, what it costs.

    python -m benchmarks.groups                # all that follows
    python -m benchmarks.groups power          # planted differences, for equal and very unequal groups
    python -m benchmarks.groups split          # two groups cut at random from one table
    python -m benchmarks.groups confounder     # dependence that a third variable makes
    python -m benchmarks.groups cost           # CPU time per effective draw beside one group
    python -m benchmarks.groups real           # adhd by group, house_votes_84 by party (EDGEWISE_DATA)

CPU seconds are of one thread, warm-up included and compiling not.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from edgewise import MRF, exact
from edgewise.data import Data, read_data
from edgewise.fitting import answer, pose
from edgewise.posterior.diagnostics import diagnose
from edgewise.posterior.posterior import Posterior
from edgewise.run.options import RunOptions

P = 6
RING = [(i, (i + 1) % P) for i in range(P)]
# In the second group one edge is gone, one has the other sign, one is twice as strong.
FIRST = np.array([1.5, 1.5, 1.0, 1.5, -1.5, 1.5])
SECOND = np.array([0.0, -1.5, 2.0, 1.5, -1.5, 1.5])
PLANTED = {"in one group only": (0, 1), "of opposite sign": (1, 2), "twice as strong": (2, 3)}
SIZES = ((100, 100), (300, 300), (1000, 1000), (380, 20), (1800, 200))
UNCERTAIN = 0.02


def fit(data: Data, **options: Any) -> tuple[Posterior, float]:
    """A posterior and the CPU seconds that it took, on one thread."""
    started = time.process_time()
    chosen = {"seed": 1, "n_jobs": 1, "chains": 2, "progress": False} | options
    posterior, _ = answer(pose(data), RunOptions(**chosen))
    return posterior, time.process_time() - started


def model(couplings: np.ndarray, shift: float = 0.0) -> MRF:
    """The ring with margins near one half, or moved."""
    bias = np.full(P, shift)
    for (i, j), value in zip(RING, couplings):
        bias[i] -= value / 2
        bias[j] -= value / 2
    return MRF(bias, RING, couplings)


def rows_of(sizes: tuple[int, int], seed: int, second: np.ndarray = SECOND) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both groups, and their labels."""
    rng = np.random.default_rng(seed)
    parts = [exact.sample(model(FIRST), sizes[0], rng), exact.sample(model(second, 0.4), sizes[1], rng)]
    return np.concatenate(parts), np.repeat(["one", "two"], sizes)


def calls(posterior: Posterior) -> dict[tuple[int, int], bool]:
    """Which pairs are said to differ."""
    table = posterior.group_summary()
    said = table["answer"].str.startswith("differs").tolist()
    return {(int(i), int(j)): call for (i, j), call in zip(posterior.features.members, said)}


def apart(first: Posterior, second: Posterior) -> dict[tuple[int, int], bool]:
    """What separate fits suggest: an edge more probable than not in one of them only, or of another sign."""
    there = [fit_.edge_values("inclusion") >= 0.5 for fit_ in (first, second)]
    means = [fit_.edge_values("mean") for fit_ in (first, second)]
    said = (there[0] != there[1]) | (there[0] & there[1] & (means[0] * means[1] < 0))
    return {(int(i), int(j)): bool(call) for (i, j), call in zip(first.features.members, said)}


def power(repeats: int) -> None:
    """How often planted differences are found, and other pairs called by mistake."""
    head = "".join(f"{name:>20}" for name in PLANTED)
    print(f"\nplanted differences, share found in {repeats} tables")
    print(f"{'rows':>12}{'method':>16}{head}{'wrong calls':>13}")
    for sizes in SIZES:
        found: dict[str, list[dict[tuple[int, int], bool]]] = {"one fit": [], "separate fits": []}
        for seed in range(repeats):
            X, labels = rows_of(sizes, seed)
            found["one fit"].append(calls(fit(read_data(X, groups=labels))[0]))
            parts = [fit(read_data(X[labels == name], constant="keep"))[0] for name in ("one", "two")]
            found["separate fits"].append(apart(*parts))
        for method, answers in found.items():
            shares = [np.mean([one[pair] for one in answers]) for pair in PLANTED.values()]
            wrong = np.mean(
                [call for one in answers for pair, call in one.items() if pair not in PLANTED.values()]
            )
            cells = "".join(f"{share:>20.2f}" for share in shares)
            print(f"{f'{sizes[0]} + {sizes[1]}':>12}{method:>16}{cells}{wrong:>13.3f}", flush=True)


def split(repeats: int) -> None:
    """Two groups cut at random from one table: everything that is called is a mistake."""
    print(f"\none table cut at random, share of pairs called different in {repeats} tables")
    for sizes in SIZES[:4]:
        said, chance, alone = [], [], []
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            X = exact.sample(model(FIRST), sum(sizes), rng)
            labels = rng.permutation(np.repeat(["one", "two"], sizes))
            posterior = fit(read_data(X, groups=labels))[0]
            said += calls(posterior).values()
            chance.append(posterior.group_summary()["different"].mean())
            parts = [fit(read_data(X[labels == name], constant="keep"))[0] for name in ("one", "two")]
            alone += apart(*parts).values()
        print(
            f"{f'{sizes[0]} + {sizes[1]}':>12}   one fit {np.mean(said):.3f} (mean probability "
            f"{np.mean(chance):.2f}, prior .25)   separate fits {np.mean(alone):.3f}",
            flush=True,
        )


def confounder() -> None:
    """Two variables that depend on a third alone."""
    print("\na confounder: probability of the edge (coupling) without and with adjusting")
    for rows in (200, 1000, 5000):
        rng = np.random.default_rng(rows)
        age = rng.integers(20, 80, rows)
        chance = 1 / (1 + np.exp(-(age - 50) / 6))
        X = {
            "grey": rng.random(rows) < chance,
            "glasses": rng.random(rows) < chance,
            "tea": rng.random(rows) < 0.5,
        }
        text = f"{rows:>8} rows   "
        for bins in (None, 4, 10):
            more = {} if bins is None else {"adjust": {"age": age}, "bins": bins}
            posterior, seconds = fit(read_data(X, **more))
            value, mean = posterior.inclusion[0, 1], posterior.coupling()[0, 1]
            name = "not adjusted" if bins is None else f"{bins} bins"
            text += f"{name}: {value:.3f} ({mean:+.2f}), {seconds:.1f} s   "
        print(text, flush=True)


def uncertain_ess(posterior: Posterior) -> tuple[float, float]:
    """Median and smallest effective draws of the uncertain indicators, of presence and of difference."""
    quality = posterior._quality
    share = posterior.edge_values("frequency")
    found = list(quality.ess[(share > UNCERTAIN) & (share < 1 - UNCERTAIN)])
    if posterior.groups:
        table = posterior.group_summary().drop_duplicates("edge")
        chosen = (table["different"] > UNCERTAIN) & (table["different"] < 1 - UNCERTAIN)
        found += list(table.loc[chosen, "ess_different"])
    return float(np.median(found)), float(np.min(found))


def cost(p: int, rows: int) -> None:
    """CPU time of one effective draw for G groups over G times that of one group with as many rows in all."""
    from edgewise.datasets import random_model

    made = exact.sample(
        random_model(p, 2.0, kind="ring", seed=1, coupling_sd=0.6), rows, np.random.default_rng(1)
    )
    plain = {"target_ess": None, "min_draws": 400, "max_draws": 400, "chains": 2}
    print(f"\ncost of an effective draw, p = {p}, {rows} rows in all (asked: at most 1.3)")
    base = 0.0
    for groups in (1, 2, 3, 4):
        labels = np.arange(rows) % groups
        options = {} if groups == 1 else {"groups": labels}
        # Line by line in both: stretches know one group only.
        settings = {"swaps": 0} if groups == 1 else None
        data = read_data(made, **options)
        fit(data, **plain | {"min_draws": 20, "max_draws": 20, "settings": settings})
        posterior, seconds = fit(data, **plain | {"settings": settings})
        median, slowest = uncertain_ess(posterior)
        each = seconds / median
        base = base or each
        print(
            f"{groups:>3} groups   {seconds:7.2f} CPU s   ESS {median:6.0f} ({slowest:5.0f})   per G "
            f"times one "
            f"group: {each / base / groups:.2f}",
            flush=True,
        )


def real() -> None:
    """Two real tables, to a green light."""
    import pandas

    folder = Path(os.environ["EDGEWISE_DATA"]) / "binary"
    votes, adhd = (pandas.read_csv(folder / f"{name}.csv.gz") for name in ("house_votes_84", "adhd"))
    print("\nreal tables")
    for name, table, column in (("house_votes_84", votes, "party"), ("adhd", adhd, "group")):
        data = read_data(table, groups=column, missing="drop", constant="drop")
        posterior, seconds = fit(data, chains=4, n_jobs=2)
        words = posterior.group_summary()["answer"].value_counts().to_dict()
        light = diagnose(posterior).light
        median, slowest = uncertain_ess(posterior)
        print(
            f"{name:<16}{data.n_rows:>5} rows, p = {data.n_variables}: {light}, {posterior.n_draws:,} draws, "
            f"{seconds:.0f} CPU s, ESS {median:.0f} ({slowest:.0f}); {words}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["power", "split", "confounder", "cost", "real"])
    parser.add_argument("--repeats", type=int, default=12)
    given = parser.parse_args()
    for part in given.parts:
        if part in ("power", "split"):
            {"power": power, "split": split}[part](given.repeats)
        elif part == "cost":
            cost(10, 1000)
            cost(14, 1000)
        else:
            {"confounder": confounder, "real": real}[part]()


if __name__ == "__main__":
    main()
