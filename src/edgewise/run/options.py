"""`RunOptions`: how to run the chains. Every default of a fit is written here and nowhere else."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from edgewise.errors import DataError, FileError
from edgewise.paths import as_path

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from edgewise.run.progress import Callback

TARGET_ESS: float = 400  # what a green light asks for
MINIMUM_DRAWS = 4  # split R-hat needs two draws in each half
MOST_DRAWS = 10**9
MOST_CHAINS = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class RunOptions:
    """How to run the chains; checked when it is made.

    Attributes
    ----------
    engine : str
        Name of the engine, ``"module:Class"`` for one of your own, or ``"auto"``.
    chains : int
        Number of independent chains.
    min_draws, max_draws : int
        Fewest and most kept draws per chain.
    thin : int or "auto"
        Keep every `thin`-th iteration; ``"auto"`` follows the engine's own measurement after warm-up.
    target_error : float
        Monte Carlo standard error that every inclusion probability may have when the run stops. R-hat must be
        below 1.01 as well, and the slowest uncertain edge have the 400 effective draws of a green light (or
        ``0.25 / target_error**2`` where that is less).
    target_ess : float, "auto" or None
        ``"auto"`` stops by `target_error`. A number takes its place: the bulk ESS of the slowest uncertain
        edge at which to stop (R-hat as above). None draws `max_draws`.
    max_time : float, optional
        Wall seconds after which to stop; compiling at the first use does not count.
    settings : mapping, optional
        Settings of the engine that are to differ from its defaults.
    start : str or sequence of str
        Where the chains start, one for all or one for each.
    seed : int or sequence of int, optional
        Seed of the run; chain ``k`` uses its ``k``-th child whatever the number of chains.
    n_jobs : int, optional
        Chains computed at the same time, as in joblib (-1: all cores); None takes all cores.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to compute instead of on threads of this process.
    progress : bool or "lines"
        Whether to show what happens.
    callback : callable, optional
        Called now and then with an :class:`edgewise.run.progress.View`.
    checkpoint : path, optional
        Directory in which the run is saved, and from which it continues.
    checkpoint_every : float
        Seconds between saves.
    """

    engine: str = "auto"
    chains: int = 4
    min_draws: int = 1000
    max_draws: int = 20_000
    thin: int | str = "auto"
    target_error: float = 0.02
    target_ess: float | str | None = "auto"
    max_time: float | None = None
    settings: Mapping[str, Any] | None = None
    start: str | Sequence[str] = "default"
    seed: int | Sequence[int] | None = None
    n_jobs: int | None = None
    executor: Executor | None = None
    progress: bool | str = True
    callback: Callback | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60

    def __post_init__(self) -> None:
        for name, least in (("min_draws", 1), ("max_draws", MINIMUM_DRAWS)):
            check_whole(name, getattr(self, name), least, most=MOST_DRAWS)
        if self.min_draws > self.max_draws:
            raise DataError(
                f"min_draws ({self.min_draws:,}) is larger than max_draws ({self.max_draws:,}); "
                "lower the one or raise the other."
            )
        if self.thin != "auto":
            check_whole("thin", self.thin, 1, "'auto' or ", MOST_DRAWS)
        self._check_limits()
        check_whole("chains", self.chains, 1, most=MOST_CHAINS)
        if not _as_float(self.checkpoint_every) >= 0:
            words = _short(self.checkpoint_every)
            raise DataError(f"checkpoint_every must be a number of seconds, not {words}.")
        self._check_kinds()
        self._check_starts()
        check_jobs(self.n_jobs)

    def _check_limits(self) -> None:
        also = {"max_time": "positive number or None", "target_ess": "positive number, 'auto' or None"}
        for name, words in also.items():
            value = getattr(self, name)
            open_ = value is None or (name == "target_ess" and isinstance(value, str) and value == "auto")
            if not (open_ or _as_float(value) > 0):
                raise DataError(f"{name} must be a {words}, not {_short(value)}.")
        error = self.target_error
        if isinstance(error, bool) or not 0 < _as_float(error) <= 0.5:
            raise DataError(
                f"target_error must be the largest error of a probability, above 0 and at most 0.5, such as "
                f"{RunOptions.target_error:g}; not {_short(error)}."
            )

    def _check_kinds(self) -> None:
        kinds = (
            ("engine", isinstance(self.engine, str), "the name of an engine, such as 'auto'"),
            ("settings", _is_settings(self.settings), "a mapping from names of settings to values, or None"),
            (
                "executor",
                self.executor is None or callable(getattr(self.executor, "submit", None)),
                "a concurrent.futures.Executor, a client of Dask, or None",
            ),
            ("callback", self.callback is None or callable(self.callback), "a function of a view, or None"),
        )
        for name, fits, words in kinds:
            if not fits:
                raise DataError(f"{name} must be {words}; not {getattr(self, name)!r}.")
        progress = self.progress
        plain = progress is None or isinstance(progress, str | int) or getattr(progress, "ndim", 1) == 0
        if not (plain and progress in (None, False, True, "lines")):
            raise DataError(f"progress must be True, False or 'lines'; not {progress!r}.")
        if self.checkpoint is not None:
            try:
                as_path(self.checkpoint, "a directory")
            except (DataError, FileError) as error:
                raise DataError(f"checkpoint must be the path of a directory, or None. {error}") from None

    def _check_starts(self) -> None:
        from edgewise.engines.protocol import STARTS

        if len(self.starts) != self.chains or not set(self.starts) <= set(STARTS):
            raise DataError(
                f"start must be one of {', '.join(map(repr, STARTS))}, or one of these for each of the "
                f"{self.chains} chains; not {self.start!r}."
            )

    @property
    def starts(self) -> list[str]:
        """Where each chain starts."""
        if isinstance(self.start, str) or not isinstance(self.start, Iterable):
            return [str(self.start)] * self.chains
        return [str(name) for name in self.start]


def _is_settings(settings: object) -> bool:
    if settings is None:
        return True
    return isinstance(settings, Mapping) and all(isinstance(name, str) for name in settings)


def check_whole(name: str, value: object, least: int, also: str = "", most: int | None = None) -> None:
    """Refuse anything but a whole number of at least `least`, and of at most `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise DataError(f"{name} must be {also}a whole number of at least {least}, not {_short(value)}.")
    if most is not None and int(value) > most:
        raise DataError(f"{name} must be {also}a whole number of at most {most:,}, not {_short(value)}.")


def _as_float(value: object) -> float:
    """A number as a float; NaN for what is none, or too large to be one."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.nan


def check_jobs(n_jobs: object) -> None:
    """Refuse anything but a number of workers as joblib counts them, or None."""
    whole = isinstance(n_jobs, Integral) and n_jobs != 0 and abs(int(n_jobs)) < 2**31
    if n_jobs is not None and not whole:
        words = _short(n_jobs)
        raise DataError(f"n_jobs must be a number of workers, -1 for all cores, or None; not {words}.")


def _short(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # whole numbers of more than 4,300 digits
        return "one of thousands of digits"
    return text if len(text) <= 60 else f"{text[:30]}...{text[-20:]}"
