"""Many chains: the draws depend on the seed and on nothing else."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest

from edgewise.draws.statistics import StoppingStatistics
from edgewise.engines.choose import ENGINES, choose, load_engine
from edgewise.engines.protocol import Problem
from edgewise.errors import DataError
from edgewise.features import Features, Statistics
from edgewise.priors import Prior
from edgewise.run import conductor, stopping, workers
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from edgewise.run.stopping import Look, enough, ladder
from edgewise.run.workers import worker_count
from toy_engine import TOY, fingerprint, toy_problem


def short_run(previous=None, **options):
    defaults = {
        "chains": 3,
        "min_draws": 60,
        "max_draws": 60,
        "target_ess": None,
        "seed": 7,
        "progress": False,
    }
    return run(toy_problem(), RunOptions(engine=TOY, **{**defaults, **options}), previous=previous)


@pytest.fixture(scope="module")
def reference():
    return short_run(n_jobs=1)


class Immediately:
    """The least that can be called an executor: it computes when asked."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.mark.parametrize("n_jobs", [2, 8, -1, None])
def test_the_number_of_workers_changes_nothing(reference, n_jobs):
    assert fingerprint(short_run(n_jobs=n_jobs).draws) == fingerprint(reference.draws)


@pytest.mark.parametrize("kind", ["threads", "processes", "immediately"])
def test_the_executor_changes_nothing(reference, kind):
    if kind == "immediately":
        result = short_run(executor=Immediately())
    elif kind == "threads":
        with ThreadPoolExecutor(2) as pool:
            result = short_run(executor=pool)
    else:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            result = short_run(executor=pool)
    assert fingerprint(result.draws) == fingerprint(reference.draws)
    assert result.counters == reference.counters
    for ours, theirs in zip(result.edge_sums, reference.edge_sums):
        assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 10.0])
def test_the_length_of_the_slices_changes_nothing(reference, monkeypatch, seconds):
    monkeypatch.setattr(workers, "SLICE_SECONDS", seconds)
    assert fingerprint(short_run().draws) == fingerprint(reference.draws)


def test_another_seed_gives_other_draws_and_the_seed_is_told(reference):
    assert fingerprint(short_run(seed=8).draws) != fingerprint(reference.draws)
    first = short_run(seed=None, max_draws=10, min_draws=10)
    again = short_run(seed=first.info["seed"], max_draws=10, min_draws=10)
    assert fingerprint(first.draws) == fingerprint(again.draws)
    assert first.info["seed"] != short_run(seed=None, max_draws=10, min_draws=10).info["seed"]


def test_chains_differ_and_do_not_depend_on_their_number(reference):
    assert len({fingerprint([chain]) for chain in reference.draws}) == 3
    assert fingerprint(short_run(chains=2).draws) == fingerprint(reference.draws[:2])


def test_thinning_keeps_every_third_draw():
    every = short_run(max_draws=60, thin=1)
    third = short_run(min_draws=20, max_draws=20, thin=3)
    suggested = short_run(min_draws=20, max_draws=20, settings={"thin": 3})
    assert np.array_equal(third.draws[0].biases, every.draws[0].biases[2::3])
    assert fingerprint(suggested.draws) == fingerprint(third.draws)
    assert suggested.info["thin"] == 3


def test_starts_can_differ_between_chains(reference):
    mixed = short_run(start=["default", "full", "empty"])
    assert fingerprint(mixed.draws[:1]) == fingerprint(reference.draws[:1])
    assert fingerprint(mixed.draws[1:2]) != fingerprint(reference.draws[1:2])


def test_the_ladder_is_fixed_and_ends_with_the_last_draw():
    rungs = ladder(1000, 20_000)
    assert rungs[-1] == 20_000
    assert 1000 in rungs
    assert rungs == sorted(set(rungs))
    assert all(later <= 1.26 * earlier for earlier, later in pairwise(rungs) if earlier >= 1000)
    # A larger budget only adds rungs, so that a longer run stops where the shorter one would have.
    assert set(rungs[:-1]) <= set(ladder(1000, 50_000))
    assert ladder(20, 20) == [20]


def test_the_run_stops_at_the_first_rung_that_suffices(monkeypatch):
    seen = []

    def made_up(draws, n_cliques):
        seen.append(len(draws[0]))
        return StoppingStatistics(4.0 * len(draws[0]), 1.001 if len(draws[0]) >= 100 else 1.2, 0, 1)

    monkeypatch.setattr("edgewise.draws.statistics.stopping_statistics", made_up)
    result = short_run(min_draws=60, max_draws=400, target_ess=300)
    assert seen == [60, 80, 100]  # 80 draws have the ESS but not the agreement
    assert len(result.draws[0]) == 100
    assert result.info["stop_reason"] == "target_ess"
    assert "100 draws" in result.info["stop_message"]
    assert "R-hat 1.001" in result.info["stop_message"]


def test_looks_before_min_draws_do_not_stop():
    good = Look(100, 1e6, 1.0, -1, 0)
    options = RunOptions(min_draws=100, target_ess=400)
    assert enough(options, good)
    assert not enough(replace(options, min_draws=200), good)
    assert not enough(replace(options, target_ess=None), good)
    assert not enough(options, Look(100, 1e6, 1.01, -1, 0))


def test_the_stop_is_reproducible_on_any_number_of_workers():
    options = {"min_draws": 60, "max_draws": 400, "target_ess": 40}
    first, second = short_run(n_jobs=1, **options), short_run(n_jobs=3, **options)
    assert fingerprint(first.draws) == fingerprint(second.draws)
    assert first.info["stop_message"] == second.info["stop_message"]


def test_under_max_time_the_draws_are_the_first_ones_of_the_unlimited_run():
    options = {"settings": {"delay": 0.002}, "min_draws": 400, "max_draws": 400}
    cut = short_run(max_time=0.4, **options)
    count = len(cut.draws[0])
    assert cut.info["stop_reason"] == "max_time"
    assert 4 <= count < 400
    assert len({len(chain) for chain in cut.draws}) == 1
    whole = short_run(min_draws=400, max_draws=400, settings={"delay": 0.0})
    assert fingerprint(cut.draws) == fingerprint([chain[:count] for chain in whole.draws])


@pytest.mark.parametrize("cold", [True, False])
def test_compiling_is_announced_and_does_not_count(cold, monkeypatch, capfd):
    from edgewise.kernels import cache

    monkeypatch.setattr(conductor, "COMPILE_NOTICE_SECONDS", 0.0)

    def slowly(*arguments):
        import time

        if cold:
            cache.compiled_anew.append("a kernel")
        time.sleep(0.3)
        return 1000.0

    monkeypatch.setattr(conductor, "prepare", slowly)
    result = short_run(max_time=60, progress="lines")
    assert result.info["stop_reason"] == "max_draws"
    assert result.info["seconds"] < 0  # the made-up 1,000 seconds were taken off the clock
    # However slow the machine: loading what was compiled before is not called compiling.
    assert ("Compiling the toy_engine:ToyEngine engine" in capfd.readouterr().err) == cold


@pytest.fixture
def ctrl_c():
    """Python's own handler, also where the tests are a background job, for which Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_once_sampling(view):
    if view.phase == "sampling" and view.draws >= 10 and not press_once_sampling.pressed:
        press_once_sampling.pressed = True
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("executor", ["threads", "immediately"])
def test_ctrl_c_gives_what_is_there_and_extending_goes_on(monkeypatch, executor):
    monkeypatch.setattr("edgewise.run.progress.Display.interval", 0.01)
    press_once_sampling.pressed = False
    options = {"settings": {"delay": 0.001}, "min_draws": 300, "max_draws": 300}
    if executor == "immediately":
        options["executor"] = Immediately()
    cut = short_run(callback=press_once_sampling, **options)
    count = len(cut.draws[0])
    assert cut.info["interrupted"]
    assert cut.info["stop_reason"] == "interrupted"
    assert 10 <= count < 300
    assert all(len(chain) == count for chain in cut.draws)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    whole = short_run(min_draws=300, max_draws=300)
    assert fingerprint(cut.draws) == fingerprint([chain[:count] for chain in whole.draws])
    rest = short_run(previous=cut, **options)
    assert rest.info["resumed_from_iteration"] > 20
    assert fingerprint(rest.draws) == fingerprint(whole.draws)


def test_a_background_job_for_which_ctrl_c_is_ignored_goes_on(reference, monkeypatch):
    monkeypatch.setattr("edgewise.run.progress.Display.interval", 0.0)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = short_run(callback=lambda view: os.kill(os.getpid(), signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert not result.info["interrupted"]
    assert fingerprint(result.draws) == fingerprint(reference.draws)


def test_a_run_goes_on_as_if_it_had_been_longer_from_the_beginning(reference):
    half = short_run(min_draws=25, max_draws=25)
    assert fingerprint(short_run(previous=half, seed=None).draws) == fingerprint(reference.draws)


def test_an_engine_that_fails_fails_the_run():
    with pytest.raises(FloatingPointError, match="told to fail"):
        short_run(settings={"fail_at": 40})


def test_the_callback_sees_the_run_grow(monkeypatch):
    monkeypatch.setattr("edgewise.run.progress.Display.interval", 0.0)
    views = []
    short_run(callback=views.append, min_draws=60, max_draws=120, target_ess=1e9, max_time=1000)
    assert {view.phase for view in views} == {"warm-up", "sampling", "done"}
    assert [view.draws for view in views] == sorted(view.draws for view in views)
    last = views[-1]
    assert last.draws == 120
    assert last.look.draws == 120
    assert 0 <= last.chains[0].acceptance <= 1
    assert any(view.remaining > 0 for view in views)


def test_worker_count_follows_joblib():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert worker_count(1, 4) == 1
    assert worker_count(8, 4) == 4
    assert worker_count(-1, 1000) == cores
    assert worker_count(-2, 1000) == max(1, cores - 1)
    assert worker_count(None, 1000) == cores
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(n_jobs=3):
        assert worker_count(None, 1000) == 3
        assert worker_count(2, 1000) == 2
    nested = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(worker_count)(None, 1000) for _ in range(2)
    )
    assert nested == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 0}, "chains must be a whole number of at least 1, not 0"),
        ({"chains": 2.5}, "chains must be a whole number"),
        ({"min_draws": 0}, "min_draws must be a whole number of at least 1"),
        ({"max_draws": 3}, "max_draws must be a whole number of at least 4"),
        ({"min_draws": 61}, r"min_draws \(61\) is larger than max_draws \(60\)"),
        ({"thin": 0}, "thin must be 'auto' or a whole number of at least 1"),
        ({"thin": "often"}, "thin must be 'auto'"),
        ({"target_ess": -1}, "target_ess must be a positive number, 'auto' or None, not -1"),
        ({"target_ess": "much"}, "target_ess must be a positive number, 'auto' or None"),
        ({"target_error": 0}, "target_error must be the largest error of a probability, above 0"),
        ({"target_error": None}, "target_error must be"),
        ({"max_time": 0}, "max_time must be a positive number or None"),
        ({"checkpoint_every": -1}, "checkpoint_every must be a number of seconds"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers"),
        ({"n_jobs": "all"}, "n_jobs must be a number of workers"),
        ({"start": "middle"}, "start must be one of 'default', 'empty'"),
        ({"start": ["empty"]}, "one of these for each of the 3 chains"),
        ({"settings": {"speed": 3}}, "no setting"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        short_run(**options)


def test_engines_are_found_by_name_or_path():
    assert load_engine(TOY).name == "toy"
    for name in ("bayes", "nowhere:Engine", "toy_engine:Other"):
        with pytest.raises(DataError, match=name.split(":")[0]):
            load_engine(name)


@pytest.mark.parametrize(
    ("p", "rows", "engine"),
    [
        (3, 50, "exact"),
        (12, 50, "exact"),
        (16, 1_000_000, "exact"),
        (60, 100, "particle"),
        (60, 500, "exact"),
        (200, 500, "particle"),
    ],
)
def test_auto_gives_an_engine_and_a_sentence(p, rows, engine):
    features = Features.pairs(p)
    statistics = Statistics(rows, np.full(p, rows / 2), np.full(features.n_cliques, rows / 4))
    name, reason = choose(Problem(features, statistics, Prior().resolve(features)))
    assert name == engine
    assert name in ENGINES
    assert reason[0].isupper()
    assert reason.endswith(".")


def test_the_toy_engine_returns_the_prior_without_data():
    features = Features.pairs(3)
    problem = Problem(features, Statistics.none(features), Prior().resolve(features))
    options = RunOptions(
        engine=TOY, chains=2, min_draws=1500, max_draws=1500, target_ess=None, seed=3, progress=False
    )
    draws = run(problem, options).draws
    look = stopping.look(draws, 3)
    rate = np.concatenate([chain.inclusion_rate for chain in draws])
    error = rate.std() / np.sqrt(look.ess)
    assert abs(rate.mean() - 0.5) < 4.5 * error
    assert not abs(rate.mean() - 0.4) < 4.5 * error  # the same test sees a wrong prior
