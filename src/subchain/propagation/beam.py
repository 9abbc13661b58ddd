"""Paths through a chain with endlessly many states, of which slices leave few (Van Gael et al. 2008).

Every move has a slice, uniform between zero and its own probability. Given the slices, a path is possible if each of
its moves is more probable than the slice there, and all possible paths are equally probable but for what is observed.
So few states have to be looked at, and all others, however many, cannot be reached. Filtered beliefs are kept for the
states that were reached alone, in logarithms: which states lead onwards is only known at the next slice, so that none
is too improbable to matter.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.collapsed import kernel, stream, uniform

Array = NDArray[np.float64]


class Ranked(NamedTuple):
    """Moves of each row from the most probable on: `targets` (K + 1, K) and their probabilities `moves`."""

    targets: NDArray[np.int32]
    moves: Array


class Reached(NamedTuple):
    """States that were reached at neighbouring positions, position i's from offsets[i] on, and their log beliefs."""

    offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    logs: Array


def rank(moves: Array) -> Ranked:
    """Sort moves (K + 1, K) by their probability."""
    order = np.argsort(-moves, axis=1, kind="stable")
    return Ranked(order.astype(np.int32), np.take_along_axis(moves, order, axis=1))


@kernel
def draw_slices(moves, states, begins, key, sweep, slices):
    """Draw a slice for every position.

    Parameters
    ----------
    moves : (K + 1, K) probabilities; row K for first states
    states : (N,)
    begins : (N + 1,) whether a sequence begins at the position
    key, sweep : which random numbers to use
    slices : (N,) output

    Returns
    -------
    The smallest slice; 1 if there is none.
    """
    begin, least, first = stream(key, sweep), 1.0, moves.shape[1]
    for position in range(states.shape[0]):
        before = first if begins[position] else states[position - 1]
        slices[position] = uniform(begin, position) * moves[before, states[position]]
        least = min(least, slices[position])
    return least


@kernel
def reach(ranked, slices, begins, table, rows, first, before):
    """Filter neighbouring positions.

    Parameters
    ----------
    ranked : Ranked
    slices, begins : as for `draw_slices`
    table, rows : (R, K) log likelihoods, and the row of each of the n positions
    first : where the n positions begin
    before : Reached, of which the last position is the one before; whatever if a sequence begins

    Returns
    -------
    reached : Reached at the n positions
    possible : whether any state was reached everywhere
    """
    n, n_states = rows.shape[0], ranked.moves.shape[1]
    offsets = np.zeros(n + 1, np.int64)
    states, logs = np.empty(4 * n + n_states, np.int32), np.empty(4 * n + n_states)
    largest, total = np.full(n_states, -np.inf), np.zeros(n_states)
    active = np.empty(n_states, np.int32)
    start = np.array([n_states], np.int32), np.zeros(1)
    for i in range(n):
        if begins[first + i]:
            from_states, from_logs = start
        elif i == 0:
            low = before.offsets[before.offsets.shape[0] - 2]
            from_states, from_logs = before.states[low:], before.logs[low:]
        else:
            from_states = states[offsets[i - 1] : offsets[i]]
            from_logs = logs[offsets[i - 1] : offsets[i]]
        count, level = 0, slices[first + i]
        for j in range(from_states.shape[0]):
            state, weight = from_states[j], from_logs[j]
            for place in range(n_states):
                if ranked.moves[state, place] <= level:
                    break
                k = ranked.targets[state, place]
                if total[k] == 0.0:
                    active[count] = k
                    count += 1
                    largest[k], total[k] = weight, 1.0
                elif weight <= largest[k]:
                    total[k] += math.exp(weight - largest[k])
                else:
                    total[k] = total[k] * math.exp(largest[k] - weight) + 1.0
                    largest[k] = weight
        end, best = offsets[i], -np.inf
        if end + count > states.shape[0]:
            more = np.empty(2 * states.shape[0] + count, np.int32), np.empty(2 * states.shape[0] + count)
            more[0][:end], more[1][:end] = states[:end], logs[:end]
            states, logs = more
        for j in range(count):
            k = active[j]
            log = largest[k] + table[rows[i], k]
            if total[k] > 1.0:
                log += math.log(total[k])
            total[k] = 0.0
            if log > -np.inf:
                states[end], logs[end] = k, log
                end += 1
                best = max(best, log)
        if end == offsets[i]:
            return Reached(offsets, states, logs), False
        for j in range(offsets[i], end):
            logs[j] -= best
        offsets[i + 1] = end
    return Reached(offsets, states[: offsets[n]], logs[: offsets[n]]), True


@kernel
def walk_back(moves, slices, begins, reached, key, sweep, first, states):
    """Draw the states of neighbouring positions from the last to the first, given those that follow.

    Parameters
    ----------
    moves, slices, begins, key, sweep : as for `draw_slices`
    reached : Reached, at positions `first` and those after it
    states : (N,) output there
    """
    begin, n_all = stream(key, sweep), states.shape[0]
    for i in range(reached.offsets.shape[0] - 2, -1, -1):
        position, low, high = first + i, reached.offsets[i], reached.offsets[i + 1]
        is_last = begins[position + 1]
        following = 0 if is_last else states[position + 1]
        level = 0.0 if is_last else slices[position + 1]
        best, total = -np.inf, 0.0
        for e in range(low, high):
            if is_last or moves[reached.states[e], following] > level:
                best = max(best, reached.logs[e])
        for e in range(low, high):
            if is_last or moves[reached.states[e], following] > level:
                total += math.exp(reached.logs[e] - best)
        point, so_far = uniform(begin, n_all + position) * total, 0.0
        for e in range(low, high):
            if is_last or moves[reached.states[e], following] > level:
                states[position] = reached.states[e]
                so_far += math.exp(reached.logs[e] - best)
                if so_far > point:
                    break


@kernel
def seat(counts, concentration, key, sweep, first, tables):
    """Draw how many tables customers sit at who come one by one and open a new one with odds (Antoniak 1974).

    Parameters
    ----------
    counts : (J, K) customers
    concentration : (J, K) weight of a new table, each of those that are taken weighing as much as sit there
    key, sweep, first : which random numbers to use, from number `first` on
    tables : (J, K) output
    """
    begin, number = stream(key, sweep), first
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            opened, weight = 0, concentration[j, k]
            for customer in range(int(counts[j, k])):
                opened += customer == 0 or uniform(begin, number) * (weight + customer) < weight
                number += 1
            tables[j, k] = opened
