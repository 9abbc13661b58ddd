"""Lumps: groups of states that go on alike and together do the work of one.

States that share one regime between them, each with a corner of its observations, cannot be distinguished by where they
lead to; no two of them alone make a better state, and all of them together do. Groups come from a tree of the states by
how alike their rows are; what a group is worth as one state is told by expected counts, as for pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.statistics import HMMStatistics
from subchain.numerics.special import log_rising
from subchain.structures.chain.model import HMMPosterior

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Two states are a pair, which is looked at elsewhere.
FEWEST = 3


class Lump(NamedTuple):
    """States that could be one, and what their counts alone say of it."""

    members: Index
    gain: float


def lumps(prior: HMMPosterior, statistics: HMMStatistics, used: Index) -> list[Lump]:
    """Groups of at least three states whose counts are worth more as those of one, best first."""
    if len(used) < FEWEST:
        return []
    begin, base = prior.chain.concentrations()
    moves = _Moves(begin, base, statistics)
    emitted = _Emitted(prior.emission, statistics.emission)
    found = []
    for group in _groups(moves.base + moves.pairs, used, emitted):
        gain = moves.gain(group.members) + emitted.gain(group)
        if len(group.members) >= FEWEST and gain > 0.0:
            found.append(Lump(group.members, gain))
    return sorted(found, key=lambda lump: -lump.gain)


class _Group(NamedTuple):
    members: Index
    #: What the members emit together, as sums of one state.
    sums: Any


def _groups(rows: Array, used: Index, emitted: _Emitted) -> list[_Group]:
    """Groups of a tree in which states, and then groups, are joined whose rows are most alike on the average."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    root = np.sqrt(rows[used] / rows[used].sum(axis=1, keepdims=True))
    apart = np.sqrt(np.maximum(1.0 - root @ root.T, 0.0))  # Hellinger's distance
    np.fill_diagonal(apart, 0.0)
    nodes = [_Group(used[[k]], emitted.sums.take(used[[k]])) for k in range(len(used))]
    for left, right in linkage(squareform(apart, checks=False), "average")[:, :2].astype(np.int64):
        first, second = nodes[left], nodes[right]
        nodes.append(_Group(np.concatenate([first.members, second.members]), first.sums + second.sums))
    return nodes[len(used) :]


class _Emitted:
    """What emissions of groups are worth."""

    def __init__(self, prior: Any, sums: Any) -> None:
        self.prior, self.sums = prior, sums
        self.apart, self.nothing = prior.update(sums).log_partition(), prior.log_partition()

    def gain(self, group: _Group) -> float:
        first, others = group.members[:1], group.members[1:]
        together = float(self.prior.take(first).update(group.sums).log_partition()[0])
        return together + float(self.nothing[others].sum() - self.apart[group.members].sum())


class _Moves:
    """What first states and transitions of groups are worth; concentrations add up like counts."""

    def __init__(self, begin: Array, base: Array, statistics: HMMStatistics) -> None:
        self.begin, self.base = begin, base
        self.initial, self.pairs = np.maximum(statistics.initial, 0.0), np.maximum(statistics.pairs, 0.0)
        self.starts, self.entries = log_rising(begin, self.initial), log_rising(base, self.pairs)
        self.rows = self.entries.sum(axis=1) - log_rising(base.sum(axis=1), self.pairs.sum(axis=1))

    def gain(self, members: Index) -> float:
        base, pairs = self.base, self.pairs
        others = np.ones(len(base), dtype=bool)
        others[members] = False
        columns = log_rising(base[:, members].sum(axis=1), pairs[:, members].sum(axis=1))
        columns -= self.entries[:, members].sum(axis=1)
        first, joint = base[members[0]], pairs[members].sum(axis=0)
        row = log_rising(first[others], joint[others]).sum()
        row += log_rising(first[members].sum(), joint[members].sum()) - log_rising(first.sum(), joint.sum())
        begins = log_rising(self.begin[members].sum(), self.initial[members].sum()) - self.starts[members].sum()
        return float(columns[others].sum() + row - self.rows[members].sum() + begins)
