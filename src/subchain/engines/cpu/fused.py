"""Groups of tiles that run in one compiled call of each thread, which does not hold Python's lock.

That needs data of some size, a family with compiled verbs, a matrix of transitions, evidence that is arrays, and a
consumer that wants sums, marginals, best states or log likelihoods. Tiles in which something unusual turns up (a
missing coordinate, an underflow) are left to the general way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.checks import suits_kernels
from subchain.emissions.compiled.evidence import with_evidence
from subchain.emissions.compiled.inherited import compiled_form
from subchain.engines.cpu.borders import Borders, edges_of
from subchain.engines.cpu.consumers import Collected, Compiled, Consumer
from subchain.engines.cpu.cuts import Cuts
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Index, Partition
from subchain.engines.cpu.precision import DOUBLE, SINGLE, Precision
from subchain.engines.cpu.single import Checks, deviation, has_safe_ways, tiles_to_check
from subchain.engines.cpu.workspace import FLOAT64, Workers, Workspace
from subchain.numerics.subnormals import subnormals_after_errors
from subchain.propagation.lanes.groups import WEIGHTS, Claims, Edges, Tables, TiledPieces, Ways, add_rows, run_groups
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
    double : the same in double precision, if this is in single precision
    """

    workers: Workers
    messages: Messages
    consumer: Consumer[Any]
    family: Any
    ways: Ways
    wants: Compiled
    double: Fused | None = None

    @classmethod
    def where_it_can(cls, workers: Workers, messages: Messages, consumer: Consumer[Any]) -> Fused | None:
        """Return a runner for a pass, or None where tiles have to be run one by one."""
        wants = consumer.compiled
        family = None if wants is None or not takes_matrix(messages) else compiled_family(messages)
        if wants is None or family is None:
            return None
        double, operator = cls(workers, messages, consumer, family, ways_of(messages), wants), messages.operator
        is_wanted = messages.checks is not None and wants.allows_single
        if not is_wanted or not isinstance(operator, Dense) or not has_safe_ways(operator):
            return double
        family = family.single() if hasattr(family, "single") else family
        single = {name: array.astype(np.float32) for name, array in double.ways._asdict().items() if name in WEIGHTS}
        ways = double.ways._replace(**single)
        return dataclasses.replace(double, family=family, ways=ways, double=double)

    @property
    def precision(self) -> Precision:
        return DOUBLE if self.double is None else SINGLE

    def tables(self, space: Workspace, cut: Partition, lead: int) -> Tables:
        """Return room for the largest tile, for one thread."""
        return tables_in(space, self.messages.surrogate.n_states, cut.most_columns(lead), self.ways.transition.dtype)

    def run(
        self, lanes: TiledPieces, claims: Claims, edges: Edges, lead: int, tables: Tables, outputs: Any,
        rows: Array, done: NDArray[np.bool_], *, smooth: bool = True,
    ) -> None:  # fmt: skip
        """Claim groups and run them in this thread; see `run_groups`."""
        run = kernel_for(run_groups, self.family)
        run(self.family, lanes, claims, self.ways, edges, lead, smooth, tables, outputs, rows, done)

    def over(self, cut: Partition, borders: Borders | None, lead: int | None) -> FusedPass:
        """Return a pass over data that are cut in this way."""
        return FusedPass(self, cut, borders, 0 if borders is None or lead is None else lead)


class FusedPass:
    """A pass: the sums of every group, the log normaliser of every piece, and the tiles that could be done.

    Attributes
    ----------
    log_totals : (P,) by piece; undefined for those of tiles that were not done
    losses : (P, 4) likewise, what was lost to underflow; (0, 4) where it cannot matter
    done : (T,) by tile
    is_precise : whether single precision is good enough; if not, the pass is not complete
    """

    def __init__(self, fused: Fused, cut: Partition, borders: Borders | None, lead: int) -> None:
        self.fused, self.cut, self.lead = fused, cut, lead
        self._sums = fused.consumer.begin()
        summed = self._sums.statistics.summed_parts() if isinstance(self._sums, Collected) else ()
        self._rows = Rows(fused.messages.cuts, cut.n_groups, summed)
        self.log_totals = np.empty(len(cut.start))
        self.done = np.zeros(cut.n_tiles, dtype=np.bool_)
        self.is_precise = True
        self._lanes = cut.weighed_lanes(fused.wants.weights)
        n_tracked = len(cut.start) if len(fused.ways.steps) else 0
        self.losses = np.empty((n_tracked, 4))
        self._outputs = fused.wants.outputs(cut)._replace(totals=self.log_totals, losses=self.losses)
        self._edges, self._borders = edges_of(borders, fused.messages.surrogate.n_states), borders
        self._checked = iter([] if fused.double is None else tiles_to_check(cut, fused.ways.transition))

    def run(self, groups: Index) -> None:
        """Run some groups, anew if they have been run before; what they know of their borders is kept."""
        fused, cut, lead, outputs = self.fused, self.cut, self.lead, self._outputs
        claims, checks = (
            Claims(cut.group_bounds, groups, np.zeros(1, dtype=np.int64)),
            fused.messages.checks or Checks(),
        )

        def work() -> None:
            for tile in self._checked:
                if not checks.add(deviation(fused, cut, self._borders, lead, tile, outputs)):
                    self.is_precise, claims.next[0] = False, len(groups)  # the others need not go on
            space = fused.messages.workspace()
            with subnormals_after_errors():
                fused.run(
                    self._lanes, claims, self._edges, lead, fused.tables(space, cut, lead), outputs, self._rows.table,
                    self.done, smooth=fused.consumer.smooth,
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


def tables_in(space: Workspace, n_states: int, columns: int, dtype: np.dtype[Any] = FLOAT64) -> Tables:
    """Room for one thread; likelihoods and messages are of the given floating type."""
    likelihood, alpha, marginals = (
        space.table(name, 1, n_states * columns, dtype)[0] for name in ("likelihood", "alpha", "marginals")
    )
    scale, shift, positions = (
        space.table(name, 1, columns, kind)[0]
        for name, kind in (("scale", dtype), ("shift", FLOAT64), ("positions", FLOAT64))
    )
    return Tables(likelihood, alpha, marginals, scale, shift, positions.view(np.int64))


def takes_matrix(messages: Messages) -> bool:
    """Whether kernels of compiled passes can take the transitions: a matrix of not too many states."""
    return isinstance(messages.operator, Dense) and not messages.kernels.is_wide


def ways_of(messages: Messages) -> Ways:
    """Return first states and transitions as kernels take them."""
    operator, steps = messages.operator, messages.kernels.steps
    assert isinstance(operator, Dense)
    possible = messages.possible if len(steps) else np.empty(0, dtype=np.bool_)
    return Ways(messages.surrogate.initial, operator.weights, operator.transposed, steps, possible)


def compiled_family(messages: Messages, *, logs: bool = False) -> Any:
    """Return what compiled passes see of the family, None where its methods have to be asked.

    That is for small data, where observations are left out, and where the family or the evidence has no such form.
    """
    emission, values = messages.surrogate.emission, messages.data.values
    if messages.data.n_observations * messages.surrogate.n_states < LARGE:
        return None
    if messages.part.hidden is not None:
        return None
    if messages.evidence is None:
        return compiled_form(emission, values, logs=logs)
    known, family = messages.evidence.arrays(values), compiled_form(emission, values, logs=True)
    if known is None or family is None or not all(suits_kernels(array) for array in known):
        return None
    return with_evidence(known, family)
