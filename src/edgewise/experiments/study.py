"""What a reproduction is told, and how results of tasks become rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.experiments.methods import bayes_name, bayes_task, lasso_task
from edgewise.experiments.profiles import Profile
from edgewise.experiments.runner import Result, Task

if TYPE_CHECKING:
    import pandas

Results = Mapping[str, Result]
Tables = dict[str, "pandas.DataFrame"]

# How near to a density that is to be met (as a share of it) is near enough.
NEAR = 0.05

COLUMNS = (
    "kind",
    "rows",
    "replicate",
    "method",
    "p0",
    "lam",
    "density",
    "density_sd",
    "edges",
    "cll",
    "precision",
    "recall",
    "f1",
    "true_edge_size",
    "other_edge_size",
    "sigma0",
    "learned_p0",
    "average_precision",
    "width",
    "ess",
    "r_hat",
)


@dataclass(frozen=True)
class Study:
    """Profile, seed and place of the image data of a run."""

    profile: Profile
    seed: int = 1
    data: str | None = None

    def bayes(self, kind: str, rows: int, replicate: int, p0: float | None, **options: Any) -> Task:
        """The task of one posterior."""
        return bayes_task(self.profile, self.seed, kind, rows, replicate, p0, data=self.data, **options)

    def lasso(self, kind: str, rows: int, replicate: int, method: str, **options: Any) -> Task:
        """The task of one path."""
        return lasso_task(self.profile, self.seed, kind, rows, replicate, method, data=self.data, **options)

    def grid(self, kind: str) -> tuple[float, ...]:
        """The fixed inclusion probabilities of one kind of data."""
        return {
            "block": self.profile.p0_block,
            "lattice": self.profile.p0_lattice,
            "mnist": self.profile.p0_mnist,
        }[kind]

    def replicates(self, kind: str, rows: int) -> int:
        """Number of training sets of one kind and size in the main figures."""
        if kind == "mnist":
            return dict(zip(self.profile.mnist_rows, self.profile.mnist_replicates))[rows]
        return {"block": self.profile.block_replicates, "lattice": self.profile.lattice_replicates}[kind]

    def comparison(self, kind: str, rows: int, replicates: Iterable[int]) -> list[Task]:
        """All methods on some training sets: the learned and all fixed p0, and both kinds of path."""
        found = []
        for replicate in replicates:
            for p0 in (None, *self.grid(kind)):
                found.append(self.bayes(kind, rows, replicate, p0))
            for method in ("Wain", "MLE"):
                found.append(self.lasso(kind, rows, replicate, method))
        return found


def score_table(tasks: Iterable[Task], results: Results) -> pandas.DataFrame:
    """One row per model of all finished tasks: its method, sparsity and scores."""
    import pandas

    rows: list[dict[str, Any]] = []
    for task in tasks:
        if task.key not in results:
            continue
        given, found = task.arguments, results[task.key].values
        common = {name: given[name] for name in ("kind", "rows", "replicate")}
        if "paths" in found:
            for method, path in found["paths"].items():
                extra = {
                    "average_precision": found["average_precision"].get(method),
                    "width": found["widths"].get(method),
                }
                rows += [common | {"method": method} | extra | row for row in path]
        elif "scores" in found:
            for base, row in found["scores"].items():
                method = bayes_name(given["engine"], given["p0"] is not None, base == "Bayes PM")
                rows.append(
                    common
                    | {
                        "method": method,
                        "p0": given["p0"],
                        "density_sd": found["density_sd"] if base == "Bayes" else None,
                        "sigma0": found["sigma0"],
                        "learned_p0": found["p0"],
                        "average_precision": found.get("average_precision"),
                        "width": found.get("width"),
                        "ess": found["ess"],
                        "r_hat": found["r_hat"],
                    }
                    | row
                )
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def matched(
    fit: Callable[[float], Task],
    grid: Iterable[tuple[float, Task]],
    results: Results,
    density: float,
    method: str,
    most: int,
) -> list[Task]:
    """Fits at the p0 at which a model should have a density, each placed by the ones before it.

    The first p0 is interpolated (on the scale of logits) between the fits of the grid; as long as the
    density of the fit made there is not near enough, the next is interpolated with that fit among them, and
    put half-way between its neighbours when two in a row were too sparse or too dense. The list ends with
    the first fit that is not there yet, and has at most `most`.
    """
    known = {p0: _density(results, task, method) for p0, task in grid if task.key in results}
    found: list[Task] = []
    while len(known) > 1 and len(found) < most:
        p0, reached = np.array(sorted(known.items())).T
        logits, reached = np.log(p0) - np.log1p(-p0), np.maximum.accumulate(reached)
        logit = np.interp(density, reached, logits)
        sides = {_density(results, task, method) > density for task in found[-2:]}
        if len(found) > 1 and len(sides) == 1 and reached[0] <= density < reached[-1]:
            above = int(np.searchsorted(reached, density, side="right"))
            logit = logits[above - 1 : above + 1].mean()
        wanted = float(np.round(1 / (1 + np.exp(-logit)), 4))
        task = fit(wanted)
        if task in found:
            break
        found.append(task)
        if task.key not in results or _error(results, task, density, method) <= NEAR * density:
            break
        known[wanted] = _density(results, task, method)
    return found


def nearest(tasks: Iterable[Task], results: Results, density: float, method: str) -> Task | None:
    """The finished fit whose density is nearest to the one that is wanted."""
    done = [task for task in tasks if task.key in results]
    return min(done, key=lambda task: _error(results, task, density, method), default=None)


def _density(results: Results, task: Task, method: str) -> float:
    return float(results[task.key].values["scores"][method]["density"])


def _error(results: Results, task: Task, density: float, method: str) -> float:
    return abs(_density(results, task, method) - density)


def interpolated(table: pandas.DataFrame, density: Any, column: str = "cll") -> np.ndarray:
    """A score of one path at other densities; NaN outside the densities it reaches."""
    ordered = table.sort_values("density", kind="stable")
    x, y = ordered["density"].to_numpy(float), ordered[column].to_numpy(float)
    return np.interp(np.asarray(density, float), x, y, left=np.nan, right=np.nan)


def mean_curve(table: pandas.DataFrame, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Density, mean and standard deviation of the score over replicates, for one method.

    The fixed-p0 methods are averaged at each p0; paths have other penalties in every replicate and are
    averaged at equal densities.
    """
    part = table[table["method"] == method]
    if part.empty:
        return (np.zeros(0),) * 3
    if "p0" in part and part["p0"].notna().any():
        groups = part.groupby("p0", sort=True)
        density = groups["density"].mean().to_numpy()
        mean, sd = groups["cll"].mean().to_numpy(), groups["cll"].std(ddof=0).to_numpy()
    elif method.startswith("Bayes"):
        density = np.array([part["density"].mean()])
        mean, sd = np.array([part["cll"].mean()]), np.array([part["cll"].std(ddof=0)])
    else:
        reach = part.groupby("replicate")["density"].max().min()
        density = np.linspace(0.0, reach, 120)
        curves = np.array([interpolated(one, density) for _, one in part.groupby("replicate")])
        mean, sd = curves.mean(axis=0), curves.std(axis=0)
    order = np.argsort(density, kind="stable")
    return density[order], mean[order], sd[order]
