"""Time exact inference beside plain NumPy versions of the same quantities: ``python -m benchmarks.exact``.

The plain versions are what one writes first: all states as a matrix for enumeration, and for the lattice the
transfer matrix between whole rows. They also check the results, being independent of the package.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from edgewise import MRF, datasets, exact
from edgewise.exact.enumeration import Enumeration
from edgewise.exact.orders import elimination_orders


def cpu_seconds(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Result and shortest CPU time, the search for an elimination order included."""
    best = np.inf
    for _ in range(repeats):
        elimination_orders.cache_clear()
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return result, best


def plain_enumeration(model: MRF) -> tuple[float, np.ndarray]:
    """Log Z and means from the matrix of all states, in blocks of states."""
    p = model.n_variables
    i, j = model.members.T
    peak = float(model.parameters[model.parameters > 0].sum())
    moments = np.zeros((p, p))
    total = 0.0
    for numbers in np.array_split(np.arange(1 << p), max(1, 1 << (p - 16))):
        x = (numbers[:, None] >> np.arange(p) & 1).astype(float)
        weight = np.exp(x @ model.biases + 0.5 * np.einsum("ni,ni->n", x @ model.coupling, x) - peak)
        total += weight.sum()
        moments += x.T @ (weight[:, None] * x)
    moments /= total
    return peak + float(np.log(total)), np.concatenate([np.diag(moments), moments[i, j]])


class RowTransfer:
    """The lattice as a chain of rows, each with 2^columns states."""

    def __init__(self, model: MRF, rows: int, columns: int) -> None:
        self.model, self.rows, self.columns = model, rows, columns
        self.x = (np.arange(1 << columns)[:, None] >> np.arange(columns) & 1).astype(float)
        site = np.arange(rows * columns).reshape(rows, columns)
        self.inner = [
            self.x @ model.biases[line]
            + 0.5
            * np.einsum("si,ij,sj->s", self.x, model.coupling[np.ix_(line, line)], self.x, optimize=True)
            for line in site
        ]
        self.between = [
            (self.x * np.diag(model.coupling[np.ix_(upper, lower)])) @ self.x.T
            for upper, lower in itertools.pairwise(site)
        ]
        self.forward = [self.inner[0]]
        for row in range(1, rows):
            joint = self.forward[-1][:, None] + self.between[row - 1]
            peak = joint.max(axis=0)
            self.forward.append(self.inner[row] + peak + np.log(np.exp(joint - peak).sum(axis=0)))
        peak = self.forward[-1].max()
        self.log_partition = float(peak + np.log(np.exp(self.forward[-1] - peak).sum()))

    def means(self) -> np.ndarray:
        pair: dict[tuple[int, int], float] = {}
        single = np.zeros(self.rows * self.columns)
        belief = np.exp(self.forward[-1] - self.log_partition)
        for row in range(self.rows - 1, -1, -1):
            sites = range(row * self.columns, (row + 1) * self.columns)
            within = self.x.T @ (belief[:, None] * self.x)
            single[sites] = np.diag(within)
            pair |= {(sites[c], sites[c + 1]): within[c, c + 1] for c in range(self.columns - 1)}
            if row:
                joint = self.forward[row - 1][:, None] + self.between[row - 1]
                joint = np.exp(joint - joint.max(axis=0))
                joint *= belief / joint.sum(axis=0)
                across = np.einsum("si,st,ti->i", self.x, joint, self.x, optimize=True)
                pair |= {(site - self.columns, site): value for site, value in zip(sites, across)}
                belief = joint.sum(axis=1)
        return np.concatenate([single, [pair[clique] for clique in self.model.cliques]])

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        result = np.empty((n, self.rows * self.columns), np.uint8)
        for k in range(n):
            log_weight = self.forward[-1]
            for row in range(self.rows - 1, -1, -1):
                cumulative = np.cumsum(np.exp(log_weight - log_weight.max()))
                state = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
                result[k, row * self.columns : (row + 1) * self.columns] = self.x[state]
                if row:
                    log_weight = self.forward[row - 1] + self.between[row - 1][:, state]
        return result


def report(what: str, ours: float, plain: float, difference: float | None = None) -> None:
    agreement = "" if difference is None else f"{difference:12.1e}"
    print(f"{what:<52}{ours:>11.4f}{plain:>11.4f}{plain / ours:>8.1f}x{agreement}")


def main() -> None:
    rng = np.random.default_rng(1)
    print(
        f"{'CPU seconds, best of a few runs':<52}{'edgewise':>11}{'NumPy':>11}{'ratio':>9}{'difference':>12}"
    )

    p = 20
    i, j = np.triu_indices(p, 1)
    dense = MRF(rng.normal(size=p), np.stack([i, j], axis=1), rng.normal(0, 0.5, len(i)))

    def both_by_enumeration() -> tuple[float, np.ndarray]:
        table = Enumeration(dense)
        return table.log_partition(), table.means()

    (log_z, means), ours = cpu_seconds(both_by_enumeration, 3)
    (log_z_plain, means_plain), plain = cpu_seconds(lambda: plain_enumeration(dense), 2)
    difference = max(abs(log_z - log_z_plain), float(np.abs(means - means_plain).max()))
    report(f"enumeration, p = {p}: log Z, means of {len(i)} pairs", ours, plain, difference)

    lattice = datasets.lattice_model(seed=1)
    ours_values, ours = cpu_seconds(lambda: (exact.log_partition(lattice), exact.means(lattice)), 5)

    def both_by_rows() -> tuple[float, np.ndarray]:
        transfer = RowTransfer(lattice, 10, 10)
        return transfer.log_partition, transfer.means()

    plain_values, plain = cpu_seconds(both_by_rows, 2)
    difference = max(
        abs(ours_values[0] - plain_values[0]), float(np.abs(ours_values[1] - plain_values[1]).max())
    )
    report("elimination, 10 x 10 lattice: log Z, means", ours, plain, difference)

    n = 1000
    rows, ours = cpu_seconds(lambda: exact.sample(lattice, n, rng), 3)
    _, plain = cpu_seconds(lambda: RowTransfer(lattice, 10, 10).sample(n, rng), 1)
    report(f"{n:,} exact samples of the lattice", ours, plain)

    rows = exact.sample(lattice, 10_000, rng)
    group = [10 * row + column for row in (3, 4, 5) for column in (3, 4, 5)]
    values, ours = cpu_seconds(lambda: exact.conditional_log_probability(lattice, group, rows), 3)

    def plain_conditional() -> np.ndarray:
        potentials = np.empty((len(rows), 512))
        for state, inside in enumerate(exact.states(9)):
            changed = rows.astype(float)
            changed[:, group] = inside
            pairs = np.einsum("ni,ni->n", changed @ lattice.coupling, changed)
            potentials[:, state] = changed @ lattice.biases + 0.5 * pairs
        peak = potentials.max(axis=1, keepdims=True)
        log_sum = peak[:, 0] + np.log(np.exp(potentials - peak).sum(axis=1))
        return potentials[np.arange(len(rows)), rows[:, group] @ (1 << np.arange(9))] - log_sum

    values_plain, plain = cpu_seconds(plain_conditional, 1)
    difference = float(np.abs(values - values_plain).max())
    report("10,000 rows, log P(3 x 3 pixels | rest)", ours, plain, difference)


if __name__ == "__main__":
    main()
