"""The exchange algorithm: classes of symbols that tell most about the class of the next symbol.

For classes g of the symbols, the log likelihood of a bigram class model, p(next class | class) p(symbol | class), is a
constant plus

    F = Σ_gh φ(N(g, h)) − Σ_g φ(N(g, ·)) − Σ_h φ(N(·, h)),    φ(n) = n log n,

where N counts neighbouring symbols by their classes: the number of bigrams times the mutual information of neighbouring
classes, up to a constant. One symbol after the other is put into the class that raises F most (Kneser and Ney 1993;
Martin, Liermann and Ney 1998), until none moves: F never falls. Only the classes of a symbol's neighbours change.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.linking import called, linked

Index = NDArray[np.int64]

_kernel = called(error_model="numpy")
_piece = linked(error_model="numpy", forceinline=True)

#: φ of smaller counts is looked up.
TABULATED = 1 << 16
#: F must rise by more than this: sums of equal terms in another order are no gain.
LEAST_GAIN = 1e-7


class Neighbours(NamedTuple):
    """What follows, or precedes, each symbol: `symbols[starts[w]:starts[w + 1]]`, and how often; not w itself."""

    starts: Index
    symbols: Index
    counts: Index


class ClassCounts(NamedTuple):
    """Bigrams by classes: `follow[g, h]` and its transpose `precede`, and their sums (C,)."""

    follow: Index
    precede: Index
    first: Index
    second: Index


def logarithms() -> NDArray[np.float64]:
    """Return φ(n) = n log n of small counts."""
    counts = np.arange(TABULATED, dtype=float)
    counts[1:] *= np.log(counts[1:])
    return counts


@_piece
def phi(n, table):
    """Return n log n."""
    return table[n] if n < TABULATED else n * math.log(n)


@_kernel
def count_classes(following, alone, classes, n_classes):
    """Return the `ClassCounts`; `alone` (W,) are bigrams of a symbol with itself."""
    follow = np.zeros((n_classes, n_classes), dtype=np.int64)
    for symbol in range(classes.shape[0]):
        of = classes[symbol]
        follow[of, of] += alone[symbol]
        for at in range(following.starts[symbol], following.starts[symbol + 1]):
            follow[of, classes[following.symbols[at]]] += following.counts[at]
    return ClassCounts(follow, follow.T.copy(), follow.sum(axis=1), follow.sum(axis=0))


@_kernel
def gather(neighbours, symbol, classes, out, found):
    """Add up a symbol's neighbours by class in `out` (C,), list their classes in `found`, return their number."""
    n = 0
    for at in range(neighbours.starts[symbol], neighbours.starts[symbol + 1]):
        of = classes[neighbours.symbols[at]]
        if out[of] == 0:
            found[n] = of
            n += 1
        out[of] += neighbours.counts[at]
    return n


@_kernel
def change(counts, of, sign, around, listed, alone):
    """Add `sign` times the bigrams of one symbol to the counts, as a member of class `of`.

    `around` (2, C) are its bigrams with the symbols behind it and before it, by their classes; `listed` are the classes
    behind, and those before. The sums of its neighbours' classes have these bigrams whatever its own class is.
    """
    followed, preceded = alone, alone
    for g in listed[0]:
        counts.follow[of, g] += sign * around[0, g]
        counts.precede[g, of] += sign * around[0, g]
        followed += around[0, g]
    for g in listed[1]:
        counts.follow[g, of] += sign * around[1, g]
        counts.precede[of, g] += sign * around[1, g]
        preceded += around[1, g]
    counts.follow[of, of] += sign * alone
    counts.precede[of, of] += sign * alone
    counts.first[of] += sign * followed
    counts.second[of] += sign * preceded


@_kernel
def gain(counts, of, around, listed, alone, table):
    """Return how much F rises if a symbol that is in no class is put into class `of`."""
    found, followed, preceded = 0.0, alone, alone
    row, column = counts.follow[of], counts.precede[of]
    for g in listed[0]:
        followed += around[0, g]
        if g != of:
            found += phi(row[g] + around[0, g], table) - phi(row[g], table)
    for g in listed[1]:
        preceded += around[1, g]
        if g != of:
            found += phi(column[g] + around[1, g], table) - phi(column[g], table)
    found += phi(row[of] + around[0, of] + around[1, of] + alone, table) - phi(row[of], table)
    found -= phi(counts.first[of] + followed, table) - phi(counts.first[of], table)
    found -= phi(counts.second[of] + preceded, table) - phi(counts.second[of], table)
    return found


@_kernel
def exchange(following, preceding, alone, order, classes, n_classes, max_iter, table):
    """Move symbols between classes, in place, until none moves or after `max_iter` passes; return the passes."""
    counts = count_classes(following, alone, classes, n_classes)
    around, found = np.zeros((2, n_classes), dtype=np.int64), np.zeros((2, n_classes), dtype=np.int64)
    for iteration in range(max_iter):
        moved = False
        for symbol in order:
            n_behind = gather(following, symbol, classes, around[0], found[0])
            n_before = gather(preceding, symbol, classes, around[1], found[1])
            listed, old = (found[0, :n_behind], found[1, :n_before]), classes[symbol]
            change(counts, old, -1, around, listed, alone[symbol])
            best, most = old, gain(counts, old, around, listed, alone[symbol], table) + LEAST_GAIN
            for of in range(n_classes):
                risen = gain(counts, of, around, listed, alone[symbol], table)
                if risen > most:
                    best, most = of, risen
            change(counts, best, 1, around, listed, alone[symbol])
            moved = moved or best != old
            classes[symbol] = best
            for side in range(2):
                for g in listed[side]:
                    around[side, g] = 0
        if not moved:
            return iteration + 1
    return max_iter
