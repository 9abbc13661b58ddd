"""The subchains of a minibatch in one call that does not hold Python's lock.

They are run between messages from outside, as lanes of tiles; see `engines.subchains`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.subnormals import flush_subnormals, restore_subnormals
from subchain.propagation.compiled import family_rare, kernel, small_kernel
from subchain.propagation.lanes.groups import cleared, messages_of, next_group, run_lanes
from subchain.propagation.lanes.observing import add_observations, observation_room
from subchain.propagation.lanes.sums import pair_sums, weigh
from subchain.propagation.layout import step_offsets
from subchain.propagation.underflow import LEAST_MARGINAL

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Subchains(NamedTuple):
    """The subchains of a minibatch, the longest first.

    Attributes
    ----------
    tiles : (T + 1,) where the lanes of each tile begin
    starts, lengths : (M,) first position and number of positions
    start, stop : (K, M) weights of the first states, and backward messages of the last positions
    first_weights : (M,) how often first states count: zero for subchains that do not begin their sequence
    weights, pair_weights : (M,) how often observations and transitions count; (0,) if all count once
    """

    tiles: Index
    starts: Index
    lengths: Index
    start: Array
    stop: Array
    first_weights: Array
    weights: Array
    pair_weights: Array


class Told(NamedTuple):
    """What is found of each subchain: its log likelihood (M,), and what it tells its neighbours, (K, M) each."""

    totals: Array
    first_message: Array
    last_message: Array
    first_marginal: Array
    last_marginal: Array


@small_kernel
def _tell(alpha, weighted, marginals, lengths, offsets, a, totals, told):
    """Keep what the lanes of a tile tell their neighbours."""
    for lane in range(lengths.shape[0]):
        last, column = offsets[lengths[lane] - 1] + lane, a + lane
        told.totals[column] = totals[lane]
        for k in range(alpha.shape[0]):
            told.first_message[k, column] = weighted[k, lane]
            told.last_message[k, column] = alpha[k, last]
            told.first_marginal[k, column] = marginals[k, lane]
            told.last_marginal[k, column] = marginals[k, last]


@small_kernel
def _all_meet(alpha, scale, stop, lengths, offsets):
    """Whether no message from the right contradicts what the lanes know."""
    for lane in range(lengths.shape[0]):
        column, meeting = offsets[lengths[lane] - 1] + lane, 0.0
        for k in range(alpha.shape[0]):
            meeting += alpha[k, column] * stop[k, lane]
        if not meeting * scale[column] >= LEAST_MARGINAL:
            return False
    return True


@family_rare
def _run_tile(family, seen, lanes, a, b, ways, tables, told, sums):
    """Run the lanes `a` to `b` of a tile; return whether that could be done."""
    n_states, lengths = lanes.start.shape[0], lanes.lengths[a:b]
    offsets, totals = step_offsets(lengths), np.empty(b - a)
    start, stop = lanes.start[:, a:b].copy(), lanes.stop[:, a:b].copy()
    if not run_lanes(family, seen, lanes.starts[a:b], offsets, start, stop, ways, True, tables, totals):
        return False
    weighted, alpha, marginals = messages_of(tables, n_states, offsets[-1])
    if not (np.isfinite(totals).all() and _all_meet(alpha, tables.scale, stop, lengths, offsets)):
        return False
    _tell(alpha, weighted, marginals, lengths, offsets, a, totals, told)
    for lane in range(b - a):
        for k in range(n_states):
            sums.initial[k] += lanes.first_weights[a + lane] * marginals[k, lane]
    if lanes.weights.shape[0] > 0:
        weigh(marginals, offsets, lanes.weights[a:b])
    if lanes.pair_weights.shape[0] > 0:
        weigh(weighted, offsets, lanes.pair_weights[a:b])
    pair_sums(alpha, weighted, offsets, sums.pairs)
    add_observations(family, seen, marginals, sums.emission)
    return True


@kernel
def run_subchains(family, lanes, claims, ways, tables, told, rows, done):
    """Claim groups of tiles and run them, until all are claimed.

    Parameters
    ----------
    family : observations and likelihoods of the emissions; see `observing.py`
    lanes : as above
    claims, ways, tables : as in `groups.py`
    told : output
    rows : (G, S) output, the sums of each group, transitions without the factor of their weights
    done : (T,) output, false for tiles that need another method: nothing was added for them
    """
    control, seen = flush_subnormals(), observation_room(family, tables.positions.shape[0])
    group = next_group(claims)
    while group >= 0:
        sums = cleared(rows[group], lanes.start.shape[0])
        for tile in range(claims.groups[group], claims.groups[group + 1]):
            a, b = lanes.tiles[tile], lanes.tiles[tile + 1]
            done[tile] = _run_tile(family, seen, lanes, a, b, ways, tables, told, sums)
        group = next_group(claims)
    restore_subnormals(control)
