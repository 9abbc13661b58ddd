"""The legal states of every position in compressed form, for passes that visit these alone.

Tag dictionaries and known states leave one or two states at most positions. A list of them is shorter than a table of
all, and so is everything that is computed along it. Position t has the entries `offsets[t]` to `offsets[t + 1]`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.knowledge import blocks
from subchain.data.sequences import Sequences

if TYPE_CHECKING:
    from subchain.data.evidence import Evidence


@dataclasses.dataclass(frozen=True)
class LegalStates:
    """Which states every position may have, and how much evidence favours each.

    Use :meth:`of` to make one from :class:`Evidence`, which has refused positions without a legal state.

    Attributes
    ----------
    offsets : array of int64, shape (N + 1,)
        Where the entries of each position begin.
    states : array of int32, shape (nnz,)
        Legal states, rising within each position.
    log_weights : array of float64, shape (nnz,), or None
        What the evidence adds to their log likelihoods; None if that is zero everywhere.
    n_states : int
        Number of states, K.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import Evidence, as_sequences
    >>> from subchain.data.legal_states import LegalStates
    >>> data = as_sequences([["the", "run"], ["run"]])
    >>> evidence = Evidence.build(data, n_states=3, allowed={"the": [0], "run": [1, 2]})
    >>> legal = LegalStates.of(evidence, data)
    >>> legal.offsets, legal.states
    (array([0, 1, 3, 5]), array([0, 1, 2, 1, 2], dtype=int32))
    >>> round(legal.share, 2)
    0.56
    """

    offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    log_weights: NDArray[np.float64] | None
    n_states: int

    @classmethod
    def of(cls, evidence: Evidence, data: Sequences) -> Self:
        """List the states that evidence leaves at each position, block by block.

        Parameters
        ----------
        evidence : Evidence
            What is known about the data's states.
        data : Sequences

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> from subchain.data.legal_states import LegalStates
        >>> data = Sequences(np.array([0.3, 0.4]))
        >>> evidence = Evidence.build(data, n_states=2, evidence=np.array([[0.0, -np.inf], [2.0, 0.0]]))
        >>> LegalStates.of(evidence, data).log_weights
        array([0., 2., 0.])
        """
        offsets = np.zeros(data.n_observations + 1, dtype=np.int64)
        states, log_weights = [np.empty(0, dtype=np.int32)], [np.empty(0)]
        for index in blocks(data.n_observations, evidence.n_states):
            table = evidence.log_weights(index, data.values[index[0] : index[-1] + 1]).T
            rows, here = np.nonzero(table > -np.inf)
            offsets[index + 1] = np.bincount(rows, minlength=len(index))
            states.append(here.astype(np.int32))
            log_weights.append(table[rows, here])
        says_more = any(block.any() for block in log_weights)
        joined = np.concatenate(log_weights) if says_more else None
        return cls(np.cumsum(offsets), np.concatenate(states), joined, evidence.n_states)

    def between(self, start: int, stop: int) -> Self:
        """The lists of the positions from `start` to `stop`; only the offsets are copied."""
        offsets = self.offsets[start : stop + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        log_weights = None if self.log_weights is None else self.log_weights[entries]
        return type(self)(offsets - offsets[0], self.states[entries], log_weights, self.n_states)

    @property
    def n_entries(self) -> int:
        """Number of legal states of all positions."""
        return len(self.states)

    @property
    def share(self) -> float:
        """Legal entries out of all N · K; 1 where there are no positions."""
        n_all = (len(self.offsets) - 1) * self.n_states
        return self.n_entries / n_all if n_all else 1.0

    @property
    def nbytes(self) -> int:
        """Memory that the lists take."""
        weights = 0 if self.log_weights is None else self.log_weights.nbytes
        return self.offsets.nbytes + self.states.nbytes + weights


def no_restriction() -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """What stands for legal states where every state is legal."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)


def spread_out(
    entries: NDArray[np.float64],
    first: int,
    last: int,
    offsets: NDArray[np.int64],
    states: NDArray[np.int32],
    n_states: int,
) -> NDArray[np.float64]:
    """Copy marginals of neighbouring positions into a table (K, n); `entries` are those of the legal states, in order."""
    if not len(offsets):
        return entries.reshape(last - first, n_states).T.copy()
    table = np.zeros((n_states, last - first))
    low, high = offsets[first], offsets[last]
    table[states[low:high], np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1]))] = entries
    return table
