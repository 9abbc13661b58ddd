"""Where the passes of a ledger stand: what every ledger keeps, and writes to checkpoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import SINCE, stored, stored_cursor
from subchain.structures.base import NO_PASS


class Passes:
    """Base of ledgers; the attributes are those of `structures.base.Ledger`."""

    size: int
    cursor: int = 0
    iteration: int = 0
    measures: bool = True
    since: NDArray[np.float64]
    last_pass: NDArray[np.float64] = NO_PASS

    def __init__(self, size: int) -> None:
        self.size, self.since = size, np.zeros(2)

    def pass_memory(self) -> Memory:
        """Return what a checkpoint keeps of the passes."""
        cursor = np.array([self.cursor, self.iteration])
        return {"cursor": cursor, "since": self.since.copy(), "last_pass": self.last_pass}

    def restore_passes(self, memory: Memory) -> None:
        """Undo `pass_memory`."""
        self.cursor, self.iteration = stored_cursor(memory, self.size)
        self.since = np.array(stored(memory, "since", SINCE, (2,)))
        self.last_pass = stored(memory, "last_pass", SINCE, (3,))
