"""Other priors from one posterior beside full fits under each of them.

``python -m benchmarks.sensitivity [data ...] [--stored] [--fresh]``: for every data set and five priors how
each was computed, root mean square and largest difference of the inclusion probabilities from those of a full
fit, in Monte Carlo errors, and the CPU seconds of all five together as a share of one fit (both after a first
fit that loads and compiles everything, on one thread). Results are stored, and computed once.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
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


def measure(name: str) -> dict[str, Any]:
    """One data set: all five priors from one posterior, and a fit under each."""
    rows, quiet = rows_of(name), {"progress": False, "n_jobs": 1}
    for prior in (Prior(), PRIORS["Cauchy(1)"]):
        SpikeSlabMRF(random_state=9, max_draws=1000, prior=prior, **quiet).fit(rows)
    started = time.process_time()
    posterior = SpikeSlabMRF(random_state=1, **quiet).fit(rows).posterior_
    fit = time.process_time() - started
    started = time.process_time()
    found = posterior.sensitivity(PRIORS, n_jobs=1)
    spent = time.process_time() - started
    told: dict[str, Any] = {"engine": posterior.info["engine"], "fit seconds": fit, "all seconds": spent}
    told["draws"] = posterior.n_chains * posterior.n_draws
    for k, (label, prior) in enumerate(PRIORS.items(), 1):
        other = SpikeSlabMRF(random_state=7, prior=prior, **quiet).fit(rows).posterior_
        difference = found.inclusion[k] - other.edge_values("inclusion")
        z = difference / np.hypot(found.mcse[k], other.edge_values("mcse"))
        told[label] = {
            "how": found.how[k],
            "effective": None if np.isnan(found.effective[k]) else float(found.effective[k]),
            "rms": float(np.sqrt((difference**2).mean())),
            "largest": float(np.abs(difference).max()),
            "rms z": float(np.sqrt((z**2).mean())),
            "largest z": float(np.abs(z).max()),
        }
    return told


def main(arguments: argparse.Namespace | None = None) -> None:
    """Print the table."""
    if arguments is None:
        about = (__doc__ or "").split("\n")[0]
        parser = argparse.ArgumentParser(prog="python -m benchmarks.sensitivity", description=about)
        parser.add_argument("names", nargs="*", default=[], help=f"data sets, of {', '.join(NAMES)}")
        parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
        parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
        arguments = parser.parse_args()
    lines = []
    for name in getattr(arguments, "names", None) or NAMES:
        found = kept_result(
            "sensitivity",
            name,
            lambda name=name: None if arguments.stored else measure(name),
            fresh=arguments.fresh and not arguments.stored,
        )
        for number, label in enumerate(PRIORS if found is not None else ()):
            row = found[label]
            effective = float("nan") if row["effective"] is None else row["effective"]
            share = f"{found['all seconds'] / found['fit seconds']:.2f}" if number == 0 else ""
            numbers = [row["how"], effective, row["rms"], f"{row['rms z']:.2f}", f"{row['largest z']:.1f}"]
            lines.append([name, label, *numbers, share])
            if not arguments.stored:
                print(*lines[-1], flush=True)
    heading = ["data", "prior", "how", "effective draws", "PIP rms", "rms z", "largest z",
               "all five / one fit, CPU"]  # fmt: skip
    print(table_of(heading, lines))


if __name__ == "__main__":
    main()
