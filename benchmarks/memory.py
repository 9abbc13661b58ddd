"""How much memory this process has, and had: read from the kernel, which keeps the account anyway.

The high-water mark costs nothing while the measured code runs. It counts file pages too; where data are mapped from a
file, only anonymous memory says what the code itself needs, and that has to be sampled.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _kilobytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise OSError(f"{_STATUS} has no field {field}; memory can be measured on Linux only.")


def resident() -> int:
    """Bytes in memory now."""
    return 1024 * _kilobytes("VmRSS")


def anonymous() -> int:
    """Bytes in memory now that belong to no file."""
    return 1024 * _kilobytes("RssAnon")


def peak_resident() -> int:
    """The most bytes that were in memory since the mark was last reset."""
    return 1024 * _kilobytes("VmHWM")


def settle() -> int:
    """Give back what is free, bring the high-water mark down to what is in memory, and return that."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5")
    return resident()


class AnonymousPeak:
    """Samples anonymous memory inside a `with` block; `beyond` is its largest excess over what there was before."""

    def __init__(self, interval: float = 0.01) -> None:
        self.interval = interval
        self.beyond = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._before = anonymous()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._done.wait(self.interval):
            self._sample()

    def _sample(self) -> None:
        self.beyond = max(self.beyond, anonymous() - self._before)
