"""Recovery: edges and couplings of known lattices, beside the lasso baselines on the same rows."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import compile_kernels, kept_result, table_of, values_of
from benchmarks.problems import lattice_truth_and_rows, problem_of
from edgewise.baselines import NodewiseLasso, PseudoLikelihoodLasso
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.evaluate import edge_scores, path_curve
from edgewise.model import MRF

SEEDS = (1, 2, 3, 4, 5)
CASES = ((100, 24.0), (1000, 60.0))
CHAINS = 2
KEPT = ("selected", "precision", "recall", "f1", "ising_rmse")


def bayes(truth: MRF, rows: np.ndarray, cpu_seconds: float) -> dict[str, float]:
    """Two particle chains within the CPU time: edges with PIP > 0.5, couplings by their posterior mean."""
    problem = problem_of(rows)
    compile_kernels("particle")
    begin = time.process_time()
    chains = []
    for chain in range(CHAINS):
        own = time.process_time()
        engine = load_engine("particle")(problem, None, np.random.SeedSequence([4, chain]))
        engine.advance(engine.warm_up)
        pieces = []
        while time.process_time() - own < cpu_seconds / CHAINS or not pieces:
            pieces.append(engine.advance(50))
        chains.append(Draws.concatenate(pieces))
    seconds = time.process_time() - begin
    values = values_of(chains, problem.features.n_cliques)
    share, mean = (values != 0).mean(axis=(1, 2)), values.mean(axis=(1, 2))
    p = truth.n_variables
    above = np.triu_indices(p, 1)
    scores = np.zeros((p, p))
    scores[above] = share
    coupling = np.zeros((p, p))
    coupling[above] = mean
    found = edge_scores(truth, MRF.from_coupling(np.zeros(p), coupling + coupling.T))
    selected = (scores > 0.5) * 1.0
    chosen = edge_scores(truth, MRF.from_coupling(np.zeros(p), selected + selected.T))
    kept = {name: chosen[name] for name in ("selected", "precision", "recall", "f1")}
    return kept | {"ising_rmse": found["ising_rmse"], "cpu_seconds": seconds, "draws": float(values.shape[2])}


def lassos(truth: MRF, rows: np.ndarray) -> dict[str, dict[str, float]]:
    """Node-wise lasso with EBIC, and the pseudo-likelihood lasso with the penalty of best F1."""
    result = {}
    begin = time.process_time()
    nodewise = NodewiseLasso(lam="ebic", combine="mean", rule="and", constant="keep").fit(rows)
    found = edge_scores(truth, nodewise)
    result["node-wise lasso, EBIC"] = {name: found[name] for name in KEPT} | {
        "cpu_seconds": time.process_time() - begin
    }
    begin = time.process_time()
    pseudo = PseudoLikelihoodLasso(constant="keep").fit(rows)
    curve = path_curve(truth, pseudo)
    found = edge_scores(truth, pseudo.path_.model(int(curve["f1"].argmax())))
    result["pseudo-likelihood lasso, best lambda"] = {name: found[name] for name in KEPT} | {
        "cpu_seconds": time.process_time() - begin
    }
    return result


def main(arguments: argparse.Namespace) -> None:
    def compute(method: Callable[..., Any], seed: int, count: int, *more: float) -> Any:
        return None if arguments.stored else method(*lattice_truth_and_rows(seed, count), *more)

    table = []
    for count, seconds in CASES:
        gathered: dict[str, list[dict[str, float]]] = {}
        for seed in SEEDS:
            case = f"lattice_n{count}_s{seed}"
            if arguments.only not in case:
                continue
            found = kept_result(
                "recovery",
                f"{case}_particle",
                lambda seed=seed, count=count, seconds=seconds: compute(bayes, seed, count, seconds),
                arguments.fresh,
            )
            if found:
                gathered.setdefault("particle", []).append(found)
                print(f"{case}: F1 {found['f1']:.3f}, rmse {found['ising_rmse']:.4f}", flush=True)
            others = kept_result(
                "recovery",
                f"{case}_lassos",
                lambda seed=seed, count=count: compute(lassos, seed, count),
                arguments.fresh,
            )
            for name, scores in (others or {}).items():
                gathered.setdefault(name, []).append(scores)
        for method, results in gathered.items():
            means = [float(np.mean([result[key] for result in results])) for key in (*KEPT, "cpu_seconds")]
            table.append([count, method, len(results), *means])
    header = ["N", "method", "lattices", "selected", "precision", "recall", "F1", "rmse of J", "CPU s"]
    print("\n" + table_of(header, table))
