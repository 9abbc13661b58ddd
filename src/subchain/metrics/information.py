"""Information-theoretic metrics of states and tags, in bits.

With H(G) and H(S) the entropies of gold tags and states: homogeneity is 1 - H(G|S) / H(G), completeness is 1 - H(S|G) /
H(S), the V-measure is their harmonic mean (Rosenberg and Hirschberg 2007), and the variation of information is H(G|S) +
H(S|G) = (H(G) + H(S)) (1 - V). The V-measure equals the mutual information divided by the mean of the two entropies,
also called normalised mutual information.

All functions but `entropy` take gold tags and predicted states, as `Contingency.of` does, or the `Contingency` of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.renamed import renamed_arguments
from subchain.metrics.contingency import table_of


def entropy(counts: ArrayLike) -> float:
    """Return the entropy, in bits, of the normalised counts.

    Examples
    --------
    >>> from subchain.metrics import entropy
    >>> entropy([2, 2, 2, 2])
    2.0
    """
    weights = np.asarray(counts, dtype=np.float64).reshape(-1)
    positive = weights[weights > 0]
    total = positive.sum()
    return float((positive * np.log2(total / positive)).sum() / total) if positive.size else 0.0


def _conditional_entropy(counts: NDArray[np.int64]) -> float:
    """Return the entropy of the column given the row, as a sum of nonnegative terms."""
    rows, columns = np.nonzero(counts)
    cells = counts[rows, columns]
    return float((cells * np.log2(counts.sum(axis=1)[rows] / cells)).sum() / counts.sum())


@renamed_arguments(table="gold")
def tag_entropy(gold: Any, predicted: Any = None) -> float:
    """Return H(G), the entropy of the tags in bits.

    Examples
    --------
    >>> from subchain.metrics import tag_entropy
    >>> tag_entropy([0, 1, 0, 1], [0, 0, 0, 0])
    1.0
    """
    table = table_of(gold, predicted)
    return entropy(table.tag_totals)


@renamed_arguments(table="gold")
def state_entropy(gold: Any, predicted: Any = None) -> float:
    """Return H(S), the entropy of the states in bits.

    Examples
    --------
    >>> from subchain.metrics import state_entropy
    >>> state_entropy([0, 1, 0, 1], [0, 0, 0, 0])
    0.0
    """
    table = table_of(gold, predicted)
    return entropy(table.state_totals)


@renamed_arguments(table="gold")
def tag_entropy_given_state(gold: Any, predicted: Any = None) -> float:
    """Return H(G|S), the conditional entropy of the tag given the state in bits.

    Examples
    --------
    >>> from subchain.metrics import tag_entropy_given_state
    >>> tag_entropy_given_state([0, 1, 0, 1], [0, 0, 0, 0])
    1.0
    """
    table = table_of(gold, predicted)
    return _conditional_entropy(table.counts)


@renamed_arguments(table="gold")
def state_entropy_given_tag(gold: Any, predicted: Any = None) -> float:
    """Return H(S|G), the conditional entropy of the state given the tag in bits.

    Examples
    --------
    >>> from subchain.metrics import state_entropy_given_tag
    >>> state_entropy_given_tag([0, 0, 0, 0], [0, 1, 2, 3])
    2.0
    """
    table = table_of(gold, predicted)
    return _conditional_entropy(table.counts.T)


@renamed_arguments(table="gold")
def variation_of_information(gold: Any, predicted: Any = None) -> float:
    """Return H(G|S) + H(S|G) in bits, a distance between the labellings: 0 if they are equal up to renaming.

    It favours few states: a tagger with a handful of states does well here and badly in other metrics.

    Examples
    --------
    >>> from subchain.metrics import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 2])
    0.5
    """
    table = table_of(gold, predicted)
    return tag_entropy_given_state(table) + state_entropy_given_tag(table)


@renamed_arguments(table="gold")
def homogeneity(gold: Any, predicted: Any = None) -> float:
    """Return 1 - H(G|S) / H(G): 1 if every state has one tag, 0 if states and tags are independent.

    Examples
    --------
    >>> from subchain.metrics import homogeneity
    >>> homogeneity([0, 0, 1, 1], [0, 1, 2, 3])
    1.0
    """
    table = table_of(gold, predicted)
    return _share_explained(tag_entropy_given_state(table), tag_entropy(table))


@renamed_arguments(table="gold")
def completeness(gold: Any, predicted: Any = None) -> float:
    """Return 1 - H(S|G) / H(S): 1 if every tag has one state, 0 if states and tags are independent.

    Examples
    --------
    >>> from subchain.metrics import completeness
    >>> completeness([0, 0, 1, 1], [0, 1, 2, 3])
    0.5
    """
    table = table_of(gold, predicted)
    return _share_explained(state_entropy_given_tag(table), state_entropy(table))


@renamed_arguments(table="gold")
def v_measure(gold: Any, predicted: Any = None) -> float:
    """Return the V-measure, the harmonic mean of homogeneity and completeness, from 0 to 1.

    Examples
    --------
    >>> from subchain.metrics import v_measure
    >>> round(v_measure([0, 0, 1, 1], [0, 1, 2, 3]), 4)
    0.6667
    """
    table = table_of(gold, predicted)
    h, c = homogeneity(table), completeness(table)
    return 2.0 * h * c / (h + c) if h + c > 0.0 else 0.0


def _share_explained(remaining: float, whole: float) -> float:
    """Return 1 − remaining / whole, clipped at 0 against rounding; 1 if `whole` is zero."""
    return max(0.0, 1.0 - remaining / whole) if whole > 0.0 else 1.0
