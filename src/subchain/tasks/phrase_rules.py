"""The rules of a context-free grammar as one table for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.structures.phrases.rules import RuleSet

Array = NDArray[np.float64]
_FIELDS = [("left", object), ("right", object), ("probability", float), ("count", float)]


def rule_table(rules: RuleSet, weights: Array, counts: Array) -> NDArray[Any]:
    """Return the rules with their probabilities and counts, without those that have neither."""
    order = np.lexsort((-weights, rules.left))
    rows = [
        (rules.symbols[rules.left[rule]], " ".join(rules.names(rule)), weights[rule], counts[rule])
        for rule in order.tolist()
        if weights[rule] > 0.0 or not np.isnan(counts[rule])
    ]
    return np.array(rows, dtype=_FIELDS)
