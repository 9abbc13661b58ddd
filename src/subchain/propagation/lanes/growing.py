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
from subchain.propagation.compiled import kernel, part

#: Rows of the scratch of `_is_enough`, each a vector over the states.
INTO, OUT_OF, INTO_THROUGH, OUT_THROUGH, FIRST, LAST, TOTAL, APART = range(8)


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


@kernel
def extend(likelihood, matrix, column, product, scratch):
    """Append one position to a product: product · matrix · diag(likelihood), normalised, in place.

    `scratch` is (K + 1, P), zero in the last columns of its last row.
    """
    n_states = product.shape[0]
    _multiply(product, matrix, scratch)
    for k in range(n_states):
        scratch[n_states, k] = likelihood[k, column]
    summed = zeros()
    for at in range(0, product.shape[1], WIDTH):
        weights = load(scratch, n_states, at, None)
        for j in range(n_states):
            entries = load(scratch, j, at, None) * weights
            summed += entries
            store(product, j, at, None, entries)
    whole = total(summed)
    if whole > 0.0:
        product /= whole


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


@kernel
def _largest_distance(vectors, marginals, weights, columns):
    """Return the largest total variation distance between marginals and columns[:, j] · weights, normalised, over j.

    Marginals and weights are rows of `vectors`; columns whose product is zero are left out.
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
        if vectors[TOTAL, j] > 0.0:
            largest_one = max(largest_one, 0.5 * vectors[APART, j])
    return largest_one


@part
def _put_marginals(vectors, one, other, out):
    """Write the normalised product of two messages at one position; all are rows of `vectors`."""
    norm = 0.0
    for k in range(vectors.shape[1]):
        vectors[out, k] = vectors[one, k] * vectors[other, k]
        norm += vectors[out, k]
    if norm > 0.0:
        for k in range(vectors.shape[1]):
            vectors[out, k] /= norm


@kernel
def _is_enough(start, buffers, lane, any_left, any_right, tolerance, vectors, scratch):
    """Whether positions beyond the buffers hardly influence the marginals of the subchain's first and last position.

    The bound is the largest total variation distance between the present marginals and those with a known state at the
    outer end of a buffer, over all such states, added for both sides.

    Parameters
    ----------
    start : (K,) weights of the outermost state of the left buffer
    tolerance : what the bound may be
    any_left, any_right : whether the sequence extends beyond the left and the right buffer
    vectors, scratch : (8, P), zeros, and (K + 1, P)
    """
    left, core, turned, right = buffers.left[lane], buffers.core[lane], buffers.turned[lane], buffers.right[lane]
    n_states = left.shape[0]
    for k in range(n_states):
        into, out_of = 0.0, 0.0
        for j in range(n_states):
            into += left[k, j] * start[j]
            out_of += right[k, j]
        vectors[INTO, k], vectors[OUT_OF, k] = into, out_of
    for k in range(n_states):
        into, out_of = 0.0, 0.0
        for j in range(n_states):
            into += turned[k, j] * vectors[INTO, j]
            out_of += core[k, j] * vectors[OUT_OF, j]
        vectors[INTO_THROUGH, k], vectors[OUT_THROUGH, k] = into, out_of
    _put_marginals(vectors, INTO, OUT_THROUGH, FIRST)
    _put_marginals(vectors, INTO_THROUGH, OUT_OF, LAST)
    of_left = _largest_distance(vectors, FIRST, OUT_THROUGH, left) if any_left else 0.0
    of_right = _largest_distance(vectors, LAST, INTO_THROUGH, right) if any_right else 0.0
    if of_left + of_right > tolerance:  # as it is until the last steps: the farther position need not be looked at
        return False
    if any_left:
        _multiply(turned, left, scratch)
        of_left = max(of_left, _largest_distance(vectors, LAST, OUT_OF, scratch[:n_states]))
    if any_right:
        _multiply(core, right, scratch)
        of_right = max(of_right, _largest_distance(vectors, FIRST, INTO, scratch[:n_states]))
    return of_left + of_right <= tolerance


@kernel
def grow_lane(lane, buffers, starts, tables, at, room, growth):
    """Extend the buffers of one subchain, as far as the given likelihoods reach; return whether they are long enough.

    Parameters
    ----------
    lane : number of the subchain
    buffers : Buffers, those of the subchain are updated in place
    starts : two (K,) arrays, weights of the outermost state inside a sequence, and at its beginning
    tables : for each side (K, n) likelihoods of positions at growing distance, from column `at` on
    room : (2,) number of these positions
    growth : BufferGrowth
    """
    left, right = buffers.left[lane], buffers.right[lane]
    grown, ends = buffers.grown[lane], buffers.ends[lane]
    vectors, scratch = np.zeros((8, left.shape[1])), np.zeros((left.shape[0] + 1, left.shape[1]))
    used_left = used_right = 0
    while True:
        any_left, any_right = grown[0] < ends[0], grown[1] < ends[1]
        if not (any_left or any_right) or max(grown[0], grown[1]) >= growth.limit:
            return True
        start = starts[0] if any_left else starts[1]
        if _is_enough(start, buffers, lane, any_left, any_right, growth.tolerance, vectors, scratch):
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
    for k in range(start.shape[0]):
        into[k] = into[k] / from_left if from_left > 0.0 else into[k]
        out_of[k] = out_of[k] / from_right if from_right > 0.0 else out_of[k]
