"""Information-theoretic metrics of states and tags, in bits.

With H(G) and H(S) the entropies of gold tags and states: homogeneity is 1 - H(G|S) / H(G), completeness is 1 - H(S|G) /
H(S), the V-measure is their harmonic mean (Rosenberg and Hirschberg 2007), and the variation of information is H(G|S) +
H(S|G) = (H(G) + H(S)) (1 - V). The V-measure equals the mutual information divided by the mean of the two entropies,
also called normalised mutual information.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.metrics.contingency import Contingency


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


def tag_entropy(table: Contingency) -> float:
    """Return H(G), the entropy of the tags in bits.

    Examples
    --------
    >>> from subchain.metrics import Contingency, tag_entropy
    >>> tag_entropy(Contingency.of([0, 1, 0, 1], [0, 0, 0, 0]))
    1.0
    """
    return entropy(table.tag_totals)


def state_entropy(table: Contingency) -> float:
    """Return H(S), the entropy of the states in bits.

    Examples
    --------
    >>> from subchain.metrics import Contingency, state_entropy
    >>> state_entropy(Contingency.of([0, 1, 0, 1], [0, 0, 0, 0]))
    0.0
    """
    return entropy(table.state_totals)


def tag_entropy_given_state(table: Contingency) -> float:
    """Return H(G|S), the conditional entropy of the tag given the state in bits.

    Examples
    --------
    >>> from subchain.metrics import Contingency, tag_entropy_given_state
    >>> tag_entropy_given_state(Contingency.of([0, 1, 0, 1], [0, 0, 0, 0]))
    1.0
    """
    return _conditional_entropy(table.counts)


def state_entropy_given_tag(table: Contingency) -> float:
    """Return H(S|G), the conditional entropy of the state given the tag in bits.

    Examples
    --------
    >>> from subchain.metrics import Contingency, state_entropy_given_tag
    >>> state_entropy_given_tag(Contingency.of([0, 0, 0, 0], [0, 1, 2, 3]))
    2.0
    """
    return _conditional_entropy(table.counts.T)


def variation_of_information(table: Contingency) -> float:
    """Return H(G|S) + H(S|G) in bits, a distance between the labellings: 0 if they are equal up to renaming.

    It favours few states: a tagger with a handful of states does well here and badly in other metrics.

    Examples
    --------
    >>> from subchain.metrics import Contingency, variation_of_information
    >>> variation_of_information(Contingency.of([0, 0, 1, 1], [1, 1, 0, 2]))
    0.5
    """
    return tag_entropy_given_state(table) + state_entropy_given_tag(table)


def homogeneity(table: Contingency) -> float:
    """Return 1 - H(G|S) / H(G): 1 if every state has one tag, 0 if states and tags are independent.

    Examples
    --------
    >>> from subchain.metrics import Contingency, homogeneity
    >>> homogeneity(Contingency.of([0, 0, 1, 1], [0, 1, 2, 3]))
    1.0
    """
    return _share_explained(tag_entropy_given_state(table), tag_entropy(table))


def completeness(table: Contingency) -> float:
    """Return 1 - H(S|G) / H(S): 1 if every tag has one state, 0 if states and tags are independent.

    Examples
    --------
    >>> from subchain.metrics import Contingency, completeness
    >>> completeness(Contingency.of([0, 0, 1, 1], [0, 1, 2, 3]))
    0.5
    """
    return _share_explained(state_entropy_given_tag(table), state_entropy(table))


def v_measure(table: Contingency) -> float:
    """Return the V-measure, the harmonic mean of homogeneity and completeness, from 0 to 1.

    Examples
    --------
    >>> from subchain.metrics import Contingency, v_measure
    >>> round(v_measure(Contingency.of([0, 0, 1, 1], [0, 1, 2, 3])), 4)
    0.6667
    """
    h, c = homogeneity(table), completeness(table)
    return 2.0 * h * c / (h + c) if h + c > 0.0 else 0.0


def _share_explained(remaining: float, whole: float) -> float:
    """Return 1 − remaining / whole, clipped at 0 against rounding; 1 if `whole` is zero."""
    return max(0.0, 1.0 - remaining / whole) if whole > 0.0 else 1.0
