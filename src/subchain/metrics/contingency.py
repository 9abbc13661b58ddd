"""How often each state was found where each tag belongs: the one table that all scores of a tagging come from."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError
from subchain.metrics.labels import LabelPairs, pair_labels

#: Entries of the largest table that is built.
MOST_ENTRIES = 1 << 27


@dataclasses.dataclass(frozen=True, eq=False)
class Contingency:
    """Counts of (state, tag) pairs.

    Use :meth:`of` to count two labellings; use the constructor when the table is at hand.

    Parameters
    ----------
    counts : array of int, shape (n_states, n_tags)
        ``counts[k, g]``: positions in state *k* whose gold tag is *g*.
    tag_names : sequence of str, optional
        Names of the tags.

    Examples
    --------
    >>> from subchain.metrics import Contingency
    >>> table = Contingency.of(gold=[0, 0, 1, -1], predicted=[2, 2, 0, 0])
    >>> table.counts
    array([[0, 1],
           [0, 0],
           [2, 0]])
    >>> table.n_tokens, table.states_used
    (3, 2)
    """

    counts: NDArray[np.int64]
    tag_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        counts = _checked_counts(self.counts)
        object.__setattr__(self, "counts", counts)
        if self.tag_names is not None:
            object.__setattr__(self, "tag_names", tuple(self.tag_names))
            if len(self.tag_names) != counts.shape[1]:
                raise InputError(f"the table has {counts.shape[1]} tags, but there are {len(self.tag_names)} names.")

    @classmethod
    def of(cls, gold: Any, predicted: Any, tag_names: Any = None) -> Self:
        """Count two labellings of the same positions.

        Parameters
        ----------
        gold, predicted : array of int (N,), list of such arrays, or Sequences
            Tags and states, -1 where unknown; positions that either does not know are left out.
        tag_names : sequence of str, optional
            Names of the tags; by default those of the vocabulary of ``gold``, if it has one.

        Returns
        -------
        Contingency

        Examples
        --------
        >>> from subchain.metrics import Contingency
        >>> Contingency.of([[0, 1], [1]], [[0, 0], [1]], tag_names=["noun", "verb"]).tag_totals
        array([1, 2])
        """
        return cls.of_pairs(pair_labels(gold, predicted, tag_names))

    @classmethod
    def halves(cls, gold: Any, predicted: Any) -> tuple[Self, Self]:
        """Count the first and the second half of the known positions, for cross-validation.

        Examples
        --------
        >>> from subchain.metrics import Contingency
        >>> first, second = Contingency.halves([0, 0, 1, 1], [0, 0, 0, 1])
        >>> first.counts.tolist(), second.counts.tolist()
        ([[2, 0], [0, 0]], [[0, 1], [0, 1]])
        """
        first, second = pair_labels(gold, predicted).halves()
        return cls.of_pairs(first), cls.of_pairs(second)

    @classmethod
    def of_pairs(cls, pairs: LabelPairs) -> Self:
        """Count labels that have been paired already."""
        shape = (pairs.n_states, pairs.n_tags)
        if shape[0] * shape[1] > MOST_ENTRIES:
            raise InputError(
                f"labels up to {max(shape) - 1} make a table of {shape[0]} states and {shape[1]} tags; number the "
                "labels from 0 on without gaps, as numpy.unique(labels, return_inverse=True) does."
            )
        cells = np.bincount(pairs.predicted * pairs.n_tags + pairs.gold, minlength=shape[0] * shape[1])
        return cls(cells.reshape(shape), pairs.whole.names)

    @property
    def n_states(self) -> int:
        """Number of states, those included that were never found."""
        return int(self.counts.shape[0])

    @property
    def n_tags(self) -> int:
        """Number of tags, those included that do not occur."""
        return int(self.counts.shape[1])

    @property
    def n_tokens(self) -> int:
        """Number of positions counted."""
        return int(self.counts.sum())

    @property
    def state_totals(self) -> NDArray[np.int64]:
        """Positions in each state, shape (n_states,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def tag_totals(self) -> NDArray[np.int64]:
        """Positions of each tag, shape (n_tags,)."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def states_used(self) -> int:
        """Number of states that were found at least once."""
        return int(np.count_nonzero(self.state_totals))


def _checked_counts(given: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(given)
    if counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise InputError(
            f"a table of counts holds whole numbers, (n_states, n_tags), but is {counts.dtype} of shape {counts.shape}."
        )
    if not counts.size or counts.min() < 0 or not counts.any():
        raise InputError("a table of counts needs numbers of at least 0, not all of them 0.")
    return counts.astype(np.int64)
