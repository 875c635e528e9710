"""Ctrl-C as a wish: the first one asks a run to stop in good order, the second acts at once."""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractContextManager
from typing import Any


class Interrupt(AbstractContextManager["Interrupt"]):
    """While entered, Ctrl-C sets `pressed` instead of raising.

    Only Python's own handler is replaced, and only in the main thread, where signals arrive: a program
    with a handler of its own keeps it, and a background job, for which the shell lets Ctrl-C be ignored,
    goes on.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number: int, frame: Any) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
