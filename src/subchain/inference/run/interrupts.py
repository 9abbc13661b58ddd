"""Ctrl-C between two steps, never in the middle of one; a second Ctrl-C aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

#: Signals that interrupt a run wherever Python's own handler of Ctrl-C answers them.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class AbortedError(KeyboardInterrupt):
    """The second interruption while the first one is waiting: the run ends at once and without a result."""


class Postponed:
    """While this is open, an interruption waits until `check` is called, then or when it is open again.

    It can be opened within itself. Signals reach the main thread only; elsewhere there is nothing to postpone. For a
    program in which `signal.default_int_handler` also answers SIGTERM, that is an interruption too.

    Attributes
    ----------
    asked : whether an interruption is waiting
    acknowledge : function that tells the user that the interruption was noticed; called by a handler of signals
    """

    def __init__(self) -> None:
        self.asked = False
        self.acknowledge: Callable[[], None] = _say_nothing
        self._depth = 0
        self._taken: list[signal.Signals] = []

    def __enter__(self) -> Postponed:
        self._depth += 1
        if self._depth > 1 or threading.current_thread() is not threading.main_thread():
            return self
        self._taken = [number for number in SIGNALS if signal.getsignal(number) is signal.default_int_handler]
        for number in self._taken:
            signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self.asked = False
            raise AbortedError
        self.asked = True
        self.acknowledge()

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.asked:
            self.asked = False
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            for number in self._taken:
                signal.signal(number, signal.default_int_handler)
            self._taken = []


def _say_nothing() -> None:
    pass
