"""What lies around the subchains of a tile, as messages, in compiled code (see `structures.chain.boundaries`).

`enter` makes the weights of the first states and the backward messages of the last positions; `leave` keeps what the
subchains tell their neighbours.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.guard_messages import fill_silent, gather_guards, write_guards
from subchain.propagation.lanes.growing import grow_lane, growing_room, into_and_out_of, multiply_through, no_buffers
from subchain.propagation.lanes.messages import advance, retreat
from subchain.propagation.lanes.observing import likelihoods, observe
from subchain.propagation.lanes.panels import mix
from subchain.propagation.underflow import is_weak

Index = NDArray[np.int64]

#: Kinds of surroundings; see `engines.base.BoundarySteps`.
NOTHING, BUFFERS, GUARDS, GROWING = 0, 1, 2, 3
#: Positions on either side that a growing buffer looks at first; later half as many as before.
FIRST_LOOK = 4
#: Lanes whose buffers grow at a time.
AT_A_TIME = 16


class Places(NamedTuple):
    """Where the subchains of a minibatch lie.

    Attributes
    ----------
    pieces : (M,) number of each in its grid
    begins, ends : (M,) first position of the sequence of each, and the position after its last
    reach : (M, 2) how many positions before and after each were looked at
    room : how many positions subchains of a tile, or growing buffers at once, may have. Tables may have room for more,
        but what is left to the general method, which rounds differently, must not depend on where a call begins.
    """

    pieces: Index
    begins: Index
    ends: Index
    reach: Index
    room: int


@small_kernel
def falling_order(lengths, order):
    """Write the indices of lengths by falling length into `order`, those of equal length in their order."""
    longest, shortest = 0, lengths[0]
    for i in range(lengths.shape[0]):
        longest, shortest = max(longest, lengths[i]), min(shortest, lengths[i])
    if longest == shortest:
        for i in range(lengths.shape[0]):
            order[i] = i
        return
    place = np.zeros(longest - shortest + 2, dtype=np.int64)
    for i in range(lengths.shape[0]):
        place[longest - lengths[i] + 1] += 1
    for step in range(1, place.shape[0]):
        place[step] += place[step - 1]
    for i in range(lengths.shape[0]):
        at = longest - lengths[i]
        order[place[at]] = i
        place[at] += 1


@small_kernel
def _running(lengths, order, offsets, backwards):
    """Write where the columns of each step begin; step 0 has all lanes, or with `backwards` those of full length."""
    steps = offsets.shape[0] - 1
    offsets[0] = 0
    for step in range(steps):
        least, lanes = steps - step if backwards else step + 1, 0
        while lanes < order.shape[0] and lengths[order[lanes]] >= least:
            lanes += 1
        offsets[step + 1] = offsets[step] + lanes


@kernel
def _read(family, seen, tables, n_states, columns):
    """Likelihoods of the observations at `tables.positions`; return whether that could be done."""
    if not observe(family, tables.positions[:columns], seen):
        return False
    likelihoods(
        family, seen, tables.likelihood[: n_states * columns].reshape(n_states, columns), tables.shift[:columns]
    )
    return True


@kernel
def _cross(family, seen, near, sizes, is_left, ways, tables, messages):
    """Carry messages (K, lanes) from the far ends of buffers of some sizes to the subchains' ends, next to `near`.

    Return whether that could be done.
    """
    n_states, lanes = messages.shape
    order = np.empty(lanes, dtype=np.int64)
    falling_order(sizes, order)
    steps = sizes[order[0]]
    if steps == 0:
        return True
    offsets = np.empty(steps + 1, dtype=np.int64)
    _running(sizes, order, offsets, is_left)
    columns = offsets[steps]
    if columns > tables.positions.shape[0]:
        return False
    for step in range(steps):
        for lane in range(offsets[step + 1] - offsets[step]):
            at = near[order[lane]]
            tables.positions[offsets[step] + lane] = at - steps + step if is_left else at + step
    if not _read(family, seen, tables, n_states, columns):
        return False
    likelihood = tables.likelihood[: n_states * columns].reshape(n_states, columns)
    far, carried = np.empty((n_states, lanes)), np.empty((n_states, lanes))
    for lane in range(lanes):
        far[:, lane] = messages[:, order[lane]]
    reached = offsets[steps] - offsets[steps - 1] if is_left else offsets[1]
    if is_left:
        advance(likelihood, ways.transition, far, offsets, carried)
        last = carried[:, :reached].copy()
        carried = np.empty_like(last)
        mix(ways.transition, last, carried)
    else:
        retreat(likelihood, ways.transposed, far, offsets, carried)
    for lane in range(reached):
        messages[:, order[lane]] = carried[:, lane]
    return True


@kernel
def _grow(family, seen, lanes, places, boundary, a, b, starts, ways, tables, start, stop):
    """Extend the buffers of lanes `a` to `b` as far as these depend on them; return whether that could be done.

    Lanes are taken some at a time, so that their products stay near the core. `starts` are the weights of the outermost
    state inside a sequence, and at its beginning.
    """
    for first in range(a, b, AT_A_TIME):
        last = min(first + AT_A_TIME, b)
        into, out_of = start[:, first - a : last - a], stop[:, first - a : last - a]
        if not _grow_some(family, seen, lanes, places, boundary, first, last, starts, ways, tables, into, out_of):
            return False
    return True


@kernel
def _grow_some(family, seen, lanes, places, boundary, a, b, starts, ways, tables, start, stop):
    """The same for a few lanes. It cannot be done where a buffer would look at more than `places.room` positions."""
    n_states, size, columns = start.shape[0], b - a, 0
    ends = np.empty((size, 2), dtype=np.int64)
    for i in range(size):
        ends[i, 0] = lanes.starts[a + i] - places.begins[a + i]
        ends[i, 1] = places.ends[a + i] - lanes.starts[a + i] - lanes.lengths[a + i]
        for step in range(lanes.lengths[a + i]):
            tables.positions[columns] = lanes.starts[a + i] + step
            columns += 1
    if not _read(family, seen, tables, n_states, columns):
        return False
    likelihood, at = tables.likelihood[: n_states * columns].reshape(n_states, columns), 0
    grown = places.reach[a:b]
    buffers = no_buffers(ways.transition, grown, ends)
    for i in range(size):
        length = lanes.lengths[a + i]
        multiply_through(likelihood, buffers.transition, at, length, buffers.core[i], buffers.turned[i])
        at += length
    vectors, scratch = growing_room(buffers)
    growing, look, seen_before = np.arange(size), max(FIRST_LOOK, boundary.step), 0
    while growing.shape[0] > 0:
        n, most = 0, places.room // (2 * look)
        if most == 0:
            return False
        for begin in range(0, growing.shape[0], most):
            some = growing[begin : begin + most]
            if not _read_beyond(family, seen, lanes, a, some, grown, look, places, tables, n_states):
                return False
            columns = 2 * look * some.shape[0]
            likelihood = tables.likelihood[: n_states * columns].reshape(n_states, columns)
            for i in range(some.shape[0]):
                left = np.minimum(ends[some[i]] - grown[some[i]], look)
                both = (likelihood, likelihood[:, look:])
                if not grow_lane(some[i], buffers, starts, both, 2 * look * i, left, boundary, vectors, scratch):
                    growing[n] = some[i]
                    n += 1
        seen_before += look
        growing, look = growing[:n], max(look, seen_before // 2)
    for i in range(size):
        far = starts[0] if grown[i, 0] < ends[i, 0] else starts[1]
        into_and_out_of(far, buffers.left[i], buffers.right[i], start[:, i], stop[:, i])
    return ways.steps.shape[0] == 0 or _are_strong(start, stop, starts, grown, ends, ways)


@small_kernel
def _are_strong(start, stop, starts, grown, ends, ways):
    """Whether no state has underflowed in messages over buffers that have grown."""
    far = np.empty_like(start)
    for i in range(grown.shape[0]):
        far[:, i] = starts[0] if grown[i, 0] < ends[i, 0] else starts[1]
    if is_weak(start, far, ways.steps, grown[:, 0], True):
        return False
    return not is_weak(stop, np.ones_like(far), ways.steps, grown[:, 1], False)


@kernel
def _read_beyond(family, seen, lanes, a, some, grown, look, places, tables, n_states):
    """Likelihoods of `look` positions before, and as many after, what the buffers of some lanes hold."""
    column = 0
    for i in range(some.shape[0]):
        lane = a + some[i]
        first, last = places.begins[lane], places.ends[lane] - 1
        before = lanes.starts[lane] - 1 - grown[some[i], 0]
        after = lanes.starts[lane] + lanes.lengths[lane] + grown[some[i], 1]
        for step in range(look):  # what lies beyond the sequence is not used
            tables.positions[column + step] = max(before - step, first)
            tables.positions[column + look + step] = min(after + step, last)
        column += 2 * look
    return _read(family, seen, tables, n_states, column)


@small_kernel
def _is_end(lanes, places, a, b):
    """Whether lanes begin, and whether they end their sequences."""
    is_first, is_last = np.empty(b - a, dtype=np.bool_), np.empty(b - a, dtype=np.bool_)
    for i in range(b - a):
        is_first[i] = lanes.starts[a + i] == places.begins[a + i]
        is_last[i] = lanes.starts[a + i] + lanes.lengths[a + i] == places.ends[a + i]
    return is_first, is_last


@kernel
def enter(family, seen, lanes, places, boundary, a, b, ways, outside, tables, start, stop):
    """Write what lanes `a` to `b` are told into `start` and `stop`, (K, lanes); return whether that could be done."""
    how, size = boundary.state[0], boundary.state[1]
    if how == GROWING:
        return _grow(
            family, seen, lanes, places, boundary, a, b, (outside, ways.initial), ways, tables, start, stop
        )  # fmt: skip
    is_first, is_last = _is_end(lanes, places, a, b)
    if how == GUARDS:
        before, after = np.empty_like(start), np.empty_like(stop)
        gather_guards(boundary.guards, places.pieces[a:b], is_first, is_last, before, after)
        mix(ways.transition, before, start)
        mix(ways.transposed, after, stop)
        fill_silent(before, after, is_first, is_last, ways.initial, outside, start, stop)
        return True
    reach = places.reach[a:b]
    for i in range(b - a):
        reach[i, 0] = min(lanes.starts[a + i] - places.begins[a + i], size)
        reach[i, 1] = min(places.ends[a + i] - lanes.starts[a + i] - lanes.lengths[a + i], size)
        begins = lanes.starts[a + i] - reach[i, 0] == places.begins[a + i]
        for k in range(start.shape[0]):
            start[k, i] = ways.initial[k] if begins else outside[k]
            stop[k, i] = 1.0
    if size == 0:
        return True
    near, sizes = lanes.starts[a:b].copy(), reach[:, 0].copy()
    far, is_watched = start.copy(), ways.steps.shape[0] > 0
    if not _cross(family, seen, near, sizes, True, ways, tables, start):
        return False
    if is_watched and is_weak(start, far, ways.steps, sizes, True):
        return False
    for i in range(b - a):
        near[i] += lanes.lengths[a + i]
        sizes[i] = reach[i, 1]
    if not _cross(family, seen, near, sizes, False, ways, tables, stop):
        return False
    return not (is_watched and is_weak(stop, np.ones_like(far), ways.steps, sizes, False))


@small_kernel
def leave(boundary, guards, rows, lengths, offsets, weighted, alpha, marginals):
    """Keep what the lanes of a tile tell their neighbours in rows of a table of guards."""
    n_states, lanes, is_even = alpha.shape[0], rows.shape[0], lengths[0] == lengths[-1]
    write_guards(guards, 0, rows, marginals if boundary.keeps_marginals else weighted, 0)
    table = marginals if boundary.keeps_marginals else alpha
    if is_even:
        write_guards(guards, n_states, rows, table, offsets[-1] - lanes)
        return
    last = np.empty((n_states, lanes))
    for lane in range(lanes):
        last[:, lane] = table[:, offsets[lengths[lane] - 1] + lane]
    write_guards(guards, n_states, rows, last, 0)
