"""Brown's classes: symbols are merged, the most frequent ones first, such that little mutual information is lost.

Each of the C most frequent symbols is a class. The others come one after the other, by frequency: each is one more
class at first, and then those two of the C + 1 classes are merged that lower F (`numerics/exchange.py`) least (Brown et
al. 1992). Symbols that have not come yet count in the sums of classes, but not as classes.

The loss of merging x and y is a sum over all classes z of what z adds to it,

    s_z(x, y) = φ(N(x, z)) + φ(N(y, z)) − φ(N(x, z) + N(y, z)), and the same of N(z, ·),

and of terms of x and y alone. A table has the losses of all pairs: when a class comes or changes, only its own s is
added or taken out, which is zero unless z is a neighbour of both.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.exchange import LEAST_GAIN, ClassCounts, phi
from subchain.numerics.linking import called

_kernel = called(error_model="numpy")


class Merging(NamedTuple):
    """Classes in C + 1 places, of which one is free at a time.

    Attributes
    ----------
    counts : bigrams by classes, and their sums, which have bigrams with symbols that have not come yet, too
    loss : (C + 1, C + 1) how much F falls if x < y are merged
    is_used : (C + 1,) whether there is a class
    heads, tails, following : first and last symbol of each class, and the next one of each symbol, −1 for none
    """

    counts: ClassCounts
    loss: NDArray[np.float64]
    is_used: NDArray[np.bool_]
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    following: NDArray[np.int64]


@_kernel
def start(n_symbols, n_places):
    """Return places without classes."""
    tables = np.zeros((2, n_places, n_places), dtype=np.int64)
    sums = np.zeros((2, n_places), dtype=np.int64)
    ends = np.full((2, n_places), -1)
    return Merging(
        ClassCounts(tables[0], tables[1], sums[0], sums[1]),
        np.zeros((n_places, n_places)),
        np.zeros(n_places, dtype=np.bool_),
        ends[0],
        ends[1],
        np.full(n_symbols, -1),
    )


@_kernel
def lost(n, m, table):
    """Return φ(n) + φ(m) − φ(n + m), which is zero if one of them is."""
    return phi(n, table) + phi(m, table) - phi(n + m, table) if n > 0 and m > 0 else 0.0


@_kernel
def add_of_third(merging, z, sign, table):
    """Add `sign` times s_z(x, y) to the losses of all pairs of other classes."""
    for row in (merging.counts.follow[z], merging.counts.precede[z]):
        near = np.flatnonzero(row)
        for a in range(near.shape[0]):
            x = near[a]
            for y in near[a + 1 :]:
                if x != z and y != z:
                    merging.loss[x, y] += sign * lost(row[x], row[y], table)


@_kernel
def weigh_merges(merging, x, table):
    """Write the losses of merging `x` with every other class."""
    counts = merging.counts
    for y in range(merging.is_used.shape[0]):
        if y == x or not merging.is_used[y]:
            continue
        found = 0.0
        for z in range(merging.is_used.shape[0]):
            if z not in (x, y):
                found += lost(counts.follow[x, z], counts.follow[y, z], table)
                found += lost(counts.precede[x, z], counts.precede[y, z], table)
        inside = counts.follow[x, x], counts.follow[x, y], counts.follow[y, x], counts.follow[y, y]
        for n in inside:
            found += phi(n, table)
        found -= phi(inside[0] + inside[1] + inside[2] + inside[3], table)
        found -= lost(counts.first[x], counts.first[y], table) + lost(counts.second[x], counts.second[y], table)
        merging.loss[min(x, y), max(x, y)] = found


@_kernel
def enter(merging, place, symbol, behind, before, alone, classes, table):
    """Make a class of one symbol."""
    counts = merging.counts
    counts.first[place] = counts.second[place] = alone
    counts.follow[place, place] = counts.precede[place, place] = alone
    for at in range(behind.starts[symbol], behind.starts[symbol + 1]):
        n, of = behind.counts[at], classes[behind.symbols[at]]
        counts.first[place] += n
        if of >= 0:
            counts.follow[place, of] += n
            counts.precede[of, place] += n
    for at in range(before.starts[symbol], before.starts[symbol + 1]):
        n, of = before.counts[at], classes[before.symbols[at]]
        counts.second[place] += n
        if of >= 0:
            counts.follow[of, place] += n
            counts.precede[place, of] += n
    classes[symbol] = place
    merging.heads[place] = merging.tails[place] = symbol
    merging.is_used[place] = True
    add_of_third(merging, place, 1.0, table)
    weigh_merges(merging, place, table)


@_kernel
def find_merge(merging):
    """Return the first of the pairs with the least loss."""
    best, least = (0, 0), np.inf
    for x in range(merging.is_used.shape[0]):
        for y in range(x + 1, merging.is_used.shape[0]):
            if merging.is_used[x] and merging.is_used[y] and merging.loss[x, y] < least - LEAST_GAIN:
                best, least = (x, y), merging.loss[x, y]
    return best


@_kernel
def merge(merging, x, y, classes, table):
    """Put the symbols of class y into class x."""
    counts = merging.counts
    for z in (x, y):
        add_of_third(merging, z, -1.0, table)
    for matrix in (counts.follow, counts.precede):
        matrix[x] += matrix[y]
        matrix[:, x] += matrix[:, y]
        matrix[y] = 0
        matrix[:, y] = 0
    for sums in (counts.first, counts.second):
        sums[x] += sums[y]
        sums[y] = 0
    symbol = merging.heads[y]
    while symbol >= 0:
        classes[symbol] = x
        symbol = merging.following[symbol]
    merging.following[merging.tails[x]] = merging.heads[y]
    merging.tails[x] = merging.tails[y]
    merging.is_used[y] = False
    merging.loss[y] = 0.0
    merging.loss[:, y] = 0.0
    add_of_third(merging, x, 1.0, table)
    weigh_merges(merging, x, table)


@_kernel
def merge_all(following, preceding, alone, order, n_classes, table):
    """Return the class of each symbol; symbols come in the given order."""
    classes, merging = np.full(order.shape[0], -1), start(order.shape[0], n_classes + 1)
    free = 0
    for number in range(order.shape[0]):
        symbol = order[number]
        enter(merging, free, symbol, following, preceding, alone[symbol], classes, table)
        free += 1
        if number >= n_classes:
            x, free = find_merge(merging)
            merge(merging, x, free, classes, table)
    # the place that is free is no class: later ones move down
    is_free = order.shape[0] > n_classes
    for symbol in range(classes.shape[0] if is_free else 0):
        if classes[symbol] > free:
            classes[symbol] -= 1
    return classes
