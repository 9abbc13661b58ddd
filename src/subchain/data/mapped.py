"""Memory-mapped files: prefetching, release of memory, and a check that the file has not changed.

What is read from a file that is cut while a part is being read is zero (`subchain.numerics.bus_errors`). Whoever
computes from mapped files therefore checks them once more at the end, before results are kept: `intact` does so, and
puts the error about the file in the place of errors that zeros have caused.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError
from subchain.numerics.bus_errors import renew, watch

#: Minimum number of bytes per prefetch request; for smaller ones the system call costs more than it saves.
MIN_PREFETCH = 1 << 14


class MappedFile:
    """The file behind a memory-mapped array; as long as this object lives, losing it does not end the process.

    Parameters
    ----------
    path : of the file
    values, map_ : the array, and the map that it is a view of
    mode : of the map; with "r+" and "w+" the file is written through it, and may have another date
    name : what messages call it, if not by its path

    Examples
    --------
    >>> import numpy as np
    >>> MappedFile.of(np.arange(3)) is None
    True
    """

    def __init__(self, path: str, values: NDArray[Any], map_: mmap.mmap, mode: str, name: str | None = None) -> None:
        self.path = path
        self.name = name or path
        self.is_read_only, self._is_written = mode == "r", mode in ("r+", "w+")
        self._values = values
        self._map = map_
        self._row_bytes = values.strides[0]
        self._inode = os.stat(path).st_ino
        self._size, self._modified = self._now()
        if self._size < len(map_):
            raise InputError(f"{self.name} has been cut to {self._size} bytes since it was mapped; open it again.")
        self._watched = watch(map_)
        if self._watched is not None and self._watched.is_broken:
            raise InputError(
                f"{self.name} was cut after it had been mapped; what it lost reads as zero. Open it again."
            )

    @classmethod
    def of(cls, values: NDArray[Any], name: str | None = None) -> MappedFile | None:
        """Return the file that an array, or the base of a view, is mapped from; None if there is none."""
        base: Any = values
        path, mode = None, ""
        while isinstance(base, np.ndarray):
            if path is None and isinstance(base, np.memmap):
                path, mode = base.filename, base.mode
            base = base.base
        if path is None or not isinstance(base, mmap.mmap) or not os.path.exists(path):
            return None
        return cls(os.fspath(path), values, base, mode, name)

    def check(self) -> None:
        """Raise an `InputError` if the file has another size than before or, unless the map writes to it, another date.

        This is called before each part that is read, and after the last one. A file that was deleted or replaced can
        still be read.
        """
        size, modified = self._now()
        if self._watched is not None and self._watched.is_broken and size == self._size:
            what = "could not be read, or written, to its end"  # its disk is full or has failed, or it is long again
        elif size != self._size:
            what = f"changed from {self._size} to {size} bytes"
        elif not self._is_written and modified not in (self._modified, None):
            what = "was modified"
        else:
            return
        raise InputError(
            f"{self.name} {what} while it was in use; restore it and resume from the checkpoint, or start again."
        )

    def _now(self) -> tuple[int, int | None]:
        """Return size and time of modification of the mapped file; None for the latter if its path leads elsewhere."""
        try:
            size = self._map.size()
        except OSError as error:
            raise InputError(f"{self.name} can no longer be read: {error.strerror}.") from None
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


@contextmanager
def intact(*files: MappedFile | None) -> Iterator[None]:
    """Raise an `InputError` at the end of the block, or in the place of another error, if one of the files has changed.

    Examples
    --------
    >>> with intact(None):
    ...     total = 1 + 1
    """
    known = [file for file in files if file is not None]
    if known:
        renew()
    try:
        yield
    except Exception:
        _check(known)
        raise
    _check(known)


def _check(files: list[MappedFile]) -> None:
    for file in files:
        file.check()


def files_of(arrays: Iterable[NDArray[Any]]) -> list[MappedFile]:
    """Return the files that arrays are mapped from, each map once.

    Examples
    --------
    >>> import numpy as np
    >>> files_of([np.arange(3), np.arange(2)])
    []
    """
    mapped = {id(_origin(array)): array for array in arrays if is_memory_mapped(array)}
    return [file for file in map(MappedFile.of, mapped.values()) if file is not None]


def _origin(array: Any) -> object:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def is_memory_mapped(values: object) -> bool:
    """Return whether an array, or the base of a view, is memory-mapped."""
    while isinstance(values, np.ndarray):
        if isinstance(values, np.memmap):
            return True
        values = values.base
    return False
