"""Showing a run: one live table in a terminal or a notebook, plain lines elsewhere, or nothing.

The conductor of the chains builds a :class:`View` whenever the display says that it is due, so that a fast
chain is not slowed down by being watched.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edgewise.errors import printable
from edgewise.run.stopping import Goal, Look


@dataclass(frozen=True)
class ChainView:
    """How far one chain is."""

    iteration: int
    warm_up: int
    draws: int
    edges: int
    acceptance: float

    @property
    def warmed_up(self) -> float:
        """Share of the warm-up that is done."""
        return 1.0 if self.iteration >= self.warm_up else self.iteration / self.warm_up


@dataclass(frozen=True)
class View:
    """A run at one moment: what the display shows and a callback receives.

    Attributes
    ----------
    phase : str
        ``"warm-up"``, ``"sampling"`` or ``"done"``.
    chains : sequence of ChainView
        How far each chain is.
    look : Look or None
        ESS and R-hat at the last common number of draws.
    elapsed, remaining : float
        Seconds since the start, and to the expected end (NaN while that is anybody's guess).
    goal : Goal or None
        What the draws are to reach; None where all `max_draws` are made.
    expected_draws : float
        Draws of each chain at the expected end; in warm-up, the fewest that there may be.

    Examples
    --------
    >>> import numpy as np
    >>> from edgewise import SpikeSlabMRF
    >>> seen = []
    >>> rows = np.random.default_rng(1).integers(0, 2, (50, 3))
    >>> model = SpikeSlabMRF(random_state=1, progress=False, callback=seen.append).fit(rows)
    >>> seen[-1].phase, len(seen[-1].chains)
    ('done', 4)
    """

    phase: str
    engine: str
    chains: Sequence[ChainView]
    look: Look | None
    elapsed: float
    remaining: float
    goal: Goal | None = None
    expected_draws: float = float("nan")

    @property
    def target_ess(self) -> float | None:
        """Effective draws that the slowest quantity is to have, where that is asked."""
        return None if self.goal is None else self.goal.ess

    @property
    def draws(self) -> int:
        """Draws that all chains have."""
        return min(chain.draws for chain in self.chains)


Callback = Callable[[View], Any]


class Display:
    """Shows nothing itself; passes views on to the callback. The others below add what they show.

    `watched` tells whether anybody will see a view, and `seconds` adds up what that costs the conductor.
    """

    interval = 0.5
    watched = True

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self.seconds = 0.0
        self._next = time.monotonic() + min(1.0, self.interval)

    def due(self) -> bool:
        """Whether it is time for another view."""
        return time.monotonic() >= self._next

    def update(self, view: View) -> None:
        """Show a view."""
        self.show(view)
        if self.callback is not None:
            self.callback(view)
        self._next = time.monotonic() + self.interval

    def show(self, view: View) -> None:
        """Draw a view."""

    def message(self, text: str) -> None:
        """Say something that stays on the screen."""

    def close(self) -> None:
        """End the display."""


class Silent(Display):
    """Nothing on the screen; views are built for a callback only."""

    def __init__(self, callback: Callback | None = None) -> None:
        super().__init__(callback)
        self.watched = callback is not None

    def due(self) -> bool:
        """Whether a callback waits for a view."""
        return self.watched and super().due()


class Lines(Display):
    """One plain line now and then, ever more seldom, on standard error."""

    interval = 2.0

    def show(self, view: View) -> None:
        """Write one line."""
        self.message(describe(view))
        self.interval = min(60.0, self.interval * 1.5)

    def message(self, text: str) -> None:
        """Write a line."""
        print(f"edgewise: {printable(text)}", file=sys.stderr, flush=True)


class Terminal(Display):
    """One table that is redrawn in place."""

    def __init__(self, callback: Callback | None = None) -> None:
        super().__init__(callback)
        from rich.live import Live

        from edgewise.run.console import Console

        self.console = Console(stderr=True)
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.live.start()

    def show(self, view: View) -> None:
        """Redraw the table."""
        from rich.text import Text

        # Plain text: laying out a rich table takes ten times as long.
        lines = ["".join(f"{cell:>14s}" for cell in row) for row in (HEADINGS, *rows(view))]
        text = "\n".join([describe(view), *lines])
        self.live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)

    def message(self, text: str) -> None:
        """Print above the table."""
        self.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """Remove the table."""
        self.live.stop()


class Notebook(Display):
    """One table in the cell's output that is replaced in place."""

    def __init__(self, callback: Callback | None = None) -> None:
        super().__init__(callback)
        self.handle: Any = None

    def show(self, view: View) -> None:
        """Replace the table."""
        head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows(view))
        self._put(f"<p>{describe(view)}</p><table><tr>{head}</tr>{body}</table>")

    def message(self, text: str) -> None:
        """Print into the cell."""
        print(printable(text))

    def close(self) -> None:
        """Take the table away; what was said stays."""
        if self.handle is not None:
            self._put("")

    def _put(self, html: str) -> None:
        import IPython.display

        shown: Any = IPython.display
        if self.handle is None:
            self.handle = shown.display(shown.HTML(html), display_id=True)
        else:
            self.handle.update(shown.HTML(html))


HEADINGS = ("chain", "iterations", "draws", "edges", "acceptance")


def rows(view: View) -> list[tuple[str, ...]]:
    """Cells of the table of chains."""
    return [
        (
            str(number),
            f"{chain.iteration:,}",
            f"{chain.draws:,}" if chain.iteration >= chain.warm_up else f"warm-up {chain.warmed_up:.0%}",
            f"{chain.edges:,}",
            f"{chain.acceptance:.0%}" if chain.acceptance == chain.acceptance else "",
        )
        for number, chain in enumerate(view.chains, 1)
    ]


def describe(view: View) -> str:
    """One line about the whole run."""
    chains = f"{len(view.chains)} chain{'s' * (len(view.chains) != 1)}"
    parts = [f"{view.engine}, {chains}, {duration(view.elapsed)}"]
    if view.phase == "warm-up":
        parts.append(f"warm-up {min(chain.warmed_up for chain in view.chains):.0%}")
    else:
        parts.append(f"{view.draws:,} draws each")
        if view.look is not None:
            parts.append(_precision(view.look, view.goal))
    if view.remaining == view.remaining and view.phase != "done":
        parts.append(f"about {duration(view.remaining)} left")
    return "; ".join(parts)


def _precision(seen: Look, goal: Goal | None) -> str:
    """How precise the draws are beside what is asked: the largest error, or the effective draws."""
    words = f"R-hat {seen.r_hat:.3f}"
    if goal is None or goal.error == float("inf"):
        return f"ESS {seen.ess:.0f}{'' if goal is None else f' of {goal.ess:g}'}, {words}"
    slow = f", ESS {seen.ess:.0f} of {goal.ess:g}" if seen.error <= goal.error and seen.ess < goal.ess else ""
    return f"error {seen.error:.3f} of {goal.error:g}{slow}, {words}"


def seconds(limit: float) -> str:
    """A limit as it was given, but for what was spent before the run.

    >>> seconds(0.05), seconds(599.98)
    ('0.05 s', '600 s')
    """
    return f"{limit:.3g} s" if limit < 100 else f"{limit:.0f} s"


def duration(span: float) -> str:
    """Seconds in words: ``8 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(0, round(span))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def open_display(progress: bool | str, callback: Callback | None = None) -> Display:
    """The display that fits where we are.

    True chooses between the notebook, the terminal and plain lines; ``"lines"`` asks for plain lines; False
    is silent.
    """
    if not progress:
        return Silent(callback)
    if progress == "lines":
        return Lines(callback)
    if _in_notebook():
        return Notebook(callback)
    if sys.stderr is not None and sys.stderr.isatty():
        return Terminal(callback)
    return Lines(callback)


def _in_notebook() -> bool:
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")
