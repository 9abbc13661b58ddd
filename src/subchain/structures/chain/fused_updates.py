"""Many updates in one call, where the engine offers that: categorical emissions, one chain, subchains on a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import KINDS, IncrementalPosterior
from subchain.emissions.incremental_table import IncrementalTable
from subchain.engines.base import FusesWordUpdates, WordBoundary, WordChain, WordMinibatches, WordTable
from subchain.engines.subchains import Grid
from subchain.structures.chain.boundaries import OpenBoundary, OpenBuffer
from subchain.structures.chain.guards import OpenGuards
from subchain.transitions.incremental import IncrementalDirichlet

if TYPE_CHECKING:
    from subchain.structures.chain.minibatches import ChainMinibatches

Array = NDArray[np.float64]

#: What is known of the rest of a chain: `WordBoundary.kind`.
NOTHING, BUFFERS, GUARDS = 0, 1, 2


class FusedUpdates:
    """Does updates of categorical emissions in one call of the engine, where both can.

    Parameters
    ----------
    minibatches : the minibatches of a run
    model : the posterior that the updates change
    """

    def __init__(self, minibatches: ChainMinibatches, model: IncrementalPosterior) -> None:
        self.model = model
        self.chain: Any = model.parts["chain"]
        self.table: Any = model.parts["emission"]
        self.can_run = self._can_run(minibatches)
        if self.can_run:
            table: Any = self.table
            self.place = np.zeros(len(table.counts), dtype=np.int32)
            self.n_whole = minibatches.chains.n_observations // minibatches.subchains.length

    def _can_run(self, batches: ChainMinibatches) -> bool:
        """Whether the run is of the kind that the compiled update covers."""
        chain = self.chain
        chains, boundary, values = batches.chains, batches.boundary, batches.chains.data.values
        fits = (
            type(self.table) is IncrementalTable
            and type(chain) is IncrementalDirichlet
            and chain.learns_first
            and isinstance(batches.subchains, Grid)
            and type(boundary) in (OpenBoundary, OpenBuffer, OpenGuards)
            and chains.evidence is None
            and chains.weights is None
            and chains.data.n_sequences == 1
            and values.ndim == 1
            and values.dtype.kind in "iu"
        )
        engine = chains.engine
        if not fits or not isinstance(engine, FusesWordUpdates):
            return False
        reach = boundary.size if isinstance(boundary, OpenBuffer) else 0
        columns = batches.plan.size * (batches.subchains.length + 2 * reach)
        return engine.can_fuse(len(chain.initial), columns)

    def run(self, batches: ChainMinibatches, pieces: NDArray[np.int64], rates: Array, since: Array) -> int:
        """Do updates whose minibatches are `pieces` (updates, M); return how many were done."""
        if not self.can_run:
            return 0
        chain: Any = self.chain
        table: Any = self.table
        boundary = batches.boundary
        nothing: NDArray[np.float32] = np.empty((0, 2, len(chain.initial)), dtype=np.float32)[:, 0]
        how, size, firsts, lasts, keeps = NOTHING, 0, nothing, nothing, False
        if isinstance(boundary, OpenGuards):
            how, firsts, lasts, keeps = GUARDS, boundary.firsts, boundary.lasts, boundary.store == "marginals"
        elif isinstance(boundary, OpenBuffer):
            how, size = BUFFERS, boundary.size
        factor, initial = np.array([table.factor]), chain.initial[None]
        values = batches.chains.data.values.view()
        values.flags.writeable = False  # as mapped files are: one kernel serves both
        engine: Any = batches.chains.engine
        done: int = engine.update_words(
            KINDS[batches.kind],
            WordMinibatches(
                values, batches.subchains.length, pieces, self.n_whole, rates, np.array(batches.gains)
            ),
            WordChain(chain.prior_rows, chain.fixed, chain.pairs, chain.prior_first, initial),
            WordTable(table.counts, factor, table.concentration, table.totals, table.prior_totals, self.place),
            WordBoundary(how, size, firsts, lasts, keeps),
            since,
        )  # fmt: skip
        table.factor = float(factor[0])
        return done
