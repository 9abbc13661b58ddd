"""Trees of a treebank made ready for a grammar with latent annotations, and back (Petrov et al. 2006, section 2).

Traces and empty nodes are removed, function tags cut, X over the same X merged. Chains of unary nodes keep their top
and their bottom; what was between the two most often is put back after parsing. Nodes of more than two children are
binarised to the right, with one intermediate symbol @X for each label X.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from subchain.core.treebank_labels import EMPTY, ROOT, TOPS, base_label
from subchain.data.tree import Tree
from subchain.errors import InputError

#: Begins the label of an intermediate symbol.
INTERMEDIATE = "@"

#: What was between top and bottom of a chain of unary nodes, by the labels of the two.
Chains = dict[tuple[str, str], tuple[str, ...]]
#: How often each was.
Middles = dict[tuple[str, str], Counter[tuple[str, ...]]]
Result = TypeVar("Result")


class Prepared(NamedTuple):
    """Binarised trees, and what is needed to undo it.

    Attributes
    ----------
    trees : one ROOT over every tree, which has one child; other nodes have two, or one, that has two or a word
    chains : for `restored`
    """

    trees: list[Tree]
    chains: Chains


def is_preterminal(tree: Tree) -> bool:
    """Return whether a node has a word as its only child."""
    return len(tree.children) == 1 and isinstance(tree.children[0], str)


def _folded(tree: Tree, combine: Callable[[Tree, list[Result]], Result]) -> Result:
    """Return what `combine` makes of a tree and the results of its children that are trees, from the bottom up.

    Trees of long sentences are deep, so this goes without recursion.
    """
    order = list(tree.subtrees())
    done: list[Result] = []
    for node in reversed(order):
        n = sum(isinstance(child, Tree) for child in node.children)
        below = [done.pop() for _ in range(n)]
        done.append(combine(node, below))
    return done[0]


def clean_tree(tree: Tree) -> Tree | None:
    """Return a tree without traces, empty nodes, function tags, and X over the same X; None if nothing is left.

    This is also the form that parsed trees are compared with.

    Examples
    --------
    >>> from subchain.grammar import clean_tree, parse_bracketed
    >>> print(clean_tree(parse_bracketed("(S (NP-SBJ (-NONE- *)) (VP (VP (VB go))))")))
    (S (VP (VB go)))
    """
    return _folded(tree, _cleaned)


def _cleaned(node: Tree, below: list[Tree | None]) -> Tree | None:
    if is_preterminal(node):
        return None if node.label == EMPTY else node
    if len(below) < len(node.children):
        raise InputError(
            f"the node {node!s:.80} has a word beside other children; every word needs a node of its own, its tag."
        )
    children = [child for child in below if child is not None]
    if not children:
        return None
    label = base_label(node.label)
    if len(children) == 1 and children[0].label == label and not is_preterminal(children[0]):
        return children[0]
    return Tree(label, tuple(children))


def prepare_trees(trees: Iterable[Tree]) -> Prepared:
    """Return cleaned trees binarised under one ROOT, without those that are empty."""
    middles: Middles = {}
    found = []
    for tree in trees:
        cleaned = clean_tree(tree)
        if cleaned is not None:
            child = _folded(_below_root(cleaned), partial(_binarised, middles=middles))
            found.append(Tree(ROOT, (child.tree,)))
    most = {ends: counted.most_common(1)[0] for ends, counted in middles.items()}
    return Prepared(found, {ends: between for ends, (between, times) in most.items() if times and between})


def _below_root(tree: Tree) -> Tree:
    """Return what stands below ROOT; a node of ROOT that has several children becomes an intermediate one."""
    if tree.label not in TOPS or is_preterminal(tree):
        return tree
    only = tree.children[0] if len(tree.children) == 1 else None
    return only if isinstance(only, Tree) else Tree(INTERMEDIATE + ROOT, tree.children)


class _Chained(NamedTuple):
    """A binarised tree; below it, if it is a unary node, the labels between it and its child, which was one too."""

    tree: Tree
    between: tuple[str, ...] = ()


def _binarised(node: Tree, below: list[_Chained], middles: Middles) -> _Chained:
    if is_preterminal(node):
        return _Chained(node)
    if len(below) == 1:
        [(child, between)] = below
        only = child.children[0] if len(child.children) == 1 else None
        if isinstance(only, Tree):
            middles[child.label, only.label][between] -= 1
            child, between = only, (child.label, *between)
        else:
            between = ()
        middles.setdefault((node.label, child.label), Counter())[between] += 1
        return _Chained(Tree(node.label, (child,)), between)
    symbol = INTERMEDIATE + node.label.removeprefix(INTERMEDIATE)
    right = below[-1].tree
    for left in reversed(below[1:-1]):
        right = Tree(symbol, (left.tree, right))
    return _Chained(Tree(node.label, (below[0].tree, right)))


def restored(tree: Tree, chains: Chains) -> Tree:
    """Return a binarised tree in its usual form: without intermediate symbols, with the chains between unary nodes."""
    return _folded(tree, partial(_restored, chains=chains))[0]


def _restored(node: Tree, below: list[list[Tree]], chains: Chains) -> list[Tree]:
    if is_preterminal(node):
        return [node]
    children = [part for parts in below for part in parts]
    if node.label.startswith(INTERMEDIATE):
        return children
    if len(node.children) == 1 and node.label != ROOT:
        for label in reversed(chains.get((node.label, children[0].label), ())):
            children = [Tree(label, tuple(children))]
    return [Tree(node.label, tuple(children))]
