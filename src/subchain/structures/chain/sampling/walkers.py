"""Markov chains of hidden states: what every kind of sampler has in common.

A walker holds the states of all positions. It sweeps over them, and says how probable they are. Nearly everything else
that it holds follows from the states; what does not, it names for checkpoints (`memory`). Its random numbers are
functions of the seed, of the walker's number and of the number of the sweep.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point
from subchain.core.ranges import Range, stored
from subchain.core.records import STATE_AXES
from subchain.core.statistics import Statistics
from subchain.data.legal_states import LegalStates
from subchain.emissions.base import Parameters
from subchain.emissions.frozen import Frozen
from subchain.engines.statistics import HMMStatistics
from subchain.errors import FileFormatError, InputError
from subchain.numerics.linking import linked
from subchain.numerics.random import key_of
from subchain.structures.base import Hidden, Moved, Result
from subchain.structures.base import Walker as AnyWalker
from subchain.structures.chain.collapsed.missing_coordinates import fill_incomplete_rows, has_incomplete_rows
from subchain.structures.chain.local_starts import local_start_of
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.chain.sampling.joint import emission_sums, log_joint_of_emissions
from subchain.transitions.base import ChainLaw, ChainPosterior, ChainSums

if TYPE_CHECKING:
    from subchain.propagation.collapsed.pieces import Legal
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
States = NDArray[np.int32]

#: Chains with fewer positions, all together, are not worth a thread.
SMALL = 20_000
#: Tables of more numbers are not kept for every draw.
LARGE = 10_000
#: Observations with missing coordinates filled in; rows without any known one stay missing.
VALUES = Range(dtype=None, allows_nan=True)


@dataclasses.dataclass
class Setting:
    """What all walkers of a run share, and how they are made; see `structures.base.Walkers`.

    Attributes
    ----------
    chains, prior : the data and the prior
    seed : where random numbers come from
    make : makes a walker from this setting, its number and its states
    """

    chains: Chains
    prior: HMMPosterior
    seed: int
    make: Callable[[Setting, int, States], Walker] | None = None

    def start(self, n_chains: int, point: Point, memory: Memory) -> States:
        """Return states of all positions for every chain, (n_chains, N).

        They are paths drawn given the start's point, or any legal states if these were asked for and can follow each
        other.
        """
        if local_start_of(memory) == "states" and self.anything_goes:
            return np.array([self.draw_legal(number) for number in range(n_chains)])
        seed = np.random.SeedSequence([self.seed, 0, 0, 5])
        given = cast(HMMPoint, point)
        return self.chains.engine.sample_paths(given.surrogate(), self.chains.under(given), n_chains, seed)

    def resume(self, n_chains: int, memory: Memory) -> States:
        return stored(memory, "hidden", Range("int32", least=0), (n_chains, self.chains.n_observations))

    def walker(self, number: int, hidden: Hidden) -> Walker:
        assert self.make is not None
        return self.make(self, number, hidden.astype(np.int32, copy=False))

    def map(self, task: Callable[[AnyWalker], Result], walkers: list[AnyWalker]) -> list[Result]:
        total = len(walkers) * self.chains.n_observations
        if not walkers[0].side_by_side or total < SMALL:
            return [task(walker) for walker in walkers]
        return self.chains.engine.map(task, walkers)

    @cached_property
    def legal(self) -> LegalStates | None:
        """The states that every position may have; None if all."""
        return None if self.chains.evidence is None else self.chains.evidence.listed(self.chains.data)

    @cached_property
    def reference(self) -> Parameters:
        """The family at some point, which accumulates."""
        found: Parameters = self.prior.emission.mean()
        return found

    @cached_property
    def has_incomplete_rows(self) -> bool:
        """Whether missing coordinates have to be drawn."""
        return has_incomplete_rows(self.reference, np.asarray(self.chains.data.values))

    @cached_property
    def legal_lists(self) -> Legal:
        """The legal states for kernels."""
        from subchain.structures.chain.collapsed.shares import legal_lists

        return legal_lists(self.legal)[0]

    @cached_property
    def is_stationary(self) -> bool:
        """Whether chains begin in the stationary distribution of their transitions."""
        return bool(getattr(getattr(self.prior.chain, "initial", None), "is_stationary", False))

    @property
    def anything_goes(self) -> bool:
        """Whether every legal state may follow every other and have any observation."""
        prior = self.prior.chain.row_prior()
        possible = (prior.concentration > 0.0) | (prior.fixed > 0.0)
        return bool(possible.all()) and not isinstance(self.prior.emission, Frozen)

    def draw_legal(self, number: int) -> States:
        """Every position's state drawn uniformly from those that are legal there, for one walker."""
        points = self.rng(number, 0, 6).random(self.chains.data.n_observations)
        if self.legal is None:
            return (points * self.reference.n_states).astype(np.int32)
        counts = np.diff(self.legal.offsets)
        return self.legal.states[self.legal.offsets[:-1] + (points * counts).astype(np.int64)]

    def rng(self, *numbers: int) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.default_rng([self.seed, *numbers])


def refuse_weights(chains: Chains, name: str) -> None:
    """Raise an `InputError` that names the sampler if sequences are to count more or less than once."""
    if chains.weights is not None and (chains.weights != 1.0).any():
        raise InputError(
            f"{name} cannot weigh sequences: every one of them has a path or has none. Leave sample_weight out, or "
            "repeat sequences that are to count more than once."
        )


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
        self.prior: HMMPosterior = setting.prior
        self.reference = setting.reference
        self.data = setting.chains.data
        self.values: NDArray[Any] = self.data.values
        self.key = key_of(np.random.SeedSequence([setting.seed, number]))

    def begin(self, point: Point) -> None:
        """Prepare for the first sweep of a run that starts at a point."""
        if self.setting.has_incomplete_rows:
            self._fill(cast(HMMPoint, point).emission, 0)

    def restore(self, memory: Memory) -> None:
        """Prepare for the next sweep of a run that is resumed."""
        most = int(self.states.max(initial=0))
        if most >= self.reference.n_states:
            raise FileFormatError(f"hidden holds the state {most}, but there are {self.reference.n_states}")
        if self.setting.has_incomplete_rows:
            self.values = stored(memory, f"values.{self.number}", VALUES, self.data.values.shape)

    def memory(self) -> Memory:
        """What a checkpoint has to keep beside the states."""
        return {f"values.{self.number}": self.values} if self.setting.has_incomplete_rows else {}

    @abstractmethod
    def sweep(self, sweep: int, temperature: float) -> Moved:
        """Draw all states anew; `sweep` is the number of the sweep."""

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        """Do several sweeps; what the last of them did."""
        moved = Moved(0.0)
        for number, temperature in enumerate(temperatures.tolist(), start=first):
            self.data.check_file()
            moved = self.sweep(number, temperature)
        return moved

    def _fill(self, emission: Parameters, sweep: int) -> None:
        rng = self.setting.rng(self.number, sweep, 1)
        self.values = fill_incomplete_rows(emission, np.asarray(self.data.values), self.states, rng)

    @property
    def most_states(self) -> int:
        """The largest number of states that there can be."""
        return self.reference.n_states

    def summary(self, visits: Array) -> dict[str, Any]:
        """Numbers that are kept of every draw whatever its states are called; `visits` (K,) counts positions."""
        return {"n_used": np.count_nonzero(visits)}

    @property
    def hidden(self) -> States:
        return self.states

    def kept(self, statistics: Statistics, sweep: int, *, with_hidden: bool) -> dict[str, Any]:
        statistics = cast(HMMStatistics, statistics)
        visits = statistics.visits
        chain = self.draw_chain(statistics, sweep)
        found: dict[str, Any] = self.summary(visits)
        found["occupancy"] = np.sort(visits)[::-1] / max(visits.sum(), 1.0)
        found["initial"] = chain.initial
        if chain.transition.size <= LARGE:
            found["transition"] = chain.transition
        if sum(array.size for _, array in state_arrays(self.reference)) <= LARGE:
            parameters = self.draw_emission(statistics, sweep)
            found |= {f"emission.{name}": array for name, array in state_arrays(parameters)}
        if with_hidden:
            found["states"] = self.states.astype(np.min_scalar_type(self.most_states - 1))
        return found

    def tally_shape(self) -> tuple[int, ...]:
        legal = self.setting.legal
        return (len(self.states), self.reference.n_states) if legal is None else (legal.n_entries,)

    def tally_starts(self) -> NDArray[np.int64]:
        legal = self.setting.legal
        return np.arange(len(self.states)) * self.reference.n_states if legal is None else legal.offsets[:-1]

    def tally(self, out: NDArray[Any]) -> None:
        lists = self.setting.legal_lists
        _tally_states(lists.offsets, lists.states, self.states, out.reshape(-1))

    def measures(self) -> dict[str, float]:
        """Numbers for the trace beside the log joint."""
        return {}

    def statistics(self) -> HMMStatistics:
        """Counts of the present states."""
        initial, pairs = self.moves()
        return HMMStatistics.of(initial, pairs, self.sums(), 0.0, float(len(self.states)))

    def moves(self) -> tuple[Array, Array]:
        """Counts of first states and of transitions."""
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
        """A law of transitions drawn given the present states, of which these are the statistics."""
        posterior: ChainPosterior = self.prior.chain.update(statistics.chain)
        return posterior.sample(self.setting.rng(self.number, sweep, 2))

    def draw_emission(self, statistics: HMMStatistics, sweep: int) -> Parameters:
        """Parameters of the emissions drawn given the present states."""
        found: Parameters = self.prior.emission.update(statistics.emission).sample(
            self.setting.rng(self.number, sweep, 3)
        )
        return found


class PathWalker(Walker):
    """A walker that draws all paths anew: what it counted is right until new states take the place of the old ones."""

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        super().__init__(setting, number, states)
        self._counted_of: tuple[Any, ...] = ()
        self._counted: dict[str, Any] = {}

    def moves(self) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self._once("moves", super().moves)
        return found

    def sums(self) -> Any:
        return self._once("sums", super().sums)

    def _once(self, name: str, count: Callable[[], Any]) -> Any:
        """Return what was counted in the present states, or count it."""
        present = self.states, self.values, self.reference
        if any(one is not other for one, other in zip_longest(present, self._counted_of)):
            self._counted_of, self._counted = present, {}
        if name not in self._counted:
            self._counted[name] = count()
        return self._counted[name]


@linked()
def _count_moves(states, offsets, initial, pairs):
    for sequence in range(offsets.shape[0] - 1):
        for position in range(offsets[sequence], offsets[sequence + 1]):
            if position == offsets[sequence]:
                initial[states[position]] += 1.0
            else:
                pairs[states[position - 1], states[position]] += 1.0


@linked()
def _sum_listed(offsets, listed, entries, states):
    """Sum of the entries that belong to the given states."""
    total = 0.0
    for position in range(states.shape[0]):
        for i in range(offsets[position], offsets[position + 1]):
            if listed[i] == states[position]:
                total += entries[i]
    return total


@linked()
def _tally_states(offsets, listed, states, out):
    """Add one to the entry of every position's state: entries of lists (nnz,), or of all states (N · K,)."""
    n_states = 0 if offsets.shape[0] else out.shape[0] // max(states.shape[0], 1)
    for position in range(states.shape[0]):
        if offsets.shape[0]:
            for i in range(offsets[position], offsets[position + 1]):
                if listed[i] == states[position]:
                    out[i] += 1
        else:
            out[position * n_states + states[position]] += 1


def state_arrays(record: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Parameters of states by name, with the states on their first axis; the table of symbols is called by its use."""
    for item in dataclasses.fields(record):
        value, axes = getattr(record, item.name), item.metadata.get(STATE_AXES, (0,))
        name = prefix + ("probabilities" if item.name == "weights" else item.name)
        if isinstance(value, dict):
            for part, inner in value.items():
                yield from state_arrays(inner, f"{prefix}{part}.")
        elif isinstance(value, np.ndarray) and axes:
            yield name, np.moveaxis(value, axes[0], 0)
