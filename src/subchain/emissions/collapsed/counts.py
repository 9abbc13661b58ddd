"""What visits of collapsed inference are given of a family: counts for kernels, and the sums that they are.

Kernels change counts in place, and the sums with them, since both are the same arrays.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import FINITE, stored
from subchain.core.records import Sums
from subchain.emissions.collapsed.shards import CopiedCounts, ShardCounts
from subchain.errors import FileFormatError
from subchain.propagation.collapsed.shards import Blocks
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]

#: Distance, relative to the largest entry, of carried arrays from those that follow from the sums; more is no rounding.
DRIFT = 1e-3
#: Most entries of a table of likelihoods under fixed parameters, and how many are computed at a time.
MOST_VALUES, BLOCK_VALUES = 1 << 26, 1 << 20


class EmissionCounts:
    """Counts of one family, or of a product of families.

    Parameters
    ----------
    kernel : named tuple of arrays that implements the verbs of `propagation.collapsed.verbs`
    live : the family's sums, whose arrays the kernels change; None if the observations change nothing
    carried : arrays that follow from the sums but for rounding; kept in checkpoints, so that runs resume to the bit
    is_exact : whether counts of drawn states are whole numbers, so that rounding never adds up
    scratch : names of the kernel's arrays that its verbs write, beside the sums; flags tell that something is stale
    """

    def __init__(
        self,
        kernel: Any,
        live: Sums | None,
        carried: dict[str, Array] | None = None,
        is_exact: bool = False,
        scratch: tuple[str, ...] = (),
    ) -> None:
        self.kernel = kernel
        self.live = live
        self.carried = carried or {}
        self.is_exact = is_exact
        self.scratch = scratch

    def changing(self) -> list[str]:
        """Return the names of the kernel's arrays that are the sums."""
        sums = [] if self.live is None else list(self.live.arrays().values())
        return [name for name, array in self.kernel._asdict().items() if any(array is known for known in sums)]

    def shards(self, blocks: Blocks) -> ShardCounts:
        """Return copies of the counts for shards of clusters that are visited side by side."""
        return CopiedCounts(self, blocks)

    def sums(self) -> Any:
        """A copy of the sums as they stand; None if they are not kept."""
        return copy.deepcopy(self.live)

    def log_evidence(self, prior: Any) -> float | None:
        """Log probability of the observations, drawn states being given; None if the prior has to be asked."""
        return None

    def memory(self) -> dict[str, NDArray[Any]]:
        """What is needed beside the sums to go on in the same bits."""
        return {name: array.copy() for name, array in self.carried.items()}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """The inverse of `memory`, for counts that were just made of the same sums."""
        for name, array in self.carried.items():
            found = stored(memory, name, FINITE, array.shape)
            if np.abs(found - array).max(initial=0.0) > DRIFT * max(1.0, np.abs(array).max(initial=0.0)):
                raise FileFormatError(f"{name} does not follow from the statistics")
            array[:] = found


class TabledLogs(NamedTuple):
    """Log weights that were computed beforehand: for families without counts of their own, and for fixed parameters.

    Attributes
    ----------
    logs : (n, K)
    rows : (N,) the row of each position in `logs`
    """

    logs: Array
    rows: NDArray[np.int64]


@implements(add, TabledLogs)
def _add_nothing(counts, position, k, amount):
    pass


@implements(weigh, TabledLogs)
def _weigh_tabled(counts, position, k):
    return 1.0, counts.logs[counts.rows[position], k]


def tabled_counts(likelihood: Any, values: NDArray[Any]) -> EmissionCounts | None:
    """Log likelihoods of all observations under parameters that do not change, unless the table would be too large."""
    n, n_states = len(values), likelihood.n_states
    if n * n_states > MOST_VALUES:
        return None
    logs = np.empty((n, n_states))
    size = max(BLOCK_VALUES // n_states, 1)
    for start in range(0, n, size):
        logs[start : start + size] = likelihood.log_likelihood(np.asarray(values[start : start + size])).T
    return EmissionCounts(TabledLogs(logs, np.arange(n)), None, is_exact=True)


class PairCounts(NamedTuple):
    """Counts of a family and those of another, or of further pairs: a product of families."""

    first: Any
    others: Any


@implements(add, PairCounts)
def _add_pair(counts, position, k, amount):
    add(counts.first, position, k, amount)
    add(counts.others, position, k, amount)


@implements(weigh, PairCounts)
def _weigh_pair(counts, position, k):
    factor, log = weigh(counts.first, position, k)
    other_factor, other_log = weigh(counts.others, position, k)
    return factor * other_factor, log + other_log
