"""Symmetrisation in plain Python, on sets of (source, target) links: slow, and written as it is described."""

from __future__ import annotations

LinkSet = set[tuple[int, int]]


def symmetrized(forward: LinkSet, backward: LinkSet, method: str) -> LinkSet:
    """Combine two sets of links."""
    if method == "union":
        return forward | backward
    links = forward & backward
    if method == "intersection":
        return links
    grow(links, forward | backward)
    if method != "grow-diag":
        for side in (forward, backward):
            for source, target in sorted(side, key=lambda link: (link[1], link[0])):
                free = sum([source not in {i for i, _ in links}, target not in {j for _, j in links}])
                if free >= (2 if method.endswith("and") else 1):
                    links.add((source, target))
    return links


def grow(links: LinkSet, union: LinkSet) -> None:
    """Add neighbours of links until a round over all positions, target by target, adds none."""
    n_sources, n_targets = (max((link[side] for link in union), default=-1) + 1 for side in (0, 1))
    before = None
    while before != len(links):
        before = len(links)
        for target in range(n_targets):
            for source in range(n_sources):
                if (source, target) not in links:
                    continue
                for down, right in [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]:
                    near = (source + right, target + down)
                    is_free = near[0] not in {i for i, _ in links} or near[1] not in {j for _, j in links}
                    if near in union and is_free:
                        links.add(near)
