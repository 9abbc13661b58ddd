"""Threads that help whoever asks. They join only while cores are free, unless a caller asks for more.

Work is shared by claiming: every thread takes the next item until none is left. The thread that asks works too, and a
helper that comes late finds nothing left to do; so a task may ask for help itself, and any number of fits may run at
once. Helpers are kept: starting a thread, or a queue between threads, takes as long as a small pass over data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


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
        self._idle: list[_Helper] = []
        self._this_thread = threading.local()
        self._busy = 0

    def share(self, work: Callable[[], None], n_jobs: int) -> None:
        """Run `work`, which ends when nothing is left to claim, in this thread and in up to `n_jobs` − 1 others.

        There are fewer others if the cores are busy with what other threads share, or if no more threads can be
        started. A caller may ask for more threads than there are cores, and gets them.
        """
        job = _Job(work)
        with self._at_work():
            try:
                for _ in range(n_jobs - 1):
                    helper = self._hire(n_jobs)
                    if helper is None:
                        break
                    helper.begin(job)
                work()
            finally:
                job.wait()
        for error in job.errors:
            raise error

    def _hire(self, n_jobs: int) -> _Helper | None:
        """Return a helper; None if the cores are busy, or no thread can be started."""
        with self._lock:
            if self._busy >= max(n_cores(), n_jobs):
                return None
            try:
                helper = self._idle.pop() if self._idle else _Helper(self)
            except RuntimeError:  # the system gives no more threads
                return None
            self._busy += 1
        return helper

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
    """Work that some helpers have been given."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.errors: list[BaseException] = []
        self._at_work = 0
        self._changed = threading.Condition()

    def begin(self) -> None:
        """One helper more."""
        with self._changed:
            self._at_work += 1

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
        """Wait for all helpers. An interruption is raised when they are done: they write to arrays of the caller."""
        interruption: BaseException | None = None
        while True:
            try:
                with self._changed:
                    self._changed.wait_for(lambda: self._at_work == 0)
                break
            except KeyboardInterrupt as error:
                interruption = error
        if interruption is not None:
            raise interruption


class _Helper(threading.Thread):
    """A thread that waits for jobs."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(name="subchain helper", daemon=True)
        self._crew = crew
        self._job: _Job | None = None
        self._called = threading.Lock()
        self._called.acquire()
        self.start()

    def begin(self, job: _Job) -> None:
        job.begin()
        self._job = job
        self._called.release()

    def run(self) -> None:
        while True:
            self._called.acquire()
            job, self._job = self._job, None
            assert job is not None
            job.run()
            self._crew.dismiss(self)  # before the job ends: whoever asks next finds this helper
            job.end()
            del job  # and what its work holds


#: The helpers of this process.
crew = Crew()
