"""Prefetching from memory-mapped files: the next minibatch is read while the current one is processed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.data.mapped import MIN_PREFETCH, MappedFile

Index = NDArray[np.int64]

#: Number of bytes read from a file after which its pages are released.
MAPPED_BYTES = 1 << 26


class Prefetch:
    """Prefetching and release of pages of a memory-mapped array; a no-op for arrays in memory.

    Examples
    --------
    >>> import numpy as np
    >>> ahead = Prefetch(None, 8)
    >>> ahead.read(np.array([0]), np.array([5]), np.array([5]), np.array([5]))
    """

    def __init__(self, file: MappedFile | None, row_bytes: int) -> None:
        self.file = file
        self._row_bytes = row_bytes
        self._bytes_read = MAPPED_BYTES  # release pages of earlier reads at the first call

    def is_worth(self, length: int) -> bool:
        """Return whether subchains of this length are long enough to be prefetched."""
        return self._row_bytes * length >= MIN_PREFETCH

    def read(self, starts: Index, lengths: Index, next_starts: Index, next_lengths: Index) -> None:
        """Prefetch the subchains of the next minibatch, (M,), and release pages now and then.

        Parameters
        ----------
        starts, lengths : (M,) flat positions and lengths of the current subchains
        next_starts, next_lengths : (M,) those of the next minibatch
        """
        if self.file is None:
            return
        self.file.expect(next_starts, next_lengths)
        self._bytes_read += int(lengths.sum()) * self._row_bytes
        if self._bytes_read > MAPPED_BYTES:
            self.file.forget()
            self._bytes_read = 0
