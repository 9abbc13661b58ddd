"""Legal states of every position in compressed sparse rows, for passes that visit only legal states.

With a tag dictionary or known states, most positions have one or two legal states, so that lists need far less memory
and time than a table of all states. Position t has the entries `offsets[t]` to `offsets[t + 1]`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence_sources import blocks
from subchain.data.sequences import Sequences

if TYPE_CHECKING:
    from subchain.data.evidence import Evidence


@dataclasses.dataclass(frozen=True)
class LegalStates:
    """Legal states of every position with their log weights.

    Create it with :meth:`of` from :class:`Evidence`, which guarantees at least one legal state per position.

    Attributes
    ----------
    offsets : array of int64, shape (N + 1,)
        Index of the first entry of each position.
    states : array of int32, shape (nnz,)
        Legal states, increasing within each position.
    log_weights : array of float64, shape (nnz,), or None
        Terms added to the log likelihoods; None if all are zero.
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
        """Return the legal states at each position of the data, built block by block.

        Parameters
        ----------
        evidence : Evidence
            Evidence about the states of these data.
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
            listed = evidence.lists_of(data.values[index[0] : index[-1] + 1])
            if listed is not None:
                offsets[index + 1] = listed[0]
                states.append(listed[1])
                continue
            table = evidence.log_weights(index, data.values[index[0] : index[-1] + 1]).T
            rows, here = np.nonzero(table > -np.inf)
            offsets[index + 1] = np.bincount(rows, minlength=len(index))
            states.append(here.astype(np.int32))
            log_weights.append(table[rows, here])
        has_weights = any(block.any() for block in log_weights)
        joined = np.concatenate(log_weights) if has_weights else None
        return cls(np.cumsum(offsets), np.concatenate(states), joined, evidence.n_states)

    def between(self, start: int, stop: int) -> Self:
        """Return the legal states of the positions start … stop − 1; only the offsets are copied."""
        offsets = self.offsets[start : stop + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        log_weights = None if self.log_weights is None else self.log_weights[entries]
        return type(self)(offsets - offsets[0], self.states[entries], log_weights, self.n_states)

    @property
    def n_entries(self) -> int:
        """Total number of legal states of all positions."""
        return len(self.states)

    @property
    def share(self) -> float:
        """Fraction of all N · K entries that are legal; 1 if there are no positions."""
        n_all = (len(self.offsets) - 1) * self.n_states
        return self.n_entries / n_all if n_all else 1.0

    @property
    def nbytes(self) -> int:
        """Memory of the lists in bytes."""
        weights = 0 if self.log_weights is None else self.log_weights.nbytes
        return self.offsets.nbytes + self.states.nbytes + weights


def no_restriction() -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the empty `offsets` and `states` by which kernels recognise that all states are legal."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)


def spread_out(
    entries: NDArray[np.float64],
    first: int,
    last: int,
    offsets: NDArray[np.int64],
    states: NDArray[np.int32],
    n_states: int,
) -> NDArray[np.float64]:
    """Return the marginals of positions first … last − 1 as a dense table, (K, n).

    Parameters
    ----------
    entries : (nnz,) marginals of the legal states of these positions, in the order of `states`
    offsets, states : as in `LegalStates`; empty if all states are legal
    """
    if not len(offsets):
        return entries.reshape(last - first, n_states).T.copy()
    table = np.zeros((n_states, last - first))
    low, high = offsets[first], offsets[last]
    table[states[low:high], np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1]))] = entries
    return table
