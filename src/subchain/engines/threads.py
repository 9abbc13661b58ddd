"""Threads for structures other than chains: the helpers of the engine for processors, without the engine."""

from __future__ import annotations

from collections.abc import Callable

from subchain.engines.cpu.crew import crew, n_cores
from subchain.engines.cpu.workspace import Workers

#: Run work that threads claim in this thread and in up to `n_jobs` − 1 others; see `Crew.share`.
share = crew.share

__all__ = ["each", "n_cores", "n_threads", "share"]


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that a setting means: all cores for None and -1, all but one for -2."""
    return Workers(n_jobs).n_jobs


def each(task: Callable[[int], None], n: int, n_jobs: int) -> None:
    """Call `task` with 0, 1, … n − 1, in this thread and in up to `n_jobs` − 1 others."""
    left = iter(range(n))

    def work() -> None:
        for number in left:
            task(number)

    share(work, min(n_jobs, max(n, 1)))
