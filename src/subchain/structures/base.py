"""The seam between inference and what is hidden in the data.

A *structure* holds the data of a run and knows what is hidden in them: chains of states, alignments, trees. It turns
weights of the model's parts into expected statistics. It also offers what other kinds of inference need: minibatches
for stochastic updates, a ledger of clusters for collapsed inference, and walkers for samplers. Everything above this
module sees structures, and the parts of a model (`subchain.core.parts`), through these protocols alone.

A structure whose data are independent clusters (documents, sentence pairs, sentences) derives from
`subchain.structures.clusters.ClusterStructure`, writes three methods, and gets every algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import IncrementalPosterior, Memory, Point, Posterior
from subchain.core.records import Record, Sums
from subchain.core.statistics import Statistics
from subchain.structures.settings import CollapsedSettings, SamplingSettings, StochasticSettings

Array = NDArray[np.float64]

#: `Ledger.last_pass` before there was one.
NO_PASS: Array = np.array([-1.0, np.nan, np.nan])
Index = NDArray[np.int64]
#: What is hidden in the data, drawn: states, links, trees; one row a cluster.
Hidden = NDArray[np.integer[Any]]
Result = TypeVar("Result")


class Fresh(NamedTuple):
    """What a minibatch gave.

    Attributes
    ----------
    statistics : expected statistics of the minibatch; those of a part whose entries need different factors are scaled
        already
    gains : by part, the factor that makes its sums stand for all the data, 1 if they are scaled already
    """

    statistics: Statistics
    gains: Mapping[str, float]

    def scaled(self, rate: float) -> dict[str, float]:
        """Return the gains times a step size."""
        return {part: rate * gain for part, gain in self.gains.items()}


class Plan(NamedTuple):
    """How a stochastic run cuts its data.

    Attributes
    ----------
    n_units : units (subchains, sequences, documents) that minibatches are drawn from
    size : units of a minibatch
    length : observations of the longest unit
    n_observations : expected number of observations of a minibatch
    """

    n_units: int
    size: int
    length: int
    n_observations: float


class Minibatches(Protocol):
    """The minibatches of one run, and what is known of their surroundings.

    Attributes
    ----------
    watched : name of the part whose sums tell how noisy a minibatch is
    """

    watched: str

    def run(self, units: Index, coming: Index, weights: Point, model: IncrementalPosterior) -> Fresh:
        """Return the expected statistics of `units` (M,) under weights of the posterior; `coming` (M,) follow next."""

    def run_updates(self, units: Index, rates: Array, model: IncrementalPosterior, since: Array) -> int:
        """Do as many of the coming updates as one compiled call can, and return their number, possibly zero.

        Their minibatches are `units` (U, M), their rates (U,). Log normalisers and numbers of observations are added to
        `since` (2,).
        """

    def signal(self, sums: Sums) -> Array:
        """Return the entries of the watched part's sums by which adaptive rates judge the noise of a minibatch."""

    def observe(self, model: IncrementalPosterior, seed: list[int], rate: float) -> None:
        """Let the prior look at the data for what it needs and expected statistics do not determine."""

    def fold(self, into: int, gone: int) -> None:
        """Merge what is kept about one state into another."""

    def measures(self) -> dict[str, float]:
        """Return numbers for the trace since the last call."""

    def begin(self) -> None:
        """Prepare for a run that starts afresh."""

    def memory(self) -> Memory: ...
    def restore(self, memory: Memory) -> None: ...

    def checkpointed(self) -> None:
        """Note that a checkpoint has been written."""

    def release(self) -> None:
        """Close files."""


class Excerpt(Protocol):
    """A random part of the data that stands for all of it."""

    def statistics(self, weights: Point) -> Statistics:
        """Return expected statistics of all the data, estimated from the excerpt."""


class Ledger(Protocol):
    """The counts of collapsed inference, and what each cluster of the data has put into them; the results of a run.

    Whatever a cluster has put into the counts can be taken out again exactly: they are the sum of all shares at any
    time, to rounding, and are summed anew now and then so that rounding does not accumulate.

    Attributes
    ----------
    size : number of clusters
    is_compiled : whether visits are compiled, which makes them about a thousand times as fast
    needs_others : whether data that are a single cluster are refused: nothing would be left to know it by
    cursor, iteration : clusters of the present pass that have been visited; passes done
    current_prior : the prior, whose hyperparameters may be learned
    measures : whether entropies are wanted
    since : (2,) log normalisers and entropies of the clusters that were visited since it was last set to zero
    last_pass : (3,) iterations done before the last pass, its objective, and the log normalisers of its clusters
    n_marginals : how many numbers describe what is hidden
    log_scale : constant that is missing in the log normalisers
    """

    size: int
    cursor: int
    iteration: int
    measures: bool
    since: Array
    last_pass: Array
    n_marginals: int

    @property
    def log_scale(self) -> float: ...
    @property
    def is_compiled(self) -> bool: ...
    @property
    def needs_others(self) -> bool: ...
    @property
    def current_prior(self) -> Posterior: ...

    def adopt(self, prior: Posterior) -> None:
        """Take another prior; `begin` or `restore` follows."""

    def begin(self, statistics: Statistics) -> None:
        """Begin with what all clusters would put in under the statistics of a start."""

    def draw(self, kind: str, seed: int) -> None:
        """Begin with drawn posteriors of what is hidden."""

    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        """Update clusters under the counts, with or without their own shares; put the new shares back, or keep them."""

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        """Visit clusters from the cursor on, as many as fit between two checks for an interruption, and move it.

        `order` (size,) holds the clusters in the order of the pass; shards of clusters have an order of their own.
        """

    def writing(self, in_place: bool) -> AbstractContextManager[None]:
        """Write new shares over the old ones, or in their place when the context ends without an interruption."""

    def trying(self) -> AbstractContextManager[None]:
        """Open a context in which states of the ledger are kept and returned to."""

    def add_up(self) -> None:
        """Sum all shares anew."""

    def update_hyperparameters(self) -> None:
        """Update what is learned of the prior."""

    def expected_log_joint(self) -> float | None:
        """Return the log joint probability that the expected counts would have if they were whole.

        None if it, or the entropies in `since`, are not known for this structure.
        """

    @property
    def checked(self) -> list[Record]:
        """Records that must be finite."""

    def marginals(self) -> tuple[Array, Index, NDArray[np.int32]] | None:
        """Return the posterior marginals of hidden states as lists, see `LegalStates`; None if they are not kept."""

    @property
    def statistics(self) -> Statistics: ...
    @property
    def reported(self) -> Statistics: ...
    @property
    def point(self) -> Point: ...
    @property
    def prior(self) -> Posterior | None: ...
    @property
    def memory(self) -> Memory: ...
    def restore(self, memory: Memory, statistics: Statistics) -> None: ...
    def check_sum(self, statistics: Statistics) -> None:
        """Raise a `FileFormatError` unless these statistics are the sum of what the clusters have contributed."""


class Moved(NamedTuple):
    """What a sweep did: the share of what is hidden that changed, and that of proposals which were accepted."""

    changed: float
    accepted: float = 1.0


class Walker(Protocol):
    """One Markov chain of a sampler. Random numbers are functions of the seed, of its number and of the sweep's number.

    Attributes
    ----------
    number : which of the sampler's chains it is
    hidden : what is hidden, as it was drawn last
    prior : the prior, which samplers of hierarchical models draw too
    side_by_side : whether walkers can run on threads of their own; else each of them uses all
    """

    number: int

    @property
    def prior(self) -> Posterior: ...
    @property
    def hidden(self) -> Hidden: ...
    @property
    def side_by_side(self) -> bool: ...

    def begin(self, point: Point) -> None:
        """Prepare for the first sweep of a run that starts at a point."""

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        """Do sweeps number `first`, `first` + 1, … at these temperatures; return what the last of them did."""

    def statistics(self) -> Statistics:
        """Return the statistics of what is hidden now."""

    def log_joint(self) -> float:
        """Return the log probability of the data and what is hidden, parameters summed out; nan if it is not known."""

    def kept(self, statistics: Statistics, sweep: int, *, with_hidden: bool) -> dict[str, NDArray[Any] | float]:
        """Return what is kept of the present draw, by name."""

    def tally_shape(self) -> tuple[int, ...]:
        """Return the shape of a table that counts how often what is hidden had each value; (0,) if none is kept."""

    def tally_starts(self) -> NDArray[np.int64]:
        """Return where the counts of each position begin in such a table."""

    def tally(self, out: NDArray[Any]) -> None:
        """Add the present draw to such a table."""

    def measures(self) -> dict[str, float]:
        """Return numbers for the trace beside the log joint."""

    def memory(self) -> Memory:
        """Return what a checkpoint has to keep beside what is hidden."""

    def restore(self, memory: Memory) -> None:
        """Prepare for the next sweep of a run that is resumed."""


class Walkers(Protocol):
    """Makes the walkers of a run."""

    def start(self, n_chains: int, point: Point, memory: Memory) -> Sequence[Hidden] | Hidden:
        """Return what is hidden for each chain to begin with, given the start of a run and what it says besides."""

    def resume(self, n_chains: int, memory: Memory) -> Sequence[Hidden] | Hidden:
        """Return what was hidden for each chain when a checkpoint was written."""

    def walker(self, number: int, hidden: Hidden) -> Walker:
        """Return a chain that stands at `hidden`."""

    def map(self, task: Callable[[Walker], Result], walkers: list[Walker]) -> list[Result]:
        """Return what the task gives for each walker, on threads where that helps."""


class Structure(Protocol):
    """The data of a run and what is hidden in them."""

    @property
    def n_observations(self) -> int:
        """Number of observations."""

    @property
    def total_weight(self) -> float:
        """Number of observations, each counted with its weight: `Statistics.n_observations` of all the data."""

    def statistics(self, weights: Point) -> Statistics:
        """Return the expected statistics of all the data under weights of the parts."""

    def plan(self, algorithm: StochasticSettings) -> Plan:
        """Return how a stochastic run with the settings of `algorithm` cuts the data."""

    def minibatches(self, algorithm: StochasticSettings, prior: Posterior) -> Minibatches:
        """Return the minibatches of such a run."""

    def excerpt(self, length: int, size: int, rng: np.random.Generator) -> Excerpt:
        """Return `size` random units of at most `length` observations."""

    def ledger(self, algorithm: CollapsedSettings, prior: Posterior) -> Ledger:
        """Return the ledger of a collapsed run with the settings of `algorithm`."""

    def walkers(self, algorithm: SamplingSettings, prior: Posterior, seed: int) -> Walkers:
        """Return what makes the chains of a Gibbs sampler with the settings of `algorithm`."""
