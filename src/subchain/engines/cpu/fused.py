"""Groups of tiles that run in one compiled call of each thread, which does not hold Python's lock.

That needs data of some size, a family with compiled verbs, a matrix of transitions in which nothing that is lost to
underflow can matter, no evidence on the states, and a consumer that wants sums, marginals, best states or log
likelihoods. Tiles in which something unusual turns up (a missing coordinate, an underflow) are left to the general way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.compiled.inherited import compiled_form
from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.consumers import Collected, Compiled, Consumer
from subchain.engines.cpu.cuts import Cuts
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Index, Partition
from subchain.engines.cpu.workspace import Workers, Workspace
from subchain.propagation.lanes.groups import Claims, Edges, Tables, Ways, add_rows, run_groups
from subchain.propagation.verbs import kernel_for
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]

#: Observations times states of data that are worth it: such kernels take half a minute to compile, once on a machine.
LARGE = 1 << 19
#: Sums that are worth another thread to add them up.
WORTH_A_THREAD = 1 << 16


@dataclasses.dataclass
class Fused:
    """Runs groups of tiles under one surrogate.

    Attributes
    ----------
    family : observations and likelihoods as the kernel takes them
    ways : first states and transitions likewise
    wants : what the consumer wants
    """

    workers: Workers
    messages: Messages
    consumer: Consumer[Any]
    family: Any
    ways: Ways
    wants: Compiled

    @classmethod
    def where_it_can(cls, workers: Workers, messages: Messages, consumer: Consumer[Any]) -> Fused | None:
        """Return a runner for a pass, or None where tiles have to be run one by one."""
        wants = consumer.compiled
        family = None if wants is None or not has_plain_ways(messages) else compiled_family(messages)
        if wants is None or family is None:
            return None
        return cls(workers, messages, consumer, family, ways_of(messages), wants)

    def over(self, cut: Partition, borders: Borders | None, lead: int | None) -> FusedPass:
        """Return a pass over data that are cut in this way."""
        return FusedPass(self, cut, borders, 0 if borders is None or lead is None else lead)


class FusedPass:
    """A pass: the sums of every group, the log normaliser of every piece, and the tiles that could be done.

    Attributes
    ----------
    log_totals : (P,) by piece; undefined for those of tiles that were not done
    done : (T,) by tile
    """

    def __init__(self, fused: Fused, cut: Partition, borders: Borders | None, lead: int) -> None:
        self.fused, self.cut, self.lead = fused, cut, lead
        self._sums = fused.consumer.begin()
        summed = self._sums.statistics.summed_parts() if isinstance(self._sums, Collected) else ()
        self._rows = Rows(fused.messages.cuts, cut.n_groups, summed)
        self.log_totals = np.empty(len(cut.start))
        self.done = np.zeros(cut.n_tiles, dtype=np.bool_)
        self._lanes = cut.weighed_lanes(fused.wants.weights)
        self._outputs = fused.wants.outputs(cut)._replace(totals=self.log_totals)
        self._edges = _edges(borders, fused.messages.surrogate.n_states)

    def run(self, groups: Index) -> None:
        """Run some groups, anew if they have been run before; what they know of their borders is kept."""
        fused, (columns, lanes) = self.fused, self.cut.largest_tile
        columns = max(columns, 2 * self.lead * lanes)
        claims = Claims(self.cut.group_bounds, groups, np.zeros(1, dtype=np.int64))
        run, outputs = kernel_for(run_groups, fused.family), self._outputs

        def work() -> None:
            space = fused.messages.workspace()
            tables = tables_in(space, fused.messages.surrogate.n_states, columns)
            run(
                fused.family, self._lanes, claims, fused.ways, self._edges, self.lead, fused.consumer.smooth, tables,
                outputs, self._rows.table, self.done,
            )  # fmt: skip

        fused.workers.share(work, len(groups))

    def result(self) -> Any:
        """What all groups add up to; the pass is over."""
        self._rows.add_up(self.fused.workers)
        self.fused.consumer.adopt(self._sums, self.cut, self._outputs)
        return self._sums


class Rows:
    """The sums of groups, a row for each, which become those of all groups: some arrays, one after the other.

    Attributes
    ----------
    table : (G, S)
    """

    def __init__(self, cuts: Cuts, n_groups: int, arrays: Iterable[Array]) -> None:
        self._cuts, self._arrays = cuts, list(arrays)
        self.table = cuts.take_rows(n_groups, sum(array.size for array in self._arrays))

    def add_up(self, workers: Workers) -> None:
        """Add the rows up and write them into the arrays; the table is not to be used any more."""
        counter, at = np.zeros(1, dtype=np.int64), 0
        if len(self.table) > 1:
            workers.share(lambda: add_rows(self.table, counter), self.table.size // WORTH_A_THREAD)
        for array in self._arrays:
            array[...] = self.table[0, at : at + array.size].reshape(array.shape)
            at += array.size
        self._cuts.keep_rows(self.table)


def tables_in(space: Workspace, n_states: int, columns: int) -> Tables:
    """Room for one thread."""
    likelihood, alpha, marginals = (
        space.table(name, 1, n_states * columns)[0] for name in ("likelihood", "alpha", "marginals")
    )
    scale, shift, positions = (space.table(name, 1, columns)[0] for name in ("scale", "shift", "positions"))
    return Tables(likelihood, alpha, marginals, scale, shift, positions.view(np.int64))


def has_plain_ways(messages: Messages) -> bool:
    """Whether transitions are a matrix in which nothing that is lost to underflow can matter."""
    return isinstance(messages.operator, Dense) and not messages.kernels.is_wide and messages.every_way


def ways_of(messages: Messages) -> Ways:
    """Return first states and transitions as kernels take them."""
    operator = messages.operator
    assert isinstance(operator, Dense)
    return Ways(messages.surrogate.initial, operator.weights, operator.transposed)


def compiled_family(messages: Messages, *, logs: bool = False) -> Any:
    """Return what compiled passes see of the family, None where its methods have to be asked.

    That is for small data, where observations alone do not tell the weights of the states, and where the family has no
    such form.
    """
    emission, values = messages.surrogate.emission, messages.data.values
    if messages.data.n_observations * messages.surrogate.n_states < LARGE:
        return None
    if messages.evidence is not None or messages.part.hidden is not None:
        return None
    return compiled_form(emission, values, logs=logs)


def _edges(borders: Borders | None, n_states: int) -> Edges:
    """Return the messages at borders as the kernel takes them."""
    if borders is None:
        none = np.empty((0, n_states))
        return Edges(none, none, none, none, np.empty(0, dtype=np.bool_))
    return Edges(*borders.messages, borders.known)
