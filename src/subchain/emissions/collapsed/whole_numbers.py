"""What counts of Poisson and of Bernoulli columns have in common: their sums, and how an observation is counted.

Whatever the predictive distribution of a state needs follows from the state's sums. It is worked out when it is asked
for after a change (`is_stale`), and not before: sums change more often than they are looked at.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.emissions.counts import CountSums


def own_sums(sums: CountSums) -> CountSums:
    """Sums whose arrays kernels may change."""
    return CountSums(np.array(sums.weight, order="C"), np.array(sums.total, order="C"))


def add_entries(counts, position, k, amount):
    """Count the known entries of an observation; implements `add`."""
    counts.is_stale[k] = True
    for d in range(counts.values.shape[1]):
        x = np.int64(counts.values[position, d])
        if x >= 0:
            counts.weight[k, d] += amount
            counts.total[k, d] += amount * x
