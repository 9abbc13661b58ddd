# mypy: disable-error-code="no-untyped-def"
"""Forward and backward passes restricted to the legal states of each position.

Where a tag dictionary or labels leave one or two of many states, a step between neighbouring positions takes a few
products instead of K². Tables become lists: entry e belongs to state `states[e]` of the position t with
`offsets[t] <= e < offsets[t + 1]`. Given the state of a position with a single legal state, past and future are
independent; such positions divide a long chain into *pieces* that are computed separately without approximation. A
piece begins its sequence, or follows a position with a single legal state.

Scaling is as in `lanes`. Scaled passes that underflow are reported, not repaired. Best paths are computed in log space
(`paths.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import kernel, part, small_kernel
from subchain.propagation.lanes.recursions import LARGEST_PRODUCT, LEAST_PRODUCT
from subchain.propagation.precision import LARGEST
from subchain.propagation.underflow import LEAST_MARGINAL, LEAST_SCALE

Index = NDArray[np.int64]

#: Smallest positive double: likelihoods above zero are not allowed to underflow to zero.
LEAST = 5e-324
#: Whole matrix rows are used if the longer list exceeds this share of all states, and there are more transitions.
LONG, MANY_TRANSITIONS = 1 / 8, 24


class Lists(NamedTuple):
    """Legal states of n positions, and the P pieces of chains that they form.

    Attributes
    ----------
    offsets : (n + 1,) first entry of each position
    states : (nnz,) legal states, rising within each position
    starts, stops : (P,) first position of each piece, and the one after its last; no piece is empty
    before : (P,) the single legal state of the position before each piece, −1 if the piece begins its sequence
    """

    offsets: Index
    states: NDArray[np.int32]
    starts: Index
    stops: Index
    before: Index


# ---- likelihoods -----------------------------------------------------------------------------------------------------


@kernel
def weigh_states(likelihood, log_weights, offsets, shift):
    """Multiply likelihoods (nnz,) by exp(log_weights), scaled by the largest of each position; add its log to `shift`.

    Likelihoods above zero stay above zero.
    """
    for position in range(offsets.shape[0] - 1):
        first, stop = offsets[position], offsets[position + 1]
        best = log_weights[first]
        for e in range(first + 1, stop):
            best = max(best, log_weights[e])
        shift[position] += best
        for e in range(first, stop):
            if likelihood[e] > 0.0:
                likelihood[e] = max(likelihood[e] * np.exp(log_weights[e] - best), LEAST)


# ---- long lists ------------------------------------------------------------------------------------------------------
#
# Between short lists the passes loop over single transitions: copying a row costs more than a few products. If a list
# is long, whole matrix rows are used, which vectorise; if its states follow one another, stretches of rows.


@part
def _is_far(n_sources, n_targets, n_states):
    """Return whether whole matrix rows are faster than single transitions."""
    return n_sources * n_targets > MANY_TRANSITIONS and max(n_sources, n_targets) > LONG * n_states


@small_kernel
def _spread(values, first, stop, states, row):
    """Write the entries from `first` to `stop` into `row` (K,), with zeros for all other states."""
    row[:] = 0.0
    for e in range(first, stop):
        row[states[e]] = values[e]


@small_kernel
def _carry_far(values, first, stop, states, matrix, transposed, out, begin, end, row):
    """Set out[e] = Σ_f values[f] · matrix[states[f], states[e]], f from `first` to `stop`, e from `begin` to `end`.

    With more sources than targets, the sources are written into a row (K,) and multiplied by the row of each target;
    otherwise the rows of the sources are summed with weights, and each target reads its entry. `row` (K,) is workspace.
    """
    if stop - first >= end - begin:
        _spread(values, first, stop, states, row)
        for e in range(begin, end):
            other, total = transposed[states[e]], 0.0
            for k in range(row.shape[0]):
                total += other[k] * row[k]
            out[e] = total
    else:
        row[:] = 0.0
        for f in range(first, stop):
            other, value = matrix[states[f]], values[f]
            for k in range(row.shape[0]):
                row[k] += value * other[k]
        for e in range(begin, end):
            out[e] = row[states[e]]


@part
def _is_run(first, stop, states):
    """Return whether listed states follow one another, as the states of a group do."""
    return states[stop - 1] - states[first] == stop - 1 - first


@small_kernel
def _carry_run(values, first, stop, states, transposed, out, begin, end):
    """Set out[e] as `_carry_far` does, for sources that follow one another: a product with a stretch of each row."""
    source = states[first]
    for e in range(begin, end):
        other, total = transposed[states[e]], 0.0
        for f in range(stop - first):
            total += other[source + f] * values[first + f]
        out[e] = total


@small_kernel
def _add_run(alpha, before, weighted, first, stop, states, sums):
    """Add as `_add_far` does, for targets that follow one another."""
    target = states[first]
    for f in range(before, first):
        other, value = sums[states[f]], alpha[f]
        for e in range(stop - first):
            other[target + e] += value * weighted[first + e]


@small_kernel
def _add_far(alpha, before, weighted, first, stop, states, sums, row):
    """Add alpha[f] · weighted[e] to sums[states[f], states[e]], row by row.

    f runs from `before` to `first`, e from `first` to `stop`.
    """
    _spread(weighted, first, stop, states, row)
    for f in range(before, first):
        other, value = sums[states[f]], alpha[f]
        for k in range(row.shape[0]):
            other[k] += value * row[k]


# ---- forward ---------------------------------------------------------------------------------------------------------


@kernel
def forward(likelihood, transition, transposed, initial, lists, alpha, scale):
    """Compute the filtered marginals of all positions.

    Parameters
    ----------
    likelihood : (nnz,)
    transition, transposed : (K, K) the transition matrix, and its transpose
    initial : (K,)
    lists : Lists
    alpha : (nnz,) output; the entries of each position sum to one
    scale : (n,) output, the normalisers; zero where the chain is impossible
    """
    offsets, states = lists.offsets, lists.states
    n_states = initial.shape[0]
    row = np.empty(n_states)
    for piece in range(lists.starts.shape[0]):
        start = lists.starts[piece]
        weights = initial if lists.before[piece] < 0 else transition[lists.before[piece]]
        for position in range(start, lists.stops[piece]):
            first, stop = offsets[position], offsets[position + 1]
            before = first if position == start else offsets[position - 1]
            is_many = (first - before) * (stop - first) > MANY_TRANSITIONS
            is_run = is_many and _is_run(before, first, states)
            is_far = is_run or _is_far(first - before, stop - first, n_states)
            if is_run:
                _carry_run(alpha, before, first, states, transposed, alpha, first, stop)
            elif is_far:
                _carry_far(alpha, before, first, states, transition, transposed, alpha, first, stop, row)
            norm = 0.0
            for e in range(first, stop):
                k, predicted = states[e], 0.0
                if is_far:
                    predicted = alpha[e]
                elif position == start:
                    predicted = weights[k]
                else:
                    for f in range(before, first):
                        predicted += alpha[f] * transition[states[f], k]
                alpha[e] = predicted * likelihood[e]
                norm += alpha[e]
            scale[position] = norm
            inverse = 1.0 / norm if norm > 0.0 else 0.0
            for e in range(first, stop):
                alpha[e] *= inverse


@kernel
def log_totals(scale, shift, lists, out):
    """Write the log normaliser of each piece into `out` (P,); nan if a scale factor underflows (`LEAST_SCALE`).

    Scale factors are multiplied as long as their product neither under- nor overflows, so that few logs are taken.
    """
    for piece in range(lists.starts.shape[0]):
        total, product, least = 0.0, 1.0, np.inf
        for position in range(lists.starts[piece], lists.stops[piece]):
            total += shift[position]
            product *= scale[position]
            least = min(least, scale[position])
            if not LEAST_PRODUCT <= product <= LARGEST_PRODUCT:
                total += np.log(product)
                product = 1.0
        out[piece] = total + np.log(product) if least >= LEAST_SCALE else np.nan


@kernel
def lost(likelihood, transition, initial, lists, alpha, out):
    """Write into `out` (P,) whether the filtered marginal of a reachable state underflows in each piece.

    Later observations may be possible from such a state only, so that the scaled pass is unreliable.
    """
    offsets, states = lists.offsets, lists.states
    for piece in range(lists.starts.shape[0]):
        start = lists.starts[piece]
        weights = initial if lists.before[piece] < 0 else transition[lists.before[piece]]
        out[piece] = False
        for position in range(start, lists.stops[piece]):
            first = offsets[position]
            for e in range(first, offsets[position + 1]):
                if not (alpha[e] < LEAST_MARGINAL and likelihood[e] > 0.0):
                    continue
                if position == start:
                    out[piece] |= weights[states[e]] > 0.0
                else:
                    for f in range(offsets[position - 1], first):
                        out[piece] |= alpha[f] > 0.0 and transition[states[f], states[e]] > 0.0


# ---- backward --------------------------------------------------------------------------------------------------------


@kernel
def backward(likelihood, transition, transposed, lists, alpha, scale, marginals):
    """Compute the posterior marginals of all positions, and the weighted backward messages for `pair_sums`.

    Parameters
    ----------
    likelihood : (nnz,) in: likelihoods; out: likelihood · β / scale, zero for states with alpha zero
    transition, transposed : (K, K) the transition matrix, and its transpose
    lists : Lists
    alpha, scale : as written by `forward`
    marginals : (nnz,) output; the entries of each position sum to one
    """
    offsets, states = lists.offsets, lists.states
    n_states = transition.shape[0]
    row = np.empty(n_states)
    for piece in range(lists.starts.shape[0]):
        last = lists.stops[piece] - 1
        for position in range(last, lists.starts[piece] - 1, -1):
            first, stop = offsets[position], offsets[position + 1]
            after = stop if position == last else offsets[position + 2]
            is_many = (stop - first) * (after - stop) > MANY_TRANSITIONS
            is_run = is_many and _is_run(stop, after, states)
            is_far = is_run or _is_far(stop - first, after - stop, n_states)
            if is_run:
                _carry_run(likelihood, stop, after, states, transition, marginals, first, stop)
            elif is_far:
                _carry_far(likelihood, stop, after, states, transposed, transition, marginals, first, stop, row)
            total = 0.0
            for e in range(first, stop):
                j, message = states[e], 0.0
                if is_far:
                    message = marginals[e]
                elif position == last:
                    message = 1.0
                else:
                    for f in range(stop, after):
                        message += transition[j, states[f]] * likelihood[f]
                marginals[e] = alpha[e] * message
                total += marginals[e]
                likelihood[e] = likelihood[e] * message if alpha[e] > 0.0 else 0.0
            inverse = 1.0 / total if total > 0.0 else 0.0
            factor = inverse / scale[position] if scale[position] > 0.0 else 0.0
            for e in range(first, stop):
                marginals[e] *= inverse
                likelihood[e] = min(likelihood[e] * factor, LARGEST[0])


@kernel
def pair_sums(alpha, weighted, lists, sums):
    """Add Σ α_{t−1} ⊗ weighted_t to `sums` (K, K); times the transition matrix, these are expected transitions.

    The transition from the single legal state before a piece belongs to the piece.
    """
    offsets, states = lists.offsets, lists.states
    row = np.empty(sums.shape[0])
    for piece in range(lists.starts.shape[0]):
        start, known = lists.starts[piece], lists.before[piece]
        if known >= 0:
            for e in range(offsets[start], offsets[start + 1]):
                sums[known, states[e]] += weighted[e]
        for position in range(start + 1, lists.stops[piece]):
            before, first, stop = offsets[position - 1], offsets[position], offsets[position + 1]
            is_many = (first - before) * (stop - first) > MANY_TRANSITIONS
            if is_many and _is_run(first, stop, states):
                _add_run(alpha, before, weighted, first, stop, states, sums)
            elif is_many and stop - first > LONG * row.shape[0]:
                _add_far(alpha, before, weighted, first, stop, states, sums, row)
            else:
                for f in range(before, first):
                    for e in range(first, stop):
                        sums[states[f], states[e]] += alpha[f] * weighted[e]


@kernel
def weigh(entries, lists, weights):
    """Multiply the entries (nnz,) of each piece by its weight, `weights` (P,), in place."""
    for piece in range(lists.starts.shape[0]):
        for e in range(lists.offsets[lists.starts[piece]], lists.offsets[lists.stops[piece]]):
            entries[e] *= weights[piece]


@kernel
def first_states(marginals, lists, sums):
    """Add the marginals of the first position of each sequence to `sums` (K,)."""
    for piece in range(lists.starts.shape[0]):
        if lists.before[piece] < 0:
            start = lists.starts[piece]
            for e in range(lists.offsets[start], lists.offsets[start + 1]):
                sums[lists.states[e]] += marginals[e]


# ---- tables ----------------------------------------------------------------------------------------------------------


@kernel
def spread(entries, lists, out):
    """Write entries into the rows of a table (n, K), with zeros for states that are not legal."""
    for position in range(lists.offsets.shape[0] - 1):
        for k in range(out.shape[1]):
            out[position, k] = 0.0
        for e in range(lists.offsets[position], lists.offsets[position + 1]):
            out[position, lists.states[e]] = entries[e]


@kernel
def best_states(entries, lists, out):
    """Write the state with the largest entry of each position into `out` (n,); ties go to the lowest state."""
    for position in range(lists.offsets.shape[0] - 1):
        best = lists.offsets[position]
        for e in range(best + 1, lists.offsets[position + 1]):
            if entries[e] > entries[best]:
                best = e
        out[position] = lists.states[best]


@kernel
def entries_of(entries, lists, states, out):
    """Write the entry of a given state of each position, `states` (n,), into `out` (n,); zero if it is not legal."""
    for position in range(lists.offsets.shape[0] - 1):
        out[position] = 0.0
        for e in range(lists.offsets[position], lists.offsets[position + 1]):
            if lists.states[e] == states[position]:
                out[position] = entries[e]
