"""Adaptive buffers: extend the buffer of a subchain until positions beyond it hardly influence the subchain.

The buffer to the left of a subchain acts on its first state through a product of matrices, one per position; so does
the buffer to the right on its last state. The products are stored, so that one more position is one more factor instead
of a new pass, and so that the influence of positions beyond the buffers can be bounded. (The published test is whether
the last extension changed the marginals; it is weaker, because an uninformative observation changes nothing.)
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.compilation import compiled

#: Largest number of states for which matrix products are plain loops.
FEW = 32

kernel = compiled(fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@kernel
def _normalize(matrix):
    """Divide by the sum of all entries, in place."""
    total = matrix.sum()
    if total > 0.0:
        matrix /= total


@kernel
def _product(a, b):
    """Return the matrix product a · b, (K, K); plain loops are faster than a library call for few states."""
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
    """Compute Π diag(likelihood) · transition over the given columns, without a transition after the last; normalised.

    `likelihood` is (K, n), `transition` (K, K), `columns` the indices of the positions, `product` (K, K) the output.
    """
    n_states = transition.shape[0]
    product[:] = 0.0
    for k in range(n_states):
        product[k, k] = likelihood[k, columns[0]]
    for i in range(1, columns.shape[0]):
        predicted = _product(product, transition)
        for j in range(n_states):
            for k in range(n_states):
                product[j, k] = predicted[j, k] * likelihood[k, columns[i]]
        _normalize(product)


@kernel
def extend_left(likelihood, transition, column, product):
    """Prepend one position to a product: diag(likelihood) · transition · product, normalised, in place."""
    n_states = transition.shape[0]
    predicted = _product(transition, product)
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = likelihood[j, column] * predicted[j, k]
    _normalize(product)


@kernel
def extend_right(likelihood, transition, column, product):
    """Append one position to a product: product · transition · diag(likelihood), normalised, in place."""
    n_states = transition.shape[0]
    predicted = _product(product, transition)
    for j in range(n_states):
        for k in range(n_states):
            product[j, k] = predicted[j, k] * likelihood[k, column]
    _normalize(product)


@kernel
def _largest_distance(marginals, weights, rows):
    """Return the largest total variation distance between `marginals` (K,) and rows[j] · weights, normalised, over j.

    `rows` is (K, K), `weights` (K,). Rows whose product is zero are left out.
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
    """Return the normalised product of two messages (K,) at one position."""
    both = weights * others
    total = both.sum()
    return both / total if total > 0.0 else both


@kernel
def influence_of_the_rest(start, left, core, right, any_left, any_right):
    """Bound the influence of positions beyond the buffers on the marginals of the subchain's first and last position.

    The bound is the largest total variation distance between the present marginals and those with a known state at the
    outer end of a buffer, over all such states, added for both sides.

    Parameters
    ----------
    start : (K,) weights of the outermost state of the left buffer
    left : (K, K) product over the left buffer and the transition out of it
    core : (K, K) product over the subchain
    right : (K, K) product over the transition into the right buffer and that buffer
    any_left, any_right : whether the sequence extends beyond the left and the right buffer
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
    """Extend the buffers of one subchain, as far as the given likelihoods reach; return whether they are long enough.

    Parameters
    ----------
    likelihood_left, likelihood_right : (K, n) likelihoods of positions at growing distance, from column `at` on
    room_left, room_right : number of these positions
    end_left, end_right : number of positions of the sequence on either side of the subchain
    stationary, initial : (K,) weights of the outermost state inside a sequence, and at its beginning
    left, core, right : (K, K) products; `left` and `right` are updated in place
    grown : (2,) lengths of the buffers, updated in place
    step, tolerance, limit : positions per extension, largest influence from beyond, largest buffer
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
    """Write the weights of a subchain's first state and the backward message of its last, each (K,), summing to one."""
    into[:] = 0.0
    out_of[:] = 0.0
    for j in range(start.shape[0]):
        for k in range(start.shape[0]):
            into[k] += start[j] * left[j, k]
            out_of[j] += right[j, k]
    _normalize(into)
    _normalize(out_of)
