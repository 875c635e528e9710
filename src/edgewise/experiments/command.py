"""``edgewise reproduce``: plan, run, tables, figures, claims, page."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from edgewise._version import __version__
from edgewise.atomic import replacing
from edgewise.datasets.mnist import find_images
from edgewise.errors import FileError
from edgewise.experiments.data import check_images, image_source
from edgewise.experiments.figures import FIGURES, RUN, chosen_figures, figure_module
from edgewise.experiments.gallery import show_claims, write_claims, write_page
from edgewise.experiments.profiles import find_profile
from edgewise.experiments.runner import Task, finished, run_tasks, unique
from edgewise.experiments.study import Results, Study, Tables

TASKS = "tasks"
COLOURS = 256


def run(
    figure: str,
    directory: str | os.PathLike[str],
    *,
    profile: str = "quick",
    seed: int = 1,
    jobs: int = -1,
    data: str | os.PathLike[str] | None = None,
    plan_only: bool = False,
    draw_only: bool = False,
    page: str | os.PathLike[str] | None = None,
    executor: Any = None,
) -> Path:
    """Run experiments, or go on with them, and write tables, figures, claims and the page.

    Parameters
    ----------
    figure : str
        "fig2" to "fig11", "other" or "all".
    directory : path
        Where everything is written; finished tasks found there are not computed again.
    profile : {"quick", "full", "smoke"}
    seed : int
        Of everything; the same seed gives the same tables.
    jobs : int
        Processes; -1 for one per processor.
    data : path, optional
        Directory of the original MNIST files; ``EDGEWISE_DATA`` by default, where it has them.
    plan_only : bool
        Only say what there is to do.
    draw_only : bool
        Compute nothing: make tables, figures and page from the tasks that are finished.
    page : path, optional
        Write the page there too, with figures and tables in a folder of the same name.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to compute instead of in processes of its own.

    Returns
    -------
    path
        The page.
    """
    names = chosen_figures(figure)
    directory = Path(directory)
    if data is None and find_images(None, "train"):
        data = os.environ["EDGEWISE_DATA"]
    study = Study(find_profile(profile), int(seed), None if data is None else str(data))
    modules = {name: figure_module(name) for name in names}
    # The tasks of several figures are one list: longest first keeps all processors busy to the end.
    tasks = unique(task for module in modules.values() for task in module.tasks(study))
    jobs = (os.cpu_count() or 1) if jobs < 1 else jobs
    _announce(study, tasks, finished(tasks, directory / TASKS), jobs)
    if plan_only:
        return directory
    earlier = _check_directory(directory, study)
    if not draw_only and any(task.arguments.get("kind") == "mnist" for task in tasks):
        check_images(study.profile.images, study.data)
    results: dict[str, Any] = {}
    if draw_only:
        results |= finished(tasks, directory / TASKS)
    else:
        results |= _run(tasks, directory, jobs, executor)
    while new := _follow_ups(modules.values(), study, results, tasks):
        tasks += new
        results |= finished(new, directory / TASKS) if draw_only else _run(new, directory, jobs, executor)
    shown = tuple(name for name in FIGURES if name in names or name in earlier)
    state = _state(study, shown, results, directory)
    _write_json(directory / RUN, state)
    for name, module in modules.items():
        write_figure(name, module, study, results, directory, state)
    judgements = write_claims(directory)
    show_claims(judgements)
    made = write_page(directory, directory / "reproduction.md", directory)
    if page is not None:
        target = Path(page)
        folder = target.with_suffix("")
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(directory.glob("*")):
            if path.suffix in (".csv", ".json", ".png"):
                shutil.copyfile(path, folder / path.name)
        made = write_page(directory, target, folder)
    _say(f"The page is {made}.")
    return made


def _run(tasks: Sequence[Task], directory: Path, jobs: int, executor: Any) -> dict[str, Any]:
    started = time.monotonic()

    def progress(done: int, total: int, key: str, remaining: float) -> None:
        _say(
            f"[{time.monotonic() - started:6.0f} s] {done} of {total} tasks, about "
            f"{_duration(max(0.0, remaining / jobs))} left: {key}"
        )

    return run_tasks(tasks, directory / TASKS, jobs=jobs, executor=executor, progress=progress)


def _follow_ups(modules: Any, study: Study, results: Results, planned: Sequence[Task]) -> list[Task]:
    """Tasks that follow from the results and are not planned yet."""
    known = {task.key for task in planned}
    return unique(
        task
        for module in modules
        if hasattr(module, "follow_up")
        for task in module.follow_up(study, results)
        if task.key not in known
    )


def write_figure(
    name: str, module: ModuleType, study: Study, results: Results, directory: Path, state: dict[str, Any]
) -> None:
    """Write the tables of one figure, what they were made from, and the picture."""
    tables: Tables = module.tables(study, results)
    if not tables:
        return
    tasks = list(module.tasks(study))
    if hasattr(module, "follow_up"):
        tasks += module.follow_up(study, results)
    for label, table in tables.items():
        _write(
            directory / f"{label}.csv", table.to_csv(index=False, float_format="%.8g", lineterminator="\n")
        )
    record = {
        "figure": name,
        "title": module.TITLE,
        "profile": state["profile"],
        "seed": state["seed"],
        "settings": state["settings"],
        "versions": state["versions"],
        "images": state["images"],
        "tasks": {task.key: dict(task.arguments) for task in tasks if task.key in results},
        "missing": sorted(task.key for task in tasks if task.key not in results),
        "tables": {label: {"rows": len(table), "columns": list(table)} for label, table in tables.items()},
    }
    # The place of the data is no part of the result, and may be nobody's business.
    for arguments in record["tasks"].values():
        arguments.pop("place", None)
    _write_json(directory / f"{name}.json", record)
    if not record["missing"] or _enough(name, tables):
        save_picture(module.draw(tables), directory / f"{name}.png")


def save_picture(picture: Any, path: Path) -> None:
    """Write a figure as a small PNG: few colours suffice for curves."""
    import io

    from PIL import Image

    content = io.BytesIO()
    picture.savefig(content, format="png", dpi=90)
    with Image.open(content) as image:
        # An octree keeps the colours of thin lines, which a median cut would merge.
        small = image.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        with replacing(path) as file:
            small.save(file, format="png", optimize=True)


def _enough(name: str, tables: Tables) -> bool:
    """Whether an unfinished figure has every table that its picture needs."""
    needed = {
        "fig2": {"fig2", "fig2_autocorrelation"},
        "fig3": {"fig3", "fig3_inclusion"},
        "fig6": {"fig6", "fig6_truth"},
        "fig8": {"fig8", "fig8_sizes"},
        "fig11": {"fig11", "fig11_likeness"},
        "other": set(),
    }
    return needed.get(name, {name}) <= set(tables)


def _state(study: Study, figures: tuple[str, ...], results: Results, directory: Path) -> dict[str, Any]:
    """What the directory has: the figures of this run and of earlier ones."""
    from edgewise.run.versions import versions

    modules = [figure_module(name) for name in figures]
    tasks: list[Task] = []
    new = unique(task for module in modules for task in module.tasks(study))
    while new:
        tasks += new
        others = [task for task in new if task.key not in results]
        results = {**results, **finished(others, directory / TASKS)}
        new = _follow_ups(modules, study, results, tasks)
    done = [task for task in tasks if task.key in results]
    return {
        "figures": list(figures),
        "profile": study.profile.name,
        "seed": study.seed,
        "settings": study.profile.to_dict(),
        "versions": versions() | {"edgewise": _versions_used(done, results)},
        "images": image_source(study.profile.images, study.data),
        "tasks": len(tasks),
        "finished": len(done),
        "processor_seconds": round(sum(results[task.key].seconds for task in done), 1),
        "estimated_seconds": round(sum(task.cost for task in tasks), 1),
    }


def _versions_used(tasks: Sequence[Task], results: Results) -> str:
    """The versions of edgewise that computed the tasks; a task is kept when the package is renewed."""
    counts = Counter(results[task.key].version for task in tasks)
    if len(counts) < 2:
        return next(iter(counts), __version__)
    return " and ".join(f"{version} ({count} tasks)" for version, count in sorted(counts.items()))


def _check_directory(directory: Path, study: Study) -> tuple[str, ...]:
    """Tables of one directory belong to one profile, seed and source of images; the figures it has."""
    path = directory / RUN
    figures: tuple[str, ...] = ()
    if path.exists():
        state = json.loads(path.read_text())
        figures = tuple(state.get("figures", FIGURES))
        if (state["profile"], state["seed"]) != (study.profile.name, study.seed):
            raise FileError(
                f"{directory} has a run of the profile {state['profile']} with seed {state['seed']}. "
                "Use another directory, or that profile and seed to go on with it."
            )
        images = image_source(study.profile.images, study.data)
        if images != state["images"] and any(
            task.arguments.get("kind") == "mnist"
            for name in figures
            for task in figure_module(name).tasks(study)
        ):
            raise FileError(
                f"The images of {directory} are {state['images']}; now they would be {images}. Give their "
                "directory with --data or EDGEWISE_DATA, or use another directory for the results."
            )
    try:
        (directory / TASKS).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileError(f"{directory} is not a directory; give another one with -o.") from None
    return figures


def _announce(study: Study, tasks: Sequence[Task], done: Results, jobs: int) -> None:
    left = sum(task.cost for task in tasks if task.key not in done)
    _say(
        f"Profile {study.profile.name}, seed {study.seed}: {len(tasks)} tasks, {len(done)} finished; about "
        f"{_duration(left)} of processor time to go, {_duration(left / jobs)} with {jobs} "
        f"process{'es' * (jobs > 1)}."
    )
    groups: dict[str, list[float]] = {}
    for task in tasks:
        words = task.key.split("-")
        name = "-".join(words[:2]) if words[0] != "graph" else "graph"
        group = groups.setdefault(name, [0, 0.0])
        group[0] += 1
        group[1] += task.cost
    for name, (count, cost) in groups.items():
        _say(f"  {name:16s} {count:4.0f} tasks  {_duration(cost)}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write(path: Path, text: str) -> None:
    with replacing(path, "utf-8") as file:
        file.write(text)


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=1, sort_keys=True) + "\n")
