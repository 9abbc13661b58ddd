"""GrowBuf (Foti et al. 2014): buffers that grow until a subchain's end marginals no longer depend on the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import number, whole_number
from subchain.core.parts import Memory
from subchain.core.ranges import WHOLE_NUMBERS, stored
from subchain.engines.base import BufferGrowth
from subchain.engines.subchains import Minibatch, Subchains
from subchain.engines.surrogate import Surrogate
from subchain.errors import FileFormatError, InputError
from subchain.structures.chain.boundaries import Boundary, OpenBoundary, OpenBuffer
from subchain.transitions.incremental import IncrementalChain

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]


class GrowBuffer(Boundary):
    """Subchains see as much on either side as their own ends care for.

    Parameters
    ----------
    tolerance : float
        Growth ends when nothing beyond the buffers could change the marginals of the first and of the last position by
        more than this, whatever it is.
    step : int
        Positions by which a buffer grows on either side.
    limit : int
        Largest buffer.
    every : int
        Grow at every so many-th update only, and use the largest buffer found there until the next.
    """

    def __init__(self, tolerance: float = 1e-4, step: int = 1, limit: int = 1000, every: int = 1) -> None:
        self.tolerance = tolerance
        self.step = step
        self.limit = limit
        self.every = every

    def check(self) -> None:
        for name, least in (("step", 1), ("limit", 1), ("every", 1)):
            whole_number(self, name, least)
        number(self, "tolerance", 0.0)
        if not 0.0 < self.tolerance < 1.0:
            raise InputError(f"GrowBuffer: tolerance must lie between 0 and 1, not {self.tolerance!r}.")

    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        return OpenGrowBuffer(self)


class OpenGrowBuffer(OpenBuffer):
    """Growing buffers at work."""

    def __init__(self, settings: GrowBuffer) -> None:
        super().__init__(0)
        self.settings = settings
        self.updates = 0

    def enter(
        self, chains: Chains, surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain
    ) -> tuple[Array, Array]:
        grows = self.updates % self.settings.every == 0
        self.updates += 1
        if not grows:
            return super().enter(chains, surrogate, batch, chain)
        growth = BufferGrowth(float(self.settings.tolerance), int(self.settings.step), int(self.settings.limit))
        found = chains.engine.grow(surrogate, chains, batch, chain.stationary(), growth)
        self.size = int(found.reach.max(initial=0))
        self.growth = float(found.reach.mean())
        return found.start, found.stop

    def memory(self) -> Memory:
        return {"growth": np.array([self.updates, self.size])}

    def restore(self, memory: Memory) -> None:
        self.updates, self.size = stored(memory, "growth", WHOLE_NUMBERS, (2,)).tolist()
        if self.size > self.settings.limit:
            raise FileFormatError(f"growth holds a buffer of {self.size} positions, but limit={self.settings.limit}")
