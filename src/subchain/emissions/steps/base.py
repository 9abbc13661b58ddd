"""Posteriors of families as compiled stochastic updates change them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Sums

Array = NDArray[np.float64]


class EmissionSteps:
    """A posterior that compiled updates change; its sums are a row of numbers.

    Parameters
    ----------
    learned : a named tuple with the verbs of `propagation.lanes.learning`; `sums` is the row
    sums : the sums to begin with, which are not changed
    """

    def __init__(self, learned: Any, sums: Sums) -> None:
        self.learned = learned
        self._sums = sums

    def share(self, n_tiles: int) -> None:
        """Prepare for updates of so many tiles, whose fresh sums enter the sums in as many parts."""

    def row_size(self, columns: int) -> int:
        """Return how many numbers hold the fresh sums of a tile with so many positions."""
        return len(self.learned.sums)

    def of_thread(self, number: int) -> Any:
        """Return the named tuple for one of several threads, with scratch of its own."""
        return self.learned

    def sums(self) -> Sums:
        """Return the present sums."""
        found, at = self._sums.scale(1.0), 0
        for array in found.summed_arrays():
            array[...] = self.learned.sums[at : at + array.size].reshape(array.shape)
            at += array.size
        return found


def flat(sums: Sums) -> Array:
    """Return the arrays of sums one after the other, as a row that may be changed."""
    return np.concatenate([array.ravel() for array in sums.summed_arrays()])


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written, as mapped files cannot: one kernel serves both."""
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view
