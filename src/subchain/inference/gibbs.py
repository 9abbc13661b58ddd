"""Gibbs sampling: hidden states drawn from their posterior, again and again.

A sweep draws the state of every position anew, one at a time or whole sequences, each given all others. In the long run
the states are draws from the posterior; what they say on average is an answer without any approximation, if the run is
long enough, and samples tell how uncertain it is. Several chains run side by side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal import LegalStates
from subchain.emissions.base import Parameters
from subchain.engines.messages import Messages
from subchain.engines.paths import sample_paths
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError, unknown_name
from subchain.inference.base import Algorithm, Lists, whole_number
from subchain.inference.gibbs_any import AnySequences, AnyStates, SampledSequences
from subchain.inference.gibbs_words import WordSequences, WordStates, has_plain_rows, has_words
from subchain.inference.interrupts import Postponed
from subchain.inference.joint import begins_stationary
from subchain.inference.local_starts import LOCAL_STARTS, no_restriction
from subchain.inference.loop import Memory, RunState, Step
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Problem
from subchain.inference.trace import Status, Trace
from subchain.inference.walkers import Moved, Setting, Walker, tally_states
from subchain.records import STATE_AXES, build_record
from subchain.samples import LEAST_DRAWS, Samples, r_hat
from subchain.statistics import Statistics

if TYPE_CHECKING:
    from subchain.inference.loop import Stepper

Array = NDArray[np.float64]
Annealing = float | Sequence[float] | Callable[[float], float] | None

BLOCKS = ("state", "sequence")
PARAMETERS = ("collapsed", "sampled")
#: Tables of more numbers are not kept for every draw.
LARGE = 10_000
#: Chains with fewer positions, all together, are not worth a thread.
SMALL = 20_000
#: R-hat of the log joint from which on a user is warned.
DISAGREEMENT = 1.1


class Gibbs(Algorithm):
    """Draws of the hidden states, and of the parameters, from their posterior.

    What is reported is the mean of the kept draws of the chain with the largest mean log joint; labels of the states
    may differ between chains. All draws are in `model.samples_`, and `model.beliefs_` tells how often each position had
    each state.

    Words are drawn by compiled sweeps. For other families take sequences and sampled parameters: everything else draws
    one state or one sequence after the other in Python.

    Parameters
    ----------
    block : "state" or "sequence"
        What is drawn at once: the state of one position given all others, which is fast and mixes slowly, or the whole
        path of a sequence, which mixes well and costs K² a position. Where moves are forbidden, single states may be
        stuck; take sequences.
    parameters : "collapsed" or "sampled"
        Whether parameters are summed out, or drawn given the states in turn with these; only sequences can be drawn
        given parameters. Summed out they stand in nobody's way, but every state, or sequence, has to wait for the one
        before; drawn, all sequences can be drawn at a time.
    n_samples : int
        Draws of each chain that are kept.
    burn_in : int
        Sweeps before the first of them.
    thin : int
        Sweeps from one draw to the next.
    n_chains : int
        Chains, each with a path of its own to begin with.
    annealing : optional
        Temperatures τ of the burn-in: probabilities are raised to the power 1/τ (with sampled parameters those of
        states and observations, not the prior's). Several numbers are spread evenly over the burn-in and joined by
        straight lines, so that ``(2.0, 0.08)`` goes from hot to cold; a function is asked for the temperature at every
        share of the burn-in from 0 to 1. Draws that are kept have the last temperature, and come from the posterior
        only if that is 1.
    keep_states : bool
        Keep the drawn paths too, one small integer for each position and draw.
    time_limit : float, optional
        Seconds after which the run ends with what it has.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM
    >>> from subchain.inference import Gibbs
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> gibbs = Gibbs(n_samples=50, burn_in=20, n_chains=2)
    >>> HMM(2, "categorical", inference=gibbs, random_state=0, n_jobs=1).fit(x).n_states_
    2
    """

    name = "gibbs"
    flat = False
    patience = None

    def __init__(
        self,
        block: str = "state",
        parameters: str = "collapsed",
        n_samples: int = 500,
        burn_in: int = 500,
        thin: int = 1,
        n_chains: int = 4,
        annealing: Annealing = None,
        keep_states: bool = False,
        time_limit: float | None = None,
    ) -> None:
        self.block = block
        self.parameters = parameters
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.annealing = annealing
        self.keep_states = keep_states
        self.time_limit = time_limit

    def check(self) -> None:
        super().check()
        if self.block not in BLOCKS:
            raise unknown_name("block of states", self.block, BLOCKS)
        if self.parameters not in PARAMETERS:
            raise unknown_name("way with parameters", self.parameters, PARAMETERS)
        if self.block == "state" and self.parameters == "sampled":
            raise InputError(
                "Gibbs: single states are drawn with the parameters summed out; for parameters='sampled' say "
                "block='sequence'."
            )
        for name, least in (("n_samples", 1), ("burn_in", 0), ("thin", 1), ("n_chains", 1)):
            whole_number(self, name, least)
        if not isinstance(self.keep_states, (bool, np.bool_)):
            raise InputError(f"Gibbs: keep_states must be True or False, not {self.keep_states!r}.")
        self.temperatures()

    def identity(self) -> dict[str, Any]:
        """As for every algorithm; a resumed run may also keep more draws."""
        settings = super().identity() | {"annealing": self.temperatures()}
        del settings["n_samples"]
        return settings

    def temperatures(self) -> Array:
        """Temperature of each sweep of the burn-in, and that of all sweeps after it, (burn_in + 1,)."""
        share = np.append(np.linspace(0.0, 1.0, max(self.burn_in, 2))[: self.burn_in], 1.0)
        found = self._temperatures_at(share)
        wrong = np.flatnonzero(~((found > 0.0) & np.isfinite(found)))
        if wrong.size:
            raise InputError(
                f"Gibbs: temperatures must be positive and finite, but that of sweep {wrong[0]} is {found[wrong[0]]}; "
                f"look at annealing={self.annealing!r}."
            )
        return found

    def _temperatures_at(self, share: Array) -> Array:
        """Temperatures at shares of the burn-in."""
        if self.annealing is None:
            return np.ones(len(share))
        try:
            if callable(self.annealing):
                return np.array([float(self.annealing(at)) for at in share.tolist()])
            given = np.atleast_1d(np.array(self.annealing, dtype=np.float64))
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim != 1 or not len(given):
            raise InputError(
                "Gibbs: annealing must be a temperature, several, or a function of the share of the burn-in that "
                f"returns one, not {self.annealing!r}."
            )
        if len(given) > 1 and self.burn_in == 0:
            raise InputError(
                f"Gibbs: annealing={self.annealing!r} goes through several temperatures during the burn-in, but "
                "burn_in is 0; give it some sweeps."
            )
        return np.interp(share, np.linspace(0.0, 1.0, len(given)) if len(given) > 1 else [1.0], given)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def n_iterations(self, problem: Problem) -> int | None:
        return -(-self.burn_in // self.thin) + self.n_samples

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Sweeps(problem, self, state)

    def beliefs(self, problem: Problem, state: RunState) -> Lists | None:
        found, evidence = beliefs_of(state.results.memory), problem.whole.evidence
        if found is None:
            return None
        if evidence is None:
            return found.reshape(-1), *no_restriction()
        legal = LegalStates.of(evidence, problem.whole.data)
        return found, legal.offsets, legal.states

    def samples(self, state: RunState) -> Samples | None:
        return samples_of(state.results.memory)

    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        return posterior.predictive()

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        return posterior.mean(), []

    def _kept(self, trace: Trace) -> Array:
        """Log joints of the kept draws that a trace tells of, (chains, draws)."""
        columns = [trace.measures[f"log_joint.{chain}"] for chain in range(self.n_chains)]
        kept = np.array(trace.measures["sweeps"]) > self.burn_in
        return np.array(columns)[:, kept]

    def worth(self, trace: Trace) -> float:
        """The mean log joint of the best chain's draws; before there are any, the last one."""
        if not len(trace):
            return -math.inf
        kept = self._kept(trace)
        return float(kept.mean(axis=1).max()) if kept.shape[1] else trace.objective[-1]

    def complaint(self, trace: Trace, status: Status) -> str | None:
        kept = self._kept(trace)
        if not kept.shape[1]:
            return f"Gibbs ended ({status}) during the burn-in and kept no draw; the model is that of its last states."
        if self.temperatures()[-1] != 1.0 or self.n_chains == 1 or kept.shape[1] < LEAST_DRAWS:
            return None
        found = r_hat(kept)
        if found <= DISAGREEMENT:
            return None
        return (
            f"the chains of Gibbs do not agree (R-hat of the log joint is {found:.2f}): they may need more burn_in and "
            "n_samples, or have found different modes, of which the best is reported."
        )


# ---- the sweeps ------------------------------------------------------------------------------------------------------


def walker_type(algorithm: Gibbs, problem: Problem) -> type[Walker]:
    """The kind of chain that does what the settings say to such data."""
    if problem.whole.weights is not None and (problem.whole.weights != 1.0).any():
        raise InputError(
            "Gibbs cannot weigh sequences: every one of them has a path or has none. Leave sample_weight out, or "
            "repeat sequences that are to count more than once."
        )
    if algorithm.parameters == "sampled":
        return SampledSequences
    if begins_stationary(problem.prior.chain):
        raise InputError(
            "Gibbs: where chains begin in the stationary distribution of their moves, the moves cannot be summed out; "
            "use Gibbs(block='sequence', parameters='sampled')."
        )
    if algorithm.block == "sequence":
        return WordSequences if has_words(problem) else AnySequences
    return WordStates if has_words(problem) and has_plain_rows(problem) else AnyStates


class Sweeps:
    """Iterations that are sweeps of all chains; after the burn-in each of them gives a draw of every chain."""

    def __init__(self, problem: Problem, algorithm: Gibbs, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.interruption = Postponed()
        self.schedule = algorithm.temperatures()
        kind = walker_type(algorithm, problem)
        setting = Setting.of(problem, state.seed)
        memory = state.results.memory
        is_resumed = "sweeps" in memory
        states = memory["states"] if is_resumed else self._start(state, setting)
        walkers = [kind(setting, number, states[number]) for number in range(algorithm.n_chains)]
        for walker in walkers:
            walker.restore(memory) if is_resumed else walker.begin(state.point)
        self.drawn = Drawn(problem, algorithm, walkers)
        if is_resumed:
            self.drawn.restore(memory)

    def _start(self, state: RunState, setting: Setting) -> NDArray[np.int32]:
        """States of all positions for every chain: a path given the start's point, or any legal states if these were
        asked for and can follow each other."""
        whole, n_chains = self.problem.whole, self.algorithm.n_chains
        asked = "local start" in state.results.memory and LOCAL_STARTS[int(state.results.memory["local start"])]
        if asked == "states" and setting.anything_goes:
            return np.array([setting.draw_legal(number) for number in range(n_chains)])
        messages = Messages(state.point.surrogate(), whole.data, whole.evidence)
        return sample_paths(self.problem.engine, messages, n_chains, np.random.SeedSequence([state.seed, 0, 0, 5]))

    def step(self, state: RunState) -> Step:
        drawn, algorithm = self.drawn, self.algorithm
        with self.interruption:
            is_kept = drawn.sweeps >= algorithm.burn_in
            count = algorithm.thin if is_kept else min(algorithm.thin, algorithm.burn_in - drawn.sweeps)
            sweeps = np.minimum(np.arange(drawn.sweeps, drawn.sweeps + count), len(self.schedule) - 1)
            temperatures = self.schedule[sweeps]

            def advance(walker: Walker) -> Moved:
                moved = walker.sweeps(drawn.sweeps, temperatures)
                drawn.note(walker, drawn.sweeps + count, is_kept=is_kept)
                return moved

            moved = self._map(advance)
            drawn.advanced(count, is_kept=is_kept)
        measures = {
            "sweeps": float(drawn.sweeps),
            "temperature": float(temperatures[-1]),
            "changed": float(np.mean([move.changed for move in moved])),
            "accepted": float(np.mean([move.accepted for move in moved])),
        }
        measures |= {f"log_joint.{chain}": value for chain, value in enumerate(drawn.log_joint.tolist())}
        return Step(drawn, float(drawn.log_joint.mean()), [], [], measures)

    def _map(self, task: Callable[[Walker], Moved]) -> list[Moved]:
        walkers = self.drawn.walkers
        total = len(walkers) * self.problem.whole.data.n_observations
        if not walkers[0].side_by_side or total < SMALL:
            return [task(walker) for walker in walkers]
        return self.problem.engine.map(task, walkers)


class Drawn:
    """What a run has drawn so far: the chains where they stand, and what is kept of their draws.

    Attributes
    ----------
    walkers : the chains
    sweeps, draws : how many of each have been done
    log_joint : (chains,) of the present states
    """

    def __init__(self, problem: Problem, algorithm: Gibbs, walkers: list[Walker]) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.walkers = walkers
        self.sweeps = self.draws = 0
        self.log_joint = np.full(len(walkers), -math.inf)
        setting = walkers[0].setting
        self._lists = setting.choices
        n_positions, n_states = problem.whole.data.n_observations, setting.reference.n_states
        entries = (n_positions, n_states) if setting.legal is None else (setting.legal.n_entries,)
        self._tally = np.zeros((len(walkers), *entries), dtype=np.min_scalar_type(algorithm.n_samples))
        self._totals: list[Statistics | None] = [None] * len(walkers)
        self._kept: dict[str, NDArray[Any]] = {}
        self._known: dict[str, Any] = {}

    # ---- while it runs -----------------------------------------------------------------------------------------------

    def note(self, walker: Walker, sweep: int, *, is_kept: bool) -> None:
        """Write down where a chain stands after so many sweeps; chains may do so at the same time."""
        self.log_joint[walker.number] = walker.log_joint()
        if not is_kept:
            return
        statistics = walker.statistics()
        for name, value in self._values(walker, statistics, sweep).items():
            self._room(name, np.asarray(value))[walker.number, self.draws] = value
        total = self._totals[walker.number]
        if total is None:
            self._totals[walker.number] = statistics
        else:
            total.absorb(statistics)
        tally = self._tally[walker.number].reshape(-1)
        tally_states(self._lists.offsets, self._lists.states, walker.states, tally)

    def advanced(self, sweeps: int, *, is_kept: bool) -> None:
        """All chains have done their sweeps."""
        self.sweeps += sweeps
        self.draws += is_kept
        self._known = {}

    def _values(self, walker: Walker, statistics: Statistics, sweep: int) -> dict[str, Any]:
        """What is kept of a draw."""
        visits = statistics.initial + statistics.pairs.sum(axis=0)
        chain = walker.draw_chain(statistics, sweep)
        found: dict[str, Any] = {
            "log_joint": self.log_joint[walker.number],
            "n_used": np.count_nonzero(visits),
            "occupancy": np.sort(visits)[::-1] / max(visits.sum(), 1.0),
            "initial": chain.initial,
        }
        if chain.transition.size <= LARGE:
            found["transition"] = chain.transition
        if self._is_small(walker.setting.reference):
            parameters = walker.draw_emission(statistics, sweep)
            found |= {f"emission.{name}": array for name, array in _of_states(parameters)}
        if self.algorithm.keep_states:
            found["states"] = walker.states
        return found

    @staticmethod
    def _is_small(parameters: Parameters) -> bool:
        """Whether parameters of the emissions are kept for every draw."""
        return sum(array.size for _, array in _of_states(parameters)) <= LARGE

    def _room(self, name: str, like: NDArray[Any]) -> NDArray[Any]:
        if name not in self._kept:
            kind = np.min_scalar_type(self._n_states - 1) if name == "states" else like.dtype
            shape = (len(self.walkers), self.algorithm.n_samples, *like.shape)
            self._kept.setdefault(name, np.empty(shape, dtype=kind))
        return self._kept[name]

    @property
    def _n_states(self) -> int:
        return self.walkers[0].setting.reference.n_states

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def best(self) -> int:
        """The chain with the largest mean log joint."""
        worth = self._kept["log_joint"][:, : self.draws].mean(axis=1) if self.draws else self.log_joint
        return int(worth.argmax())

    @property
    def statistics(self) -> Statistics:
        if "statistics" not in self._known:
            total = self._totals[self.best]
            mean = self.walkers[self.best].statistics() if total is None else total.scale(1.0 / self.draws)
            mean.n_observations = float(self.problem.whole.data.n_observations)
            self._known["statistics"] = mean
        found: Statistics = self._known["statistics"]
        return found

    reported = statistics

    @property
    def point(self) -> Point:
        if "point" not in self._known:
            self._known["point"] = self.problem.prior.update(self.statistics).mean()
        found: Point = self._known["point"]
        return found

    @property
    def samples(self) -> Samples | None:
        """All kept draws, if there are any."""
        return samples_of(self.memory)

    @property
    def beliefs(self) -> Array | None:
        """What `beliefs_of` says."""
        return beliefs_of(self.memory)

    @property
    def memory(self) -> Memory:
        memory: Memory = {
            "sweeps": np.array(self.sweeps),
            "draws": np.array(self.draws),
            "log_joint": self.log_joint.copy(),
            "states": np.array([walker.states for walker in self.walkers]),
            "tally": self._tally,
        }
        for walker, total in zip(self.walkers, self._totals, strict=True):
            memory |= walker.memory()
            if total is not None:
                memory |= {f"total.{walker.number}.{key}": array for key, array in total.arrays().items()}
        return memory | {f"samples.{name}": array[:, : self.draws] for name, array in self._kept.items()}

    def restore(self, memory: Memory) -> None:
        """Take up what `memory` gave; the walkers have done so."""
        self.sweeps, self.draws = int(memory["sweeps"]), int(memory["draws"])
        self.log_joint = np.array(memory["log_joint"])
        self._tally[:] = memory["tally"]
        if self.draws:
            schema = self.walkers[0].statistics().schema()
            totals: list[Any] = [
                build_record(schema, memory, f"total.{walker.number}.") for walker in self.walkers
            ]
            self._totals = totals
        for name, array in _samples(memory).items():
            self._room(name, array[0, 0])[:, : self.draws] = array


def _of_states(record: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Parameters of states by name, with the states on their first axis; the table of symbols is called by its use."""
    for item in dataclasses.fields(record):
        value, axes = getattr(record, item.name), item.metadata.get(STATE_AXES, (0,))
        name = prefix + ("probabilities" if item.name == "weights" else item.name)
        if isinstance(value, dict):
            for part, inner in value.items():
                yield from _of_states(inner, f"{prefix}{part}.")
        elif isinstance(value, np.ndarray) and axes:
            yield name, np.moveaxis(value, axes[0], 0)


def _samples(memory: Memory) -> dict[str, NDArray[Any]]:
    start = "samples."
    return {name.removeprefix(start): array for name, array in memory.items() if name.startswith(start)}


def samples_of(memory: Memory) -> Samples | None:
    """The draws of a run, from what its results or its checkpoint remember; None if it kept none."""
    found = _samples(memory)
    return Samples(found) if found else None


def beliefs_of(memory: Memory) -> Array | None:
    """Share of the best chain's draws in which each position had each state, from what `samples_of` takes.

    (N, K), or one number for each legal state of each position, in the order of `LegalStates`; None without draws.
    """
    samples = samples_of(memory)
    if samples is None:
        return None
    shares: Array = memory["tally"][samples.best_chain] / samples.n_draws
    return shares
