"""Groups of tiles that run in one compiled call of each thread, which does not hold Python's lock.

That needs a family with compiled verbs, a matrix of transitions in which nothing that is lost to underflow can matter,
no evidence on the states, and a consumer that wants sums or log likelihoods alone. Tiles in which something unusual
turns up (a missing coordinate, an underflow) are left to the general way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.consumers import Collected, Compiled, Consumer
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Index, Partition
from subchain.engines.cpu.workspace import Workers, Workspace
from subchain.propagation.lanes.groups import Claims, Edges, Tables, Ways, add_rows, run_groups
from subchain.propagation.verbs import kernel_for
from subchain.transitions.operators import Dense

Array = NDArray[np.float64]

#: Sums that are worth another thread to add them up.
WORTH_A_THREAD = 1 << 16
#: Methods of a likelihood that compiled verbs stand for.
REPLACED = {"log_likelihood", "_log_likelihood_into", "scaled", "accumulate", "zeros", "origin"}


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
        surrogate, wants = messages.surrogate, consumer.compiled
        if wants is None or not isinstance(messages.operator, Dense) or messages.kernels.is_wide:
            return None
        family = compiled_family(messages) if messages.every_way else None
        if family is None:
            return None
        ways = Ways(surrogate.initial, messages.operator.weights, messages.operator.transposed)
        return cls(workers, messages, consumer, family, ways, wants)

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
        self._rows = fused.messages.cuts.take_rows(len(cut.groups), sum(array.size for array in _arrays(self._sums)))
        self.log_totals = np.empty(len(cut.start))
        self.done = np.zeros(len(cut.tiles), dtype=np.bool_)
        self._lanes = cut.weighed_lanes(fused.wants.weights)
        self._edges = _edges(borders, fused.messages.surrogate.n_states)

    def run(self, groups: Index) -> None:
        """Run some groups, anew if they have been run before; what they know of their borders is kept."""
        fused, (columns, lanes) = self.fused, self.cut.largest_tile
        columns = max(columns, 2 * self.lead * lanes)
        claims = Claims(self.cut.group_bounds, groups, np.zeros(1, dtype=np.int64))
        run, outputs = kernel_for(run_groups, fused.family), fused.wants.outputs._replace(totals=self.log_totals)

        def work() -> None:
            space = fused.messages.workspace()
            tables = _tables(space, fused.messages.surrogate.n_states, columns)
            run(
                fused.family, self._lanes, claims, fused.ways, self._edges, self.lead, fused.consumer.smooth, tables,
                outputs, self._rows, self.done,
            )  # fmt: skip

        fused.workers.share(work, len(groups))

    def result(self) -> Any:
        """What all groups add up to; the pass is over."""
        counter, at = np.zeros(1, dtype=np.int64), 0
        self.fused.workers.share(lambda: add_rows(self._rows, counter), self._rows.size // WORTH_A_THREAD)
        for array in _arrays(self._sums):
            array[...] = self._rows[0, at : at + array.size].reshape(array.shape)
            at += array.size
        self.fused.messages.cuts.keep_rows(self._rows)
        return self._sums


def _arrays(result: Any) -> Iterator[Array]:
    """Yield the arrays of a result that a row of sums consists of."""
    if isinstance(result, Collected):
        yield from result.statistics.chain.summed_arrays()
        yield from result.statistics.emission.summed_arrays()


def _tables(space: Workspace, n_states: int, columns: int) -> Tables:
    """Room for one thread."""
    large = (space.table(name, 1, n_states * columns)[0] for name in ("likelihood", "alpha", "marginals"))
    return Tables(*large, *(space.table(name, 1, columns)[0] for name in ("scale", "shift")))


def compiled_family(messages: Messages, *, logs: bool = False) -> Any:
    """Return what compiled passes see of the family, None where its methods have to be asked.

    That is where observations alone do not tell the weights of the states, and where the family has no such form.
    """
    emission, values = messages.surrogate.emission, messages.data.values
    if messages.evidence is not None or messages.part.hidden is not None or _is_overridden(type(emission)):
        return None
    return emission.compiled_logs(values) if logs else emission.compiled(values)


def _is_overridden(kind: type) -> bool:
    """Whether a class of the user's own replaces a method that the compiled verbs it inherits stand for."""
    for one in kind.__mro__:
        if "compiled" in vars(one):
            return False
        if one.__module__.partition(".")[0] != __name__.partition(".")[0] and vars(one).keys() & REPLACED:
            return True
    return False


def _edges(borders: Borders | None, n_states: int) -> Edges:
    """Return the messages at borders as the kernel takes them."""
    if borders is None:
        none = np.empty((0, n_states))
        return Edges(none, none, none, none, np.empty(0, dtype=np.bool_))
    return Edges(*borders.messages, borders.known)
