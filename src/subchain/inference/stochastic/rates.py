"""How much a minibatch moves the statistics: less and less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import FINITE, NOT_NEGATIVE, stored
from subchain.errors import FileFormatError

Array = NDArray[np.float64]


class Falling:
    """ρ_n = (delay + n)^−forgetting, n = 1, 2, … (Robbins & Monro 1951)."""

    def __init__(self, delay: float, forgetting: float) -> None:
        self.delay = delay
        self.forgetting = forgetting

    def falling(self, update: int) -> float:
        """Return (delay + n)^−forgetting for the n-th update."""
        return (self.delay + update) ** -self.forgetting

    def rate(self, update: int, target: Callable[[], Array], present: Callable[[], Array]) -> float:
        """Return the rate of an update that would move the watched sums from `present` to `target`."""
        return self.falling(update)

    def memory(self) -> Memory:
        """What has to be kept in a checkpoint."""
        return {}

    def restore(self, memory: Memory, signal: Array) -> None:
        """The inverse of `memory`; `signal` has the size of the sums that are watched."""


class Adaptive(Falling):
    """As large as the noise allows: ρ = |E g|² / E |g|², g being the wanted change (Ranganath et al. 2013).

    Both expectations are averages over a window, which is as long as the rates so far say. Only the expected
    transitions of the hidden chain are watched. The rate never exceeds that of `Falling`'s first update.
    """

    def __init__(self, delay: float, forgetting: float) -> None:
        super().__init__(delay, forgetting)
        self.mean: Array | None = None
        self.square, self.window = 0.0, 10.0

    def rate(self, update: int, target: Callable[[], Array], present: Callable[[], Array]) -> float:
        wanted = (target() - present()).ravel()
        if self.mean is None:
            self.mean, self.square = wanted / self.window, float(wanted @ wanted) / self.window
        share = 1.0 / self.window
        self.mean = (1.0 - share) * self.mean + share * wanted
        self.square = (1.0 - share) * self.square + share * float(wanted @ wanted)
        rate = float(self.mean @ self.mean) / self.square if self.square > 0.0 else 0.0
        self.window = self.window * (1.0 - rate) + 1.0
        return min(rate, self.falling(1))

    def memory(self) -> Memory:
        if self.mean is None:
            return {}
        return {"rate.mean": self.mean, "rate.window": np.array([self.square, self.window])}

    def restore(self, memory: Memory, signal: Array) -> None:
        if "rate.mean" in memory:
            self.mean = np.array(stored(memory, "rate.mean", FINITE, (signal.size,)))
            self.square, self.window = stored(memory, "rate.window", NOT_NEGATIVE, (2,)).tolist()
            if self.window == 0.0:  # its inverse is a share
                raise FileFormatError(f"rate.window holds {self.window} at 1, but must be above 0")
