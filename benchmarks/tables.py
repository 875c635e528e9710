"""Real tables with many variables or rows: what a fit says, how soon, and how well it foresees other rows.

    python -m benchmarks.tables [name ...] [--limit 600] [--engine auto] [--stored] [--fresh]

fits each table with defaults for at most so many CPU seconds of all chains (compiling apart), and tells the
engine, the light, CPU seconds, the measured error of a probability where the likelihood is approximated, and
on test rows the mean log-likelihood (annealed importance sampling, with its standard error) and the mean
pseudo-log-likelihood. Beside them stand those of a Chow-Liu tree of the same training rows and of the
node-wise lasso. Needs the data that EDGEWISE_DATA names. Results are stored, and computed once.
"""

from __future__ import annotations

import argparse
import math
import signal
import time
import warnings
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.chains_of_draws import kept_result, table_of
from benchmarks.mixing import votes
from benchmarks.problems import data_directory
from edgewise import MRF, NodewiseLasso, SpikeSlabMRF, datasets, predict
from edgewise.posterior.diagnostics import diagnose

# Draws of the posterior in the mixture that foresees, and particles of each one's log Z.
MIXTURE, PARTICLES = 20, 500
TEST_SHARE, TEST_SEED = 0.2, 5
COLUMNS = ("rows", "variables", "engine", "light", "seconds", "typical error", "largest error")
SCORES = ("log-likelihood", "its error", "tree", "pseudo", "pseudo of tree", "pseudo of lasso")


def split(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and to test with."""
    order = np.random.default_rng(TEST_SEED).permutation(len(rows))
    n = round(TEST_SHARE * len(rows))
    return rows[order[n:]], rows[order[:n]]


def benchmark_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_directory() / "debd" / f"{name}.npz") as stored:
        return np.asarray(stored["train"], np.uint8), np.asarray(stored["test"], np.uint8)


def patch(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The patch of the MNIST digits: 60,000 to learn from, the rest to test with."""
    every = np.asarray(datasets.mnist_patch(data_directory() / "mnist"), np.uint8)
    return split(every[:rows])


TABLES: dict[str, Any] = {
    name: lambda n=name: benchmark_set(n)
    for name in ("nltcs", "plants", "bnetflix", "accidents", "dna", "book")
}
TABLES |= {
    "senate109": lambda: split(votes()),
    "MNIST patch": lambda: patch(60_000),
}


def chow_liu(rows: np.ndarray) -> MRF:
    """The tree of largest likelihood, its probabilities smoothed by one row."""
    x, n = rows.astype(float), len(rows) + 1.0
    both = (x.T @ x + 0.25) / n
    one = (x.sum(axis=0) + 0.5) / n
    cells = np.stack([both, one[:, None] - both, one - both, 1 - one[:, None] - one + both])
    margins = np.stack(
        [np.outer(a, b) for a, b in ((one, one), (one, 1 - one), (1 - one, one), (1 - one, 1 - one))]
    )
    information = (cells * np.log(np.maximum(cells, 1e-12) / margins)).sum(axis=0)
    p = rows.shape[1]
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, information[i, j]) for i in range(p) for j in range(i + 1, p))
    edges = sorted(tuple(sorted(edge)) for edge in nx.maximum_spanning_tree(graph).edges)
    bias = np.log(one / (1 - one))
    coupling = []
    for i, j in edges:
        # Cells 11, 10, 01, 00 of the pair.
        a, b, c, d = np.log(np.maximum(cells[:, i, j], 1e-12))
        coupling.append(a + d - b - c)
        bias[i] += b - d - np.log(one[i] / (1 - one[i]))
        bias[j] += c - d - np.log(one[j] / (1 - one[j]))
    return MRF(bias, edges, coupling)


def fitted(rows: np.ndarray, engine: str, limit: float) -> tuple[SpikeSlabMRF, float]:
    """A fit with defaults that ends after so many CPU seconds, and what it took."""
    begin: list[float] = []

    def watch(view: Any) -> None:
        begin.append(time.process_time())
        if begin[-1] - begin[0] > limit:
            begin[0] = math.inf
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    model = SpikeSlabMRF(engine=engine, random_state=1, progress=False, callback=watch, constant="keep")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows)
    return model, time.process_time() - (begin[0] if math.isfinite(begin[0]) else start)


def measure(name: str, engine: str, limit: float) -> dict[str, Any]:
    train, test = TABLES[name]()
    model, seconds = fitted(train, engine, limit)
    posterior = model.posterior_
    found: dict[str, Any] = {
        "rows": len(train),
        "variables": train.shape[1],
        "engine": model.engine_,
        "light": diagnose(posterior).light,
        "seconds": round(seconds, 1),
    }
    if posterior._approximation is not None:
        found["typical error"] = round(posterior._approximation.typical, 4)
        found["largest error"] = round(posterior._approximation.largest, 4)
    foreseen = predict.log_likelihood(posterior.mixture(MIXTURE), test, particles=PARTICLES)
    tree = chow_liu(train)
    varying = np.flatnonzero(train.min(axis=0) != train.max(axis=0))
    lasso = NodewiseLasso().fit(train[:, varying])
    return found | {
        "log-likelihood": round(foreseen.mean, 3),
        "its error": round(foreseen.standard_error, 4),
        "tree": round(predict.log_likelihood(tree, test).mean, 3),
        "pseudo": round(model.score(test, mixture=MIXTURE), 3),
        "pseudo of tree": round(float(predict.pseudo_log_likelihood(tree, test).mean()), 3),
        "pseudo of lasso": round(float(lasso.score(test[:, varying])), 3),
    }


def chosen_parts() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="of tables; all by default")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds after which a fit ends")
    parser.add_argument("--fresh", action="store_true", help="compute again what is stored")
    parser.add_argument("--stored", action="store_true", help="print what is stored, compute nothing")
    return parser.parse_args()


def main(chosen: argparse.Namespace | None = None) -> None:
    chosen = chosen or chosen_parts()
    engine = getattr(chosen, "engine", "auto")
    lines = []
    for name in getattr(chosen, "names", None) or TABLES:
        key = name.replace(" ", "_") + ("" if engine == "auto" else f"_{engine}")
        found = kept_result(
            "tables",
            key,
            lambda name=name: None if chosen.stored else measure(name, engine, chosen.limit),
            fresh=chosen.fresh and not chosen.stored,
        )
        if found is not None:
            lines.append([name, *(found.get(column, math.nan) for column in (*COLUMNS, *SCORES))])
            if not chosen.stored:
                print(*lines[-1], flush=True)
    print(table_of(["data", *COLUMNS, *SCORES], lines))


if __name__ == "__main__":
    main()
