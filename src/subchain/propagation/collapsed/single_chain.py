"""Forward and backward passes over a single chain whose states fill the vectors.

Where every chain has transitions of its own, as in collapsed inference, chains cannot run side by side; a step of one
chain is then the product of a vector with a matrix. Tables are position-major, (n, P), with the K states padded to P, a
multiple of two vectors; what is beyond K is zero in every matrix and every likelihood and stays zero.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import WIDTH, load, spread, store, total, turned, zeros
from subchain.propagation.compiled import kernel, part, small_kernel

#: States are padded to a multiple of this.
PADDING = 2 * WIDTH
#: Smallest normaliser, and smallest filtered marginal, that are safely above the end of the doubles.
LEAST_SCALE, LEAST_MARGINAL = 1e-100, 1e-290


@small_kernel
def padded(n_states):
    """The number of states with its padding."""
    return -(-n_states // PADDING) * PADDING


@part
def _two(source, row, matrix, n_states, k, target, into):
    """Two vectors of a product, from column k on."""
    p, q, r, s = zeros(), zeros(), zeros(), zeros()
    whole = n_states - n_states % 2
    for j in range(0, whole, 2):
        x = spread(source, row, j)
        p += x * load(matrix, j, k, None)
        q += x * load(matrix, j, k + WIDTH, None)
        x = spread(source, row, j + 1)
        r += x * load(matrix, j + 1, k, None)
        s += x * load(matrix, j + 1, k + WIDTH, None)
    for j in range(whole, n_states):
        x = spread(source, row, j)
        p += x * load(matrix, j, k, None)
        q += x * load(matrix, j, k + WIDTH, None)
    p, q = p + r, q + s
    store(target, into, k, None, p)
    store(target, into, k + WIDTH, None, q)


@part
def _six(source, row, matrix, n_states, k, target, into):
    """Six vectors of a product, from column k on."""
    p, q, r, s, t, u = zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    for j in range(n_states):
        x = spread(source, row, j)
        p += x * load(matrix, j, k, None)
        q += x * load(matrix, j, k + WIDTH, None)
        r += x * load(matrix, j, k + 2 * WIDTH, None)
        s += x * load(matrix, j, k + 3 * WIDTH, None)
        t += x * load(matrix, j, k + 4 * WIDTH, None)
        u += x * load(matrix, j, k + 5 * WIDTH, None)
    store(target, into, k, None, p)
    store(target, into, k + WIDTH, None, q)
    store(target, into, k + 2 * WIDTH, None, r)
    store(target, into, k + 3 * WIDTH, None, s)
    store(target, into, k + 4 * WIDTH, None, t)
    store(target, into, k + 5 * WIDTH, None, u)


@part
def product(source, row, matrix, n_states, target, into):
    """target[into] = Σ_j source[row, j] · matrix[j]."""
    k, width = np.int64(0), matrix.shape[1]
    while k + 6 * WIDTH <= width:
        _six(source, row, matrix, n_states, k, target, into)
        k += 6 * WIDTH
    while k < width:
        _two(source, row, matrix, n_states, k, target, into)
        k += PADDING


@part
def weigh_row(table, row, others, other):
    """Multiply a row of a table by a row of another; return the sum of the products."""
    summed = zeros()
    for k in range(0, table.shape[1], WIDTH):
        weighted = load(table, row, k, None) * load(others, other, k, None)
        store(table, row, k, None, weighted)
        summed += weighted
    return total(summed)


@part
def scale_row(table, row, factors, at):
    """Multiply a row of a table by the number factors[0, at]."""
    factor = spread(factors, 0, at)
    for k in range(0, table.shape[1], WIDTH):
        store(table, row, k, None, load(table, row, k, None) * factor)


@part
def transpose(matrix, n_states, every, out):
    """Write the transposed (K, P) matrix into `out` (P, P); `every` is 0, 1, 2, …, K − 1, and then K − 1 again."""
    for j in range(0, n_states, WIDTH):
        for k in range(0, matrix.shape[1], WIDTH):
            columns = turned(matrix, every, j, k, None)
            for i in range(WIDTH):
                store(out, k + i, j, None, columns[i])
    for k in range(out.shape[0]):
        for j in range(n_states, out.shape[1]):
            out[k, j] = 0.0


@part
def _filter(transition, start, likelihood, n, n_states, alpha, scale):
    """Filtered marginals and one over their normalisers; return the log of the product of these, or nan."""
    log_total, running = 0.0, 1.0
    for position in range(n):
        if position == 0:
            for k in range(start.shape[1]):
                alpha[0, k] = start[0, k]
        else:
            product(alpha, position - 1, transition, n_states, alpha, position)
        norm = weigh_row(alpha, position, likelihood, position)
        if not norm >= LEAST_SCALE:
            return np.nan
        running *= norm
        if not 1e-150 <= running <= 1e150:
            log_total += np.log(running)
            running = 1.0
        scale[0, position] = 1.0 / norm
        scale_row(alpha, position, scale, position)
    return log_total + np.log(running)


@kernel
def forward_backward(transition, transposed, start, stop, likelihood, n, n_states, alpha, weighted, marginals, scale):
    """Marginals of n positions between messages from outside; return the log normaliser.

    It is nan where a normaliser comes near the end of the doubles: then the tables are not to be used.

    Parameters
    ----------
    transition, transposed : (K, P), (P, P)
    start, stop : (1, P) weights of the first state before anything is seen; backward message of the last
    likelihood : (n, P)
    alpha, weighted, marginals : (n, P), on return the filtered marginals, the backward messages times the likelihoods
        over the normalisers (from which pair sums are made), and the smoothed marginals
    scale : (1, n) room for normalisers
    """
    log_total = _filter(transition, start, likelihood, n, n_states, alpha, scale)
    if np.isnan(log_total):
        return np.nan
    # backward: `marginals` holds the backward message until it becomes the marginal
    meeting = 0.0
    for k in range(n_states):
        meeting += alpha[n - 1, k] * stop[0, k]
    if not meeting >= LEAST_SCALE:
        return np.nan
    for k in range(stop.shape[1]):
        marginals[n - 1, k] = stop[0, k] / meeting
    log_total += np.log(meeting)
    for position in range(n - 1, -1, -1):
        factor = spread(scale, 0, position)
        for k in range(0, alpha.shape[1], WIDTH):
            message = load(marginals, position, k, None)
            store(weighted, position, k, None, message * load(likelihood, position, k, None) * factor)
            store(marginals, position, k, None, message * load(alpha, position, k, None))
        if position > 0:
            product(weighted, position, transposed, n_states, marginals, position - 1)
    return log_total


@kernel
def add_pair_sums(alpha, weighted, n, n_states, out):
    """out[j, k] += Σ_t alpha[t − 1, j] · weighted[t, k], (K, P), over n positions, to be multiplied by transitions."""
    if n < 2:
        return
    for j in range(0, n_states, 4):
        count = min(4, n_states - j)
        for k in range(0, out.shape[1], PADDING):
            p, q, r, s = zeros(), zeros(), zeros(), zeros()
            t, u, v, w = zeros(), zeros(), zeros(), zeros()
            for position in range(1, n):
                x, y = load(weighted, position, k, None), load(weighted, position, k + WIDTH, None)
                z = spread(alpha, position - 1, j)
                p += z * x
                t += z * y
                z = spread(alpha, position - 1, j + 1)
                q += z * x
                u += z * y
                z = spread(alpha, position - 1, j + 2)
                r += z * x
                v += z * y
                z = spread(alpha, position - 1, j + 3)
                s += z * x
                w += z * y
            for row, one, two in ((0, p, t), (1, q, u), (2, r, v), (3, s, w)):
                if row < count:
                    store(out, j + row, k, None, load(out, j + row, k, None) + one)
                    store(out, j + row, k + WIDTH, None, load(out, j + row, k + WIDTH, None) + two)


@kernel
def loses_states(transition, start, likelihood, n, n_states, alpha):
    """Whether a state that can be reached has underflowed in a filtered pass.

    Where all transitions are possible this does no harm: the states that are left lead to all others. Elsewhere the
    lost state may be the one that explains what comes later, and the chain has to be run in log space.
    """
    for position in range(n):
        for k in range(n_states):
            if alpha[position, k] >= LEAST_MARGINAL or likelihood[position, k] == 0.0:
                continue
            if position == 0:
                if start[0, k] > 0.0:
                    return True
                continue
            for j in range(n_states):
                if alpha[position - 1, j] > 0.0 and transition[j, k] > 0.0:
                    return True
    return False
