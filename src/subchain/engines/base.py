"""The engine protocol: what inference, tasks and models may ask of whoever runs hidden chains over data.

An engine takes a *surrogate* (the plain HMM that stands in for a posterior, K states) and a *part* of the data (S
sequences, N positions) and returns sums, scores, marginals, paths or messages. It keeps nothing between calls. Another
engine (another device, several machines, a plain reference) is any object that has the verbs of `Engine`; it is given
to a model as `HMM(..., engine=...)`, or registered under a name in `subchain.engines.ENGINES`.

Where a sequence has no path, `statistics`, `viterbi`, `sample_paths`, `occurrence`, `score_left_out`, `smooth_in_order`
and `minibatch` raise an `ImpossibleSequenceError`; `scores`, `smooth`, `filter`, `predict` and `leave_out` say so in
what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.engines.part import Part
from subchain.engines.results import Approach, Consume, ConsumeFiltered, Keep, Occurrence, PassMemory, Scores
from subchain.engines.statistics import HMMStatistics
from subchain.engines.subchains import Minibatch, MinibatchRun
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.transitions.operators import TransitionOperator

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")


class BufferGrowth(NamedTuple):
    """When a buffer is long enough: see `GrowBuffer` (Foti et al. 2014).

    Attributes
    ----------
    tolerance : largest change of the end marginals (total variation) that anything beyond the buffers may cause
    step : positions by which a buffer grows on either side
    limit : largest buffer
    """

    tolerance: float
    step: int
    limit: int


class Engine(Protocol):
    """Runs hidden chains over data. K states, S sequences, N positions in all, M subchains of a minibatch."""

    # ---- passes over a part of the data ------------------------------------------------------------------------------

    def statistics(self, surrogate: Surrogate, part: Part) -> HMMStatistics:
        """Return the expected statistics of all sequences, each counted as often as its weight says."""
        ...

    def scores(self, surrogate: Surrogate, part: Part) -> Scores:
        """Return the log likelihood of each sequence."""
        ...

    def smooth(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        """Give the marginals of all positions, given their whole sequences, to `consume`, block by block."""
        ...

    def filter(self, surrogate: Surrogate, part: Part, consume: ConsumeFiltered) -> Scores:
        """Give the marginals of all positions, given their sequences up to there, to `consume`, block by block."""
        ...

    def predict(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        """Give the marginals of all positions, given the earlier observations of their sequences, to `consume`."""
        ...

    def leave_out(self, surrogate: Surrogate, part: Part, consume: Consume) -> Scores:
        """Give the marginals of all positions, given all other observations of their sequences, to `consume`."""
        ...

    def smooth_in_order(self, surrogate: Surrogate, part: Part, size: int) -> Iterator[tuple[int, Array]]:
        """Yield first position and smoothed marginals (n, K) of consecutive blocks of at most `size` positions."""
        ...

    def score_left_out(self, surrogate: Surrogate, part: Part) -> Array:
        """Return the log probability (N,) of each observation given all others of its sequence."""
        ...

    def viterbi(self, surrogate: Surrogate, part: Part, out: NDArray[Any] | None = None) -> tuple[NDArray[Any], Array]:
        """Return the most probable path of every sequence, (N,), and its log joint probability, (S,).

        Paths are written to `out`, an array of integers, if it is given. Among equals the lowest state wins.
        """
        ...

    def sample_paths(
        self, surrogate: Surrogate, part: Part, n: int, seed: np.random.SeedSequence, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Draw n paths of all sequences given all observations, (n, N) of integers.

        Path i is a function of the seed and i, the same for any `n`. Paths are written to `out` if it is given.
        """
        ...

    def occurrence(
        self, surrogate: Surrogate, part: Part, method: str = "pairs", n_samples: int = 1000, seed: int = 0
    ) -> Occurrence:
        """Return how surely first states and transitions occur at least once in the data.

        `method` is "pairs", "exact", "mean_field" or "sampling" (see `propagation.occurrence.methods`); `n_samples`
        paths a sequence and `seed` belong to the last.
        """
        ...

    # ---- subchains ---------------------------------------------------------------------------------------------------

    def minibatch(
        self,
        surrogate: Surrogate,
        part: Part,
        batch: Minibatch,
        start: Array,
        stop: Array,
        keep: Keep | None = None,
        surplus: str | None = None,
    ) -> MinibatchRun:
        """Run subchains between messages from outside.

        Parameters
        ----------
        start : (K, M) weights of the first positions' states before their observations are seen
        stop : (K, M) backward messages of the last positions, in any scale
        keep : is given the marginals of every position, block by block, from several threads
        surplus : method by which to find what −log q(transition never occurs) exceeds its expected number by
        """
        ...

    def approach(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, before: Index, after: Index
    ) -> Approach:
        """Carry messages over `before` (M,) positions to the left of each subchain and `after` (M,) to the right.

        Left of the buffers the states are distributed as `outside` (K,), or as the surrogate's initial distribution
        where the sequence begins. Right of them nothing is known.
        """
        ...

    def grow(
        self, surrogate: Surrogate, part: Part, batch: Minibatch, outside: Array, growth: BufferGrowth
    ) -> Approach:
        """As `approach`, over as many positions as the ends of each subchain depend on; columns sum to one."""
        ...

    def distances(self, surrogate: Surrogate, part: Part, starts: Index, steps: int) -> Array:
        """Return how far two opposite starts are apart, (steps, n): total variation of their filtered marginals.

        One start is uniform, the other has 0.9 more weight on state i % K; they are started at position `starts[i]`
        and carried over `steps` positions. This measures the mixing time.
        """
        ...

    # ---- the run -----------------------------------------------------------------------------------------------------

    def map(self, task: Callable[[Item], Result], items: list[Item]) -> list[Result]:
        """Do a task for every item, side by side where the engine can; results in the order of the items."""
        ...

    def running(self) -> AbstractContextManager[object]:
        """Return a context that surrounds a fit: what the engine needs, or keeps out of its way, meanwhile."""
        ...

    def pass_memory(self, data: Sequences, transition: TransitionOperator, sums_bytes: int) -> PassMemory:
        """Estimate the bytes that a pass takes with such transitions, one set of sums taking `sums_bytes`."""
        ...


#: Names of all that an engine must have.
VERBS = tuple(name for name, value in vars(Engine).items() if callable(value) and not name.startswith("_"))


def check_engine(given: object) -> Engine:
    """Return the object if it has all verbs of `Engine`; raise an `InputError` that names those it lacks."""
    missing = [name for name in VERBS if not callable(getattr(given, name, None))]
    if isinstance(given, type):
        raise InputError(f"engine must be a name or an object, but {given.__name__} is a class; write engine=...().")
    if missing:
        raise InputError(
            f"engine must be a name or an object with the verbs of subchain.engines.Engine, but {given!r} lacks "
            f"{', '.join(missing)}."
        )
    return cast("Engine", given)


# ---- an optional verb ------------------------------------------------------------------------------------------------


class ChainSteps(NamedTuple):
    """Counts of the hidden chain; `pairs` and `first` are changed in place.

    Attributes
    ----------
    prior_rows, fixed, pairs : (K, K)
    prior_first, first : (1, K)
    """

    prior_rows: Array
    fixed: Array
    pairs: Array
    prior_first: Array
    first: Array


class BoundarySteps(NamedTuple):
    """What subchains know of the rest of their chain: nothing, buffers, guards, or buffers that grow.

    Attributes
    ----------
    kind : 0 for nothing, 1 for buffers, 2 for guards, 3 for growing buffers
    state : (3,) the kind at the present update, the size of buffers and the number of updates, changed in place
    tolerance, step, limit, every : settings of growing buffers, see `GrowBuffer`
    guards : (subchains, 2 K) of first and of last positions, changed in place; no rows for others
    keeps_marginals : whether guards are marginals instead of messages
    """

    kind: int
    state: Index
    tolerance: float
    step: int
    limit: int
    every: int
    guards: NDArray[np.float32]
    keeps_marginals: bool


class Units(NamedTuple):
    """Minibatches of subchains.

    Attributes
    ----------
    pieces : (U, M) numbers of the subchains of each update
    offsets, firsts : (S + 1,) position of each sequence's first observation, and number of its first subchain
    length, stride : positions of a subchain that its sequence does not cut short, and between two beginnings
    weights : (S,) how often first states count; (0,) if all count once
    each, each_move : (S,) how often observations and transitions count; (0,) if all count once
    rates : (U,) step sizes
    gains : (3,) scale factors of first states, transitions and emissions
    """

    pieces: Index
    offsets: Index
    firsts: Index
    length: int
    stride: int
    weights: Array
    each: Array
    each_move: Array
    rates: Array
    gains: Array


class UpdatesFound(NamedTuple):
    """What updates have found.

    Attributes
    ----------
    since : (2,) log normalisers and observations, added up
    growths : (U,) how far each update looked beyond its subchains, on the average
    done : (1,) how many updates were done
    """

    since: Array
    growths: Array
    done: Index


@runtime_checkable
class FusesUpdates(Protocol):
    """An engine that does many stochastic updates in one call; others are asked for one after the other."""

    def can_fuse(self, n_states: int, n_observations: int, length: int) -> bool:
        """Whether updates of data with so many positions, cut into subchains of this length, are worth it."""
        ...

    def run_updates(
        self, kind: int, emission: Any, chain: ChainSteps, units: Units, boundary: BoundarySteps, found: UpdatesFound
    ) -> None:
        """Do one update after the other, up to one that needs the general method.

        `kind` says how posteriors become weights (`core.parts.KINDS`); `emission` is the posterior of the family
        (`emissions.steps`).
        """
        ...
