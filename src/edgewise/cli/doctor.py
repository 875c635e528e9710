"""``edgewise doctor``: what edgewise runs on, and whether it works here."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from edgewise.cli import options
from edgewise.cli.messages import WRONG, session

PACKAGES = (
    *("numpy", "numba", "scipy", "pandas", "scikit-learn", "xarray", "h5netcdf", "h5py", "arviz-base"),
    *("networkx", "matplotlib", "typer", "rich", "pyarrow", "mlxtend"),
)


def doctor(json: options.Json = False, debug: options.Debug = False) -> None:
    """Show versions, cores and the cache of compiled code, and test a small fit in about five seconds.

    [bold]Examples[/bold]

    edgewise doctor

    edgewise doctor --json > doctor.json
    """
    from edgewise.cli import shown

    facts: dict[str, Any] = {
        "edgewise": versions()["edgewise"],
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": cores(),
        "memory": memory(),
        "cache of compiled code": cache(),
        "packages": {name: version for name, version in versions().items() if name != "edgewise"},
    }
    out = shown.console()
    if not json:
        for name, value in facts.items():
            if isinstance(value, dict):
                value = ", ".join(f"{package} {version}" for package, version in value.items())
            out.print(f"{name + ':':24}{value}", soft_wrap=True)
        out.print("self-test:")
    results = []
    for name, test in TESTS.items():
        started = time.monotonic()
        try:
            note, passed = test(), True
        except Exception as error:
            if session.debug:
                import traceback

                traceback.print_exc()
            note, passed = f"{type(error).__name__}: {error}", False
        seconds = time.monotonic() - started
        results.append({"test": name, "passed": passed, "seconds": round(seconds, 2), "note": note})
        if not json:
            word = "ok" if passed else "FAILED"
            out.print(f"  {word:7}{name} ({seconds:.1f} s){': ' + note if note else ''}", soft_wrap=True)
    if json:
        shown.write_json({**facts, "self_test": results})
    if not all(result["passed"] for result in results):
        raise typer.Exit(WRONG)


def versions() -> dict[str, str]:
    """Versions of edgewise and of what it uses."""
    from importlib.metadata import PackageNotFoundError, version

    from edgewise._version import __version__

    found = {"edgewise": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def cores() -> str:
    """Processors of the machine, and those this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable of {os.cpu_count()}"


def memory() -> str:
    """Memory of the machine."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{total / 2**30:.1f} GiB"


def cache() -> str:
    """Where compiled code is kept, how much there is for these sources, and whether more can be written."""
    from edgewise.kernels.cache import used, writable

    written = writable()
    known = [path for path in used() if path.is_dir()]
    if not known:
        return "nowhere to write: every command compiles anew; NUMBA_CACHE_DIR chooses a directory"
    described = []
    for path in known:
        files = [entry for pattern in ("*.nbi", "*.nbc") for entry in path.glob(pattern)]
        size = sum(entry.stat().st_size for entry in files) / 2**20
        use = "writable" if path == written else "only read"
        described.append(f"{path} ({len(files)} files, {size:.1f} MiB, {use})")
    return "; ".join(described)


def _test_exact() -> str:
    import numpy as np

    from edgewise import exact
    from edgewise.datasets import block_model

    model = block_model(seed=1)
    rows = (np.arange(2**12)[:, None] >> np.arange(12)) & 1
    energies = model.log_potential(rows)
    expected = float(np.log(np.exp(energies - energies.max()).sum()) + energies.max())
    difference = abs(exact.log_partition(model) - expected)
    if difference > 1e-9:
        raise RuntimeError(f"log Z is off by {difference:g}")
    return ""


def _test_fit() -> str:
    import numpy as np

    from edgewise import exact
    from edgewise.datasets import random_model
    from edgewise.estimators import SpikeSlabMRF

    truth = random_model(5, kind="chain", seed=3, coupling_sd=1.0)
    rows = exact.sample(truth, 2000, np.random.default_rng(1))
    model = SpikeSlabMRF(
        "exact", random_state=0, progress=False, target_ess=None, max_draws=1000, chains=2
    ).fit(rows)
    strong = [k for k, weight in enumerate(truth.weights) if abs(weight) > 1]
    found = [model.inclusion_[truth.cliques[k]] for k in strong]
    if not strong or min(found) < 0.9:
        raise RuntimeError(f"a strong edge of the truth has the probability {min(found, default=0):.2f} only")
    _STATE["posterior"] = model.posterior_
    compiling = model.posterior_.info.get("compile_seconds", 0.0)
    return f"{len(strong)} of {len(strong)} strong edges found; loading or compiling took {compiling:.1f} s"


def _test_files() -> str:
    import tempfile

    import numpy as np

    from edgewise.posterior.posterior import load_posterior
    from edgewise.report import write_report

    posterior = _STATE.get("posterior")
    if posterior is None:
        raise RuntimeError("there is no posterior to write, because the fit failed")
    with tempfile.TemporaryDirectory() as directory:
        posterior.save(Path(directory) / "posterior.nc")
        again = load_posterior(Path(directory) / "posterior.nc")
        if not np.array_equal(again.inclusion, posterior.inclusion):
            raise RuntimeError("a posterior that was saved and loaded differs")
        page = write_report(again, Path(directory) / "report.html")
        return f"report of {page.stat().st_size / 1000:.0f} kB"


_STATE: dict[str, Any] = {}
TESTS: dict[str, Callable[[], str]] = {
    "log Z of 4,096 states": _test_exact,
    "fit of a chain of five variables": _test_fit,
    "posterior and report": _test_files,
}
