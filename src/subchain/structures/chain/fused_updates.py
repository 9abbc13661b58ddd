"""Many updates in one call, where the engine offers that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import KINDS, IncrementalPosterior
from subchain.engines.base import BoundarySteps, ChainSteps, FusesUpdates, Units, UpdatesFound
from subchain.engines.subchains import Anywhere, Grid
from subchain.structures.chain.boundaries import OpenBoundary, OpenBuffer
from subchain.structures.chain.growing_buffer import GrowBuffer, OpenGrowBuffer
from subchain.structures.chain.guards import OpenGuards
from subchain.transitions.incremental import IncrementalDirichlet

if TYPE_CHECKING:
    from subchain.structures.chain.minibatches import ChainMinibatches

Array = NDArray[np.float64]

#: What is known of the rest of a chain: `BoundarySteps.kind`.
KNOWN: dict[type[OpenBoundary], int] = {OpenBoundary: 0, OpenBuffer: 1, OpenGuards: 2, OpenGrowBuffer: 3}


class FusedUpdates:
    """Does updates in one call of the engine, where the engine and the parts of the model can.

    Parameters
    ----------
    minibatches : the minibatches of a run
    model : the posterior that the updates change
    """

    def __init__(self, minibatches: ChainMinibatches, model: IncrementalPosterior) -> None:
        self.model = model
        self.chain: Any = model.parts["chain"]
        self.emission: Any = model.parts["emission"]
        self.can_run = self._can_run(minibatches)
        if self.can_run:
            scales = minibatches.subchains.scales(minibatches.chains.weights)
            self._first, self._each, self._each_move = (np.empty(0) if own is None else own for own in scales)

    def _can_run(self, batches: ChainMinibatches) -> bool:
        """Whether the run is of the kind that compiled updates cover."""
        chain, chains, engine = self.chain, batches.chains, batches.chains.engine
        fits = (
            hasattr(self.emission, "steps")
            and type(chain) is IncrementalDirichlet
            and chain.learns_first
            and type(batches.subchains) in (Grid, Anywhere)
            and type(batches.boundary) in KNOWN
            and chains.evidence is None
            and chains.hidden is None
        )
        if not fits or not isinstance(engine, FusesUpdates):
            return False
        return engine.can_fuse(len(chain.initial), chains.n_observations, batches.subchains.length)

    def run(self, batches: ChainMinibatches, pieces: NDArray[np.int64], rates: Array, since: Array) -> int:
        """Do updates whose minibatches are `pieces` (updates, M); return how many were done."""
        values = batches.chains.data.values
        steps = self.emission.steps(batches.kind, values) if self.can_run else None
        if steps is None:
            return 0
        chain, subchains, boundary = self.chain, batches.subchains, batches.boundary
        batches.fetch(pieces)
        units = Units(
            pieces, subchains.offsets, subchains.firsts, subchains.length, subchains.stride, self._first, self._each,
            self._each_move, rates, np.array(batches.gains),
        )  # fmt: skip
        counts = ChainSteps(chain.prior_rows, chain.fixed, chain.pairs, chain.prior_first, chain.initial[None])
        found = UpdatesFound(since, np.empty(len(pieces)), np.zeros(1, dtype=np.int64))
        around = _boundary_steps(boundary, len(chain.initial))
        engine: Any = batches.chains.engine
        engine.run_updates(KINDS[batches.kind], steps, counts, units, around, found)
        done = int(found.done[0])
        self.emission.take(steps)
        if isinstance(boundary, OpenGrowBuffer):
            boundary.size, boundary.updates = int(around.state[1]), int(around.state[2])
        if done and isinstance(boundary, OpenBuffer):
            batches.note_growth(found.growths[:done])
        return done


def _boundary_steps(boundary: OpenBoundary, n_states: int) -> BoundarySteps:
    """Return a boundary as compiled updates take it."""
    kind = KNOWN[type(boundary)]
    guards: NDArray[np.float32] = np.empty((0, 2 * n_states), dtype=np.float32)
    keeps_marginals, settings = False, GrowBuffer()
    state = np.array([kind, getattr(boundary, "size", 0), getattr(boundary, "updates", 0)])
    if isinstance(boundary, OpenGuards):
        guards, keeps_marginals = boundary.rows, boundary.store == "marginals"
    if isinstance(boundary, OpenGrowBuffer):
        settings = boundary.settings
    growth = float(settings.tolerance), int(settings.step), int(settings.limit), int(settings.every)
    return BoundarySteps(kind, state, *growth, guards, keeps_marginals)
