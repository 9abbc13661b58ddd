"""Messages that run towards subchains over the positions on either side: buffers of given lengths, or growing ones."""

# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.base import BufferGrowth
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Tile
from subchain.engines.cpu.workspace import Workspace
from subchain.engines.results import Approach
from subchain.engines.subchains import Minibatch
from subchain.numerics.linking import linked
from subchain.propagation.lanes.growing import grow_lane, growing_room, into_and_out_of, multiply_through, no_buffers
from subchain.propagation.underflow import LEAST_MARGINAL, limited

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Positions on either side that a growing buffer looks at first; then twice as many, and so on.
FIRST_LOOK = 8


# ---- buffers of given lengths ----------------------------------------------------------------------------------------


def approach(messages: Messages, batch: Minibatch, outside: Array, before: Index, after: Index) -> Approach:
    """Carry messages over so many positions before and after each subchain; see `Engine.approach`."""
    start = np.empty((messages.surrogate.n_states, batch.size))
    start[:] = outside[:, None]
    start[:, batch.starts - before == messages.data.offsets[batch.sequences]] = messages.surrogate.initial[:, None]
    stop = np.ones_like(start)
    space = messages.workspace()
    if before.any():
        _advance(messages, batch.starts, before, start, space)
    if after.any():
        _retreat(messages, batch.starts + batch.lengths, after, stop, space)
    reach = np.stack((before, after), axis=1)
    _strengthen(messages, batch, outside, start, stop, reach)
    return Approach(start, stop, reach)


# ---- messages that underflow -----------------------------------------------------------------------------------------


def _strengthen(messages: Messages, batch: Minibatch, outside: Array, start: Array, stop: Array, reach: Index) -> None:
    """Compute messages anew, in log space, in which states that buffers of some reach lead to have underflowed.

    Where every transition is possible, no state of a message can.
    """
    if messages.every_way:
        return
    operator, ones = messages.operator, np.ones(len(start))
    begins = batch.starts - reach[:, 0] == messages.data.offsets[batch.sequences]
    fars, reached = (outside, messages.surrogate.initial), dict[tuple[bool, int], Flags]()
    for lane in _weak_lanes(start, reach[:, 0]):
        key = bool(begins[lane]), int(reach[lane, 0])
        if key not in reached:
            reached[key] = _reached(fars[key[0]] > 0.0, operator.apply, key[1])
        if (_is_weak(start[:, lane]) & reached[key]).any():
            first = int(batch.starts[lane])
            start[:, lane] = _from_left(messages, fars[key[0]], np.arange(first - key[1], first))
    reached = {}
    for lane in _weak_lanes(stop, reach[:, 1]):
        key = False, int(reach[lane, 1])
        if key not in reached:
            reached[key] = _reached(ones > 0.0, operator.apply_transposed, key[1])
        if (_is_weak(stop[:, lane]) & reached[key]).any():
            last = int(batch.starts[lane] + batch.lengths[lane])
            stop[:, lane] = _from_right(messages, np.arange(last, last + key[1]))


def _is_weak(message: Array) -> Flags:
    """Which states have (almost) no weight in messages; all of them in one that has vanished."""
    return np.asarray(~(message > LEAST_MARGINAL * message.max(axis=0)))


def _weak_lanes(messages: Array, sizes: Index) -> list[int]:
    """Lanes of messages (K, M) over buffers of some sizes in which a state has (almost) no weight."""
    lanes: list[int] = np.flatnonzero(_is_weak(messages).any(axis=0) & (sizes > 0)).tolist()
    return lanes


def _reached(possible: Flags, step: Callable[[Array], Array], n: int) -> Flags:
    """States (K,) to which n steps can lead from those that are possible."""
    for _ in range(n):
        further = step(possible.astype(np.float64)[:, None])[:, 0] > 0.0
        if (further == possible).all():
            break
        possible = further
    return possible


def _from_left(messages: Messages, far: Array, positions: Index) -> Array:
    """Predicted weights behind some positions, before which the states have weights `far`."""
    with np.errstate(divide="ignore"):
        predicted = np.log(far)
    joint = np.empty((len(positions), len(far)))
    messages.kernels.log_forward(messages.log_likelihood(positions)[1], predicted, joint)
    possible = np.isfinite(predicted).any()
    return limited(predicted - np.logaddexp.reduce(joint[-1])) if possible else np.zeros_like(far)


def _from_right(messages: Messages, positions: Index) -> Array:
    """Backward message before some positions, behind which nothing is known."""
    message = np.zeros(messages.surrogate.n_states)
    future = np.empty((len(positions), len(message)))
    messages.kernels.log_backward(messages.log_likelihood(positions)[1], message, future)
    return limited(message - np.logaddexp.reduce(message)) if np.isfinite(message).any() else np.zeros_like(message)


@linked()
def _ending_together(stops, lengths, offsets, positions):
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
    """The order of falling lengths; a slice where they are in order."""
    if not len(lengths) or lengths[0] == lengths.min() == lengths.max():
        return slice(None)
    return np.argsort(-lengths, kind="stable")


def _advance(messages: Messages, stops: Index, lengths: Index, start: Array, space: Workspace) -> None:
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
    messages.kernels.advance(likelihood, far, offsets, last)
    reached = int(np.count_nonzero(sorted_lengths))
    where = np.arange(len(lengths))[order][:reached]
    start[:, where] = messages.operator.apply(last[:, :reached])


def _retreat(messages: Messages, starts: Index, lengths: Index, stop: Array, space: Workspace) -> None:
    """Replace ones at the far end of the right buffers by the messages of the subchains' last positions."""
    order = _falling(lengths)
    reached = int(np.count_nonzero(lengths))
    where = np.arange(len(lengths))[order][:reached]
    tile = Tile(where, starts[where], lengths[where])
    likelihood = space.table("likelihood", len(stop), tile.columns)
    messages.likelihood(tile.positions, likelihood)
    near = np.empty((len(stop), reached))
    messages.kernels.retreat(likelihood, np.ones_like(near), tile.offsets, near)
    stop[:, where] = near


# ---- growing buffers -------------------------------------------------------------------------------------------------


def grow(messages: Messages, batch: Minibatch, outside: Array, growth: BufferGrowth) -> Approach:
    """Carry messages over as many positions as the subchains' ends depend on; see `Engine.grow`."""
    n_states, size = messages.surrogate.n_states, batch.size
    offsets, stops = messages.data.offsets, batch.starts + batch.lengths
    ends = np.stack((batch.starts - offsets[batch.sequences], offsets[batch.sequences + 1] - stops), axis=1)
    grown = np.zeros((size, 2), dtype=np.int64)
    buffers, starts = no_buffers(messages.operator.dense(), grown, ends), (outside, messages.surrogate.initial)
    _cores(messages, batch, buffers)
    growing, look = np.arange(size), min(max(FIRST_LOOK, growth.step), max(int(ends.max(initial=1)), 1))
    while len(growing):
        room = np.minimum(ends[growing] - grown[growing], look)
        tables = []
        for side, near, direction in ((0, batch.starts - 1, -1), (1, stops, 1)):
            at = (near + direction * grown[:, side])[growing, None] + direction * np.arange(look)
            at = np.clip(at, 0, messages.data.n_observations - 1)  # what lies beyond the room is not used
            table = messages.table(at.size)
            messages.likelihood(at.ravel(), table)
            tables.append(table)
        enough = np.empty(len(growing), dtype=np.bool_)
        _grow_all(growing, buffers, starts, tuple(tables), look, room, growth, enough)
        growing, look = growing[~enough], 2 * look
    start, stop = np.empty((n_states, size)), np.empty((n_states, size))
    _messages(buffers, starts, start, stop)
    _strengthen(messages, batch, outside, start, stop, grown)
    return Approach(start, stop, grown)


def _cores(messages: Messages, batch: Minibatch, buffers: Any) -> None:
    """Products over the subchains themselves."""
    begins = np.cumsum(batch.lengths) - batch.lengths
    positions = np.arange(batch.n_observations) + np.repeat(batch.starts - begins, batch.lengths)
    likelihood = messages.table(len(positions))
    messages.likelihood(positions, likelihood)
    _multiply_all(likelihood, begins, batch.lengths, buffers)


@linked()
def _multiply_all(likelihood, begins, lengths, buffers):
    for lane in range(begins.shape[0]):
        core, turned = buffers.core[lane], buffers.turned[lane]
        multiply_through(likelihood, buffers.transition, begins[lane], lengths[lane], core, turned)


@linked()
def _messages(buffers, starts, start, stop):
    """What the buffers tell the subchains."""
    into, out_of = np.empty(start.shape[0]), np.empty(start.shape[0])
    for lane in range(buffers.left.shape[0]):
        far = starts[0] if buffers.grown[lane, 0] < buffers.ends[lane, 0] else starts[1]
        into_and_out_of(far, buffers.left[lane], buffers.right[lane], into, out_of)
        start[:, lane] = into
        stop[:, lane] = out_of


@linked()
def _grow_all(growing, buffers, starts, tables, look, room, growth, enough):
    vectors, scratch = growing_room(buffers)
    for i in range(growing.shape[0]):
        enough[i] = grow_lane(growing[i], buffers, starts, tables, i * look, room[i], growth, vectors, scratch)
