"""Trees of phrases: a label over children, which are trees or the tokens of a sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from subchain.errors import InputError

#: How brackets and white space within labels and tokens are written in bracketed trees, as in the Penn Treebank.
ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-", " ": "␣", "\t": "␣", "\n": "␣"})


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A label over its children; it does not change.

    Attributes
    ----------
    label : str
    children : tuple of Tree and str
        From left to right; strings are tokens, the leaves. Any sequence is taken.

    Examples
    --------
    >>> from subchain.data import Tree
    >>> tree = Tree("S", [Tree("NP", ["dogs"]), Tree("VP", [Tree("V", ["bark"])])])
    >>> print(tree)
    (S (NP dogs) (VP (V bark)))
    >>> tree.leaves(), tree.spans()
    (['dogs', 'bark'], [('S', 0, 2), ('NP', 0, 1), ('VP', 1, 2), ('V', 1, 2)])
    >>> print(tree.pretty())
    S
    ├─ NP dogs
    └─ VP
       └─ V bark
    """

    label: str
    children: tuple[Tree | str, ...]

    def __post_init__(self) -> None:
        given: object = self.children
        if isinstance(given, (str, Tree)):
            raise InputError(f"children of {self.label!r} must be a sequence of trees and tokens: {given!r:.60}.")
        object.__setattr__(self, "children", tuple(self.children))
        wrong = next((child for child in self.children if not isinstance(child, (str, Tree))), None)
        if wrong is not None:
            raise InputError(f"a child of {self.label!r} is {wrong!r:.60}; children are trees, or tokens as text.")

    # Trees of long sentences are deep: all of this goes without recursion.

    def _steps(self) -> Iterator[Tree | str | None]:
        """Yield trees and tokens from the top down and from left to right; None ends the tree begun last."""
        waiting: list[Tree | str | None] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(node, Tree):
                waiting.append(None)
                waiting += reversed(node.children)

    def subtrees(self) -> Iterator[Tree]:
        """Yield this tree and all trees below it, from the top down and from left to right."""
        return (node for node in self._steps() if isinstance(node, Tree))

    def leaves(self) -> list[str]:
        """Return the tokens from left to right."""
        return [node for node in self._steps() if isinstance(node, str)]

    def spans(self) -> list[tuple[str, int, int]]:
        """Return label, first token and the token after the last of every subtree, in the order of `subtrees`."""
        found: list[tuple[str, int, int]] = []
        begun: list[int] = []
        place = 0
        for node in self._steps():
            if node is None:
                number = begun.pop()
                found[number] = (*found[number][:2], place)
            elif isinstance(node, str):
                place += 1
            else:
                begun.append(len(found))
                found.append((node.label, place, place))
        return found

    def _contents(self) -> tuple[tuple[bool, str] | None, ...]:
        """Return what tells this tree from any other."""
        return tuple(
            None if node is None else (False, node) if isinstance(node, str) else (True, node.label)
            for node in self._steps()
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def __str__(self) -> str:
        """Return the tree in brackets on one line; brackets within tokens are written -LRB- and -RRB-."""
        parts: list[str] = []
        for node in self._steps():
            if node is None:
                parts.append(")")
            elif isinstance(node, str):
                parts.append(f" {node.translate(ESCAPES)}")
            else:
                parts.append(f"{' ' if parts else ''}({node.label.translate(ESCAPES)}")
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def pretty(self) -> str:
        """Return a drawing of several lines: a label a line, its children below it; a single token stands beside it."""
        lines: list[str] = []
        waiting: list[tuple[Tree | str, str, str]] = [(self, "", "")]
        while waiting:
            node, corner, below = waiting.pop()
            if isinstance(node, str):
                lines.append(corner + node)
                continue
            only = node.children[0] if len(node.children) == 1 else None
            if isinstance(only, str):
                lines.append(f"{corner}{node.label} {only}")
                continue
            lines.append(corner + node.label)
            last = len(node.children) - 1
            places = [(child, "└─ " if k == last else "├─ ", k == last) for k, child in enumerate(node.children)]
            waiting += [
                (child, below + mark, below + ("   " if is_last else "│  ")) for child, mark, is_last in places[::-1]
            ]
        return "\n".join(lines)
