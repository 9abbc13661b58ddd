"""Buffers that grow until a subchain's own ends no longer care.

What lies left of a subchain acts on its first state through a product of matrices, one a position; so does what lies
right of it on its last state. The products are kept, so that another position is one more factor and no new pass, and
so that the influence of whatever lies beyond can be read off them. (Whether the last growth has changed anything, which
is the published test, says less: an observation that tells nothing changes nothing.)
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

kernel = njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@kernel
def _normalize(matrix):
    total = matrix.sum()
    if total > 0.0:
        matrix /= total


@kernel
def multiply_through(likelihood, transition, columns, product):
    """Π diag(likelihood) · transition over the given columns, the last one without the transition; normalised."""
    n_states = transition.shape[0]
    product[:] = 0.0
    for k in range(n_states):
        product[k, k] = likelihood[k, columns[0]]
    for i in range(1, columns.shape[0]):
        moved = product @ transition
        for j in range(n_states):
            for k in range(n_states):
                product[j, k] = moved[j, k] * likelihood[k, columns[i]]
        _normalize(product)


@kernel
def extend_left(likelihood, transition, column, product):
    """Put one more position before those whose product is kept: diag(likelihood) · transition · product, in place."""
    n_states = transition.shape[0]
    moved = transition @ product
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = likelihood[j, column] * moved[j, k]
    _normalize(product)


@kernel
def extend_right(likelihood, transition, column, product):
    """Put one more position after those whose product is kept: product · transition · diag(likelihood), in place."""
    n_states = transition.shape[0]
    moved = product @ transition
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = moved[j, k] * likelihood[k, column]
    _normalize(product)


@kernel
def _apart(weights, other, total, other_total):
    """Total variation between two tables of weights, each divided by its sum."""
    change = 0.0
    for k in range(weights.shape[0]):
        change += abs(weights[k] / total - other[k] / other_total)
    return 0.5 * change


@kernel
def _influence(mixed, through, against, alone):
    """How much the beliefs of both ends would change if one far state were certain.

    `mixed` (K,) are the weights at this end and `through` (K,) those at the other, both from all far states together;
    row j of `alone` (K, 2 K) holds the same two from far state j alone. `against` (2 K,) are messages that meet them.
    """
    n_states = mixed.shape[0]
    near, far = mixed * against[:n_states], through * against[n_states:]
    near_total, far_total = near.sum(), far.sum()
    if not (near_total > 0.0 and far_total > 0.0):
        return 0.0
    largest = 0.0
    for j in range(n_states):
        near_alone, far_alone = alone[j, :n_states] * against[:n_states], alone[j, n_states:] * against[n_states:]
        total = near_alone.sum()
        if total > 0.0:
            largest = max(largest, _apart(near, near_alone, near_total, total))
            largest = max(largest, _apart(far, far_alone, far_total, far_alone.sum()))
    return largest


@kernel
def influence_of_the_rest(start, left, core, right, any_left, any_right):
    """How much what lies beyond the buffers could still change the beliefs of the subchain's first and last position.

    `start` (K,) are the weights of the first state beyond the left buffer, `left` the product over that buffer and the
    move that leads out of it, `core` the one over the subchain, `right` the one over the move into the right buffer and
    all of it. The answer is the largest total variation, over all single states beyond either buffer, between the
    beliefs as they are and as they were if that state were certain, added for both sides; nothing can change them more.
    `any_left` and `any_right` say whether anything lies there.
    """
    n_states = core.shape[0]
    into, out_of = start @ left, right.sum(axis=1)
    into_through, out_through = into @ core, core @ out_of
    from_left, from_right = left @ core, core @ right
    alone = np.empty((n_states, 2 * n_states))
    alone[:, :n_states], alone[:, n_states:] = left, from_left
    of_left, of_right = 0.0, 0.0
    if any_left:
        of_left = _influence(into, into_through, np.concatenate((out_through, out_of)), alone)
    alone[:, :n_states], alone[:, n_states:] = right.T, from_right.T
    if any_right:
        of_right = _influence(out_of, out_through, np.concatenate((into_through, into)), alone)
    return of_left + of_right


@kernel
def grow_lane(
    likelihood_left, likelihood_right, at, room_left, room_right, end_left, end_right, transition, stationary, initial,
    left, core, right, grown, step, tolerance, limit,
):  # fmt: skip
    """Extend the buffers of one subchain, as far as the given likelihoods go; return whether that is enough.

    Parameters
    ----------
    likelihood_left, likelihood_right : (K, n), of positions at growing distance, from column `at` on
    room_left, room_right : how many of them there are
    end_left, end_right : how far away the ends of the sequence are
    left, core, right : (K, K) products, the outer ones changed in place
    grown : (2,) positions on either side, in place
    step, tolerance, limit : positions a growth, largest influence of what is beyond, largest buffer
    """
    used_left = used_right = 0
    while True:
        if (grown[0] >= end_left and grown[1] >= end_right) or max(grown[0], grown[1]) >= limit:
            return True
        any_left, any_right = grown[0] < end_left, grown[1] < end_right
        start = stationary if any_left else initial
        if influence_of_the_rest(start, left, core, right, any_left, any_right) <= tolerance:
            return True
        wanted_left = min(step, end_left - grown[0], limit - grown[0])
        wanted_right = min(step, end_right - grown[1], limit - grown[1])
        if used_left + wanted_left > room_left or used_right + wanted_right > room_right:
            return False
        for _ in range(wanted_left):
            extend_left(likelihood_left, transition, at + used_left, left)
            used_left += 1
        for _ in range(wanted_right):
            extend_right(likelihood_right, transition, at + used_right, right)
            used_right += 1
        grown[0] += wanted_left
        grown[1] += wanted_right


@kernel
def into_and_out_of(start, left, right, into, out_of):
    """Weights of a subchain's first state and backward message of its last, each summing to one."""
    into[:] = 0.0
    out_of[:] = 0.0
    for j in range(start.shape[0]):
        for k in range(start.shape[0]):
            into[k] += start[j] * left[j, k]
            out_of[j] += right[j, k]
    _normalize(into)
    _normalize(out_of)
