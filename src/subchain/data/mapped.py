"""Memory-mapped data files: prefetching, release of memory, and a check that the file has not changed."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

#: Minimum number of bytes per prefetch request; for smaller ones the system call costs more than it saves.
MIN_PREFETCH = 1 << 14


class MappedFile:
    """The file behind a memory-mapped array.

    Examples
    --------
    >>> import numpy as np
    >>> MappedFile.of(np.arange(3)) is None
    True
    """

    def __init__(self, path: str, values: NDArray[Any], is_read_only: bool) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self.size = os.stat(path).st_size
        self._values = values
        self._row_bytes = values.strides[0]
        self._advise = _find_advice()

    @classmethod
    def of(cls, values: NDArray[Any]) -> MappedFile | None:
        """Return the file that an array, or the base of a view, is mapped from; None if there is none."""
        base: Any = values
        while isinstance(base, np.ndarray):
            path = getattr(base, "filename", None)
            if isinstance(base, np.memmap) and path is not None and os.path.exists(path):
                return cls(os.fspath(path), values, base.mode == "r")
            base = base.base
        return None

    def check(self) -> None:
        """Raise an `InputError` if the file has disappeared or its size has changed."""
        try:
            size = os.stat(self.path).st_size
        except OSError:
            raise InputError(
                f"{self.path} disappeared while it was being read; restore it and resume from the checkpoint."
            ) from None
        if size != self.size:
            raise InputError(
                f"{self.path} changed from {self.size} to {size} bytes while it was being read; restore it and resume "
                "from the checkpoint, or start the fit again."
            )

    def expect(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Prefetch the positions starts[i] … starts[i] + lengths[i] − 1 in the background."""
        if self._advise is None or self._row_bytes * int(lengths[0]) < MIN_PREFETCH:
            return
        origin = self._values.__array_interface__["data"][0]
        first = origin + starts * self._row_bytes
        aligned = first // mmap.PAGESIZE * mmap.PAGESIZE
        for address, size in zip(aligned.tolist(), (first - aligned + lengths * self._row_bytes).tolist(), strict=True):
            self._advise(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.MADV_WILLNEED)

    def forget(self) -> None:
        """Release the resident pages of the map, which the page cache may keep; a no-op if the map is writable."""
        if self._advise is None or not self.is_read_only or not self._values.size or self._row_bytes <= 0:
            return
        first = self._values.__array_interface__["data"][0]
        aligned = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (first + self._row_bytes * len(self._values) - aligned) // mmap.PAGESIZE * mmap.PAGESIZE
        if size > 0:
            self._advise(ctypes.c_void_p(aligned), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def _find_advice() -> Any:
    """Return the C library's `madvise`, or None where there is none."""
    if not hasattr(mmap, "MADV_WILLNEED"):
        return None
    try:
        return ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None
