"""Labels of treebanks: function tags, empty nodes, tops of trees."""

from __future__ import annotations

import re

#: Label over every tree.
ROOT = "ROOT"
#: Labels that treebanks give to the top of a tree: taken to be `ROOT`.
TOPS = frozenset({ROOT, "TOP", "S1", "VROOT"})
#: Label of empty nodes.
EMPTY = "-NONE-"


def base_label(label: str) -> str:
    """Return a label without function tags and indices: cut at -, = or |, unless it begins with -.

    Examples
    --------
    >>> from subchain.core.treebank_labels import base_label
    >>> base_label("NP-SBJ-1"), base_label("ADVP|PRT"), base_label("-LRB-")
    ('NP', 'ADVP', '-LRB-')
    """
    return label if label.startswith("-") else re.split(r"[-=|]", label)[0] or label
