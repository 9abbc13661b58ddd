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
from subchain.propagation.lanes.groups import cleared, losses, messages_of, next_group, run_backward, run_forward
from subchain.propagation.lanes.observing import add_observations, observation_room
from subchain.propagation.lanes.sums import pair_sums, weigh
from subchain.propagation.layout import step_offsets
from subchain.propagation.underflow import LEAST_MARGINAL, LOG_MATTERS

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
    lanes = lengths.shape[0]
    columns, meeting = np.empty(lanes, dtype=np.int64), np.zeros(lanes)
    for lane in range(lanes):
        columns[lane] = offsets[lengths[lane] - 1] + lane
    for k in range(alpha.shape[0]):
        for lane in range(lanes):
            meeting[lane] += alpha[k, columns[lane]] * stop[k, lane]
    meet = 0
    for lane in range(lanes):
        meet += meeting[lane] * scale[columns[lane]] >= LEAST_MARGINAL
    return meet == lanes


@small_kernel
def _lose(lanes, a, b, offsets, start, stop, ways, tables):
    """Whether any of the lanes `a` to `b`, which have been run forward, loses to underflow what may matter.

    See `Growth.matters_before`.
    """
    begins, n_states = np.zeros(b - a, dtype=np.bool_), start.shape[0]
    found = losses(lanes.starts[a:b], lanes.lengths[a:b], offsets, start, begins, ways, tables)
    alpha = messages_of(tables, n_states, offsets[-1])[1]
    for lane in range(b - a):
        if found.own_highest[lane] > LOG_MATTERS:
            return True
        if found.own[lane] == -np.inf:
            continue
        last, meeting, most = offsets[lanes.lengths[a + lane] - 1] + lane, 0.0, 0.0
        for k in range(n_states):
            meeting += alpha[k, last] * stop[k, lane]
            most = max(most, stop[k, lane])
        if not found.own[lane] + np.log(most) - np.log(meeting) <= LOG_MATTERS:
            return True
    return False


@family_rare
def run_tile(family, seen, lanes, a, b, offsets, start, stop, ways, tables, totals):
    """Run the lanes `a` to `b` between messages; return whether that could be done, and their log likelihoods."""
    if not run_forward(family, seen, lanes.starts[a:b], offsets, start, ways, tables, totals):
        return False
    if ways.steps.shape[0] > 0 and _lose(lanes, a, b, offsets, start, stop, ways, tables):
        return False
    run_backward(offsets, stop, ways, tables)
    alpha = messages_of(tables, start.shape[0], offsets[-1])[1]
    return np.isfinite(totals).all() and _all_meet(alpha, tables.scale, stop, lanes.lengths[a:b], offsets)


@family_rare
def add_tile(family, seen, lanes, a, b, offsets, tables, sums):
    """Add the statistics of lanes `a` to `b`, which have been run."""
    n_states = sums.initial.shape[0]
    weighted, alpha, marginals = messages_of(tables, n_states, offsets[-1])
    for lane in range(b - a):
        weight = lanes.first_weights[a + lane]
        if weight != 0.0:
            for k in range(n_states):
                sums.initial[k] += weight * marginals[k, lane]
    if lanes.weights.shape[0] > 0:
        weigh(marginals, offsets, lanes.weights[a:b])
    if lanes.pair_weights.shape[0] > 0:
        weigh(weighted, offsets, lanes.pair_weights[a:b])
    pair_sums(alpha, weighted, offsets, sums.pairs)
    add_observations(family, seen, marginals, sums.emission)


@family_rare
def _run_and_add(family, seen, lanes, a, b, ways, tables, told, sums):
    """Run the lanes `a` to `b` of a tile and add what they give; return whether that could be done."""
    lengths, totals = lanes.lengths[a:b], np.empty(b - a)
    offsets = step_offsets(lengths)
    start, stop = lanes.start[:, a:b].copy(), lanes.stop[:, a:b].copy()
    if not run_tile(family, seen, lanes, a, b, offsets, start, stop, ways, tables, totals):
        return False
    weighted, alpha, marginals = messages_of(tables, start.shape[0], offsets[-1])
    _tell(alpha, weighted, marginals, lengths, offsets, a, totals, told)
    add_tile(family, seen, lanes, a, b, offsets, tables, sums)
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
            done[tile] = _run_and_add(family, seen, lanes, a, b, ways, tables, told, sums)
        group = next_group(claims)
    restore_subnormals(control)
