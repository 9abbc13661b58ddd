"""Ctrl-C between two steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Postponed:
    """While this is open, an interruption waits until `check` is called, then or when it is open again.

    It can be opened within itself. Signals reach the main thread only; elsewhere there is nothing to postpone.
    """

    def __init__(self) -> None:
        self.asked = False
        self._depth = 0

    def __enter__(self) -> Postponed:
        self._depth += 1
        if self._depth > 1:
            return self
        self._ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._remember)
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.asked:
            self.asked = False
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._ours and not self._depth:
            signal.signal(signal.SIGINT, signal.default_int_handler)
