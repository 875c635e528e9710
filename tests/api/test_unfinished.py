"""Runs that end inside warm-up: what there is to show, marked, and going on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from command import edgewise
from edgewise import load_posterior
from edgewise.errors import EdgewiseWarning
from edgewise.estimators import SpikeSlabMRF
from edgewise.posterior.diagnostics import diagnose
from edgewise.report.build import build_report
from edgewise.run.chains import run
from edgewise.run.options import RunOptions
from toy_engine import TOY, fingerprint, toy_problem, toy_rows

SLOW = {"delay": 0.002, "warm_up": 300}
FAST = {"delay": 0.0, "warm_up": 300}


def short_run(previous=None, settings=FAST, **options):
    made = {
        "chains": 2, "min_draws": 60, "max_draws": 60, "target_ess": None, "seed": 7, "progress": False,
    }  # fmt: skip
    return run(
        toy_problem(), RunOptions(engine=TOY, settings=settings, **{**made, **options}), previous=previous
    )


@pytest.fixture(scope="module")
def whole():
    return fingerprint(short_run().draws)


@pytest.fixture
def soon_over(monkeypatch):
    """Any `max_time` is over as soon as every chain has made a few more iterations, on a busy machine too."""
    begun: dict[int, int] = {}

    def elapsed(self):
        for chain in self.chains:
            begun.setdefault(id(chain), chain.iteration)
        return 10.0 * all(chain.iteration > begun[id(chain)] for chain in self.chains) if self.chains else 0.0

    monkeypatch.setattr("edgewise.run.conductor.Conductor.elapsed", elapsed)


def check_unfinished(result, reason):
    info = result.info
    assert info["warm_up_unfinished"]
    assert info["stop_reason"] == reason
    assert 0 < info["warm_up_done"] < info["warm_up"] == 300
    assert f"in warm-up, at iteration {info['warm_up_done']:,} of 300" in info["stop_message"]
    assert 4 <= len(result.draws[0]) == len(result.draws[1]) <= 100
    assert all(len(part) == 0 for part in result.all_draws)
    assert all((sums["tries"] >= 0).all() for sums in result.edge_sums)


@pytest.mark.usefixtures("soon_over")
@pytest.mark.filterwarnings("ignore:Warm-up will take")
def test_max_time_inside_warm_up_shows_where_the_chains_are_and_goes_on(whole):
    cut = short_run(settings=SLOW, max_time=5)
    check_unfinished(cut, "max_time")
    rest = short_run(previous=cut, settings=FAST)
    assert rest.info["resumed_from_iteration"] > 0
    assert not rest.info["warm_up_unfinished"]
    assert fingerprint(rest.draws) == whole


@pytest.mark.usefixtures("soon_over")
@pytest.mark.filterwarnings("ignore:Warm-up will take")
@pytest.mark.parametrize("processes", [False, True])
def test_the_checkpoint_of_an_unfinished_warm_up_leads_to_the_same_draws(tmp_path, whole, processes):
    common = {"settings": {"delay": 0.002, "warm_up": 300}, "checkpoint": tmp_path / "c"}
    if processes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            cut = short_run(max_time=5, executor=pool, **common)
    else:
        cut = short_run(max_time=5, **common)
    check_unfinished(cut, "max_time")
    again = short_run(max_time=5, **common)
    assert again.info["resumed_from_iteration"] == cut.info["warm_up_done"]
    check_unfinished(again, "max_time")
    rest = short_run(**common)
    assert rest.info["resumed_from_iteration"] == again.info["warm_up_done"]
    assert fingerprint(rest.draws) == whole


@pytest.mark.usefixtures("soon_over")
@pytest.mark.filterwarnings("ignore:Warm-up will take")
@pytest.mark.parametrize("engine", ["exact", "particle", "langevin"])
def test_every_engine_can_be_looked_at_in_warm_up(engine, tmp_path):
    long = {"warm_up": 500 if engine != "langevin" else 10**7}
    options = {"engine": engine, "chains": 2, "seed": 1, "settings": long, "progress": False}
    cut = run(toy_problem(), RunOptions(max_time=5, checkpoint=tmp_path / "c", **options))
    assert cut.info["warm_up_unfinished"]
    assert 4 <= len(cut.draws[0]) <= 100
    assert all(np.isfinite(part.biases).all() and np.isfinite(part.values).all() for part in cut.draws)
    if engine != "langevin":
        rest = {"min_draws": 20, "max_draws": 20, "target_ess": None, **options}
        resumed = run(toy_problem(), RunOptions(checkpoint=tmp_path / "c", **rest))
        assert resumed.info["resumed_from_iteration"] > 0
        assert fingerprint(resumed.draws) == fingerprint(run(toy_problem(), RunOptions(**rest)).draws)


def test_time_that_ends_right_after_warm_up_shows_a_few_draws():
    cut = short_run(settings={"delay": 0.005, "warm_up": 20, "thin": 1000}, thin=1000, max_time=0.4)
    assert not cut.info["warm_up_unfinished"]
    assert len(cut.draws[0]) >= 4
    assert "as soon as warm-up was" in cut.info["stop_message"]


def test_it_is_said_as_soon_as_it_can_be_foreseen():
    started = time.monotonic()
    seen: list[float] = []

    def note(message, category, filename, *rest, **more):
        seen.append(time.monotonic() - started)
        assert filename == __file__
        assert "Warm-up will take about" in str(message)
        assert "more than max_time=1 s allows" in str(message)

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always", EdgewiseWarning)
        warnings.showwarning = note
        short_run(settings={"delay": 0.01, "warm_up": 1000}, max_time=1.0)
    assert len(seen) == 1
    assert seen[0] < 0.8


@pytest.fixture
def ctrl_c():
    """Python's own handler, also where the tests are a background job, for which Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_warm_up_gives_what_there_is(whole):
    pressed: list[bool] = []

    def press(view):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    cut = short_run(callback=press, settings={"delay": 0.01, "warm_up": 300})
    check_unfinished(cut, "interrupted")
    assert cut.info["interrupted"]
    assert fingerprint(short_run(previous=cut).draws) == whole


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_the_chains_are_set_up_raises(monkeypatch):
    def pressing(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        return 0.0

    monkeypatch.setattr("edgewise.run.conductor.prepare", pressing)
    with pytest.raises(KeyboardInterrupt, match="nothing is drawn"):
        short_run()


def test_the_light_the_report_and_the_estimator_say_it_first(tmp_path):
    model = SpikeSlabMRF(
        TOY, chains=2, settings=SLOW, max_time=0.2, random_state=7, progress=False, max_draws=60, min_draws=60
    )
    with pytest.warns(EdgewiseWarning) as caught:
        model.fit(toy_rows())
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert "in warm-up, at iteration" in str(caught[-1].message)
    assert "extend(draws=...)" in str(caught[-1].message)
    assert model.stop_reason_ == "max_time"
    assert "unfinished warm-up" in repr(model.posterior_)
    model.posterior_.save(tmp_path / "p.nc")
    posterior = load_posterior(tmp_path / "p.nc")
    found = diagnose(posterior)
    assert found.light == "red"
    assert found.more_draws_help
    assert found.messages[0].startswith("Warm-up was not finished (")
    assert str(found).startswith("red: warm-up was not finished")
    page = build_report(posterior)
    assert page.index("warm-up was not finished") < page.index("<h1>")
    # Going on counts the draws of the chains, not what was shown.
    model.settings = FAST
    model.target_ess = None
    model.extend(draws=60)
    assert model.posterior_.n_draws == 60
    assert not model.posterior_.info["warm_up_unfinished"]
    reference = SpikeSlabMRF(
        TOY, chains=2, settings=FAST, random_state=7, progress=False, max_draws=60, min_draws=60,
        target_ess=None,
    ).fit(toy_rows())  # fmt: skip
    assert fingerprint(model.posterior_.draws) == fingerprint(reference.posterior_.draws)


def test_the_command_writes_a_red_result_and_resumes_to_the_same_draws(votes, tmp_path):
    common = ["fit", votes, "--missing", "drop", "--engine", TOY, "--chains", "2", "--seed", "3"]
    common += ["--set", "warm_up=300", "--set", "delay=0.002", "--draws", "40", "--max-draws", "40"]
    common += ["--target-ess", "0"]
    cut = edgewise(*common, "-o", tmp_path / "cut", "--max-time", "0.2s")
    assert "Quality of the computation: red, warm-up was not finished" in cut.stdout
    assert "To go on where it stopped: edgewise fit" in cut.stderr
    assert "Warm-up will take about" in cut.stderr
    assert "more than --max-time allows" in cut.stderr
    assert "red, warm-up was not finished" in edgewise("summary", tmp_path / "cut").stdout
    assert "Warm-up was not finished" in (tmp_path / "cut" / "report.html").read_text("utf-8")
    edgewise(*common, "-o", tmp_path / "cut", "--resume")
    edgewise(*common, "-o", tmp_path / "whole")
    resumed, whole = (load_posterior(tmp_path / name / "posterior.nc") for name in ("cut", "whole"))
    assert resumed.n_draws == 40
    assert fingerprint(resumed.draws) == fingerprint(whole.draws)
