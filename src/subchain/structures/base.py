"""The seam between inference and what is hidden in the data.

A *structure* holds the data of a run and knows what is hidden in them: chains of states, alignments, trees. It turns
weights of the model's parts into expected statistics. It also offers what other kinds of inference need: minibatches
for stochastic updates, a ledger of clusters for collapsed inference, and walkers for samplers. Everything above this
module sees structures, and the parts of a model (`subchain.core.parts`), through these protocols alone.

A structure whose data are independent clusters (documents, sentence pairs, sentences) derives from
`subchain.structures.clusters.ClusterStructure`, writes three methods, and gets every algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import IncrementalPosterior, Memory
from subchain.core.statistics import Statistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Fresh(NamedTuple):
    """What a minibatch gave.

    Attributes
    ----------
    statistics : expected statistics of the minibatch
    gains : by part, the factor that makes its sums stand for all the data
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

    def run(self, units: Index, coming: Index, weights: Any, model: IncrementalPosterior) -> Fresh:
        """Return the expected statistics of `units` (M,) under weights of the posterior; `coming` (M,) follow next."""

    def run_updates(self, units: Index, rates: Array, model: IncrementalPosterior, since: Array) -> int:
        """Do as many of the coming updates as one compiled call can, and return their number, possibly zero.

        Their minibatches are `units` (U, M), their rates (U,). Log normalisers and numbers of observations are added to
        `since` (2,).
        """

    def signal(self, sums: Any) -> Array:
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

    def statistics(self, weights: Any) -> Any:
        """Return expected statistics of all the data, estimated from the excerpt."""


class Structure(Protocol):
    """The data of a run and what is hidden in them."""

    @property
    def n_observations(self) -> int:
        """Number of observations."""

    def statistics(self, weights: Any) -> Any:
        """Return the expected statistics of all the data under weights of the parts."""

    def plan(self, algorithm: Any) -> Plan:
        """Return how a stochastic run with the settings of `algorithm` cuts the data."""

    def minibatches(self, algorithm: Any, prior: Any) -> Minibatches:
        """Return the minibatches of such a run."""

    def excerpt(self, length: int, size: int, rng: np.random.Generator) -> Excerpt:
        """Return `size` random units of at most `length` observations."""
