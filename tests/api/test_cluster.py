"""Fits on a Dask cluster: the draws of a local run, whatever happens to workers and scheduler."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future

import pytest

pytest.importorskip("distributed")

import distributed

from command import FAST, edgewise
from edgewise import SpikeSlabMRF
from edgewise.errors import ClusterError, DataError
from edgewise.experiments import runner
from edgewise.experiments.runner import Result
from edgewise.run import cluster
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from edgewise.run.versions import versions
from toy_engine import TOY, fingerprint, toy_problem, toy_rows

SLOW = {"delay": 0.01}


@pytest.fixture(scope="module")
def machines():
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        processes=True,
        worker_dashboard_address=":0",
    ) as machines:
        yield machines


@pytest.fixture
def client(machines):
    machines.scale(2)
    with distributed.Client(machines, set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2)
        yield client


def short_run(draws=60, **options):
    made = RunOptions(
        engine=TOY,
        chains=3,
        min_draws=draws,
        max_draws=draws,
        target_ess=None,
        seed=7,
        progress=False,
        **options,
    )
    return run(toy_problem(), made)


@pytest.fixture(scope="module")
def reference():
    return fingerprint(short_run().draws)


def test_the_draws_are_those_of_a_local_run(client, reference):
    assert fingerprint(short_run(executor=client).draws) == reference
    assert fingerprint(short_run(executor=client.get_executor()).draws) == reference


def test_what_the_chains_share_is_scattered_once(client, monkeypatch):
    scattered = []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda thing, **how: scattered.append(1) or scatter(thing, **how))
    rows = toy_rows(200)
    quick = {"min_draws": 20, "max_draws": 20, "progress": False, "chains": 2, "random_state": 3}
    settings = {"warm_up": 200, "particles": 64}
    common = {**quick, "engine": "surrogate", "settings": settings}
    here = SpikeSlabMRF(**common).fit(rows)
    there = SpikeSlabMRF(**common, executor=client).fit(rows)
    assert fingerprint(there.posterior_.draws) == fingerprint(here.posterior_.draws)
    # The problem once, the rest once for each time that the chains have met.
    assert 2 <= len(scattered) <= 20


def test_a_worker_that_is_killed_costs_nothing_but_time(client, machines, reference):
    def kill():
        time.sleep(0.5)
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killed: list[int] = []
    thread = threading.Thread(target=kill)
    thread.start()
    result = short_run(executor=client, settings=SLOW)
    thread.join()
    assert killed
    assert fingerprint(result.draws) == reference


def test_a_slice_that_kills_its_workers_is_given_up(client, monkeypatch):
    monkeypatch.setattr(cluster, "MOST_TRIES", 1)
    pool = cluster.ClusterExecutor(client)
    lost = type("KilledWorker", (Exception,), {})("the worker died")
    assert cluster._is_lost(lost)
    assert issubclass(distributed.scheduler.KilledWorker, Exception)
    waiting: Future = Future()
    pool._again(lost, waiting, 1, int, (), {})
    with pytest.raises(ClusterError, match="lost 1 times in a row"):
        waiting.result(timeout=1)
    pool.shutdown()


def test_the_scheduler_is_gone_and_the_fit_goes_on_elsewhere(tmp_path, reference):
    path = tmp_path / "c"
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as machines:
        client = distributed.Client(machines.scheduler_address, set_as_default=False, timeout=1)

        def close():
            while not list(path.glob("draws-*.npz")):
                time.sleep(0.05)
            machines.close()

        thread = threading.Thread(target=close)
        thread.start()
        options = {"checkpoint": path, "checkpoint_every": 0, "settings": SLOW}
        with pytest.raises(ClusterError, match=r"scheduler at .* is gone .* Run the same fit again"):
            short_run(10_000, executor=client, **options)
        thread.join()
        client.close(timeout=1)
    result = short_run(**options)
    assert result.info["resumed_from_iteration"] > 0
    assert fingerprint([chain[:60] for chain in result.draws]) == reference


def test_other_versions_on_a_worker_are_named(client, monkeypatch):
    monkeypatch.setattr(cluster, "_software", lambda: {**versions(), "edgewise": "9.9"})
    with pytest.raises(ClusterError, match=r"A worker of the cluster has edgewise .* instead of 9\.9"):
        short_run(executor=client)


def test_no_scheduler_is_an_error_before_anything_else(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(DataError, match=r"no Dask scheduler at 'tcp://127.0.0.1:9'"):
        cluster.connect("tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 0.3)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as machines,
        distributed.Client(machines, set_as_default=False) as client,
        pytest.raises(ClusterError, match="has no workers"),
    ):
        short_run(executor=client)


def test_the_command_takes_a_scheduler(client, machines, tmp_path, votes):
    words = ["fit", votes, "--group", "party", "--missing", "drop", *FAST, "-q"]
    edgewise(*words, "-o", tmp_path / "here")
    edgewise(*words, "-o", tmp_path / "there", "--scheduler", machines.scheduler_address)
    tables = [(tmp_path / name / "edges.csv").read_text() for name in ("here", "there")]
    assert tables[0] == tables[1]


def computed(task):
    return Result({"worker": os.getpid()}, {}, 0.0)


def test_experiments_run_there_too(client, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "compute", computed)
    tasks = [runner.Task(f"number-{k}", "", {"k": k}) for k in range(4)]
    results = runner.run_tasks(tasks, tmp_path, executor=client)
    assert len(results) == len(tasks)
    assert os.getpid() not in {result.values["worker"] for result in results.values()}
