"""Numba kernels that summarise a block of posterior marginals: best states, entropies and bins."""

from __future__ import annotations

import math

from subchain.numerics.linking import linked

#: Slot of all states that are not shown.
HIDDEN = 255


@linked()
def best_states(marginals, slot, best, probability, entropy):  # type: ignore[no-untyped-def]
    """Write slot and probability (both as bytes) of the most probable state and the entropy in nats, (n,) each.

    Parameters
    ----------
    marginals : (n, K)
    slot : (K,) index of each state among the shown ones, or HIDDEN
    best, probability, entropy : (n,) outputs
    """
    for i in range(marginals.shape[0]):
        largest, nats, winner = -1.0, 0.0, 0
        for k in range(marginals.shape[1]):
            p = marginals[i, k]
            if p > largest:
                largest, winner = p, k
            if p > 0.0:
                nats -= p * math.log(p)
        best[i] = slot[winner]
        probability[i] = int(min(largest, 1.0) * 255.0 + 0.5)
        entropy[i] = nats


@linked()
def add_to_bins(marginals, slot, entropy, first, length, shares, entropies, counts):  # type: ignore[no-untyped-def]
    """Add a block that begins at position `first` of `length` to bins of equal width.

    Parameters
    ----------
    marginals, slot, entropy : as in `best_states`
    first, length : position of the block's first row, and number of positions that the bins cover
    shares : (n_bins, S) sums of marginals of the shown states
    entropies, counts : (n_bins,) sums of entropies, and numbers of positions
    """
    n_bins = shares.shape[0]
    for i in range(marginals.shape[0]):
        bin_ = (first + i) * n_bins // length
        counts[bin_] += 1
        entropies[bin_] += entropy[i]
        for k in range(marginals.shape[1]):
            if slot[k] != HIDDEN:
                shares[bin_, slot[k]] += marginals[i, k]
