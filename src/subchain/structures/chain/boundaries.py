"""What subchains are told about the rest of their chain.

A boundary makes two tables for a minibatch: weights of the first positions' states before anything in the subchain is
seen, and backward messages of the last positions. Where a subchain begins its sequence the first is the initial
distribution, where it ends it the second is one: there nothing is approximate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.core.components import Component
from subchain.core.parts import Memory
from subchain.engines.subchains import Minibatch, MinibatchRun, Subchains
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.transitions.incremental import IncrementalChain

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Boundary(Component, ABC):
    """What the user writes; `open` makes what works during a run."""

    def check(self) -> None:
        """Raise an `InputError` if a setting is out of range."""

    def held_bytes(self, n_subchains: int, n_states: int) -> int:
        """Return the memory that the boundary takes during a run."""
        return 0

    @abstractmethod
    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        """Get ready for a run over these subchains; `fingerprint` identifies the data."""


class OpenBoundary:
    """A boundary at work. This one knows nothing of the rest of a chain but where it is on the average."""

    #: How far the last minibatch looked beyond its subchains, on the average of both sides; None if it did not.
    growth: float | None = None

    def enter(
        self, chains: Chains, surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain
    ) -> tuple[Array, Array]:
        """`start` and `stop` of a minibatch, both (K, M)."""
        start = np.empty((surrogate.n_states, batch.size))
        start[:] = outside(surrogate, batch, chain)[:, None]
        start[:, batch.is_first] = surrogate.initial[:, None]
        return start, np.ones(start.shape)

    def leave(self, batch: Minibatch, run: MinibatchRun) -> None:
        """Learn what the minibatch found."""

    def fold(self, into: int, gone: int) -> None:
        """One state has been taken into another."""

    def begin(self) -> None:
        """A run begins afresh."""

    def memory(self) -> Memory:
        """What has to be kept in a checkpoint."""
        return {}

    def restore(self, memory: Memory) -> None:
        """The inverse of `memory`."""

    def checkpointed(self) -> None:
        """A checkpoint has been written."""

    def release(self) -> None:
        """Let go of files."""


def outside(surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain) -> Array:
    """Where a chain is on the average, (K,): its stationary distribution, which whole sequences do not need."""
    return surrogate.initial if batch.is_first.all() else chain.stationary()


class Stationary(Boundary):
    """Subchains begin as the chain does on the average, and nothing follows them (Foti et al. 2014, no buffers)."""

    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        return OpenBoundary()


# ---- buffers ---------------------------------------------------------------------------------------------------------


class Buffer(Boundary):
    """Subchains also see `size` observations on either side, which count for nothing themselves.

    Parameters
    ----------
    size : int
        Number of observations on each side; fewer where the sequence ends.
    """

    def __init__(self, size: int = 20) -> None:
        self.size = size

    def check(self) -> None:
        whole_number(self, "size", 0)

    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        longest = int(np.diff(subchains.offsets).max())
        if self.size >= longest:
            raise InputError(
                f"Buffer: size={self.size} cannot fit on either side of a subchain, the longest sequence has {longest} "
                "positions; choose a smaller one, or batch inference."
            )
        return OpenBuffer(int(self.size))


class OpenBuffer(OpenBoundary):
    """A fixed buffer at work: messages run towards the subchain on both sides, and nothing else does."""

    def __init__(self, size: int) -> None:
        self.size = size

    def enter(
        self, chains: Chains, surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain
    ) -> tuple[Array, Array]:
        offsets, away = chains.data.offsets, outside(surrogate, batch, chain)
        before = np.minimum(batch.starts - offsets[batch.sequences], self.size)
        after = np.minimum(offsets[batch.sequences + 1] - batch.starts - batch.lengths, self.size)
        found = chains.engine.approach(surrogate, chains, batch, away, before, after)
        self.growth = 0.5 * float(before.mean() + after.mean())
        return found.start, found.stop
