"""Reading ahead in files: what the next minibatch needs is requested while the present one is worked on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.mapped import MappedFile

Index = NDArray[np.int64]

#: Bytes of a file that are read before its memory is handed back to the system.
MAPPED_BYTES = 1 << 26


class Prefetch:
    """Keeps the system informed about stretches of a memory-mapped array; does nothing for arrays in memory.

    Examples
    --------
    >>> import numpy as np
    >>> ahead = Prefetch(np.arange(10))
    >>> ahead.read(np.array([0]), np.array([5]), np.array([5]), np.array([5]))
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self.file = MappedFile.of(values)
        self._row_bytes = values.strides[0] if values.ndim else 0
        self._bytes_read = MAPPED_BYTES  # whatever was read before

    def check(self) -> None:
        """Raise an `InputError` if the file has changed since it was opened."""
        if self.file is not None:
            self.file.check()

    def read(self, starts: Index, lengths: Index, next_starts: Index, next_lengths: Index) -> None:
        """Announce that some stretches are read now and others will be read next, all (M,)."""
        if self.file is None:
            return
        self.file.expect(next_starts, next_lengths)
        self._bytes_read += int(lengths.sum()) * self._row_bytes
        if self._bytes_read > MAPPED_BYTES:
            self.file.forget()
            self._bytes_read = 0
