"""What the chains share reaches every process once, and the draws do not notice."""

from __future__ import annotations

import pickle
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

from edgewise.data import read_data
from edgewise.run import plans
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from edgewise.run.plans import MOST_KEPT, Plan
from toy_engine import TOY, fingerprint, toy_problem, toy_rows

CHAINS = 3


@pytest.fixture(scope="module")
def problem():
    # Many rows, so that a plan is heavy and a slice is not.
    return replace(toy_problem(), rows=read_data(toy_rows(400_000)))


def short_run(problem, **options):
    made = RunOptions(
        engine=TOY,
        chains=CHAINS,
        min_draws=60,
        max_draws=60,
        target_ess=None,
        seed=7,
        progress=False,
        **options,
    )
    return run(problem, made)


@pytest.fixture(scope="module")
def reference(problem):
    return fingerprint(short_run(problem, n_jobs=1).draws)


class Courier:
    """Sends every task by mail to workers that share nothing; `lifetime` tasks later one is replaced."""

    def __init__(self, workers: int, lifetime: int, monkeypatch) -> None:
        self.memories = [({}, {}) for _ in range(workers)]
        self.lifetime, self.monkeypatch = lifetime, monkeypatch
        self.sizes, self.replaced = [], 0
        self.rng = np.random.default_rng(0)

    def submit(self, function, *arguments):
        letter = pickle.dumps((function, arguments))
        self.sizes.append(len(letter))
        worker = int(self.rng.integers(len(self.memories)))
        if len(self.sizes) % self.lifetime == 0:
            self.memories[worker] = ({}, {})
            self.replaced += 1
        future = Future()
        with self.monkeypatch.context() as patch:
            patch.setattr(plans, "_kept", self.memories[worker][0])
            patch.setattr(plans, "_problems", self.memories[worker][1])
            task, contents = pickle.loads(letter)
            future.set_result(pickle.loads(pickle.dumps(task(*contents))))
        return future


@pytest.mark.parametrize(("workers", "lifetime"), [(1, 10**9), (2, 10**9), (3, 20), (2, 1)])
def test_a_plan_travels_to_those_who_do_not_know_it(problem, reference, monkeypatch, workers, lifetime):
    monkeypatch.setattr("edgewise.run.workers.SLICE_SECONDS", 1e-9)  # as many slices as there can be
    monkeypatch.setattr("edgewise.run.workers.JOURNEY_SHARE", 1e9)
    courier = Courier(workers, lifetime, monkeypatch)
    result = short_run(problem, executor=courier)
    assert fingerprint(result.draws) == reference
    heavy = len(Plan(problem, TOY, {}).packed_problem.content)
    assert heavy > 200_000
    slices = len(courier.sizes)
    assert slices >= 100
    with_plan = sum(size > heavy for size in courier.sizes)
    # Each chain meets newcomers at the beginning. What is sent to a newcomer later on may reach another one
    # first: with w workers that is one in w.
    assert 1 <= with_plan <= workers * (CHAINS + courier.replaced)
    if lifetime == 10**9:
        assert sum(courier.sizes) < (with_plan + 1) * heavy + slices * 10_000
        assert with_plan < slices / 20


def test_processes_give_the_same_draws(problem, reference):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert fingerprint(short_run(problem, executor=pool).draws) == reference
        # The same workers know the plan already.
        assert fingerprint(short_run(problem, executor=pool).draws) == reference


def test_a_process_keeps_a_few_plans(monkeypatch):
    monkeypatch.setattr(plans, "_kept", {})
    monkeypatch.setattr(plans, "_problems", {})
    made = [Plan(toy_problem(seed=seed), TOY, {}) for seed in range(MOST_KEPT + 1)]
    assert len({plan.ticket().token for plan in made}) == len(made)
    assert made[0].ticket().plan() is None
    for plan in made:
        assert plan.ticket(whole=True).plan() is not None
    assert len(plans._kept) == len(plans._problems) == MOST_KEPT
    assert made[0].ticket().plan() is None
    assert made[-1].ticket().plan() is not None


def test_a_problem_is_packed_once_however_often_chains_meet(monkeypatch):
    monkeypatch.setattr(plans, "_kept", {})
    monkeypatch.setattr(plans, "_problems", {})
    plan = Plan(toy_problem(), TOY, {})
    later = replace(plan, knowledge={"end": np.array([3])})
    assert later.packed_problem is plan.packed_problem
    assert later.packed.token != plan.packed.token
    assert len(pickle.dumps(plan.ticket())) < 500 < len(plan.packed_problem.content)
    first = plan.ticket(whole=True).plan()
    half = replace(later.ticket(whole=True), problem=plan.packed_problem.sealed())
    assert half.plan().problem is first.problem
    assert half.plan().knowledge["end"][0] == 3


def test_the_rows_of_a_problem_cannot_be_changed(problem):
    for rows in (problem.rows, pickle.loads(pickle.dumps(problem)).rows):
        with pytest.raises(ValueError, match="read-only"):
            rows.packed[0, 0] = 1
    weighted = np.ones(3)
    data = read_data([[0, 1], [1, 0], [1, 1]], sample_weight=weighted)
    with pytest.raises(ValueError, match="read-only"):
        data.weights[0] = 2
    weighted[0] = 2  # the user's own array stays the user's
