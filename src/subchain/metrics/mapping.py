"""Maps from states to tags, and the accuracies under these maps.

States of unsupervised models have no names. The many-to-one map gives each state its most frequent tag; its accuracy
grows with the number of states, less so if the map is learned on one half of the data and scored on the other. A
one-to-one map gives each tag to at most one state. A map is an array (n_states,) of tags, -1 for states without a tag;
positions in such a state count as wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError
from subchain.metrics.contingency import Contingency

NO_TAG = -1
Map = NDArray[np.int64]


def mapped_accuracy(table: Contingency, tag_of_state: ArrayLike) -> float:
    """Return the accuracy of a map: the fraction of positions whose state is mapped to their tag.

    Parameters
    ----------
    table : Contingency
    tag_of_state : array of int, shape (n_states,)
        -1 for states without a tag.

    Examples
    --------
    >>> from subchain.metrics import Contingency, mapped_accuracy
    >>> mapped_accuracy(Contingency.of([0, 0, 1, 1], [1, 1, 0, 1]), [1, 0])
    0.75
    """
    tags = np.asarray(tag_of_state)
    if tags.shape != (table.n_states,) or tags.dtype.kind not in "iu":
        raise InputError(
            f"a map needs one tag for each of {table.n_states} states, but is {tags.dtype} of shape {tags.shape}."
        )
    outside = np.flatnonzero((tags < NO_TAG) | (tags >= table.n_tags))
    if outside.size:
        raise InputError(
            f"state {outside[0]} is mapped to tag {tags[outside[0]]}; tags run from 0 to {table.n_tags - 1}, and -1 "
            "means none."
        )
    mapped = np.flatnonzero(tags != NO_TAG)
    return float(table.counts[mapped, tags[mapped]].sum() / table.n_tokens)


def accuracy(table: Contingency) -> float:
    """Return the fraction of positions whose state has the number of their tag.

    Use it if a dictionary or labels make state *k* tag *k*.

    Examples
    --------
    >>> from subchain.metrics import Contingency, accuracy
    >>> accuracy(Contingency.of([0, 1, 2, 2], [0, 1, 2, 1]))
    0.75
    """
    return float(np.trace(table.counts) / table.n_tokens)


def many_to_one_map(table: Contingency) -> Map:
    """Return the map from each state to its most frequent tag, the first one of ties.

    Examples
    --------
    >>> from subchain.metrics import Contingency, many_to_one_map
    >>> many_to_one_map(Contingency.of([0, 0, 1, 0], [0, 2, 2, 2]))
    array([ 0, -1,  0])
    """
    return np.where(table.state_totals > 0, table.counts.argmax(axis=1), NO_TAG)


def greedy_map(table: Contingency) -> Map:
    """Return the one-to-one map that repeatedly takes the most frequent remaining (state, tag) pair.

    Published one-to-one accuracies of tag induction were computed with this map.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics import Contingency, greedy_map
    >>> greedy_map(Contingency(np.array([[5, 4], [4, 0]])))
    array([ 0, -1])
    """
    chosen = np.full(table.n_states, NO_TAG)
    left = table.counts.copy()
    for _ in range(min(left.shape)):
        state, tag = np.unravel_index(left.argmax(), left.shape)
        if left[state, tag] == 0:
            break
        chosen[state] = tag
        left[state], left[:, tag] = 0, 0
    return chosen


def optimal_map(table: Contingency) -> Map:
    """Return the one-to-one map with the highest accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics import Contingency, optimal_map
    >>> optimal_map(Contingency(np.array([[5, 4], [4, 0]])))
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    states, tags = linear_sum_assignment(table.counts, maximize=True)
    chosen = np.full(table.n_states, NO_TAG)
    chosen[states] = np.where(table.counts[states, tags] > 0, tags, NO_TAG)
    return chosen


def many_to_one(table: Contingency) -> float:
    """Return the accuracy under :func:`many_to_one_map`.

    Examples
    --------
    >>> from subchain.metrics import Contingency, many_to_one
    >>> many_to_one(Contingency.of([0, 0, 0, 1], [0, 1, 2, 2]))
    0.75
    """
    return mapped_accuracy(table, many_to_one_map(table))


def cross_validated_many_to_one(learn: Contingency, score: Contingency) -> float:
    """Return the accuracy on `score` of the many-to-one map learned on `learn`.

    States that do not occur in `learn` get no tag. Published results use the two :meth:`Contingency.halves` in their
    order; the mean of both orders uses every position.

    Examples
    --------
    >>> from subchain.metrics import Contingency, cross_validated_many_to_one
    >>> first, second = Contingency.halves([0, 0, 1, 1], [0, 0, 0, 1])
    >>> cross_validated_many_to_one(first, second)
    0.0
    """
    return mapped_accuracy(score, many_to_one_map(learn))


def greedy_one_to_one(table: Contingency) -> float:
    """Return the accuracy under :func:`greedy_map`.

    Examples
    --------
    >>> from subchain.metrics import Contingency, greedy_one_to_one
    >>> greedy_one_to_one(Contingency.of([0, 0, 0, 1], [0, 1, 1, 2]))
    0.75
    """
    return mapped_accuracy(table, greedy_map(table))


def optimal_one_to_one(table: Contingency) -> float:
    """Return the accuracy under :func:`optimal_map`; never below that of the greedy map.

    Examples
    --------
    >>> from subchain.metrics import Contingency, optimal_one_to_one
    >>> optimal_one_to_one(Contingency.of([0, 0, 0, 1], [0, 1, 1, 2]))
    0.75
    """
    return mapped_accuracy(table, optimal_map(table))
