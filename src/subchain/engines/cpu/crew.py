"""Threads that help whoever asks. They join only while cores are free, unless a caller asks for more.

Work is shared by claiming: every thread takes the next item until none is left. The thread that asks works too, and a
helper that comes late finds nothing left to do; so a task may ask for help itself, and any number of fits may run at
once. Helpers are kept: starting a thread, or a queue between threads, takes as long as a small pass over data. Waking a
thread takes long too, so helpers wake each other: the caller one, that one half of the others, and so on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

#: Signals that may interrupt a program, if Python answers them.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew:
    """The helpers of this process."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begin without helpers, as a forked process does, which has none of the threads."""
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._this_thread = threading.local()
        self._busy = 0

    def share(self, work: Callable[[], None], n_jobs: int) -> None:
        """Run `work`, which ends when nothing is left to claim, in this thread and in up to `n_jobs` − 1 others.

        There are fewer others if the cores are busy with what other threads share, or if no more threads can be
        started. A caller may ask for more threads than there are cores, and gets them.
        """
        job = _Job(work)
        with _Shield() as shield, self._at_work():
            try:
                helpers = self._hire(n_jobs)
                if helpers:
                    helpers[0].begin(job, helpers[1:])
                shield.lowered_for(work)
            finally:
                job.wait()
        for error in job.errors:
            raise error

    def _hire(self, n_jobs: int) -> list[_Helper]:
        """Return up to `n_jobs` − 1 helpers: as many as there are free cores, and threads can be started."""
        helpers: list[_Helper] = []
        with self._lock:
            for _ in range(min(n_jobs - 1, max(n_cores(), n_jobs) - self._busy)):
                try:
                    helpers.append(self._idle.pop() if self._idle else _Helper(self))
                except RuntimeError:  # the system gives no more threads
                    break
            self._busy += len(helpers)
        return helpers

    def dismiss(self, helper: _Helper) -> None:
        """Take a helper back who has done its part."""
        with self._lock:
            self._busy -= 1
            self._idle.append(helper)

    def _at_work(self) -> _AtWork:
        return _AtWork(self, self._this_thread)

    def count(self, change: int) -> None:
        """Count threads that begin, or end, to work."""
        with self._lock:
            self._busy += change


class _AtWork:
    """Context in which a thread counts as busy, once, however often it enters; helpers are counted when hired."""

    def __init__(self, crew: Crew, thread: threading.local) -> None:
        self._crew, self._thread = crew, thread

    def __enter__(self) -> None:
        self._joins = not getattr(self._thread, "is_busy", isinstance(threading.current_thread(), _Helper))
        if self._joins:
            self._thread.is_busy = True
            self._crew.count(1)

    def __exit__(self, *error: object) -> None:
        if self._joins:
            self._thread.is_busy = False
            self._crew.count(-1)


class _Job:
    """Work that helpers may join until the caller has nothing left to do."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.errors: list[BaseException] = []
        self._is_open = True
        self._at_work = 0
        self._changed = threading.Condition()

    def join(self) -> bool:
        """One helper more; false if it comes too late."""
        with self._changed:
            self._at_work += self._is_open
            return self._is_open

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # the caller raises it
            self.errors.append(error)

    def end(self) -> None:
        """One helper is done."""
        with self._changed:
            self._at_work -= 1
            if self._at_work == 0:
                self._changed.notify()

    def wait(self) -> None:
        """Wait for those who have joined: they write to arrays of the caller."""
        with self._changed:
            self._is_open = False
            self._changed.wait_for(lambda: self._at_work == 0)


class _Shield:
    """Context in which an interruption waits for its end, so that no helper is lost between two instructions.

    Python answers signals in the main thread alone. While the shield is lowered they are answered at once. A process
    that another thread forks in the meantime has no shield: what it waits for happens in the parent.
    """

    #: Shields of the main thread, the innermost last.
    raised: ClassVar[list[_Shield]] = []

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._waiting: list[int] = []
        self._is_lowered = False

    def __enter__(self) -> _Shield:
        if threading.current_thread() is threading.main_thread():
            try:
                self.raised.append(self)
                for number in SIGNALS:
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        signal.signal(number, self._answer)
            except BaseException:
                self._remove()
                raise
        return self

    def lowered_for(self, work: Callable[[], None]) -> None:
        """Run `work`, which may be interrupted, but only once."""
        try:
            self._is_lowered = True
            work()
        finally:
            self._is_lowered = False

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if not self._is_lowered:
            self._waiting.append(number)
            return
        self._is_lowered = False
        self._handlers[number](number, frame)
        self._is_lowered = True  # the handler has raised nothing

    @classmethod
    def forget(cls) -> None:
        """Remove all shields in a forked process."""
        while cls.raised:
            cls.raised[-1]._remove()

    def _remove(self) -> None:
        if not self._handlers:
            if self in self.raised:
                self.raised.remove(self)
            return
        number, handler = self._handlers.popitem()
        try:
            signal.signal(number, handler)
        finally:  # also if that signal is answered now
            self._remove()

    def __exit__(self, *error: object) -> None:
        handlers = dict(self._handlers)
        self._remove()
        self._answer_late(handlers)

    def _answer_late(self, handlers: dict[int, Callable[[int, FrameType | None], Any]]) -> None:
        if not self._waiting:
            return
        number = self._waiting.pop(0)
        try:
            handlers[number](number, None)
        finally:  # also if that handler raises
            self._answer_late(handlers)


class _Helper(threading.Thread):
    """A thread that waits for jobs."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(name="subchain helper", daemon=True)
        self._crew = crew
        self._job: _Job | None = None
        self._others: list[_Helper] = []
        self._called = threading.Lock()
        self._called.acquire()
        self.start()

    def begin(self, job: _Job, others: list[_Helper]) -> None:
        """Wake this helper for a job; it wakes the others."""
        self._job, self._others = job, others
        self._called.release()

    def _wake_others(self, job: _Job) -> None:
        """Wake the first of the others, who wakes half of them, then the first of the rest, and so on."""
        while self._others:
            middle = (len(self._others) + 1) // 2
            first, *rest = self._others[:middle]
            self._others = self._others[middle:]
            first.begin(job, rest)

    def run(self) -> None:
        while True:
            self._called.acquire()
            job, self._job = self._job, None
            assert job is not None
            self._wake_others(job)
            has_joined = job.join()
            if has_joined:
                job.run()
            self._crew.dismiss(self)  # before the job ends: whoever asks next finds this helper
            if has_joined:
                job.end()
            del job  # and what its work holds


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Shield.forget)

#: The helpers of this process.
crew = Crew()
