"""Inside-outside on given trees whose symbols have latent annotations (Matsuzaki et al. 2005), O(nodes · H³).

Nodes of a tree stand one after the other, children before parents, so the last node is the root, and the only or left
child of a node is the one before it. The vector of every node is divided by its sum, so nothing underflows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.compiled import bare_kernel

Array = NDArray[np.float64]

#: Numbers of children that are nodes: a word is none.
WORD, UNARY, BINARY = 0, 1, 2


class AnnotatedRules(NamedTuple):
    """Where the weights of rules are in a flat array, for R rules.

    The weights of a rule are a table over the annotations of parent, left and right child (or parent and child, or
    parent alone). Its row for parent annotation x begins at place + x · stride and is contiguous.

    Attributes
    ----------
    arity : (R,) number of children that are nodes
    sizes : (R, 3) numbers of annotations of parent, left (or only) and right child, 1 where there is none
    places, strides : (R,)
    """

    arity: NDArray[np.int8]
    sizes: NDArray[np.int32]
    places: NDArray[np.int64]
    strides: NDArray[np.int64]


class Forest(NamedTuple):
    """Nodes of T trees, one tree after the other.

    Attributes
    ----------
    rules : (N,) rule of each node
    backs : (N,) how many nodes before a node its right child is; 0 if it has fewer than two
    starts : (T + 1,) first node of each tree
    """

    rules: NDArray[np.int32]
    backs: NDArray[np.int32]
    starts: NDArray[np.int64]


@bare_kernel
def fill_inside(ids, backs, rules, weights, inside):
    """Write the scaled inside vectors of one tree's nodes, (n, H); return the log likelihood of the tree.

    `ids` (n,) are the rules of the nodes, `inside` is used up to the annotations of each node's symbol.
    """
    found = 0.0
    for k in range(ids.shape[0]):
        rule, own = ids[k], inside[k]
        arity, place, stride = rules.arity[rule], rules.places[rule], rules.strides[rule]
        n, n_left, n_right = rules.sizes[rule, 0], rules.sizes[rule, 1], rules.sizes[rule, 2]
        total = 0.0
        for x in range(n):
            at = place + x * stride
            value = 0.0
            if arity == BINARY:
                left, right = inside[k - 1], inside[k - backs[k]]
                for y in range(n_left):
                    row = weights[at : at + n_right]
                    part = 0.0
                    for z in range(n_right):
                        part += row[z] * right[z]
                    value += left[y] * part
                    at += n_right
            elif arity == UNARY:
                row, child = weights[at : at + n_left], inside[k - 1]
                for y in range(n_left):
                    value += row[y] * child[y]
            else:
                value = weights[at]
            own[x] = value
            total += value
        if not total > 0.0:
            return -np.inf
        for x in range(n):
            own[x] /= total
        own[n] = total
        found += np.log(total)
    return found


@bare_kernel
def fill_outside(ids, backs, rules, weights, inside, slopes):
    """Write the derivative of log Z by each node's unscaled inside vector, (n, H); `fill_inside` comes before.

    What is expected of a rule with the annotations x, y, z at a node is then slope[x] · weight · left[y] · right[z].
    """
    n_nodes = ids.shape[0]
    slopes[n_nodes - 1, : rules.sizes[ids[n_nodes - 1], 0]] = 1.0
    for k in range(n_nodes - 1, -1, -1):
        rule, own = ids[k], slopes[k]
        arity, place, stride = rules.arity[rule], rules.places[rule], rules.strides[rule]
        n, n_left, n_right = rules.sizes[rule, 0], rules.sizes[rule, 1], rules.sizes[rule, 2]
        scale = 1.0 / inside[k, n]
        for x in range(n):
            own[x] *= scale
        if arity == BINARY:
            left, right = inside[k - 1], inside[k - backs[k]]
            to_left, to_right = slopes[k - 1], slopes[k - backs[k]]
            to_left[:n_left] = 0.0
            to_right[:n_right] = 0.0
            for x in range(n):
                at, slope = place + x * stride, own[x]
                for y in range(n_left):
                    row, with_left = weights[at : at + n_right], slope * left[y]
                    part = 0.0
                    for z in range(n_right):
                        part += row[z] * right[z]
                        to_right[z] += with_left * row[z]
                    to_left[y] += slope * part
                    at += n_right
        elif arity == UNARY:
            to_child = slopes[k - 1]
            to_child[:n_left] = 0.0
            for x in range(n):
                at, slope = place + x * stride, own[x]
                row = weights[at : at + n_left]
                for y in range(n_left):
                    to_child[y] += slope * row[y]


@bare_kernel
def add_uses(rules, rule, left, right, slope, out, at, stride):
    """Add slope ⊗ left ⊗ right of one node to a table that begins at `at` of `out`; weights are still to be applied."""
    arity = rules.arity[rule]
    n, n_left, n_right = rules.sizes[rule, 0], rules.sizes[rule, 1], rules.sizes[rule, 2]
    for x in range(n):
        place, value = at + x * stride, slope[x]
        if arity == BINARY:
            for y in range(n_left):
                row, with_left = out[place : place + n_right], value * left[y]
                for z in range(n_right):
                    row[z] += with_left * right[z]
                place += n_right
        elif arity == UNARY:
            row = out[place : place + n_left]
            for y in range(n_left):
                row[y] += value * left[y]
        else:
            out[place] += value
