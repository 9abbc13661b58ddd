"""Tables that workers use again, and the threads that they run on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.crew import crew, n_cores
from subchain.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: The floating type of all tables but those of compiled passes in single precision.
FLOAT64: np.dtype[Any] = np.dtype(np.float64)

#: Bytes of tables that are kept for the next worker, and the cache line at which tables begin.
KEPT_BYTES, LINE_BYTES = 32 << 20, 64


def empty_table(rows: int, columns: int, dtype: np.dtype[Any] = FLOAT64) -> NDArray[Any]:
    """Return a (rows, columns) table that begins at a cache line; it holds whatever was there before."""
    buffer = np.empty(rows * columns * dtype.itemsize + LINE_BYTES, dtype=np.uint8)
    start = -buffer.ctypes.data % LINE_BYTES
    return buffer[start : start + rows * columns * dtype.itemsize].view(dtype).reshape(rows, columns)


class Workspace:
    """Tables that a worker uses again for every tile and leaves to the next worker, since fresh memory is slow."""

    _spare: ClassVar[list[dict[tuple[str, np.dtype[Any]], NDArray[Any]]]] = []

    def __init__(self) -> None:
        self._buffers = self._spare.pop() if self._spare else {}

    def __del__(self) -> None:
        if sum(buffer.nbytes for buffer in self._buffers.values()) <= KEPT_BYTES:
            self._spare.append(self._buffers)

    def table(self, name: str, rows: int, columns: int, dtype: np.dtype[Any] = FLOAT64) -> NDArray[Any]:
        """Return a contiguous (rows, columns) table of a floating type, with undefined contents."""
        key = (name, dtype)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < rows * columns:
            buffer = self._buffers[key] = empty_table(1, rows * columns, dtype)[0]
        return buffer[: rows * columns].reshape(rows, columns)


class Workers:
    """The threads of an engine."""

    def __init__(self, n_jobs: int | None) -> None:
        is_whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
        if n_jobs is not None and not (is_whole and n_jobs != 0):
            raise InputError(f"n_jobs must be a whole number of cores, −1 or None for all of them, not {n_jobs!r}.")
        cores = n_cores()
        self.n_jobs = cores if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)

    def map(self, task: Callable[[Item], Result], items: list[Item]) -> list[Result]:
        """Do a task for every item on the threads; results in the order of the items."""
        results: list[Any] = [None] * len(items)
        numbers = iter(range(len(items)))

        def work() -> None:
            for number in numbers:
                try:
                    results[number] = task(items[number])
                except BaseException:
                    for _ in numbers:  # the others stop too
                        pass
                    raise

        self.share(work, len(items))
        return results

    def share(self, work: Callable[[], None], n_items: int) -> None:
        """Run `work`, which claims items until none is left, in as many threads as there are and items can use."""
        n_jobs = min(self.n_jobs, n_items)
        if n_jobs > 1:
            crew.share(work, n_jobs)
        else:
            work()
