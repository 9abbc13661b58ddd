"""Maps from states to tags, and the accuracies under these maps.

States of unsupervised models have no names. The many-to-one map gives each state its most frequent tag; its accuracy
grows with the number of states, less so if the map is learned on one half of the data and scored on the other. A
one-to-one map gives each tag to at most one state. A map is an array (n_states,) of tags, -1 for states without a tag;
positions in such a state count as wrong.

All functions take gold tags and predicted states, as `Contingency.of` does, or the `Contingency` of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.renamed import renamed_arguments
from subchain.errors import InputError
from subchain.metrics.contingency import Contingency, table_of

NO_TAG = -1
Map = NDArray[np.int64]


@renamed_arguments(table="gold")
def mapped_accuracy(gold: Any, predicted: Any = None, tag_of_state: Any = None) -> float:
    """Return the accuracy of a map: the fraction of positions whose state is mapped to their tag.

    Parameters
    ----------
    gold, predicted : array of int (N,), list of such arrays, or Sequences
        Tags and states, -1 where unknown; or a `Contingency` of both in place of the two.
    tag_of_state : array of int, shape (n_states,)
        -1 for states without a tag.

    Examples
    --------
    >>> from subchain.metrics import Contingency, mapped_accuracy
    >>> mapped_accuracy([0, 0, 1, 1], [1, 1, 0, 1], [1, 0])
    0.75
    >>> mapped_accuracy(Contingency.of([0, 0, 1, 1], [1, 1, 0, 1]), [1, 0])
    0.75
    """
    if isinstance(gold, Contingency) and tag_of_state is None:
        predicted, tag_of_state = None, predicted
    table = table_of(gold, predicted)
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


@renamed_arguments(table="gold")
def accuracy(gold: Any, predicted: Any = None) -> float:
    """Return the fraction of positions whose state has the number of their tag.

    Use it if a dictionary or labels make state *k* tag *k*.

    Examples
    --------
    >>> from subchain.metrics import accuracy
    >>> accuracy([0, 1, 2, 2], [0, 1, 2, 1])
    0.75
    """
    table = table_of(gold, predicted)
    return float(np.trace(table.counts) / table.n_tokens)


@renamed_arguments(table="gold")
def many_to_one_map(gold: Any, predicted: Any = None) -> Map:
    """Return the map from each state to its most frequent tag, the first one of ties.

    Examples
    --------
    >>> from subchain.metrics import many_to_one_map
    >>> many_to_one_map([0, 0, 1, 0], [0, 2, 2, 2])
    array([ 0, -1,  0])
    """
    table = table_of(gold, predicted)
    return np.where(table.state_totals > 0, table.counts.argmax(axis=1), NO_TAG)


@renamed_arguments(table="gold")
def greedy_map(gold: Any, predicted: Any = None) -> Map:
    """Return the one-to-one map that repeatedly takes the most frequent remaining (state, tag) pair.

    Published one-to-one accuracies of tag induction were computed with this map.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics import Contingency, greedy_map
    >>> greedy_map(Contingency(np.array([[5, 4], [4, 0]])))
    array([ 0, -1])
    """
    table = table_of(gold, predicted)
    chosen = np.full(table.n_states, NO_TAG)
    left = table.counts.copy()
    for _ in range(min(left.shape)):
        state, tag = np.unravel_index(left.argmax(), left.shape)
        if left[state, tag] == 0:
            break
        chosen[state] = tag
        left[state], left[:, tag] = 0, 0
    return chosen


@renamed_arguments(table="gold")
def optimal_map(gold: Any, predicted: Any = None) -> Map:
    """Return the one-to-one map with the highest accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.metrics import Contingency, optimal_map
    >>> optimal_map(Contingency(np.array([[5, 4], [4, 0]])))
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    table = table_of(gold, predicted)
    states, tags = linear_sum_assignment(table.counts, maximize=True)
    chosen = np.full(table.n_states, NO_TAG)
    chosen[states] = np.where(table.counts[states, tags] > 0, tags, NO_TAG)
    return chosen


@renamed_arguments(table="gold")
def many_to_one(gold: Any, predicted: Any = None) -> float:
    """Return the accuracy under :func:`many_to_one_map`.

    Examples
    --------
    >>> from subchain.metrics import many_to_one
    >>> many_to_one([0, 0, 0, 1], [0, 1, 2, 2])
    0.75
    """
    table = table_of(gold, predicted)
    return mapped_accuracy(table, many_to_one_map(table))


@renamed_arguments(learn="gold", score="predicted")
def cross_validated_many_to_one(gold: Any, predicted: Any) -> float:
    """Return the accuracy on the second half of the data of the many-to-one map learned on the first half.

    States that do not occur in the first half get no tag. Published results use the halves in their order; the mean of
    both orders uses every position.

    Parameters
    ----------
    gold, predicted : array of int (N,), list of such arrays, or Sequences
        Tags and states, -1 where unknown. Or two tables of type `Contingency`, the one that the map is learned on and
        the one that it is scored on, such as those of `Contingency.halves`.

    Examples
    --------
    >>> from subchain.metrics import Contingency, cross_validated_many_to_one
    >>> cross_validated_many_to_one([0, 0, 1, 1], [0, 0, 0, 1])
    0.0
    >>> first, second = Contingency.halves([0, 0, 1, 1], [0, 0, 0, 1])
    >>> cross_validated_many_to_one(second, first)
    0.0
    """
    is_counted = isinstance(gold, Contingency) and isinstance(predicted, Contingency)
    learn, score = (gold, predicted) if is_counted else Contingency.halves(gold, predicted)
    return mapped_accuracy(score, many_to_one_map(learn))


@renamed_arguments(table="gold")
def greedy_one_to_one(gold: Any, predicted: Any = None) -> float:
    """Return the accuracy under :func:`greedy_map`.

    Examples
    --------
    >>> from subchain.metrics import greedy_one_to_one
    >>> greedy_one_to_one([0, 0, 0, 1], [0, 1, 1, 2])
    0.75
    """
    table = table_of(gold, predicted)
    return mapped_accuracy(table, greedy_map(table))


@renamed_arguments(table="gold")
def optimal_one_to_one(gold: Any, predicted: Any = None) -> float:
    """Return the accuracy under :func:`optimal_map`; never below that of the greedy map.

    Examples
    --------
    >>> from subchain.metrics import optimal_one_to_one
    >>> optimal_one_to_one([0, 0, 0, 1], [0, 1, 1, 2])
    0.75
    """
    table = table_of(gold, predicted)
    return mapped_accuracy(table, optimal_map(table))
