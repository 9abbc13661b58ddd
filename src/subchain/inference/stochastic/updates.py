"""Stochastic algorithms: an update visits a few subchains, or a few sequences, and moves the statistics a little.

    part      = M subchains, drawn at random                        engines/subchains.py
    surrogate = the posterior's, as it stands                       Incremental.surrogate, IncrementalChain.surrogate
    messages  = what the boundary knows of the rest of the chain    inference/boundaries.py, guards.py, …
    fresh     = forward-backward between these messages             engines/subchains.py
    S         = (1 − ρ) S + ρ · scale · fresh                       Incremental.move, IncrementalChain.move

An iteration of the loop is `report_every` updates: then the trace is written, the held-out score taken, and a
checkpoint if it is time.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.statistics import Statistics
from subchain.data.mapped import MappedFile
from subchain.engines.subchains import Anywhere, Grid, Minibatch, Subchains
from subchain.engines.surrogate import Surrogate
from subchain.errors import ImpossibleSequenceError, InputError, unknown_name
from subchain.inference.run.algorithm import Algorithm, number, positive_number, whole_number
from subchain.inference.run.interrupts import Postponed
from subchain.inference.run.loop import RunState, Step
from subchain.inference.run.posterior import ModelPosterior, Point
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Status
from subchain.inference.search.excerpts import Excerpt
from subchain.inference.search.search import Search, Trial
from subchain.inference.stochastic.boundaries import Boundary, OpenBoundary, resolve_boundary
from subchain.inference.stochastic.fused_updates import WordUpdates
from subchain.inference.stochastic.incremental_model import IncrementalModel
from subchain.inference.stochastic.rates import Adaptive, Falling
from subchain.transitions.base import Chain
from subchain.transitions.hdp.collapsed_top import WAYS, CollapsedChain

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper

Array = NDArray[np.float64]
Index = NDArray[np.int64]

STARTS = ("grid", "anywhere")
#: Observations of a minibatch whose size was left open.
BATCH_OBSERVATIONS = 2000
#: Updates and passes of a run that was given no limit, whichever is more.
LEAST_UPDATES, PASSES = 1000, 5.0
#: Updates whose minibatches are drawn at one go.
DRAWN = 64
#: Subchains, and their length, that statistics are guessed from where a run starts at a given model.
SAMPLE_SIZE, SAMPLE_LENGTH = 128, 1024
#: Updates after which what is learned of a prior is moved, and observations that other numbers of states are judged by.
RENEW, JUDGED = 10, 20_000
#: Renewals after which the prior of a proposal is judged.
SETTLED = 3
#: What a search may cost in fit, by the log normaliser of an observation. In the middle of a run the bound always asks
#: for fewer states: counts that have only begun to differ are worth less than what their priors cost.
LOSS = 1e-3
#: Number of updates times their rate before the first search: by then a run has left its start behind. Short runs
#: search in their second half.
RIPE = 12.0
#: Reports between two searches over the number of states, at first.
SEARCH = 3
#: Bytes of a file that are read before its memory is handed back.
MAPPED_BYTES = 1 << 26
#: Sequences up to this length are taken whole if nothing else was said.
WHOLE = 1024


class Stochastic(Algorithm):
    """Base of the stochastic algorithms.

    Parameters
    ----------
    length : int, "auto" or None
        Positions of a subchain. None takes whole sequences; "auto" does so too if all are short, and else chooses a
        length by how soon the chain forgets.
    batch : int, optional
        Subchains (or sequences) of an update; by default so many that an update sees about 2000 observations.
    boundary : str or Boundary
        What subchains are told about the rest of their chain: "stationary", `Buffer(n)`, `GrowBuffer()`, `Guards()`.
    delay, forgetting : float
        The n-th update moves the statistics by ρ = (delay + n)^−forgetting towards the minibatch's.
    starts : "grid" or "anywhere"
        Whether subchains are the pieces of a fixed grid, or begin anywhere.
    max_updates, max_passes : optional
        When to stop. With neither, nor a time limit, nor patience: after five passes and a thousand updates.
    time_limit : float, optional
        Seconds after which the run ends with what it has.
    patience : int, optional
        With validation data: reports without a better held-out score after which the run ends.
    report_every : int
        Updates between two entries of the trace.
    adapt : bool
        Choose ρ by the noise of the minibatches instead.
    average : bool
        Report the mean of the statistics over about the last half of the run instead of the last.
    """

    #: The surrogate of the posterior that minibatches are run under.
    kind: ClassVar[str]

    def __init__(
        self,
        length: int | str | None = "auto",
        batch: int | None = None,
        boundary: str | Boundary = "stationary",
        delay: float = 1.0,
        forgetting: float = 0.6,
        starts: str = "grid",
        max_updates: int | None = None,
        max_passes: float | None = None,
        time_limit: float | None = None,
        patience: int | None = None,
        report_every: int = 100,
        adapt: bool = False,
        average: bool = False,
    ) -> None:
        self.length = length
        self.batch = batch
        self.boundary = boundary
        self.delay = delay
        self.forgetting = forgetting
        self.starts = starts
        self.max_updates = max_updates
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.patience = patience
        self.report_every = report_every
        self.adapt = adapt
        self.average = average

    def check(self) -> None:
        super().check()
        if self.length is not None and self.length != "auto":
            whole_number(self, "length", 2)
        for name in ("batch", "max_updates"):
            if getattr(self, name) is not None:
                whole_number(self, name)
        whole_number(self, "report_every")
        number(self, "delay", 0.0)
        if self.max_passes is not None:
            positive_number(self, "max_passes")
        if self.starts not in STARTS:
            raise unknown_name("kind of starts", self.starts, STARTS)
        number(self, "forgetting", 0.0)
        if not (math.isfinite(self.forgetting) and math.isfinite(self.delay)):
            raise InputError(f"{type(self).__name__}: delay and forgetting must be finite.")
        if not 0.5 <= self.forgetting <= 1.0:
            warnings.warn(
                f"{type(self).__name__}: forgetting={self.forgetting} is outside [0.5, 1]: below, the steps do not "
                "shrink fast enough for the noise to die out; above, they shrink before the run has arrived.",
                stacklevel=2,
            )
        resolve_boundary(self.boundary).check()

    # ---- the size of things ------------------------------------------------------------------------------------------

    def wants_length(self, problem: Problem) -> bool:
        """Whether somebody has to choose a length."""
        return self.length == "auto" and int(problem.whole.data.lengths.max(initial=1)) > WHOLE

    def subchains(self, problem: Problem) -> Subchains:
        """All subchains of the data."""
        data = problem.whole.data
        longest, shortest = int(data.lengths.max()), int(data.lengths.min())
        length: Any = self.length
        if length == "auto":
            length = problem.subchain_length if self.wants_length(problem) else None
        if length is None:
            return Grid(data.offsets, None)
        if length > longest:
            raise InputError(
                f"{type(self).__name__}: length={length}, but the longest sequence has {longest} positions; choose a "
                "smaller length, or None for whole sequences."
            )
        if self.starts == "grid":
            return Grid(data.offsets, int(length))
        if length > shortest:
            raise InputError(
                f"{type(self).__name__}: starts='anywhere' needs sequences of at least length={length} positions, but "
                f"the shortest has {shortest}; use starts='grid'."
            )
        return Anywhere(data.offsets, int(length))

    def batch_size(self, problem: Problem) -> int:
        """Subchains of an update."""
        if self.batch is not None:
            return int(self.batch)
        subchains = self.subchains(problem)
        typical = min(subchains.length, problem.whole.data.n_observations / max(subchains.size, 1))
        return max(1, round(BATCH_OBSERVATIONS / max(typical, 1.0)))

    def n_updates(self, problem: Problem) -> int | None:
        """The last update of a run; None if nobody knows."""
        observations = problem.whole.data.n_observations
        subchains = self.subchains(problem)
        seen = min(subchains.length, observations / max(subchains.size, 1)) * self.batch_size(problem)
        a_pass = observations / seen
        limits: list[float] = []
        if self.max_updates is not None:
            limits.append(self.max_updates)
        if self.max_passes is not None:
            limits.append(math.ceil(self.max_passes * a_pass))
        watched = self.patience is not None and problem.validation is not None
        if not limits and self.time_limit is None and not watched:
            limits.append(max(LEAST_UPDATES, math.ceil(PASSES * a_pass)))
        return int(max(min(limits), 1)) if limits else None

    def n_iterations(self, problem: Problem) -> int | None:
        updates = self.n_updates(problem)
        return None if updates is None else -(-updates // self.report_every)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def why_stop(self, problem: Problem, state: RunState) -> Status | None:
        done, limit = state.trace.measures.get("updates", [0.0])[-1], self.n_updates(problem)
        found = super().why_stop(problem, state)
        if limit is not None and found in (None, "max_iter"):
            return "max_iter" if done >= limit else None
        return found

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Updates(problem, self, state)

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        return posterior.mean(), []

    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        return point.surrogate() if self.kind == "mode" else getattr(posterior, self.kind)()

    def worth(self, problem: Problem, state: RunState, compared: bool) -> float:
        """The held-out score, or the bound of an observation by an excerpt that is the same for all restarts.

        Objectives of a run are of the minibatches that it happened to draw, and differ by more than restarts do.
        """
        if state.trace.validation:
            return state.trace.validation[-1]
        found = state.results.reported
        if found is None or not compared:
            return super().worth(problem, state, compared)
        length = self.subchains(problem).length
        excerpt = Excerpt(problem, length, max(JUDGED // length, 1), np.random.default_rng(0))
        prior = state.results.prior or problem.prior
        posterior = prior.update(found)
        has_bound = self.kind != "mode"  # where there is none, the likelihood
        try:
            seen = excerpt.statistics(posterior.expected_log() if has_bound else state.point.surrogate())
        except ImpossibleSequenceError:  # this run cannot explain the excerpt
            return -np.inf
        except IndexError as error:  # a large file is not looked at as a whole before the run
            warnings.warn(f"restarts cannot be compared, and the first is kept: {error}; check the data.", stacklevel=2)
            return -np.inf
        prior_worth = prior.log_hyperprior() - posterior.kl(prior) if has_bound else 0.0
        return (seen.log_normalizer + prior_worth) / max(seen.n_observations, 1.0)


class Updates:
    """Iterations that are a number of small updates."""

    def __init__(self, problem: Problem, algorithm: Stochastic, state: RunState) -> None:
        self.problem = problem
        self.algorithm = algorithm
        self.subchains = algorithm.subchains(problem)
        self.size = algorithm.batch_size(problem)
        self.gains = self.subchains.gains(self.size)
        self.last_update = algorithm.n_updates(problem)
        self.rates = (Adaptive if algorithm.adapt else Falling)(algorithm.delay, algorithm.forgetting)
        self.boundary = self._open()
        self.seed = state.seed
        self.rate = 0.0
        self.interruption = Postponed()
        spent = state.trace.seconds[-1] if state.trace.seconds else 0.0
        limit = math.inf if algorithm.time_limit is None else algorithm.time_limit
        self.deadline = time.perf_counter() + limit - spent
        self.growths: list[float] = []
        self._drawn: dict[int, Index] = {}
        memory = state.results.memory
        statistics = state.statistics if state.statistics is not None else self._guess(state.point)
        self.model = IncrementalModel(problem, algorithm, statistics, state.results.prior or problem.prior)
        self.model.companions = [self.rates, self.boundary]
        if "update" in memory:
            self.model.restore(memory, statistics)
            self.rates.restore(memory)
            self.boundary.restore(memory)
        else:
            self.boundary.begin()
        self.words = WordUpdates.of(self)
        self.file = MappedFile.of(problem.whole.data.values)
        self._bytes_read = MAPPED_BYTES  # whatever was read before the run began

    def _open(self) -> OpenBoundary:
        boundary = resolve_boundary(self.algorithm.boundary)
        n_states = len(self.problem.prior.chain.mean().initial)
        return boundary.open(self.subchains, n_states, self.problem.whole.data.fingerprint())

    def _guess(self, point: Point) -> Statistics:
        """Statistics for a run that starts at a model: what the model makes of a sample, counted as all the data."""
        rng = np.random.default_rng([self.seed, 1 << 32])
        found = Excerpt(self.problem, SAMPLE_LENGTH, SAMPLE_SIZE, rng).statistics(point.surrogate())
        return Statistics(found.initial, found.pairs, found.emission)

    def _pieces(self, update: int) -> Index:
        """Subchains of an update and of some that follow, a row each: a function of the seed and their numbers."""
        block, at = divmod(update - 1, DRAWN)
        if block not in self._drawn:
            rng = np.random.default_rng([self.seed, block])
            self._drawn = {
                earlier: pieces for earlier, pieces in self._drawn.items() if earlier == block - 1
            }  # the next update may belong to the next block
            self._drawn[block] = rng.integers(self.subchains.size, size=(DRAWN, self.size))
        return self._drawn[block][at:]

    def draw(self, update: int) -> Minibatch:
        """The minibatch of an update."""
        return self.subchains.batch(self._pieces(update)[0], self.problem.whole.weights)

    def step(self, state: RunState) -> Step:
        model, every = self.model, self.algorithm.report_every
        with self.interruption:
            while self.last_update is None or model.update < self.last_update:
                self.interruption.check()  # also one that came while the last report was made
                try:
                    self._some_updates()
                except IndexError as error:  # a large file is not looked at as a whole before the run
                    raise InputError(f"after {model.update} updates: {error}; check the data.") from None
                if model.present.is_learned and model.update % RENEW == 0:
                    self._update_hyperparameters()
                if model.update % every == 0 or time.perf_counter() > self.deadline:
                    break
            events = self._search(state.iteration + 1)
            objective = model.report()
        measures = {"updates": float(model.update), "rate": self.rate}
        if self.growths:
            measures["growth"] = float(np.mean(self.growths))
            self.growths = []
        return Step(model, objective, events, [Chain(model.chain.initial, model.chain.pairs)], measures)

    def release(self) -> None:
        """Another run may want the file that guards are kept in."""
        self.boundary.release()

    def _update_hyperparameters(self) -> None:
        """Move what is learned of the prior by as much as the updates since the last time would have."""
        model, problem = self.model, self.problem
        surplus = None
        if isinstance(model.present.chain, CollapsedChain):
            rng = np.random.default_rng([self.seed, 1 << 33, model.update])
            chain = model.chain.surrogate(self.algorithm.kind)
            surrogate = Surrogate(chain.initial, chain.transition, model.emission.surrogate(self.algorithm.kind))
            way = WAYS[model.present.chain.way]
            surplus = Excerpt(problem, self.subchains.length, self.size, rng).surplus(surrogate, way)
        model.update_hyperparameters(min(1.0, RENEW * self.rate), surplus)

    def _search(self, iteration: int) -> list[str]:
        """Try other numbers of states, judged by an excerpt of the data."""
        model, look = self.model, Search(self.problem, self.algorithm, self.seed, iteration, SEARCH)
        is_late = self.last_update is not None and 2 * model.update >= self.last_update
        if self.rate * model.update < RIPE and not is_late:
            return []
        if not model.present.is_learned or not look.is_due(model.present, model.statistics):
            return []
        rng = np.random.default_rng([self.seed, 1 << 34, iteration])
        length = self.subchains.length
        excerpt = Excerpt(self.problem, length, max(JUDGED // length, self.size), rng)

        least = -math.inf  # what is left of the fit

        def run(prior: ModelPosterior, statistics: Statistics) -> Trial:
            nonlocal least
            for _ in range(SETTLED):  # the prior of a proposal has only just begun
                prior = prior.update_hyperparameters(statistics)
            posterior = prior.update(statistics)
            seen = excerpt.statistics(posterior.expected_log())
            if seen.log_normalizer < least:
                return Trial(-math.inf, prior, statistics)
            least = max(least, seen.log_normalizer - LOSS * seen.n_observations)
            return Trial(seen.log_normalizer - posterior.kl(prior) + prior.log_hyperprior(), prior, statistics)

        try:
            here = run(model.present, model.statistics)
        except ImpossibleSequenceError:  # data that surrogates can explain, but not their geometric means
            return []
        best, events = look.improve(here, run)
        if events:
            model.leap(best.prior, best.statistics)
            for into, gone in look.folded:
                self.boundary.fold(into, gone)
            self.words = WordUpdates.of(self)
        return events

    def _some_updates(self) -> None:
        """One update, or all up to the next report that can be done at one go."""
        model, every = self.model, self.algorithm.report_every
        if self.file is not None:
            self.file.check()
        if self.words is not None:
            pieces = self._pieces(model.update + 1)
            left = every - model.update % every
            if model.present.is_learned:
                left = min(left, RENEW - model.update % RENEW)
            if self.last_update is not None:
                left = min(left, self.last_update - model.update)
            done = self.words.run(self, pieces[:left])
            if done:
                model.moved(done)
                self.rate = self.rates.rate(model.update, model.chain.pairs, model.chain.pairs)
                return
        self._update()

    def _update(self) -> None:
        model, whole = self.model, self.problem.whole
        batch = self.draw(model.update + 1)
        if self.file is not None:
            coming = self.draw(model.update + 2)
            self.file.expect(coming.starts, coming.lengths)
            self._bytes_read += batch.n_observations * whole.data.values.strides[0]
            if self._bytes_read > MAPPED_BYTES:
                self.file.forget()
                self._bytes_read = 0
        kind = self.algorithm.kind
        chain = model.chain.surrogate(kind)
        surrogate = Surrogate(chain.initial, chain.transition, model.emission.surrogate(kind))
        start, stop = self.boundary.enter(self.problem, surrogate, batch, model.chain)
        run = self.problem.engine.minibatch(surrogate, whole, batch, start, stop)
        self.boundary.leave(batch, run)
        fresh, gains = run.statistics, self.gains
        rate = self.rates.rate(model.update + 1, gains.pairs * fresh.pairs, model.chain.pairs)
        model.chain.blend(1.0 - rate, rate * gains.initial, rate * gains.pairs, fresh.initial, fresh.pairs)
        model.emission.blend(1.0 - rate, rate * gains.emission, fresh.emission)
        model.since += (fresh.log_normalizer, fresh.n_observations)
        model.moved()
        self.rate = rate
        if self.boundary.growth is not None:
            self.growths.append(self.boundary.growth)
