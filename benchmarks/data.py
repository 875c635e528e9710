"""The data door: memory for a large array, and time for files beside pandas' own reading of them.

Run with ``python -m benchmarks.data``.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np


def extra_memory(rows: int, columns: int) -> float:
    """Bytes by which the peak memory of a fresh process grows while it takes in a uint8 array."""
    script = f"""
import resource
import numpy as np
from edgewise.data import read_data
read_data(np.eye(3, dtype=np.uint8))
array = np.empty(({rows}, {columns}), np.uint8)
generator = np.random.default_rng(0)
for start in range(0, {rows}, 10_000):
    array[start : start + 10_000] = generator.integers(0, 2, array[start : start + 10_000].shape)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = read_data(array)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
assert data.n_rows == {rows}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    scale = 1 if sys.platform == "darwin" else 1024
    return float(done.stdout) * scale


def cpu_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Least CPU time of several runs; errors are what is being timed."""
    best = np.inf
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        with contextlib.suppress(ValueError):
            function()
        best = min(best, time.process_time() - start)
    return float(best)


def main() -> None:
    import pandas as pd

    from edgewise.data import read_data

    start = time.perf_counter()
    memory = extra_memory(1_000_000, 200)
    print(f"1,000,000 x 200 uint8: {memory / 1e6:.0f} MB extra at the peak (limit 500 MB)")
    print(f"  array made and taken in within {time.perf_counter() - start:.1f} s")
    warnings.simplefilter("ignore")
    bits = np.random.default_rng(1).integers(0, 2, (100_000, 100))
    names = [f"q{k}" for k in range(100)]
    print("100,000 x 100 cells, CPU seconds    pandas  edgewise   ratio")
    with tempfile.TemporaryDirectory() as directory:
        for kind, labels in (
            ("0 and 1", ("0", "1")),
            ("yes and no", ("no", "yes")),
            ("long words", ("hardly ever", "most of the time")),
        ):
            for fault in ("", "bad cell", "a blank"):
                cells = np.where(bits == 1, labels[1], labels[0]).astype(object)
                if fault:
                    cells[-5, 7] = "maybe" if fault == "bad cell" else ""
                path = Path(directory) / "table.csv"
                pd.DataFrame(cells, columns=names).to_csv(path, index=False)
                plain = cpu_seconds(lambda path=path: pd.read_csv(path))  # type: ignore[misc]
                checked = cpu_seconds(lambda path=path: read_data(path))  # type: ignore[misc]
                label = f"{kind}{', ' + fault if fault else ''}"
                print(f"  {label:32s} {plain:8.2f} {checked:8.2f} {checked / plain:8.2f}")


if __name__ == "__main__":
    main()
