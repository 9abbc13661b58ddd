"""What a block of marginals adds to the picture, compiled: shares of states and doubt per bin, best states, runs."""

from __future__ import annotations

import math

from numba import njit

#: Stands for a state that is not shown.
HIDDEN = 255


@njit(nogil=True, cache=True)
def look(marginals, slot, best, chance, doubt):  # type: ignore[no-untyped-def]
    """Best shown state, its probability (both as bytes) and the entropy, in nats, of every position of a block.

    marginals is (n, K); slot[k] is where state k is shown, or HIDDEN.
    """
    for i in range(marginals.shape[0]):
        largest, entropy, winner = -1.0, 0.0, 0
        for k in range(marginals.shape[1]):
            p = marginals[i, k]
            if p > largest:
                largest, winner = p, k
            if p > 0.0:
                entropy -= p * math.log(p)
        best[i] = slot[winner]
        chance[i] = int(min(largest, 1.0) * 255.0 + 0.5)
        doubt[i] = entropy


@njit(nogil=True, cache=True)
def add_to_bins(marginals, slot, doubt, first, length, shares, doubts, counts):  # type: ignore[no-untyped-def]
    """Add a block that begins at position `first` of `length` to bins of equal width, (n_bins, n_shown)."""
    n_bins = shares.shape[0]
    for i in range(marginals.shape[0]):
        bin_ = (first + i) * n_bins // length
        counts[bin_] += 1
        doubts[bin_] += doubt[i]
        for k in range(marginals.shape[1]):
            if slot[k] != HIDDEN:
                shares[bin_, slot[k]] += marginals[i, k]


@njit(nogil=True, cache=True)
def count_runs(best, begins, before, runs, longest):  # type: ignore[no-untyped-def]
    """Count runs of equal states, which end with their sequence; sequences begin where `begins` says, rising.

    `before` is (state, length) of the run that goes on from the last block, and is updated.
    """
    state, length, following = before[0], before[1], 0
    for i in range(best.shape[0]):
        while following < begins.shape[0] and begins[following] == i:
            state, following = -1, following + 1
        if best[i] == state:
            length += 1
        else:
            state, length = best[i], 1
            runs[state] += 1
        if length > longest[state]:
            longest[state] = length
    before[0], before[1] = state, length
