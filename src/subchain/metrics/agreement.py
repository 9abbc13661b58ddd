"""Adjusted Rand index: agreement about which pairs of positions belong to the same group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.renamed import renamed_arguments
from subchain.metrics.contingency import table_of


@renamed_arguments(table="gold")
def adjusted_rand(gold: Any, predicted: Any = None) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985): 1 for equal groupings, 0 in expectation for random ones.

    Examples
    --------
    >>> from subchain.metrics import adjusted_rand
    >>> adjusted_rand([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    table = table_of(gold, predicted)
    together = _pairs(table.counts)
    same_state, same_tag = _pairs(table.state_totals), _pairs(table.tag_totals)
    all_pairs = _pairs(np.array([table.n_tokens]))
    if same_state == same_tag and same_state in (0.0, all_pairs):
        return 1.0
    expected = same_state * same_tag / all_pairs
    return (together - expected) / ((same_state + same_tag) / 2.0 - expected)


def _pairs(counts: NDArray[np.int64]) -> float:
    """Return the number of unordered pairs within groups of these sizes, as a float: it may exceed 64 bits."""
    sizes = counts.astype(np.float64)
    return float((sizes * (sizes - 1.0)).sum() / 2.0)
