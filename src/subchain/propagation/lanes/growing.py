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

#: Up to so many states products are plain loops.
FEW = 32

kernel = njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@kernel
def _normalize(matrix):
    total = matrix.sum()
    if total > 0.0:
        matrix /= total


@kernel
def _product(a, b):
    """Matrix product by plain loops, which beat a library call for the few states of most chains."""
    n_states = a.shape[0]
    if n_states > FEW:
        return a @ b
    out = np.zeros((n_states, n_states))
    for i in range(n_states):
        for j in range(n_states):
            weight = a[i, j]
            for k in range(n_states):
                out[i, k] += weight * b[j, k]
    return out


@kernel
def multiply_through(likelihood, transition, columns, product):
    """Π diag(likelihood) · transition over the given columns, the last one without the transition; normalised."""
    n_states = transition.shape[0]
    product[:] = 0.0
    for k in range(n_states):
        product[k, k] = likelihood[k, columns[0]]
    for i in range(1, columns.shape[0]):
        moved = _product(product, transition)
        for j in range(n_states):
            for k in range(n_states):
                product[j, k] = moved[j, k] * likelihood[k, columns[i]]
        _normalize(product)


@kernel
def extend_left(likelihood, transition, column, product):
    """Put one more position before those whose product is kept: diag(likelihood) · transition · product, in place."""
    n_states = transition.shape[0]
    moved = _product(transition, product)
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = likelihood[j, column] * moved[j, k]
    _normalize(product)


@kernel
def extend_right(likelihood, transition, column, product):
    """Put one more position after those whose product is kept: product · transition · diag(likelihood), in place."""
    n_states = transition.shape[0]
    moved = _product(product, transition)
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = moved[j, k] * likelihood[k, column]
    _normalize(product)


@kernel
def _largest_distance(marginals, weights, rows):
    """Largest total variation between marginals (K,) and each row of `rows` (K, K) times `weights` (K,), normalised.

    Rows that come to nothing are left out.
    """
    n_states = marginals.shape[0]
    largest = 0.0
    for j in range(n_states):
        total = 0.0
        for k in range(n_states):
            total += rows[j, k] * weights[k]
        if total > 0.0:
            apart = 0.0
            for k in range(n_states):
                apart += abs(marginals[k] - rows[j, k] * weights[k] / total)
            largest = max(largest, 0.5 * apart)
    return largest


@kernel
def _marginals(weights, others):
    """Two messages about one position, multiplied and normalised."""
    both = weights * others
    total = both.sum()
    return both / total if total > 0.0 else both


@kernel
def influence_of_the_rest(start, left, core, right, any_left, any_right):
    """How much what lies beyond the buffers could still change the marginals of the subchain's first and last position.

    `start` (K,) are the weights of the outermost state of the left buffer, `left` the product over that buffer and the
    move that leads out of it, `core` the one over the subchain, `right` the one over the move into the right buffer and
    all of it. The answer is the largest total variation, over all single states at the outer end of either buffer,
    between the marginals as they are and as they were if that state were certain, added for both sides; nothing can
    change them more.
    `any_left` and `any_right` say whether anything lies there.
    """
    into, out_of = start @ left, right.sum(axis=1)
    into_through, out_through = into @ core, core @ out_of
    first, last = _marginals(into, out_through), _marginals(into_through, out_of)
    of_left, of_right = 0.0, 0.0
    if any_left:
        of_left = _largest_distance(first, out_through, left)
        of_left = max(of_left, _largest_distance(last, out_of, _product(left, core)))
    if any_right:
        of_right = _largest_distance(last, into_through, np.ascontiguousarray(right.T))
        of_right = max(of_right, _largest_distance(first, into, np.ascontiguousarray(_product(core, right).T)))
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
