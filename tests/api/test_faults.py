"""What can go wrong around a fit: kills between any two writes, dead workers, no memory, clocks, rivals."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from command import edgewise
from edgewise import load_posterior
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from toy_engine import TOY, fingerprint, toy_problem

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    "OPENBLAS_NUM_THREADS": "1",
}
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def short_run(path=None, draws=30, **options):
    defaults = {
        "chains": 2, "min_draws": draws, "max_draws": draws, "target_ess": None, "seed": 7, "progress": False,
        "checkpoint_every": 0, "n_jobs": 1,
    }  # fmt: skip
    return run(toy_problem(), RunOptions(engine=TOY, checkpoint=path, **{**defaults, **options}))


@pytest.fixture(scope="module")
def reference():
    return fingerprint(short_run().draws)


DYING = """
import os, signal, sys

# Every call that changes a directory or a file counts; the process dies before the given one.
fatal, count = int(sys.argv[2]), 0

def counted(function):
    def call(*arguments, **options):
        global count
        count += 1
        if count == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

from toy_engine import TOY, toy_problem
from edgewise.run.chains import run
from edgewise.run.versions import versions
from edgewise.run.options import RunOptions
versions()

def fit():
    for name in ("open", "fsync", "replace", "unlink", "mkdir", "ftruncate"):
        setattr(os, name, counted(getattr(os, name)))
    run(toy_problem(), RunOptions(
        engine=TOY, chains=2, min_draws=30, max_draws=30, target_ess=None, seed=7, progress=False,
        checkpoint=path, checkpoint_every=0, n_jobs=1))

import json, shutil
survived = 0
died = []
while not survived and len(died) < 400:
    path = sys.argv[1] + "/" + str(fatal)
    child = os.fork()
    if child == 0:
        fit()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        died.append(fatal)
    else:
        survived = os.WEXITSTATUS(status) == 0
    fatal += int(sys.argv[3])
print(json.dumps({"died": died, "survived": bool(survived)}))
"""


@needs_fork
def test_killed_before_any_write_the_run_goes_on_to_the_same_draws(tmp_path, reference):
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(tmp_path), "1", "1"],
        capture_output=True, text=True, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["survived"]
    assert len(found["died"]) > 20
    for moment in found["died"]:
        path = tmp_path / str(moment)
        assert fingerprint(short_run(path).draws) == reference, moment
        assert not list(path.glob("*.part"))


def die_once(path):
    """Kill the process that works for us, the first time we are asked."""
    import signal

    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)


@needs_fork
def test_a_killed_worker_costs_the_run_and_nothing_that_was_saved(tmp_path, reference):
    short_run(tmp_path / "c", draws=10)
    with ProcessPoolExecutor(1) as pool:
        killed = pool.submit(die_once, str(tmp_path / "died"))
        with pytest.raises(BrokenProcessPool):
            short_run(tmp_path / "c", executor=pool)
        assert isinstance(killed.exception(), BrokenProcessPool)
    result = short_run(tmp_path / "c")
    assert result.info["resumed_from_iteration"] >= 30
    assert fingerprint(result.draws) == reference


STARVED = """
import resource, sys
from pathlib import Path
from toy_engine import TOY, toy_problem
from edgewise.run.chains import run
from edgewise.run.options import RunOptions

def starve(view):
    if not hoard and list(Path(sys.argv[1]).glob("draws-*.npz")):
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        # No new memory from now on, and hardly any is left of what the allocator holds.
        resource.setrlimit(resource.RLIMIT_AS, (size // 2, size // 2))
        for part in (1 << 20, 1 << 14, 1 << 11):
            try:
                while True:
                    hoard.append(bytearray(part))
            except MemoryError:
                pass
        del hoard[-5:]

hoard = []
run(toy_problem(), RunOptions(
    engine=TOY, chains=2, min_draws=200_000, max_draws=200_000, target_ess=None, seed=7, progress=False,
    checkpoint=sys.argv[1], checkpoint_every=0.05, n_jobs=1, callback=starve, settings={"warm_up": 20}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_limit_of_memory_ends_the_run_and_loses_nothing(tmp_path):
    path = tmp_path / "c"
    done = subprocess.run(
        [sys.executable, "-c", STARVED, str(path)],
        capture_output=True,
        text=True,
        # Every thread would have a store of its own, reserved before the limit.
        env={**ENVIRONMENT, "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 1, done.stderr
    result = short_run(path, draws=40, settings={"warm_up": 20})
    assert result.info["resumed_from_iteration"] > 20
    assert fingerprint(result.draws) == fingerprint(short_run(draws=40).draws)


def test_a_clock_that_jumps_back_changes_nothing(tmp_path, monkeypatch, reference):
    path = tmp_path / "c"
    short_run(path, draws=10)
    short_run(path, draws=20)
    files = sorted(path.glob("*.npz"))
    for age, file in enumerate(files):  # the newest seems to be the oldest
        os.utime(file, (2**31 - 1 - 1000 * age,) * 2)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    real = time.gmtime(0)
    monkeypatch.setattr(time, "localtime", lambda *_: real)
    result = short_run(path)
    assert result.info["resumed_from_iteration"] == 40
    assert fingerprint(result.draws) == reference


# Two at once.

FLAGS = ([], ["--resume"], ["--overwrite"], ["--resume", "--overwrite"])


@pytest.fixture(scope="module")
def fits(votes, tmp_path_factory):
    """The words of a fit, and the draws it makes."""
    words = [
        "fit", votes, "--group", "party", "--missing", "drop", "--engine", TOY, "--chains", "1", "--seed",
        "4", "--draws", "60", "--max-draws", "60", "--target-ess", "0",
    ]  # fmt: skip
    slow = [*words, "--set", "delay=0.02"]
    undisturbed = tmp_path_factory.mktemp("whole") / "fit"
    edgewise(*slow, "-o", undisturbed, "-q")
    return slow, load_posterior(undisturbed / "posterior.nc")


def is_old(entry):
    try:
        return entry.stat().st_mtime == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("first", FLAGS, ids=lambda flags: " ".join(flags) or "new")
def test_of_two_fits_in_one_directory_the_second_is_refused_and_the_first_undisturbed(fits, tmp_path, first):
    words, whole = fits
    directory = tmp_path / "fit"
    if first:  # there is something to resume or to overwrite
        edgewise(*words, "-o", directory, "-q")
        for entry in directory.rglob("*.npz"):
            os.utime(entry, (0, 0))
    if "--resume" in first:
        for name in ("posterior.nc", "edges.csv", "report.html"):
            (directory / name).unlink()
        words = [*words[: words.index("--draws")], "--draws", "120", "--max-draws", "120", *words[-4:]]
    command = [sys.executable, "-m", "edgewise", *map(str, words), "-o", str(directory), *first]
    running = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        began = time.time()
        lock = directory / "checkpoint" / "lock"
        pid = f"{running.pid}\n"
        # What is overwritten is deleted under the lock too.
        while (
            not (lock.exists() and lock.read_text("utf-8") == pid)
            or (first == ["--overwrite"] and any(map(is_old, directory.rglob("*.npz"))))
        ) and time.time() < began + 120:
            assert running.poll() is None, running.stderr.read().decode()
            time.sleep(0.02)
        for second in FLAGS:
            before = sorted(entry.name for entry in directory.rglob("draws-*.npz"))
            refused = edgewise(*words, "-o", directory, *second, code=1)
            assert "in use by another fit" in refused.stderr or "holds" in refused.stderr, refused.stderr
            assert running.poll() is None
            after = sorted(entry.name for entry in directory.rglob("draws-*.npz"))
            assert set(before) <= set(after)
        _, said = running.communicate(timeout=300)
        assert running.returncode == 0, said.decode()
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
    found = load_posterior(directory / "posterior.nc")
    for chain, other in zip(found.draws, whole.draws):
        assert np.array_equal(chain[: len(other)].values, other.values)
        assert np.array_equal(chain.biases[: len(other)], other.biases)
    assert found.n_draws == (120 if "--resume" in first else 60)


def test_the_page_of_promises_names_tests_that_exist():
    page = (TESTS.parent / "docs" / "promises.md").read_text("utf-8")
    named = [part.strip("`").partition("::") for part in page.split() if part.startswith("`tests/")]
    assert len(named) > 20
    for file, _, test in (tuple(part.rstrip("`,.;|)") for part in parts) for parts in named):
        text = (TESTS.parent / file).read_text("utf-8")
        assert not test or f"def {test}(" in text, f"{file}::{test}"
    assert len(set(itertools.chain.from_iterable(named))) > 20
