"""Groups of tiles in one call that does not hold Python's lock: observations in, statistics out.

Tiles are as in `engines.cpu.partition`, and run one after the other in the same tables. Every thread makes one such
call for a pass, and claims group after group.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.claiming import claim
from subchain.numerics.subnormals import flush_subnormals, restore_subnormals
from subchain.propagation.compiled import family_rare, kernel, small_kernel
from subchain.propagation.lanes.messages import approach
from subchain.propagation.lanes.observing import add_observations, likelihoods, observation_room, observe
from subchain.propagation.lanes.outcomes import take
from subchain.propagation.lanes.recursions import backward, forward, log_totals
from subchain.propagation.lanes.sums import pair_sums, weigh
from subchain.propagation.layout import Walks, column_positions, step_offsets
from subchain.propagation.precision import SAFE_MEETING, SAFE_SCALE, by_precision
from subchain.propagation.underflow import LEAST_MARGINAL, Growth, search_losses

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Columns of sums that a thread adds up at a time: those of many groups stay near the core.
COLUMNS = 512


class TiledPieces(NamedTuple):
    """All pieces, tile after tile, those of a tile by falling length: the lanes.

    Attributes
    ----------
    tiles : (T + 1,) where the lanes of each tile begin
    pieces : (n,) number of each piece in the order of the data
    starts, lengths : (n,) position of each piece's first observation, and number of its observations
    is_first, is_last : (n,) whether the piece begins or ends its sequence
    weights : (n,) how often each piece counts; (0,) if all count once
    """

    tiles: Index
    pieces: Index
    starts: Index
    lengths: Index
    is_first: Flags
    is_last: Flags
    weights: Array


class Claims(NamedTuple):
    """What there is to do.

    Attributes
    ----------
    groups : (G + 1,) where the tiles of each group begin
    todo : (n,) groups to run
    next : (1,) how many of them have been claimed
    """

    groups: Index
    todo: Index
    next: Index


class Ways(NamedTuple):
    """First states and transitions, of the floating type of the tables.

    Attributes
    ----------
    initial, transition, transposed : (K,), the matrix (K, K), and its transpose
    steps : (K, K) transitions that are possible; (0, 0) where no loss to underflow can matter
    possible : (K,) states that a chain can ever be in; (0,) where that is not asked
    """

    initial: NDArray[Any]
    transition: NDArray[Any]
    transposed: NDArray[Any]
    steps: Flags
    possible: Flags


#: Fields of `Ways` that are of the floating type of the tables.
WEIGHTS = Ways._fields[:3]


class Edges(NamedTuple):
    """Messages at the borders of the pieces, (n, K) each, and whether the first two are known, (n,); in data's order.

    They are as in `engines.cpu.borders.BorderMessages`; tables of no rows where no sequence was cut.
    """

    before: Array
    after: Array
    last: Array
    first: Array
    known: Flags


class Tables(NamedTuple):
    """Room for the columns of the largest tile: K times as many numbers in the first three; positions of columns.

    The first four are of doubles or of singles, shifts are doubles.
    """

    likelihood: Array
    alpha: Array
    marginals: Array
    scale: Array
    shift: Array
    positions: Index


class Sums(NamedTuple):
    """What tiles add to: first states (K,), transitions (K, K) without the factor of their weights, and emissions."""

    initial: Array
    pairs: Array
    emission: Array


@small_kernel
def _early_starts(lanes, a, b, known, lead, smooth, starts):
    """Where to begin for the borders of lanes `a` to `b` that are not known; first those before, then those after."""
    n = 0
    for lane in range(a, b):
        if not known[lanes.pieces[lane]] and not lanes.is_first[lane]:
            starts[n] = lanes.starts[lane] - lead
            n += 1
    n_before = n
    for lane in range(a, b):
        if smooth and not known[lanes.pieces[lane]] and not lanes.is_last[lane]:
            starts[n] = lanes.starts[lane] + lanes.lengths[lane]
            n += 1
    return n_before, n


@small_kernel
def _keep_early(lanes, a, b, edges, smooth, last, before):
    """Keep the messages that were found at the borders; see `_early_starts`."""
    n = 0
    for lane in range(a, b):
        piece = lanes.pieces[lane]
        if not edges.known[piece] and not lanes.is_first[lane]:
            edges.before[piece] = last[:, n]
            n += 1
    for lane in range(a, b):
        piece = lanes.pieces[lane]
        if smooth and not edges.known[piece] and not lanes.is_last[lane]:
            edges.after[piece] = before[:, n]
            n += 1


@small_kernel
def _starts(lanes, a, b, ways, edges, start, stop):
    """Weights of the first states of lanes `a` to `b`, and backward messages of their last positions, (K, lanes)."""
    n_states, is_cut = start.shape[0], edges.before.shape[0] > 0
    for lane in range(a, b):
        at, piece = lane - a, lanes.pieces[lane]
        for k in range(n_states):
            start[k, at] = ways.initial[k]
            stop[k, at] = edges.after[piece, k] if is_cut and not lanes.is_last[lane] else 1.0
        if is_cut and not lanes.is_first[lane]:
            start[:, at] = 0.0
            for j in range(n_states):
                weight, row = edges.before[piece, j], ways.transition[j]
                for k in range(n_states):
                    start[k, at] += weight * row[k]


@small_kernel
def _keep_edges(lanes, a, b, ways, edges, alpha, scale, weighted, offsets, stop, smooth):
    """Keep what lanes tell their neighbours; return whether no message from the right nearly contradicts its lane."""
    n_states, agree = alpha.shape[0], True
    if edges.before.shape[0] == 0:
        return True
    for lane in range(a, b):
        at, piece = lane - a, lanes.pieces[lane]
        column = offsets[lanes.lengths[lane] - 1] + at
        meeting = 0.0
        edges.known[piece] = True
        for k in range(n_states):
            edges.last[piece, k] = alpha[k, column]
            meeting += alpha[k, column] * stop[k, at]
        if not smooth:
            edges.first[piece] = edges.last[piece]
            continue
        if not meeting * scale[column] >= by_precision(SAFE_MEETING, alpha):
            agree = False
        total = 0.0
        for j in range(n_states):
            message = 0.0
            for k in range(n_states):
                message += ways.transition[j, k] * weighted[k, at]
            edges.first[piece, j] = message
            total += message
        if total > 0.0:
            edges.first[piece] /= total
    return agree


@small_kernel
def _first_and_crossing(lanes, a, b, edges, marginals, weighted, sums):
    """Add the first states of sequences, and the transitions into pieces that do not begin one."""
    n_states = marginals.shape[0]
    for lane in range(a, b):
        at = lane - a
        if lanes.is_first[lane]:
            for k in range(n_states):
                sums.initial[k] += marginals[k, at]
        elif edges.before.shape[0] > 0:
            for j in range(n_states):
                weight = edges.before[lanes.pieces[lane], j]
                for k in range(n_states):
                    sums.pairs[j, k] += weight * weighted[k, at]


@small_kernel
def _all_normal(scale):
    """Whether no normaliser is so small, or so undefined, that something may have been lost."""
    normal, least = 0, by_precision(SAFE_SCALE, scale)
    for column in range(scale.shape[0]):
        normal += scale[column] >= least
    return normal == scale.shape[0]


@family_rare
def _meet_neighbours(family, seen, lanes, a, b, ways, edges, lead, smooth, tables):
    """Estimate the messages at the borders of lanes `a` to `b` that are not known; return whether that could be done.

    Passes begin `lead` positions beyond a border, from all states alike.
    """
    n_states, starts = ways.initial.shape[0], np.empty(2 * (b - a), dtype=np.int64)
    n_before, n = _early_starts(lanes, a, b, edges.known, lead, smooth, starts)
    if n == 0:
        return True
    columns, offsets = lead * n, np.arange(lead + 1) * n
    column_positions(starts[:n], offsets, tables.positions)
    if not observe(family, tables.positions[:columns], seen):
        return False
    likelihood = tables.likelihood[: n_states * columns].reshape(n_states, columns)
    likelihoods(family, seen, likelihood, tables.shift[:columns])
    flat = np.full((n_states, n), 1.0 / n_states, likelihood.dtype)
    last, before = np.empty_like(flat), np.empty_like(flat)
    stop = flat[:, : n if n > n_before else 0].copy()
    approach(likelihood, ways.transition, ways.transposed, flat, stop, offsets, last, before)
    _keep_early(lanes, a, b, edges, smooth, last, before)
    return True


@small_kernel
def messages_of(tables, n_states, columns):
    """The tables of a tile's messages: likelihoods, filtered and smoothed marginals, (K, columns) each."""
    return (
        tables.likelihood[: n_states * columns].reshape(n_states, columns),
        tables.alpha[: n_states * columns].reshape(n_states, columns),
        tables.marginals[: n_states * columns].reshape(n_states, columns),
    )


@family_rare
def run_forward(family, seen, starts, offsets, start, ways, tables, totals):
    """Run lanes forward; return whether nothing turned up that needs another method.

    Parameters
    ----------
    family, ways, tables : as above
    seen : the family's room
    starts : (lanes,) first position of each lane
    offsets : (steps + 1,) first column of each step
    start : (K, lanes) weights of the first states
    totals : (lanes,) output, log likelihoods
    """
    columns = offsets[-1]
    column_positions(starts, offsets, tables.positions)
    if not observe(family, tables.positions[:columns], seen):
        return False
    likelihood, alpha, _ = messages_of(tables, start.shape[0], columns)
    scale, shift = tables.scale[:columns], tables.shift[:columns]
    likelihoods(family, seen, likelihood, shift)
    forward(likelihood, ways.transition, start, offsets, alpha, scale)
    log_totals(scale, shift, offsets, totals)
    return _all_normal(scale)


@small_kernel
def run_backward(offsets, stop, ways, tables):
    """Run lanes backward that have been run forward; `stop` (K, lanes) are messages of the last positions."""
    likelihood, alpha, marginals = messages_of(tables, stop.shape[0], offsets[-1])
    backward(likelihood, ways.transposed, stop, offsets, alpha, tables.scale[: offsets[-1]], marginals)


@small_kernel
def losses(starts, lengths, offsets, start, follows, ways, tables):
    """What lanes that have been run forward may have lost to underflow, as `Growth`.

    Parameters
    ----------
    starts, lengths : (lanes,) first position and number of positions of each lane
    offsets, start, ways, tables : as above
    follows : (lanes,) lanes that continue others: any state in which a chain can be may have been lost before
    """
    lanes = lengths.shape[0]
    before = start.copy()
    for lane in range(lanes):
        if follows[lane]:
            for k in range(before.shape[0]):
                before[k, lane] += LEAST_MARGINAL if ways.possible[k] else 0.0
    gain, own = np.full(lanes, -np.inf), np.full(lanes, -np.inf)
    found = Growth(gain, own, gain.copy(), own.copy())
    walks = Walks(lengths, np.arange(lanes), offsets, starts)
    likelihood, alpha, _ = messages_of(tables, start.shape[0], offsets[-1])
    search_losses(
        likelihood, before, ways.transition, ways.steps, walks, alpha, tables.scale[: offsets[-1]], True, follows,
        found,
    )  # fmt: skip
    return found


@small_kernel
def _keep_losses(lanes, a, b, edges, offsets, start, ways, tables, out):
    """Keep what the lanes `a` to `b` may have lost, in the order of the data; `out` (P, 4) are fields of `Growth`."""
    follows = np.empty(b - a, dtype=np.bool_)
    for lane in range(a, b):
        follows[lane - a] = not lanes.is_first[lane] and edges.before.shape[0] > 0
    found = losses(lanes.starts[a:b], lanes.lengths[a:b], offsets, start, follows, ways, tables)
    for lane in range(a, b):
        own = out[lanes.pieces[lane]]
        own[0], own[1] = found.gain[lane - a], found.own[lane - a]
        own[2], own[3] = found.highest[lane - a], found.own_highest[lane - a]


@family_rare
def _run_tile(family, seen, lanes, a, b, ways, edges, smooth, tables, outputs, sums):
    """Run the lanes `a` to `b` of a tile; return whether that could be done."""
    n_states, offsets = ways.initial.shape[0], step_offsets(lanes.lengths[a:b])
    start, own = np.empty((n_states, b - a), tables.alpha.dtype), np.empty(b - a)
    stop = np.empty_like(start)
    _starts(lanes, a, b, ways, edges, start, stop)
    if not run_forward(family, seen, lanes.starts[a:b], offsets, start, ways, tables, own):
        return False
    if ways.steps.shape[0] > 0:
        _keep_losses(lanes, a, b, edges, offsets, start, ways, tables, outputs.losses)
    if smooth:
        run_backward(offsets, stop, ways, tables)
    weighted, alpha, marginals = messages_of(tables, n_states, offsets[-1])
    if not _keep_edges(lanes, a, b, ways, edges, alpha, tables.scale, weighted, offsets, stop, smooth):
        return False
    for lane in range(a, b):
        outputs.totals[lanes.pieces[lane]] = own[lane - a]
    take(outputs, lanes, a, b, offsets, tables.positions, marginals if smooth else alpha)
    if sums.initial.shape[0] > 0:
        if lanes.weights.shape[0] > 0:
            weigh(marginals, offsets, lanes.weights[a:b])
            weigh(weighted, offsets, lanes.weights[a:b])
        _first_and_crossing(lanes, a, b, edges, marginals, weighted, sums)
        pair_sums(alpha, weighted, offsets, sums.pairs)
        add_observations(family, seen, marginals, sums.emission)
    return True


@small_kernel
def cleared(row, n_states):
    """A row of sums, set to zero, as its parts; those of no states if the row is empty."""
    row[:] = 0.0
    if row.shape[0] == 0:
        n_states = 0
    chain = n_states + n_states * n_states
    return Sums(row[:n_states], row[n_states:chain].reshape(n_states, n_states), row[chain:])


@small_kernel
def next_group(claims):
    """Claim a group; return its number, −1 if all are claimed."""
    number = claim(claims.next)
    return claims.todo[number] if number < claims.todo.shape[0] else -1


@kernel
def run_groups(family, lanes, claims, ways, edges, lead, smooth, tables, outputs, rows, done):
    """Claim groups and run their tiles one after the other, until all groups are claimed.

    Parameters
    ----------
    family : observations and likelihoods of the emissions; see `observing.py`
    lanes, claims, ways, tables : as above
    edges : messages at the borders; those not known are estimated from the `lead` positions beyond
    smooth : whether marginals are wanted, or log likelihoods alone
    outputs : log likelihoods, and what is done with messages; see `outcomes.py`
    rows : (G, S) output, the sums of each group: first states, transitions and emissions; (G, 0) if none are wanted
    done : (T,) output, false for tiles that need another method: nothing was added for them
    """
    control, seen = flush_subnormals(), observation_room(family, tables.positions.shape[0])
    group = next_group(claims)
    while group >= 0:
        sums = cleared(rows[group], ways.initial.shape[0])
        for tile in range(claims.groups[group], claims.groups[group + 1]):
            a, b = lanes.tiles[tile], lanes.tiles[tile + 1]
            done[tile] = lead == 0 or _meet_neighbours(family, seen, lanes, a, b, ways, edges, lead, smooth, tables)
            done[tile] = done[tile] and _run_tile(family, seen, lanes, a, b, ways, edges, smooth, tables, outputs, sums)
        group = next_group(claims)
    restore_subnormals(control)


@kernel
def add_rows(rows, counter):
    """Add all rows to the first, two and two and so on; threads claim columns, some at a time."""
    while True:
        start = claim(counter) * COLUMNS
        if start >= rows.shape[1]:
            return
        stop, step = min(start + COLUMNS, rows.shape[1]), 1
        while step < rows.shape[0]:
            for at in range(0, rows.shape[0] - step, 2 * step):
                ours, theirs = rows[at, start:stop], rows[at + step, start:stop]
                for i in range(ours.shape[0]):
                    ours[i] += theirs[i]
            step *= 2
