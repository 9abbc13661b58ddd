"""Groups of tiles that run in one compiled call, which does not hold Python's lock.

That needs a family with compiled verbs, a matrix of transitions in which nothing that is lost to underflow can matter,
no evidence on the states, and a consumer that wants sums or log likelihoods alone. Tiles in which something unusual
turns up (a missing coordinate, an underflow) are left to the general way.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import BorderMessages, Borders
from subchain.engines.cpu.consumers import Collected, Consumer
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Partition
from subchain.propagation.lanes.groups import Edges, Sums, Tables, Ways, run_tiles
from subchain.propagation.verbs import kernel_for
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]

#: Methods of a likelihood that compiled verbs stand for.
REPLACED = {"log_likelihood", "_log_likelihood_into", "scaled", "accumulate", "zeros", "origin"}


class FusedRun(NamedTuple):
    """What the call found: log normalisers (n,), messages at borders (n, K), and the tiles that it did, (T,)."""

    log_totals: Array
    borders: BorderMessages | None
    done: NDArray[np.bool_]


@dataclasses.dataclass
class Fused:
    """Runs groups of tiles under one surrogate.

    Attributes
    ----------
    ways : first states and transitions as the kernel takes them
    weights : (sequences,) how often each counts, or None
    """

    messages: Messages
    consumer: Consumer[Any]
    ways: Ways
    weights: Array | None

    @classmethod
    def where_it_can(cls, messages: Messages, consumer: Consumer[Any]) -> Fused | None:
        """Return a runner for a pass, or None where tiles have to be run one by one."""
        surrogate, wants = messages.surrogate, consumer.compiled
        plain = messages.evidence is None and messages.part.hidden is None
        if wants is None or not plain or not isinstance(messages.operator, Dense) or messages.kernels.is_wide:
            return None
        if not messages.every_way or _is_overridden(type(surrogate.emission)):
            return None
        if surrogate.emission.compiled(messages.data.values, None) is None:
            return None
        ways = Ways(surrogate.initial, messages.operator.weights, messages.operator.transposed)
        return cls(messages, consumer, ways, wants.weights)

    def run(self, cut: Partition, group: slice, borders: Borders | None, lead: int | None, result: Any) -> FusedRun:
        """Run the tiles of a group, and add to the result of the group."""
        tiles, pieces = cut.tiles[group], cut.pieces_of(group)
        n, n_states, smooth = len(pieces), self.messages.surrogate.n_states, self.consumer.smooth
        edges = _edges(borders, pieces, n_states)
        reach = 0 if borders is None or lead is None else lead
        columns = max(max(tile.columns, 2 * reach * tile.lanes) for tile in tiles)
        space = self.messages.workspace()
        tables = Tables(
            *(space.table(name, 1, n_states * columns)[0] for name in ("likelihood", "alpha", "marginals")),
            *(space.table(name, 1, columns)[0] for name in ("scale", "shift")),
        )
        totals, done = np.empty(n), np.empty(len(tiles), dtype=np.bool_)
        emission_sums, sums = None, Sums(np.empty(0), np.empty((0, 0)))
        if isinstance(result, Collected):
            chain, emission_sums = result.statistics.chain, result.statistics.emission
            sums = Sums(chain.initial, chain.pairs)
        family = self.messages.surrogate.emission.compiled(self.messages.data.values, emission_sums)
        run = kernel_for(run_tiles, family)
        run(family, cut.lanes_of(group, self.weights), self.ways, edges, reach, smooth, tables, sums, totals, done)
        found = None if borders is None else BorderMessages(edges.before, edges.after, edges.last, edges.first)
        return FusedRun(totals, found, done)


def _is_overridden(kind: type) -> bool:
    """Whether a class of the user's own replaces a method that the compiled verbs it inherits stand for."""
    for one in kind.__mro__:
        if "compiled" in vars(one):
            return False
        if one.__module__.partition(".")[0] != __name__.partition(".")[0] and vars(one).keys() & REPLACED:
            return True
    return False


def _edges(borders: Borders | None, pieces: NDArray[np.int64], n_states: int) -> Edges:
    """Return what is known of the messages at the borders of some pieces."""
    if borders is None:
        none = np.empty((0, n_states))
        return Edges(none, none, none, none, np.empty(0, dtype=np.bool_))
    before, after = borders.messages.before[pieces], borders.messages.after[pieces]
    return Edges(before, after, np.empty_like(before), np.empty_like(before), borders.known[pieces])
