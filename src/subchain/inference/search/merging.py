"""Merges: states that do the work of one become one, if the bound rises.

Which pairs, or groups (`lumping`), are worth a try is told by expected counts alone: what the counts of all would be
worth as counts of one state. States that have the same transitions and emissions but share them at random always gain
by that measure; whether the whole posterior gains is then found out by passes over the data. Before the states have
become different from each other every merge looks good, and none is tried unless the run would end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.statistics import HMMStatistics
from subchain.inference.search.group_merging import lumps
from subchain.numerics.special import log_rising
from subchain.structures.chain.model import HMMPosterior

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: States that are expected at fewer positions are not used.
USED = 0.5
#: Pairs that lose more by their counts (nats) are not tried.
HOPELESS = -100.0
#: Pairs that are looked at closely, for each state in use.
CLOSE = 5


class Merge(NamedTuple):
    """States to be taken into another one, and what their counts alone say of it."""

    into: int
    gone: tuple[int, ...]
    gain: float

    def fold(self, statistics: HMMStatistics) -> HMMStatistics:
        """Counts after the merge."""
        for gone in self.gone:
            statistics = statistics.fold(self.into, gone)
        return statistics

    def __str__(self) -> str:
        if len(self.gone) == 1:
            return f"state {self.gone[0]} was taken into state {self.into}"
        return f"states {', '.join(map(str, self.gone))} were taken into state {self.into}"


def merges(prior: HMMPosterior, statistics: HMMStatistics, most: int) -> list[Merge]:
    """The pairs and the groups of states that promise most, so many of each, best first.

    Counts that stay with a passage between two states speak against a merge that frees the passage; so pairs are tried
    that promise a little less than nothing.
    """
    visits = statistics.visits
    found = [merge for merge in pair_merges(prior, statistics, most) if merge.gain > HOPELESS]
    found += [_merge(visits, *lump) for lump in lumps(prior, statistics, np.flatnonzero(visits > USED))[:most]]
    return sorted(found, key=lambda merge: -merge.gain)


def pair_merges(prior: HMMPosterior, statistics: HMMStatistics, most: int) -> list[Merge]:
    """The pairs of states that promise most, or lose least, best first. The state that is visited more stays."""
    first, second = _close_pairs(prior, statistics, np.flatnonzero(statistics.visits > USED))
    if not len(first):
        return []
    gains = _of_emissions(prior.emission, statistics.emission, first, second)
    begin, base = prior.chain.concentrations()
    gains += _of_moves(begin, base, statistics.initial, statistics.pairs, first, second)
    best = np.argsort(-gains, kind="stable")[:most]
    return [_merge(statistics.visits, np.array([first[pair], second[pair]]), float(gains[pair])) for pair in best]


def _merge(visits: Array, members: Index, gain: float) -> Merge:
    into = members[np.argmax(visits[members])]
    return Merge(int(into), tuple(int(member) for member in members if member != into), gain)


def _close_pairs(prior: HMMPosterior, statistics: HMMStatistics, used: Index) -> tuple[Index, Index]:
    """Pairs of used states: all, or those most alike in where they come from, where they go and what they emit."""
    first, second = (used[index] for index in np.triu_indices(len(used), 1))
    most = CLOSE * len(used)
    if len(first) <= most:
        return first, second
    pairs = np.maximum(statistics.pairs, 0.0)
    emitted = prior.emission.update(statistics.emission).mean().expectation()
    profiles = [pairs, pairs.T, emitted - emitted.mean(axis=0)]
    alike = np.zeros(len(first))
    for profile in profiles:
        unit = profile / np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-300)
        alike += (unit @ unit.T)[first, second]
    best = np.argsort(-alike, kind="stable")[:most]
    return first[best], second[best]


def _of_emissions(prior: Any, sums: Any, first: Index, second: Index) -> Array:
    """How much more probable the observations of two states are as those of one."""
    apart, nothing = prior.update(sums).log_partition(), prior.log_partition()
    together = prior.take(first).update(sums.take(first) + sums.take(second)).log_partition()
    return np.asarray(together + nothing[second] - apart[first] - apart[second])


def _of_moves(begin: Array, base: Array, initial: Array, pairs: Array, first: Index, second: Index) -> Array:
    """The same for first states and transitions, whose concentrations add up like their counts."""
    initial, pairs = np.maximum(initial, 0.0), np.maximum(pairs, 0.0)
    entries = log_rising(base, pairs)  # what each entry is worth as it is
    of_rows = entries.sum(axis=1) - log_rising(base.sum(axis=1), pairs.sum(axis=1))

    def columns(table: Array) -> Array:
        return table[:, first] + table[:, second]

    merged = log_rising(columns(base), columns(pairs)) - columns(entries)  # (K, pairs): every row, columns merged
    every = np.arange(len(first))
    gain = merged.sum(axis=0) - merged[first, every] - merged[second, every]
    joint_base, joint = base[first], pairs[first] + pairs[second]  # the two rows as one
    joint_own = joint[every, first] + joint[every, second]
    own_base = joint_base[every, first] + joint_base[every, second]
    separate = log_rising(joint_base, joint)
    row = separate.sum(axis=1) - separate[every, first] - separate[every, second] + log_rising(own_base, joint_own)
    row -= log_rising(joint_base.sum(axis=1), joint.sum(axis=1))
    gain += row - of_rows[first] - of_rows[second]
    if (begin > 0.0).all():  # first states may also be given, or follow from the transitions
        alone = log_rising(begin, initial)
        gain += log_rising(begin[first] + begin[second], initial[first] + initial[second])
        gain -= alone[first] + alone[second]
    return np.asarray(gain)
