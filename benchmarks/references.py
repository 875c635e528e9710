"""Exact references for the accuracy table: two exact chains per problem, run in blocks until precise enough.

Run with ``python -m benchmarks.references [NAME ...]``. It can be stopped at any time and goes on where it
was. Summaries of a few kB are kept in ``benchmarks/references``; unfinished chains in its folder ``partial``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

import numpy as np

from benchmarks.chains_of_draws import summarise
from benchmarks.problems import load, reference_names
from edgewise.draws import Draws
from edgewise.engines.exact import ExactEngine
from edgewise.engines.protocol import Problem

DIRECTORY = Path(__file__).parent / "references"
CHAINS = 2
FIELDS = ("indptr", "indices", "values", "biases", "inclusion_rate", "slab_scale")


def tolerance(n_variables: int) -> float:
    return 0.003 if n_variables == 14 else 0.004 if n_variables < 14 else 0.008


def block_length(n_variables: int) -> int:
    return 5000 if n_variables < 14 else 1000


def advance_chain(problem: Problem, folder: Path, chain: int) -> list[Draws]:
    """Run one more block of a chain from its file; returns all its draws."""
    path = folder / f"chain{chain}.npz"
    pieces: list[Draws] = []
    if path.exists():
        with np.load(path) as stored:
            pieces = [Draws(*(stored[f"draws_{name}"] for name in FIELDS))]
            state = {name[6:]: stored[name] for name in stored if name.startswith("state_")}
        engine = ExactEngine.restore(problem, None, state)
    else:
        engine = ExactEngine(
            problem, None, np.random.SeedSequence([20, chain]), "default" if chain == 0 else "random"
        )
        engine.advance(engine.warm_up)
    pieces.append(engine.advance(block_length(problem.features.n_variables)))
    draws = Draws.concatenate(pieces)
    arrays = {f"draws_{name}": getattr(draws, name) for name in FIELDS}
    arrays |= {f"state_{name}": array for name, array in engine.state().items()}
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "next.npz"
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)
    return [draws]


def compute(name: str, limit: float = 3600.0) -> dict | None:
    """The reference of one problem, from its file or by running; None when the CPU seconds ran out."""
    path = DIRECTORY / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    problem = load(name)
    folder = DIRECTORY / "partial" / name
    begin = time.process_time()
    while time.process_time() - begin < limit:
        chains = [Draws.concatenate(advance_chain(problem, folder, chain)) for chain in range(CHAINS)]
        summary = summarise(chains, problem.features.n_cliques)
        error = max(summary["rms_error"], summary["rms_half_difference"])
        print(
            f"{name}: {len(chains[0]):,} draws a chain, rms error {summary['rms_error']:.4f}, "
            f"half difference {summary['rms_half_difference']:.4f}, "
            f"{time.process_time() - begin:.0f} CPU s",
            flush=True,
        )
        if error < tolerance(problem.features.n_variables):
            summary["n_variables"] = problem.features.n_variables
            summary["n_rows"] = problem.statistics.n_rows
            path.write_text(json.dumps(summary, separators=(",", ":")) + "\n")
            shutil.rmtree(folder)
            return summary
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="problems; all of them by default")
    DIRECTORY.mkdir(exist_ok=True)
    for name in parser.parse_args().names or reference_names():
        compute(name)


if __name__ == "__main__":
    main()
