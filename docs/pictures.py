"""Draw the picture of the README: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from edgewise import SpikeSlabMRF, datasets, exact, plots


def main() -> None:
    """Twelve simulated variables in three groups: the graph found and the evidence for each edge."""
    truth = datasets.block_model(seed=1)
    rows = exact.sample(truth, 500, np.random.default_rng(1))
    table = pd.DataFrame(rows, columns=[f"q{k}" for k in range(1, 13)])
    posterior = SpikeSlabMRF(random_state=1, progress=False).fit(table).posterior_
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    plots.network(posterior, ax=left)
    plots.edge_evidence(posterior, ax=right)
    figure.savefig(Path(__file__).parent / "images" / "network.png", dpi=110)


if __name__ == "__main__":
    main()
