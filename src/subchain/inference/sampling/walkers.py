"""Markov chains of hidden states: what every kind of sampler has in common.

A walker holds the states of all positions. It sweeps over them, and says how probable they are. Nearly everything else
that it holds follows from the states; what does not, it names for checkpoints (`memory`). Its random numbers are
functions of the seed, of the walker's number and of the number of the sweep.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.data.legal_states import LegalStates
from subchain.emissions.base import Frozen, Parameters
from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.chains import ChainProblem
from subchain.inference.sampling.joint import emission_sums, log_joint_of_emissions
from subchain.numerics.random import key_of
from subchain.structures.chain.collapsed.missing_coordinates import fill_holes, has_holes
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.base import ChainLaw, ChainPosterior, ChainSums

if TYPE_CHECKING:
    from subchain.propagation.collapsed.pieces import Legal

Array = NDArray[np.float64]
States = NDArray[np.int32]


class Moved(NamedTuple):
    """What a sweep did: the share of positions whose state changed, and that of proposals which were accepted."""

    changed: float
    accepted: float = 1.0


@dataclasses.dataclass
class Setting:
    """What all walkers of a run share.

    Attributes
    ----------
    problem : the data and the prior
    legal : the states that every position may have; None if all
    seed : where random numbers come from
    """

    problem: ChainProblem
    legal: LegalStates | None
    seed: int

    @classmethod
    def of(cls, problem: ChainProblem, seed: int) -> Setting:
        """The setting of a run."""
        whole = problem.structure
        return cls(problem, None if whole.evidence is None else whole.evidence.listed(whole.data), seed)

    @cached_property
    def reference(self) -> Parameters:
        """The family at some point, which accumulates."""
        found: Parameters = self.problem.prior.emission.mean()
        return found

    @cached_property
    def has_holes(self) -> bool:
        """Whether missing coordinates have to be drawn."""
        return has_holes(self.reference, np.asarray(self.problem.structure.data.values))

    @cached_property
    def legal_lists(self) -> Legal:
        """The legal states for kernels."""
        from subchain.structures.chain.collapsed.shares import legal_lists

        return legal_lists(self.legal)[0]

    @cached_property
    def is_stationary(self) -> bool:
        """Whether chains begin in the stationary distribution of their transitions."""
        return bool(getattr(getattr(self.problem.prior.chain, "initial", None), "is_stationary", False))

    @property
    def anything_goes(self) -> bool:
        """Whether every legal state may follow every other and have any observation."""
        prior = self.problem.prior.chain.row_prior()
        possible = (prior.concentration > 0.0) | (prior.fixed > 0.0)
        return bool(possible.all()) and not isinstance(self.problem.prior.emission, Frozen)

    def draw_legal(self, number: int) -> States:
        """Every position's state drawn uniformly from those that are legal there, for one walker."""
        points = self.rng(number, 0, 6).random(self.problem.structure.data.n_observations)
        if self.legal is None:
            return (points * self.reference.n_states).astype(np.int32)
        counts = np.diff(self.legal.offsets)
        return self.legal.states[self.legal.offsets[:-1] + (points * counts).astype(np.int64)]

    def rng(self, *numbers: int) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.default_rng([self.seed, *numbers])


class Walker(ABC):
    """One Markov chain.

    Parameters
    ----------
    setting : what it shares with others
    number : which of them it is
    states : (N,) to begin with; the walker's own from then on

    Attributes
    ----------
    prior, reference : the prior of as many states as there are now, and the family at some point of it
    """

    #: Whether walkers can run on threads of their own; else each of them uses all.
    side_by_side: ClassVar[bool] = True

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        self.setting = setting
        self.number = number
        self.states = np.array(states, dtype=np.int32)
        self.prior = setting.problem.prior
        self.reference = setting.reference
        self.data = setting.problem.structure.data
        self.values: NDArray[Any] = self.data.values
        self.key = key_of(np.random.SeedSequence([setting.seed, number]))

    def begin(self, point: HMMPoint) -> None:
        """Prepare for the first sweep of a run that starts at a point."""
        if self.setting.has_holes:
            self._fill(point.emission, 0)

    def restore(self, memory: Memory) -> None:
        """Prepare for the next sweep of a run that is resumed."""
        if self.setting.has_holes:
            self.values = memory[f"values.{self.number}"]

    def memory(self) -> Memory:
        """What a checkpoint has to keep beside the states."""
        return {f"values.{self.number}": self.values} if self.setting.has_holes else {}

    @abstractmethod
    def sweep(self, sweep: int, temperature: float) -> Moved:
        """Draw all states anew; `sweep` is the number of the sweep."""

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        """Do several sweeps; what the last of them did."""
        moved = Moved(0.0)
        for number, temperature in enumerate(temperatures.tolist(), start=first):
            moved = self.sweep(number, temperature)
        return moved

    def _fill(self, emission: Parameters, sweep: int) -> None:
        rng = self.setting.rng(self.number, sweep, 1)
        self.values = fill_holes(emission, np.asarray(self.data.values), self.states, rng)

    @property
    def most_states(self) -> int:
        """The largest number of states that there can be."""
        return self.reference.n_states

    def summary(self, visits: Array) -> dict[str, Any]:
        """Numbers that are kept of every draw whatever its states are called; `visits` (K,) counts positions."""
        return {"n_used": np.count_nonzero(visits)}

    def measures(self) -> dict[str, float]:
        """Numbers for the trace beside the log joint."""
        return {}

    def statistics(self) -> HMMStatistics:
        """Counts of the present states."""
        initial, pairs = self.moves()
        return HMMStatistics.of(initial, pairs, self.sums(), 0.0, float(len(self.states)))

    def moves(self) -> tuple[Array, Array]:
        """Counts of first states and of moves."""
        n_states = self.reference.n_states
        initial, pairs = np.zeros(n_states), np.zeros((n_states, n_states))
        _count_moves(self.states, self.data.offsets, initial, pairs)
        return initial, pairs

    def sums(self) -> Any:
        """The family's sums."""
        return emission_sums(self.reference, self.values, self.states)

    def log_joint(self) -> float:
        """Log probability of observations and states, the parameters being summed out."""
        initial, pairs = self.moves()
        of_moves = float(self.prior.chain.log_evidence(ChainSums(initial, pairs)))
        return of_moves + self.log_joint_of_emissions() + self._log_evidence()

    def log_joint_of_emissions(self) -> float:
        """Log probability of the observations given the states."""
        return log_joint_of_emissions(self.prior.emission, self.sums(), self.values, self.states)

    def _log_evidence(self) -> float:
        """What is known of the states says so much of them."""
        legal = self.setting.legal
        if legal is None or legal.log_weights is None:
            return 0.0
        return float(_sum_listed(legal.offsets, legal.states, legal.log_weights, self.states))

    def draw_chain(self, statistics: HMMStatistics, sweep: int) -> ChainLaw:
        """A law of moves drawn given the present states, of which these are the statistics."""
        posterior: ChainPosterior = self.prior.chain.update(statistics.chain)
        return posterior.sample(self.setting.rng(self.number, sweep, 2))

    def draw_emission(self, statistics: HMMStatistics, sweep: int) -> Parameters:
        """Parameters of the emissions drawn given the present states."""
        found: Parameters = self.prior.emission.update(statistics.emission).sample(
            self.setting.rng(self.number, sweep, 3)
        )
        return found


@njit(nogil=True, cache=True)
def _count_moves(states, offsets, initial, pairs):
    for sequence in range(offsets.shape[0] - 1):
        for position in range(offsets[sequence], offsets[sequence + 1]):
            if position == offsets[sequence]:
                initial[states[position]] += 1.0
            else:
                pairs[states[position - 1], states[position]] += 1.0


@njit(nogil=True, cache=True)
def _sum_listed(offsets, listed, entries, states):
    """Sum of the entries that belong to the given states."""
    total = 0.0
    for position in range(states.shape[0]):
        for i in range(offsets[position], offsets[position + 1]):
            if listed[i] == states[position]:
                total += entries[i]
    return total


@njit(nogil=True, cache=True)
def tally_states(offsets, listed, states, out):
    """Add one to the entry of every position's state: entries of lists (nnz,), or of all states (N · K,)."""
    n_states = 0 if offsets.shape[0] else out.shape[0] // max(states.shape[0], 1)
    for position in range(states.shape[0]):
        if offsets.shape[0]:
            for i in range(offsets[position], offsets[position + 1]):
                if listed[i] == states[position]:
                    out[i] += 1
        else:
            out[position * n_states + states[position]] += 1
