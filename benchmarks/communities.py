"""A planted partition found again: the block model beside spectral clustering of the same couplings.

``python -m benchmarks.communities [--sets 20]``: 4 communities of 5 variables, 500 rows. Within a community
70 % of the pairs are linked, between two 5 %, couplings |N(0.9, 0.2)|. One line per data set: adjusted Rand
index of the point partition, of spectral clustering of the posterior mean couplings told the true number, and
of the same with the number from its eigengap; the probability of four communities; CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from edgewise import MRF, SpikeSlabMRF, exact
from edgewise.priors import BlockInclusion, Prior

GROUPS, SIZE, ROWS = 4, 5, 500


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a planted partition, and the partition."""
    rng = np.random.default_rng([seed, 77])
    truth = np.repeat(np.arange(GROUPS), SIZE)
    p = len(truth)
    pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
    chosen = [pair for pair in pairs if rng.random() < (0.7 if truth[pair[0]] == truth[pair[1]] else 0.05)]
    weights = np.abs(rng.normal(0.9, 0.2, len(chosen)))
    bias = np.zeros(p)
    for (i, j), weight in zip(chosen, weights):
        bias[i] -= weight / 2
        bias[j] -= weight / 2
    return exact.sample(MRF(bias, chosen, weights), ROWS, rng), truth


def spectral(couplings: np.ndarray, number: int | None) -> np.ndarray:
    """Spectral clustering of the sizes of the couplings; the number from the eigengap if not given."""
    affinity = np.abs(couplings) + 1e-6
    np.fill_diagonal(affinity, 0.0)
    if number is None:
        root = 1 / np.sqrt(affinity.sum(axis=0))
        values = np.sort(np.linalg.eigvalsh(affinity * root * root[:, None]))[::-1]
        number = 1 + int(np.argmax(values[:10] - values[1:11]))
    found: np.ndarray = SpectralClustering(number, affinity="precomputed", random_state=0).fit_predict(
        affinity
    )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    rows = []
    print("set  block  spectral(4)  spectral(gap)  P(4)  light  engine  CPU s", flush=True)
    for seed in range(arguments.sets):
        data, truth = planted(seed)
        started = time.process_time()
        model = SpikeSlabMRF(
            engine=arguments.engine,
            prior=Prior(inclusion=BlockInclusion()),
            random_state=seed,
            progress=False,
        )
        posterior = model.fit(data).posterior_
        found = posterior.communities()
        seconds = time.process_time() - started
        couplings = posterior.coupling()
        row = [
            adjusted_rand_score(truth, labels)
            for labels in (found.partition, spectral(couplings, GROUPS), spectral(couplings, None))
        ]
        rows.append([*row, found.number[GROUPS]])
        light = posterior.diagnostics().light if hasattr(posterior, "diagnostics") else "?"
        print(
            f"{seed:3d}  {row[0]:.3f}  {row[1]:.3f}  {row[2]:.3f}  {found.number[GROUPS]:.2f}  {light}  "
            f"{posterior.info['engine']}  {seconds:.1f}",
            flush=True,
        )
    print("mean", np.round(np.mean(rows, axis=0), 3))


if __name__ == "__main__":
    main()
