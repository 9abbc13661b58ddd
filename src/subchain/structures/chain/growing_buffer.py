"""GrowBuf (Foti et al. 2014): buffers that grow until a subchain's end marginals no longer depend on the rest."""

# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.core.checks import whole_number
from subchain.core.parts import Memory
from subchain.engines.cpu.messages import Messages
from subchain.engines.subchains import Minibatch, Subchains
from subchain.errors import InputError
from subchain.propagation.lanes.growing import grow_lane, into_and_out_of, multiply_through
from subchain.structures.chain.boundaries import BOUNDARIES, Boundary, OpenBoundary, OpenBuffer
from subchain.transitions.incremental import IncrementalChain

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Positions on either side that are looked at first; then twice as many, and so on.
FIRST_LOOK = 8


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

    def enter(self, messages: Messages, batch: Minibatch, chain: IncrementalChain) -> tuple[Array, Array]:
        grows = self.updates % self.settings.every == 0
        self.updates += 1
        if not grows:
            return super().enter(messages, batch, chain)
        start, stop, grown = grow(messages, batch, chain.stationary(), self.settings)
        self.size = int(grown.max(initial=0))
        self.growth = float(grown.mean())
        return start, stop

    def memory(self) -> Memory:
        return {"growth": np.array([self.updates, self.size])}

    def restore(self, memory: Memory) -> None:
        self.updates, self.size = (int(value) for value in memory["growth"])


def grow(messages: Messages, batch: Minibatch, stationary: Array, settings: GrowBuffer) -> tuple[Array, Array, Index]:
    """`start` and `stop` (K, M) of a minibatch, and how far its subchains' buffers have grown, (M, 2)."""
    n_states, size = messages.surrogate.n_states, batch.size
    offsets, stops = messages.data.offsets, batch.starts + batch.lengths
    ends = np.stack((batch.starts - offsets[batch.sequences], offsets[batch.sequences + 1] - stops), axis=1)
    left, core, right = (np.empty((size, n_states, n_states)) for _ in range(3))
    left[:] = right[:] = np.eye(n_states)
    _cores(messages, batch, core)
    grown = np.zeros((size, 2), dtype=np.int64)
    initial = messages.surrogate.initial
    growing, look = np.arange(size), max(FIRST_LOOK, settings.step)
    while len(growing):
        room = np.minimum(ends[growing] - grown[growing], look)
        tables = []
        for side, near, direction in ((0, batch.starts - 1, -1), (1, stops, 1)):
            at = (near + direction * grown[:, side])[growing, None] + direction * np.arange(look)
            at = np.clip(at, 0, messages.data.n_observations - 1)  # what lies beyond the room is not used
            table = np.empty((n_states, at.size))
            messages.likelihood(at.ravel(), table)
            tables.append(table)
        enough = np.empty(len(growing), dtype=np.bool_)
        _grow_all(
            *tables, look, room, ends, growing, messages.transition, stationary, initial, left, core, right,
            grown, settings.step, settings.tolerance, settings.limit, enough,
        )  # fmt: skip
        growing, look = growing[~enough], 2 * look
    start, stop = np.empty((n_states, size)), np.empty((n_states, size))
    _messages(initial, stationary, left, right, grown, ends, start, stop)
    return start, stop, grown


def _cores(messages: Messages, batch: Minibatch, core: Array) -> None:
    """Products over the subchains themselves."""
    begins = np.cumsum(batch.lengths) - batch.lengths
    positions = np.arange(batch.n_observations) + np.repeat(batch.starts - begins, batch.lengths)
    likelihood = np.empty((core.shape[1], len(positions)))
    messages.likelihood(positions, likelihood)
    _multiply_all(likelihood, messages.transition, begins, batch.lengths, core)


@njit(nogil=True, cache=True)
def _multiply_all(likelihood, transition, begins, lengths, core):
    for lane in range(begins.shape[0]):
        columns = np.arange(begins[lane], begins[lane] + lengths[lane])
        multiply_through(likelihood, transition, columns, core[lane])


@njit(nogil=True, cache=True)
def _messages(initial, stationary, left, right, grown, ends, start, stop):
    """What the buffers tell the subchains."""
    into, out_of = np.empty(initial.shape[0]), np.empty(initial.shape[0])
    for lane in range(left.shape[0]):
        far = initial if grown[lane, 0] == ends[lane, 0] else stationary
        into_and_out_of(far, left[lane], right[lane], into, out_of)
        start[:, lane] = into
        stop[:, lane] = out_of


@njit(nogil=True, cache=True)
def _grow_all(
    left_table, right_table, look, room, ends, growing, transition, stationary, initial, left, core, right, grown, step,
    tolerance, limit, enough,
):  # fmt: skip
    for i in range(growing.shape[0]):
        lane = growing[i]
        enough[i] = grow_lane(
            left_table, right_table, i * look, room[i, 0], room[i, 1], ends[lane, 0], ends[lane, 1], transition,
            stationary, initial, left[lane], core[lane], right[lane], grown[lane], step, tolerance, limit,
        )  # fmt: skip


BOUNDARIES["growing"] = GrowBuffer
