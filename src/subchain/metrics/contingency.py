"""Contingency table of states and tags, from which all metrics are computed."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError
from subchain.metrics.labels import LabelPairs, pair_labels

#: Maximum number of entries of a table.
MAX_ENTRIES = 1 << 27


@dataclasses.dataclass(frozen=True, eq=False)
class Contingency:
    """Counts of (state, tag) pairs.

    Use :meth:`of` to count two labellings, and the constructor for an existing table.

    Parameters
    ----------
    counts : array of int, shape (n_states, n_tags)
        ``counts[k, g]`` is the number of positions in state *k* with gold tag *g*.
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
        """Return the contingency table of two labellings of the same positions.

        Parameters
        ----------
        gold, predicted : array of int (N,), list of such arrays, or Sequences
            Tags and states, -1 where unknown; positions unknown to either are left out.
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
        """Return the tables of the first and the second half of the known positions, for cross-validation.

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
        """Return the contingency table of paired labels."""
        shape = (pairs.n_states, pairs.n_tags)
        if shape[0] * shape[1] > MAX_ENTRIES:
            raise InputError(
                f"labels up to {max(shape) - 1} make a table of {shape[0]} states and {shape[1]} tags, which is too "
                "large; number the labels from 0 without gaps, as numpy.unique(labels, return_inverse=True) does."
            )
        cells = np.bincount(pairs.predicted * pairs.n_tags + pairs.gold, minlength=shape[0] * shape[1])
        return cls(cells.reshape(shape), pairs.whole.names)

    @property
    def n_states(self) -> int:
        """Number of states, including those that do not occur."""
        return int(self.counts.shape[0])

    @property
    def n_tags(self) -> int:
        """Number of tags, including those that do not occur."""
        return int(self.counts.shape[1])

    @property
    def n_tokens(self) -> int:
        """Number of positions counted."""
        return int(self.counts.sum())

    @property
    def state_totals(self) -> NDArray[np.int64]:
        """Number of positions in each state, shape (n_states,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def tag_totals(self) -> NDArray[np.int64]:
        """Number of positions with each tag, shape (n_tags,)."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def states_used(self) -> int:
        """Number of states that occur."""
        return int(np.count_nonzero(self.state_totals))


def _checked_counts(given: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(given)
    if counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise InputError(
            f"a table of counts needs integers of shape (n_states, n_tags), not {counts.dtype} of shape {counts.shape}."
        )
    if not counts.size or counts.min() < 0 or not counts.any():
        raise InputError("a table of counts must not have negative entries, and needs at least one positive entry.")
    return counts.astype(np.int64)


def table_of(gold: Any, predicted: Any = None) -> Contingency:
    """Return the contingency table of two labellings, or the table itself if one was given instead of them."""
    if isinstance(gold, Contingency):
        if predicted is not None:
            raise InputError("a Contingency holds tags and states already; give it alone, or give gold and predicted.")
        return gold
    if predicted is None:
        raise InputError("only gold tags were given; give gold and predicted, or a Contingency of both.")
    return Contingency.of(gold, predicted)
