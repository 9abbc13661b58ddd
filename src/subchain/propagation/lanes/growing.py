"""Adaptive buffers: extend the buffer of a subchain until positions beyond it hardly influence the subchain.

The buffer to the left of a subchain acts on its first state through a product of matrices, one per position; so does
the buffer to the right on its last state. The products are stored, so that one more position is one more factor instead
of a new pass, and so that the influence of positions beyond the buffers can be bounded. (The published test is whether
the last extension changed the marginals; it is weaker, because an uninformative observation changes nothing.)

A product is a table (K, P): its columns are filled up with zeros to whole vectors. The product over a left buffer is
kept transposed; it then grows as that over a right one does, with the transposed matrix of transitions.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.vectors import WIDTH, largest, load, minus, reciprocal, spread, store, total, zeros
from subchain.propagation.compiled import bare_kernel, kernel, part

#: Rows of the scratch of `_what_matters`, each a vector over the states.
INTO, OUT_OF, INTO_THROUGH, OUT_THROUGH, FIRST, LAST, TOTAL, APART, START, N_ROWS = range(10)
#: Distances that are too large, of the left buffer (even) and of the right one; nothing is.
NEAR_LEFT, NEAR_RIGHT, FAR_LEFT, FAR_RIGHT, NOTHING = range(5)
#: Products are divided by their sums where these leave such a range.
LOW, HIGH = 2.0**-64, 2.0**64
#: Sums below this are multiplied by `LARGE`, and what they are sums of: their reciprocals might overflow.
LEAST, LARGE = 2.0**-960, 2.0**960


class Buffers(NamedTuple):
    """Subchains and the buffers around them. Sides are columns: 0 is the left, 1 the right one.

    Attributes
    ----------
    left, core, turned, right : (M, K, P) products over the left buffer, transposed, over the subchain, that one
        transposed, and over the right buffer
    transition, transposed : (K, P) the matrix of transitions, and transposed
    grown : (M, 2) lengths of the buffers
    ends : (M, 2) number of positions of the sequence on either side of the subchain
    """

    left: NDArray[np.float64]
    core: NDArray[np.float64]
    turned: NDArray[np.float64]
    right: NDArray[np.float64]
    transition: NDArray[np.float64]
    transposed: NDArray[np.float64]
    grown: NDArray[np.int64]
    ends: NDArray[np.int64]


@kernel
def no_buffers(transition, grown, ends):
    """Return buffers of no length, (M, 2) being their lengths and how long they may become."""
    n_states, size = transition.shape[0], grown.shape[0]
    products = np.zeros((4, size, n_states, -(-n_states // WIDTH) * WIDTH))
    matrices = np.zeros((2, n_states, products.shape[3]))
    for j in range(n_states):
        for k in range(n_states):
            matrices[0, j, k] = matrices[1, k, j] = transition[j, k]
        for lane in range(size):
            products[0, lane, j, j] = products[3, lane, j, j] = 1.0
    grown[:] = 0
    return Buffers(products[0], products[1], products[2], products[3], matrices[0], matrices[1], grown, ends)


@part
def _multiply(a, b, out):
    """Write the product of two tables."""
    n_states, last = a.shape[0], a.shape[0] - 1
    for at in range(0, a.shape[1], WIDTH):
        for i in range(0, n_states, 4):
            p, q, r, s = zeros(), zeros(), zeros(), zeros()
            i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
            for j in range(n_states):
                x = load(b, j, at, None)
                p += spread(a, i, j) * x
                q += spread(a, i1, j) * x
                r += spread(a, i2, j) * x
                s += spread(a, i3, j) * x
            store(out, i3, at, None, s)
            store(out, i2, at, None, r)
            store(out, i1, at, None, q)
            store(out, i, at, None, p)


@bare_kernel
def extend(likelihood, matrix, column, product, scratch):
    """Append one position to a product: product · matrix · diag(likelihood), in place, in any scale.

    `scratch` is (K + 1, P), zero in the last columns of its last row. Four rows are replaced at a time.
    """
    n_states, last, summed = product.shape[0], product.shape[0] - 1, zeros()
    for k in range(n_states):
        scratch[n_states, k] = likelihood[k, column]
    for i in range(0, n_states, 4):
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        for at in range(0, product.shape[1], WIDTH):
            store(scratch, i3, at, None, load(product, i3, at, None))
            store(scratch, i2, at, None, load(product, i2, at, None))
            store(scratch, i1, at, None, load(product, i1, at, None))
            store(scratch, i, at, None, load(product, i, at, None))
        for at in range(0, product.shape[1], WIDTH):
            p, q, r, s = zeros(), zeros(), zeros(), zeros()
            for j in range(n_states):
                x = load(matrix, j, at, None)
                p += spread(scratch, i, j) * x
                q += spread(scratch, i1, j) * x
                r += spread(scratch, i2, j) * x
                s += spread(scratch, i3, j) * x
            weights = load(scratch, n_states, at, None)
            p, q, r, s = p * weights, q * weights, r * weights, s * weights
            summed += p + q + r + s
            store(product, i3, at, None, s)
            store(product, i2, at, None, r)
            store(product, i1, at, None, q)
            store(product, i, at, None, p)
    whole = total(summed)
    if not LOW <= whole <= HIGH:
        _rescale(product, whole)


@bare_kernel
def _rescale(product, whole):
    """Divide a product by its sum, unless that is zero."""
    factor = LARGE if whole < LEAST else 1.0
    whole *= factor
    if whole > 0.0:
        for j in range(product.shape[0]):
            for k in range(product.shape[1]):
                product[j, k] = product[j, k] * factor / whole


@kernel
def multiply_through(likelihood, matrix, first, length, product, turned):
    """Write Π diag(likelihood) · matrix over some columns, without a transition after the last, and its transpose."""
    n_states = product.shape[0]
    scratch = np.zeros((n_states + 1, product.shape[1]))
    product[:] = 0.0
    for k in range(n_states):
        product[k, k] = likelihood[k, first]
    for column in range(first + 1, first + length):
        extend(likelihood, matrix, column, product, scratch)
    for j in range(n_states):
        for k in range(n_states):
            turned[k, j] = product[j, k]


@bare_kernel
def _largest_distance(vectors, marginals, weights, columns):
    """Return the largest total variation distance between marginals and columns[:, j] · weights, normalised, over j.

    Marginals and weights are rows of `vectors`; columns whose product is zero, or nearly so, are left out.
    """
    n_states, largest_one = columns.shape[0], 0.0
    for at in range(0, columns.shape[1], WIDTH):
        norm, apart = zeros(), zeros()
        for k in range(n_states):
            norm += load(columns, k, at, None) * spread(vectors, weights, k)
        inverse = reciprocal(norm)
        for k in range(n_states):
            there = load(columns, k, at, None) * spread(vectors, weights, k) * inverse
            difference = minus(spread(vectors, marginals, k), there)
            apart += largest(difference, minus(zeros(), difference))
        store(vectors, TOTAL, at, None, norm)
        store(vectors, APART, at, None, apart)
    for j in range(n_states):
        if vectors[TOTAL, j] >= LEAST:
            largest_one = max(largest_one, 0.5 * vectors[APART, j])
    return largest_one


@part
def _put_marginals(vectors, one, other, out):
    """Write the normalised product of two messages at one position; all are rows of `vectors`."""
    norm = 0.0
    for k in range(vectors.shape[1]):
        vectors[out, k] = vectors[one, k] * vectors[other, k]
        norm += vectors[out, k]
    if norm >= LEAST:
        for k in range(vectors.shape[1]):
            vectors[out, k] /= norm


@part
def _combine(rows, vectors, weights, out):
    """Write Σ_j rows[j] · weights[j]; weights and output are rows of `vectors`."""
    for at in range(0, rows.shape[1], WIDTH):
        summed = zeros()
        for j in range(rows.shape[0]):
            summed += spread(vectors, weights, j) * load(rows, j, at, None)
        store(vectors, out, at, None, summed)


@part
def _distance(which, buffers, lane, vectors, scratch):
    """Return how much a buffer's outer end matters: for the near end of the subchain (`NEAR_*`), or for the far one."""
    if which == NEAR_LEFT:
        return _largest_distance(vectors, FIRST, OUT_THROUGH, buffers.left[lane])
    if which == NEAR_RIGHT:
        return _largest_distance(vectors, LAST, INTO_THROUGH, buffers.right[lane])
    n_states = buffers.left.shape[1]
    if which == FAR_LEFT:
        _multiply(buffers.turned[lane], buffers.left[lane], scratch)
        return _largest_distance(vectors, LAST, OUT_OF, scratch[:n_states])
    _multiply(buffers.core[lane], buffers.right[lane], scratch)
    return _largest_distance(vectors, FIRST, INTO, scratch[:n_states])


@bare_kernel
def _what_matters(start, buffers, lane, any_left, any_right, tolerance, suspect, vectors, scratch):
    """Return whether, and where, positions beyond the buffers influence the marginals of the subchain's ends.

    The bound is the largest total variation distance between the present marginals and those with a known state at the
    outer end of a buffer, over all such states, added for both sides.

    Parameters
    ----------
    start : (K,) weights of the outermost state of the left buffer
    any_left, any_right : whether the sequence extends beyond the left and the right buffer
    tolerance : what the bound may be
    suspect : the distance that was too large before, which is looked at first
    vectors, scratch : (N_ROWS, P), zeros beyond the states, and (K + 1, P)

    Returns
    -------
    The number of a distance that is too large; `NOTHING` if the buffers are long enough.
    """
    n_states = buffers.left.shape[1]
    for k in range(n_states):
        vectors[START, k] = start[k]
    for k in range(n_states):
        into, out_of = zeros(), zeros()
        for at in range(0, vectors.shape[1], WIDTH):
            into += load(buffers.left[lane], k, at, None) * load(vectors, START, at, None)
            out_of += load(buffers.right[lane], k, at, None)
        vectors[INTO, k], vectors[OUT_OF, k] = total(into), total(out_of)
    _combine(buffers.turned[lane], vectors, OUT_OF, OUT_THROUGH)
    _combine(buffers.core[lane], vectors, INTO, INTO_THROUGH)
    _put_marginals(vectors, INTO, OUT_THROUGH, FIRST)
    _put_marginals(vectors, INTO_THROUGH, OUT_OF, LAST)
    if (any_left if suspect % 2 == 0 else any_right) and _distance(
        suspect, buffers, lane, vectors, scratch
    ) > tolerance:
        return suspect
    of_left = of_right = 0.0
    for which in range(NOTHING):
        if which % 2 == 0 and any_left:
            of_left = max(of_left, _distance(which, buffers, lane, vectors, scratch))
        elif which % 2 == 1 and any_right:
            of_right = max(of_right, _distance(which, buffers, lane, vectors, scratch))
        if of_left + of_right > tolerance:
            return which
    return np.int64(NOTHING)


@bare_kernel
def grow_lane(lane, buffers, starts, tables, at, room, growth, vectors, scratch):
    """Extend the buffers of one subchain, as far as the given likelihoods reach; return whether they are long enough.

    Parameters
    ----------
    lane : number of the subchain
    buffers : Buffers, those of the subchain are updated in place
    starts : two (K,) arrays, weights of the outermost state inside a sequence, and at its beginning
    tables : for each side (K, n) likelihoods of positions at growing distance, from column `at` on
    room : (2,) number of these positions
    growth : BufferGrowth
    vectors, scratch : see `_what_matters`
    """
    left, right = buffers.left[lane], buffers.right[lane]
    grown, ends = buffers.grown[lane], buffers.ends[lane]
    used_left = used_right = 0
    suspect = np.int64(NEAR_LEFT)
    while True:
        any_left, any_right = grown[0] < ends[0], grown[1] < ends[1]
        if not (any_left or any_right) or max(grown[0], grown[1]) >= growth.limit:
            return True
        start = starts[0] if any_left else starts[1]
        suspect = _what_matters(
            start, buffers, lane, any_left, any_right, growth.tolerance, suspect, vectors, scratch
        )  # fmt: skip
        if suspect == NOTHING:
            return True
        wanted_left = min(growth.step, ends[0] - grown[0], growth.limit - grown[0])
        wanted_right = min(growth.step, ends[1] - grown[1], growth.limit - grown[1])
        if used_left + wanted_left > room[0] or used_right + wanted_right > room[1]:
            return False
        for _ in range(wanted_left):
            extend(tables[0], buffers.transposed, at + used_left, left, scratch)
            used_left += 1
        for _ in range(wanted_right):
            extend(tables[1], buffers.transition, at + used_right, right, scratch)
            used_right += 1
        grown[0] += wanted_left
        grown[1] += wanted_right


@kernel
def growing_room(buffers):
    """Return room for `grow_lane`."""
    n_states, width = buffers.left.shape[1:]
    return np.zeros((N_ROWS, width)), np.zeros((n_states + 1, width))


@kernel
def into_and_out_of(start, left, right, into, out_of):
    """Write the weights of a subchain's first state and the backward message of its last, each (K,), summing to one."""
    from_left, from_right = 0.0, 0.0
    for k in range(start.shape[0]):
        into[k], out_of[k] = 0.0, 0.0
        for j in range(start.shape[0]):
            into[k] += start[j] * left[k, j]
            out_of[k] += right[k, j]
        from_left += into[k]
        from_right += out_of[k]
    _normalise(into, from_left)
    _normalise(out_of, from_right)


@part
def _normalise(weights, whole):
    """Divide weights by their sum, unless it is zero."""
    factor = LARGE if whole < LEAST else 1.0
    whole *= factor
    if whole > 0.0:
        for k in range(weights.shape[0]):
            weights[k] = weights[k] * factor / whole
