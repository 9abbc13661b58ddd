"""Threads that help whoever asks, in all no more than the machine has cores.

Work is shared by claiming: every thread takes the next item until none is left. The thread that asks works too, so that
it never waits for a helper that has not begun: a task may ask for help itself, and any number of fits may run at once.
Helpers are kept, since starting a thread takes as long as a small pass over data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

#: More than any machine has cores: the number at work is limited by `Crew`.
MOST = 4096


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """The helpers of this process."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)  # a forked process has none of the threads

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(MOST, thread_name_prefix="subchain")
        self._counted = threading.local()
        self._busy = 0

    def share(self, work: Callable[[], None], n_jobs: int) -> None:
        """Run `work` in this thread and in up to `n_jobs` − 1 others; it returns when nothing is left to claim.

        There are fewer others if the cores are busy with what other threads share, but for a caller who asks for more
        threads than there are cores.
        """
        joins = not getattr(self._counted, "is_busy", False)
        helpers = self._hire(n_jobs, joins)
        running: list[Future[None]] = []
        try:
            self._counted.is_busy = True
            running = [self._threads.submit(self._help, work) for _ in range(helpers)]
            work()
        finally:
            begun = [future for future in running if not future.cancel()]
            wait(begun)
            self._counted.is_busy = not joins
            with self._lock:
                self._busy -= helpers + joins
        for future in begun:
            future.result()

    def _hire(self, n_jobs: int, joins: bool) -> int:
        with self._lock:
            self._busy += joins
            helpers = min(n_jobs - 1, max(max(n_cores(), n_jobs) - self._busy, 0))
            self._busy += helpers
        return helpers

    def _help(self, work: Callable[[], None]) -> None:
        self._counted.is_busy = True
        work()


#: The helpers of this process.
crew = Crew()
