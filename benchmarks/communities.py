"""A planted partition found again: the block model beside spectral clustering of its own couplings.

``python -m benchmarks.communities [--sets 20]``: 4 communities of 5 variables, 500 rows. Within a community
70 % of the pairs are linked, between two 5 %, couplings |N(0.9, 0.2)|. One line per data set: adjusted Rand
index of the point partition with the default prior and with one that expects more links within, of spectral
clustering of the posterior mean couplings told the true number, and of the same with the number from its
eigengap; the probability of four communities under both priors; CPU seconds.
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
# Who looks for communities expects more links within them than between.
TOLD = BlockInclusion(a=2, b=1, between_a=1, between_b=4)


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
    print("set  block  told  spectral(4)  spectral(gap)  P(4)  P(4) told  CPU s", flush=True)
    for seed in range(arguments.sets):
        data, truth = planted(seed)
        started = time.process_time()
        fits = [
            SpikeSlabMRF(
                engine=arguments.engine, prior=Prior(inclusion=blocks), random_state=seed, progress=False
            ).fit(data)
            for blocks in (BlockInclusion(), TOLD)
        ]
        found = [fit.posterior_.communities() for fit in fits]
        seconds = time.process_time() - started
        couplings = fits[0].posterior_.coupling()
        partitions = [*(each.partition for each in found)]
        partitions += [spectral(couplings, GROUPS), spectral(couplings, None)]
        row = [adjusted_rand_score(truth, labels) for labels in partitions]
        rows.append([*row, *(each.number[GROUPS] for each in found)])
        print(
            f"{seed:3d}  " + "  ".join(f"{value:.3f}" for value in rows[-1]) + f"  {seconds:.1f}", flush=True
        )
    print("mean", np.round(np.mean(rows, axis=0), 3))


if __name__ == "__main__":
    main()
