"""Memory-mapped data files: prefetching, release of memory, and a check that the file has not changed."""

from __future__ import annotations

import ctypes
import functools
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

    def __init__(self, path: str, values: NDArray[Any], map_: mmap.mmap, is_read_only: bool) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self._values = values
        self._map = map_
        self._row_bytes = values.strides[0]
        self._inode = os.stat(path).st_ino
        self._size, self._modified = self._now()
        if self._size < len(map_):
            raise InputError(f"{path} has been cut to {self._size} bytes since it was mapped; open it again.")

    @classmethod
    def of(cls, values: NDArray[Any]) -> MappedFile | None:
        """Return the file that an array, or the base of a view, is mapped from; None if there is none."""
        base: Any = values
        path, is_read_only = None, False
        while isinstance(base, np.ndarray):
            if path is None and isinstance(base, np.memmap):
                path, is_read_only = base.filename, base.mode == "r"
            base = base.base
        if path is None or not isinstance(base, mmap.mmap) or not os.path.exists(path):
            return None
        return cls(os.fspath(path), values, base, is_read_only)

    def check(self) -> None:
        """Raise an `InputError` if the file has another size than before or, mapped for reading, was written to.

        Reading what was cut off a mapped file kills the process, so this is called before each part that is read. It
        cannot help if a file is cut while a part is being read. A file that was deleted or replaced can still be read.
        """
        size, modified = self._now()
        if size != self._size:
            what = f"changed from {self._size} to {size} bytes"
        elif self.is_read_only and modified not in (self._modified, None):
            what = "was modified"
        else:
            return
        raise InputError(
            f"{self.path} {what} while it was in use; restore it and resume from the checkpoint, or start again."
        )

    def _now(self) -> tuple[int, int | None]:
        """Return size and time of modification of the mapped file; None for the latter if its path leads elsewhere."""
        try:
            size = self._map.size()
        except OSError as error:
            raise InputError(f"{self.path} can no longer be read: {error.strerror}.") from None
        try:
            found = os.stat(self.path)
        except OSError:
            return size, None
        return size, found.st_mtime_ns if found.st_ino == self._inode else None

    def expect(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Prefetch the positions starts[i] … starts[i] + lengths[i] − 1 in the background."""
        advise = _find_advice()
        if advise is None or self._row_bytes * int(lengths[0]) < MIN_PREFETCH:
            return
        origin = self._values.__array_interface__["data"][0]
        first = origin + starts * self._row_bytes
        aligned = first // mmap.PAGESIZE * mmap.PAGESIZE
        for address, size in zip(aligned.tolist(), (first - aligned + lengths * self._row_bytes).tolist(), strict=True):
            advise(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.MADV_WILLNEED)

    def forget(self) -> None:
        """Release the resident pages of the map, which the page cache may keep; a no-op if the map is writable."""
        advise = _find_advice()
        if advise is None or not self.is_read_only or not self._values.size or self._row_bytes <= 0:
            return
        first = self._values.__array_interface__["data"][0]
        aligned = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (first + self._row_bytes * len(self._values) - aligned) // mmap.PAGESIZE * mmap.PAGESIZE
        if size > 0:
            advise(ctypes.c_void_p(aligned), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


@functools.cache
def _find_advice() -> Any:
    """Return the C library's `madvise`, or None where there is none."""
    if not hasattr(mmap, "MADV_WILLNEED"):
        return None
    try:
        return ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return None


def is_memory_mapped(values: object) -> bool:
    """Return whether an array, or the base of a view, is memory-mapped."""
    while isinstance(values, np.ndarray):
        if isinstance(values, np.memmap):
            return True
        values = values.base
    return False
