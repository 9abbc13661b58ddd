"""Symmetrisation: one set of links from the two directions of word alignment.

*Forward* links are those of p(target | source), in which every target word picks a source word; *backward* links those
of p(source | target). Growing starts from their intersection and adds links of their union (Och and Ney 2003; Koehn,
Och and Marcu 2003). The result depends on the order in which links are looked at. Here the order is that of Moses'
`symal`:

- *grow-diag*: the links so far are visited by target position, then by source position; a link that is added behind
  the current one is visited in the same round, and rounds repeat until one adds nothing. Of each link the neighbours
  are tried in the order: target before, source before, target behind, source behind, then the diagonal ones, (target
  before, source before), (before, behind), (behind, before), (behind, behind). A neighbour is added if it is in the
  union and one of its two words has no link yet.
- *final*: then the forward links that were not added, and after them the backward ones, by target position and then by
  source position, each if one of its two words has no link yet.
- *final-and*: the same, each if neither of its words has a link yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from subchain.data.links import Links, PackedLinks, sorted_distinct
from subchain.errors import InputError, unknown_name
from subchain.numerics.linking import linked

_whole = linked(error_model="numpy")

#: What follows growing: nothing, links with one free word, links with two free words.
NOTHING, ONE_FREE, BOTH_FREE = 0, 1, 2
_GROWN = {"grow-diag": NOTHING, "grow-diag-final": ONE_FREE, "grow-diag-final-and": BOTH_FREE}
#: Names of the methods that combine links.
METHODS = ("intersection", "union", *_GROWN)

#: Neighbours as steps of (target, source), in the order in which they are tried.
NEIGHBOURS = np.array([(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)])


@overload
def symmetrize(forward: Links, backward: Links, method: str = ...) -> Links: ...
@overload
def symmetrize(forward: Any, backward: Any, method: str = ...) -> NDArray[Any]: ...
def symmetrize(forward: Any, backward: Any, method: str = "grow-diag-final-and") -> Links | NDArray[Any]:
    """Combine the links of the two directions of word alignment.

    Parameters
    ----------
    forward, backward : Links, or the links of one sentence pair
        Links of p(target | source) and of p(source | target); both have the source position first. The links of one
        pair are an iterable of (source position, target position), or a Boolean matrix, (I, J), with a row per source
        position.
    method : {"intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"}
        Growing looks at links in the order of Moses.

    Returns
    -------
    Links, array of int, shape (n, 2), or Boolean matrix, shape (I, J)
        Of the kind that was given; sorted by source position.

    Examples
    --------
    >>> from subchain.alignment import symmetrize
    >>> forward, backward = [(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 1), (2, 1), (3, 3)]
    >>> symmetrize(forward, backward, "intersection").tolist()
    [[0, 0], [1, 1]]
    >>> symmetrize(forward, backward, "grow-diag-final-and").tolist()
    [[0, 0], [1, 1], [1, 2], [2, 1], [3, 3]]
    """
    if method not in METHODS:
        raise unknown_name("method of symmetrisation", method, METHODS)
    if isinstance(forward, Links) and isinstance(backward, Links):
        return _combined(forward, backward, method)
    if isinstance(forward, Links) or isinstance(backward, Links):
        raise InputError("forward and backward must both be Links, or both the links of one sentence pair.")
    first, second = _as_matrix(forward), _as_matrix(backward)
    if first is None or second is None:
        return _combined(Links.from_pairs([forward]), Links.from_pairs([backward]), method)[0].astype(np.int64)
    if first.shape != second.shape:
        raise InputError(f"the matrices have different shapes, {first.shape} and {second.shape}.")
    found = _combined(Links.from_pairs([np.argwhere(first)]), Links.from_pairs([np.argwhere(second)]), method)
    out = np.zeros_like(first)
    out[found.source, found.target] = True
    return out


def product_links(
    forward: Iterable[NDArray[Any]], backward: Iterable[NDArray[Any]], threshold: float = 0.4
) -> list[NDArray[np.int64]]:
    """Return the links whose posteriors in the two directions have a geometric mean above a threshold.

    Parameters
    ----------
    forward, backward : iterables of arrays, shape (I, J)
        Posterior probability of each link in either direction, for each sentence pair.
    threshold : float
        A link is kept if sqrt(forward · backward) is larger.

    Returns
    -------
    list of arrays of int, shape (n, 2)
        Source and target position of each link.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.alignment import product_links
    >>> forward, backward = np.array([[0.9, 0.5]]), np.array([[0.8, 0.1]])
    >>> product_links([forward], [backward])
    [array([[0, 0]])]
    """
    square = threshold * threshold
    return [np.argwhere(np.asarray(f) * b > square) for f, b in zip(forward, backward, strict=True)]


def _as_matrix(links: Any) -> NDArray[np.bool_] | None:
    """Return a Boolean matrix of links as it is; None for links of another kind."""
    if isinstance(links, np.ndarray) and links.dtype == np.bool_ and links.ndim == 2:
        return links
    return None


def _combined(forward: Links, backward: Links, method: str) -> Links:
    if len(forward) != len(backward):
        raise InputError(f"forward has links of {len(forward)} sentence pairs, but backward of {len(backward)}.")
    sides = (forward, backward)
    packing = PackedLinks.sizes(*(positions for side in sides for positions in (side.target, side.source)))
    keys = [packing.keys(side.pairs, side.target, side.source) for side in sides]
    ordered = sorted_distinct(np.concatenate(keys))
    is_in = [_contained(ordered, np.sort(side)) for side in keys]
    pairs, target, source = packing.unpacked(ordered)
    kept = np.ones(len(ordered), dtype=np.bool_) if method == "union" else is_in[0] & is_in[1]
    if method in _GROWN:
        offsets = np.searchsorted(pairs, np.arange(len(forward) + 1))
        _grow_all(offsets, target, source, *is_in, kept, _GROWN[method], packing.n_major, packing.n_minor)
    return Links.from_flat(pairs[kept], source[kept], target[kept], len(forward))


def _contained(ordered: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some distinct numbers in order are among others, which they contain, also in order."""
    found = np.zeros(len(ordered), dtype=np.bool_)
    found[np.searchsorted(ordered, some)] = True
    return found


@_whole
def _grow_all(offsets, target, source, forward, backward, kept, final, n_targets, n_sources):  # type: ignore[no-untyped-def]
    """Add links of the union to `kept`, pair by pair.

    Parameters
    ----------
    offsets : (n_pairs + 1,) first link of the union of each pair
    target, source : (n,) positions of the links, by target, then by source
    forward, backward, kept : (n,) whether a link is in either direction, and in the result
    final : what follows growing
    n_targets, n_sources : bounds of the positions
    """
    has_target, has_source = np.zeros(n_targets, np.bool_), np.zeros(n_sources, np.bool_)
    row = np.zeros(n_targets + 2, np.int64)  # first link of each target position, and the end of the last
    for pair in range(len(offsets) - 1):
        start, end = offsets[pair], offsets[pair + 1]
        if start == end:
            continue
        for link in range(start, end):
            has_target[target[link]] = has_source[source[link]] = False
        for link in range(start, end):
            if kept[link]:
                has_target[target[link]] = has_source[source[link]] = True
        last = target[end - 1]
        link = start
        for position in range(last + 2):
            row[position] = link
            while link < end and target[link] == position:
                link += 1
        _grow(start, end, last, row, target, source, kept, has_target, has_source)
        if final != NOTHING:
            _add_final(start, end, target, source, forward, backward, kept, final, has_target, has_source)


@_whole
def _grow(start, end, last, row, target, source, kept, has_target, has_source):  # type: ignore[no-untyped-def]
    """Add neighbours of kept links, between `start` and `end`, until no more can be added."""
    added = True
    while added:
        added = False
        for link in range(start, end):
            if not kept[link]:
                continue
            for step in range(len(NEIGHBOURS)):
                j, i = target[link] + NEIGHBOURS[step, 0], source[link] + NEIGHBOURS[step, 1]
                if j < 0 or j > last or i < 0:
                    continue
                low, high = row[j], row[j + 1]
                while low < high:  # binary search for source position i
                    middle = (low + high) // 2
                    if source[middle] < i:
                        low = middle + 1
                    else:
                        high = middle
                if low < row[j + 1] and source[low] == i and not (has_target[j] and has_source[i]):
                    kept[low] = has_target[j] = has_source[i] = True
                    added = True


@_whole
def _add_final(start, end, target, source, forward, backward, kept, final, has_target, has_source):  # type: ignore[no-untyped-def]
    """Add links with free words: those of the forward direction first, then those of the backward one."""
    for side in range(2):
        members = forward if side == 0 else backward
        for link in range(start, end):
            if kept[link] or not members[link]:
                continue
            j, i = target[link], source[link]
            n_free = (not has_target[j]) + (not has_source[i])
            if n_free >= (2 if final == BOTH_FREE else 1):
                kept[link] = has_target[j] = has_source[i] = True
