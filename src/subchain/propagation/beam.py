"""Paths through a chain with endlessly many states, of which slices leave few (Van Gael et al. 2008).

Every transition has a slice, uniform between zero and its own probability. Given the slices, a path is possible if each
of its transitions is more probable than the slice there, and all possible paths are equally probable but for what is
observed. So few states have to be looked at, and all others, however many, cannot be reached. Filtered marginals are
kept for the states that were reached alone. Which of them lead onwards is only known at the next slice, so that none is
too improbable to matter: marginals that are zero to rounding, which are rare, are kept in log space.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.random import stream, uniform
from subchain.propagation.compiled import ordered_kernel as kernel
from subchain.propagation.compiled import ordered_part as part

Array = NDArray[np.float64]

#: Marginals that are smaller are kept in log space.
FAINT = 1e-290


class Ranked(NamedTuple):
    """Transitions of each row from the most probable on: `targets` (K + 1, K) and their probabilities `moves`."""

    targets: NDArray[np.int32]
    moves: Array


class Reached(NamedTuple):
    """States that were reached at neighbouring positions.

    Attributes
    ----------
    offsets : (n + 1,) where each position's states begin
    states : (nnz,)
    marginals : (nnz,) the largest of a position being one; 0 where it is less than `FAINT`
    logs : (nnz,) logarithms of marginals that are less
    """

    offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    marginals: Array
    logs: Array


class Likelihoods(NamedTuple):
    """Likelihoods (R, K) in log space, and each row divided by its largest."""

    logs: Array
    scaled: Array


def nothing_reached() -> Reached:
    """What was reached before the first position of all."""
    return Reached(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0))


def rank(moves: Array) -> Ranked:
    """Sort transitions (K + 1, K) by their probability."""
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


@part
def _log_sum(one, other):
    """log(exp(one) + exp(other))."""
    if one == -np.inf:
        return other
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


@part
def _set_largest_to_one(marginals, logs, low, high, largest):
    """Divide the marginals of a position by their largest; where all are faint they come out of the dark."""
    highest, any_faint = -np.inf, False
    for e in range(low, high):
        if marginals[e] == 0.0:
            any_faint, highest = True, max(highest, logs[e])
        else:
            marginals[e] /= largest
    if any_faint:
        shift = highest if largest == 0.0 else math.log(largest)
        for e in range(low, high):
            if marginals[e] == 0.0:
                logs[e] -= shift
                if logs[e] > math.log(FAINT):
                    marginals[e] = math.exp(logs[e])


@kernel
def reach(ranked, slices, begins, table, rows, first, before):
    """Filter neighbouring positions.

    Parameters
    ----------
    ranked : Ranked
    slices, begins : as for `draw_slices`
    table, rows : Likelihoods, and the row of each of the n positions
    first : where the n positions begin
    before : Reached, of which the last position is the one before; whatever if a sequence begins

    Returns
    -------
    reached : Reached at the n positions
    possible : whether any state was reached everywhere
    """
    n, n_states = rows.shape[0], ranked.moves.shape[1]
    offsets, room = np.zeros(n + 1, np.int64), 4 * n + n_states
    states, marginals, logs = np.empty(room, np.int32), np.empty(room), np.empty(room)
    total, dark = np.zeros(n_states), np.full(n_states, -np.inf)
    source, low, high = Reached(offsets, np.array([n_states], np.int32), np.ones(1), np.zeros(1)), 0, 1
    nowhere = source
    for i in range(n):
        if begins[first + i]:
            source, low, high = nowhere, 0, 1
        elif i == 0:
            source, low, high = before, before.offsets[before.offsets.shape[0] - 2], before.states.shape[0]
        else:
            source, low, high = Reached(offsets, states, marginals, logs), offsets[i - 1], offsets[i]
        level, any_dark = slices[first + i], False
        for e in range(low, high):
            state, marginal, place = source.states[e], source.marginals[e], 0
            if marginal > 0.0:
                while place < n_states and ranked.moves[state, place] > level:
                    total[ranked.targets[state, place]] += marginal
                    place += 1
            else:
                any_dark = True
                while place < n_states and ranked.moves[state, place] > level:
                    k = ranked.targets[state, place]
                    dark[k] = _log_sum(dark[k], source.logs[e])
                    place += 1
        end, largest, row = offsets[i], 0.0, rows[i]
        if end + n_states > room:
            room = 2 * room + n_states
            more, more_marginals, more_logs = np.empty(room, np.int32), np.empty(room), np.empty(room)
            more[:end], more_marginals[:end], more_logs[:end] = states[:end], marginals[:end], logs[:end]
            states, marginals, logs = more, more_marginals, more_logs
        for k in range(n_states):
            if total[k] == 0.0 and not (any_dark and dark[k] > -np.inf):
                continue
            marginal, log = total[k] * table.scaled[row, k], 0.0
            if marginal < FAINT:
                log = (math.log(total[k]) if total[k] > 0.0 else dark[k]) + table.logs[row, k]
                marginal = 0.0
            total[k], dark[k] = 0.0, -np.inf
            if log > -np.inf:
                states[end], marginals[end], logs[end] = k, marginal, log
                end += 1
                largest = max(largest, marginal)
        if end == offsets[i]:
            return Reached(offsets, states, marginals, logs), False
        _set_largest_to_one(marginals, logs, offsets[i], end, largest)
        offsets[i + 1] = end
    return Reached(offsets, states[: offsets[n]], marginals[: offsets[n]], logs[: offsets[n]]), True


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
    weights, entries = np.empty(moves.shape[1]), np.empty(moves.shape[1], np.int64)
    for i in range(reached.offsets.shape[0] - 2, -1, -1):
        position, is_last = first + i, begins[first + i + 1]
        following = 0 if is_last else states[position + 1]
        level = 0.0 if is_last else slices[position + 1]
        count, total = 0, 0.0
        for e in range(reached.offsets[i], reached.offsets[i + 1]):
            if is_last or moves[reached.states[e], following] > level:
                entries[count], weights[count] = e, reached.marginals[e]
                total += weights[count]
                count += 1
        if total == 0.0:
            highest = -np.inf
            for j in range(count):
                highest = max(highest, reached.logs[entries[j]])
            for j in range(count):
                weights[j] = math.exp(reached.logs[entries[j]] - highest)
                total += weights[j]
        point, so_far = uniform(begin, n_all + position) * total, 0.0
        for j in range(count):
            if weights[j] > 0.0:
                states[position] = reached.states[entries[j]]
                so_far += weights[j]
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
