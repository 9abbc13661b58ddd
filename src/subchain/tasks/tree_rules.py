"""The rules of a dependency grammar as one table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.structures.trees.model import TreePoint, TreePosterior

SIDES = ("left", "right")
_FIELDS = [
    ("rule", object), ("head", object), ("side", object), ("has_dependent", bool), ("dependent", object),
    ("probability", float), ("count", float),
]  # fmt: skip


def rule_table(
    point: TreePoint, posterior: TreePosterior, tags: list[str], concentrations: Mapping[str, float]
) -> NDArray[Any]:
    """Return the rules with their probabilities and counts, which are those of the posterior without the prior's."""
    rules, totals = point.rules(), posterior.rules()
    counts = {name: table - concentrations[name] for name, table in totals._asdict().items()}
    rows: list[tuple[Any, ...]] = [
        ("root", "", "", False, tag, rules.root[0, code], counts["root"][0, code]) for code, tag in enumerate(tags)
    ]
    rows.sort(key=lambda row: -row[5])
    for row in range(4 * len(tags)):
        head, side, has = tags[row // 4], SIDES[row // 2 % 2], bool(row % 2)
        rows.append(("stop", head, side, has, "", rules.stop[row, 0], counts["stop"][row, 0]))
    for row in range(2 * len(tags)):
        for code in np.argsort(-rules.attach[row], kind="stable").tolist():
            shown = rules.attach[row, code], counts["attach"][row, code]
            rows.append(("attach", tags[row // 2], SIDES[row % 2], False, tags[code], *shown))
    return np.array(rows, dtype=_FIELDS)
