"""Minibatches of subchains, or of whole sequences: how chains are cut, and the updates that see a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import IncrementalPosterior, Memory, Point
from subchain.core.ranges import WHOLE_NUMBERS, stored
from subchain.core.records import Sums
from subchain.data.prefetch import Prefetch
from subchain.engines.subchains import Anywhere, Grid, Subchains
from subchain.errors import FileFormatError, InputError
from subchain.structures.base import Fresh, Plan
from subchain.structures.chain.boundaries import Boundary, Buffer, OpenBoundary
from subchain.structures.chain.boundary_choice import boundary_of, resolve_boundary
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.fused_updates import FusedUpdates
from subchain.structures.chain.guards import Guards
from subchain.structures.chain.model import HMMPoint
from subchain.structures.settings import StochasticSettings
from subchain.transitions.base import ChainSums

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Observations of a minibatch whose size was left open.
BATCH_OBSERVATIONS = 2000
#: Sequences up to this length are taken whole if no length was given.
WHOLE = 1024


def needs_trial(chains: Chains, settings: StochasticSettings) -> bool:
    """Whether the mixing time has to be measured: the length or the boundary of subchains was left open."""
    is_cut = settings.length is not None and int(chains.data.lengths.max(initial=1)) > WHOLE
    return is_cut and (settings.length == "auto" or resolve_boundary(settings.boundary) is None)


def needs_length(chains: Chains, settings: StochasticSettings) -> bool:
    """Whether a length of subchains has to be chosen: it was left open, and some sequences are long."""
    return settings.length == "auto" and int(chains.data.lengths.max(initial=1)) > WHOLE


def subchains_of(chains: Chains, settings: StochasticSettings) -> Subchains:
    """Return all subchains of the data."""
    data, name = chains.data, type(settings).__name__
    longest, shortest = int(data.lengths.max()), int(data.lengths.min())
    length: Any = settings.length
    if length == "auto":
        length = chains.subchain_length if needs_length(chains, settings) else None
    if length is None:
        return Grid(data.offsets, None)
    if length > longest:
        raise InputError(
            f"{name}: length={length}, but the longest sequence has {longest} positions; choose a "
            "smaller length, or None for whole sequences."
        )
    if settings.starts == "grid":
        return Grid(data.offsets, int(length))
    if length > shortest:
        raise InputError(
            f"{name}: starts='anywhere' needs sequences of at least length={length} positions, but "
            f"the shortest has {shortest}; use starts='grid'."
        )
    return Anywhere(data.offsets, int(length))


def plan_of(chains: Chains, settings: StochasticSettings) -> Plan:
    """Return the number of subchains, and how many a minibatch has."""
    subchains = subchains_of(chains, settings)
    return plan_for(settings, subchains.size, subchains.length, chains.n_observations)


def plan_for(settings: StochasticSettings, n_units: int, length: int, n_observations: int) -> Plan:
    """Return the plan for so many subchains of at most this length."""
    typical = min(length, n_observations / max(n_units, 1))
    size = settings.batch
    if size is None:
        size = max(1, round(BATCH_OBSERVATIONS / max(typical, 1.0)))
    return Plan(n_units, int(size), length, typical * int(size))


class ChainMinibatches:
    """Minibatches of subchains between the messages of a boundary; see `structures.base.Minibatches`."""

    watched = "chain"

    def __init__(self, chains: Chains, settings: StochasticSettings, n_states: int) -> None:
        self.chains = chains
        self.kind = settings.kind
        self.plan = plan_of(chains, settings)
        self.subchains = subchains_of(chains, settings)
        self.gains = self.subchains.gains(self.plan.size)
        self.n_states = n_states
        longest = int(chains.data.lengths.max(initial=1))
        boundary = boundary_of(settings, self.plan, longest, chains.mixing_time, n_states)
        self._is_chosen = resolve_boundary(settings.boundary) is None
        self.boundary = self._open(boundary)
        self.prefetch = Prefetch(chains.data.file, chains.data.values.strides[0])
        self._growths: list[float] = []
        self._fused: FusedUpdates | None = None

    def _open(self, boundary: Boundary) -> OpenBoundary:
        self.chosen = boundary
        return boundary.open(self.subchains, self.n_states, self.chains.data.fingerprint())

    def run(self, units: Index, coming: Index, weights: Point, model: IncrementalPosterior) -> Fresh:
        """Run subchains between the messages of the boundary, and let the boundary learn from them."""
        chains, gains = self.chains, self.gains
        batch = self.subchains.batch(units, chains.weights)
        if self.prefetch.file is not None:
            following = self.subchains.batch(coming, chains.weights)
            self.prefetch.read(batch.starts, batch.lengths, following.starts, following.lengths)
        surrogate = cast(HMMPoint, weights).surrogate()
        chain: Any = model.parts["chain"]
        start, stop = self.boundary.enter(chains, surrogate, batch, chain)
        run = chains.engine.minibatch(surrogate, chains, batch, start, stop)
        self.boundary.leave(batch, run)
        if self.boundary.growth is not None:
            self._growths.append(self.boundary.growth)
        found = run.statistics  # first states and transitions have factors of their own, and are scaled here
        found.chain.initial *= gains.initial
        found.chain.pairs *= gains.pairs
        return Fresh(found, {"chain": 1.0, "emission": gains.emission})

    def fetch(self, units: Index) -> None:
        """Have long subchains of a file, those of several updates, read before they are used."""
        if self.prefetch.file is not None and self.prefetch.is_worth(self.subchains.length):
            batch = self.subchains.batch(units.ravel())
            self.prefetch.read(batch.starts, batch.lengths, batch.starts, batch.lengths)

    def note_growth(self, growths: Array) -> None:
        """Remember how far the minibatches of some updates looked beyond their subchains."""
        self._growths.extend(growths.tolist())

    def run_updates(self, units: Index, rates: Array, model: IncrementalPosterior, since: Array) -> int:
        self.chains.data.check_file()
        if self._fused is None or self._fused.model is not model:
            self._fused = FusedUpdates(self, model)
        return self._fused.run(self, units, rates, since)

    def signal(self, sums: Sums) -> Array:
        return cast(ChainSums, sums).pairs

    def observe(self, model: IncrementalPosterior, seed: list[int], rate: float) -> None:
        """Tell a prior that depends on whether transitions occur at all how probable that is, from an excerpt."""
        prior: Any = model.prior
        method = prior.chain.occurrence_method
        if method is None:
            return
        excerpt = Excerpt(self.chains, self.plan.length, self.plan.size, np.random.default_rng(seed))
        surplus = excerpt.surplus(cast(HMMPoint, model.weights(self.kind)), method)
        model.adopt(type(prior)(prior.chain.observe(*surplus, rate), prior.emission))

    def fold(self, into: int, gone: int) -> None:
        self.boundary.fold(into, gone)

    def measures(self) -> dict[str, float]:
        """Return how far buffers reached beyond the subchains, on average."""
        found = {"growth": float(np.mean(self._growths))} if self._growths else {}
        self._growths = []
        return found

    def begin(self) -> None:
        self.boundary.begin()

    def memory(self) -> Memory:
        own: Memory = {}
        if self._is_chosen:  # limits that were raised since would lead to another choice
            own["boundary"] = np.array([isinstance(self.chosen, Guards), getattr(self.chosen, "size", 0)])
        return own | self.boundary.memory()

    def restore(self, memory: Memory) -> None:
        if "boundary" in memory:
            is_guarded, size = stored(memory, "boundary", WHOLE_NUMBERS, (2,)).tolist()
            if is_guarded > 1 or size > self.chains.n_observations:
                raise FileFormatError(f"boundary holds {is_guarded} and {size}, which is no boundary of these data")
            if is_guarded != isinstance(self.chosen, Guards) or size != getattr(self.chosen, "size", 0):
                self.boundary = self._open(Guards() if is_guarded else Buffer(size))
        self.boundary.restore(memory)

    def checkpointed(self) -> None:
        self.boundary.checkpointed()

    def release(self) -> None:
        self.boundary.release()
