"""Many updates at one go, where the engine offers that: categorical emissions, one chain, subchains on a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.incremental_table import KINDS, IncrementalTable
from subchain.engines.base import FusesWordUpdates, WordBoundary, WordChain, WordMinibatches, WordTable
from subchain.engines.subchains import Grid
from subchain.inference.stochastic.boundaries import OpenBoundary, OpenBuffer
from subchain.inference.stochastic.guards import OpenGuards
from subchain.inference.stochastic.rates import Falling
from subchain.transitions.incremental import IncrementalDirichlet

if TYPE_CHECKING:
    from subchain.inference.stochastic.updates import Updates

#: What is known of the rest of a chain: `WordBoundary.kind`.
NOTHING, BUFFERS, GUARDS = 0, 1, 2


class WordUpdates:
    """Has the engine do many updates of a run at one go, where both can."""

    @classmethod
    def of(cls, updates: Updates) -> WordUpdates | None:
        """None where the run is not of the kind that this is for."""
        model, problem, subchains = updates.model, updates.problem, updates.subchains
        values = problem.whole.data.values
        boundary = updates.boundary
        fits = (
            type(model.emission) is IncrementalTable
            and type(model.chain) is IncrementalDirichlet
            and model.chain.learns_first
            and isinstance(subchains, Grid)
            and type(updates.rates) is Falling
            and type(boundary) in (OpenBoundary, OpenBuffer, OpenGuards)
            and problem.whole.evidence is None
            and problem.whole.weights is None
            and problem.whole.data.n_sequences == 1
            and values.ndim == 1
            and values.dtype.kind in "iu"
        )
        engine = problem.engine
        if not fits or not isinstance(engine, FusesWordUpdates):
            return None
        reach = boundary.size if isinstance(boundary, OpenBuffer) else 0
        columns = updates.size * (subchains.length + 2 * reach)
        return cls(updates, engine) if engine.can_fuse(len(model.chain.initial), columns) else None

    def __init__(self, updates: Updates, engine: FusesWordUpdates) -> None:
        self.engine = engine
        self.place = np.zeros(len(updates.model.emission.counts), dtype=np.int32)
        self.n_whole = updates.problem.whole.data.n_observations // updates.subchains.length

    def run(self, updates: Updates, pieces: NDArray[np.int64]) -> int:
        """Do the next updates, whose minibatches are `pieces` (updates, M); return how many were done."""
        model, boundary = updates.model, updates.boundary
        chain: IncrementalDirichlet = model.chain
        table: Any = model.emission
        nothing: NDArray[np.float32] = np.empty((0, 2, len(chain.initial)), dtype=np.float32)[:, 0]
        how, size, firsts, lasts, keeps = NOTHING, 0, nothing, nothing, False
        if isinstance(boundary, OpenGuards):
            how, firsts, lasts, keeps = GUARDS, boundary.firsts, boundary.lasts, boundary.store == "marginals"
        elif isinstance(boundary, OpenBuffer):
            how, size = BUFFERS, boundary.size
        coming = range(model.update + 1, model.update + 1 + len(pieces))
        rates = np.array([updates.rates.rate(update, chain.pairs, chain.pairs) for update in coming])
        factor, initial = np.array([table.factor]), chain.initial[None]
        done = self.engine.update_words(
            KINDS[updates.algorithm.kind],
            WordMinibatches(
                updates.problem.whole.data.values, updates.subchains.length, pieces, self.n_whole, rates,
                np.array(updates.gains),
            ),
            WordChain(*chain.rows, chain.pairs, chain.first, initial),
            WordTable(table.counts, factor, table.concentration, table.totals, table.prior_totals, self.place),
            WordBoundary(how, size, firsts, lasts, keeps),
            model.since,
        )  # fmt: skip
        table.factor = float(factor[0])
        return done
