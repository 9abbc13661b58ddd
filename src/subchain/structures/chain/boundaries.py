"""What subchains are told about the rest of their chain.

A boundary makes two tables for a minibatch: weights of the first positions' states before anything in the subchain is
seen, and backward messages of the last positions. Where a subchain begins its sequence the first is the initial
distribution, where it ends it the second is one: there nothing is approximate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.core.components import Component
from subchain.core.parts import Memory
from subchain.engines.cpu.messages import Messages, Workspace
from subchain.engines.cpu.partition import Tile
from subchain.engines.subchains import Minibatch, MinibatchRun, Subchains
from subchain.errors import InputError, unknown_name
from subchain.transitions.incremental import IncrementalChain

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Boundary(Component, ABC):
    """What the user writes; `open` makes what works during a run."""

    def check(self) -> None:
        """Raise an `InputError` if a setting is out of range."""

    @abstractmethod
    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        """Get ready for a run over these subchains; `fingerprint` identifies the data."""


class OpenBoundary:
    """A boundary at work. This one knows nothing of the rest of a chain but where it is on the average."""

    #: How far the last minibatch looked beyond its subchains, on the average of both sides; None if it did not.
    growth: float | None = None

    def enter(self, messages: Messages, batch: Minibatch, chain: IncrementalChain) -> tuple[Array, Array]:
        """`start` and `stop` of a minibatch, both (K, M)."""
        return self._outside(messages, batch, chain), np.ones((messages.surrogate.n_states, batch.size))

    def _outside(self, messages: Messages, batch: Minibatch, chain: IncrementalChain) -> Array:
        """The stationary distribution, or the initial one where a sequence begins."""
        start = np.empty((messages.surrogate.n_states, batch.size))
        if not batch.is_first.all():
            start[:] = chain.stationary()[:, None]
        start[:, batch.is_first] = messages.surrogate.initial[:, None]
        return start

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

    def kept(self) -> None:
        """A checkpoint has been written."""

    def release(self) -> None:
        """Let go of files."""


class Stationary(Boundary):
    """Subchains begin as the chain does on the average, and nothing follows them (Foti et al. 2014, no buffers)."""

    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        return OpenBoundary()


# ---- buffers ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _ending_together(stops, lengths, offsets, positions):  # type: ignore[no-untyped-def]
    """Columns of stretches that end before `stops`, sorted by falling length, the shorter ones joining later."""
    steps = lengths[0]
    offsets[0] = 0
    lanes = 0
    for step in range(steps):
        while lanes < lengths.shape[0] and lengths[lanes] >= steps - step:
            lanes += 1
        for lane in range(lanes):
            positions[offsets[step] + lane] = stops[lane] - steps + step
        offsets[step + 1] = offsets[step] + lanes


def _falling(lengths: Index) -> Index | slice:
    """The order of falling lengths; a slice where nothing has to be moved."""
    if not len(lengths) or lengths[0] == lengths.min() == lengths.max():
        return slice(None)
    return np.argsort(-lengths, kind="stable")


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

    def enter(self, messages: Messages, batch: Minibatch, chain: IncrementalChain) -> tuple[Array, Array]:
        offsets = messages.data.offsets
        before = np.minimum(batch.starts - offsets[batch.sequences], self.size)
        after = np.minimum(offsets[batch.sequences + 1] - batch.starts - batch.lengths, self.size)
        return self.between(messages, batch, chain, before, after)

    def between(
        self, messages: Messages, batch: Minibatch, chain: IncrementalChain, before: Index, after: Index
    ) -> tuple[Array, Array]:
        """Messages over so many positions before and after each subchain."""
        start = self._outside(messages, batch, chain)
        at_begin = batch.starts - before == messages.data.offsets[batch.sequences]
        start[:, at_begin] = messages.surrogate.initial[:, None]
        stop = np.ones_like(start)
        self.growth = 0.5 * float(before.mean() + after.mean())
        space = Workspace()
        if before.any():
            self._come(messages, batch.starts, before, start, space)
        if after.any():
            self._return(messages, batch.starts + batch.lengths, after, stop, space)
        return start, stop

    def _come(self, messages: Messages, stops: Index, lengths: Index, start: Array, space: Workspace) -> None:
        """Replace weights at the far end of the left buffers by those at the subchains' first positions."""
        order = _falling(lengths)
        sorted_lengths, sorted_stops = lengths[order], stops[order]
        offsets = np.empty(sorted_lengths[0] + 1, dtype=np.int64)
        positions = np.empty(int(lengths.sum()), dtype=np.int64)
        _ending_together(sorted_stops, sorted_lengths, offsets, positions)
        likelihood = space.table("likelihood", len(start), len(positions))
        messages.likelihood(positions, likelihood)
        last = np.empty_like(start)
        far = start if isinstance(order, slice) else np.ascontiguousarray(start[:, order])
        messages.kernels.advance(likelihood, messages.transition, far, offsets, last)
        reached = int(np.count_nonzero(sorted_lengths))
        where = np.arange(len(lengths))[order][:reached]
        start[:, where] = messages.transposed @ last[:, :reached]

    def _return(self, messages: Messages, starts: Index, lengths: Index, stop: Array, space: Workspace) -> None:
        """Replace ones at the far end of the right buffers by the messages of the subchains' last positions."""
        order = _falling(lengths)
        reached = int(np.count_nonzero(lengths))
        where = np.arange(len(lengths))[order][:reached]
        tile = Tile(where, starts[where], lengths[where])
        likelihood = space.table("likelihood", len(stop), tile.columns)
        messages.likelihood(tile.positions, likelihood)
        near = np.empty((len(stop), reached))
        messages.kernels.retreat(likelihood, messages.transposed, np.ones_like(near), tile.offsets, near)
        stop[:, where] = near


# ---- names -----------------------------------------------------------------------------------------------------------

BOUNDARIES: dict[str, type[Boundary]] = {"stationary": Stationary, "buffer": Buffer}


def resolve_boundary(given: str | Boundary) -> Boundary:
    """A boundary from its name, or itself."""
    if isinstance(given, Boundary):
        return given
    if isinstance(given, str) and given.lower() in BOUNDARIES:
        return BOUNDARIES[given.lower()]()
    raise unknown_name("boundary", given, BOUNDARIES)


__all__ = ["BOUNDARIES", "Boundary", "Buffer", "OpenBoundary", "Stationary", "resolve_boundary"]
