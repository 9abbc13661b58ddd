"""Many stochastic updates in one compiled call, for every family of emissions and every boundary.

An update (see `inference.stochastic.updates`) is a few short steps; called one by one from Python, they would wait for
the interpreter most of the time. What is out of the ordinary (a transition that is all but impossible, a subchain that
underflows, a missing coordinate) is left to the general method: the run of updates ends before it.

One thread leads: it chooses the subchains, works out the surrogate and lets the fresh sums enter the old ones. In
between it opens the tiles of the minibatch, which other threads may help with: first what lies around the subchains,
then the subchains, then the parts of the sums that fresh ones enter. Sums of tiles are kept apart and added in their
order, so that any number of threads gives the same bits. The leader waits for tiles that are being worked on, not for
threads that have none.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import MEAN
from subchain.numerics.claiming import claim_below, look, raise_by
from subchain.numerics.stationary import reduce_states, reduced_distribution
from subchain.numerics.subnormals import flush_subnormals, restore_subnormals
from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.lanes.groups import Sums, Ways, messages_of
from subchain.propagation.lanes.learning import begin_blend, blend_part, clear_sums, end_blend, weigh_family
from subchain.propagation.lanes.observing import observation_room
from subchain.propagation.lanes.subchains import Subchains, add_tile, run_tile
from subchain.propagation.lanes.surroundings import BUFFERS, GROWING, GUARDS, Places, enter, falling_order, leave
from subchain.propagation.layout import step_offsets
from subchain.propagation.underflow import LEAST_TRANSITION
from subchain.transitions.incremental import dirichlet_rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Looks at a counter after which a helper takes a nap.
PATIENCE = 300_000
#: What is done in an update: messages from around the subchains, the subchains, and fresh sums enter the old ones.
ENTER, RUN, BLEND, N_STAGES = 0, 1, 2, 3


class Progress(NamedTuple):
    """Counters of a run, (1,) each: work that was opened, claimed and done, and whether some failed or all is over.

    The last are the number of threads that have joined, and whether one of them has ended with an exception.
    """

    opened: Index
    claimed: Index
    done: Index
    failed: Index
    over: Index
    joined: Index
    broken: Index


class Minibatch(NamedTuple):
    """The minibatch of the current update, which all threads see.

    Attributes
    ----------
    lanes : its subchains; `start` and `stop` are (K · M,), those of each tile a table (K, lanes)
    places : where they lie
    boundary : see `engines.base.BoundarySteps`
    ways, outside : first states and transitions, and the stationary distribution, (K,)
    rows : (T, S) the fresh sums of each tile: first states, transitions and emissions
    totals : (M,) log likelihoods
    guards : (M, 2 K) those that the subchains leave, until all tiles are done; (0, 2 K) where there is one tile
    blend : (2,) what the old sums and the fresh ones are multiplied by when they are added
    """

    lanes: Subchains
    places: Places
    boundary: Any
    ways: Ways
    outside: Array
    rows: Array
    totals: Array
    guards: NDArray[np.float32]
    blend: Array


@small_kernel
def _choose(units, update, lanes, places):
    """Look up the subchains of an update, the longest first; return whether all begin their sequences."""
    pieces, size = units.pieces[update], units.pieces.shape[1]
    chosen, of_each = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    lengths, order = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for i in range(size):
        sequence, above = 0, units.firsts.shape[0] - 1
        while above - sequence > 1:  # the last sequence whose first subchain has no larger number
            middle = (sequence + above) // 2
            if units.firsts[middle] <= pieces[i]:
                sequence = middle
            else:
                above = middle
        of_each[i] = sequence
        chosen[i] = units.offsets[sequence] + (pieces[i] - units.firsts[sequence]) * units.stride
        lengths[i] = min(units.offsets[sequence + 1] - chosen[i], units.length)
    falling_order(lengths, order)
    all_first = True
    for lane in range(size):
        i = order[lane]
        sequence = of_each[i]
        places.pieces[lane] = pieces[i]
        places.begins[lane], places.ends[lane] = units.offsets[sequence], units.offsets[sequence + 1]
        lanes.starts[lane], lanes.lengths[lane] = chosen[i], lengths[i]
        begins = chosen[i] == units.offsets[sequence]
        all_first &= begins
        own = units.weights[sequence] if units.weights.shape[0] > 0 else 1.0
        lanes.first_weights[lane] = own if begins else 0.0
        if lanes.weights.shape[0] > 0:
            lanes.weights[lane] = units.each[sequence]
        if lanes.pair_weights.shape[0] > 0:
            lanes.pair_weights[lane] = units.each_move[sequence]
    return all_first


@small_kernel
def _weigh_chain(kind, chain, ways, outside, all_first):
    """Work out first states, transitions and the stationary distribution; return whether that could be done.

    It could not where a transition that is not forbidden is all but impossible. Where all subchains begin their
    sequences, the stationary distribution is not needed.
    """
    dirichlet_rows(kind, chain.prior_rows, chain.pairs, chain.fixed, ways.transition)
    first = ways.initial.reshape(1, -1)
    dirichlet_rows(kind, chain.prior_first, chain.first, np.zeros_like(first), first)
    for j in range(ways.transition.shape[0]):
        for k in range(ways.transition.shape[0]):
            is_forbidden = chain.prior_rows[j, k] <= 0.0 and chain.fixed[j, k] <= 0.0
            if not (is_forbidden or ways.transition[j, k] >= LEAST_TRANSITION):
                return False
            ways.transposed[k, j] = ways.transition[j, k]
    if all_first:
        outside[:] = ways.initial
        return True
    mean = ways.transition.copy()
    if kind != MEAN:
        dirichlet_rows(np.int64(MEAN), chain.prior_rows, chain.pairs, chain.fixed, mean)
    if not reduce_states(mean):
        return False
    outside[:] = reduced_distribution(mean)
    return True


@small_kernel
def _parts(row, n_states):
    """A row of sums as its parts."""
    chain = n_states + n_states * n_states
    return Sums(row[:n_states], row[n_states:chain].reshape(n_states, n_states), row[chain:])


@small_kernel
def _fresh(batch):
    """The fresh sums of the emissions, a row for each tile."""
    n_states = batch.ways.initial.shape[0]
    return batch.rows[:, n_states + n_states * n_states :]


@kernel
def _run_stage(learned, seen, batch, tables, tile, stage):
    """Work on one tile, or on one part of the sums; return whether that could be done."""
    family, lanes, n_states = learned.likelihood, batch.lanes, batch.ways.initial.shape[0]
    a, b = lanes.tiles[tile], lanes.tiles[tile + 1]
    if stage == BLEND:
        blend_part(learned, batch.blend[0], batch.blend[1], _fresh(batch), tile)
        if batch.boundary.state[0] == GUARDS and batch.rows.shape[0] > 1:
            for lane in range(a, b):
                batch.boundary.guards[batch.places.pieces[lane]] = batch.guards[lane]
        return True
    if lanes.lengths[a:b].sum() > batch.places.room:
        return False  # subchains far longer than usual
    start = lanes.start[n_states * a : n_states * b].reshape(n_states, b - a)
    stop = lanes.stop[n_states * a : n_states * b].reshape(n_states, b - a)
    if stage == ENTER:
        return enter(
            family, seen, lanes, batch.places, batch.boundary, a, b, batch.ways, batch.outside, tables, start, stop
        )  # fmt: skip
    lengths = lanes.lengths[a:b]
    offsets, sums = step_offsets(lengths), _parts(batch.rows[tile], n_states)
    if not run_tile(family, seen, lanes, a, b, offsets, start, stop, batch.ways, tables, batch.totals[a:b]):
        return False
    weighted, alpha, marginals = messages_of(tables, n_states, offsets[-1])
    if batch.boundary.state[0] == GUARDS:
        guards, rows = batch.boundary.guards, batch.places.pieces[a:b]
        if batch.rows.shape[0] > 1:  # another tile may fail, and the update with it
            guards, rows = batch.guards, np.arange(a, b)
        leave(batch.boundary, guards, rows, lengths, offsets, weighted, alpha, marginals)
    sums.initial[:] = 0.0
    sums.pairs[:] = 0.0
    clear_sums(family, sums.emission)
    add_tile(family, seen, lanes, a, b, offsets, tables, sums)
    return True


@kernel
def _run_claimed(learned, seen, batch, progress, tables, number):
    """Work on the tile that a claimed number stands for."""
    n_tiles = batch.rows.shape[0]
    if not _run_stage(learned, seen, batch, tables, number % n_tiles, number // n_tiles % N_STAGES):
        raise_by(progress.failed, 1)
    raise_by(progress.done, 1)


@kernel
def _run_all(learned, seen, batch, progress, tables, stage):
    """Lead all threads through a stage of an update; return whether all tiles could be done."""
    n_tiles = batch.rows.shape[0]
    if n_tiles == 1:
        return _run_stage(learned, seen, batch, tables, 0, stage)
    limit = raise_by(progress.opened, n_tiles) + n_tiles
    number = claim_below(progress.claimed, limit)
    while number >= 0:
        _run_claimed(learned, seen, batch, progress, tables, number)
        number = claim_below(progress.claimed, limit)
    while look(progress.done) < limit:
        if look(progress.broken) > 0:
            return False
    return look(progress.failed) == 0


@kernel
def _help(learned, seen, batch, progress, tables):
    """Work on tiles as they are opened, until all is over or none has been opened for some time."""
    waited = 0
    while waited < PATIENCE and look(progress.over) == 0:
        number = claim_below(progress.claimed, look(progress.opened))
        waited = 0 if number >= 0 else waited + 1
        if number >= 0:
            _run_claimed(learned, seen, batch, progress, tables, number)


@small_kernel
def _blend_chain(rate, gains, rows, ways, chain):
    """Let the fresh counts of first states and of transitions enter the old ones."""
    n_states = ways.initial.shape[0]
    for j in range(n_states):
        fresh = 0.0
        for tile in range(rows.shape[0]):
            fresh += rows[tile, j]
        chain.first[0, j] = (1.0 - rate) * chain.first[0, j] + rate * (gains[0] * fresh)
        for k in range(n_states):
            fresh, at = 0.0, n_states + j * n_states + k
            for tile in range(rows.shape[0]):
                fresh += rows[tile, at]
            fresh *= ways.transition[j, k]
            chain.pairs[j, k] = (1.0 - rate) * chain.pairs[j, k] + rate * (gains[1] * fresh)


@small_kernel
def _keep_reach(boundary, reach):
    """Count the update and remember how far growing buffers have reached; return how far buffers did on the average."""
    total, most = 0, 0
    for lane in range(reach.shape[0]):
        total += reach[lane, 0] + reach[lane, 1]
        most = max(most, reach[lane, 0], reach[lane, 1])
    if boundary.state[0] == GROWING:
        boundary.state[1] = most
    boundary.state[2] += 1
    return 0.5 * total / reach.shape[0]


@kernel
def _lead(kind, learned, chain, units, batch, progress, tables, seen, found):
    """Do updates; return how many were done before one that needs the general method, or more room."""
    boundary, every = batch.boundary, batch.boundary.every
    for update in range(units.pieces.shape[0]):
        if boundary.kind == GROWING:
            boundary.state[0] = GROWING if boundary.state[2] % every == 0 else BUFFERS
        if boundary.state[0] == BUFFERS and batch.lanes.tiles[1] * boundary.state[1] > tables.positions.shape[0]:
            return update  # until there is room for buffers that have grown
        all_first = _choose(units, update, batch.lanes, batch.places)
        if not (_weigh_chain(kind, chain, batch.ways, batch.outside, all_first) and weigh_family(learned, kind)):
            return update
        for stage in (ENTER, RUN):
            if not _run_all(learned, seen, batch, progress, tables, stage):
                return update
        rate = units.rates[update]
        keep, gain = 1.0 - rate, rate * units.gains[2]
        _blend_chain(rate, units.gains, batch.rows, batch.ways, chain)
        batch.blend[0], batch.blend[1] = keep, gain
        begin_blend(learned, keep, gain)
        _run_all(learned, seen, batch, progress, tables, BLEND)
        end_blend(learned, keep, gain, batch.rows.shape[0])
        found.growths[update] = _keep_reach(boundary, batch.places.reach)
        for lane in range(batch.totals.shape[0]):
            found.since[0] += batch.totals[lane]
            found.since[1] += batch.lanes.lengths[lane]
    return units.pieces.shape[0]


@kernel
def run_updates(kind, learned, chain, units, batch, progress, tables, found):
    """Do one update after the other, or help the thread that does.

    Parameters
    ----------
    kind : how posteriors become weights
    learned : prior and sums of the emissions; see `learning.py`
    chain, units, found : see `engines.base`; the number of updates done is written to `found.done`
    batch, progress : as above
    tables : room for one thread, see `groups.py`
    """
    seen = observation_room(learned.likelihood, tables.positions.shape[0])
    control = flush_subnormals()
    if raise_by(progress.joined, 1) > 0:
        _help(learned, seen, batch, progress, tables)
    else:
        found.done[0] = _lead(kind, learned, chain, units, batch, progress, tables, seen, found)
        raise_by(progress.over, 1)
    restore_subnormals(control)
