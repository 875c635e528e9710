"""Lattices of 10 x 10 variables beside the lassos: reliability of probabilities, edges, couplings.

The truth is no draw from the prior here: 180 of 4,950 pairs are edges, as strong as the paper's. One chain
of the particle engine has a fixed CPU time, and the lassos see the same rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.chains_of_draws import kept_result, values_of
from benchmarks.engines.recovery import KEPT, lassos
from benchmarks.problems import lattice_truth_and_rows, problem_of
from edgewise.draws import Draws
from edgewise.engines.choose import load_engine
from edgewise.evaluate import edge_scores
from edgewise.model import MRF

ROWS = (50, 100, 200, 500, 1000)
DATA_SETS = 20
CPU_SECONDS = 10.0
BINS = 10
ENGINE = "particle"


def particle(truth: MRF, rows: np.ndarray) -> dict[str, Any]:
    """One chain: of the edges stated in each tenth those that are there, and how well it finds them."""
    problem = problem_of(rows)
    began = time.process_time()
    engine = load_engine(ENGINE)(problem, None, np.random.SeedSequence(4))
    engine.advance(engine.warm_up)
    pieces: list[Draws] = []
    while time.process_time() - began < CPU_SECONDS or len(pieces) < 2:
        pieces.append(engine.advance(50))
    values = values_of([Draws.concatenate(pieces)], problem.features.n_cliques)[:, 0]
    pip, p = (values != 0).mean(axis=1), truth.n_variables
    above = np.triu_indices(p, 1)
    there = truth.coupling[above] != 0
    tenth = np.minimum((pip * BINS).astype(int), BINS - 1)
    chosen, means = np.zeros((p, p)), np.zeros((p, p))
    chosen[above], means[above] = pip > 0.5, values.mean(axis=1)
    found = edge_scores(truth, MRF.from_coupling(np.zeros(p), chosen + chosen.T))
    coupled = edge_scores(truth, MRF.from_coupling(np.zeros(p), means + means.T))
    return {
        **{name: found[name] for name in KEPT if name != "ising_rmse"},
        "ising_rmse": coupled["ising_rmse"],
        "stated": [float(pip[tenth == b].sum()) for b in range(BINS)],
        "there": [int(there[tenth == b].sum()) for b in range(BINS)],
        "among": [int((tenth == b).sum()) for b in range(BINS)],
        "draws": values.shape[1],
        "cpu_seconds": time.process_time() - began,
    }


def grow(end: float) -> bool:
    """One more lattice at every number of rows, in turn; whether all are there at the end."""
    for seed in range(1, DATA_SETS + 1):
        for count in ROWS:
            for name, method in ((ENGINE, particle), ("lassos", lassos)):
                case = f"n{count}_s{seed}_{name}"

                def compute(seed: int = seed, count: int = count, method: Any = method) -> Any:
                    return None if time.monotonic() >= end else method(*lattice_truth_and_rows(seed, count))

                if kept_result("calibration/lattices", case, compute) is None:
                    return False
    return True


def results() -> dict[tuple[int, str], list[dict[str, Any]]]:
    """What is stored, by number of rows and method."""
    gathered: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for count in ROWS:
        for seed in range(1, DATA_SETS + 1):
            own = kept_result("calibration/lattices", f"n{count}_s{seed}_{ENGINE}", lambda: None)
            others = kept_result("calibration/lattices", f"n{count}_s{seed}_lassos", lambda: None)
            for name, found in {**({ENGINE: own} if own else {}), **(others or {})}.items():
                gathered.setdefault((count, name), []).append(found)
    return gathered
