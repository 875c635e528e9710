"""The L1 baselines and the scores, measured.

    python -m benchmarks.baselines [paths] [ebic] [mnist] [scores] [coverage]

Without arguments everything runs but the coverage of annealing (about a CPU minute). Times are CPU seconds of
this process, after compilation.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from edgewise import MRF, NodewiseLasso, PseudoLikelihoodLasso, datasets, evaluate, exact, predict
from edgewise.errors import DataError, EdgewiseWarning

SKLEARN_NODES = 5


def timed(call: Callable[[], object]) -> tuple[object, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def paths() -> None:
    """The whole path of the 10 x 10 lattice with N = 1000, next to plain scikit-learn."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows = exact.sample(datasets.lattice_model(0), 1000, 0)
    node_wise, node_time = timed(lambda: NodewiseLasso().fit(rows))
    joint, joint_time = timed(lambda: PseudoLikelihoodLasso().fit(rows))
    path = node_wise.path_

    def scikit_learn() -> np.ndarray:
        result = np.zeros((len(path), SKLEARN_NODES, 100))
        for node in range(SKLEARN_NODES):
            others = np.arange(100) != node
            features, target = rows[:, others].astype(float), rows[:, node]
            model = LogisticRegression(
                l1_ratio=1, solver="saga", warm_start=True, max_iter=10_000, tol=1e-6, random_state=0
            )
            for position, lam in enumerate(path.lambdas):
                model.set_params(C=1 / (len(rows) * lam)).fit(features, target)
                result[position, node, others] = model.coef_[0]
        return result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference, sklearn_time = timed(scikit_learn)
    ours = path.coefficients[:, :SKLEARN_NODES].copy()
    for node in range(SKLEARN_NODES):
        ours[:, node, node] = 0
    print("50 lambdas, 10 x 10 lattice, N = 1000")
    print(f"  NodewiseLasso          {node_time:7.1f} CPU s  density to {path.densities[-1]:.2f}")
    print(f"  PseudoLikelihoodLasso  {joint_time:7.1f} CPU s  density to {joint.path_.densities[-1]:.2f}")
    scaled = sklearn_time * 100 / SKLEARN_NODES
    print(f"  scikit-learn (saga)    {scaled:7.1f} CPU s  node-wise, from {SKLEARN_NODES} of the 100 nodes")
    print(f"  largest difference of a coefficient: {np.abs(ours - reference).max():.1e} (saga's tol 1e-6)")
    print(f"  largest violation of the optimality conditions: {path.violations.max():.1e} node-wise,")
    print(f"  {joint.path_.violations.max():.1e} joint")


def ebic() -> None:
    """Node-wise lasso with EBIC as IsingFit (gamma 0.25, mean of both coefficients, AND rule)."""
    models = {
        "block": datasets.block_model,
        "lattice 5x5": lambda seed: datasets.lattice_model(seed, rows=5, columns=5),
        "lattice 7x7": lambda seed: datasets.lattice_model(seed, rows=7, columns=7),
        "lattice 10x10": datasets.lattice_model,
    }
    table = []
    for name, make in models.items():
        for n in (100, 1000):
            for seed in range(3):
                truth = make(seed)
                rows = exact.sample(truth, n, seed + 100)
                lasso = NodewiseLasso("ebic", "mean", rule="and", constant="keep")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EdgewiseWarning)
                    lasso, seconds = timed(lambda lasso=lasso, rows=rows: lasso.fit(rows))
                found = evaluate.edge_scores(truth, lasso)
                table.append({"data": name, "N": n, "CPU s": seconds} | found)
    columns = ["selected", "precision", "recall", "f1", "ising_rmse", "CPU s"]
    means = pd.DataFrame(table).groupby(["data", "N"], sort=False)[columns].mean()
    print("NodewiseLasso with EBIC, gamma 0.25, AND rule: mean of three data sets")
    print(means.round(3).to_string())


def mnist() -> None:
    """The MNIST patch with N = 1000 from density 0.01 to 0.9, and its conditional log-likelihood."""
    train, test = datasets.mnist_patch()[:1000], datasets.mnist_patch(split="test")
    groups = predict.random_windows(len(test), predict.grid_windows(12, 9), seed=0)
    print(f"MNIST patch, N = 1000, {len(test):,} test digits ({datasets.mnist_source()})")
    for estimator in (
        NodewiseLasso(0.1, "max", constant="keep"),
        NodewiseLasso(0.1, "min", constant="keep"),
        PseudoLikelihoodLasso(0.1, constant="keep"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdgewiseWarning)
            fitted, seconds = timed(lambda estimator=estimator: estimator.fit(train))
        print(f"{fitted}")
        path = fitted.path_
        for density in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
            try:
                path, step = timed(lambda path=path, density=density: path.solved_at_density(density))
            except DataError as error:
                print(f"  {error}")
                continue
            seconds += step
            model = path.model(-1)
            score = predict.conditional_log_likelihood(model, test, groups).mean()
            print(
                f"  density {model.density:.3f}  lambda {path.lambdas[-1]:.2e}  CLL {score:7.3f}  "
                f"largest |coupling| {np.abs(model.weights).max():6.2f}  |bias| "
                f"{np.abs(model.biases).max():6.2f}  violation {path.violations[-1].max():.0e}  "
                f"CPU s so far {seconds:6.1f}"
            )


def scores() -> None:
    """Conditional log-likelihood of a mixture of 100, and annealing on the lattice."""
    rng = np.random.default_rng(0)
    mixture = []
    for _ in range(100):
        coupling = np.triu(rng.normal(0, 1, (108, 108)) * (rng.random((108, 108)) < 0.3), 1)
        mixture.append(MRF.from_coupling(rng.normal(size=108), coupling + coupling.T))
    rows = (rng.random((10_000, 108)) < 0.3).astype(np.uint8)
    groups = predict.random_windows(10_000, predict.grid_windows(12, 9), seed=0)
    start = time.perf_counter()
    _, seconds = timed(lambda: predict.conditional_log_likelihood(mixture, rows, groups))
    wall = time.perf_counter() - start
    print(f"CLL, 10,000 rows x 100 models x 3 x 3 windows: {seconds:.1f} CPU s, {wall:.1f} s")
    model = datasets.lattice_model(0)
    (estimate, error), seconds = timed(lambda: predict.ais_log_partition(model))
    truth = exact.log_partition(model)
    print(
        f"annealing, 10 x 10 lattice: {estimate:.3f} +- {error:.3f}, exact {truth:.3f}; {seconds:.2f} CPU s"
    )


def coverage() -> None:
    """Share of 200 runs of annealing whose 95 % bar covers the exact log Z."""
    for name, model in (("block", datasets.block_model(0)), ("lattice", datasets.lattice_model(0))):
        truth = exact.log_partition(model)
        found = np.array([predict.ais_log_partition(model, seed=seed) for seed in range(200)])
        z = (found[:, 0] - truth) / found[:, 1]
        print(
            f"{name}: {np.mean(np.abs(z) < 1.96):.1%} of 200 bars cover log Z; "
            f"mean error bar {found[:, 1].mean():.4f}, deviations {z.mean():+.2f} +- {z.std():.2f}"
        )


PARTS = {"paths": paths, "ebic": ebic, "mnist": mnist, "scores": scores, "coverage": coverage}


def compile_everything() -> None:
    model = datasets.lattice_model(0, rows=2, columns=3)
    rows = exact.sample(model, 100, 0)
    NodewiseLasso(0.1).fit(rows)
    PseudoLikelihoodLasso(0.1).fit(rows)
    predict.ais_log_partition(model, temperatures=64)


def main(arguments: list[str]) -> None:
    compile_everything()
    for name in arguments or ["paths", "ebic", "mnist", "scores"]:
        PARTS[name]()
        print(flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
