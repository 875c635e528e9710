"""Slices of chains on a Dask cluster: an executor around its client.

Everything that travels is data: a slice carries the state of its chain, so that Dask may run it anywhere,
and again where a worker was lost. What the chains share is scattered over the cluster when the first worker
asks for it (``plans``). The future of a slice ends with its answer, or with :class:`ClusterError` once the
scheduler is gone for good; everything in between is tried again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edgewise.errors import ClusterError, DataError
from edgewise.run.plans import Parcel, Ticket

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 15
WORKER_SECONDS = 60
MOST_TRIES = 10  # a slice that kills so many workers will kill the next one too
LARGE = "distributed.admin.large-graph-warning-threshold"


def connect(address: str) -> Client:
    """A client of the scheduler at an address such as ``tcp://10.0.0.5:8786``, or of a scheduler file."""
    try:
        import distributed
    except ImportError:
        raise DataError(
            "Dask is not installed here, and a scheduler needs it: pip install 'edgewise[dask]'."
        ) from None
    where = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
    client: Callable[..., Client] = distributed.Client
    try:
        return client(**where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"There is no Dask scheduler at {address!r} ({_words(error)}); give the address that dask "
            "scheduler prints, such as tcp://10.0.0.5:8786, or the path of its scheduler file."
        ) from None


def as_executor(executor: Any) -> Any:
    """The executor itself, or one around it where it is a client of Dask."""
    if is_client(executor):
        return ClusterExecutor(executor)
    return executor


def is_client(executor: object) -> bool:
    """Whether this is a client of Dask; asked without importing it."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(executor).__mro__}
    return "distributed.Client" in kinds


class ClusterExecutor(Executor):
    """Computes on the workers of a Dask client; what is lost with a worker is computed again.

    Parameters
    ----------
    client : distributed.Client
        It stays the user's: it is not closed here.
    """

    def __init__(self, client: Client) -> None:
        self.client: Any = client
        self._scattered: dict[str, Any] = {}
        # Waits for the cluster without holding up the client's own thread, where answers arrive.
        self._clerk = ThreadPoolExecutor(1, "edgewise-cluster")
        self._software = _software()
        self._address = str(getattr(client.scheduler, "address", "?"))
        self._wait_for_workers()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Compute on any worker."""
        answer: Future[Any] = Future()
        self._send(answer, 1, None, function, arguments, named)
        return answer

    def everywhere(self, function: Callable[..., Any], /, *arguments: Any) -> list[Future[Any]]:
        """Compute on every worker that is there now."""
        answers = []
        for worker in self.client.scheduler_info(n_workers=-1)["workers"]:
            answer: Future[Any] = Future()
            self._send(answer, 1, worker, function, arguments, {})
            answers.append(answer)
        return answers

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Forget what was scattered; the client stays open."""
        self._scattered.clear()
        self._clerk.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _send(
        self,
        answer: Future[Any],
        attempt: int,
        worker: str | None,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        import dask

        try:
            sent = [self._on_the_cluster(argument) for argument in arguments]
            where = {"workers": [worker], "allow_other_workers": True} if worker and attempt == 1 else {}
            with dask.config.set({LARGE: "1 GiB"}):
                inner = self.client.get_executor(pure=False, **where).submit(
                    _work, self._software, function, named, *[part for parts in sent for part in parts]
                )
        except Exception as error:
            self._again(error, answer, attempt, function, arguments, named)
            return

        def arrived(inner: Future[Any]) -> None:
            try:
                result = inner.result()
            except BaseException as error:
                if _is_lost(error):
                    self._clerk.submit(self._again, error, answer, attempt, function, arguments, named)
                else:
                    answer.set_exception(_explained(error))
            else:
                answer.set_result(result)

        inner.add_done_callback(arrived)

    def _again(
        self,
        error: BaseException,
        answer: Future[Any],
        attempt: int,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        """Compute once more what was lost, when the cluster is there; say so when it will not be."""
        while self.client.status == "connecting":
            time.sleep(0.05)
        if self.client.status != "running":
            answer.set_exception(
                ClusterError(f"The Dask scheduler at {self._address} is gone ({_words(error)}).")
            )
        elif attempt >= MOST_TRIES:
            answer.set_exception(
                ClusterError(
                    f"A part of the fit was lost {attempt} times in a row on the cluster ({_words(error)}); "
                    "look into the logs of the workers, the usual cause is too little memory."
                )
            )
        else:
            self._scattered.clear()  # it may have been lost with the worker
            self._send(answer, attempt + 1, None, function, arguments, named)

    def _on_the_cluster(self, argument: Any) -> tuple[Any, ...]:
        """An argument as one or several of a task: the contents of parcels are scattered once."""
        if not isinstance(argument, Ticket) or argument.rest.content is None:
            return (argument,)
        sealed = replace(argument, problem=argument.problem.sealed(), rest=argument.rest.sealed())
        return (_Open(), sealed, self._content(argument.problem), self._content(argument.rest))

    def _content(self, parcel: Parcel) -> Any:
        if parcel.token not in self._scattered:
            self._scattered[parcel.token] = self.client.scatter(
                parcel.content, broadcast=True, timeout=WORKER_SECONDS
            )
        return self._scattered[parcel.token]

    def _wait_for_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except Exception as error:
            raise ClusterError(
                f"The Dask scheduler at {self._address} has no workers ({_words(error)}); start some, for "
                "instance with: dask worker ADDRESS."
            ) from None


class _Open:
    """Says that a sealed ticket and the contents of its two parcels follow."""


def _work(software: dict[str, str], function: Callable[..., Any], named: dict[str, Any], *parts: Any) -> Any:
    """Run a task on a worker that has the software of the one who asks."""
    here = _software()
    if here != software:
        different = [
            f"{name} {here[name]} instead of {software[name]}"
            for name in here
            if here[name] != software[name]
        ]
        raise ClusterError(
            f"A worker of the cluster has {', '.join(different)}; the same seed would not give the same "
            "draws. Install the same versions everywhere."
        )
    arguments, rest = [], iter(parts)
    for part in rest:
        if isinstance(part, _Open):
            ticket, problem, others = next(rest), next(rest), next(rest)
            part = Ticket(replace(ticket.problem, content=problem), replace(ticket.rest, content=others))
        arguments.append(part)
    return function(*arguments, **named)


def _software() -> dict[str, str]:
    """What the draws depend on."""
    from edgewise.run.versions import versions

    return {name: text for name, text in versions().items() if name != "python"}


def _is_lost(error: BaseException) -> bool:
    """Whether an answer was lost on its way, with a worker, with its data or with the connection."""
    names = {kind.__name__ for kind in type(error).__mro__}
    lost = {
        "KilledWorker",
        "FutureCancelledError",
        "FuturesCancelledError",
        "CommClosedError",
        "CancelledError",
    }
    return isinstance(error, CancelledError) or bool(names & lost)


def _explained(error: BaseException) -> BaseException:
    if isinstance(error, ImportError) and "edgewise" in str(error):
        return ClusterError(f"A worker of the cluster cannot load edgewise ({error}); install it everywhere.")
    return error


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
