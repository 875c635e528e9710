"""Tasks with stable keys, one small file per finished task, any executor: whatever stops, goes on.

A task names a function of this package by its path and gives it plain arguments; the function returns plain
values and arrays. The file of a finished task appears in one step and holds the arguments with the result,
so that a task whose arguments have changed is computed again and all others never are.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from edgewise._version import __version__
from edgewise.atomic import replacing
from edgewise.errors import FileError
from edgewise.run.cluster import as_executor

MARK = "edgewise-task-1"


@dataclass(frozen=True)
class Task:
    """One thing to compute.

    Attributes
    ----------
    key : str
        Name of the task and, with ``.npz``, of its file.
    function : str
        ``module:function`` inside ``edgewise.experiments``.
    arguments : mapping
        Plain values, as in JSON.
    cost : float
        Estimated seconds on one idle core.
    """

    key: str
    function: str
    arguments: Mapping[str, Any]
    cost: float = field(default=1.0, compare=False)

    def digest(self) -> str:
        """Fingerprint of what is computed: that files were given is part of it, where they lie is not."""
        arguments = dict(self.arguments)
        if "data" in arguments.get("place", {}):
            arguments["place"] = arguments["place"] | {"data": arguments["place"]["data"] is not None}
        text = json.dumps([self.function, arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Result:
    """What a task found: plain `values`, `arrays`, the `seconds` of processor time and our `version`."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seconds: float
    version: str = "unknown"


Progress = Callable[[int, int, str, float], None]


def compute(task: Task) -> Result:
    """Run one task here, with one thread for linear algebra so that the numbers do not depend on it."""
    import warnings

    from threadpoolctl import threadpool_limits

    from edgewise.errors import EdgewiseWarning

    module, _, name = task.function.partition(":")
    function = getattr(import_module(f"edgewise.experiments.{module}"), name)
    started = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        # Short fits and separated columns are the subject here; the tables tell their quality.
        warnings.simplefilter("ignore", EdgewiseWarning)
        values, arrays = function(**task.arguments)
    return Result(values, arrays, time.process_time() - started, __version__)


def write_result(path: Path, task: Task, result: Result) -> None:
    """Write the file of a finished task; it appears whole or not at all."""
    head = {
        "mark": MARK,
        "key": task.key,
        "function": task.function,
        "arguments": dict(task.arguments),
        "digest": task.digest(),
        "values": result.values,
        "seconds": result.seconds,
        "version": result.version,
    }
    content = io.BytesIO()
    np.savez_compressed(content, head=np.array(json.dumps(head)), **result.arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.getvalue())


def read_result(path: Path, task: Task) -> Result | None:
    """The result of a finished task; None if there is none for these very arguments."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            if (damaged := file.zip.testzip()) is not None:
                raise OSError(f"{damaged} has a wrong checksum")
            head = json.loads(str(file["head"]))
            arrays = {name: file[name] for name in file.files if name != "head"}
    except Exception as error:
        raise FileError(f"{path} is damaged ({error}). Delete it; the task will be computed again.") from None
    if head.get("mark") != MARK or head.get("digest") != task.digest():
        return None
    return Result(head["values"], arrays, float(head["seconds"]), head.get("version", "unknown"))


def finished(tasks: Iterable[Task], directory: Path) -> dict[str, Result]:
    """Results of all tasks that are already there, by key."""
    found = {}
    for task in tasks:
        result = read_result(directory / f"{task.key}.npz", task)
        if result is not None:
            found[task.key] = result
    return found


def run_tasks(
    tasks: Iterable[Task],
    directory: Path,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[str, Result]:
    """Compute what is not there yet and return the results of all tasks by key.

    Parameters
    ----------
    tasks : iterable of Task
        Tasks of equal key are one task.
    directory : path
        Where the files of finished tasks are.
    jobs : int
        Processes; with 1 everything happens in this one.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to compute instead.
    progress : callable, optional
        Called with the number of finished tasks, the number of all, the key that has just finished and the
        estimated seconds (of one core) that are left.
    """
    wanted = unique(tasks)
    results = finished(wanted, directory)
    # Long ones first, so that the last task does not keep the other cores waiting.
    left = sorted((task for task in wanted if task.key not in results), key=lambda task: -task.cost)
    remaining = sum(task.cost for task in left)

    def keep(task: Task, result: Result) -> None:
        nonlocal remaining
        write_result(directory / f"{task.key}.npz", task, result)
        # What was written is what is used: a resumed run sees the same bytes.
        results[task.key] = read_result(directory / f"{task.key}.npz", task)  # type: ignore[assignment]
        remaining -= task.cost
        if progress is not None:
            progress(len(results), len(wanted), task.key, remaining)

    if executor is None and (jobs == 1 or len(left) <= 1):
        for task in left:
            keep(task, compute(task))
        return results
    with ExitStack() as stack:
        pool = as_executor(executor)
        if pool is not executor:
            stack.callback(pool.shutdown, wait=False)
        if pool is None:
            import multiprocessing

            # A forked process would inherit the threads of the linear algebra in any state.
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(jobs, mp_context=context))
        futures: dict[Future[Result], Task] = {pool.submit(compute, task): task for task in left}
        try:
            for future in as_completed(futures):
                keep(futures[future], future.result())
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return results


def unique(tasks: Iterable[Task]) -> list[Task]:
    """The tasks without repetitions; two different tasks must not share a key."""
    found: dict[str, Task] = {}
    for task in tasks:
        other = found.setdefault(task.key, task)
        if other != task:
            raise ValueError(f"two different tasks are called {task.key!r}")
    return list(found.values())
