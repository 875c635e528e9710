"""Other priors from one posterior beside full fits under each of them.

``python -m benchmarks.sensitivity [names]``: for every data set and five priors how each was computed, root
mean square and largest difference of the inclusion probabilities in Monte Carlo errors, and the CPU seconds
of all five together as a share of one fit (both after a first fit that loads and compiles everything).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.problems import data_directory
from edgewise import SpikeSlabMRF, datasets, exact
from edgewise.priors import BetaInclusion, CauchySlab, FixedInclusion, FixedSlab, Prior

PRIORS = {
    "p0 = 0.5": Prior(FixedInclusion(0.5)),
    "Beta(1, 1)": Prior(BetaInclusion(1, 1)),
    "sigma0 = 0.7": Prior(slab=FixedSlab(0.7)),
    "sigma0 = 2": Prior(slab=FixedSlab(2.0)),
    "Cauchy(1)": Prior(slab=CauchySlab(1.0)),
}
NAMES = ("block100", "block1000", "votes", "nltcs", "adhd")


def rows_of(name: str) -> Any:
    """The rows of a data set."""
    import pandas

    def table(file: str, columns: slice) -> Any:
        return pandas.read_csv(data_directory() / "binary" / file).iloc[:, columns].dropna()

    if name.startswith("block"):
        rng = np.random.default_rng(1)
        return exact.sample(datasets.block_model(seed=1), int(name.removeprefix("block")), rng)
    if name == "nltcs":
        with np.load(data_directory() / "debd" / "nltcs.npz") as stored:
            return stored["train"]
    if name == "votes":
        return table("house_votes_84.csv.gz", slice(1, 17))
    return table("adhd.csv.gz", slice(1, 15))


def main() -> None:
    """Print the table."""
    names = sys.argv[1:] or NAMES
    for name in names:
        rows = rows_of(name)
        SpikeSlabMRF(random_state=9, progress=False, max_draws=1000).fit(rows)
        SpikeSlabMRF(random_state=9, progress=False, max_draws=1000, prior=PRIORS["Cauchy(1)"]).fit(rows)
        started = time.process_time()
        posterior = SpikeSlabMRF(random_state=1, progress=False).fit(rows).posterior_
        fit = time.process_time() - started
        started = time.process_time()
        found = posterior.sensitivity(PRIORS)
        share = (time.process_time() - started) / fit
        print(
            f"{name}: fit {fit:.2f} CPU s ({posterior.info['engine']}), all five {share:.2f} of it",
            flush=True,
        )
        for k, (label, prior) in enumerate(PRIORS.items(), 1):
            other = SpikeSlabMRF(random_state=7, progress=False, prior=prior).fit(rows).posterior_
            difference = found.inclusion[k] - other.edge_values("inclusion")
            z = difference / np.hypot(found.mcse[k], other.edge_values("mcse"))
            rms, worst = np.sqrt((difference**2).mean()), np.abs(z).max()
            print(
                f"  {label}: {found.how[k]}, {found.effective[k]:.0f} effective; rms {rms:.4f}, rms z "
                f"{np.sqrt((z**2).mean()):.2f}, largest z {worst:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
